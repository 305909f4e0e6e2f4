"""What the system says about files, told as what it means for whoever keeps an asset."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent_app.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def disk_errors(place: object) -> Iterator[None]:
    """Raise `StoreUnavailable` for what goes wrong with the files of *place*."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"{place} cannot be used now ({error.strerror or error}): nothing was kept; "
            "check disk space, rights, and links in it"
        ) from error
