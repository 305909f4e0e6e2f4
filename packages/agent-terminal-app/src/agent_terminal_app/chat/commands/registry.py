"""What a command of the chat is, what it works with, which ones there are, and how one is run.

A command is a function of a `Talk` and of the text after its name. It may be a plain function or a
coroutine; one that takes long runs while the prompt stays usable, and Esc stops it. Commands that come and
go, such as the actions of plugins, are found by a *finder* when their name is typed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from inspect import cleandoc
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from agent_core import AgentError
from agent_core.log import get_logger
from agent_runtime.defaults import ADDED_BY_HOOK
from agent_terminal_app.chat.rendering.markdown import LineMarkdown
from agent_terminal_app.chat.rendering.renderer import as_said
from agent_terminal_app.chat.rendering.text import clean, count, one_line, styled
from agent_terminal_app.rows import columns, in_rows, two_columns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from agent_app import AgentApplication
    from agent_core import Message
    from agent_terminal_app.chat.commands.cards import Card
    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.picker import Picker
    from agent_terminal_app.chat.rendering.screen import Screen


_ROOMS = (
    "sessions",
    "branches",
    "undo",
    "plan",
    "messages",
    "models",
    "plugins",
    "actions",
    "custom",
    "program",
)
"""The modules whose commands are listed, in this order."""

_RECALLED = 6
"""How many of the last messages are shown of a session that is opened."""
_LOOK_BACK = 300
"""How far back the message is looked for that the last work began with."""
_SPEAKERS = ("user", "assistant")
_MARK = 2
"""How many cells the mark in front of a message takes."""


class Asking(Protocol):
    """Asks the user for a line."""

    def __call__(self, question: str, *, hidden: bool = False, keys: str = "") -> Awaitable[str | None]:
        """Return the line; None if they leave it.

        Args:
            hidden: Whether the line is never shown and never kept.
            keys: Characters that are the answer as soon as they are pressed.
        """


class Undone(NamedTuple):
    """What one `/undo` took back.

    Attributes:
        session_id: The session that was left for a branch; empty if the conversation stayed.
        journal: The session whose journal has the changes of files.
        changes: How many of those were taken back.
    """

    session_id: str
    journal: str
    changes: int


@dataclass(slots=True)
class Notes:
    """What a chat remembers from one command to the next.

    Attributes:
        sessions: The ids that were listed last, so that they can be named by their number.
        models: The same for models.
        undone: What `/undo` took back, the last step at the end.
        undo_mode: What the user wants `/undo` to take back; empty if nobody has asked yet.
        journals: For branches, the session whose journal has the changes of files before.
        card: The card whose follow-ups can be chosen by number.
        shown: The ids of displays that were shown, so that an update can be distinguished.
    """

    sessions: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    undone: list[Undone] = field(default_factory=list)
    undo_mode: str = ""
    journals: dict[str, str] = field(default_factory=dict)
    card: Card | None = None
    shown: set[str] = field(default_factory=set)


# A `Talk` lives as long as one command, and a conversation as long as the chat.
_NOTES: WeakKeyDictionary[Conversation, Notes] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Talk:
    """What a command works with.

    Attributes:
        conversation: The session that is open, and the application.
        screen: Where lines go.
        ask: Asks the user for a line, perhaps a hidden one; None comes back if they leave it.
        pick: Has the user choose from a list; None comes back if they leave it.
        send: Says something to the agent as if it were typed, perhaps with attachments; nothing at all makes
            it go on.
    """

    conversation: Conversation
    screen: Screen
    ask: Asking
    pick: Callable[[Picker], Awaitable[str | None]]
    send: Callable[..., None]

    @property
    def app(self) -> AgentApplication:
        return self.conversation.app

    @property
    def notes(self) -> Notes:
        """What the chat remembers between commands."""
        return _NOTES.setdefault(self.conversation, Notes())

    def line(self, text: str = "", style: str = "", *, hang: int | None = None) -> None:
        """Show a line, or several, cut between words; whatever it quotes, nothing in it moves the cursor.

        Args:
            hang: How far what goes on in another row is set off.
        """
        for line in clean(text).split("\n"):
            self._show(in_rows(line, self.screen.width, hang), style)

    def row(self, front: str, about: str, style: str = "") -> None:
        """Show a row of a table: the columns before the last one, and that, in as many rows as it takes."""
        self._show(two_columns(clean(front), clean(about), self.screen.width), style)

    def columns(self, front: Sequence[tuple[str, int]], about: str) -> None:
        """Show a row of a table: cells, each with the width of its column, and the last one."""
        safe = [(clean(text), wide) for text, wide in front]
        self._show(columns(safe, clean(about), self.screen.width), "")

    def _show(self, rows: Iterable[str], style: str) -> None:
        for row in rows:
            self.screen.line(styled(row, style, color=self.screen.color))

    def note(self, text: str) -> None:
        """Show a line that is not part of the conversation."""
        self.line(text, "dim")

    def fail(self, problem: object) -> None:
        self.line(f"Error: {problem}", "red")

    def need_session(self) -> str:
        """Return the session that is open.

        Raises:
            AgentError: If nothing was said yet.
        """
        if self.conversation.session_id is None:
            raise AgentError("nothing has been said yet: say something first, or /resume a session")
        return self.conversation.session_id

    async def go_to(self, session_id: str | None) -> None:
        """Continue in another session; None for one that is created with the next message.

        Raises:
            SessionNotFound: If it is not there; the chat stays where it is.
        """
        if session_id is not None:
            await self.app.session_info_async(session_id)
        await self.conversation.go_to(session_id)
        with suppress(AgentError):  # an agent that cannot run says so when it is asked something
            await follow_model(self)

    async def open_session(self, session_id: str) -> None:
        """Continue a session, and show its last messages.

        Raises:
            SessionNotFound: If it is not there; the chat stays where it is.
        """
        await self.go_to(session_id)
        await asyncio.to_thread(self.conversation.lend_key, session_id)
        calls = 0
        for message in _recalled(await self.app.read_messages_async(session_id, limit=_LOOK_BACK)):
            if message.role == "tool" and not message.metadata.get("uncertain"):
                calls += 1
                continue
            if calls:
                self.note(f"  … {count(calls, 'tool call')}")
                calls = 0
            self._show_said(message)
        if calls:
            self.note(f"  … {count(calls, 'tool call')}")
        if own := self.conversation.instead_of:
            model = one_line(self.conversation.model)
            self.note(f"{model} answers in this session; /model default goes back to {one_line(own)}.")

    def _show_said(self, message: Message) -> None:
        """Show a message of a session that is opened."""
        if message.role == "tool":
            self.note(f"! {message.metadata.get('tool_name')}: {message.content}")
        elif message.metadata.get(ADDED_BY_HOOK):
            self.note(f"! {message.content}")
        elif message.role == "user":
            self._show(as_said(str(message.content), self.screen.width), "bold")
        else:
            width = None if self.screen.width is None else self.screen.width - _MARK
            words = LineMarkdown(color=self.screen.color, width=width)
            for line in [*words.feed(f"{message.content}\n"), *words.end()]:
                self.screen.line(f"  {line}")


def _recalled(messages: Sequence[Message]) -> Sequence[Message]:
    """Return what is shown of a session that is opened: its last messages, from a message of the user on.

    Results of tools are among them, to be counted.
    """
    said = [one for one in messages if one.role == "tool" or (one.role in _SPEAKERS and one.content)]
    shown = [place for place, one in enumerate(said) if one.role != "tool"]
    first = next(iter(shown[-_RECALLED:]), 0)
    asked = [place for place in shown if _is_asked(said[place])]
    if within := [place for place in asked if place >= first]:
        return said[within[0] :]  # an answer needs its question
    if not asked:
        return said[first:]
    last = asked[-1]  # long work: the request stays in sight, however much came after it
    between = [one for one in said[last + 1 : first] if one.role == "tool"]
    return [said[last], *between, *said[first:]]


def _is_asked(message: Message) -> bool:
    return message.role == "user" and not message.metadata.get(ADDED_BY_HOOK)


async def follow_model(talk: Talk) -> None:
    """Let the agent's tools follow the model that answers now, and say so if they have changed.

    Raises:
        AgentError: If no agent is declared, or it cannot run.
    """
    if line := await talk.conversation.follow_model():
        talk.note(line)


GROUPS = ("Sessions", "This conversation", "Model and usage", "Plugins", "The program")
"""Under which headings `/help` lists the commands."""
_log = get_logger("chat")


class Quit(Exception):
    """The user wants to leave."""


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
        idle: Whether it needs the agent to be idle.
        choices: What may follow the name, for completion; called in a thread.
        covers: Actions of plugins, as `PLUGIN.ACTION`, that it does itself; they are not listed as commands.
    """

    name: str
    run: Function
    about: str
    group: str
    takes: str = ""
    details: str = ""
    idle: bool = False
    choices: Choices | None = None
    covers: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
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
    covers: tuple[str, ...] = (),
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
            covers=covers,
        )
        if alias:
            ALIASES[alias] = name
        return function

    return register


