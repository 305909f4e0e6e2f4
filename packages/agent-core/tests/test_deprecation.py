"""Something that will go works as before, and says what to use in its place, at the caller's line."""

from __future__ import annotations

import pytest

from agent_core.deprecation import deprecated, renamed


@deprecated("use new", goes_in="0.3")
def old(a: int, b: int = 2) -> int:
    return a + b


@deprecated("use New", goes_in="0.3")
class Old:
    def __init__(self, a: int) -> None:
        self.a = a


class New:
    pass


def test_a_function_works_and_warns_where_it_is_called() -> None:
    with pytest.warns(DeprecationWarning, match=r"old goes in version 0\.3: use new") as caught:
        assert old(1) == 3

    assert caught[0].filename == __file__


def test_a_class_works_and_warns_where_it_is_made() -> None:
    with pytest.warns(DeprecationWarning, match=r"Old goes in version 0\.3: use New") as caught:
        made = Old(1)

    assert (made.a, isinstance(made, Old), caught[0].filename) == (1, True, __file__)


def test_an_old_name_of_a_module_is_the_new_thing() -> None:
    with pytest.warns(DeprecationWarning, match=r"place\.OldName goes in version 0\.3: use New"):
        assert renamed("place", "OldName", {"OldName": (New, "0.3")}) is New
    with pytest.raises(AttributeError, match="module 'place' has no attribute 'Nothing'"):
        renamed("place", "Nothing", {"OldName": (New, "0.3")})
