"""What the wrappers of all plugin kinds have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

from agent_core.config import plugin_config
from agent_core.errors import AgentError, PluginError, RegistrationError
from agent_core.frozen import EMPTY, Dicts, FrozenDict, FrozenList, JsonObject, NotData, State, freeze_data
from agent_core.log import get_logger
from agent_core.plugin.hooks import (
    Adapter,
    HookSpec,
    adapt,
    calling,
    expect,
    expect_dicts,
    expect_strings,
    expect_tuple,
    frozen_dicts,
    name_error,
    read_hooks,
    wrong_answer,
)

Problems: TypeAlias = list[PluginError]
"""What plugins did wrong that costs nobody but themselves."""

_log = get_logger("plugins")
# What a class of plugins said of its keys last, checked and frozen. It is asked for each agent that is built,
# and mostly says the same, which is found out faster than whether it is data.
_described: WeakKeyDictionary[type, JsonObject] = WeakKeyDictionary()

COMMON_HOOKS = (
    HookSpec("get_config_schema"),
    HookSpec("get_ui_elements", ("config", "tags", "models", "context"), 1, (("ui_context", "context"),)),
    HookSpec("get_tags", ("config", "models", "context"), 1),
    HookSpec("required_tags"),
    HookSpec("forbidden_tags"),
    HookSpec("is_enabled", ("config", "tags", "models", "context"), 1),
)


class PluginWrapper:
    """A registered plugin: its hooks looked up once, its answers checked, its errors named.

    Attributes:
        registered: What was registered, a class or an object.
        plugin: The plugin object itself; one per registration, shared by all requests.
        name: What configuration, errors and explanations call it.
        priority: Where it stands among its kind; lower runs first.
        default_enabled: False for plugins that must be listed in `enabled_plugins`.
    """

    kind: ClassVar[str]
    hooks: ClassVar[tuple[HookSpec, ...]] = COMMON_HOOKS

    def __init__(self, plugin: object) -> None:
        self.registered = plugin
        self.plugin_class = plugin if isinstance(plugin, type) else type(plugin)
        self.plugin = _instantiate(plugin, self.plugin_class)
        self.name = _read_name(self.plugin, self.plugin_class)
        self.version = str(getattr(self.plugin, "version", "0"))
        self.priority = _read_priority(self.name, self.plugin)
        self.default_enabled = getattr(self.plugin, "default_enabled", True) is not False
        self._plans = read_hooks(self.name, self.plugin, self.hooks)
        self._adapters: dict[str, Adapter] = {}
        self._logged: dict[str, PluginError] = {}
        self._wants_context: dict[tuple[str, ...], bool] = {}
        self._own_config = (EMPTY, EMPTY)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name!r}>"

    def has(self, hook: str) -> bool:
        return hook in self._plans

    def hook(self, name: str) -> Adapter | None:
        """Return a hook for calling without checks, for the hot path; None if it was not written."""
        found = self._adapters.get(name)
        if found is None and name in self._plans:
            found = self._adapters[name] = adapt(getattr(self.plugin, name), self._plans[name])
        return found

    def takes(self, hook: str, *arguments: str) -> bool:
        """Say whether a hook was written with any of these arguments."""
        spec = next(spec for spec in self.hooks if spec.name == hook)
        plan = self._plans.get(hook)
        return plan is not None and any(plan.takes(spec.arguments.index(name)) for name in arguments)

    def wants_context(self, *hooks: str) -> bool:
        """Say whether any of the hooks (by default: any at all) takes a context, so that one must be made."""
        known = self._wants_context.get(hooks)
        if known is None:
            known = self._wants_context[hooks] = any(
                "context" in spec.arguments
                and (not hooks or spec.name in hooks)
                and spec.name in self._plans
                and self._plans[spec.name].takes(spec.arguments.index("context"))
                for spec in self.hooks
            )
        return known

    def own_config(self, config: FrozenDict) -> FrozenDict:
        """Return the configuration as this plugin reads it, with the settings of its own section."""
        last, own = self._own_config
        if last is not config:
            own = plugin_config(config, self.name)
            if config.__class__ is FrozenDict:  # many requests have the same one, which never changes
                self._own_config = config, own
        return own

    def get_config_schema(self, problems: Problems | None = None) -> JsonObject:
        """Return the plugin's configuration keys and what it says of each.

        Args:
            problems: Takes what the plugin did wrong, and only that is missing from the answer. Without it,
                the first problem is raised.
        """
        hook = "get_config_schema"
        try:
            schema = self._mapping(hook)
        except PluginError as error:
            tolerate(problems, error)
            return {}
        if _equals(schema, _described.get(self.plugin_class)):
            return dict(_described[self.plugin_class])
        good: JsonObject = {}
        for key, value in schema.items():
            if not _describes_a_key(key, value):
                tolerate(problems, PluginError(self.name, hook, f"{key!r:.80} must be a key with a dict"))
            elif (entry := self._data(problems, hook, dict(value), f"{key!r:.80}")) is not None:
                good[key] = entry
        if len(good) == len(schema):
            _described[self.plugin_class] = dict(good)
        return good

    def get_ui_elements(
        self,
        config: FrozenDict,
        tags: Sequence[str],
        models: Sequence[object],
        context: object,
        problems: Problems | None = None,
    ) -> Dicts:
        """Return what the plugin wants shown for this configuration; see `get_config_schema`."""
        return self._good_dicts(problems, "get_ui_elements", self.own_config(config), tags, models, context)

    @property
    def problems(self) -> tuple[PluginError, ...]:
        """What the plugin did wrong so far that was tolerated."""
        return tuple(self._logged.values())

    def log_once(self, problem: PluginError) -> None:
        """Write a problem that was tolerated to the log, unless it was written before."""
        if str(problem) not in self._logged:
            self._logged[str(problem)] = problem
            _log.warning("plugin_problem", plugin=self.name, hook=problem.hook, problem=problem.problem)

    def get_tags(self, config: FrozenDict, models: Sequence[object], context: object) -> list[str]:
        """Return the capability tags that the plugin contributes while it is on."""
        return self._strings("get_tags", self.own_config(config), models, context)

    def required_tags(self) -> list[str]:
        """Return the tags without any of which the plugin is off."""
        return self._strings("required_tags")

    def forbidden_tags(self) -> list[str]:
        """Return the tags with any of which the plugin is off."""
        return self._strings("forbidden_tags")

    def is_enabled(
        self, config: FrozenDict, tags: Sequence[str], models: Sequence[object], context: object
    ) -> bool | None:
        """Return the plugin's own opinion, or None to let its tags decide."""
        answer = self._call("is_enabled", None, self.own_config(config), tags, models, context)
        if answer is not None and not isinstance(answer, bool):
            raise wrong_answer(self.name, "is_enabled", "True, False or None", answer)
        return answer

    def _call(self, hook: str, default: object, *arguments: object) -> Any:
        if hook not in self._plans:
            return default
        function = self._adapters.get(hook) or self.hook(hook)
        assert function is not None
        try:
            return function(*arguments)
        except AgentError:
            raise
        except Exception as error:
            raise name_error(self.name, hook, error) from error

    def _mapping(self, hook: str, *arguments: object) -> JsonObject:
        answer = self._call(hook, {}, *arguments)
        if not isinstance(answer, Mapping):
            raise wrong_answer(self.name, hook, "a dict", answer)
        return dict(answer)

    def _state(self, hook: str, default: JsonObject, *arguments: object) -> JsonObject:
        answer = self._call(hook, default, *arguments)
        return expect(self.name, hook, answer, dict, "the state, a dict")

    def _strings(self, hook: str, *arguments: object) -> list[str]:
        return expect_strings(self.name, hook, self._call(hook, (), *arguments))

    def _dicts(self, hook: str, *arguments: object) -> Dicts:
        return expect_dicts(self.name, hook, self._call(hook, [], *arguments))

    def _good_dicts(self, problems: Problems | None, hook: str, *arguments: object) -> Dicts:
        """Return those of the hook's answers that are dicts; the others are problems."""
        try:
            answer = self._call(hook, [], *arguments)
            listed = expect(self.name, hook, answer, (list, tuple), "a list of dicts")
        except PluginError as error:
            tolerate(problems, error)
            return []
        good: Dicts = []
        for place, item in enumerate(listed):
            if not isinstance(item, dict):
                tolerate(problems, wrong_answer(self.name, hook, "a list of dicts", item))
            elif (entry := self._data(problems, hook, item, f"entry {place}")) is not None:
                good.append(entry)
        return good

    def _data(self, problems: Problems | None, hook: str, entry: JsonObject, name: str) -> FrozenDict | None:
        """Return an entry frozen; None if it is not data, which no front end could be sent."""
        try:
            data: FrozenDict = freeze_data(entry, name)
        except NotData as error:
            tolerate(problems, PluginError(self.name, hook, f"{error.path}: {error}"))
            return None
        return data

    def _native_and_state(
        self, hook: str, native: FrozenList, state: State, *extras: object
    ) -> tuple[FrozenList, State]:
        answer = self._call(hook, (native, state), native, state, *extras)
        items, state = expect_tuple(self.name, hook, answer, (list, dict), "(native_messages, state)")
        return self._native(hook, items, native), state

    def _native(self, hook: str, answer: object, before: FrozenList) -> FrozenList:
        """Freeze what came back; only what is not known to be frozen already is looked at."""
        if answer is before:  # nothing changed, and it is frozen
            return before
        items = expect(self.name, hook, answer, list, "a list of dicts")
        if not items and not before:
            return before
        kept = len(before)
        if items[:kept] == before:
            return FrozenList([*before, *frozen_dicts(self.name, hook, items[kept:])])
        return FrozenList(frozen_dicts(self.name, hook, items))