def fixed_names() -> set[str]:
    """Return the names that always mean a command of the chat, whatever plugins and users call theirs."""
    return {*COMMANDS, *ALIASES}


def covered_actions() -> set[str]:
    """Return the actions of plugins that a command of the chat does."""
    return {action for one in COMMANDS.values() for action in one.covers}


def load_commands() -> None:
    """Load the modules of this room, which registers their commands.

    They need most of the program, so they are loaded in a thread while the prompt is already there.
    """
    for room in _ROOMS:
        import_module(f"agent_terminal_app.chat.commands.{room}")


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
    """Run the command after a slash; errors are shown, and the chat continues.

    Raises:
        Quit: If the user wants to leave.
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
    except Exception as error:  # a bug in one command must not end the whole chat
        _log.error("command_failed", command=name, error=repr(error))
        talk.fail(f"/{name} failed, because of a bug in this program: {type(error).__name__}: {error}")


async def _run(talk: Talk, name: str, rest: str) -> None:
    found = await find_command(talk, name)
    if found is None and (whole := await asyncio.to_thread(_begun, talk.conversation, name)):
        found = await find_command(talk, whole)
    if found is None:
        talk.note(await asyncio.to_thread(_unknown, talk.conversation, name))
        return
    if found.name not in (name, ALIASES.get(name)):
        talk.note(f"/{found.name}")
    if found.idle and talk.conversation.running:
        raise AgentError(f"the agent is working: press Esc to stop it, then type /{name} again")
    working: Any = found.run(talk, rest)
    if working is not None:
        await working


def _begun(conversation: Conversation, name: str) -> str:
    """Return the one command that begins with a name; empty if there are more, or none."""
    for known in (COMMANDS, dict(names(conversation))):
        meant = [one for one in known if one.startswith(name)]
        if meant:
            return meant[0] if len(meant) == 1 else ""
    return ""


def _unknown(conversation: Conversation, name: str) -> str:
    close = get_close_matches(name, [known for known, _about in names(conversation)], n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    hint = f"{meant}/help lists them. Words that begin with a slash need a space before it."
    return f"There is no command /{one_line(name, 60)}: {hint}"


_PAUSES = (1.0, 9.0, 20.0, 30.0)
_LATER = 60.0


@asynccontextmanager
async def still_working(tell: Callable[[str], None], what: str) -> AsyncIterator[None]:
    """Tell while the block lasts what is being done, for how long, and how to stop it."""
    task = asyncio.create_task(_report(tell, what))
    try:
        yield
    finally:
        task.cancel()


async def _report(tell: Callable[[str], None], what: str) -> None:
    seconds = 0.0
    for pause in chain(_PAUSES, repeat(_LATER)):
        await asyncio.sleep(pause)
        seconds += pause
        tell(f"… {what}, {seconds:.0f} s (Esc stops it)")
