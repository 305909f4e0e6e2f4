"""Dicts and lists that cannot be changed in place.

Sessions, native history and configuration are lent to plugins without copying. What protects them
is that every container inside is a `FrozenDict` or a `FrozenList`: real dicts and lists to anything
that reads (``isinstance``, JSON encoders, ``==``), an exception to anything that writes. A plugin
that wants another value builds one: ``{**item, "role": "user"}``, ``[*native_messages, item]``.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NoReturn, TypeAlias

# `Any` is named once for all dicts whose values only their reader knows: JSON that plugins, providers and
# callers pass on, and what plugins keep for themselves during a request.
JsonObject: TypeAlias = dict[str, Any]
Dicts: TypeAlias = list[JsonObject]
State: TypeAlias = dict[str, Any]


class FrozenValueError(TypeError):
    """Someone tried to change a value that was lent to them."""


def _refuse(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    kind = "dict" if isinstance(self, dict) else "list"
    raise FrozenValueError(f"this {kind} is frozen: return a changed copy instead of changing it in place")


class FrozenDict(dict[str, Any]):
    """A dict that refuses every change; `dict(value)` and `{**value}` give plain copies."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, _memo: dict[int, Any]) -> object:
        return thaw(self)

    def __reduce__(self) -> tuple[object, ...]:
        return freeze, (dict(self),)


class FrozenList(list[Any]):
    """A list that refuses every change; `list(value)` and `[*value]` give plain copies."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, _memo: dict[int, Any]) -> object:
        return thaw(self)

    def __reduce__(self) -> tuple[object, ...]:
        return freeze, (list(self),)


EMPTY: FrozenDict = FrozenDict()


# What needs no freezing; asked of nearly every value that passes through, hence a set of classes.
_PLAIN: frozenset[type] = frozenset({str, int, float, bool, type(None)})
_AS_IT_IS: frozenset[type] = _PLAIN | {FrozenDict, FrozenList}
_SURELY_DATA: frozenset[type] = _AS_IT_IS - {float}  # JSON has no NaN and no infinity


def freeze(value: object) -> Any:
    """Return *value* with every dict, list and tuple in it frozen; what is frozen is not copied."""
    if value.__class__ in _AS_IT_IS:
        return value
    if isinstance(value, dict):
        return FrozenDict(
            {key: item if item.__class__ in _AS_IT_IS else freeze(item) for key, item in value.items()}
        )
    if isinstance(value, (list, tuple)):
        return FrozenList([item if item.__class__ in _AS_IT_IS else freeze(item) for item in value])
    return value


DEEPEST = 300
"""How deeply data may be nested: whoever reads or writes it needs a stack for that."""


class NotData(ValueError):
    """A value is not JSON data; `path` says which part of it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(problem)
        self.path = path


def freeze_data(value: object, name: str = "") -> Any:
    """Return *value* frozen, after making sure that it is JSON data; what is frozen is not looked at again.

    Raises:
        NotData: If there is an object in it that JSON does not have, a key that is not a string, or no end.
            Its path begins with *name*.
    """
    try:
        return _freeze_data(value, 0)
    except NotData as error:
        raise NotData(_find(value, name), str(error)) from None


def _freeze_data(value: object, depth: int) -> Any:
    if value.__class__ in _SURELY_DATA:
        return value
    _check_data(value, depth)
    if isinstance(value, dict):
        return FrozenDict(
            {
                key: item if item.__class__ in _SURELY_DATA else _freeze_data(item, depth + 1)
                for key, item in value.items()
            }
        )
    if isinstance(value, (list, tuple)):
        return FrozenList(
            [item if item.__class__ in _SURELY_DATA else _freeze_data(item, depth + 1) for item in value]
        )
    return value


def _check_data(value: object, depth: int) -> None:
    """Refuse a value, whatever is in it, that JSON cannot have."""
    if isinstance(value, float) and not isfinite(value):
        raise NotData("", f"{value} is not JSON data: JSON has neither NaN nor infinity")
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise NotData("", f"it has the key {key!r:.80}, and JSON has only strings as keys")
    elif not isinstance(value, (list, tuple, str, int, float, type(None))) and not hasattr(value, "to_list"):
        kind = type(value).__name__
        raise NotData("", f"{kind} is not JSON data: give text, a number, a list or a dict")
    if depth > DEEPEST:
        raise NotData("", f"nested more than {DEEPEST} levels deep")


def _find(value: object, path: str, depth: int = 0) -> str:
    """Return where in a value that is not data the first such part is."""
    try:
        _check_data(value, depth)
    except NotData:
        return path if depth <= DEEPEST else f"{path[:40]}…"
    inner: Any = ()
    if isinstance(value, dict):
        inner = [(f"{path}.{key}", item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        inner = [(f"{path}[{place}]", item) for place, item in enumerate(value)]
    return next((found for where, item in inner if (found := _find(item, where, depth + 1))), "")


def thaw(value: object) -> Any:
    """Return *value* as plain dicts and lists that the caller may change."""
    if isinstance(value, dict):
        return {key: item if item.__class__ in _PLAIN else thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [item if item.__class__ in _PLAIN else thaw(item) for item in value]
    plain = getattr(value, "to_list", None)  # a History, which knows how to become a list
    return value if plain is None else thaw(plain())
