"""A provider that says back what it was told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.testing.chat_format import ChatFormat, Dicts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

State = dict[str, Any]


class EchoProvider(ChatFormat):
    """Answers with the last user message, word by word; for trying things out and for tests."""

    name = "echo"
    version = "1"

    def init(self, config: dict[str, Any]) -> State:
        """Return the state of a request."""
        return {"config": config, "words": []}

    def get_models(self, config: dict[str, Any]) -> Dicts:  # noqa: ARG002  # the same for everyone
        """Return the one model there is."""
        return [{"id": "echo", "name": "Echo"}]

    def get_tags(self, config: dict[str, Any]) -> list[str]:  # noqa: ARG002
        """Say that it can stream."""
        return ["streaming"]

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:  # noqa: ARG002
        """Yield the last user message, word by word."""
        yield from _words(native_messages)

    async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[str]:  # noqa: ARG002
        """Yield the same on an event loop."""
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
