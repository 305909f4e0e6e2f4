"""Long output for the person who watches: the whole of it, in the application's store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shell_tool.jobs import Job

_NAME = "shell-output.txt"
_KIND = "text/plain"


def keep_whole(job: Job, context: Mapping[str, Any] | None) -> dict[str, Any]:
    """Put what is kept of a command's output into the store, and return what the result says of it."""
    store = (context or {}).get("session_asset_store")
    if store is None or not job.session_id:
        return {}
    try:
        with job.running.output.file() as whole:
            asset = store.put(job.session_id, whole, name=_NAME, media_type=_KIND)
    except Exception as error:  # noqa: BLE001 - a stranger's store; the command has run, whatever it says
        return {"asset_problem": f"the whole output could not be kept: {error}"}
    return {"asset_id": asset.id}
