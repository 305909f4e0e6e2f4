"""Lines of nested constructs: what bash runs of them, beside what the reader saw.

A grammar makes lines in which every place that a command can stand in has a command of its own name, and in
which texts (quotes, here documents, comments) look like commands. Some lines are then broken: tokens are left
out, doubled and put in. Whatever the reader understands is run by the real bash, in a folder of its own and
without any program: `command_not_found_handle` notes each command that bash looks for, with its arguments,
and what is written stays in the folder. There must be no command and no file that the reader did not see.

`SHELL_NESTED_LINES` is how many lines are run, `SHELL_NESTED_SEED` which. What was ever found is kept in
`nested_lines.jsonl`, and is tried each time.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import resource
import select
import shlex
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_runtime.patterns import Glob
from agent_runtime.permissions import Permissions
from agent_runtime.phases import CallView
from shell_tool import ShellTool
from shell_tool.syntax import quote, read_line
from shell_tool.syntax.word_reader import WordReader
from shell_tool.syntax.words import Command, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shell_tool.syntax.words import Spelling

LINES = int(os.environ.get("SHELL_NESTED_LINES", "200"))
SEED = int(os.environ.get("SHELL_NESTED_SEED", "13"))
CORPUS = Path(__file__).parent / "nested_lines.jsonl"
SECONDS = 20.0
TOOL = ShellTool()

# The names of commands: families that are granted, and names of which none is.
FAMILIES = ("cat", "ls", "grep")
NAMES = [f"m{number}" for number in range(100)]
HARMLESS = ("eval", "command", "trap", "bash", "sh", "exec", "builtin", "echo", "true", ":", "read", "break")
GRANTED = Permissions.from_section(
    {"allow": [f"shell({name}{rest})" for name in (*FAMILIES, *HARMLESS) for rest in ("", " *")]}
)
DENIED = Permissions.from_section({"allow": ["shell"], "deny": ["shell(m*)", "shell(> *)"]})

# Text that would be commands, were it read otherwise; @ is a command that nothing else in the line has.
DECOYS = [
    "; @ #", ") ; @ #", ')" ; @ #', 'E )" ; @ #', "E ); @ #", "'; @ #", '"; @ #', "`; @ #", "`@`",
    "$(@)", "<(@)", "\nE\n@\n", "\n)\n@", "\n@", "a\\\n@", "; } ; @ ; {", "; fi; @", "; done; @",
    ";; esac; @", "x) @ ;;", "& @ &", "| @", "!@", "{ @; }", "case x in x) @", "${x:-`@`}", "\\", "(",
    "#", "a b", "E", "E)", "$((", "${x", "<<E", "$[1]",
]  # fmt: skip
PLAIN = ["a", "b1", "-x", "a/b", "x=1", "{a,b}", "*", "~", "E", "a#b", "if", "done", "}", "[", "!"]
PARAMETERS = [
    "$x", '"$x"', "${x}", "${x:-a}", '"$@"', "$#", "${#x}", "$", "$$", "${x%.c}", "${x##*/}", "${x:+b}",
]  # fmt: skip
DELIMITERS = [*("E",) * 16, *("'E'",) * 10, *('"E"', "\\E") * 4]
DELIMITERS += ["E'F'", "'E F'", "E\\F", "''", "'E)'", "'\tE'", "$'E'", "-E", "1", "$x"]
SOUP = [
    "'", '"', "`", "\\", "\\\n", "\n", "#", " #", "(", ")", "{", "}", "$", "$(", "<(", ">(", "$((",
    "((", "))", "<<E", "<<'E'", "<<-E", "<<<", "\nE\n", "\nE )", "\tE\n", ";", ";;", ";&", "&", "|",
    "&&", "E", "$'", '$"', "if ", "then ", "fi ", "do ", "done ", "case x in x)", "esac ", "in ", "! ",
    "time ", "${", "[", "]", "=", ">", "<", ">&", "2>&1", "&>", "{x}>", "7>", "11>", "\t", " ", "[[ ",
    " ]]", "coproc ", "function ", "*",
]  # fmt: skip
NEWLINE = "\n"
IN_DOUBLE = '"`$\\'
IN_ANSI = "'\\"
IN_BACKQUOTES = re.compile(r"[`'\"\\#()]")
_TOKEN = re.compile(r"[ \t]+|\w+|<<-?|&&|\|\||;;|\$\(|[<>]\(|.", re.DOTALL)


class Grammar:
    """Makes lines.

    Attributes:
        pending: The here documents that begin after the end of the line, and whether they may be indented.
        one_line: Whether no line may end here, since a here document outside would begin there.
        plain: Whether to leave out what the reader does not understand in a substitution.
        posix: Whether to leave out what only bash knows.
    """

    def __init__(self, some: random.Random) -> None:
        self.some = some
        self.names: list[str] = []
        self.pending: list[tuple[str, bool]] = []
        self.one_line = self.plain = self.posix = False

    def line(self) -> str:
        within = self.some.choice([*[""] * 16, "sh -c", "sh -c", "bash -c", "eval"])
        self.posix = within == "sh -c" and self.odds(0.9)
        self.plain = self.posix
        self.names = self.some.sample(NAMES, len(NAMES))
        self.pending = []
        text = self.listed(self.some.choice([2, 2, 3, 3, 4])) + self.flushed()
        if self.odds(0.3):
            text = self.broken(text)
        return f"{within} {shlex.quote(text)}" if within else text

    def odds(self, of: float) -> bool:
        return self.some.random() < of

    def broken(self, text: str) -> str:
        tokens = _TOKEN.findall(text)
        for _ in range(self.some.choice([1, 1, 2, 3])):
            at = self.some.randrange(len(tokens) + 1)
            change = self.some.randrange(5)
            if change == 0:
                del tokens[at : at + 1]
            elif change == 1:
                tokens[at:at] = tokens[at : at + 1]
            elif change == 2 and tokens:
                tokens.insert(at, self.some.choice(tokens))
            else:
                tokens.insert(at, self.some.choice(SOUP))
        return "".join(tokens)

    def name(self) -> str:
        return self.some.choice(FAMILIES) if self.odds(0.4) or not self.names else self.names.pop()

    def listed(self, depth: int) -> str:
        parts = [self.pipeline(depth)]
        for _ in range(self.some.choice([0, 0, 0, 1, 1, 2])):
            parts += [self.separator(), self.pipeline(depth)]
        return "".join(parts)

    def separator(self) -> str:
        if self.pending and not self.one_line and self.odds(0.7):
            return self.flushed()
        if self.pending or self.one_line:
            return self.some.choice(["; ", " && ", " | "])
        if not self.plain and self.odds(0.1):
            return f" # {self.decoy(NEWLINE)}\n"
        return self.some.choice(["; ", ";", " && ", " || ", " & ", "\n", " \\\n ; "])

    def flushed(self) -> str:
        """Return the end of a line, and the here documents that begin there."""
        if self.one_line:
            return ""
        if not self.pending:
            return self.some.choice(["", "\n"])
        pending, self.pending = self.pending, []
        return "\n" + "".join(self.document(word, indented=indented) for word, indented in pending)

    def document(self, word: str, *, indented: bool) -> str:
        plain = re.sub(r"['\"\\$]", "", word)
        lines = [self.body(plain, quoted=plain != word) for _ in range(self.some.choice([0, 1, 1, 2]))]
        end = ("\t" if indented and self.odds(0.5) else "") + plain
        if self.odds(0.03):
            end = self.some.choice(["", f"{plain} )", f"{plain})", f" {plain}", f"{plain} "])
        return "".join(f"{one}\n" for one in [*lines, end])

    def body(self, delimiter: str, *, quoted: bool) -> str:
        without = "" if quoted or self.odds(0.1) else "`\\$"
        kinds: list[Callable[[], str]] = [
            lambda: delimiter + self.some.choice(["", " ", " ) ", ")", ' )" ']) + self.decoy(without),
            lambda: self.some.choice(" \tx") + delimiter,
            lambda: f"{self.name()} {self.decoy(without)}",
            lambda: f"a $x ${{x}} {self.decoy(without) if quoted else self.substitution(1)} b",
            lambda: "a\\" if quoted or self.odds(0.05) else "a b",
        ]
        return self.some.choice(kinds)()

    def pipeline(self, depth: int) -> str:
        prefix = self.some.choice([*[""] * 12, "! ", *([] if self.posix else ["time ", "time -p "])])
        parts = [self.command(depth) for _ in range(self.some.choice([1, 1, 1, 2]))]
        return prefix + self.some.choice([" | ", "|", " |" if self.posix else " |& "]).join(parts)

    def command(self, depth: int) -> str:
        if depth <= 0 or self.odds(0.5):
            return self.simple(depth)
        inner, some = depth - 1, self.some
        end = "; " if self.pending or self.one_line else some.choice(["; ", "\n"])
        kinds: list[Callable[[], str]] = [
            lambda: f"( {self.listed(inner)} )",
            lambda: f"({self.listed(inner)})",
            lambda: f"{{ {self.listed(inner)}{end}}}",
            lambda: f"if {self.listed(inner)}; then {self.listed(inner)}; else {self.listed(inner)}; fi",
            lambda: f"if {self.listed(inner)}{end}then {self.listed(inner)}{end}fi",
            lambda: f"while {self.listed(inner)}; do {self.listed(inner)}; break; done",
            lambda: f"for x in {self.words(inner)}; do {self.listed(inner)}; done",
            lambda: f"for x in a{end}do {self.listed(inner)}{end}done",
            lambda: f"{some.choice(['command', 'exec', 'builtin command'])} {self.name()}",
            lambda: f"trap {shlex.quote(self.apart(0))} EXIT",
            lambda: f"eval {shlex.quote(self.apart(inner))}",
            lambda: self.unread(inner) if self.odds(0.3) else self.simple(inner),
        ]
        if not self.plain:
            kinds += [
                lambda: f"case {self.word(inner)} in a|{self.word(0)}) {self.listed(inner)};; (*) ls;; esac",
                lambda: f"case x in x) {self.listed(inner)};& y) {self.listed(inner)}; esac",
            ]
        made = some.choice(kinds)()
        is_compound = made.endswith((")", "}", "fi", "done"))
        return made + (self.redirection(0) if is_compound and self.odds(0.2) else "")

    def apart(self, depth: int) -> str:
        """Return a text of its own, which a command gets as a word."""
        outside = self.pending, self.plain
        self.pending, self.plain = [], self.posix
        text = self.listed(depth) + self.flushed()
        self.pending, self.plain = outside
        return text

    def unread(self, depth: int) -> str:
        """Return a construct that the reader need not understand."""
        kinds: list[Callable[[], str]] = [
            lambda: f"f() {{ {self.listed(depth)}; }}; f",
            lambda: f"[[ {self.word(depth)} == {self.word(depth)} ]]",
            lambda: f"(( {self.substitution(depth)} ))",
            lambda: f"x=({self.words(depth)})",
            lambda: f"x[{self.substitution(depth)}]=1",
            lambda: f"coproc {self.simple(depth)}",
            lambda: f"read 'x[$({self.name()})]' <<< a",
            lambda: f"x='a[$({self.name()})]'; read 'y[x]' <<< 1",
            lambda: f"x='a[$({self.name()})]'; unset 'y[x]'",
            lambda: f"test -v 'x[$({self.name()})]'",
            lambda: f"x='$({self.name()})'; echo ${{x@P}}",
            lambda: f"mapfile -C {self.name()} -c 1 <<< a",
            lambda: f"PS4='$({self.name()})'; set -x; {self.name()}",
            lambda: f"{self.name()} {{x[$({self.name()})]}}> f5",
        ]
        return self.some.choice(kinds)()

    def simple(self, depth: int) -> str:
        before = self.some.choice(["", "", "", "", "", "", "AB=1 ", "AB=", "x=1; "])
        before += f"{self.word(depth - 1)} " if before == "AB=" else ""
        words = "".join(f" {self.word(depth)}" for _ in range(self.some.choice([0, 1, 1, 2])))
        redirections = "".join(self.redirection(depth) for _ in range(self.some.choice([0, 0, 0, 1, 2])))
        if redirections and self.odds(0.15):
            first = self.some.choice([*[""] * 12, " !", " coproc", " time"])
            return f"{before}{redirections}{first} {self.name()}{words}"
        rest = redirections + words if self.odds(0.15) else words + redirections
        return f"{before}{self.name()}{rest}"

    def redirection(self, depth: int) -> str:
        some = self.some
        may_begin = len(self.pending) < 3 and not self.one_line and (self.posix or not self.plain)
        if may_begin and self.odds(0.4):
            word, indented = some.choice(DELIMITERS), self.odds(0.25)
            self.pending.append((word, indented))
            return f" {some.choice(['', '', '3'])}<<{'-' if indented else ''}{some.choice(['', ' '])}{word}"
        target = some.choice(["f1", "'f 2'", "f\\3", "/dev/null", "f4", None])
        if target is None:
            target = f'"f{self.substitution(depth - 1)}"' if depth > 0 else "$x"
        operator = some.choice([" > ", " >> ", " 2>", " > " if self.posix else " &> ", " >|", None, None])
        if operator is not None:
            return operator + target
        if depth > 0 and self.odds(0.3) and not self.posix:
            return f" < {self.process(depth - 1)}"
        forms = [" 2>&1", " >&2", " 3>&-", " < /dev/null", *([] if self.posix else [f" <<< {self.word(0)}"])]
        return some.choice(forms)

    def words(self, depth: int) -> str:
        return " ".join(self.word(depth) for _ in range(self.some.choice([1, 2])))

    def word(self, depth: int) -> str:
        if depth > 0 and self.odds(0.05) and not self.posix:
            return self.process(depth - 1)
        return "".join(self.piece(depth) for _ in range(self.some.choice([1, 1, 1, 2])))

    def piece(self, depth: int) -> str:
        if depth > 0 and self.odds(0.45):
            inner = [*[self.substitution, self.in_double] * 2, self.backquoted, self.default]
            return self.some.choice(inner)(depth - 1)
        kinds: list[Callable[[], str]] = [
            lambda: self.some.choice(PLAIN),
            lambda: f"'{self.decoy(chr(39))}'",
            lambda: f'"{self.decoy(IN_DOUBLE)}"',
            lambda: self.some.choice(PARAMETERS),
            lambda: "\\" + self.some.choice(";&|()<> $`#E") + self.some.choice(["", "a"]),
        ]
        if not self.plain:
            kinds.append(lambda: self.some.choice(["$'a\\'b'", f"$'{self.decoy(IN_ANSI)}'", "$'\\x27'"]))
        return self.some.choice(kinds)()

    def decoy(self, without: str = "") -> str:
        text = self.some.choice(DECOYS).replace("@", self.name())
        if self.odds(0.03):
            return text
        if self.one_line or self.pending:
            without += NEWLINE
        return "".join(one for one in text if one not in without)

    def in_double(self, depth: int) -> str:
        inner = [self.substitution, self.substitution, self.backquoted, self.default]
        return f'"{self.decoy(IN_DOUBLE)}{self.some.choice(inner)(depth)}"'

    def substitution(self, depth: int) -> str:
        return f"$({self.enclosed(depth)})"

    def process(self, depth: int) -> str:
        return f"{self.some.choice('<<>')}({self.enclosed(depth)})"

    def backquoted(self, depth: int) -> str:
        inside = self.enclosed(min(depth, 1))
        return f"`{inside if self.odds(0.05) else IN_BACKQUOTES.sub('', inside)}`"

    def default(self, depth: int) -> str:
        if self.odds(0.9):
            return self.some.choice(PARAMETERS)
        return f"${{x:-{self.some.choice([self.word, self.substitution])(depth)}}}"

    def enclosed(self, depth: int) -> str:
        """Return commands for a substitution; its here documents mostly end in it."""
        outside = self.pending, self.one_line, self.plain
        self.one_line = self.one_line or (bool(self.pending) and self.odds(0.9))
        self.plain = self.plain or self.odds(0.75)
        self.pending = []
        text = self.listed(max(depth, 0))
        left: list[tuple[str, bool]] = []
        if self.pending and self.odds(0.1):
            left = self.pending
        elif self.pending:
            text += self.flushed()
            if self.odds(0.2):
                text = text.removesuffix("\n") + self.some.choice([" ", "", " ; ls "])
        elif self.odds(0.1) and not self.one_line and not self.plain:
            text += f" # {self.decoy(NEWLINE)}\n"
        self.pending, self.one_line, self.plain = outside
        self.pending = self.pending + left
        return self.some.choice(["", "", " "]) + text


def made(seed: int) -> Iterator[str]:
    grammar = Grammar(random.Random(seed))
    while True:
        yield grammar.line()


def understood(seed: int) -> Iterator[str]:
    """Yield the lines of a seed that are worth running: of the others nothing is allowed."""
    return (line for line in made(seed) if not read_line(line).problem)


# --- what bash runs ---------------------------------------------------------------------------------------

# Notes a command, in a file of its process, so that what runs at once is not mixed up. Fails for odd numbers,
# so that both sides of conditions run, and ends what runs too much.
_HANDLE = r"""() {
  builtin printf '%s\0' "$#" "$@" >> "$NESTED_LOG/$BASHPID"
  local files=("$NESTED_LOG"/*); (( ${#files[@]} > 300 )) && builtin kill -KILL $$
  case $1 in
    bash) exec /bin/bash --noprofile --norc "${@:2}";;
    sh) PATH=$NESTED_PROGRAMS exec /bin/sh "${@:2}";;
    *[13579]) return 1;;
  esac
  return 0
}"""
_PROGRAM = r"""
printf '%s\0' "$(($# + 1))" "${0##*/}" "$@" >> "$NESTED_LOG/$$"
case $0 in *[13579]) exit 1;; esac
exit 0
"""


@dataclass(frozen=True)
class Ran:
    """What became of a line: the commands that bash looked for, and the files that are there now."""

    commands: list[list[str]]
    files: list[str]


class Bash:
    """Runs lines where nothing can be harmed: there are no programs, and every command is noted."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        for name in (*NAMES, *FAMILIES):
            program = programs / name
            program.write_text(_PROGRAM)
            program.chmod(0o755)

    def run(self, line: str) -> Ran:
        with tempfile.TemporaryDirectory() as top:
            folder, log = Path(top, "here"), Path(top, "log")
            folder.mkdir()
            log.mkdir()
            environment = {
                "PATH": "/nonexistent",
                "HOME": "/nonexistent",
                "LC_ALL": "C.UTF-8",
                "NESTED_LOG": str(log),
                "NESTED_PROGRAMS": str(self._programs),
                "BASH_FUNC_command_not_found_handle%%": _HANDLE,
            }
            self._finish(line, folder, environment)
            texts = [path.read_text(errors="replace") for path in log.iterdir()]
            commands = [words for text in texts for words in _commands(text)]
            return Ran(commands, sorted(path.name for path in folder.iterdir()))

    def _finish(self, line: str, folder: Path, environment: dict[str, str]) -> None:
        """Run a line until nothing of it is left: whatever it started holds the pipe."""
        reading, writing = os.pipe()
        try:
            process = subprocess.Popen(
                ["/bin/bash", "--noprofile", "--norc", "-c", line.encode()],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(writing,),
                start_new_session=True,
            )
        finally:
            os.close(writing)
        try:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (2, 2))
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
            _read_to_end(reading)
        finally:
            os.close(reading)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _read_to_end(reading: int) -> None:
    until = time.monotonic() + SECONDS
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([reading], [], [], left)
        if ready and not os.read(reading, 1024):
            return


