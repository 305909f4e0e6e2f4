"""A sequence that grows without being copied and never changes.

A `History` of *n* items is laid out like the number *n* written in base 32. The last digit is the
tail: the up to 31 newest items. The digit above it counts full leaves of 32 items, the next one full
nodes of 32 leaves, and so on; together these upper digits are the spine. Adding an item is adding
one: the tail is copied, and once in 32 times it fills up and is carried as a leaf. Cutting a prefix
is reading the digits of the shorter length. Only full nodes lie below the digits, so every version
shares all of them, and two histories of equal length always have the same shape.

A full node need not be there: it may be read when somebody first looks into it (`History.later`). A long
conversation is opened, shown at its end and continued without being read.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Sequence
from functools import reduce
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypeVar, final, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")

_BITS = 5
_WIDTH = 1 << _BITS
_MASK = _WIDTH - 1
_DESCENTS = tuple([range(height * _BITS, 0, -_BITS) for height in range(13)])  # made once, for indexing

# How deep a node lies is known from its place in the spine, which the type cannot say; nor that it may be
# one that is read later, which reads like a tuple.
_Node: TypeAlias = tuple[Any, ...]
_Spine: TypeAlias = tuple[_Node, ...]

_blank = object.__new__


@final
class History(Sequence[T]):
    """An immutable sequence whose versions share structure.

    It equals a list or tuple of the same items and, like a list, cannot be hashed.
    """

    __slots__ = ("_length", "_spine", "_tail")

    _length: int
    _tail: tuple[T, ...]
    _spine: _Spine

    def __new__(cls, items: Iterable[T] = ()) -> History[T]:
        """Return *items* as a history: the same object if it is one already."""
        if type(items) is History:  # isinstance would ask the abstract base class, which is slow
            return items
        items = tuple(items)
        if len(items) >= _WIDTH:
            return History._made(len(items), _carried((), items))
        history: History[T] = _blank(History)
        history._length = len(items)
        history._tail = items
        history._spine = ()
        return history

    @classmethod
    def of(cls, items: Iterable[T]) -> History[T]:
        """Return *items* as a history: the same object if it is one already."""
        return cls(items)

    @classmethod
    def later(cls, length: int, load: Callable[[int, int], Sequence[T]]) -> History[T]:
        """Return a history of *length* items that are read when somebody looks at them.

        Args:
            load: Returns the items from a start to an end. It is asked for up to 1,024 of them at once, for
                the same ones mostly once, and for the last ones, if they fill no leaf, immediately. What it
                raises comes out of whatever looked at the items.

        Raises:
            ValueError: If it returns more or fewer items than were asked for; also later.
        """
        tail = length & _MASK
        levels = [tuple(_loaded(load, length - tail, length)) if tail else ()]
        height = 1
        while length >> height * _BITS:
            first, end = length >> (height + 1) * _BITS << _BITS, length >> height * _BITS
            levels.append(tuple([_unread(load, place, height) for place in range(first, end)]))
            height += 1
        return cls._made(length, _trimmed(tuple(levels)))

    def read(self) -> History[T]:
        """Read everything that is still to be read, and return this history."""
        deque(self, maxlen=0)
        return self

    def pieces(self) -> Iterator[tuple[T, ...]]:
        """Walk over the items in pieces of up to 1,024; what has to be read for that is not kept."""
        for height in range(len(self._spine), 0, -1):
            for node in self._digit(height):
                yield from _pieces(node, height)
        if self._tail:
            yield self._tail

    @property
    def last(self) -> T | None:
        """The last item, or None if there is no item."""
        return self._tail[-1] if self._tail else self[-1] if self._length else None

    def append(self, item: T) -> History[T]:
        """Return this history with *item* at its end."""
        tail = self._tail + (item,)  # noqa: RUF005  # unpacking takes twice as long
        length = self._length + 1
        appended: History[T] = _blank(History)
        appended._length = length
        if length & _MASK:
            appended._tail = tail
            appended._spine = self._spine
        else:
            appended._tail = ()
            appended._spine = _carried(self._spine, (tail,))
        return appended

    def extend(self, items: Iterable[T]) -> History[T]:
        """Return this history with *items* at its end."""
        if not self._length:
            return History(items)
        items = tuple(items)
        if not items:
            return self
        tail = self._tail + items
        if len(tail) >= _WIDTH:
            return History._made(self._length + len(items), _carried(self._levels(), items))
        extended: History[T] = _blank(History)  # nothing is carried: the usual case, and a short one
        extended._length = self._length + len(items)
        extended._tail = tail
        extended._spine = self._spine
        return extended

    def prefix(self, length: int) -> History[T]:
        """Return the first *length* items, sharing every full node with this history.

        Raises:
            IndexError: If there are fewer items than that, or *length* is negative.
        """
        if length == self._length:
            return self
        if length == 0:
            return History()
        if not 0 <= length < self._length:
            raise IndexError(f"prefix length {length} is out of range for a history of length {self._length}")
        height = _height(length, self._length)
        levels = self._levels()
        node = levels[height]
        cut = []
        for shift in range(height * _BITS, -1, -_BITS):
            digit = length >> shift & _MASK
            cut.append(node[:digit])
            if not length & (1 << shift) - 1:  # all digits below are 0, and nothing there is looked at
                cut += [()] * (shift // _BITS)
                break
            node = node[digit]
        return History._made(length, _trimmed((*reversed(cut), *levels[height + 1 :])))

    def shared_length(self, other: History[T]) -> int:
        """Return how long the beginning is whose items are the same objects in both histories.

        Where the two share structure, as versions of one conversation do, whole nodes are compared, and
        what is not read yet stays so.
        """
        same = 0
        for height in range(max(len(self._spine), len(other._spine)), 0, -1):
            mine, theirs = self._digit(height), other._digit(height)
            alike = _alike(mine, theirs)
            same += alike << height * _BITS
            if alike < len(mine) or alike < len(theirs):
                return self._shared_from(other, same)
        return same + _alike(self._tail, other._tail)

    def _shared_from(self, other: History[T], same: int) -> int:
        """Return the shared length, of which *same* is known, where one digit differs."""
        highest = max(len(self._spine), len(other._spine))
        while same < min(self._length, other._length):
            for height in range(highest, 0, -1):
                node = None if same & (1 << height * _BITS) - 1 else self._node(same, height)
                if node is not None and node is other._node(same, height):
                    same += 1 << height * _BITS
                    break
            else:
                alike = _alike(self._leaf(same), other._leaf(same))
                if alike < _WIDTH:
                    return same + alike
                same += alike
        return same

    def replace(self, index: SupportsIndex, item: T) -> History[T]:
        """Return this history with *item* at *index* in place of the one there.

        Raises:
            IndexError: If there is no such index.
        """
        position = self._position(index)
        height = _height(position, self._length)
        levels = self._levels()
        changed = _replaced(levels[height], position, height * _BITS, item)
        return History._made(self._length, (*levels[:height], changed, *levels[height + 1 :]))

    def to_list(self) -> list[T]:
        """Return a new list of the items."""
        return reduce(operator.iconcat, self._leaves(), [])

    def __len__(self) -> int:
        return self._length

    def __bool__(self) -> bool:
        return self._length > 0

    @overload
    def __getitem__(self, index: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> History[T]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> T | History[T]:
        if isinstance(index, slice):
            if index.start == self._length and index.stop is None and index.step is None:
                return History()  # what is behind the last one: asked by whoever looks for what is new
            return self._sliced(*index.indices(self._length))
        position = self._position(index)
        return self._leaf(position)[position & _MASK]

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._leaves()) if self._spine else iter(self._tail)

    def __reversed__(self) -> Iterator[T]:
        leaves: Iterable[Any] = ()
        for nodes in reversed(self._spine):
            leaves = chain(reversed(nodes), chain.from_iterable(map(reversed, leaves)))
        return chain.from_iterable(map(reversed, chain((self._tail,), leaves)))

    def __contains__(self, value: object) -> bool:
        items: Iterator[object] = iter(self)
        return value in items

    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:
        """Return the first index of *value*, looking from *start* up to *stop*.

        Raises:
            ValueError: If it is not there.
        """
        first, end, _ = slice(start, stop).indices(self._length)
        try:
            return first + operator.indexOf(islice(self, first, end), value)
        except ValueError:
            raise ValueError(f"{value!r} is not in history") from None

    def count(self, value: object) -> int:
        """Return how many items equal *value*."""
        return operator.countOf(self, value)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is History:
            # Equal lengths have equal shapes, so tuples compare node by node and skip the shared ones.
            return self._length == other._length and self._tail == other._tail and self._spine == other._spine
        if isinstance(other, (list, tuple)):
            return self._length == len(other) and self.to_list() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal to lists, so unhashable like them

    def __add__(self, other: History[T] | list[T] | tuple[T, ...]) -> History[T]:
        if isinstance(other, (list, tuple, History)):
            return self.extend(other)
        return NotImplemented

    def __radd__(self, other: list[T] | tuple[T, ...]) -> History[T]:
        if isinstance(other, (list, tuple)):
            return History(other).extend(self)
        return NotImplemented

    def __repr__(self) -> str:
        return repr(self.to_list())

    def __copy__(self) -> History[T]:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return History, (self.to_list(),)

    @staticmethod
    def _made(length: int, levels: _Spine) -> History[T]:
        history: History[T] = _blank(History)
        history._length = length
        history._tail = levels[0] if levels else ()
        history._spine = levels[1:]
        return history

    def _digit(self, height: int) -> _Node:
        """Return the full nodes of one height that lie in the spine."""
        return self._spine[height - 1] if height <= len(self._spine) else ()

    def _node(self, position: int, height: int) -> _Node | None:
        """Return the full node of one height that begins at *position*, if there is one."""
        top = _height(position, self._length)
        if top < height:
            return None
        node = self._spine[top - 1]
        for shift in range(top * _BITS, height * _BITS - 1, -_BITS):
            node = node[position >> shift & _MASK]
        return node

    def _levels(self) -> _Spine:
        """Return every digit, the tail first."""
        return (self._tail, *self._spine)

    def _leaves(self) -> Iterator[tuple[T, ...]]:
        """Walk over the tuples that hold the items, the tail last."""
        leaves: Iterable[Any] = ()
        for nodes in reversed(self._spine):
            leaves = chain(chain.from_iterable(leaves), nodes)
        return chain(leaves, (self._tail,))

    def _leaf(self, position: int) -> tuple[T, ...]:
        """Return the tuple that holds the item at *position*."""
        height = ((position ^ self._length).bit_length() - 1) // _BITS  # _height, without the call
        if not height:
            return self._tail
        node = self._spine[height - 1]
        for shift in _DESCENTS[height]:
            node = node[position >> shift & _MASK]
        return node

    def _span(self, start: int, stop: int) -> list[T]:
        """Return the items from *start* up to *stop*, visiting only the leaves between."""
        first = start & ~_MASK
        items: list[T] = reduce(operator.iconcat, map(self._leaf, range(first, stop, _WIDTH)), [])
        return items[start - first : stop - first]

    def _sliced(self, start: int, stop: int, step: int) -> History[T]:
        indices = range(start, stop, step)
        if not indices:
            return History()
        if step == 1 and start == 0:
            return self.prefix(stop)
        if step > 0:
            return History(self._span(start, stop)[::step])
        return History(self._span(indices[-1], start + 1)[::step])

    def _position(self, index: SupportsIndex) -> int:
        """Return *index* counted from the start.

        Raises:
            IndexError: If there is no such index.
        """
        position = given = operator.index(index)
        if position < 0:
            position += self._length
        if not 0 <= position < self._length:
            raise IndexError(f"index {given} is out of range for a history of length {self._length}")
        return position


class _Later:
    """A full node that is read when somebody first looks into it."""

    __slots__ = ("_found", "_read")

    def __init__(self, read: Callable[[], _Node]) -> None:
        self._read = read
        self._found: list[_Node] = []

    def _here(self) -> _Node:
        if not self._found:
            self._found.append(self._read())
        return self._found[0]  # of two threads that come at once, what the first has read counts for both

    def once(self) -> _Node:
        """Return the node without keeping it, if nobody has looked into it yet."""
        return self._found[0] if self._found else self._read()

    def __len__(self) -> int:
        return _WIDTH

    def __iter__(self) -> Iterator[object]:
        return iter(self._here())

    def __reversed__(self) -> Iterator[object]:
        return reversed(self._here())

    def __getitem__(self, index: Any) -> object:
        return self._here()[index]

    def __eq__(self, other: object) -> bool:
        return self._here() == (other._here() if isinstance(other, _Later) else other)

    __hash__ = None  # type: ignore[assignment]  # as little as the history that it is a part of


_AT_ONCE = 2  # the height of the nodes that are read as a whole: 1,024 items


def _unread(load: Callable[[int, int], Sequence[object]], place: int, height: int) -> Any:
    """Return the node that is number *place* of all nodes of its height, with nothing read yet."""
    if height > _AT_ONCE:
        inner = range(place << _BITS, place + 1 << _BITS)
        return tuple([_unread(load, below, height - 1) for below in inner])
    start, end = (at << height * _BITS for at in (place, place + 1))

    def read() -> _Node:
        node = tuple(_loaded(load, start, end))
        for _ in range(height - 1):
            node = tuple([node[at : at + _WIDTH] for at in range(0, len(node), _WIDTH)])
        return node

    return _Later(read)


def _loaded(load: Callable[[int, int], Sequence[T]], start: int, end: int) -> Sequence[T]:
    items = load(start, end)
    if len(items) != end - start:
        raise ValueError(f"{end - start} items from {start} on were asked for, and {len(items)} came")
    return items


def _pieces(node: _Node, height: int) -> Iterator[_Node]:
    """Yield the items below a node, as many at once as are read at once."""
    if height > _AT_ONCE:
        for below in node:
            yield from _pieces(below, height - 1)
    else:
        yield _below(node, height)


def _below(node: _Node, height: int) -> _Node:
    """Return the items below a node; what is read for that is not kept."""
    here = node.once() if isinstance(node, _Later) else node
    return here if height == 1 else tuple(chain.from_iterable([_below(one, height - 1) for one in here]))


def _alike(mine: Iterable[object], theirs: Iterable[object]) -> int:
    """Return with how many of the same objects both begin."""
    alike = 0
    for one, another in zip(mine, theirs, strict=False):
        if one is not another:
            break
        alike += 1
    return alike


def _height(position: int, length: int) -> int:
    """Return which digit, counted from the tail, holds *position*: the highest in which the two differ."""
    return ((position ^ length).bit_length() - 1) // _BITS


def _carried(levels: _Spine, nodes: _Node) -> _Spine:
    """Add *nodes* to the lowest of *levels*; each level keeps its remainder and hands on what is full."""
    carried = []
    height = 0
    while nodes:
        pending = levels[height] + nodes if height < len(levels) else nodes
        full = len(pending) & ~_MASK
        carried.append(pending[full:])
        nodes = tuple([pending[start : start + _WIDTH] for start in range(0, full, _WIDTH)])
        height += 1
    return (*carried, *levels[height:])


def _trimmed(levels: _Spine) -> _Spine:
    """Drop the leading zeros of a shorter length."""
    while levels and not levels[-1]:
        levels = levels[:-1]
    return levels


def _replaced(node: _Node, position: int, shift: int, item: object) -> _Node:
    digit = position >> shift & _MASK
    changed = _replaced(node[digit], position, shift - _BITS, item) if shift else item
    return (*node[:digit], changed, *node[digit + 1 :])


def same_beginning(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many of the first items of two lists are equal.

    Lists compare identical items in a few nanoseconds, so whole beginnings are compared and the length is
    searched for by halves: two long lists that differ near the end cost hardly more than equal ones.
    """
    same, differs = 0, min(len(one), len(other)) + 1
    middle = differs - 1
    while same < differs - 1:
        if one[same:middle] == other[same:middle]:
            same = middle
        else:
            differs = middle
        middle = (same + differs) // 2
    return same
