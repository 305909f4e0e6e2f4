"""One answer of Chat Completions, as it arrives: words, thoughts, calls, and the message that they make."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from agent_provider_kit.chat.chunks import (
    DONE,
    Chunk,
    TextChunk,
    ending_of,
    is_broken_off,
    read_usage,
    usage_in,
)
from agent_provider_kit.chat.messages import REASONING_FIELDS, own_fields, text_of, thinking_of
from agent_provider_kit.chat.tool_calls import ToolCallPieces, has_input, shown, split_usable
from agent_provider_kit.error_replies import failure_in_reply
from agent_provider_kit.failures import StreamCutOff, StreamMalformed

if TYPE_CHECKING:
    from agent_provider_kit.failures import Exchange
    from agent_provider_kit.wire import Dicts, Ending, JsonObject

_WHOLE = frozenset({"id", "type", "role", "name", "format", "index"})  # sent whole, however often
_TEXTS = frozenset({"refusal", *REASONING_FIELDS})
_MERGED_BY_HAND = frozenset({"role", "content", "tool_calls", "audio"})
_ABOUT_ANSWER = {"id": "response_id", "model": "model", "service_tier": "service_tier"}
_OF_THE_CHUNK = frozenset({"object", "created", "choices", "usage", "error", "obfuscation", *_ABOUT_ANSWER})
_CUT_SHORT = (None, "length", "filtered")


def merge(into: JsonObject, piece: JsonObject) -> None:
    """Add a piece of an object: texts and lists grow, objects merge, the rest is replaced.

    Null adds nothing.
    """
    for key, value in piece.items():
        before: Any = into.get(key)
        if value is None:
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            merge(before, value)
        elif key not in _WHOLE and type(before) in (str, list) and type(before) is type(value):
            into[key] = before + value
        else:
            into[key] = dict(value) if isinstance(value, dict) else value


class ContentPieces:
    """Collects what an answer says.

    Most servers send text. Some send parts, thinking among them; they are kept as they came, except
    that texts which follow each other become one.
    """

    __slots__ = ("_parts", "_text", "add_text")

    def __init__(self) -> None:
        self._text: list[str] = []
        self._parts: Dicts = []
        self.add_text = self._text.append

    def __bool__(self) -> bool:
        return bool(self._text or self._parts)

    def add_parts(self, parts: Dicts) -> Dicts:
        """Take parts and return what they show."""
        self._close_text()
        for part in parts:
            last = self._parts[-1] if self._parts else {}
            if _is_plain(last) and _is_plain(part):
                self._parts[-1] = {**last, "text": last["text"] + part["text"]}
            else:
                self._parts.append(part)
        return [shown for part in parts if (shown := _shown(part)) is not None]

    def whole(self) -> str | Dicts:
        """Return the text, or the parts if there are any."""
        if not self._parts:
            return "".join(self._text)
        self._close_text()
        return self._parts

    def _close_text(self) -> None:
        if self._text:
            text = "".join(self._text)
            self._text.clear()
            self.add_parts([{"type": "text", "text": text}])


def says_something(part: JsonObject) -> bool:
    """Say whether a part brings anything: one of words without a word does not."""
    return bool(text_of(part) or thinking_of(part)) or part.get("type") not in ("text", "thinking")


def _is_plain(part: JsonObject) -> bool:
    return part.keys() == {"type", "text"} and part["type"] == "text" and isinstance(part["text"], str)


def _shown(part: JsonObject) -> JsonObject | None:
    if text := text_of(part):
        return {"role": "assistant", "content": text}
    thought = thinking_of(part)
    return {"role": "assistant", "content": "", "reasoning": thought} if thought else None


class AudioPieces:
    """Collects a spoken answer: each piece of its sound is encoded by itself."""

    def __init__(self) -> None:
        self._fields: JsonObject = {}
        self._sound: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._fields or self._sound)

    def add(self, piece: JsonObject) -> Dicts:
        """Take a piece and return what it shows: words as they are said, and the sound as a part."""
        merge(self._fields, {key: value for key, value in piece.items() if key != "data"})
        shown: Dicts = []
        if isinstance(said := piece.get("transcript"), str) and said:
            shown.append({"role": "assistant", "content": said})
        if isinstance(sound := piece.get("data"), str) and sound:
            self._sound.append(sound)
            shown.append({"role": "assistant", "content": "", "part": {"type": "audio", "data": sound}})
        return shown

    def whole(self) -> JsonObject:
        """Return the answer in one piece."""
        if not self._sound:
            return self._fields
        try:
            sound = b64encode(b"".join(map(b64decode, self._sound))).decode()
        except ValueError:
            sound = "".join(self._sound)
        return {**self._fields, "data": sound}


class ChatReply:
    """Collects the pieces of an answer and makes the assistant's message of them.

    Where several answers to one question were asked for (`n`), the first is the message; the others are
    kept in its `_metadata`.

    Attributes:
        progress: Rises with every piece that brings more of the answer. A call's name, counts of tokens and
            fields that nobody knows could go on for ever, and do not count.

    Args:
        exchange: With whom we talk.
        audio_format: The form in which sound was asked for.
        choices: How many answers were asked for.
    """

    def __init__(self, exchange: Exchange, *, audio_format: str | None = None, choices: int = 1) -> None:
        self.progress = 0
        self._choices = choices
        self._audio = AudioPieces()
        self._audio_format = audio_format
        self._others: dict[int, ChatReply] = {}
        self._exchange = exchange
        self._content = ContentPieces()
        self._add_text = self._content.add_text
        self._refusal: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._calls = ToolCallPieces()
        self._extra: JsonObject = {}
        self._about: JsonObject = {}
        self._fields: JsonObject = {}
        self._logprobs: JsonObject = {}
        self._finish: str | None = None
        self._done = False

    def add(self, event: Chunk) -> Dicts:
        """Take one chunk and return what it shows."""
        if not isinstance(event, TextChunk):
            return self._add_full(event)
        text = event.choices[0].delta.content
        if not text:
            return []
        self.progress += 1
        self._add_text(text)
        return [{"role": "assistant", "content": text}]

    def take(self, body: JsonObject) -> None:
        """Take an answer that came in one piece."""
        choices = body.get("choices")
        if not choices and not body.get("error"):
            raise self._malformed("an answer without any choice")
        self._add_full({**body, "choices": [self._as_delta(choice) for choice in self._list(choices)]})
        self._done = True

    def ended(self) -> bool:
        """An end was announced; a stream that ends with nothing at all was none."""
        return self._finish is not None or (self._done and self._has_anything())

    def items(self) -> Dicts:
        """Return the assistant's message, as it is sent back the next time."""
        if not self._has_anything() and self._finish is None:
            return []
        ending = self._ending()
        calls, cut_off = split_usable(self._calls.calls(), finished=self._finish_of(ending))
        content = self._content.whole()
        item: JsonObject = {"role": "assistant", "content": content if content or not calls else None}
        item |= {field: "".join(pieces) for field, pieces in self._reasoning.items()}
        if self._refusal:
            item["refusal"] = "".join(self._refusal)
        if calls:
            item["tool_calls"] = calls
        if self._audio:
            spoken_as = {"format": self._audio_format} if self._audio_format else {}
            item["audio"] = {**spoken_as, **self._audio.whole()}
        about = {
            **self._about,
            "finish_reason": self._finish,
            "ending": ending,
            "logprobs": self._logprobs or None,
            "response_fields": self._fields or None,
            "incomplete_tool_calls": cut_off or None,
            "other_choices": self._other_choices() or None,
            # The counts come last, so a stream that breaks off takes them along: it was not for nothing.
            "usage_missing": True if "usage" not in self._about and not self._done else None,
        }
        item |= self._extra
        if own_fields(item):
            about["server"] = self._exchange.server
        return [{**item, "_metadata": {k: v for k, v in about.items() if v is not None}}]

    def _other_choices(self) -> Dicts:
        """Return the other answers; the counts of tokens are those of all together."""
        made = [item for _number, other in sorted(self._others.items()) for item in other.items()]
        for item in made:
            item["_metadata"].pop("usage_missing", None)
        return made

    def _as_delta(self, choice: Any) -> JsonObject:
        """Return a whole choice as if it were the only piece of itself."""
        message = self._object(self._object(choice).get("message") or {})
        calls = [
            {**self._object(call), "index": n} for n, call in enumerate(self._list(message.get("tool_calls")))
        ]
        return {**choice, "delta": {**message, "tool_calls": calls}}

    def _add_full(self, chunk: JsonObject) -> Dicts:
        if chunk is DONE:
            self.progress += not self._done
            self._done = True
            return []
        if chunk.get("error"):
            raise failure_in_reply(self._exchange, chunk["error"])
        self._remember(chunk)
        partials: Dicts = []
        for choice in self._list(chunk.get("choices")):
            number = self._object(choice).get("index")
            if not number:
                partials += self._add_choice(choice)
            elif isinstance(number, int):
                self._add_other(number, choice)
        return partials

    def _add_other(self, number: int, choice: JsonObject) -> None:
        """Take a piece of another answer to the same question, which is kept but not shown."""
        other = self._others.setdefault(number, ChatReply(self._exchange, audio_format=self._audio_format))
        before = other.progress
        other.add({"choices": [{**choice, "index": 0}]})
        self.progress += number < self._choices and other.progress != before

    def _add_choice(self, choice: JsonObject) -> Dicts:
        if choice.get("logprobs"):
            merge(self._logprobs, self._object(choice["logprobs"]))
        partials = self._add_delta(self._object(choice.get("delta") or {}))
        finish = choice.get("finish_reason")
        if finish:
            if is_broken_off(str(finish)):
                raise StreamCutOff(self._exchange, f"{self._exchange.host} broke the answer off: {finish}")
            self.progress += self._finish is None
            self._finish = str(finish)
        return partials

    def _add_delta(self, delta: JsonObject) -> Dicts:
        partials = [*self._add_reasoning(delta), *self._add_content(delta.get("content"))]
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self.progress += 1
            self._refusal.append(refusal)
            partials.append({"role": "assistant", "content": "", "refusal": refusal})
        for piece in self._list(delta.get("tool_calls")):
            number = self._calls.add(self._object(piece))
            call = shown(piece, number)
            self.progress += has_input(call)
            partials.append({"role": "assistant", "content": "", "tool_call": call})
        if isinstance(spoken := delta.get("audio"), dict):
            shown_audio = self._audio.add(spoken)
            self.progress += bool(shown_audio)
            partials += shown_audio
        unknown = {key: value for key, value in delta.items() if _is_unknown(key, value)}
        merge(self._extra, unknown)
        return partials

    def _add_content(self, content: Any) -> Dicts:
        if not content:
            return []
        if isinstance(content, str):
            self.progress += 1
            self._add_text(content)
            return [{"role": "assistant", "content": content}]
        parts = [self._object(part) for part in self._list(content)]
        self.progress += any(map(says_something, parts))
        return self._content.add_parts(parts)

    def _add_reasoning(self, delta: JsonObject) -> Dicts:
        partials: Dicts = []
        for field in REASONING_FIELDS:
            thought = delta.get(field)
            if thought and isinstance(thought, str):
                self.progress += 1
                self._reasoning.setdefault(field, []).append(thought)
                if not partials:  # some servers send the same under both names
                    partials.append({"role": "assistant", "content": "", "reasoning": thought})
        return partials

    def _remember(self, chunk: JsonObject) -> None:
        for key, value in chunk.items():
            if key in _ABOUT_ANSWER:
                if value:
                    self._about.setdefault(_ABOUT_ANSWER[key], value)
            elif key not in _OF_THE_CHUNK and value is not None:
                self._fields[key] = value
        usage = usage_in(chunk)
        if usage is not None:
            self._about["usage"] = read_usage(usage)

    def _has_anything(self) -> bool:
        said = self._content or self._calls or self._reasoning or self._refusal
        return bool(said or self._audio or self._extra)

    def _ending(self) -> Ending | None:
        if self._finish is None:
            return "complete" if self._done else None
        return "refusal" if self._refusal else ending_of(self._finish)

    def _finish_of(self, ending: Ending | None) -> bool:
        return self._finish is not None and ending not in _CUT_SHORT

    def _object(self, value: Any) -> JsonObject:
        if not isinstance(value, dict):
            raise self._malformed("something else where an object belongs")
        return value

    def _list(self, value: Any) -> list[Any]:
        if value is not None and not isinstance(value, list):
            raise self._malformed("something else where a list belongs")
        return value or []

    def _malformed(self, what: str) -> StreamMalformed:
        return StreamMalformed(self._exchange, f"{self._exchange.host} sent {what}")


def _is_unknown(key: str, value: Any) -> bool:
    """Say whether only the server understands a field, which is then kept for it."""
    return key not in _MERGED_BY_HAND and not (key in _TEXTS and isinstance(value, str))
