"""Checks of single hooks: signatures, answers, inputs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agent_core.errors import AgentError
from agent_core.plugin.provider import API_HOOKS
from agent_core.testing.conformance.examine import ENABLEMENT, FOR_FRONT_ENDS, TRANSFORMS
from agent_core.testing.conformance.report import Fault, Faults
from agent_core.testing.conformance.shapes import SHAPES
from agent_core.testing.conformance.stage import staged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.testing.conformance.case import Case

_REGISTERING = {
    "provider": "register_provider",
    "extension": "register_provider",
    "feature": "register_feature",
    "tool": "register_tool",
}
_LENDING = (*TRANSFORMS, "process_chunk", "execute_action", *ENABLEMENT, *FOR_FRONT_ENDS, "init", *API_HOOKS)


def it_registers(case: Case) -> Faults:
    """The plugin can be made and registered; it has a name, a version and a priority."""
    fault = registration_fault(case)
    if fault is not None:
        yield fault
        return
    plugin = case.wrapper.plugin
    for attribute in ("name", "version"):
        value = getattr(plugin, attribute, None)
        if not isinstance(value, str) or not value:
            yield Fault(attribute, f"must be a text that says something, is {value!r}")
    default_enabled = getattr(plugin, "default_enabled", True)
    if not isinstance(default_enabled, bool):
        yield Fault("default_enabled", f"must be True or False, is {default_enabled!r}")
    for unknown in _unknown_formats(case):
        yield Fault("tool_schema_formats", f"names the format {unknown!r}, which nobody knows")


def _unknown_formats(case: Case) -> list[str]:
    wanted = getattr(case.wrapper, "tool_schema_formats", ())
    if not wanted:
        return []
    case.trust("register_tool_formats")
    with staged(case) as stage:
        known = stage.interop().schema_formats()
    return [name for name in wanted if name not in known]


def registration_fault(case: Case) -> Fault | None:
    """Return why the plugin cannot be registered, or None."""
    try:
        case.core(case.wrapper.plugin)
    except AgentError as error:
        problem = getattr(error, "problem", str(error))
        named = re.search(r"the hook (\w+)", problem)
        hook = named[1] if named else getattr(error, "hook", _REGISTERING[case.kind])
        return Fault(hook, f"cannot be registered: {problem}")
    except Exception as error:  # noqa: BLE001  # a stranger's constructor may raise anything
        return Fault("__init__", f"raised {type(error).__name__}: {error}")
    return None


def hooks_answer_the_documented_types(case: Case) -> Faults:
    """Every hook that can be called by hand answers what its contract says, and does not raise."""
    return _flaws(case, "answers", (*SHAPES, *API_HOOKS))


def inputs_are_left_alone(case: Case) -> Faults:
    """No hook changes what it is lent, be it frozen or not."""
    return _flaws(case, "inputs", _LENDING)


def transforms_are_deterministic(case: Case) -> Faults:
    """The same messages, models and tools are turned into the same, each time."""
    return _flaws(case, "varies", TRANSFORMS)


def enablement_is_pure(case: Case) -> Faults:
    """Tags and `is_enabled` depend on nothing but their arguments."""
    return _flaws(case, "varies", ENABLEMENT)


def settings_and_elements_are_json(case: Case) -> Faults:
    """What front ends are given can be sent to them."""
    return _flaws(case, "json", FOR_FRONT_ENDS)


def answers_are_json(case: Case) -> Faults:
    """Everything that becomes part of a session or leaves the process can be written as JSON."""
    return _flaws(case, "json", tuple(hook for hook in SHAPES if hook not in FOR_FRONT_ENDS))


def _flaws(case: Case, aspect: str, hooks: Sequence[str]) -> Faults:
    case.require(*hooks)
    for flaw in case.flaws:
        if flaw.aspect == aspect and flaw.hook in hooks:
            yield Fault(flaw.hook, flaw.problem)


def registered_name(case: Case, given: Any) -> str:
    """Return what to call a plugin that may not even register."""
    try:
        return case.name
    except Exception:  # noqa: BLE001  # the check of registration tells what is wrong
        name = getattr(given, "name", None)
        return name if isinstance(name, str) and name else getattr(given, "__name__", type(given).__name__)
