"""The feature keeps to the contract."""

from agent_testing.conformance import FeatureConformance
from system_message_feature import SystemMessageFeature


class TestConformance(FeatureConformance):
    plugin = SystemMessageFeature
