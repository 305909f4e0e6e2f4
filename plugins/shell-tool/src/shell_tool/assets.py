"""Long output for the person who watches: the whole of it, in the application's store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shell_tool.output import Output

_NAME = "shell-output.txt"
_KIND = "text/plain"


class Whole:
    """Keeps the output of one command, if it is more than the model reads at once.

    It is done when the command ends, whoever ended it and whether anybody waits: a command in the background
    may be asked about later, or never.

    Args:
        context: What the call was told; it has the store, if there is one.
        session_id: Whose output it is.
        limit: How many bytes the model reads.

    Attributes:
        told: What results say about it; empty if there is nothing to say.
    """

    def __init__(self, context: Mapping[str, Any] | None, session_id: str, limit: int) -> None:
        self.told: dict[str, Any] = {}
        self._store = (context or {}).get("session_asset_store")
        self._session_id = session_id
        self._limit = limit

    def keep(self, output: Output) -> None:
        """Put what there is of an output into the store."""
        is_short = output.total <= self._limit and not output.is_full
        if self._store is None or not self._session_id or is_short:
            return
        try:
            with output.file() as whole:
                asset = self._store.put(self._session_id, whole, name=_NAME, media_type=_KIND)
        except Exception as error:  # noqa: BLE001 - a stranger's store; the command has run, whatever it says
            self.told = {"asset_problem": f"the whole output could not be kept: {error}"}
        else:
            self.told = {"asset_id": asset.id}
