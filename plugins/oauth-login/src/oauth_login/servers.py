"""The authorisation servers that the settings declare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent_core import ConfigError
from agent_core.product import USER_AGENT

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTING = "oauth_servers"
_ENDPOINTS = (
    "authorization_endpoint",
    "device_authorization_endpoint",
    "revocation_endpoint",
    "token_endpoint",
)
_FIELDS = (*_ENDPOINTS, "issuer", "client_id", "client_secret", "scopes", "flow")
_LOCAL = ("127.0.0.1", "localhost", "::1")
_PATIENCE = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """An authorisation server, and who we are there.

    Attributes:
        name: Under which its token is kept, and to which settings refer: ``oauth:NAME``.
        flow: `device` shows a code to type elsewhere (RFC 8628); `browser` opens a page here (RFC 7636).
        issuer: Where its metadata is (RFC 8414); endpoints that are declared count before those in there.
    """

    name: str
    client_id: str
    client_secret: str = ""
    scopes: tuple[str, ...] = ()
    flow: str = "device"
    issuer: str = ""
    authorization_endpoint: str = ""
    device_authorization_endpoint: str = ""
    revocation_endpoint: str = ""
    token_endpoint: str = ""

    def complete(self) -> Server:
        """Return the server with the endpoints that its metadata names.

        Raises:
            ConfigError: If it has none that is needed.
        """
        needed = "device_authorization_endpoint" if self.flow == "device" else "authorization_endpoint"
        known = {name: getattr(self, name) for name in _ENDPOINTS}
        if self.issuer and not (known[needed] and known["token_endpoint"]):
            found = _metadata(self.issuer)
            known = {name: known[name] or str(found.get(name, "")) for name in _ENDPOINTS}
        for name in (needed, "token_endpoint"):
            if not known[name]:
                raise ConfigError(
                    f"{SETTING}.{self.name}: {name} is missing, and its issuer does not name it"
                )
        for name, address in known.items():
            _check(self.name, name, address)
        from dataclasses import replace

        return replace(self, **known)


def read_servers(config: Mapping[str, Any]) -> dict[str, Server]:
    """Return the declared servers by name.

    Raises:
        ConfigError: If one cannot be used.
    """
    given = (config.get("plugins") or {}).get("oauth_login", {}).get(SETTING) or config.get(SETTING) or {}
    return {name: _read(name, dict(one)) for name, one in given.items()}


def _read(name: str, given: dict[str, Any]) -> Server:
    for key in given:
        if key not in _FIELDS:
            raise ConfigError(
                f"{SETTING}.{name}: there is no setting {key!r}; known are {', '.join(_FIELDS)}"
            )
    if not given.get("client_id"):
        raise ConfigError(f"{SETTING}.{name}: client_id is missing")
    if given.get("flow", "device") not in ("device", "browser"):
        raise ConfigError(f"{SETTING}.{name}: flow must be device or browser, not {given['flow']!r}")
    return Server(name=name, **{**given, "scopes": tuple(given.get("scopes", ()))})


def _check(name: str, endpoint: str, address: str) -> None:
    parts = urlsplit(address)
    if address and parts.scheme != "https" and parts.hostname not in _LOCAL:
        raise ConfigError(f"{SETTING}.{name}: {endpoint} must begin with https://")


def _metadata(issuer: str) -> dict[str, Any]:
    import httpx2  # heavy, and needed only to log in

    parts = urlsplit(issuer)
    _check(issuer, "issuer", issuer)
    place = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server{parts.path.rstrip('/')}"
    try:
        answer = httpx2.get(place, headers={"User-Agent": USER_AGENT}, timeout=_PATIENCE)
        answer.raise_for_status()
        found = answer.json()
    except (httpx2.HTTPError, ValueError) as error:
        raise ConfigError(f"the metadata of {issuer} cannot be had: {error}") from error
    return found if isinstance(found, dict) else {}
