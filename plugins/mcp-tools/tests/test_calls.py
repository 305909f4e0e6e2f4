"""Calls of a server that is made with the SDK, over stdio and over HTTP."""

from __future__ import annotations

import json
import resource
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import Cancellation
from agent_core.product import USER_AGENT, VERSION
from agent_testing import ScriptedServer, error_reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import World

NAMES = (
    "echo",
    "fail",
    "slow",
    "count",
    "picture",
    "weigh",
    "weigh_twice",
    "huge",
    "environment",
    "get.page",
)


@pytest.fixture(scope="module", params=["stdio", "http"])
def tea(request: Any, tmp_path_factory: pytest.TempPathFactory, new_world: type[World]) -> Iterator[World]:
    """One server for all tests of this file, in each of the ways to reach one."""
    world = new_world(tmp_path_factory.mktemp("tea"))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TEA_TOKEN", "leaf")
        environment.setenv("OTHER_SECRET", "hidden")
        if request.param == "stdio":
            world.polite("tea", world.described(*NAMES), more=True, env={"MINE": "env:TEA_TOKEN"})
        else:
            headers = {"X-Key": "env:TEA_TOKEN"}
            world.elsewhere("tea", world.described(*NAMES), more=True, headers=headers)
        world.approve()
        yield world
        world.close()


def test_the_trace_of_a_call_goes_along(tea: World) -> None:
    class Run:
        def trace_of(self, call_id: str | None) -> dict[str, str]:
            return {"traceparent": f"00-{call_id}"}

    toolbox = tea.plugin.toolbox(tea.settings)
    context = {"run": Run(), "tool_call_id": "c1"}

    *_, result = toolbox.stream_tool("tea__echo", {"text": "trace"}, context=context)

    assert result["result"] == "00-c1"


def test_the_tools_are_offered_under_the_servers_name(tea: World) -> None:
    offered = tea.offered()

    assert [name for name in offered if not name.startswith("tea__get_page_")] == [
        "tea__count", "tea__echo", "tea__environment", "tea__fail", "tea__huge", "tea__picture", "tea__slow",
        "tea__weigh", "tea__weigh_twice", "mcp_read_resource", "mcp_get_prompt",
    ]  # fmt: skip
    schemas = tea.plugin.toolbox(tea.settings).get_tool_schemas()
    assert schemas[1] == {
        "name": "tea__echo",
        "description": "Does echo.",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
    }


def test_a_name_that_no_provider_takes_has_an_alias_and_works(tea: World) -> None:
    [schema] = [
        one for one in tea.plugin.toolbox(tea.settings).get_tool_schemas() if "get_page" in one["name"]
    ]

    assert schema["description"].endswith("The server 'tea' calls it 'get.page'.")
    assert tea.call(schema["name"], text="x") == {"success": True, "result": '{"text": "x"}'}


def test_arguments_arrive_and_the_answer_comes_back(tea: World) -> None:
    arguments = {"text": "grün\n", "deep": {"list": [1, 2.5, None, True]}}

    assert json.loads(tea.call("tea__echo", **arguments)["result"]) == arguments


def test_a_failure_is_the_tools_own(tea: World) -> None:
    assert tea.call("tea__fail") == {"success": False, "error": "no such page"}


def test_progress_is_shown_while_it_runs(tea: World) -> None:
    *parts, result = tea.stream("tea__count", to=3)

    assert [item["part"] for item in parts] == [
        {"type": "progress", "progress": number, "total": 3, "message": f"step {number}"}
        for number in (1, 2, 3)
    ]
    assert result == {"success": True, "result": "counted"}


def test_pictures_stand_beside_the_text(tea: World) -> None:
    result = tea.call("tea__picture")
    said = tea.plugin.toolbox(tea.settings).format_tool_result(result)

    assert result["success"] is True
    assert isinstance(said, dict)
    assert said["text"].splitlines() == [
        "A pixel.",
        "[audio of type audio/wav, 15 bytes, left out]",
        "[resource memo://page]",
        "a page",
        "[resource memo://link (link)]",
    ]
    assert [part["type"] for part in said["parts"]] == ["text", "image", "text", "text", "text"]
    assert said["parts"][1]["mime_type"] == "image/png"


def test_structured_content_is_read_once(tea: World) -> None:
    assert json.loads(tea.call("tea__weigh")["result"]) == {"grams": 5}
    assert tea.call("tea__weigh_twice")["result"] == '{"grams": 5}'


def test_a_huge_answer_is_refused_and_the_next_call_works(tea: World) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    result = tea.call("tea__huge", bytes=50_000_000)

    assert result["success"] is False
    assert "ask for less" in result["error"] or "event" in result["error"].lower()
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 120_000  # kB
    assert tea.call("tea__echo", text="x")["success"] is True


def test_an_answer_of_some_megabytes_is_fine(tea: World) -> None:
    assert len(tea.call("tea__huge", bytes=3_000_000)["result"]) == 3_000_000


