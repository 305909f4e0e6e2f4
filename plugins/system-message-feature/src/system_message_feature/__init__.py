"""A system message of your own, and the instruction files of a project."""

from system_message_feature.feature import SystemMessageFeature

__all__ = ["SystemMessageFeature"]
