"""Names of a module that are loaded when they are first used (PEP 562).

A door to heavy parts, which type checkers see as ordinary imports::

    if TYPE_CHECKING:
        from package.heavy import Heavy

    __getattr__ = lazy_names(__name__, {"package.heavy": ("Heavy",)})

So a start waits for nothing that it does not use, and no function has imports of its own.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(
    module: str,
    homes: Mapping[str, tuple[str, ...]],
    load: Callable[[str], Any] = import_module,
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module.

    Args:
        module: The name of that module.
        homes: The names that it offers, by the module that has them.
        load: Imports a module.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def load_name(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(load(home_of[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return load_name
