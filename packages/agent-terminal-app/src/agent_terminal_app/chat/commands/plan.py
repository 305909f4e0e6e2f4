"""`/plan` and `/jobs`: a plan to approve before anything is changed, and commands in the background."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_app.plans import CARRY_OUT, in_plan_mode, with_plan_mode
from agent_core import AgentError
from agent_terminal_app.chat.agent import who_answers
from agent_terminal_app.chat.attachments import gather
from agent_terminal_app.chat.commands.registry import Talk, command
from agent_terminal_app.chat.picker import Choice, Picker
from agent_terminal_app.chat.rendering.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GROUP = "This conversation"
_CARRY_OUT, _MORE, _LEAVE = "carry out", "keep planning", "leave"
_ID = "sh_"
_SHELL_LIST, _SHELL_OUTPUT, _SHELL_STOP = "shell_jobs", "shell_output", "shell_stop"


@command("plan", "have the agent plan first, and change nothing", group=_GROUP, takes="[WORDS]", idle=True)
async def plan(talk: Talk, rest: str) -> None:
    """Turn plan mode on, or off: the agent reads and plans, and changes nothing until you approve its plan.

    With words, they are the task. When the agent has written its plan, you are asked whether to carry it out.
    """
    await _need_plans(talk)
    on = bool(rest) or not talk.conversation.plan_mode
    await set_plan_mode(talk, on=on)
    if not on:
        talk.note("Plan mode is off: the agent may work again.")
        return
    talk.note("Plan mode: the agent reads and plans, and changes nothing. /plan turns it off.")
    if rest:
        talk.send(rest, (await gather(talk.conversation, rest)).attached)


async def _need_plans(talk: Talk) -> None:
    if "write_todos" not in (await who_answers(talk.conversation)).agent.tools:
        raise AgentError(
            "this agent cannot keep a plan: the plugin todo_tool is off (/plugins todo_tool says why)"
        )


async def set_plan_mode(talk: Talk, *, on: bool) -> None:
    """Let the agent of this session only look and plan, or work again."""
    session = await talk.app.load_session_async(talk.conversation.begin())
    if in_plan_mode(session) != on:
        await talk.app.save_session_async(with_plan_mode(session, on=on))
    talk.conversation.plan_mode = on
    talk.conversation.changed()


async def ask_about_plan(talk: Talk) -> None:
    """Ask whether a plan that was made in plan mode is carried out."""
    choices = [
        Choice(_CARRY_OUT, "Carry it out", "plan mode ends; calls with an effect are asked about as usual"),
        Choice(_MORE, "Keep planning", "nothing is carried out yet"),
        Choice(_LEAVE, "Leave plan mode", "nothing is carried out"),
    ]
    chosen = await talk.pick(Picker("What do you want to do with this plan?", choices, words=True))
    if chosen == _CARRY_OUT:
        await set_plan_mode(talk, on=False)
        talk.line(f"» {CARRY_OUT}", "bold")
        talk.send(CARRY_OUT)
    elif chosen == _LEAVE:
        await set_plan_mode(talk, on=False)
        talk.note("Plan mode is off; the plan is kept.")
    elif chosen not in (None, _MORE):
        talk.line(f"» {chosen}", "bold")
        talk.send(chosen, (await gather(talk.conversation, chosen)).attached)
    else:
        talk.note("Say what should be different; the agent continues to plan.")


@command(
    "jobs",
    "list commands in the background, see their output, stop them",
    group=_GROUP,
    takes="[NUMBER | stop NUMBER]",
)
async def jobs(talk: Talk, rest: str) -> None:
    """List the commands that the agent has started in the background, and the state of each.

    With a number of that list, or an id, the end of its output; `/jobs stop NUMBER` ends it, with everything
    that it has started.
    """
    if talk.conversation.session_id is None:
        talk.note("There are no commands in the background.")
        return
    listed = (await _run_tool(talk, _SHELL_LIST, {})).splitlines()
    ids = [line.split()[0] for line in listed if line.startswith(_ID)]
    verb, _, name = rest.partition(" ")
    if verb == "stop" and name.strip():
        shown = await _run_tool(talk, _SHELL_STOP, {"id": _job(name.strip(), ids)})
    elif rest:
        shown = await _run_tool(talk, _SHELL_OUTPUT, {"id": _job(rest.strip(), ids)})
    elif ids:
        for number, line in enumerate(listed, 1):
            talk.row(f"{number:>2}  ", line)
        talk.note("/jobs NUMBER shows its output, /jobs stop NUMBER ends it.")
        return
    else:
        shown = "\n".join(listed)
    for line in shown.splitlines():
        talk.line(line)


def _job(given: str, ids: Sequence[str]) -> str:
    """Return the id of the command with this number, or with an id that begins like this."""
    if given.isdecimal() and 0 < int(given) <= len(ids):
        return ids[int(given) - 1]
    found = [one for one in ids if one.startswith((given, f"{_ID}{given}"))]
    return found[0] if len(found) == 1 else given


async def _run_tool(talk: Talk, tool: str, arguments: Mapping[str, Any]) -> str:
    """Run a tool for the user, who needs no permission for their own session.

    Raises:
        AgentError: If the agent has no such tool.
    """
    session_id, who = talk.need_session(), await who_answers(talk.conversation)
    if tool not in who.agent.tools:
        raise AgentError("this agent starts no commands: the plugin shell_tool is off (/plugins says why)")
    call = {
        "id": "jobs",
        "type": "function",
        "function": {"name": tool, "arguments": json.dumps(dict(arguments))},
    }
    context = {"session_id": session_id, "session_metadata": dict(who.session.metadata)}
    [message] = await who.core.execute_tool_calls_async([call], dict(who.config), context=context)
    text = str(message.get("content", ""))
    if message.get("metadata", {}).get("error"):
        raise AgentError(one_line(text.removeprefix("Error: ")))
    return text
