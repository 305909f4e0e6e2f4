from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_app.catalogue import Key
from agent_core.testing import ScriptedProvider
from agent_server.host import NoHost

if TYPE_CHECKING:
    from agent_server.testing import Served, Serving


class Shout:
    """A feature with an action, an element, a setting and a suggestion."""

    name = "shout"
    version = "1"

    def get_actions(self) -> list[dict[str, Any]]:
        return [{"id": "say", "label": "Say it", "inputs": {"word": {"type": "string", "required": True}}}]

    def execute_action(
        self, action_id: str, session: Any, native_messages: Any, params: dict[str, Any]
    ) -> dict[str, Any]:
        return {"session_metadata": {"said": params["word"]}, "loud": params["word"].upper()}

    def get_ui_elements(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"ui_type": "session_action", "label": "Say it", "action_id": "say"}]

    def get_config_schema(self) -> dict[str, Any]:
        return {"loudness": {"type": "integer", "default": 3}}

    def get_completions(self, config: dict[str, Any], text: str) -> list[dict[str, Any]]:
        return [{"replacement": "/shout", "start": -len(text)}] if "/shout".startswith(text) else []

    def apply_completion(self, config: dict[str, Any], text: str, completion: dict[str, Any]) -> str:
        return "/shout word"


@pytest.fixture
def served(serve_it: Serving) -> Served:
    return serve_it(plugins=[Shout])


def test_an_action_is_offered_run_and_its_inputs_are_checked(served: Served) -> None:
    session_id = served.new_session()
    path = f"/v1/sessions/{session_id}/actions"

    offered = served.client.get(path).json()["items"]
    ran = served.client.post(f"{path}/shout/say", json={"params": {"word": "hi"}})
    missing = served.client.post(f"{path}/shout/say", json={"params": {}})
    unknown = served.client.post(f"{path}/shout/nothing", json={"params": {}})

    assert [(one["plugin"], one["id"]) for one in offered] == [("shout", "say")]
    assert ran.json()["result"]["loud"] == "HI"
    assert served.app.load_session(session_id).metadata["said"] == "hi"
    assert missing.status_code == 422
    assert missing.json()["errors"][0]["field"] == "word"
    assert unknown.status_code == 404


class Wipe:
    """An application plugin with an action that asks first."""

    name = "wipe"
    version = "1"
    kind = "application"

    def get_actions(self, state: Any) -> list[dict[str, Any]]:
        return [{"id": "all", "label": "Wipe all", "confirm": "Really everything?"}]

    def execute_action(self, app: Any, action_id: str, params: Any, context: Any) -> dict[str, Any]:
        return {"wiped": True}


class Tidy:
    """A feature with one."""

    name = "tidy"
    version = "1"

    def get_actions(self) -> list[dict[str, Any]]:
        return [{"id": "up", "confirm": True, "label": "Tidy up"}]

    def execute_action(self, action_id: str, session: Any, native: Any, params: Any) -> dict[str, Any]:
        return {"tidy": True}


def test_an_action_that_asks_first_runs_once_it_is_confirmed(serve_it: Serving) -> None:
    served = serve_it(plugins=[Wipe, Tidy])
    session = f"/v1/sessions/{served.new_session()}"

    for path, question in (
        ("/v1/actions/wipe/all", "Really everything?"),
        (f"{session}/actions/tidy/up", "Tidy up?"),
    ):
        for unconfirmed in ({}, {"confirmed": False}):
            refused = served.client.post(path, json=unconfirmed)

            assert refused.status_code == 409
            assert refused.json()["type"] == "urn:keelwork:action-not-confirmed"
            assert refused.json()["errors"] == [{"field": "confirmed", "message": question}]
        assert served.client.post(path, json={"confirmed": "yes"}).status_code == 422
        assert served.client.post(path, json={"confirmed": True}).status_code == 200


class Odd:
    """An application plugin whose results only Python understands."""

    name = "odd"
    version = "1"
    kind = "application"

    def get_actions(self, state: Any) -> list[dict[str, Any]]:
        return [{"id": "objects"}, {"id": "endless"}]

    def execute_action(self, app: Any, action_id: str, params: Any, context: Any) -> dict[str, Any]:
        endless: list[Any] = []
        endless.append(endless)
        things = {"set": {1}, "nan": float("nan"), "app": app, "plain": [1]}
        return {"endless": endless} if action_id == "endless" else things


