"""The three programs of the first hour run as printed, on a scripted server and on the embedded model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agent_runtime import OutputNotProduced
from agent_runtime.assembly import find_provider
from agent_testing import ScriptedServer, ToolCall, chat_reply

PAGE = Path(__file__).parents[1] / "docs" / "tutorial" / "first-hour.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
PROGRAMS = {name: BLOCKS[place] for name, place in (("extractor", 1), ("clerk", 4), ("handoff", 7))}


def run(name: str, model: object) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "example", "MODEL": model}
    exec(compile(PROGRAMS[name], name, "exec", dont_inherit=True), namespace)
    return namespace


class Served:
    """A provider of a real wire format whose server plays a script."""

    def __init__(self, server: ScriptedServer) -> None:
        plugin, _ = find_provider("openai_compatible")
        self._inner: Any = plugin() if isinstance(plugin, type) else plugin
        self._config = {"base_url": f"{server.url}/v1", "api_key": "k", "model": "m"}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def init(self, config: Any) -> Any:
        return self._inner.init({**config, **self._config})


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_ten_lines(name: str) -> None:
    lines = [line for line in PROGRAMS[name].splitlines() if line.strip() and "import" not in line]

    assert len(lines) <= 10


def called(name: str, **arguments: Any) -> Any:
    return chat_reply(tool_calls=[ToolCall(name, arguments)])


def test_the_extractor_on_a_server() -> None:
    # The server's models have structured outputs of their own, so that the answer is JSON and no call.
    answers = ['{"number": "17", "total": 90}', '{"number": "A-17", "total": 90}']
    with ScriptedServer(*(chat_reply(answer) for answer in answers)) as server:
        invoice = run("extractor", Served(server))["invoice"]

        assert "json_schema" in str(server.requests[0].json["response_format"])

        assert (invoice.number, invoice.total) == ("A-17", 90.0)
        assert "numbers begin with A-" in str(server.requests[1].json["messages"])


def test_the_clerk_on_a_server() -> None:
    with ScriptedServer(called("orders", status="open"), chat_reply("Tea is open.")) as server:
        assert run("clerk", Served(server))["answer"] == "Tea is open."
        assert "tea" in str(server.requests[1].json["messages"])


def test_the_handoff_on_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer(called("transfer_to_refunds"), chat_reply("Your money is back.")) as server:
        result = run("handoff", Served(server))["stream"].result

    assert (result.output, result.agent) == ("Your money is back.", "refunds")
    assert "[desk hands over to refunds]" in capsys.readouterr().out


def test_the_embedded_model_serves_the_extractor_as_far_as_it_can() -> None:
    """Its sampler holds it to the schema; whether the number is right is too much to ask of it."""
    pytest.importorskip("local_llama_provider")
    refused = None
    try:
        invoice = run("extractor", "local")["invoice"]
    except OutputNotProduced as error:
        refused = error
    else:
        assert isinstance(invoice.total, float)

    assert refused is None or "numbers begin with A-" in str(refused)


def test_the_embedded_model_serves_the_clerk() -> None:
    pytest.importorskip("local_llama_provider")
    silent = None
    try:
        assert run("clerk", "local")["answer"]
    except OutputNotProduced as error:
        silent = error

    assert silent is None or silent.result.usage.requests
