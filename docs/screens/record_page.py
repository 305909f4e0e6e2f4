"""Record the page as pictures: ``python docs/screens/record_page.py`` writes the PNG files next to it.

What is recorded is real: `agent serve` with a scripted model, in the Chromium of this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

from agent_testing import ScriptedServer, ToolCall, chat_reply

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CONFIG = """
model = "openai_compatible:scripted-model"
[plugins.openai_compatible]
base_url = "{url}/v1"
api_key = "env:SCRIPTED_KEY"
[plugins.files_tool]
roots = ["{folder}"]
"""
ANSWER = """The function builds its text with `+`, which fails for anything that is not a string:

| call | result |
|---|---|
| `greet("Ada")` | Hello Ada |
| `greet(3)` | `TypeError` |

An f-string takes both, and reads better:"""


@contextmanager
def served(home: Path) -> Iterator[str]:
    """Run `agent serve`, and give the link that logs a browser in."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_terminal_app", "serve", "--port", "0"],
        cwd=home / "project",
        env={**kept, "HOME": str(home), "SCRIPTED_KEY": "secret"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if (found := re.search(r"(http://\S+/login\S+)", line)) is not None:
                yield found[1]
                return
        raise SystemExit("the server did not start")
    finally:
        process.terminate()
        process.wait()


def record_edit(name: str, **screen: Any) -> None:
    """An edit that is shown before it is made."""
    with tempfile.TemporaryDirectory() as folder, ScriptedServer() as server:
        home = Path(folder)
        (home / ".config" / "agent").mkdir(parents=True)
        settings = CONFIG.format(url=server.url, folder=home / "project")
        (home / ".config" / "agent" / "config.toml").write_text(settings)
        (home / "project").mkdir()
        (home / "project" / "greet.py").write_text('def greet(name):\n    print("Hello " + name)\n')
        change = {"path": "greet.py", "old": 'print("Hello " + name)', "new": 'print(f"Hello, {name}!")'}
        server.play(
            chat_reply("I look at it first.", tool_calls=[ToolCall("read_file", {"path": "greet.py"}, "c1")]),
            chat_reply(ANSWER, tool_calls=[ToolCall("edit_file", change, "c2")]),
        )
        with served(home) as link, sync_playwright() as started:
            browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page(**screen)
            page.goto(link)
            page.fill("#composer", "Make greet.py nicer.")
            page.press("#composer", "Enter")
            page.wait_for_selector(".approval")
            page.wait_for_selector(".working", state="detached")
            page.screenshot(path=HERE / f"{name}.png", animations="disabled")
            browser.close()


if __name__ == "__main__":
    if CHROMIUM is None:
        raise SystemExit("there is no Chromium here: apt-get install chromium")
    record_edit("page", viewport={"width": 1280, "height": 800}, color_scheme="light")
    record_edit("page-phone", viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True)
