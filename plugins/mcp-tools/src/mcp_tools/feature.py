"""The plugin: it places the tools of approved servers into runs, and lets a person approve them."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any, Final

from agent_core import ConfigError, plugin_config
from agent_plugin_kit.sandbox import SANDBOX_SCHEMA
from mcp_tools.actions import ACTIONS, STATUS, WAIT, approve_unseen, failed, run_action
from mcp_tools.connection import Pace
from mcp_tools.fleet import Fleet
from mcp_tools.settings import SCHEMA, SECTION, SECTION_SCHEMA, Settings
from mcp_tools.toolbox import Contents, Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from agent_core import Session
    from agent_runtime.env import PluginRegistrar
    from agent_runtime.specs import AgentSpec


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
            yield f"{BEGIN}{report.server.name}:{prompt.name}", report.server.name, prompt.fields


def _request(server: str, prompt: Mapping[str, Any]) -> str:
    names = [str(one.get("name", "")) for one in prompt.get("arguments", ())]
    given = f" with {', '.join(f'{name}=' for name in names)}" if names else ""
    return f"Use the prompt {prompt['name']!r} of the MCP server {server!r}{given}"


Dicts = list[dict[str, Any]]


class McpTools:
    """Gives agents the tools of MCP servers. It is on only where it is listed.

    Attributes:
        close: Ends all servers; called by itself when the plugin goes, or the process exits.
    """

    name = SECTION
    version = "0.1.0"
    default_enabled = False

    def __init__(self, pace: Pace | None = None) -> None:
        self._fleet = Fleet(pace or Pace())
        self._seen: Settings | None = None
        self._boxes: dict[tuple[Any, Path], Toolbox] = {}
        self.close: Callable[[], object] = weakref.finalize(self, self._fleet.close)

    def get_config_schema(self) -> dict[str, Any]:
        """Return the settings."""
        return SCHEMA

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the section that the plugin claims, with its schema."""
        return [(SECTION, SECTION_SCHEMA)]

    @staticmethod
    def own_paths(settings: Mapping[str, Any]) -> list[str]:
        """Return the file of approvals: no tool of a model may touch it."""
        return [str(Settings.read(settings).pins)]

    def register(self, registrar: PluginRegistrar) -> None:
        """Place the tools that are offered and approved now.

        Where an event loop runs, nobody waits for servers: the action before each request has done so.
        """
        settings = self._seen = Settings.read(_section(registrar.spec))
        if not _on_a_loop():
            self._fleet.wait(settings)
        registrar.tool(SECTION, self.toolbox(settings))

    def toolbox(self, settings: Settings) -> Toolbox:
        """Return what the servers offer now as a tool plugin; the same one as long as that is the same."""
        contents = Contents.of(self._fleet.reports(settings))
        key = (settings.servers, settings.pins)
        known = self._boxes.get(key)
        if known is None or known.contents != contents:
            known = self._boxes[key] = Toolbox(self._fleet, settings, contents)
        return known

    def get_completions(self, config: Mapping[str, Any], text: str) -> Dicts:
        """Suggest the prompts of servers to a person who begins a word with `mcp:`."""
        return prompt_completions(self._fleet, Settings.read(config), text)

    def get_ui_elements(self, config: Mapping[str, Any]) -> Dicts:
        """Return a button for the list of servers; what else can be done is offered from there."""
        return [{"ui_type": "session_action", "label": "MCP servers", "action_id": STATUS}]

    def get_actions(self) -> Dicts:
        """Offer to look, to approve, to revoke and to connect anew; wait for servers before each request."""
        return ACTIONS

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Run an action; the answer says what cannot be done."""
        try:
            settings = Settings.read(plugin_config((context or {}).get("config") or {}, SECTION))
            return run_action(self._fleet, settings, action_id, params)
        except ConfigError as error:
            return failed("config", str(error))
        except OSError as error:
            return {"status": "ok"} if action_id == WAIT else failed("system", f"the system refused: {error}")

    def approve(self, server: str, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Approve a server as it is now: its start, and everything that it offers then.

        For front ends that have shown all that themselves, and for tests. Nothing that a model or a server
        says leads here.

        Args:
            server: Its name.
            config: The settings; by default those of the agent that was last made ready.

        Raises:
            ValueError: If there is no such server.
        """
        settings = self._seen if config is None else Settings.read(config)
        found = None if settings is None else settings.server(server)
        if settings is None or found is None:
            raise ValueError(f"there is no server {server!r} among those that are declared and on")
        return approve_unseen(self._fleet, settings, found)


def _section(spec: AgentSpec) -> dict[str, Any]:
    """Return the settings of an agent, with what it says about the sandbox, as a request has them."""
    sandbox = {
        key: value
        for name in (*(name for name in spec.sections if name != "config"), "config")
        for key, value in spec.section(name).items()
        if key in SANDBOX_SCHEMA
    }
    return {**spec.section(SECTION), **sandbox}


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
