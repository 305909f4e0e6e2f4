"""Messages that come while a run goes on: delivered once, in order, also if the process dies."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication, SessionNotFound, StoreUnavailable
from agent_core import ArgumentError, Session, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
Make = Callable[..., AgentApplication]


class Doing:
    """A runtime plugin with a tool that does what a function does."""

    name = "doing"
    version = "1"

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work

    def register(self, registrar: Any) -> None:
        work = self._work

        def do() -> str:
            """Do it."""
            work()
            return "done"

        registrar.tool("do", tool(do))


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    apps: list[AgentApplication] = []

    def make_app(script: Any = (), *plugins: Any) -> AgentApplication:
        provider = script if isinstance(script, ScriptedProvider) else ScriptedProvider(script)
        url = f"sqlite:///{tmp_path}/sessions.db"
        apps.append(AgentApplication(CONFIG, store=url, plugins=[provider, *plugins], installed=False))
        return apps[-1]

    yield make_app
    for app in apps:
        app.close()


def texts(session: Session) -> list[str]:
    return [str(message.content) for message in session.messages]


def test_a_message_waits_for_the_next_chat_if_nothing_runs(make: Make) -> None:
    app = make(["both"])
    session_id = app.create_session().session_id
    kept = app.enqueue(session_id, "first")

    assert [one.seq for one in app.store.inputs(session_id)] == [kept.seq]
    assert list(app.chat(session_id))[-1]["text"] == "both"
    assert texts(app.load_session(session_id)) == ["first", "both"]
    assert app.store.inputs(session_id) == []


def test_what_steers_joins_what_is_said_and_what_is_queued_comes_behind_in_turns(make: Make) -> None:
    app = make(["all", "first", "second"])
    session_id = app.create_session().session_id
    for text, mode in (("one", "queue"), ("two", "steer"), ("three", "interrupt"), ("four", "queue")):
        app.enqueue(session_id, text, mode)  # type: ignore[arg-type]
    events = list(app.chat(session_id, "now"))

    said = texts(app.load_session(session_id))
    assert said == ["now", "two", "three", "all", "one", "first", "four", "second"]
    assert [event["text"] for event in events if event["type"] == "turn_end"] == ["all", "first"]
    assert (events[-1]["type"], events[-1]["text"], len(events[-1]["messages"])) == ("final", "second", 8)


def test_messages_that_are_queued_together_get_a_turn_each(make: Make) -> None:
    box: list[AgentApplication] = []
    provider = ScriptedProvider([Reply(tool_calls=[ToolCall("do")]), "zero", "one", "two", "three"])

    def queue_three() -> None:
        for text in ("1", "2", "3"):
            box[0].enqueue("s", text, "queue")

    box.append(make(provider, Doing(queue_three)))
    box[0].create_session(session_id="s")
    events = list(box[0].chat("s", "go"))

    said = texts(box[0].load_session("s"))
    assert said == ["go", "", "done", "zero", "1", "one", "2", "two", "3", "three"]
    ends = [(event["type"], event["text"]) for event in events if event["type"] in ("turn_end", "final")]
    assert ends == [("turn_end", "zero"), ("turn_end", "one"), ("turn_end", "two"), ("final", "three")]
    assert len(provider.requests) == 5 and box[0].store.inputs("s") == []


def test_queued_messages_that_nobody_has_taken_yet_can_still_be_taken_back(make: Make) -> None:
    app = make(["one", "three"])
    session_id = app.create_session().session_id
    seqs = [app.enqueue(session_id, text, "queue").seq for text in ("1", "2", "3")]
    for event in app.chat(session_id):
        if event["type"] == "text" and event["text"] == "one":
            assert app.store.drop_input(session_id, seqs[1])

    assert texts(app.load_session(session_id)) == ["1", "one", "3", "three"]


def test_a_turn_that_fails_leaves_the_other_messages_in_the_queue_and_is_made_up_for_first(
    make: Make,
) -> None:
    provider = ScriptedProvider([RuntimeError("the model is away"), "one", "two"])
    app = make(provider)
    session_id = app.create_session().session_id
    for text in ("1", "2"):
        app.enqueue(session_id, text, "queue")

    assert list(app.chat(session_id))[-1]["type"] == "error"

    assert [one.message["content"] for one in app.store.inputs(session_id)] == ["2"]
    list(app.chat(session_id))
    assert texts(app.load_session(session_id)) == ["1", "one", "2", "two"]


def test_calls_in_the_middle_of_which_a_run_failed_are_gone_on_with_before_what_is_queued(make: Make) -> None:
    calling = Reply(tool_calls=[ToolCall("do")])
    provider = ScriptedProvider([calling, RuntimeError("the model is away"), "zero", "one"])
    app = make(provider, Doing(lambda: None))
    session_id = app.create_session().session_id
    for event in app.chat(session_id, "go"):
        if event["type"] == "step_start" and event["round"] == 1:
            app.enqueue(session_id, "1", "queue")
    assert texts(app.load_session(session_id)) == ["go", "", "done"]

    list(app.chat(session_id))

    assert texts(app.load_session(session_id)) == ["go", "", "done", "zero", "1", "one"]


def test_a_question_that_was_cancelled_is_not_asked_again_for_what_is_queued_behind_it(make: Make) -> None:
    app = make(["both"])
    session_id = app.create_session().session_id
    for event in app.chat(session_id, "never mind"):
        if event["type"] == "step_start":
            app.enqueue(session_id, "rather this", "queue")
            app.cancel(session_id)
    assert texts(app.load_session(session_id)) == ["never mind"]

    list(app.chat(session_id))

    assert texts(app.load_session(session_id)) == ["never mind", "rather this", "both"]


def test_a_steering_message_is_read_between_two_steps(make: Make) -> None:
    box: list[AgentApplication] = []
    provider = ScriptedProvider([Reply(tool_calls=[ToolCall("do")]), "as you wish"])
    app = make(provider, Doing(lambda: box[0].enqueue("s", "rather so")))
    box.append(app)
    app.create_session(session_id="s")
    events = list(app.chat("s", "go"))

    assert texts(app.load_session("s")) == ["go", "", "done", "rather so", "as you wish"]
    assert len(provider.requests) == 2
    assert [event["type"] for event in events].count("final") == 1
    assert app.store.inputs("s") == []


def test_a_steering_message_at_the_very_end_is_still_answered(make: Make) -> None:
    app = make(["one", "two"])
    session_id = app.create_session().session_id
    for event in app.chat(session_id, "go"):
        if event["type"] == "text" and event["text"] == "one":
            app.enqueue(session_id, "more")

    assert texts(app.load_session(session_id)) == ["go", "one", "more", "two"]


def test_a_message_that_is_accepted_before_the_last_event_is_answered(address: str) -> None:
    if address == "sqlite://":
        pytest.skip("one connection is used by one thread at a time")
    app = AgentApplication(CONFIG, store=address, plugins=[ScriptedProvider(["one", "two"])], installed=False)
    session_id = app.create_session().session_id
    look, late, in_time = app.store.inputs, list[threading.Thread](), list[bool]()
    accepted = threading.Event()

    def put() -> None:
        app.enqueue(session_id, "late")
        accepted.set()

    def look_then_put(session_id: str) -> Any:
        found = look(session_id)
        if not late:  # the only look, in the transaction that stores the answer
            late.append(threading.Thread(target=put))
            late[0].start()
            in_time.append(accepted.wait(0.3))
        return found

    app.store.inputs = look_then_put  # type: ignore[method-assign]
    try:
        assert list(app.chat(session_id, "go"))[-1]["type"] == "final"
        late[0].join(10)
        assert accepted.is_set()
        # Either it has to wait for the end, and then for the next request, or this one still finds it.
        assert in_time == [False] or texts(app.load_session(session_id))[-2:] == ["late", "two"]
    finally:
        app.close()


def test_a_queued_message_waits_for_the_end_of_the_run_and_is_then_answered(make: Make) -> None:
    box: list[AgentApplication] = []
    script = [Reply(tool_calls=[ToolCall("do")]), "first answer", "second answer"]
    app = make(script, Doing(lambda: box[0].enqueue("s", "then this", "queue")))
    box.append(app)
    app.create_session(session_id="s")
    events = list(app.chat("s", "go"))

    assert texts(app.load_session("s")) == ["go", "", "done", "first answer", "then this", "second answer"]
    ends = [event for event in events if event["type"] in ("turn_end", "final")]
    assert [(end["type"], end["text"]) for end in ends] == [
        ("turn_end", "first answer"),
        ("final", "second answer"),
    ]
    assert len(ends[1]["messages"]) == 6
    assert events[-1]["type"] == "final"
    assert ends[1]["usage"]["requests"] == 3


def test_an_interrupting_message_stops_the_run_and_is_answered_in_its_place(make: Make) -> None:
    app = make([Reply(text="long story", chunks=["long ", "story"]), "short"])
    session_id = app.create_session().session_id
    events = []
    for event in app.chat(session_id, "go"):
        events.append(event)
        if event["type"] == "text" and event["text"] == "long ":
            app.enqueue(session_id, "stop, say it short", "interrupt")

    said = texts(app.load_session(session_id))
    assert said[-2:] == ["stop, say it short", "short"]
    assert events[-1]["type"] == "final"
    assert events[-1]["text"] == "short"
    [turn] = [event for event in events if event["type"] == "turn_end"]
    assert turn["reason"]["code"] == "cancelled"


def test_an_interrupt_during_a_tool_is_answered_once(make: Make) -> None:
    box: list[AgentApplication] = []
    provider = ScriptedProvider([Reply(tool_calls=[ToolCall("do")]), "yes", "no third time"])
    app = make(provider, Doing(lambda: box[0].enqueue("s", "wait", "interrupt")))
    box.append(app)
    app.create_session(session_id="s")
    events = list(app.chat("s", "go"))

    assert texts(app.load_session("s")).count("wait") == 1
    assert texts(app.load_session("s"))[-1] == "yes"
    assert events[-1]["type"] == "final"
    assert app.store.inputs("s") == []


def test_a_message_that_is_taken_back_is_not_delivered(make: Make) -> None:
    app = make(["hi"])
    session_id = app.create_session().session_id
    kept = app.enqueue(session_id, "never mind", "queue")

    assert app.store.drop_input(session_id, kept.seq) is True
    list(app.chat(session_id, "hello"))
    assert texts(app.load_session(session_id)) == ["hello", "hi"]
    assert app.store.drop_input(session_id, kept.seq) is False


def test_a_message_that_a_run_has_taken_cannot_be_taken_back(make: Make) -> None:
    """The run has the message in its hands, and has not stored it yet."""
    box: list[Any] = []

    class Late:
        name = "late"
        version = "1"

        def register(self, registrar: Any) -> None:
            registrar.phase_hook("run_start", self.begin)

        def begin(self, _view: Any) -> None:
            box.append(app.store.drop_input(session_id, kept.seq))

    app = make(["hi"], Late())
    session_id = app.create_session().session_id
    kept = app.enqueue(session_id, "never mind", "queue")
    list(app.chat(session_id))

    assert box == [False]
    assert texts(app.load_session(session_id)) == ["never mind", "hi"]


def test_a_message_that_is_taken_back_from_a_run_which_has_lost_its_right_is_not_delivered(
    make: Make,
) -> None:
    app = make(["hi", "hi"])
    session_id = app.create_session().session_id
    kept = app.enqueue(session_id, "never mind", "queue")
    claim, gone = app.store.claim_inputs, list[bool]()

    def late(lease: Any, seqs: Any) -> Any:
        found = claim(lease, seqs)
        with app.store.writing() as transaction:  # as if its lease had run out just then
            transaction.run("UPDATE inputs SET taken = NULL")
        gone.append(app.store.drop_input(session_id, kept.seq))
        return found

    app.store.claim_inputs = late  # type: ignore[method-assign]
    events = list(app.chat(session_id))

    assert gone == [True]
    assert events[-1]["type"] == "error"
    assert "taken back" in events[-1]["error"]["message"]
    assert texts(app.load_session(session_id)) == []
    assert list(app.chat(session_id, "hello"))[-1]["type"] == "final"
    assert texts(app.load_session(session_id)) == ["hello", "hi"]


def test_what_could_not_be_stored_until_the_end_of_its_run_waits_on(make: Make) -> None:
    app = make(["hi", "hi"])
    session_id = app.create_session().session_id
    app.enqueue(session_id, "hello")
    save, full = app.store.save, [True]

    def while_full(session: Any, *arguments: Any, **more: Any) -> Any:
        if full[0] and len(session.messages):
            raise StoreUnavailable("the disk is full")
        return save(session, *arguments, **more)

    app.store.save = while_full  # type: ignore[method-assign]
    list(app.chat(session_id))
    full[0] = False

    assert [one.message["content"] for one in app.store.inputs(session_id)] == ["hello"]
    list(app.chat(session_id))
    assert texts(app.load_session(session_id)) == ["hello", "hi"]
    assert app.store.inputs(session_id) == []


def test_a_run_that_fails_before_it_took_the_messages_leaves_them_waiting(make: Make) -> None:
    class Broken:
        name = "broken"
        version = "1"

        def __init__(self) -> None:
            self.fails = True

        def register(self, registrar: Any) -> None:
            registrar.phase_hook("run_start", self.begin)

        def begin(self, _view: Any) -> None:
            if self.fails:
                raise RuntimeError("not yet")

    broken = Broken()
    app = make(["hi"], broken)
    session_id = app.create_session().session_id
    app.enqueue(session_id, "hello")
    failed = list(app.chat(session_id))

    assert failed[-1]["type"] == "error"
    assert len(app.store.inputs(session_id)) + texts(app.load_session(session_id)).count("hello") == 1
    broken.fails = False
    list(app.chat(session_id))
    assert texts(app.load_session(session_id)) == ["hello", "hi"]


def test_a_save_that_fails_while_messages_are_delivered_neither_loses_nor_doubles_them(make: Make) -> None:
    app = make(["hi", "hi"])
    session_id = app.create_session().session_id
    app.enqueue(session_id, "hello")
    save, calls = app.store.save, list[int]()

    def sometimes(*arguments: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise StoreUnavailable("the disk is full")
        return save(*arguments, **more)

    app.store.save = sometimes  # type: ignore[method-assign]
    list(app.chat(session_id))
    list(app.chat(session_id, "and?"))

    assert texts(app.load_session(session_id)).count("hello") == 1
    assert app.store.inputs(session_id) == []


@pytest.mark.parametrize(
    ("text", "mode", "match"), [("x", "later", "mode"), ("", "steer", "nothing"), (3, "steer", "text")]
)
def test_bad_messages_are_refused(make: Make, text: Any, mode: Any, match: str) -> None:
    app = make()
    session_id = app.create_session().session_id

    with pytest.raises(ArgumentError, match=match):
        app.enqueue(session_id, text, mode)
    with pytest.raises(SessionNotFound):
        app.enqueue("nowhere", "x")
    assert app.store.inputs(session_id) == []


def test_the_async_twin_keeps_a_message_too(make: Make) -> None:
    app = make(["hi"])
    session_id = app.create_session().session_id

    async def work() -> list[dict[str, Any]]:
        await app.enqueue_async(session_id, "hello", "queue")
        return [event async for event in app.chat_async(session_id)]

    assert asyncio.run(work())[-1]["text"] == "hi"
    assert texts(app.load_session(session_id)) == ["hello", "hi"]


SAVES = range(1, 7)
IN_TURNS = [f"three {when} save {number}" for number in SAVES for when in ("before", "after")]
MOMENTS = ["enqueued", *(f"{when} save {number}" for number in (1, 2) for when in ("before", "after"))]

# Each moment has a process of its own, forked off one that has everything imported already.
CHILD = """
import os, signal, sys
from agent_app import AgentApplication
from agent_core.testing import ScriptedProvider

