"""Checks that a plugin keeps its side of the contract, for its author to run.

`check_plugin` makes them all and returns a report; the classes offer each as a test of its own.
"""

from agent_testing.conformance.case import ConformanceReport, Exchange, Finding, Skipped
from agent_testing.conformance.suite import (
    ExtensionConformance,
    FeatureConformance,
    ProviderConformance,
    ToolConformance,
    check_plugin,
)

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
