"""Writes the description of the API to a file: ``python -m agent_server.openapi PATH``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from agent_server.application import describe_api


def write(path: Path) -> None:
    """Write the description, the same bytes each time."""
    path.write_text(json.dumps(describe_api().openapi(), indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
