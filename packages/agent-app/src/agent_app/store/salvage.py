"""Reads what is left of a damaged SQLite file, page by page, without SQLite.

SQLite follows a tree from its root, so one damaged page hides everything below it, and a damaged header
hides everything. Here every page with rows is read by itself. The shape of a row shows which table it belongs
to, and its checksum whether it is intact. The format is that of https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_app.store.checksums import row_sum

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MAGIC = b"SQLite format 3\0"
_PAGE_SIZE = 4096
_SIZES = frozenset(1 << power for power in range(9, 17))
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_WAL_MAGIC = 0x377F0682
_WAL_HEADER, _FRAME_HEADER = 32, 24
_LONGEST = 1 << 30  # no row of ours is longer
MOST = 1 << 24
"""More messages than any session has."""

# i an integer, r a number, t a text, b bytes, k bytes of a hash; a capital letter may also be nothing.
_SHAPES = {
    "content": "kbi",
    "lists": "Ii",
    "entries": "iiiBBI",
    "sessions": "tttTrriTiiiiit",
    "past": "i",
    "metadata": "tki",
    "leases": "ttir",
    "events": "tib",
    "inputs": "tibtrI",
    "approvals": "ttbrBi",
    "intents": "tkb",
    "grants": "tkkTbrt",
}
_WITH_ROWID = frozenset({"content", "lists", "sessions", "past"})
_KEYED = frozenset({"content", "lists"})  # their first column is the number of the row
_ADDED = {"entries": 5, "inputs": 5}  # so many columns they had at first
_OF_TENANTS = frozenset({"sessions", "grants"})  # their last column was not there in former formats
_NULL, _REAL, _ZERO, _ONE, _FIRST_BYTES = 0, 7, 8, 9, 12
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_HASH_BYTES = 32


class Row(NamedTuple):
    """A row that was found.

    Attributes:
        table: The table that it is of.
        values: Its values, as the table has its columns.
        whole: Whether it is what was written; True also of former formats, whose rows have no checksum.
        page: The page that it is on.
    """

    table: str
    values: tuple[Any, ...]
    whole: bool
    page: int


@dataclass(slots=True)
class Remains:
    """What is left of a file.

    Attributes:
        rows: All rows that were found.
        damaged: The pages of which something cannot be read, with the reason.
        blank: Whether there are pages of zeros: free ones, or such as the disk has lost.
        log_missing: Whether the file says that it needs a log, and there was none.
        notes: Other findings.
    """

    rows: list[Row] = field(default_factory=list)
    damaged: dict[int, str] = field(default_factory=dict)
    blank: bool = False
    log_missing: bool = False
    notes: list[str] = field(default_factory=list)


def read_remains(file: bytes, log: bytes | None) -> Remains:
    """Return all rows that can be read from the content of a file and of its log, if there is one."""
    remains = Remains()
    size = _page_size(file, log)
    if file[:16] != _MAGIC:
        remains.notes.append("the header of the file is overwritten")
    if len(file) % size:
        remains.notes.append(f"the file ends in the middle of page {len(file) // size + 1}")
    pages = {place // size + 1: file[place : place + size] for place in range(0, len(file), size)}
    if log:
        pages |= _logged(log, size, remains)
    states = list[int]()
    for number in sorted(pages):
        remains.blank = remains.blank or not any(pages[number])
        for row in _Page(pages, number, size).rows(remains):
            if row.table == "log":
                states.append(row.values[0])
            else:
                remains.rows.append(row)
    remains.log_missing = not log and states == [1]
    return remains


def _page_size(file: bytes, log: bytes | None) -> int:
    """Return the size of pages: as the header says, or the log, or as our files have it."""
    if file[:16] == _MAGIC and len(file) > _WAL_HEADER:
        said = int.from_bytes(file[16:18], "big")
        size = 1 << 16 if said == 1 else said
        if size in _SIZES:
            return size
    if log and len(log) >= _WAL_HEADER and (size := int.from_bytes(log[8:12], "big")) in _SIZES:
        return size
    return _PAGE_SIZE


def _logged(log: bytes, size: int, remains: Remains) -> dict[int, bytes]:
    """Return the pages that a log has, up to its last commit."""
    if len(log) < _WAL_HEADER or int.from_bytes(log[:4], "big") & ~1 != _WAL_MAGIC:
        remains.notes.append("the log cannot be read: the last messages may be lost")
        return {}
    order = ">" if log[3] & 1 else "<"
    salts, sums = log[16:24], _log_sum(order, log[:24], (0, 0))
    pages, open_pages = dict[int, bytes](), dict[int, bytes]()
    for start in range(_WAL_HEADER, len(log) - _FRAME_HEADER - size + 1, _FRAME_HEADER + size):
        head, page = log[start : start + _FRAME_HEADER], log[start + _FRAME_HEADER :][:size]
        if head[8:16] != salts:
            break  # of an earlier round
        sums = _log_sum(order, page, _log_sum(order, head[:8], sums))
        if sums != struct.unpack(">II", head[16:24]):
            remains.notes.append(f"the log is damaged at byte {start}: the messages after that are lost")
            break
        number, committed = struct.unpack(">II", head[:8])
        open_pages[number] = page
        if committed:
            pages |= open_pages
            open_pages = {}
    return pages


def _log_sum(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    one, two = sums
    for first, second in struct.iter_unpack(f"{order}II", data):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


class _Page:
    """One page, which may be anything."""

    def __init__(self, pages: dict[int, bytes], number: int, size: int) -> None:
        self._pages, self._number, self._size = pages, number, size
        self._data = pages[number]
        self._start = 100 if number == 1 else 0

    def rows(self, remains: Remains) -> Iterator[Row]:
        """Yield the rows that can be read."""
        data, start = self._data, self._start
        kind = data[start] if len(data) > start + 8 else 0
        if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR):
            return
        cells = int.from_bytes(data[start + 3 : start + 5], "big")
        pointers = start + (12 if kind == _INDEX_INTERIOR else 8)
        problem = ""
        for place in range(pointers, pointers + 2 * cells, 2):
            at = int.from_bytes(data[place : place + 2], "big")
            try:
                row = self._row(kind, at)
            except (ValueError, IndexError, struct.error) as error:
                problem = str(error)
                continue
            if row is not None:
                yield row
        if problem:
            remains.damaged[self._number] = problem

    def _row(self, kind: int, at: int) -> Row | None:
        if not self._start < at < len(self._data):
            raise ValueError("a row begins outside the page")
        at += 4 if kind == _INDEX_INTERIOR else 0
        length, at = _varint(self._data, at)
        rowid = 0
        if kind == _TABLE_LEAF:
            rowid, at = _varint(self._data, at)
        if length > _LONGEST:
            raise ValueError("a row is longer than any can be")
        values = _record(self._payload(kind, at, length))
        return _recognised(values, rowid, self._number, with_rowid=kind == _TABLE_LEAF)

    def _payload(self, kind: int, at: int, length: int) -> bytes:
        """Return the bytes of a row, with what of it stands on other pages."""
        usable = self._size
        most = usable - 35 if kind == _TABLE_LEAF else (usable - 12) * 64 // 255 - 23
        if length <= most:
            return self._cut(self._data, at, length)
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        local = local if local <= most else least
        found = [self._cut(self._data, at, local)]
        following = int.from_bytes(self._cut(self._data, at + local, 4), "big")
        rest = length - local
        while rest > 0:
            page = self._pages.get(following)
            if page is None:
                raise ValueError(f"a row continues on page {following}, which is not there")
            found.append(self._cut(page, 4, min(rest, usable - 4)))
            following = int.from_bytes(page[:4], "big")
            rest -= usable - 4
        return b"".join(found)

    @staticmethod
    def _cut(page: bytes, at: int, length: int) -> bytes:
        found = page[at : at + length]
        if len(found) < length:
            raise ValueError("a row ends outside the page")
        return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if not data[place] & 0x80:
            return value, place + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >> 63 else value, at + 9


def _record(payload: bytes) -> list[Any]:
    """Return the values of a row."""
    end, at = _varint(payload, 0)
    kinds = list[int]()
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values = list[Any]()
    for kind in kinds:
        value, at = _value(payload, at, kind)
        values.append(value)
    if at != len(payload):
        raise ValueError("a row is not as long as it says")
    return values


def _value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == _NULL:
        return None, at
    if kind in (_ZERO, _ONE):
        return kind - _ZERO, at
    length = _INTEGERS.get(kind, 8 if kind == _REAL else (kind - _FIRST_BYTES) // 2)
    if length < 0 or at + length > len(payload):
        raise ValueError("a value ends outside its row")
    data, after = payload[at : at + length], at + length
    if kind in _INTEGERS:
        return int.from_bytes(data, "big", signed=True), after
    if kind == _REAL:
        return struct.unpack(">d", data)[0], after
    return data if kind % 2 == 0 else data.decode(), after


def _recognised(values: Sequence[Any], rowid: int, page: int, *, with_rowid: bool) -> Row | None:
    """Return a row of one of our tables, or None for anything else, such as a row of an index."""
    match values:
        case [1 | 2, float() | None] if with_rowid:
            return Row("log", tuple(values), whole=True, page=page)
    for table, shape in _SHAPES.items():
        if (table in _WITH_ROWID) != with_rowid:
            continue
        own = list(values)
        if table in _KEYED:
            if not own or own[0] is not None:
                continue
            own = own[1:]
        row = _fitted(table, shape, own, rowid, page)
        if row is not None:
            return row
    return None


def _fitted(table: str, shape: str, own: list[Any], rowid: int, page: int) -> Row | None:
    row = _fit(table, shape, list(own), rowid, page)
    if row is None and table in _OF_TENANTS:
        former = _fit(table, shape[:-1], own, rowid, page)
        row = None if former is None else former._replace(values=(*former.values, ""))
    return row


def _fit(table: str, shape: str, own: list[Any], rowid: int, page: int) -> Row | None:
    summed = table != "content" and len(own) == len(shape) + 1
    if not summed and not _ADDED.get(table, len(shape)) <= len(own) <= len(shape):
        return None
    checksum = own.pop() if summed else None
    own += [None] * (len(shape) - len(own))
    fitted = [_as(letter, value) for letter, value in zip(shape, own, strict=True)]
    if _MISFIT in fitted:
        return None
    row = (rowid, *fitted) if table in _KEYED else tuple(fitted)
    if table == "content":
        return Row(table, row, whole=sha256(fitted[1]).digest() == fitted[0], page=page)
    return Row(table, row, whole=not summed or row_sum(*row) == checksum, page=page)


_MISFIT = object()


def _as(letter: str, value: Any) -> Any:
    """Return a value as its column has it; whole numbers of real columns are stored as integers."""
    if value is None:
        return None if letter.isupper() else _MISFIT
    kind = letter.lower()
    if kind == "r":
        return float(value) if isinstance(value, int | float) else _MISFIT
    if kind == "k":
        return value if isinstance(value, bytes) and len(value) == _HASH_BYTES else _MISFIT
    wanted = {"i": int, "t": str, "b": bytes}[kind]
    return value if isinstance(value, wanted) else _MISFIT
