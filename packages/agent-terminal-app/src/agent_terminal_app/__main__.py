"""``python -m agent_terminal_app`` is the `agent` command."""

from agent_terminal_app.cli import main

main()
