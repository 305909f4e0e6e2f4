"""Every view of the page, on a desk and on a phone: what axe finds, what fits, and what the keyboard reaches.

A view is a route, a drawer, a dialog or a menu. The sections of the settings and the tabs of the drawer are
taken from the page as it runs; all others are in `VIEWS`, which is compared with the source of the page, so
that none can be forgotten.

Pictures of a page differ from machine to machine: fonts, their hinting, and the version of Chromium. So what
is compared is not a picture but the outline: where each region of the page is (within a few pixels), and
which colours and font sizes it has in both themes. `PAGE_OUTLINES=write` records them anew.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_server.routes.page import FOLDER
from agent_server.testing.checks import misplaced, outline, unreached
from agent_server.testing.page import (
    DESKTOP,
    IN_A_BROWSER,
    PHONE,
    browser,
    is_over,
    listen,
    no_findings_in_both_themes,
    say,
    wait,
)
from agent_terminal_app.testing.home import Home
from agent_testing import ScriptedServer, ToolCall, chat_reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

__all__ = ["browser"]
pytestmark = IN_A_BROWSER
SOURCE = FOLDER.parents[2] / "web" / "src"
OUTLINES = Path(__file__).parent / "page_outlines.json"
SIZES = {"desk": DESKTOP, "phone": PHONE}
PLUGINS = """
[agent_platform.features]
showcase = agent_testing.showcase:Showcase
[agent_platform.applications]
showcase_desk = agent_testing.showcase:ShowcaseDesk
"""
ANSWER = """# A title

