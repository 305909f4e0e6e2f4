"""What is loaded at first use: for type checkers it must be what it is for Python."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app import chat, lazy, views

if TYPE_CHECKING:
    from types import ModuleType


@pytest.mark.parametrize("module", [chat, lazy, views], ids=lambda module: str(module.__name__))
def test_every_name_can_be_used_and_comes_from_where_type_checkers_look(module: ModuleType) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        str(node.module): tuple(alias.name for alias in node.names)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
    }

    assert seen == module.HOMES
    assert {name for names in seen.values() for name in names} <= {*module.__all__}
    assert all(hasattr(module, name) for name in module.__all__)
