"""Which plugins are on for a configuration, why, and what its author is warned of."""

import logging
from typing import Any

import pytest

from agent_core import AgentCore, PluginNotFoundError
from agent_core.testing import EchoProvider


class Plugin:
    """Can be registered as a feature, an extension or a tool plugin."""

    version = "1"

    def __init__(
        self,
        name: str,
        *,
        gives: str = "",
        requires: str = "",
        forbids: str = "",
        opinion: bool | None = None,
        default_enabled: bool = True,
        priority: int = 100,
    ) -> None:
        self.name = name
        self.default_enabled = default_enabled
        self.priority = priority
        self.seen: list[dict[str, Any]] = []
        self._tags = [words.split() for words in (gives, requires, forbids)]
        self._opinion = opinion

    def get_tags(self, config: Any) -> list[str]:
        return self._tags[0]

    def required_tags(self) -> list[str]:
        return self._tags[1]

    def forbidden_tags(self) -> list[str]:
        return self._tags[2]

    def is_enabled(self, config: Any, tags: Any, models: Any, context: Any) -> bool | None:
        self.seen.append({"config": config, "tags": tags, "models": models, "context": context})
        return self._opinion

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return []

    def execute_tool(self, tool_name: str, arguments: Any) -> None: ...


class OtherProvider(EchoProvider):
    name = "other"

    def get_tags(self, config: Any) -> list[str]:
        return ["other_world"]


def core_of(*features: Plugin, extensions: Any = (), tools: Any = ()) -> AgentCore:
    core = AgentCore()
    core.register_provider(EchoProvider, list(extensions))
    for feature in features:
        core.register_feature(feature)
    for plugin in tools:
        core.register_tool(plugin)
    return core


def names_on(core: AgentCore, config: dict[str, Any] | None = None) -> list[str]:
    found = core.get_plugins_for_config(config or {})
    return [*found["extensions"], *found["features"], *found["tools"]]


def why(core: AgentCore, name: str, config: dict[str, Any] | None = None) -> tuple[bool, str, int]:
    """Return on or off, the reason and the round of one plugin."""
    [found] = [entry for entry in core.explain_plugins(config or {}) if entry["plugin"] == name]
    return found["enabled"], found["reason"], found["round"]


def test_nothing_speaks_against_a_plugin_that_asks_for_nothing() -> None:
    core = core_of(Plugin("plain"))

    assert names_on(core) == ["plain"]
    assert why(core, "plain") == (True, "default", 1)


def test_every_required_tag_must_be_there() -> None:
    core = core_of(
        Plugin("fits", requires="streaming"),
        Plugin("half", requires="streaming vision"),
        Plugin("lost", requires="vision"),
    )

    assert names_on(core) == ["fits"]
    assert why(core, "half") == (False, "missing_tags", 1)
    assert why(core, "lost") == (False, "missing_tags", 1)


def test_no_forbidden_tag_may_be_there() -> None:
    core = core_of(Plugin("quiet", forbids="vision"), Plugin("shy", forbids="vision streaming"))

    assert names_on(core) == ["quiet"]
    assert why(core, "shy") == (False, "forbidden_tags", 1)


def test_a_missing_tag_is_reported_before_a_forbidden_one() -> None:
    assert why(core_of(Plugin("both", requires="vision", forbids="streaming")), "both")[1] == "missing_tags"


@pytest.mark.parametrize("kind", ["extensions", "features", "tools"])
def test_tags_come_from_plugins_of_every_kind_that_is_on(kind: str) -> None:
    giver, taker = Plugin("giver", gives="deep"), Plugin("taker", requires="deep")
    core = core_of(
        taker,
        *([giver] if kind == "features" else []),
        extensions=[giver] if kind == "extensions" else [],
        tools=[giver] if kind == "tools" else [],
    )

    assert "taker" in names_on(core)
    assert "taker" not in names_on(core, {"disabled_plugins": ["giver"]})


@pytest.mark.parametrize("kind", ["extensions", "features", "tools"])
def test_plugins_of_every_kind_are_judged(kind: str) -> None:
    picky = Plugin("picky", requires="vision")
    core = core_of(
        *([picky] if kind == "features" else []),
        extensions=[picky] if kind == "extensions" else [],
        tools=[picky] if kind == "tools" else [],
    )

    assert names_on(core) == []
    assert why(core, "picky") == (False, "missing_tags", 1)
    assert core.explain_plugins({})[1]["kind"] == kind[:-1]


