"""What durable runs keep on disk is for its owner alone, and has no keys in it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from agent_core import ArgumentError
from agent_durable.service import _address, _check_no_secret, _workers_address

if TYPE_CHECKING:
    from pathlib import Path


def test_the_files_of_runs_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        address = _address(f"sqlite:///{tmp_path}/new/app.db")
        _workers_address(address)
    finally:
        os.umask(before)

    files = sorted((tmp_path / "new").iterdir())
    assert [file.name for file in files] == ["app.db.runs", "app.db.runs.workers"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "overrides",
    [
        {"api_key": "abc"},
        {"extra_headers": {"Authorization": "Bearer 0123456789abcdef0123"}},
        {"note": "sk-proj-0123456789abcdefghij"},
        {"nested": {"x-api-key": "abc"}},
    ],
)
def test_keys_do_not_travel_with_a_run(overrides: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match="is a secret"):
        _check_no_secret(overrides)


def test_other_settings_do() -> None:
    _check_no_secret({"temperature": 0.2, "model": "small", "api_key": "", "stop": ["sk"]})
