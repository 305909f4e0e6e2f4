"""``python -m local_llama_provider.pull``: fetch the default model."""

from __future__ import annotations

import sys

from agent_core import AgentError
from local_llama_provider.weights import pull


def main() -> int:
    """Fetch the model and return the exit code."""
    try:
        pull()
    except (AgentError, RuntimeError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
