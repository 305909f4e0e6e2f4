"""Building a runtime: everything is collected first, and everything that is wrong is reported at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_core import AgentError, lazy
from agent_core.io import run_awaitable
from agent_runtime.clock import SYSTEM_CLOCK, Clock
from agent_runtime.errors import AgentNotFound, BuildError, BuildProblem, ResolveError
from agent_runtime.fields import Text, check_text
from agent_runtime.health import HEALTH, HealthRegistry
from agent_runtime.registries import DuplicateId, PluginEntry, ProviderEntry, RegistrySet, ToolEntry
from agent_runtime.remote import discover
from agent_runtime.runtime import AgentRuntime
from agent_runtime.specs import AgentSpec, ModelSpec

if TYPE_CHECKING:
    from os import PathLike


class RemoteSource(NamedTuple):
    """A server of remote agents, to be asked for them by `build_and_discover`."""

    name: str
    url: str
    token: str | None
    allow_private: bool


class AgentRuntimeBuilder:
    """Collects agents, models, providers, plugins and tools, and builds a runtime of them.

    No `with_*` method raises: what is wrong is remembered, and `build` reports all of it in one
    `BuildError`. Each returns the builder itself, so that they can be chained.

    A builder can build several runtimes. They share nothing that changes, except for plugins that were
    registered as objects: a class is instantiated for each of them.
    """

    def __init__(self) -> None:
        self._registries = RegistrySet()
        self._problems: list[BuildProblem] = []
        self._sources: list[RemoteSource] = []
        self._clock: Clock = SYSTEM_CLOCK
        self._health: HealthRegistry = HEALTH
        self._has_built = False

    def with_agent_spec(self, spec: AgentSpec | Mapping[str, Any]) -> AgentRuntimeBuilder:
        """Declare an agent, as a spec or as the dict of one."""

        def add() -> None:
            read = spec if isinstance(spec, AgentSpec) else AgentSpec.from_dict(spec)
            self._registries.agents.add(read.id, read)

        return self._try(_id_of(spec), add)

    def with_agent_specs(self, specs: Iterable[AgentSpec | Mapping[str, Any]]) -> AgentRuntimeBuilder:
        """Declare several agents."""
        for spec in specs:
            self.with_agent_spec(spec)
        return self

    def with_model(self, model: ModelSpec | Mapping[str, Any]) -> AgentRuntimeBuilder:
        """Declare a model, as a spec or as the dict of one."""

        def add() -> None:
            read = model if isinstance(model, ModelSpec) else ModelSpec.from_dict(model)
            self._registries.models.add(read.id, read)

        return self._try(_id_of(model), add)

    def with_spec_file(self, path: str | PathLike[str]) -> AgentRuntimeBuilder:
        """Declare all agents and models of a TOML, YAML or JSON file, or of a folder of such."""
        from agent_runtime.files import load_specs

        def add() -> None:
            found = load_specs(path)
            self.with_agent_specs(found.agents)
            for model in found.models:
                self.with_model(model)

        return self._try(str(path), add)

    def with_provider(
        self,
        id: str,
        provider: object,
        *,
        config: Mapping[str, Any] | None = None,
        extensions: Sequence[object] = (),
    ) -> AgentRuntimeBuilder:
        """Register a provider under an id, a class or an object, with its settings and extensions.

        One class may be registered several times, each time with an id and settings of its own.
        """

        def add() -> None:
            self._check_free(id, "provider")
            entry = ProviderEntry.of(id, provider, config, extensions)
            self._registries.providers.add(id, entry)

        return self._try(id, add)

    def with_plugin(self, id: str, plugin: object, *, kind: str | None = None) -> AgentRuntimeBuilder:
        """Register a plugin of any kind but a provider, a class or an object; agents name it by its id.

        Args:
            kind: "feature", "extension" or "tool"; by default the plugin says it, by its attribute `kind` or
                by its hooks.
        """

        def add() -> None:
            self._check_free(id, "plugin")
            entry = PluginEntry.of(id, plugin, kind=kind)
            self._registries.plugins.add(id, entry)

        return self._try(id, add)

    def with_tool(self, id: str, tool: object) -> AgentRuntimeBuilder:
        """Offer a tool to all agents: a typed function, a tool plugin class or an object of one.

        A function is called by its id. A plugin may offer several tools, which have their own names.
        """

        def add() -> None:
            self._check_free(id, "tool")
            entry = ToolEntry.of(id, tool, f"global tool {id!r}")
            self._registries.tools.add(id, entry)

        return self._try(id, add)

    def with_remote_agents(
        self, name: str, url: str, token: str | None = None, *, allow_private: bool = False
    ) -> AgentRuntimeBuilder:
        """Name a server of remote agents; `build_and_discover` asks it which there are.

        Args:
            allow_private: Whether the server may be on this machine or in a private network.
        """

        def add() -> None:
            if any(source.name == name for source in self._sources):
                raise DuplicateId("source of remote agents", name)
            self._sources.append(RemoteSource(name, url, token, allow_private))

        return self._try(name, add)

    def with_clock(self, clock: Clock) -> AgentRuntimeBuilder:
        """Let runs wait and measure by another clock."""
        self._clock = clock
        return self

    def with_health(self, health: HealthRegistry) -> AgentRuntimeBuilder:
        """Keep the breakers of this runtime's models apart from those of the rest of the process."""
        self._health = health
        return self

    def build(self) -> AgentRuntime:
        """Return the runtime, after resolving every agent once to see that it can be.

        Raises:
            BuildError: With everything that is wrong.
        """
        return self._checked(self._runtime(self._fresh_registries()))

    def build_unchecked(self) -> AgentRuntime:
        """Return the runtime without resolving any agent, for agents that are added later.

        Raises:
            BuildError: If the builder was given two things of one id, or something it cannot use.
        """
        if self._problems:
            raise BuildError(self._problems)
        return self._runtime(self._fresh_registries())

    def build_and_discover(self) -> AgentRuntime:
        """Ask all sources for their remote agents, then do what `build` does.

        A source that cannot be reached is listed in the runtime's `problems`, as are the agents that
        delegate to it, and the rest works.
        """
        return run_awaitable(self.build_and_discover_async)

    async def build_and_discover_async(self) -> AgentRuntime:
        """Do what `build_and_discover` does, on the running event loop."""
        registries = self._fresh_registries()
        problems = await lazy.asyncio.gather(*(_discover(source, registries) for source in self._sources))
        found = tuple(problem for problem in problems if problem is not None)
        return self._checked(self._runtime(registries, found))

    def _fresh_registries(self) -> RegistrySet:
        """Return registries for a runtime of its own; the first has the plugins that were made already."""
        again, self._has_built = self._has_built, True
        return self._registries.remade() if again else self._registries.copy()

    def _runtime(self, registries: RegistrySet, found: tuple[BuildProblem, ...] = ()) -> AgentRuntime:
        return AgentRuntime(registries, clock=self._clock, health=self._health, problems=found)

    def _checked(self, runtime: AgentRuntime) -> AgentRuntime:
        problems, absent = [*self._problems], {problem.id for problem in runtime.problems}
        for problem in _dry_run(runtime):
            if isinstance(problem.error, AgentNotFound) and problem.error.missing in absent:
                runtime.problems += (problem,)
            else:
                problems.append(problem)
        if problems:
            raise BuildError([*problems, *runtime.problems])
        return runtime

    def _check_free(self, id: str, kind: str) -> None:
        """Refuse an id that a provider, plugin or tool has: explanations call all of them by it."""
        check_text(f"the id of a {kind}", id, Text())
        for registry in (self._registries.providers, self._registries.plugins, self._registries.tools):
            if id in registry:
                raise DuplicateId(kind if registry.kind == kind else f"{registry.kind} and {kind}", id)

    def _try(self, id: str, add: Callable[[], None]) -> AgentRuntimeBuilder:
        try:
            add()
        except DuplicateId as error:
            self._problems.append(BuildProblem("duplicate_id", id, error))
        except AgentError as error:
            kind = "invalid_spec" if hasattr(error, "field") else "invalid_plugin"
            self._problems.append(BuildProblem(kind, id, error))
        return self


async def _discover(source: RemoteSource, registries: RegistrySet) -> BuildProblem | None:
    """Add the remote agents of a source, or return why that cannot be."""
    try:
        found = await discover(
            source.name, source.url, token=source.token, allow_private=source.allow_private
        )
        for spec in found:
            registries.agents.add(spec.id, spec)
    except AgentError as error:
        return BuildProblem("discovery_failed", source.name, error)
    return None


def _dry_run(runtime: AgentRuntime) -> list[BuildProblem]:
    """Resolve every agent that is run here; one that is wrong does not hide the next."""
    problems = []
    for agent_id, spec in runtime.registries.agents.items():
        if spec.endpoint is not None:
            continue
        try:
            runtime.resolve(agent_id)
        except ResolveError as error:
            problems.append(BuildProblem("validation_failed", agent_id, error))
    return problems


def _id_of(spec: object) -> str:
    found = spec.get("id") if isinstance(spec, Mapping) else getattr(spec, "id", None)
    return found if isinstance(found, str) else "?"
