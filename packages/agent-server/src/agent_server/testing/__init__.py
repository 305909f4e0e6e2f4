"""For tests: an application behind a server on a real socket, and, in `page`, its page in a real browser."""

from agent_server.testing.server import (
    ASKS,
    TOKEN,
    Event,
    Notes,
    Paced,
    Served,
    Serving,
    read_events,
    text_of,
    until,
)

__all__ = ["ASKS", "TOKEN", "Event", "Notes", "Paced", "Served", "Serving", "read_events", "text_of", "until"]
