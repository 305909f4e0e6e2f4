"""What every test in the workspace shares."""

import gc
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


# These tests take worker processes, models or whole environments: `make test` leaves them to `make test-all`,
# which CI runs too. There they begin first, so that no worker is left alone with them at the end.
LONG = (
    "packages/agent-durable/tests/",
    "plugins/local-llama-provider/tests/",
    "packages/agent-app/tests/faults/",
    "packages/agent-terminal-app/tests/daily/",
    "packages/agent-terminal-app/tests/test_serve_workers.py",
    "packages/agent-terminal-app/tests/test_worker_commands.py",
    "tests/test_captured_model.py",
    "tests/test_distributions.py",
    "tests/test_gallery.py",
    "tests/test_new_plugins.py",
    "tests/test_scaling_simulation.py",
)
# Many of the others wait for a process, too, and come before those that only compute.
WAITS = ("packages/agent-terminal-app/tests/", "packages/agent-app/tests/", "plugins/mcp-tools/tests/")
POSTGRES = {"own_database", "postgres", "postgres_assets", "postgres_server", "postgres_url"}


def is_long(item: pytest.Item) -> bool:
    """Say whether a test is left to `make test-all`: by its place, or for its PostgreSQL or terminal."""
    if not isinstance(item, pytest.Function) or item.nodeid.startswith(LONG):
        return item.nodeid.startswith(LONG)
    name = item.callspec.id if hasattr(item, "callspec") else ""
    return (
        "postgres" in name or not POSTGRES.isdisjoint(item.fixturenames) or hasattr(item.module, "Terminal")
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes long, and put it first."""
    for item in items:
        if is_long(item):
            item.add_marker(pytest.mark.slow)
    places = (*LONG, *WAITS)
    items.sort(
        key=lambda item: next((n for n, one in enumerate(places) if item.nodeid.startswith(one)), len(places))
    )


def pytest_collection_finish() -> None:
    """Collect garbage less often: the collected tests are a large heap, and walking it takes time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run more workers than there are processors: a third of them waits for a process at any time."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)
