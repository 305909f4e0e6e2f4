"""The page in a real browser: Chromium of this machine, the built page, a server on a real socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_server.testing import ASKS, Notes, Paced
from agent_server.testing.page import IN_A_BROWSER, is_over, no_findings, say, wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER


class Colours:
    """A feature with an action that has a form, and answers with a card."""

    name = "colours"
    version = "1"

    def get_actions(self) -> list[dict[str, Any]]:
        inputs = {
            "name": {"type": "string", "required": True},
            "shade": {"type": "integer", "default": 3},
            "kind": {"type": "string", "enum": ["warm", "cold"], "required": True},
            "loud": {"type": "boolean"},
        }
        again = {"id": "again", "label": "Again", "inputs": {"name": {"type": "string"}}}
        return [{"id": "mix", "label": "Mix a colour", "inputs": inputs}, again]

    def execute_action(
        self, action_id: str, session: Any, native_messages: Any, params: dict[str, Any]
    ) -> dict[str, Any]:
        actions = [
            {"kind": "open_url", "id": "o", "label": "Look", "url": "https://example.test/x"},
            {
                "kind": "run_action",
                "id": "r",
                "label": "Once more",
                "plugin": "colours",
                "action_id": "again",
            },
        ]
        body = f"**{action_id}** {sorted(params.items())}"
        display = {
            "body": body,
            "format": "markdown",
            "title": "Mixed",
            "display_id": "d",
            "actions": actions,
        }
        return {"display": display}


def test_an_answer_streams_in_and_a_reload_goes_on_without_doubling(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    paced = Paced()
    chunks = ["# Sea\n\n", "It is ", "**wide**", " and ", "blue."]
    served = serve_it(provider=ScriptedProvider([Reply(chunks=chunks, delay=0.01)], sleep=paced))
    page = open_page(served)

    say(page, "a poem")
    paced.release(3)
    page.wait_for_selector(".answer strong")
    page.reload()
    page.wait_for_selector(".answer strong")
    assert page.inner_text(".answer .markdown").split() == ["Sea", "It", "is", "wide"]
    paced.release(100)
    is_over(page)

    assert page.inner_text(".answer .markdown").split() == ["Sea", "It", "is", "wide", "and", "blue."]
    assert (page.locator(".answer").count(), page.locator(".said").count()) == (1, 1)


DOCUMENT = """# Title

Some *text* with `code` that goes on
over two lines.

- one
- two

  more of two
- three

| a | b |
|---|---|
| 1 | 2 |

```python
def f():

    return 1
```

Heading below
---

> quoted
> text

1. first
2. second

