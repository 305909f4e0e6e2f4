"""The plugin: its actions, and how each is run.

A conversation that grows too long costs time and money with every request, and in the end no model takes
it. `compact_range` replaces a range of it by a summary. The originals stay in the session's metadata, and
`undo_compaction` puts them back. `compact_when_long` does it by itself at the lifecycle that the
configuration names. Nothing that goes wrong changes the session: the answer has an `error` then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_core import AgentError, ConfigError, plugin_config
from agent_core.side_request import TEMPORARY
from compaction_feature import compaction
from compaction_feature.ranges import Dicts, Item, RangeError, Refused
from compaction_feature.settings import SCHEMA, TRIGGER, Settings

if TYPE_CHECKING:
    from agent_core import Session
    from agent_core.frozen import State
    from agent_core.types import Config, Context

_RESPONSE_FINALIZE = "response_finalize"


class CompactionFeature:
    """Replaces a range of messages by a summary, on request or when a session is long."""

    name = compaction.PLUGIN
    version = "0.1.0"

    def get_config_schema(self) -> Config:
        return SCHEMA

    def get_ui_elements(self, config: Config) -> Dicts:
        """Return a button for each of the two actions that people run."""
        return [
            {"ui_type": "session_action", "label": "Compact", "action_id": compaction.COMPACT},
            {"ui_type": "session_action", "label": "Undo compaction", "action_id": compaction.UNDO},
        ]

    def get_actions(self, context: Context = None) -> Dicts:
        """Offer to compact and to undo; with a trigger in the configuration, one more that waits for it."""
        trigger = _settings(context).trigger
        return [*_MANUAL, {**_AUTOMATIC, "trigger": [trigger]}] if trigger else _MANUAL

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: Item,
        context: Context,
        state: State,
    ) -> compaction.Answer:
        """Run an action; if something goes wrong, the answer says so and the session stays as it is."""
        if not isinstance(context, Mapping) or context.get("core") is None:
            return compaction.failed(native_messages, "missing_core", "the context must have the core")
        try:
            work = compaction.Work(
                session=session,
                native=native_messages,
                context=context,
                state=state,
                settings=_settings(context),
            )
            return _run(action_id, work, params)
        except RangeError as error:
            return _without_range(action_id, native_messages, params, str(error))
        except Refused as error:
            return compaction.failed(native_messages, error.kind, str(error))
        except AgentError as error:
            kind = "config" if isinstance(error, ConfigError) else "failed"
            return compaction.failed(native_messages, kind, str(error))

    def from_native_messages(self, native_messages: Dicts, messages: Dicts, state: State) -> Dicts:
        """Return the messages as they were read; right after an action, those that stay as they were."""
        return compaction.as_known(state, native_messages, messages)


def _run(action_id: str, work: compaction.Work, params: Item) -> compaction.Answer:
    if action_id == compaction.COMPACT:
        return compaction.compact_range(
            work,
            start=params.get("start"),
            end=params.get("end"),
            instructions=params.get("instructions") or "",
        )
    if action_id == compaction.UNDO:
        return compaction.undo_compaction(work, params.get("compaction"))
    if action_id != compaction.COMPACT_LONG:
        return compaction.failed(work.native, "unknown_action", f"there is no action {action_id!r}")
    if work.session.metadata.get(TEMPORARY):
        return compaction.nothing_done(work.native, "the session is a temporary one")
    if work.context.get("lifecycle") == _RESPONSE_FINALIZE:
        problem = (
            f"config[{TRIGGER!r}] cannot be {_RESPONSE_FINALIZE!r}, when the turn is not in the session yet"
        )
        return compaction.failed(work.native, "config", f"{problem}: take 'request_complete'")
    return compaction.compact_when_long(work)


def _without_range(action_id: str, native: Dicts, params: Item, problem: str) -> compaction.Answer:
    """Answer that there is no range: an error only to somebody who named one."""
    named = params.get("start") is not None or params.get("end") is not None
    if action_id == compaction.COMPACT and named:
        return compaction.failed(native, "range", problem)
    return compaction.nothing_done(native, problem)


def _settings(context: Context) -> Settings:
    config = (context or {}).get("config")
    return Settings.read(plugin_config(config if isinstance(config, Mapping) else {}, compaction.PLUGIN))


_MANUAL: Dicts = [
    {
        "id": compaction.COMPACT,
        "label": "Compact",
        "description": "Replace a range of messages by a summary. The messages can be put back.",
        "inputs": {
            "start": {
                "type": "integer",
                "description": "The first message, from 0; by default the first behind system messages.",
            },
            "end": {
                "type": "integer",
                "description": "The first message that stays; by default the last few stay.",
            },
            "instructions": {"type": "string", "description": "What the summary should pay attention to."},
        },
    },
    {
        "id": compaction.UNDO,
        "label": "Undo compaction",
        "description": "Put back the messages that a summary replaced.",
        "inputs": {
            "compaction": {"type": "string", "description": "Which one; by default the newest."},
        },
    },
]
_AUTOMATIC: Item = {
    "id": compaction.COMPACT_LONG,
    "label": "Compact a long session",
    "description": "Replace all but the last messages by a summary if there are too many.",
    "inputs": {},
}