def _commands(log: str) -> Iterator[list[str]]:
    fields = log.split("\0")
    at = 0
    while at < len(fields) - 1:
        size = int(fields[at])
        yield fields[at + 1 : at + 1 + size]
        at += 1 + size


# --- what the reader saw ----------------------------------------------------------------------------------


def unseen(line: str, ran: Ran) -> list[str]:
    """Return the commands that ran, and the files that were written, which the reader did not see."""
    read = read_line(line)
    commands = [words for words in ran.commands if not any(_may_be(one, words) for one in read.commands)]
    written = [subject for subject in read.subjects if subject.shown.startswith((">", "<>"))]
    files = [name for name in ran.files if not any(_is_to(one, name) for one in written)]
    return [*(" ".join(map(quote, words)) for words in commands), *(f"> {name}" for name in files)]


def _may_be(command: Command, words: list[str]) -> bool:
    if [word.literal for word in command.words] == words:
        return True
    text = Command(tuple(map(Word.text, words))).spelling.shown
    return any(Glob.parse(glob).matches(text) for glob in Command(command.words).spelling.possibly)


def _is_to(subject: Spelling, name: str) -> bool:
    return not subject.is_known or subject.shown.partition(" ")[2] == quote(name)


def effect(rules: Permissions, line: str) -> str:
    call = CallView(id="", name="shell", arguments={"command": line}, raw={}, tool=TOOL)
    return rules.decide(call).effect


