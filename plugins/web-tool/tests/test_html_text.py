"""HTML as text: what is kept, what is left out, and that no page can make it grow or hang."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, strategies as st

from web_tool.html_text import read_html
from web_tool.urls import read_url

URL = read_url("https://docs.example/guide/page.html")
ALL = 10**9


def text(html: str, enough: int = ALL) -> str:
    return read_html(html, URL, enough).text


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<h1>One</h1><h2>Two</h2><h6>Six</h6>", "# One\n\n## Two\n\n###### Six"),
        ("<p>a <b>bold</b>\n\t<i>move</i></p><p>b</p>", "a bold move\n\nb"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("a&nbsp;&amp;&lt;b&gt;&#x41;&eacute;", "a &<b>Aé"),
        ("<div>a<div>b</div>c</div>", "a\n\nb\n\nc"),
        ("<hr>", "---"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<ol><li>a</li><li>b</li></ol>", "1. a\n2. b"),
        ("<ul><li>a<ol><li>x<li>y</ol><li>b</ul>", "- a\n  1. x\n  2. y\n- b"),
        ("<ul><li><p>a</p><p>more</p></li><li>b</li></ul>", "- a\n\n  more\n- b"),
        ("<ul><li>a</ul><ol><li>b</ol>", "- a\n\n1. b"),
        ("<ul><li></li><li>b</ul><p>c", "- b\n\nc"),
        ("<li>alone", "- alone"),
        ("<blockquote><p>a</p><p>b</p></blockquote>c", "> a\n\n> b\n\nc"),
        ("<dl><dt>term<dd>meaning</dl>", "term\n\nmeaning"),
        ("<p>use <code>f(x)</code> or <kbd>`</kbd></p>", "use `f(x)` or `` ` ``"),
        ("<pre>\na\n  b\n</pre>", "```\na\n  b\n```"),
        ('<pre class="x language-python"><code>a\n</code></pre>', "```python\na\n```"),
        ("<pre>```\nx</pre>", "````\n```\nx\n````"),
        ("<pre>a<br>b<p>c</p></pre>", "```\na\nbc\n```"),
        ("<pre> \n </pre>x", "x"),
        ("<h2></h2><p>x", "x"),
        ("<p>a&#8203;b&#x202e;c\x1b</p>", "abc"),
    ],
)
def test_blocks(html: str, shown: str) -> None:
    assert text(html) == shown


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ('<a href="other.html">there</a>', "[there](https://docs.example/guide/other.html)"),
        ('see<a href="/x?a=(1)"> there </a>now', "see [there](https://docs.example/x?a=%281%29) now"),
        ('<a href="#part">here</a>', "here"),
        ('<a href="javascript:alert(1)">x</a> <a href="mailto:a@b.c">y</a>', "x y"),
        ('<a href="http://user@evil.example/">x</a>', "x"),
        ('<a href="https://a.example/">https://a.example/</a>', "https://a.example/"),
        ('<a href="/x"></a><a href="/x"> </a>b', "b"),
        ('<a href="/x"><div>a</div>b</a>', "[a](https://docs.example/x)\n\nb"),
        ('<a href="/1">a<a href="/2">b</a>', "[a](https://docs.example/1)[b](https://docs.example/2)"),
        ('<code><a href="/x">f</a></code>', "`f`"),
        ('<a href="/x"><code>f</code></a>', "[`f`](https://docs.example/x)"),
        ('<base href="/new/"><a href="x">a</a>', "[a](https://docs.example/new/x)"),
        ('<base href="/new/"><base href="/late/"><a href="x">a</a>', "[a](https://docs.example/new/x)"),
        ('<img src="cat.png" alt=" A  cat ">', "[image: A cat](https://docs.example/guide/cat.png)"),
        ('<img src="dot.gif"><img alt="x" src="data:image/png;base64,AAAA">', "[image: x]"),
    ],
)
def test_links_and_pictures(html: str, shown: str) -> None:
    assert text(html) == shown


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        (
            "<table><tr><th>a<th>b<tr><td>1|2<td><p>x</p><p>y</p></table>",
            "| a | b |\n| --- | --- |\n| 1\\|2 | x y |",
        ),
        ("<table><tr><td>a<td>b</table>", "| a | b |"),
        ("<table><tr><td>a<tr><td>b</table>", "a\n\nb"),
        ("<table><tr><td></table>x", "x"),
        ("<table><tr><td>a<td><table><tr><td>x<td>y</table><td>b</table>", "a\n\n| x | y |\n\nb"),
        ("<table><tr><td><pre>1\n2</pre><td><pre>a\nb</pre></table>", "```\n1\n2\n```\n\n```\na\nb\n```"),
        (
            f"<table><tr><td>menu<td><p>{'long ' * 100}</p><p>next</p></table>",
            f"menu\n\n{('long ' * 100).strip()}\n\nnext",
        ),
        ("<table><td>a<td>b", "| a | b |"),
        ("<td>no table", "no table"),
        (
            '<table><tr><td><a href="/x">l</a><td><ul><li>i</ul></table>',
            "| [l](https://docs.example/x) | - i |",
        ),
    ],
)
def test_tables(html: str, shown: str) -> None:
    assert text(html) == shown


@pytest.mark.parametrize(
    "left_out",
    [
        "<script>x</script>",
        "<style>x</style>",
        "<nav>x<p>x</nav>",
        "<template>x</template>",
        "<noscript>x</noscript>",
        "<iframe>x</iframe>",
        "<svg><title>x</title><text>x</text></svg>",
        "<select><option>x</select>",
        "<textarea>x</textarea>",
        "<button>x</button>",
        "<!-- x -->",
        "<?x x?>",
        "<div hidden>x<p>x</div>",
        '<div style="color: red; DISPLAY : none">x</div>',
        '<p style="visibility:hidden">x',
        '<span aria-hidden="true">x</span>',
        '<div role="navigation">x</div>',
    ],
)
def test_what_no_reader_sees_is_left_out(left_out: str) -> None:
    assert text(f"<p>a</p>{left_out}<p>b</p>") == "a\n\nb"


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title> A \n &amp; B </title>x", "A & B"),
        ("<html><head><title>A</title><title>B</title></head>x", "A"),
        ("<svg><title>picture</title></svg>x", ""),
        ("<title></title>x", ""),
        (f"<title>{'a' * 10_000}</title>x", "a" * 300),
    ],
)
def test_the_title_is_kept_apart(html: str, title: str) -> None:
    page = read_html(html, URL, ALL)

    assert (page.title, page.text) == (title, "x")


@pytest.mark.parametrize(
    "html", ["", " ", "<", "<!--", "<!-- x -->", "</p>", "<>", "&", "\0", "\ud800", "]]>"]
)
def test_hardly_anything_is_no_problem(html: str) -> None:
    assert len(text(html)) <= 3


TAGS = [
    *(
        "p",
        "div",
        "b",
        "a",
        "ul",
        "ol",
        "li",
        "nav",
        "script",
        "style",
        "head",
        "body",
        "html",
        "title",
        "base",
    ),
    *("select", "option", "svg", "form", "pre", "br", "hr", "img", "h1", "dd", "dt", "code", "blockquote"),
]
TABLE_TAGS = ["table", "tr", "td", "th"]


def any_page(seed: int, tags: list[str], length: int = 60) -> str:
    """Return a page of tags in no order, with words that are each found nowhere else."""
    dice = random.Random(seed)
    parts = []
    for number in range(length):
        tag = dice.choice(tags)
        attributes = ' href="/x" src="y" alt="z"' if tag in ("a", "img", "base") else ""
        parts.append(f"<{tag}{attributes}>" if dice.random() < 0.65 else f"</{tag}>")
        parts.append(f" w{number}w " if dice.random() < 0.5 else "")
    return "".join(parts)


def words_of(page: str) -> list[int]:
    return [int(number) for number in re.findall(r"w(\d+)w", read_html(page, URL, ALL).text)]


@given(st.integers(0, 2**32))
def test_words_of_any_page_appear_in_order_or_not_at_all(seed: int) -> None:
    words = words_of(any_page(seed, TAGS))

    assert words == sorted(set(words))


@given(st.integers(0, 2**32))
def test_words_in_and_around_tables_appear_at_most_once(seed: int) -> None:
    words = words_of(any_page(seed, [*TAGS, *TABLE_TAGS * 4]))

    assert len(words) == len(set(words))


@given(st.integers(0, 2**32))
def test_where_nothing_is_left_out_no_word_is_lost(seed: int) -> None:
    shown = [
        tag for tag in TAGS if tag in ("p", "div", "b", "a", "ul", "ol", "li", "pre", "br", "h1", "code")
    ]
    page = any_page(seed, [*shown, *TABLE_TAGS])

    assert sorted(words_of(page)) == [int(number) for number in re.findall(r"w(\d+)w", page)]


@given(st.integers(0, 2**32), st.integers(0, 200))
def test_reading_stops_only_behind_what_is_wanted(seed: int, enough: int) -> None:
    html = any_page(seed, [*TAGS, *TABLE_TAGS]) * 3
    page = read_html(html, URL, enough)

    assert page.text == text(html) if page.is_whole else len(page.text) > enough


@given(st.integers(0, 2**32), st.integers(0, 300))
def test_parts_of_a_page_fit_together(seed: int, enough: int) -> None:
    """Where it does not depend on what comes later how something begins, as it does with tables and code."""
    html = any_page(seed, [tag for tag in TAGS if tag not in ("pre", "code")]) * 3

    assert text(html, enough)[:enough] == text(html)[:enough]


@given(st.text())
def test_any_text_is_a_page(html: str) -> None:
    text(html)
    text(f"<p>{html}<table><td>{html}<pre>{html}")


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "<b>",
            "<div>",
            "<div>x",
            "<table>",
            "<table><tr><td>x",
            "<ul><li>x",
            "<a href=x>y",
            "<blockquote>x",
        ),
        *(
            "<pre>x",
            "<code>x",
            "<font a=1><p>",
            "&",
            "<",
            "<!--",
            "<br>",
            "<base href=a/>",
            "<img alt=x src=y>",
        ),
        "<title>x</title>",
    ],
)
def test_a_page_that_repeats_one_thing_does_not_grow(unit: str) -> None:
    page = read_html(unit * (300_000 // len(unit)), URL, 10_000)

    assert len(page.text) <= 300_000
    assert len(page.title) <= 300


def test_long_addresses_count_as_text() -> None:
    page = read_html("<a href=x>y" * 10_000, read_url(f"https://a.example/{'p' * 4000}/"), 10_000)

    assert 10_000 < len(page.text) < 300_000


@pytest.mark.slow
def test_a_page_of_tags_alone_is_given_up() -> None:
    page = read_html("<i></i>" * 300_000 + "never read", URL, ALL)

    assert (page.text, page.is_whole) == ("", False)


def test_depth_does_not_move_the_text_out_of_sight() -> None:
    html = "<blockquote><ul><li>" * 1000 + "deep"

    assert text(html).endswith("> " * 8 + "  " * 7 + "- deep")
