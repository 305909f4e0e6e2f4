"""From the protocol's events to what we tell: progress on the way, one reply at the end. Nothing waits here.

The pieces in which an artifact is streamed become parts of it where it is kept. So texts that follow each
other in an artifact are one text, and an agent that is polled gives the same result as one that streams.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from a2a.types import Role, TaskState
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types

from agent_runtime.remote.reply import RemoteReply
from agent_runtime.results import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a.types import Artifact, Message, Part, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatus

_OVER = {"completed", "failed", "rejected", "canceled", "input_required", "auth_required"}
_COUNTS = tuple(name for name in Usage.__slots__ if name != "cost")
_LARGEST_COUNT = 10**12


class Answer:
    """What has been heard of one task so far.

    Attributes:
        task_id: The task's id, once it is known.
        state: The task's state in lower case; empty before anything was heard.
    """

    def __init__(self) -> None:
        self.task_id = ""
        self.state = ""
        self._words = ""
        self._last_message = ""
        self._artifacts: dict[str, list[Part]] = {}
        self._usage: Usage | None = None

    @property
    def is_over(self) -> bool:
        """True once there is nothing more to wait for."""
        return self.state in _OVER

    def reply(self) -> RemoteReply:
        """Return how the task ended."""
        text = self._words
        if self.state == "completed":  # what was made comes first, words about it are a substitute
            made = "\n\n".join(filter(None, map(written, self._artifacts.values())))
            text = made or text or self._last_message
        return RemoteReply(text, self.state, self.task_id, self._usage)

    def take(self, event: StreamResponse) -> list[dict[str, Any]]:
        """Learn from one event of the stream, and return what can be shown of it."""
        kind = event.WhichOneof("payload")
        if kind == "task":
            return self.take_task(event.task)
        if kind == "message":
            return self._take_message(event.message)
        if kind == "status_update":
            self.task_id = event.status_update.task_id or self.task_id
            self._read_usage(event.status_update.metadata)
            return self._take_status(event.status_update.status)
        return self._take_chunk(event.artifact_update) if kind == "artifact_update" else []

    def take_task(self, task: Task) -> list[dict[str, Any]]:
        """Learn from a task as it stands now, and return what is new."""
        self.task_id = task.id or self.task_id
        self._read_usage(task.metadata)
        for message in task.history:
            if message.role == Role.ROLE_AGENT:
                self._last_message = said(message.parts)
        shown = [part for artifact in task.artifacts for part in self._take_artifact(artifact)]
        return shown + self._take_status(task.status)

    def _take_message(self, message: Message) -> list[dict[str, Any]]:
        self._read_usage(message.metadata)
        self._words, self.state = said(message.parts), "completed"
        return [_part("text", self._words)]

    def _take_status(self, status: TaskStatus) -> list[dict[str, Any]]:
        before, self.state = self.state, _state_name(status.state)
        words = said(status.message.parts)
        is_news = (words and words != self._words) or before != self.state
        self._words = words or ("" if before != self.state else self._words)
        return [_part("status", words or self.state)] if is_news and not self.is_over else []

    def _take_artifact(self, artifact: Artifact) -> list[dict[str, Any]]:
        text = written(artifact.parts)
        before = written(self._artifacts.get(artifact.artifact_id, ()))
        self._artifacts[artifact.artifact_id] = list(artifact.parts)
        return [_part("artifact", text)] if text and text != before else []

    def _take_chunk(self, update: TaskArtifactUpdateEvent) -> list[dict[str, Any]]:
        self.task_id = update.task_id or self.task_id
        if not update.append:
            return self._take_artifact(update.artifact)
        self._artifacts.setdefault(update.artifact.artifact_id, []).extend(update.artifact.parts)
        text = written(update.artifact.parts)
        return [_part("artifact", text)] if text else []

    def _read_usage(self, metadata: Any) -> None:
        """Read counts of tokens; the protocol has no place for them, `usage` in the metadata is a habit."""
        told = MessageToDict(metadata).get("usage")
        if isinstance(told, dict):
            known = {name: int(told[name]) for name in _COUNTS if _is_count(told.get(name))}
            self._usage = Usage(**known) if known else self._usage


def _is_count(value: Any) -> bool:
    """Say whether a stranger's number can be added up: a negative one would widen the caller's budget."""
    return isinstance(value, (int, float)) and 0 <= value <= _LARGEST_COUNT


def said(parts: Iterable[Part]) -> str:
    """Return parts of a message as text; files are named, not fetched."""
    return "\n".join(filter(None, map(_part_text, parts)))


def written(parts: Iterable[Part]) -> str:
    """Return the parts of an artifact as text: what is no text stands on a line of its own."""
    runs = groupby(parts, key=lambda part: part.WhichOneof("content") == "text")
    lines = ("".join(part.text for part in run) if is_text else said(run) for is_text, run in runs)
    return "\n".join(filter(None, lines))


def _part_text(part: Part) -> str:
    kind = part.WhichOneof("content")
    if kind == "data":
        return json.dumps(MessageToDict(part.data), ensure_ascii=False)
    if kind == "raw":
        return f"[{part.filename or part.media_type or 'file'}, {len(part.raw)} bytes]"
    return part.url if kind == "url" else part.text


def _part(kind: str, text: str) -> dict[str, Any]:
    return {"part": {"type": kind, "text": text}}


def _state_name(state: int) -> str:
    try:
        name: str = TaskState.Name(state)
    except ValueError:  # of a later version of the protocol
        return f"unknown ({state})"
    return name.removeprefix("TASK_STATE_").lower()
