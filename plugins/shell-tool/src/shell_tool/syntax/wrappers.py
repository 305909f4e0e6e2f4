"""Commands that run other commands: what they would run.

Only options that are known are skipped. One that is not may take a value, and then what seems to be the
command is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from shell_tool.syntax.words import ANY_WORDS, Command, NotUnderstood, Piece, Word, shape_of


class Text(NamedTuple):
    """A text that a shell reads as commands.

    Attributes:
        text: The text.
        posix: Whether that shell may not know what bash added to the language.
    """

    text: str
    posix: bool


@dataclass(frozen=True, slots=True)
class _Options:
    """The options that a wrapper may have before the command.

    Attributes:
        flags: Those without a value.
        values: Those with one, as the next word or at their end.
        before: How many words stand before the command.
    """

    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    before: int = 0


def _options(flags: str = "", values: str = "", before: int = 0) -> _Options:
    return _Options(frozenset(flags.split()), frozenset(values.split()), before)


_WRAPPERS = {
    "builtin": _options(),
    "command": _options("-p"),
    "doas": _options("-n", "-u"),
    "env": _options("-i -", "-u"),
    "exec": _options("-c -l", "-a"),
    "nice": _options(values="-n"),
    "nohup": _options(),
    "setsid": _options("-c -f -w"),
    "stdbuf": _options(values="-i -o -e"),
    "sudo": _options("-n -E -H", "-u -g"),
    "time": _options("-p"),
    "timeout": _options("--foreground --preserve-status", "-k -s", before=1),
    "xargs": _options("-0 -r -t --null --no-run-if-empty", "-I -L -P -d -n -s"),
}
# They run what they are given in ways, or with options, that are not read here.
_OPAQUE = frozenset(
    (
        *("ash", "at", "batch", "busybox", "bwrap", "capsh", "catchsegv", "choom", "chpst", "chronic"),
        *("chroot", "chrt", "coreutils", "cpulimit", "csh", "daemonize", "dbus-run-session"),
        *("distrobox", "dumb-init", "eatmydata", "elvish", "entr", "expect", "fakeroot", "faketime"),
        *("firejail", "fish", "flock", "gosu", "gtimeout", "hyperfine", "i386", "ifne", "ionice"),
        *("ksh", "lckdo", "linux32", "linux64", "logsave", "ltrace", "machinectl", "mksh", "mosh", "newgrp"),
        *("nsenter", "numactl", "parallel", "perf", "pkexec", "prlimit", "proot", "proxychains"),
        *("proxychains4", "pwsh", "rbash", "rlwrap", "rsh", "run-parts", "run0", "runcon", "runuser", "rush"),
        *("screen", "script", "setarch", "setlock", "setpriv", "setuidgid", "sg", "socat", "softlimit"),
        *("ssh", "ssh-agent", "start-stop-daemon", "strace", "su", "su-exec", "sudoedit"),
        *("systemd-inhibit", "systemd-nspawn", "systemd-run", "taskset", "tcsh", "tini", "tmux"),
        *("torify", "torsocks", "toybox", "uclampset", "unbuffer", "unshare", "valgrind", "watch"),
        *("x86_64", "xvfb-run", "zsh"),
    )
)
_LOADER = re.compile(r"ld(?:-linux[\w.-]*|-musl[\w.-]*|64|)\.so[\w.]*")
_SHELLS = ("bash", "dash", "sh")
_SOURCES = ("source", ".")
_DESCRIPTORS = frozenset(("dev", "proc", "fd"))
_SHELL_FLAGS = re.compile(r"-[aefuvxl]+")
_SHELL_TEXT = re.compile(r"-[aefuvxl]*c[aefuvxl]*")
_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_FIND_CHANGES = ("-delete", "-fls", "-fprint", "-fprint0", "-fprintf")
_FIND_PLACEHOLDER = "{}"
_LOOKS_UP = ("-v", "-V")


def run_by(command: Command, *, posix: bool) -> list[Command | Text]:
    """Return what a command runs of its own words.

    Args:
        posix: Whether a shell runs it that may not know what bash added to the language.

    Raises:
        NotUnderstood: If it may run something, and what is not clear.
    """
    words = command.words
    name = (words[0].literal or "").rpartition("/")[2]
    if name in _OPAQUE or _LOADER.fullmatch(name):
        raise NotUnderstood(f"{name}, which runs other commands")
    if name in (*_SHELLS, *_SOURCES):
        _check_script(command)
    if name in _SHELLS:
        return _run_by_shell(name, words[1:])
    if name == "eval":
        return _run_by_eval(words[1:], posix=posix)
    if name == "trap":
        return _run_by_trap(words[1:], posix=posix)
    if name == "find":
        return _run_by_find(words[1:])
    return _wrapped(name, words[1:]) if name in _WRAPPERS else []


def _wrapped(name: str, words: tuple[Word, ...]) -> list[Command | Text]:
    given, rest = _skip_options(name, words)
    if name == "command" and rest and rest[0].literal in _LOOKS_UP:
        return []
    skipped = _WRAPPERS[name].before
    _literals(rest[:skipped], name)
    rest = rest[skipped:]
    if name == "xargs" and rest:
        rest = _filled_in(rest, _placeholder(given))
    return _command(name, rest)


def _placeholder(given: dict[str, str]) -> str | None:
    """Return what xargs replaces; of -I and -n or -L the last one counts, and versions differ in it."""
    if given.get("-I") == "" or ("-I" in given and not given.keys().isdisjoint(("-L", "-n"))):
        raise NotUnderstood("xargs with -I and another option, or with nothing to replace")
    return given.get("-I")


def _command(name: str, words: tuple[Word, ...]) -> list[Command | Text]:
    """Return the command that begins here, behind assignments for env and sudo."""
    assignments: list[Word] = []
    while name in ("env", "sudo") and words and "=" in (text := _literals(words[:1], name)[0]):
        assignments.append(Word.assigning(text))
        words = words[1:]
    if assignments and words and (words[0].literal or "-").startswith("-"):
        raise NotUnderstood(f"{name} with an option behind an assignment")
    return [Command(words, tuple(assignments))] if words else []


def _skip_options(name: str, words: tuple[Word, ...]) -> tuple[dict[str, str], tuple[Word, ...]]:
    """Return the values of options, and the words behind them."""
    known, given, at = _WRAPPERS[name], dict[str, str](), 0
    while at < len(words):
        [text] = _literals(words[at : at + 1], name)
        if text == "--":
            return given, words[at + 1 :]
        if text in known.flags:
            at += 1
        elif text in known.values:
            given |= dict.fromkeys([text], *_literals(words[at + 1 : at + 2], name))
            at += 2
        elif text[:2] in known.values:
            given[text[:2]] = text[2:]
            at += 1
        elif text.startswith("-") and not (name == "command" and text in _LOOKS_UP):
            raise NotUnderstood(f"{name} with the option {text}")
        else:
            break
    return given, words[at:]


def _filled_in(words: tuple[Word, ...], placeholder: str | None) -> tuple[Word, ...]:
    """Return a command with what xargs or find puts into it, which is not known."""
    if placeholder is None:
        return (*words, Word.unknown('"$@"', ANY_WORDS))
    return tuple(_with_blanks(word, placeholder) for word in words)


def _with_blanks(word: Word, placeholder: str) -> Word:
    """Return a word in which the placeholder is not known."""
    if word.literal is None:
        return Word.unknown(word.shown, ANY_WORDS)
    if placeholder not in word.literal:
        return word
    texts = [Piece(text, quoted=True) for text in word.literal.split(placeholder)]
    unknown = Piece(placeholder, known=False, quoted=True)
    pieces = [piece for text in texts for piece in (unknown, text)][1:]
    return Word.unknown(word.shown, shape_of(pieces))


def _run_by_shell(name: str, words: tuple[Word, ...]) -> list[Command | Text]:
    for at, word in enumerate(words):
        [text] = _literals((word,), name)
        if _SHELL_TEXT.fullmatch(text):
            return _shell_text(name, words[at + 1 : at + 2])
        if not text.startswith(("-", "+")):
            return []  # a script
        if not _SHELL_FLAGS.fullmatch(text):
            raise NotUnderstood(f"{name} with the option {text}")
    raise NotUnderstood(f"{name}, which reads commands from its standard input")


def _check_script(command: Command) -> None:
    """Raise `NotUnderstood` if a shell may read commands from something else than a script."""
    texts = [word.literal or "" for word in command.words]
    if texts[0] in _SOURCES:
        _literals(command.words[1:3], texts[0])
    if command.given or any(map(_may_be_descriptor, texts)):
        raise NotUnderstood("a shell that reads commands from a descriptor")


def _may_be_descriptor(path: str) -> bool:
    """Say whether a path may lead to what is open already: there are many ways to /dev/stdin."""
    parts = path.split("/")
    return parts[-1] == "stdin" or not _DESCRIPTORS.isdisjoint(parts)


def _shell_text(name: str, words: tuple[Word, ...]) -> list[Command | Text]:
    texts = _literals(words, name)
    if any(text.startswith(("-", "+")) for text in texts):
        raise NotUnderstood(f"{name} -c with an option behind it")
    return [Text(text, posix=name != "bash") for text in texts]


def _run_by_eval(words: tuple[Word, ...], *, posix: bool) -> list[Command | Text]:
    texts = _literals(words, "eval")
    if texts and texts[0].startswith("-"):  # bash skips --, dash does not
        raise NotUnderstood(f"eval with the option {texts[0]}")
    return [Text(" ".join(texts), posix)]


def _run_by_trap(words: tuple[Word, ...], *, posix: bool) -> list[Command | Text]:
    texts = _literals(words, "trap")
    if not texts or texts[0] in ("-", "-l", "-p"):
        return []
    if texts[0].startswith("-"):
        raise NotUnderstood(f"trap with the option {texts[0]}")
    return [Text(texts[0], posix)]


def _run_by_find(words: tuple[Word, ...]) -> list[Command | Text]:
    texts = _literals(words, "find")
    changing = next((text for text in texts if text in _FIND_CHANGES), None)
    if changing is not None:
        raise NotUnderstood(f"find with {changing}, which changes files")
    return [
        Command(_filled_in(words[start + 1 : _end_of_run(texts, start)], _FIND_PLACEHOLDER))
        for start, text in enumerate(texts)
        if text in _FIND_RUNS
    ]


def _end_of_run(texts: list[str], start: int) -> int:
    for at in range(start + 2, len(texts)):
        if texts[at] == ";" or (texts[at] == "+" and texts[at - 1] == _FIND_PLACEHOLDER):
            return at
    raise NotUnderstood(f"find with {texts[start]} without an end")


def _literals(words: tuple[Word, ...], name: str) -> list[str]:
    """Return words as they are when the command runs."""
    texts = [word.literal for word in words if word.literal is not None]
    if len(texts) < len(words):
        raise NotUnderstood(f"{name} with a word that is not known before it runs")
    return texts
