"""The context windows of models, and which models read only text: what their providers have said of them.

A window is taken from the model's declaration, else from what its provider said when somebody asked it for a
list, so that no provider is asked for a meter's sake.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_app.agents import choose_agent
from agent_app.services import AGENT, own_overrides
from agent_core import AgentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_app.application import AgentApplication
    from agent_runtime import ResolvedAgent

_WINDOW_NAMES = ("context_window", "context_length", "max_model_len")
"""What servers call the context window in their lists of models."""
_WINDOW_SETTING = "context_size"
"""What it is called in the settings of a provider that runs the model itself, and chooses it."""


def context_window(model: Mapping[str, Any]) -> int | None:
    """Return the context window that a provider's description of a model names."""
    values = (model.get(name) for name in _WINDOW_NAMES)
    return next((value for value in values if _is_window(value)), None)


def _is_window(value: object) -> bool:
    return isinstance(value, int) and value > 0


_SEES = frozenset({"vision", "files"})
"""The tags of models that read more than text."""


def is_text_only(model: Mapping[str, Any]) -> bool | None:
    """Say whether a provider's description of a model says that it reads only text; None if it does not say.

    OpenRouter lists what a model takes, Mistral says whether it sees, and the tags are what our own provider
    plugins have read from what their servers say.
    """
    architecture, capabilities, tags = (model.get(name) for name in ("architecture", "capabilities", "tags"))
    taken = architecture.get("input_modalities") if isinstance(architecture, Mapping) else None
    if isinstance(taken, (list, tuple)) and taken:
        return set(taken) <= {"text"}
    if isinstance(capabilities, Mapping) and isinstance(capabilities.get("vision"), bool):
        return not capabilities["vision"]
    return _SEES.isdisjoint(tags) if isinstance(tags, (list, tuple)) and tags else None


class WindowCache:
    """What providers have said about their models, in a file, so that none is asked for a meter's sake.

    It has context windows, and which models read only text. A file that cannot be read or written is done
    without.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, provider: str, base_url: str, models: Iterable[Mapping[str, Any]]) -> None:
        """Remember the models that a provider lists at an address."""
        named = {str(one.get("id")): about for one in models if (about := _to_remember(one)) is not None}
        if named:
            known = {**read_object(self._path), _address(provider, base_url): named}
            with suppress(OSError):
                replace_file(self._path, json.dumps(known, indent=1, sort_keys=True) + "\n")

    def get(self, provider: str, base_url: str, model: str) -> int | None:
        """Return the window that was remembered of a model."""
        about = self._about(provider, base_url, model)
        window = about.get(_WINDOW) if isinstance(about, Mapping) else about
        return window if _is_window(window) else None

    def is_text_only(self, provider: str, base_url: str, model: str) -> bool:
        """Say whether a provider has said that a model reads only text."""
        about = self._about(provider, base_url, model)
        return isinstance(about, Mapping) and about.get(_TEXT_ONLY) is True

    def _about(self, provider: str, base_url: str, model: str) -> Any:
        named = read_object(self._path).get(_address(provider, base_url))
        return named.get(model) if isinstance(named, Mapping) else None


_WINDOW, _TEXT_ONLY = "context_window", "text_only"


def _to_remember(model: Mapping[str, Any]) -> Any:
    """Return what is kept of a model: its window, or more if it reads only text; None for nothing."""
    window = context_window(model)
    return {_WINDOW: window, _TEXT_ONLY: True} if is_text_only(model) else window


def _address(provider: str, base_url: str) -> str:
    return f"{provider} {base_url.rstrip('/')}".rstrip()


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; an empty one if the file cannot be read."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def replace_file(path: Path, content: str) -> None:
    """Write a file whole or not at all: another process may read it at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


