"""The `agent` command: talk to agents in a terminal, or run them from scripts."""

__version__ = "0.1.0"
