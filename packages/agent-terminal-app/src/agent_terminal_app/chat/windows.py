"""How many tokens fit into a model, for the meter: as declared, else as its provider has told.

Nobody is asked for it. It stands in the list of models that the request was made with, in the settings of a
provider that runs the model itself, or in what was kept when somebody connected the provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_terminal_app.told_windows import is_window, kept_window, told_window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app import AgentApplication
    from agent_runtime import ResolvedAgent

_SETTING = "context_size"
"""What it is called in the settings of a provider that runs the model itself, and chooses it."""


class Windows:
    """The windows of an application's models.

    Args:
        app: Knows the models.
    """

    def __init__(self, app: AgentApplication) -> None:
        self._app = app
        self._found: dict[str, int | None] = {}

    def known(self, model_id: str) -> int | None:
        """Return a window, if it is known without looking for it."""
        spec = self._app.runtime.registries.models.get(model_id)
        declared = None if spec is None else spec.context_window
        return declared or self._found.get(model_id)

    def was_looked_for(self, model_id: str) -> bool:
        """Say whether there is nothing more to find out."""
        return model_id in self._found or self.known(model_id) is not None

    def find(self, agent_id: str, model_id: str) -> int | None:
        """Return the window of a model that an agent uses; called in a thread, since files are read."""
        if not self.was_looked_for(model_id):
            self._found[model_id] = self._look(agent_id, model_id)
        return self.known(model_id)

    def _look(self, agent_id: str, model_id: str) -> int | None:
        try:
            agent = self._app.runtime.resolve(agent_id)
            return next(_told(agent, _config(agent, model_id)), None)
        except AgentError:  # an agent that cannot run; the meter does without
            return None


def _config(agent: ResolvedAgent, model_id: str) -> dict[str, Any]:
    """Return the settings with which an agent asks a model."""
    other = agent.models.get(model_id)
    return dict(agent.config if other is None else other.config)


def _told(agent: ResolvedAgent, config: dict[str, Any]) -> Iterator[int]:
    """Yield what anybody tells of the window, the surest first."""
    from agent_terminal_app.paths import Paths

    found, model = agent.core.resolve(config), str(config.get("model") or "")
    yield from _listed(found.models, model)
    provider = found.provider.provider
    own = config.get(_SETTING) or provider.get_config_schema().get(_SETTING, {}).get("default")
    if is_window(own):
        yield own
    base_url = str(config.get("base_url") or "")
    kept = kept_window(Paths.of_this_user(), provider.name, base_url, model)
    if kept is not None:
        yield kept


def _listed(models: Any, wanted: str) -> Iterator[int]:
    for model in models:
        is_meant = model.get("id", model.get("name")) == wanted or len(models) == 1
        if is_meant and (window := told_window(model)) is not None:
            yield window
