"""What is in the file of a session.

It is a zip file with these members and no others::

    session.json     the session as `Session.to_dict` has it, keys in order
    events.jsonl     the event log, one event a line; only if it was asked for
    assets/1 …       the content of its assets
    manifest.json    format and version, title, names of the assets, and a hash of every other member

No name in it ever becomes a path: members are known by the names above, and everything else by the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agent_app.store.base import SessionInfo
from agent_core import AgentError
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


class ImportRefused(AgentError, ValueError):  # noqa: N818 - named like WriteRefused
    """A file is no session, or a dangerous one; nothing of it was kept."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"The file cannot be imported: {problem}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSession(SessionInfo):
    """What was made of a file.

    Attributes:
        left_out: The metadata of the file that was not taken over, by key.
    """

    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLimits:
    """How much a file may bring.

    Attributes:
        packed: Bytes of the file itself.
        unpacked: Bytes of all that is in it.
        document: Bytes of one JSON document in it.
        ratio: How many times larger something may become when it is unpacked, beyond the first 20 MB.
        members: How many things may be in it.
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
    """An asset in a file: where its content is, the id that it had, and what it is called."""

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
            raise ImportRefused(f"an asset in {MANIFEST} has a field that is no text")
        if not ASSET_ID.fullmatch(data["id"]) or not ASSET_MEMBER.fullmatch(data["member"]):
            raise ImportRefused(f"an asset in {MANIFEST} has an id or a place that no export writes")
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Checksum:
    """What a member must be when it is read."""

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
    """What a file says about itself.

    Attributes:
        title: The title of the session.
        agent_id: The agent that it belonged to.
        redacted: True if secrets were looked for and taken out.
        members: The other members.
        assets: The assets of the session.
    """

    title: str = ""
    agent_id: str | None = None
    redacted: bool = False
    members: Mapping[str, Checksum] = field(default_factory=lambda: EMPTY)
    assets: Sequence[PackedAsset] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest as plain data."""
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
        """Read a manifest, which may come from anybody.

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
        raise ImportRefused(f"{MANIFEST} has no version that there ever was")


def _read_assets(data: list[Any]) -> tuple[PackedAsset, ...]:
    assets = tuple(map(PackedAsset.from_dict, data))
    if len({asset.id for asset in assets}) < len(assets) or len({a.member for a in assets}) < len(assets):
        raise ImportRefused(f"{MANIFEST} names an asset twice")
    return assets
