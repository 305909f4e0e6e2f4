"""From a session to the question that goes to the model: tools, state, native form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.errors import ArgumentTypeError
from agent_core.frozen import FrozenDict, FrozenList, State
from agent_core.messages import Message
from agent_core.pipeline import chain
from agent_core.pipeline.chain import to_native
from agent_core.pipeline.ledger import Ledger
from agent_core.pipeline.native_view import native_view, rebuilt
from agent_core.pipeline.request import Frame
from agent_core.resolve.tools import gather_tools, provider_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.context import Context
    from agent_core.history import History
    from agent_core.native import NativeHistory
    from agent_core.pipeline.ledger import RoleAt
    from agent_core.pipeline.native_view import NativeView
    from agent_core.pipeline.request import Request
    from agent_core.resolve import Resolution
    from agent_core.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A turn in the making.

    Attributes:
        session: The session with which it began, its native history complete.
        before: That native history.
        native: All native messages as of now.
        baseline: How many of them were there before the model was asked.
        state: What the plugins share during this request.
        finals: The native messages that this turn has brought so far.
        ledger: What hooks did to that since the model was asked.
        report: What had to be rebuilt on the way.
        chosen: True if what is sent was chosen for this request, so that only what the turn adds is kept.
        interrupted: Why the turn ended early, or None.
    """

    session: Session
    before: NativeHistory
    native: FrozenList
    baseline: int
    state: State
    context: Any
    finals: FrozenList
    ledger: Ledger
    report: FrozenDict | None
    chosen: bool = False
    interrupted: str | None = None

    def after(
        self,
        finals: FrozenList,
        native: FrozenList,
        state: State,
        interrupted: str | None,
        baseline: int | None = None,
    ) -> Draft:
        """Return the draft as plugins have taken it on; `dataclasses.replace` takes three times as long."""
        return Draft(
            session=self.session,
            before=self.before,
            native=native,
            baseline=self.baseline if baseline is None else baseline,
            state=state,
            context=self.context,
            finals=finals,
            ledger=self.ledger,
            report=self.report,
            chosen=self.chosen,
            interrupted=interrupted,
        )

    @property
    def restructured(self) -> bool:
        """True if a plugin changed the conversation before the model was asked."""
        return not self.chosen and self.ledger.asked != self.before.items


def begin(request: Request) -> tuple[State, Context | None]:
    """Return the state and the context with which plugins work: requests and edits begin alike."""
    resolution = request.resolution
    context = request.context() if resolution.needs_context else None
    tools = gather_tools(resolution, context)
    if context is not None:
        context = request.context(tools)
    return chain.init_state(resolution, provider_config(resolution, tools), context), context


def prepare(request: Request) -> Draft:
    """Do everything that comes before the model is asked, in the documented order."""
    resolution = request.resolution
    state, context = begin(request)
    view = native_view(request, state, context)
    if request.transform is None:
        sent = FrozenList(view.native.items.to_list())
    else:
        sent = chosen_items(request, view, state, context)
    native, state = chain.initialize(resolution, sent, state, context)
    memory = view.native.seal.memory
    native, repairs = resolution.provider.provider.repair_native(native, context, memory)
    return Draft(
        session=view.session,
        before=view.native,
        native=native,
        baseline=len(native),
        state=state,
        context=context,
        finals=FrozenList(),
        ledger=Ledger(native, partial(_read, resolution, state, context), partial(_roles, view, native)),
        chosen=request.transform is not None,
        report=_repaired(request, repairs) if repairs else view.report,
    )


def _read(resolution: Resolution, state: State, context: object, items: Sequence[FrozenDict]) -> FrozenList:
    return resolution.provider.provider.from_native_messages(FrozenList(items), state, context)


