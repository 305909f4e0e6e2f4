"""The log of the platform, which nobody at a terminal has asked for."""

from __future__ import annotations


def keep_off_the_screen() -> None:
    """Keep warnings of the log off stderr: what matters is told in words, by events and errors."""
    import logging

    logging.getLogger("agent_core").addHandler(logging.NullHandler())
