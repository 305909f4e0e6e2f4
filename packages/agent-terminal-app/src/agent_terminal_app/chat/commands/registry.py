"""What a command of the chat is, which ones there are, and how one is run.

A command is a function of a `Talk` and of what stands behind its name. It may be a plain function or a
coroutine; one that takes long works beside the prompt, and Esc stops it. Commands that come and go, such as
the actions of plugins, are found by a *finder* when their name is typed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_core.log import get_logger
from agent_terminal_app.chat.commands.talk import Talk
from agent_terminal_app.chat.words import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_terminal_app.chat.conversation import Conversation

__all__ = [
    "ALIASES",
    "COMMANDS",
    "GROUPS",
    "Command",
    "Quit",
    "Talk",
    "command",
    "find_command",
    "finder",
    "names",
    "run_command",
    "suggester",
]

GROUPS = ("Sessions", "This conversation", "What answers", "Plugins", "The program")
"""Under which headings `/help` lists the commands."""
_log = get_logger("chat")


class Quit(Exception):  # noqa: N818 - a signal
    """The person wants to leave."""


Function = Callable[[Talk, str], "Awaitable[None] | None"]
Choices = Callable[["Conversation", str], "Iterable[tuple[str, str]]"]
"""What may follow what was typed so far, each with a line about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the chat.

    Attributes:
        name: What is typed behind the slash.
        run: What it does.
        about: Its line of help.
        group: The heading that it stands under.
        takes: What may follow the name.
        details: More help, for `/help NAME`.
        idle: Whether it needs the agent to be at rest.
        choices: What may follow the name, for completion; called in a thread.
    """

    name: str
    run: Function
    about: str
    group: str
    takes: str = ""
    details: str = ""
    idle: bool = False
    choices: Choices | None = None

    @property
    def usage(self) -> str:
        """How it is typed."""
        return f"/{self.name} {self.takes}".rstrip()


Finder = Callable[[Talk, str], Awaitable[Command | None]]
Suggester = Callable[["Conversation"], "list[tuple[str, str]]"]
COMMANDS: dict[str, Command] = {}
"""The commands that are always there, in the order in which they are listed."""
ALIASES: dict[str, str] = {}
"""Other names, and the commands that they mean."""
_FINDERS: list[Finder] = []
_SUGGESTERS: list[Suggester] = []


def command(
    name: str,
    about: str,
    *,
    group: str,
    takes: str = "",
    idle: bool = False,
    alias: str = "",
    choices: Choices | None = None,
) -> Callable[[Function], Function]:
    """Register a function as a command; its docstring is the help of `/help NAME`."""

    def register(function: Function) -> Function:
        details = cleandoc(function.__doc__ or "")
        COMMANDS[name] = Command(
            name=name,
            run=function,
            about=about,
            group=group,
            takes=takes,
            details=details,
            idle=idle,
            choices=choices,
        )
        if alias:
            ALIASES[alias] = name
        return function

    return register


def finder(function: Finder) -> Finder:
    """Register a function that finds commands which are not always there."""
    _FINDERS.append(function)
    return function


def suggester(function: Suggester) -> Suggester:
    """Register a function that returns the names of such commands, for completion; called in a thread."""
    _SUGGESTERS.append(function)
    return function


def names(conversation: Conversation | None = None) -> list[tuple[str, str]]:
    """Return every command with its line of help, for completion.

    Args:
        conversation: Where it is asked for; then those are among them that come and go, for which plugins
            are asked, so that it must not be called on the event loop.
    """
    fixed = [(one.name, one.about) for one in COMMANDS.values()]
    others = [(alias, COMMANDS[name].about) for alias, name in ALIASES.items()]
    if conversation is None:
        return [*fixed, *others]
    return [*fixed, *others, *(pair for suggest in _SUGGESTERS for pair in suggest(conversation))]


async def find_command(talk: Talk, name: str) -> Command | None:
    """Return the command of that name, if there is one now."""
    found = COMMANDS.get(ALIASES.get(name, name))
    for find in _FINDERS if found is None else ():
        found = found or await find(talk, name)
    return found


async def run_command(talk: Talk, line: str) -> None:
    """Run what stands behind a slash; what goes wrong is told, and the chat goes on.

    Raises:
        Quit: If the person wants to leave.
    """
    name, *rest = line.removeprefix("/").split(maxsplit=1) or ["help"]
    try:
        await _run(talk, name, rest[0].rstrip() if rest else "")
    except Quit:
        raise
    except AgentError as error:
        talk.fail(error)
    except OSError as error:
        talk.fail(f"{error.filename or name}: {error.strerror or error}")
    except Exception as error:  # noqa: BLE001 - a mistake in one command must not end the whole sitting
        _log.error("command_failed", command=name, error=repr(error))
        talk.fail(f"/{name} failed, by a mistake of this program: {type(error).__name__}: {error}")


async def _run(talk: Talk, name: str, rest: str) -> None:
    found = await find_command(talk, name)
    if found is None:
        talk.note(await asyncio.to_thread(_unknown, talk.conversation, name))
        return
    if found.idle and talk.conversation.running:
        raise AgentError(f"the agent is at work: Esc stops it, then /{name} can be done")
    working: Any = found.run(talk, rest)
    if working is not None:
        await working


def _unknown(conversation: Conversation, name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [known for known, _about in names(conversation)], n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    hint = f"{meant}/help lists them. Words that begin with a slash need a space before it."
    return f"There is no command /{one_line(name, 60)}: {hint}"
