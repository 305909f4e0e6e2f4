"""Code in colours: line by line, never other than it was written, and never at any price."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from agent_terminal_app.chat.rendering.highlight import highlighter
from agent_terminal_app.chat.rendering.markdown import LineMarkdown
from agent_terminal_app.chat.rendering.text import unstyled

LANGUAGES = (
    "bash", "c", "cpp", "csharp", "css", "diff", "dockerfile", "go", "haskell", "html", "ini", "java", "js",
    "json", "kotlin", "lua", "makefile", "perl", "php", "powershell", "python", "r", "ruby", "rust", "scala",
    "sql", "swift", "toml", "ts", "xml", "yaml",
)  # fmt: skip
DIM, STRING, KEYWORD, NUMBER, CODE, OFF = (f"\x1b[{code}m" for code in ("2", "32", "35", "33", "36", ""))
TWISTED = st.text("ab1 \t'\"`/*\\#<>{}()[]$@!=:;,.-\n", max_size=60)


def code(language: str, *lines: str) -> list[str]:
    block = highlighter(f"```{language}")
    return [block.line(line) for line in lines]


def test_words_of_the_language_texts_and_numbers_are_told_apart() -> None:
    assert code("python", 'if x == 12: y = "a"  # why') == [
        f'{KEYWORD}if {OFF}x == {NUMBER}12{OFF}: y = {STRING}"a"  \x1b[0;2m# why{OFF}'
    ]


def test_what_a_line_leaves_open_goes_on_in_the_next() -> None:
    assert code("python", 'x = """a', "if not", 'b"""; y = 1') == [
        f'x = {STRING}"""a{OFF}',
        f"{STRING}if not{OFF}",
        f'{STRING}b"""{OFF}; y = {NUMBER}1{OFF}',
    ]


def test_a_comment_over_several_lines_ends_where_it_ends() -> None:
    lines = code("js", "/** Don't", " * return", " */ return 1;", 'x = "/* no"; return', "y // /*", "return")

    assert lines[:3] == [
        f"{DIM}/** Don't{OFF}",
        f"{DIM} * return{OFF}",
        f"{DIM} */ \x1b[0;35mreturn {NUMBER.replace('[', '[0;')}1{OFF};",
    ]
    assert lines[3].endswith(f"{KEYWORD}return{OFF}")
    assert lines[5] == f"{KEYWORD}return{OFF}"


def test_where_there_are_no_such_comments_none_begins() -> None:
    lines = code("bash", "rm build/*", "if true; then", "fi")

    assert lines[1].startswith(KEYWORD) and DIM not in "".join(lines)


@pytest.mark.parametrize("fence", ["```", "```klingon", "```" + "x" * 500, "```sml", "~~~ text"])
def test_other_languages_have_one_colour(fence: str) -> None:
    assert highlighter(fence).line("if x: return 1") == f"{CODE}if x: return 1\x1b[0m"


@pytest.mark.parametrize(
    "fence", ["```py", "~~~ Python", "```{.python}", "```python title=x", "  ````python3"]
)
def test_a_language_is_known_by_its_names(fence: str) -> None:
    assert highlighter(fence).line("if x") == f"{KEYWORD}if {OFF}x"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_is_read(language: str) -> None:
    lines = (
        'name = "text"',
        "key: 12",
        "<name kind='some text'>12</name>",
        "+ 12",
        "FROM x",
        "[x]",
        "\tx = 12",
    )

    shown = code(language, *lines)
    one_colour = [f"{CODE}{line}\x1b[0m" for line in lines]
    assert any(line not in (*lines, *one_colour) for line in shown)


@given(st.sampled_from(LANGUAGES), TWISTED)
def test_the_text_stays_what_it_is_and_colours_stay_cheap(language: str, text: str) -> None:
    lines = text.split("\n")

    for line, shown in zip(lines, code(language, *lines), strict=True):
        assert unstyled(shown) == line
        assert len(shown) <= 2 * len(line) + 16


def test_lines_whose_colours_would_weigh_too_much_have_one_colour() -> None:
    numbers = ",".join("1" * 40)

    assert code("python", numbers) == [f"{CODE}{numbers}\x1b[0m"]
    assert code("python", "x = 1" * 300)[0].startswith(CODE)


def test_a_lexer_that_stumbles_costs_colours_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    block = highlighter("```python")
    monkeypatch.setattr(type(block._reader), "read", lambda *_: 1 / 0)

    assert block.line("if x") == f"{CODE}if x\x1b[0m"
    monkeypatch.undo()
    assert block.line("if x") == f"{CODE}if x\x1b[0m"


def test_a_block_that_is_never_closed_breaks_nothing() -> None:
    words = LineMarkdown(color=True)

    assert words.feed('```python\nx = """a\n') == [f"{DIM}```python\x1b[0m", f'x = {STRING}"""a{OFF}']
    assert words.feed("if") == []
    assert words.end() == [f"{STRING}if{OFF}"]
    assert words.feed("**b** if\n") == ["\x1b[1mb\x1b[0m if"]
    assert words.feed("```python\nif\n")[1] == f"{KEYWORD}if{OFF}"


def test_without_colours_nothing_changes_and_nothing_is_loaded() -> None:
    program = (
        "import sys\n"
        "from agent_terminal_app.chat.rendering.markdown import LineMarkdown\n"
        "plain = LineMarkdown(color=False)\n"
        "assert plain.feed('```python\\nif x\\n') == ['```python', 'if x']\n"
        "colourful = LineMarkdown(color=True)\n"
        "colourful.feed('```nothing\\nif x\\n```\\n')\n"
        "assert 'pygments' not in sys.modules\n"
        "colourful.feed('```python\\nif x\\n')\n"
        "assert 'pygments' in sys.modules\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.stderr == "" and done.returncode == 0


def test_hostile_text_in_code_moves_nothing() -> None:
    words = LineMarkdown(color=True)

    lines = words.feed('```python\nx = "\x1b[2J\x1b]0;t\x07"\n```\n')

    assert re.findall(r"\x1b(?!\[[0-9;]*m)", "".join(lines)) == []
