"""Making the checks, without any test runner."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.errors import ArgumentError
from agent_core.testing.conformance.case import Case, Exchange, check_kind, instance_of, kind_of
from agent_core.testing.conformance.checks import CHECKS
from agent_core.testing.conformance.checks.hooks import it_registers, registered_name, registration_fault
from agent_core.testing.conformance.report import ConformanceReport, Finding, NotApplicable, Skipped
from agent_core.testing.conformance.samples import neighbour

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_core.testing.conformance.case import Exchanging
    from agent_core.testing.conformance.checks import Check


def check_plugin(
    plugin: Any,
    *,
    kind: str | None = None,
    config: Mapping[str, Any] | None = None,
    make_plugin: Callable[[], Any] | None = None,
    provider: Any = None,
    exchange: Exchange | Callable[[], Exchanging] | None = None,
    action_params: Mapping[str, Mapping[str, Any] | None] | None = None,
    tool_calls: Mapping[str, Any] | None = None,
    skip: Mapping[str, str] | None = None,
) -> ConformanceReport:
    """Make every check that there is for a plugin of its kind.

    Args:
        plugin: A class, an object, or a function that is a tool. Of a class, requests get objects
            of their own.
        kind: provider, extension, feature or tool; by default its methods tell.
        config: The configuration with which the plugin is on.
        make_plugin: Makes a new object, for classes whose constructor takes arguments.
        provider: The provider beside which an extension or a feature is checked; a scripted one by
            default.
        exchange: How requests are answered without a network. A provider that is given none is
            sent none.
        action_params: Inputs by action, for actions that need some; None for one not to be run.
        tool_calls: Arguments by tool, for those that may be run; None for one that must not.
        skip: Checks not to make, each with a reason.

    Raises:
        ArgumentError: If there is no such kind, or no such check.
    """
    kind = kind_of(plugin) if kind is None else check_kind(kind)
    case = Case(
        kind=kind,
        make_plugin=make_plugin or partial(instance_of, plugin),
        make_provider=neighbour if provider is None else partial(instance_of, provider),
        exchange=_exchanging(kind, exchange),
        config=config or {},
        action_params=action_params or {},
        tool_calls=tool_calls or {},
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
        try:
            if name in skip:
                raise NotApplicable(skip[name])  # noqa: TRY301  # as if the check itself had said so
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
        raise NotApplicable(f"{fault.hook} has to be mended first: it {fault.problem}")


def _exchanging(kind: str, exchange: Exchange | Callable[[], Exchanging] | None) -> Callable[[], Exchanging]:
    if callable(exchange):
        return exchange
    default = None if kind == "provider" else Exchange()
    return lambda: exchange or default
