"""What someone was shown is stored: a process that dies on showing it has nothing to lose."""

from __future__ import annotations

import json
from collections import Counter
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core.testing import ScriptedProvider

if TYPE_CHECKING:
    from pathlib import Path

    from faults.conftest import Bench

    from agent_core import Session

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
RUNS, SOME_RUNS = 200, 6
AT_A_TIME = 5


def test_killed_on_showing_a_result_or_the_start_of_a_run_nothing_that_was_shown_is_lost(
    bench: Bench,
) -> None:
    runs = RUNS if bench.long else SOME_RUNS
    deaths = 0
    for first in range(1, runs + 1, AT_A_TIME):
        last = min(first + AT_A_TIME - 1, runs)
        status, _, errors = bench.run("shown.py", str(bench.folder), str(first), str(last))
        assert status == 0, errors
        for folder in [path for path in bench.folder.iterdir() if path.is_dir()]:
            _examine(bench, folder)
            rmtree(folder)
            deaths += 1

    assert deaths > runs  # each run died several times


def _examine(bench: Bench, folder: Path) -> None:
    shown = [json.loads(line) for line in (folder / "shown").read_text().splitlines()]
    lost = _lost(folder, shown)
    bench.tally.cases += 1
    bench.tally.acknowledged += len(shown)
    bench.tally.lost += len(lost)
    assert lost == [], folder.name


def _lost(folder: Path, shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Go on with what a dead process left, and return what was shown and is not there."""
    app = AgentApplication(
        CONFIG,
        store=f"sqlite:///{folder / 'sessions.db'}",
        plugins=[ScriptedProvider(["I see."])],
        installed=False,
    )
    try:
        said = [message.content for message in app.load_session("s").messages]
        events = list(app.chat("s", "What happened?", take_over=True))
        assert events[-1]["type"] == "final"
        session = app.load_session("s")
        assert app.store.open_intents("s") == {}
        assert app.store.check(deep=True).problems == ()
    finally:
        app.close()
    _assert_truthful(session, folder)
    results = {one.metadata["tool_call_id"]: one.content for one in session.messages if one.role == "tool"}
    return [
        event
        for event in shown
        if not (
            "Go." in said
            if event["type"] == "run_start"
            else results.get(event["message"]["metadata"]["tool_call_id"]) == event["message"]["content"]
        )
    ]


def _assert_truthful(session: Session, folder: Path) -> None:
    """No call ran twice, and each that ran has its result or the note that it may have run."""
    ran = Counter((folder / "effects").read_text().split())
    assert not [work for work, times in ran.items() if times > 1]
    answers = [one for one in session.messages if one.role == "tool"]
    assert len({one.metadata["tool_call_id"] for one in answers}) == len(answers)
    for one in answers:
        work = one.metadata["tool_call_id"].removeprefix("c")
        if work in ran:
            assert one.content == f"worked {work}" or one.metadata["uncertain"], one
        else:
            assert "uncertain" in one.metadata, one
