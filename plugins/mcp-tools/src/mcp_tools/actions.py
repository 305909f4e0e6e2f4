"""What a person can do about servers: look, approve, revoke, connect anew.

Approving is for people only. What is shown first carries a digest, and the confirmation must carry the same:
what changed in between is not approved along with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_tools.approvals import Approval, describe_launch, digest_of
from mcp_tools.tool_list import Described, Tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_tools.approvals import Change
    from mcp_tools.fleet import Fleet, Report
    from mcp_tools.settings import Server, Settings
    from mcp_tools.tool_list import Listing


APPROVE: Final = "approve"
"""The action that shows what waits, and approves it."""


def notices(fleet: Fleet, settings: Settings) -> list[dict[str, Any]]:
    """Return a line for each server of which something waits, and one if nothing can be approved at all."""
    damage = fleet.pins(settings).read().problem
    found: list[dict[str, Any]] = [{"text": damage}] if damage else []
    return found + [_notice(report) for report in fleet.reports(settings) if report.waits]


def _notice(report: Report) -> dict[str, Any]:
    server = report.server.name
    return {
        "text": f"MCP server {server} {_waiting(report)}",
        "action_id": APPROVE,
        "params": {"server": server},
    }


def _waiting(report: Report) -> str:
    if report.judgement.launch:
        count = len(report.judgement.waiting)
        what = "thing" if count == 1 else "things"
        return f"offers {count} new or changed {what} that you have not approved"
    if report.approval is None:
        return "is not approved yet, so its tools are missing"
    return "has other settings than you approved, so its tools are missing"


Answer = dict[str, Any]
PLUGIN: Final = "mcp_tools"
STATUS, REVOKE, RECONNECT, WAIT, TELL = "status", "revoke", "reconnect", "wait_for_servers", "tell"
_ROOM: Final = 48_000  # of a diff; what a display cuts off would be approved unseen
_NAMES: Final = 4_000
_SERVER: Final = {"server": {"type": "string", "required": True}}
# Servers are the same for every session, also before there is one.
_ANYWHERE: Final = {"without_session": True}

ACTIONS: Final[list[dict[str, Any]]] = [
    {
        **_ANYWHERE,
        "id": STATUS,
        "label": "MCP servers",
        "description": "Show the servers, their problems, and what needs approval.",
        "inputs": {},
        "idempotent": True,
    },
    {
        **_ANYWHERE,
        "id": APPROVE,
        "label": "Approve MCP server",
        "description": "Show the command of a server, or its changes, and approve them.",
        "inputs": {**_SERVER, "confirm": {"type": "string"}},
    },
    {
        **_ANYWHERE,
        "id": REVOKE,
        "label": "Revoke MCP server",
        "description": "End a server and forget its approval.",
        "inputs": _SERVER,
        "idempotent": True,
    },
    {
        **_ANYWHERE,
        "id": RECONNECT,
        "label": "Reconnect MCP server",
        "description": "Connect to a server again.",
        "inputs": _SERVER,
    },
    {
        "id": WAIT,
        "description": "Wait until the servers that were approved are ready.",
        "inputs": {},
        "trigger": "request_prepare",
        "idempotent": True,
    },
    {
        "id": TELL,
        "description": "Say which servers need approval when a session is opened.",
        "inputs": {},
        "trigger": "session_open",
        "idempotent": True,
    },
]


def run_action(fleet: Fleet, settings: Settings, action_id: str, params: Mapping[str, Any]) -> Answer:
    """Run an action; the answer says what cannot be done."""
    if action_id == STATUS:
        return status(fleet, settings)
    if action_id in (WAIT, TELL):
        fleet.wait(settings)
        return {"status": "ok", "notices": notices(fleet, settings) if action_id == TELL else []}
    if action_id not in (APPROVE, REVOKE, RECONNECT):
        return failed("unknown_action", f"there is no action {action_id!r}")
    server = settings.server(params["server"])
    if server is None:
        names = ", ".join(one.name for one in settings.servers) or "none"
        return failed("unknown_server", f"there is no server {params['server']!r}; there are: {names}")
    if action_id == APPROVE:
        return approve(fleet, settings, server, params.get("confirm"))
    return _revoke(fleet, settings, server) if action_id == REVOKE else _reconnect(fleet, settings, server)


def status(fleet: Fleet, settings: Settings) -> Answer:
    """Return how all servers stand, as data and as a table."""
    reports = fleet.reports(settings)
    lines = ["| server | state | tools | problem | needs approval |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(map(_cell, _row(report))) + " |" for report in reports]
    damage = fleet.pins(settings).read().problem
    body = "\n".join([*([f"**{_cell(damage)}**", ""] if damage else []), *lines])
    waiting = [report for report in reports if report.waits]
    return {
        "status": "ok",
        "servers": [_data(report) for report in reports],
        "display": {
            "format": "markdown",
            "title": "MCP servers",
            "body": body if reports else "No MCP server is declared.",
            "variant": "warning" if waiting or damage else "info",
            "display_id": "mcp-servers",
            "actions": [_offer(report.server, f"Approve {report.server.name}") for report in waiting[:8]],
        },
    }


def approve(fleet: Fleet, settings: Settings, server: Server, confirm: str | None) -> Answer:
    """Show what there is to approve of a server or, if that is confirmed, approve it."""
    report = fleet.report(settings, server)
    if not report.judgement.launch:
        return _launch(fleet, settings, report, confirm)
    if shown := report.judgement.to_show(_ROOM):
        if confirm == digest_of(shown):
            return _approve_offers(fleet, settings, report, [change.after for change in shown])
        return _ask_offers(report, shown, outdated=confirm is not None)
    if report.judgement.waiting:
        names = ", ".join(change.after.label for change in report.judgement.waiting)
        return failed(
            "too_large", f"these changes are too large to be shown, so nobody can approve them: {names}"
        )
    problem = "" if report.snapshot.state == "ready" else f" It is not ready: {report.snapshot.problem}"
    return {"status": "noop", "message": f"{server.name} has nothing that waits for approval.{problem}"}


def approve_unseen(fleet: Fleet, settings: Settings, server: Server) -> Answer:
    """Approve a server's start and everything that it offers, for a caller who has shown it to a person."""
    report = fleet.report(settings, server)
    if not report.judgement.launch:
        fleet.pins(settings).approve(server.name, _of_launch(report))
        fleet.wait(settings)
        report = fleet.report(settings, server)
    if report.snapshot.listing is None:
        return _not_ready(report)
    return _approve_offers(fleet, settings, report, _all(report.snapshot.listing))


