"""The application plugin: actions to log in, to see how that stands, and to log out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_plugin_kit.credentials import SCHEME, offer_credentials
from oauth_login.logins import Logins
from oauth_login.servers import SETTING, read_servers
from oauth_login.tokens import LoginNeeded, TokenStore, client_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oauth_login.logins import Pending
    from oauth_login.servers import Server

_SERVER = {"type": "string", "required": True, "description": "The name of the server in the settings."}


class OAuthLogin:
    """Logs in at authorisation servers, and gives tokens to whoever refers to them as ``oauth:NAME``."""

    name = "oauth_login"
    version = "0.1.0"

    def __init__(self, store: TokenStore | None = None) -> None:
        self._store = store or TokenStore()
        self._logins = Logins(self._store)
        self._servers: dict[str, Server] = {}

    def get_config_schema(self) -> dict[str, Any]:
        return {SETTING: {"type": "object", "default": {}, "description": "Authorisation servers by name."}}

    def init(self, app_config: Mapping[str, Any]) -> dict[str, Any]:
        """Read the settings, and offer tokens from now on."""
        self._servers = read_servers(app_config)
        offer_credentials(SCHEME, self.access_token)
        return {}

    def access_token(self, name: str) -> str:
        """Return a token that is good for a while.

        Raises:
            LoginNeeded: If somebody has to log in first.
        """
        if name not in self._servers:
            raise LoginNeeded(name, f"{SETTING} has no server of this name")
        return self._store.access_token(self._servers[name])

    def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        one = {"server": _SERVER}
        return [
            {"id": "login", "label": "Log in", "inputs": one},
            {"id": "check_status", "label": "Check a login", "inputs": one},
            {"id": "logout", "label": "Log out", "inputs": one},
            {"id": "status", "label": "List logins", "inputs": {}},
        ]

    def execute_action(
        self, app: Any, action_id: str, params: dict[str, Any], context: Any, state: dict[str, Any]
    ) -> dict[str, Any]:
        """Run an action; what went wrong is shown, and not raised: it is an answer for a person."""
        if action_id == "status":
            return self._status()
        ways = {"login": self._login, "check_status": self._check, "logout": self._logout}
        if action_id not in ways:
            raise ValueError(f"there is no action {action_id!r}")
        server = self._servers.get(params["server"])
        if server is None:
            known = ", ".join(self._servers) or "none"
            raise ValueError(f"{SETTING} has no server {params['server']!r}; there is {known}")
        try:
            return ways[action_id](server)
        except AgentError as error:
            return {"status": "failed", "display": _display(server, str(error), "error")}

    def _login(self, server: Server) -> dict[str, Any]:
        pending = self._logins.begin(server)
        return {"status": "waiting", "url": pending.url, "code": pending.code, "display": _card(pending)}

    def _check(self, server: Server) -> dict[str, Any]:
        stands = self._logins.check(server.name)
        texts = {
            "done": ("You are logged in.", "success"),
            "waiting": ("The login is not finished yet. Finish it in the browser, then check again.", "info"),
            "none": ("You are not logged in, and no login has begun.", "warning"),
        }
        return {"status": stands, "display": _display(server, *texts[stands])}

    def _logout(self, server: Server) -> dict[str, Any]:
        """Revoke the tokens at the server (RFC 7009) and forget them; they are forgotten in any case."""
        token = self._store.get(server.name)
        if token is None:
            return {"status": "none", "display": _display(server, "You were not logged in.", "info")}
        self._store.remove(server.name)
        problem = self._revoke(server, token)
        text = "You are logged out." if not problem else f"The token is forgotten, but not revoked: {problem}"
        return {"status": "done", "display": _display(server, text, "warning" if problem else "success")}

    def _revoke(self, server: Server, token: dict[str, Any]) -> str:
        import httpx2  # heavy, and needed only to log out

        try:
            complete = server.complete()
            if not complete.revocation_endpoint:
                return "the server has no address for that"
            with client_of(complete) as client:
                kind = "refresh_token" if token.get("refresh_token") else "access_token"
                answer = client.revoke_token(complete.revocation_endpoint, token[kind], token_type_hint=kind)
                answer.raise_for_status()
        except (AgentError, httpx2.HTTPError) as error:
            return str(error)
        return ""

    def _status(self) -> dict[str, Any]:
        rows = {name: "logged in" if self._store.get(name) else "not logged in" for name in self._servers}
        body = "\n".join(f"- {name}: {stands}" for name, stands in rows.items()) or "No servers are declared."
        return {"servers": rows, "display": {"format": "markdown", "title": "Logins", "body": body}}


def _card(pending: Pending) -> dict[str, Any]:
    """Return what the person sees: where to go, what to type there, and a button that looks at the state."""
    name = pending.server.name
    body = f"Open [this page]({pending.url})" + (
        f" and enter the code `{pending.code}`." if pending.code else "."
    )
    actions: list[dict[str, Any]] = [
        {"kind": "open_url", "id": "open-login-link", "label": "Open link", "url": pending.url}
    ]
    if pending.code:
        actions.append(
            {"kind": "copy_text", "id": "copy-login-code", "label": "Copy code", "text": pending.code}
        )
    actions.append(
        {
            "kind": "run_action",
            "id": "check-login-status",
            "label": "Check status",
            "plugin": OAuthLogin.name,
            "action_id": "check_status",
            "params": {"server": name},
            "preserve_display": True,
        }
    )
    return {
        "format": "markdown",
        "title": f"Login at {name}",
        "body": body,
        "variant": "info",
        "presentation": "inline",
        "dismissible": True,
        "display_id": f"oauth-login-{name}",
        "actions": actions,
    }


def _display(server: Server, body: str, variant: str) -> dict[str, Any]:
    """Return what is shown of how a login stands; the next one takes its place, and the card stays."""
    shown = {"format": "text", "title": f"Login at {server.name}", "body": body, "variant": variant}
    return {**shown, "display_id": f"oauth-login-status-{server.name}"}
