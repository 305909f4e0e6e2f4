"""Every action of a plugin as a command: found, asked for, run, shown."""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import Reply, ScriptedProvider
from agent_terminal_app.chat.commands import registry
from agent_terminal_app.chat.commands.registry import COMMANDS, names
from agent_terminal_app.chat.conversation import Conversation
from agent_terminal_app.chat.loop import Chat
from compaction_feature import CompactionFeature

if TYPE_CHECKING:
    from collections.abc import Callable

    from chat_commands.conftest import Acting, Desk

TITLE = {
    "id": "set_title",
    "label": "Set the title",
    "description": "Names the session.",
    "inputs": {
        "title": {"type": "string", "required": True},
        "size": {"type": "integer", "default": 3},
        "colour": {"enum": ["red", "blue"]},
    },
}


def titles(acting: type[Acting], got: list[dict[str, Any]], **result: Any) -> Acting:
    def do(action_id: str, params: dict[str, Any]) -> dict[str, Any]:
        if action_id == "set_title":
            got.append(params)
        return {"status": "ok", **result}

    return acting("titles", [TITLE, {"id": "auto", "trigger": "session_create"}], do)


def test_actions_are_listed_without_those_of_lifecycles(desk: Desk, acting: type[Acting]) -> None:
    desk.plugins.append(titles(acting, []))

    shown = desk.chat("/actions", "hello", "/actions")

    line = "  /titles.set_title                   Set the title: Names the session."
    assert shown.count(line) == 2
    assert not any("auto" in line for line in shown)


@pytest.mark.parametrize("command", ["/set_title", "/titles.set_title", "/actions titles.set_title"])
def test_an_action_is_a_command_whose_inputs_are_asked_for(
    desk: Desk, acting: type[Acting], command: str
) -> None:
    got: list[dict[str, Any]] = []
    desk.plugins.append(titles(acting, got, message="It has a title now."))

    shown = desk.chat("hello", command, "", "Tea", "many", "5", "2")

    assert got == [{"title": "Tea", "size": 5, "colour": "blue"}]
    assert "Error: title is needed: type something, or press Esc to leave" in shown
    assert "Error: 'many' cannot be read: write a whole number, such as 3" in shown
    assert "colour ([1] red, [2] blue; Enter for none)" in shown
    assert shown[-1] == "Set the title: It has a title now."


def test_what_stands_behind_the_name_is_not_asked_for(desk: Desk, acting: type[Acting]) -> None:
    got: list[dict[str, Any]] = []
    desk.plugins.append(titles(acting, got))

    shown = desk.chat("hello", "/set_title title='Tea time'", "/set_title size=5", "Asked")

    assert got == [{"title": "Tea time", "size": 3}, {"title": "Asked", "size": 5}]
    assert not any(line.startswith("size (") for line in shown)


def test_esc_leaves_a_form_and_nothing_is_run(desk: Desk, acting: type[Acting], esc: str) -> None:
    got: list[dict[str, Any]] = []
    desk.plugins.append(titles(acting, got))

    shown = desk.chat("hello", "/set_title", "Tea", esc)

    assert got == []
    assert shown[-1] == "Set the title: cancelled, nothing was done."


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("/set_title colour=green", "is none of [1] red, [2] blue"),
        ("/set_title wrong=1", "no such input; write title=VALUE"),
        (
            "/actions titles.set_titel",
            "no plugin offers 'titles.set_titel': did you mean 'titles.set_title'?",
        ),
    ],
)
def test_what_cannot_be_run_is_an_error(desk: Desk, acting: type[Acting], command: str, problem: str) -> None:
    desk.plugins.append(titles(acting, []))

    assert problem in desk.chat("hello", command)[-1]


def test_an_action_of_a_session_needs_one(desk: Desk, acting: type[Acting]) -> None:
    desk.plugins.append(titles(acting, []))

    assert "nothing has been said yet" in desk.chat("/set_title title=x")[-1]


def test_completion_knows_actions_and_what_may_follow_a_command(desk: Desk, acting: type[Acting]) -> None:
    desk.plugins.append(titles(acting, []))

    with desk.open() as app:
        conversation = Conversation(app)
        suggested = names(conversation)
        following = {name: one.choices(conversation, "") for name, one in COMMANDS.items() if one.choices}

    assert ("set_title", "Set the title: Names the session.") in suggested
    assert not any(name == "set_title" for name, _about in names())
    assert ("titles.set_title", "Set the title: Names the session.") in list(following["actions"])
    assert ("clock", "nothing rules it out") in list(following["plugins"])
    assert ("ui.theme", '"auto" now') in list(following["config"])


