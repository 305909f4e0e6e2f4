"""One answer of the API, as it arrives: its parts, and the message that they make.

Text that follows text becomes one part, thoughts and what is said apart. A part with a signature or any
other field stays alone, exactly as it came: a signature belongs to its part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from agent_provider_kit import Dicts, JsonObject, StreamMalformed
from gemini_provider.events import Chunk, TextChunk, failure_at_end, read_ending, read_usage
from gemini_provider.failures import failure_in_stream, prompt_blocked
from gemini_provider.messages import (
    CALL_IDS,
    METADATA,
    Part,
    Parts,
    from_part,
    is_call,
    is_plain,
    is_thought,
    make_id,
    own_id,
    says_something,
)

if TYPE_CHECKING:
    from agent_provider_kit import Ending, Exchange, ProviderFailure

_KEPT_ELSEWHERE = frozenset({"candidates", "modelVersion", "responseId"})
_READ_BY_HAND = frozenset({"content", "finishReason", "index"})
_NAMES = {"groundingMetadata": "grounding", "citationMetadata": "citations"}
_UNFINISHED = ("partialArgs", "willContinue")


class GrowingParts:
    """Collects parts, joining plain text where it may be joined."""

    __slots__ = ("_parts", "_text", "_thought")

    def __init__(self) -> None:
        self._parts: Parts = []
        self._text: list[str] = []
        self._thought = False

    def grow(self, text: str, *, thought: bool) -> None:
        """Add plain text."""
        if thought is not self._thought:
            self._close()
            self._thought = thought
        self._text.append(text)

    def add(self, part: Part, *, joined: bool) -> None:
        """Add a part, which may join the text before it."""
        if joined and is_plain(part):
            self.grow(part["text"], thought=is_thought(part))
            return
        self._close()
        if says_something(part):
            self._parts.append(part)

    def all(self) -> Parts:
        """Return the parts as far as they have come."""
        self._close()
        return list(self._parts)

    def _close(self) -> None:
        text = "".join(self._text)
        self._text = []
        if text:
            self._parts.append({"text": text, "thought": True} if self._thought else {"text": text})


class GenerateReply:
    """Collects the pieces of an answer and makes the model's content of them.

    Attributes:
        progress: Rises with every chunk that brings more of the answer, and with the count of thoughts, which
            nobody may see. Other counts could go on for ever, so they do not count.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.progress = 0
        self._exchange = exchange
        self._parts = GrowingParts()
        self._call_ids: list[str | None] = []
        self._incomplete: Dicts = []
        self._content: JsonObject = {}
        self._candidate: JsonObject = {}
        self._others: Dicts = []
        self._response: JsonObject = {}
        self._usage: Any = None  # the bytes of it, while nobody has asked
        self._thoughts = 0
        self._model: str | None = None
        self._response_id: str | None = None
        self._finish: str | None = None

    def add(self, event: Chunk) -> Dicts:
        """Take one chunk and return what it shows."""
        if event.__class__ is not TextChunk:
            assert isinstance(event, dict)
            return self._add_full(event, joined=True)
        self._usage = event.usage_metadata or self._usage
        self._model = self._model or event.model_version
        self._response_id = self._response_id or event.response_id
        part = event.candidates[0].content.parts[0]
        thought = part.thought is True
        self.progress += bool(part.text) or self._thinks_on()
        self._parts.grow(part.text, thought=thought)
        return _shown_text(part.text, thought=thought)

    def take(self, body: JsonObject) -> None:
        """Take an answer that came in one piece."""
        if not isinstance(body.get("candidates", []), list):
            raise self._malformed("candidates that are not a list")
        self._add_full(body, joined=False)
        if not self.ended():
            raise self._malformed("an answer without a candidate that ended")

    def ended(self) -> bool:
        """Say whether a finish reason came.

        Raises:
            ProviderFailure: If it is a failure, or of an answer without a word.
        """
        failure = self._failure()
        if failure is not None:
            raise failure
        return self._finish is not None

    def items(self) -> Dicts:
        """Return the model's content, as it is sent back the next time."""
        parts = self._parts.all()
        if not parts and not self._incomplete and (self._finish is None or self._failure() is not None):
            return []
        return [{**self._content, "role": "model", "parts": parts, METADATA: self._about()}]

    def _add_full(self, event: JsonObject, *, joined: bool) -> Dicts:
        if "error" in event:
            raise failure_in_stream(self._exchange, event["error"])
        shown: Dicts = []
        try:
            self._remember(event)
            for candidate in event.get("candidates") or ():
                if candidate.get("index", 0) != 0:
                    self._others.append(candidate)
                else:
                    shown += self._add_candidate(candidate, joined=joined)
        except (TypeError, AttributeError, ValueError) as error:
            raise self._malformed("a chunk of another form than promised") from error
        feedback = event.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            raise prompt_blocked(self._exchange, feedback)
        return shown

    def _remember(self, event: JsonObject) -> None:
        self._model = self._model or event.get("modelVersion")
        self._response_id = self._response_id or event.get("responseId")
        self._usage = event.get("usageMetadata") or self._usage
        self.progress += self._thinks_on()
        self._response |= {
            key: value
            for key, value in event.items()
            if key not in _KEPT_ELSEWHERE and key != "usageMetadata"
        }

    def _thinks_on(self) -> bool:
        """Say whether the model has thought more than ever before, which may show in the counts alone."""
        thoughts = self._read_usage().get("thoughtsTokenCount")
        before, self._thoughts = self._thoughts, max(self._thoughts, thoughts if type(thoughts) is int else 0)
        return self._thoughts > before

    def _add_candidate(self, candidate: JsonObject, *, joined: bool) -> Dicts:
        content = candidate.get("content") or {}
        shown: Dicts = []
        for part in content.get("parts") or ():
            shown += self._add_part(part, joined=joined)
        self._content |= {key: value for key, value in content.items() if key not in ("role", "parts")}
        for key, value in candidate.items():
            if key not in _READ_BY_HAND:
                self._candidate[key] = merged(self._candidate.get(key), value)
        finish = candidate.get("finishReason") or self._finish
        self.progress += bool(finish) and self._finish is None
        self._finish = finish
        return shown

    def _add_part(self, part: Part, *, joined: bool) -> Dicts:
        if is_call(part):
            return self._add_call(part)
        self.progress += says_something(part)
        self._parts.add(part, joined=joined)
        if isinstance(part.get("text"), str):
            return _shown_text(part["text"], thought=is_thought(part))
        if not says_something(part) or is_thought(part):
            return []
        return [{"role": "assistant", "content": "", "part": from_part(part)}]

    def _add_call(self, part: Part) -> Dicts:
        body = part["functionCall"]
        self.progress += bool(body.get("name"))
        if any(body.get(sign) for sign in _UNFINISHED):
            self._incomplete.append(_readable(body, own_id(part) or ""))
            return []
        number = len(self._call_ids)
        self._call_ids.append(None if own_id(part) else make_id(self._response_id, number))
        self._parts.add(part, joined=False)
        made = _readable(body, own_id(part) or self._call_ids[-1] or "")
        call = {"index": number, "id": made["id"], **made["function"]}
        return [{"role": "assistant", "content": "", "tool_call": call}]

    def _about(self) -> JsonObject:
        usage = self._read_usage()
        found = {
            "response_id": self._response_id,
            "model": self._model,
            "finish_reason": self._finish,
            "ending": self._ending(),
            "usage": read_usage(usage),
            CALL_IDS: self._call_ids if any(self._call_ids) else None,
            "incomplete_tool_calls": self._incomplete,
            **{ours: self._candidate.get(theirs) for theirs, ours in _NAMES.items()},
            "candidate": {key: value for key, value in self._candidate.items() if key not in _NAMES},
            "other_candidates": self._others,
            "response": {**self._response, **({"usageMetadata": usage} if usage else {})},
        }
        return {key: value for key, value in found.items() if value}

    def _read_usage(self) -> JsonObject:
        usage = self._usage
        if isinstance(usage, msgspec.Raw):
            usage = msgspec.json.decode(usage)
        return usage if isinstance(usage, dict) else {}

    def _ending(self) -> Ending | None:
        ending = None if self._finish is None else read_ending(self._finish)
        return "tool_calls" if ending == "complete" and self._call_ids else ending

    def _failure(self) -> ProviderFailure | None:
        if self._finish is None:
            return None
        message = str(self._candidate.get("finishMessage") or "")
        empty = not self._parts.all() and not self._incomplete
        return failure_at_end(self._exchange, self._finish, message, empty=empty)

    def _malformed(self, what: str) -> StreamMalformed:
        return StreamMalformed(self._exchange, f"{self._exchange.host} sent {what}")


def merged(before: Any, value: Any) -> Any:
    """Return what is known after a chunk has said more: lists go on or come again, the rest is replaced."""
    if isinstance(before, dict) and isinstance(value, dict):
        return {**before, **{key: merged(before.get(key), each) for key, each in value.items()}}
    if isinstance(before, list) and isinstance(value, list) and value[: len(before)] != before:
        return [*before, *(each for each in value if each not in before)]
    return value


def _shown_text(text: str, *, thought: bool) -> Dicts:
    if not text:
        return []
    if thought:
        return [{"role": "assistant", "content": "", "reasoning": text}]
    return [{"role": "assistant", "content": text}]


def _readable(body: JsonObject, call_id: str) -> JsonObject:
    arguments = orjson.dumps(body.get("args") or body.get("partialArgs") or {}).decode()
    function = {"name": body.get("name"), "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}
