"""`agent setup`: connect a model, in a dialogue or by flags."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from agent_app.defaults import SHORT_NAMES
from agent_core.errors import nearest
from agent_terminal_app.application import Opened, open_settings
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.first_run.ask import hold, open_ask
from agent_terminal_app.first_run.connections import (
    COMPATIBLE,
    EMBEDDED,
    SERVERS,
    Connection,
    find_connection,
    installed_connections,
    keys_in_environment,
    keys_in_store,
    own_server,
)
from agent_terminal_app.first_run.dialogue import read_address, set_up, without_asking
from agent_terminal_app.first_run.draft import Draft, save
from agent_terminal_app.first_run.models import not_installed
from agent_terminal_app.first_run.welcome import missing_weights
from agent_terminal_app.keys import LONGEST_KEY, KeyStore, clean_key
from agent_terminal_app.output import say

if TYPE_CHECKING:
    from agent_terminal_app.first_run.draft import Outcome


@click.command("setup")
@click.option("--provider", help="Which provider: anthropic, openai, gemini, groq, ollama, local …")
@click.option("--url", help="The address of a server that speaks Chat Completions.")
@click.option("--key-stdin", is_flag=True, help="Read the key from standard input.")
@click.option("--model", help="Which model; with --yes the recommended one by default.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing, for scripts.")
@click.option("--check/--no-check", default=True, help="Ask the provider for its models first.")
@click.option("--plain", is_flag=True, help="Plain lines, and nothing that moves.")
def command(
    provider: str | None,
    url: str | None,
    model: str | None,
    *,
    key_stdin: bool,
    yes: bool,
    check: bool,
    plain: bool,
) -> int:
    """Connect a model: a provider with a key, a server of your own, or the embedded one.

    Everything is written at the end, or nothing.
    """
    if key_stdin and not yes:
        hint = "say --yes; without --model the recommended one is taken"
        raise CommandError("stdin has the key, so questions cannot be answered", code=Exit.USAGE, hint=hint)
    opened = open_settings()
    draft = given(opened, provider, url, model, key=_read_key() if key_stdin else None, check=check)
    if yes:
        outcome = hold(lambda: _without_asking(opened, draft))
    else:
        ask = open_ask(plain=plain or bool(opened.settings.values["ui"]["plain"]))
        outcome = hold(lambda: set_up(ask, opened, draft))
    return Exit.OK if outcome.changed else Exit.INTERRUPTED


def given(
    opened: Opened, provider: str | None, url: str | None, model: str | None, *, key: str | None, check: bool
) -> Draft:
    """Return what the flags say about the model to connect.

    Raises:
        CommandError: If there is no such provider, or another flag is missing.
    """
    if provider and SHORT_NAMES.get(provider, provider) == EMBEDDED:
        return Draft(embedded=True)
    connection = _connection(provider, url)
    if connection is None:
        if key or model:
            raise CommandError("--key-stdin and --model need --provider or --url", code=Exit.USAGE)
        return Draft()
    draft = Draft(connection=connection, key=key, model=model or "", checked=not check)
    return draft if key is not None else _with_found_key(opened, draft, connection)


def _connection(provider: str | None, url: str | None) -> Connection | None:
    address = read_address(url) if url else ""
    if not provider or (url and provider == COMPATIBLE):
        return own_server(address) if url else None
    known = (*installed_connections(), *SERVERS)
    found = find_connection(provider, known)
    if found is None and (ours := find_connection(provider)) is not None:
        raise not_installed(ours.provider)
    if found is None:
        hint = f"{nearest(provider, [one.name for one in known])}; any other server needs --url"
        raise CommandError(f"there is no provider {provider!r}", code=Exit.USAGE, hint=hint)
    if not url:
        return found
    return replace(found, base_url=address, name=found.name if found in SERVERS else own_server(address).name)


def _with_found_key(opened: Opened, draft: Draft, connection: Connection) -> Draft:
    """Return a draft with a key that is already stored, or in the environment."""
    if not connection.needs_key:
        return replace(draft, key="")
    store = KeyStore(opened.paths)
    there = [*keys_in_store(store, [connection]), *keys_in_environment(connections=[connection])]
    return replace(draft, reference=there[0].key) if there else draft


def _read_key() -> str:
    return clean_key(sys.stdin.buffer.read(LONGEST_KEY).decode("utf-8", "replace"))


async def _without_asking(opened: Opened, draft: Draft) -> Outcome:
    if not draft.embedded:
        _need_all(draft)
        draft = await without_asking(opened, draft)
    outcome = save(draft, opened)
    say(outcome.in_words())
    if draft.embedded and (missing := missing_weights(opened.again().settings)):
        say(missing)
    return outcome


def _need_all(draft: Draft) -> None:
    """Refuse a draft that would need a question.

    Raises:
        CommandError: With the flag that is missing.
    """
    if draft.connection is None:
        raise CommandError(
            "--yes needs to know which provider to use", code=Exit.USAGE, hint="give --provider"
        )
    if draft.key is None and not draft.reference:
        ways = ["give it with --key-stdin", *(f"set {name}" for name in draft.chosen.variables)]
        raise CommandError(
            f"there is no key of {draft.chosen.label}", code=Exit.NOT_CONFIGURED, hint=", or ".join(ways)
        )
    if draft.checked and not draft.model:
        raise CommandError("without a check, --yes needs a model", code=Exit.USAGE, hint="give --model")
