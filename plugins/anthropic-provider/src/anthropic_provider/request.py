"""What is sent of the items: the system prompt apart, roles in turns, results first, cache marks.

Items stay as they are, one per message, so that edits of messages find theirs. Only here, on the way out,
consecutive items of one role become one message.

System messages with which a conversation begins are the system prompt. Later ones stay where they are: newer
models take the role `system` there, if it stands between a user's turn and the model's; others read them as
marked text in the user's turn.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from agent_provider_kit import Dicts, JsonObject, grown
from anthropic_provider.messages import (
    METADATA,
    Block,
    Blocks,
    begins_turn,
    blocks_of,
    is_blank,
    is_result,
    is_text,
    is_thinking,
    says_something,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_provider_kit import State

Place = tuple[int, int]
"""A block's place: the number of its item, and its own number in that item."""

_OPENING = {"role": "user", "content": "(The conversation continues here.)"}
_BEGINNING = {"role": "user", "content": "(The conversation begins here.)"}
_TAKES_SYSTEM_ROLE = re.compile(r"claude-(?:opus-4-[89]|[a-z]+-5-[5-9]|[a-z]+-(?:[6-9]|\d\d)(?:$|[-@:]))")

Body = JsonObject
_MOST_MARKS = 4
_MARK = "cache_control"


class Run(NamedTuple):
    """The numbers of consecutive items that together are one message, and the role of that message."""

    role: str
    indices: list[int]


class Outgoing(NamedTuple):
    """What is sent of a history; `system` is None where there is no system prompt."""

    system: str | Blocks | None
    messages: Dicts


def takes_system_role(model: Any) -> bool:
    """Whether a model takes system messages in the middle of a conversation.

    See https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages.
    """
    return _TAKES_SYSTEM_ROLE.search(str(model)) is not None


def compose(items: Dicts, *, system_role: bool = False) -> Outgoing:
    """Return the items as the API takes them.

    Args:
        items: The native history.
        system_role: Whether the model takes system messages in the middle of a conversation.
    """
    runs = gather(items, system_role=system_role)
    messages = [_message(items, run) for run in runs]
    if _needs_opening(runs):
        messages = [_OPENING, *messages]
    return Outgoing(_system(items), messages or ([_BEGINNING] if items else []))


class Encoded(NamedTuple):
    """Turns as they are sent: the system prompt, messages as JSON without the brackets, and cache marks."""

    system: str | Blocks | None
    messages: bytes
    marks: int

    def joined(self, more: Encoded) -> Encoded:
        messages = b",".join([self.messages, more.messages])
        return Encoded(self.system, messages, self.marks + more.marks)


def encode_turns(items: Dicts, start: int, memory: State, *, system_role: bool) -> Encoded:
    """Return the turns before the one that begins at *start*; what was encoded before is taken as it was."""

    def encode(items: Dicts) -> Encoded:
        system, messages = compose(items, system_role=system_role)
        return Encoded(system, orjson.dumps(messages)[1:-1], count_marks({"messages": messages}))

    form = "system role" if system_role else ""
    may_cut = partial(begins_turn, items)
    return grown(items[:start], memory, "messages", encode, Encoded.joined, form, may_cut)


def places(items: Dicts, *, system_role: bool = False) -> list[list[Place]]:
    """Return for each message that is sent, and each of its blocks, where the block stands in the items."""
    runs = gather(items, system_role=system_role)
    located = [[place for place, _block in _blocks(items, run)] for run in runs]
    return [[], *located] if _needs_opening(runs) else located


def gather(items: Dicts, *, system_role: bool) -> list[Run]:
    """Return the items that are sent, those of one role together."""
    runs: list[Run] = []
    for index, item in enumerate(items):
        role = str(item.get("role"))
        if not says_something(item) or (role == "system" and not runs):
            continue
        if runs and runs[-1].role == role:
            runs[-1].indices.append(index)
        else:
            runs.append(Run(role, [index]))
    return _settled(runs, system_role=system_role) if any(run.role == "system" for run in runs) else runs


def _settled(runs: list[Run], *, system_role: bool) -> list[Run]:
    """Leave the role `system` where the API takes it; other system messages join the user's turns."""
    settled: list[Run] = []
    for run, following in zip_longest(runs, runs[1:]):
        role = run.role
        if role == "system":
            between = bool(settled) and settled[-1].role == "user" and (following or run).role != "user"
            role = "system" if system_role and between else "user"
        if settled and settled[-1].role == role:
            settled[-1].indices.extend(run.indices)
        else:
            settled.append(Run(role, list(run.indices)))
    return settled


def _needs_opening(runs: list[Run]) -> bool:
    return bool(runs) and runs[0].role == "assistant"


