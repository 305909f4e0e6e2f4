"""The plugin: what it offers, and which of its actions is meant.

A conversation that grows too long costs time and money with every request, and in the end no model takes
it. `compact_range` replaces a range of it by a summary. The originals stay in the session's metadata, and
`undo_compaction` puts them back. `compact_when_long` does it by itself at the lifecycle that the
configuration names. Nothing that goes wrong changes the session: the answer has an `error` then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_core import AgentError, ConfigError
from agent_core.beside import TEMPORARY
from compaction_feature import answers, compacting
from compaction_feature.errors import RangeError, Refused
from compaction_feature.settings import SCHEMA, TRIGGER, Settings

if TYPE_CHECKING:
    from agent_core import Session

Dicts = list[dict[str, Any]]
_RESPONSE_FINALIZE = "response_finalize"


class CompactionFeature:
    """Replaces a range of messages by a summary, on request or when a session is long."""

    name = answers.PLUGIN
    version = "0.1.0"

    def get_config_schema(self) -> dict[str, Any]:
        """Return the settings."""
        return SCHEMA

    def get_ui_elements(self, config: dict[str, Any]) -> Dicts:  # noqa: ARG002 - always the same
        """Return a button for each of the two actions that people run."""
        return [
            {"ui_type": "session_action", "label": "Compact", "action_id": answers.COMPACT},
            {"ui_type": "session_action", "label": "Undo compaction", "action_id": answers.UNDO},
        ]

    def get_actions(self, context: dict[str, Any] | None = None) -> Dicts:
        """Offer to compact and to undo; with a trigger in the configuration, one more that waits for it."""
        trigger = _settings(context).trigger
        return [*_MANUAL, {**_AUTOMATIC, "trigger": [trigger]}] if trigger else _MANUAL

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: dict[str, Any],
        context: dict[str, Any] | None,
        state: dict[str, Any],
    ) -> dict[str, Any]:
        """Run an action; what goes wrong is told in the answer, and the session stays as it is."""
        if not isinstance(context, Mapping) or context.get("core") is None:
            return answers.failed(native_messages, "missing_core", "the context must have the core")
        try:
            work = compacting.Work(
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
            return answers.failed(native_messages, error.kind, str(error))
        except AgentError as error:
            kind = "config" if isinstance(error, ConfigError) else "failed"
            return answers.failed(native_messages, kind, str(error))

    def from_native_messages(self, native_messages: Dicts, messages: Dicts, state: dict[str, Any]) -> Dicts:
        """Return the messages as they were read; right after an action, those that stay as they were."""
        return compacting.as_known(state, native_messages, messages)


def _run(action_id: str, work: compacting.Work, params: dict[str, Any]) -> answers.Answer:
    if action_id == answers.COMPACT:
        return compacting.compact_range(
            work,
            start=params.get("start"),
            end=params.get("end"),
            instructions=params.get("instructions") or "",
        )
    if action_id == answers.UNDO:
        return compacting.undo_compaction(work, params.get("compaction"))
    if action_id != answers.COMPACT_LONG:
        return answers.failed(work.native, "unknown_action", f"there is no action {action_id!r}")
    if work.session.metadata.get(TEMPORARY):
        return answers.nothing_done(work.native, "the session is a temporary one")
    if work.context.get("lifecycle") == _RESPONSE_FINALIZE:
        problem = (
            f"config[{TRIGGER!r}] cannot be {_RESPONSE_FINALIZE!r}, when the turn is not in the session yet"
        )
        return answers.failed(work.native, "config", f"{problem}: take 'request_complete'")
    return compacting.compact_when_long(work)


def _without_range(action_id: str, native: Dicts, params: dict[str, Any], problem: str) -> answers.Answer:
    """Answer that there is no range: an error only to somebody who named one."""
    named = params.get("start") is not None or params.get("end") is not None
    if action_id == answers.COMPACT and named:
        return answers.failed(native, "range", problem)
    return answers.nothing_done(native, problem)


def _settings(context: Mapping[str, Any] | None) -> Settings:
    config = (context or {}).get("config")
    return Settings.read(config if isinstance(config, Mapping) else {})


_MANUAL: Dicts = [
    {
        "id": answers.COMPACT,
        "label": "Compact",
        "description": "Replace a range of messages by a summary. What is replaced can be put back.",
        "inputs": {
            "start": {
                "type": "integer",
                "description": "The first message, from 0; by default the first behind system messages.",
            },
            "end": {
                "type": "integer",
                "description": "The first message that stays; by default the last few stay.",
            },
            "instructions": {"type": "string", "description": "What the summary shall pay attention to."},
        },
    },
    {
        "id": answers.UNDO,
        "label": "Undo compaction",
        "description": "Put the messages back that a summary stands for.",
        "inputs": {
            "compaction": {"type": "string", "description": "Which one; by default the newest."},
        },
    },
]
_AUTOMATIC: dict[str, Any] = {
    "id": answers.COMPACT_LONG,
    "label": "Compact a long session",
    "description": "Replace all but the last messages by a summary if there are too many.",
    "inputs": {},
}
