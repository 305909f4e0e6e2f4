"""From a session to the question that goes to the model: tools, state, native form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.frozen import FrozenDict, FrozenList
from agent_core.pipeline import chain
from agent_core.pipeline.native_view import native_view, rebuilt
from agent_core.pipeline.sending import chosen_items
from agent_core.resolve.tools import gather_tools, provider_schemas

if TYPE_CHECKING:
    from agent_core.native import NativeHistory
    from agent_core.pipeline.request import Request
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
        report: What had to be rebuilt on the way.
        chosen: True if what is sent was chosen for this request, so that only what the turn adds is kept.
        interrupted: Why the turn ended early, or None.
    """

    session: Session
    before: NativeHistory
    native: FrozenList
    baseline: int
    state: dict[str, Any]
    context: Any
    finals: FrozenList
    report: FrozenDict | None
    chosen: bool = False
    interrupted: str | None = None

    @property
    def restructured(self) -> bool:
        """True if a plugin changed native history itself, not only added to its end."""
        kept = len(self.before.items)
        if self.chosen:
            return False
        return self.baseline != kept or self.native[:kept] != self.before.items


def prepare(request: Request) -> Draft:
    """Do everything that comes before the model is asked, in the documented order."""
    resolution = request.resolution
    context = request.context() if request.needs_context() else None
    tools = gather_tools(resolution, context)
    if context is not None:
        context = request.context(tools)
    config = FrozenDict({**resolution.config, "tools": provider_schemas(resolution, tools)})
    state = chain.init_state(resolution, config, context)
    view = native_view(request, state, context)
    if request.transform is None:
        sent = FrozenList(view.native.items.to_list())
    else:
        sent = chosen_items(request, view, state, context)
    native, state = chain.initialize(resolution, sent, state, context)
    native, repairs = resolution.provider.provider.repair_native(native, context)
    return Draft(
        session=view.session,
        before=view.native,
        native=native,
        baseline=len(native),
        state=state,
        context=context,
        finals=FrozenList(),
        chosen=request.transform is not None,
        report=_repaired(request, repairs) if repairs else view.report,
    )


def _repaired(request: Request, repairs: list[str]) -> FrozenDict:
    """Return the report of a history that the provider had to mend before it could be sent."""
    report = rebuilt(request, "repaired", "; ".join(repairs), len(request.session.messages))
    return FrozenDict({**report, "repairs": FrozenList(repairs)})
