"""Sessions and agents over HTTP: one application for browsers, programs and other machines.

Start with `create_server`, which returns an ASGI application, or `serve`, which runs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_server.access import LocalAccess, new_token
    from agent_server.application import create_server
    from agent_server.listener import background, serve

__all__ = ["LocalAccess", "background", "create_server", "new_token", "serve"]

# A name is loaded when it is first used: FastAPI alone takes as long as everything else.
_HOME_OF = {
    "LocalAccess": "agent_server.access",
    "background": "agent_server.listener",
    "create_server": "agent_server.application",
    "new_token": "agent_server.access",
    "serve": "agent_server.listener",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value
