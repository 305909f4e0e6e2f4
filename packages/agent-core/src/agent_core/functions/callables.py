"""What can be called, and which function stands behind it.

A tool may be made of a function, a bound method, a `functools.partial`, an object with ``__call__``,
or anything that says with ``__wrapped__`` what it stands for.
"""

from __future__ import annotations

from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200  # the CO_* flags of `inspect`


def underlying(target: Any) -> Any:
    """Return the function whose body runs when *target* is called, as far as Python can tell."""
    while not isinstance(target, (FunctionType, BuiltinFunctionType)):
        if isinstance(target, partial):
            target = target.func
        elif isinstance(target, MethodType):
            target = target.__func__
        elif hasattr(target, "__wrapped__"):  # a tool, a staticmethod, a function behind lru_cache
            target = target.__wrapped__
        else:
            return getattr(type(target), "__call__", target)  # noqa: B004 - looked up, not asked about
    return target


def name_of(target: Any) -> str:
    """Return the function's own name, or for an object its class's name in snake_case."""
    if isinstance(target, partial):
        return name_of(target.func)
    name = getattr(target, "__name__", None)
    return name if isinstance(name, str) else _snake_case(type(target).__name__)


def doc_of(target: Any) -> str | None:
    """Return the docstring that describes a call of *target*."""
    if isinstance(target, partial):
        return doc_of(target.func)
    doc = underlying(target).__doc__
    return doc if doc or hasattr(target, "__name__") else type(target).__doc__


def is_generator(target: Any) -> bool:
    """Whether calling *target* gives a generator or an async generator."""
    code = getattr(underlying(target), "__code__", None)
    return code is not None and bool(code.co_flags & (_GENERATOR | _ASYNC_GENERATOR))


def is_async(target: Any) -> bool:
    """Whether calling *target* gives something to await or to iterate on an event loop."""
    code = getattr(underlying(target), "__code__", None)
    return code is not None and bool(code.co_flags & (_COROUTINE | _ASYNC_GENERATOR))


def bound_names(target: Any) -> frozenset[str]:
    """Return the parameters that a `functools.partial` has settled by keyword."""
    if isinstance(target, partial):
        return bound_names(target.func) | target.keywords.keys()
    return bound_names(target.__wrapped__) if _stands_for_another(target) else frozenset()


def _stands_for_another(target: Any) -> bool:
    return hasattr(target, "__wrapped__") and not isinstance(target, FunctionType)


def _snake_case(name: str) -> str:
    import re

    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
