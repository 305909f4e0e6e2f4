"""Why a session stays as it is; each message says what to do about it.

Refused
├── RangeError       there is no such range, or it cannot be cut out
├── NotFound         there is nothing to undo
└── SummaryFailed    no usable summary could be had
"""

from __future__ import annotations


class Refused(Exception):  # noqa: N818 - reads as what happened
    """An action changes nothing; `kind` is the type of the error in its answer."""

    kind = "refused"


class RangeError(Refused):
    """There is no such range, or it cannot be cut out."""

    kind = "range"


class NotFound(Refused):
    """There is no such compaction, or its summary is gone."""

    kind = "not_found"


class SummaryFailed(Refused):
    """No attempt gave a summary that can be used."""

    kind = "summary"
