"""One run of the program: a command is run, and what goes wrong becomes a sentence and an exit code."""

from __future__ import annotations

import errno
import os
import sys

from agent_core import AgentError
from agent_terminal_app import lazy
from agent_terminal_app.errors import Exit, code_of, error_text
from agent_terminal_app.logs import (
    LEVEL_VARIABLE,
    hidden,
    is_logging,
    note_failure,
    note_traceback,
    start_log,
    stop_log,
)
from agent_terminal_app.output import COMPLETION_VARIABLE, is_terminal, one_line, say
from agent_terminal_app.paths import log_folder

_PLAIN_CHATS: tuple[list[str], ...] = ([], ["chat"], ["chat", "--demo"])
_REFUSALS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EFBIG, errno.EMFILE}
)
"""What the machine refuses and no program can help: a full disk, missing rights."""


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    try:
        return _chat_at_once(arguments) if is_plain_chat(arguments) else _run_click(arguments)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except AgentError as error:
        return _report(error)
    except Exception as error:  # a bug of ours: the log has all of it, the user gets a sentence
        if isinstance(error, OSError) and error.errno in _REFUSALS:
            return _report_refusal(error)
        return _report_bug(error)
    finally:
        stop_log()


def is_plain_chat(arguments: list[str]) -> bool:
    """Say whether a user at a terminal wants to chat, without any options that have to be read.

    That is how most chats begin, and without click the prompt is there a little sooner.
    """
    if arguments not in _PLAIN_CHATS or LEVEL_VARIABLE in os.environ or COMPLETION_VARIABLE in os.environ:
        return False
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def _chat_at_once(arguments: list[str]) -> int:
    from agent_terminal_app.launch import talk  # other commands do without the chat

    start_log(log_folder)
    return talk(demo="--demo" in arguments)


def _run_click(arguments: list[str]) -> int:
    from agent_terminal_app.commands import group  # a plain chat does without click

    return group.run(arguments)


def _report(error: AgentError) -> int:
    """Say on stderr what went wrong, with nothing in it that would move a cursor; the log has it too."""
    code = code_of(error)
    if code != Exit.USAGE:
        note_failure("command_failed", error, exit_code=int(code))
    for line in error_text(error).splitlines():
        say(line if line.startswith(" ") else f"agent: {line}")
    return code


def _report_refusal(error: OSError) -> Exit:
    """Say on stderr what the machine refused; the log has the traceback."""
    note_traceback("refused_by_the_system", error)
    place = one_line(error.filename) if error.filename else "stdout, or a file that is needed,"
    say(f"agent: {place} cannot be used: {error.strerror}")
    return Exit.FAILURE


def _report_bug(error: Exception) -> Exit:
    """Say in a sentence on stderr that this is a bug; the log has the traceback.

    The message of a library's error may hold anything, so secrets are taken out of the sentence.
    """
    note_traceback("unexpected_error", error)
    problem = lazy.Redactor.from_environment(secrets=hidden()).text(f"{type(error).__name__}: {error}")
    where = f"the traceback is in {log_folder()}" if is_logging() else "nothing is logged"
    say(f"agent: a bug in this program, {one_line(problem)}; {where}")
    return Exit.FAILURE
