"""Whole sessions as files: to keep, to move, to give away.

::

    form         what is in such a file
    writing      export_session: a stored session as a file, secrets taken out
    strict       JSON from strangers
    reading      the parts of a file from strangers, checked before anything is made of them
    importing    import_session: a file as a stored session, under ids of its own
"""

from agent_app.transfer.form import ImportedSession, ImportLimits, ImportRefused
from agent_app.transfer.importing import import_session
from agent_app.transfer.writing import export_session, export_session_file

__all__ = [
    "ImportLimits",
    "ImportRefused",
    "ImportedSession",
    "export_session",
    "export_session_file",
    "import_session",
]
