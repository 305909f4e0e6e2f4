"""Files written whole or not at all: whoever reads sees the old content or the new, never half of one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def replace_file(path: Path, content: str, *, mode: int, folder_mode: int = 0o755) -> None:
    """Put *content* in the place of a file, making its folder if there is none.

    A link stays a link: the file that it leads to is replaced.

    Raises:
        OSError: If that cannot be done; the old content is still there then.
    """
    import tempfile

    target = path.resolve()
    if not target.parent.is_dir():
        target.parent.mkdir(mode=folder_mode, parents=True, exist_ok=True)
        target.parent.chmod(folder_mode)  # what the umask took away
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
