"""Dicts and lists that cannot be changed in place.

Sessions, native history and configuration are lent to plugins without copying. What protects them
is that every container inside is a `FrozenDict` or a `FrozenList`: real dicts and lists to anything
that reads (``isinstance``, JSON encoders, ``==``), an exception to anything that writes. A plugin
that wants another value builds one: ``{**item, "role": "user"}``, ``[*native_messages, item]``.
"""

from __future__ import annotations

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


def thaw(value: object) -> Any:
    """Return *value* as plain dicts and lists that the caller may change."""
    if isinstance(value, dict):
        return {key: item if item.__class__ in _PLAIN else thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [item if item.__class__ in _PLAIN else thaw(item) for item in value]
    plain = getattr(value, "to_list", None)  # a History, which knows how to become a list
    return value if plain is None else thaw(plain())