def test_what_json_does_not_have_in_a_result_is_shown_as_text(serve_it: Serving) -> None:
    served = serve_it(plugins=[Odd])

    shown = served.client.post("/v1/actions/odd/objects", json={})
    endless = served.client.post("/v1/actions/odd/endless", json={})

    assert shown.status_code == 200
    assert shown.json()["result"]["nan"] is None and shown.json()["result"]["plain"] == [1]
    assert isinstance(shown.json()["result"]["app"], str)
    assert (endless.status_code, endless.json()["type"]) == (502, "urn:keelwork:plugin-failed")


def test_elements_settings_and_suggestions_are_data(served: Served) -> None:
    session_id = served.new_session()
    complete = f"/v1/sessions/{session_id}/completions"

    elements = served.client.get("/v1/ui", params={"session_id": session_id}).json()["items"]
    settings = served.client.get(f"/v1/sessions/{session_id}/config-schema").json()["items"]
    [suggestion] = served.client.post(complete, json={"text": "/sh"}).json()["items"]
    text = served.client.post(complete, json={"text": "/shout", "completion": suggestion}).json()["text"]

    assert {"plugin": "shout", "action_id": "say"}.items() <= elements[0].items()
    assert {"key": "loudness", "plugin": "shout"}.items() <= settings[0].items()
    assert suggestion["replacement"] == "/shout"
    assert text == "/shout word"


def test_plugins_are_explained(served: Served) -> None:
    listed = served.client.get("/v1/plugins", params={"agent_id": "main"}).json()["items"]

    [shout] = [one for one in listed if one["plugin"] == "shout"]
    assert shout["enabled"] is True
    assert shout["reason"]
    assert served.client.get("/v1/plugins", params={"agent_id": "nobody"}).status_code == 422


def test_agents_models_and_providers_are_listed(served: Served) -> None:
    agents = served.client.get("/v1/agents").json()["items"]
    models = served.client.get("/v1/models").json()["items"]

    assert [(one["id"], one["default"]) for one in agents] == [("main", True), ("other", False)]
    assert [(one["id"], one["provider"]) for one in models] == [("m", "scripted")]
    assert served.client.get("/v1/providers").json()["items"] == [{"id": "scripted", "key": None}]
    assert served.client.get("/v1/version").json()["api"] == "v1"


class Drawer(NoHost):
    """A host with keys in a dict."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def keys(self) -> list[dict[str, Any]]:
        return [{"name": name, "origin": "a drawer"} for name in self.kept]

    def key_of(self, provider: str) -> Key | None:
        return Key(self.kept[provider], "a drawer") if provider in self.kept else None

    def set_key(self, provider: str, key: str) -> str:
        self.kept[provider] = key
        return "a drawer"

    def remove_key(self, provider: str) -> bool:
        return self.kept.pop(provider, None) is not None


class Locked(ScriptedProvider):
    """A provider that lists its models for one key."""

    def get_models(self, config: Any) -> Any:
        if config.get("discover_models") and config.get("api_key") != "open-sesame":
            raise RuntimeError("wrong key")
        return [{"id": "m-1"}]


def test_a_key_is_tried_stored_used_and_never_shown(serve_it: Serving) -> None:
    drawer = Drawer()
    served = serve_it(provider=Locked(), host=drawer)

    wrong = served.client.put("/v1/keys/scripted", json={"key": "open-barley"})
    right = served.client.put("/v1/keys/scripted", json={"key": "open-sesame"})

    assert wrong.status_code == 422
    assert "wrong key" in wrong.json()["detail"]
    assert right.json() == {"name": "scripted", "origin": "a drawer"}
    assert drawer.kept == {"scripted": "open-sesame"}
    assert served.client.get("/v1/keys").json()["items"] == [{"name": "scripted", "origin": "a drawer"}]
    assert served.client.get("/v1/providers/scripted/models").json()["items"] == [{"id": "m-1"}]
    for path in ("/v1/keys", "/v1/providers", "/v1/settings", "/v1/plugins", "/v1/models"):
        assert "sesame" not in served.client.get(path).text
    assert served.client.delete("/v1/keys/scripted").status_code == 204
    assert served.client.delete("/v1/keys/scripted").status_code == 404
    assert served.client.put("/v1/keys/nobody", json={"key": "x"}).status_code == 404
