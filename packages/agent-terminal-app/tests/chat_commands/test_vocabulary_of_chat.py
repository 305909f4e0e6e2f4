"""What plugins may want shown and asked, as the chat in a terminal does it, or says that it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.actions import Action
from agent_core.display.elements import EFFECTS, PLACES, WIDGETS
from agent_terminal_app.chat.commands.actions import _SHOWN_BY
from agent_terminal_app.chat.commands.offers import Field
from agent_terminal_app.chat.commands.registry import COMMANDS

if TYPE_CHECKING:
    from chat_commands.conftest import Acting, Desk

SHARE = {
    "id": "share",
    "label": "share_it",
    "inputs": {"key": {"type": "string", "required": True}, "colour": {"type": "string"}},
}
ELEMENT: dict[str, Any] = {
    "ui_type": "session_action",
    "action_id": "share",
    "label": "Share it",
    "description": "Shows it to everybody.",
    "icon": "share",
    "dialog": {
        "title": "Share this session",
        "body": "Everybody\ncan read it.",
        "confirm": "Really share it?",
        "inputs": [
            {"name": "key", "label": "Key", "widget": "password", "placeholder": "sk-1"},
            {"name": "colour", "widget": "select", "options": ["red", "blue"], "default": "blue"},
        ],
    },
}


def sharing(acting: type[Acting], got: list[Any], action: Any = SHARE, element: Any = ELEMENT) -> Acting:
    def do(action_id: str, params: dict[str, Any]) -> dict[str, Any]:
        got.append(params)
        return {"status": "ok"}

    return acting("sharing", [action], do, [element])


def test_a_dialog_has_a_title_a_body_and_questions_in_the_plugins_words(
    desk: Desk, acting: type[Acting]
) -> None:
    got: list[Any] = []
    desk.plugins.append(sharing(acting, got))

    shown = desk.chat("hello", "/share", "secret", "", "yes")

    start = shown.index("Share this session (Esc leaves it)")
    assert shown[start + 1 : start + 3] == ["Everybody", "can read it."]
    assert "Key (text; needed): such as sk-1" in shown
    assert "colour ([1] red, [2] blue; Enter for blue)" in shown
    assert "Really share it? [y/N]" in shown
    assert got == [{"key": "secret", "colour": "blue"}]
    assert not any("secret" in line for line in shown)


@pytest.mark.parametrize("answer", ["", "n", "no", "maybe"])
def test_nothing_runs_without_a_yes(desk: Desk, acting: type[Acting], answer: str) -> None:
    got: list[Any] = []
    desk.plugins.append(sharing(acting, got))

    shown = desk.chat("hello", "/share key=x colour=red", answer)

    assert got == []
    assert shown[-1] == "Share it: cancelled, nothing was done."


def test_an_action_that_asks_by_itself_is_asked_for(desk: Desk, acting: type[Acting], esc: str) -> None:
    got: list[Any] = []
    action = {"id": "wipe", "label": "Wipe", "confirm": "Wipe everything?"}
    desk.plugins.append(sharing(acting, got, action, {"ui_type": "config", "key": "x"}))

    assert desk.chat("hello", "/wipe", esc)[-1] == "Wipe: cancelled, nothing was done."
    assert got == []
    shown = desk.chat("hello", "/wipe", "y")
    assert "Wipe everything? [y/N]" in shown
    assert (got, shown[-1]) == ([{}], "Wipe: done")


def test_a_triggered_action_that_takes_inputs_is_offered_by_hand(desk: Desk, acting: type[Acting]) -> None:
    got: list[Any] = []
    action = {"id": "compact_range", "inputs": {"start": {"type": "integer"}}, "trigger": ["harvest"]}
    desk.plugins.append(sharing(acting, got, action, {"ui_type": "config", "key": "x"}))

    desk.chat("hello", "/compact_range start=2")

    assert got == [{"start": 2}]


def test_what_a_terminal_does_not_show_is_named(desk: Desk, acting: type[Acting]) -> None:
    desk.plugins.append(sharing(acting, []))
    desk.plugins.append(
        acting("numbers", [], lambda *_: {}, [{"ui_type": "dashboard"}, {"ui_type": "dashboard"}])
    )

    shown = desk.chat("/actions", "/help share")

    assert "(A terminal cannot show: dashboard of numbers.)" in shown
    assert "  (A terminal does not show its icon, share.)" in shown
    assert "  It asks before it runs: Really share it?" in shown
    assert any("Share it: Shows it to everybody." in line for line in shown)


@pytest.mark.parametrize("widget", WIDGETS)
def test_every_widget_is_a_line_or_says_what_is_different(widget: str) -> None:
    action = Action.from_dict({"id": "a", "inputs": {"it": {"type": "string"}}}, plugin="p", owner="feature")
    field = Field.of(action.inputs["it"], {"widget": widget})

    assert field.is_secret == (widget == "password")
    assert ("a terminal takes" in field.question) == (widget in ("textarea", "file"))


class Wanting:
    """An application plugin whose action has the effects that it was given."""

    name = "wanting"
    version = "1"

    def __init__(self, *effects: dict[str, Any]) -> None:
        self._effects = list(effects)

    def get_actions(self, state: Any) -> list[dict[str, Any]]:
        return [{"id": "want", "label": "Want"}]

    def execute_action(self, app: Any, action_id: str, params: Any, context: Any, state: Any) -> Any:
        return {"ui_effects": self._effects}


@pytest.mark.parametrize(
    ("effect", "shown"),
    [
        ({"type": "toast", "text": "Saved\x1b[31m it"}, ["Saved"]),
        ({"type": "toast", "text": "Broken", "variant": "error"}, ["Error: Broken"]),
        ({"type": "reload"}, []),
        ({"type": "navigate", "to": "sessions"}, ["/sessions shows the sessions."]),
        (
            {"type": "open_url", "url": "https://example.test/a"},
            ["There is a page to see; it was not opened:", "https://example.test/a"],
        ),
        ({"type": "set_input", "text": "Dear"}, ["(The effect 'set_input' means nothing in a terminal.)"]),
        ({"type": "confetti"}, ["(The effect 'confetti' means nothing in a terminal.)"]),
        ({"type": "toast"}, []),
    ],
)
def test_effects_are_followed_or_named(desk: Desk, effect: dict[str, Any], shown: list[str]) -> None:
    desk.plugins.append(Wanting(effect))

    lines = desk.chat("/want")

    assert lines[0] == "Want: done"
    assert len(lines) == 1 + len(shown)
    assert all(line.startswith(wanted) for line, wanted in zip(lines[1:], shown, strict=True))
    assert not any("\x1b" in line for line in lines)


def test_every_place_has_a_command() -> None:
    assert set(_SHOWN_BY) == set(PLACES)
    assert {name.removeprefix("/") for name in _SHOWN_BY.values()} <= set(COMMANDS)
    assert {"toast", "open_session", "reload", "navigate", "open_url", "set_input"} == set(EFFECTS)