def test_help_explains_an_action(desk: Desk, acting: type[Acting]) -> None:
    desk.plugins.append(titles(acting, []))

    shown = desk.chat("hello", "/help set_title", "/help")

    assert "/set_title title=… [size=…] [colour=…]" in shown
    assert "    size=(integer; Enter for 3)" in shown
    assert "  /set_title              Set the title: Names the session." in shown


def noting(acting: type[Acting], name: str, action_id: str, done: list[str]) -> Acting:
    """Return a plugin with one action, which notes that it ran."""

    def do(_action_id: str, _params: dict[str, Any]) -> dict[str, Any]:
        done.append(name)
        return {}

    return acting(name, [{"id": action_id}], do)


def test_an_id_that_two_plugins_have_needs_the_name_of_one(desk: Desk, acting: type[Acting]) -> None:
    done: list[str] = []
    desk.plugins += [noting(acting, name, "water", done) for name in ("first", "second")]

    shown = desk.chat("hello", "/water", "/second.water")

    assert shown[-2].startswith("There is no command /water")
    assert done == ["second"]


def test_a_command_of_the_chat_is_never_an_action(desk: Desk, acting: type[Acting]) -> None:
    done: list[str] = []
    desk.plugins.append(noting(acting, "evil", "help", done))

    shown = desk.chat("hello", "/help", "/evil.help")

    assert "  /help         list the commands, or explain one" in shown
    assert done == ["evil"]


def test_no_id_can_pass_for_the_whole_name_of_another_or_for_a_choice_of_a_card(
    desk: Desk, acting: type[Acting]
) -> None:
    done: list[str] = []
    desk.plugins += [noting(acting, name, "act", done) for name in ("real", "other")]
    desk.plugins += [noting(acting, "evil", "real.act", done), noting(acting, "worse", "1", done)]

    shown = desk.chat("hello", "/real.act", "/1", "/worse.1")

    assert done == ["real", "worse"]
    assert any(line.startswith("There is no command /1") for line in shown)


def test_an_action_that_is_misspelt_gets_the_nearest(desk: Desk, acting: type[Acting]) -> None:
    desk.plugins.append(titles(acting, []))

    assert "did you mean 'set_title'?" in desk.chat("hello", "/set_titel")[-1]


def test_an_error_of_an_action_is_told(desk: Desk, acting: type[Acting]) -> None:
    result = {"error": {"type": "x", "message": "It is broken:\nmend it."}}
    desk.plugins.append(acting("it", [{"id": "act"}], lambda _id, _params: result))

    assert desk.chat("hello", "/act")[-2:] == ["Error: It is broken:", "mend it."]


