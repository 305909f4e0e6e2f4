"""Modules whose names are loaded at first use: for type checkers they must be what they are for Python."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOORS = {
    ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): file
    for source in sorted(ROOT.glob("p*/*/src"))
    for file in sorted(source.rglob("*.py"))
    if "__getattr__ = lazy_names(__name__, HOMES" in file.read_text(encoding="utf-8")
}


def test_there_are_such_modules() -> None:
    assert {"agent_core.pipeline", "agent_terminal_app.lazy"} <= {*DOORS}


@pytest.mark.parametrize("name", DOORS)
def test_a_door_loads_names_from_where_type_checkers_look(name: str) -> None:
    module = import_module(name)
    tree = ast.parse(DOORS[name].read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        str(node.module): tuple(alias.name for alias in node.names)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
    } | {alias.name: () for node in block.body if isinstance(node, ast.Import) for alias in node.names}

    assert seen == module.HOMES
    assert {one for home, names in seen.items() for one in names or (home,)} <= {*module.__all__}
    assert all(hasattr(module, one) for one in module.__all__)