def slipped(line: str, ran: Ran) -> list[str]:
    """Return what ran although the rules would have had to stop it."""
    ungranted = [words[0] for words in ran.commands if words[0] in NAMES]
    found = []
    if effect(GRANTED, line) == "allow":
        found += [f"not granted: {name}" for name in ungranted + ran.files]
    if effect(DENIED, line) == "allow":
        found += [f"denied: {name}" for name in ungranted + ran.files]
    return found


def wrong(bash: Bash, line: str) -> list[str]:
    """Return what a line did that it should not have been able to do."""
    if read_line(line).problem:
        return []
    ran = bash.run(line)
    return unseen(line, ran) + slipped(line, ran)


def shortened(bash: Bash, line: str) -> str:
    """Return a line that is wrong without most of what does not matter."""
    size = 16
    for _ in range(300):
        tokens = _TOKEN.findall(line)
        shorter = ["".join(tokens[:at] + tokens[at + size :]) for at in range(0, len(tokens), size)]
        found = next((one for one in shorter if wrong(bash, one)), None)
        if found is None and size == 1:
            break
        line, size = (line, size // 2) if found is None else (found, size)
    return line


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Bash:
    return Bash(tmp_path_factory.mktemp("programs"))


def corpus() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CORPUS.read_text().splitlines()]


