"""The agent's `results` section: how much of a result the model reads, and the tool that pages."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core import ToolInteropRegistry
from agent_core.frozen import thaw
from agent_runtime.large_results.cutting import Content, cut
from agent_runtime.large_results.keeping import READ_RESULT, read_page
from agent_runtime.large_results.telling import LEFT_OUT, told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_runtime.env import Prompt
    from agent_runtime.phases import CallView, PhaseView
    from agent_runtime.registrar import PluginRegistrar

SECTION = "results"
DEFAULT_TOKENS = 10_000
_BYTES_PER_TOKEN = 3
_PAGE_SHARE = 0.8  # a page and its frame together must fit the budget
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "tokens": {
            "type": "integer",
            "minimum": 500,
            "default": DEFAULT_TOKENS,
            "description": "About how many tokens of one result the model reads, its images included.",
        }
    },
}


class LargeResultsPlugin:
    """Keeps results within the budget of the agent's `results` section."""

    name = "large_results"
    version = "1"

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the section that the plugin claims, with its schema."""
        return [(SECTION, thaw(_SCHEMA))]

    def register(self, registrar: PluginRegistrar) -> None:
        """Place the limit, and the tool that reads what went beyond it."""
        budget = registrar.spec.section(SECTION).get("tokens", DEFAULT_TOKENS)
        registrar.result_transform(partial(limited, budget))
        registrar.request_transform(offered_when_needed)
        registrar.tool(READ_RESULT, ReadResult(int(budget * _PAGE_SHARE) * _BYTES_PER_TOKEN))


def offered_when_needed(prompt: Prompt, _view: PhaseView) -> Prompt:
    """Return the prompt without the tool that pages, unless there is something to page through."""
    if any(message.metadata.get(LEFT_OUT) for message in prompt.messages if message.role == "tool"):
        return prompt
    return replace(prompt, tools=tuple(tool for tool in prompt.tools if tool.name != READ_RESULT))


_INTEROP = ToolInteropRegistry.default()


def limited(
    budget: int, message: dict[str, Any], call: CallView, context: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a tool message that fits *budget* tokens; what goes beyond is kept in the session's assets."""
    if call.name == READ_RESULT:  # its pages fit, and cutting them would only make more of them
        return message
    result = _INTEROP.inspect_result(message["tool_result"])
    content = Content.of(result.text, result.parts)
    return (
        message if content.tokens <= budget else told(message, call, content, cut(content, budget), context)
    )


_INTEROP = ToolInteropRegistry.default()


class ReadResult:
    """The tool that reads what was left out, a page at a time.

    Args:
        page: How many bytes a page has.
    """

    name = READ_RESULT
    version = "1"
    parallel = True
    stateless = True

    def __init__(self, page: int) -> None:
        self._page = page

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the schema of the tool."""
        properties = {
            "id": {"type": "string", "description": "The id that stands where something was left out."},
            "start": {"type": "integer", "minimum": 0, "description": "The byte at which to begin."},
        }
        parameters = {"type": "object", "properties": properties, "required": ["id"]}
        about = "Read what was left out of a tool's result because it was too large."
        function = {"name": READ_RESULT, "description": about, "parameters": parameters}
        return [{"type": "function", "function": function}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ARG002
        """Read a page."""
        page = read_page(context, arguments["id"], arguments.get("start", 0), self._page)
        return {"success": True, "page": page}

    def format_tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the page as the model reads it: text, or an image."""
        page: dict[str, Any] = result["page"]
        return page
