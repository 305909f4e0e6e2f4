"""Completion: commands and their arguments, files after an @, and suggestions of features.

Everything here runs in a thread: looking for files, reading sessions and asking features may take a
moment, and a key press must not wait for any of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from prompt_toolkit.completion import Completer, Completion

from agent_core import AgentError
from agent_terminal_app.chat.attachments import mention, open_mention
from agent_terminal_app.chat.commands.registry import COMMANDS, load_commands, names
from agent_terminal_app.chat.rendering.text import clean, fitted, one_line
from agent_terminal_app.remote import server_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prompt_toolkit.document import Document

    from agent_terminal_app.chat.attachments import Workspace
    from agent_terminal_app.chat.conversation import Conversation
    from agent_terminal_app.chat.loop import Chat

    Choices = Callable[[Conversation, str], Iterable[tuple[str, str]]]

_COMMAND = re.compile(r"/(\S*)$")
_ARGUMENT = re.compile(r"/(\S+)\s+(.*)$", re.DOTALL)
_PLACE = re.compile(r"\$\{\d+(?::([^}]*))?\}|\$\d+")
_LISTED = 30
_META = 60


class Snippet(NamedTuple):
    """A text to put in, and where the cursor goes in it."""

    text: str
    cursor: int


class FeatureCompletion(Completion):
    """A suggestion of a feature, with what the feature wants back when it is accepted."""

    def __init__(
        self, suggestion: dict[str, Any], replacement: str, start: int, shown: str, about: str
    ) -> None:
        super().__init__(replacement, start_position=start, display=shown, display_meta=about)
        self.suggestion = suggestion


class ChatCompleter(Completer):
    """Completes what is typed in a chat.

    Attributes:
        asked: The text that was looked at last.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.asked = ""

    def get_completions(self, document: Document, complete_event: Any) -> Iterator[Completion]:
        """Yield what the text before the cursor may become."""
        text = self.asked = document.text_before_cursor
        if self._chat.asks_for_a_line:
            return
        if (found := _COMMAND.match(text)) is not None:
            yield from _commands(self._chat.conversation, found[1])
        elif (found := _ARGUMENT.match(text)) is not None and self._chat.conversation is not None:
            yield from _arguments(self._chat.conversation, found[1], found[2])
        elif (typed := open_mention(text)) is not None:
            yield from _files(self._chat.workspace(), text, *typed)
        if self._chat.conversation is not None and text.strip():
            yield from _suggestions(self._chat.conversation, text)


def accepted(conversation: Conversation, text: str, completion: FeatureCompletion) -> Snippet | None:
    """Return what a feature makes of its suggestion now that it was accepted; None to leave it."""
    server, session_id = server_of(conversation.app), conversation.session_id
    try:
        if server is not None:
            snippet = server.apply_completion(session_id, text, completion.suggestion) if session_id else ""
        else:
            core, config = conversation.front_end()
            snippet = core.apply_feature_completion(config, text, completion.suggestion)
    except AgentError:
        return None
    return read_snippet(snippet) if snippet else None


def read_snippet(snippet: str) -> Snippet:
    """Read a text with places to fill in, such as ${1:name}: the first one is where one goes on typing."""
    text, cursor, end = "", None, 0
    for found in _PLACE.finditer(snippet):
        text += snippet[end : found.start()] + (found[1] or "")
        cursor = len(text) if cursor is None else cursor
        end = found.end()
    text += snippet[end:]
    return Snippet(clean(text), len(text) if cursor is None else cursor)


def _commands(conversation: Conversation | None, begun: str) -> Iterator[Completion]:
    """Yield commands in their own order: those that begin like this, then those that have it somewhere."""
    known = _names(conversation)
    first = [pair for pair in known if pair[0].startswith(begun)]
    later = [pair for pair in known if begun and begun in pair[0] and pair not in first]
    for name, about in (*first, *later):
        yield Completion(f"/{name}", start_position=-len(begun) - 1, display_meta=_short(about))


def _arguments(conversation: Conversation, name: str, begun: str) -> Iterator[Completion]:
    choices: Choices | None = getattr(COMMANDS.get(name), "choices", None) or _CHOICES.get(name)
    if choices is None:
        return
    low = begun.lower()
    for value, about in choices(conversation, begun):
        if low in value.lower() or low in about.lower():
            yield Completion(
                value, start_position=-len(begun), display=_short(value), display_meta=_short(about)
            )


def _files(workspace: Workspace, text: str, start: int, begun: str) -> Iterator[Completion]:
    for path in workspace.matching(begun):
        yield Completion(mention(path), start_position=start - len(text), display=path)


def _suggestions(conversation: Conversation, text: str) -> Iterator[Completion]:
    server, session_id = server_of(conversation.app), conversation.session_id
    try:
        if server is not None:
            found = server.complete(session_id, text) if session_id else []
        else:
            core, config = conversation.front_end()
            found = core.get_completions(config, text)
    except AgentError:
        return
    for suggestion in found[:_LISTED]:
        replacement, start = suggestion.get("replacement"), suggestion.get("start")
        if isinstance(replacement, str) and replacement:
            begin = start if isinstance(start, int) and -len(text) <= start <= 0 else 0
            shown = _short(str(suggestion.get("display") or replacement))
            about = _short(str(suggestion.get("display_meta") or ""))
            yield FeatureCompletion(suggestion, clean(replacement), begin, shown, about)


def _short(text: str) -> str:
    return fitted(one_line(text), _META)


def _sessions(conversation: Conversation, begun: str) -> Iterator[tuple[str, str]]:
    page = conversation.app.list_sessions(None, limit=_LISTED * (1 if not begun else 10))
    return ((info.id, info.title or f"{info.messages} messages") for info in page.sessions)


def _agents(conversation: Conversation, _begun: str) -> Iterator[tuple[str, str]]:
    agents = conversation.app.config.get("agents", {})
    return ((name, str(agent.get("description", ""))) for name, agent in agents.items())


def _models(conversation: Conversation, _begun: str) -> Iterator[tuple[str, str]]:
    models = conversation.app.config.get("models", {})
    return ((name, str(model.get("provider", ""))) for name, model in models.items())


def _help(conversation: Conversation, _begun: str) -> Iterator[tuple[str, str]]:
    return iter(_names(conversation))


def _names(conversation: Conversation | None) -> list[tuple[str, str]]:
    """Return the commands; they are loaded when one is first looked for, and not before the first prompt."""
    load_commands()
    return names(conversation)


_CHOICES: dict[str, Choices] = {"resume": _sessions, "agent": _agents, "model": _models, "help": _help}
"""What may follow some commands; a command with `choices` of its own says it itself."""
