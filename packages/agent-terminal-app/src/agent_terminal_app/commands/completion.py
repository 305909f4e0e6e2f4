"""`agent completion`: a script by which a shell completes commands, options and sessions."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from agent_terminal_app.output import COMPLETION_VARIABLE, print_lines


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print a completion script for a shell.

    For bash and zsh: eval "$(agent completion bash)". For fish: agent completion fish | source.
    """
    completion = get_completion_class(shell)
    assert completion is not None  # click has the three
    # Not source(): for bash it would start a bash to ask for its version.
    script = completion(context.find_root().command, {}, "agent", COMPLETION_VARIABLE)
    print_lines([script.source_template % script.source_vars()])
