"""The format of a session file, and how JSON from strangers is read.

It is a zip file with these members and no others::

    session.json     the session as `Session.to_dict` returns it, keys in order
    events.jsonl     the event log, one event a line; only on request
    assets/1 …       the content of its assets
    manifest.json    format and version, title, names of the assets, and a hash of every other member

No name in it ever becomes a path: members are known by the names above, and everything else by the manifest.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agent_app.store.base import SessionInfo
from agent_core import AgentError
from agent_core.clean_text import reveal
from agent_core.frozen import EMPTY

FORMAT = "agent-session"
VERSION = 1
MANIFEST = "manifest.json"
SESSION = "session.json"
EVENTS = "events.jsonl"
ASSET_MEMBER = re.compile(r"assets/[1-9][0-9]{0,5}", re.ASCII)
ASSET_ID = re.compile(r"asset_[0-9a-f]{32}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MEGABYTE = 1_000_000
_LONGEST_BEGINNING = 200


class ImportRefused(AgentError, ValueError):
    """A file is not a session, or is dangerous; nothing of it was kept."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"The file cannot be imported: {problem}")


class SystemMessagesRefused(ImportRefused):
    """A file has system messages that no one has agreed to; nothing of it was kept.

    Attributes:
        messages: The position of each, counted from 1, and its whole text.
        texts: The texts alone, to pass to `import_session` once a person has read them.
        summary: The position of the first one, and how it begins.
    """

    def __init__(self, messages: Sequence[tuple[int, str]]) -> None:
        self.messages = tuple(messages)
        self.texts = tuple(text for _, text in messages)
        place, text = self.messages[0]
        more = f", and {len(self.messages) - 1} more" if len(self.messages) > 1 else ""
        beginning = " ".join(reveal(text).split())
        shown = beginning if len(beginning) <= _LONGEST_BEGINNING else f"{beginning[:_LONGEST_BEGINNING]}…"
        self.summary = (
            f"message {place} is a system message{more}, which the model would take for your instructions "
            f"({shown!r})"
        )
        super().__init__(f"{self.summary}: read it, then import the file with allow_system=True")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSession(SessionInfo):
    """The session that a file became.

    Attributes:
        left_out: The parts of the file that were not imported: metadata by key, the event log, parts of
            messages.
    """

    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLimits:
    """How large a file may be.

    Attributes:
        packed: Bytes of the file itself.
        unpacked: Bytes of its whole content.
        document: Bytes of one JSON document in it.
        ratio: How many times larger a member may become when unpacked, beyond the first 20 MB.
        members: How many members it may have.
        depth: How deep JSON may be nested.
        values: How many values a JSON document may have, counted generously.
    """

    packed: int = 500 * _MEGABYTE
    unpacked: int = 1_000 * _MEGABYTE
    document: int = 200 * _MEGABYTE
    ratio: int = 250
    members: int = 10_000
    depth: int = 200
    values: int = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedAsset:
    """An asset in a file: the member with its content, its former id, and its name."""

    member: str
    id: str
    name: str
    media_type: str

    @classmethod
    def from_dict(cls, data: Any) -> PackedAsset:
        """Read an entry of a manifest."""
        if not isinstance(data, Mapping) or set(data) != set(cls.__slots__):
            raise ImportRefused(f"an asset in {MANIFEST} has other fields than {', '.join(cls.__slots__)}")
        if not all(isinstance(value, str) for value in data.values()):
            raise ImportRefused(f"an asset in {MANIFEST} has a field that is not text")
        if not ASSET_ID.fullmatch(data["id"]) or not ASSET_MEMBER.fullmatch(data["member"]):
            raise ImportRefused(f"an asset in {MANIFEST} has an id or a member name that no export writes")
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Checksum:
    """The hash and size that a member must have."""

    sha256: str
    size: int

    @classmethod
    def from_dict(cls, data: Any) -> Checksum:
        """Read an entry of a manifest."""
        found = dict(data) if isinstance(data, Mapping) else {}
        digest, size = found.pop("sha256", None), found.pop("size", None)
        if found or not isinstance(digest, str) or not _SHA256.fullmatch(digest) or type(size) is not int:
            raise ImportRefused(f"{MANIFEST} has no hash and size for each member")
        return cls(digest, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The description of a file.

    Attributes:
        title: The title of the session.
        agent_id: The agent that it belonged to.
        redacted: Whether secrets were removed.
        members: The other members.
        assets: The assets of the session.
    """

    title: str = ""
    agent_id: str | None = None
    redacted: bool = False
    members: Mapping[str, Checksum] = field(default_factory=lambda: EMPTY)
    assets: Sequence[PackedAsset] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "title": self.title,
            "agent_id": self.agent_id,
            "redacted": self.redacted,
            "members": {name: asdict(checksum) for name, checksum in self.members.items()},
            "assets": [asdict(asset) for asset in self.assets],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Manifest:
        """Read a manifest, which may come from anyone.

        Raises:
            ImportRefused: If it is not what `to_dict` returns.
        """
        _check_format(data)
        kinds = {
            "title": str,
            "agent_id": (str, type(None)),
            "redacted": bool,
            "members": dict,
            "assets": list,
        }
        for name, kind in kinds.items():
            if name not in data or not isinstance(data[name], kind):  # type: ignore[arg-type]
                raise ImportRefused(f"{MANIFEST} has no {name!r}, or one of the wrong type")
        return cls(
            title=data["title"],
            agent_id=data["agent_id"],
            redacted=data["redacted"],
            members={name: Checksum.from_dict(item) for name, item in data["members"].items()},
            assets=_read_assets(data["assets"]),
        )


def _check_format(data: Any) -> None:
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ImportRefused(f"{MANIFEST} does not say that this is a session")
    version = data.get("version")
    if type(version) is int and version > VERSION:
        raise ImportRefused(
            f"it has version {version}, and this program knows versions up to {VERSION}: update the platform"
        )
    if type(version) is not int or version != VERSION:
        raise ImportRefused(f"{MANIFEST} has no valid version")


def _read_assets(data: list[Any]) -> tuple[PackedAsset, ...]:
    assets = tuple(map(PackedAsset.from_dict, data))
    if len({asset.id for asset in assets}) < len(assets) or len({a.member for a in assets}) < len(assets):
        raise ImportRefused(f"{MANIFEST} names an asset twice")
    return assets


_OPENINGS = (b",", b"[", b"{", b":")


def read_json(data: bytes, name: str, limits: ImportLimits) -> Any:
    """Read a JSON document strictly: what other readers might read differently is refused.

    Raises:
        ImportRefused: If it is not JSON, has a name twice in one object or an infinite number, or has too
            many values or levels.
    """
    if not data.strip():
        raise ImportRefused(f"{name} is empty")
    if sum(map(data.count, _OPENINGS)) > limits.values:
        raise ImportRefused(f"{name} has more values than the {limits.values} that are allowed")
    try:
        value = json.loads(data.decode(), parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError as error:
        raise ImportRefused(f"{name} is nested more than {limits.depth} levels deep") from error
    except ValueError as error:
        raise ImportRefused(f"{name} is not JSON: {error}") from error
    _check(value, name, limits.depth)
    return value


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"it has the number {constant}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("it has an object with one name twice")
    return made


def _check(value: Any, name: str, depth: int) -> None:
    """Refuse what is too deep or too large, without recursion, which a deep document could exhaust."""
    level: list[Any] = [value]
    while level:
        if depth < 0:
            raise ImportRefused(f"{name} is nested too deeply")
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
            elif isinstance(item, float) and not math.isfinite(item):
                raise ImportRefused(f"{name} has a number that is too large")
        level, depth = inner, depth - 1
