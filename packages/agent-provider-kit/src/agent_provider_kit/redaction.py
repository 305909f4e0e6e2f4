"""Keeping secrets out of errors, logs and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MASK = "[secret]"
_SHORTEST = 6  # anything shorter would blacken ordinary words
SECRET_HEADERS = frozenset(
    {"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "proxy-authorization"}
)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return *text* with each of the secret values masked, longest first."""
    for secret in sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers for showing, the secret ones masked."""
    return {name: MASK if name.lower() in SECRET_HEADERS else value for name, value in headers.items()}
