"""What the program calls itself when it talks to servers."""

from __future__ import annotations

VERSION = "0.1.0"
USER_AGENT = f"keelwork/{VERSION}"
"""The `User-Agent` of every HTTP request that nothing else is set for."""