def _message(items: Dicts, run: Run) -> JsonObject:
    first = items[run.indices[0]]
    message = {key: first[key] for key in first if key != METADATA} if METADATA in first else first
    content = first["content"]
    alone = len(run.indices) == 1 and first.get("role") == run.role
    if alone and (isinstance(content, str) or _is_sendable(content)):
        return message
    return {**message, "role": run.role, "content": [block for _place, block in _blocks(items, run)]}


def _is_sendable(blocks: Blocks) -> bool:
    """Whether blocks can be sent as they are: no blank text, and no result behind something else."""
    others = False
    for block in blocks:
        kind = block.get("type")
        if kind == "text" and is_blank(block["text"]):
            return False
        if kind != "tool_result":
            others = True
        elif others:
            return False
    return True


def _blocks(items: Dicts, run: Run) -> list[tuple[Place, Block]]:
    found = [
        ((index, number), _instruction(block) if run.role != items[index].get("role") else block)
        for index in run.indices
        for number, block in _sendable(blocks_of(items[index]))
    ]
    return sorted(found, key=lambda pair: not is_result(pair[1]))


def _sendable(blocks: Blocks) -> list[tuple[int, Block]]:
    """Leave empty text out, and blank text where there is no other; between words it may stand."""
    words = any(is_text(block) and not is_blank(block["text"]) for block in blocks)
    return [
        (number, block)
        for number, block in enumerate(blocks)
        if not is_text(block) or not is_blank(block["text"]) or (words and block["text"])
    ]


def _instruction(block: Block) -> Block:
    """Mark a system message that stands in a user's turn."""
    return {**block, "text": f"<system>\n{block['text']}\n</system>"} if is_text(block) else block


def _system(items: Dicts) -> str | Blocks | None:
    spoken = (item for item in items if says_something(item))
    system = list(takewhile(lambda item: item.get("role") == "system", spoken))
    if len(system) == 1 and isinstance(system[0]["content"], str):
        return str(system[0]["content"])
    return [block for item in system for _number, block in _sendable(blocks_of(item))] or None


# Marks that tell the provider what to remember between requests: `cache_control`. A mark covers
# everything before it. The end of the last user turn is marked, so that the next request finds the
# conversation so far; the system prompt and the tools too, for when the conversation changes. The API
# takes four marks, and those that parts bring themselves come first.


def with_marks(body: Body, cache: Any, used: int = 0) -> Body:
    """Return the body with marks where they help.

    Args:
        body: With the messages, at least those of the last turn.
        cache: True, or how long to remember: "5m", "1h".
        used: How many marks the messages have that are not in the body.
    """
    mark = {"type": "ephemeral", **({"ttl": cache} if isinstance(cache, str) else {})}
    free = _MOST_MARKS - used - count_marks(body)
    for place in (_mark_turn, _mark_system, _mark_tools):
        marked = place(body, mark) if free > 0 else body
        free -= marked is not body
        body = marked
    return body


def count_marks(body: Body) -> int:
    """Return how many parts of a body are marked."""
    return sum(_MARK in block for block in _all_blocks(body))


def _mark_turn(body: Body, mark: JsonObject) -> Body:
    messages = body["messages"]
    last = max((place for place, each in enumerate(messages) if each["role"] == "user"), default=None)
    if last is None:
        return body
    content = _marked(messages[last]["content"], mark)
    if content is None:
        return body
    turn = {**messages[last], "content": content}
    return {**body, "messages": [*messages[:last], turn, *messages[last + 1 :]]}


def _mark_system(body: Body, mark: JsonObject) -> Body:
    content = _marked(body.get("system"), mark)
    return body if content is None else {**body, "system": content}


def _mark_tools(body: Body, mark: JsonObject) -> Body:
    content = _marked(body.get("tools"), mark)
    return body if content is None else {**body, "tools": content}


def _marked(content: Any, mark: JsonObject) -> Blocks | None:
    """Return the content with a mark on its end, or None if there is nothing to mark or it is marked."""
    if isinstance(content, str) and content:
        content = [{"type": "text", "text": content}]
    if not content or _MARK in content[-1] or is_thinking(content[-1]):
        return None
    return [*content[:-1], {**content[-1], _MARK: mark}]


def _all_blocks(body: Body) -> Iterator[JsonObject]:
    for content in (
        body.get("tools"),
        body.get("system"),
        *(message["content"] for message in body["messages"]),
    ):
        for block in content if isinstance(content, list) else ():
            yield block
            inner = block.get("content")
            yield from (part for part in inner if isinstance(part, dict)) if isinstance(inner, list) else ()