def failed(kind: str, message: str) -> Answer:
    """Return the answer that something cannot be done."""
    return {"status": "error", "error": {"type": kind, "message": message}}


def _launch(fleet: Fleet, settings: Settings, report: Report, confirm: str | None) -> Answer:
    server = report.server
    if len(describe_launch(server, report.approval)) > _ROOM:
        return failed("too_large", f"the start of {server.name} is too long to be shown: shorten it")
    if confirm == server.launch_digest:
        return _approve_launch(fleet, settings, report)
    return _ask_launch(report, outdated=confirm is not None)


def _approve_launch(fleet: Fleet, settings: Settings, report: Report) -> Answer:
    """Start a server, and ask about what it offers; one that had pins before keeps those.

    What a tool is described as goes to the model, so nobody approves that without having seen it.
    """
    server, approval = report.server, _of_launch(report)
    fleet.pins(settings).approve(server.name, approval)
    fleet.wait(settings)
    now = fleet.report(settings, server)
    if now.snapshot.listing is None:
        return _not_ready(now)
    if approval.tools is None:
        if shown := now.judgement.to_show(_ROOM):
            return _ask_offers(now, shown, outdated=False)
        return _approve_offers(fleet, settings, now, ())
    return {"status": "ok", "message": f"{server.name} is approved.", "display": _ask_text(now)}


def _of_launch(report: Report) -> Approval:
    """Return the approval of a server's start, with what was approved of its offers before."""
    before = report.approval
    if before is None:
        return Approval(report.server.launch)
    return Approval(report.server.launch, before.tools, before.others)


def _all(listing: Listing) -> list[Tool | Described]:
    return [*listing.tools, *listing.others]


def _not_ready(report: Report) -> Answer:
    text = f"{report.server.name} is approved, but not ready: {report.snapshot.problem}"
    return {"status": "ok", "message": text, "display": _display(report.server, _escape(text), "warning")}


def _approve_offers(
    fleet: Fleet, settings: Settings, report: Report, offers: Sequence[Tool | Described]
) -> Answer:
    """Pin offers in addition to those that are pinned; one that is gone for now may come back as it was."""
    known = report.approval or Approval(report.server.launch)
    tools = {**(known.tools or {}), **{one.name: one for one in offers if isinstance(one, Tool)}}
    others = {**known.others, **{one.label: one for one in offers if isinstance(one, Described)}}
    fleet.pins(settings).approve(report.server.name, Approval(report.server.launch, tools, others))
    names = ", ".join(one.label for one in offers)[:_NAMES] or "no tools"
    text = f"{report.server.name} is approved, with: {names}"
    return {"status": "ok", "message": text, "display": _display(report.server, _escape(text), "success")}


