"""What is loaded when it is first used (PEP 562), so that a start waits for nothing that it does not need.

The libraries below take a while to load, and many programs do without them: `lazy.asyncio.sleep(1)`.
`lazy_names` makes such a door of any module. Type checkers see ordinary imports::

    if TYPE_CHECKING:
        from package.heavy import Heavy

    __getattr__ = lazy_names(__name__, {"package.heavy": ("Heavy",)})
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    import difflib
    import logging
    import mimetypes
    from collections.abc import Callable, Mapping

__all__ = ["asyncio", "difflib", "lazy_names", "logging", "mimetypes"]


def lazy_names(
    module: str,
    homes: Mapping[str, tuple[str, ...]],
    load: Callable[[str], Any] = import_module,
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module.

    Args:
        module: The name of that module.
        homes: The names that it offers, by the module that has them; without names, the module itself.
        load: Imports a module.
    """
    home_of = {name: home for home, names in homes.items() for name in names or (home,)}

    def load_name(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = home_of[name]
        value = load(home) if home == name else getattr(load(home), name)
        setattr(sys.modules[module], name, value)
        return value

    return load_name


__getattr__ = lazy_names(__name__, {"asyncio": (), "difflib": (), "logging": (), "mimetypes": ()})
