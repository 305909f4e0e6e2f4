"""What is known so far of what a person wants to connect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_terminal_app.first_run.connections import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A choice in the making; nothing of it is written anywhere yet.

    Attributes:
        embedded: Whether it shall be the embedded model.
        wants_address: Whether it is a server whose address is to be asked.
        connection: What shall answer.
        key: A key that was typed; empty to send none, None while nobody knows.
        reference: Where a key is that is there already, as settings refer to it.
        checked: Whether the provider was asked, or the person wants no check.
        models: What it offers.
        model: Which of that it shall be.
    """

    embedded: bool = False
    wants_address: bool = False
    connection: Connection | None = None
    key: str | None = field(default=None, repr=False)
    reference: str = ""
    checked: bool = False
    models: tuple[Mapping[str, Any], ...] = ()
    model: str = ""

    @property
    def chosen(self) -> Connection:
        """What shall answer, once that is known."""
        assert self.connection is not None
        return self.connection
