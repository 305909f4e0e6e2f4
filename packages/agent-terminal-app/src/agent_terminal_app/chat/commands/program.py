"""`/config`, `/theme`, `/setup`, `/help`, `/commands`, `/status`, `/doctor`, `/quit`: the program itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from agent_app.defaults import read_model
from agent_core import AgentError
from agent_runtime import ModelSpec
from agent_terminal_app import __version__
from agent_terminal_app.application import application_config, catalogue_of, open_quietly
from agent_terminal_app.chat.agent import who_answers
from agent_terminal_app.chat.appearance import branch_of
from agent_terminal_app.chat.commands.custom import GROUP, own_commands, suggest_custom
from agent_terminal_app.chat.commands.models import use_model
from agent_terminal_app.chat.commands.offers import find_offers, shortest_names
from agent_terminal_app.chat.commands.registry import (
    ALIASES,
    COMMANDS,
    GROUPS,
    Quit,
    Talk,
    command,
    covered_actions,
    find_command,
    fixed_names,
    run_command,
    still_working,
)
from agent_terminal_app.chat.picker import Choice, Picker
from agent_terminal_app.chat.rendering.text import count, one_line
from agent_terminal_app.errors import CommandError
from agent_terminal_app.first_run.ask import choose_by_typing
from agent_terminal_app.first_run.dialogue import set_up
from agent_terminal_app.health import REPORT_HANG, check_terminal, checks, look_at_all, report_lines
from agent_terminal_app.keys import KeyLookup, KeyStore, with_keys
from agent_terminal_app.settings import unset_value
from agent_terminal_app.settings.keypaths import find_value, leaves, literal, read_way, readings, spell
from agent_terminal_app.settings.plugins import set_checked
from agent_terminal_app.settings.rules import THEMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agent_terminal_app.application import Opened
    from agent_terminal_app.chat.conversation import Conversation


def _choices(_conversation: Conversation, _typed: str) -> list[tuple[str, str]]:
    settings = open_quietly().settings
    return [(spell(place), f"{literal(leaf)} now") for place, leaf in leaves(settings.values)]


@command(
    "config",
    "show settings, or change one",
    group="The program",
    takes="[KEY | KEY=VALUE | unset KEY]",
    choices=_choices,
)
async def config(talk: Talk, rest: str) -> None:
    """Show all settings and where each comes from, or those below a key; KEY=VALUE changes one in your file.

    Keys have dots, as in `ui.theme=dark`. A value that cannot be right is refused. How the chat looks (`ui`)
    changes at once, everything else with the next start; /model changes the model of this session at once.
    """
    verb, _, more = rest.partition(" ")
    if verb == "unset":
        await _change(talk, _unset, more.strip())
        return
    key, value = _key_and_value(more if verb in ("set", "get") else rest)
    if verb != "get" and value is not None:
        await _change(talk, _set, key, value)
    elif verb == "set":
        raise AgentError("use /config KEY=VALUE, for example /config ui.theme=dark")
    else:
        for line in await asyncio.to_thread(_shown, key):
            talk.line(line)


def _key_and_value(text: str) -> tuple[str, str | None]:
    """Return a key and the value behind it, after `=` as here or after a space as in `agent config set`."""
    key, separator, value = text.strip().partition("=")
    if " " in key.strip() or not separator:
        key, separator, value = text.strip().partition(" ")
    return key.strip(), value.strip().removeprefix("=").strip() if separator else None


async def _change(talk: Talk, change: Callable[..., Path], key: str, *value: str) -> None:
    path = await asyncio.to_thread(change, key, *value)
    if key.startswith("ui.") and key != "ui.plain" and talk.screen.is_live:
        await _look_anew(talk)
        talk.note(f"Changed {path}.")
    else:
        talk.note(f"Changed {path}; it takes effect at the next start of `agent`.")
    for line in await asyncio.to_thread(_now, key):
        talk.line(line)
    origin = await asyncio.to_thread(_origin, key)
    if value and origin and not origin.startswith(str(path)):
        talk.note(f"It has no effect yet: {origin} overrides your file.")
    if key in ("model", "default_agent"):
        talk.note(f"/{'model' if key == 'model' else 'agent'} changes this session at once.")


async def _look_anew(talk: Talk) -> None:
    ui = (await asyncio.to_thread(open_quietly)).settings.values["ui"]
    talk.conversation.appearance.use(ui, talk.screen)
    if "model" in talk.conversation.appearance.parts:
        with suppress(AgentError):  # an agent that cannot run says so when it is asked something
            await talk.conversation.reader()
    talk.conversation.changed()


@command("theme", "choose the colours", group="The program", takes="[NAME]")
async def theme(talk: Talk, rest: str) -> None:
    """Choose the colours: for a dark or a light background, none, or what the terminal says of itself.

    They apply at once to what is shown from now on, and are kept in your settings.
    """
    about = {
        "auto": "as the terminal says",
        "dark": "for a dark background",
        "light": "for a light one",
        "none": "no colours",
    }
    now = (await asyncio.to_thread(open_quietly)).settings.values["ui"]["theme"]
    choices = [Choice(name, name, about[name], "→" if name == now else " ") for name in THEMES]
    chosen = rest or await talk.pick(Picker("Which colours?", choices, start=now))
    if chosen:
        await _change(talk, _set, "ui.theme", chosen)


def _shown(key: str) -> list[str]:
    """Return the lines of all settings, or of those below a key."""
    settings = open_quietly().settings
    way = read_way(key) if key else ()
    value = find_value(settings.values, way)
    found = leaves(value, way) if isinstance(value, Mapping) else [(way, value)]
    lines = [(spell(place), literal(leaf)) for place, leaf in found]
    return [f"{name} = {leaf}   # {settings.origins.get(name, 'several places')}" for name, leaf in lines]


def _now(key: str) -> list[str]:
    """Return what holds at the next start; another place may say more than the user's file."""
    try:
        return _shown(key)
    except CommandError:
        return []


