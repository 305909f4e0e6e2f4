"""After the death of a process: the session opens, is sendable, and tells the truth."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from shutil import copytree
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from agent_app import AgentApplication
from agent_core import AgentCore, Message, Session
from agent_core.testing import ScriptedProvider
from agent_runtime.recovery import BRANCHED, DID_NOT_RUN, MAY_HAVE_RUN, call_ids, recover
from agent_runtime.suspension import unanswered

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}

MOMENTS = [
    "in 1",
    "in 2",
    *(f"{when} save {number}" for number in range(1, 8) for when in ("before", "after")),
]

# Each moment has a process of its own, forked off one that has everything imported already.
CHILD = """
import os, signal, sys
from agent_app import AgentApplication
from agent_core import tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall

def run(folder, moment):
    die = lambda: os.kill(os.getpid(), signal.SIGKILL)

    class Tools:
        name = "tools"
        version = "1"

        def register(self, registrar):
            def work(number: int, context: dict) -> str:
                "Work."
                with open(f"{folder}/ledger", "a") as file:
                    print(number, context["idempotency_key"], file=file)
                if moment == f"in {number}":
                    die()
                return f"worked {number}"
            registrar.tool("work", tool(work, parallel=False))

    config = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
    calls = [ToolCall("work", {"number": number}) for number in (1, 2)]
    provider = ScriptedProvider([Reply(text="hm", tool_calls=calls), "done"])
    url = f"sqlite:///{folder}/sessions.db"
    app = AgentApplication(config, store=url, plugins=[provider, Tools], installed=False)
    app.create_session(session_id="s")
    count, save = [0], app.store.save

    def counted(*arguments, **more):
        count[0] += 1
        if moment == f"before save {count[0]}":
            die()
        stored = save(*arguments, **more)
        if moment == f"after save {count[0]}":
            die()
        return stored

    app.store.save = counted
    list(app.chat("s", "go"))

root, *moments = sys.argv[1:]
for moment in moments:
    folder = f"{root}/{moment}"
    os.mkdir(folder)
    open(f"{folder}/ledger", "w").close()
    child = os.fork()
    if child == 0:
        run(folder, moment)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (moment, status)
"""
Crash = Callable[[str], tuple[AgentApplication, ScriptedProvider, list[str]]]


@pytest.fixture(scope="module")
def remains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what is left of a process for each moment at which it died."""
    folder = tmp_path_factory.mktemp("remains")
    command = [sys.executable, "-c", CHILD, str(folder), *MOMENTS]
    subprocess.run(command, check=True, timeout=120)
    return folder


@pytest.fixture
def crash(remains: Path, tmp_path: Path) -> Iterator[Crash]:
    """Return how to go on after a moment: the next application, its model and the ledger."""
    apps: list[AgentApplication] = []

    def go_on(moment: str) -> tuple[AgentApplication, ScriptedProvider, list[str]]:
        copytree(remains / moment, tmp_path / "copy")
        provider = ScriptedProvider(["I understand"] * 3)
        url = f"sqlite:///{tmp_path}/copy/sessions.db"
        apps.append(AgentApplication(CONFIG, store=url, plugins=[provider], installed=False))
        return apps[-1], provider, (tmp_path / "copy" / "ledger").read_text().splitlines()

    yield go_on
    for app in apps:
        app.close()


def answers(session: Session) -> dict[str, Message]:
    return {str(one.metadata["tool_call_id"]): one for one in session.messages if one.role == "tool"}


def test_a_call_that_was_running_is_told_as_one_that_may_have_run(crash: Crash) -> None:
    app, provider, ledger = crash("in 1")
    opened = app.load_session("s")
    events = list(app.chat("s", "what happened?"))

    assert [message.content for message in opened.messages][:2] == ["go", "hm"]
    assert events[-1]["text"] == "I understand"
    told = answers(app.load_session("s"))
    assert told["call_1"].content == MAY_HAVE_RUN
    assert told["call_1"].metadata["uncertain"] is True
    assert told["call_2"].content == DID_NOT_RUN
    assert told["call_2"].metadata["uncertain"] is False
    assert [line.split()[0] for line in ledger] == ["1"]
    assert MAY_HAVE_RUN in str(provider.requests[0].native_messages)
    assert app.store.open_intents("s") == {}


def test_a_call_whose_result_was_kept_is_not_doubted(crash: Crash) -> None:
    app, _, ledger = crash("in 2")
    list(app.chat("s", "what happened?"))

    told = answers(app.load_session("s"))
    assert told["call_1"].content == "worked 1"
    assert told["call_2"].content == MAY_HAVE_RUN
    assert [line.split()[0] for line in ledger] == ["1", "2"]


def test_a_session_can_go_on_without_a_word_after_a_crash(crash: Crash) -> None:
    app, provider, _ = crash("in 1")

    assert list(app.chat("s"))[-1]["text"] == "I understand"
    roles = [message.role for message in app.load_session("s").messages]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    assert len(provider.requests) == 1


def test_a_branch_of_a_session_that_crashed_tells_the_truth_too(crash: Crash) -> None:
    app, _, _ = crash("in 1")
    branch = app.fork_session("s", upto_index=-1).session_id
    list(app.chat(branch, "what happened?"))

    told = answers(app.load_session(branch))
    assert {one.content for one in told.values()} == {BRANCHED}


@pytest.mark.parametrize("moment", MOMENTS)
def test_wherever_a_process_dies_the_session_opens_and_nothing_runs_again(crash: Crash, moment: str) -> None:
    app, _, ledger = crash(moment)
    session = app.load_session("s")
    said = [str(message.content) for message in session.messages]
    list(app.chat("s", "what happened?"))
    after = app.load_session("s")

    ran = [line.split()[0] for line in ledger]
    assert ran == sorted(set(ran))
    assert [str(message.content) for message in after.messages][: len(said)] == said
    told = answers(after)
    made = call_ids(after)
    assert set(told) == made
    for number, call_id in (("1", "call_1"), ("2", "call_2")):
        if call_id in made and number in ran:
            assert told[call_id].content in (f"worked {number}", MAY_HAVE_RUN)
        elif call_id in made:
            assert told[call_id].content in (MAY_HAVE_RUN, DID_NOT_RUN)
    assert app.store.check(deep=True).problems == ()


def test_a_process_that_died_does_not_hold_its_session(crash: Crash) -> None:
    app, _, _ = crash("in 1")

    assert app.switch_agent("s", "a").session_id == "s"


CORE = AgentCore()
call_lists = st.lists(st.sampled_from(["c1", "c2", "c3", "c4"]), unique=True)


@given(made=call_lists, answered=st.sets(st.sampled_from(["c1", "c2", "c3", "c4"])), begun=call_lists)
def test_recovery_answers_exactly_the_open_calls_and_is_done_once(
    made: list[str], answered: set[str], begun: list[str]
) -> None:
    calls = [{"id": one, "type": "function", "function": {"name": "t", "arguments": "{}"}} for one in made]
    results = [Message("tool", "ok", {"tool_call_id": one}) for one in made if one in answered]
    asked = Message("assistant", "", {"tool_calls": calls}) if calls else Message("assistant", "hm")
    session = Session("s", [Message("user", "go"), asked, *results])
    mended, ids = recover(CORE, session, begun)

    assert ids == [one for one in made if one not in answered]
    assert unanswered(mended) == []
    assert recover(CORE, mended, begun) == (mended, [])
    assert mended.messages[: len(session.messages)] == session.messages
    for message in mended.messages[len(session.messages) :]:
        assert message.metadata["uncertain"] is (message.metadata["tool_call_id"] in begun)
