"""Recorded traffic, for providers that are replayed against the real thing where recordings exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from agent_testing.replies import ServerReply

if TYPE_CHECKING:
    from pathlib import Path

    from agent_provider_kit import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One question and its answer.

    Attributes:
        request: The JSON body that was sent.
        streamed: Whether the answer is a stream.
        reply: The answer, to be played again.
    """

    method: str
    path: str
    request: JsonObject
    streamed: bool
    reply: ServerReply


def read_recording(file: Path) -> list[Recorded]:
    """Return the interactions of a recording, in their order."""
    return [_recorded(each) for each in orjson.loads(file.read_bytes())["interactions"]]


def read_recordings(folder: Path, pattern: str) -> dict[str, Recorded]:
    """Return the interactions of all recordings below *folder* that fit *pattern*, by file and number."""
    return {
        f"{file.stem}-{number}": recorded
        for file in sorted(folder.glob(pattern))
        for number, recorded in enumerate(read_recording(file))
    }


def _recorded(interaction: JsonObject) -> Recorded:
    asked, answered = interaction["request"], interaction["response"]
    body, kind = answered["body"].encode(), answered["content_type"]
    streamed = "event-stream" in kind
    return Recorded(
        method=asked["method"],
        path=asked["path"],
        request=asked.get("body") or {},
        streamed=streamed,
        reply=ServerReply(
            body=body, stream=body if streamed else None, status=answered["status"], content_type=kind
        ),
    )
