"""The page on a bad network and on a phone whose keyboard covers it, in a real browser."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agent_core.testing import Reply, ScriptedProvider
from agent_server.testing import Paced
from agent_server.testing.page import IN_A_BROWSER, is_over, say, wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER


class Wire:
    """A network between a browser and a server, which can be cut."""

    def __init__(self, url: str) -> None:
        self._server = ("127.0.0.1", int(url.rpartition(":")[2]))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._is_cut = False
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._is_cut:
                    near.close()
                    continue
                far = socket.create_connection(self._server)
                self._open += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=_pass_on, args=ends, daemon=True).start()

    def cut(self) -> None:
        """End every connection, and take no new ones."""
        self._is_cut = True
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self.cut()
        self._listener.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError), source, target:
        while piece := source.recv(1 << 16):
            target.sendall(piece)


def test_an_answer_is_whole_although_the_connection_was_cut_in_the_middle(
    serve_it: Serving, browser: Browser
) -> None:
    paced = Paced()
    chunks = [f"word{number} " for number in range(40)]
    served = serve_it(
        provider=ScriptedProvider([Reply(chunks=chunks, delay=0.01), "after that"], sleep=paced)
    )
    wire = Wire(served.url)
    context = browser.new_context()  # its console has that the connection is lost
    page = context.new_page()
    page.goto(f"{wire.url}/login?code={served.access.new_link()}")
    page.wait_for_selector("#composer")

    def is_running() -> bool:
        return served.app.session_state(page.url.partition("#s=")[2])["running"] is not None

    say(page, "count")
    paced.release(5)
    page.wait_for_selector(".answer >> text=word3")
    wire.cut()
    page.wait_for_selector("text=Connection lost")
    paced.release(15)  # the run goes on, and nobody hears it
    wire.mend()
    page.wait_for_selector("text=Connection lost", state="detached")
    page.wait_for_selector(".answer >> text=word18")
    wire.cut()
    page.wait_for_selector("text=Connection lost")
    paced.release(100)
    wait(lambda: not is_running())  # it ends while there is no network
    wire.mend()
    is_over(page)

    assert page.inner_text(".answer .markdown").split() == [chunk.strip() for chunk in chunks]
    assert (page.locator(".answer").count(), page.locator(".said").count()) == (1, 1)
    say(page, "and then?")
    page.wait_for_selector(".answer >> text=after that")
    context.close()
    wire.close()


EVENT_SOURCE = """
(path) => {
  window.seen = [];
  const source = new EventSource(path);
  source.onmessage = (message) => window.seen.push(JSON.parse(message.data));
}
"""


def test_the_event_source_of_a_browser_resumes_by_itself(serve_it: Serving, browser: Browser) -> None:
    paced = Paced()
    chunks = [f"word{number} " for number in range(40)]
    served = serve_it(provider=ScriptedProvider([Reply(chunks=chunks, delay=0.01)], sleep=paced))
    session_id = served.new_session()
    wire = Wire(served.url)
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{wire.url}/login?code={served.access.new_link()}")
    page.evaluate(EVENT_SOURCE, f"/v1/sessions/{session_id}/events?after=0")
    served.client.post(f"/v1/sessions/{session_id}/runs", json={"text": "count"}).raise_for_status()

    def seen() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = page.evaluate("window.seen")
        return found

    def more_than(count: int) -> Callable[[], bool]:
        return lambda: len(seen()) > count

    for _ in range(3):
        more = more_than(len(seen()))
        paced.release(10)
        wait(more)
        wire.cut()
        wire.mend()
    paced.release(100)
    wait(lambda: seen()[-1]["type"] == "final")
    events = seen()
    context.close()
    wire.close()

    assert "".join(event["text"] for event in events if event["type"] == "text") == "".join(chunks)
    logged = served.app.events(session_id)
    assert [event["seq"] for event in events if event["type"] != "text"] == [
        event["seq"] for event in logged if event["type"] != "text"
    ]


KEYBOARD = """
const seen = Object.assign(new EventTarget(), { height: innerHeight, width: innerWidth, scale: 1 });
Object.defineProperty(window, "visualViewport", { value: seen });
window.showKeyboard = (height) => {
  seen.height = innerHeight - height;
  seen.dispatchEvent(new Event("resize"));
};
"""


def test_a_keyboard_that_covers_the_page_does_not_cover_what_is_written(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    page = open_page(serve_it(["word " * 300]), 390, 844, reduced_motion="reduce")
    page.add_init_script(KEYBOARD)
    page.reload()
    say(page, "hello")
    is_over(page)

    def bottom() -> float:
        box = page.locator("#composer").bounding_box()
        assert box is not None
        return box["y"] + box["height"]

    assert bottom() > 700
    page.evaluate("() => window.showKeyboard(336)")
    wait(lambda: bottom() <= 844 - 336)
    page.evaluate("() => window.showKeyboard(0)")
    wait(lambda: bottom() > 700)
    page.click(".bar .narrow")
    page.wait_for_selector(".with-menu")
    assert page.evaluate("() => document.getAnimations().length") == 0, "no motion for whoever wants none"

    home = page.url.partition("/#")[0]
    for icon in json.loads(page.request.get(f"{home}/page/page.webmanifest").text())["icons"]:
        answer = page.request.get(f"{home}{icon['src']}")
        assert (answer.status, answer.headers["content-type"]) == (200, icon["type"])
