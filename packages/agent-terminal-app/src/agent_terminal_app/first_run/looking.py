"""What there is beside the embedded model: keys in the environment, keys that are stored, servers nearby.

Nobody waits for this. Looking at the environment takes no time; servers are asked all at once, on this
machine alone, and whoever does not answer within a fifth of a second is not there.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent_terminal_app.first_run.connections import KNOWN, SERVERS, Connection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_terminal_app.keys import KeyStore

PATIENCE = 0.2
"""How many seconds a server has to accept and answer."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""What this machine is called."""
_LONGEST_HEAD = 8_192
_WORDS_OF_A_STATUS = 2


@dataclass(frozen=True, slots=True)
class Found:
    """Something that can be connected as it is.

    Attributes:
        connection: What it is.
        key: Where its key is, as settings refer to it; empty if it needs none.
        told: What was seen, in a few words.
    """

    connection: Connection
    key: str
    told: str


def keys_in_environment(
    environment: Mapping[str, str] | None = None, connections: Iterable[Connection] = KNOWN
) -> list[Found]:
    """Return what can be connected with a key that the environment has."""
    variables = os.environ if environment is None else environment
    found = []
    for connection in connections:
        name = next((one for one in connection.variables if variables.get(one, "").strip()), None)
        if name is not None:
            found.append(Found(connection, f"env:{name}", f"{name} found in the environment"))
    return found


def keys_in_store(store: KeyStore, connections: Iterable[Connection] = KNOWN) -> list[Found]:
    """Return what can be connected with a key that is stored.

    Raises:
        CommandError: If the stored keys cannot be read.
    """
    names = set(store.names())
    return [
        Found(one, f"stored:{one.name}", f"a key of {one.label} is stored")
        for one in connections
        if one.name in names
    ]


async def servers_nearby(servers: Sequence[Connection] = SERVERS, patience: float = PATIENCE) -> list[Found]:
    """Return the servers that listen on this machine, in the order of the table."""
    answers = await asyncio.gather(*(_is_an_api(one.base_url, patience) for one in servers))
    return [
        Found(one, "", f"{one.label} answers on {urlsplit(one.base_url).netloc}")
        for one, there in zip(servers, answers, strict=True)
        if there
    ]


async def _is_an_api(base_url: str, patience: float) -> bool:
    """Ask for the list of models, and look only at how the answer begins."""
    parts = urlsplit(base_url)
    if parts.hostname not in LOOPBACK:
        return False
    question = f"GET {parts.path}/models HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=_LONGEST_HEAD)
            try:
                writer.write(question.encode("ascii"))
                head = await reader.readuntil(b"\r\n\r\n")
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return False
    return is_answer_of_an_api(head)


def is_answer_of_an_api(head: bytes) -> bool:
    """Say whether an answer may be that of an API: web pages and files are served on these ports, too."""
    first, _, headers = head.lower().partition(b"\r\n")
    words = first.split(b" ")
    if not words[0].startswith(b"http/1.") or len(words) < _WORDS_OF_A_STATUS:
        return False
    return words[1] in (b"401", b"403") or (words[1] == b"200" and b"json" in headers)
