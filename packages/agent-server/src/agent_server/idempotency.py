"""Requests that are made twice because an answer got lost: the second one gets the answer of the first.

A client puts an `Idempotency-Key` of its own choice on a request. While the server runs, it remembers what
came of it. What must not happen twice after a restart either gets its id from the key: a session, a run.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import UUID, uuid5

from fastapi import Header

from agent_server.problem import Problem
from agent_server.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
KEPT_SECONDS = 86400.0
MOST_KEYS = 10_000
LONGEST_KEY = 200
_SPACE = UUID("5c2cfd55-9d0b-4f3e-9a2a-6a35b2b3f7c1")

IdempotencyKey = Annotated[
    str | None,
    Header(
        max_length=LONGEST_KEY,
        description="A name for this request: repeated under it, it has no effect twice.",
    ),
]


def named_id(kind: str, who: str, key: str | None) -> str | None:
    """Return the id that a key stands for; None without a key."""
    return None if key is None else str(uuid5(_SPACE, f"{kind}\0{who}\0{key}"))


@dataclass(slots=True)
class _Answered:
    fingerprint: bytes
    answer: asyncio.Future[Any]
    since: float


class Repeats:
    """What came of requests with keys."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str, str], _Answered] = {}

    async def once(
        self, who: str, operation: str, key: str | None, body: Any, work: Callable[[], Awaitable[T]]
    ) -> T:
        """Do something, or return what came of it before under the same key.

        A failure is not remembered: the client may try again.

        Raises:
            Problem: If the key was used for something else.
        """
        if key is None:
            return await work()
        name, fingerprint = (who, operation, key), hashlib.sha256(to_json(body)).digest()
        known = self._answers.get(name)
        if known is not None and known.since > time.monotonic() - KEPT_SECONDS:
            if known.fingerprint != fingerprint:
                raise Problem(
                    422,
                    "idempotency-key-reused",
                    "The Idempotency-Key was used for another request",
                    "Choose a new key for each request that is not a repetition.",
                )
            before: T = await asyncio.shield(known.answer)
            return before
        return await self._first(name, fingerprint, work)

    async def _first(
        self, name: tuple[str, str, str], fingerprint: bytes, work: Callable[[], Awaitable[T]]
    ) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._answers[name] = _Answered(fingerprint, answer, time.monotonic())
        if len(self._answers) > MOST_KEYS:
            del self._answers[next(iter(self._answers))]
        try:
            result = await work()
        except BaseException as error:
            self._answers.pop(name, None)
            answer.set_exception(error if isinstance(error, Exception) else _GONE)
            answer.exception()  # nobody may have waited for it
            raise
        answer.set_result(result)
        return result


_GONE = Problem(409, "request-broken-off", "The first request under this key broke off", "Send it again.")
