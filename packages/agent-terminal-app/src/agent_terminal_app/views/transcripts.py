"""Conversations as files for reading: Markdown, HTML, JSON, by the end of the file's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_app.transfer.forms import readable
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.settings.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent_app import AgentApplication

FORMS: Mapping[str, str] = {".md": "md", ".html": "html", ".json": "json"}
"""How a session is written, by the end of the file's name."""


def write_transcript(app: AgentApplication, session_id: str, path: Path, *, redact: bool = True) -> None:
    """Write a stored session in the form that the end of the file's name stands for.

    Args:
        redact: Whether what looks like a secret is left out.

    Raises:
        CommandError: If it stands for none, or the file cannot be written.
        SessionNotFound: If there is no such session.
    """
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise CommandError(f"{path.name!r} ends in none of {', '.join(FORMS)}", code=Exit.USAGE)
    info, session = app.session_info(session_id), app.load_session(session_id)
    try:
        replace_file(path, readable(info, session, form, redact=redact), mode=0o600)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error
