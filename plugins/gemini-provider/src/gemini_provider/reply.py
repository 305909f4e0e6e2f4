"""One answer of generateContent, as it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from agent_provider_kit import StreamMalformed
from gemini_provider.assembly import GrowingParts
from gemini_provider.calls import CALL_IDS, make_id, own_id
from gemini_provider.chunks import Chunk, TextChunk
from gemini_provider.failures import failure_in_stream, prompt_blocked
from gemini_provider.kinds import METADATA, Part, is_call, is_thought, says_something
from gemini_provider.outcome import failure_at_end, read_ending, read_usage
from gemini_provider.parts import from_part

if TYPE_CHECKING:
    from agent_provider_kit import Ending, Exchange, ProviderFailure

Dicts = list[dict[str, Any]]

_TOLD_ELSEWHERE = frozenset({"candidates", "modelVersion", "responseId"})
_READ_BY_HAND = frozenset({"content", "finishReason", "index"})
_NAMES = {"groundingMetadata": "grounding", "citationMetadata": "citations"}
_UNFINISHED = ("partialArgs", "willContinue")


class GenerateReply:
    """Collects the pieces of an answer and makes the model's content of them."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._parts = GrowingParts()
        self._call_ids: list[str | None] = []
        self._incomplete: Dicts = []
        self._content: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._others: Dicts = []
        self._response: dict[str, Any] = {}
        self._usage: Any = None  # the bytes of it, while nobody has asked
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
        self._parts.grow(part.text, thought=thought)
        return _shown_text(part.text, thought=thought)

    def take(self, body: dict[str, Any]) -> None:
        """Take an answer that came in one piece."""
        if not isinstance(body.get("candidates", []), list):
            raise self._malformed("candidates that are no list")
        self._add_full(body, joined=False)
        if not self.ended():
            raise self._malformed("an answer without a candidate that ended")

    def ended(self) -> bool:
        """Say whether a finish reason came.

        Raises:
            ProviderFailure: If it tells of a failure, or of an answer without a word.
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

    def _add_full(self, event: dict[str, Any], *, joined: bool) -> Dicts:
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

    def _remember(self, event: dict[str, Any]) -> None:
        self._model = self._model or event.get("modelVersion")
        self._response_id = self._response_id or event.get("responseId")
        self._usage = event.get("usageMetadata") or self._usage
        self._response |= {
            key: value
            for key, value in event.items()
            if key not in _TOLD_ELSEWHERE and key != "usageMetadata"
        }

    def _add_candidate(self, candidate: dict[str, Any], *, joined: bool) -> Dicts:
        content = candidate.get("content") or {}
        shown: Dicts = []
        for part in content.get("parts") or ():
            shown += self._add_part(part, joined=joined)
        self._content |= {key: value for key, value in content.items() if key not in ("role", "parts")}
        for key, value in candidate.items():
            if key not in _READ_BY_HAND:
                self._candidate[key] = merged(self._candidate.get(key), value)
        self._finish = candidate.get("finishReason") or self._finish
        return shown

    def _add_part(self, part: Part, *, joined: bool) -> Dicts:
        if is_call(part):
            return self._add_call(part)
        self._parts.add(part, joined=joined)
        if isinstance(part.get("text"), str):
            return _shown_text(part["text"], thought=is_thought(part))
        if not says_something(part) or is_thought(part):
            return []
        return [{"role": "assistant", "content": "", "part": from_part(part)}]

    def _add_call(self, part: Part) -> Dicts:
        body = part["functionCall"]
        if any(body.get(sign) for sign in _UNFINISHED):
            self._incomplete.append(_readable(body, own_id(part) or ""))
            return []
        number = len(self._call_ids)
        self._call_ids.append(None if own_id(part) else make_id(self._response_id, number))
        self._parts.add(part, joined=False)
        told = _readable(body, own_id(part) or self._call_ids[-1] or "")
        call = {"index": number, "id": told["id"], **told["function"]}
        return [{"role": "assistant", "content": "", "tool_call": call}]

    def _about(self) -> dict[str, Any]:
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

    def _read_usage(self) -> dict[str, Any]:
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
    """Return what is known after a chunk has told more: lists go on or come again, the rest is replaced."""
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


def _readable(body: dict[str, Any], call_id: str) -> dict[str, Any]:
    arguments = orjson.dumps(body.get("args") or body.get("partialArgs") or {}).decode()
    function = {"name": body.get("name"), "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}