def test_who_depends_on_whom_is_settled_in_rounds() -> None:
    core = core_of(
        Plugin("first", gives="b", requires="a"),
        Plugin("second", gives="c", requires="b"),
        Plugin("third", requires="c"),
        Plugin("apart"),
    )

    assert [(e["plugin"], e["enabled"], e["reason"], e["round"]) for e in core.explain_plugins({})] == [
        ("echo", True, "selected", 0),
        ("first", False, "missing_tags", 1),
        ("second", False, "missing_tags", 2),
        ("third", False, "missing_tags", 3),
        ("apart", True, "default", 4),
    ]


@pytest.mark.parametrize("opinion", [True, False])
def test_a_plugins_own_opinion_goes_over_its_tags(opinion: bool) -> None:
    core = core_of(Plugin("fits", opinion=opinion), Plugin("lost", requires="vision", opinion=opinion))

    assert names_on(core) == (["fits", "lost"] if opinion else [])
    assert why(core, "lost") == (opinion, "is_enabled", 1)


def test_without_an_opinion_tags_decide() -> None:
    core = core_of(Plugin("fits", opinion=None), Plugin("lost", requires="vision", opinion=None))

    assert names_on(core) == ["fits"]


def test_is_enabled_gets_everything_it_needs_to_decide() -> None:
    asked = Plugin("asked", gives="own")
    core = core_of(
        asked,
        Plugin("unwanted"),
        Plugin("lost", gives="gone", requires="vision"),
        extensions=[Plugin("extra")],
        tools=[Plugin("tools")],
    )
    config = {"disabled_plugins": ["unwanted"], "force_enabled_plugins": ["tools"], "mood": "calm"}
    core.resolve(config)

    assert [call["config"] for call in asked.seen] == [config, config]
    assert [call["models"] for call in asked.seen] == [[{"id": "echo", "name": "Echo"}]] * 2
    assert [call["tags"] for call in asked.seen] == [["streaming", "own", "gone"], ["streaming", "own"]]
    assert [call["context"] for call in asked.seen] == [
        {
            "enabled_plugin_ids": {"extensions": ["extra"], "features": features, "tools": ["tools"]},
            "disabled_plugins": ["unwanted"],
            "force_enabled_plugins": ["tools"],
        }
        for features in (["asked", "lost"], ["asked"])
    ]


def test_tags_may_depend_on_the_configuration_and_the_models() -> None:
    class Sighted(Plugin):
        def get_tags(self, config: Any, models: Any = (), context: Any = None) -> list[str]:
            return [config["sense"], models[0]["id"], *context["enabled_plugin_ids"]["features"]]

    core = core_of(Sighted("sighted"), Plugin("taker", requires="sight echo taker"))

    assert "taker" in names_on(core, {"sense": "sight"})
    assert "taker" not in names_on(core, {"sense": "smell"})


def test_a_plugin_that_is_off_by_default_must_be_listed() -> None:
    core = core_of(Plugin("extra", default_enabled=False))

    assert why(core, "extra") == (False, "not_enabled", 0)
    assert why(core, "extra", {"enabled_plugins": ["extra"]}) == (True, "default", 1)
    assert why(core, "extra", {"force_enabled_plugins": ["extra"]}) == (True, "forced", 1)


def test_being_listed_does_not_help_against_tags_or_an_opinion() -> None:
    core = core_of(
        Plugin("lost", default_enabled=False, requires="vision"),
        Plugin("unwilling", default_enabled=False, opinion=False),
    )
    config = {"enabled_plugins": ["lost", "unwilling"]}

    assert why(core, "lost", config) == (False, "missing_tags", 1)
    assert why(core, "unwilling", config) == (False, "is_enabled", 1)


def test_a_list_of_enabled_plugins_switches_no_other_off() -> None:
    core = core_of(Plugin("plain"), Plugin("extra", default_enabled=False))

    assert names_on(core, {"enabled_plugins": ["extra"]}) == ["plain", "extra"]


def test_a_disabled_plugin_is_off_and_gives_no_tags() -> None:
    core = core_of(Plugin("giver", gives="deep", opinion=True), Plugin("taker", requires="deep"))
    config = {"disabled_plugins": ["giver"]}

    assert names_on(core, config) == []
    assert why(core, "giver", config) == (False, "disabled", 0)
    assert why(core, "taker", config) == (False, "missing_tags", 1)


