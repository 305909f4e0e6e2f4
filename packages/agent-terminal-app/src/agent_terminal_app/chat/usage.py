"""What a session has used, as its log tells: tokens as providers counted them, and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_runtime.results import Usage

if TYPE_CHECKING:
    from agent_app import AgentApplication

_PAGE = 1000


def used_by_model(app: AgentApplication, session_id: str) -> dict[str, Usage]:
    """Return what each model has used in a session, since it was made; who was asked last is last."""
    used: dict[str, Usage] = {}
    after = 0
    while events := app.store.events(session_id, after=after, limit=_PAGE):
        for event in events:
            if event["type"] == "usage":
                model = str(event["model"])
                used[model] = used.pop(model, Usage()) + Usage.from_dict(event["usage"])
        after = events[-1]["seq"]
    return used