def _ask_launch(report: Report, *, outdated: bool) -> Answer:
    server = report.server
    what = "ask the server at" if "url" in server.launch else "run"
    changed = " This is another than you approved before." if report.approval is not None else ""
    language = "json" if report.approval is None else "diff"
    text = f"This would {what}:{changed}\n\n{_fenced(describe_launch(server, report.approval), language)}"
    return _asking(server, text, server.launch_digest, outdated=outdated)


def _ask_offers(report: Report, shown: Sequence[Change], *, outdated: bool) -> Answer:
    return _asking(report.server, _differences(report, shown), digest_of(shown), outdated=outdated)


def _ask_text(report: Report) -> dict[str, Any]:
    shown = report.judgement.to_show(_ROOM)
    if not shown:
        return _display(report.server, "It offers the same as when you approved it.", "success")
    confirm = _offer(report.server, "Approve", digest_of(shown))
    return {**_display(report.server, _differences(report, shown), "warning"), "actions": [confirm]}


def _differences(report: Report, shown: Sequence[Change]) -> str:
    changes = "\n".join(change.describe() for change in shown)
    names = _escape(", ".join(change.after.label for change in shown))[:_NAMES]
    left = len(report.judgement.waiting) - len(shown)
    more = f" {left} more wait for the next time." if left else ""
    return f"These are new or have changed: {names}{more}\n\n{_fenced(changes, 'diff')}"


def _asking(server: Server, body: str, digest: str, *, outdated: bool) -> Answer:
    said = "It has changed since it was shown to you. " if outdated else ""
    confirm = _offer(server, "Approve", digest)
    display = {**_display(server, f"{said}{body}", "warning"), "actions": [confirm]}
    return {"status": "outdated" if outdated else "confirm", "confirm": digest, "display": display}


def _revoke(fleet: Fleet, settings: Settings, server: Server) -> Answer:
    was = fleet.pins(settings).revoke(server.name)
    fleet.report(settings, server)  # which ends it
    text = f"{server.name} is not approved any more." if was else f"{server.name} was not approved."
    return {"status": "ok" if was else "noop", "message": text}


def _reconnect(fleet: Fleet, settings: Settings, server: Server) -> Answer:
    report = fleet.report(settings, server)
    if report.connection is None:
        return failed("not_approved", f"{server.name} is not approved yet")
    report.connection.reconnect()
    report.connection.wait_until_settled()
    now = fleet.report(settings, server)
    text = f"{server.name} is {now.snapshot.state}. {now.snapshot.problem}".strip()
    return {"status": "ok" if now.snapshot.state == "ready" else "error", "message": text}


def _data(report: Report) -> dict[str, Any]:
    listing = report.snapshot.listing
    return {
        "server": report.server.name,
        "state": _state(report),
        "tools": [tool.name for tool in report.judgement.tools],
        "problem": report.snapshot.problem,
        "dropped": dict(listing.dropped) if listing is not None else {},
        "waiting": [change.after.label for change in report.judgement.waiting],
        "notes": list(report.snapshot.notes),
    }


def _row(report: Report) -> list[str]:
    data = _data(report)
    wrong = [data["problem"], *data["notes"], *(f"{name}: {why}" for name, why in data["dropped"].items())]
    waits = "its start" if not report.judgement.launch else ", ".join(data["waiting"])
    return [data["server"], data["state"], ", ".join(data["tools"]), "; ".join(filter(None, wrong)), waits]


def _state(report: Report) -> str:
    return report.snapshot.state if report.judgement.launch else "not approved"


def _offer(server: Server, label: str, confirm: str | None = None) -> dict[str, Any]:
    params = {"server": server.name, **({} if confirm is None else {"confirm": confirm})}
    return {
        "kind": "run_action",
        "id": f"approve-{server.name}",
        "label": label,
        "plugin": PLUGIN,
        "action_id": APPROVE,
        "params": params,
    }


def _display(server: Server, body: str, variant: str) -> dict[str, Any]:
    title = f"MCP server {server.name}"
    return {
        "format": "markdown",
        "title": title,
        "body": body,
        "variant": variant,
        "display_id": "mcp-approve",
    }


def _fenced(text: str, language: str) -> str:
    """Return text as a block of code, whatever stands in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _cell(text: str) -> str:
    """Return text for a cell of a table, in which nothing of it is markup."""
    return _escape(" ".join(text.split())[:600])


def _escape(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_[]()<>#|!~" else char for char in text)
