"""Actions: what plugins do to a session when somebody asks, or when a lifecycle comes to a point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from agent_core import display
from agent_core.actions import RESPONSE_FINALIZE, Action, check_confirmed, check_inputs, match_triggers
from agent_core.context import Context, build_context
from agent_core.errors import AgentError, PluginError, SessionFormatError, UnknownActionError
from agent_core.frozen import (
    EMPTY,
    FrozenDict,
    FrozenList,
    JsonObject,
    NotData,
    State,
    freeze,
    freeze_data,
    thaw,
)
from agent_core.log import get_logger
from agent_core.messages import Message, fold_foreign_fields
from agent_core.native import OWNED_METADATA
from agent_core.pipeline import chain
from agent_core.pipeline.action_run import run_action, token_for
from agent_core.pipeline.native_view import NativeView, native_view, readable_messages, write_items
from agent_core.resolve.tools import gather_tools, provider_config

if TYPE_CHECKING:
    from agent_core.cancellation import CancellationToken
    from agent_core.pipeline.prepare import Draft
    from agent_core.pipeline.request import Request
    from agent_core.plugin.base import Problems
    from agent_core.plugin.feature import FeatureWrapper, NativeSideWrapper
    from agent_core.plugin.provider import BoundProvider
    from agent_core.resolve import Resolution
    from agent_core.session import Session
    from agent_core.steps import Flow

_log = get_logger("actions")
_OF_APPLICATIONS = ("mutations", "ui_effects")
_APPLIED = ("native_messages", "session_metadata", "final_messages")

ActionRecord = JsonObject


@dataclass(frozen=True, slots=True)
class ActionHost:
    """The plugins whose actions can run, with the state and context that they run in."""

    provider: BoundProvider
    features: tuple[FeatureWrapper, ...]
    state: State
    context: Any

    def actions(self, problems: Problems | None = None) -> list[Action]:
        """Return every action on offer, in the order in which plugins run.

        Args:
            problems: Takes what plugins did wrong; it costs only their own actions.
        """
        actions: list[Action] = []
        for plugin in (*self.provider.extensions, *self.features):
            mistakes: Problems = []
            actions += plugin.get_actions(self.state, self.context, mistakes)
            for mistake in mistakes:
                plugin.log_once(mistake)
            if problems is not None:
                problems += mistakes
        return actions

    def plugin(self, action: Action) -> NativeSideWrapper:
        plugins = (*self.provider.extensions, *self.features)
        return next(plugin for plugin in plugins if plugin.name == action.plugin)

    def with_session(self, session: Session) -> ActionHost:
        """Return this host for a session that an action has changed."""
        return replace(self, context=build_context({"session": session.frozen_dict()}, self.context))

    def runtime(self) -> FrozenDict:
        """Return what plugins find as ``request_runtime``."""
        return FrozenDict(provider=self.provider, features=FrozenList(self.features))


@dataclass(frozen=True, slots=True)
class ResponseOutcome:
    """A turn's messages after the actions of `response_finalize`.

    Attributes:
        results: What each action reported, or why it failed.
        problems: The actions that failed; they changed nothing.
    """

    finals: list[FrozenDict]
    native: FrozenList
    metadata: JsonObject
    results: list[ActionRecord]
    problems: tuple[JsonObject, ...] = ()


def open_host(request: Request) -> ActionHost:
    """Prepare the plugins of a request for running actions: the same state as a real request has."""
    resolution = request.resolution
    # A long conversation is not handed round where nobody looks at it.
    describe = request.context if _ask_for_context(resolution) else request.context_without_session
    tools = gather_tools(resolution, describe())
    context = describe(tools)
    state = chain.init_state(resolution, provider_config(resolution, tools), context)
    return ActionHost(resolution.provider, resolution.features, state, context)


def _ask_for_context(resolution: Resolution) -> bool:
    """Say whether a plugin looks at the context before one of its actions runs."""
    plugins = (resolution.provider.provider, *resolution.provider.extensions, *resolution.features)
    return any(plugin.wants_context("init", "get_actions") for plugin in plugins) or any(
        tool.wants_context("init", "get_tool_schemas") for tool in resolution.tools
    )


def session_action(
    request: Request,
    plugin: str,
    action_id: str,
    params: Mapping[str, object],
    *,
    confirmed: bool,
    cancellation: CancellationToken | None,
) -> Flow[tuple[Session, JsonObject]]:
    """Run one action that somebody asked for."""
    host = open_host(request)
    problems: Problems = []
    actions = host.actions(problems)
    action = next((a for a in actions if a.plugin == plugin and a.id == action_id), None)
    if action is None:
        for problem in problems:
            if problem.plugin == plugin:  # the action may be there; that is why it cannot be found
                raise problem
        raise UnknownActionError(plugin, action_id, [f"{a.plugin}.{a.id}" for a in actions])
    inputs = check_inputs(action, params)
    check_confirmed(action, confirmed=confirmed)
    return (yield from _run(request, host, action, inputs, EMPTY, actions, cancellation))


def lifecycle_actions(
    request: Request, triggers: Sequence[str], describe: Callable[[AgentError], object] | None = None
) -> Flow[tuple[Session, list[ActionRecord]]]:
    """Run every action that waits for one of *triggers*; each sees what those before it changed.

    Args:
        describe: What is recorded of an action that fails, while the others still run; without it, the
            first failure ends the lifecycle.
    """
    plugins = (*request.resolution.provider.extensions, *request.resolution.features)
    if not any(plugin.has("get_actions") for plugin in plugins):
        return request.session, []
    host = open_host(request)
    actions = host.actions()
    records = []
    for action in actions:
        trigger = match_triggers(action, triggers)
        if trigger is None:
            continue
        try:
            inputs, owned = check_inputs(action, {}), {"lifecycle": trigger}
            session, public = yield from _run(request, host, action, inputs, owned, actions)
        except AgentError as error:
            if describe is None:
                raise
            _log.warning("action_failed", plugin=action.plugin, action=action.id, error=str(error))
            records.append({**_about(action), "error": describe(error)})
            continue
        if session is not request.session:
            request, host = replace(request, session=session), host.with_session(session)
        records.append(_record(action, public))
    return request.session, records


def run_response_actions(
    request: Request, draft: Draft, finals: list[FrozenDict], try_out: Callable[[ResponseOutcome], object]
) -> Flow[ResponseOutcome]:
    """Run the actions of `response_finalize` on a turn that is about to be returned."""
    resolution = request.resolution
    if not resolution.followers("get_actions"):
        return ResponseOutcome(finals, draft.native, {}, [])
    host = ActionHost(resolution.provider, resolution.features, draft.state, draft.context)
    if host.context is None:
        host = replace(host, context=request.context())
    return (
        yield from response_actions(
            host,
            request.session,
            RESPONSE_FINALIZE,
            ResponseOutcome(finals, draft.native, {}, []),
            extra=request.extra,
            describe=describe_error,
            try_out=try_out,
            native_final_messages=draft.finals,
            stream=request.stream,
            turn_native_start_index=draft.baseline,
        )
    )


def response_actions(
    host: ActionHost,
    session: Session,
    trigger: str,
    outcome: ResponseOutcome,
    *,
    extra: Mapping[str, object] | None,
    describe: Callable[[AgentError], object] | None = None,
    try_out: Callable[[ResponseOutcome], object] | None = None,
    **described: object,
) -> Flow[ResponseOutcome]:
    """Run the actions that wait for *trigger* and may still change a turn's final messages.

    Args:
        describe: What is recorded of an action that fails, which then changes nothing; without it, the
            first failure is raised.
        try_out: Raises if the turn cannot be kept with what an action made of it.
    """
    actions = host.actions()
    for action in actions:
        if not action.matches(trigger):
            continue
        owned = {
            **_layer_one(host, session),
            "lifecycle": trigger,
            "final_messages": FrozenList(outcome.finals),
            "native_messages": outcome.native,
            **described,
        }
        token = token_for(action, None)
        try:
            context = build_context(owned if token is None else {**owned, "cancellation": token}, extra)
            run = _execution(host, action, session, outcome.native, check_inputs(action, {}), context)
            result = yield from run_action(action, run, token)
            changed = _apply_to_turn(session, action, outcome, result, actions)
            if try_out is not None and any(key in result for key in _APPLIED):
                try_out(changed)
            outcome = changed
        except AgentError as error:
            if describe is None:
                raise
            _log.warning("action_failed", plugin=action.plugin, action=action.id, error=str(error))
            failed = {**_about(action), "error": describe(error)}
            outcome = replace(
                outcome, results=[*outcome.results, failed], problems=(*outcome.problems, failed)
            )
    return outcome


def _run(
    request: Request,
    host: ActionHost,
    action: Action,
    inputs: Mapping[str, object],
    owned: Mapping[str, object],
    actions: Sequence[Action],
    cancellation: CancellationToken | None = None,
) -> Flow[tuple[Session, JsonObject]]:
    view = native_view(request, host.state, host.context)
    token = token_for(action, cancellation)
    known = {**_layer_one(host, request.session), **owned}
    context = build_context(known if token is None else {**known, "cancellation": token}, request.extra)
    native = FrozenList(view.native.items.to_list())
    run = _execution(host, action, request.session, native, inputs, context)
    result = yield from run_action(action, run, token, cancellation)
    return _apply(request, host, view, action, result), _public(action, result, actions)


def _execution(
    host: ActionHost,
    action: Action,
    session: Session,
    native: FrozenList,
    inputs: Mapping[str, object],
    context: Context,
) -> Callable[[], JsonObject]:
    plugin = host.plugin(action)
    return partial(plugin.execute_action, action.id, session, native, freeze(inputs), context, host.state)


def _layer_one(host: ActionHost, session: Session) -> JsonObject:
    frozen, context = session.frozen_dict(), host.context
    return {
        "core": context["core"],
        "config": context["config"],
        "trigger_source": "core",
        "session": frozen,
        "request_context": context if "session" in context else build_context({"session": frozen}, context),
        "request_runtime": host.runtime(),
    }


def _apply(
    request: Request, host: ActionHost, view: NativeView, action: Action, result: Mapping[str, object]
) -> Session:
    """Return the session after an action: its native messages, its metadata, or neither, replaced."""
    session = request.session
    items = _dicts(action, result, "native_messages")
    if items is not None and items != view.native.items:
        items = _recognise(items, view.native.items)
        messages = readable_messages(
            request, items, view.session.messages, view.native.items, host.state, host.context
        )
        session = write_items(request, view.session, view.native, messages, items, report=view.report)
    patch = metadata_patch(action, result)
    return session.with_metadata(merge_metadata(session.metadata, patch)) if patch else session


def _recognise(items: FrozenList, before: Sequence[FrozenDict]) -> FrozenList:
    """Return *items* with those that stayed as the very objects that they were before.

    Messages are known by their items, and an action may hand back copies of these, deep ones or from
    another process: what is equal at the beginning and at the end of the history has stayed.
    """
    known = list(before)
    originals = {id(item) for item in known}

    def count_stayed(now: Sequence[object], was: Sequence[object]) -> int:
        pairs = zip(now, was, strict=False)
        same = (n is w or (id(n) not in originals and n == w) for n, w in pairs)
        return sum(1 for _ in takewhile(bool, same))

    first = count_stayed(items, known)
    last = count_stayed(items[first:][::-1], known[first:][::-1])
    return FrozenList([*known[:first], *items[first : len(items) - last], *known[len(known) - last :]])


def _apply_to_turn(
    session: Session,
    action: Action,
    outcome: ResponseOutcome,
    result: Mapping[str, object],
    actions: Sequence[Action],
) -> ResponseOutcome:
    finals = _messages(action, result)
    native = _dicts(action, result, "native_messages")
    known = {**session.metadata, **outcome.metadata}
    patch = merge_metadata(known, metadata_patch(action, result))
    return ResponseOutcome(
        outcome.finals if finals is None else list(finals),
        outcome.native if native is None else native,
        {**outcome.metadata, **patch},
        [*outcome.results, _record(action, _public(action, result, actions))],
        outcome.problems,
    )


def metadata_patch(action: Action, result: Mapping[str, object]) -> JsonObject:
    """Return what an action wants in the session's metadata, without the keys that are the core's."""
    patch = result.get("session_metadata")
    if patch is None:
        return {}
    if not isinstance(patch, Mapping):
        raise _bad_result(action, f"session_metadata must be a dict, not {type(patch).__name__}")
    if not isinstance(patch.get("overrides", EMPTY), Mapping):
        raise _bad_result(action, "session_metadata['overrides'] must be a dict")
    refused = OWNED_METADATA.intersection(patch)
    for key in sorted(refused):
        _log.warning("reserved_metadata_key", plugin=action.plugin, action=action.id, key=key)
    try:
        kept = {key: value for key, value in patch.items() if key not in refused}
        return dict(freeze_data(kept, "session_metadata"))
    except NotData as error:
        raise _bad_result(action, f"{error.path}: {error}") from None


def merge_metadata(metadata: Mapping[str, object], patch: Mapping[str, object]) -> JsonObject:
    """Return the patch with its `overrides` laid over those that are there; other keys replace."""
    merged = dict(patch)
    old, new = metadata.get("overrides"), patch.get("overrides")
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        merged["overrides"] = {**old, **new}
    return merged


def _messages(action: Action, result: Mapping[str, object]) -> FrozenList | None:
    finals = _dicts(action, result, "final_messages")
    for message in finals or ():
        try:
            Message.from_dict(fold_foreign_fields(message))
        except SessionFormatError as error:
            raise _bad_result(action, f"final_messages has an item that is not a message: {error}") from error
    return finals


def _dicts(action: Action, result: Mapping[str, object], key: str) -> FrozenList | None:
    if key not in result:
        return None
    value = result[key]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _bad_result(action, f"{key} must be a list of dicts")
    with _endless_is_bad(action, key):
        return FrozenList(map(freeze, value))


@contextmanager
def _endless_is_bad(action: Action, key: str) -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise _bad_result(action, f"{key!r} is nested too deeply") from None


def _public(action: Action, result: Mapping[str, object], actions: Sequence[Action]) -> JsonObject:
    """Return what the caller sees of a result; a `display` passes the validator first.

    Raises:
        PluginError: If it asks for what only application plugins may: other sessions, and front ends.
    """
    for key in _OF_APPLICATIONS:
        if key in result:
            raise _bad_result(action, f"{key} can be returned by application plugins only")
    public: JsonObject = {}
    for key in result:
        if key not in _APPLIED:
            with _endless_is_bad(action, key):
                public[key] = thaw(result[key])
    if "display" not in public:
        return public
    report = display.validate_display(public.pop("display"), runnable=partial(_is_runnable, actions))
    for warning in report.warnings:
        _log.warning("display_changed", plugin=action.plugin, action=action.id, what=warning)
    if report.display is not None:
        public["display"] = report.display
    return public


def _is_runnable(actions: Sequence[Action], plugin: str, action_id: str) -> bool:
    """Only manual actions can be offered; other layers' plugins are theirs to check."""
    known = [action for action in actions if action.plugin == plugin]
    return not known or any(action.id == action_id and action.is_manual for action in known)


def _record(action: Action, public: JsonObject) -> ActionRecord:
    return {**_about(action), "result": public}


def _about(action: Action) -> ActionRecord:
    return {"plugin": action.plugin, "action_id": action.id, "action_owner": action.owner}


def describe_error(error: AgentError) -> JsonObject:
    """Return an error as records and events have it."""
    return {"type": type(error).__name__, "message": str(error)}


def _bad_result(action: Action, problem: str) -> PluginError:
    return PluginError(action.plugin, "execute_action", f"action {action.id!r}: {problem}")
