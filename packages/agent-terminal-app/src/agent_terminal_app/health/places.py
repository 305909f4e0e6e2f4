"""Where things are kept: sessions, the log, the disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_terminal_app.health.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LITTLE_SPACE = 100 << 20
TOO_LITTLE_SPACE = 10 << 20


def check_store(database: Path) -> Iterator[Finding]:
    """See whether the sessions are whole; a database that is not there yet is not made."""
    if not database.exists():
        yield Finding("", "OK", f"none yet; they will be in {database}")
        return
    if not os.access(database, os.R_OK | os.W_OK):
        yield Finding("", "FAIL", f"{database} cannot be read and written", f"run `chmod u+rw {database}`")
        return
    from agent_app import StoreError, open_store

    remedy = f"copy {database} before anything else, then restore it from a backup"
    try:
        store = open_store(f"sqlite:///{database}")
    except StoreError as error:
        yield Finding("", "FAIL", str(error), remedy)
        return
    try:
        report = store.check()
    finally:
        store.close()
    yield from (Finding("", "FAIL", problem, remedy) for problem in report.problems)
    if not report.problems:
        yield Finding("", "OK", f"{database} is whole")


def check_log(folder: Path) -> Iterator[Finding]:
    """See whether the log can be written, and who can read it."""
    if not folder.exists():
        yield Finding("", "OK", f"nothing logged yet; it will be in {folder}")
        return
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(
            "", "WARN", f"{folder} cannot be written: nothing is logged", f"run `chmod u+rwx {folder}`"
        )
        return
    files = sorted(folder.glob("*.jsonl"))
    size = sum(file.stat().st_size for file in files)
    yield Finding("", "OK", f"{len(files)} files, {size / (1 << 20):.1f} MB in {folder}")
    for path in [folder, *files]:
        if path.stat().st_mode & 0o077:
            yield Finding("", "WARN", f"{path} can be read by others", f"run `chmod go= {path}`")


def check_space(folder: Path) -> Iterator[Finding]:
    """See whether there is room for sessions."""
    import shutil

    place = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(place).free
    remedy = f"make room on the disk of {place}"
    told = f"{free >> 20} MB free for {folder}"
    if not os.access(place, os.W_OK):
        yield Finding(
            "", "FAIL", f"{place} cannot be written", "change its permissions, or set XDG_DATA_HOME"
        )
    elif free < TOO_LITTLE_SPACE:
        yield Finding("", "FAIL", told, remedy)
    elif free < LITTLE_SPACE:
        yield Finding("", "WARN", told, remedy)
    else:
        yield Finding("", "OK", told)
