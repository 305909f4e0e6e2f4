"""The checks as classes to inherit in one's own tests: pytest shows each check by name.

pytest itself is imported only when a check has to be skipped.
"""

from __future__ import annotations

from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from agent_core.errors import ArgumentError
from agent_core.testing.conformance.case import Case, Exchange, instance_of
from agent_core.testing.conformance.checks import CHECKS
from agent_core.testing.conformance.checks.hooks import registered_name
from agent_core.testing.conformance.report import NotApplicable
from agent_core.testing.conformance.run import make_check
from agent_core.testing.conformance.samples import neighbour

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_core.testing.conformance.case import Exchanging
    from agent_core.testing.conformance.checks import Check


def _as_test(check: Check) -> Callable[[PluginConformance], None]:
    def test(self: PluginConformance) -> None:
        __tracebackhide__ = True
        if check.__name__ in self.skip:
            _skip(self.skip[check.__name__])
        case = self.conformance_case()
        try:
            findings = make_check(case, check, registered_name(case, getattr_static(type(self), "plugin")))
        except NotApplicable as reason:
            _skip(str(reason))
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
    action_params: ClassVar[Mapping[str, Mapping[str, Any] | None]] = {}
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
        """Return the provider beside which an extension, a feature or a tool is checked."""
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