def test_a_forced_plugin_is_on_against_its_opinion_and_its_tags() -> None:
    core = core_of(
        Plugin("unwilling", opinion=False),
        Plugin("lost", requires="vision"),
        Plugin("shy", forbids="streaming"),
    )
    everyone = ["unwilling", "lost", "shy"]

    assert names_on(core) == []
    assert names_on(core, {"force_enabled_plugins": everyone}) == everyone
    assert why(core, "shy", {"force_enabled_plugins": everyone}) == (True, "forced", 1)


def test_a_forced_plugin_is_not_asked_for_its_opinion() -> None:
    unwilling = Plugin("unwilling", opinion=False)
    core_of(unwilling).resolve({"force_enabled_plugins": ["unwilling"]})

    assert unwilling.seen == []


STRENGTH = [
    # (required, disabled, forced, opinion, tags fit) -> on, reason
    (True, True, True, False, False, (True, "required")),
    (False, True, True, False, False, (True, "forced")),
    (False, True, False, True, True, (False, "disabled")),
    (False, False, True, False, False, (True, "forced")),
    (False, False, False, True, False, (True, "is_enabled")),
    (False, False, False, False, True, (False, "is_enabled")),
    (False, False, False, None, False, (False, "missing_tags")),
    (False, False, False, None, True, (True, "default")),
]


@pytest.mark.parametrize(("required", "disabled", "forced", "opinion", "fits", "expected"), STRENGTH)
@pytest.mark.parametrize("default_enabled", [True, False])
def test_the_stronger_word_counts(
    required: bool,
    disabled: bool,
    forced: bool,
    opinion: bool | None,
    fits: bool,
    expected: tuple[bool, str],
    default_enabled: bool,
) -> None:
    """Required, then forced, then disabled, then the plugin's own opinion, then tags."""
    tags = "streaming" if fits else "vision"
    core = core_of(Plugin("judged", requires=tags, opinion=opinion, default_enabled=default_enabled))
    config = {
        "enabled_plugins": ["judged"],
        "disabled_plugins": ["judged"] if disabled else [],
        "force_enabled_plugins": ["judged"] if forced else [],
    }

    decision = core.resolve(config, required=["judged"] if required else []).decisions[1]

    assert (decision.enabled, decision.reason) == expected


def test_a_required_plugin_that_is_off_by_default_is_on() -> None:
    core = core_of(Plugin("needed", default_enabled=False), Plugin("optional", default_enabled=False))

    assert [f.name for f in core.resolve({}, required=["needed"]).features] == ["needed"]


def test_what_is_required_for_one_request_is_not_remembered_for_others() -> None:
    core = core_of(Plugin("needed", default_enabled=False))
    core.resolve({}, required=["needed"])

    assert names_on(core) == []


def test_a_plugin_that_is_wanted_and_not_there_is_an_error() -> None:
    core = core_of(Plugin("compaction"), Plugin("memory"))

    with pytest.raises(PluginNotFoundError) as caught:
        core.send_request(core.create_session(), {"enabled_plugins": ["memory", "compacton"]})
    assert str(caught.value) == (
        "Unknown plugin 'compacton' (config['enabled_plugins']): did you mean 'compaction'?"
    )
    assert caught.value.name == "compacton"
    assert caught.value.known == ("echo", "compaction", "memory")


def test_a_required_plugin_that_is_not_there_is_an_error() -> None:
    with pytest.raises(PluginNotFoundError, match=r"'loop_actions' .*required"):
        core_of().resolve({}, required=["loop_actions"])


@pytest.mark.parametrize("key", ["disabled_plugins", "force_enabled_plugins"])
def test_a_name_that_nobody_has_is_ignored_with_a_warning(key: str, caplog: pytest.LogCaptureFixture) -> None:
    core = core_of(Plugin("plain"))
    with caplog.at_level(logging.WARNING, "agent_core"):
        resolution = core.resolve({key: ["gone", "plane"]})

    assert resolution.warnings == (
        f"config['{key}'] names 'gone', which is not registered",
        f"config['{key}'] names 'plane', which is not registered: did you mean 'plain'?",
    )
    assert [feature.name for feature in resolution.features] == ["plain"]
    assert "gone" in caplog.text


