"""Which plugins are on, and why.

Plugins require and forbid tags, and contribute tags while they are on. So the question is asked in
rounds: collect the tags of those that are on, drop those that do not fit, ask again, until nobody
drops out. The set only shrinks, therefore it settles after at most as many rounds as there are
plugins. Two outcomes surprise people and get a warning each: a plugin that was expelled by a tag
whose owner left in the same round, and plugins that keep only each other alive.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from agent_core.config import names
from agent_core.frozen import FrozenDict, FrozenList, JsonObject

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from agent_core.plugin.base import PluginWrapper
    from agent_core.plugin.provider import ProviderWrapper


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Why one plugin is on or off.

    Attributes:
        reason: A stable word: selected, not_selected, disabled, not_enabled, required, forced,
            is_enabled, missing_tags, forbidden_tags or default.
        detail: The same as a sentence.
        round: In which round it was decided; 0 before tags were looked at.
    """

    plugin: str
    kind: str
    enabled: bool
    reason: str
    detail: str
    round: int

    def to_dict(self) -> JsonObject:
        """Return the fields as a dict."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Settled:
    """The plugins that stay on, in their order, with every decision on the way."""

    plugins: tuple[PluginWrapper, ...]
    tags: FrozenList
    decisions: tuple[Decision, ...]
    warnings: tuple[str, ...]


def admit(
    plugins: Iterable[PluginWrapper], config: FrozenDict, required: Collection[str] = ()
) -> tuple[list[PluginWrapper], list[Decision]]:
    """Split off the plugins that are off whatever the tags say."""
    disabled, enabled = set(names(config, "disabled_plugins")), set(names(config, "enabled_plugins"))
    forced = set(names(config, "force_enabled_plugins"))
    admitted, refused = [], []
    for plugin in plugins:
        if plugin.name in required or plugin.name in forced:
            admitted.append(plugin)
        elif plugin.name in disabled:
            refused.append(_off(plugin, "disabled", "it is listed in disabled_plugins"))
        elif not plugin.default_enabled and plugin.name not in enabled:
            refused.append(_off(plugin, "not_enabled", "it is off unless listed in enabled_plugins"))
        else:
            admitted.append(plugin)
    return admitted, refused


def settle(
    provider: ProviderWrapper,
    candidates: Sequence[PluginWrapper],
    config: FrozenDict,
    models: FrozenList,
    required: Collection[str] = (),
) -> Settled:
    """Drop plugins whose tags or own opinion do not fit, until nothing changes."""
    jury = _Jury(config, models, frozenset(required))
    current, decisions, warnings = list(candidates), list[Decision](), list[str]()
    number = 1
    while True:
        contributed = jury.contributed(provider, current)
        verdicts = jury.judge_all(current, contributed, number)
        leaving = [verdict for verdict in verdicts if not verdict.enabled]
        if not leaving:
            warnings += _ungrounded(provider, current, contributed, verdicts)
            return Settled(tuple(current), _union(contributed), (*decisions, *verdicts), tuple(warnings))
        staying = [plugin for plugin, verdict in zip(current, verdicts, strict=True) if verdict.enabled]
        warnings += _expelled_by_leavers(provider, current, staying, leaving, contributed)
        decisions += leaving
        current = staying
        number += 1


class _Jury:
    """Judges plugins for one configuration."""

    def __init__(self, config: FrozenDict, models: FrozenList, required: frozenset[str]) -> None:
        self._config = config
        self._models = models
        self._required = required
        self._forced = set(names(config, "force_enabled_plugins"))

    def contributed(
        self, provider: ProviderWrapper, plugins: Sequence[PluginWrapper]
    ) -> dict[str, list[str]]:
        """Return the tags that each plugin contributes, by its name."""
        context = self._context(plugins)
        return {p.name: p.get_tags(self._config, self._models, context) for p in (provider, *plugins)}

    def judge_all(
        self, plugins: Sequence[PluginWrapper], contributed: dict[str, list[str]], number: int
    ) -> list[Decision]:
        """Return the verdict on each plugin in this round."""
        tags, context = _union(contributed), self._context(plugins)
        return [self._judge(plugin, tags, context, number) for plugin in plugins]

    def _judge(self, plugin: PluginWrapper, tags: FrozenList, context: FrozenDict, number: int) -> Decision:
        if plugin.name in self._required:
            return _on(plugin, "required", "the runtime cannot work without it", number)
        if plugin.name in self._forced:
            return _on(plugin, "forced", "it is listed in force_enabled_plugins", number)
        opinion = plugin.is_enabled(self._config, tags, self._models, context)
        if opinion is not None:
            decide = _on if opinion else _off
            return decide(plugin, "is_enabled", f"its is_enabled returned {opinion}", number)
        return _judge_tags(plugin, set(tags), number)

    def _context(self, plugins: Sequence[PluginWrapper]) -> FrozenDict:
        by_kind = {
            f"{kind}s": FrozenList([plugin.name for plugin in plugins if plugin.kind == kind])
            for kind in ("extension", "feature", "tool")
        }
        return FrozenDict(
            enabled_plugin_ids=FrozenDict(by_kind),
            disabled_plugins=FrozenList(names(self._config, "disabled_plugins")),
            force_enabled_plugins=FrozenList(sorted(self._forced)),
        )


def _judge_tags(plugin: PluginWrapper, tags: set[str], number: int) -> Decision:
    missing = [tag for tag in plugin.required_tags() if tag not in tags]
    if missing:
        return _off(plugin, "missing_tags", f"no enabled plugin gives {_listed(missing)}", number)
    forbidden = [tag for tag in plugin.forbidden_tags() if tag in tags]
    if forbidden:
        return _off(plugin, "forbidden_tags", f"it does not go with {_listed(forbidden)}", number)
    return _on(plugin, "default", "nothing rules it out", number)


def _expelled_by_leavers(
    provider: ProviderWrapper,
    before: Sequence[PluginWrapper],
    staying: Sequence[PluginWrapper],
    leaving: Sequence[Decision],
    contributed: dict[str, list[str]],
) -> list[str]:
    still_there = {tag for plugin in (provider, *staying) for tag in contributed[plugin.name]}
    forbids = {plugin.name: plugin.forbidden_tags() for plugin in before}
    found = []
    for decision in leaving:
        present = [tag for tag in forbids[decision.plugin] if tag in _union(contributed)]
        stays = still_there.union(contributed[decision.plugin])  # its own tags would come back with it
        if decision.reason == "forbidden_tags" and not stays.intersection(present):
            found.append(
                f"Plugin {decision.plugin!r} went because of {_listed(present)}, whose owner went in "
                "the same round; it does not come back"
            )
    return found


def _ungrounded(
    provider: ProviderWrapper,
    plugins: Sequence[PluginWrapper],
    contributed: dict[str, list[str]],
    verdicts: Sequence[Decision],
) -> list[str]:
    """Warn of plugins whose required tags come only from each other."""
    grounded = set(contributed[provider.name])
    waiting = [p for p, verdict in zip(plugins, verdicts, strict=True) if verdict.reason == "default"]
    for plugin in plugins:
        if plugin not in waiting:
            grounded.update(contributed[plugin.name])
    while ready := [plugin for plugin in waiting if grounded.issuperset(plugin.required_tags())]:
        for plugin in ready:
            grounded.update(contributed[plugin.name])
            waiting.remove(plugin)
    if not waiting:
        return []
    return [
        f"Plugins {_listed([p.name for p in waiting])} are on only because each gives what another requires"
    ]


def _union(contributed: dict[str, list[str]]) -> FrozenList:
    return FrozenList(dict.fromkeys(tag for tags in contributed.values() for tag in tags))


def _off(plugin: PluginWrapper, reason: str, detail: str, number: int = 0) -> Decision:
    return replace(_on(plugin, reason, detail, number), enabled=False)


def _on(plugin: PluginWrapper, reason: str, detail: str, number: int) -> Decision:
    return Decision(
        plugin=plugin.name, kind=plugin.kind, enabled=True, reason=reason, detail=detail, round=number
    )


def _listed(words: Iterable[str]) -> str:
    return ", ".join(map(repr, words))
