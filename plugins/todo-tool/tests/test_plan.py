"""Plans as values: what is read, what is refused, how they look."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt

from agent_core.display import validate_display
from todo_tool.plan import EMPTY, LONGEST_TEXT, MOST_ITEMS, STATES, Item, Plan, PlanError

TEA = Plan(
    (Item("Boil water", "done"), Item("Steep", "in_progress"), Item("Pour"), Item("Add milk", "dropped"))
)

texts = st.text(min_size=1, max_size=60)
items = st.fixed_dictionaries({"text": texts}, optional={"state": st.sampled_from(STATES)})


def test_a_plan_has_a_look_for_each_reader() -> None:
    assert TEA.checklist() == "[x] Boil water\n[>] Steep\n[ ] Pour\n[-] Add milk"
    assert TEA.report() == "done: Boil water\nin_progress: Steep\npending: Pour\ndropped: Add milk"
    assert TEA.summary() == "4 items: 1 pending, 1 in progress, 1 done, 1 dropped"
    assert TEA.markdown() == (
        "- [x] Boil water\n- [ ] **Steep** (in progress)\n- [ ] Pour\n- [x] ~~Add milk~~ (dropped)"
    )


def test_no_plan_says_so() -> None:
    assert {Plan().checklist(), Plan().report(), Plan().summary(), Plan().markdown()} == {EMPTY}


def test_one_item_is_not_several() -> None:
    assert Plan((Item("x"),)).summary() == "1 item: 1 pending"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "must be a list"),
        ("text", "must be a list"),
        ({"text": "x"}, "must be a list"),
        ([None], "item 1 needs a text"),
        ([{"text": "x"}, {"state": "done"}], "item 2 needs a text"),
        ([{"text": 5}], "item 1 needs a text"),
        ([{"text": ""}], "must have 1 to 300 characters, not 0"),
        ([{"text": " \n\x1b\u202e"}], "must have 1 to 300 characters, not 0"),
        ([{"text": "x" * (LONGEST_TEXT + 1)}], "not 301"),
        ([{"text": "x", "state": "started"}], "must be one of pending, in_progress, done, dropped"),
        ([{"text": "x", "state": ["done"]}], "must be one of"),
        ([{"text": "x", "state": None}], "must be one of"),
        ([{"text": "x"}] * (MOST_ITEMS + 1), "51 items are too many: keep at most 50"),
        ([{"text": "x", "state": "in_progress"}] * 2, "only one item can be in_progress"),
    ],
)
def test_a_plan_that_cannot_be_kept_says_what_to_change(data: Any, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        Plan.read(data)

    assert Plan.stored(data) == Plan()


def test_a_text_is_one_clean_line() -> None:
    assert Plan.read([{"text": "  Boil\n\x1b[2J  water\u202e "}]).items == (Item("Boil [2J water"),)


@given(st.lists(items, max_size=MOST_ITEMS))
def test_what_was_read_reads_the_same_again(data: list[dict[str, str]]) -> None:
    try:
        plan = Plan.read(data)
    except PlanError:
        return

    assert Plan.read(plan.to_list()) == plan
    assert len(plan.items) == len(data)
    assert sum(plan.counts.values()) == len(data)
    assert len(plan.checklist().splitlines()) == max(1, len(data))


@given(texts | st.text("`*_[]()<>!#|~\\&- \n1.ahtps:/", min_size=1), st.sampled_from(STATES))
def test_what_a_model_wrote_is_text_and_no_markup(text: str, state: Any) -> None:
    try:
        plan = Plan.read([{"text": text, "state": state}, {"text": "next"}])
    except PlanError:
        return
    body = validate_display({"format": "markdown", "body": plan.markdown()}).display

    assert body is not None
    tokens = MarkdownIt("commonmark").enable("strikethrough").parse(body["body"])
    kinds = {token.type for token in tokens} | {
        child.type for token in tokens for child in token.children or ()
    }
    allowed = {"bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close", "inline", "text"}
    allowed |= {"paragraph_open", "paragraph_close", "strong_open", "strong_close", "s_open", "s_close"}
    assert kinds <= allowed | {"text_special", "softbreak"}
    assert sum(token.type == "list_item_open" for token in tokens) == 2


@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.integers(), lambda inner: st.lists(inner, max_size=3)
    )
)
def test_anything_can_be_found_in_the_store(data: Any) -> None:
    assert len(Plan.stored(data).items) <= MOST_ITEMS
