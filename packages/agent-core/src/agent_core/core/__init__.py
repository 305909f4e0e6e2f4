"""`AgentCore`: everything that a program asks of the core.

Each part of it is a module here. What front ends ask, which plugins are on and why, settings, elements to
show and completions, is on this page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core import ui
from agent_core.config import read_config
from agent_core.core.actions import Actions
from agent_core.core.requests import Requests, ToolCalls
from agent_core.core.sessions import Sessions
from agent_core.errors import PluginError
from agent_core.frozen import Dicts, JsonObject, thaw
from agent_core.pipeline.actions import open_host
from agent_core.pipeline.request import enabled_plugin_ids
from agent_core.session import Session

if TYPE_CHECKING:
    from agent_core.plugin.base import Problems


class AgentCore(Sessions, Requests, ToolCalls, Actions):
    """A stateless pipeline: sessions and configurations go in, new sessions come out.

    A core holds registered plugins and nothing that belongs to a request, so one core serves any
    number of requests at once, in threads and on event loops.

    Args:
        model_cache: Where discovered models are remembered; pass one to several cores to share it.
    """

    def get_plugins_for_config(self, config: JsonObject) -> dict[str, list[str]]:
        """Return the names of the plugins that are on, under providers, extensions, features, tools."""
        names: dict[str, list[str]] = thaw(enabled_plugin_ids(self._resolve(config)))
        return names

    def explain_plugins(self, config: JsonObject) -> Dicts:
        """Return for every registered plugin whether it is on and why, and what it does wrong.

        Each has `plugin`, `kind`, `enabled`, `reason`, `detail`, `round` and `problems`, a list of lines.
        """
        found = self.get_plugin_problems(config)
        return [
            {
                **decision.to_dict(),
                "problems": [
                    f"{one['hook']} {one['problem']}" for one in found if one["plugin"] == decision.plugin
                ],
            }
            for decision in self._resolve(config).decisions
        ]

    def get_plugin_problems(self, config: JsonObject) -> Dicts:
        """Return what plugins do wrong that costs nobody but themselves: `plugin`, `hook` and `problem`.

        Every registered plugin is asked for its settings, and those that are on for their elements and
        their actions.
        """
        resolution = self._resolve(config, provider_optional=True)
        problems: Problems = []
        for plugin in self._registry:
            plugin.get_config_schema(problems)
        request = self._request("get_plugin_problems", Session(""), resolution, None)
        for ask in (
            lambda: ui.ui_schema(self, resolution, problems),
            lambda: open_host(request).actions(problems),
        ):
            try:
                ask()
            except PluginError as error:  # a hook that everybody needs: it is named, and the rest is asked
                problems.append(error)
        return list({str(one): _described(one) for one in problems}.values())

    def check_config(self, config: JsonObject) -> list[str]:
        """Return what the configuration's author should know: keys misspelt, plugins that are not there.

        Raises:
            ResolveError: If a request with it could not even begin.
        """
        return list(self._resolve(config).warnings)

    def get_config_schema(self) -> Dicts:
        """Return a descriptor for every configuration key of every registered plugin."""
        return ui.config_schema(self._registry)

    def get_ui_schema(self, config: JsonObject) -> Dicts:
        """Return what the enabled plugins want a front end to show."""
        if not any(True for _ in self._registry):
            read_config(config)
            return []
        return ui.ui_schema(self, self._resolve(config, provider_optional=True))

    def get_completions(self, config: JsonObject, text: str) -> Dicts:
        """Return what features suggest for the text before the cursor."""
        return ui.completions(self._registry.features, read_config(config), text)

    def apply_feature_completion(self, config: JsonObject, text: str, completion: JsonObject) -> str:
        """Return what an accepted completion becomes, or an empty string if no feature cares."""
        return ui.apply_completion(self._registry.features, read_config(config), text, completion)

    def get_template(self, config: JsonObject) -> str:
        """Return the template of the first feature that has one, or an empty string."""
        return ui.template(self._registry.features, read_config(config))


def _described(problem: PluginError) -> JsonObject:
    return {"plugin": problem.plugin, "hook": problem.hook, "problem": problem.problem}
