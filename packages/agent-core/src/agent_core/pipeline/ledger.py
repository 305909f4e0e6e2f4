"""The account of a turn: what was sent, what hooks made of it, and what they got wrong.

From the moment that the model is asked, hooks return the whole native history, and any of them may
return less, or more, than there was. What was said must survive that. So there is one rule: a hook adds
to the end, may revise an item where it stands, and may change the turn's finals. What was sent stays,
each item once and in its order; so does the answer. Whatever else a hook returns is not taken over, and
noted with the names of plugin and hook. Only `initialize_request`, which comes before, and actions, which
come after, may restructure a conversation.

Equal does not mean the same: a model may well say "ok" twice. An item counts as one that was sent if it is
that very object, if it is equal and not the model's words, or if it is equal and so is its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_core.errors import PluginError
from agent_core.frozen import FrozenDict, FrozenList
from agent_core.plugin.hooks import frozen_dicts

if TYPE_CHECKING:
    from agent_core.messages import Message

Items = Sequence[FrozenDict]
Read = Callable[[Items], Items]
# Whose words an item is, given the place of an equal one that was sent, or -1.
Role = Callable[[FrozenDict, int], str | None]
RoleAt = Callable[[int], "str | None"]

_CALLS = ("tool_calls", "tool_call_id")
_MODEL = "assistant"
_NOT_ANSWERING = ("system", "user")
_NOT_NATIVE = (
    "returned a final message with the keys {keys}, which the provider's from_native_messages cannot read: "
    "final messages are native items, the same ones that finalize adds to native_messages, and not messages "
    "with role and content"
)


class Ledger:
    """What the hooks of one turn did to native history and finals.

    Args:
        sent: What the model was asked, as `initialize_request` left it.
        read: Returns native items in readable form.
        roles: Returns how to find the role of an item that was sent by its place; None if that is not known.

    Attributes:
        sent: The same items; those that a hook revised in their new form.
        problems: What hooks returned that was not taken over, as dicts with plugin, hook and problem.
        revisions: Who revised what was sent, likewise.
        spoken: What each plugin left of the turn's finals, in the order in which they were asked.
    """

    def __init__(self, sent: FrozenList, read: Read, roles: Callable[[], RoleAt]) -> None:
        self.asked = sent
        self.sent = sent
        self.problems: list[FrozenDict] = []
        self.revisions: list[FrozenDict] = []
        self.spoken: list[tuple[str, Items]] = []
        self._read = read
        self._find_roles = roles
        self._role_of: RoleAt | None = None  # found when somebody first asks
        self._doubtful = False  # the provider's word on native history cannot be relied on

    def take_native(
        self, plugin: str, hook: str, before: FrozenList, returned: object, finals: Items = ()
    ) -> FrozenList:
        """Return native history after a provider's hook, which may bring the answer.

        Args:
            finals: The part of the answer that it has given so far.
        """
        if returned is before:
            return before
        if (longer := _extended(plugin, hook, before, returned, self.asked)) is not None:
            return longer
        items, whole = self._begin(plugin, hook, before, returned)
        had = before[len(self.sent) :]
        if whole:
            turn = self._without_sent(plugin, hook, items)
            return self._with_turn(had if self._lost(plugin, hook, had, turn, finals) else turn)
        self._doubtful = True
        old = _old(items, [*self.sent, *had], self._role_at)
        new = [item for item, is_old in zip(items, old, strict=True) if not is_old]
        brought = [item for item in _missing(new, had) if self._role(item) not in _NOT_ANSWERING]
        return self._with_turn([*had, *brought])

    def take_adjusted(
        self, plugin: str, hook: str, before: FrozenList, returned: object, finals: Items
    ) -> FrozenList:
        """Return native history after an extension's or a feature's hook, which may not lose *finals*."""
        if returned is before:
            return before
        if (longer := _extended(plugin, hook, before, returned, [*self.asked, *before])) is not None:
            return longer
        items, whole = self._begin(plugin, hook, before, returned)
        had = before[len(self.sent) :]
        if not whole:
            return self._with_turn(had)
        turn = self._without_repeated(plugin, hook, had, self._without_sent(plugin, hook, items))
        return self._with_turn(had if self._lost(plugin, hook, had, turn, finals) else turn)

    def take_finals(self, plugin: str, hook: str, before: Items, returned: object) -> FrozenList:
        """Return the turn's finals after an extension's or a feature's hook: none lost, none repeated."""
        finals = FrozenList(self._take(plugin, hook, before, returned, self.asked, self._role_at))
        self.spoken.append((plugin, finals))
        return finals

    def take_readable(
        self, plugin: str, hook: str, before: FrozenList, returned: object, messages: Sequence[Message]
    ) -> FrozenList:
        """Return the turn's readable messages after such a hook, where *messages* came before them."""
        earlier = [message.frozen_dict() for message in messages] if returned != before else []
        return FrozenList(
            self._take(plugin, hook, before, returned, earlier, lambda item, _place: item["role"])
        )

    def _take(
        self, plugin: str, hook: str, before: Items, returned: object, earlier: Items, role: Role
    ) -> Items:
        if returned == before:
            return before
        given = frozen_dicts(plugin, hook, returned)
        old = _old(given, earlier, role)
        kept = [item for item, is_old in zip(given, old, strict=True) if not is_old or item in before]
        if len(kept) < len(given):
            self._note(plugin, hook, "returned earlier messages among those of the turn")
        kept = self._without_repeated(plugin, hook, before, kept, "turn's messages")
        if _missing(kept, before):
            return kept  # some are new, and the plugin knows what it made them of
        missing = [item for item in _missing(before, kept) if role(item, -1) is not None]
        if missing:
            self._note(plugin, hook, f"left out {len(missing)} of the turn's {len(before)} messages")
            return before
        return kept

    def settle(
        self, plugin: str, hook: str, finals: Items, last: Items, native: FrozenList
    ) -> tuple[FrozenList, FrozenList]:
        """Return the finals and native history of a provider that is done, the answer once in each.

        Args:
            finals: What it gave before, while the answer came.
            last: What it gave at the end.
        """
        turn: list[FrozenDict] = native[len(self.sent) :]
        if turn and turn == [*finals, *last]:  # as nearly all providers have it
            self.spoken.append((plugin, turn))
            return FrozenList(turn), native
        self.spoken.append((plugin, [*finals, *last]))
        spoken = self._own_finals(plugin, hook, list(finals), list(last), turn)
        if not spoken and turn:
            spoken = self._finals_of(plugin, hook, turn)
            turn = spoken or turn
        elif spoken:
            turn = self._turn_of(plugin, hook, spoken, turn)
        same = turn == native[len(self.sent) :]
        return FrozenList(spoken), native if same else self._with_turn(turn)

    def cover(self, finals: Items, native: FrozenList) -> FrozenList:
        """Return native history with every final in it: what it lacks could not be sent next time."""
        turn: list[FrozenDict] = list(native[len(self.sent) :])
        lacking = [] if turn == finals else _missing(finals, turn)
        if not lacking:
            return native
        # An item of the turn that is not a final may be the native form of one that a plugin has changed.
        stand_ins = [item for item in _missing(turn, finals) if self._reads(item)]
        for final in lacking[len(stand_ins) :]:
            behind = [place for item in finals[finals.index(final) + 1 :] for place in _places(item, turn)]
            turn.insert(min(behind, default=len(turn)), final)
        return self._with_turn(turn)

    # Native history

    def _begin(
        self, plugin: str, hook: str, before: FrozenList, returned: object
    ) -> tuple[list[FrozenDict], bool]:
        """Return the items that a hook added, and True, if what it returned begins with what was sent.

        Otherwise all that it returned, and False.
        """
        count = len(self.sent)
        if isinstance(returned, list) and returned[:count] == self.sent:
            return frozen_dicts(plugin, hook, returned[count:]), True
        given = frozen_dicts(plugin, hook, returned)
        beginning = given[:count]
        if len(beginning) == count and self._says_the_same(beginning):
            self.sent = FrozenList(beginning)
            self.revisions.append(_entry(plugin, hook, "revised earlier items of native history"))
            return given[count:], True
        self._note(plugin, hook, _describe(given, before, self.sent))
        return given, False

    def _without_sent(self, plugin: str, hook: str, items: list[FrozenDict]) -> list[FrozenDict]:
        old = _old(items, self.asked, self._role_at)
        if not any(old):
            return items
        self._note(plugin, hook, "returned earlier items of native history once more, behind the turn")
        return [item for item, is_old in zip(items, old, strict=True) if not is_old]

    def _lost(self, plugin: str, hook: str, had: Items, turn: Items, finals: Items) -> bool:
        """Say whether a hook only cut the turn's items, and some of the answer with them."""
        if _missing(turn, had):
            return False
        if not any(item in finals and self._reads(item) for item in _missing(had, turn)):
            return False
        self._note(plugin, hook, "left the answer out of native history")
        return True

    def _without_repeated(
        self, plugin: str, hook: str, before: Items, items: list[FrozenDict], what: str = "native items"
    ) -> list[FrozenDict]:
        """Return *items* without those that were there before and are now there more often."""
        kept = [item for place, item in enumerate(items) if not _is_repeated(item, items[:place], before)]
        if len(kept) < len(items):
            self._note(plugin, hook, f"returned some of the {what} more than once")
        return kept

    def _with_turn(self, turn: Sequence[FrozenDict]) -> FrozenList:
        return FrozenList([*self.sent, *turn])

    # The answer

    def _own_finals(
        self, plugin: str, hook: str, finals: list[FrozenDict], last: list[FrozenDict], turn: Items
    ) -> list[FrozenDict]:
        """Return a provider's finals without those that it gave twice, and without earlier messages."""
        if not _missing([*finals, *last], turn):
            return [*finals, *last]
        first, last = (self._without_earlier(plugin, hook, items, turn) for items in (finals, last))
        if first and last[: len(first)] == first and _missing([*first, *first], turn):
            self._note(plugin, hook, "returned final messages that it had given already")
            last = last[len(first) :]
        spoken = [*first, *last]
        kept = [
            item
            for place, item in enumerate(spoken)
            if item not in turn or spoken[:place].count(item) < turn.count(item)
        ]
        if len(kept) < len(spoken):
            self._note(plugin, hook, "returned a final message twice that is in native history once")
        return kept

    def _without_earlier(
        self, plugin: str, hook: str, finals: list[FrozenDict], turn: Items
    ) -> list[FrozenDict]:
        old = _old(finals, self.asked, self._role_at)
        if old and old[-1] and self._role(finals[-1]) == _MODEL:
            # The model's last words are its answer, also if it has said the same before.
            old[-1] = any(finals[-1] is item for item in self.asked)
        spoken = [item for item, is_old in zip(finals, old, strict=True) if not is_old or item in turn]
        if len(spoken) < len(finals):
            self._note(plugin, hook, "returned earlier messages among the final messages")
        return spoken

    def _finals_of(self, plugin: str, hook: str, turn: list[FrozenDict]) -> list[FrozenDict]:
        """Return the items that must be the answer, where a provider named none."""
        start = 0
        if self._doubtful:
            others = [place for place, item in enumerate(turn) if self._role(item) not in (None, _MODEL)]
            start = others[-1] + 1 if others else 0
        answer = turn[start:]
        if not any(self._reads(item) for item in answer):
            return []
        self._note(plugin, hook, "put the answer into native history and returned no final message")
        return answer

    def _turn_of(
        self, plugin: str, hook: str, finals: list[FrozenDict], turn: list[FrozenDict]
    ) -> list[FrozenDict]:
        """Return the turn's native items without duplicates and without those that may not belong to it."""
        if self._doubtful:
            turn = [item for item in turn if item in finals or not self._reads(item)]
        kept = [
            item
            for place, item in enumerate(turn)
            if item not in finals or turn[:place].count(item) < finals.count(item)
        ]
        if len(kept) < len(turn):
            self._note(plugin, hook, "put the answer into native history more than once")
        return kept

    def blame(self, finals: Items) -> PluginError | None:
        """Return an error for the plugin that brought a final which the provider cannot read, if one did.

        The provider reads what it was asked, so such a final is not an item of its native format. Nearly
        always it is a readable message, a dict with role and content.
        """
        if not self.asked or not self._can_read(self.asked):
            return None
        for final in finals:
            if not self._can_read([final]):
                plugin = next((name for name, spoken in self.spoken if final in spoken), None)
                if plugin is not None:
                    return PluginError(plugin, "finalize", _NOT_NATIVE.format(keys=sorted(map(str, final))))
        return None

    def _can_read(self, items: Items) -> bool:
        try:
            self._read(items)
        except PluginError:
            return False
        return True

    # What an item is

    def _says_the_same(self, items: Items) -> bool:
        """Say whether other items read as what was sent does; then they are only another form of it."""
        try:
            return [*map(_said, self._read(items))] == [*map(_said, self._read(self.asked))]
        except PluginError:
            return False

    def _reads(self, item: FrozenDict) -> bool:
        """Say whether an item has a readable form; reasoning for example has none."""
        try:
            return bool(self._read([item]))
        except PluginError:
            return True  # it cannot be understood alone, so it may be anything

    def _role_at(self, item: FrozenDict, place: int) -> str | None:
        if self._role_of is None:
            self._role_of = self._find_roles()
        return self._role_of(place) or self._role(item)

    def _role(self, item: FrozenDict) -> str | None:
        try:
            read = self._read([item])
        except PluginError:
            return None
        return read[0].get("role") if read else None

    def _note(self, plugin: str, hook: str, problem: str) -> None:
        entry = _entry(plugin, hook, problem)
        if entry not in self.problems:
            self.problems.append(entry)


