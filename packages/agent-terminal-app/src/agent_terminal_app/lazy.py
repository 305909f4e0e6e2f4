"""What this program uses of other packages, and not at every start: loaded when it is first used.

Some of it comes with an extra. If that is not installed, the first use says how to install it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agent_core.lazy import lazy_names
from agent_terminal_app.errors import CommandError, Exit

if TYPE_CHECKING:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    from agent_app.assets.asset import Sniffer
    from agent_app.catalogue import Catalogue, Key
    from agent_app.context_windows import WindowCache, Windows
    from agent_app.model_list import ModelList
    from agent_app.redaction import Redactor
    from agent_app.transfer.forms import markdown_parts, readable, who
    from agent_client import (
        AsyncClient,
        Client,
        ClientError,
        ConnectionLost,
        NotAllowed,
    )
    from agent_core.plugin.discovery import find_installed
    from agent_durable import (
        DurableRuns,
        QueueFull,
        Worker,
        open_engine,
    )
    from agent_durable.database import wait_for
    from agent_runtime.agent import Agent
    from agent_runtime.documents import (
        Document,
        Wrong,
        follow,
        line_of,
        parse_toml,
        unusable,
    )
    from agent_runtime.errors import SpecError, describe
    from agent_runtime.files import entries
    from agent_runtime.permissions import Permissions, PermissionsPlugin
    from agent_runtime.schema import DIALECT, spec_schema
    from agent_server import (
        LocalAccess,
        create_server,
        new_token,
        serve,
    )
    from agent_server.access import Proxies
    from agent_server.application import LOCAL_PROXIES
    from agent_server.listener import is_loopback, open_socket
    from agent_server.people.access import TeamAccess
    from agent_server.people.accounts import Accounts
    from agent_server.people.oidc import OidcProvider, OidcSettings
    from agent_server.people.quota import Allowance, Quota, counts_of
    from agent_server.people.tables import open_tables
    from agent_server.people.team import Team
    from agent_server.people.vault import Vault
    from local_llama_provider.weights import (
        WeightsMissingError,
        find_weights,
        pull,
    )

__all__ = [
    "DIALECT",
    "LOCAL_PROXIES",
    "Accounts",
    "Agent",
    "Allowance",
    "AsyncClient",
    "Catalogue",
    "Client",
    "ClientError",
    "ConnectionLost",
    "Document",
    "DurableRuns",
    "Key",
    "LocalAccess",
    "ModelList",
    "NotAllowed",
    "OidcProvider",
    "OidcSettings",
    "Permissions",
    "PermissionsPlugin",
    "Proxies",
    "QueueFull",
    "Quota",
    "Redactor",
    "Sniffer",
    "SpecError",
    "TOMLKitError",
    "Team",
    "TeamAccess",
    "Vault",
    "WeightsMissingError",
    "WindowCache",
    "Windows",
    "Worker",
    "Wrong",
    "counts_of",
    "create_server",
    "describe",
    "entries",
    "find_installed",
    "find_weights",
    "follow",
    "is_loopback",
    "line_of",
    "markdown_parts",
    "new_token",
    "open_engine",
    "open_socket",
    "open_tables",
    "parse_toml",
    "pull",
    "readable",
    "require_team",
    "serve",
    "spec_schema",
    "tomlkit",
    "unusable",
    "wait_for",
    "who",
]

HOMES = {
    "agent_app.assets.asset": ("Sniffer",),
    "agent_app.catalogue": ("Catalogue", "Key"),
    "agent_app.context_windows": ("WindowCache", "Windows"),
    "agent_app.model_list": ("ModelList",),
    "agent_app.redaction": ("Redactor",),
    "agent_app.transfer.forms": ("markdown_parts", "readable", "who"),
    "agent_client": ("AsyncClient", "Client", "ClientError", "ConnectionLost", "NotAllowed"),
    "agent_core.plugin.discovery": ("find_installed",),
    "agent_durable": ("DurableRuns", "QueueFull", "Worker", "open_engine"),
    "agent_durable.database": ("wait_for",),
    "agent_runtime.agent": ("Agent",),
    "agent_runtime.documents": ("Document", "Wrong", "follow", "line_of", "parse_toml", "unusable"),
    "agent_runtime.errors": ("SpecError", "describe"),
    "agent_runtime.files": ("entries",),
    "agent_runtime.permissions": ("Permissions", "PermissionsPlugin"),
    "agent_runtime.schema": ("DIALECT", "spec_schema"),
    "agent_server": ("LocalAccess", "create_server", "new_token", "serve"),
    "agent_server.access": ("Proxies",),
    "agent_server.application": ("LOCAL_PROXIES",),
    "agent_server.listener": ("is_loopback", "open_socket"),
    "agent_server.people.access": ("TeamAccess",),
    "agent_server.people.accounts": ("Accounts",),
    "agent_server.people.oidc": ("OidcProvider", "OidcSettings"),
    "agent_server.people.quota": ("Allowance", "Quota", "counts_of"),
    "agent_server.people.tables": ("open_tables",),
    "agent_server.people.team": ("Team",),
    "agent_server.people.vault": ("Vault",),
    "tomlkit": (),
    "tomlkit.exceptions": ("TOMLKitError",),
    "local_llama_provider.weights": ("WeightsMissingError", "find_weights", "pull"),
}
"""Every name by its home, as type checkers see them above."""

_EXTRAS = {
    "agent_durable": ("workers are not installed", "pip install 'keelwork-terminal[workers]'"),
    "agent_server": ("the server is not installed", "pip install 'keelwork[server]'"),
}


def require_team() -> None:
    """See that what a server for several people needs is installed.

    Raises:
        CommandError: If it is not.
    """
    for name in ("cryptography", "httpx2", "joserfc"):
        _load(name, None, "pip install 'keelwork-server[team]'")


def _load(name: str, problem: str | None = None, hint: str | None = None) -> Any:
    package = name.partition(".")[0]
    problem, hint = _EXTRAS.get(package, (problem, hint))
    try:
        return import_module(name)
    except ImportError as error:
        if hint is None:
            raise
        said = problem or f"{error.name} is not installed"
        raise CommandError(said, code=Exit.NOT_CONFIGURED, hint=hint) from error


__getattr__ = lazy_names(__name__, HOMES, _load)