def tolerate(problems: Problems | None, problem: PluginError) -> None:
    """Add a problem to those that somebody collects, or raise it if nobody does."""
    if problems is None:
        raise problem
    problems.append(problem)


def _equals(answer: object, known: object) -> bool:
    """Compare a plugin's answer, which may hold anything, with data."""
    try:
        return bool(answer == known)
    except Exception:
        return False


def _describes_a_key(key: object, value: object) -> bool:
    return isinstance(key, str) and bool(key) and isinstance(value, Mapping)


def _instantiate(plugin: object, plugin_class: type) -> Any:
    if plugin_class.__module__ == "builtins":
        raise RegistrationError(
            plugin_class.__name__, "a plugin must be a class, or an object of a class, that is not built in"
        )
    if not isinstance(plugin, type):
        return plugin
    name = getattr(plugin, "name", None)
    with calling(name if isinstance(name, str) else plugin.__name__, "__init__"):
        return plugin()


def _read_name(plugin: object, plugin_class: type) -> str:
    name = getattr(plugin, "name", None) or plugin_class.__name__
    if not isinstance(name, str):
        raise RegistrationError(
            plugin_class.__name__, f"its name must be a string, not {type(name).__name__}"
        )
    return name


def _read_priority(name: str, plugin: object) -> int:
    priority = getattr(plugin, "priority", 100)
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise RegistrationError(name, f"its priority must be an integer, not {priority!r}")
    return priority
