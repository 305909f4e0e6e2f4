"""Permissions: which calls run, which wait for a person, which never do.

Rules name tools and arguments in the pattern language of `agent_runtime.patterns`::

    call_patterns   what a rule is about: `shell(git status*)`, `edit(path=src/*, mode=?)`
    subjects        what a call is about
    rules           which rule counts: a deny, else a floor, else the most specific, else the default
    suggestions     what could be granted, so that a call need not be asked for again
    questions       what a person is asked, and which call an open question is about
    plugin          the tool gate that asks the rules

The rules come from the agent's declaration, and from the caller of the run, who says what people have
granted since. Nothing that a model writes or a tool answers changes them.
"""

from agent_runtime.permissions.call_patterns import ArgumentPattern, CallPattern
from agent_runtime.permissions.plugin import PermissionsPlugin, permissions_of
from agent_runtime.permissions.questions import AskedCall, asked_call
from agent_runtime.permissions.rules import FLOOR, LISTS, Effect, Permissions, Rule, Ruling

__all__ = [
    "FLOOR",
    "LISTS",
    "ArgumentPattern",
    "AskedCall",
    "CallPattern",
    "Effect",
    "Permissions",
    "PermissionsPlugin",
    "Rule",
    "Ruling",
    "asked_call",
    "permissions_of",
]
