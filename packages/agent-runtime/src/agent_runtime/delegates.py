"""An agent as a tool: the task goes down, the answer comes up, and so do progress and usage.

A delegate runs in the same process, as a run of its own: cancellation, the time that is left and the
budgets of the run above hold for it, and what it uses is counted there. One that waits for a decision
makes the call above wait, and goes on when that call does.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agent_core import AsyncEventStream, EventStream, Session, ToolSuspended
from agent_core.functions.values import to_json
from agent_runtime.errors import DelegateCycle
from agent_runtime.policies import StopOnTool
from agent_runtime.results import AS_TEXT, GOOD_ENDS, RunResult, Usage
from agent_runtime.runs import RunRequest, RunScope
from agent_runtime.suspension import read_saved_run

if TYPE_CHECKING:
    from agent_core import Cancellation
    from agent_core.steps import Flow
    from agent_runtime.clock import Clock
    from agent_runtime.registries import RegistrySet
    from agent_runtime.specs import AgentSpec
    from agent_runtime.suspension import Decision, Suspension

MOST_DEPTH = 8
"""How many agents may stand in one line of delegation."""

ROOTS = "workspace_roots"
"""Where the metadata of a session has the folders that it works in."""

_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1000

RunChild = Callable[[RunRequest], "Flow[RunResult]"]


def tool_name(agent_id: str) -> str:
    """Return the name of the tool that stands for an agent: letters, digits, `_` and `-` only."""
    return f"delegate_{re.sub(r'[^A-Za-z0-9_-]', '_', agent_id)}"[:_LONGEST_NAME]


def schema_of(name: str, spec: AgentSpec) -> dict[str, Any]:
    """Return what the model sees of a delegate."""
    first_line = next((line.strip() for line in spec.system_prompt.splitlines() if line.strip()), "")
    about = spec.description or first_line or f"The agent {spec.id}."
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Hand a task to another agent and get its answer. {about}"[:_LONGEST_DESCRIPTION],
            "parameters": {
                "type": "object",
                "properties": {
                    "prompt": {
                        "type": "string",
                        "description": "The whole task; the agent knows nothing else of this conversation.",
                    }
                },
                "required": ["prompt"],
                "additionalProperties": False,
            },
        },
    }


def check_delegation(registries: RegistrySet, agent_id: str) -> None:
    """Follow all delegations from an agent.

    Raises:
        DelegateCycle: If one leads back to where it came from, or they go too deep.
    """
    _follow(registries, agent_id, (agent_id,), {})


def _follow(registries: RegistrySet, root: str, path: tuple[str, ...], depths: dict[str, int]) -> int:
    """Return how deep it goes below the last of *path*, itself counted; *depths* has what is known."""
    deepest = 1
    for agent_id, delegate in _delegations(registries, path[-1]):
        way = (*path, delegate)
        if delegate in path:
            raise DelegateCycle(root, way if agent_id == path[-1] else (*path, agent_id, delegate))
        if len(way) > MOST_DEPTH:
            raise DelegateCycle(root, way, problem=f"its delegates go deeper than {MOST_DEPTH}")
        # Many ways may lead to one agent: it is followed again only to show one that is too deep.
        if len(path) + depths.get(delegate, MOST_DEPTH) > MOST_DEPTH:
            depths[delegate] = _follow(registries, root, way, depths)
        deepest = max(deepest, 1 + depths[delegate])
    return deepest


def _delegations(registries: RegistrySet, agent_id: str) -> Iterator[tuple[str, str]]:
    """Yield who delegates to whom while an agent runs: the agent itself, and those that may take over."""
    seen, waiting = {agent_id}, [agent_id]
    while waiting:
        current = waiting.pop(0)
        spec = registries.agents.get(current)
        if spec is not None:
            yield from ((current, delegate) for delegate in spec.delegates)
            waiting += [one.agent for one in spec.handoffs if one.agent not in seen]
            seen.update(one.agent for one in spec.handoffs)


class DelegateTool:
    """The tool that stands for an agent of the same runtime."""

    version = "1"
    parallel = True
    stateless = True
    takes_refusals = True  # what is refused is a call of the delegate, which goes on without it
    permission_whole = True

    def __init__(self, name: str, spec: AgentSpec, run_child: RunChild, clock: Clock) -> None:
        self.name = name
        self.spec = spec
        self._run_child = run_child
        self._clock = clock
        self._schemas = [schema_of(name, spec)]

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return self._schemas

    def format_tool_call_preview(self, tool_name: str, arguments: Mapping[str, Any]) -> str:
        return f"Ask {self.spec.id}: {' '.join(str(arguments.get('prompt')).split())}"

    def format_tool_call_display(self, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"type": "text", "content": str(arguments.get("prompt"))}

    def stream_tool(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        state: Mapping[str, object] | None = None,
        *,
        cancellation: Cancellation | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Iterator[dict[str, object]]:
        """Run the agent and yield its events as parts, and last its answer."""
        call = _Call(self.spec, arguments, context or {}, cancellation, self._clock)
        with EventStream(self._run_child(call.request)) as stream:
            for event in stream:
                yield {"part": _shown(event)}
        yield call.result(stream.result)

    async def stream_tool_async(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        state: Mapping[str, object] | None = None,
        *,
        cancellation: Cancellation | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[dict[str, object]]:
        """Do what `stream_tool` does, on the running event loop."""
        call = _Call(self.spec, arguments, context or {}, cancellation, self._clock)
        async with AsyncEventStream(self._run_child(call.request)) as stream:
            async for event in stream:
                yield {"part": _shown(event)}
        yield call.result(stream.result)


class _Call:
    """One call of a delegate: the run that it asks for, and what its outcome means to the run above."""

    def __init__(
        self,
        spec: AgentSpec,
        arguments: Mapping[str, Any],
        context: Mapping[str, Any],
        token: Cancellation | None,
        clock: Clock,
    ) -> None:
        self._spec, agent_id = spec, spec.id
        self._scope: RunScope | None = context.get("run")
        self._call_id = context.get("tool_call_id")
        self._before = Usage()
        decisions, data = context.get("decisions") or {}, context.get("suspended") or {}
        request = RunRequest(
            agent_id, arguments["prompt"], _session_below(context), cancellation=token, run_id=uuid4().hex
        )
        if decisions and "session" in data:
            request = self._resumed(agent_id, decisions, data, token)
        self.request = self._within(request, clock)

    def result(self, result: RunResult | None) -> dict[str, object]:
        """Return the tool's result, after reporting to the run above what was used.

        Raises:
            ToolSuspended: If the agent waits for a decision.
        """
        if result is None:
            return {"success": False, "error": "the agent was stopped before it could answer"}
        if self._scope is not None:
            self._scope.report(result.usage - self._before)
        if result.suspended:
            raise _suspended(result)
        if result.reason.code in GOOD_ENDS:
            return {"success": True, "result": _answer(self._spec, result)}
        said = f" It had said: {result.text}" if result.text else ""
        why = result.reason.detail or result.reason.code
        return {"success": False, "error": f"the agent ended early ({result.reason.code}): {why}.{said}"}

    def _resumed(
        self,
        agent_id: str,
        decisions: Mapping[str, Decision],
        data: Mapping[str, Any],
        token: Cancellation | None,
    ) -> RunRequest:
        session = Session.from_dict(data["session"])
        saved = read_saved_run(session)
        if saved is not None:
            self._before = Usage.from_dict(saved.usage)
        decided = [replace(decision, target=question) for question, decision in decisions.items()]
        return RunRequest(agent_id, session=session, decisions=decided, cancellation=token)

    def _within(self, request: RunRequest, clock: Clock) -> RunRequest:
        """Return the request within the limits of the run above."""
        scope = self._scope
        if scope is None:
            return request
        return replace(
            request,
            parents=scope.parents,
            stream=scope.stream,
            cancellation=request.cancellation or scope.cancellation,
            timeout=None if scope.deadline is None else max(0.001, scope.deadline - clock.now()),
            token_budget=scope.tokens_left,
            cost_budget=scope.cost_left,
            granted=scope.granted,
            limits=None if scope.limits is None else scope.limits.left(scope.usage),
            deps=scope.deps,
            context=scope.context,
            trace=scope.trace_of(self._call_id),
        )


def _session_below(context: Mapping[str, Any]) -> Session | None:
    """Return the conversation of a delegate: a new one, in the folders of the session above and with its id.

    So the delegate sees the files that the agent above sees, what was granted for the session holds for it,
    and what it leaves behind (changes to undo, commands in the background, large results) belongs to the
    session that people see.
    """
    session_id, above = context.get("session_id"), context.get("session_metadata") or {}
    if not session_id:
        return None
    return Session(session_id, metadata={ROOTS: above[ROOTS]} if above.get(ROOTS) else {})


def _answer(spec: AgentSpec, result: RunResult) -> object:
    """Return what the model above reads: output as JSON, the result of the tool that ended it, or words."""
    if result.produced is not AS_TEXT and result.has_output:
        return to_json(result.output)
    ends = [one for one in spec.stop_conditions if isinstance(one, StopOnTool)]
    for message in reversed(result.added) if result.reason.code == StopOnTool.type else ():
        about, content = message.metadata, message.content
        is_result = message.role == "tool" and "error" not in about and isinstance(content, str)
        if is_result and any(end.names(str(about.get("tool_name"))) for end in ends):
            return content
    return result.text


def _suspended(result: RunResult) -> ToolSuspended:
    """Return what makes the call above wait: for all that the agent waits for, under the same ids."""
    first, *others = result.suspended
    kept = {"session": result.session.to_dict()}
    return _question(result, first, data=kept, more=[_question(result, other) for other in others])


def _question(result: RunResult, waiting: Suspension, **options: Any) -> ToolSuspended:
    return ToolSuspended(
        waiting.message,
        action=waiting.action,
        parameters={**waiting.parameters, "agent_run": result.run_id},
        response_schema=None if waiting.response_schema is None else dict(waiting.response_schema),
        mode="pass_decision",
        id=waiting.id,
        **options,
    )


def _shown(event: Mapping[str, object]) -> dict[str, object]:
    """Return an event of a delegate for watchers of the run above: without whole sessions in it."""
    return {key: value for key, value in event.items() if key not in ("session", "messages")}
