"""What the keys do, as people read it: in `/help`, and in the documentation."""

from __future__ import annotations

KEYS = (
    ("Enter", "sends; while the agent works, your words are read after its current step"),
    ("Tab", "takes a completion; while the agent works, your words wait until it has answered"),
    ("Alt+Up", "takes the last message back that waits, to be edited"),
    ("Esc", "closes what is open, else stops what goes on; twice, with nothing typed: goes back a message"),
    ("Ctrl+C", "stops what goes on, else clears what you typed (Up brings it back), else leaves"),
    ("Ctrl+D", "leaves, if nothing is typed; everything is kept"),
    ("Alt+Enter, Ctrl+J, \\ Enter", "begins a new line"),
    ("Up, Ctrl+R", "brings back what was typed before; looks for it"),
    ("Ctrl+O", "opens the last tool call or thought; again, the one before"),
    ("Ctrl+G", "edits what you typed in $VISUAL or $EDITOR"),
    ("Ctrl+L, Ctrl+Z, F1", "clears the screen; gives the shell the terminal; shows the help"),
    ("@FILE", "sends a text file or a picture with the message"),
    ("!COMMAND", "runs a command in your own shell; your next message tells the agent"),
    ("/COMMAND", "does something with the chat itself"),
)
"""Keys, and what begins a line or a word, each with what it does."""
