"""What others build on: public names are listed, and none goes without a release that deprecates it."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).parent / "public_names.json"
LISTED: dict[str, dict[str, list[str]]] = json.loads(LIST.read_text(encoding="utf-8"))


def parameters(value: Any) -> list[str]:
    """Give the names of the parameters; none where there is nothing to call, or no telling."""
    if not callable(value):
        return []
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one.name for one in found if not one.name.startswith("_")]


def public(package: str) -> dict[str, list[str]]:
    module = importlib.import_module(package)
    return {name: parameters(getattr(module, name)) for name in sorted(module.__all__)}


@pytest.mark.parametrize("package", sorted(LISTED))
def test_no_public_name_and_no_parameter_goes_unnoticed(package: str) -> None:
    now, listed = public(package), LISTED[package]
    gone = sorted(listed.keys() - now.keys())
    lost = {name: lost for name in listed if name in now and (lost := set(listed[name]) - set(now[name]))}

    assert gone == [], "deprecate them for a release first (docs/reference/compatibility.md)"
    assert lost == {}, "parameters are public as well"


@pytest.mark.parametrize("package", sorted(LISTED))
def test_every_public_name_is_listed(package: str) -> None:
    new = sorted(public(package).keys() - LISTED[package].keys())

    assert new == [], f"add them to {LIST.name}: python tests/test_public_names.py"


@pytest.mark.parametrize("package", sorted(LISTED))
def test_no_module_takes_the_place_of_a_public_name(package: str) -> None:
    """Importing a module of that name would replace the name by the module."""
    modules = {found.name for found in pkgutil.iter_modules(importlib.import_module(package).__path__)}

    assert modules & LISTED[package].keys() == set()


if __name__ == "__main__":
    found = {package: public(package) for package in LISTED}
    LIST.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
