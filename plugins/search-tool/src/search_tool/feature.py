"""The plugin: the tool `web_search`, which engine answers it, and what is missing if there is none.

Where no engine is set up, a provider that can search does it: the call of the tool is approved as any other,
and then the agent's model is asked, in a question of its own, to search for the words of the call.

With the engine `provider` by name, the provider searches within the conversation: the request says so, and
the tool is not offered. Nobody is asked about such searches, so a setting must name that engine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from agent_core import AgentError, Message
from agent_core.encoding import canonical
from agent_plugin_kit.settings import read_settings, setting, settings_schema
from agent_runtime.phases import Phase
from search_tool.engines import ADDRESSES, ENGINES, SearchError, search

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core.steps import Flow
    from agent_runtime.env import PluginRegistrar, Prompt
    from agent_runtime.phases import PhaseView

SEARCH: Final = "web_search"
SECTION: Final = "search_tool"
PROVIDER: Final = "provider"
CHOICES: Final = ("auto", *ENGINES, PROVIDER)
OWN_TOOLS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "anthropic": ("server_tools", {"type": "web_search_20250305", "name": SEARCH}),
    "gemini": ("server_tools", {"googleSearch": {}}),
    "openai_responses": ("builtin_tools", {"type": SEARCH}),
}
"""The providers that search themselves: the setting of the request, and what it says."""
MISSING: Final = (
    "no search engine is set up. The user can set one up: a SearXNG with `agent config set "
    "plugins.search_tool.search_url https://…`; Brave or Tavily with a key in the variable BRAVE_API_KEY or "
    "TAVILY_API_KEY, or with `agent keys set --own brave` and `agent config set "
    "plugins.search_tool.brave_api_key stored:brave`. A model of Anthropic, Google or OpenAI Responses "
    "searches by itself"
)
OWN_SEARCH: Final = (
    "Search the web for the words below, and answer with what you found: of each page its title, address "
    "and a sentence or two of what it says. Add nothing that you have not found.\n\n"
)
_VARIABLES: Final = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}
_MOST: Final = 20
_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": SEARCH,
        "description": (
            "Search the web. Returns titles, addresses and a few words of each page; fetch_url reads a page."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 400,
                    "description": "What to look for.",
                }
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of searching."""

    engine: str = setting(
        "auto", "Who searches: auto, searxng, brave, tavily or provider.", key="search_engine"
    )
    url: str = setting("", "The address of a SearXNG.", key="search_url", empty=True)
    brave_key: str = setting("", "The key of Brave Search.", key="brave_api_key", empty=True)
    tavily_key: str = setting("", "The key of Tavily.", key="tavily_api_key", empty=True)
    results: int = setting(8, "How many results.", key="search_results", at_least=1, at_most=_MOST)
    timeout: float = setting(20.0, "Seconds for a search.", key="search_timeout", above=0, at_most=600)

    def key_of(self, engine: str, environment: Mapping[str, str]) -> str:
        """Return the key of an engine; empty if there is none."""
        own = {"brave": self.brave_key, "tavily": self.tavily_key}.get(engine, "")
        return own or environment.get(_VARIABLES.get(engine, ""), "").strip()

    def chosen(self, environment: Mapping[str, str], provider: str = "") -> str:
        """Return the engine that searches; empty if there is none.

        Args:
            provider: The provider of the model, which may be able to search itself.
        """
        ready = {
            "searxng": bool(self.url),
            **{name: bool(self.key_of(name, environment)) for name in _VARIABLES},
        }
        if self.engine == "auto":
            own = PROVIDER if provider in OWN_TOOLS else ""
            return next((name for name, is_ready in ready.items() if is_ready), own)
        return self.engine if ready.get(self.engine, self.engine == PROVIDER) else ""


SCHEMA: Final = settings_schema(Settings)
SCHEMA["search_engine"]["enum"] = list(CHOICES)


