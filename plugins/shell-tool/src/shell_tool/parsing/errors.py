"""What ends the reading of a line."""


class NotUnderstood(Exception):  # noqa: N818 - says what happened
    """Bash may make more of a line than its text shows; the message says why."""