def test_bash_runs_no_command_of_a_nested_line_that_the_reader_did_not_see(bash: Bash) -> None:
    lines = understood(SEED)
    some = list(islice(lines, min(LINES, 200)))
    mistakes: list[str] = []

    with ThreadPoolExecutor(4) as workers:
        ran = list(workers.map(bash.run, some))
        for _ in range(0, LINES - len(some), 500):
            batch = list(islice(lines, 500))
            found = workers.map(lambda line: wrong(bash, line), batch)
            mistakes += [line for line, problems in zip(batch, found, strict=True) if problems]
    mistakes += [line for line, did in zip(some, ran, strict=True) if unseen(line, did) or slipped(line, did)]

    print(f"\n{LINES:,} nested lines run, {len(mistakes):,} read wrongly")  # noqa: T201 - shown by -s
    assert {line: wrong(bash, line) for line in (shortened(bash, one) for one in mistakes[:5])} == {}
    granted = [did for line, did in zip(some, ran, strict=True) if effect(GRANTED, line) == "allow"]
    assert len([did for did in ran if did.commands]) > len(some) * 0.8  # else this would prove little
    assert len([did for did in granted if did.commands]) > len(some) * 0.05


@pytest.mark.parametrize("case", corpus(), ids=lambda case: str(case["about"]))
def test_what_was_found_once_is_not_let_through_again(bash: Bash, case: dict[str, Any]) -> None:
    ran = bash.run(case["line"])

    assert set(case["runs"]) <= {words[0] for words in ran.commands} | {f"> {name}" for name in ran.files}
    assert effect(GRANTED, case["line"]) != "allow"
    assert effect(DENIED, case["line"]) != "allow"
    assert wrong(bash, case["line"]) == []


def test_a_reader_that_is_mistaken_about_here_documents_is_found_out(
    bash: Bash, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grammar finds what it was made for: this reader takes a substitution for a line of its own."""
    never = property(lambda _reader: False, lambda _reader, _enclosed: None)
    monkeypatch.setattr(WordReader, "enclosed", never, raising=False)
    read_line.cache_clear()

    found = next((line for line in islice(understood(13), 1500) if wrong(bash, line)), None)
    attacks = [case["line"] for case in corpus() if case["about"].startswith("a here document in a ")]
    missed = [line for line in attacks if not wrong(bash, line)]
    read_line.cache_clear()

    assert found is not None
    assert missed == []
