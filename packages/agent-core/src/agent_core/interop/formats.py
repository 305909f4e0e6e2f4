"""What a format is: an id and a few functions, so that a plugin can bring one of its own.

``matches`` is offered every value that someone inspects and must answer without raising. ``inspect``
reads a value that matched. ``build`` writes what was read from any format; it raises `ToolError` for
what the format cannot express, and the registry then tries the next way. ``tidy`` receives a value
that is in this format already, and returns it ready to be sent: ``raw`` itself, unless ``matches``
accepts shapes that the receiving end would refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_core.interop.values import InspectedCall, InspectedResult, InspectedSchema, ToolInteropTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallFormat:
    """How one wire format writes a tool call; without `build` it can only be read."""

    id: str
    matches: Callable[[Any], bool]
    inspect: Callable[[Any], InspectedCall]
    build: Callable[[InspectedCall], dict[str, Any]] | None = None
    tidy: Callable[[InspectedCall], Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchemaFormat:
    """How one wire format offers a tool; without `build` it can only be read."""

    id: str
    matches: Callable[[Any], bool]
    inspect: Callable[[Any], InspectedSchema]
    build: Callable[[InspectedSchema], dict[str, Any]] | None = None
    tidy: Callable[[InspectedSchema], Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultFormat:
    """How one wire format answers a tool call; without `build` it can only be read."""

    id: str
    matches: Callable[[Any], bool]
    inspect: Callable[[Any], InspectedResult]
    build: Callable[[InspectedResult, ToolInteropTarget], dict[str, Any]] | None = None
    tidy: Callable[[InspectedResult], Mapping[str, Any]] | None = None
