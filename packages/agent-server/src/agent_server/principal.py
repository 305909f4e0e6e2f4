"""Who makes a request, and how much that needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

PRINCIPAL = "keelwork.principal"
"""Where the scope of a request has who makes it."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OPERATOR = re.compile(r"/v1/(settings|keys|doctor|metrics|setup|models/test)(/.*)?|/v1/agents/.+|/metrics")
_MANAGER = re.compile(r"/v1/(people|audit)(/.*)?")
_OWN = re.compile(r"/v1/me(/.*)?|/logout")
_SHARING = re.compile(r"/v1/sessions/[^/]+/(shares|links)(/.*)?")


class Level(IntEnum):
    """What a request needs, and what a role or the scope of a key allows."""

    READ = 1
    WRITE = 2
    MANAGE = 3
    OPERATE = 4


ROLES = {"viewer": Level.READ, "editor": Level.WRITE, "owner": Level.MANAGE}
SCOPES = {"read": Level.READ, "write": Level.WRITE, "manage": Level.MANAGE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who makes a request.

    Attributes:
        id: The person, or "local" for whoever has the token of the server.
        tenant: Whose sessions there are; None for all.
        level: What this request may do.
        email: By which others invite the person.
        session: The only session that there is, for whoever has a link to it.
    """

    id: str = "local"
    tenant: str | None = None
    level: Level = Level.OPERATE
    email: str = ""
    session: str | None = None


def needed(method: str, path: str) -> Level:
    """Return what a request needs."""
    if _OPERATOR.fullmatch(path):
        return Level.OPERATE
    if _MANAGER.fullmatch(path):
        return Level.MANAGE
    if _OWN.fullmatch(path):
        return Level.READ
    if _SHARING.fullmatch(path):  # also to list it: it has the addresses of people
        return Level.WRITE
    return Level.READ if method in SAFE else Level.WRITE