def run(url, moment):
    die = lambda: os.kill(os.getpid(), signal.SIGKILL)
    config = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
    app = AgentApplication(config, store=url, plugins=[ScriptedProvider(["hi"] * 3)], installed=False)
    app.create_session(session_id="s")
    for text in ("1", "2", "3") if moment.startswith("three") else ("hello",):
        app.enqueue("s", text, "queue")
    if moment == "enqueued":
        die()
    moment = moment.removeprefix("three ")
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
    list(app.chat("s"))

root, *moments = sys.argv[1:]
for moment in moments:
    child = os.fork()
    if child == 0:
        run(f"sqlite:///{root}/{moment}/sessions.db", moment)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (moment, status)
"""


@pytest.fixture(scope="module")
def remains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what is left of a process for each moment at which it died."""
    folder = tmp_path_factory.mktemp("remains")
    subprocess.run([sys.executable, "-c", CHILD, str(folder), *MOMENTS, *IN_TURNS], check=True, timeout=120)
    return folder


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_message_survives_the_death_of_the_process_and_comes_once(remains: Path, moment: str) -> None:
    url = f"sqlite:///{remains}/{moment}/sessions.db"
    provider = ScriptedProvider(["hi", "hi"])
    with AgentApplication(CONFIG, store=url, plugins=[provider], installed=False) as app:
        waiting = [str(one.message["content"]) for one in app.store.inputs("s")]
        delivered = texts(app.load_session("s"))
        assert (waiting + delivered).count("hello") == 1

        list(app.chat("s", "" if waiting or delivered[-1:] == ["hello"] else "go on"))
        assert texts(app.load_session("s")).count("hello") == 1
        assert app.store.inputs("s") == []
        assert app.store.check(deep=True).problems == ()


@pytest.mark.parametrize("moment", IN_TURNS)
def test_each_queued_message_has_its_turn_also_if_the_process_dies_between(
    remains: Path, moment: str
) -> None:
    url = f"sqlite:///{remains}/{moment}/sessions.db"
    with AgentApplication(CONFIG, store=url, plugins=[ScriptedProvider(["hi"] * 4)], installed=False) as app:
        waiting = [str(one.message["content"]) for one in app.store.inputs("s")]
        delivered = [str(one.content) for one in app.load_session("s").messages if one.role == "user"]
        assert delivered + waiting == ["1", "2", "3"]
        if waiting or app.load_session("s").messages[-1].role == "user":
            list(app.chat("s"))

        assert texts(app.load_session("s")) == ["1", "hi", "2", "hi", "3", "hi"]
        assert app.store.inputs("s") == []
