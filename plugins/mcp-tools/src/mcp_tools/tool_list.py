"""What a server offers: its tools, as far as they can be used, its resources and its prompts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

from agent_core import json_schema
from agent_core.encoding import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST: Final = 64
_BETWEEN: Final = "__"
_VALID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_MARK: Final = 8


def wire_name(server: str, tool: str) -> str:
    """Return the name by which the model calls a server's tool."""
    plain = f"{server}{_BETWEEN}{tool}"
    return plain if tool and _VALID.fullmatch(plain) else _alias(plain)


def _alias(plain: str) -> str:
    mark = sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    return f"{_OTHER.sub('_', plain)[: LONGEST - _MARK - 1]}_{mark}"


# Whether the schema of a tool may be shown to a model.
#
# It comes from a stranger and goes to a provider, and arguments are checked against it. So it must be small,
# flat enough, complete in itself, and valid.


LARGEST: Final = 64_000
DEEPEST: Final = 32
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Return why a tool with this schema is not offered, or None if it can be."""
    deepest, remote = _survey(schema)
    if deepest > DEEPEST:
        return f"its schema is nested more than {DEEPEST} levels deep"
    size = len(canonical(schema))
    if size > LARGEST:
        return f"its schema has {size} bytes, more than {LARGEST}"
    if remote is not None:
        return f"its schema refers to {remote!r:.100}, and nothing elsewhere is fetched"
    if schema.get("type") != "object":
        return "its schema does not describe an object"
    return _invalid(schema)


def _survey(schema: Any) -> tuple[int, str | None]:
    """Return how deep a schema is, and a reference to elsewhere; not recursive, since strangers write it."""
    deepest, remote = 0, None
    for depth, node in _nodes(schema):
        deepest = max(deepest, depth)
        if deepest > DEEPEST:
            break
        if isinstance(node, Mapping):
            remote = remote or next(filter(None, (_elsewhere(node, key) for key in _REFERENCES)), None)
    return deepest, remote


def _nodes(schema: Any) -> Iterator[tuple[int, Any]]:
    waiting = [(1, schema)]
    while waiting:
        depth, node = waiting.pop()
        yield depth, node
        inner = (
            node.values() if isinstance(node, Mapping) else node if isinstance(node, (list, tuple)) else ()
        )
        waiting += [(depth + 1, one) for one in inner]


def _elsewhere(node: Mapping[str, Any], key: str) -> str | None:
    target = node.get(key)
    return target if isinstance(target, str) and not target.startswith("#") else None


def _invalid(schema: Mapping[str, Any]) -> str | None:
    try:
        json_schema.compile_schema(dict(schema))
    except (ValueError, RecursionError) as error:  # its ValidationError is a ValueError, too
        return f"its schema is not valid: {json_schema.schema_problem(error):.200}"
    return None


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
        """A digest of everything that the model reads about the tool."""
        return sha256(canonical(self.to_dict())).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the tool as it is pinned."""
        return {"name": self.name, "description": self.description, "inputSchema": dict(self.schema)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tool:
        """Return a tool as it was pinned; what is not a tool raises ValueError."""
        name, description, schema = (data.get(key) for key in ("name", "description", "inputSchema"))
        if not (isinstance(name, str) and isinstance(description, str) and isinstance(schema, dict)):
            raise ValueError(f"{name!r:.80} is not a tool")  # noqa: TRY004 - all that cannot be read is one error
        return cls(name, description, schema)


@dataclass(frozen=True)
class Described:
    """A resource or a prompt as a server describes it; what a person approves is all of this.

    Attributes:
        fields: What the model reads: of a resource `uri` or `uriTemplate`, of a prompt `name` and
            `arguments`, and what there is of `name` and `description`.
    """

    kind: Kind
    fields: Mapping[str, Any]

    @property
    def is_template(self) -> bool:
        """Whether it stands for many resources, which the server alone knows."""
        return "uriTemplate" in self.fields

    @property
    def name(self) -> str:
        """What it is asked for by."""
        return next(str(self.fields[key]) for key in self.fields if key in _NAMES[self.kind])

    @property
    def label(self) -> str:
        """What it is called where a person reads it, and where it is kept."""
        return f"{self.kind} {self.name}"

    @cached_property
    def digest(self) -> str:
        """A digest of everything that the model reads about it."""
        return sha256(canonical(self.to_dict())).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return it as it is pinned."""
        return {"kind": self.kind, "told": dict(self.fields)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Described:
        """Return it as it was pinned; what is neither resource nor prompt raises ValueError."""
        kind, fields = data.get("kind"), data.get("told")
        known = next((one for one in get_args(Kind) if one == kind), None)
        if known is None or not isinstance(fields, Mapping) or not _NAMES[known] & {*fields}:
            raise ValueError(f"{kind!r:.80} is neither a resource nor a prompt")
        return cls(known, fields)


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
