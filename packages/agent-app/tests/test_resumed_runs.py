"""A request with an id of its own goes on in another process, wherever the first one died."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = textwrap.dedent('''
    """Talk in a session until the process dies, or the agent is done; print the events."""
    import json, os, sys
    from agent_app import AgentApplication
    from agent_core.testing import Reply, ScriptedProvider, ToolCall

    folder, idempotent, dies_at, text = sys.argv[1], sys.argv[2] == "yes", sys.argv[3], sys.argv[4]

    def answer(messages):
        done = [m["content"] for m in messages if m["role"] == "tool"]
        if not done:
            return Reply(tool_calls=[ToolCall("note", {"word": w}, f"c_{w}") for w in ("one", "two")])
        return Reply(text=" / ".join(done))

    class Notes:
        name, version, parallel = "notes", "1", False
        def get_tool_schemas(self):
            parameters = {"type": "object", "properties": {"word": {"type": "string"}}}
            return [{"type": "function", "function": {"name": "note", "parameters": parameters}}]
        def execute_tool(self, tool_name, arguments, context):
            with open(f"{folder}/effects", "a") as effects:
                print(arguments["word"], context["idempotency_key"], file=effects)
            if dies_at == arguments["word"]:
                os._exit(9)
            return {"success": True, "result": f"noted {arguments['word']}"}

    Notes.idempotent = idempotent
    config = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
    app = AgentApplication(
        config, store=f"sqlite:///{folder}/app.db", installed=False,
        plugins=[ScriptedProvider([answer] * 9), Notes],
    )
    if not any(True for _ in app.store):
        app.create_session(session_id="s")
    for event in app.chat("s", text, run_id="r", take_over=True):
        print(json.dumps({"type": event["type"], "text": event.get("text", "")}), flush=True)
        if dies_at == event["type"]:
            os._exit(9)
''')


def talk(folder: Path, *, idempotent: bool, dies_at: str = "", text: str = "") -> list[dict[str, Any]]:
    arguments = [str(folder), "yes" if idempotent else "no", dies_at, text]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == (9 if dies_at else 0), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def effects(folder: Path) -> list[str]:
    return (folder / "effects").read_text().splitlines()


def test_a_call_that_does_no_harm_twice_is_run_again_under_the_same_key(tmp_path: Path) -> None:
    talk(tmp_path, idempotent=True, dies_at="two", text="Note.")

    events = talk(tmp_path, idempotent=True)

    assert events[-1] == {"type": "final", "text": "noted one / noted two"}
    first, second, again = effects(tmp_path)
    assert first.startswith("one r.0:c_one")
    assert again == second == "two r.0:c_two"


def test_another_call_is_not_run_again_and_the_model_is_told(tmp_path: Path) -> None:
    talk(tmp_path, idempotent=False, dies_at="one", text="Note.")

    events = talk(tmp_path, idempotent=False)

    said = events[-1]["text"]
    assert "It may have run" in said
    assert "noted two" in said  # it had not begun, so it is run now
    assert [line.split()[0] for line in effects(tmp_path)] == ["one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("dies_at", ["step_start", "tool_call_start", "tool_call_result", "step_end", "text"])
def test_nothing_is_lost_or_said_twice_wherever_it_died(tmp_path: Path, dies_at: str) -> None:
    talk(tmp_path, idempotent=True, dies_at=dies_at, text="Note.")

    events = talk(tmp_path, idempotent=True)

    assert events[-1] == {"type": "final", "text": "noted one / noted two"}
    assert {line.split()[0] for line in effects(tmp_path)} == {"one", "two"}


def test_a_request_that_is_over_does_nothing_again(tmp_path: Path) -> None:
    whole = talk(tmp_path, idempotent=True, text="Note.")

    again = talk(tmp_path, idempotent=True)

    assert again == [{"type": "final", "text": "noted one / noted two"}] == whole[-1:]
    assert len(effects(tmp_path)) == 2
