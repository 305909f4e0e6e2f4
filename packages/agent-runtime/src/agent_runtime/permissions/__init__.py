"""Permissions: which calls run, which wait for a person, which never do.

Rules name tools and arguments in the pattern language of `agent_runtime.patterns`::

    call_patterns   what a rule is about: `shell(git status*)`, `edit(path=src/*, mode=?)`
    subjects        what a call is about
    rules           which rule counts: a deny, else the most specific, else the default
    plugin          the tool gate that asks the rules

The rules come from the agent's declaration and nowhere else: nothing that a model writes into a call
changes them.
"""

from agent_runtime.permissions.call_patterns import ArgumentPattern, CallPattern
from agent_runtime.permissions.plugin import PermissionsPlugin
from agent_runtime.permissions.rules import Effect, Permissions, Rule, Ruling

__all__ = ["ArgumentPattern", "CallPattern", "Effect", "Permissions", "PermissionsPlugin", "Rule", "Ruling"]
