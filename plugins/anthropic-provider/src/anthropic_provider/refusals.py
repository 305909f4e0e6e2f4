"""Thinking that the API does not take back.

A thinking block is signed. Newer models also bind it to everything that was sent before it: the system
prompt, the tools and every earlier message. Blocks are always sent back unchanged, and the API says
itself when one does not fit any more: because something before it was edited, because another model
made it, or because thinking is off now. Then that block and every later one is put aside, since the
later ones were bound to it, and the request is made once more.

Nothing is dropped on suspicion. A model that cannot read another's thinking usually ignores it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from anthropic_provider.messages import blocks_of, is_result, is_thinking, put_aside
from anthropic_provider.request import Place, places

if TYPE_CHECKING:
    from agent_provider_kit import Config, Dicts

_NAMED = re.compile(r"messages\.(\d+)\.content\.(\d+)")
_REFUSALS = (
    re.compile(r"bound to a different conversation"),
    re.compile(r"signature.*thinking|thinking.*signature", re.DOTALL),
    re.compile(r"thinking.* cannot be modified", re.DOTALL),
    re.compile(r"cannot contain `?thinking"),
)


def is_about_thinking(complaint: str) -> bool:
    """Whether the API refused a request because of a thinking block that it was sent back."""
    return any(refusal.search(complaint) for refusal in _REFUSALS)


def is_about_system_role(complaint: str) -> bool:
    """Whether the API refused a system message in the middle of a conversation."""
    return re.search(r"\brole\b.*\bsystem\b|\bsystem\b.*\brole\b", complaint, re.IGNORECASE) is not None


def wants_the_error(config: Config) -> bool:
    """Whether the configuration asks for an error when a prefix has changed; else the thinking is dropped."""
    thinking = config.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, Mapping) else None
    return isinstance(binding, Mapping) and binding.get("prefix_mismatch_behavior") == "error"


def refused_blocks(items: Dicts, complaint: str, *, system_role: bool = False) -> list[Place]:
    """Return the places of the thinking blocks to do without.

    From the block that the API named on; if it named none, those before the last user turn, or all
    if there are none before it.
    """
    thinking = _thinking_in(items)
    named = _named_place(items, complaint, system_role=system_role)
    if named is not None:
        return [place for place in thinking if place >= named]
    turn = _last_user_turn(items)
    return [place for place in thinking if place[0] < turn] or thinking


def without_blocks(items: Dicts, refused: list[Place], reason: str) -> Dicts:
    """Return the items without the blocks at those places; their items' `_metadata` keeps them."""
    by_item: dict[int, set[int]] = {}
    for index, number in refused:
        by_item.setdefault(index, set()).add(number)
    return [
        put_aside(item, by_item[index], reason) if index in by_item else item
        for index, item in enumerate(items)
    ]


def _thinking_in(items: Dicts) -> list[Place]:
    return [
        (index, number)
        for index, item in enumerate(items)
        for number, block in enumerate(blocks_of(item))
        if is_thinking(block)
    ]


def _named_place(items: Dicts, complaint: str, *, system_role: bool) -> Place | None:
    found = _NAMED.search(complaint)
    if found is None:
        return None
    try:
        return places(items, system_role=system_role)[int(found[1])][int(found[2])]
    except IndexError:
        return None


def _last_user_turn(items: Dicts) -> int:
    turns = (
        index
        for index, item in enumerate(items)
        if item.get("role") == "user" and any(not is_result(block) for block in blocks_of(item))
    )
    return max(turns, default=0)
