"""The chat without a terminal: what is said, steered, queued, held, taken back, attached; and what Esc does.

The application, its store and its tools are real; the model plays a script, and the screen keeps its lines.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from prompt_toolkit.document import Document

from agent_app import AgentApplication
from agent_core import ProviderError
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_terminal_app.chat.loop import Chat
from agent_terminal_app.chat.prompt.completion import ChatCompleter, FeatureCompletion, accepted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

ROUNDS = int(os.environ.get("CHAT_INTERRUPTS", "200"))
_PATIENCE = 60.0


class Paper:
    """A screen with a line that changes, which keeps its lines."""

    color = False
    is_live = True
    width: int | None = 80

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str = "") -> None:
        self.lines += text.split("\n")


class Tools:
    """A tool that takes its time, until it is let go on, and one that does not."""

    name = "tools"
    version = "1"
    calls: list[str]

    def __init__(self) -> None:
        self.calls = []
        self.go_on = False

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        number = {"type": "object", "properties": {"n": {"type": "integer"}}}
        return [{"name": name, "input_schema": number} for name in ("slow", "note")]

    async def stream_tool(self, tool_name: str, arguments: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        self.calls.append(f"{tool_name} {arguments.get('n')}")
        for number in range(5000 if tool_name == "slow" else 2):
            if self.go_on:
                break
            yield {"part": f"{number}\n"}
            await asyncio.sleep(0.002)
        yield {"success": True, "result": "done"}


class Suggests:
    """A feature with suggestions and a template."""

    name = "suggests"
    version = "1"

    def get_completions(self, config: dict[str, Any], text: str) -> list[dict[str, Any]]:
        if not text.endswith("dea"):
            return []
        return [{"replacement": "dear", "start": -3, "display": "dear\x1b[2J", "display_meta": "a letter"}]

    def apply_completion(self, config: dict[str, Any], text: str, completion: dict[str, Any]) -> str:
        return "dear ${1:Sir}," if completion["replacement"] == "dear" else ""

    def get_template(self, config: dict[str, Any]) -> str:
        return "Dear Sir,\n"


class Busy(ProviderError):
    category = "transient"
    retryable = True
    retry_after = 60.0


class Desk:
    """A chat that is sat down at."""

    def __init__(
        self, *script: Any, store: str = "sqlite://", session: str | None = None, **agent: Any
    ) -> None:
        self.paper = Paper()
        self.provider = ScriptedProvider(script)
        self.tools = Tools()
        self._store = store
        self._agent = agent
        self.chat = Chat(self._open, self.paper, session)

    def _open(self) -> AgentApplication:
        config = {
            "agents": {
                "a": {"model": "m", "sections": {"retry": {}, "permissions": PERMISSIONS}, **self._agent}
            },
            "models": {"m": {"provider": "scripted", "context_window": 1000}},
        }
        plugins = [self.provider, self.tools, Suggests]
        return AgentApplication(config, store=self._store, plugins=plugins, installed=False)

    @property
    def app(self) -> AgentApplication:
        assert self.chat.conversation is not None
        return self.chat.conversation.app

    @property
    def session_id(self) -> str:
        assert self.chat.conversation is not None and self.chat.conversation.session_id is not None
        return self.chat.conversation.session_id

    def said(self) -> list[tuple[str, str]]:
        return [(one.role, str(one.content)) for one in self.app.load_session(self.session_id).messages]

    def parts(self, number: int) -> list[dict[str, Any]]:
        return list(self.app.load_session(self.session_id).messages[number].multipart_content or ())

    def waiting(self) -> list[str]:
        return self.chat.waiting_lines()

    async def until(self, seen: Callable[[], object]) -> None:
        async with asyncio.timeout(_PATIENCE):
            while not seen():  # noqa: ASYNC110 - the screen does not tell
                await asyncio.sleep(0.001)

    async def until_line(self, text: str) -> None:
        await self.until(lambda: any(text in line for line in self.paper.lines))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each chat a home of its own: it names commands that a dead chat of the same home has left."""
    monkeypatch.setenv("HOME", str(tmp_path))


PERMISSIONS = {"allow": ["slow"], "ask": ["note"]}
SLOWLY = Reply(chunks=["one ", "two ", "three"], delay=[0, math.inf])


