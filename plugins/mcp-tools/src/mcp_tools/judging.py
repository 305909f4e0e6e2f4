"""What of a server may be used, given what was approved. Decided from values alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from agent_core.encoding import canonical, readable

if TYPE_CHECKING:
    from mcp_tools.listing import Described, Listing, Tool
    from mcp_tools.pins import Approval
    from mcp_tools.settings import Server

Pinned = TypeVar("Pinned", "Tool", "Described")


@dataclass(frozen=True)
class Change:
    """Something of a server that is not as it was approved: new if nothing was."""

    before: Tool | Described | None
    after: Tool | Described

    def describe(self) -> str:
        """Return a unified diff of what changed."""
        old = "" if self.before is None else _written(self.before)
        return _diff(old, _written(self.after), self.after.label)


@dataclass(frozen=True)
class Judgement:
    """What may be used and what waits.

    Attributes:
        launch: Whether the server may be started, or asked.
        tools: The tools that are as they were approved.
        others: The resources and prompts that are.
        waiting: What is not.
    """

    launch: bool
    tools: tuple[Tool, ...] = ()
    others: tuple[Described, ...] = ()
    waiting: tuple[Change, ...] = ()

    def of_kind(self, kind: str) -> list[Described]:
        """Return the resources, or the prompts, that may be used."""
        return [one for one in self.others if one.kind == kind]

    def to_show(self, room: int) -> tuple[Change, ...]:
        """Return what of it a person can be shown whole, in so many bytes; the rest waits for later."""
        shown = []
        for change in self.waiting:
            size = len(change.describe().encode())
            if size <= room:
                shown.append(change)
                room -= size
        return tuple(shown)


def digest_of(changes: Sequence[Change]) -> str:
    """Return what stands for exactly these changes: an approval of it approves nothing else."""
    return sha256(canonical([change.after.digest for change in changes])).hexdigest()


def judge(server: Server, listing: Listing | None, approval: Approval | None) -> Judgement:
    """Return what may be used of a server."""
    if approval is None or canonical(approval.launch) != canonical(server.launch):
        return Judgement(launch=False)
    if listing is None:
        return Judgement(launch=True)
    tools, changed = _apart(listing.tools, approval.tools or {})
    others, more = _apart(listing.others, approval.others)
    return Judgement(launch=True, tools=tools, others=others, waiting=(*changed, *more))


def _apart(
    listed: Sequence[Pinned], pinned: Mapping[str, Pinned]
) -> tuple[tuple[Pinned, ...], tuple[Change, ...]]:
    """Return what is as it was approved, and what is not."""
    same: list[Pinned] = []
    changed: list[Change] = []
    for one in listed:
        known = pinned.get(one.label)
        if known is not None and known.digest == one.digest:
            same.append(one)
        else:
            changed.append(Change(known, one))
    return tuple(same), tuple(changed)


def describe_launch(server: Server, approval: Approval | None) -> str:
    """Return what would be started or asked: as it is, or as a diff to what was approved before."""
    now = _visible(readable(server.launch))
    return now if approval is None else _diff(_visible(readable(dict(approval.launch))), now, server.name)


def _written(one: Tool | Described) -> str:
    """Return a tool, a resource or a prompt as text in which everything can be seen."""
    if one.kind == "tool":
        told = one.to_dict()
        return _visible(f"{told['description']}\n\n{readable(_ordered(told['inputSchema']))}")
    return _visible(readable(_ordered(one.to_dict()["told"])))


def _visible(text: str) -> str:
    return "".join(one if one.isprintable() or one == "\n" else f"\\u{{{ord(one):x}}}" for one in text)


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(one) for one in value] if isinstance(value, (list, tuple)) else value


def _diff(old: str, new: str, name: str) -> str:
    approved = f"{name} (approved)" if old else "/dev/null"
    lines = unified_diff(old.splitlines(), new.splitlines(), approved, f"{name} (now)", lineterm="")
    return "\n".join(lines)