Some *text* with `code`, and a [link](https://example.test/x).

| call | result |
|---|---|
| `greet("Ada")` | Hello Ada |

```python
def greet(name):
    print("Hello " + name + ", and a long line that does not fit on a phone", end="!")
```
"""
INSTRUCTIONS = {
    "session_id": "x",
    "messages": [{"role": "system", "content": "Obey me."}, {"role": "user", "content": "hi"}],
    "metadata": {},
}


@dataclass(frozen=True)
class View:
    """Something that can be on the screen.

    Attributes:
        keys: How it is opened: selectors of what gets the focus and then Enter, or shortcuts.
        shows: By which one sees that it is open.
        session: The session that is open: the long one, the one with a question, or none.
        closed_by: What closes it; the focus is then where it was.
        over: What may lie above the rest.
        regions: What of it is in its outline.
    """

    keys: tuple[str, ...]
    shows: str
    session: str = "long"
    closed_by: str = ""
    over: str = ""
    regions: tuple[str, ...] = ()

    @property
    def is_in_sidebar(self) -> bool:
        return any(key.startswith("nav") for key in self.keys) or self.shows.startswith("nav")


FRAME = ("nav.sidebar", "main", "header.bar", ".transcript", "footer.below", ".composer")
MENU = "header.bar .menu summary"
VIEWS = {
    "welcome": View((), "main.conversation .welcome", "", regions=("nav.sidebar", "main", ".composer")),
    "conversation": View((), ".answer table", regions=(*FRAME, ".said .bubble", ".answer")),
    "call": View((".call summary",), ".call-body"),
    "question": View((), "section.approval", "asking", regions=(*FRAME, ".approval", ".approval .primary")),
    "session list": View((), "nav.sidebar .session", regions=("nav.sidebar", ".sessions", ".sidebar-foot")),
    "session menu": View(("nav .session.current [title=More]",), ".row-menu", closed_by="Escape"),
    "renaming": View(("nav .session.current [title=Rename]",), ".renaming input", closed_by="Escape"),
    "deleting": View(("nav .session.current [title=Delete]",), ".deleting", closed_by="Escape"),
    "selection": View(("nav >> text=Select",), "nav .bulk"),
    "plugins' menu": View((MENU,), "header .menu[open] li", over=".menu ul", closed_by="Escape"),
    "application's menu": View(
        ("nav .menu summary",), "nav .menu[open] li", over=".menu ul", closed_by="Escape"
    ),
    "editing": View((".said .tools >> text=Edit",), ".editing textarea", closed_by="Escape"),
    "palette": View(("Control+k",), "dialog.palette li", closed_by="Escape", regions=("dialog.palette",)),
    "help": View(("Control+/",), "dialog.help", closed_by="Escape"),
    "first run": View(
        ("Control+,", ".section >> text=Connect a model"),
        "dialog.first-run .choices-list button",
        closed_by="Escape",
    ),
    "form": View(
        (MENU, "header .menu >> text=All inputs"),
        "dialog.action-dialog textarea",
        closed_by="Escape",
        regions=("dialog.action-dialog", "dialog .primary"),
    ),
    "card in a dialog": View(
        (MENU, "header .menu >> text=Show modal"), "dialog.card-dialog .card", closed_by="Escape"
    ),
    "card": View((MENU, "header .menu >> text=Show card"), ".cards.inlines .card"),
    "banner": View((MENU, "header .menu >> text=Show banner"), ".cards.banners .card"),
    "branches": View((".show-tree",), "dialog.tree .branch", closed_by="Escape"),
    "suggestions": View(("#composer", "/col"), ".suggestions [role=option]", over=".suggestions"),
    "drawer": View(
        (".show-inspect",), "aside.inspect", closed_by="Escape", over=".inspect", regions=("aside.inspect",)
    ),
    "settings": View(
        ("Control+,",),
        "main.settings .section",
        regions=("nav.sidebar", "main", ".sections", ".section"),
    ),
    "instructions in a file": View(("nav input.import",), "dialog.instructions", closed_by="Escape"),
}
ELSEWHERE = {"dialog.sharing", "main.reader"}
"""Views of a server for several people: `test_page_share.py` has them."""


def test_all_views_of_the_source_are_walked() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.tsx"))
    found = set()
    for tag, attributes in re.findall(r"<(dialog|aside|main)\b([^>]*(?:=>[^>]*)*)>", text):
        named = re.search(r'class="(?:conversation )?([\w-]+)', attributes)
        assert named, f"<{tag}> has no class by which a test could know it: {attributes}"
        found.add(f"{tag}.{named[1]}")

    walked = {re.split("[ :]", view.shows)[0] for view in VIEWS.values()}
    assert found - walked - ELSEWHERE == set()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`agent serve` with a scripted model and the plugins of the showcase."""
    folder = tmp_path_factory.mktemp("views")
    about = folder / "site" / "showcase-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: showcase\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(PLUGINS)
    with ScriptedServer() as model:
        home = Home(folder / "home", model.url)
        home.set(f'[plugins.files_tool]\nroots = ["{home.project}"]\n')
        home.environment["PYTHONPATH"] = str(folder / "site")
        (home.project / "greet.py").write_text('def greet(name):\n    print("Hello " + name)\n')
        edit = {"path": "greet.py", "old": '"Hello " + name', "new": 'f"Hello, {name}!"'}
        reading = ToolCall("read_file", {"path": "greet.py"}, "c1")
        model.play(
            chat_reply("I look at it first.", tool_calls=[reading]),
            chat_reply(ANSWER),
            chat_reply("Another answer."),
            chat_reply("I look at it.", tool_calls=[ToolCall("read_file", {"path": "greet.py"}, "c2")]),
            chat_reply("I change it.", tool_calls=[ToolCall("edit_file", edit, "c3")]),
        )
        with home.serve() as link:
            yield link


@dataclass(frozen=True)
class Visitor:
    """A browser that is logged in, and the sessions that it made."""

    page: Page
    url: str
    sessions: dict[str, str]
    complaints: list[str]


@pytest.fixture(scope="module")
def visitor(served: str, browser: Browser) -> Iterator[Visitor]:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    complaints: list[str] = []
    listen(page, complaints)
    page.goto(served)
    say(page, "Look at greet.py")
    page.wait_for_selector(".answer table")
    is_over(page)
    first = page.url.partition("#s=")[2]
    page.click(".row:has(.answer) >> nth=-1 >> text=Answer again")
    page.wait_for_selector("text=Another answer.")
    is_over(page)
    page.click("nav >> text=New session")
    page.wait_for_selector(".welcome")
    say(page, "Make it nicer")
    page.wait_for_selector(".approval")
    asking = page.url.partition("#s=")[2]
    url = page.url.partition("#")[0]
    yield Visitor(page, url, {"long": first, "asking": asking, "": ""}, complaints)
    context.close()


def visit(visitor: Visitor, view: View, size: str) -> None:
    """Load the page where a view can be opened."""
    page = visitor.page
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate("() => localStorage.clear()")  # drafts of other views
    page.goto("about:blank")
    session = visitor.sessions[view.session]
    page.goto(f"{visitor.url}#s={session}" if session else visitor.url)
    page.wait_for_selector({"long": ".answer table", "asking": ".approval", "": ".welcome"}[view.session])
    page.wait_for_selector("nav .session", state="attached")
    if session:
        page.wait_for_selector(MENU)
    if view.is_in_sidebar and size == "phone":
        page.focus("header .narrow")
        page.keyboard.press("Enter")
        page.wait_for_selector("nav.sidebar .session")


def enter(page: Page, view: View, folder: Path) -> str:
    """Open a view with the keyboard alone; return what had the focus before."""
    before = ""
    for key in view.keys:
        if key == "nav input.import":  # the choice of a file is a dialog of the system
            page.focus("nav >> text=Import")
            before = page.evaluate(FOCUSED)
            file = folder / "session.json"
            file.write_text(json.dumps(INSTRUCTIONS))
            page.set_input_files("input.import", file)
        elif key.startswith("Control+"):
            before = page.evaluate(FOCUSED)
            page.keyboard.press(key)
        elif key.startswith("/"):
            page.keyboard.type(key)
        else:
            page.focus(key)
            before = page.evaluate(FOCUSED) if "menu >>" not in key else before
            if key != "#composer":
                page.keyboard.press("Enter")
    page.wait_for_selector(view.shows)
    return before


FOCUSED = """() => { const one = document.activeElement;
    if (one === document.body) return '';
    return `${one.localName} ${one.getAttribute('aria-label') || one.innerText || one.id}`; }"""
FOCUS_IN = """(selector) => { const one = document.querySelector(selector);
    const fields = 'button, input, textarea, summary';
    if (one.contains(document.activeElement)) return;
    (one.matches(fields) ? one : one.querySelector(fields))?.focus(); }"""
each_size = pytest.mark.parametrize("size", SIZES)


def findings(visitor: Visitor, view: View) -> list[str]:
    page = visitor.page
    found = [*misplaced(page, over=view.over), *unreached(page, over=view.over)]
    try:
        no_findings_in_both_themes(page)
    except AssertionError as error:
        found.append(str(error))
    finally:
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
    return found


@each_size
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_read_used_and_left_by_everybody(
    visitor: Visitor, name: str, size: str, tmp_path: Path
) -> None:
    view, page = VIEWS[name], visitor.page
    visit(visitor, view, size)

    before = enter(page, view, tmp_path)
    if view.closed_by:
        page.evaluate(FOCUS_IN, view.shows)
        page.keyboard.press(view.closed_by)
        page.wait_for_selector(view.shows, state="hidden")
        wait(lambda: page.evaluate(FOCUSED) == before, f"the focus on {before!r}")
        enter(page, view, tmp_path)
    assert findings(visitor, view) == []
    if name == "instructions in a file":
        visitor.complaints.clear()  # the console has that the server refuses the file
    assert visitor.complaints == []


@each_size
@pytest.mark.parametrize("within", ["settings", "drawer"])
def test_every_section_and_tab_is_read_and_used_by_everybody(
    visitor: Visitor, within: str, size: str, tmp_path: Path
) -> None:
    view, page = VIEWS[within], visitor.page
    visit(visitor, view, size)
    enter(page, view, tmp_path)
    places = page.locator({"settings": ".sections button", "drawer": ".inspect [role=tab]"}[within])

    found = {}
    for at in range(places.count()):
        places.nth(at).focus()
        page.keyboard.press("Enter")
        page.wait_for_load_state("networkidle")
        found[places.nth(at).inner_text()] = findings(visitor, view)

    assert len(found) > 4
    assert {name: problems for name, problems in found.items() if problems} == {}
    assert visitor.complaints == []


NEAR = 24  # pixels: lines are not equally high everywhere


def differences(recorded: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return how an outline differs from the recorded one."""
    found = [f"{name} is not there" for name in recorded.keys() - now.keys()]
    found += [f"{name} is new" for name in now.keys() - recorded.keys()]
    for name in recorded.keys() & now.keys():
        before, after = recorded[name], now[name]
        if any(abs(one - other) > NEAR for one, other in zip(before["box"], after["box"], strict=True)):
            found.append(f"{name} is at {after['box']}, not at {before['box']}")
        found += [
            f"{name}: {key} {after[key]}" for key in ("colours", "fontSize") if before[key] != after[key]
        ]
    return found


@each_size
@pytest.mark.parametrize("name", [name for name, view in VIEWS.items() if view.regions])
def test_a_view_looks_as_it_was_recorded(visitor: Visitor, name: str, size: str, tmp_path: Path) -> None:
    page, seen = visitor.page, {}
    visit(visitor, VIEWS[name], size)
    enter(page, VIEWS[name], tmp_path)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        seen[scheme] = outline(page, VIEWS[name].regions)
    page.emulate_media(color_scheme="light", reduced_motion="reduce")

    recorded = json.loads(OUTLINES.read_text(encoding="utf-8")) if OUTLINES.exists() else {}
    if os.environ.get("PAGE_OUTLINES") == "write":
        recorded[f"{name} {size}"] = seen
        lines = [f"{json.dumps(key)}: {json.dumps(recorded[key])}" for key in sorted(recorded)]
        OUTLINES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    expected = recorded[f"{name} {size}"]
    assert {scheme: differences(expected[scheme], seen[scheme]) for scheme in seen} == {
        "light": [],
        "dark": [],
    }
