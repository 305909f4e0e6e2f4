"""Application plugins: what they can do to sessions, and what their faults can do to nobody."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication, ApplicationPlugin, SessionBusy
from agent_app.catalogue import Catalogue
from agent_core import ActionInputError, ArgumentError, Message, PluginError, Session, UnknownActionError
from agent_core.testing import ScriptedProvider

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
Make = Callable[..., AgentApplication]


class Plugin:
    """An application plugin whose actions do what a function returns."""

    version = "1"

    def __init__(self, answer: Any = None, name: str = "helper", **action: Any) -> None:
        self.name = name
        self._answer = answer
        self._action = {"id": "do", "label": "Do it", "inputs": {}, **action}

    def init(self, app_config: dict[str, Any]) -> dict[str, Any]:
        return {"known": sorted(app_config)}

    def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        return [self._action]

    def execute_action(
        self,
        app: AgentApplication,
        action_id: str,
        params: dict[str, Any],
        context: Any,
        state: dict[str, Any],
    ) -> dict[str, Any]:
        answer = self._answer
        result: dict[str, Any] = answer(app, params, context, state) if callable(answer) else answer
        return result


@pytest.fixture
def make() -> Iterator[Make]:
    apps: list[AgentApplication] = []

    def make_app(*plugins: Any, script: Any = (), **more: Any) -> AgentApplication:
        plugins = (ScriptedProvider(script), *plugins)
        apps.append(AgentApplication(CONFIG, plugins=plugins, **{"installed": False, **more}))
        return apps[-1]

    yield make_app
    for app in apps:
        app.close()


def test_an_action_gets_the_application_its_inputs_and_the_plugins_state(make: Make) -> None:
    def look(app: Any, params: Any, context: Any, state: Any) -> dict[str, Any]:
        return {"app": app, "params": params, "by": context["caller"], "state": state}

    inputs = {"count": {"type": "integer", "required": True}, "word": {"type": "string", "default": "x"}}
    app = make(Plugin(look, inputs=inputs))
    result = app.execute_application_action("helper", "do", {"count": 3}, {"caller": "me"})

    assert result == {
        "app": app,
        "params": {"count": 3, "word": "x"},
        "by": "me",
        "state": {"known": ["agents", "models"]},
    }


def test_actions_are_offered_with_their_plugin_and_those_of_the_session(make: Make) -> None:
    class Feature:
        name = "feature"
        version = "1"

        def get_actions(self, state: Any) -> list[dict[str, Any]]:
            return [{"id": "tidy", "label": "Tidy", "inputs": {}}]

        def execute_action(self, action_id: str, session: Any, native: Any, *_: Any) -> dict[str, Any]:
            return {"native_messages": native, "session_metadata": {"tidy": True}, "status": "ok"}

    app = make(Plugin({}), Feature)
    session = app.create_session()

    assert [(one["plugin"], one["id"]) for one in app.get_actions()] == [("helper", "do")]
    assert [one["id"] for one in app.get_actions(session.session_id)] == ["do", "tidy"]

    changed, result = app.execute_session_action(session.session_id, "feature", "tidy", {})
    assert result["status"] == "ok"
    assert changed.metadata["tidy"] is True
    assert app.load_session(session.session_id) == changed


def test_an_unknown_action_and_a_bad_input_are_refused(make: Make) -> None:
    app = make(Plugin({}, inputs={"count": {"type": "integer", "required": True}}))

    with pytest.raises(UnknownActionError, match=r"helper\.do"):
        app.execute_application_action("helper", "fly", {})
    with pytest.raises(ActionInputError, match="count"):
        app.execute_application_action("helper", "do", {"count": "many"})


def test_sessions_that_an_action_changes_are_looked_at_before_they_are_stored(make: Make) -> None:
    def work(app: AgentApplication, params: Any, context: Any, state: Any) -> dict[str, Any]:
        return {"mutations": {"created": [Session("new")], "updated": [app.load_session("first")]}}

    def stamp(app: AgentApplication, params: Any, context: Any, state: Any) -> dict[str, Any]:
        session = Session.from_dict(context["session"]).with_metadata({"stamped": True})
        return {"mutations": {"updated": [session]}}

    app = make(Plugin(work), Plugin(stamp, "stamper", trigger="session_save_prepare"))
    app.create_session(session_id="first")
    app.execute_application_action("helper", "do", {})

    assert app.load_session("first").metadata["stamped"] is True
    assert app.load_session("new").metadata["stamped"] is True


def test_a_caller_cannot_pretend_to_be_the_core(make: Make) -> None:
    seen: list[dict[str, Any]] = []

    def look(app: AgentApplication, params: Any, context: Any, state: Any) -> dict[str, Any]:
        seen.append({key: context[key] for key in ("core", "config", "note") if key in context})
        return {}

    app = make(Plugin(look, trigger="mine"))
    app.run_session_lifecycle("mine", Session("s"), context={"core": 2, "config": 3, "note": 4})

    assert seen == [{"note": 4}]


def test_mutations_create_update_and_delete_sessions(make: Make) -> None:
    def work(app: AgentApplication, params: Any, context: Any, state: Any) -> dict[str, Any]:
        first = app.load_session("first").with_metadata({"seen": True})
        new = Session("new", [Message("user", "hello")])
        return {"mutations": {"created": [new.to_dict()], "updated": [first], "deleted": ["second"]}}

    app = make(Plugin(work))
    app.create_session(session_id="first")
    app.create_session(session_id="second")
    result = app.execute_application_action("helper", "do", {})

    assert result == {"mutations": {"created": ["new"], "updated": ["first"], "deleted": ["second"]}}
    assert {one.id for one in app.list_sessions().sessions} == {"first", "new"}
    assert app.load_session("first").metadata["seen"] is True
    assert app.load_session("new").messages[0].content == "hello"


@pytest.mark.parametrize(
    "mutations",
    [
        "all of them",
        {"renamed": []},
        {"created": "one"},
        {"created": [{"session_id": 3}]},
        {"updated": ["an id"]},
        {"updated": [None]},
        {"deleted": "first"},
        {"deleted": [1]},
        {"deleted": {"first": 1}},
        {"deleted": ["first", "first"]},
        {"updated": [Session("first"), Session("first")]},
        {"updated": [Session("first")], "deleted": ["first"]},
        {"deleted": ["new"]},
    ],
)
def test_mutations_that_are_none_are_refused_and_none_is_carried_out(make: Make, mutations: Any) -> None:
    extra = {"created": [Session("new")]} if isinstance(mutations, dict) else {}
    given = {**extra, **mutations} if isinstance(mutations, dict) else mutations
    app = make(Plugin({"mutations": given}))
    app.create_session(session_id="first")

    with pytest.raises(PluginError, match="helper"):
        app.execute_application_action("helper", "do", {})
    assert [one.id for one in app.list_sessions().sessions] == ["first"]


def test_a_session_that_is_running_cannot_be_changed_from_beside(make: Make) -> None:
    def work(app: AgentApplication, params: Any, context: Any, state: Any) -> dict[str, Any]:
        return {"mutations": {"updated": [app.load_session("first").with_metadata({"beside": 1})]}}

    app = make(Plugin(work), script=["hi"])
    app.create_session(session_id="first")
    events = app.chat("first", "hello")
    next(events)

    with pytest.raises(SessionBusy):
        app.execute_application_action("helper", "do", {})
    assert list(events)[-1]["type"] == "final"
    assert "beside" not in app.load_session("first").metadata


def test_a_lifecycle_can_change_its_own_session_and_others_but_not_delete_its_own(make: Make) -> None:
    def work(app: AgentApplication, params: Any, context: Any, state: Any) -> dict[str, Any]:
        if context["session"]["metadata"].get("doomed"):
            return {"mutations": {"deleted": [params["session_id"]]}}
        own = Session.from_dict(context["session"]).with_metadata({"touched": True})
        return {"mutations": {"updated": [own], "created": [Session("beside")]}}

    app = make(Plugin(work, trigger="request_prepare"), script=["hi", "ho"])
    app.create_session(session_id="first")
    app.create_session(session_id="second", metadata={"doomed": True})
    first, second = list(app.chat("first", "hello")), list(app.chat("second", "hello"))

    assert app.load_session("first").metadata["touched"] is True
    assert app.load_session("beside").messages == []
    assert first[-1]["type"] == second[-1]["type"] == "final"
    [problem] = [event for event in second if event["type"] == "lifecycle_error"]
    assert "cannot delete" in problem["error"]["message"]


def test_a_display_passes_the_validator_and_effects_must_be_readable(make: Make) -> None:
    display = {
        "format": "markdown",
        "body": "Hello",
        "surprise": 1,
        "actions": [
            {"kind": "open_url", "id": "x", "label": "X", "url": "javascript:alert(1)"},
            {"kind": "run_action", "id": "r", "label": "R", "plugin": "helper", "action_id": "do"},
            {"kind": "run_action", "id": "g", "label": "G", "plugin": "helper", "action_id": "gone"},
        ],
    }
    app = make(Plugin({"display": display, "ui_effects": [{"type": "reload"}], "count": 1}))
    result = app.execute_application_action("helper", "do", {})

    assert result["ui_effects"] == [{"type": "reload"}]
    assert result["count"] == 1
    assert result["display"]["body"] == "Hello"
    assert [one["id"] for one in result["display"]["actions"]] == ["r"]
    assert "surprise" not in result["display"]


@pytest.mark.parametrize("effects", ["reload", {"type": "reload"}, ["reload"], [{"object": object()}]])
def test_effects_that_no_front_end_can_read_are_left_out(make: Make, effects: Any) -> None:
    app = make(Plugin({"ui_effects": effects, "display": "no object", "kept": 1}))

    assert app.execute_application_action("helper", "do", {}) == {"kept": 1}


def test_what_plugins_want_shown_is_gathered_and_named(make: Make) -> None:
    class Shown(Plugin):
        def get_ui_elements(self, config: Any) -> list[dict[str, Any]]:
            return [{"id": "button", "label": "Press"}]

    class Broken(Plugin):
        def get_ui_elements(self, config: Any) -> list[dict[str, Any]]:
            raise RuntimeError("no")

    app = make(Broken({}, "broken"), Shown({}))

    expected = [{"id": "button", "label": "Press", "plugin": "helper"}]
    assert app.get_ui_elements() == expected
    assert asyncio.run(app.get_ui_elements_async()) == expected


def test_plugins_add_to_the_summaries_of_a_list(make: Make) -> None:
    def summary(app: Any, params: Any, context: Any, state: Any) -> dict[str, Any]:
        assert context["lifecycle"] == "session_list"
        return {"badge": f"{params['session_id']}:{context['session_info']['messages']}"}

    def fail(*_: Any) -> dict[str, Any]:
        raise RuntimeError("no summary")

    deleting = Plugin({"mutations": {"deleted": ["first"]}}, "deleting", trigger="session_list")
    app = make(
        Plugin(summary, trigger="session_list"), Plugin(fail, "broken", trigger="session_list"), deleting
    )
    app.create_session(session_id="first")
    [info] = app.list_sessions().sessions

    assert info.extra["helper"] == {"badge": "first:0"}
    assert "no summary" in info.extra["broken"]["error"]["message"]
    assert info.extra["deleting"] == {}
    assert [one.id for one in app.list_sessions().sessions] == ["first"]


@pytest.mark.parametrize("value", [object(), {1}, b"x", float("nan"), {3: "x"}])
def test_what_is_no_data_in_a_summary_costs_nobody_the_list(make: Make, value: Any) -> None:
    app = make(
        Plugin({"badge": [value]}, trigger="session_list"),
        Plugin({"fine": 1}, "other", trigger="session_list"),
    )
    app.create_session(session_id="first")
    [info] = app.list_sessions().sessions

    assert json.loads(json.dumps(info.to_dict(), allow_nan=False))["extra"] == info.extra
    assert info.extra["other"] == {"fine": 1}
    assert info.extra["helper"]["error"]["type"] == "PluginError"
    assert "badge[0]" in info.extra["helper"]["error"]["message"]


def test_without_such_plugins_a_list_has_no_extra(make: Make) -> None:
    app = make(Plugin({}))
    app.create_session()

    assert app.list_sessions().sessions[0].extra == {}


def raises(*_: Any) -> dict[str, Any]:
    raise RuntimeError("wrong")


@pytest.mark.parametrize("answer", [raises, None, "text", [1], 3])
def test_an_action_that_fails_or_answers_nonsense_is_named(make: Make, answer: Any) -> None:
    app = make(Plugin(answer), Plugin({"fine": True}, "other"))

    with pytest.raises(PluginError, match="helper"):
        app.execute_application_action("helper", "do", {})
    assert app.execute_application_action("other", "do", {}) == {"fine": True}


def test_a_huge_answer_is_handed_on_and_stored_nowhere(make: Make) -> None:
    app = make(Plugin({"text": "x" * 20_000_000}, trigger="request_prepare"), script=["hi"])
    app.create_session(session_id="first")
    events = list(app.chat("first", "hello"))

    assert events[-1]["type"] == "final"
    assert sum(len(str(event)) for event in app.store.events("first")) < 20_000


class BadInit(Plugin):
    def init(self, app_config: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("cannot begin")


class BadState(Plugin):
    def init(self, app_config: dict[str, Any]) -> Any:
        return "no dict"


class BadActions(Plugin):
    def get_actions(self, state: Any) -> Any:
        return [{"id": 3}]


class RaisingActions(Plugin):
    def get_actions(self, state: Any) -> Any:
        raise RuntimeError("no actions")


@pytest.mark.parametrize("broken", [BadInit, BadState])
def test_a_plugin_that_cannot_begin_is_left_out_and_named(make: Make, broken: type[Plugin]) -> None:
    app = make(broken({}, "broken"), Plugin({"fine": True}))

    [problem] = app.problems
    assert problem.plugin == "broken"
    assert "init" in problem.reason
    assert app.execute_application_action("helper", "do", {}) == {"fine": True}


@pytest.mark.parametrize("broken", [BadActions, RaisingActions])
def test_a_plugin_that_cannot_say_its_actions_leaves_the_others_working(
    make: Make, broken: type[Plugin]
) -> None:
    app = make(broken({}, "broken"), Plugin({"fine": True}), script=["hi"])
    session = app.create_session()

    assert [one["plugin"] for one in app.get_actions()] == ["helper"]
    assert list(app.chat(session.session_id, "hello"))[-1]["type"] == "final"
    [problem] = app.problems
    assert (problem.plugin, problem.reason.split()[0]) == ("broken", "get_actions")


def test_the_good_ones_among_bad_actions_and_elements_are_offered(make: Make) -> None:
    class HalfGood(Plugin):
        def get_actions(self, state: Any) -> Any:
            return [3, *super().get_actions(state)]

        def get_ui_elements(self, config: Any) -> Any:
            return [{"id": "shown"}, "junk"]

    app = make(HalfGood({"fine": True}, "half"))

    assert app.execute_application_action("half", "do", {}) == {"fine": True}
    assert [one["id"] for one in app.get_ui_elements()] == ["shown"]
    assert [(one.plugin, one.reason.split()[0]) for one in app.problems] == [
        ("half", "get_actions"),
        ("half", "get_ui_elements"),
    ]


class Careless:
    """A feature whose every answer about itself is wrong, and whose work is not."""

    name = "careless"
    version = "1"

    def get_config_schema(self) -> Any:
        raise RuntimeError("no settings today")

    def get_actions(self, state: Any) -> Any:
        return None

    def get_ui_elements(self, config: Any) -> Any:
        return [3]


def test_what_plugins_of_agents_do_wrong_is_among_the_problems(make: Make) -> None:
    app = make(Careless, Plugin({"fine": True}), script=["hi"])
    assert [(one.plugin, one.reason.split()[0], one.takes_part) for one in app.problems] == [
        ("careless", "get_config_schema", True)
    ]

    session_id = app.create_session().session_id
    assert list(app.chat(session_id, "hello"))[-1]["type"] == "final"
    app.get_ui_schema(session_id)

    found = [(one.plugin, one.reason.split()[0]) for one in app.problems]
    assert found == [
        ("careless", "get_config_schema"),
        ("careless", "get_actions"),
        ("careless", "get_ui_elements"),
    ]
    [row] = [one for one in Catalogue(app).explain_plugins() if one["plugin"] == "careless"]
    assert row["enabled"] is True
    assert [one.split()[0] for one in row["problems"]] == [hook for _, hook in found]


def test_a_class_that_cannot_be_made_is_named(make: Make) -> None:
    class Unmakeable(Plugin):
        name = "unmakeable"

        def __init__(self) -> None:
            raise RuntimeError("not today")

    app = make(Unmakeable)

    assert [problem.plugin for problem in app.problems] == ["unmakeable"]
    assert "not today" in app.problems[0].reason


def test_of_two_plugins_of_one_name_the_first_stays(make: Make) -> None:
    app = make(Plugin({"which": 1}), Plugin({"which": 2}))

    assert app.execute_application_action("helper", "do", {}) == {"which": 1}
    assert [problem.plugin for problem in app.problems] == ["helper"]


def test_a_plugin_cannot_change_the_configuration(make: Make) -> None:
    class Greedy(Plugin):
        def init(self, app_config: dict[str, Any]) -> dict[str, Any]:
            app_config["agents"]["evil"] = {}
            return {}

    app = make(Greedy({}, "greedy"))

    assert [problem.plugin for problem in app.problems] == ["greedy"]
    assert set(app.config["agents"]) == {"a"}


def test_application_plugins_are_told_from_features_however_they_are_written(make: Make) -> None:
    def traced(function: Any) -> Any:
        @wraps(function)
        def call(*arguments: Any, **more: Any) -> Any:
            return function(*arguments, **more)

        return call

    class Decorated(Plugin):
        execute_action = traced(Plugin.execute_action)

    class Declared(ApplicationPlugin):
        name = "declared"
        version = "1"

        def init(self, app_config: dict[str, Any]) -> dict[str, Any]:
            return {}

        def get_actions(self, state: Any) -> list[dict[str, Any]]:
            return [{"id": "do", "label": "Do", "inputs": {}}]

        def execute_action(self, *everything: Any) -> dict[str, Any]:
            return {"app": everything[0]}

    app = make(Decorated({}, "decorated"), Declared)

    assert [one["plugin"] for one in app.get_actions()] == ["decorated", "declared"]
    assert app.execute_application_action("declared", "do", {}) == {"app": app}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Return how to install a plugin: its entry point's name, module and code."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def place(name: str, module: str, code: str) -> None:
        (tmp_path / f"{module}.py").write_text(code)
        about = tmp_path / f"{module}-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[agent_platform.applications]\n{name} = {module}:Plugin\n")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return place


def test_installed_plugins_are_found_and_broken_ones_are_told(
    make: Make, install: Callable[[str, str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_LOAD_PLUGINS", "found_helper,broken_helper")
    install(
        "found_helper",
        "found_helper_module",
        "class Plugin:\n"
        "    name = 'found_helper'\n"
        "    version = '1'\n"
        "    def get_actions(self, state):\n"
        "        return [{'id': 'do', 'label': 'Do', 'inputs': {}}]\n"
        "    def execute_action(self, app, action_id, params, context, state):\n"
        "        return {'found': True}\n",
    )
    install("broken_helper", "broken_helper_module", "raise ImportError('needs a library')\n")
    app = make(installed=True)

    assert app.execute_application_action("found_helper", "do", {}) == {"found": True}
    assert [(one.plugin, "needs a library" in one.reason) for one in app.problems] == [
        ("broken_helper", True)
    ]


def test_the_async_twins_do_the_same(make: Make) -> None:
    app = make(Plugin({"mutations": {"created": [Session("new")]}, "fine": 1}))

    async def work() -> tuple[Any, Any]:
        return await app.execute_application_action_async("helper", "do", {}), await app.get_actions_async()

    result, actions = asyncio.run(work())
    assert result == {"mutations": {"created": ["new"], "updated": [], "deleted": []}, "fine": 1}
    assert actions == app.get_actions()
    assert app.load_session("new").session_id == "new"


class Chunky:
    """A feature that has a helper of the name by which extensions are known."""

    name = "chunky"

    def process_chunk(self, *pieces: str) -> str:
        return "".join(pieces)

    def finalize(self, final_messages: Any, native_messages: Any, state: Any) -> Any:
        self.process_chunk("a", "b")
        return final_messages, native_messages, state


def application(plugins: Any) -> AgentApplication:
    config = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
    return AgentApplication(config, plugins=plugins, installed=False)


class WithDefault:
    name = "with_default"
    version = "1"

    def get_config_schema(self) -> dict[str, Any]:
        return {"keep": {"type": "integer", "default": 10}}

    def init(self, app_config: dict[str, Any]) -> dict[str, Any]:
        return {"keep": app_config["keep"]}

    def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"id": "tell", "label": "Tell", "inputs": {}}]

    def execute_action(
        self, app: Any, action_id: str, params: Any, context: Any, state: dict[str, Any]
    ) -> dict[str, Any]:
        return {"keep": state["keep"]}


def test_an_application_plugin_gets_the_defaults_that_it_declares() -> None:
    with application([ScriptedProvider(["hi"]), WithDefault]) as app:
        assert app.execute_application_action("with_default", "tell", {})["keep"] == 10


class SayingFeature(Chunky):
    kind = "feature"


@pytest.mark.parametrize(
    "plugins",
    [
        [ScriptedProvider(["hi"]), SayingFeature],
        {"providers": [ScriptedProvider(["hi"])], "features": [Chunky]},
        {"agent_platform.providers": [ScriptedProvider(["hi"])], "agent_platform.features": [Chunky]},
    ],
    ids=["attribute", "group", "entry point group"],
)
def test_a_plugin_says_its_kind_by_an_attribute_or_by_its_group(plugins: Any) -> None:
    with application(plugins) as app:
        decisions = {one.plugin: one.kind for one in app.runtime.resolve("a").decisions}

        assert decisions["chunky"] == "feature"
        assert list(app.chat(app.create_session().session_id, "hello"))[-1]["type"] == "final"


def test_a_group_that_there_is_not_is_refused() -> None:
    with pytest.raises(ArgumentError, match="the group 'feature': did you mean 'features'"):
        application({"feature": [Chunky]})


def test_an_installed_plugin_is_what_its_group_says(
    install: Callable[[str, str, str], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGENT_LOAD_PLUGINS", "chunky")
    code = "class Plugin:\n    def process_chunk(self, *pieces):\n        return pieces\n"
    install("chunky", "chunky_module", code)
    entry_points = tmp_path / "chunky_module-1.dist-info" / "entry_points.txt"
    entry_points.write_text(entry_points.read_text().replace("applications", "features"))
    config = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}

    with AgentApplication(config, plugins=[ScriptedProvider(["hi"])]) as app:
        decisions = {one.plugin: one.kind for one in app.runtime.resolve("a").decisions}

    assert decisions["chunky"] == "feature"