class SearchTool:
    """Lets an agent search the web. It reaches out of the machine, so it is on only where it is listed.

    Args:
        addresses: Where engines are, for tests; by default where they are for everybody.
    """

    name = SECTION
    version = "0.1.0"
    default_enabled = False

    def __init__(self, addresses: Mapping[str, str] | None = None) -> None:
        self._addresses = addresses
        self._tools: dict[bytes, SearchTools] = {}

    def get_config_schema(self) -> dict[str, Any]:
        """Return the settings."""
        return SCHEMA

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the section that the plugin claims, with its schema."""
        return [(SECTION, {"type": "object", "additionalProperties": False, "properties": SCHEMA})]

    def register(self, registrar: PluginRegistrar) -> None:
        """Place the tool, and what has a provider search itself."""
        section = registrar.spec.section(SECTION)
        # The same object for the same settings, so that an agent that has not changed is not built again.
        tools = self._tools.setdefault(canonical(section), SearchTools(self._addresses, section))
        registrar.tool(SECTION, tools)
        if read_settings(Settings, section).engine == PROVIDER:
            registrar.request_transform(_by_the_provider)
        else:
            registrar.phase_hook(Phase.BEFORE_TOOL_EXECUTE, tools.ask_provider)
            registrar.phase_hook(Phase.RUN_END, tools.forget)


def _by_the_provider(prompt: Prompt, view: PhaseView) -> Prompt:
    """Have the provider search, if it can, in place of our tool."""
    own = OWN_TOOLS.get(view.run.model.provider)
    if own is None:
        return prompt
    setting_name, tool = own
    given = list(prompt.config.get(setting_name) or ())
    more = given if tool in given else [*given, dict(tool)]
    tools = tuple(one for one in prompt.tools if one.name != SEARCH)
    return replace(prompt, tools=tools, config={**prompt.config, setting_name: more})


class SearchTools:
    """The tool itself.

    Args:
        addresses: Where engines are; one that is given may be anywhere.
        section: The settings of the agent; those of a request come before them.
    """

    name = SECTION
    version = "0.1.0"
    parallel = True
    permission_whole = True

    def __init__(
        self, addresses: Mapping[str, str] | None = None, section: Mapping[str, Any] | None = None
    ) -> None:
        self._addresses = dict(addresses or {})
        self._section = dict(section or {})
        self._found: dict[tuple[str, str], dict[str, Any]] = {}  # what providers found, by run and call

    def get_config_schema(self) -> dict[str, Any]:
        """Return the settings."""
        return SCHEMA

    def init(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Read the settings once for all calls of a batch.

        Raises:
            ConfigError: If one does not fit.
        """
        settings = read_settings(Settings, {**self._section, **config})
        return {"settings": settings, "provider": str(config.get("provider") or "")}

    def ask_provider(self, view: PhaseView) -> Flow[None]:
        """Have the model's provider search for a call that was approved, if no engine is set up."""
        call, model = view.call, view.run.model
        settings = read_settings(Settings, self._section)
        if call is None or call.name != SEARCH or settings.chosen(os.environ, model.provider) != PROVIDER:
            return
        name, tool = OWN_TOOLS[model.provider]
        question = Message("user", OWN_SEARCH + _words(call.arguments))
        try:
            text = yield from view.run.ask([question], config={name: [dict(tool)]})
            found = {"success": True, "result": text or "Nothing was found.", "shown": _first_line(text)}
        except AgentError as error:
            found = {"success": False, "error": f"the search of the provider failed: {error}"}
        self._found[view.run.run_id, call.id] = found

    def forget(self, view: PhaseView) -> None:
        """Forget what was found for calls of a run that has ended."""
        for key in [key for key in self._found if key[0] == view.run.run_id]:
            self._found.pop(key, None)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the one tool."""
        return [_TOOL]

    async def execute_tool(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        state: Mapping[str, Any],
        *,
        tool_call: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Search; the model reads what is missing, or why it failed."""
        run_id = getattr((context or {}).get("run"), "run_id", "")
        if (found := self._found.pop((run_id, str((tool_call or {}).get("id"))), None)) is not None:
            return found
        settings: Settings = state["settings"]
        engine = settings.chosen(os.environ)
        if problem := _why_not(engine):
            return {"success": False, "error": problem}
        url = settings.url if engine == "searxng" else self._addresses.get(engine, ADDRESSES.get(engine, ""))
        try:
            pages = await search(
                engine,
                str(arguments.get("query")),
                settings.results,
                key=settings.key_of(engine, os.environ),
                url=url,
                seconds=settings.timeout,
                private=engine in self._addresses,
            )
        except SearchError as error:
            return {"success": False, "error": str(error)}
        lines = [f"{number}. {one.title}\n   {one.url}\n   {one.text}" for number, one in enumerate(pages, 1)]
        many = f"{len(pages)} {'result' if len(pages) == 1 else 'results'}" if pages else "nothing was found"
        shown = f"{many} by {ENGINES[engine].label}"
        return {"success": True, "result": "\n".join(lines) or "Nothing was found.", "shown": shown}

    def permission_subjects(self, tool_name: str, arguments: Mapping[str, Any]) -> list[str]:
        """Return the words that are sent."""
        return [_words(arguments)]

    def format_tool_call_preview(self, tool_name: str, arguments: Mapping[str, Any]) -> str:
        """Return what is looked for."""
        return f"Search the web: {_words(arguments)}"

    def format_tool_call_display(
        self, tool_name: str, arguments: Mapping[str, Any], state: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return what is sent, and to whom; of a call that would fail, why."""
        provider = state["provider"]
        engine = state["settings"].chosen(os.environ, provider)
        by_provider = engine == PROVIDER and provider in OWN_TOOLS
        if not by_provider and (problem := _why_not(engine)):
            return {"type": "text", "title": "refused", "content": problem, "refused": problem}
        who = f"by {provider}, which charges for it" if by_provider else f"by {ENGINES[engine].label}"
        return {"type": "text", "title": who, "content": str(arguments.get("query"))}

    def format_tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return what the model reads."""
        return {key: result[key] for key in ("success", "result", "error") if key in result}

    def to_display_format(self, text: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a person sees: how much was found."""
        return {"type": "text", "content": result.get("shown", text)}


def _words(arguments: Any) -> str:
    return " ".join(str((arguments or {}).get("query")).split())


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "nothing was found")


def _why_not(engine: str) -> str:
    if not engine:
        return MISSING
    if engine == PROVIDER:
        return f"the provider of this model cannot search, and {MISSING}"
    return ""
