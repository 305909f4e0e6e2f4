"""Summaries in place of old messages, and the way back."""

from compaction_feature.feature import CompactionFeature

__all__ = ["CompactionFeature"]
