"""`agent doctor`: check the program and its settings, and say how to fix problems; it never prints a key."""

from __future__ import annotations

from dataclasses import asdict

import click

from agent_terminal_app.errors import Exit
from agent_terminal_app.health import REPORT_HANG, checks, look_at_all, report_lines
from agent_terminal_app.output import print_json, print_rows


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, as_json: bool) -> int:
    """Check the program and its settings, and say how to fix problems; nothing is changed."""
    findings = look_at_all(checks())
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print_rows((line for finding in findings for line in report_lines(finding)), hang=REPORT_HANG)
    return Exit.FAILURE if any(finding.status == "FAIL" for finding in findings) else Exit.OK
