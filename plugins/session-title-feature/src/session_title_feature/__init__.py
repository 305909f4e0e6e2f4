"""Short titles for sessions."""

from session_title_feature.feature import SessionTitleFeature

__all__ = ["SessionTitleFeature"]
