r"""Text that is safe for a screen: nothing in it is hidden, and nothing moves a cursor or reorders a line.

Everything that is shown was written by somebody: a model, a tool, a file, another program. Terminals obey
control characters, and a screen shows some characters as nothing at all, or shows a line in another order
than the one it is stored in (Unicode TR9 and TR36). Models read all of them: whole sentences can be written
in tag characters. Which characters these are is decided here and nowhere else; callers only choose what
happens to them:

=========  =====================================================  =================
`clean`    removes them                                           for displays
`escape`   shows them as ``\x1b`` or ``\u202e``                    for a terminal
`reveal`   shows them as ``<U+202E>``                             for a decision
`mask`     puts U+FFFD in their place, one for one                where columns count
=========  =====================================================  =================

Emoji and several scripts are written with joiners and variation selectors. `clean` and `escape` leave one or
two of them where they follow a character that can need them; `reveal` does so if it is asked to.
"""

from __future__ import annotations

import re
import unicodedata

# Controls except newline and tab; marks, embeddings, overrides and isolates of direction; line and paragraph
# separators; soft hyphens, joiners, fillers, variation selectors, tags and other characters that take no room
# (Default_Ignorable_Code_Point in Unicode's DerivedCoreProperties.txt, and the controls of musical,
# shorthand and hieroglyphic notation); halves of surrogate pairs, which no front end can encode; and the
# Braille pattern without a dot, which looks like a space.
_BLANK = "\u2800"
_RANGES = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(f"[{_RANGES}{_BLANK}]+")
_JOINERS = re.compile("[\u200c\u200d\ufe0e\ufe0f]{1,2}")
_LEFT = {ord(_BLANK): " ", 0x2028: "\n", 0x2029: "\n"}
_KEYCAPS = frozenset("0123456789#*")
_ONE_BYTE = 0x100
_WORD = re.compile(r"[^\s]+")
_CONFUSED = frozenset(("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "GEORGIAN"))


def clean(text: str) -> str:
    """Return *text* without the characters that nobody sees; Unicode's line separators become newlines."""
    return _UNSEEN.sub(_removed, text)


def escape(text: str) -> str:
    r"""Return *text* with an escape such as ``\x1b`` in place of each character that nobody sees."""
    return _UNSEEN.sub(_escaped, text)


def reveal(text: str, *, joiners: bool = False, exact: bool = False) -> str:
    """Return *text* with a mark such as ``<U+200B>`` in place of each character that nobody sees.

    Args:
        joiners: Whether joiners stay where emoji and scripts are written with them.
        exact: Whether tabs, spaces that are not the usual one and characters without a meaning are marked as
            well, so that no two texts look alike because of them.
    """
    revealed = _UNSEEN.sub(_revealed_but_joiners if joiners else _revealed, text)
    if not exact or revealed.isprintable():
        return revealed
    return "".join(char if char.isprintable() or char == "\n" else _mark(char) for char in revealed)


def mask(text: str) -> str:
    """Return *text*, as long as before, with U+FFFD in place of each character that nobody sees."""
    return _UNSEEN.sub(_masked, text)


def hides(text: str) -> bool:
    """Say whether *text* has a character that nobody sees, joiners included."""
    return _UNSEEN.search(text) is not None


def look_alikes(text: str) -> list[str]:
    """Return the letters of *text* that pass for others, each with its name.

    These are letters of another script within a word of Latin ones (a Cyrillic i in `git`), and letters,
    digits and signs of ASCII in another form: wide, mathematical, in a circle.
    """
    if text.isascii():
        return []
    found = (char for word in _WORD.findall(text) if not word.isascii() for char in _similar(word))
    return [f"{char} (U+{ord(char):04X}, {unicodedata.name(char, '?')})" for char in dict.fromkeys(found)]


def _similar(word: str) -> list[str]:
    """Return the letters of a word that are not what they seem to be."""
    latin = any(char.isascii() and char.isalpha() for char in word)
    return [
        char
        for char in word
        if not char.isascii()
        and ((latin and _script(char) in _CONFUSED) or unicodedata.normalize("NFKC", char).isascii())
    ]


def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


def one_line(text: str) -> str:
    """Return *text* as one clean line with single spaces."""
    return " ".join(clean(" ".join(text.split())).split())


def _removed(found: re.Match[str]) -> str:
    if _joins(found):
        return found[0]
    return "".join(_LEFT.get(ord(char), "") for char in found[0])


def _escaped(found: re.Match[str]) -> str:
    return found[0] if _joins(found) else "".join(map(_escape_of, found[0]))


def _revealed(found: re.Match[str]) -> str:
    return "".join(map(_mark, found[0]))


def _mark(char: str) -> str:
    return f"<U+{ord(char):04X}>"


def _revealed_but_joiners(found: re.Match[str]) -> str:
    return found[0] if _joins(found) else _revealed(found)


def _masked(found: re.Match[str]) -> str:
    return found[0] if _joins(found) else "\ufffd" * len(found[0])


def _escape_of(char: str) -> str:
    if char == _BLANK:
        return " "  # that is how it looks; Braille pictures have many of them
    return f"\\x{ord(char):02x}" if ord(char) < _ONE_BYTE else f"\\u{ord(char):04x}"


def _joins(found: re.Match[str]) -> bool:
    """Say whether a run is one or two joiners behind a character that can need them."""
    if not _JOINERS.fullmatch(found[0]) or not found.start():
        return False
    before = found.string[found.start() - 1]
    return not before.isascii() or before in _KEYCAPS


def size(text: str) -> int:
    """Return how many bytes *text* takes as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def cut(text: str, limit: int) -> str:
    """Return the longest beginning of *text* that takes at most *limit* bytes."""
    return text[:limit].encode()[:limit].decode(errors="ignore")
