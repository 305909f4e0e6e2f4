"""A history behaves like a list that nobody can change, and its versions share what they have in common."""

from __future__ import annotations

import copy
import math
import pickle
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import combinations_with_replacement, product
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from agent_core.history import History

Case = Callable[..., AbstractContextManager[None]]

BOUNDARIES = [0, 1, 31, 32, 33, 63, 64, 1023, 1024, 1025, 1055, 1056, 32767, 32768, 32769, 32800]
SMALL_BOUNDARIES = [size for size in BOUNDARIES if size < 2000]

sizes = st.one_of(st.integers(0, 70), st.sampled_from(SMALL_BOUNDARIES))
Version = tuple[History[int], list[int]]


class HistoryMachine(RuleBasedStateMachine):
    """Every version ever made is kept with its list and compared again at the end."""

    versions: Bundle[Version] = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Version] = []
        self.fresh = 0

    def keep(self, history: History[int], model: list[int]) -> Version:
        assert [item for piece in history.pieces() for item in piece] == model
        assert history == model
        self.made.append((history, model))
        return history, model

    def numbers(self, size: int) -> list[int]:
        self.fresh += size
        return list(range(self.fresh - size, self.fresh))

    @initialize(target=versions, size=sizes)
    def start(self, size: int) -> Version:
        items = self.numbers(size)
        return self.keep(History(items), items)

    @rule(target=versions, size=sizes)
    def later(self, size: int) -> Version:
        items = self.numbers(size)
        history = History.later(size, lambda start, end: items[start:end])
        self.made.append((history, items))  # nothing of it is looked at yet
        return history, items

    @rule(target=versions, version=versions, times=st.integers(1, 40))
    def append(self, version: Version, times: int) -> Version:
        history, model = version
        for item in self.numbers(times):
            history, model = history.append(item), [*model, item]
        return self.keep(history, model)

    @rule(target=versions, version=versions, size=sizes)
    def extend(self, version: Version, size: int) -> Version:
        items = self.numbers(size)
        return self.keep(version[0].extend(iter(items)), version[1] + items)

    @rule(target=versions, version=versions, data=st.data())
    def prefix(self, version: Version, data: st.DataObject) -> Version:
        history, model = version
        length = data.draw(st.integers(0, len(model)))
        return self.keep(history.prefix(length), model[:length])

    @rule(target=versions, version=versions, data=st.data())
    def replace(self, version: Version, data: st.DataObject) -> Version:
        history, model = version
        if not model:
            return version
        index = data.draw(st.integers(-len(model), len(model) - 1))
        changed = model.copy()
        [changed[index]] = self.numbers(1)
        return self.keep(history.replace(index, changed[index]), changed)

    @rule(target=versions, version=versions, data=st.data())
    def slice(self, version: Version, data: st.DataObject) -> Version:
        history, model = version
        cut = data.draw(st.slices(len(model)))
        return self.keep(history[cut], model[cut])

    @rule(target=versions, left=versions, right=versions, form=st.sampled_from([History, list, tuple]))
    def add(self, left: Version, right: Version, form: Callable[[History[int]], Any]) -> Version:
        if len(left[1]) + len(right[1]) > 5000:
            return left
        assert form(left[0]) + right[0] == left[1] + right[1]
        return self.keep(left[0] + form(right[0]), left[1] + right[1])

    @rule(version=versions, data=st.data())
    def read(self, version: Version, data: st.DataObject) -> None:
        history, model = version
        if model:
            index = data.draw(st.integers(-len(model), len(model) - 1))
            assert history[index] == model[index]
            assert history.index(model[index]) == model.index(model[index])
        assert len(history) == len(model)

    def teardown(self) -> None:
        for history, model in self.made:
            assert history.to_list() == list(history) == model
            assert list(reversed(history)) == model[::-1]
            assert history == History(model)


TestHistoryMachine = HistoryMachine.TestCase
TestHistoryMachine.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


