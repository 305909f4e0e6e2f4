"""Every model that can answer here: those that settings declare, and those that connected servers offer.

A server is a provider, or a model of the settings with an address of its own: `[models.ollama]` with a
`base_url` is the server `ollama`, and each of its models is reached as `ollama:MODEL`. Which models a person
took last, and which are favourites, is kept in a small file.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent_app.catalogue import Catalogue, offered_models
from agent_app.context_windows import WindowCache, context_window, read_object, replace_file
from agent_app.defaults import SHORT_NAMES, short_name
from agent_runtime.prices import list_terms

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent_app.application import AgentApplication
    from agent_runtime import ModelSpec

_RECENT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Something that offers models.

    Attributes:
        name: What stands before the colon of its models.
        provider: The provider that speaks with it.
        config: How it is asked.
    """

    name: str
    provider: str
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model that can be chosen.

    Attributes:
        id: What it is called here: NAME of the settings, or SERVER:MODEL.
        provider: The provider that speaks with it.
        model: What its server calls it.
        context_window: How many tokens fit, if that is known.
        input_price: What a million tokens sent cost in dollars, if that is known.
        output_price: The same for tokens received.
        declared: Whether the settings declare it.
    """

    id: str
    provider: str
    model: str
    context_window: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    declared: bool = False


class ModelList:
    """The models of an application, as a front end lists them.

    Args:
        app: Knows what is declared.
        catalogue: Asks providers.
        windows: Where context windows are remembered that servers have named.
    """

    def __init__(self, app: AgentApplication, catalogue: Catalogue, windows: WindowCache) -> None:
        self._app = app
        self._catalogue = catalogue
        self._windows = windows

    def declared(self) -> list[ListedModel]:
        """Return the models of the settings."""
        return [self._listed(spec, declared=True) for spec in self._app.models.values()]

    def servers(self) -> list[Server]:
        """Return what can be asked for models: all providers, and the addresses that settings declare."""
        providers = self._app.runtime.registries.providers
        found = [Server(name=short_name(name), provider=name, config={}) for name in providers]
        named = (one for one in self._app.models.values() if ":" not in one.id and one.config.get("base_url"))
        return [
            *found,
            *(Server(name=one.id, provider=one.provider, config=dict(one.config)) for one in named),
        ]

    def offered(self, server: Server, agent_id: str) -> list[ListedModel]:
        """Ask a server for its models; this waits for it, so call it in a thread.

        Args:
            agent_id: An agent whose plugins may have a say in how it is asked.

        Raises:
            AgentError: If it cannot be asked: it has no key, say, or does not answer.
        """
        if not server.config:
            found = self._catalogue.offered_by(server.provider, agent_id, self._windows)
        else:
            settings = {**self._provider_config(server.provider), **server.config}
            core = self._app.runtime.resolve(agent_id).core
            found = offered_models(core, {**settings, "provider": server.provider})
            self._windows.keep(server.provider, str(server.config.get("base_url") or ""), found)
        return [self._offered(server, one) for one in found]

    def _provider_config(self, provider: str) -> Mapping[str, Any]:
        entry = self._app.runtime.registries.providers.get(provider)
        return {} if entry is None else entry.config

    def _offered(self, server: Server, one: Mapping[str, Any]) -> ListedModel:
        name = str(one.get("id") or one.get("name") or "")
        full = f"{SHORT_NAMES.get(server.name, server.name)}:{name}".rstrip(":")
        listed = ListedModel(
            id=full, provider=server.provider, model=name, context_window=context_window(one)
        )
        pricing = one.get("pricing")
        if isinstance(pricing, dict):  # as OpenRouter names it: dollars for one token
            with suppress(TypeError, ValueError):
                prices = [float(pricing[key]) * 1_000_000 for key in ("prompt", "completion")]
                return self._completed(replace(listed, input_price=prices[0], output_price=prices[1]))
        return self._completed(listed)

    def _listed(self, spec: ModelSpec, *, declared: bool) -> ListedModel:
        listed = ListedModel(
            id=spec.id.rstrip(":"),
            provider=spec.provider,
            model=spec.model,
            context_window=spec.context_window,
            input_price=spec.input_price,
            output_price=spec.output_price,
            declared=declared,
        )
        if listed.context_window is None:
            address = str(
                spec.config.get("base_url") or self._provider_config(spec.provider).get("base_url") or ""
            )
            listed = replace(listed, context_window=self._windows.get(spec.provider, address, spec.model))
        return self._completed(listed)

    def _completed(self, model: ListedModel) -> ListedModel:
        """Add what the public list of prices knows, where nobody else says it."""
        if model.context_window is not None and model.input_price is not None:
            return model
        terms = list_terms(model.provider, model.model)
        if terms is None:
            return model
        return replace(
            model,
            context_window=model.context_window or terms.context_window,
            input_price=terms.input_price if model.input_price is None else model.input_price,
            output_price=terms.output_price if model.output_price is None else model.output_price,
        )


class ModelChoices:
    """Which models a person took last, and which are favourites, in a file.

    A file that cannot be read or written is done without.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def recent(self) -> list[str]:
        """The models that were taken, the last one first."""
        return self._read("recent")

    @property
    def favourites(self) -> list[str]:
        """The favourites, in the order in which they became such."""
        return self._read("favourites")

    def take(self, model: str) -> None:
        """Note that a model was taken."""
        self._write("recent", [model, *(one for one in self.recent if one != model)][:_RECENT])

    def star(self, model: str) -> bool:
        """Make a model a favourite, or no longer; return whether it is one now."""
        now = self.favourites
        is_new = model not in now
        self._write("favourites", [*now, model] if is_new else [one for one in now if one != model])
        return is_new

    def _read(self, key: str) -> list[str]:
        named = read_object(self._path).get(key)
        return [one for one in named if isinstance(one, str)] if isinstance(named, list) else []

    def _write(self, key: str, names: list[str]) -> None:
        with suppress(OSError):
            replace_file(self._path, json.dumps({**read_object(self._path), key: names}, indent=1) + "\n")
