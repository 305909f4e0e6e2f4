"""What of a server may be used, given what was approved. Decided from values alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from agent_core.encoding import canonical, readable

if TYPE_CHECKING:
    from mcp_tools.listing import Listing, Tool
    from mcp_tools.pins import Approval
    from mcp_tools.settings import Server


@dataclass(frozen=True)
class Change:
    """A tool that is not as it was approved: new if nothing was."""

    before: Tool | None
    after: Tool

    def describe(self) -> str:
        """Return a unified diff of what changed."""
        old = "" if self.before is None else _written(self.before)
        return _diff(old, _written(self.after), self.after.name)


@dataclass(frozen=True)
class Judgement:
    """What may be used and what waits.

    Attributes:
        launch: Whether the server may be started, or asked.
        tools: The tools that are as they were approved.
        waiting: Those that are not.
    """

    launch: bool
    tools: tuple[Tool, ...] = ()
    waiting: tuple[Change, ...] = ()

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
    pinned = approval.tools or {}
    tools, waiting = [], []
    for tool in listing.tools if listing is not None else ():
        known = pinned.get(tool.name)
        if known is not None and known.digest == tool.digest:
            tools.append(tool)
        else:
            waiting.append(Change(known, tool))
    return Judgement(launch=True, tools=tuple(tools), waiting=tuple(waiting))


def describe_launch(server: Server, approval: Approval | None) -> str:
    """Return what would be started or asked: as it is, or as a diff to what was approved before."""
    now = readable(server.launch)
    return now if approval is None else _diff(readable(dict(approval.launch)), now, server.name)


def _written(tool: Tool) -> str:
    """Return a tool as text in which everything can be seen."""
    text = f"{tool.description}\n\n{readable(_ordered(tool.schema))}"
    return "".join(one if one.isprintable() or one == "\n" else f"\\u{{{ord(one):x}}}" for one in text)


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(one) for one in value] if isinstance(value, (list, tuple)) else value


def _diff(old: str, new: str, name: str) -> str:
    approved = f"{name} (approved)" if old else "/dev/null"
    lines = unified_diff(old.splitlines(), new.splitlines(), approved, f"{name} (now)", lineterm="")
    return "\n".join(lines)
