"""Checks that a plugin keeps its side of the contract, for its author to run.

`check_plugin` makes them all and returns a report; the classes offer each as a test of its own.
"""

from agent_core.testing.conformance.case import Exchange
from agent_core.testing.conformance.classes import (
    ExtensionConformance,
    FeatureConformance,
    ProviderConformance,
    ToolConformance,
)
from agent_core.testing.conformance.report import ConformanceReport, Finding, Skipped
from agent_core.testing.conformance.run import check_plugin

__all__ = [
    "ConformanceReport",
    "Exchange",
    "ExtensionConformance",
    "FeatureConformance",
    "Finding",
    "ProviderConformance",
    "Skipped",
    "ToolConformance",
    "check_plugin",
]
