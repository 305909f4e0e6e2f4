"""What every part of the application works with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_app.services import Services


class ApplicationBase:
    """Holds the services of one application.

    Attributes:
        config: The configuration.
    """

    config: dict[str, Any]
    _services: Services