The [end](https://example.test/x).
"""


def test_what_streams_in_looks_like_what_is_read_whole(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    paced = Paced()
    chunks = [DOCUMENT[at : at + 3] for at in range(0, len(DOCUMENT), 3)]
    page = open_page(serve_it(provider=ScriptedProvider([Reply(chunks=chunks, delay=0.01)], sleep=paced)))
    say(page, "write")
    for words in ("goes on", "three", "return", "quoted"):  # so that it is drawn in between
        paced.release(DOCUMENT.index(words) // 3 + 3)
        page.wait_for_selector(f".answer >> text={words}")
    paced.release(1000)
    is_over(page)

    streamed = page.locator(".answer .markdown").inner_html()
    page.reload()
    is_over(page)

    assert page.locator(".answer .markdown").inner_html() == streamed


def test_a_reload_in_a_later_step_doubles_neither_answers_nor_calls(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    paced = Paced()
    call = Reply(text="I write.", tool_calls=[ToolCall("note", {"text": "milk"})])
    script = [call, Reply(chunks=["It is ", "noted."], delay=0.01)]
    page = open_page(serve_it(provider=ScriptedProvider(script, sleep=paced), plugins=[Notes()]))

    say(page, "note milk")
    paced.release(1)
    page.wait_for_selector("text=It is")
    page.reload()
    page.wait_for_selector("text=It is")
    shown = page.locator(".transcript").inner_text().split("\n")
    calls = page.locator(".call").count()
    paced.release(100)
    page.wait_for_selector("text=It is noted.")

    assert [shown.count(line) for line in ("note milk", "I write.", "It is")] == [1, 1, 1]
    assert calls == 1


def test_stop_keeps_what_was_said(serve_it: Serving, open_page: Callable[..., Page]) -> None:
    paced = Paced()
    reply = Reply(chunks=["one ", "two ", "three"], delay=0.01)
    page = open_page(serve_it(provider=ScriptedProvider([reply], sleep=paced)))

    say(page, "count")
    paced.release(2)
    page.wait_for_selector("text=one two")
    with page.expect_response("**/cancel"):
        page.click("text=Stop")
    paced.release(100)  # the provider of the test looks up when it has something to say
    is_over(page)

    assert page.inner_text(".answer .markdown").startswith("one two")
    assert "Interrupted" in page.inner_text(".answer")


def test_sessions_are_found_renamed_and_deleted(serve_it: Serving, open_page: Callable[..., Page]) -> None:
    served = serve_it(["apples", "pears"])
    page = open_page(served)
    for words in ("about apples", "about pears"):
        page.click("text=New session >> nth=0")
        say(page, words)
        is_over(page)
    wait(lambda: page.locator(".session").count() == 2)

    page.fill("#search", "apples")
    wait(lambda: page.locator(".session").count() == 1)
    page.hover(".session")
    page.click(".session [title=Rename]")
    page.fill(".renaming input", "Fruit of the tree")
    page.press(".renaming input", "Enter")
    page.wait_for_selector("text=Fruit of the tree")
    page.fill("#search", "")
    wait(lambda: page.locator(".session").count() == 2)
    page.click(".session:has-text('Fruit') [title=Delete]")
    page.click(".deleting .danger")
    wait(lambda: page.locator(".session").count() == 1)

    assert [info.title for info in served.app.list_sessions().sessions] != ["Fruit of the tree"]


def test_a_call_is_asked_about_by_button_and_key_and_shown(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    notes = Notes()
    call = [
        Reply(text="I write.", tool_calls=[ToolCall("note", {"text": text})]) for text in ("milk", "fail")
    ]
    hidden = Reply(tool_calls=[ToolCall("note", {"text": "safe\u202eelif"})])
    served = serve_it([call[0], "done", call[1], "sorry", hidden, "well"], plugins=[notes], config=ASKS)
    page = open_page(served)

    say(page, "note milk")
    page.wait_for_selector(".approval")
    assert "milk" in page.inner_text(".approval .arguments")
    assert notes.written == []
    page.reload()
    page.wait_for_selector(".approval")
    page.click(".approval .primary")
    page.wait_for_selector("text=done")
    is_over(page)
    assert notes.written == ["milk"]
    page.click(".call summary")
    assert "written: milk" in page.inner_text(".call-body")
    assert page.locator(".call").count() == 1

    say(page, "fail now")
    page.wait_for_selector(".approval")
    page.press(".approval", "y")
    page.wait_for_selector("text=sorry")
    page.click(".call.failed summary")
    page.wait_for_selector(".call.failed .call-body >> text=the pen is broken")
    is_over(page)

    say(page, "and now")
    page.wait_for_selector(".approval .warning")
    assert "safe[U+202E]elif" in page.inner_text(".approval .arguments")
    page.press(".approval", "n")
    page.wait_for_selector("text=well")
    assert notes.written == ["milk"]


def test_nobody_says_yes_to_what_was_not_on_the_screen(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    notes = Notes()
    long = "\n".join(f"line {number}" for number in range(200))
    script = [Reply(tool_calls=[ToolCall("note", {"text": long})]), "done"]
    page = open_page(serve_it(script, plugins=[notes], config=ASKS))
    say(page, "note it")
    page.wait_for_selector(".approval")

    page.press(".approval", "y")
    assert page.is_disabled(".approval .primary")
    assert page.is_enabled(".choices button:has-text('No')")
    page.locator(".approval .question .quiet").last.scroll_into_view_if_needed()
    page.click(".approval .primary")
    page.wait_for_selector("text=done")

    assert notes.written == [long]


def test_messages_wait_while_it_works_and_can_be_withdrawn(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    paced = Paced()
    script: list[Reply | str] = [Reply(chunks=["working ", "still"], delay=0.01), "second answer"]
    page = open_page(serve_it(provider=ScriptedProvider(script, sleep=paced)))

    say(page, "begin")
    paced.release(1)
    page.wait_for_selector("text=working")
    for words in ("wrong thing", "right thing"):
        page.fill("#composer", words)
        page.click("text=Queue")
        page.wait_for_selector(f".queue >> text={words}")
    page.click(".queue li:has-text('wrong') >> text=Withdraw")
    page.wait_for_selector(".queue >> text=wrong thing", state="detached")
    paced.release(100)
    page.wait_for_selector("text=second answer")
    is_over(page)

    said = [one.strip() for one in page.locator(".said .bubble").all_inner_texts()]
    assert said == ["begin", "right thing"]
    assert page.locator(".answer").count() == 2


def test_files_are_attached(serve_it: Serving, open_page: Callable[..., Page]) -> None:
    served = serve_it(["seen"])
    page = open_page(served)
    pixel = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001"
        "e221bc330000000049454e44ae426082"
    )

    page.set_input_files(
        ".composer input[type=file]", {"name": "dot.png", "mimeType": "image/png", "buffer": pixel}
    )
    say(page, "what is this?")
    is_over(page)

    assert page.get_attribute(".picture", "alt") == "dot.png"


def test_a_plugins_form_and_card_need_no_code_of_the_page(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    page = open_page(serve_it(["hi"], plugins=[Colours]))
    say(page, "hello")
    is_over(page)

    page.click("text=Actions")
    page.click("text=Mix a colour")
    page.fill("dialog [name=name]", "red")
    page.select_option("dialog [name=kind]", "warm")
    page.click("dialog .primary")
    page.wait_for_selector(".card strong >> text=mix")
    shown = page.inner_text(".card")
    assert "('kind', 'warm'), ('loud', False), ('name', 'red'), ('shade', 3)" in shown
    assert "(example.test)" in shown
    page.click("text=Once more")
    page.wait_for_selector(".card strong >> text=again")

    assert page.locator(".card").count() == 1


class Wiping:
    """An application plugin with an action that asks first, and one whose card offers that."""

    name = "wiping"
    version = "1"
    kind = "application"

    def __init__(self) -> None:
        self.wiped: list[dict[str, Any]] = []

    def get_actions(self, state: Any) -> list[dict[str, Any]]:
        depth = {"session_id": {"type": "string", "required": True}, "depth": {"type": "integer"}}
        wipe = {"id": "wipe", "label": "Wipe", "confirm": "Throw it all away?", "inputs": depth}
        return [wipe, {"id": "look", "label": "Look"}]

    def execute_action(
        self, app: Any, action_id: str, params: dict[str, Any], context: Any
    ) -> dict[str, Any]:
        if action_id == "wipe":
            self.wiped.append(params)
            return {"message": "All gone."}
        follow = {
            "kind": "run_action",
            "id": "f",
            "label": "Wipe it",
            "plugin": "wiping",
            "action_id": "wipe",
        }
        return {
            "display": {"format": "text", "body": "A lot", "actions": [{**follow, "params": {"depth": 7}}]}
        }


def test_an_action_of_the_application_asks_first_and_then_runs(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    wiping = Wiping()
    page = open_page(serve_it(["hi"], plugins=[wiping]))
    say(page, "hello")
    is_over(page)

    page.click("header >> text=Actions")
    page.click("header .menu >> text=Wipe")
    page.wait_for_selector("dialog >> text=Throw it all away?")
    page.click("dialog >> text=Cancel")
    page.click("header >> text=Actions")
    page.click("header .menu >> text=Look")
    page.click(".card >> text=Wipe it")
    page.wait_for_selector("dialog >> text=Throw it all away?")
    assert wiping.wiped == []
    page.click("dialog .primary")
    page.wait_for_selector("text=All gone.")

    [params] = wiping.wiped
    assert (params["depth"], bool(params["session_id"])) == (7, True)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_its_screen_and_axe_finds_nothing(
    serve_it: Serving, open_page: Callable[..., Page], width: int, scheme: str
) -> None:
    long = (
        "# Title\n\n"
        + "word " * 80
        + "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\ndef f():\n    return 1\n```"
    )
    ask = Reply(tool_calls=[ToolCall("note", {"text": "long " * 100})])
    page = open_page(
        serve_it([long + " " + "x" * 300, ask], plugins=[Notes()], config=ASKS),
        width,
        844 if width < 700 else 800,
        color_scheme=scheme,
    )
    say(page, "hello")
    is_over(page)
    say(page, "note it")
    page.wait_for_selector(".approval")

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    no_findings(page)
