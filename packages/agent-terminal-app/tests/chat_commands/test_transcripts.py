"""Conversations for reading: whatever was said is shown, and none of it runs."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agent_app import SessionInfo
from agent_app.transfer.forms import FORMS, as_html, as_json, as_markdown
from agent_core import Message, Session
from agent_terminal_app.cli import main
from agent_terminal_app.views.sessions import FORMS as ENDINGS

if TYPE_CHECKING:
    from chat_commands.conftest import Desk

INFO = SessionInfo(id="0123456789", title="A <b>title</b>", agent_id="assistant", updated=1e9)
CALL = {"id": "1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
TALK = [
    Message("user", "Look at **this**.", multipart_content=[{"type": "image", "name": "cat.png"}]),
    Message("assistant", "", {"tool_calls": [CALL]}),
    Message("tool", "```\nnot the end\n```", {"tool_name": "read"}),
    Message("assistant", "It is | fine.", {"interrupted": True}),
]


class Page(HTMLParser):
    """Collects the tags and the addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _value in attrs}
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "action")]


def session(*messages: Message) -> Session:
    return Session("0123456789", list(messages), {})


def test_markdown_has_everything_under_headings() -> None:
    text = as_markdown(INFO, session(*TALK))

    assert text.startswith("# A <b>title</b>\n\n0123456789, assistant, 2001-09-0")
    assert "## You\n\nLook at **this**.\n\n```\nattached image cat.png\n```" in text
    assert '## Agent\n\n```\ncalls read {"path": "a"}\n```' in text
    assert "## Tool read\n\n````\n```\nnot the end\n```\n````" in text
    assert text.endswith("## Agent (interrupted)\n\nIt is | fine.\n")


def test_html_is_one_page_that_loads_nothing() -> None:
    page = as_html(INFO, session(*TALK))

    assert "<title>A &lt;b&gt;title&lt;/b&gt;</title>" in page
    assert "<p>Look at <strong>this</strong>.</p>" in page
    assert "default-src 'none'" in page
    assert Page(page).addresses == []


def test_json_is_the_session_itself() -> None:
    made = session(*TALK)

    assert Session.from_dict(json.loads(as_json(INFO, made))) == made


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:msgbox)",
    "[x](file:///etc/passwd)",
    "![x](https://tracker.test/pixel.png)",
    "![x](javascript:alert(1))",
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    '[a](https://ok.test "onmouseover=alert(1)")',
    "```html\n<script>alert(1)</script>\n```",
    "`<script>`",
    "| <script> |\n|---|\n| <img src=x> |",
    "&lt;script&gt;",
    "</section></body><script>alert(1)</script>",
    "\x00<scr\x00ipt>",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("place", ["content", "title", "tool", "call", "attachment", "agent"])
def test_nothing_that_was_said_runs_in_a_page(text: str, place: str) -> None:
    info = SessionInfo(
        id="x",
        title=text if place == "title" else "",
        agent_id=text if place == "agent" else "a",
        updated=1e9,
    )
    about: dict[str, Any] = {"tool_name": text if place == "tool" else "t"}
    call = {"function": {"name": text if place == "call" else "f", "arguments": "{}"}}
    parts = [{"type": "image", "name": text if place == "attachment" else "i"}]
    page = Page(
        as_html(
            info,
            session(
                Message("user", text if place == "content" else "x", multipart_content=parts),
                Message("assistant", "", {"tool_calls": [call]}),
                Message("tool", text if place == "content" else "y", about),
            ),
        )
    )

    assert not page.tags & {"script", "img", "svg", "iframe", "object", "embed", "form", "base", "link"}
    assert not {name for name in page.attributes if name.startswith("on")}
    assert all(re.match(r"https?://", address) for address in page.addresses)


@given(st.text(st.sampled_from("`~\n a|>#<"), max_size=60))
def test_no_output_of_a_tool_ends_its_block(text: str) -> None:
    made = as_markdown(INFO, session(Message("tool", text, {}), Message("user", "after", {})))
    shown = text.strip("\n")

    body = made.partition("## Tool\n\n")[2].partition("\n\n## You")[0] if shown else ""
    if shown:
        fence = body.split("\n", 1)[0]
        assert body == f"{fence}\n{shown}\n{fence}"
        assert fence not in shown


@given(st.text(max_size=50))
def test_every_form_can_be_written_as_utf8(text: str) -> None:
    for write in FORMS.values():
        write(INFO, session(Message("user", text, {}))).encode()


def test_secrets_are_left_out_of_what_is_read(desk: Desk) -> None:
    secret = "sk-ant-api03-" + "abcdefghij" * 9 + "AA"

    desk.chat(f"my key is {secret}", f"/rename {secret}", *(f"/export talk{end}" for end in ENDINGS))

    for end in ENDINGS:
        text = (desk.folder / f"talk{end}").read_text()
        assert secret not in text and "[redacted]" in text
        assert (desk.folder / f"talk{end}").stat().st_mode & 0o777 == 0o600


def test_the_command_line_writes_the_same_forms(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_LOAD_PLUGINS", "local_llama")
    (desk.folder / "data" / "agent").mkdir(parents=True)
    real, desk.folder = desk.folder, desk.folder / "data" / "agent"
    desk.chat("hello there", "/rename Tea")

    with pytest.raises(SystemExit) as left:
        main(["sessions", "export", "Tea", str(real / "tea.md")])

    assert left.value.code == 0
    assert "## You\n\nhello there" in (real / "tea.md").read_text()
