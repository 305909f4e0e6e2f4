"""The options of `agent serve` for several people: how they log in, and how much each may ask for."""

from __future__ import annotations

import os
import secrets
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from agent_app.defaults import MEMORY
from agent_terminal_app import lazy
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.output import say
from agent_terminal_app.settings.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import ExitStack

    from agent_durable.jobs import Job
    from agent_server.access import LocalAccess
    from agent_server.people.access import TeamAccess
    from agent_server.people.accounts import Accounts
    from agent_server.people.team import Team
    from agent_server.people.vault import Vault
    from agent_terminal_app.paths import Paths

SECRET_VARIABLE = "AGENT_SERVER_SECRET"  # noqa: S105 - the name of a variable
SECRET_FILE = "server-secret"  # noqa: S105 - the name of a file
CLIENT_SECRET_VARIABLE = "AGENT_OIDC_CLIENT_SECRET"  # noqa: S105 - the name of a variable

_OPTIONS = (
    click.option("--team", is_flag=True, help="Serve several people, each with sessions of their own."),
    click.option("--oidc-issuer", help="The OpenID provider with which people log in; means --team."),
    click.option("--oidc-client-id", help="What this server is called there."),
    click.option("--oidc-audience", help="Whom tokens of programs are for, if not the client id."),
    click.option(
        "--oidc-tenant-claim", help="The claim that names a person's tenant; without it each has their own."
    ),
    click.option(
        "--public-url", help="Where browsers reach this server, such as https://agents.example.com."
    ),
    click.option(
        "--limit-requests",
        type=click.IntRange(0),
        default=600,
        show_default=True,
        help="Requests of a person in a minute; 0 for any number.",
    ),
    click.option(
        "--limit-runs",
        type=click.IntRange(0),
        default=10,
        show_default=True,
        help="Runs of a person at a time; 0 for any number.",
    ),
    click.option("--limit-tokens", type=click.IntRange(1), help="Tokens of a person in a day."),
    click.option(
        "--limit-cost", type=click.FloatRange(0, min_open=True), help="What a person may spend in a day."
    ),
)


def team_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for several people."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def open_team(
    stack: ExitStack,
    paths: Paths,
    store_url: str,
    *,
    team: bool,
    oidc_issuer: str | None,
    oidc_client_id: str | None,
    oidc_audience: str | None,
    oidc_tenant_claim: str | None,
    public_url: str | None,
    limit_requests: int,
    limit_runs: int,
    limit_tokens: int | None,
    limit_cost: float | None,
) -> Team | None:
    """Open the tables about people, if there are several; they are closed with the stack.

    Raises:
        click.UsageError: If options do not fit together.
        CommandError: If the extra is not installed, or the secret of the server cannot be used.
    """
    if not team and oidc_issuer is None:
        return None
    if oidc_issuer is not None and (oidc_client_id is None or public_url is None):
        raise click.UsageError("--oidc-issuer needs --oidc-client-id and --public-url.")
    lazy.require_team()
    try:
        vault = lazy.Vault(os.environ.get(SECRET_VARIABLE, "").strip() or kept_secret(paths))
        provider = None
        if oidc_issuer is not None:
            settings = lazy.OidcSettings(
                issuer=oidc_issuer,
                client_id=oidc_client_id or "",
                public_url=public_url or "",
                client_secret=os.environ.get(CLIENT_SECRET_VARIABLE, "").strip(),
                audience=oidc_audience or "",
                tenant_claim=oidc_tenant_claim or "",
            )
            provider = lazy.OidcProvider(settings)
    except ValueError as error:
        raise CommandError(str(error), code=Exit.USAGE) from error
    tables = lazy.open_tables(store_url)
    stack.callback(tables.close)
    allowance = lazy.Allowance(
        requests=limit_requests or None, runs=limit_runs or None, tokens=limit_tokens, cost=limit_cost
    )
    return lazy.Team(
        accounts=lazy.Accounts(tables),
        quota=lazy.Quota(allowance, lazy.counts_of(tables)),
        vault=vault,
        provider=provider,
    )


def own_keys(stack: ExitStack, paths: Paths, database: str) -> Callable[[Job], Mapping[str, Any]]:
    """Return what finds the key that the person of a run has stored for its provider, and decrypts it.

    A worker needs the secret of the servers for that: by the variable, or from the same data folder. Nothing
    is opened before somebody's run comes.
    """

    @cache
    def opened() -> tuple[Accounts, Vault] | None:
        secret = os.environ.get(SECRET_VARIABLE, "").strip()
        if not secret and not (paths.data / SECRET_FILE).exists():
            return None
        tables = lazy.open_tables(database)
        stack.callback(tables.close)
        return lazy.Accounts(tables), lazy.Vault(secret or kept_secret(paths))

    def settings(job: Job) -> Mapping[str, Any]:
        if not job.person:
            return {}
        found = opened()
        if found is None:
            say(f"agent: {job.run_id} uses no key of {job.person}: {SECRET_VARIABLE} is not set here")
            return {}
        accounts, vault = found
        sealed = accounts.sealed_key(job.person, job.provider)
        key = None if sealed is None else vault.open(sealed, whose=job.person)
        if sealed is not None and key is None:
            say(f"agent: the key of {job.person} cannot be opened: {SECRET_VARIABLE} is another one here")
        return {} if key is None else {"api_key": key, "api_key_origin": f"key of {job.person}"}

    return settings


def check_memory(config: Mapping[str, Any]) -> None:
    """Refuse agents that remember: memories are files of one user, and everybody would get them.

    Raises:
        CommandError: With the agents.
    """
    named = {
        name: (*agent.get("plugin_ids", ()), *agent.get("more_plugins", ()))
        for name, agent in config["agents"].items()
    }
    if agents := [name for name, plugins in named.items() if MEMORY in plugins]:
        raise CommandError(
            f"a server for several people cannot have agents with the plugin {MEMORY}, since all people "
            f"would share one memory: {', '.join(agents)}",
            code=Exit.NOT_CONFIGURED,
            hint=f"take {MEMORY} out of plugin_ids and more_plugins",
        )


def team_access(local: LocalAccess, team: Team) -> TeamAccess:
    """Return who may use a server of several people; the token of the server is its operator's."""
    return lazy.TeamAccess(local, team.accounts, team.vault, team.quota, team.provider)


def kept_secret(paths: Paths) -> str:
    """Return the secret with which cookies are signed and keys encrypted; it is made the first time.

    Raises:
        CommandError: If others can read the file.
    """
    file = paths.data / SECRET_FILE
    try:
        if file.stat().st_mode & 0o077:
            raise CommandError(
                f"{file} can be read by others and is not used",
                code=Exit.NOT_CONFIGURED,
                hint=f"chmod 600 {file} if nobody has read it; without it, stored provider keys are lost",
            )
        return file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        secret = secrets.token_urlsafe(32)
        replace_file(file, f"{secret}\n", mode=0o600, folder_mode=0o700)
        return secret
