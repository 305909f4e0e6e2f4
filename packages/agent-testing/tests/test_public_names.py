"""What the package offers."""

from __future__ import annotations

import importlib

import pytest


@pytest.mark.parametrize("name", ["agent_testing", "agent_testing.conformance"])
def test_what_is_listed_is_what_there_is(name: str) -> None:
    module = importlib.import_module(name)
    modules = {key for key, value in vars(module).items() if type(value).__name__ == "module"}

    assert len(set(module.__all__)) == len(module.__all__)
    assert {key for key in vars(module) if not key.startswith("_")} - modules == set(module.__all__)
