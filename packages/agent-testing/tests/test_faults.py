"""The tests of faults find what is wrong with a provider, and their failures say what it is."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from agent_provider_kit import Exchange, HttpProvider
from agent_testing import FaultTests, ServerReply, sse_event


class Answer:
    def __init__(self) -> None:
        self.progress, self.words, self.done = 0, list[str](), False

    def add(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        self.progress += 1
        self.done = event.get("done", self.done)
        self.words += event.get("words", [])
        return [{"role": "assistant", "content": word} for word in event.get("words", [])]

    def take(self, body: dict[str, Any]) -> None:
        self.add({**body, "done": True})

    def ended(self) -> bool:
        return self.done

    def items(self) -> list[dict[str, Any]]:
        return [{"role": "assistant", "content": "".join(self.words)}] if self.words else []


class Wordy(HttpProvider):
    name = "wordy"
    version = "1"
    says_how_it_ended = True

    def endpoint(self, config: Any, *, stream: bool) -> str:
        return "/talk"

    def auth_headers(self, config: Any, key: Any) -> dict[str, str]:
        return {"Authorization": key.value}

    def request_body(self, native_messages: Any, state: Any, *, stream: bool) -> dict[str, Any]:
        return {"lines": native_messages, "stream": stream}

    def new_reply(self, state: Any, exchange: Exchange) -> Answer:
        return Answer()

    def decode(self, event: Any) -> Any:
        return json.loads(event.data) if event.data else None

    def to_native_messages(self, messages: Any) -> list[dict[str, Any]]:
        return [{"role": one["role"], "content": one["content"]} for one in messages]

    def from_native_messages(self, native_messages: Any) -> list[dict[str, Any]]:
        metadata = {"ending": "complete"} if self.says_how_it_ended else {}
        return [{**one, "metadata": metadata} for one in native_messages]


class Silent(Wordy):
    """It does not say how its answers ended."""

    name = "silent"
    says_how_it_ended = False


_WORDS = sse_event({"words": ["Tea "]}) + sse_event({"words": ["is."]})
_ANSWER = ServerReply(
    body=b'{"words": ["Tea ", "is."]}', stream=_WORDS + sse_event({"done": True}), end_at=len(_WORDS)
)


class Tries(FaultTests):
    __test__ = False
    config: ClassVar = {"model": "small"}
    answers: ClassVar = {"text": _ANSWER}

    def __init__(self, provider: type[HttpProvider]) -> None:
        self.provider = provider  # type: ignore[misc]  # a class variable, so that a test is a few lines


def test_a_provider_that_says_how_its_answers_end_passes() -> None:
    Tries(Wordy).test_a_request_whose_stream_ends_early_fails_and_keeps_what_came()


def test_a_provider_that_does_not_reads_what_is_missing() -> None:
    with pytest.raises(AssertionError, match=r"text: the message has no metadata\['ending'\]"):
        Tries(Silent).test_a_request_whose_stream_ends_early_fails_and_keeps_what_came()
