"""A coding task of sixty steps: the model looks, writes, edits and runs checks, and a person watches."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import ToolCall
from agent_testing import chat_reply

if TYPE_CHECKING:
    from agent_terminal_app.testing.home import Home
    from agent_testing import ReceivedRequest, ScriptedServer, ServerReply

MODULES = 14
CHECK = "python3 check.py"


def steps() -> list[tuple[str, dict[str, Any]]]:
    """Return what the model does: for each module it writes, runs the check, reads, edits."""
    made: list[tuple[str, dict[str, Any]]] = [
        ("list_files", {"path": "."}),
        ("read_file", {"path": "check.py"}),
    ]
    for number in range(MODULES):
        path = f"src/part{number}.py"
        made += [
            ("write_file", {"path": path, "content": f"VALUE = {number + 1}\n"}),
            ("shell", {"command": CHECK}),
            ("read_file", {"path": path}),
            ("edit_file", {"path": path, "old": f"VALUE = {number + 1}", "new": f"VALUE = {number}"}),
        ]
    return [*made, ("shell", {"command": CHECK}), ("search_files", {"pattern": "VALUE", "path": "src"})]


@pytest.mark.parametrize("columns", [40, 100, 200])
def test_sixty_steps_with_three_questions(home: Home, server: ScriptedServer, columns: int) -> None:
    home.set('[sandbox]\nmode = "off"\n')
    (home.project / "check.py").write_text(
        "import pathlib, sys\n"
        "parts = sorted(pathlib.Path('src').glob('part*.py'))\n"
        "wrong = [p.name for p in parts if p.read_text() != f'VALUE = {p.stem[4:]}\\n']\n"
        "print('wrong:', *wrong) if wrong else print('all', len(parts), 'are right')\n"
        "sys.exit(bool(wrong))\n"
    )
    work = steps()
    assert len(work) == 60
    for number, (tool, arguments) in enumerate(work):
        server.play(chat_reply(tool_calls=[ToolCall(tool, arguments, f"c{number}")], usage=None))
    server.play(chat_reply("Sixty steps, all checked.", usage=None))

    with home.chat(columns=columns) as chat:
        chat.type("Write the parts and check them.\r")
        for question in ("? Write src/part0.py", f"? $ {CHECK}", "? Edit src/part0.py"):
            chat.expect(question)
            chat.expect_line("your answer")
            chat.type("a")
        chat.expect("Sixty steps, all checked.")
        chat.expect_line("ready")
        text = chat.text

    assert text.count("[y] yes, once") == 3
    assert "exit code 1" in text and f"all {MODULES} are right" in text and "Error" not in text
    assert sorted(one.read_text() for one in (home.project / "src").iterdir()) == sorted(
        f"VALUE = {number}\n" for number in range(MODULES)
    )
    # What a provider can cache stays the same from the first request to the last.
    assert len(server.requests) == 61
    assert len({str(one.json["messages"][0]) for one in server.requests}) == 1
    assert len({str(one.json["tools"]) for one in server.requests}) == 1


def test_a_kill_in_the_middle_of_sixty_steps_loses_nothing_and_enter_continues(
    home: Home, server: ScriptedServer
) -> None:
    home.set('[sandbox]\nmode = "off"\n[permissions]\nallow = ["shell", "write_file", "edit_file"]\n')
    (home.project / "check.py").write_text("print('fine')\n")
    work = steps()
    middle = work.index(("shell", {"command": CHECK}), len(work) // 2)
    work[middle] = ("shell", {"command": "echo $$ > pid; exec sleep 1000"})

    def model(request: ReceivedRequest) -> ServerReply:
        done = [one for one in request.json["messages"] if one["role"] == "tool"]
        if len(done) == len(work):
            return chat_reply("Sixty steps, all checked.", usage=None)
        tool, arguments = work[len(done)]
        return chat_reply(tool_calls=[ToolCall(tool, arguments, f"c{len(done)}")], usage=None)

    server.play(*[model] * 80)
    pid = home.project / "pid"

    with home.chat() as chat:
        chat.type("Write the parts and check them.\r")
        chat.wait(lambda: pid.exists() and pid.read_text().strip(), "the step in the middle")
        chat.signal(signal.SIGKILL)
        chat.end()
    os.kill(int(pid.read_text()), signal.SIGKILL)
    with home.chat("--continue") as chat:
        chat.expect("» Write the parts and check them.")
        chat.expect(f"  … {middle} tool calls")
        chat.expect("!   $ echo $$ > pid; exec sleep 1000: may have run, in part or completely")
        chat.expect("! Enter continues.")
        chat.expect_line("ready")
        chat.type("\r")
        chat.expect("Sixty steps, all checked.")
        chat.expect_line("ready")

    told = [one["content"] for one in server.requests[-1].json["messages"] if one["role"] == "tool"]
    assert len(told) == 60
    assert [place for place, words in enumerate(told) if "may have run" in words] == [middle]
    assert len(list((home.project / "src").iterdir())) == MODULES
