"""The commands of the chat: one small function each, listed in the order in which people need them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_terminal_app.chat.markdown import LineMarkdown, clean, styled

if TYPE_CHECKING:
    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.screen import Screen

_SHOWN = 20


class Quit(Exception):  # noqa: N818 - a signal
    """The person wants to leave."""


@dataclass(frozen=True, slots=True)
class Talk:
    """What a command works with."""

    conversation: Conversation
    screen: Screen
    ask: Callable[[str], Awaitable[str | None]]

    def note(self, text: str) -> None:
        """Show a line that is no part of the conversation."""
        self.screen.line(styled(text, "dim", color=self.screen.color))

    def need_session(self) -> str:
        """Return the session that is open.

        Raises:
            AgentError: If nothing was said yet.
        """
        if self.conversation.session_id is None:
            raise AgentError("nothing was said yet: say something first, or /resume a session")
        return self.conversation.session_id


Command = Callable[[Talk, str], "Awaitable[None] | None"]
COMMANDS: dict[str, tuple[Command, str]] = {}
"""Every command with its function and its line of help; plugins' actions come beside these."""


def command(name: str, about: str) -> Callable[[Command], Command]:
    """Register a command of the chat."""

    def register(function: Command) -> Command:
        COMMANDS[name] = (function, about)
        return function

    return register


async def run_command(talk: Talk, line: str) -> None:
    """Run what stands behind a slash; what goes wrong is told, and the chat goes on."""
    name, _, rest = line.removeprefix("/").partition(" ")
    found = COMMANDS.get(name)
    if found is None:
        from agent_runtime.errors import nearest

        talk.note(f"There is no command /{clean(name)}: {nearest(name, COMMANDS)} /help lists them.")
        return
    try:
        working = found[0](talk, rest.strip())
        if working is not None:
            await working
    except AgentError as error:
        talk.screen.line(styled(f"Error: {clean(str(error))}", "red", color=talk.screen.color))


@command("help", "list the commands and keys")
def _help(talk: Talk, _rest: str) -> None:
    for name, (_function, about) in COMMANDS.items():
        talk.screen.line(f"  /{name:<12} {about}")
    talk.note(
        "  Enter sends, or steers while the agent works; Tab queues; Esc stops; Alt+Enter is a new line."
    )


@command("new", "begin another session")
def _new(talk: Talk, _rest: str) -> None:
    talk.conversation.session_id = None
    talk.note("A new session; the old one is kept (/sessions).")


@command("sessions", "list sessions; with words, those that have them")
def _sessions(talk: Talk, rest: str) -> None:
    page = talk.conversation.app.list_sessions(rest or None, limit=_SHOWN)
    for info in page.sessions:
        here = "→" if info.id == talk.conversation.session_id else " "
        name = info.title or _first_words(talk, info.id)
        talk.screen.line(f"{here} {info.id[:8]}  {info.messages:>4} messages  {clean(name)}")
    if not page.sessions:
        talk.note("There are none yet.")


def _first_words(talk: Talk, session_id: str) -> str:
    messages = talk.conversation.app.read_messages(session_id, before=1, limit=1)
    return " ".join(str(messages[0].content).split())[:60] if messages else "(empty)"


@command("resume", "go on with a session: its id, the beginning of it, or its title")
def _resume(talk: Talk, rest: str) -> None:
    if not rest:
        raise AgentError("which session? /sessions lists them")
    app = talk.conversation.app
    found = [
        one for one in app.list_sessions(limit=1000).sessions if one.id.startswith(rest) or one.title == rest
    ]
    if len(found) != 1:
        many = "several sessions begin" if found else "no session begins"
        raise AgentError(f"{many} with {rest!r}: /sessions lists them")
    talk.conversation.session_id = found[0].id
    words = LineMarkdown(color=talk.screen.color)
    for message in app.read_messages(found[0].id, limit=6):
        if message.role in ("user", "assistant") and message.content:
            who = "»" if message.role == "user" else " "
            for line in [*words.feed(f"{message.content}\n"), *words.end()]:
                talk.screen.line(f"{who} {line}")


