"""`/tools`, `/plugins`, `/mcp`, `/permissions`: what takes part in a session and why, which calls may run."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from agent_app.defaults import DEFAULT_MODEL, is_embedded
from agent_app.grants import project_of
from agent_core import AgentError
from agent_core.errors import nearest
from agent_runtime.permissions import CallPattern, Rule, permissions_of
from agent_terminal_app.application import catalogue_of, open_quietly
from agent_terminal_app.chat.agent import Responder, who_answers
from agent_terminal_app.chat.commands.offers import find_offers
from agent_terminal_app.chat.commands.registry import Talk, command, find_command
from agent_terminal_app.chat.rendering.text import count, one_line
from agent_terminal_app.rows import cells
from agent_terminal_app.views.agents import installed_plugins
from agent_terminal_app.views.permissions import permission_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_app import Grant
    from agent_runtime.permissions import Permissions
    from agent_terminal_app.chat.conversation import Conversation

_GROUP = "Plugins"
_NAME, _LONGEST_NAME, _RULING = 22, 34, 30
"""How wide the columns of the tools are: their names, which get more where one is longer, and their rules."""


@command("tools", "list the tools, and which rule applies to each", group=_GROUP)
async def tools(talk: Talk, _rest: str) -> None:
    """List the tools: on or off, why, and which rule applies to their calls.

    A rule of `[permissions]` or a grant says whether a call runs, waits for you or is refused. Where other
    rules apply to some arguments, the list says so; /permissions lists them.
    """
    who = await who_answers(talk.conversation)
    offered = {tool.name for tool in who.agent.descriptors}
    permissions = await _permissions(talk, who)
    found = await asyncio.to_thread(who.core.get_available_tools, dict(who.config))
    wide = min(max([_NAME, *(cells(one_line(tool.name)) for tool in found)]), _LONGEST_NAME)
    for tool in found:
        on = tool.name in offered
        state = ruling(permissions, tool.name) if on else "the agent's lists of tools leave it out"
        about = one_line(_first_sentence(tool.description))
        name = f"  {'on ' if on else 'off'} {one_line(tool.name)}"
        talk.columns([(name, len("  off ") + wide), (state, _RULING)], about)
    off = [one for one in await _decisions(who) if one["kind"] == "tool" and not one["enabled"]]
    for one in off:
        talk.row(f"  off {one_line(one['plugin']):<22}", f"the plugin: {one_line(one['detail'])}")
    if is_embedded(who.model.id):
        talk.note(
            "The embedded model is too small for files, a shell, web search and the other tools. "
            "/setup connects a model that can use them."
        )
    elif not offered and not off:
        talk.note("There are no tools; install a plugin that provides some.")


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0]


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
    decisions += catalogue_of(talk.app).skipped_plugins(
        who.agent.spec.id, {one["plugin"] for one in decisions}, model=model
    )
    if rest:
        await _explain(talk, who, decisions, rest)
        return
    for one in decisions:
        state = "on " if one["enabled"] else "off"
        talk.row(f"  {state} {one_line(one['plugin']):<24} {one['kind']:<10}", one_line(one["detail"]))
        for mistake in one.get("problems", ()):
            talk.row(f"  !   {one_line(one['plugin']):<24}", one_line(mistake), "red")
    shown = {one["plugin"] for one in decisions}
    for problem in talk.app.problems:
        if problem.takes_part and problem.plugin in shown:
            continue  # its decision says so
        talk.row(f"  !   {one_line(problem.plugin):<24}", one_line(problem.reason), "red")
    talk.note("/plugins NAME explains one.")


@command("mcp", "show the MCP servers, and what waits for approval", group=_GROUP)
async def mcp(talk: Talk, _rest: str) -> None:
    """Show the MCP servers: their tools, their problems, and what needs your approval."""
    shown = await find_command(talk, "mcp_tools.status")
    if shown is None:
        talk.note("No MCP server is set up. In a shell, `agent mcp add NAME -- COMMAND` adds one, and")
        talk.note("`agent mcp import` takes over those of Claude Code, VS Code and Cursor.")
        return
    working = shown.run(talk, "")
    if working is not None:
        await working


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


async def _permissions(talk: Talk, who: Responder) -> Permissions:
    session_id = talk.conversation.session_id
    found = [] if session_id is None else await talk.app.grants_async(session_id, project_of(who.session))
    rules = [Rule(one.effect, CallPattern.parse(one.pattern), granted=True) for one in found]
    return permissions_of(who.agent.spec).with_granted(rules)


async def _decisions(who: Responder) -> list[dict[str, Any]]:
    decided = await asyncio.to_thread(who.core.explain_plugins, dict(who.config))
    required = {one.plugin for one in who.agent.decisions if one.reason == "required"}
    known = {one.plugin: one.to_dict() for one in who.agent.decisions if one.plugin in required}
    return [known.get(one["plugin"], one) for one in decided]


def _say_decision(talk: Talk, one: dict[str, Any]) -> None:
    state = "on" if one["enabled"] else "off"
    talk.line(f"{one_line(one['plugin'])} ({one['kind']}) is {state}: {one_line(one['detail'])}")
    for mistake in one.get("problems", ()):
        talk.line(f"  {one_line(mistake)}", "red")


async def _explain(talk: Talk, who: Responder, decisions: list[dict[str, Any]], name: str) -> None:
    found = [one for one in decisions if one["plugin"] == name]
    broken = [one for one in talk.app.problems if one.plugin == name and not (one.takes_part and found)]
    installed = await asyncio.to_thread(_installed, name)
    offers = [one for one in await find_offers(talk.conversation) if one.action.plugin == name]
    if not (found or broken or installed or offers):
        known = [one["plugin"] for one in decisions]
        raise AgentError(f"there is no plugin {one_line(name, 60)!r}: {nearest(name, known)}")
    for one in found:
        _say_decision(talk, one)
    for problem in broken:
        said = "does something wrong" if problem.takes_part else "was skipped"
        talk.line(f"{problem.plugin} {said}: {one_line(problem.reason)}", "red")
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
    return [row for row in installed_plugins() if row["name"] == name]


def _setting(key: Mapping[str, Any]) -> str:
    default = f", by default {key['default']!r:.40}" if "default" in key else ""
    return one_line(f"{key['key']}{default}: {key.get('description', '')}", 110)


_SHORT = 8


@command("permissions", "list rules and grants, or take a grant back", group="Plugins", takes="[revoke ID]")
async def permissions(talk: Talk, rest: str) -> None:
    """List the rules and grants that say which calls of tools run, wait for you, or never run.

    The strictest come first. `/permissions revoke ID` takes a grant back, by its id or the beginning of it;
    from the next call on it does not count any more.
    """
    verb, _, wanted = rest.partition(" ")
    if not rest:
        await _list(talk)
    elif verb == "revoke" and wanted.strip():
        await _revoke(talk, wanted.strip())
    else:
        raise AgentError("use /permissions, or /permissions revoke ID with the id of a grant")


async def _list(talk: Talk) -> None:
    settings = (await asyncio.to_thread(open_quietly)).settings
    session_id = talk.conversation.session_id
    for row in await asyncio.to_thread(permission_rows, talk.app, settings, session_id):
        name = f"{row.effect:<10} {one_line(row.pattern):<32} {one_line(row.scope):<20}"
        talk.row(f"  {name} {row.id[:_SHORT]:<{_SHORT}}", one_line(row.origin))
    talk.note("/permissions revoke ID takes a grant back; [permissions] of /config has the rules.")


async def _revoke(talk: Talk, wanted: str) -> None:
    grant = _meant(await talk.app.grants_async(), wanted)
    await talk.app.revoke_async(grant.id)
    talk.note(f"Taken back: {grant.effect} {one_line(grant.pattern)}. It does not count for the next call.")


def _meant(grants: Iterable[Grant], wanted: str) -> Grant:
    found = [grant for grant in grants if grant.id.startswith(wanted)]
    if len(found) != 1:
        problem = "several grants begin" if found else "there is no grant that begins"
        raise AgentError(f"{problem} with {one_line(wanted, 60)!r}: /permissions lists their ids")
    return found[0]
