"""Folders, tags and the archive: how people put sessions in order.

They are keys of a session's metadata, one for each folder and tag, so a list finds them without reading
sessions, an export has them, and no table knows of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core import Session

ARCHIVED = "archived"
_FOLDER, _TAG = "folder:", "tag:"
_LONGEST = 200
_MOST_TAGS = 50


def read_labels(session: Session) -> dict[str, Any]:
    """Return the folder, the tags and whether a session is in the archive."""
    keys = sorted(session.metadata)
    folders = [key.removeprefix(_FOLDER) for key in keys if key.startswith(_FOLDER)]
    return {
        "folder": folders[0] if folders else None,
        "tags": [key.removeprefix(_TAG) for key in keys if key.startswith(_TAG)],
        "archived": ARCHIVED in session.metadata,
    }


def labelled(
    session: Session, *, folder: str | None, tags: Sequence[str] | None, archived: bool | None
) -> Session:
    """Return a session with other labels; None leaves one as it is, and an empty folder takes it out.

    Raises:
        ArgumentError: If a name is too long, or there are too many tags.
    """
    now = read_labels(session)
    folder = now["folder"] if folder is None else folder
    tags = now["tags"] if tags is None else tags
    if len(tags) > _MOST_TAGS:
        raise ArgumentError(f"a session has {_MOST_TAGS} tags at most, not {len(tags)}")
    for name in (*tags, *([folder] if folder else ())):
        if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST:
            raise ArgumentError(f"{name!r:.80} is not a folder or tag: 1 to {_LONGEST} characters are")
    wanted = {f"{_TAG}{name}" for name in tags} | ({f"{_FOLDER}{folder}"} if folder else set())
    wanted |= {ARCHIVED} if (now["archived"] if archived is None else archived) else set()
    kept = {key: value for key, value in session.metadata.items() if not _is_label(key)}
    metadata = {**kept, **dict.fromkeys(sorted(wanted), True)}
    return replace(session, metadata=metadata).sealed(session.seal)


def wanted_keys(
    folder: str | None,
    tag: str | None,
    archived: bool | None,  # noqa: FBT001 - one of several that are passed on
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the keys of metadata that sessions of a list must have, and those that they must not have."""
    has = [f"{_FOLDER}{folder}"] if folder else []
    has += [f"{_TAG}{tag}"] if tag else []
    has += [ARCHIVED] if archived else []
    return has, [ARCHIVED] if archived is False else []


def _is_label(key: str) -> bool:
    return key == ARCHIVED or key.startswith((_FOLDER, _TAG))
