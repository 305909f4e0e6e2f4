"""What was declared and registered: five small registries of one kind, and what stands in them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from agent_core import AgentError, ConfigError, FunctionTool, RegistrationError, tool
from agent_core.frozen import EMPTY, FrozenDict, freeze
from agent_core.plugin.discovery import kind_of
from agent_core.plugin.feature import ExtensionWrapper, FeatureWrapper
from agent_core.plugin.provider import ProviderWrapper
from agent_core.plugin.tool import ToolWrapper

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_core.plugin.base import PluginWrapper
    from agent_runtime.specs import AgentSpec, ModelSpec

T = TypeVar("T")
PluginKind = Literal["feature", "tool", "extension"]


class DuplicateId(AgentError, ValueError):
    """Something of that id is there already; `kind` and `id` say what."""

    def __init__(self, kind: str, id: str) -> None:
        self.kind = kind
        self.id = id
        super().__init__(f"{kind} {id!r} is declared twice: give one of the two another id")


class Registry(Generic[T]):
    """Things by id, in the order in which they came. It may grow and change while runs go on."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.version = 0
        self._items: Mapping[str, T] = {}
        self._lock = threading.Lock()

    def add(self, id: str, item: T) -> None:
        """Add something.

        Raises:
            DuplicateId: If the id is taken.
        """
        with self._lock:
            if id in self._items:
                raise DuplicateId(self.kind, id)
            self._items = {**self._items, id: item}
            self.version += 1

    def replace(self, id: str, item: T) -> None:
        """Add something, in the place of what has that id if anything does; runs under way keep theirs."""
        with self._lock:
            self._items = {**self._items, id: item}
            self.version += 1

    def copy(self, change: Callable[[T], T] = lambda item: item) -> Registry[T]:
        """Return another registry with the same things, or with what *change* makes of them."""
        copied: Registry[T] = Registry(self.kind)
        with self._lock:
            copied._items = {id: change(item) for id, item in self._items.items()}
            copied.version = self.version
        return copied

    def remove(self, id: str) -> None:
        """Remove something; an id that nothing has is ignored."""
        with self._lock:
            self._items = {key: item for key, item in self._items.items() if key != id}
            self.version += 1

    def get(self, id: str) -> T | None:
        return self._items.get(id)

    def ids(self) -> list[str]:
        return list(self._items)

    def items(self) -> list[tuple[str, T]]:
        """Return everything with its id, in order."""
        return list(self._items.items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, id: object) -> bool:
        return id in self._items


@dataclass(frozen=True, slots=True, eq=False)
class ProviderEntry:
    """A registered provider: its plugin with extensions, under an id, with its settings."""

    id: str
    wrapper: ProviderWrapper
    config: FrozenDict = field(repr=False)  # may have a key in it

    @classmethod
    def of(
        cls, id: str, plugin: object, config: Mapping[str, Any] | None, extensions: Sequence[object]
    ) -> ProviderEntry:
        """Wrap a provider class or object.

        Raises:
            RegistrationError: If it is not a provider, or an extension is none.
            PluginError: If a class cannot be instantiated.
        """
        if config is not None and not isinstance(config, Mapping):
            raise ConfigError(f"the config of provider {id!r} must be a mapping, not {type(config).__name__}")
        if isinstance(extensions, str) or not isinstance(extensions, Sequence):
            raise RegistrationError(id, f"extensions must be a list, not {type(extensions).__name__}")
        wrapper = ProviderWrapper(plugin, tuple(extensions))
        wrapper.name = id
        return cls(id, wrapper, freeze(dict(config or EMPTY)))

    def remade(self) -> ProviderEntry:
        """Return the same provider as an object of its own, where a class was registered."""
        extensions = [extension.registered for extension in self.wrapper.extensions]
        return ProviderEntry.of(self.id, self.wrapper.registered, self.config, extensions)


_WRAPPERS: dict[str, type[PluginWrapper]] = {
    "extension": ExtensionWrapper,
    "feature": FeatureWrapper,
    "tool": ToolWrapper,
}


