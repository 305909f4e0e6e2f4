"""Folders, tags, pins and the archive: how people put sessions in order.

They are keys of a session's metadata, one for each folder and tag, so a list finds them without reading
sessions, an export has them, and no table knows of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core import ArgumentError
from agent_core.dict_form import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_core import Session

ARCHIVED, PINNED = "archived", "pinned"
_FOLDER, _TAG = "folder:", "tag:"
_LONGEST = 200
_MOST_TAGS = 50


def read_labels(session: Session) -> dict[str, Any]:
    """Return the folder and the tags of a session, whether it is pinned, and whether it is in the archive."""
    return labels_of(session.metadata)


def labels_of(found: Iterable[str]) -> dict[str, Any]:
    """Return the labels that keys of metadata stand for."""
    keys = sorted(found)
    folders = [key.removeprefix(_FOLDER) for key in keys if key.startswith(_FOLDER)]
    return {
        "folder": folders[0] if folders else None,
        "tags": [key.removeprefix(_TAG) for key in keys if key.startswith(_TAG)],
        "archived": ARCHIVED in keys,
        "pinned": PINNED in keys,
    }


def names_in_use(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the folders and tags that sessions have, and how many have each."""

    def counted(mark: str) -> list[dict[str, Any]]:
        named = [(key.removeprefix(mark), count) for key, count in counts.items() if key.startswith(mark)]
        return [{"name": name, "sessions": count} for name, count in sorted(named)]

    return {"folders": counted(_FOLDER), "tags": counted(_TAG), "archived": counts.get(ARCHIVED, 0)}


def labelled(
    session: Session,
    *,
    folder: str | None,
    tags: Sequence[str] | None,
    archived: bool | None,
    pinned: bool | None,
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
    wanted |= {PINNED} if (now["pinned"] if pinned is None else pinned) else set()
    kept = {key: value for key, value in session.metadata.items() if not _is_label(key)}
    metadata = {**kept, **dict.fromkeys(sorted(wanted), True)}
    return replace(session, metadata=metadata).sealed(session.seal)


def wanted_keys(
    folder: str | None,
    tag: str | None,
    archived: bool | None,  # noqa: FBT001 - one of several that are passed on
    pinned: bool | None,  # noqa: FBT001
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the keys of metadata that sessions of a list must have, and those that they must not have."""
    has = [f"{_FOLDER}{folder}"] if folder else []
    has += [f"{_TAG}{tag}"] if tag else []
    has += [ARCHIVED] if archived else []
    has += [PINNED] if pinned else []
    return has, [key for key, is_wanted in ((ARCHIVED, archived), (PINNED, pinned)) if is_wanted is False]


def _is_label(key: str) -> bool:
    return key in (ARCHIVED, PINNED) or key.startswith((_FOLDER, _TAG))