def test_every_way_of_building_and_reading_agrees_at_the_boundaries(case: Case) -> None:
    appended: History[int] = History()
    for size in BOUNDARIES:
        with case(size):
            items = list(range(size))

            for item in items[len(appended) :]:
                appended = appended.append(item)
            halves = History(items[: size // 2]).extend(items[size // 2 :])

            assert appended == halves == History(items) == History([*items, -1]).prefix(size)
            assert len(appended) == size
            assert appended.to_list() == list(appended) == items
            assert list(reversed(appended)) == items[::-1]
            assert [appended[index] for index in range(size)] == items
            assert [appended[index - size] for index in range(size)] == items


def test_a_prefix_can_be_cut_at_any_boundary_and_grown_again(case: Case) -> None:
    cases: list[tuple[int, int]] = list(combinations_with_replacement(BOUNDARIES[::-1], 2))
    for size, cut in cases:
        with case(size, cut):
            items = list(range(size))

            prefix = History(items).prefix(cut)

            assert prefix == items[:cut]
            assert prefix.append(-1) == [*items[:cut], -1]
            assert prefix.extend(items[cut:]) == items


@pytest.mark.parametrize("size", BOUNDARIES[1:])
def test_replacing_an_item_leaves_all_others_and_the_old_version_alone(size: int) -> None:
    items = list(range(size))
    history = History(items)

    for index in {0, size // 2, size - 1}:
        expected = items.copy()
        expected[index] = -1
        assert history.replace(index, -1) == expected
        assert history.replace(index - size, -1) == expected
    assert history == items


@settings(max_examples=40)
@given(size=sizes, data=st.data())
def test_a_slice_equals_the_slice_of_a_list(size: int, data: st.DataObject) -> None:
    bound = st.none() | st.integers(-size - 40, size + 40)
    step = st.none() | st.integers(-40, 40).filter(bool)
    cut = slice(data.draw(bound), data.draw(bound), data.draw(step))

    sliced = History(range(size))[cut]

    assert isinstance(sliced, History)
    assert sliced == list(range(size))[cut]


def test_a_slice_step_of_zero_is_refused_as_a_list_refuses_it() -> None:
    with pytest.raises(ValueError, match="step cannot be zero"):
        History([1])[::0]


@pytest.mark.parametrize("index", [3, -4, 100])
def test_an_index_out_of_range_is_named_together_with_the_length(index: int) -> None:
    history = History("abc")

    with pytest.raises(IndexError, match=rf"index {index} .* length 3$"):
        history[index]
    with pytest.raises(IndexError, match=rf"index {index} .* length 3$"):
        history.replace(index, "d")


@pytest.mark.parametrize("length", [4, -1])
def test_a_prefix_longer_than_the_history_or_negative_is_refused(length: int) -> None:
    with pytest.raises(IndexError, match=rf"prefix length {length} .* length 3$"):
        History("abc").prefix(length)


def test_an_index_that_is_not_an_integer_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        History([1])["0"]  # type: ignore[call-overload]  # the mistake under test


def test_a_history_given_to_of_or_the_constructor_comes_back_itself() -> None:
    history = History([1, 2])

    assert History.of(history) is history
    assert History(history) is history
    assert History.of([1, 2]) == history
    assert History.of(iter([1, 2])) == history
    assert History() == []


def test_changes_that_change_nothing_return_the_same_object() -> None:
    history = History(range(100))

    assert history.prefix(100) is history
    assert history[:] is history
    assert history[0:1000] is history
    assert history.extend([]) is history
    assert History[int]().extend(history) is history
    assert History[int]() + history is history


def test_a_history_equals_a_history_list_or_tuple_of_the_same_items_and_nothing_else() -> None:
    history = History(range(40))

    same = history
    assert history == same
    assert history == History(range(40))
    for form in (list, tuple):
        assert history == form(range(40))
        assert form(range(40)) == history
        assert history != form(range(39))
    assert history != History(range(41)).replace(0, 7).prefix(40)
    strangers: list[object] = [range(40), {"a": 1}, "abc", None]
    assert all(history != stranger for stranger in strangers)


def test_an_item_unequal_to_itself_compares_as_in_a_list() -> None:
    nan = math.nan

    assert History([nan]) == [nan] == History([nan])
    assert nan in History([nan])
    assert History([nan]).index(nan) == 0
    assert History([nan]).count(nan) == 1


def test_items_that_are_tuples_are_not_mistaken_for_structure() -> None:
    leaf = tuple(range(32))

    assert History(range(32)) != History([leaf])
    assert History([leaf]) == [leaf]
    assert History([leaf] * 33).to_list() == [leaf] * 33


def test_a_history_cannot_be_hashed() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(History())


def test_searching_answers_as_a_list_does() -> None:
    history = History([*range(50), *range(50)])

    assert 49 in history
    assert 50 not in history
    assert "x" not in history
    assert [history.count(7), history.count(50)] == [2, 0]
    assert history.index(7) == 7
    assert history.index(7, 8) == history.index(7, -60) == 57
    assert history.index(7, 0, 8) == 7
    with pytest.raises(ValueError, match="'x' is not in history"):
        history.index("x")
    with pytest.raises(ValueError, match="7 is not in history"):
        history.index(7, 8, 57)
    with pytest.raises(ValueError, match="7 is not in history"):
        history.index(7, 57, 8)


def test_adding_joins_histories_lists_and_tuples_from_either_side() -> None:
    history = History(["b"])

    assert typed(history + History(["c"])) == typed(history + ["c"]) == (History, ["b", "c"])
    assert typed(history + ("c",)) == (History, ["b", "c"])
    assert typed(["a"] + history) == typed(("a",) + history) == (History, ["a", "b"])
    assert history == ["b"]


def typed(items: Sequence[str]) -> tuple[type[Any], list[str]]:
    return type(items), list(items)


@pytest.mark.parametrize("other", [1, "text", {"a": 1}, range(2), None])
def test_adding_anything_else_is_a_type_error(other: Any) -> None:
    with pytest.raises(TypeError):
        History([1]) + other
    with pytest.raises(TypeError):
        other + History([1])


def test_a_history_is_a_sequence_and_matches_sequence_patterns() -> None:
    history = History([1, 2, 3])

    assert isinstance(history, Sequence)
    match history:
        case [first, *rest]:
            assert (first, rest) == (1, [2, 3])
        case _:
            pytest.fail("no sequence")


def test_an_empty_history_is_false_and_any_other_is_true() -> None:
    assert not History()
    assert History([None])
    assert History(range(32))


def test_a_history_prints_as_the_list_of_its_items() -> None:
    assert repr(History(["a", 1])) == "['a', 1]"
    assert repr(History()) == "[]"


def test_copying_returns_the_same_history_and_deep_copying_copies_the_items() -> None:
    history = History([{"n": number} for number in range(40)])

    deep = copy.deepcopy(history)

    assert copy.copy(history) is history
    assert deep == history
    assert type(deep) is History
    assert all(ours is not theirs for ours, theirs in zip(history, deep, strict=True))


def test_a_deep_copy_keeps_items_that_occur_twice_the_same_object() -> None:
    item = {"a": 1}

    first, second = copy.deepcopy(History([item, item]))

    assert first is second


def test_a_history_survives_pickling(case: Case) -> None:
    for protocol, size in product(range(pickle.HIGHEST_PROTOCOL + 1), SMALL_BOUNDARIES):
        with case(protocol, size):
            restored = pickle.loads(pickle.dumps(History(range(size)), protocol))

            assert type(restored) is History
            assert restored == list(range(size))


def test_there_is_nothing_to_change_a_history_with() -> None:
    history: Any = History([1, 2])

    grown = history
    grown += [3]

    assert grown == [1, 2, 3]
    assert history == [1, 2]
    assert not hasattr(history, "__dict__")
    beyond_a_tuple = set(dir(list)) - set(dir(tuple))
    assert beyond_a_tuple & set(dir(History)) == {"append", "extend", "__reversed__"}


def test_a_list_returned_by_to_list_belongs_to_the_caller() -> None:
    for size in (0, 5, 32, 100):
        history = History(range(size))
        history.to_list().append(-1)
        assert history == list(range(size))


def leaves(history: History[Any]) -> list[int]:
    """Name every tuple that holds items by its identity, the tail left out."""
    return [id(leaf) for leaf in history._leaves()][:-1]


def test_appending_shares_every_full_leaf_with_the_version_before() -> None:
    history = History(range(5000))

    grown = history.append(-1)
    for item in range(100):
        grown = grown.append(item)

    assert leaves(grown)[: 5000 // 32] == leaves(history)
    assert len(history) == 5000 and len(grown) == 5101


@pytest.mark.parametrize("length", [32, 33, 1023, 1024, 1025, 4991, 4999])
def test_a_prefix_shares_every_full_leaf_with_the_whole(length: int) -> None:
    history = History(range(5000))

    assert leaves(history.prefix(length)) == leaves(history[:length]) == leaves(history)[: length // 32]


def test_replacing_an_item_copies_one_leaf_and_shares_the_rest() -> None:
    history = History(range(5000))

    replaced = history.replace(100, -1)

    different = [a != b for a, b in zip(leaves(history), leaves(replaced), strict=True)]
    assert different.index(True) == 100 // 32 and sum(different) == 1


def test_comparing_versions_does_not_look_at_what_they_share() -> None:
    class Watched:
        compared = 0

        def __eq__(self, other: object) -> bool:
            Watched.compared += 1
            return True

        __hash__ = None  # type: ignore[assignment]  # equality is all that is needed

    history = History([Watched() for _ in range(5000)])

    assert history.append(Watched()) == history.append(Watched())
    assert Watched.compared == 1


def allocated(make: Callable[[], object]) -> int:
    """Return the bytes that stay allocated while the answer of *make* is referenced."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = make()
        after, _ = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return after - before


def test_a_hundred_forks_cost_a_small_part_of_copying_the_list() -> None:
    items = list(range(10_000))
    history = History(items)

    forks = allocated(lambda: [history.prefix(9_990).append(-1) for _ in range(100)])
    copies = allocated(lambda: [items.copy() for _ in range(100)])

    assert forks < 0.02 * copies


def test_keeping_every_version_costs_about_the_same_per_version_at_any_length() -> None:
    def grow(base: History[int]) -> list[History[int]]:
        versions = [base]
        for number in range(1024):
            versions.append(versions[-1].append(number))
        return versions

    small = allocated(lambda: grow(History()))
    large_base = History(range(100_000))
    large = allocated(lambda: grow(large_base))

    assert large < 1.5 * small


def test_a_prefix_lets_go_of_the_items_after_it() -> None:
    class Item:
        alive = 0

        def __init__(self) -> None:
            Item.alive += 1

        def __del__(self) -> None:
            Item.alive -= 1

    history = History([Item() for _ in range(3000)])

    history = history.prefix(40)

    assert len(history) == Item.alive == 40


def test_threads_that_append_to_one_base_never_see_each_other() -> None:
    base: History[tuple[int, int]] = History((-1, number) for number in range(1020))
    barrier = Barrier(8)

    def work(worker: int) -> History[tuple[int, int]]:
        barrier.wait()
        history = base
        for number in range(2000):
            history = history.append((worker, number))
        return history

    with ThreadPoolExecutor(8) as pool:
        grown = list(pool.map(work, range(8)))

    shared = [(-1, number) for number in range(1020)]
    assert base == shared
    for worker, history in enumerate(grown):
        assert history == shared + [(worker, number) for number in range(2000)]


@settings(max_examples=40)
@given(st.lists(st.integers(), max_size=200), st.lists(st.integers(), max_size=80), st.integers(0, 200))
def test_the_shared_beginning_is_that_of_the_same_objects(
    first: list[int], added: list[int], at: int
) -> None:
    old = History([object() for _ in first])
    kept = old.prefix(min(at, len(old)))
    new = kept.extend([object() for _ in added])

    assert old.shared_length(new) == new.shared_length(old) == len(kept)
    assert old.shared_length(old) == len(old)
    assert old.shared_length(History(old.to_list())) == len(old)


# --- what is read later -----------------------------------------------------------------------------------


class Shelf:
    """Numbers that are handed out on demand; notes what was asked for."""

    def __init__(self, length: int) -> None:
        self.items = [f"item {number}" for number in range(length)]
        self.asked: list[tuple[int, int]] = []

    def load(self, start: int, end: int) -> Sequence[str]:
        self.asked.append((start, end))
        return self.items[start:end]

    def history(self) -> History[str]:
        return History.later(len(self.items), self.load)

    def count(self) -> int:
        return sum(end - start for start, end in self.asked)


@pytest.mark.parametrize("length", BOUNDARIES)
def test_a_history_that_is_read_later_is_the_same_history(length: int) -> None:
    shelf = Shelf(length)
    history = shelf.history()

    assert len(history) == length
    assert shelf.count() == length % 32
    assert list(reversed(history)) == shelf.items[::-1]
    assert history == shelf.items
    assert history == History(shelf.items)
    assert History(shelf.items) == shelf.history() == shelf.history()
    assert history.to_list() == shelf.items == pickle.loads(pickle.dumps(history)).to_list()


@pytest.mark.parametrize("length", BOUNDARIES)
def test_every_item_is_read_once_and_by_pages(length: int) -> None:
    shelf = Shelf(length)
    history = shelf.history().read()
    asked = sorted(shelf.asked)

    assert [start for start, _ in asked] == [0, *(end for _, end in asked[:-1])][: len(asked)]
    assert shelf.count() == length
    assert all(end - start <= 1024 for start, end in asked)
    assert len(asked) <= length // 1024 + 32
    assert history.read() == shelf.items
    assert shelf.count() == length


def test_a_long_history_is_opened_shown_and_continued_without_being_read() -> None:
    shelf = Shelf(100_000)
    history = shelf.history()
    longer = history
    for number in range(3000):
        longer = longer.append(f"new {number}")

    assert shelf.count() == 0  # 100,000 items fill their leaves
    assert history[-1] == "item 99999"
    assert history[-50:] == shelf.items[-50:]
    assert shelf.count() == 64
    assert longer.shared_length(history) == history.shared_length(longer) == 100_000
    assert history.shared_length(history.prefix(99_968)) == 99_968
    assert longer[99_950:100_010] == [*shelf.items[99_950:], *(f"new {number}" for number in range(10))]
    assert shelf.count() == 64
    assert longer == shelf.items + [f"new {number}" for number in range(3000)]


@pytest.mark.parametrize("length", [32, 1024, 2048, 32768, 65536, 99_968])
def test_a_cut_between_pages_reads_nothing(length: int) -> None:
    shelf = Shelf(100_000)
    history = shelf.history()
    cut = history.prefix(length)

    assert shelf.count() <= (1024 if length % 1024 else 0)
    assert cut.shared_length(history) == length
    assert cut == shelf.items[:length]


def test_what_was_read_is_read_for_every_version() -> None:
    shelf = Shelf(5000)
    history = shelf.history()
    versions = [history.append("new"), history.prefix(4096), history.replace(4999, "other")]
    history.read()
    read = shelf.count()
    for version in versions:
        version.read()

    assert shelf.count() == read


@pytest.mark.parametrize("length", BOUNDARIES)
def test_pieces_are_the_items_in_order_and_nothing_of_them_is_kept(length: int) -> None:
    shelf = Shelf(length)
    history = shelf.history().append("new")
    at_once = shelf.count()

    for _ in range(2):
        pieces = list(history.pieces())
        assert [item for piece in pieces for item in piece] == [*shelf.items, "new"]
        assert all(0 < len(piece) <= 1024 for piece in pieces)

    assert shelf.count() == at_once + 2 * (length - length % 32)
    history.read()
    read = shelf.count()
    assert sum(map(len, history.pieces())) == length + 1
    assert shelf.count() == read


@pytest.mark.parametrize("wrong", [-1, 1])
def test_a_loader_that_returns_too_few_or_too_many_is_found_out(wrong: int) -> None:
    items = list(range(5000))
    history = History.later(4096, lambda start, end: items[start : end + wrong])

    with pytest.raises(ValueError, match="1024 items from 0 on were asked for, and"):
        history[0]
    with pytest.raises(ValueError, match="10 items from 0 on"):
        History.later(10, lambda start, end: items[start : end + wrong])


def test_what_a_loader_raises_reaches_the_reader_and_it_may_be_tried_again() -> None:
    items, broken = list(range(2048)), [True]

    def load(start: int, end: int) -> Sequence[int]:
        if broken[0]:
            raise OSError("the disk is away")
        return items[start:end]

    history = History.later(2048, load)
    for look in (list, lambda history: history[5], lambda history: history == items, History.read):
        with pytest.raises(OSError, match="away"):
            look(history)
    broken[0] = False
    assert history == items


def test_threads_that_look_at_once_see_the_same_objects() -> None:
    history = History.later(4096, lambda start, end: [object() for _ in range(start, end)])
    start = Barrier(8)

    def look(_number: int) -> list[object]:
        start.wait()
        return list(history)

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(look, range(8))
    assert all(one is another for other in others for one, another in zip(first, other, strict=True))


@settings(max_examples=40)
@given(st.lists(sizes, min_size=1, max_size=4), st.data())
def test_the_shared_length_is_that_of_lists(extensions: list[int], data: st.DataObject) -> None:
    """Versions that part at any place, with what they share read or not."""
    length = data.draw(sizes)
    base: History[object] = History.later(
        length, lambda start, end: [("base", at) for at in range(start, end)]
    )
    if data.draw(st.booleans()):
        base.read()
    one = other = base.prefix(data.draw(st.integers(0, length)))
    for size in extensions:
        one = one.extend(object() for _ in range(size))
    other = other.extend(one[len(other) : len(other) + data.draw(st.integers(0, 70))]).append(object())

    same = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine is not theirs:
            break
        same += 1
    assert one.shared_length(other) == other.shared_length(one) == same
