"""`/copy`, `/show`, `/attach`, `/template`: parts of messages, those that came and the next one."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from agent_core import AgentError
from agent_core.clean_text import clean
from agent_terminal_app.chat import clipboard
from agent_terminal_app.chat.attachments import Attachment, check_together, read_file
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.rendering.folds import fold_lines
from agent_terminal_app.chat.rendering.text import count, one_line

_BLOCK = re.compile(r"^(?P<fence>```+|~~~+)[^\n]*\n(?P<code>.*?)^(?P=fence)\s*$", re.MULTILINE | re.DOTALL)


@command("copy", "copy the last answer, or code in it", group="This conversation", takes="[NUMBER]")
async def copy(talk: Talk, rest: str) -> None:
    """Copy the last answer to the clipboard, or with a number that piece of code in it.

    There is no line break at the end and no control character inside, so that pasted it does not run.
    """
    session = await talk.app.load_session_async(talk.need_session())
    answers = [one.content for one in session.messages if one.role == "assistant" and one.content]
    if not answers:
        raise AgentError("there is no answer to copy yet")
    answer = str(answers[-1])
    await copy_and_tell(talk, clean(_block(answer, rest) if rest else answer).rstrip("\n"))


async def copy_and_tell(talk: Talk, text: str) -> None:
    """Copy a text, and say where it is now.

    Raises:
        AgentError: If there is no clipboard.
    """
    places = await clipboard.copy(text)
    if not places:
        raise AgentError("there is no clipboard here: select the text, or use /export FILE.md")
    talk.note(f"Copied {count(len(text), 'character')} to {' and to '.join(places)}.")


def _block(answer: str, wanted: str) -> str:
    blocks = [found["code"] for found in _BLOCK.finditer(answer)]
    if not wanted.isdecimal() or not 1 <= int(wanted) <= len(blocks):
        there = f"the last answer has {count(len(blocks), 'piece')} of code"
        raise AgentError(f"there is no piece {one_line(wanted, 20)!r}: {there}")
    return blocks[int(wanted) - 1]


_GROUP = "This conversation"


@command("show", "open a tool call or a thought that was shown as one line", group=_GROUP, takes="[NUMBER]")
def show(talk: Talk, rest: str) -> None:
    """Show all of a tool call (arguments, output, result), or of the model's thinking.

    The number is at the end of its line. Without one it is the last; Ctrl+O does the same, for a while.
    """
    if rest and not rest.isdecimal():
        raise AgentError(f"{rest!r} is not a number: use the one at the end of the line, as in /show 3")
    fold = talk.conversation.folds.find(int(rest) if rest else None)
    if fold is None:
        raise AgentError(f"there is no [{rest}] to open" if rest else "there is nothing to open yet")
    for line in fold_lines(fold, width=talk.screen.width, color=talk.screen.color):
        talk.screen.line(line)


@command("attach", "send a file with your next message", group=_GROUP, takes="FILE")
async def attach(talk: Talk, rest: str) -> None:
    """Send a text file or a picture with your next message. @FILE in the message does the same."""
    if not rest:
        raise AgentError("which file? /attach FILE, or @FILE in your message")
    attachment = await asyncio.to_thread(_read, rest.strip('"'))
    check_together([*talk.conversation.attached, attachment])
    talk.conversation.attached.append(attachment)
    if not talk.screen.is_live:  # else it is above the prompt until it is sent
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
