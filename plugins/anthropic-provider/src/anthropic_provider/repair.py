"""A repair that turns any history into one that the API accepts.

One bad item (a call without its result, a result without its call) makes the API refuse the whole
conversation from then on. The pass is deterministic and idempotent. It takes no item away and no words: a
block that cannot be sent is put aside in its item's `_metadata`, a result in the wrong place is moved to
its call, and a call that never got a result gets one that says so.

Roles out of turn, empty messages and blank text need no repair: see `anthropic_provider.request`. Nor do
signatures, which only the API can judge: see `anthropic_provider.refusals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_provider_kit import grown, repaired_by_turns
from anthropic_provider.messages import (
    METADATA,
    Block,
    begins_turn,
    blocks_of,
    is_call,
    is_result,
    is_server_call,
    is_server_result,
    is_text,
    put_aside,
    says_something,
)

if TYPE_CHECKING:
    from agent_provider_kit import Dicts, JsonObject, State

_INTERRUPTED = "The call was interrupted before it gave a result; it may have run."
_HARMLESS = frozenset({"thinking", "redacted_thinking", "image", "document"})


def validate_items(items: Dicts) -> list[str]:
    """Return what the API would not accept; nothing for a good history."""
    return repair_items(items)[1]


def repair_new_items(items: Dicts, memory: State | None) -> tuple[Dicts, list[str]]:
    """Do the same; of a history that was good before, only the turns that are new are looked at."""

    def repair(part: Dicts) -> tuple[Dicts, list[str]]:
        # An id must be new in the whole conversation, so the ids of earlier turns are remembered.
        before = items[: len(items) - len(part)]
        ids = grown(before, memory, "call ids", _call_ids, _both) if before else frozenset[Any]()
        return repair_items(part) if ids.isdisjoint(_call_ids(part)) else (part, ["an id stands twice"])

    return repaired_by_turns(items, memory, begins_turn, repair)


def _call_ids(items: Dicts) -> frozenset[Any]:
    return frozenset(block.get("id") for item in items for block in blocks_of(item) if is_call(block))


def _both(ids: frozenset[Any], more: frozenset[Any]) -> frozenset[Any]:
    return ids | more


def repair_items(items: Dicts) -> tuple[Dicts, list[str]]:
    """Return the items that the API accepts, and a line for each change."""
    if is_sound(items):
        return items, []
    report: list[str] = []
    repaired = _without_empty_text(items, report)
    repaired = _pair_server_tools(repaired, report)
    repaired = _Pairing(repaired, report).paired()
    return (repaired, report) if report else (items, [])


def _without_empty_text(items: Dicts, report: list[str]) -> Dicts:
    return [_without_empty(index, item, report) for index, item in enumerate(items)]


def _without_empty(index: int, item: JsonObject, report: list[str]) -> JsonObject:
    content = item.get("content")
    if not isinstance(content, list):
        return item
    kept = [
        block for block in content if isinstance(block, dict) and not (is_text(block) and not block["text"])
    ]
    if len(kept) == len(content):
        return item
    report.append(f"item {index}: left out text without a single character")
    return {**item, "content": kept}


def _pair_server_tools(items: Dicts, report: list[str]) -> Dicts:
    """Put aside results without a call before them, and calls without a result that is still to come."""
    last_result = {
        block.get("tool_use_id"): (index, number)
        for index, item in enumerate(items)
        for number, block in enumerate(blocks_of(item))
        if is_server_result(block)
    }
    open_from = _open_turn(items)
    called: set[Any] = set()
    repaired = []
    for index, item in enumerate(items):
        bad = set()
        for number, block in enumerate(blocks_of(item)):
            if is_server_result(block) and block.get("tool_use_id") not in called:
                bad.add(number)
            elif is_server_call(block):
                called.add(block.get("id"))
                answered = last_result.get(block.get("id"), (-1, -1)) > (index, number)
                bad |= set() if answered or index >= open_from else {number}
        repaired.append(_aside(index, item, bad, report) if bad else item)
    return repaired


def _aside(index: int, item: JsonObject, bad: set[int], report: list[str]) -> JsonObject:
    reason = "the other half of the server's call is missing"
    report.append(f"item {index}: put {len(bad)} blocks aside, {reason}")
    return put_aside(item, bad, reason)


def _open_turn(items: Dicts) -> int:
    """Return from which item on a server's call may still get its result: nobody has spoken since.

    A system message counts, too: where it stands, it is sent in a user's turn.
    """
    spoken = (
        index
        for index, item in enumerate(items)
        if item.get("role") in ("user", "system")
        and says_something(item)
        and any(not is_result(block) for block in blocks_of(item))
    )
    return max(spoken, default=-1) + 1


class _Pairing:
    """Goes through the items once and brings each call and its result together."""

    def __init__(self, items: Dicts, report: list[str]) -> None:
        self._items = items
        self._report = report
        self._out: Dicts = []
        self._slot = 0  # where in the output results of the current calls belong
        self._open: list[str] = []
        self._answers = False  # whether the current calls are behind us
        self._renamed: dict[str, str] = {}
        self._used: set[str] = set()
        self._moved: set[tuple[int, int]] = set()

    def paired(self) -> Dicts:
        """Return the items with every call answered once, right behind it."""
        for index, item in enumerate(self._items):
            role = item.get("role")
            if not says_something(item):
                self._out.append(item)
            elif role == "system":
                self._answers = True  # in the middle of a conversation it is sent as a turn
                self._out.append(item)
            elif role == "assistant":
                self._take_calls(index, item)
            else:
                self._answers = True
                self._take_results(index, item)
        self._close(len(self._items))
        return self._out

    def _take_calls(self, index: int, item: JsonObject) -> None:
        if self._answers:
            self._close(index)
            self._renamed = {}
        self._answers = False
        blocks = blocks_of(item)
        if any(map(is_call, blocks)):
            item = self._with_own_ids(item, blocks)
        self._out.append(item)
        self._slot = len(self._out)

    def _with_own_ids(self, item: JsonObject, blocks: list[Block]) -> JsonObject:
        named = [self._own_id(block) if is_call(block) else block for block in blocks]
        self._open += [str(block["id"]) for block in named if is_call(block)]
        return {**item, "content": named} if named != blocks else item

    def _own_id(self, block: Block) -> Block:
        """Return a call under an id that no other has: histories that are joined may bring one twice."""
        given = str(block.get("id") or "call")
        own, count = given, 1
        while own in self._used:
            count += 1
            own = f"{given}_{count}"
        self._used.add(own)
        if own == block.get("id"):
            return block
        self._renamed[given] = own
        self._report.append(f"call {given!r}: renamed to {own!r}, since there was one of that name before")
        return {**block, "id": own}

    def _take_results(self, index: int, item: JsonObject) -> None:
        blocks = blocks_of(item)
        if not any(map(is_result, blocks)):
            self._out.append(item)
            return
        kept, aside = [], set()
        for number, block in enumerate(blocks):
            if is_result(block) and (index, number) in self._moved:
                continue
            answer = self._answer(block) if is_result(block) else block
            kept.append(block if answer is None else answer)
            if answer is None:
                aside.add(len(kept) - 1)
        self._keep(index, item, blocks, kept, aside)

    def _answer(self, block: Block) -> Block | None:
        """Return a result under the id of the call that waits for it, or None if none does."""
        given = block.get("tool_use_id")
        for wanted in (self._renamed.get(str(given)), given):
            if wanted in self._open:
                self._open.remove(wanted)
                return block if wanted == given else {**block, "tool_use_id": wanted}
        return None

    def _keep(
        self, index: int, item: JsonObject, blocks: list[Block], kept: list[Block], aside: set[int]
    ) -> None:
        if not kept:
            return  # all of it was moved
        if kept != blocks:
            item = {**item, "content": kept}
        if aside:
            reason = "it answers no call"
            ids = [kept[number].get("tool_use_id") for number in sorted(aside)]
            self._report.append(f"item {index}: put the results of {ids} aside, {reason}")
            item = put_aside(item, aside, reason)
        self._out.append(item)

    def _close(self, end: int) -> None:
        """Give every call that is still open a result: its own if that comes later, or a truthful one."""
        results = [self._late(call_id, end) or self._made(call_id) for call_id in self._open]
        self._out[self._slot : self._slot] = results
        self._open = []

    def _late(self, call_id: str, end: int) -> JsonObject | None:
        for index in range(end, len(self._items)):
            item = self._items[index]
            for number, block in enumerate(blocks_of(item)):
                if is_call(block) and block.get("id") == call_id:
                    return None  # from here on it is another call's
                wanted = is_result(block) and block.get("tool_use_id") == call_id
                if wanted and (index, number) not in self._moved:
                    self._moved.add((index, number))
                    self._report.append(f"call {call_id!r}: moved its result to it from item {index}")
                    return _alone(item, block)
        return None

    def _made(self, call_id: str) -> JsonObject:
        self._report.append(f"call {call_id!r}: added a result, since there was none")
        result = {"type": "tool_result", "tool_use_id": call_id, "content": _INTERRUPTED, "is_error": True}
        return {
            "role": "user",
            "content": [result],
            METADATA: {"synthesized": True, "interrupted": True},
        }


def _alone(item: JsonObject, block: Block) -> JsonObject:
    """Return an item with this block only: the item itself, if it has no other."""
    if len(blocks_of(item)) == 1:
        return item
    return {"role": "user", "content": [block]}


# A quick look at a history: most need no repair, and every request asks. Only the usual is known here:
# results right behind their calls, a server's result behind its call in one item, no empty text. Anything
# else is left to the repair, which takes its time.


def is_sound(items: Dicts) -> bool:
    """Whether a history surely needs no repair."""
    calls: set[Any] = set()
    waiting: set[Any] = set()
    answering = False
    for item in items:
        role, content = item.get("role"), item.get("content")
        if role in ("user", "system"):
            answering = True
        elif role == "assistant":
            if answering and waiting:
                return False
            answering = False
        if not isinstance(content, str) and not _is_usual(content, calls, waiting):
            return False
    return not waiting


def _is_usual(content: Any, calls: set[Any], waiting: set[Any]) -> bool:
    if not isinstance(content, list):
        return False
    server: set[Any] = set()
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            if not block["text"]:
                return False
        elif kind not in _HARMLESS and not _is_paired(str(kind), block, calls, waiting, server):
            return False
    return not server


def _is_paired(kind: str, block: JsonObject, calls: set[Any], waiting: set[Any], server: set[Any]) -> bool:
    """Follow calls and results; whatever is not where it usually is ends the quick look."""
    if kind == "tool_use":
        own = block.get("id")
        if not isinstance(own, str) or not own or own in calls:
            return False
        calls.add(own)
        waiting.add(own)
        return True
    if kind.endswith("_tool_use"):
        server.add(block.get("id"))
        return True
    expected = waiting if kind == "tool_result" else server
    if not kind.endswith("tool_result") or block.get("tool_use_id") not in expected:
        return False
    expected.remove(block.get("tool_use_id"))
    return True
