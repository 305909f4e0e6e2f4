"""What the events of a run look like: on a screen with a line that changes, and in a pipe."""

from __future__ import annotations

from typing import Any

import pytest

from agent_terminal_app.chat.rendering.displays import display_lines, display_summary
from agent_terminal_app.chat.rendering.folds import Excerpt, Folds, fold_lines
from agent_terminal_app.chat.rendering.progress import Progress
from agent_terminal_app.chat.rendering.renderer import Renderer, error_lines
from agent_terminal_app.rows import cells


class Paper:
    """A screen that keeps its lines."""

    def __init__(self, *, live: bool = False, width: int | None = None) -> None:
        self.color = False
        self.is_live = live
        self.width = width
        self.lines: list[str] = []

    def line(self, text: str = "") -> None:
        self.lines.append(text)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Desk:
    """A renderer with everything around it."""

    def __init__(self, *, live: bool = True, width: int | None = 60) -> None:
        self.paper = Paper(live=live, width=width)
        self.clock = Clock()
        self.progress = Progress(clock=self.clock)
        self.folds = Folds()
        self.renderer = Renderer(self.paper, self.folds, self.progress)
        self.progress.begin()

    def show(self, kind: str, **fields: Any) -> None:
        self.renderer.show({"type": kind, **fields})

    def call(self, name: str = "clock", **fields: Any) -> None:
        about = {"arguments": {}, "preview": f"{name}()", "display": None, **fields}
        self.show("tool_call_start", call_id="c1", name=name, **about)

    def result(self, content: str = "12:00", *, is_error: bool = False, **metadata: Any) -> None:
        message = {"role": "tool", "content": content, "metadata": metadata}
        self.show(
            "tool_call_result", call_id="c1", name="clock", is_error=is_error, seconds=0.14, message=message
        )


def test_a_tool_call_is_one_line_when_it_is_done_and_is_seen_while_it_runs() -> None:
    desk = Desk()

    desk.call()
    assert desk.paper.lines == []
    assert desk.progress.lines() == ["⚙ clock()"]
    desk.show("tool_call_partial", call_id="c1", name="clock", part="first\nsecond line\n")
    desk.clock.now = 2.0
    assert desk.progress.lines() == ["⚙ clock() 2 s │ second line"]
    desk.result()
    assert desk.paper.lines == ["✓ clock() → 12:00 (0.1 s) [1]"]
    assert desk.progress.lines() == []


def test_without_a_line_that_changes_the_beginning_is_a_line_as_well() -> None:
    desk = Desk(live=False, width=None)

    desk.call()
    desk.result("it failed", is_error=True)

    assert desk.paper.lines == ["⚙ clock()", "  ✗ it failed (0.1 s) [1]"]


def test_a_line_of_a_call_fits_however_long_its_parts_are() -> None:
    desk = Desk(width=40)

    desk.call(preview="x" * 200)
    desk.result("日本" * 100)

    (line,) = desk.paper.lines
    assert line.startswith("✓ xxxx") and "… → 日本" in line and line.endswith("… [1]")
    assert len(line) < 40


@pytest.mark.parametrize(
    ("display", "line"),
    [
        ({"type": "text", "content": "first\nsecond"}, "first"),
        ({"type": "text", "content": "first\nsecond", "single_line": True}, "first second"),
        ({"type": "text", "content": "first\nsecond", "single_line": "2 lines"}, "2 lines"),
        ({"type": "diff", "content": "--- a\n+++ b\n@@ @@\n-x\n+y\n+z\n"}, "2 lines added, 1 removed"),
        ({"type": "json", "content": {"a": [1]}}, '{"a": [1]}'),
    ],
)
def test_the_line_of_a_result_is_what_its_tool_wants_shown(display: dict[str, Any], line: str) -> None:
    desk = Desk()

    desk.call()
    desk.result("what the model reads", display=display)

    assert desk.paper.lines[0] == f"✓ clock() → {line} (0.1 s) [1]"
    assert display_summary(display) == line


def test_a_diff_is_shown_below_its_call_up_to_a_length() -> None:
    desk = Desk()
    diff = "".join(f"+line {number}\n" for number in range(30))

    desk.call(display={"type": "diff", "content": diff})
    desk.result()

    assert desk.paper.lines[1:3] == ["    +line 0", "    +line 1"]
    assert len(desk.paper.lines) == 22
    assert desk.paper.lines[-1] == "    … 10 more lines [1]"


def test_a_call_opens_to_arguments_output_result_and_duration() -> None:
    desk = Desk()
    desk.call(arguments={"zone": "UTC"})
    desk.show("tool_call_partial", call_id="c1", name="clock", part={"type": "text", "text": "asking\n"})
    desk.result()

    fold = desk.folds.find()

    assert fold is not None
    assert fold_lines(fold, width=60, color=False) == [
        "[1] clock()", "  arguments", "    {", '      "zone": "UTC"', "    }", "  output", "    asking",
        "  result, 0.1 s", "    12:00",
    ]  # fmt: skip


def test_what_is_thought_is_folded_and_can_be_opened() -> None:
    desk = Desk()

    desk.show("reasoning", text="Let me see.\n")
    desk.show("reasoning", text="It is noon.")
    desk.clock.now = 3.0
    assert desk.progress.lines() == ["… thinking 3 s │ It is noon."]
    desk.show("text", text="Noon.\n")

    assert desk.paper.lines == ["… thought: 3.0 s, 23 characters [1]", "Noon."]
    fold = desk.folds.find(1)
    assert fold is not None
    assert fold_lines(fold, width=60, color=False)[1:] == ["Let me see.", "It is noon."]


