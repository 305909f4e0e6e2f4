"""What plugins offer to do: their actions, as the chat names and shows them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_terminal_app.chat.answering import who_answers
from agent_terminal_app.chat.words import one_line

if TYPE_CHECKING:
    from agent_core.actions import Action
    from agent_terminal_app.chat.conversation import Conversation

_LAST = 1_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An action that a person can ask for.

    Attributes:
        action: The action.
        label: What it is called.
        order: Where it stands among others; the least comes first.
        input_labels: What its inputs are called in the dialog that its plugin wants, by name.
    """

    action: Action
    label: str
    order: float = _LAST
    input_labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its whole name, plugin and action."""
        return f"{self.action.plugin}.{self.action.id}"

    @property
    def about(self) -> str:
        """One line about it."""
        said = one_line(self.action.description, 80)
        return f"{one_line(self.label, 40)}: {said}" if said else one_line(self.label, 40)

    @property
    def is_of_application(self) -> bool:
        """Whether it serves the whole application, and not one session."""
        return self.action.owner == "application"

    @property
    def needs_session(self) -> bool:
        """Whether something must have been said before; its plugin may say that no session matters to it."""
        return not self.is_of_application and self.action.extra.get("without_session") is not True


async def find_offers(conversation: Conversation) -> list[Offer]:
    """Return what can be asked for now; without a session, what its agent's plugins will offer in one."""
    app, session_id = conversation.app, conversation.session_id
    given = await app.get_actions_async(session_id)
    elements = await app.get_ui_elements_async()
    try:
        who = await who_answers(conversation)
        settings = dict(who.config)
        if session_id is None:
            given += await asyncio.to_thread(who.core.get_session_actions, settings)
        elements += await asyncio.to_thread(who.core.get_ui_schema, settings)
    except AgentError:  # an agent that cannot run takes nothing from the plugins of the application
        if session_id is not None:
            raise
    shown = {(one.get("plugin"), one.get("action_id")): one for one in reversed(elements)}
    offers = [_offer(one, shown.get((one["plugin"], one["id"]), {})) for one in given]
    return sorted((one for one in offers if one.action.is_manual), key=lambda one: one.order)


def by_name(offers: Iterable[Offer], taken: Collection[str] = ()) -> dict[str, Offer]:
    """Return offers by what can be typed: their whole names, and their ids where these mean only one."""
    known = list(offers)
    ids = Counter(offer.action.id for offer in known)
    short = {one.action.id: one for one in known if ids[one.action.id] == 1 and one.action.id not in taken}
    return {**short, **{offer.name: offer for offer in known}}  # no id can pass for another's whole name


def shortest_names(offers: Iterable[Offer], taken: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return each offer once, by the shortest name that means it, with a line about it."""
    known = list(offers)
    named = by_name(known, taken)
    return [(one.action.id if named.get(one.action.id) is one else one.name, one.about) for one in known]


def _offer(definition: Mapping[str, Any], element: Mapping[str, Any]) -> Offer:
    from agent_core.actions import Action

    own = {key: value for key, value in definition.items() if key not in ("plugin", "action_owner")}
    action = Action.from_dict(own, plugin=definition["plugin"], owner=definition["action_owner"])
    label, order = element.get("label"), element.get("order")
    return Offer(
        action=action,
        label=label if isinstance(label, str) and label else action.label,
        order=float(order) if isinstance(order, int | float) else _LAST,
        input_labels=_dialog_labels(element.get("dialog")),
    )


def _dialog_labels(dialog: Any) -> dict[str, str]:
    inputs = dialog.get("inputs") if isinstance(dialog, Mapping) else None
    listed = inputs if isinstance(inputs, Sequence) and not isinstance(inputs, str) else ()
    pairs = [(one.get("name"), one.get("label")) for one in listed if isinstance(one, Mapping)]
    return {name: label for name, label in pairs if isinstance(name, str) and isinstance(label, str)}
