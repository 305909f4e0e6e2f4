"""Every check there is, by kind of plugin, and two ways to run them: `check_plugin` and test classes.

pytest itself is imported only when a test class has to skip a check.
"""

from __future__ import annotations

from functools import partial
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn
from weakref import WeakKeyDictionary

from agent_core.errors import ArgumentError
from agent_testing.conformance import actions, hooks, requests, second_format, tools
from agent_testing.conformance.case import (
    Case,
    ConformanceReport,
    Exchange,
    Finding,
    NotApplicable,
    Skipped,
    check_kind,
    instance_of,
    neighbour,
)
from agent_testing.conformance.hooks import it_registers, registered_name, registration_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_provider_kit import Config
    from agent_testing.conformance.case import Exchanging, Faults, Flaw

    Check = Callable[[Case], Faults]

_EVERY_HOOK: tuple[Check, ...] = (
    hooks.it_registers,
    hooks.hooks_answer_the_documented_types,
    hooks.inputs_are_left_alone,
    hooks.enablement_is_pure,
    hooks.settings_and_elements_are_json,
    hooks.answers_are_json,
)
_REQUESTS: tuple[Check, ...] = (
    hooks.transforms_are_deterministic,
    requests.one_message_converts_as_in_a_batch,
    requests.calls_streams_and_async_twins_agree,
    requests.an_empty_answer_is_finalized,
    requests.closing_early_keeps_a_partial,
    requests.interleaved_requests_stay_apart,
)
_ACTIONS: tuple[Check, ...] = (
    actions.actions_are_well_defined,
    actions.unknown_actions_are_refused,
    actions.actions_run,
    actions.idempotent_actions_change_nothing_twice,
)

CHECKS: Mapping[str, tuple[Check, ...]] = {
    "provider": (
        *_EVERY_HOOK,
        *_REQUESTS,
        requests.a_round_trip_keeps_messages,
        requests.a_round_trip_keeps_parts,
        requests.cancelling_an_unknown_request_is_harmless,
    ),
    "extension": (*_EVERY_HOOK, *_REQUESTS, *_ACTIONS),
    "feature": (*_EVERY_HOOK, *_REQUESTS, *_ACTIONS, second_format.another_native_format_works),
    "tool": (
        *_EVERY_HOOK,
        tools.tool_schemas_are_valid,
        tools.tools_answer_to_their_names,
        tools.bad_arguments_are_reported,
        tools.previews_are_one_line,
        tools.results_can_be_shown,
    ),
}


def check_plugin(
    plugin: Any,
    kind: str,
    *,
    config: Config | None = None,
    make_plugin: Callable[[], Any] | None = None,
    provider: Any = None,
    exchange: Exchange | Callable[[], Exchanging] | None = None,
    action_params: Mapping[str, Config | None] | None = None,
    tool_calls: Config | None = None,
    skip: Mapping[str, str] | None = None,
) -> ConformanceReport:
    """Make every check that there is for a plugin of its kind.

    Args:
        plugin: A class, an object, or a function that is a tool. Of a class, requests get objects
            of their own.
        kind: provider, extension, feature or tool.
        config: The configuration with which the plugin is on.
        make_plugin: Makes a new object, for classes whose constructor takes arguments.
        provider: The provider with which an extension or a feature is checked; a scripted one by
            default.
        exchange: How requests are answered without a network. A provider that is given none is
            sent none.
        action_params: Inputs by action, for actions that need some; None for one not to be run.
        tool_calls: Arguments by tool, for those that may be run; None for one that must not.
        skip: Checks not to make, each with a reason.

    Raises:
        ArgumentError: If there is no such kind, or no such check.
    """
    check_kind(kind)
    case = Case(
        kind=kind,
        make_plugin=make_plugin or partial(instance_of, plugin),
        make_provider=neighbour if provider is None else partial(instance_of, provider),
        exchange=_exchanging(kind, exchange),
        config=config or {},
        action_params=action_params or {},
        tool_calls=tool_calls or {},
        any_provider=provider is None,
    )
    return _report(case, registered_name(case, plugin), skip or {})


def make_check(case: Case, check: Check, plugin: str) -> list[Finding]:
    """Make one check and return what it found.

    Raises:
        NotApplicable: If there is nothing to check.
    """
    if check is not it_registers:
        _need_registration(case)
    findings: dict[Finding, None] = {}  # several ways may lead to one and the same
    try:
        for hook, problem in check(case):
            findings[Finding(check.__name__, hook, problem, plugin)] = None
    except NotApplicable:
        if not findings:
            raise
    return list(findings)


