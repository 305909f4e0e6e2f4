"""Waiting between tries."""

from __future__ import annotations

from hypothesis import given, strategies as st

from mcp_tools.connection import Pace


@given(st.integers(1, 9), st.floats(0, 1))
def test_a_wait_is_bounded(failures: int, chance: float) -> None:
    wait = Pace(chance=lambda: chance).wait(failures)

    assert wait is not None
    assert 0 <= wait <= min(60, 0.5 * 2**failures)


def test_waits_double_up_to_the_longest_and_end() -> None:
    pace = Pace(first=1, longest=10, tries=6, chance=lambda: 1.0)

    assert [pace.wait(failures) for failures in range(1, 8)] == [1, 2, 4, 8, 10, None, None]
