"""What a server offers: its tools, as far as they can be used, its resources and its prompts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from agent_core.encoding import canonical
from mcp_tools.names import wire_name
from mcp_tools.schemas import schema_problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


LONGEST_DESCRIPTION: Final = 16_000
LONGEST_NAME: Final = 256


@dataclass(frozen=True)
class Tool:
    """A tool as a server describes it; what a person approves is all of this."""

    name: str
    description: str
    schema: Mapping[str, Any]

    @cached_property
    def digest(self) -> str:
        """A digest of everything that the model is told of the tool."""
        return sha256(canonical(self.to_dict())).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the tool as it is pinned."""
        return {"name": self.name, "description": self.description, "inputSchema": dict(self.schema)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tool:
        """Return a tool as it was pinned; what is no tool raises ValueError."""
        name, description, schema = (data.get(key) for key in ("name", "description", "inputSchema"))
        if not (isinstance(name, str) and isinstance(description, str) and isinstance(schema, dict)):
            raise ValueError(f"{name!r:.80} is no tool")  # noqa: TRY004 - all that cannot be read is one error
        return cls(name, description, schema)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What a server said that it offers.

    Attributes:
        tools: The tools that can be used, in order of their names.
        dropped: Why others cannot, by name.
        resources: Dicts with `uri`, or `uriTemplate`, and what there is of `name` and `description`.
        prompts: Dicts with `name` and what there is of `description` and `arguments`.
    """

    tools: tuple[Tool, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    resources: tuple[Mapping[str, Any], ...] = ()
    prompts: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, server: str, tools: Sequence[Tool], **others: Any) -> Listing:
        """Return the listing of these tools, without those that cannot be used."""
        problems = _problems(server, tools)
        kept = sorted((tool for tool in tools if tool.name not in problems), key=lambda tool: tool.name)
        return cls(tools=tuple(kept), dropped=problems, **others)


def _problems(server: str, tools: Sequence[Tool]) -> dict[str, str]:
    names = Counter(tool.name for tool in tools)
    wire = Counter(wire_name(server, name) for name in names)
    problems: dict[str, str] = {}
    for tool in tools:
        problem = _problem(tool, names[tool.name], wire[wire_name(server, tool.name)])
        if problem is not None:
            problems[tool.name] = problem
    return problems


def _problem(tool: Tool, same_name: int, same_alias: int) -> str | None:
    if not tool.name or len(tool.name) > LONGEST_NAME:
        return "its name is empty" if not tool.name else f"its name has {len(tool.name)} characters"
    if same_name > 1:
        return f"the server lists it {same_name} times"
    if same_alias > 1:
        return "another tool of the server would be called by the same name"
    if len(tool.description) > LONGEST_DESCRIPTION:
        return f"its description has {len(tool.description)} characters, more than {LONGEST_DESCRIPTION}"
    return schema_problem(tool.schema)
