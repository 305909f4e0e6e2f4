"""Where the terminal keeps attachments: with sessions that machines share, else in a folder of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_app.errors import StoreUnavailable
from agent_app.testing.postgres import create_database, shared_server
from agent_terminal_app.application import open_application
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = Settings(values={"model": "local"})


@pytest.fixture(scope="module")
def url() -> str:
    try:
        return create_database(shared_server())
    except StoreUnavailable as error:
        pytest.skip(str(error))


def machine(folder: Path) -> Paths:
    """The folders of a machine that nobody else sees."""
    folder.mkdir()
    return Paths(config=folder, data=folder, state=folder, cache=folder)


def test_a_file_that_one_machine_keeps_is_found_by_another(tmp_path: Path, url: str) -> None:
    here, there = machine(tmp_path / "here"), machine(tmp_path / "there")
    with open_application(SETTINGS, here, database=url) as sender:
        asset = sender._services.assets.put("s1", b"picture", name="a.png")  # type: ignore[union-attr]
    with open_application(SETTINGS, there, database=url) as worker:
        assert worker._services.assets.read(asset.id) == b"picture"  # type: ignore[union-attr]
    assert not here.assets.exists() and not there.assets.exists()


def test_without_such_a_database_attachments_are_in_a_folder(tmp_path: Path) -> None:
    here = machine(tmp_path / "here")
    for database in (None, f"sqlite:///{tmp_path}/shared.db"):
        with open_application(SETTINGS, here, database=database) as application:
            application._services.assets.put("s1", b"picture", name="a.png")  # type: ignore[union-attr]
    assert len(list((here.assets / "content").iterdir())) == 1
    with open_application(SETTINGS, here, ephemeral=True) as application:
        assert application._services.assets is None
