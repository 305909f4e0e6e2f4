"""Checks of single hooks: signatures, answers, inputs.

Every hook is called with plain copies of its inputs, which are compared afterwards, a second time to
see whether the answer stays the same, and once with frozen inputs, as the pipeline lends them.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from agent_core.actions import check_inputs
from agent_core.errors import ActionInputError, AgentError, PluginError, PluginMutationError
from agent_core.frozen import FrozenValueError, freeze, thaw
from agent_core.models import ToolDescriptor
from agent_core.plugin.provider import API_HOOKS
from agent_testing.conformance.case import Fault, Faults, Flaw, NotApplicable
from agent_testing.conformance.stage import SHAPES, public_part, shape_problem, shown, staged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core.actions import Action
    from agent_provider_kit import JsonObject
    from agent_testing.conformance.case import Case
    from agent_testing.conformance.stage import Stage

ENABLEMENT = ("get_tags", "required_tags", "forbidden_tags", "is_enabled")
FOR_FRONT_ENDS = ("get_config_schema", "get_ui_elements")
TRANSFORMS = (
    "get_models",
    "to_native_messages",
    "from_native_messages",
    "initialize_request",
    "finalize",
    "prepare_tools",
)
_OUTSIDE_REQUESTS = (*FOR_FRONT_ENDS, "get_template", "get_completions", "apply_completion")
IN_REQUESTS = (*(hook for hook in SHAPES if hook not in _OUTSIDE_REQUESTS), *API_HOOKS)
_LENT = frozenset(
    {"config", "messages", "native_messages", "models", "tags", "final_messages", "tools"}
    | {"params", "completion"}
)
_NEED_ANSWER = ("get_models", "process_chunk", "finalize")  # of a provider
_NO_JSON = (*ENABLEMENT, "init", "register_tool_formats")
_REGISTERING = {
    "provider": "register_provider",
    "extension": "register_provider",
    "feature": "register_feature",
    "tool": "register_tool",
}
_LENDING = (*TRANSFORMS, "process_chunk", "execute_action", *ENABLEMENT, *FOR_FRONT_ENDS, "init", *API_HOOKS)


def find_flaws(case: Case) -> list[Flaw]:
    """Return what is wrong with single hooks of the plugin; they are examined once."""
    if case.flaws is None:
        with staged(case) as stage:
            case.flaws = _examine_all(stage)
    return case.flaws


def trust(case: Case, *hooks: str) -> None:
    """Go on only if nothing is wrong with these hooks; another check reports it if something is.

    Raises:
        NotApplicable: If something is.
    """
    for flaw in find_flaws(case):
        if flaw.hook in hooks:
            raise NotApplicable(f"{flaw.hook} must be fixed first: it {flaw.problem}")


def json_problem(value: object) -> str | None:
    """Return why *value* cannot be written as JSON, or None."""
    plain = thaw(value)
    try:
        text = json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        return f"is not JSON: {error}"
    return None if json.loads(text) == plain else "does not come back from JSON as it was: keys must be text"


def runnable_params(case: Case, action: Action) -> JsonObject | None:
    """Return the inputs for an action, or None if there are none that fit or it must not be run."""
    given = case.action_params.get(action.id, {})
    try:
        return None if given is None else check_inputs(action, given)
    except ActionInputError:
        return None


def _examine_all(stage: Stage) -> list[Flaw]:
    flaws: list[Flaw] = []
    for hook in SHAPES:
        unanswered = stage.case.kind == "provider" and hook in _NEED_ANSWER and not stage.is_answered
        flaw = _first_flaw(stage, hook) if stage.wrapper.has(hook) and not unanswered else None
        if flaw is not None and not _is_known(flaw, flaws):
            flaws.append(flaw)
    return flaws


def _is_known(flaw: Flaw, flaws: list[Flaw]) -> bool:
    """One hook may be needed to get to another, and what varies may make others vary: report it once."""
    varies = flaw.hook in TRANSFORMS and flaw.aspect == "varies"
    return any(
        flaw.hook == known.hook or (varies and known.hook in TRANSFORMS and known.aspect == "varies")
        for known in flaws
    )


def _first_flaw(stage: Stage, hook: str) -> Flaw | None:
    try:
        if hook == "process_chunk":
            _examine_chunks(stage)
        elif hook == "execute_action":
            _examine_actions(stage)
        else:
            _examine_hook(stage, hook)
        if hook == "get_actions":
            _examine_definitions(stage)
    except Flaw as flaw:
        return flaw
    except PluginMutationError as error:
        return Flaw("inputs", error.hook, error.problem)
    except PluginError as error:
        return Flaw("answers", error.hook, error.problem)
    return None


def _examine_hook(stage: Stage, hook: str) -> None:
    first = public_part(_call(stage, hook, stage.lend(hook)))
    again = public_part(_call(stage, hook, stage.lend(hook)))
    frozen = public_part(_call(stage, hook, _frozen(stage.lend(hook))))
    if hook in (*TRANSFORMS, *ENABLEMENT) and not first == again == frozen:
        other = frozen if first == again else again
        raise Flaw(
            "varies", hook, f"answers {shown(thaw(first))} and then {shown(thaw(other))} to one question"
        )
    _check_json(hook, first)


def _examine_chunks(stage: Stage) -> None:
    """Follow a stream from chunk to chunk; an extension gets what the provider made of each."""
    native, state = stage.opened()
    for chunk in stage.chunks(native, state):
        lent = {"chunk": chunk, "native_messages": native, "state": state}
        if stage.case.kind == "extension":
            partials, finals, native, state = stage.process(chunk, native, state)
            lent = {"chunk": chunk, "partials": partials, "finals": finals}
            lent |= {"native_messages": native, "state": state}
        answer = _call(stage, "process_chunk", lent)
        _check_json("process_chunk", public_part(answer))
        *_, native, state = answer


def _examine_actions(stage: Stage) -> None:
    for action in stage.actions():
        params = runnable_params(stage.case, action)
        if params is not None:
            answer = _call(stage, "execute_action", stage.lend_action(action, thaw(params)))
            _call(stage, "execute_action", _frozen(stage.lend_action(action, thaw(params))))
            _check_json("execute_action", answer)


def _examine_definitions(stage: Stage) -> None:
    try:
        offered = [action.id for action in stage.actions()]
    except PluginError as error:
        raise Flaw("actions", error.hook, error.problem) from error
    if offered and not stage.wrapper.has("execute_action"):
        raise Flaw("actions", "execute_action", f"is missing, but get_actions offers {offered}")


def _call(stage: Stage, hook: str, lent: Mapping[str, Any]) -> Any:
    """Call a hook and return its answer, if that is of the documented kind and no input was touched."""
    before = {name: _copied(lent[name]) for name in _LENT.intersection(lent)}
    try:
        answer = stage.wrapper.hook(hook)(*lent.values())
    except FrozenValueError as error:
        raise Flaw("inputs", hook, f"changes its input in place ({error})") from error
    except Exception as error:
        raise Flaw("answers", hook, f"raised {type(error).__name__}: {error}") from error
    changed = sorted(name for name in before if lent[name] != before[name])
    if changed:
        raise Flaw("inputs", hook, f"changes its input in place ({', '.join(changed)})")
    problem = shape_problem(hook, answer) or _invented(hook, lent, answer)
    if problem is not None:
        raise Flaw("answers", hook, problem)
    return answer


def _invented(hook: str, lent: Mapping[str, Any], answer: Any) -> str | None:
    if hook != "prepare_tools":
        return None
    known = {tool.name for tool in lent["tools"]}
    new = [tool.name for tool in answer if tool.name not in known]
    return f"offers {new}, which no tool plugin runs" if new else None


def _copied(value: Any) -> Any:
    """Copy dicts, lists and tool descriptors; a configuration may hold objects that cannot be copied."""
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return deepcopy(value) if isinstance(value, ToolDescriptor) else thaw(value)


def _frozen(lent: Mapping[str, Any]) -> JsonObject:
    return {name: freeze(value) if name in _LENT else value for name, value in lent.items()}


def _check_json(hook: str, answer: object) -> None:
    problem = None if hook in _NO_JSON else json_problem(answer)
    if problem is not None:
        raise Flaw("json", hook, f"answers something that {problem}")


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
    trust(case, "register_tool_formats")
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
    except Exception as error:  # a stranger's constructor may raise anything
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
    for flaw in find_flaws(case):
        if flaw.aspect == aspect and flaw.hook in hooks:
            yield Fault(flaw.hook, flaw.problem)


def registered_name(case: Case, given: object) -> str:
    """Return what to call a plugin that may not even register."""
    try:
        return case.name
    except Exception:  # the check of registration reports it
        name = getattr(given, "name", None)
        return name if isinstance(name, str) and name else getattr(given, "__name__", type(given).__name__)