def test_an_action_that_raises_leaves_the_chat_going(desk: Desk, acting: type[Acting]) -> None:
    def do(_id: str, _params: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("boom")

    desk.plugins.append(acting("it", [{"id": "act"}], do))

    shown = desk.chat("hello", "/act", "go on")

    assert any(line.startswith("Error: ") and "boom" in line for line in shown)
    assert shown[-1] == "You said: go on"


def test_labels_of_a_dialog_and_its_order_are_used(desk: Desk, acting: type[Acting]) -> None:
    ui = [
        {
            "ui_type": "session_action",
            "label": "Second thoughts",
            "order": 2,
            "action_id": "b",
            "dialog": {"inputs": [{"name": "it", "label": "What it is"}]},
        },
        {"ui_type": "session_action", "label": "First", "order": 1, "action_id": "a"},
    ]
    actions: list[dict[str, Any]] = [
        {"id": "b", "inputs": {"it": {"type": "string"}}},
        {"id": "c"},
        {"id": "a"},
    ]
    desk.plugins.append(acting("it", actions, lambda _id, _params: {}, ui))

    shown = desk.chat("hello", "/actions", "/b", "")

    assert [line.split()[0] for line in shown if line.startswith("  /it.")] == ["/it.a", "/it.b", "/it.c"]
    assert "What it is (text; Enter for none)" in shown
    assert "Second thoughts (Esc leaves it)" in shown


def test_an_action_is_told_about_the_terminal(desk: Desk, acting: type[Acting]) -> None:
    plugin = acting("it", [{"id": "act"}], lambda _id, _params: {})
    desk.plugins.append(plugin)

    desk.chat("hello", "/act")

    assert plugin.contexts[0]["terminal"] == {"width": None, "color": False}
    assert plugin.contexts[0]["trigger_source"] == "application"


def test_a_slow_action_says_that_it_is_at_work(
    desk: Desk, acting: type[Acting], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_PAUSES", (0.01,))
    told = threading.Event()
    real = registry._report

    async def noticed(tell: Callable[[str], None], what: str) -> None:
        def tell_and_notice(text: str) -> None:
            tell(text)
            told.set()

        await real(tell_and_notice, what)

    monkeypatch.setattr(registry, "_report", noticed)
    work = {"id": "act", "label": "Work"}
    desk.plugins.append(acting("it", [work], lambda _id, _params: {"ok": told.wait(60)}))

    shown = desk.chat("hello", "/act")

    assert shown[-2].startswith("… Work, ") and shown[-2].endswith("(Esc stops it)")
    assert shown[-1] == "Work: done"


# Cards


def show(acting: type[Acting], *displays: dict[str, Any], name: str = "it") -> Any:
    """Return a plugin whose action shows one display after the other."""
    script = iter(displays)
    return acting(name, [{"id": "card"}], lambda _id, _params: {"display": next(script)})


def test_a_display_is_a_card_with_choices(desk: Desk, acting: type[Acting]) -> None:
    copying = {"kind": "copy_text", "id": "c", "label": "Copy", "text": "ABCD"}
    card = {
        "title": "Code",
        "body": "Here it is.",
        "variant": "success",
        "display_id": "d",
        "actions": [copying],
    }
    desk.plugins.append(show(acting, card, {**card, "body": "A newer one."}))

    shown = desk.chat("hello", "/card", "/1", "/2", "/card", "/9")

    assert shown[shown.index("Code (success)") + 1 :][:4] == [
        "  Here it is.",
        "  [1] Copy — copies ABCD",
        "  /1 does it",
        "ABCD",
    ]
    assert "Error: there is no clipboard here: select the text, or use /export FILE.md" in shown
    assert "Error: the last card has no choice 2" in shown
    assert "updated: Code (success)" in shown


def test_without_a_card_a_number_is_no_command(desk: Desk) -> None:
    assert desk.chat("hello", "/1")[-1].startswith("There is no command /1")


def follow(action_id: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "run_action",
        "id": action_id,
        "label": action_id,
        "plugin": "it",
        "action_id": action_id,
        **more,
    }


def test_a_choice_runs_an_action_with_its_params_and_the_card_is_done(
    desk: Desk, acting: type[Acting]
) -> None:
    got: list[Any] = []

    def do(action_id: str, params: dict[str, Any]) -> dict[str, Any]:
        got.append((action_id, params))
        card = {"body": "x", "actions": [follow("work", params={"n": 1})]}
        return {"display": card} if action_id == "card" else {"message": "worked"}

    inputs = {"n": {"type": "integer"}, "why": {"type": "string", "required": True}}
    desk.plugins.append(acting("it", [{"id": "card"}, {"id": "work", "inputs": inputs}], do))

    shown = desk.chat("hello", "/card", "/1", "because", "/1")

    assert got == [("card", {}), ("work", {"n": 1, "why": "because"})]
    assert "work: worked" in shown
    assert shown[-1].startswith("There is no command /1")


def test_a_choice_that_preserves_the_card_leaves_its_choices(desk: Desk, acting: type[Acting]) -> None:
    checked: list[str] = []

    def do(action_id: str, _params: dict[str, Any]) -> dict[str, Any]:
        if action_id == "card":
            return {"display": {"body": "x", "actions": [follow("check", preserve_display=True)]}}
        checked.append(action_id)
        return {"display": {"body": f"not yet, {len(checked)}"}}

    desk.plugins.append(acting("it", [{"id": "card"}, {"id": "check"}], do))

    shown = desk.chat("hello", "/card", "/1", "/1")

    assert "  not yet, 2" in shown


def test_a_choice_that_fails_can_be_tried_again(desk: Desk, acting: type[Acting]) -> None:
    tries: list[int] = []

    def do(action_id: str, _params: dict[str, Any]) -> dict[str, Any]:
        if action_id == "card":
            return {"display": {"body": "x", "actions": [follow("try")]}}
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not now")
        return {"message": "at last"}

    desk.plugins.append(acting("it", [{"id": "card"}, {"id": "try"}], do))

    assert desk.chat("hello", "/card", "/1", "/1")[-1] == "try: at last"


RECORD = "import sys, pathlib; pathlib.Path('opened').write_text(repr(sys.argv[1:]))"


def browse(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a program of this test open pages."""
    script = desk.folder / "browser.py"
    script.write_text(RECORD)
    monkeypatch.setenv("BROWSER", f"{sys.executable} {script} %s")
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # what it found for another test


def link(url: str) -> dict[str, Any]:
    return {"body": "x", "actions": [{"kind": "open_url", "id": "o", "label": "Go", "url": url}]}


def test_a_page_is_opened_by_a_program_and_no_shell(
    desk: Desk, acting: type[Acting], monkeypatch: pytest.MonkeyPatch
) -> None:
    browse(desk, monkeypatch)
    url = "https://example.test/a;touch$IFS-x&b=$(touch%20x)|'q'"
    desk.plugins.append(show(acting, link(url)))

    shown = desk.chat("hello", "/card", "/1")

    assert shown[-1] == "Opened example.test."
    assert (desk.folder / "opened").read_text() == repr([shown[-2]])
    assert shown[-2].startswith("https://example.test/a;touch")
    assert not (desk.folder / "x").exists()


def test_nothing_is_opened_before_somebody_chooses_it(
    desk: Desk, acting: type[Acting], monkeypatch: pytest.MonkeyPatch
) -> None:
    browse(desk, monkeypatch)
    desk.plugins.append(show(acting, link("https://example.test")))

    desk.chat("hello", "/card", "go on")

    assert not (desk.folder / "opened").exists()


@pytest.mark.parametrize(("answer", "opened"), [("y", True), ("", False), ("no", False), ("\x1b", False)])
def test_a_page_without_encryption_is_asked_about(
    desk: Desk, acting: type[Acting], monkeypatch: pytest.MonkeyPatch, answer: str, opened: bool
) -> None:
    browse(desk, monkeypatch)
    desk.plugins.append(show(acting, link("http://example.test")))

    shown = desk.chat("hello", "/card", "/1", answer)

    assert "example.test is reached without encryption. Open it anyway? [y/N]" in shown
    assert (desk.folder / "opened").exists() is opened


def test_without_a_desktop_the_address_is_shown(desk: Desk, acting: type[Acting]) -> None:
    desk.plugins.append(show(acting, link("https://example.test/x")))

    assert desk.chat("hello", "/card", "/1")[-2:] == [
        "https://example.test/x",
        "There is no desktop here: open the address above yourself.",
    ]


# Application plugins


class Housekeeping:
    """Makes, changes and deletes sessions."""

    name = "housekeeping"
    version = "1"

    def init(self, app_config: dict[str, Any]) -> dict[str, Any]:
        return {}

    def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        wanted = {"session_id": {"type": "string", "required": True}}
        return [
            {"id": "copy", "label": "Copy", "inputs": wanted},
            {"id": "mark", "label": "Mark", "inputs": wanted},
            {"id": "sweep", "label": "Sweep"},
            {"id": "odd", "label": "Odd"},
        ]

    def execute_action(
        self, app: Any, action_id: str, params: dict[str, Any], context: Any, state: dict[str, Any]
    ) -> dict[str, Any]:
        if action_id == "copy":
            copy = app.load_session(params["session_id"]).with_id("the-copy")
            effect = {"type": "open_session", "session_id": "the-copy"}
            return {"mutations": {"created": [copy]}, "ui_effects": [effect]}
        if action_id == "mark":
            marked = app.load_session(params["session_id"]).with_metadata({"marked": True})
            return {"mutations": {"updated": [marked]}}
        if action_id == "sweep":
            return {"mutations": {"deleted": [info.id for info in app.list_sessions().sessions]}}
        return {"ui_effects": [{"type": "confetti"}, {"type": "reload"}]}


def test_an_action_of_the_application_takes_the_chat_where_it_wants(desk: Desk) -> None:
    desk.plugins.append(Housekeeping)

    shown = desk.chat("hello", "/housekeeping.copy", "", "go on")

    assert "Made session the-copy; /resume 1 goes there." in shown
    assert "This is the-copy now." in shown
    assert desk.said("the-copy")[-1] == "You said: go on"


def test_a_session_that_an_action_deleted_is_left(desk: Desk) -> None:
    desk.plugins.append(Housekeeping)

    shown = desk.chat("hello", "/mark", "", "/sweep", "go on")

    assert "This session was changed." in shown
    assert "Deleted 1 session." in shown
    assert "This session was among them; your next message starts a new one." in shown
    assert desk.said(desk.sessions()[0]) == ["go on", "You said: go on"]


def test_an_action_of_the_application_needs_no_session(desk: Desk) -> None:
    desk.plugins.append(Housekeeping)

    shown = desk.chat("/odd")

    assert shown == ["Odd: done", "(The effect 'confetti' means nothing in a terminal.)"]


def test_an_effect_that_leads_nowhere_leaves_the_chat_where_it_is(desk: Desk) -> None:
    class Lost(Housekeeping):
        def execute_action(self, *_given: Any) -> dict[str, Any]:
            return {"ui_effects": [{"type": "open_session", "session_id": "nowhere"}]}

    desk.plugins.append(Lost)

    shown = desk.chat("hello", "/odd", "go on")

    assert any(line.startswith("Error: ") and "nowhere" in line for line in shown)
    assert desk.said(desk.sessions()[0])[-1] == "You said: go on"


# Compaction


def tea(desk: Desk, *answers: Any) -> None:
    desk.plugins = [
        ScriptedProvider(itertools.chain(answers, itertools.repeat("Yes.")), name="demo"),
        CompactionFeature,
    ]


LONG = "Some long story about tea. " * 40


def test_compact_shows_before_and_after_and_undo_puts_it_back(desk: Desk) -> None:
    tea(desk, "One.", "Two.", "Three.", "The user told stories about tea.")

    shown = desk.chat(LONG, LONG, LONG, "/compact names of teas", "/undo", "1", "/cost")
    text = "\n".join(shown)

    assert "Compacted (success)" in text
    assert "6 messages, ~" in text and " tokens → 5 messages, ~" in text
    assert "  [1] the last summary: the messages it replaced are sent again" in text
    assert "updated: Put back (success)" in text
    assert len(desk.said(desk.sessions()[0])) == 6


def test_the_hint_reaches_the_model(desk: Desk) -> None:
    seen: list[str] = []

    def answer(messages: list[dict[str, Any]]) -> str:
        seen.append(str(messages[-1]["content"]))
        return "Short."

    tea(desk, "One.", "Two.", "Three.", answer)

    desk.chat(LONG, LONG, LONG, "/compact keep the names")

    assert "keep the names" in seen[0]


def test_what_cannot_be_compacted_says_why(desk: Desk) -> None:
    tea(desk, "One.")

    assert desk.chat("short", "/compact")[-1].startswith("Compact: ")
    desk.plugins = desk.plugins[:1]
    assert desk.chat("short", "/compact")[-1] == (
        "Error: the plugin 'compaction' is not on: /plugins compaction says why"
    )


def test_commands_that_lead_elsewhere_wait_for_the_agent(desk: Desk) -> None:
    async def sit() -> list[str]:
        begun, loop = asyncio.Event(), asyncio.get_running_loop()

        def answer(_messages: list[dict[str, Any]]) -> Reply:
            loop.call_soon_threadsafe(begun.set)
            return Reply(text="never", delay=math.inf)

        desk.plugins[0] = ScriptedProvider([answer], name="demo")
        page = desk.paper()
        chat = Chat(desk.open, page)
        chat.start()
        await chat.take("hello")
        await asyncio.wait_for(begun.wait(), 60)
        for command in ("/new", "/model other", "/cost"):
            await chat.take(command)
        chat.interrupt()
        await chat.close()
        return page.lines

    shown = asyncio.run(sit())

    assert "Error: the agent is working: press Esc to stop it, then type /new again" in shown
    assert "Error: the agent is working: press Esc to stop it, then type /model again" in shown
    assert any(line.startswith("last request: ") for line in shown)


def test_esc_stops_a_command_that_takes_long(desk: Desk, acting: type[Acting]) -> None:
    begun, ended = threading.Event(), threading.Event()

    def do(_id: str, _params: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        ended.wait(60)
        return {"message": "never shown"}

    desk.plugins.append(acting("it", [{"id": "act"}], do))

    async def sit() -> list[str]:
        page = desk.paper()
        chat = Chat(desk.open, page)
        chat.start()
        await chat.take("hello")
        await chat.finish()
        await chat.take("/act")
        await asyncio.to_thread(begun.wait, 20)
        assert chat.interrupt()
        ended.set()
        await chat.finish()
        await chat.take("go on")
        await chat.finish()
        await chat.close()
        return page.lines

    shown = asyncio.run(sit())

    assert not any("never shown" in line for line in shown)
    assert shown[-1] == "You said: go on"
