"""A typed client of an agent server, whose streams survive a lost connection.

::

    from agent_client import Client

    with Client("http://127.0.0.1:8421", token) as client:
        session = client.create_session()
        for event in client.run(session.id, "Hello"):
            print(event.type, event.data)
"""

from agent_client.async_client import AsyncClient
from agent_client.client import Client
from agent_client.errors import (
    ClientError,
    Conflict,
    ConnectionLost,
    CursorGone,
    NotAllowed,
    NotFound,
    Refused,
    RunFailed,
)
from agent_client.values import Approval, Asset, Event, Grant, Page, Result, Session, Waiting

__all__ = [
    "Approval",
    "Asset",
    "AsyncClient",
    "Client",
    "ClientError",
    "Conflict",
    "ConnectionLost",
    "CursorGone",
    "Event",
    "Grant",
    "NotAllowed",
    "NotFound",
    "Page",
    "Refused",
    "Result",
    "RunFailed",
    "Session",
    "Waiting",
]
