"""The `agent` command. What a subcommand needs is imported when it is called."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agent_terminal_app.variables import COMPLETING, LOG_LEVEL

if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn, TextIO

    import click

_PLAIN_CHATS: tuple[list[str], ...] = ([], ["chat"], ["chat", "--demo"])

COMMANDS = {
    "chat": "talk to an agent",
    "setup": "connect a model",
    "run": "ask an agent once, for scripts",
    "sessions": "list, show, search, export, import and delete conversations",
    "agents": "list and check agents",
    "models": "list models, and get the embedded one",
    "plugins": "list plugins, and why each is on or off",
    "permissions": "list, give and take back permissions",
    "keys": "store, list and remove keys of providers",
    "config": "show and change settings",
    "doctor": "look for what is wrong",
    "worker": "take runs from a queue that many workers share",
    "workers": "list the workers",
    "runs": "send work to workers, list, show, cancel and retry it",
    "completion": "print a completion script for a shell",
}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; without a subcommand it is a chat."""
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:  # the usual question need not load anything
        from agent_terminal_app import __version__

        try:
            print(f"agent {__version__}", flush=True)
        except OSError as error:
            print(f"agent: cannot write stdout: {error.strerror}", file=sys.stderr)
            leave(1)
        return
    leave(_run(given))


def leave(code: int) -> NoReturn:
    """End the process with an exit code, whoever may have left before."""
    for stream in (sys.stdout, sys.stderr):
        _let_go(stream)
    sys.exit(code)


def _let_go(stream: TextIO | None) -> None:
    """Flush a stream whose reader may have left: Python would give another exit code for that at its end."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        import os

        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    from agent_core import AgentError
    from agent_terminal_app.exits import code_of, is_of_the_system, tell, tell_fault, tell_refusal
    from agent_terminal_app.logs import stop_log

    try:
        return _chat_at_once(arguments) if is_a_plain_chat(arguments) else _by_click(arguments)
    except KeyboardInterrupt:
        return 130
    except AgentError as error:
        tell(error)
        return code_of(error)
    except Exception as error:  # noqa: BLE001 - a fault of ours: the log has all of it, the person a sentence
        if isinstance(error, OSError) and is_of_the_system(error):
            return tell_refusal(error)
        return tell_fault(error)
    finally:
        stop_log()


def is_a_plain_chat(arguments: list[str]) -> bool:
    """Say whether somebody at a terminal wants to talk and says nothing else about it.

    That is how most chats begin, and nothing has to be read for it: the prompt is there a little sooner.
    """
    if arguments not in _PLAIN_CHATS or LOG_LEVEL in os.environ or COMPLETING in os.environ:
        return False
    from agent_terminal_app.talking import somebody_is_there

    return somebody_is_there()


def _chat_at_once(arguments: list[str]) -> int:
    from agent_terminal_app.logs import start_log
    from agent_terminal_app.talking import talk

    start_log(_log_folder)
    return talk(demo="--demo" in arguments)


def _by_click(arguments: list[str]) -> int:
    import click

    try:
        outcome = group().main(arguments, prog_name="agent", standalone_mode=False)
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return outcome if isinstance(outcome, int) else 0


def group() -> click.Group:
    """Return the command with its subcommands, each loaded when it is first asked for."""
    import click

    from agent_terminal_app import __version__
    from agent_terminal_app.logs import DEFAULT_LEVEL, LEVELS, start_log

    class Commands(click.Group):
        def list_commands(self, context: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
            return list(COMMANDS)

        def get_command(self, context: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
            if name not in COMMANDS:
                return None
            command: click.Command = import_module(f"agent_terminal_app.commands.{name}").command
            return command

    @click.group(cls=Commands, invoke_without_command=True)
    @click.version_option(__version__, message="agent %(version)s")
    @click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default=DEFAULT_LEVEL,
        envvar=LOG_LEVEL,
        help="How much is logged.",
    )
    @click.pass_context
    def agent(context: click.Context, log_level: str) -> Any:
        """Talk to agents in a terminal, or run them from scripts."""
        start_log(_log_folder, log_level)
        if context.invoked_subcommand is None:
            return context.invoke(_chat())
        return None

    return agent


def _log_folder() -> Path:
    from agent_terminal_app.paths import Paths

    return Paths.of_this_user().log


def _chat() -> click.Command:
    command: click.Command = import_module("agent_terminal_app.commands.chat").command
    return command
