"""The gallery: ten programs of at most 80 lines, each run as it is with a scripted model."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi.testclient import TestClient
from IPython.core.interactiveshell import InteractiveShell
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent
from agent_testing import ScriptedServer, chat_reply

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))


def load(name: str) -> Any:
    """Import an example as the program that it is."""
    spec = importlib.util.spec_from_file_location(f"example_{Path(name).stem}", EXAMPLES / name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def calling(tool: str, /, **arguments: object) -> Reply:
    return Reply(tool_calls=[ToolCall(tool, arguments)])


def test_there_are_ten_short_programs_and_the_gallery_shows_each() -> None:
    page = (ROOT / "docs" / "gallery" / "index.md").read_text(encoding="utf-8")

    assert len(PROGRAMS) == 10
    for program in [*PROGRAMS, *EXAMPLES.glob("components/*.py")]:
        text = program.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 80, program.name
        assert text in page, f"{program.name} is not in docs/gallery/index.md as it is: run tools/gallery.py"


def test_fastapi_and_sse() -> None:
    example = load("fastapi_sse.py")
    example.agent = Agent(ScriptedProvider(["Hello.", Reply(chunks=["Hel", "lo."])]))
    client = TestClient(example.app)

    assert client.get("/ask", params={"question": "Hi"}).json()["output"] == "Hello."
    body = client.get("/stream", params={"question": "Hi"}).text
    events = [json.loads(data) for data in re.findall(r"^data: (.*)$", body, re.MULTILINE)]
    assert "".join(event["text"] for event in events if event["type"] == "text") == "Hello."
    assert events[-1]["type"] == "run_end"


def test_notebook(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shell: Any = InteractiveShell()  # type: ignore[no-untyped-call]
    cells = [
        "\n".join(line for line in cell.splitlines() if not line.startswith("# "))
        for cell in re.split(r"^# %%.*$", (EXAMPLES / "notebook.py").read_text(), flags=re.MULTILINE)
    ]
    script: list[Any] = [calling("price", drink="tea"), "3.50", calling("price", drink="coffee"), "4.00"]
    monkeypatch.setitem(shell.user_ns, "get_ipython", lambda: shell)

    for number, cell in enumerate(filter(str.strip, cells)):
        assert shell.run_cell(cell).success
        if number == 0:
            barista = shell.user_ns["barista"]
            shell.user_ns["barista"] = Agent(ScriptedProvider(script), tools=[shell.user_ns["price"]])
            assert isinstance(barista, Agent)

    shown = capsys.readouterr().out
    assert "[price(drink='tea')]\n3.50\n" in shown
    assert "[price(drink='coffee')]\n4.00\n" in shown
    assert shell.user_ns["result"].text == "4.00"


def test_coding_agent(tmp_path: Path) -> None:
    example = load("coding_agent.py")
    (tmp_path / "add.py").write_text("def add(a, b):\n    return a - b\n")
    fixed = "def add(a, b):\n    return a + b\n"
    check = [sys.executable, "-c", "import add; assert add.add(1, 2) == 3"]
    script: list[Any] = [
        calling("read_file", name="add.py"),
        calling("read_file", name="../secret"),
        calling("write_file", name="add.py", content=fixed),
        calling("run", command=check),
        "It adds now.",
    ]
    asked: list[str] = []

    said = example.work(
        ScriptedProvider(script),
        "Fix it.",
        tmp_path,
        lambda text: asked.append(text) or True,  # type: ignore[func-returns-value]
    )

    assert (said, (tmp_path / "add.py").read_text()) == ("It adds now.", fixed)
    assert len(asked) == 2


def test_research_with_delegates() -> None:
    example = load("research.py")
    both = [ToolCall("delegate_librarian", {"prompt": f"What is {it}?"}) for it in ("tea", "coffee")]
    report = {"summary": "Both are drinks.", "sources": ["tea", "coffee"]}
    lead = ScriptedProvider([Reply(tool_calls=both), calling("final_result", **report)])
    librarian = ScriptedProvider(
        [calling("look_up", entry="tea"), calling("look_up", entry="coffee"), "Read.", "Read."]
    )

    result = example.research(lead, librarian, "Compare tea and coffee.")

    assert result.output == example.Report("Both are drinks.", ["tea", "coffee"])
    assert len(librarian.requests) == 4


def test_typed_extraction() -> None:
    example = load("typed_extraction.py")
    lines = [{"what": "Green tea", "price": 4.5}, {"what": "cups", "price": 12.0}]
    wrong = {"number": "A-17", "lines": lines[:1], "total": 16.5}
    right = {"number": "A-17", "lines": lines, "total": 16.5}
    model = ScriptedProvider([calling("final_result", **wrong), calling("final_result", **right)])

    invoice = example.extractor(model).run(example.TEXT).output

    assert (invoice.number, len(invoice.lines), invoice.total) == ("A-17", 2, 16.5)
    assert "add up to 4.50" in model.requests[1].native_messages[-1]["content"]


def test_mcp_tools(tmp_path: Path) -> None:
    example = load("mcp_tools_agent.py")
    model = ScriptedProvider([calling("kitchen__brew", leaves="assam"), "Here you are."])
    shown: list[str] = []

    said = example.serve_tea(
        {"provider": "scripted"},
        [model],
        tmp_path,
        lambda text: shown.append(text) or True,  # type: ignore[func-returns-value]
    )

    assert said == "Here you are."
    assert model.requests[1].native_messages[-1]["content"] == "a cup of assam"
    assert "kitchen.py" in shown[0] and "Brew tea." in shown[1]


def test_overnight_with_an_approval(tmp_path: Path) -> None:
    example = load("overnight.py")
    model = {"provider": "scripted"}
    database = tmp_path / "overnight.db"
    with example.open_app(
        database, model, [ScriptedProvider([calling("send_mail", text="New tea!")])]
    ) as app:
        session = example.evening(app, "Tell all customers.")
        assert example.SENT == []
    with example.open_app(database, model, [ScriptedProvider(["Everybody knows."])]) as app:
        said = example.morning(app, session)

    assert (said, example.SENT) == ("Everybody knows.", ["New tea!"])


def test_replay_in_tests(tmp_path: Path) -> None:
    (tmp_path / "replay.py").write_text((EXAMPLES / "replay.py").read_text())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "replay.py"]
    with ScriptedServer(otherwise=chat_reply("It is 42.")) as server:
        env = {**os.environ, "BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "a secret key"}
        recorded = subprocess.run(
            [*command, "--agent-record"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
    replayed = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    [recording] = tmp_path.glob("recordings/**/*.json")

    assert recorded.returncode == 0, recorded.stdout
    assert replayed.returncode == 0, replayed.stdout  # the server is gone by now
    assert "3 passed" in replayed.stdout
    assert "a secret key" not in recording.read_text()


def test_tracing() -> None:
    example = load("tracing.py")
    spans = InMemorySpanExporter()

    said = example.traced(
        ScriptedProvider([calling("look_up", word="tea"), "A drink."]), "What is tea?", spans
    )

    assert said == "A drink."
    assert {"invoke_agent scout", "execute_tool look_up"} <= {
        span.name for span in spans.get_finished_spans()
    }


def test_custom_provider() -> None:
    example = load("custom_provider.py")

    assert Agent(example.Backwards).run("tea of cup a").output == "a cup of tea"