def test_the_older_folds_can_be_found_too() -> None:
    folds = Folds()
    first, second = folds.think(), folds.think()

    assert folds.find() is second
    assert folds.before(second.number) is first
    assert folds.before(first.number) is None
    assert folds.find(99) is None


def test_a_retry_counts_down_and_says_if_the_answer_begins_anew() -> None:
    desk = Desk(width=200)

    desk.show("text", text="half an ans")
    desk.show(
        "retry", attempt=2, of=4, seconds=5.0, message="busy", model="m", category="transient", discarded=True
    )
    desk.clock.now = 2.0

    assert desk.paper.lines == [
        "half an ans",
        "… busy; again in 5 s (retry 2 of 4, Esc stops); the answer starts over",
    ]
    assert desk.progress.lines() == ["… trying again in 3 s"]


def test_an_error_has_cause_next_step_and_request_id() -> None:
    told = {"message": "no key", "next_step": "set one", "request_id": "req_1", "notes": ["b: no key either"]}

    assert error_lines(told) == ["Error: no key", "  b: no key either", "  set one", "  request req_1"]


def test_the_model_is_seen_writing_a_call() -> None:
    desk = Desk()

    desk.show("tool_call_args", index=0, call_id="c1", name="write", arguments='{"text": "')
    desk.show("tool_call_args", index=0, call_id="c1", name=None, arguments="x" * 1000)
    assert desk.progress.lines() == ["… writing a call of write │ 1,010 characters"]
    desk.call("write")
    assert desk.progress.lines() == ["⚙ write()"]


def test_what_a_delegate_does_is_seen_in_the_line_of_its_call() -> None:
    desk = Desk()
    desk.call("research")

    for part in (
        {"type": "text", "text": "Look"},
        {"type": "text", "text": "ing\n"},
        {"type": "usage", "usage": {}},
    ):
        desk.show("tool_call_partial", call_id="c1", name="research", part=part)
    assert desk.progress.lines() == ["⚙ research() │ Looking"]
    desk.show(
        "tool_call_partial",
        call_id="c1",
        name="research",
        part={"type": "tool_call_start", "preview": "read(x)"},
    )
    assert desk.progress.lines() == ["⚙ research() │ ⚙ read(x)"]


def test_the_state_says_how_long_which_step_and_how_to_stop() -> None:
    desk = Desk()
    desk.show("step_start", round=2)
    desk.clock.now = 75.0

    assert desk.progress.state() == "working 1 min 15 s · step 2 · Esc stops"
    desk.progress.stop()
    assert desk.progress.state() == "stopping …"


@pytest.mark.parametrize(
    ("payload", "lines"),
    [
        ({"type": "code", "content": "a\n\tb"}, ["a", "    b"]),
        ({"type": "markdown", "content": "- x"}, ["• x"]),
        ({"type": "table", "content": [{"a": 1, "b": 2}]}, ["a │ b", "──┼──", "1 │ 2"]),
        ({"type": "table", "columns": ["n"], "rows": [[1], [2]]}, ["n", "─", "1", "2"]),
        ({"type": "table", "content": "no table"}, ["no table"]),
        ({"type": "json", "content": {"a": 1}}, ["{", '  "a": 1', "}"]),
        ({"type": "image", "mime_type": "image/png"}, ["[image/png]"]),
        ({"type": "text", "content": "\x1b[31mx\x1b[2J"}, ["x\\x1b[2J"]),
    ],
)
def test_displays_by_their_type(payload: dict[str, Any], lines: list[str]) -> None:
    assert display_lines(payload, width=40, color=False) == lines


def test_a_diff_is_read_by_its_marks_and_has_colours_besides() -> None:
    payload = {"type": "diff", "content": "@@ -1 +1 @@\n-old\n+new\n same"}

    assert display_lines(payload, width=40, color=False) == ["@@ -1 +1 @@", "-old", "+new", " same"]
    assert display_lines(payload, width=40, color=True)[1:3] == ["\x1b[31m-old\x1b[0m", "\x1b[32m+new\x1b[0m"]


def test_of_a_long_output_the_beginning_and_the_end_are_kept() -> None:
    kept = Excerpt()
    for number in range(200_000):
        kept.add(f"line {number}\n")

    text = str(kept)
    assert len(text) < 70_000
    assert text.startswith("line 0\n") and text.endswith("line 199999\n")
    assert "characters left out" in text
    assert kept.last_line() == "line 199999"
    assert kept.length == sum(len(f"line {number}\n") for number in range(200_000))


@pytest.mark.parametrize(
    ("pieces", "line"),
    [
        (["a", "b"], "ab"),
        (["a\n", "b"], "b"),
        (["a\nb\n"], "b"),
        (["10 %\r", "20 %"], "20 %"),
        (["a\n\n"], "a"),
    ],
)
def test_the_last_line_that_was_printed(pieces: list[str], line: str) -> None:
    kept = Excerpt()
    for piece in pieces:
        kept.add(piece)

    assert kept.last_line() == line


def test_of_work_that_says_much_the_last_words_are_seen() -> None:
    progress = Progress(clock=lambda: 0.0)
    progress.do("a", "⚙ Ask the helper about green tea")
    progress.tell("a", " ".join(f"word{number}" for number in range(40)), front="step 1 · ")
    progress.do("b", "⚙ Read")
    progress.tell("b", "short")

    for width in (40, 80):
        helper, read = progress.lines(width)
        assert helper.startswith("⚙ Ask the help") and " │ step 1 · …" in helper
        assert helper.endswith("word39") and cells(helper) <= width
        assert read == "⚙ Read │ short"
    assert cells(progress.lines(1)[0]) <= 1
