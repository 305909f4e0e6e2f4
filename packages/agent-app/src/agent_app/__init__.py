"""Sessions, lifecycles, application plugins, and stores that lose nothing.

Start with `AgentApplication`: it holds sessions in a store, runs their agents, and keeps what happens.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_app.app_plugins import ApplicationPlugin
    from agent_app.application import AgentApplication
    from agent_app.assets import SessionAssetStore
    from agent_app.errors import (
        DecisionNotAccepted,
        InputWithdrawn,
        LeaseLost,
        RevisionConflict,
        SessionBusy,
        SessionExists,
        SessionHeld,
        SessionNotFound,
        SessionOutdated,
        StoreDamaged,
        StoreError,
        StoreTooNew,
        StoreUnavailable,
        WriteRefused,
    )
    from agent_app.store import open_store
    from agent_app.store.base import Approval, Grant, Lease, Page, SessionInfo, SessionStore, Waiting

__all__ = [
    "AgentApplication",
    "ApplicationPlugin",
    "Approval",
    "DecisionNotAccepted",
    "Grant",
    "InputWithdrawn",
    "Lease",
    "LeaseLost",
    "Page",
    "RevisionConflict",
    "SessionAssetStore",
    "SessionBusy",
    "SessionExists",
    "SessionHeld",
    "SessionInfo",
    "SessionNotFound",
    "SessionOutdated",
    "SessionStore",
    "StoreDamaged",
    "StoreError",
    "StoreTooNew",
    "StoreUnavailable",
    "Waiting",
    "WriteRefused",
    "open_store",
]

# A name is loaded when it is first used, so that a program pays only for the parts that it touches.
_HOMES = {
    "agent_app.app_plugins": ("ApplicationPlugin",),
    "agent_app.application": ("AgentApplication",),
    "agent_app.assets": ("SessionAssetStore",),
    "agent_app.errors": (
        "DecisionNotAccepted",
        "InputWithdrawn",
        "LeaseLost",
        "RevisionConflict",
        "SessionBusy",
        "SessionExists",
        "SessionHeld",
        "SessionNotFound",
        "SessionOutdated",
        "StoreDamaged",
        "StoreError",
        "StoreTooNew",
        "StoreUnavailable",
        "WriteRefused",
    ),
    "agent_app.store": ("open_store",),
    "agent_app.store.base": ("Approval", "Grant", "Lease", "Page", "SessionInfo", "SessionStore", "Waiting"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value
