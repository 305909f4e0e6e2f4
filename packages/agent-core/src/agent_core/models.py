"""Values that describe models and tools to plugins and front ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agent_core.frozen import EMPTY, FrozenList


@dataclass(frozen=True, slots=True)
class ModelSnapshot:
    """The models that a provider offered when it was last asked, as plugins changed them.

    A snapshot is compared by identity: a new one means that everything depending on models is
    decided again. `key` is the one under which the cache knows it.
    """

    models: FrozenList = field(default_factory=FrozenList)
    key: object = None

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def ids(self) -> list[str]:
        """Return the models' ids."""
        return [str(model.get("id", model.get("name"))) for model in self.models]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescriptor:
    """A tool that a model may be offered.

    Attributes:
        name: What the model calls it.
        schema: Its schema, in any format that the tool interop registry knows.
        plugin: The name of the tool plugin that runs it.
        description: What the model is told it does.
        metadata: Free for features, which pass it on to each other.
        prepared: What a feature left for the tool; the tool gets it as `prepared` when it runs.
    """

    name: str
    schema: dict[str, Any]
    plugin: str
    description: str = ""
    metadata: dict[str, Any] = field(default_factory=lambda: EMPTY)
    prepared: dict[str, Any] = field(default_factory=lambda: EMPTY)
