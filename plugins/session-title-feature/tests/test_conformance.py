"""The feature keeps to the contract."""

from agent_testing.conformance import FeatureConformance
from session_title_feature import SessionTitleFeature


class TestConformance(FeatureConformance):
    plugin = SessionTitleFeature
