"""What can keep a page from being read. The message is for the model: the thing, the cause, the next step."""

from __future__ import annotations


class FetchError(Exception):
    """A page cannot be read."""


class UrlRefusedError(FetchError):
    """A URL is not spelled in a way that leaves no doubt about where it leads."""


class PlaceRefusedError(FetchError):
    """A URL leads where the settings do not allow to go."""
