"""Modules whose names are loaded at first use."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from agent_core.lazy import lazy_names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module that offers a name of another one, which counts how often it is loaded."""
    (tmp_path / "heavy_part.py").write_text("from door_of_test import loads\nloads.append(1)\nWEIGHT = 80\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = ModuleType("door_of_test")
    module.__dict__["loads"] = []
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.__dict__["__getattr__"] = lazy_names(module.__name__, {"heavy_part": ("WEIGHT",)})
    yield module
    sys.modules.pop("heavy_part", None)


def test_a_name_is_loaded_when_it_is_first_used_and_kept(door: ModuleType) -> None:
    before = list(door.loads)

    assert before == []
    assert (door.WEIGHT, door.WEIGHT) == (80, 80)
    assert door.loads == [1]
    assert "WEIGHT" in vars(door)


def test_another_name_is_an_attribute_error(door: ModuleType) -> None:
    with pytest.raises(AttributeError, match="module 'door_of_test' has no attribute 'HEIGHT'"):
        _ = door.HEIGHT
    assert door.loads == []