@command("rename", "give this session a title")
def _rename(talk: Talk, rest: str) -> None:
    if not rest:
        raise AgentError("which title? /rename A title")
    talk.conversation.app.rename_session(talk.need_session(), rest)
    talk.note("Renamed.")


@command("fork", "go on in a copy of this session")
def _fork(talk: Talk, _rest: str) -> None:
    session_id = talk.need_session()
    count = len(talk.conversation.app.load_session(session_id).messages)
    forked = talk.conversation.app.fork_session(session_id, upto_index=count - 1)
    talk.conversation.session_id = forked.session_id
    talk.note(f"This is {forked.session_id[:8]} now; {session_id[:8]} stays as it is.")


@command("rewind", "go back before your last message, in a branch")
def _rewind(talk: Talk, _rest: str) -> None:
    session_id = talk.need_session()
    messages = talk.conversation.app.load_session(session_id).messages
    last = max((n for n, message in enumerate(messages) if message.role == "user"), default=-1)
    if last < 0:
        raise AgentError("there is no message of yours to go back before")
    if last == 0:
        talk.conversation.session_id = None
    else:
        branch = talk.conversation.app.fork_session(session_id, upto_index=last - 1)
        talk.conversation.session_id = branch.session_id
    talk.note(f"Back before: {clean(str(messages[last].content))}")


@command("export", "write this session to a file")
def _export(talk: Talk, rest: str) -> None:
    session_id = talk.need_session()
    path = Path(rest or f"session-{session_id[:8]}.zip").expanduser()
    talk.conversation.app.export_session(session_id, path)
    talk.note(f"Written to {path}; secrets that look like some are taken out.")


@command("import", "read a session from a file, and go on with it")
def _import(talk: Talk, rest: str) -> None:
    if not rest:
        raise AgentError("which file? /import FILE")
    talk.conversation.session_id = talk.conversation.app.import_session(Path(rest).expanduser()).id
    talk.note("Imported; this is it.")


@command("model", "say which model answers")
def _model(talk: Talk, _rest: str) -> None:
    config = talk.conversation.app.config
    agent = config["agents"][config["default_agent"]]
    declared = config["models"][agent["model"]]
    talk.screen.line(
        f"{agent['model']} ({declared['provider']} {declared.get('model') or ''})".rstrip(" )") + ")"
    )
    talk.note("`agent config set model PROVIDER:MODEL` chooses another for the next start.")


@command("agent", "list agents; with a name, switch to that one")
def _agent(talk: Talk, rest: str) -> None:
    app = talk.conversation.app
    if rest:
        talk.conversation.begin()
        app.switch_agent(talk.need_session(), rest)
        talk.note(f"{rest} answers from now on.")
        return
    for name, agent in app.config["agents"].items():
        talk.screen.line(f"  {name:<16} {clean(str(agent.get('description', '')))}")


@command("tools", "list what the agent can do")
def _tools(talk: Talk, _rest: str) -> None:
    app = talk.conversation.app
    for tool in app.runtime.resolve(app.config["default_agent"]).descriptors:
        talk.screen.line(f"  {tool.name:<20} {clean(tool.description.partition(chr(10))[0])}")


@command("plugins", "list plugins, and why each is on or off")
def _plugins(talk: Talk, _rest: str) -> None:
    app = talk.conversation.app
    for decision in app.runtime.resolve(app.config["default_agent"]).decisions:
        talk.screen.line(f"  {'on ' if decision.enabled else 'off'} {decision.plugin:<24} {decision.detail}")


@command("actions", "list what plugins can do with this session")
def _actions(talk: Talk, _rest: str) -> None:
    for action in talk.conversation.app.get_actions(talk.conversation.session_id):
        talk.screen.line(f"  {action['plugin']}.{action['id']:<24} {clean(str(action.get('label', '')))}")


@command("cost", "say what was used")
def _cost(talk: Talk, _rest: str) -> None:
    talk.screen.line(talk.conversation.meters())


@command("quit", "leave; everything is kept")
def _quit(_talk: Talk, _rest: str) -> None:
    raise Quit


def names() -> list[Any]:
    """Return every command with its line of help, for completion."""
    return [(name, about) for name, (_function, about) in COMMANDS.items()]