def sit(desk: Desk, talk: Callable[[Desk], Awaitable[None]]) -> Desk:
    """Sit down, talk, and leave."""

    async def sitting() -> None:
        desk.chat.start()
        try:
            await talk(desk)
        finally:
            await desk.chat.close()

    asyncio.run(sitting())
    return desk


def test_words_are_answered_and_shown_where_they_belong() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("Hello")
        await desk.chat.finish()
        assert desk.said() == [("user", "Hello"), ("assistant", "Hi.")]

    desk = sit(Desk("Hi."), talk)

    assert desk.paper.lines == ["» Hello", "Hi."]


def test_what_is_said_meanwhile_is_read_after_the_step_or_after_the_answer() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("go")
        await desk.until(lambda: desk.tools.calls)
        await desk.chat.take("later", queue=True)
        await desk.chat.take("now")
        assert desk.waiting() == ["⧗ queued: later", "⧗ after this step: now"]
        desk.tools.go_on = True
        await desk.chat.finish()
        assert [text for role, text in desk.said() if role == "user"] == ["go", "now", "later"]
        assert desk.waiting() == []

    quick = Reply(tool_calls=[ToolCall("slow", {"n": 1})])
    desk = sit(Desk(quick, "after the step", "after the answer"), talk)

    shown = [line for line in desk.paper.lines if not line.startswith("✓")]
    assert shown == ["» go", "» now", "after the step", "» later", "after the answer"]


def test_after_a_limit_enter_continues_and_the_setting_is_named() -> None:
    async def talk(desk: Desk) -> None:
        desk.tools.go_on = True
        await desk.chat.take("")  # there is nothing to continue
        await desk.chat.take("go")
        await desk.chat.finish()
        assert desk.paper.lines[-2:] == [
            "stopped: the model was asked 1 times, as often as max_rounds allows",
            "Enter continues; `agent config set agents.a.max_rounds NUMBER` changes the limit",
        ]
        await desk.chat.take("")
        await desk.chat.finish()
        await desk.chat.take("")  # nor is there now
        await desk.chat.finish()

    desk = sit(Desk(Reply(tool_calls=[ToolCall("slow", {"n": 1})]), "All done.", max_rounds=1), talk)

    assert desk.paper.lines[-1] == "All done."
    assert len(desk.provider.requests) == 2


def test_an_answer_that_was_cut_off_is_said_to_be_and_enter_asks_for_the_rest() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("go")
        await desk.chat.take("queued", queue=True)
        await desk.chat.finish()
        assert "stopped" not in "".join(desk.paper.lines)  # what was queued came at once
        await desk.chat.take("more")
        await desk.chat.finish()
        assert desk.paper.lines[-4:] == [
            "Half of",
            "stopped: the answer reached the model's output limit, so its end is missing",
            "Enter continues; max_tokens in the settings of the model, or of its provider,",
            "allows longer answers",
        ]
        await desk.chat.take("")
        await desk.chat.finish()

    half = Reply(text="Half of", extra={"finish_reason": "length"})
    desk = sit(Desk(half, "Of course.", half, "it."), talk)

    assert desk.paper.lines[-2:] == ["» Continue your answer exactly where it was cut off.", "it."]


def test_esc_stops_the_agent_keeps_what_it_said_and_holds_what_waits() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("go")
        await desk.until(lambda: desk.provider.requests)
        await desk.chat.take("queued", queue=True)
        assert desk.chat.interrupt()
        assert desk.chat.progress.stopping
        await desk.chat.finish()
        assert desk.waiting()[0] == "⧗ held: queued"
        await asyncio.sleep(0)
        assert len(desk.provider.requests) == 1  # it does not fire by itself
        await desk.chat.take("")
        await desk.chat.finish()
        assert desk.waiting() == []
        assert desk.said()[-2:] == [("user", "queued"), ("assistant", "And now?")]

    desk = sit(Desk(SLOWLY, "And now?"), talk)

    assert "interrupted; the answer so far is kept" in desk.paper.lines
    assert "one" in desk.paper.lines[1]


def test_what_is_held_is_read_before_what_is_said_next() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("go")
        await desk.until(lambda: desk.provider.requests)
        await desk.chat.take("queued", queue=True)
        desk.chat.interrupt()
        await desk.chat.finish()
        await desk.chat.take("and this")
        await desk.chat.finish()
        assert [text for role, text in desk.said() if role == "user"] == ["go", "queued", "and this"]

    desk = sit(Desk(SLOWLY, "Fine.", "Good."), talk)

    assert [line for line in desk.paper.lines if line][-4:] == ["» queued", "Fine.", "» and this", "Good."]


