"""`/tools`, `/plugins`: what takes part in this session, and why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_terminal_app.chat.answering import Answering, who_answers
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.model_tools import is_embedded
from agent_terminal_app.chat.offers import find_offers
from agent_terminal_app.chat.words import count, one_line
from agent_terminal_app.left_out import left_out
from agent_terminal_app.wiring import DEFAULT_MODEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_runtime.permissions import Permissions, Rule
    from agent_terminal_app.chat.conversation import Conversation

_GROUP = "Plugins"


@command("tools", "list the tools, and which rule applies to each", group=_GROUP)
async def tools(talk: Talk, _rest: str) -> None:
    """List the tools that there are: on or off, and why; what becomes of its calls by which rule.

    A rule of `[permissions]` or a grant says whether a call runs, waits for you or is refused. Where other
    rules count for some arguments, that is said as well; /permissions lists them.
    """
    who = await who_answers(talk.conversation)
    offered = {tool.name for tool in who.agent.descriptors}
    permissions = await _permissions(talk, who)
    for tool in await asyncio.to_thread(who.core.get_available_tools, dict(who.config)):
        on = tool.name in offered
        state = ruling(permissions, tool.name) if on else "the agent's lists of tools leave it out"
        about = one_line(tool.description.partition("\n")[0], 60)
        talk.row(f"  {'on ' if on else 'off'} {one_line(tool.name):<22} {state:<30}", about)
    off = [one for one in await _decisions(who) if one["kind"] == "tool" and not one["enabled"]]
    for one in off:
        talk.row(f"  off {one_line(one['plugin']):<22}", f"the plugin: {one_line(one['detail'])}")
    if not offered and not off:
        talk.note("There are none; a plugin that brings some can be installed.")


def _choices(conversation: Conversation, _typed: str) -> list[tuple[str, str]]:
    core, settings = conversation.front_end()
    return [(one["plugin"], one["detail"]) for one in core.explain_plugins(settings)]


@command("plugins", "list plugins, and why each is on or off", group=_GROUP, takes="[NAME]", choices=_choices)
async def plugins(talk: Talk, rest: str) -> None:
    """List the plugins that there are for this session: on or off, and why.

    With a name: everything that is known about that one.
    """
    who = await who_answers(talk.conversation)
    decisions = await _decisions(who)
    model = DEFAULT_MODEL if is_embedded(who.model.id) else who.model.id
    decisions += left_out(talk.app, who.agent.spec.id, {one["plugin"] for one in decisions}, model=model)
    if rest:
        await _explain(talk, who, decisions, rest)
        return
    for one in decisions:
        state = "on " if one["enabled"] else "off"
        talk.row(f"  {state} {one_line(one['plugin']):<24} {one['kind']:<10}", one_line(one["detail"]))
    for problem in talk.app.problems:
        talk.row(f"  !   {one_line(problem.plugin):<24}", one_line(problem.reason), "red")
    talk.note("/plugins NAME explains one.")


def ruling(permissions: Permissions, tool: str) -> str:
    """Return what becomes of a tool's calls as words: by the rule that counts whatever the arguments are."""
    about = [rule for rule in permissions.rules if rule.pattern.name.matches(tool)]
    whole = [rule for rule in about if rule.pattern.subject is None and not rule.pattern.arguments]
    counts = max(whole, key=lambda rule: rule.precedence, default=None)
    said = f"{permissions.default} (default)" if counts is None else _rule(counts)
    some = len(about) - len(whole)
    return f"{said}, {count(some, 'rule')} for some arguments" if some else said


def _rule(rule: Rule) -> str:
    return f"{rule.effect} ({'granted' if rule.granted else 'rule'} {one_line(rule.pattern.text, 40)})"


async def _permissions(talk: Talk, who: Answering) -> Permissions:
    from agent_app.permissions import project_of
    from agent_runtime.permissions import CallPattern, Rule, permissions_of

    session_id = talk.conversation.session_id
    found = [] if session_id is None else await talk.app.grants_async(session_id, project_of(who.session))
    rules = [Rule(one.effect, CallPattern.parse(one.pattern), granted=True) for one in found]
    return permissions_of(who.agent.spec).with_granted(rules)


async def _decisions(who: Answering) -> list[dict[str, Any]]:
    decided = await asyncio.to_thread(who.core.explain_plugins, dict(who.config))
    required = {one.plugin for one in who.agent.decisions if one.reason == "required"}
    known = {one.plugin: one.to_dict() for one in who.agent.decisions if one.plugin in required}
    return [known.get(one["plugin"], one) for one in decided]


async def _explain(talk: Talk, who: Answering, decisions: list[dict[str, Any]], name: str) -> None:
    from agent_runtime.errors import nearest

    found = [one for one in decisions if one["plugin"] == name]
    broken = [one for one in talk.app.problems if one.plugin == name]
    installed = await asyncio.to_thread(_installed, name)
    offers = [one for one in await find_offers(talk.conversation) if one.action.plugin == name]
    if not (found or broken or installed or offers):
        known = [one["plugin"] for one in decisions]
        raise AgentError(f"there is no plugin {one_line(name, 60)!r}: {nearest(name, known)}")
    for one in found:
        state = "on" if one["enabled"] else "off"
        talk.line(f"{one_line(name)} ({one['kind']}) is {state}: {one_line(one['detail'])}")
    for problem in broken:
        talk.line(f"{problem.plugin} is left out: {one_line(problem.reason)}", "red")
    for row in installed:
        talk.line(f"  from {row['distribution']} {row['version']}, a {row['kind']}")
    for tool in await asyncio.to_thread(who.core.get_available_tools, dict(who.config)):
        if tool.plugin == name:
            talk.line(f"  tool {one_line(tool.name)}: {one_line(tool.description, 80)}")
    for offer in offers:
        talk.line(f"  /{offer.name}: {offer.about}")
    for key in who.core.get_config_schema():
        if key["plugin"] == name:
            talk.line(f"  setting {_setting(key)}")


def _installed(name: str) -> list[dict[str, Any]]:
    from agent_terminal_app.commands.plugins import installed_plugins

    return [row for row in installed_plugins() if row["name"] == name]


def _setting(key: Mapping[str, Any]) -> str:
    default = f", by default {key['default']!r:.40}" if "default" in key else ""
    return one_line(f"{key['key']}{default}: {key.get('description', '')}", 110)
