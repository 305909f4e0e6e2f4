"""Every exception that `agent_runtime` raises on purpose, in one tree below that of `agent_core`.

::

    agent_core.AgentError
    ├── SpecError                          a declaration cannot be used (also ValueError); `field` names it
    │   └── SpecFileError                  … and it came from a file; `path` and `line` say where
    ├── agent_core.ResolveError
    │   └── ResolveError                   an agent cannot be resolved; code, agent_id, stage, hint
    │       ├── AgentNotFound              lookup
    │       ├── RemoteAgentNotDirectlyRunnable
    │       ├── ModelNotFound
    │       ├── ProviderNotFound
    │       ├── PluginNotFound             plugins
    │       ├── InvalidPluginConfig
    │       ├── EnvBuildError
    │       ├── ToolIdConflict             tools
    │       └── DelegateCycle
    ├── BuildError                         everything that is wrong with what a builder was given
    ├── DecisionError                      a decision does not fit what a run waits for (also ValueError)
    ├── StateError                         a state key is unknown, or its value cannot be kept
    ├── PhaseLoopExceeded                  plugins kept each other busy within one phase
    ├── ModelUnavailable                   the breaker of a model is open; nothing was sent
    ├── registries.DuplicateId             an id is declared twice (also ValueError)
    └── remote.RemoteAgentError            a remote agent cannot be asked; category, url, hint
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from agent_core import AgentError, ConfigError
from agent_core.errors import ResolveError as CoreResolveError, closest, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PACKAGES: Final = {
    "anthropic": "keelwork-anthropic-provider",
    "compaction": "keelwork-compaction-feature",
    "files_tool": "keelwork-files-tool",
    "files_undo": "keelwork-files-tool",
    "gemini": "keelwork-gemini-provider",
    "hooks": "keelwork-hooks-feature",
    "local_llama": "keelwork-local-llama-provider",
    "mcp_tools": "keelwork-mcp-tools",
    "memory": "keelwork-memory-feature",
    "oauth_login": "keelwork-oauth-login",
    "openai_compatible": "keelwork-openai-compatible-provider",
    "openai_responses": "keelwork-openai-responses-provider",
    "prompt_cache": "keelwork-prompt-cache-extension",
    "search_tool": "keelwork-search-tool",
    "session_title": "keelwork-session-title-feature",
    "shell_tool": "keelwork-shell-tool",
    "skills": "keelwork-skills-feature",
    "system_message": "keelwork-system-message-feature",
    "todo_tool": "keelwork-todo-tool",
    "traces": "keelwork-traces-feature",
    "web_tool": "keelwork-web-tool",
}
"""The packages of our own plugins, for those who name one that is not installed."""


def missing_plugin_hint(name: str, known: Iterable[str]) -> str:
    """Return what to do about a plugin that is not there: install it if it is ours, or correct its name."""
    package = PACKAGES.get(name)
    if package:
        return f"install it with `pip install {package}`"
    close = closest(name, {*known, *PACKAGES})
    return f"did you mean {close!r}?" if close else nearest(name, known)


class SpecError(ConfigError):
    """A declaration cannot be used.

    Attributes:
        field: The field that is wrong, as a path (`context_policy.keep_recent`).
    """


class SpecFileError(SpecError):
    """A file of declarations cannot be used; `path` and `line` say where.

    Attributes:
        path: The file, or the directory that holds none.
        line: The line, counted from one; None if it is the file as a whole.
        problem: What is wrong, without path and line.
        field: The field that is wrong, as a path through the file (`agents.helper.max_rounds`).
    """

    def __init__(self, path: str, line: int | None, problem: str, *, field: str | None = None) -> None:
        self.path = path
        self.line = line
        self.problem = problem
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {problem}", field=field)


class ResolveError(CoreResolveError):
    """An agent cannot be resolved; nothing of it runs.

    Attributes:
        code: A stable word for programs.
        agent_id: The agent that was asked for.
        stage: Where it failed: "lookup", "plugins" or "tools".
        hint: What to do about it.
    """

    code: ClassVar[str] = "resolve_error"
    stage: str = "lookup"

    def __init__(self, agent_id: str, problem: str, *, hint: str, stage: str | None = None) -> None:
        self.agent_id = agent_id
        self.problem = problem
        self.hint = hint
        if stage is not None:
            self.stage = stage
        super().__init__(f"Agent {agent_id!r}: {problem}; {hint}")


class AgentNotFound(ResolveError):
    """No agent of that id is declared; of a delegate or a handoff, stage "tools" finds out."""

    code = "agent_not_found"

    def __init__(
        self, agent_id: str, known: Iterable[str], *, wanted_by: str | None = None, role: str = "delegate"
    ) -> None:
        missing = f"{role} {agent_id!r} is" if wanted_by is not None else "it is"
        stage = "lookup" if wanted_by is None else "tools"
        hint = nearest(agent_id, known)
        super().__init__(wanted_by or agent_id, f"{missing} not declared", hint=hint, stage=stage)
        self.missing = agent_id


class ModelNotFound(ResolveError):
    """The model, or a fallback model, that an agent names is not declared."""

    code = "model_not_found"

    def __init__(self, agent_id: str, model: str, known: Iterable[str], *, where: str = "model") -> None:
        self.model = model
        super().__init__(agent_id, f"{where} {model!r} is not declared", hint=nearest(model, known))


class ProviderNotFound(ResolveError):
    """The provider that a model names is not registered."""

    code = "provider_not_found"

    def __init__(self, agent_id: str, provider: str, model: str, known: Iterable[str]) -> None:
        self.provider = provider
        self.model = model
        super().__init__(
            agent_id,
            f"there is no provider {provider!r}, which the model {model!r} names"
            if model != provider
            else f"there is no model {model!r}",
            hint=nearest(provider, known),
        )


class PluginNotFound(ResolveError):
    """A plugin that an agent names is not registered."""

    code = "plugin_not_found"
    stage = "plugins"

    def __init__(self, agent_id: str, plugin: str, known: Iterable[str]) -> None:
        self.plugin = plugin
        hint = missing_plugin_hint(plugin, known)
        super().__init__(agent_id, f"plugin {plugin!r} is not registered", hint=hint)


class InvalidPluginConfig(ResolveError):
    """A section does not fit the schema of the plugin that claims it."""

    code = "invalid_plugin_config"
    stage = "plugins"

    def __init__(
        self,
        agent_id: str,
        plugin: str,
        section: str,
        problem: str,
        *,
        hint: str = "",
        stage: str | None = None,
    ) -> None:
        self.plugin = plugin
        self.section = section
        super().__init__(
            agent_id,
            f"section {section!r} does not fit plugin {plugin!r}: {problem}",
            hint=hint or f"correct sections[{section!r}] of the agent",
            stage=stage,
        )


class EnvBuildError(ResolveError):
    """A plugin's `register` failed, or two plugins placed the same thing."""

    code = "env_build_error"
    stage = "plugins"

    def __init__(self, agent_id: str, plugin: str, problem: str, *, hint: str = "") -> None:
        self.plugin = plugin
        super().__init__(
            agent_id,
            f"plugin {plugin!r} cannot be set up: {problem}",
            hint=hint or "correct the plugin, or leave it out of plugin_ids",
        )


