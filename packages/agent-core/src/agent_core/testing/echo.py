"""A provider that repeats the last user message, and the native format of providers that need no server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from agent_core.frozen import Dicts, State
    from agent_core.types import Config


Item = dict[str, Any]

_CALL_FIELDS = ("tool_calls", "tool_call_id")
_ANSWER_FIELDS = ("usage", "finish_reason")


class ChatFormat:
    """Turns messages into ``{"role", "content"}`` items and back, one for one.

    Tool calls, the structured results of tools and the parts of a message are kept as well.
    """

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [_to_item(message) for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [_to_message(item) for item in native_messages]


def _to_item(message: Item) -> Item:
    metadata = message.get("metadata") or {}
    item: Item = {"role": message["role"], "content": message["content"]}
    item |= {key: metadata[key] for key in _CALL_FIELDS if metadata.get(key) is not None}
    if message.get("multipartContent"):
        item["parts"] = message["multipartContent"]
    if message.get("tool_result") is not None:
        item["tool_result"] = message["tool_result"]
    return item


def _to_message(item: Item) -> Item:
    metadata = {key: item[key] for key in (*_CALL_FIELDS, *_ANSWER_FIELDS) if key in item}
    metadata |= item.get("_metadata") or {}
    message = {"role": item["role"], "content": item["content"], "metadata": metadata}
    if "parts" in item:
        message["multipartContent"] = item["parts"]
    if "tool_result" in item:
        message["tool_result"] = item["tool_result"]
    return message


class EchoProvider(ChatFormat):
    """Answers with the last user message, word by word; for trying things out and for tests."""

    name = "echo"
    version = "1"
    accepts_unlisted_models = True  # it says the same under any name

    def init(self, config: Config) -> State:
        return {"config": config, "words": []}

    def get_models(self, config: Config) -> Dicts:  # the same for everyone
        return [{"id": "echo", "name": "Echo"}]

    def get_tags(self, config: Config) -> list[str]:
        return ["streaming"]

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        """Yield the last user message, word by word."""
        yield from _words(native_messages)

    async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[str]:
        for word in _words(native_messages):
            yield word

    def process_chunk(
        self, chunk: str, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Pass a word on and remember it."""
        state["words"].append(chunk)
        return [{"role": "assistant", "content": chunk}], [], native_messages, state

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        """Return the words as one message."""
        if not state["words"]:
            return [], native_messages, state
        answer = {"role": "assistant", "content": "".join(state["words"])}
        return [answer], [*native_messages, answer], state


def _words(native_messages: Dicts) -> list[str]:
    said = [str(item["content"]) for item in native_messages if item["role"] == "user"]
    words = said[-1].split(" ") if said else []
    return [*(f"{word} " for word in words[:-1]), *words[-1:]]
