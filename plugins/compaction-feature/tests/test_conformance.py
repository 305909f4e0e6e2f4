"""The feature keeps to the contract, with and without its automatic action."""

from typing import ClassVar

from agent_testing.conformance import FeatureConformance
from compaction_feature import CompactionFeature


class TestConformance(FeatureConformance):
    plugin = CompactionFeature


class TestConformanceWithTrigger(FeatureConformance):
    plugin = CompactionFeature
    config: ClassVar = {"compaction_trigger": "request_complete", "compaction_threshold": {"messages": 2}}
