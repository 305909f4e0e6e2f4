"""`/show`, `/attach`, `/template`: what was folded, what goes with a message, what one may begin with."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_core import AgentError
from agent_terminal_app.chat.attachments import Attachment, check_together, read_file
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.folds import opened

_GROUP = "This conversation"


@command("show", "open a tool call or a thought that was shown as one line", group=_GROUP, takes="[NUMBER]")
def show(talk: Talk, rest: str) -> None:
    """Show everything of a tool call: arguments, output, result; or of what the model thought.

    The number stands behind its line. Without one it is the last; Ctrl+O does the same, for a while.
    """
    if rest and not rest.isdecimal():
        raise AgentError(f"{rest!r} is no number: it stands in brackets behind the line, as in /show 3")
    fold = talk.conversation.folds.find(int(rest) if rest else None)
    if fold is None:
        raise AgentError(f"there is no [{rest}] to open" if rest else "there is nothing to open yet")
    for line in opened(fold, width=talk.screen.width, color=talk.screen.color):
        talk.screen.line(line)


@command("attach", "send a file with your next message", group=_GROUP, takes="FILE")
async def attach(talk: Talk, rest: str) -> None:
    """Send a text file or a picture with your next message. @FILE in the message does the same."""
    if not rest:
        raise AgentError("which file? /attach FILE, or @FILE in your message")
    attachment = await asyncio.to_thread(_read, rest.strip('"'))
    check_together([*talk.conversation.attached, attachment])
    talk.conversation.attached.append(attachment)
    talk.note(attachment.line())


def _read(name: str) -> Attachment:
    return read_file(Path.cwd() / Path(name).expanduser())


@command("template", "begin a message with the text that a plugin has for it", group=_GROUP)
async def template(talk: Talk, _rest: str) -> None:
    """Put the template of the agent's plugins into the prompt, to be filled in and sent."""
    core, config = await asyncio.to_thread(talk.conversation.front_end)
    text = await asyncio.to_thread(core.get_template, config)
    if not text:
        raise AgentError("none of the agent's plugins has a template")
    if talk.conversation.fill is not None:
        talk.conversation.fill(text)
    else:
        for line in text.splitlines():
            talk.line(line)
