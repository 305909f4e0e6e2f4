"""Tokens at rest, and fresh ones: refreshed before they end, by one process at a time.

A server may replace the refresh token at every refresh, and take the use of an old one for theft. So whoever
refreshes holds a lock that all processes of the user share, and first looks whether another has done it.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core.product import USER_AGENT
from agent_plugin_kit import make_private_folder
from agent_plugin_kit.credentials import NoCredential

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from authlib.integrations.httpx_client import OAuth2Client

    from oauth_login.servers import Server

SERVICE = "keelwork-oauth"
EARLY = 60.0
"""Seconds before its end at which a token is refreshed; clocks and networks need some."""
_TRIES = 2
_PATIENCE = 30.0


class LoginNeeded(NoCredential):
    """There is no token, or it cannot be refreshed any more."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        how = f"type /oauth_login.login server={name} in a chat"
        super().__init__(f"you are not logged in at {name} ({why}): {how}")


class TokenStore:
    """Tokens by name: in the desktop's keyring where there is one, else in files that only the user can read.

    Args:
        folder: Where files and locks are; by default in the user's data folder.
        clock: Returns the time, in seconds since 1970.
    """

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
        self._folder = folder or Path(base) / "agent" / "oauth"
        self._clock = clock
        self._here = threading.Lock()

    def get(self, name: str) -> dict[str, Any] | None:
        """Return the token of a server, or None."""
        if (ring := _keyring()) is not None:
            text = ring.get_password(SERVICE, name)
        else:
            file = self._file(name)
            text = file.read_text(encoding="utf-8") if file.exists() else None
        token: dict[str, Any] | None = json.loads(text) if text else None
        return token

    def set(self, name: str, token: dict[str, Any]) -> None:
        """Keep a token; when it ends is counted by our own clock, whatever the server's says."""
        kept = {key: value for key, value in token.items() if key != "expires_at"}
        if "expires_in" in token:
            kept["expires_at"] = self._clock() + float(token["expires_in"])
        text = json.dumps(kept)
        if (ring := _keyring()) is not None:
            ring.set_password(SERVICE, name, text)
            return
        make_private_folder(self._folder)
        unfinished = self._file(name).with_suffix(f".{os.getpid()}.part")
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        unfinished.replace(self._file(name))

    def remove(self, name: str) -> None:
        """Forget a token."""
        if (ring := _keyring()) is not None:
            if ring.get_password(SERVICE, name):
                ring.delete_password(SERVICE, name)
            return
        self._file(name).unlink(missing_ok=True)

    def is_fresh(self, token: dict[str, Any]) -> bool:
        """Say whether a token is good for a while."""
        return "expires_at" not in token or token["expires_at"] - EARLY > self._clock()

    def access_token(self, server: Server) -> str:
        """Return an access token that is good for a while, refreshed if need be.

        Raises:
            LoginNeeded: If somebody has to log in first.
        """
        token = self.get(server.name)
        if token is not None and self.is_fresh(token):
            return str(token["access_token"])
        with self._here, self._lock(server.name):
            token = self.get(server.name)  # another thread or process may have been quicker
            if token is None:
                raise LoginNeeded(server.name, "there is no token")
            if not self.is_fresh(token):
                token = self._refresh(server, token)
        return str(token["access_token"])

    def _refresh(self, server: Server, token: dict[str, Any]) -> dict[str, Any]:
        if not token.get("refresh_token"):
            raise LoginNeeded(server.name, "the token has ended, and the server gave none to refresh it")
        import httpx2  # heavy, and needed once an hour
        from authlib.integrations.base_client import OAuthError

        complete, new = server.complete(), {}
        for attempt in range(1, _TRIES + 1):
            try:
                with client_of(complete) as client:
                    new = client.refresh_token(complete.token_endpoint, refresh_token=token["refresh_token"])
                break
            except OAuthError as error:
                self.remove(server.name)
                raise LoginNeeded(
                    server.name, f"the server refuses to refresh the token: {error.error}"
                ) from error
            except httpx2.HTTPError as error:  # the answer may be lost, so it is asked for once more
                if attempt == _TRIES:
                    raise NoCredential(
                        f"the token of {server.name} cannot be refreshed now: {error}"
                    ) from error
        kept = {"refresh_token": token["refresh_token"], **new}
        self.set(server.name, kept)
        stored = self.get(server.name)
        assert stored is not None
        return stored

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    @contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        """Hold the lock that all processes of the user share."""
        make_private_folder(self._folder)
        with (self._folder / f"{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def client_of(server: Server, **more: Any) -> OAuth2Client:
    """Return a client that proves who we are: by a secret if there is one, else by name."""
    from authlib.integrations.httpx_client import OAuth2Client

    method = "client_secret_basic" if server.client_secret else "none"
    return OAuth2Client(
        server.client_id,
        server.client_secret or None,
        token_endpoint_auth_method=method,
        scope=" ".join(server.scopes) or None,
        headers={"User-Agent": USER_AGENT},
        timeout=_PATIENCE,
        **more,
    )


def _keyring() -> Any:
    """Return the desktop's keyring, if there is one and it is wanted."""
    if os.environ.get("AGENT_KEYRING") == "off":
        return None
    try:
        import keyring
    except ImportError:
        return None
    backend = keyring.get_keyring()
    return backend if backend.priority > 0 else None
