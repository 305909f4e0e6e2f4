"""The subcommands of `agent` by name. Each is loaded when it is run; help and completion load none."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from agent_terminal_app import __version__
from agent_terminal_app.errors import Exit
from agent_terminal_app.logs import DEFAULT_LEVEL, LEVEL_VARIABLE, LEVELS, start_log
from agent_terminal_app.output import COMPLETION_VARIABLE, print_lines
from agent_terminal_app.paths import log_folder

COMMANDS = {
    "chat": "talk to an agent",
    "setup": "connect a model",
    "run": "ask an agent once, for scripts",
    "serve": "serve sessions and agents over HTTP",
    "sessions": "list, show, search, export, import and delete conversations",
    "trace": "draw the steps of a run, and how long each took",
    "agents": "list and check agents",
    "models": "list models, and get the embedded one",
    "plugins": "list, explain, find, add, remove and write plugins",
    "mcp": "add, import, try and remove MCP servers",
    "permissions": "list, give and take back permissions",
    "sandbox": "show and try what confines programs",
    "keys": "store, list and remove keys of providers",
    "config": "show and change settings",
    "doctor": "check the program and its settings",
    "worker": "take runs from a queue that many workers share",
    "workers": "list the workers",
    "runs": "send work to workers, list, show, cancel and retry it",
    "completion": "print a completion script for a shell",
}
"""Every subcommand with its line in `agent --help`."""
_HOMES = {
    "completion": ("group", "completion_command"),
    "agents": ("agents", "agents_command"),
    "models": ("agents", "models_command"),
    "plugins": ("plugins", "plugins_command"),
    "worker": ("workers", "worker_command"),
    "workers": ("workers", "workers_command"),
}
"""The module and the name of commands that share a module; others are `command` in one of their own."""


class Commands(click.Group):
    """A group whose commands are loaded by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, name = _HOMES.get(cmd_name, (cmd_name, "command"))
        command: click.Command = getattr(import_module(f"agent_terminal_app.commands.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands; loading each for its help would take a second."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the names of commands for the same reason without loading them."""
        named = [
            CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]


def run(arguments: list[str]) -> int:
    """Run a command line, and return its exit code; click's own errors are shown."""
    try:
        outcome = agent.main(arguments, prog_name="agent", standalone_mode=False)
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.Abort:
        return Exit.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return outcome if isinstance(outcome, int) else Exit.OK


@click.group(cls=Commands, invoke_without_command=True)
@click.version_option(__version__, message="Keelwork %(version)s")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default=DEFAULT_LEVEL,
    envvar=LEVEL_VARIABLE,
    help="How much is logged.",
)
@click.pass_context
def agent(context: click.Context, log_level: str) -> Any:
    """Keelwork: talk to agents in a terminal, or run them from scripts."""
    start_log(log_folder, log_level)
    if context.invoked_subcommand is not None:
        return None
    chat = agent.get_command(context, "chat")
    assert chat is not None
    return context.invoke(chat)


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print a completion script for a shell.

    For bash and zsh: eval "$(agent completion bash)". For fish: agent completion fish | source.
    """
    completion = get_completion_class(shell)
    assert completion is not None  # click has the three
    # Not source(): for bash it would start a bash to ask for its version.
    script = completion(context.find_root().command, {}, "agent", COMPLETION_VARIABLE)
    print_lines([script.source_template % script.source_vars()])