def _extended(
    plugin: str, hook: str, before: FrozenList, returned: object, known: Items
) -> FrozenList | None:
    """Return native history if a hook did nothing but add items that are not *known*, as nearly all do."""
    kept = len(before)
    if not isinstance(returned, list) or returned[:kept] != before:
        return None
    added = frozen_dicts(plugin, hook, returned[kept:])
    return None if any(item in known for item in added) else FrozenList([*before, *added])


def _entry(plugin: str, hook: str, problem: str) -> FrozenDict:
    return FrozenDict(plugin=plugin, hook=hook, problem=problem)


def _describe(given: Items, before: Items, sent: Items) -> str:
    """Say what is wrong with a native history that does not begin with what was sent."""
    if not given:
        return f"returned no native history, and had been given {len(before)} items"
    there = sum(1 for item in sent if item in given)
    if not there:
        return f"returned native history without any of the {len(sent)} items that were sent"
    if there < len(sent):
        return f"returned native history with {there} of the {len(sent)} items that were sent"
    return "returned native history in another order than it was sent"


def _said(message: FrozenDict) -> tuple[object, ...]:
    metadata = message.get("metadata") or {}
    return (
        message.get("role"),
        message.get("content"),
        message.get("multipartContent"),
        message.get("tool_result"),
        *(metadata.get(key, message.get(key)) for key in _CALLS),
    )


