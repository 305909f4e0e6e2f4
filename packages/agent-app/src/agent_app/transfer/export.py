"""A stored session as a file.

Secrets are removed from the text, the title, the events and the assets, unless the caller asks otherwise. If
that changed a message or its native form, the file has no native history: its signatures would no longer fit,
and its hashes would reveal what was removed. After an import the next request rebuilds it, and
`native_rebuilt` in the session's metadata says why.
"""

from __future__ import annotations

import codecs
import os
import tempfile
import zipfile
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from agent_app.assets.asset import is_textual
from agent_app.redaction import Redactor
from agent_app.transfer.format import EVENTS, MANIFEST, SESSION, Checksum, Manifest, PackedAsset
from agent_core import History, Session
from agent_core.encoding import canonical, plain
from agent_core.native import ARCHIVE, NATIVE_MESSAGES, OWNED_METADATA, write_native

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent_app.assets import Asset, AssetStore
    from agent_app.store.base import SessionStore
    from agent_core import Message

_PIECE = 1 << 18
_PAGE = 500


def export_session(
    store: SessionStore,
    session_id: str,
    *,
    assets: AssetStore | None = None,
    redact: bool | Redactor = True,
    events: bool = False,
) -> Iterator[bytes]:
    """Return a stored session as the bytes of a file, piece by piece.

    The same session gives the same bytes.

    Args:
        assets: The store of its assets; without it the file has none.
        redact: Whether secrets are removed, or what removes them. By default these are values from the
            environment, and text that looks like a secret.
        events: Whether the file has the event log.

    Raises:
        SessionNotFound: If there is no such session.
    """
    redactor = Redactor.from_environment() if redact is True else redact or None
    info = store.info(session_id)
    session = store.load(session_id).session
    manifest = Manifest(
        title=info.title if redactor is None else redactor.text(info.title),
        agent_id=info.agent_id,
        redacted=redactor is not None,
    )
    writer = _Writer(manifest)
    members: list[tuple[str, Iterable[bytes]]] = [(SESSION, _Leaving.session(session, redactor).encoded())]
    if events:
        members.append((EVENTS, _events(store, session_id, redactor)))
    if assets is not None:
        for number, asset in enumerate(assets.list(session_id), 1):
            packed = _packed(asset, number, redactor)
            writer.assets.append(packed)
            members.append((packed.member, _content(assets, asset, redactor)))
    return writer.write(members)


