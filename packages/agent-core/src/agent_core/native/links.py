"""Integrity of a session as a hash chain.

Each message and each native item has a link: a hash of the link before it and of itself. The last
links are stored with the session, so a change anywhere before them shows. Appending costs one link,
and since links are kept in memory for sessions that we made ourselves, so does checking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from agent_core.encoding import canonical
from agent_core.history import History
from agent_core.messages import NATIVE_INDICES, Message

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Seal:
    """The links of a session: one per message that native history covers, one per native item."""

    messages: History[bytes] = field(default_factory=History)
    native: History[bytes] = field(default_factory=History)

    def extend(self, messages: Iterable[Message], items: Iterable[Mapping[str, Any]]) -> Seal:
        """Return the seal after *messages* and native *items* were appended."""
        parts = (_part(message_digest(m), m.metadata.get(NATIVE_INDICES)) for m in messages)
        return Seal(_extend(self.messages, parts), _extend(self.native, map(canonical, items)))

    @classmethod
    def of_digests(cls, digests: Iterable[tuple[bytes, Any]], items: Iterable[Mapping[str, Any]]) -> Seal:
        """Return the seal of messages of which only digests and native indices are at hand."""
        parts = (_part(digest, indices) for digest, indices in digests)
        return cls(_extend(History(), parts), _extend(History(), map(canonical, items)))

    def prefix(self, messages: int, native: int) -> Seal:
        """Return the seal of the first messages and items."""
        return Seal(self.messages.prefix(messages), self.native.prefix(native))

    def to_dict(self) -> dict[str, Any]:
        """Return what is stored as ``native_messages_integrity``."""
        return {
            "version": _VERSION,
            "messages": len(self.messages),
            "head": _head(self.messages),
            "native": len(self.native),
            "native_head": _head(self.native),
        }


def message_digest(message: Message) -> bytes:
    """Hash what a message says, wherever it stands in native history."""
    fields = dict(message.frozen_dict())
    if NATIVE_INDICES in message.metadata:
        metadata = {key: value for key, value in message.metadata.items() if key != NATIVE_INDICES}
        fields["metadata"] = metadata
    return sha256(canonical(fields)).digest()


def covered_messages(integrity: Any, limit: int) -> int | None:
    """Return how many messages a stored integrity value speaks of, or None if it makes no sense."""
    if not isinstance(integrity, Mapping) or integrity.get("version") != _VERSION:
        return None
    count = integrity.get("messages")
    return count if isinstance(count, int) and 0 <= count <= limit else None


def _part(digest: bytes, indices: Any) -> bytes:
    return digest + canonical(indices)


def _extend(links: History[bytes], parts: Iterable[bytes]) -> History[bytes]:
    last = links[-1] if links else b""
    added = []
    for part in parts:
        last = sha256(last + part).digest()
        added.append(last)
    return links.extend(added)


def _head(links: History[bytes]) -> str:
    return links[-1].hex() if links else ""
