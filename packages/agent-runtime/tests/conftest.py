"""What several test files share: runtimes around a script, plugins of a few functions, four drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from agent_core import Session
from agent_core.testing import ScriptedProvider
from agent_runtime import (
    AgentRuntime,
    AgentRuntimeBuilder,
    AgentSpec,
    HealthRegistry,
    ModelSpec,
    Phase,
    PluginRegistrar,
    RunRequest,
    RunResult,
)

Events = list[dict[str, Any]]
Drive = Callable[[AgentRuntime, RunRequest], tuple[Events, RunResult]]
MakeRuntime = Callable[..., AgentRuntime]
OpenCalls = Callable[[Session], list[str]]


class Placing:
    """A plugin that places what it was given: hooks by the names of their phases, gates, state keys."""

    version = "1"

    def __init__(
        self,
        *,
        gate: Callable[..., Any] | None = None,
        keys: Any = (),
        tools: Any = None,
        transform: Callable[..., Any] | None = None,
        on_activate: Callable[..., Any] | None = None,
        on_deactivate: Callable[..., Any] | None = None,
        **hooks: Callable[..., Any],
    ) -> None:
        self.name = "placing"
        self._gate, self._keys, self._tools, self._transform = gate, keys, tools or {}, transform
        self._hooks = hooks
        if on_activate is not None:
            self.on_activate = on_activate
        if on_deactivate is not None:
            self.on_deactivate = on_deactivate

    def register(self, registrar: PluginRegistrar) -> None:
        for key in self._keys:
            registrar.state_key(key)
        for phase, hook in self._hooks.items():
            registrar.phase_hook(Phase(phase), hook)
        if self._gate is not None:
            registrar.tool_gate(self._gate)
        if self._transform is not None:
            registrar.request_transform(self._transform)
        for name, tool in self._tools.items():
            registrar.tool(name, tool)


def _make_runtime(
    script: Iterable[Any] | Any,
    *,
    tools: Sequence[Any] = (),
    plugins: Mapping[str, Any] | None = None,
    clock: Any = None,
    model: Mapping[str, Any] | None = None,
    **spec: Any,
) -> AgentRuntime:
    provider = script if hasattr(script, "process_chunk") else ScriptedProvider(script)
    builder = AgentRuntimeBuilder().with_health(HealthRegistry()).with_provider("scripted", provider)
    builder.with_agent_spec(AgentSpec("a", "m", plugin_ids=tuple(plugins or {}), **spec))
    builder.with_model(ModelSpec("m", "scripted", **(model or {})))
    for name, plugin in (plugins or {}).items():
        builder.with_plugin(name, plugin)
    for tool in tools:
        builder.with_tool(getattr(tool, "name", None) or tool.__name__, tool)
    return (builder if clock is None else builder.with_clock(clock)).build()


@pytest.fixture
def make_runtime() -> MakeRuntime:
    """Build a runtime whose agent "a" speaks by a script.

    ``make_runtime(script, tools=[...], plugins={id: plugin}, clock=None, model={...}, **spec fields)``;
    the script may also be a provider, to look at what it was asked.
    """
    return _make_runtime


@pytest.fixture
def placing() -> type[Placing]:
    """Give the plugin class for hooks, gates and state keys of a test."""
    return Placing


def _run(runtime: AgentRuntime, request: RunRequest) -> tuple[Events, RunResult]:
    stream = runtime.run(request)
    events = list(stream)
    assert stream.result is not None
    return events, stream.result


def _run_async(runtime: AgentRuntime, request: RunRequest) -> tuple[Events, RunResult]:
    async def collect() -> tuple[Events, RunResult]:
        stream = runtime.run_async(request)
        events = [event async for event in stream]
        assert stream.result is not None
        return events, stream.result

    return asyncio.run(collect())


def _run_to_completion(runtime: AgentRuntime, request: RunRequest) -> tuple[Events, RunResult]:
    return [], runtime.run_to_completion(request)


def _run_to_completion_async(runtime: AgentRuntime, request: RunRequest) -> tuple[Events, RunResult]:
    return [], asyncio.run(runtime.run_to_completion_async(request))


@pytest.fixture(
    params=[_run, _run_async, _run_to_completion, _run_to_completion_async],
    ids=lambda driver: driver.__name__[1:],
)
def drive(request: pytest.FixtureRequest) -> Drive:
    """Run a request by each of the four drivers in turn.

    ``drive(runtime, request)`` returns the events (none from the two drivers that do not watch) and
    the result.
    """
    driver: Drive = request.param
    return driver


@pytest.fixture(params=[_run, _run_async], ids=lambda driver: driver.__name__[1:])
def watch(request: pytest.FixtureRequest) -> Drive:
    """Run a request by each of the two drivers that watch; returns all events and the result."""
    driver: Drive = request.param
    return driver


def _open_calls(session: Session) -> list[str]:
    waiting: list[str] = []
    for message in session.messages:
        if message.role == "tool":
            assert message.metadata["tool_call_id"] in waiting, "an answer without a call"
            waiting.remove(message.metadata["tool_call_id"])
        else:
            assert not waiting, "the conversation goes on over an open call"
            waiting += [call["id"] for call in message.metadata.get("tool_calls") or ()]
    return waiting


@pytest.fixture
def open_calls() -> OpenCalls:
    """Name the calls of a session that have no answer; one that can be sent has none."""
    return _open_calls