def _origin(key: str) -> str:
    """Return which file or variable a setting comes from; empty if it is several, or none."""
    return open_quietly().settings.origins.get(spell(read_way(key)), "")


def _set(key: str, value: str) -> Path:
    paths = open_quietly().paths
    refusals: list[CommandError] = []
    for reading in readings(value):
        try:
            return set_checked(paths, key, reading)
        except CommandError as error:
            refusals.append(error)
    raise refusals[0]


def _unset(key: str) -> Path:
    return unset_value(open_quietly().paths, key)


_CHOICE = "Number or name (Enter: 1; Esc leaves it)"


@command("setup", "connect a model", group="The program", idle=True)
async def setup(talk: Talk, _rest: str) -> None:
    """Connect a model: a provider, a server of your own, or the embedded one.

    The chat finds keys in the environment, stored keys, and servers on this machine. Your choice applies to
    every later start, and to this session from your next message on.
    """
    opened = await asyncio.to_thread(open_quietly)
    outcome = await set_up(ChatAsk(talk), opened)
    if outcome.changed:
        await asyncio.to_thread(_declare, talk, opened.again(), outcome.model)
        await use_model(talk, outcome.model)


class ChatAsk:
    """Asks through the prompt of the chat, as dialogues of the first run want to be asked."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def choose(self, title: str, options: Sequence[str]) -> int | None:
        """Show a list and read a number, or a part of a name."""
        return await choose_by_typing(title, options, tell=self.tell, read=partial(self.line, _CHOICE))

    async def secret(self, prompt: str) -> str | None:
        """Read a key, which is neither shown nor kept among what was typed."""
        return await self._talk.ask(prompt.rstrip(), hidden=True)

    async def line(self, prompt: str) -> str | None:
        return await self._talk.ask(prompt.rstrip())

    def tell(self, text: str) -> None:
        for line in text.splitlines():
            self._talk.line(line)


def _declare(talk: Talk, opened: Opened, name: str) -> None:
    """Make a model known to the application that runs: it was written into the settings just now."""
    config = with_keys(application_config(opened.settings), KeyLookup(KeyStore(opened.paths)))
    model = ModelSpec.from_dict(
        {**config["models"].get(name, read_model(name, config["models"])), "id": name}
    )
    catalogue_of(talk.app).set_model(model)


_GROUP = "The program"
_INDENT, _KEYS = 2, 30

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
    own = await asyncio.to_thread(own_commands, talk.conversation)
    if own:
        talk.line(GROUP, "heading")
    for name, written in own.items():
        about = (
            "not used: the chat has a command of this name" if name in fixed_names() else written.description
        )
        talk.row(f"  /{one_line(name):<12}", one_line(about))
    actions = shortest_names(await find_offers(talk.conversation), fixed_names(), covered_actions())
    if actions:
        talk.line("Actions of plugins", "heading")
    for name, about in actions:
        talk.row(f"  /{name:<22}", about)
    talk.line("Keys", "heading")
    for keys, about in talk.conversation.keys.rows():
        talk.row(f"  {keys:<{_KEYS}}", about)
    talk.note("/help NAME explains a command; keys.toml changes keys (`agent doctor` says where it is).")


@command("commands", "choose a command from a list", group=_GROUP)
async def commands(talk: Talk, _rest: str) -> None:
    """Choose a command, or an action of a plugin, and run it; one that needs more asks you for it."""
    fixed = [(one.name, one.about) for one in COMMANDS.values() if one.name != "commands"]
    own = await asyncio.to_thread(suggest_custom, talk.conversation)
    offered = shortest_names(await find_offers(talk.conversation), fixed_names(), covered_actions())
    choices = [Choice(name, f"/{name}", about) for name, about in [*fixed, *own, *offered]]
    chosen = await talk.pick(Picker("Which command?", choices))
    if chosen is not None:
        await run_command(talk, f"/{chosen}")


@command("status", "show the session, the model, the folder and the mode", group=_GROUP)
async def status(talk: Talk, _rest: str) -> None:
    """Show which session, agent, model and folder this is, whether the agent asks, and what it has used.

    /cost has the tokens by model, /context the parts of the next request, /permissions what is granted.
    """
    conversation = talk.conversation
    rows = [("version", f"Keelwork {__version__}"), ("session", "begins with your first message")]
    if conversation.session_id is not None:
        info = await talk.app.session_info_async(conversation.session_id)
        title = one_line(info.title) or "no title"
        rows[-1] = ("session", f"{title} ({info.id[:8]}), {count(info.messages, 'message')}")
    try:
        who = await who_answers(conversation)
    except AgentError as error:
        rows.append(("agent", f"cannot answer: {error}"))
    else:
        rows += [("agent", one_line(who.agent.spec.id)), ("model", one_line(who.model.id.rstrip(":")))]
    folder = await asyncio.to_thread(conversation.folder)
    branch = await asyncio.to_thread(branch_of, folder)
    asks = "asks before it edits files or runs commands"
    used = [text for name in ("context", "session", "cost") if (text := conversation.meters.part(name))]
    rows += [
        ("folder", f"{one_line(folder)}{f', branch {branch}' if branch else ''}"),
        ("mode", "plan" if conversation.plan_mode else conversation.edits.label or asks),
        ("used", " · ".join(used)),
        ("settings", one_line((await asyncio.to_thread(open_quietly)).paths.config_file)),
    ]
    for name, value in rows:
        talk.row(f"  {name:<10}", value)


@command("doctor", "check the program and its settings", group=_GROUP)
async def doctor(talk: Talk, _rest: str) -> None:
    """Check the program and its settings, and say how to fix problems."""
    terminal = partial(check_terminal, of_chat=True, color=talk.screen.color)
    async with still_working(talk.note, "looking"):
        findings = await asyncio.to_thread(look_at_all, checks(terminal))
    for finding in findings:
        for line in report_lines(finding):
            talk.line(line, _STYLES.get(finding.status, ""), hang=REPORT_HANG)


@command("quit", "leave; everything is kept", group=_GROUP, alias="exit")
def quit_(_talk: Talk, _rest: str) -> None:
    """Leave. Everything is kept: `agent chat --session ID` or /resume continues."""
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
    """Return the lines of a text; where there is a width, each paragraph is one line, to be wrapped again."""
    lines: list[str] = []
    for line in text.splitlines():
        goes_on = bool(lines and lines[-1] and line) and not line.startswith(" ")
        if width is not None and goes_on and not lines[-1].startswith(" "):
            lines[-1] = f"{lines[-1]} {line}"
        else:
            lines.append(line)
    return lines
