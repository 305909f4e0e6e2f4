"""`/help`, `/doctor`, `/quit`."""

from __future__ import annotations

import asyncio
from functools import partial

from agent_core import AgentError
from agent_terminal_app.chat.commands.registry import (
    ALIASES,
    COMMANDS,
    GROUPS,
    Quit,
    Talk,
    command,
    find_command,
)
from agent_terminal_app.chat.meanwhile import telling
from agent_terminal_app.chat.offers import find_offers, shortest_names
from agent_terminal_app.chat.words import one_line

_GROUP = "The program"
_INDENT, _KEYS = 2, 30
_STATUS = 6
"""How wide the column is in which a finding has its status."""

_STYLES = {"WARN": "bold", "FAIL": "red"}


@command("help", "list the commands, or explain one", group=_GROUP, takes="[NAME]")
async def help_(talk: Talk, rest: str) -> None:
    """List the commands and the keys; with a name, explain that command."""
    if rest:
        await _explain(talk, rest.removeprefix("/"))
        return
    for group in GROUPS:
        talk.line(group, "heading")
        for one in COMMANDS.values():
            if one.group == group:
                talk.row(f"  /{one.name:<12}", one.about)
    actions = shortest_names(await find_offers(talk.conversation), COMMANDS)
    if actions:
        talk.line("Actions of plugins", "heading")
    for name, about in actions:
        talk.row(f"  /{name:<22}", about)
    talk.line("Keys", "heading")
    for keys, about in talk.conversation.keys.rows():
        talk.row(f"  {keys:<{_KEYS}}", about)
    talk.note("/help NAME explains a command; keys.toml changes keys (`agent doctor` says where it is).")


@command("doctor", "look for what is wrong", group=_GROUP)
async def doctor(talk: Talk, _rest: str) -> None:
    """Look for what is wrong with the program and its settings, and say what to do about it."""
    from agent_terminal_app.commands.doctor import checks, report_lines
    from agent_terminal_app.health.finding import look_at_all
    from agent_terminal_app.health.program import check_terminal

    terminal = partial(check_terminal, of_chat=True, color=talk.screen.color)
    async with telling(talk.note, "looking"):
        findings = await asyncio.to_thread(look_at_all, checks(terminal))
    for finding in findings:
        for line in report_lines(finding):
            talk.line(line, _STYLES.get(finding.status, ""), hang=_STATUS)


@command("quit", "leave; everything is kept", group=_GROUP, alias="exit")
def quit_(_talk: Talk, _rest: str) -> None:
    """Leave. Everything is kept: `agent chat --session ID` or /resume goes on."""
    raise Quit


async def _explain(talk: Talk, name: str) -> None:
    found = await find_command(talk, name)
    if found is None:
        raise AgentError(f"there is no command /{one_line(name, 60)}: /help lists them")
    others = [alias for alias, meant in ALIASES.items() if meant == found.name]
    also = f"   (also /{', /'.join(others)})" if others else ""
    talk.line(f"{found.usage}{also}", "bold")
    talk.line(found.about)
    for line in _reflowed(found.details, talk.screen.width):
        talk.line(f"  {line}".rstrip(), hang=_INDENT)


def _reflowed(text: str, width: int | None) -> list[str]:
    """Return the lines of a text; where there is a width, those of a paragraph are one, to be cut anew."""
    lines: list[str] = []
    for line in text.splitlines():
        goes_on = bool(lines and lines[-1] and line) and not line.startswith(" ")
        if width is not None and goes_on and not lines[-1].startswith(" "):
            lines[-1] = f"{lines[-1]} {line}"
        else:
            lines.append(line)
    return lines
