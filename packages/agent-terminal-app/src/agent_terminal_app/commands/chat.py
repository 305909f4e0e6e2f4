"""`agent chat`: talk to an agent."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from agent_terminal_app.chat.screen import TextScreen, wants_color

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_app import AgentApplication
    from agent_terminal_app.chat.screen import Screen
    from agent_terminal_app.opening import Opened


_SUGGESTIONS = {
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-5",
    "OPENAI_API_KEY": "openai:gpt-5",
    "GEMINI_API_KEY": "gemini:gemini-3-pro",
}
"""Variables that hold a key, and a model to use it with."""


@click.command("chat")
@click.option("--model", help="Another model: local, or PROVIDER:MODEL.")
@click.option("--agent", "default_agent", help="Another agent of the configuration.")
@click.option("--session", help="The id of a session to go on with.")
@click.option("--demo", is_flag=True, help="Talk to a demonstration in place of a model; nothing is kept.")
@click.option("--plain", is_flag=True, help="No colours and nothing that moves.")
def command(
    model: str | None = None,
    default_agent: str | None = None,
    session: str | None = None,
    *,
    demo: bool = False,
    plain: bool = False,
) -> int:
    """Talk to an agent. Without settings it is a small model inside of this program."""
    from agent_terminal_app.logs import keep_off_the_screen
    from agent_terminal_app.opening import open_settings

    keep_off_the_screen()
    opened = open_settings(model="demo" if demo else model, default_agent=default_agent)
    screen: Screen = TextScreen(color=wants_color(sys.stdout, plain=plain))
    for line in greeting(opened, demo=demo):
        screen.line(line)
    open_app = _opener(opened, demo=demo)
    if sys.stdin.isatty() and sys.stdout.isatty() and not plain:
        _in_terminal(opened, open_app, session, color=screen.color, keep=not demo)
    else:
        _in_lines(open_app, screen, session)
    return 0


def greeting(opened: Opened, *, demo: bool) -> list[str]:
    """Return what a person reads first: what answers, and how to have something better."""
    model = opened.settings.values.get("model") or "local"
    if demo:
        return ["A demonstration: no model, nothing is kept. /help lists the commands."]
    lines = [f"You are talking to: {model}. /help lists the commands."]
    if model == "local":
        found = [name for name in _SUGGESTIONS if os.environ.get(name)]
        lines = [
            "You are talking to SmolLM2, a small model inside of this program.",
            "It needs no key and no network, and it is often wrong. /help lists the commands.",
            *(f"{name} is set; use it with: agent chat --model {_SUGGESTIONS[name]}" for name in found),
        ]
        if not found:
            lines += [
                "For a better one:  agent keys set anthropic",
                f"                   agent chat --model {_SUGGESTIONS['ANTHROPIC_API_KEY']}",
            ]
    return [*lines, *(f"! {warning}" for warning in opened.settings.warnings)]


def _opener(opened: Opened, *, demo: bool) -> Callable[[], AgentApplication]:
    if not demo:
        return opened.application
    from agent_terminal_app.wiring import open_demo

    return open_demo


def _in_terminal(
    opened: Opened, open_app: Callable[[], Any], session: str | None, *, color: bool, keep: bool
) -> None:
    from agent_terminal_app.chat.loop import Chat
    from agent_terminal_app.chat.prompt import PromptScreen, run

    run(Chat(open_app, PromptScreen(color=color), session), opened.paths.typed if keep else None)


def _in_lines(open_app: Callable[[], Any], screen: Screen, session: str | None) -> None:
    from agent_terminal_app.chat.loop import Chat, talk_through

    async def next_line() -> str | None:
        line = await asyncio.to_thread(sys.stdin.readline)
        return line.rstrip("\n") if line else None

    asyncio.run(talk_through(Chat(open_app, screen, session), next_line))
