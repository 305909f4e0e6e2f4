"""What a call cannot do."""

from __future__ import annotations


class Refused(Exception):  # noqa: N818 - it is an answer to the model, not a fault
    """The call is answered with this text, which says what was wrong and what to do instead."""


class Missing(Refused):
    """There is no such file or folder."""
