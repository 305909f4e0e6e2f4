"""The names under which a model calls the tools of servers.

A name is SERVER__TOOL where that is a name for every provider: 1 to 64 letters, digits, underscores and
hyphens. Any other tool gets an alias that depends on nothing but its own two names. So a permission rule
about a name means the same tool tomorrow, whatever else the servers may offer by then.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

LONGEST: Final = 64
_BETWEEN: Final = "__"
_VALID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_MARK: Final = 8


def wire_name(server: str, tool: str) -> str:
    """Return the name by which the model calls a server's tool."""
    plain = f"{server}{_BETWEEN}{tool}"
    return plain if tool and _VALID.fullmatch(plain) else _alias(plain)


def _alias(plain: str) -> str:
    mark = sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    return f"{_OTHER.sub('_', plain)[: LONGEST - _MARK - 1]}_{mark}"
