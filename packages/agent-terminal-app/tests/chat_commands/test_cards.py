"""A display as lines: what its plugin calls things, and what they really do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_terminal_app.chat.commands.cards import Card

SIGN_IN = {
    "format": "markdown",
    "title": "Sign in",
    "body": "Open [this page](https://example.test) and enter `ABCD`.",
    "variant": "warning",
    "display_id": "login",
    "actions": [
        {"kind": "open_url", "id": "a", "label": "Open page", "url": "https://bücher.example/login"},
        {"kind": "copy_text", "id": "b", "label": "Copy code", "text": "ABCD"},
        {"kind": "run_action", "id": "c", "label": "Check", "plugin": "auth", "action_id": "status"},
    ],
}
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def lines(payload: object, *, color: bool = False, **how: Any) -> list[str]:
    card = Card.read(payload)
    return [] if card is None else list(card.lines(color=color, **how))


def test_a_card_shows_its_choices_with_what_they_do() -> None:
    shown = lines(SIGN_IN)

    assert shown[0] == "Sign in (warning)"
    assert "enter `ABCD`" in shown[1]
    assert shown[-4:] == [
        "  [1] Open page — opens xn--bcher-kva.example",
        "  [2] Copy code — copies ABCD",
        "  [3] Check — done by the plugin auth",
        "  /1 to /3 do one of them",
    ]


@pytest.mark.parametrize("variant", ["info", "success", "warning", "error"])
def test_a_variant_is_a_colour_and_a_word(variant: str) -> None:
    payload = {"title": "It", "body": "x", "variant": variant}

    assert lines(payload)[0] == f"It ({variant})"
    colored = lines(payload, color=True)
    assert STYLE.sub("", colored[0]) == f"╭ It ({variant})" and STYLE.search(colored[0])
    assert len({lines({**payload, "variant": one}, color=True)[0] for one in ("info", "error")}) == 2


def test_a_card_that_was_there_before_is_an_update() -> None:
    assert lines(SIGN_IN, updated=True)[0] == "updated: Sign in (warning)"
    assert lines({"body": "x"}, updated=True) == ["updated:", "  x"]


def test_a_bare_body_is_all_that_a_card_needs() -> None:
    assert lines({"body": "one\ntwo"}) == ["  one", "  two"]
    assert lines({"title": "no body"}) == []
    assert lines("no object") == []
    assert Card.read(None) is None


def test_text_is_no_markdown() -> None:
    assert lines({"body": "# **a**", "format": "text"}) == ["  # **a**"]


def test_markdown_is_shown_as_it_was_meant() -> None:
    body = "Write `a < b`:\n\n```html\n<b>&lt;</b>\n```\n\nA <b>tag</b> is text."

    shown = "\n".join(lines({"body": body, "format": "markdown"}))

    assert "`a < b`" in shown
    assert "<b>&lt;</b>" in shown
    assert "A <b>tag</b> is text." in shown


def test_long_lines_stay_inside_of_the_frame() -> None:
    shown = lines({"body": "word " * 60, "format": "markdown"}, color=True, width=40)

    assert len(shown) > 5
    assert max(len(STYLE.sub("", line)) for line in shown) <= 40


def test_kinds_that_are_not_known_are_left_out_with_a_note() -> None:
    odd = {"kind": "launch_missile", "id": "x", "label": "Launch"}

    shown = lines({"body": "x", "actions": [odd, SIGN_IN["actions"][1]]})

    assert shown[1] == "  [1] Copy code — copies ABCD"
    assert shown[-1] == "  1 follow-up skipped: their kind is not known here"
    assert not any("Launch" in line for line in shown)


def test_there_are_at_most_eight_choices() -> None:
    actions = [{"kind": "copy_text", "id": f"c{n}", "label": f"No {n}", "text": str(n)} for n in range(12)]
    card = Card.read({"body": "x", "actions": actions})

    assert card is not None and len(card.follow_ups) == 8


SCHEMES = ["javascript", "JaVaScRiPt", "data", "vbscript", "file", "ftp", "mailto", "about", "blob", "x-evil"]
RESTS = ["alert(1)", "//example.test/", "text/html,<script>", "///etc/passwd", "//user@example.test"]
ODD = [
    "https://user@example.test",
    "https://user:secret@example.test",
    "https://example.test\\@evil.test",
    "https://exa mple.test",
    "https://example.test/\x00",
    "https://example.test/\r\nX: y",
    "\thttps://example.test",
    "https://",
    "https:///path",
    "//example.test",
    "https://[::1",
    "https://example.test:99999",
    "https://" + "a" * 3000,
    "",
]


@pytest.mark.parametrize("url", [f"{scheme}:{rest}" for scheme in SCHEMES for rest in RESTS] + ODD)
def test_no_odd_address_is_offered(url: str) -> None:
    card = Card.read({"body": "x", "actions": [{"kind": "open_url", "id": "a", "label": "Open", "url": url}]})

    assert card is not None
    assert card.follow_ups == ()


escapes = st.text(
    st.sampled_from("\x1b\x07\x9b\x90\x08\r\u202e\u2066\u200f[]52;c0mJH?h P\\abc\n"), max_size=40
)


@given(title=escapes, body=escapes, label=escapes, text=escapes, color=st.booleans())
def test_nothing_in_a_card_moves_the_cursor(
    *, title: str, body: str, label: str, text: str, color: bool
) -> None:
    payload = {
        "title": title,
        "body": f"x{body}",
        "format": "markdown",
        "actions": [{"kind": "copy_text", "id": "a", "label": f"l{label}", "text": f"t{text}"}],
    }

    for line in lines(payload, color=color, width=60):
        assert not re.search(
            r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", STYLE.sub("", line)
        )
