"""One memory: what its file looks like, and what may not be kept."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from memory_feature import Memory, MemoryProblem
from memory_feature.memory import LONGEST_TEXT, MOST_BYTES, checked_text, has_secret, is_name, name_for

TEXTS = st.text(min_size=1, max_size=300)
MOMENTS = st.sampled_from(["", "2026-11-18T09:30:00Z"])
HEAD_LINES = st.lists(st.sampled_from(["tags: kitchen", "", "by: Ann", "--- x", "created: soon"]), max_size=3)


def kept(text: str) -> str | None:
    """Return a text as it is kept; None for one that is refused."""
    try:
        return checked_text(text)
    except MemoryProblem:
        return None


@given(TEXTS, MOMENTS, MOMENTS, HEAD_LINES)
def test_what_is_written_is_read_again(text: str, created: str, changed: str, more: list[str]) -> None:
    if (good := kept(text)) is None:
        return
    memory = Memory(name="tea", text=good, created=created, changed=changed, more=tuple(more))

    assert Memory.from_file("tea", memory.to_file().encode()) == memory


@given(TEXTS)
def test_keeping_a_text_twice_changes_nothing_more(text: str) -> None:
    if (good := kept(text)) is not None:
        assert checked_text(good) == good


@given(
    st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_whatever_stands_in_a_file_it_is_a_memory_or_refused(content: bytes) -> None:
    with suppress(MemoryProblem):  # and nothing else
        memory = Memory.from_file("tea", content)

        assert Memory.from_file("tea", memory.to_file().encode()) == memory


@given(st.text(max_size=200))
def test_every_text_has_a_name_for_its_file(text: str) -> None:
    assert is_name(name_for(text))


def test_a_file_is_readable_and_one_written_by_hand_needs_no_head() -> None:
    memory = Memory(name="tea", text="Ann likes tea.\nNo milk.", created="2026-11-18T09:30:00Z")

    assert memory.to_file() == "---\ncreated: 2026-11-18T09:30:00Z\n---\nAnn likes tea.\nNo milk.\n"
    assert Memory.from_file("tea", b"Ann likes tea.\r\n") == Memory(name="tea", text="Ann likes tea.")


def test_lines_of_a_head_that_are_not_ours_survive_a_change() -> None:
    memory = Memory.from_file("tea", b"---\ntags: kitchen\ncreated: 2026-11-18T09:30:00Z\n---\nTea.\n")

    changed = Memory.from_file("tea", memory.with_text("Coffee.").to_file().encode())

    assert changed.more == ("tags: kitchen",)
    assert (changed.text, changed.created) == ("Coffee.", "2026-11-18T09:30:00Z")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"", "no text"),
        (b"---\ncreated: 2026-11-18T09:30:00Z\n---\n \n", "no text"),
        (b"x" * (LONGEST_TEXT + 1), "2,001 characters, and 2,000 are the most"),
    ],
)
def test_a_file_that_is_no_memory_says_why(content: bytes, why: str) -> None:
    with pytest.raises(MemoryProblem, match=why):
        Memory.from_file("tea", content)


def test_characters_that_nobody_sees_are_not_kept() -> None:
    assert checked_text(" Tea\u202e is\u200b good.\x1b ") == "Tea is good."


@pytest.mark.parametrize(
    "text",
    [
        "The key is sk-proj-abcdefghij0123456789abcd.",
        "Log in at https://ann:hunter2@example.com/",
        "Set OPENAI_API_KEY=abc123xyz in the shell.",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
        "Server=db;Password=hunter2;",
    ],
)
def test_a_secret_is_refused_with_what_to_do_instead(text: str) -> None:
    with pytest.raises(MemoryProblem, match="say where the secret is kept instead"):
        checked_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "The API key is in the password manager under 'build'.",
        "The table has the primary_key customer_id.",
        "Run the tests with PYTHONPATH=packages/core.",
        "Ann prefers tokens of 4,096 to larger windows.",
    ],
)
def test_words_about_secrets_are_no_secrets(text: str) -> None:
    assert not has_secret(text)


def test_the_longest_text_fits_into_its_file_and_into_the_button_that_brings_it_back() -> None:
    longest = checked_text("\N{GRINNING FACE}" * LONGEST_TEXT)
    memory = Memory(
        name="x" * 80, text=longest, created="2026-11-18T09:30:00Z", changed="2026-11-18T09:30:00Z"
    )

    assert len(memory.to_file().encode()) < MOST_BYTES
