"""Whole sessions as files: to keep, to move, to give away.

::

    format      what is in such a file, and how JSON from strangers is read
    export      export_session: a stored session as a file, without secrets
    archive     the parts of a file from strangers, checked before they are used
    transcript  the messages of such a file, rebuilt from what a person sees of them
    importer    import_session: a file as a stored session, with new ids
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.lazy import lazy_names

if TYPE_CHECKING:
    from agent_app.transfer.export import export_session, export_session_file
    from agent_app.transfer.format import ImportedSession, ImportLimits, ImportRefused, SystemMessagesRefused
    from agent_app.transfer.importer import import_session

__all__ = [
    "ImportLimits",
    "ImportRefused",
    "ImportedSession",
    "SystemMessagesRefused",
    "export_session",
    "export_session_file",
    "import_session",
]

# A name is loaded when it is first used: most programs move no sessions.
HOMES = {
    "agent_app.transfer.export": ("export_session", "export_session_file"),
    "agent_app.transfer.format": (
        "ImportedSession",
        "ImportLimits",
        "ImportRefused",
        "SystemMessagesRefused",
    ),
    "agent_app.transfer.importer": ("import_session",),
}
__getattr__ = lazy_names(__name__, HOMES)
