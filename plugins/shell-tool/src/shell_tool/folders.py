"""Where a command runs: in the workspace, and nowhere else.

This keeps a call from starting elsewhere by mistake. It does not keep a command from going elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shell_tool.errors import Refused


def workspace_roots(context: Mapping[str, Any] | None, configured: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the folders of the session, or else those of the settings.

    Raises:
        Refused: If there are none.
    """
    metadata = (context or {}).get("session_metadata")
    told = metadata.get("workspace_roots") if isinstance(metadata, Mapping) else None
    texts = (
        [text for text in told if isinstance(text, str) and text] if isinstance(told, (list, tuple)) else []
    )
    roots = tuple(Path(text) for text in texts) or configured
    if not roots:
        raise Refused(
            "there is no folder to run commands in: open the session in a workspace, "
            "or name folders in the setting 'roots'"
        )
    return roots


def working_folder(asked: str | None, roots: tuple[Path, ...]) -> Path:
    """Return the folder that a call asks for, the first root by default, with all links resolved.

    Raises:
        Refused: If it is not there, is no folder, or is outside of the roots.
    """
    real_roots = [Path(os.path.realpath(root)) for root in roots]
    if asked is not None and "\0" in asked:
        raise Refused("cwd has a NUL character in it: name a folder of the workspace")
    folder = Path(os.path.realpath(roots[0] / (asked or "")))
    if not any(folder.is_relative_to(root) for root in real_roots):
        names = ", ".join(str(root) for root in roots)
        raise Refused(f"cwd {asked!r} is outside of the workspace: name a folder below {names}")
    if not folder.is_dir():
        raise Refused(f"cwd {asked or str(roots[0])!r} is no folder: make it first, or name another one")
    return folder
