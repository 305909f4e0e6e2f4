"""The check that a feature works with more than one native format, and the provider that it is tried with.

Native items belong to a provider. A feature that reads `item["content"]`, or adds an item with role and
content, works with providers that happen to have that format and breaks requests to all others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_core.core import AgentCore
from agent_core.errors import AgentError
from agent_testing.conformance import actions, hooks, requests
from agent_testing.conformance.case import Fault, Faults, NotApplicable, as_plugin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_provider_kit import Config, Dicts, JsonObject
    from agent_testing.conformance.case import Case

_ROLES = {"system": "house", "user": "guest", "assistant": "host", "tool": "errand"}
_READABLE = {name: role for role, name in _ROLES.items()}
_CHECKS = (
    hooks.hooks_answer_the_documented_types,
    requests.calls_streams_and_async_twins_agree,
    actions.actions_run,
)
_ADVICE = (
    "Native items look different with each provider. Change readable messages (from_native_messages, "
    "actions), or convert with context['request_runtime']['provider'] in an action. A feature for one "
    "format must stay off with others: see required_tags and is_enabled"
)


class ForeignItemError(ValueError):
    """An item is not of the provider's format."""


class SecondFormat:
    """A provider whose items share no key with those of `ScriptedProvider`; it refuses all others."""

    name = "second_format_provider"
    version = "1"

    def init(self, config: Config) -> JsonObject:
        return {"config": config, "words": []}

    def get_models(self, config: Config) -> Dicts:
        return []

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [
            {
                "speaker": _ROLES[message["role"]],
                "lines": [message["content"]],
                "notes": {key: message[key] for key in message if key not in ("role", "content")},
            }
            for message in messages
        ]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [
            {"role": _READABLE[item["speaker"]], "content": "".join(item["lines"]), **item.get("notes", {})}
            for item in map(_own, native_messages)
        ]

    def stream_api(self, native_messages: Dicts, state: JsonObject) -> Iterator[str]:
        for item in native_messages:
            _own(item)
        yield from ("One ", "two ", "three.")

    def process_chunk(
        self, chunk: str, native_messages: Dicts, state: JsonObject
    ) -> tuple[Dicts, Dicts, Dicts, JsonObject]:
        state["words"].append(chunk)
        return [{"role": "assistant", "content": chunk}], [], native_messages, state

    def finalize(self, native_messages: Dicts, state: JsonObject) -> tuple[Dicts, Dicts, JsonObject]:
        if not state["words"]:
            return [], native_messages, state
        answer = {"speaker": "host", "lines": list(state["words"])}
        return [answer], [*native_messages, answer], state


def _own(item: Any) -> Any:
    """Return an item of the format."""
    lacks = not (isinstance(item.get("lines"), list) and item.get("speaker") in _READABLE)
    if lacks or "role" in item or "content" in item:
        raise ForeignItemError(f"the item with the keys {sorted(item)} is not of this provider's format")
    return item


def another_native_format_works(case: Case) -> Faults:
    """With a provider whose native items look different, hooks answer, requests pass and actions run."""
    if not case.any_provider:
        raise NotApplicable("the plugin is checked with a provider that its author chose")
    _need_to_be_on(case)
    second = replace(case, make_provider=SecondFormat)
    for check in _CHECKS:
        usual = _found(check(case))
        for fault in _found(check(second)):
            if fault not in usual:
                problem = f"with a provider of another native format, {fault.problem}. {_ADVICE}"
                yield Fault(fault.hook, problem)
                return  # what follows is mostly the same mistake once more


def _found(faults: Faults) -> list[Fault]:
    """Return what a check finds; if it does not apply, it says so itself in another place."""
    try:
        return list(faults)
    except NotApplicable:
        return []


def _need_to_be_on(case: Case) -> None:
    """Go on only if the feature is on with such a provider, unless somebody forces it.

    Raises:
        NotApplicable: If it is off: then it has said that it does not work with any format.
    """
    core = AgentCore()
    core.register_provider(SecondFormat)
    core.register_feature(as_plugin(case.kind, case.make_plugin()))
    config = {**case.config, "enabled_plugins": [*case.config.get("enabled_plugins", ()), case.name]}
    try:
        decisions = core.resolve(config).decisions
    except AgentError as error:
        raise NotApplicable(f"no request can be sent to another provider: {error}") from error
    if not any(one.enabled for one in decisions if one.plugin == case.name):
        raise NotApplicable("the feature is off with a provider of another native format")
