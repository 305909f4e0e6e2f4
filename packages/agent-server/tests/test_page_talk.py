"""Waiting messages, branches, drafts, quotes and speech, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.testing import Reply, ScriptedProvider
from agent_server.testing import Paced
from agent_server.testing.page import IN_A_BROWSER, is_over, no_findings, say, wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER
BUBBLE = ".said .bubble"


def test_a_waiting_message_is_edited_and_sent_at_another_time(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    paced = Paced()
    script: list[Reply | str] = [Reply(chunks=["working ", "still"], delay=0.01), "second answer"]
    served = serve_it(provider=ScriptedProvider(script, sleep=paced))
    page = open_page(served)
    say(page, "begin")
    paced.release(1)
    page.wait_for_selector("text=working")

    page.fill("#composer", "first idea")
    page.click(".composer >> text=Queue")
    page.click(".queue >> text=Edit")
    page.fill(".queue textarea", "better idea")
    page.click(".queue >> text=Save")
    page.wait_for_selector(".queue .words >> text=better idea")
    page.select_option(".queue select", "steer")
    wait(lambda: [one.mode for one in served.app.queued(page.url.partition("#s=")[2])] == ["steer"])
    no_findings(page)
    page.select_option(".queue select", "queue")
    wait(lambda: [one.mode for one in served.app.queued(page.url.partition("#s=")[2])] == ["queue"])
    paced.release(100)
    page.wait_for_selector("text=second answer")
    is_over(page)

    assert [one.strip() for one in page.locator(BUBBLE).all_inner_texts()] == ["begin", "better idea"]


def test_edit_and_answer_again_are_branches(serve_it: Serving, open_page: Callable[..., Page]) -> None:
    page = open_page(serve_it(["first", "second", "third"]))
    say(page, "question")
    is_over(page)

    page.click("text=Edit")
    page.fill(".editing textarea", "better question")
    page.click("text=Send as a branch")
    page.wait_for_selector("text=second")
    is_over(page)
    page.wait_for_selector(".said .branches >> text=2/2")
    assert page.inner_text(BUBBLE).strip() == "better question"
    page.click("text=Answer again")
    page.wait_for_selector("text=third")
    is_over(page)
    page.wait_for_selector(".answer .branches >> text=2/2")
    page.click(".answer [aria-label='Previous branch']")
    page.wait_for_selector("text=second")
    page.click(".said [aria-label='Previous branch']")
    page.wait_for_selector("text=first")
    assert page.inner_text(BUBBLE).strip() == "question"

    page.click(".show-tree")
    page.wait_for_selector(".tree li li li >> text=third")
    assert page.locator(".tree [aria-current]").inner_text().startswith("question")
    no_findings(page)
    page.click(".tree li li li >> text=third")
    page.wait_for_selector(".answer >> text=third")

    assert page.locator(".tree").count() == 0


def test_drafts_are_kept_for_each_session(serve_it: Serving, open_page: Callable[..., Page]) -> None:
    page = open_page(serve_it(["one", "two"]))
    say(page, "first session")
    is_over(page)
    page.fill("#composer", "later here")
    page.click("nav >> text=New session")
    page.wait_for_selector(".welcome")

    assert page.input_value("#composer") == ""
    page.fill("#composer", "not sent yet")
    page.click(".session .open")
    page.wait_for_selector("text=one")
    assert page.input_value("#composer") == "later here"
    page.reload()
    page.wait_for_selector("text=one")
    assert page.input_value("#composer") == "later here"
    page.goto(page.url.partition("#")[0])
    page.wait_for_selector(".welcome")
    assert page.input_value("#composer") == "not sent yet"


def test_an_interrupted_answer_is_continued_and_quoted(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    paced = Paced()
    script: list[Reply | str] = [Reply(chunks=["one ", "two ", "three"], delay=0.01), "four"]
    page = open_page(serve_it(provider=ScriptedProvider(script, sleep=paced)))
    say(page, "count")
    paced.release(2)
    page.wait_for_selector("text=one two")
    with page.expect_response("**/cancel"):
        page.click("text=Stop")
    paced.release(100)
    is_over(page)

    page.click(".answer >> text=Quote")
    assert page.input_value("#composer").startswith("> one two")
    page.fill("#composer", "")
    page.click(".answer >> text=Continue")
    page.wait_for_selector("text=four")
    is_over(page)

    assert page.locator(BUBBLE).last.inner_text().strip() == "Continue."
    assert page.locator(".answer >> text=/^Continue$/").count() == 0


SPEECH = """
window.spoken = [];
speechSynthesis.speak = (utterance) => { window.spoken.push(utterance.text); };
window.SpeechRecognition = class { start() { window.heard = this; } stop() { this.onend(); } };
window.say = (words) => window.heard.onresult(
  { resultIndex: 0, results: [Object.assign([{ transcript: words }], { isFinal: true })] });
"""


def test_an_answer_is_read_aloud_and_words_are_dictated(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    page = open_page(serve_it(["spoken words"]))
    page.add_init_script(SPEECH)
    page.reload()
    page.wait_for_selector("#composer")

    page.click("[aria-label=Dictate]")
    page.evaluate("() => window.say('tell me')")
    page.evaluate("() => window.say('something')")
    wait(lambda: page.input_value("#composer") == "tell me something")
    page.click("[aria-label='Stop dictation']")
    page.wait_for_selector("[aria-label=Dictate]")
    page.press("#composer", "Enter")
    is_over(page)
    page.click("text=Read aloud")
    page.wait_for_selector("text=Stop reading")

    assert page.evaluate("() => window.spoken") == ["spoken words"]


# What a screen reader says: each change in a region that is live, unless a region inside it is off.
HEAR = """() => { window.heard = [];
    const isLive = (one) => { for (let at = one; at; at = at.parentElement) {
        const live = at.getAttribute('aria-live');
        if (live !== null) return live !== 'off';
        if (['status', 'alert', 'log'].includes(at.getAttribute('role'))) return true; }
      return false; };
    new MutationObserver((changes) => { for (const { target } of changes) {
        const one = target instanceof Element ? target : target.parentElement;
        if (one !== null && isLive(one)) window.heard.push(one.textContent); } })
      .observe(document.body, { subtree: true, childList: true, characterData: true }); }"""
HEARD = "() => window.heard"


def test_a_screen_reader_hears_the_answer_once_and_not_its_pieces(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    paced = Paced()
    chunks = ["The sea ", "is wide ", "and blue."]
    script: list[Reply | str] = ["hello", Reply(chunks=chunks, delay=0.01)]
    page = open_page(serve_it(provider=ScriptedProvider(script, sleep=paced)))
    say(page, "hi")
    is_over(page)
    page.evaluate(HEAR)

    say(page, "a poem")
    paced.release(2)
    page.wait_for_selector("text=The sea is wide")
    heard_before = page.evaluate(HEARD)
    paced.release(100)
    page.wait_for_selector("text=and blue.")
    is_over(page)
    wait(lambda: "The sea is wide and blue." in page.evaluate(HEARD), "the announcement")

    assert not [text for text in heard_before if "sea" in text]
    assert [text for text in page.evaluate(HEARD) if "sea" in text] == ["The sea is wide and blue."]