def _roles(view: NativeView, sent: FrozenList) -> RoleAt:
    """Return how to find whose words an item is that was sent, if that is all of native history as it was."""
    if view.native.items != sent:
        return lambda _place: None
    if view.native.seal.in_order:
        return partial(_role_at, view.session.history)
    messages = view.session.messages
    return {index: message.role for message in messages for index in message.native_indices or ()}.get


def _role_at(messages: History[Message], place: int) -> str | None:
    """Return the role of the message of the native item at *place*; None if it belongs to nobody.

    The items of all messages are in order, so a message stands close to the place of its item.
    """
    start = min(place, len(messages) - 1)
    for at in range(start, len(messages)):
        own = messages[at].native_indices or ()
        if place in own:
            return messages[at].role
        if own and own[0] > place:
            break
    for at in range(start - 1, -1, -1):
        own = messages[at].native_indices or ()
        if place in own:
            return messages[at].role
        if own and own[-1] < place:
            break
    return None


def _repaired(request: Request, repairs: list[str]) -> FrozenDict:
    """Return the report of a history that the provider had to mend before it could be sent."""
    report = rebuilt(request, "repaired", "; ".join(repairs), len(request.session.messages))
    return FrozenDict({**report, "repairs": FrozenList(repairs)})


# What of a conversation is sent, where a caller chooses: the session keeps everything all the same.
#
# The caller sees the session's messages and returns those to send, in its order and with others among
# them. A message of the session is sent in the provider's own form, which the session has already; any
# other is converted for this request alone.


def chosen_items(request: Request, view: NativeView, state: State, context: object) -> FrozenList:
    """Return the native items of the messages that the request's `transform` chose."""
    transform = request.transform
    assert transform is not None
    if isinstance(transform, Frame):
        front = _framed(request, transform.front, state, context)
        back = _converted(request, transform.back, state, context)
        return FrozenList([*front, *view.native.items, *back])
    messages = view.session.history.to_list()
    chosen = _checked(transform(tuple(messages)))
    own = _own_items(messages, view.native.items.to_list())
    if own is None:
        return to_native(request.resolution, chosen, state, context).items
    front, items_of = own
    items = list(front)
    added: list[Message] = []
    for message in chosen:
        known = items_of.pop(id(message), None)
        if known is None:
            added.append(message)
            continue
        if added:
            items += _converted(request, added, state, context)
            added = []
        items += known
    items += _converted(request, added, state, context)
    return FrozenList(items)


def _framed(
    request: Request, front: tuple[Message, ...], state: State, context: object
) -> Sequence[FrozenDict]:
    """Return the items of what stands before a conversation: nearly always the same system prompt."""
    resolution = request.resolution
    if not front or not resolution.converts_alike:
        return _converted(request, front, state, context)
    return resolution.front_items(front, lambda: _converted(request, front, state, context))


def _checked(chosen: Any) -> list[Message]:
    messages = list(chosen)
    for message in messages:
        if not isinstance(message, Message):
            raise ArgumentTypeError(f"transform must return messages, not {type(message).__name__}")
    return messages


def _own_items(
    messages: Sequence[Message], items: Sequence[FrozenDict]
) -> tuple[list[FrozenDict], dict[int, list[FrozenDict]]] | None:
    """Return the items in front of all messages, and those of each message by its identity.

    An item that several messages share goes with the first, one that belongs to nobody with the item
    before it. None if the items of some message are not known.
    """
    owner: dict[int, int] = {}
    for message in messages:
        if message.native_indices is None:
            return None
        for index in message.native_indices:
            owner.setdefault(index, id(message))
    front: list[FrozenDict] = []
    items_of: dict[int, list[FrozenDict]] = {id(message): [] for message in messages}
    current = None
    for index, item in enumerate(items):
        current = owner.get(index, current)
        (front if current is None else items_of[current]).append(item)
    return front, items_of


def _converted(
    request: Request, messages: Sequence[Message], state: State, context: object
) -> Sequence[FrozenDict]:
    return to_native(request.resolution, messages, state, context).items if messages else ()
