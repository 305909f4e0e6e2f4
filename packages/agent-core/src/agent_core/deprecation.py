"""How something public goes: for a release it works as before and says what to use in its place.

::

    @deprecated("use Agent.run", goes_in="0.3")
    def run_agent(...): ...

    def __getattr__(name):  # of a module
        return renamed(__name__, name, {"OldName": (NewName, "0.3")})
"""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

C = TypeVar("C", bound="Callable[..., Any]")


def deprecated(instead: str, *, goes_in: str) -> Callable[[C], C]:
    """Return a decorator for a function or a class that will go.

    Args:
        instead: What to do in its place, as an instruction.
        goes_in: The first version without it.
    """

    def mark(thing: C) -> C:
        text = f"{thing.__qualname__} goes in version {goes_in}: {instead}"
        if inspect.isclass(thing):
            made = thing.__init__

            @functools.wraps(made)
            def init(self: Any, *given: Any, **named: Any) -> None:
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                made(self, *given, **named)

            thing.__init__ = init  # type: ignore[method-assign]  # the class itself stays, for isinstance
            return thing

        @functools.wraps(thing)
        def call(*given: Any, **named: Any) -> Any:
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return thing(*given, **named)

        return call  # type: ignore[return-value]  # it takes and returns what the function does

    return mark


def renamed(module: str, name: str, names: Mapping[str, tuple[Any, str]]) -> Any:
    """Return what a name of a module stands for now; for the `__getattr__` of that module.

    Args:
        names: The new value of each old name, and the first version without the old one.

    Raises:
        AttributeError: If it is not an old name either.
    """
    if name not in names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    value, goes_in = names[name]
    now = getattr(value, "__qualname__", None) or repr(value)
    warnings.warn(f"{module}.{name} goes in version {goes_in}: use {now}", DeprecationWarning, stacklevel=3)
    return value