def test_a_warning_is_logged_once_while_nothing_changes(caplog: pytest.LogCaptureFixture) -> None:
    core = core_of()
    with caplog.at_level(logging.WARNING, "agent_core"):
        for _ in range(3):
            core.send_request(core.create_session(), {"disabled_plugins": ["gone"]})

    assert len(caplog.records) == 1


def test_a_plugin_expelled_by_one_that_leaves_with_it_does_not_come_back() -> None:
    """The first surprise: nobody would object any more, but the set only shrinks."""
    core = core_of(Plugin("shy", forbids="noise"), Plugin("noisy", gives="noise", requires="vision"))

    assert names_on(core) == []
    assert core.resolve({}).warnings == (
        "Plugin 'shy' went because of 'noise', whose owner went in the same round; it does not come back",
    )


def test_two_that_expel_each_other_are_both_warned_of() -> None:
    core = core_of(Plugin("cat", gives="fur", forbids="bark"), Plugin("dog", gives="bark", forbids="fur"))

    assert names_on(core) == []
    assert [warning.split("'")[1] for warning in core.resolve({}).warnings] == ["cat", "dog"]


@pytest.mark.parametrize(
    "features",
    [
        [Plugin("shy", forbids="noise"), Plugin("noisy", gives="noise")],
        [Plugin("shy", forbids="noise streaming"), Plugin("noisy", gives="noise", requires="vision")],
        [Plugin("odd", gives="noise", forbids="noise")],
        [Plugin("lost", requires="vision"), Plugin("noisy", gives="noise", requires="vision")],
        [Plugin("shy", forbids="noise", opinion=False), Plugin("noisy", gives="noise", opinion=False)],
    ],
    ids=["owner stays", "another reason stays", "its own tag", "missing tags", "own opinions"],
)
def test_whoever_would_have_to_go_anyway_is_no_surprise(features: list[Plugin]) -> None:
    assert core_of(*features).resolve({}).warnings == ()


def test_plugins_that_keep_only_each_other_alive_stay_with_a_warning() -> None:
    """The second surprise: take both away and neither could come back."""
    core = core_of(Plugin("hen", gives="egg", requires="hen"), Plugin("egg", gives="hen", requires="egg"))

    assert names_on(core) == ["hen", "egg"]
    assert core.resolve({}).warnings == (
        "Plugins 'hen', 'egg' are on only because each gives what another requires",
    )


@pytest.mark.parametrize(
    "features",
    [
        [Plugin("hen", gives="egg", requires="hen"), Plugin("egg", gives="hen", requires="streaming")],
        [
            Plugin("hen", gives="egg", requires="hen"),
            Plugin("egg", gives="hen", requires="egg", opinion=True),
        ],
        [Plugin("hen", gives="egg"), Plugin("egg", gives="hen", requires="egg")],
    ],
    ids=["the provider's tag", "an opinion", "nothing required"],
)
def test_a_circle_that_somebody_outside_holds_up_is_no_surprise(features: list[Plugin]) -> None:
    core = core_of(*features)

    assert names_on(core) == ["hen", "egg"]
    assert core.resolve({}).warnings == ()


def test_features_and_tools_run_by_priority_and_then_by_registration() -> None:
    core = core_of(
        Plugin("late", priority=200),
        Plugin("first"),
        Plugin("second"),
        Plugin("early", priority=-1),
        extensions=[Plugin("ext_late", priority=200), Plugin("ext_early", priority=1)],
        tools=[Plugin("tool_late", priority=101), Plugin("tool_early", priority=99)],
    )

    assert core.get_plugins_for_config({}) == {
        "providers": ["echo"],
        "extensions": ["ext_late", "ext_early"],
        "features": ["early", "first", "second", "late"],
        "tools": ["tool_early", "tool_late"],
    }


