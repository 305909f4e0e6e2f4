"""What goes wrong between us and a server."""


class Lost(Exception):  # noqa: N818  # says what happened
    """There is no connection, or none any more; the text says why."""