def test_cancelling_reaches_the_server(tea: World, tmp_path: Path) -> None:
    mark, token = tmp_path / "mark", Cancellation()
    results: list[dict[str, Any]] = []
    waiting = tea.stream("tea__slow", mark=str(mark), cancellation=token)
    thread = threading.Thread(target=lambda: results.extend(waiting))
    thread.start()
    tea.until(mark.exists)

    token.cancel()
    thread.join(60)

    assert results == [{"success": False, "error": "it was cancelled; it may have run in part"}]
    tea.until(lambda: mark.read_text() == "cancelled")


def test_what_is_cancelled_before_it_begins_does_not_begin(tea: World, tmp_path: Path) -> None:
    token = Cancellation()
    token.cancel()

    [result] = tea.stream("tea__slow", mark=str(tmp_path / "mark"), cancellation=token)

    assert result["success"] is False
    assert tea.call("tea__echo", text="x")["success"] is True
    assert not (tmp_path / "mark").exists()


def test_resources_are_listed_and_read(tea: World) -> None:
    assert json.loads(tea.call("mcp_read_resource")["result"]) == {
        "tea": [{"name": "tea", "uri": "memo://tea"}]
    }
    assert tea.call("mcp_read_resource", server="tea", uri="memo://tea") == {
        "success": True,
        "result": "[resource memo://tea]\nall about memo://tea",
    }
    assert "say which server: tea" in tea.call("mcp_read_resource", uri="memo://tea")["error"]
    assert "no server 'coffee'" in tea.call("mcp_read_resource", server="coffee")["error"]


def test_prompts_are_listed_and_got(tea: World) -> None:
    listed = json.loads(tea.call("mcp_get_prompt", server="tea")["result"])
    assert listed["tea"][0]["name"] == "greet"

    got = tea.call("mcp_get_prompt", server="tea", name="greet", arguments={"who": "Ada"})
    assert got == {"success": True, "result": "[user]\nGreet Ada."}
    assert tea.call("mcp_get_prompt", server="tea", name="greet")["success"] is False


def test_prompts_are_suggested_to_whoever_types_their_name(tea: World) -> None:
    [suggestion] = tea.plugin.get_completions(tea.config, "please mcp:tea:g")

    assert suggestion["replacement"] == "Use the prompt 'greet' of the MCP server 'tea' with who="
    assert suggestion["start"] == -len("mcp:tea:g")
    assert tea.plugin.get_completions(tea.config, "please greet") == []
    assert tea.plugin.get_completions(tea.config, "mcp:coffee") == []


def test_a_server_does_not_see_our_secrets(tea: World) -> None:
    if "url" in tea.servers["tea"]:
        pytest.skip("it is not ours to start")
    told = json.loads(tea.call("tea__environment")["result"])

    assert told["env"]["MINE"] == "leaf"
    assert "OTHER_SECRET" not in told["env"]
    assert "TEA_TOKEN" not in told["env"]
    assert told["cwd"] == str(tea.folder)


def test_a_server_that_answers_in_one_piece_has_the_same_limit(world: World) -> None:
    world.elsewhere("tea", world.described("huge", "echo"), "--json")
    world.approve()

    result = world.call("tea__huge", bytes=50_000_000)

    assert "it sent more than 8388608 bytes: ask for less at a time" in result["error"]
    assert world.call("tea__echo", text="x")["success"] is True


def test_a_call_that_takes_too_long_is_given_up(world: World, tmp_path: Path) -> None:
    world.elsewhere("tea", world.described("slow"), timeout=1)
    world.approve()

    result = world.call("tea__slow", mark=str(tmp_path / "mark"))

    assert result["error"] == "there was no answer within 1 seconds; it may have run in part"
    world.until(lambda: (tmp_path / "mark").read_text() == "cancelled")


def test_previews_name_the_server_and_the_tool(tea: World) -> None:
    box = tea.plugin.toolbox(tea.settings)

    assert box.format_tool_call_preview("tea__echo", {"text": "a\nb"}) == "tea: echo(text='a\\nb')"
    assert len(box.format_tool_call_preview("tea__echo", {"text": "x" * 500})) == 120
    assert box.format_tool_call_display("tea__echo", {"text": "ä"}) == {
        "type": "code",
        "language": "json",
        "title": "echo of MCP server tea",
        "content": '{\n  "text": "ä"\n}',
    }


@pytest.mark.parametrize(("declared", "said"), [({}, USER_AGENT), ({"user-agent": "tea/1"}, "tea/1")])
def test_a_server_elsewhere_reads_who_asks(
    declared: dict[str, str], said: str, new_world: type[World], tmp_path: Path
) -> None:
    world = new_world(tmp_path)
    with ScriptedServer(otherwise=error_reply(500, "no")) as server, closing(world):
        world.servers["tea"] = {"url": server.url, "headers": declared}
        world.approve()
        world.offered()
        [asked, *_] = server.requests

    assert asked.headers["user-agent"] == said
    assert {"name": "keelwork", "version": VERSION} in asked.json["params"]["_meta"].values(), asked.json
