"""The feature keeps to the contract."""

from __future__ import annotations

from typing import ClassVar

from agent_testing.conformance import FeatureConformance
from hooks_feature import HooksFeature


class TestFeature(FeatureConformance):
    plugin = HooksFeature
    config: ClassVar = {"enabled_plugins": ["hooks"]}
