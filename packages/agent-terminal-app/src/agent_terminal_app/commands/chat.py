"""`agent chat`: talk to an agent."""

from __future__ import annotations

import click

from agent_terminal_app.commands.sessions import complete_session
from agent_terminal_app.launch import talk


@click.command("chat")
@click.argument("prompt", default="")
@click.option("--model", help="Another model: local, or PROVIDER:MODEL.")
@click.option("--agent", "default_agent", help="Another agent of the configuration.")
@click.option(
    "--session",
    shell_complete=complete_session,
    help="Continue a session: its id, the beginning of it, or its title.",
)
@click.option("--continue", "-c", "last", is_flag=True, help="Continue the last session of this folder.")
@click.option("--demo", is_flag=True, help="Talk to a demonstration in place of a model; nothing is kept.")
@click.option("--server", help="Talk to the agents of a server: its address, such as http://127.0.0.1:8421.")
@click.option("--plain", is_flag=True, help="No colours and nothing that moves.")
def command(
    prompt: str = "",
    model: str | None = None,
    default_agent: str | None = None,
    session: str | None = None,
    server: str | None = None,
    *,
    last: bool = False,
    demo: bool = False,
    plain: bool = False,
) -> int:
    """Talk to an agent, beginning with PROMPT if there is one.

    Without settings, a small model inside this program answers.
    """
    if session and last:
        raise click.UsageError("--session names a session, --continue takes the last one: leave one out.")
    if demo and (model or default_agent or session or last):
        raise click.UsageError("--demo has a model of its own and keeps nothing: leave the others out.")
    if server is not None and (model or default_agent or last or demo):
        raise click.UsageError(
            "--server has models and agents of its own: choose with /model and /agent there."
        )
    return talk(
        model, default_agent, session, prompt=prompt, last=last, demo=demo, plain=plain, server=server
    )
