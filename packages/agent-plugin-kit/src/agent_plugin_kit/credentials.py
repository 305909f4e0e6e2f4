"""Credentials that are looked up at every request, because they change, such as the tokens of a login.

A plugin offers a source under a scheme; a setting says ``SCHEME:NAME`` where the credential would stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core import AgentError

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEME = "oauth"
"""The scheme of logins."""
_sources: dict[str, Callable[[str], str]] = {}


class NoCredential(AgentError):
    """There is no credential of this name now; the message says what to do."""


def offer_credentials(scheme: str, find: Callable[[str], str]) -> None:
    """Offer credentials under a scheme; *find* returns one by its name, or raises `NoCredential`."""
    _sources[scheme] = find


def is_reference(value: object) -> bool:
    """Say whether a setting refers to a login."""
    return isinstance(value, str) and value.startswith(f"{SCHEME}:")


def look_up(value: str) -> str:
    """Return the credential that a setting refers to.

    Raises:
        NoCredential: If there is none, or nobody offers any.
    """
    scheme, _, name = value.partition(":")
    if scheme not in _sources:
        raise NoCredential(
            f"{value!r} refers to a login, and no plugin offers logins: install keelwork-oauth-login"
        )
    return _sources[scheme](name)