class ToolIdConflict(ResolveError):
    """Two owners offer a tool of one id; `owners` names both as they are."""

    code = "tool_id_conflict"
    stage = "tools"

    def __init__(self, agent_id: str, tool: str, owners: tuple[str, str]) -> None:
        self.tool = tool
        self.owners = owners
        super().__init__(
            agent_id,
            f"tool {tool!r} is offered by {owners[0]} and by {owners[1]}",
            hint="rename one of them or leave it out",
        )


class RemoteAgentNotDirectlyRunnable(ResolveError):
    """An agent behind an endpoint was asked to run here, or an agent of ours wants to hand over to it."""

    code = "remote_agent_not_directly_runnable"

    def __init__(self, agent_id: str, url: str, *, wanted_by: str | None = None) -> None:
        self.url = url
        problem, hint = f"it lives at {url} and cannot be run here", f"list {agent_id!r} among the delegates"
        if wanted_by is not None:
            problem = f"handoff {agent_id!r} lives at {url}, and a remote agent cannot take over"
        super().__init__(
            wanted_by or agent_id,
            problem,
            hint=f"{hint} instead" if wanted_by is not None else f"{hint} of an agent of yours",
            stage="lookup" if wanted_by is None else "tools",
        )


class DelegateCycle(ResolveError):
    """Agents delegate to each other in a circle, or too deep; `path` shows the way."""

    code = "delegate_cycle"
    stage = "tools"

    def __init__(
        self, agent_id: str, path: Sequence[str], *, problem: str = "its delegates form a circle"
    ) -> None:
        self.path = tuple(path)
        way = " → ".join(self.path)
        super().__init__(agent_id, f"{problem}: {way}", hint="remove one of these delegations")