class Windows:
    """The context windows of an application's models, as far as they can be known without asking anybody.

    Args:
        app: Knows the models.
        cache: What providers have named before.
    """

    def __init__(self, app: AgentApplication, cache: WindowCache) -> None:
        self._app = app
        self._cache = cache
        self._found: dict[str, int | None] = {}

    def known(self, model_id: str) -> int | None:
        """Return a window if it is known already."""
        spec = self._app.runtime.registries.models.get(model_id)
        declared = None if spec is None else spec.context_window
        return declared or self._found.get(model_id)

    def was_looked_for(self, model_id: str) -> bool:
        """Say whether there is nothing more to find out."""
        return model_id in self._found or self.known(model_id) is not None

    def find(self, agent_id: str, model_id: str) -> int | None:
        """Return the window of a model that an agent uses; this reads files, so call it in a thread.

        A window that is found is the model's from then on, so that its conversations are kept within it.
        """
        if not self.was_looked_for(model_id):
            window = self._found[model_id] = self._look(agent_id, model_id)
            models = self._app.runtime.registries.models
            spec = models.get(model_id)
            if window is not None and spec is not None and window > (spec.max_output_tokens or 0):
                models.replace(model_id, replace(spec, context_window=window))
        return self.known(model_id)

    def reads_only_text(self, agent_id: str, model_id: str) -> bool:
        """Say whether a model that an agent uses is known to read no pictures; call it in a thread."""
        try:
            agent, config = self._asked(agent_id, model_id)
            found = agent.core.resolve(config)
        except AgentError:  # it says so itself when it is asked
            return False
        own, model = config.get("capabilities"), str(config.get("model") or "")
        described = [{"tags": own}] if own else [one for one in found.models if _is_meant(one, model, found)]
        said = [is_text_only(one) for one in described]
        if any(one is not None for one in said):
            return any(said)
        address = str(config.get("base_url") or "")
        return self._cache.is_text_only(found.provider.provider.name, address, model)

    def text_only_model(self, session_id: str) -> str:
        """Return the model that answers next in a session, if it is known to read no pictures; else nothing.

        Raises:
            SessionNotFound: If there is no such session.
            AgentError: If its agent cannot be resolved.
        """
        session = self._app.load_session(session_id)
        agent_id = choose_agent(self._app.config, session.metadata.get(AGENT))
        if agent_id is None:
            return ""
        agent, own = self._app.runtime.resolve(agent_id), own_overrides(session).get("model")
        model = own if isinstance(own, str) and own in agent.models else agent.model.id
        return model if self.reads_only_text(agent_id, model) else ""

    def _look(self, agent_id: str, model_id: str) -> int | None:
        try:
            return next(self._named(*self._asked(agent_id, model_id)), None)
        except AgentError:  # an agent that cannot run; the meter does without
            return None

    def _asked(self, agent_id: str, model_id: str) -> tuple[ResolvedAgent, dict[str, Any]]:
        """Return an agent, and the settings with which it asks a model."""
        agent = self._app.runtime.resolve(agent_id)
        other = agent.models.get(model_id)
        return agent, dict(agent.config if other is None else other.config)

    def _named(self, agent: ResolvedAgent, config: dict[str, Any]) -> Iterator[int]:
        """Yield every source of the window, the surest first."""
        found, model = agent.core.resolve(config), str(config.get("model") or "")
        for one in found.models:
            if _is_meant(one, model, found) and (window := context_window(one)) is not None:
                yield window
        provider = found.provider.provider
        own = config.get(_WINDOW_SETTING) or provider.get_config_schema([]).get(_WINDOW_SETTING, {}).get(
            "default"
        )
        if _is_window(own):
            yield own
        kept = self._cache.get(provider.name, str(config.get("base_url") or ""), model)
        if kept is not None:
            yield kept


def _is_meant(one: Mapping[str, Any], model: str, found: Any) -> bool:
    """Say whether a model of a provider's list is the one that is asked."""
    return one.get("id", one.get("name")) == model or len(found.models) == 1
