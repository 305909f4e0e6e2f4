"""The feature keeps to the contract."""

from agent_testing.conformance import FeatureConformance
from skills_feature import SkillsFeature


class TestConformance(FeatureConformance):
    plugin = SkillsFeature
