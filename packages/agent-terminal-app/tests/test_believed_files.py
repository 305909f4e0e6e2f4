"""A file that others may have written decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.application import open_quietly
from agent_terminal_app.cli import main
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings.trust import trust_list

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    (tmp_path / "project" / ".agent").mkdir(parents=True)
    (tmp_path / "project" / ".agent" / "config.toml").write_text('model = "other"')
    monkeypatch.chdir(tmp_path / "project")
    with pytest.raises(SystemExit):
        main(["config", "trust"])
    assert open_quietly().settings.values["model"] == "other"
    return trust_list(Paths.of_this_user())


def test_a_list_of_trust_that_others_can_write_trusts_nobody(trusted: Path) -> None:
    trusted.chmod(0o666)

    assert "model" not in open_quietly().settings.values


def test_nor_does_one_in_a_folder_that_others_can_write(trusted: Path) -> None:
    trusted.parent.chmod(0o777)

    assert "model" not in open_quietly().settings.values
    with pytest.raises(SystemExit) as ended:
        main(["config", "trust"])
    assert ended.value.code != 0
