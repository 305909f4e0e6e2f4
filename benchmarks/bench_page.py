"""The page in a browser, compared with a bare page in the same one: ``python benchmarks/bench_page.py``.

Measured are the kilobytes of the first load, the time until one can type, a long answer that streams in, a
session of 5,000 messages that is opened and scrolled through, and the echo of a key while an answer streams.
The bare page has one text area and appends the same pieces to one paragraph, and 5,000 plain paragraphs to
scroll through, so the ratios say what the page itself costs.
"""

from __future__ import annotations

import argparse
import gzip
import http.server
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core import Message, Session
from agent_core.testing import Reply, ScriptedProvider
from agent_server.routes.page import FOLDER
from agent_server.testing import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, CDPSession, Page

    from agent_server.testing import Served

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TOKENS = 20_000
PIECE = 20  # tokens that come at once, as providers send them
PIECES_PER_SECOND = 50
MESSAGES = 5_000
FRAMES = 600
BARE = b"""<!doctype html><html lang="en"><title>bare</title>
<textarea id="composer"></textarea><p id="text"></p>
<script>const text = document.getElementById("text");
window.stream = (pieces, pause) => new Promise((done) => { let at = 0; const timer = setInterval(() => {
  text.append("word ".repeat(20)); at += 1; if (at % 5 === 0) text.append(document.createElement("br"));
  if (at === pieces) { clearInterval(timer); done(); } }, pause); });
</script></html>"""
ECHO = """() => new Promise((done) => { const field = document.getElementById("composer"); field.focus();
  const begun = performance.now(); field.value += "x";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  requestAnimationFrame(() => { const frame = new MessageChannel(); frame.port1.onmessage = () =>
    done(performance.now() - begun); frame.port2.postMessage(0); }); })"""


# Scrolls a box up by 40 pixels with each frame, as a wheel does; returns the times between frames.
SCROLL = """([selector, frames]) => new Promise((done) => { const box = document.querySelector(selector);
  const times = []; let last;
  const step = (now) => { if (last !== undefined) times.push(now - last); last = now;
    if (times.length === frames) return done(times);
    box.scrollTop -= 40; requestAnimationFrame(step); }; requestAnimationFrame(step); })"""
FILL = """(messages) => { const box = document.createElement("div"); box.id = "messages";
  box.style = "height: 700px; overflow-y: auto";
  for (let at = 0; at < messages; at += 1) { const one = document.createElement("p");
    one.textContent = `message ${at} `.repeat(1 + at % 4); box.append(one); }
  document.body.append(box); box.scrollTop = box.scrollHeight; }"""


class _Bare(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(BARE)))
        self.end_headers()
        self.wfile.write(BARE)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that it has there
        """Say nothing."""


@contextmanager
def bare_server() -> Iterator[str]:
    """Serve the bare page."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Bare) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def first_load() -> float:
    """Return the kilobytes of everything that the page loads first, compressed."""
    names = [one for one in FOLDER.iterdir() if one.suffix in (".js", ".css", ".html", ".svg")]
    return sum(len(gzip.compress(one.read_bytes(), 6)) for one in names if one.name != "worker.js") / 1000


def busy(session: CDPSession) -> float:
    """Return how many seconds of a processor the main thread of a page has taken."""
    found = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in found if one["name"] == "TaskDuration"))


def opened(page: Page, address: str, selector: str) -> float:
    """Return the seconds until something is there."""
    begun = time.perf_counter()
    page.goto(address)
    page.wait_for_selector(selector)
    return time.perf_counter() - begun


def measured(page: Page) -> CDPSession:
    """Have a page counted, by the time of its thread: what neighbours take of the machine does not count."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def store_long(served: Served) -> str:
    """Store a long session."""
    begun = served.app.create_session()
    said = [
        Message(("user", "assistant")[at % 2], f"message {at}\n\n" * (1 + at % 4)) for at in range(MESSAGES)
    ]
    served.app.save_session(Session(begun.session_id, said, begun.metadata))
    return begun.session_id


