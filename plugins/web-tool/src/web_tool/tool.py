"""The plugin: the tool that it offers, and how calls of it are previewed, permitted, run and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core import lazy
from web_tool import reach
from web_tool.settings import SCHEMA, VERSION, Settings
from web_tool.urls import FetchError, read_url

if TYPE_CHECKING:
    from collections.abc import Mapping


FETCH = "fetch_url"
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": FETCH,
        "description": (
            "Read a web page. HTML is returned as Markdown-like text, JSON and plain text as they are, small"
            " pictures as pictures. Long pages come in parts. Pages that need a login or a browser cannot be"
            " read."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "The address, with http:// or https://."},
                "start": {
                    "type": "integer",
                    "minimum": 0,
                    "default": 0,
                    "description": "The character of the text to begin with, for the next part of a page.",
                },
            },
            "required": ["url"],
            "additionalProperties": False,
        },
    },
}


class WebTool:
    """Reads pages of the public web for an agent.

    It reaches out of the machine, so it is on only where it is listed.

    Args:
        look_up: Finds the addresses of hosts; by default the system does.
    """

    name = "web_tool"
    version = VERSION
    default_enabled = False
    parallel = True

    def __init__(self, look_up: reach.LookUp = reach.look_up) -> None:
        self._look_up = look_up

    def get_config_schema(self) -> dict[str, Any]:
        """Return the settings."""
        return SCHEMA

    def config_schemas(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the same as a schema for the section of an agent."""
        return [(self.name, {"type": "object", "properties": SCHEMA, "additionalProperties": False})]

    def init(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Read the settings once for all calls of a batch.

        Raises:
            ConfigError: If one does not fit.
        """
        return {"settings": Settings.read(config)}

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the one tool."""
        return [_TOOL]

    async def execute_tool(
        self, tool_name: str, arguments: Mapping[str, Any], state: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Read a page; the model reads why a page cannot be read."""
        from web_tool import answers, fetch

        settings: Settings = state["settings"]
        try:
            url, start = _read_arguments(tool_name, arguments)
            answer = await fetch.fetch(read_url(url), reach.Reach(settings, self._look_up))
        except FetchError as error:
            return answers.failed(str(error))
        if isinstance(answer, fetch.Moved):
            return answers.moved(answer)
        return await lazy.asyncio.to_thread(answers.of_page, answer, settings, start)

    def permission_subjects(self, tool_name: str, arguments: Mapping[str, Any]) -> list[str]:
        """Return the URL in the one spelling in which it is also requested."""
        return [_plain_url(arguments)]

    def format_tool_call_preview(self, tool_name: str, arguments: Mapping[str, Any]) -> str:
        """Return what is read, in the spelling that is requested: a look-alike letter in a host shows."""
        start = arguments.get("start")
        return f"Read {_plain_url(arguments)}" + (f" from character {start}" if start else "")

    def permission_suggestions(self, tool_name: str, arguments: Mapping[str, Any]) -> list[str]:
        """Return what could be granted for longer: every page of the same server."""
        try:
            url = read_url(str(arguments.get("url")))
        except FetchError:
            return []
        return [f"{str(url).removesuffix(url.target)}/*"]

    def format_tool_call_display(
        self, tool_name: str, arguments: Mapping[str, Any], state: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the whole URL with the host apart; of a call that would fail, why."""
        try:
            url = read_url(str(arguments.get("url")))
            reach.Reach(state["settings"], self._look_up).check_known(url)
        except FetchError as error:
            return {"type": "text", "title": "refused", "content": str(error), "refused": str(error)}
        return {"type": "text", "title": url.host, "content": str(url)}

    def format_tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result, with a picture as a part of its own."""
        picture = result.get("picture")
        if picture is None:
            return {key: result[key] for key in ("success", "result", "error") if key in result}
        return {"type": "tool_result", "text": result["result"], "parts": [{"type": "image", **picture}]}

    def to_display_format(self, text: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a person sees: what was read, not all of its text."""
        return {"type": "text", "content": result.get("shown", text)}


def _read_arguments(tool_name: str, arguments: Mapping[str, Any]) -> tuple[str, int]:
    """Return URL and start; the schema was checked before, unless somebody calls past the core."""
    url, start = arguments.get("url"), arguments.get("start", 0)
    if tool_name != FETCH or not isinstance(url, str):
        raise FetchError(f"call {FETCH} with a url, a text")
    if isinstance(start, bool) or not isinstance(start, int) or start < 0:
        raise FetchError("start must be a whole number from 0 on")
    return url, start


def _plain_url(arguments: Mapping[str, Any]) -> str:
    """Return the URL in its plain spelling; one that has none is refused later, so it is shown as it is."""
    given = str(arguments.get("url"))
    try:
        return str(read_url(given))
    except FetchError:
        return " ".join(given.split())