def _old(items: Items, sent: Items, role: Role) -> list[bool]:
    """Say of each item whether it is one of those that were sent; see the top of this module."""
    places = [_places(item, sent) for item in items]
    old = [
        any(sent[place] is item or role(item, place) not in (None, _MODEL) for place in found)
        for item, found in zip(items, places, strict=True)
    ]
    if any(old):
        # A neighbour of an old item in both lists is old as well; so is a copy of one.
        pairs = [(index, index - 1) for index in range(1, len(items))]
        for index, next_to in [*pairs, *((other, index) for index, other in reversed(pairs))]:
            near = {near for place in places[index] for near in (place - 1, place, place + 1)}
            old[index] |= old[next_to] and not near.isdisjoint(places[next_to])
    return old


def _places(item: FrozenDict, among: Items) -> set[int]:
    found: set[int] = set()
    place = -1
    with suppress(ValueError):  # nearly always at once: most items are new
        while True:
            place = among.index(item, place + 1)
            found.add(place)
    return found


def _missing(items: Items, among: Items) -> list[FrozenDict]:
    """Return those of *items* that are not *among* others, each as often as it is missing."""
    left = list(among)
    missing = []
    for item in items:
        if item in left:
            left.remove(item)
        else:
            missing.append(item)
    return missing


def _is_repeated(item: FrozenDict, earlier: Items, before: Items) -> bool:
    allowed = before.count(item)
    return allowed > 0 and earlier.count(item) >= allowed