@dataclass(frozen=True, slots=True, eq=False)
class PluginEntry:
    """A registered plugin of any kind: as the core sees it, under an id."""

    id: str
    wrapper: PluginWrapper
    required: bool = False

    @property
    def plugin(self) -> object:
        return self.wrapper.plugin

    @classmethod
    def of(cls, id: str, plugin: object, *, kind: str | None = None, required: bool = False) -> PluginEntry:
        """Wrap a plugin class or object.

        One with nothing but `register` is a feature without hooks to the core.

        Args:
            kind: What it is; by default it says so itself, by an attribute or by its hooks.

        Raises:
            RegistrationError: If it is a provider, or no plugin at all.
        """
        kind = kind or kind_of(plugin)
        if kind not in _WRAPPERS:
            hint = "with_provider()" if kind == "provider" else "an application, which runs it"
            raise RegistrationError(id, f"it is a plugin of kind {kind!r}: register it with {hint}")
        wrapper = _WRAPPERS[kind](plugin)
        wrapper.name = id
        return cls(id, wrapper, required)

    def remade(self) -> PluginEntry:
        """Return the same plugin as an object of its own, where a class was registered."""
        registered, kind = self.wrapper.registered, self.wrapper.kind
        return PluginEntry.of(self.id, registered, kind=kind, required=self.required)


@dataclass(frozen=True, slots=True, eq=False)
class ToolEntry:
    """A registered tool, or a plugin with several, under an id.

    Attributes:
        owner: Who offers it, in words.
    """

    id: str
    wrapper: ToolWrapper
    owner: str

    @classmethod
    def of(cls, id: str, given: object, owner: str, *, name: str | None = None) -> ToolEntry:
        """Wrap a typed function, which is then called *id*, or a tool plugin class or object.

        Raises:
            RegistrationError: If it is none of these, or the id is not a name for a tool.
            PluginError: If a class cannot be instantiated.
        """
        wrapper = ToolWrapper(_as_tool(id, given))
        wrapper.name = name or id
        return cls(id, wrapper, owner)

    def remade(self) -> ToolEntry:
        """Return the same tool as an object of its own, where a class was registered."""
        return ToolEntry.of(self.id, self.wrapper.registered, self.owner, name=self.wrapper.name)


def _as_tool(id: str, given: object) -> object:
    if isinstance(given, FunctionTool):
        return given if given.name == id else given.renamed(id)
    if isinstance(given, type) or hasattr(given, "get_tool_schemas"):
        return given
    return tool(cast("Callable[..., object]", given), name=id)


@dataclass(frozen=True, slots=True)
class RegistrySet:
    """Everything that agents can be resolved from."""

    agents: Registry[AgentSpec] = field(default_factory=lambda: Registry("agent"))
    tools: Registry[ToolEntry] = field(default_factory=lambda: Registry("tool"))
    models: Registry[ModelSpec] = field(default_factory=lambda: Registry("model"))
    providers: Registry[ProviderEntry] = field(default_factory=lambda: Registry("provider"))
    plugins: Registry[PluginEntry] = field(default_factory=lambda: Registry("plugin"))

    @property
    def version(self) -> tuple[int, ...]:
        """Changes whenever anything in any registry does."""
        return (
            self.agents.version,
            self.tools.version,
            self.models.version,
            self.providers.version,
            self.plugins.version,
        )

    def copy(self) -> RegistrySet:
        """Return a set that can be changed without this one; what is registered is the same."""
        return RegistrySet(
            self.agents.copy(),
            self.tools.copy(),
            self.models.copy(),
            self.providers.copy(),
            self.plugins.copy(),
        )

    def remade(self) -> RegistrySet:
        """Return a set that shares nothing with this one but objects that were registered as such."""
        return RegistrySet(
            self.agents.copy(),
            self.tools.copy(ToolEntry.remade),
            self.models.copy(),
            self.providers.copy(ProviderEntry.remade),
            self.plugins.copy(PluginEntry.remade),
        )
