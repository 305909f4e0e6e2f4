"""Which folders are trusted: those listed and what is in them; all where nobody keeps a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_plugin_kit.trust import is_trusted, trusted_folders

if TYPE_CHECKING:
    from pathlib import Path


def test_a_list_counts_and_what_only_begins_alike_does_not(tmp_path: Path) -> None:
    (tmp_path / "site" / "src").mkdir(parents=True)
    (tmp_path / "site-evil").mkdir()
    (tmp_path / "site" / "link").symlink_to(tmp_path / "site-evil")
    trusted = trusted_folders({"trusted_folders": [str(tmp_path / "site")]})

    assert is_trusted(tmp_path / "site", trusted)
    assert is_trusted(tmp_path / "site" / "src", trusted)
    assert not is_trusted(tmp_path / "site-evil", trusted)
    assert not is_trusted(tmp_path / "site" / "link", trusted)
    assert not is_trusted(tmp_path, trusted)


def test_without_a_list_everything_counts(tmp_path: Path) -> None:
    assert is_trusted(tmp_path, trusted_folders({}))
    assert not is_trusted(tmp_path, trusted_folders({"trusted_folders": []}))
