"""The tool as the platform uses it: through the core, under permission rules, with a person watching."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_core import AgentCore, Cancellation, ConfigError
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent, BuildError
from web_tool import WebTool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import Reading, Site, Sites

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
PIXEL = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CONFIG = {"enabled_plugins": ["web_tool"], "web_allow_private": ["127.0.0.1"]}


def call(url: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "call_1", "name": "fetch_url", "input": {"url": url, **more}}


@pytest.fixture
def core() -> AgentCore:
    core = AgentCore()
    core.register_tool(WebTool)
    return core


def picture(body: bytes, content_type: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def test_it_is_off_unless_listed(core: AgentCore) -> None:
    assert core.get_available_tools({}) == []
    assert [tool.name for tool in core.get_available_tools(CONFIG)] == ["fetch_url"]


def test_a_page_is_read_with_and_without_an_event_loop(core: AgentCore, serve: Sites) -> None:
    site = serve({"*": PAGE})

    [waited] = core.execute_tool_calls([call(site.url)], CONFIG)
    [awaited] = asyncio.run(core.execute_tool_calls_async([call(site.url)], CONFIG))

    assert waited == awaited
    assert f'<web_page url="{site.url}/">\nhello\n</web_page>' in waited["content"]
    assert waited["metadata"]["display"] == {
        "type": "text",
        "content": f"{site.url}/\ntext/plain, characters 0 to 5",
    }
    assert waited["tool_result"]["text"] == waited["content"]


def test_a_failure_is_marked_as_one(core: AgentCore) -> None:
    [message] = core.execute_tool_calls([call("http://10.0.0.1/")], CONFIG)

    assert message["metadata"]["error"] == {"type": "tool_failed"}
    assert message["content"].startswith("10.0.0.1 is a private address")
    assert message["tool_result"]["is_error"] is True


@pytest.mark.parametrize("arguments", [{}, {"url": 5}, {"url": "x", "start": -1}, {"url": "x", "more": 1}])
def test_arguments_that_do_not_fit_are_told(core: AgentCore, arguments: dict[str, Any]) -> None:
    made = {"type": "tool_use", "id": "call_1", "name": "fetch_url", "input": arguments}

    [message] = core.execute_tool_calls([made], CONFIG)

    assert message["metadata"]["error"] == {"type": "invalid_arguments"}


@pytest.mark.parametrize(
    "arguments", [{}, {"url": None}, {"url": "http://a/", "start": "x"}, {"url": "x", "start": True}]
)
def test_a_call_past_the_core_does_not_raise_either(arguments: dict[str, Any]) -> None:
    tool = WebTool()

    result = asyncio.run(tool.execute_tool("fetch_url", arguments, tool.init({})))

    assert result["success"] is False


# Pictures


def test_a_small_picture_is_shown(core: AgentCore, serve: Sites) -> None:
    site = serve({"*": picture(PIXEL, "image/png")})

    [message] = core.execute_tool_calls([call(site.url)], CONFIG)

    assert message["content"] == f"The picture at {site.url}/ (image/png, {len(PIXEL)} bytes)."
    shown = message["tool_result"]["parts"][-1]
    assert shown["mime_type"] == "image/png"
    assert b64decode(shown["data"]) == PIXEL


@pytest.mark.parametrize(
    ("content_type", "settings"),
    [
        ("image/png", {"web_max_image_bytes": len(PIXEL) - 1}),
        ("text/plain", {"web_max_image_bytes": 10}),
    ],
)
def test_a_large_picture_is_only_named(
    content_type: str, settings: dict[str, Any], serve: Sites, read: Reading
) -> None:
    site = serve({"*": picture(PIXEL, content_type)})

    result = read(site.url, **settings)

    assert "picture" not in result
    assert result["result"] == (
        f"{site.url}/ is image/png, {len(PIXEL)} bytes: a picture too large to be shown."
    )


@pytest.mark.parametrize(
    ("content_type", "settings"),
    [("text/plain", {"web_content_types": ["text/*"]}), ("image/png", {"web_max_image_bytes": 0})],
)
def test_a_picture_that_nobody_wants_is_only_named(
    content_type: str, settings: dict[str, Any], serve: Sites, read: Reading
) -> None:
    site = serve({"*": picture(PIXEL, content_type)})

    result = read(site.url, **settings)

    assert result["result"] == f"{site.url}/ is image/png, {len(PIXEL)} bytes: no text, and cannot be shown."


# Before it runs


@pytest.mark.parametrize(
    ("url", "subject"),
    [
        ("HTTPS://Docs.Python.org:443/3/../3.13/#x", "https://docs.python.org/3.13/"),
        ("https://bücher.example", "https://xn--bcher-kva.example/"),
        ("no address", "no address"),
        ("http://a\r\n.example/", "http://a .example/"),
    ],
)
def test_rules_and_people_see_the_spelling_that_is_requested(url: str, subject: str) -> None:
    tool = WebTool()

    assert tool.permission_subjects("fetch_url", {"url": url}) == [subject]
    assert tool.format_tool_call_preview("fetch_url", {"url": url}) == f"Read {subject}"


def test_somebody_who_decides_sees_the_host_apart() -> None:
    tool = WebTool()
    state = tool.init({})

    shown = tool.format_tool_call_display("fetch_url", {"url": "https://аpple.com/login?x=1"}, state)  # noqa: RUF001
    assert shown == {
        "type": "text",
        "title": "xn--pple-43d.com",
        "content": "https://xn--pple-43d.com/login?x=1",
    }
    refused = tool.format_tool_call_display("fetch_url", {"url": "http://0x7f.1/"}, state)
    assert refused is not None
    assert "odd spelling" in refused["content"]


@pytest.mark.parametrize(
    ("url", "settings", "why"),
    [
        ("http://127.0.0.1:9/x", {}, "127.0.0.1 is a loopback address"),
        ("http://localhost:8000/", {}, "localhost leads to 127.0.0.1, a loopback address"),
        ("http://[::1]/", {}, "::1 is a loopback address"),
        ("https://8.8.8.8:2222/", {}, "port 2222 of 8.8.8.8 is not allowed"),
        ("https://evil.example/", {"web_deny_hosts": ["evil.example"]}, "the settings do not allow"),
    ],
)
def test_nobody_is_asked_about_an_address_that_is_refused_anyway(
    url: str, settings: dict[str, Any], why: str
) -> None:
    tool = WebTool()

    shown = tool.format_tool_call_display("fetch_url", {"url": url}, tool.init(settings))

    assert shown is not None
    assert shown["refused"].startswith(why)


def test_a_place_that_the_settings_list_can_be_allowed() -> None:
    tool = WebTool()
    state = tool.init({"web_allow_private": ["127.0.0.1", "localhost"]})

    for url in ("http://127.0.0.1:9/x", "http://localhost:8000/x"):
        shown = tool.format_tool_call_display("fetch_url", {"url": url}, state)
        assert shown is not None and "refused" not in shown


def test_every_page_of_a_server_can_be_granted() -> None:
    tool = WebTool()

    assert tool.permission_suggestions("fetch_url", {"url": "https://tea.example/a?b=c"}) == [
        "https://tea.example/*"
    ]
    assert tool.permission_suggestions("fetch_url", {"url": "no address"}) == []


def test_a_preview_tells_which_part_is_read(core: AgentCore) -> None:
    assert core.format_tool_call_preview(call("http://a.example", start=40), CONFIG) == {
        "id": "call_1",
        "preview": "Read http://a.example/ from character 40",
    }


# Permissions


def two_sites(serve: Sites) -> tuple[Site, Site]:
    other = serve({"*": PAGE})
    moved = f"HTTP/1.1 302 Found\r\nLocation: {other.url}/\r\nContent-Length: 0\r\n\r\n".encode()
    return serve({"/docs/go": moved, "*": PAGE}), other


def run(site: Site, urls: Sequence[str]) -> list[str]:
    """Return what the model reads of calls for these URLs, under a rule that allows only /docs/ of a site."""
    model = ScriptedProvider(
        [Reply(tool_calls=[ToolCall("fetch_url", {"url": url}) for url in urls]), "Done."]
    )
    agent = Agent(
        model,
        plugins={"web_tool": WebTool},
        sections={
            "web_tool": {"web_allow_private": ["127.0.0.1"]},
            "permissions": {"allow": [f"fetch_url({site.url}/docs/*)"], "default": "deny"},
        },
    )
    result = agent.run("Read.")
    return [message["content"] for message in result.messages if message["role"] == "tool"]


def test_a_rule_for_a_place_holds_whatever_the_spelling(serve: Sites) -> None:
    site, other = two_sites(serve)

    contents = run(
        site,
        [
            f"{site.url}/docs/a",
            f"{site.url}/x/../docs/b",
            f"{site.url}/docs/../secret",
            f"{site.url}/docs/%2e%2e/secret",
            f"{site.url}/docs/..%2fsecret",
            f"{site.url}/docs\\..\\secret",
            f"http://{site.url.removeprefix('http://')}@{other.url.removeprefix('http://')}/docs/",
            f"{other.url}/docs/",
        ],
    )

    assert ["hello" in content for content in contents] == [True, True] + [False] * 6
    assert sorted(request.target for request in site.requests) == ["/docs/a", "/docs/b"]  # side by side
    assert other.connections == 0


def test_a_redirect_does_not_lead_past_a_rule(serve: Sites) -> None:
    site, other = two_sites(serve)

    told, refused = run(site, [f"{site.url}/docs/go", f"{other.url}/"])

    assert f"has moved to {other.url}/ (status 302)" in told
    assert "not allowed" in refused
    assert other.connections == 0


# Settings


def test_a_section_that_does_not_fit_stops_the_agent_from_being_built() -> None:
    sections = {"web_tool": {"web_timeout": "soon"}}

    with pytest.raises(BuildError, match=r"web_tool\.web_timeout: \"soon\" is not of type"):
        Agent(ScriptedProvider([]), plugins={"web_tool": WebTool}, sections=sections)


def test_a_configuration_that_does_not_fit_is_an_error_of_it(core: AgentCore) -> None:
    with pytest.raises(ConfigError, match="web_ports"):
        core.get_available_tools({**CONFIG, "web_ports": [0]})


# Giving up


async def stalls(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nhalf")
    await asyncio.Event().wait()


def test_a_token_closes_the_connection_of_a_caller_that_waits(core: AgentCore, serve: Sites) -> None:
    site = serve({"*": stalls})
    token = Cancellation()
    stream = core.iter_tool_messages([call(site.url)], CONFIG, cancellation=token)
    found: list[Any] = []
    reading = threading.Thread(target=lambda: found.extend(stream))
    reading.start()
    site.wait_for(lambda site: len(site.requests) == 1)

    token.cancel()

    reading.join(60)
    assert found[-1]["metadata"]["interrupted"] is True
    site.wait_until_left()


def test_a_token_closes_the_connection_of_a_caller_on_a_loop(core: AgentCore, serve: Sites) -> None:
    site = serve({"*": stalls})
    token = Cancellation()

    async def read_and_give_up() -> list[Any]:
        waiting = asyncio.to_thread(site.wait_for, lambda site: len(site.requests) == 1)
        giving_up = asyncio.ensure_future(waiting)
        giving_up.add_done_callback(lambda _: token.cancel())
        stream = core.iter_tool_messages_async([call(site.url)], CONFIG, cancellation=token)
        return [event async for event in stream]

    [message] = asyncio.run(read_and_give_up())

    assert message["metadata"]["interrupted"] is True
    site.wait_until_left()


def test_a_tool_that_is_given_up_by_the_platform_lets_go(core: AgentCore, serve: Sites) -> None:
    site = serve({"*": stalls})

    [message] = core.execute_tool_calls([call(site.url)], {**CONFIG, "tool_timeouts": {"fetch_url": 0.5}})

    assert message["metadata"]["error"] == {"type": "timeout"}
    site.wait_until_left()


# What it costs


def test_what_is_heavy_is_loaded_when_a_page_is_read() -> None:
    script = (
        "import sys; import web_tool; web_tool.WebTool().init({});"
        "print(sorted({'aiohttp', 'lxml', 'idna', 'asyncio', 'charset_normalizer'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


# In an application


def test_an_application_hands_its_settings_to_the_tool_and_shows_the_call(serve: Sites) -> None:
    site = serve({"*": PAGE})
    config = {
        "agents": {"reader": {"model": "m", "plugin_ids": ["web_tool"]}},
        "models": {"m": {"provider": "scripted"}},
        "plugins": {"web_tool": {"web_allow_private": ["127.0.0.0/8"], "web_max_characters": 100}},
    }
    script: list[Any] = [Reply(tool_calls=[ToolCall("fetch_url", {"url": site.url})]), "It says hello."]
    plugins = [ScriptedProvider(script), WebTool]
    with AgentApplication(config, plugins=plugins, installed=False) as app:
        events = list(app.chat(app.create_session().session_id, "Read it.", stream=False))

    [begun] = [event for event in events if event["type"] == "tool_call_start"]
    [message] = [message for message in events[-1]["messages"] if message["role"] == "tool"]
    assert begun["preview"] == f"Read {site.url}/"
    assert begun["display"] == {"type": "text", "title": "127.0.0.1", "content": f"{site.url}/"}
    assert "\nhello\n</web_page>" in message["content"]
