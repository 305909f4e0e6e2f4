"""What every test in the workspace shares."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every machine, and no failure because a machine is slow.
# `--hypothesis-profile=default` searches at random instead.
SLOW_MACHINE = [HealthCheck.too_slow]
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, suppress_health_check=SLOW_MACHINE
)
settings.load_profile("ci")

MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux has files in memory
ROOM = 4 << 30


def has_room(folder: Path) -> bool:
    """Say whether a folder is there, with room for the tests, and whether programs run in it."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & os.ST_NOEXEC


# Stores wait for the disk at every turn, which adds up where thousands are made. What a crash
# leaves behind is tested by cutting the writes themselves (agent-app's faults), so memory serves as well.
# TMPDIR, and pytest's --basetemp, choose another place.
if "TMPDIR" not in os.environ and has_room(MEMORY):
    tempfile.tempdir = str(MEMORY)


# Their tests wait for processes, servers or a model, and take long though there are few of them: they begin
# first, so that no worker is left alone with them at the end. Files beyond these keep their order.
SLOW = (
    "packages/agent-durable/tests/",
    "plugins/local-llama-provider/tests/",
    "packages/agent-app/tests/faults/",
    "packages/agent-terminal-app/tests/",
    "packages/agent-app/tests/",
    "plugins/mcp-tools/tests/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow files first."""
    items.sort(
        key=lambda item: next((n for n, one in enumerate(SLOW) if item.nodeid.startswith(one)), len(SLOW))
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run more workers than there are processors: a third of them waits for a process at any time."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)
