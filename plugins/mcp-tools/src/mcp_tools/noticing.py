"""What a person should know of servers when they begin: what waits for their approval, a line for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcp_tools.fleet import Fleet, Report
    from mcp_tools.settings import Settings

APPROVE: Final = "approve"
"""The action that shows what waits, and approves it."""


def notices(fleet: Fleet, settings: Settings) -> list[dict[str, Any]]:
    """Return a line for each server of which something waits, and one if nothing can be approved at all."""
    damage = fleet.pins(settings).read().problem
    told: list[dict[str, Any]] = [{"text": damage}] if damage else []
    return told + [_notice(report) for report in fleet.reports(settings) if report.waits]


def _notice(report: Report) -> dict[str, Any]:
    server = report.server.name
    return {
        "text": f"MCP server {server}: {_waiting(report)}",
        "action_id": APPROVE,
        "params": {"server": server},
    }


def _waiting(report: Report) -> str:
    if report.judgement.launch:
        count = len(report.judgement.waiting)
        return (
            f"{count} of what it offers {'is' if count == 1 else 'are'} new or changed and not approved yet"
        )
    if report.approval is None:
        return "it is not approved yet, so none of its tools are there"
    return "it is declared otherwise than you approved it, so none of its tools are there"
