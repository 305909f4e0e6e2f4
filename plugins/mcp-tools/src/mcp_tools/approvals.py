"""What of a server may be used, given what was approved. Decided from values alone.

What a person has approved: the file that remembers it.

For each server the file has its launch, and its tools, resources and prompts, each with a digest. A file that
cannot be read, that others may write to, or whose digests do not fit approves nothing.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_core.clean_text import reveal
from agent_core.encoding import canonical, parse, readable
from agent_plugin_kit.safe_files import make_private_folder
from mcp_tools.tool_list import Described, Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mcp_tools.settings import Server
    from mcp_tools.tool_list import Listing


Pinned = TypeVar("Pinned", Tool, Described)
_VERSION: Final = 1
_LARGEST: Final = 32 * 1024 * 1024


@dataclass(frozen=True)
class Approval:
    """What was approved of one server.

    Attributes:
        launch: The command line or the address.
        tools: Its tools by name; None if none were looked at yet.
        others: Its resources and prompts by label.
    """

    launch: Mapping[str, Any]
    tools: Mapping[str, Tool] | None = None
    others: Mapping[str, Described] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the approval as it is kept."""
        tools = None if self.tools is None else _with_digests(self.tools)
        return {"launch": dict(self.launch), "tools": tools, "others": _with_digests(self.others)}

    @classmethod
    def from_dict(cls, data: Any) -> Approval:
        """Return an approval as it was kept; one that cannot be right raises ValueError."""
        if not isinstance(data, dict) or not isinstance(data.get("launch"), dict) or "tools" not in data:
            raise ValueError("it has an entry that is not an approval")
        listed = data["tools"]
        tools = (
            None if listed is None else {one.name: one for one in (_checked(Tool, tool) for tool in listed)}
        )
        others = (_checked(Described, one) for one in data.get("others", ()))
        return cls(data["launch"], tools, {one.label: one for one in others})


@dataclass(frozen=True)
class Approvals:
    """All that was approved.

    Attributes:
        problem: Why nothing counts, if the file is damaged.
    """

    servers: Mapping[str, Approval] = field(default_factory=dict)
    problem: str = ""


class Pins:
    """The file; it is read anew when it has changed, since other processes approve and revoke as well."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[object, Approvals] | None = None

    def read(self) -> Approvals:
        """Return what was approved; nothing if the file is not as it must be."""
        signature = _signature(self.path)
        known = self._known
        if known is None or known[0] != signature:
            known = self._known = (signature, _read(self.path))
        return known[1]

    def approve(self, server: str, approval: Approval) -> None:
        """Keep an approval; a file that is damaged is put aside."""
        with self._locked() as servers:
            servers[server] = approval

    def revoke(self, server: str) -> bool:
        """Forget an approval, and say whether there was one."""
        with self._locked() as servers:
            return servers.pop(server, None) is not None

    @contextmanager
    def _locked(self) -> Iterator[dict[str, Approval]]:
        """Lend what was approved to change it, with nobody else doing the same."""
        make_private_folder(self.path.parent)
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            now = _read(self.path)
            servers = dict(now.servers)
            yield servers
            if now.problem:
                self.path.replace(f"{self.path}.damaged")
            _write(self.path, servers)
            self._known = None
        finally:
            os.close(lock)


def _signature(path: Path) -> object:
    try:
        about = path.lstat()
    except OSError as error:
        return error.errno
    return about.st_ino, about.st_mtime_ns, about.st_size, about.st_mode, about.st_uid


def _read(path: Path) -> Approvals:
    try:
        data = parse(_content(path))
        if not isinstance(data, dict) or data.get("version") != _VERSION:
            raise ValueError(f"it is not of version {_VERSION}")  # noqa: TRY301 - one way to say that it is damaged
        return Approvals({name: Approval.from_dict(one) for name, one in data["servers"].items()})
    except FileNotFoundError:
        return Approvals()
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return Approvals(problem=f"{path} approves nothing, since it cannot be trusted: {error}")


def _content(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
            raise ValueError("others may have written to it")
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"it has more than {_LARGEST} bytes")
    return data


def _with_digests(pinned: Mapping[str, Pinned]) -> list[dict[str, Any]]:
    return [{**one.to_dict(), "sha256": one.digest} for _, one in sorted(pinned.items())]


def _checked(kind: type[Pinned], data: Any) -> Pinned:
    pinned = kind.from_dict(data)
    if data.get("sha256") != pinned.digest:
        raise ValueError(f"the digest of {pinned.label!r:.80} does not fit")
    return pinned


def _write(path: Path, servers: Mapping[str, Approval]) -> None:
    data = {"version": _VERSION, "servers": {name: one.to_dict() for name, one in sorted(servers.items())}}
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(readable(data).encode())
            file.flush()
            os.fsync(fd)
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


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
    now = _reveal(readable(server.launch))
    return now if approval is None else _diff(_reveal(readable(dict(approval.launch))), now, server.name)


def _written(one: Tool | Described) -> str:
    """Return a tool, a resource or a prompt as text in which everything can be seen."""
    if one.kind == "tool":
        fields = one.to_dict()
        return _reveal(f"{fields['description']}\n\n{readable(_ordered(fields['inputSchema']))}")
    return _reveal(readable(_ordered(one.to_dict()["told"])))


def _reveal(text: str) -> str:
    return reveal(text, exact=True)


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(one) for one in value] if isinstance(value, (list, tuple)) else value


def _diff(old: str, new: str, name: str) -> str:
    approved = f"{name} (approved)" if old else "/dev/null"
    lines = unified_diff(old.splitlines(), new.splitlines(), approved, f"{name} (now)", lineterm="")
    return "\n".join(lines)
