"""Code in colours, line by line as it arrives: what a line leaves open continues in the next one.

The lexers are those of Pygments, loaded when the first code block names a language that is listed here. A
line is read once, with the state in which the one before it ended. What cannot be read, in whichever way, is
shown in one colour, and so is a line whose colours would weigh more than its text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_terminal_app.chat.rendering.text import style_code, styled

if TYPE_CHECKING:
    from collections.abc import Iterable

_LEXERS = {
    "bash": "sh shell zsh",
    "c": "h",
    "cpp": "c++ cc cxx hpp",
    "csharp": "c# cs",
    "css": "",
    "diff": "patch udiff",
    "docker": "dockerfile",
    "go": "golang",
    "haskell": "hs",
    "html": "htm",
    "ini": "cfg conf",
    "java": "",
    "javascript": "js jsx mjs",
    "json": "json5 jsonc jsonl",
    "kotlin": "kt",
    "lua": "",
    "make": "makefile",
    "perl": "pl",
    "php": "",
    "powershell": "ps1 pwsh",
    "python": "py python3",
    "r": "",
    "ruby": "rb",
    "rust": "rs",
    "scala": "",
    "sql": "",
    "swift": "",
    "toml": "",
    "typescript": "ts tsx",
    "xml": "svg",
    "yaml": "yml",
}
"""The languages that are known, each with its other names. Any lexer would read what a stranger wrote."""

_NAMES = {name: lexer for lexer, others in _LEXERS.items() for name in (lexer, *others.split())}
_BEGINS = {"php": ("root", "php")}
"""In which state a block begins that does not begin as usual: code of PHP need not say that it is code."""

_LANGUAGE = re.compile(r"\s*(?:`{3,}|~{3,})\s*\{?\.?([\w+#-]{1,20})")
_LONGEST = 1000
"""Lines longer than that are data, and looking through them would take long."""

_WHOLE, _COMMENT, _TEXT = "code", "dim", "green"
_STYLES = (
    ("Comment", _COMMENT),
    ("Keyword", "keyword"),
    ("Literal.String", _TEXT),
    ("Literal.Number", "yellow"),
    ("Name.Tag", "keyword"),
    ("Name.Decorator", "code"),
    ("Name.Builtin", "code"),
    ("Name.Attribute", "code"),
    ("Operator.Word", "keyword"),
    ("Generic.Deleted", "red"),
    ("Generic.Inserted", "green"),
    ("Generic.Subheading", "code"),
)
"""The style of a token, by the beginning of its type; all others have none."""

_ROOM = 16
"""How many bytes the colours of a line may add, besides one for each of its characters."""


class Piece(NamedTuple):
    """A part of a line, and its style."""

    text: str
    style: str


class Reader:
    """Reads the lines of one block, each in the state that the one before has left.

    Args:
        lexer: Knows the language.
        carries: Whether the lexer can start a line in a given state; if not, every line is read alone.
        begins: The state of the first line.
    """

    def __init__(self, lexer: Any, *, carries: bool, begins: tuple[str, ...] = ("root",)) -> None:
        self.begins = self.state = begins
        self._lexer = lexer
        self._carries = carries

    def read(self, text: str) -> list[Piece]:
        """Return the parts of a line, and keep in which state it ends."""
        if not self._carries:
            return _pieces(self._lexer.get_tokens_unprocessed(f"{text}\n"))
        context = self._lexer.new_context(f"{text}\n", 0, list(self.state))
        pieces = _pieces(self._lexer.get_tokens_unprocessed(context=context))
        self.state = tuple(context.stack)
        return pieces


class Highlighter:
    """Gives the lines of one code block their colours.

    Args:
        reader: Reads its lines; None if nobody can, and all have the same colour.
    """

    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader
        self._in_comment = False

    def line(self, text: str) -> str:
        """Return the next line of the block, with styles."""
        if self._reader is None or len(text) > _LONGEST:
            return styled(text, _WHOLE, color=True)
        try:
            pieces = self._followed(self._reader, text)
        except Exception:  # a lexer that stumbles over a text must not cost us the text
            pieces, self._reader = [], None
        shown = _joined(pieces)
        is_whole = "".join(piece.text for piece in pieces) == text
        fits = len(shown) <= 2 * len(text) + _ROOM
        return shown if is_whole and fits else styled(text, _WHOLE, color=True)

    def _followed(self, reader: Reader, text: str) -> list[Piece]:
        """Return the parts of a line; a comment that goes over several lines is followed here.

        Lexers want to see the whole of such a comment, and one line of it is all that there is.
        """
        pieces = []
        if self._in_comment:
            inside, end, text = text.partition("*/")
            pieces.append(Piece(inside + end, _COMMENT))
            self._in_comment = not end
            if not end:
                return pieces
        before, rest = reader.state, reader.read(text)
        place = _open_comment(text, rest)
        if place is not None and _has_block_comments(reader):
            reader.state = before
            rest = [*reader.read(text[:place]), Piece(text[place:], _COMMENT)]
            self._in_comment = True
        return [*pieces, *rest]


def highlighter(fence: str) -> Highlighter:
    """Return what colours the block that a fence opens, by the language that stands behind it."""
    found = _LANGUAGE.match(fence)
    name = None if found is None else _NAMES.get(found[1].lower())
    return Highlighter() if name is None else Highlighter(_reader(name))


def _reader(name: str) -> Reader:
    lexer, carries = _lexer(name)
    return Reader(lexer, carries=carries, begins=_BEGINS.get(name, ("root",)))


@cache
def _lexer(name: str) -> tuple[Any, bool]:
    """Return the lexer of a language, if possible as one that can stop at the end of a line."""
    from pygments import lexer as kinds, lexers  # type: ignore[import-untyped]  # it tells no types

    lexer = lexers.get_lexer_by_name(name)
    kind = type(lexer)
    if not isinstance(lexer, kinds.RegexLexer) or isinstance(lexer, kinds.ExtendedRegexLexer):
        return lexer, False

    class Stopping(kinds.ExtendedRegexLexer, kind):  # type: ignore[valid-type,misc]  # a lexer of any kind
        new_context = kinds.LexerContext

        def get_tokens_unprocessed(
            self, text: Any = None, context: Any = None, stack: Any = ("root",)
        ) -> Any:
            if context is None:  # what is nested in a line is read as ever
                return kinds.RegexLexer.get_tokens_unprocessed(self, text, stack)
            return super().get_tokens_unprocessed(context=context)

    return Stopping(), True


def _pieces(tokens: Iterable[tuple[int, Any, str]]) -> list[Piece]:
    return [Piece(value.rstrip("\n"), _style(str(kind))) for _, kind, value in tokens]


def _has_block_comments(reader: Reader) -> bool:
    """Say whether the language has comments between /* and */."""
    state, reader.state = reader.state, reader.begins
    pieces = reader.read("/* */")
    reader.state = state
    return all(piece.style == _COMMENT for piece in pieces if piece.text.strip())


def _open_comment(text: str, pieces: Iterable[Piece]) -> int | None:
    """Return where a comment begins that the line does not end; None if that is text, or in a comment."""
    wanted = text.rfind("/*")
    if wanted < 0 or "*/" in text[wanted:]:
        return None
    place = 0
    for piece in pieces:
        place += len(piece.text)
        if place > wanted:
            return None if piece.style in (_COMMENT, _TEXT) else wanted
    return None


def _style(kind: str) -> str:
    name = kind.removeprefix("Token.")
    return next((style for begin, style in _STYLES if name.startswith(begin)), "")


def _joined(pieces: Iterable[Piece]) -> str:
    """Return a line with a change of style only where there is one; spaces take the style before them."""
    shown, now = [], ""
    for text, style in pieces:
        if text.strip() and style != now:
            shown.append(style_code(style, after=now))
            now = style
        shown.append(text)
    return "".join([*shown, style_code("", after=now) if now else ""])
