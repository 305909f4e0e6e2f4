"""What a call of git does, for rules that ask or deny: options before the subcommand, other ways to a push.

A rule against `git push*` is meant for `git -C folder push` as well, for `/usr/lib/git-core/git-push`, and
for `git send-pack`, which is the push itself. So such rules also see a call of git without its options, and
what it comes to. Where the subcommand is not known, may be an alias, or runs a command of the line, it may be
any.

What git runs for the settings of a repository, and what another program does, is not in the line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shell_tool.syntax.words import Command, Spelling, Word, spell

if TYPE_CHECKING:
    from collections.abc import Sequence

_FLAG = re.compile(
    r"-p|-P|--(?:no-)?pager|--paginate|--bare|--no-replace-objects|--no-optional-locks|--no-lazy-fetch"
    r"|--no-advice"
    r"|--(?:literal|glob|noglob|icase)-pathspecs|--(?:git-dir|work-tree|namespace|super-prefix)=.*",
    re.DOTALL,
)
_WITH_VALUE = frozenset(("-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix"))
_SETTING = "-c"
_SUBCOMMANDS = {"--version": "version", "-v": "version", "--help": "help", "-h": "help"}
"""Options that are subcommands by another name."""
_ENDS = frozenset(("--exec-path", "--html-path", "--info-path", "--man-path"))
"""Options with which git prints a path and does nothing else, whatever follows."""
# Settings that define subcommands or name programs that git runs.
_DEFINES = re.compile(
    r"(?:alias|include|includeif|browser|credential|diff|difftool|filter|gpg|help|hook|instaweb|interactive"
    r"|man|merge|mergetool|pager|protocol|remote|sendemail|sequence|ssh|submodule|trailer|uploadpack|url|web)\."
    r"|core\.(?:alternaterefscommand|askpass|editor|fsmonitor|gitproxy|hookspath|pager|sshcommand)"
    r"|init\.templatedir",
    re.IGNORECASE,
)
_ANY_USE = Spelling("git", ("git *",), ("git *",))


# What sends commits elsewhere under another name; of some, only with a word behind it.
_PUSHES = {
    "send-pack": (), "http-push": (), "remote-http": (), "remote-https": (), "remote-ftp": (),
    "remote-ftps": (),
    "remote-ext": (), "remote-fd": (), "cvsexportcommit": (), "subtree": ("push",), "lfs": ("push",),
    "svn": ("dcommit", "branch", "tag", "set-tree"), "p4": ("submit",), "annex": ("sync", "push", "assist"),
}  # fmt: skip
# They run commands: those of the line, or, with an option, what it names.
_RUNS = frozenset(("bisect", "filter-branch", "for-each-repo", "hook", "shell", "submodule--helper"))
_RUNS_WITH = {
    "archive": re.compile(r"--exec.*"),
    "clone": re.compile(r"-u.*|--upload-pack.*|-c.*|--config.*|--template.*"),
    "difftool": re.compile(r"-x.*|--extcmd.*"), "fetch": re.compile(r"--upload-pack.*"),
    "fetch-pack": re.compile(r"--upload-pack.*|--exec.*"), "grep": re.compile(r"-O.*|--open-files.*"),
    "ls-remote": re.compile(r"--upload-pack.*|--exec.*"), "pull": re.compile(r"--upload-pack.*"),
    "rebase": re.compile(r"-x.*|--exec.*|-i|--interactive"), "submodule": re.compile(r"foreach"),
}  # fmt: skip
# Those that every git of the last years has: another name may be an alias there.
_NAMES = (
    "add am annotate apply archive blame branch bugreport bundle cat-file check-attr check-ignore "
    "check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean clone column "
    "commit commit-graph commit-tree config count-objects credential describe diagnose diff "
    "diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack fmt-merge-msg "
    "for-each-ref format-patch fsck gc get-tar-commit-id grep hash-object help index-pack init "
    "init-db interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge "
    "merge-base merge-file merge-index merge-ours merge-recursive merge-resolve merge-subtree "
    "merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects pack-redundant "
    "pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase receive-pack reflog "
    "remote repack replace request-pull rerere reset restore rev-list rev-parse revert rm shortlog "
    "show show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule "
    "switch symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info "
    "upload-archive upload-pack var verify-commit verify-pack verify-tag version whatchanged worktree "
    "write-tree "
)
_KNOWN = _PUSHES.keys() | set(_NAMES.split())
_STEERS = re.compile(r"GIT_\w*")


def other_spellings(command: Command) -> list[Spelling]:
    """Return a call of git in the other ways in which rules that ask or deny see it."""
    words = command.words
    name = (words[0].literal or "").rpartition("/")[2] if words else ""
    if name.startswith("git-") and len(name) > len("git-"):
        words = (Word.text("git"), Word.text(name.removeprefix("git-")), *words[1:])
        return [spell(words), *_meant(command, words, 1)]
    if name != "git" or len(words) == 1:
        return []
    at = _subcommand(words)
    if at is None:
        return [_ANY_USE]
    option = words[at].literal if at < len(words) else None
    if option in _SUBCOMMANDS or option in _ENDS:
        # What follows is at most an argument of `git help`.
        return _meant(command, (*words[:at], Word.text(_SUBCOMMANDS.get(option, "version"))), at)
    plain = [] if at == 1 else [spell([Word.text("git"), *words[at:]])]
    return [*plain, *_meant(command, words, at)]


def _meant(command: Command, words: Sequence[Word], at: int) -> list[Spelling]:
    """Return what a subcommand comes to, if that is more than its name says."""
    assigned = ((one.literal or one.shown).partition("=")[0] for one in command.assignments)
    if any(_STEERS.fullmatch(name) for name in assigned):
        return [_ANY_USE]
    if at >= len(words):
        return []
    name, rest = words[at].literal, words[at + 1 :]
    if name is None:
        return []
    texts = [word.literal for word in rest]
    if name in _PUSHES and (not _PUSHES[name] or None in texts or not set(_PUSHES[name]).isdisjoint(texts)):
        return [spell([Word.text("git"), Word.text("push"), *rest])]
    option = _RUNS_WITH.get(name)
    runs = option is not None and any(text is None or option.fullmatch(text) for text in texts)
    if runs or name in _RUNS or name not in _KNOWN:
        return [_ANY_USE]
    return []


def _subcommand(words: Sequence[Word]) -> int | None:
    """Return where the subcommand stands; None if it may be another than is written there."""
    at = 1
    while at < len(words):
        size = _option_size(words, at)
        if size is None or any(_may_vanish(word) for word in words[at : at + size]):
            return None
        if size == 0:
            return at
        at += size
    return at


def _option_size(words: Sequence[Word], at: int) -> int | None:
    """Return of how many words an option consists; 0 if there is none, None if that is not known."""
    word = words[at]
    text = word.literal
    if text is None:
        return 0 if word.shape is not None and word.shape.spelled[0] not in "*-" else None
    if text in _WITH_VALUE or (text == _SETTING and _is_plain_setting(words[at + 1 : at + 2])):
        return 2
    if _FLAG.fullmatch(text):
        return 1
    if text in _SUBCOMMANDS or text in _ENDS:
        return 0
    return None if text.startswith("-") else 0


def _may_vanish(word: Word) -> bool:
    return word.shape is not None and word.shape.vanishes


def _is_plain_setting(words: Sequence[Word]) -> bool:
    return all(word.literal is not None and not _DEFINES.match(word.literal) for word in words)
