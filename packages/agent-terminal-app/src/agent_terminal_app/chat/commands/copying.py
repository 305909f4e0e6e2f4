"""`/copy`: the last answer, or a piece of code in it, on the clipboard."""

from __future__ import annotations

import re

from agent_core import AgentError
from agent_core.display.text import clean
from agent_terminal_app.chat import clipboard
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.words import count, one_line

_BLOCK = re.compile(r"^(?P<fence>```+|~~~+)[^\n]*\n(?P<code>.*?)^(?P=fence)\s*$", re.MULTILINE | re.DOTALL)


@command("copy", "copy the last answer, or code in it", group="This conversation", takes="[NUMBER]")
async def copy(talk: Talk, rest: str) -> None:
    """Copy the last answer to the clipboard, or with a number that piece of code in it.

    There is no line break at the end and no control character inside, so that pasted it does not run.
    """
    session = await talk.app.load_session_async(talk.need_session())
    answers = [one.content for one in session.messages if one.role == "assistant" and one.content]
    if not answers:
        raise AgentError("there is no answer yet that could be copied")
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