def stream(page: Page, session: CDPSession) -> tuple[float, float]:
    """Have an answer stream in; return the share of a core that the page takes, and the echo of a key."""
    page.fill("#composer", "go")
    page.press("#composer", "Enter")
    page.wait_for_selector(".answer .markdown")
    before, begun, echoes = busy(session), time.perf_counter(), []
    while page.locator(".working").count():
        echoes.append(page.evaluate(ECHO))
        time.sleep(0.5)
    return (busy(session) - before) / (time.perf_counter() - begun), statistics.median(echoes)


def stream_bare(page: Page, session: CDPSession) -> tuple[float, float]:
    """Do the same on the bare page."""
    pieces = TOKENS // PIECE
    page.evaluate(f"() => {{ window.ended = window.stream({pieces}, {1000 / PIECES_PER_SECOND}); }}")
    before, begun, echoes = busy(session), time.perf_counter(), []
    while time.perf_counter() - begun < pieces / PIECES_PER_SECOND:
        echoes.append(page.evaluate(ECHO))
        time.sleep(0.5)
    return (busy(session) - before) / (time.perf_counter() - begun), statistics.median(echoes)


def scroll(page: Page, selector: str) -> tuple[float, float]:
    """Return the median and the 95th percentile of the milliseconds between two frames of scrolling."""
    times = sorted(page.evaluate(SCROLL, [selector, FRAMES]))
    return statistics.median(times), times[int(len(times) * 0.95)]


def measure(browser: Browser, folder: Path, rounds: int) -> None:
    """Measure everything, and print it."""
    serving = Serving(folder)
    paragraph = [*(["word " * PIECE] * 4), "word " * PIECE + "\n\n"]
    reply = Reply(chunks=paragraph * (TOKENS // PIECE // 5), delay=1 / PIECES_PER_SECOND)
    served = serving(provider=ScriptedProvider([reply]))
    long = store_long(served)
    try:
        with bare_server() as bare:
            plain, page = (browser.new_context().new_page() for _ in range(2))
            page.goto(f"{served.url}/login?code={served.access.new_link()}")
            page.wait_for_selector("#composer")
            ours = [opened(page, f"{served.url}/?{at}", "#composer") for at in range(rounds)]
            theirs = [opened(plain, f"{bare}?{at}", "#composer") for at in range(rounds)]
            longs = [
                opened(page, f"{served.url}/?l{at}#s={long}", f"text=message {MESSAGES - 1}")
                for at in range(rounds)
            ]
            frame, slow = scroll(page, ".transcript")
            plain.evaluate(FILL, MESSAGES)
            bare_frame, bare_slow = scroll(plain, "#messages")
            page.goto(f"{served.url}/?new")
            page.wait_for_selector("#composer")
            share, echo = stream(page, measured(page))
            bare_share, bare_echo = stream_bare(plain, measured(plain))
    finally:
        serving.close()
    print(f"load of the machine         {os.getloadavg()[0]:8.1f} on {os.cpu_count()} processors")
    bare_ms = statistics.median(theirs) * 1000
    print(f"first load, compressed      {first_load():8.0f} kB")
    report("until one can type", statistics.median(ours) * 1000, bare_ms, "ms")
    report(
        f"session of {MESSAGES:,} messages",
        statistics.median(longs) * 1000,
        statistics.median(theirs) * 1000,
        "ms",
    )
    report("scrolling it, each frame", frame, bare_frame, "ms")
    report("  95 % of frames within", slow, bare_slow, "ms")
    report(f"{TOKENS:,} tokens stream in", share * 100, bare_share * 100, "% of a core")
    report("echo of a key then", echo, bare_echo, "ms")


def report(what: str, ours: float, bare: float, unit: str) -> None:
    """Print a line."""
    print(f"{what:27} {ours:8.1f} {unit}, bare page {bare:.1f}, ratio {ours / max(bare, 1e-9):.1f}")


def main() -> int:
    """Run it; return the exit status."""
    parser = argparse.ArgumentParser(description="Compare the page with a bare one.")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    if CHROMIUM is None or not (FOLDER / "index.html").exists():
        print("bench_page: needs Chromium and a built page (apt-get install chromium; make page)")
        return 0
    from playwright.sync_api import sync_playwright  # a tool of developers, which not everybody has

    with sync_playwright() as started, tempfile.TemporaryDirectory() as folder:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        measure(browser, Path(folder), asked.rounds)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
