"""What keys can do in a chat, and which keys do it unless somebody says otherwise.

This is the one table: the prompt binds its keys, `/help` and the documentation list them, and `keys.toml`
changes them.
"""

from __future__ import annotations

from typing import NamedTuple


class KeyAction(NamedTuple):
    """Something that a key does.

    Attributes:
        name: What it is called in `keys.toml`.
        keys: Its usual keys.
        about: What it does, as people read it.
    """

    name: str
    keys: tuple[str, ...]
    about: str


ACTIONS = (
    KeyAction("send", ("Enter",), "sends; while the agent works, your words are read after its current step"),
    KeyAction(
        "complete",
        ("Tab",),
        "takes a completion; while the agent works, your words wait until it has answered",
    ),
    KeyAction("mode", ("Shift+Tab",), "lets the agent edit files without asking, in this chat; again: asks"),
    KeyAction("take_back", ("Alt+Up",), "takes the last message back that waits, to be edited"),
    KeyAction(
        "stop",
        ("Esc",),
        "closes what is open, else stops what goes on; twice, with nothing typed: goes back a message",
    ),
    KeyAction(
        "interrupt",
        ("Ctrl+C",),
        "stops what goes on, else clears what you typed (Up brings it back), else leaves",
    ),
    KeyAction("leave", ("Ctrl+D",), "leaves, if nothing is typed; everything is kept"),
    KeyAction("new_line", ("Alt+Enter", "Ctrl+J", "Shift+Enter"), "begins a new line"),
    KeyAction("search", ("Ctrl+R",), "looks for what was typed before"),
    KeyAction("open", ("Ctrl+O",), "opens the last tool call or thought; again, the one before"),
    KeyAction("scroll_up", ("PgUp",), "shows what is above in what is open"),
    KeyAction("scroll_down", ("PgDn",), "shows what is below in what is open"),
    KeyAction("transcript", ("Ctrl+T",), "shows the whole conversation in $PAGER"),
    KeyAction("edit", ("Ctrl+G",), "edits what you typed in $VISUAL or $EDITOR"),
    KeyAction("clear", ("Ctrl+L",), "clears the screen"),
    KeyAction("suspend", ("Ctrl+Z",), "gives the shell the terminal"),
    KeyAction("help", ("F1", "?"), "shows the help; a mere character does so only while nothing is typed"),
)
"""Everything that a key can do, in the order in which it is listed."""

ALWAYS = {"stop": "Esc"}
"""Keys that an action keeps whatever else it gets: every question of the chat says that Esc leaves it."""

FIXED = (
    ("\\ Enter", "begins a new line, where the keys for it do not arrive"),
    ("Up", "brings back what was typed before"),
    ("@FILE", "sends a text file or a picture with the message"),
    ("!COMMAND", "runs a command in your own shell; your next message tells the agent"),
    ("/COMMAND", "does something with the chat itself"),
)
"""What is typed and is no key of the table."""
