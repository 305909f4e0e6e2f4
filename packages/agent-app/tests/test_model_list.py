"""Every model that can answer: of the settings, of providers, of servers with a name; favourites."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_app.catalogue import Catalogue
from agent_app.context_windows import WindowCache
from agent_app.defaults import complete_config
from agent_app.model_list import ModelChoices, ModelList
from agent_core import AgentError
from agent_core.testing import ScriptedProvider

if TYPE_CHECKING:
    from pathlib import Path


class Shop(ScriptedProvider):
    """A provider whose models depend on the address."""

    def __init__(self) -> None:
        super().__init__(repeat("Hello."), name="shop")

    def get_models(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        if config.get("base_url") == "http://box":
            return [{"id": "own", "context_length": 4096}]
        price = {"prompt": "0.000001", "completion": "0.000002"}
        return [{"id": "one", "pricing": price}, {"id": "claude-sonnet-4-5"}]


CONFIG = {
    "model": "box",
    "plugin_ids": [],
    "agents": {"a": {"sections": {"retry": {"fallback_models": ["box:spare"]}}}},
    "models": {"box": {"provider": "shop", "model": "own", "config": {"base_url": "http://box"}}},
}


def test_settings_providers_and_named_servers_are_listed_with_window_and_price(tmp_path: Path) -> None:
    with AgentApplication(complete_config(CONFIG), plugins=[Shop()], installed=False) as app:
        listed = ModelList(app, Catalogue(app), WindowCache(tmp_path / "windows.json"))
        found = {one.name: listed.offered(one, "a") for one in listed.servers()}
        declared = {one.id: one for one in listed.declared()}

        assert [one.id for one in found["shop"]] == ["shop:one", "shop:claude-sonnet-4-5"]
        assert (found["shop"][0].input_price, found["shop"][0].output_price) == (1.0, 2.0)
        assert [(one.id, one.context_window) for one in found["box"]] == [("box:own", 4096)]
        assert declared["box"].context_window == 4096, "what a server has named is remembered"
        pytest.importorskip("genai_prices")
        known = found["shop"][1]
        assert known.context_window and known.input_price and known.output_price


def test_a_model_of_a_named_server_is_asked_at_its_address_in_sessions_and_as_a_fallback() -> None:
    shop = Shop()
    with AgentApplication(complete_config(CONFIG), plugins=[shop], installed=False) as app:
        assert app.models["box:spare"].config["base_url"] == "http://box"
        spec = Catalogue(app).declare("box:own")
        assert (spec.id, spec.provider, spec.model) == ("box:own", "shop", "own")
        with pytest.raises(AgentError, match="there is no such provider"):
            Catalogue(app).declare("bix:own")
    with AgentApplication(complete_config(CONFIG), plugins=[shop], installed=False) as app:
        session = app.create_session()
        app.save_session(session.with_metadata({"overrides": {"model": "box:own"}}))
        list(app.chat(session.session_id, "Hi.", stream=False))
        assert shop.requests[-1].config["base_url"] == "http://box"
        assert shop.requests[-1].config["model"] == "own"


def test_the_last_ones_and_favourites_are_kept_and_a_broken_file_is_done_without(tmp_path: Path) -> None:
    file = tmp_path / "state" / "models.json"
    choices = ModelChoices(file)
    for name in ("a", "b", "a"):
        choices.take(name)
    assert choices.star("c") and choices.star("d") and not choices.star("c")
    assert (ModelChoices(file).recent, ModelChoices(file).favourites) == (["a", "b"], ["d"])

    file.write_text("{")
    assert (choices.recent, choices.favourites) == ([], [])