def _report(case: Case, plugin: str, skip: Mapping[str, str]) -> ConformanceReport:
    checks = {check.__name__: check for check in CHECKS[case.kind]}
    for name in skip:
        if name not in checks:
            raise ArgumentError(f"skip: a {case.kind} has no check {name!r}; known are {list(checks)}")
    report = ConformanceReport(plugin=plugin, kind=case.kind, findings=[], skipped=[], passed=[])
    for name, check in checks.items():
        if name in skip:
            report.skipped.append(Skipped(name, skip[name]))
            continue
        try:
            findings = make_check(case, check, plugin)
        except NotApplicable as reason:
            report.skipped.append(Skipped(name, str(reason)))
        else:
            report.findings.extend(findings)
            report.passed.extend([] if findings else [name])
    return report


def _need_registration(case: Case) -> None:
    fault = registration_fault(case)
    if fault is not None:
        raise NotApplicable(f"{fault.hook} must be fixed first: it {fault.problem}")


def _exchanging(kind: str, exchange: Exchange | Callable[[], Exchanging] | None) -> Callable[[], Exchanging]:
    if callable(exchange):
        return exchange
    default = None if kind == "provider" else Exchange()
    return lambda: exchange or default


# Hooks are examined once per class: several checks look at the outcome, and a model may be slow.
_flaws_of: WeakKeyDictionary[type[PluginConformance], list[Flaw]] = WeakKeyDictionary()


def _as_test(check: Check) -> Callable[[PluginConformance], None]:
    def test(self: PluginConformance) -> None:
        __tracebackhide__ = True
        if check.__name__ in self.skip:
            _skip(self.skip[check.__name__])
        case = self.conformance_case()
        case.flaws = _flaws_of.get(type(self))
        try:
            findings = make_check(case, check, registered_name(case, getattr_static(type(self), "plugin")))
        except NotApplicable as reason:
            _skip(str(reason))
        finally:
            if case.flaws is not None:
                _flaws_of[type(self)] = case.flaws
        if findings:
            raise AssertionError("\n".join(map(str, findings)))

    test.__name__ = test.__qualname__ = f"test_{check.__name__}"
    test.__doc__ = check.__doc__
    return test


def _skip(reason: str) -> NoReturn:
    import pytest

    pytest.skip(reason)


class PluginConformance:
    """What the four classes have in common; inherit one of those.

    Attributes:
        kind: The kind of plugin.
        plugin: The plugin: a class, an object, or a function that is a tool.
        config: The configuration with which it is on.
        skip: Checks not to make, each with a reason.
    """

    kind: ClassVar[str]
    plugin: ClassVar[Any] = None
    config: ClassVar[Mapping[str, Any]] = {}
    skip: ClassVar[Mapping[str, str]] = {}
    action_params: ClassVar[Mapping[str, Config | None]] = {}
    tool_calls: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in vars(cls):
            for check in CHECKS[cls.kind]:
                setattr(cls, f"test_{check.__name__}", _as_test(check))

    def make_plugin(self) -> Any:
        """Return a new plugin; override it for classes whose constructor takes arguments."""
        return instance_of(self._given())

    def make_provider(self) -> Any:
        """Return the provider with which an extension, a feature or a tool is checked."""
        return neighbour()

    def exchange(self) -> Exchanging:
        """Say how requests are answered: an `Exchange`, or a context manager that yields one."""
        return Exchange()

    def conformance_case(self) -> Case:
        """Return all of this in one value."""
        return Case(
            kind=self.kind,
            make_plugin=self.make_plugin,
            make_provider=self.make_provider,
            exchange=self.exchange,
            config=self.config,
            action_params=self.action_params,
            tool_calls=self.tool_calls,
            any_provider=type(self).make_provider is PluginConformance.make_provider,
        )

    def _given(self) -> Any:
        # Not `self.plugin`: looked up on an instance, a function would become a method.
        plugin = getattr_static(type(self), "plugin")
        if plugin is None:
            raise ArgumentError(f"{type(self).__name__}: set plugin, or override make_plugin")
        return plugin.__func__ if isinstance(plugin, staticmethod) else plugin


class ProviderConformance(PluginConformance):
    """Checks of a provider. Override `exchange` to have requests checked too."""

    kind = "provider"

    def exchange(self) -> Exchanging:
        """Say how requests are answered without a network; by default they are not sent."""
        return None


class ExtensionConformance(PluginConformance):
    """Checks of a provider extension.

    Attributes:
        action_params: Inputs by action, for actions that need some; None for one not to be run.
    """

    kind = "extension"


class FeatureConformance(PluginConformance):
    """Checks of a feature.

    Attributes:
        action_params: Inputs by action, for actions that need some; None for one not to be run.
    """

    kind = "feature"


class ToolConformance(PluginConformance):
    """Checks of a tool plugin, or of a function that is a tool.

    Attributes:
        tool_calls: Arguments by tool, for those that may be run; None for one that must not.
    """

    kind = "tool"
