"""What a server offers: its tools, as far as they can be used, its resources and its prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

from agent_core.encoding import canonical
from mcp_tools.names import wire_name
from mcp_tools.schemas import schema_problem

if TYPE_CHECKING:
    from collections.abc import Sequence


LONGEST_DESCRIPTION: Final = 16_000
LONGEST_NAME: Final = 256
Kind = Literal["resource", "prompt"]
_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "resource": frozenset({"uri", "uriTemplate"}),
    "prompt": frozenset({"name"}),
}


@dataclass(frozen=True)
class Tool:
    """A tool as a server describes it; what a person approves is all of this."""

    kind: ClassVar[str] = "tool"

    name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def label(self) -> str:
        """What it is called where a person reads it."""
        return self.name

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


@dataclass(frozen=True)
class Described:
    """A resource or a prompt as a server describes it; what a person approves is all of this.

    Attributes:
        told: What the model is told: of a resource `uri` or `uriTemplate`, of a prompt `name` and
            `arguments`, and what there is of `name` and `description`.
    """

    kind: Kind
    told: Mapping[str, Any]

    @property
    def is_template(self) -> bool:
        """Whether it stands for many resources, which the server alone knows."""
        return "uriTemplate" in self.told

    @property
    def name(self) -> str:
        """What it is asked for by."""
        return next(str(self.told[key]) for key in self.told if key in _NAMES[self.kind])

    @property
    def label(self) -> str:
        """What it is called where a person reads it, and where it is kept."""
        return f"{self.kind} {self.name}"

    @cached_property
    def digest(self) -> str:
        """A digest of everything that the model is told of it."""
        return sha256(canonical(self.to_dict())).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return it as it is pinned."""
        return {"kind": self.kind, "told": dict(self.told)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Described:
        """Return it as it was pinned; what is neither resource nor prompt raises ValueError."""
        kind, told = data.get("kind"), data.get("told")
        known = next((one for one in get_args(Kind) if one == kind), None)
        if known is None or not isinstance(told, Mapping) or not _NAMES[known] & {*told}:
            raise ValueError(f"{kind!r:.80} is neither a resource nor a prompt")
        return cls(known, told)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What a server said that it offers.

    Attributes:
        tools: The tools that can be used, in order of their names.
        others: The resources and prompts, in the server's order.
        dropped: Why more cannot be used, by name.
    """

    tools: tuple[Tool, ...] = ()
    others: tuple[Described, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        server: str,
        tools: Sequence[Tool],
        others: Sequence[Described] = (),
        dropped: Mapping[str, str] | None = None,
    ) -> Listing:
        """Return the listing of these, without those that cannot be used.

        Args:
            dropped: Why others were left out before.
        """
        problems = _problems(server, tools)
        kept = sorted((tool for tool in tools if tool.name not in problems), key=lambda tool: tool.name)
        times = Counter(one.label for one in others)
        twice = {label: f"the server lists it {count} times" for label, count in times.items() if count > 1}
        return cls(
            tools=tuple(kept),
            others=tuple(one for one in others if one.label not in twice),
            dropped={**(dropped or {}), **problems, **twice},
        )


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