def test_what_waits_can_be_taken_back_and_what_is_held_survives_the_program(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/app.db"

    async def talk(desk: Desk) -> None:
        await desk.chat.take("go")
        await desk.until(lambda: desk.provider.requests)
        for text in ("first", "second"):
            await desk.chat.take(text, queue=True)
        assert await desk.chat.take_back() == "second"
        assert desk.waiting() == ["⧗ queued: first"]
        desk.chat.interrupt()
        await desk.chat.finish()

    first = sit(Desk(SLOWLY, store=store), talk)

    async def go_on(desk: Desk) -> None:
        await desk.chat.ready()
        assert desk.waiting()[0] == "⧗ held: first"
        assert await desk.chat.take_back() == "first"
        assert await desk.chat.take_back() is None

    sit(
        Desk(store=store, session=first.chat.conversation.session_id if first.chat.conversation else None),
        go_on,
    )


def test_esc_while_a_retry_is_waited_for() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("go")
        await desk.until_line("again in 60 s")
        assert desk.chat.interrupt()
        await asyncio.wait_for(desk.chat.finish(), _PATIENCE)

    desk = sit(Desk(Busy("scripted", "stream_api", "busy"), "never"), talk)

    assert desk.paper.lines[-1] == "interrupted; the answer so far is kept"
    assert len(desk.provider.requests) == 1


def test_esc_leaves_a_question_and_the_call_is_not_run() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("go")
        await desk.chat.finish()
        assert desk.chat.asking
        assert desk.chat.interrupt()
        assert not desk.chat.asking
        await desk.chat.take("something else")
        await desk.chat.finish()
        assert desk.tools.calls == []
        assert [role for role, _ in desk.said()] == ["user", "assistant", "tool", "user", "assistant"]

    desk = sit(Desk(Reply(tool_calls=[ToolCall("note", {"n": 1})]), "Fine."), talk)

    assert "the call is not run; say what to do instead" in desk.paper.lines


def test_a_question_is_answered_by_a_line() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("go")
        await desk.chat.finish()
        await desk.chat.take("y")
        await desk.chat.finish()
        assert desk.tools.calls == ["note 1"]

    desk = sit(Desk(Reply(tool_calls=[ToolCall("note", {"n": 1})]), "Noted."), talk)

    assert desk.paper.lines[-1] == "Noted."


def test_files_that_are_mentioned_go_with_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("content of a")

    async def talk(desk: Desk) -> None:
        assert await desk.chat.take("see @a.txt")
        await desk.chat.finish()
        assert desk.parts(0) == [
            {"type": "text", "text": "see @a.txt"},
            {"type": "text", "text": f"File {tmp_path / 'a.txt'}:\n\ncontent of a"},
        ]
        assert not await desk.chat.take(f"see @{tmp_path}")
        assert len(desk.said()) == 2

    desk = sit(Desk("Seen."), talk)

    assert f"Error: {tmp_path} is a folder: name a file in it" in " ".join(desk.paper.lines)


def test_what_is_attached_goes_with_a_message_that_waits_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("content of a")

    async def talk(desk: Desk) -> None:
        await desk.chat.take("go")
        await desk.until(lambda: desk.provider.requests)
        await desk.chat.take("/attach a.txt")
        (line,) = desk.waiting()
        assert line.startswith("+ a.txt, ") and line.endswith(" bytes, goes with your next message")
        await desk.chat.take("later", queue=True)
        assert desk.waiting() == ["⧗ queued: later"]
        desk.chat.interrupt()
        await desk.chat.finish()
        await desk.chat.take("")
        await desk.chat.finish()
        assert [part["type"] for part in desk.parts(-2)] == ["text", "text"]

    sit(Desk(SLOWLY, "Seen."), talk)


def test_the_output_of_a_command_of_ones_own_goes_with_the_next_message() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("!echo from the shell")
        await desk.chat.finish()
        assert desk.waiting()[0].startswith("+ the output of `echo from the shell`")
        await desk.chat.take("what was that?")
        await desk.chat.finish()
        assert "from the shell" in desk.parts(0)[1]["text"]
        await desk.chat.take("!echo again")
        await desk.chat.finish()
        assert await desk.chat.take_back() == ""
        assert desk.waiting() == []

    desk = sit(Desk("A greeting."), talk)

    assert desk.paper.lines[:2] == ["» !echo from the shell", "from the shell"]


def test_esc_stops_a_command_of_ones_own_before_the_agent() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("go")
        await desk.until(lambda: desk.provider.requests)
        await desk.chat.take("!sleep 1000")
        assert desk.chat.interrupt()
        await desk.until(lambda: desk.paper.lines[-1] == "stopped before it ran")
        await desk.chat.take("!echo started; sleep 1000")
        await desk.until(lambda: desk.paper.lines[-1] == "started")
        assert desk.chat.interrupt()
        await desk.until_line("stopped, ")
        assert desk.chat.running
        assert desk.chat.interrupt()
        await desk.chat.finish()

    sit(Desk(SLOWLY), talk)


def test_the_commands_of_this_screen() -> None:
    filled: list[str] = []

    async def talk(desk: Desk) -> None:
        await desk.chat.take("/show")
        await desk.chat.take("/show x")
        await desk.chat.take("/template")
        assert desk.chat.conversation is not None
        desk.chat.conversation.fill = filled.append
        await desk.chat.take("/template")
        await desk.chat.take("go")
        await desk.until(lambda: desk.tools.calls)
        desk.chat.interrupt()
        await desk.chat.finish()
        await desk.chat.take("/show 1")

    desk = sit(Desk(Reply(tool_calls=[ToolCall("slow", {"n": 7})]), "Done."), talk)

    lines = "\n".join(desk.paper.lines)
    assert "Error: there is nothing to open yet" in lines and "'x' is not a number" in lines
    assert "Dear Sir," in lines and filled == ["Dear Sir,\n"]
    assert "[1] slow(n=7)\n  arguments\n    {\n" in lines


def test_words_that_begin_like_a_path_are_words() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("/etc/hosts is a file")
        await desk.chat.finish()
        assert desk.said()[0] == ("user", "/etc/hosts is a file")

    sit(Desk("Yes."), talk)


def test_leaving_is_noticed_however_long_the_command_takes() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("/quit")
        await asyncio.wait_for(desk.chat.left.wait(), _PATIENCE)

    sit(Desk(), talk)


def test_esc_leaves_what_a_command_asks_and_stops_one_that_takes_long() -> None:
    from agent_terminal_app.chat.commands import registry

    async def talk(desk: Desk) -> None:
        await desk.chat.ready()
        registry.command("dawdle", "take long", group="The program")(lambda _talk, _rest: asyncio.sleep(1000))
        try:
            await desk.chat.take("/dawdle")
            assert desk.chat.busy
            await desk.chat.take("/dawdle")
            assert desk.paper.lines[-1] == "waits until the command before it has ended; Esc stops both"
            assert desk.chat.interrupt()
            await asyncio.wait_for(desk.chat.finish(), _PATIENCE)
        finally:
            del registry.COMMANDS["dawdle"]
        await desk.chat.take("go")
        await desk.chat.finish()
        await desk.chat.take("/rename")
        assert desk.chat.asks_for_a_line
        assert desk.chat.interrupt()
        await desk.chat.finish()
        assert not desk.chat.busy and not desk.chat.interrupt()

    desk = sit(Desk("Hi."), talk)

    assert desk.paper.lines[-1] == "The title stays as it was."


def test_a_command_that_is_typed_while_another_runs_is_next() -> None:
    from agent_terminal_app.chat.commands import registry

    async def talk(desk: Desk) -> None:
        await desk.chat.ready()
        free, order = asyncio.Event(), list[str]()

        async def slow(_talk: object, _rest: str) -> None:
            await free.wait()
            order.append("slow")
            raise OSError("it broke")

        async def quick(_talk: object, rest: str) -> None:
            order.append(rest)

        registry.command("slow", "take long", group="The program")(slow)
        registry.command("quick", "take no time", group="The program")(quick)
        try:
            await desk.chat.take("/slow")
            await desk.chat.take("/quick 1")
            await desk.chat.take("/quick 2")
            assert order == []
            free.set()
            await asyncio.wait_for(desk.chat.finish(), _PATIENCE)
        finally:
            del registry.COMMANDS["slow"], registry.COMMANDS["quick"]
        assert order == ["slow", "1", "2"]
        assert not desk.chat.busy

    desk = sit(Desk(), talk)

    assert any("it broke" in line for line in desk.paper.lines)


def test_the_meters_know_the_window() -> None:
    async def talk(desk: Desk) -> None:
        await desk.chat.take("go")
        await desk.chat.finish()
        assert desk.chat.conversation is not None
        assert desk.chat.conversation.meters.part("context") == "context 100 (10%)"

    sit(Desk(Reply(text="x", usage={"input_tokens": 90, "output_tokens": 10})), talk)


async def completions(desk: Desk, text: str) -> list[Any]:
    """Complete a text in a thread, as the prompt does."""
    return await asyncio.to_thread(
        lambda: list(ChatCompleter(desk.chat).get_completions(Document(text), None))
    )


def test_commands_their_arguments_files_and_suggestions_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.py").touch()

    async def talk(desk: Desk) -> None:
        assert await completions(desk, "dea") == []  # nobody to ask yet
        await desk.chat.take("go")
        await desk.chat.finish()
        assert "/resume" in [one.text for one in await completions(desk, "/re")]
        assert [one.text for one in await completions(desk, "/agent ")] == ["a"]
        assert [one.text for one in await completions(desk, "/resume ")] == [desk.session_id]
        assert [(one.text, one.start_position) for one in await completions(desk, "see @mai")] == [
            ("@main.py", -4)
        ]
        (suggestion,) = await completions(desk, "dea")
        assert isinstance(suggestion, FeatureCompletion)
        assert suggestion.display_text == "dear\\x1b[2J" and suggestion.start_position == -3
        assert desk.chat.conversation is not None
        assert accepted(desk.chat.conversation, "dear", suggestion) == ("dear Sir,", 8)

    sit(Desk("Hi."), talk)


# Esc, at random


def script(number: int) -> list[Any]:
    """Return a conversation with everything in it: words, thoughts of tools, a retry, a question."""
    chooser = random.Random(number)
    words = Reply(chunks=[f"word{n} " for n in range(20)], delay=0.001)
    calls = Reply(
        chunks=["I call. "], delay=0.001, tool_calls=[ToolCall("slow", {"n": 1}), ToolCall("slow", {"n": 2})]
    )
    asks = Reply(tool_calls=[ToolCall("note", {"n": 3})])
    lines = [words, calls, asks, Busy("scripted", "stream_api", "busy")]
    return [chooser.choice(lines) for _ in range(4)]


def next_line(lines: Any, messages: Any) -> Any:
    return "The end." if messages[-1]["content"] == "What now?" else next(lines, "The end.")


def sendable(messages: Any) -> bool:
    """Say whether every call has its answer behind it, and every answer its call."""
    open_calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            if message.metadata["tool_call_id"] not in open_calls:
                return False
            open_calls.remove(message.metadata["tool_call_id"])
        elif open_calls:
            return False
        open_calls += [call["id"] for call in message.metadata.get("tool_calls") or ()]
    return not open_calls


@pytest.mark.parametrize(
    "batch", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in (1, 2, 3))]
)
def test_esc_at_any_moment_leaves_a_history_that_can_be_sent_and_repeats_nothing(batch: int) -> None:
    for number in range(batch, ROUNDS, 4):
        chooser = random.Random(number)

        async def talk(desk: Desk, chooser: random.Random = chooser) -> None:
            await desk.chat.ready()
            await desk.chat.take("go")
            for _ in range(chooser.randrange(60)):
                await asyncio.sleep(0)
            await asyncio.sleep(chooser.random() * 0.03)
            desk.chat.interrupt()
            async with asyncio.timeout(_PATIENCE):
                await desk.chat.finish()
            desk.chat.interrupt()  # a question, if one is open
            calls = list(desk.tools.calls)
            await desk.chat.take("What now?")
            async with asyncio.timeout(_PATIENCE):
                await desk.chat.finish()
            assert desk.tools.calls == calls
            session = desk.app.load_session(desk.session_id)
            assert sendable(session.messages), session.messages
            assert str(session.messages[-1].content) == "The end."
            assert [text for role, text in desk.said() if role == "user"][-1] == "What now?"
            assert len(set(calls)) == len(calls)

        sit(Desk(*itertools.repeat(partial(next_line, iter(script(number))), 20)), talk)
