"""The permissions of one agent: its own section, beside the `permissions` that hold for all.

What is shared restricts every agent, whatever that one declares: the lists `deny`, `always_ask` and `ask`
add up, and a shared `default` of "deny" stays. What is shared allows something only to agents without a
section of their own: the `allow`, `default` and `on_ask` of one that has a section are its own alone, so that
an agent can be given less than the others. Of an `allow` and an `ask` the most specific counts, wherever each
stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_runtime.permissions import FLOOR

if TYPE_CHECKING:
    from collections.abc import Iterable

RESTRICTING = ("deny", FLOOR, "ask")
"""The lists that add up: no section of an agent can take anything off them."""
_UNDECLARED = {"default": "allow"}
"""The permissions of who declares none: everything runs, but for what somebody denies by a grant."""


def permissions_beside(shared: Mapping[str, Any], own: Any) -> Any:
    """Return the section that holds for an agent.

    Args:
        shared: The `permissions` of the configuration.
        own: The agent's own section; None if it has none. What is no section is returned as it is, for those
            who check it.
    """
    if own is None:
        return shared or _UNDECLARED
    if not isinstance(own, Mapping):
        return own
    lists = {name: _added_up(shared.get(name, ()), own.get(name, ())) for name in RESTRICTING}
    kept = {name: listed for name, listed in lists.items() if listed}
    default = {"default": "deny"} if shared.get("default") == "deny" else {}
    return {**own, **kept, **default}


def _added_up(shared: Any, own: Any) -> Any:
    """Return both lists as one; what is no list stays as it is, and is refused where it is read."""
    for given in (own, shared):
        if isinstance(given, str) or not isinstance(given, (list, tuple)):
            return given
    both: Iterable[Any] = (*shared, *own)
    return list(dict.fromkeys(both)) if all(isinstance(one, str) for one in both) else list(both)
