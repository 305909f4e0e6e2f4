"""Why a call is not run."""


class Refused(Exception):  # noqa: N818 - says what happened
    """A call cannot be run; the message says why, and what to do instead."""
