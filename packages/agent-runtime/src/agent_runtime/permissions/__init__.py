"""Permissions: which calls run, which wait for a person, which never do.

Rules name tools and arguments in the pattern language of `agent_runtime.patterns`::

    patterns   what a rule is about: `shell(git status*)`, `edit(path=src/*, mode=?)`
    rules      what a call is about, and which rule decides it
    plugin     the tool gate that applies the rules, its questions, and what can be granted

The rules come from the agent's declaration, and from the caller of the run, who says what people have
granted since. Nothing that a model writes or a tool answers changes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.lazy import lazy_names

if TYPE_CHECKING:
    from agent_runtime.permissions.patterns import ArgumentPattern, CallPattern
    from agent_runtime.permissions.plugin import (
        AskedCall,
        PermissionsPlugin,
        approval_gates,
        asked_call,
        is_contained,
        permissions_of,
        suggestions,
    )
    from agent_runtime.permissions.rules import (
        FLOOR,
        LISTS,
        SANDBOXED,
        Effect,
        Permissions,
        Rule,
        Ruling,
    )

__all__ = [
    "FLOOR",
    "LISTS",
    "SANDBOXED",
    "ArgumentPattern",
    "AskedCall",
    "CallPattern",
    "Effect",
    "Permissions",
    "PermissionsPlugin",
    "Rule",
    "Ruling",
    "approval_gates",
    "asked_call",
    "is_contained",
    "permissions_of",
    "suggestions",
]

# A name is loaded when it is first used: many agents have no rules.
HOMES = {
    "agent_runtime.permissions.patterns": ("ArgumentPattern", "CallPattern"),
    "agent_runtime.permissions.plugin": (
        "AskedCall",
        "PermissionsPlugin",
        "approval_gates",
        "asked_call",
        "is_contained",
        "permissions_of",
        "suggestions",
    ),
    "agent_runtime.permissions.rules": (
        "FLOOR",
        "LISTS",
        "SANDBOXED",
        "Effect",
        "Permissions",
        "Rule",
        "Ruling",
    ),
}
__getattr__ = lazy_names(__name__, HOMES)
