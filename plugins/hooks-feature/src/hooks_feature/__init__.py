"""Commands of your own on events of a run; see `docs/how-to/hooks-feature.md`."""

from hooks_feature.feature import HooksFeature

__all__ = ["HooksFeature"]