def test_every_registered_plugin_is_explained_in_the_order_of_registration() -> None:
    core = core_of(
        Plugin("feature", priority=200),
        Plugin("picky", requires="vision", priority=1),
        extensions=[Plugin("extra")],
        tools=[Plugin("tools", forbids="streaming")],
    )
    core.register_provider(OtherProvider, [Plugin("far_off")])

    assert core.explain_plugins({"provider": "echo", "disabled_plugins": ["feature"]}) == [
        {
            "plugin": "echo",
            "kind": "provider",
            "enabled": True,
            "reason": "selected",
            "detail": "the configuration selects it",
            "round": 0,
            "problems": [],
        },
        {
            "plugin": "extra",
            "kind": "extension",
            "enabled": True,
            "reason": "default",
            "detail": "nothing rules it out",
            "round": 2,
            "problems": [],
        },
        {
            "plugin": "other",
            "kind": "provider",
            "enabled": False,
            "reason": "not_selected",
            "detail": "the configuration selects 'echo'",
            "round": 0,
            "problems": [],
        },
        {
            "plugin": "far_off",
            "kind": "extension",
            "enabled": False,
            "reason": "not_selected",
            "detail": "its provider 'other' is not selected",
            "round": 0,
            "problems": [],
        },
        {
            "plugin": "feature",
            "kind": "feature",
            "enabled": False,
            "reason": "disabled",
            "detail": "it is listed in disabled_plugins",
            "round": 0,
            "problems": [],
        },
        {
            "plugin": "picky",
            "kind": "feature",
            "enabled": False,
            "reason": "missing_tags",
            "detail": "no enabled plugin gives 'vision'",
            "round": 1,
            "problems": [],
        },
        {
            "plugin": "tools",
            "kind": "tool",
            "enabled": False,
            "reason": "forbidden_tags",
            "detail": "it does not go with 'streaming'",
            "round": 1,
            "problems": [],
        },
    ]


def test_an_extension_of_two_providers_is_explained_for_each() -> None:
    class Shared:
        name = "shared"

    core = AgentCore()
    core.register_provider(EchoProvider, [Shared])
    core.register_provider(OtherProvider, [Shared])

    decisions = core.explain_plugins({"provider": "other"})

    assert [(d["plugin"], d["enabled"]) for d in decisions] == [
        ("echo", False),
        ("shared", False),
        ("other", True),
        ("shared", True),
    ]


def test_extensions_and_tags_of_other_providers_do_not_count() -> None:
    core = core_of(Plugin("native", requires="other_world"), Plugin("guest", requires="beyond"))
    core.register_provider(OtherProvider, [Plugin("far_off", gives="beyond")])

    assert names_on(core, {"provider": "echo"}) == []
    assert names_on(core, {"provider": "other"}) == ["far_off", "native", "guest"]


def test_lists_of_plugins_do_not_apply_to_providers() -> None:
    core = core_of()
    core.register_provider(OtherProvider)
    config = {"provider": "echo", "disabled_plugins": ["echo"], "force_enabled_plugins": ["other"]}

    assert core.get_plugins_for_config(config)["providers"] == ["echo"]


def test_what_is_explained_is_what_a_request_does() -> None:
    ran: list[str] = []

    class Noting(Plugin):
        def finalize(self, final_messages: Any, native_messages: Any, state: Any) -> Any:
            ran.append(self.name)
            return final_messages, native_messages, state

    core = core_of(Noting("on"), Noting("off", requires="vision"), extensions=[Noting("extra")])
    core.send_request(core.add_message(core.create_session(), "user", "hello"), {})

    assert ran == [d["plugin"] for d in core.explain_plugins({}) if d["enabled"] and d["kind"] != "provider"]


def test_the_answers_may_be_changed_by_whoever_asked() -> None:
    core = core_of(Plugin("plain"))
    core.get_plugins_for_config({})["features"].append("mine")
    core.explain_plugins({})[0]["enabled"] = False

    assert core.get_plugins_for_config({})["features"] == ["plain"]
    assert core.explain_plugins({})[0]["enabled"] is True


def test_the_decision_is_made_once_while_nothing_changes() -> None:
    asked = Plugin("asked")
    core = core_of(asked)
    session = core.add_message(core.create_session(), "user", "hello")
    for _ in range(3):
        core.send_request(session, {"mood": "calm"})
        core.get_plugins_for_config({"mood": "calm"})
    assert len(asked.seen) == 1

    core.send_request(session, {"mood": "wild"})
    assert len(asked.seen) == 2


def test_old_decisions_are_forgotten_when_there_are_very_many() -> None:
    asked = Plugin("asked")
    core = core_of(asked)
    for number in range(200):
        core.resolve({"number": number})
    assert len(core._resolutions) < 200

    core.resolve({"number": 199})
    assert len(asked.seen) == 200