def export_session_file(
    store: SessionStore,
    session_id: str,
    path: str | os.PathLike[str],
    *,
    assets: AssetStore | None = None,
    redact: bool | Redactor = True,
    events: bool = False,
) -> None:
    """Write a stored session to a file that only its owner can read; see `export_session`.

    The file is complete or not there at all; an existing one is replaced.
    """
    pieces = export_session(store, session_id, assets=assets, redact=redact, events=events)
    target = Path(path)
    descriptor, temporary = tempfile.mkstemp(prefix=".export-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def redacted(session: Session, redactor: Redactor) -> Session:
    """Return a session without secrets."""
    leaving = _Leaving.session(session, redactor)
    messages = [message for page in leaving.messages() for message in page]
    items = [item for page in leaving.items() for item in page]
    metadata = leaving.metadata | ({NATIVE_MESSAGES: items} if leaving.native is not None else {})
    return Session.from_dict({**leaving.others, "messages": messages, "metadata": metadata})


@dataclass(frozen=True, slots=True)
class _Leaving:
    """A session on its way out, page by page: a long one is never held as a whole.

    Attributes:
        others: The fields of its dict form but messages and metadata.
        metadata: Its metadata but the native items.
        conversation: Its messages.
        native: Its native items; None if they stay behind.
        redactor: What removes secrets from messages and items on the way, if they have any.
    """

    others: dict[str, Any]
    metadata: dict[str, Any]
    conversation: History[Message]
    native: History[Any] | None
    redactor: Redactor | None

    @classmethod
    def session(cls, session: Session, redactor: Redactor | None) -> _Leaving:
        """Look through a session for secrets, and decide what stays behind."""
        native = session.metadata.get(NATIVE_MESSAGES)
        items = native if isinstance(native, History) else None
        around = session.metadata if items is None else _without(session.metadata, NATIVE_MESSAGES)
        whole = cls(
            {**plain(session.extra), "session_id": session.session_id},
            plain(around), session.history, items, None,
        )  # fmt: skip
        if redactor is None:
            return whole
        others = {**redactor.data(whole.others), "session_id": session.session_id}
        metadata = redactor.data(whole.metadata)
        kept = all(metadata.get(key) is whole.metadata.get(key) for key in OWNED_METADATA)
        pages = chain(whole.messages(), whole.items())
        if kept and all(redactor.data(page) is page for page in pages):
            return replace(whole, others=others, metadata=metadata)
        return cls(others, _rebuilt(metadata, len(session.history)), session.history, None, redactor)

    def messages(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the messages in their dict form."""
        for page in self.conversation.pieces():
            if self.redactor is None:
                yield [message.to_dict() for message in page]
            else:
                yield self.redactor.data([message.with_native_indices(None).to_dict() for message in page])

    def items(self) -> Iterator[list[Any]]:
        """Yield the native items as plain data."""
        for page in self.native.pieces() if self.native is not None else ():
            yield plain(page)

    def encoded(self) -> Iterator[bytes]:
        """Yield the canonical bytes of the dict form."""
        metadata: dict[str, Iterable[bytes]] = {key: [canonical(it)] for key, it in self.metadata.items()}
        if self.native is not None:
            metadata[NATIVE_MESSAGES] = _list(self.items())
        fields: dict[str, Iterable[bytes]] = {key: [canonical(it)] for key, it in self.others.items()}
        return _object(fields | {"messages": _list(self.messages()), "metadata": _object(metadata)})


def _rebuilt(metadata: Mapping[str, Any], messages: int) -> dict[str, Any]:
    """Return metadata without native history, with the reason."""
    report = {
        "operation": "export_session",
        "reason": "redacted",
        "detail": "secrets were removed from the conversation",
        "messages": messages,
    }
    made: dict[str, Any] = plain(
        write_native(Session("", (), _without(metadata, ARCHIVE)), (), None, report=report).metadata
    )
    return made


def _without(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: item for key, item in metadata.items() if key != name}


def _object(fields: Mapping[str, Iterable[bytes]]) -> Iterator[bytes]:
    """Yield a JSON object whose values come in pieces; its keys are sorted, as `canonical` does it."""
    before = b"{"
    for key in sorted(fields):
        yield before + canonical(key) + b":"
        yield from fields[key]
        before = b","
    yield b"}" if fields else b"{}"


def _list(pages: Iterable[list[Any]]) -> Iterator[bytes]:
    """Yield a JSON list whose items come in pages."""
    before = b"["
    for page in pages:
        yield before + canonical(page)[1:-1]
        before = b","
    yield b"]" if before == b"," else b"[]"


def _events(store: SessionStore, session_id: str, redactor: Redactor | None) -> Iterator[bytes]:
    after = 0
    while page := store.events(session_id, after=after, limit=_PAGE):
        after = page[-1]["seq"]
        for event in page:
            yield canonical(event if redactor is None else redactor.data(event)) + b"\n"


def _packed(asset: Asset, number: int, redactor: Redactor | None) -> PackedAsset:
    name = asset.name if redactor is None else redactor.text(asset.name)
    return PackedAsset(member=f"assets/{number}", id=asset.id, name=name, media_type=asset.media_type)


def _content(assets: AssetStore, asset: Asset, redactor: Redactor | None) -> Iterator[bytes]:
    with assets.open(asset.id) as file:
        if redactor is None:
            yield from iter(lambda: file.read(_PIECE), b"")
        else:
            # In binary data anything may look like a secret by chance; a known value does not.
            chosen = redactor if is_textual(asset.media_type) else redactor.known_only()
            yield from _redacted_content(file, chosen)


def _redacted_content(file: BinaryIO, redactor: Redactor) -> Iterator[bytes]:
    """Yield content without secrets; bytes that are not text pass unchanged."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    stream = redactor.stream()
    while piece := file.read(_PIECE):
        yield stream.feed(decoder.decode(piece)).encode("utf-8", "surrogateescape")
    rest = stream.feed(decoder.decode(b"", final=True)) + stream.close()
    yield rest.encode("utf-8", "surrogateescape")


class _Writer:
    """Writes members into a zip file that is returned piece by piece."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._sink = _Sink()
        self._checksums: dict[str, Checksum] = {}
        self.assets: list[PackedAsset] = []

    def write(self, members: Iterable[tuple[str, Iterable[bytes]]]) -> Iterator[bytes]:
        """Yield the bytes of the file; the manifest comes last, when all hashes are known."""
        with zipfile.ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, pieces in members:
                yield from self._member(archive, name, pieces)
            manifest = replace(self._manifest, members=self._checksums, assets=self.assets)
            yield from self._member(archive, MANIFEST, [canonical(manifest.to_dict())])
        yield self._sink.taken()

    def _member(self, archive: zipfile.ZipFile, name: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        digest, size = sha256(), 0
        with archive.open(_entry(name), "w") as member:
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                member.write(piece)
                yield self._sink.taken()
        self._checksums[name] = Checksum(digest.hexdigest(), size)
        yield self._sink.taken()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)  # dated 1980, so that the same session gives the same bytes
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3
    entry.external_attr = 0o600 << 16
    return entry


class _Sink:
    """The zip library writes to it; without a way to seek, every piece can be returned at once."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes, /) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def close(self) -> None:
        """Do nothing: what was written is still to be returned."""

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
