"""A provider of your own: any function that makes an answer of messages becomes a model."""

from collections.abc import Iterator
from typing import Any

from agent_runtime import Agent

Dicts = list[dict[str, Any]]


class Backwards:
    """Answers with the words of the question, backwards; `stream_api` is what would reach your model."""

    name = "backwards"
    version = "1"

    def init(self, config: dict[str, Any]) -> dict[str, Any]:
        return {"config": config, "words": []}

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{"by": m["role"], "text": m["content"], "_metadata": m["metadata"]} for m in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [
            {"role": item["by"], "content": item["text"], "metadata": item.get("_metadata", {})}
            for item in native_messages
        ]

    def stream_api(self, native_messages: Dicts, state: dict[str, Any]) -> Iterator[str]:
        yield from reversed(native_messages[-1]["text"].split())

    def process_chunk(self, chunk: str, native_messages: Dicts, state: dict[str, Any]) -> Any:
        space = " " if state["words"] else ""
        state["words"].append(space + chunk)
        return [{"role": "assistant", "content": space + chunk}], [], native_messages, state

    def finalize(self, native_messages: Dicts, state: dict[str, Any]) -> Any:
        if not state["words"]:
            return [], native_messages, state
        answer = {"by": "assistant", "text": "".join(state["words"])}
        return [answer], [*native_messages, answer], state


if __name__ == "__main__":
    for text in Agent(Backwards).stream("tea of cup a").text():
        print(text, end="", flush=True)
