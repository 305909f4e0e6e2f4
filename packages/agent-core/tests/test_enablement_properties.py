"""What holds for every set of plugins and every configuration, tried on random ones."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings, strategies as st

from agent_core import AgentCore, Resolution
from agent_core.testing import EchoProvider

TAGS = ["streaming", "a", "b", "c"]  # the echo provider gives the first
KINDS = ["extension", "feature", "tool"]

some, many = settings(max_examples=25), settings(max_examples=50)
tag_sets = st.frozensets(st.sampled_from(TAGS), max_size=2)
# A fixed opinion, or one that depends on whether a tag is there.
opinions = st.none() | st.booleans() | st.sampled_from(TAGS)


@dataclass(frozen=True)
class Plugin:
    name: str
    kind: str
    gives: frozenset[str]
    requires: frozenset[str]
    forbids: frozenset[str]
    opinion: bool | str | None
    default_enabled: bool
    priority: int
    version: str = field(default="1")

    def get_tags(self, config: Any) -> list[str]:
        return sorted(self.gives)

    def required_tags(self) -> list[str]:
        return sorted(self.requires)

    def forbidden_tags(self) -> list[str]:
        return sorted(self.forbids)

    def is_enabled(self, config: Any, tags: Iterable[str]) -> bool | None:
        if isinstance(self.opinion, str):
            return True if self.opinion in tags else None
        return self.opinion

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return []

    def execute_tool(self, tool_name: str, arguments: Any) -> None: ...


@dataclass(frozen=True)
class Case:
    plugins: tuple[Plugin, ...]
    enabled: list[str]
    disabled: list[str]
    forced: list[str]
    required: list[str]

    def config(self) -> dict[str, Any]:
        return {
            "enabled_plugins": self.enabled,
            "disabled_plugins": self.disabled,
            "force_enabled_plugins": self.forced,
        }

    def resolve(self) -> Resolution:
        core = AgentCore()
        core.register_provider(EchoProvider, [p for p in self.plugins if p.kind == "extension"])
        for plugin in self.plugins:
            if plugin.kind == "feature":
                core.register_feature(plugin)
            elif plugin.kind == "tool":
                core.register_tool(plugin)
        return core.resolve(self.config(), required=self.required)

    def in_order(self) -> list[Plugin]:
        return sorted(self.plugins, key=lambda plugin: KINDS.index(plugin.kind))

    def only(self, names: set[str]) -> "Case":
        """Return the case with only these plugins, and lists that name only these."""
        lists = (self.enabled, self.disabled, self.forced, self.required)
        kept = ([name for name in listed if name in names] for listed in lists)
        return Case(tuple(p for p in self.plugins if p.name in names), *kept)


@st.composite
def cases(draw: st.DrawFn, *, tags_only: bool = False) -> Case:
    """Return plugins and lists of them; or only plugins, of which each has tags and nothing else."""
    plugins = tuple(
        Plugin(
            name=f"p{number}",
            kind=draw(st.sampled_from(KINDS)),
            gives=draw(tag_sets),
            requires=draw(tag_sets),
            forbids=frozenset() if tags_only else draw(tag_sets),
            opinion=None if tags_only else draw(opinions),
            default_enabled=tags_only or draw(st.booleans()),
            priority=draw(st.sampled_from([1, 100])),
        )
        for number in range(draw(st.integers(0, 7)))
    )
    names = [plugin.name for plugin in plugins]
    few = (
        st.lists(st.sampled_from(names), unique=True, max_size=3) if names and not tags_only else st.just([])
    )
    enabled = draw(st.just(names) | few)
    return Case(plugins, enabled, draw(few), draw(few), draw(st.just([]) | few))


def names_on(resolution: Resolution) -> list[str]:
    return [p.name for p in (*resolution.provider.extensions, *resolution.features, *resolution.tools)]


def expected(case: Case) -> set[str]:
    """Decide it the slow way: ask everyone again until nobody leaves."""

    def admitted(plugin: Plugin) -> bool:
        if plugin.name in {*case.required, *case.forced}:
            return True
        listed = plugin.default_enabled or plugin.name in case.enabled
        return listed and plugin.name not in case.disabled

    def fits(plugin: Plugin, tags: set[str]) -> bool:
        if plugin.name in case.required or plugin.name in case.forced:
            return True
        opinion = plugin.is_enabled({}, tags)
        return plugin.requires <= tags and not plugin.forbids & tags if opinion is None else opinion

    here = [plugin for plugin in case.plugins if admitted(plugin)]
    while True:
        tags = {"streaming"}.union(*(plugin.gives for plugin in here))
        staying = [plugin for plugin in here if fits(plugin, tags)]
        if staying == here:
            return {plugin.name for plugin in here}
        here = staying


@many
@given(cases())
def test_the_outcome_is_that_of_the_plain_loop(case: Case) -> None:
    resolution = case.resolve()

    assert set(names_on(resolution)) == expected(case)
    assert set(resolution.tags) == {"streaming"}.union(
        *(plugin.gives for plugin in case.plugins if plugin.name in names_on(resolution))
    )


@some
@given(cases())
def test_it_ends_after_at_most_one_round_per_plugin_and_one_more(case: Case) -> None:
    rounds = {decision.round for decision in case.resolve().decisions}

    assert max(rounds) <= len(case.plugins) + 1
    assert rounds >= set(range(1, max(rounds)))


@some
@given(cases())
def test_the_order_of_registration_is_kept_within_one_priority(case: Case) -> None:
    resolution = case.resolve()
    on = set(names_on(resolution))
    by_kind = {kind: [p for p in case.plugins if p.kind == kind and p.name in on] for kind in KINDS}

    assert [p.name for p in resolution.provider.extensions] == [p.name for p in by_kind["extension"]]
    for kind, found in (("feature", resolution.features), ("tool", resolution.tools)):
        in_order = [p.name for priority in (1, 100) for p in by_kind[kind] if p.priority == priority]
        assert [p.name for p in found] == in_order


@some
@given(cases())
def test_every_plugin_has_exactly_one_decision_and_it_is_what_happens(case: Case) -> None:
    resolution = case.resolve()
    provider, *decisions = resolution.decisions

    assert (provider.plugin, provider.reason) == ("echo", "selected")
    assert [(d.plugin, d.kind) for d in decisions] == [(p.name, p.kind) for p in case.in_order()]
    assert {d.plugin for d in decisions if d.enabled} == set(names_on(resolution))


@some
@given(cases())
def test_required_and_forced_plugins_stay_and_other_disabled_ones_never_do(case: Case) -> None:
    on, sure = set(names_on(case.resolve())), {*case.required, *case.forced}

    assert sure <= on
    assert not (set(case.disabled) - sure) & on


@some
@given(cases())
def test_every_reason_is_true(case: Case) -> None:
    resolution = case.resolve()
    plugins = {plugin.name: plugin for plugin in case.plugins}
    for decision in resolution.decisions[1:]:
        plugin = plugins[decision.plugin]
        true = {
            "required": plugin.name in case.required,
            "disabled": plugin.name in case.disabled,
            "not_enabled": not plugin.default_enabled and plugin.name not in case.enabled,
            "forced": plugin.name in case.forced,
            "is_enabled": plugin.opinion is not None,
            "missing_tags": bool(plugin.requires),
            "forbidden_tags": bool(plugin.forbids),
            "default": plugin.requires <= set(resolution.tags) and not plugin.forbids & set(resolution.tags),
        }
        assert true[decision.reason]
        if decision.reason in ("disabled", "not_enabled"):
            assert (decision.enabled, decision.round) == (False, 0)


@some
@given(cases())
def test_resolving_the_outcome_again_changes_nothing(case: Case) -> None:
    on = names_on(case.resolve())
    again = case.only(set(on)).resolve()

    assert names_on(again) == on
    assert {decision.round for decision in again.decisions[1:]} <= {1}


@some
@given(cases(tags_only=True) | cases())
def test_plugins_that_are_not_warned_of_could_join_one_after_the_other(case: Case) -> None:
    """What the second warning says, seen from its other side."""
    resolution = case.resolve()
    on = {plugin.name: plugin for plugin in case.plugins if plugin.name in names_on(resolution)}
    reasons = {decision.plugin: decision.reason for decision in resolution.decisions}
    joined: set[str] = set()
    tags = {"streaming"}
    while able := [
        plugin
        for plugin in on.values()
        if plugin.name not in joined and (reasons[plugin.name] != "default" or plugin.requires <= tags)
    ]:
        joined |= {plugin.name for plugin in able}
        tags = tags.union(*(plugin.gives for plugin in able))
    warned = [warning for warning in resolution.warnings if warning.startswith("Plugins ")]

    assert bool(warned) == (joined != set(on))
    for name in on:
        assert any(repr(name) in warning for warning in warned) == (name not in joined)
