"""`agent doctor`: look for what is wrong, and say what to do about it; a line never has a key in it."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from agent_terminal_app.errors import Exit
from agent_terminal_app.health.finding import CONFIGURATION, Check, Finding, look_at_all
from agent_terminal_app.health.places import check_log, check_space, check_store
from agent_terminal_app.health.program import (
    check_keyboard,
    check_plugins,
    check_terminal,
    check_versions,
    check_weights,
)
from agent_terminal_app.health.setup import check_agents, check_configuration, check_keys, check_servers
from agent_terminal_app.paths import Paths
from agent_terminal_app.tables import one_line, print_json, print_lines

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, as_json: bool) -> int:
    """Look for what is wrong, and say what to do about it; nothing is changed."""
    findings = look_at_all(checks())
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print_lines(line for finding in findings for line in report_lines(finding))
    return Exit.FAILURE if any(finding.status == "FAIL" for finding in findings) else Exit.OK


def report_lines(finding: Finding) -> Iterator[str]:
    """Yield a finding as people read it, with the remedy on a line of its own."""
    yield f"{finding.status:<4}  {finding.check}: {one_line(finding.detail)}"
    if finding.remedy:
        yield f"      {one_line(finding.remedy)}"


def checks(terminal: Check = check_terminal) -> list[tuple[str, Check]]:
    """Return all checks in the order of the report.

    Args:
        terminal: Looks at the terminal; a chat knows its own.
    """
    paths = Paths.of_this_user()
    return [
        ("versions", check_versions),
        (CONFIGURATION, check_configuration),
        ("agents", check_agents),
        ("keys", check_keys),
        ("servers", check_servers),
        ("plugins", check_plugins),
        ("sessions", partial(check_store, paths.database)),
        ("embedded model", check_weights),
        ("log", partial(check_log, paths.log)),
        ("terminal", terminal),
        ("keyboard", partial(check_keyboard, paths.keyboard)),
        ("disk space", partial(check_space, paths.data)),
    ]