class BuildProblem(NamedTuple):
    """One thing that is wrong with what a builder was given.

    Attributes:
        kind: A stable word: duplicate_id, invalid_spec, invalid_plugin, validation_failed,
            discovery_failed.
        id: What it is about, an agent, model, provider, plugin, tool or source.
        error: The error behind it.
    """

    kind: str
    id: str
    error: Exception

    def __str__(self) -> str:
        return f"{self.kind}: {self.error}"


class BuildError(AgentError):
    """A runtime cannot be built; `errors` lists everything that is wrong."""

    def __init__(self, errors: Sequence[BuildProblem]) -> None:
        self.errors = list(errors)
        count = "1 problem" if len(self.errors) == 1 else f"{len(self.errors)} problems"
        lines = "".join(f"\n  - {problem}" for problem in self.errors)
        super().__init__(f"The runtime cannot be built, {count}:{lines}")


class DecisionError(AgentError, ValueError):
    """A decision does not fit what the run waits for; the run still waits."""


class StateError(AgentError):
    """A state key is unknown, or its value cannot be kept; `key` names it."""

    def __init__(self, key: str, problem: str) -> None:
        self.key = key
        super().__init__(f"State key {key!r}: {problem}")


class PhaseLoopExceeded(AgentError):
    """Actions scheduled each other within one phase without an end."""

    def __init__(self, phase: str, actions: Sequence[str]) -> None:
        self.phase = phase
        self.actions = tuple(actions)
        names = ", ".join(repr(name) for name in self.actions)
        super().__init__(
            f"Phase {phase!r} does not come to an end: actions {names} keep scheduling each other"
        )


class ModelUnavailable(AgentError):
    """Too many requests to a model failed in a row; it is asked again after `retry_after` seconds."""

    category = "unavailable"
    retryable = False

    def __init__(self, model: str, retry_after: float) -> None:
        self.model = model
        self.retry_after = retry_after
        super().__init__(
            f"Model {model!r} failed too often in a row and is left alone for {retry_after:.0f} seconds; "
            "wait, or declare fallback models in the agent's retry section"
        )


def describe(error: BaseException) -> dict[str, Any]:
    """Return an error as events and saved runs carry it: class, message, and the fields that help."""
    described: dict[str, Any] = {"type": type(error).__name__, "message": str(error) or type(error).__name__}
    for name in ("code", "category", "status", "retry_after", "next_step", "request_id", "plugin", "hook"):
        value = getattr(error, name, None)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            described[name] = value
    if notes := getattr(error, "__notes__", None):  # why fallbacks could not help, for example
        described["notes"] = [str(note) for note in notes]
    return described
