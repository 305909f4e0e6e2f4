"""`agent setup`: connect a model, in a dialogue or by flags."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from agent_terminal_app.application import Opened, open_settings
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.first_run.ask import hold, open_ask
from agent_terminal_app.first_run.dialogue import draft_from, set_up, without_asking
from agent_terminal_app.first_run.draft import Draft, save
from agent_terminal_app.first_run.welcome import missing_weights
from agent_terminal_app.keys import LONGEST_KEY, clean_key
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
        hint = "use --yes; without --model the recommended one is taken"
        raise CommandError("stdin has the key, so questions cannot be answered", code=Exit.USAGE, hint=hint)
    opened = open_settings()
    draft = draft_from(opened, provider, url, model, key=_read_key() if key_stdin else None, check=check)
    if yes:
        outcome = hold(lambda: _without_asking(opened, draft))
    else:
        ask = open_ask(plain=plain or bool(opened.settings.values["ui"]["plain"]))
        outcome = hold(lambda: set_up(ask, opened, draft))
    return Exit.OK if outcome.changed else Exit.INTERRUPTED


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
