"""Suggestions for a person who types: the prompts that servers have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_tools.fleet import Fleet
    from mcp_tools.settings import Settings

BEGIN: Final = "mcp:"


def prompt_completions(fleet: Fleet, settings: Settings, text: str) -> list[dict[str, Any]]:
    """Return the prompts that the last word of *text* may mean; choosing one asks the model to use it."""
    begun = text.rpartition(" ")[2]
    if not begun.startswith(BEGIN):
        return []
    return [
        {
            "replacement": _request(server, prompt),
            "start": -len(begun),
            "display": name,
            "display_meta": prompt.get("description", ""),
        }
        for name, server, prompt in _prompts(fleet, settings)
        if name.startswith(begun)
    ]


def _prompts(fleet: Fleet, settings: Settings) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for report in fleet.reports(settings):
        for prompt in report.judgement.of_kind("prompt"):
            yield f"{BEGIN}{report.server.name}:{prompt.name}", report.server.name, prompt.told


def _request(server: str, prompt: Mapping[str, Any]) -> str:
    names = [str(one.get("name", "")) for one in prompt.get("arguments", ())]
    told = f" with {', '.join(f'{name}=' for name in names)}" if names else ""
    return f"Use the prompt {prompt['name']!r} of the MCP server {server!r}{told}"
