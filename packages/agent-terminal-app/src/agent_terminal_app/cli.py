"""The `agent` command. What a subcommand needs is imported when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

COMMANDS = {
    "chat": "talk to an agent",
    "run": "ask an agent once, for scripts",
    "sessions": "list, show, search, export, import and delete conversations",
    "agents": "list and check agents",
    "models": "list models, and get the embedded one",
    "plugins": "list plugins, and why each is on or off",
    "keys": "store, list and remove keys of providers",
    "config": "show and change settings",
    "doctor": "look for what is wrong",
    "completion": "print a completion script for a shell",
}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; without a subcommand it is a chat."""
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:  # the usual question need not load anything
        from agent_terminal_app import __version__

        print(f"agent {__version__}")
        return
    sys.exit(_run(given))


def _run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    import click

    from agent_core import AgentError
    from agent_terminal_app.exits import code_of, tell

    try:
        outcome = group().main(arguments, prog_name="agent", standalone_mode=False)
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except AgentError as error:
        tell(error)
        return code_of(error)
    return outcome if isinstance(outcome, int) else 0


def group() -> click.Group:
    """Return the command with its subcommands, each loaded when it is first asked for."""
    import click

    from agent_terminal_app import __version__

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
    @click.pass_context
    def agent(context: click.Context) -> Any:
        """Talk to agents in a terminal, or run them from scripts."""
        if context.invoked_subcommand is None:
            return context.invoke(_chat())
        return None

    return agent


def _chat() -> click.Command:
    command: click.Command = import_module("agent_terminal_app.commands.chat").command
    return command
