"""What bash really runs, beside what the rules would have let run.

A marker command is put into a line, in every place that a command can hide in. Bash runs the line in a
folder of its own. If the marker ran, rules that allow everything else must not have allowed the line, and
neither must rules that allow everything and deny the marker. These are the real rules of the runtime.

What words may turn out to be is asked of bash as well: it expands them, and the result must have their shape.
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from agent_runtime.patterns import Glob
from agent_runtime.permissions import Permissions
from agent_runtime.phases import CallView
from shell_tool import ShellTool
from shell_tool.syntax import quote, read_line

EXAMPLES = int(os.environ.get("SHELL_EXAMPLES", "1500"))
TOOL = ShellTool()

# Everything that stands around the marker below, but neither a file that is written nor the marker.
HARMLESS = [
    *(
        "echo",
        "cat",
        "true",
        "false",
        "printf",
        "test",
        "[",
        "read",
        "xargs",
        "find",
        "env",
        "timeout",
        "nohup",
    ),
    *(
        "nice",
        "setsid",
        "stdbuf",
        "command",
        "builtin",
        "exec",
        "eval",
        "bash",
        "sh",
        "trap",
        "set",
        "cd",
        "wait",
    ),
    *("export", "unset", ":", "source", "break", "git", "a", "b", "x", "y", "f", "E", "1", "<<<", "<", "for"),
]
ALLOWED = [f"shell({name}{rest})" for name in HARMLESS for rest in ("", " *")]
RULES = Permissions.from_section({"allow": [*ALLOWED, r"shell(x\=*)"]})
DENIED = Permissions.from_section({"allow": ["shell"], "deny": ["shell(touch m*)", "shell(touch * m*)"]})

MARKERS = [
    *("touch m", "'touch' m", 'to"uc"h m', "to\\uch m", "$'touch' m", "$'\\x74ouch' m", "/usr/bin/touch m"),
    *("   touch\tm", "touch \\\n m", "AB=1 touch m", "x=1 touch m", "env touch m", "xargs touch m"),
    *("command touch m", "! touch m", "time touch m", "x=touch; $x m", "x=m; echo > $x", "echo x > m"),
    *("echo x >| m", "> m echo x", "echo x &> m", "echo x 2>&1 1> m", "cat <> m"),
]

# One on each line: @ is the marker, % the marker as one quoted word, ⏎ the end of a line, ⇥ a tab.
PLACES = r"""
@
@;echo a
echo a;@
echo a; @ ; echo b
echo a && @
false || @
true && (@)
{@;}
{ @; }
( @ )
echo a & @
@ &
@ & wait
echo a|@
echo a |& @
! @
time @
time -p @
true;! @
echo $(@)
echo "$(@)"
echo a$(@)b
echo "a $(echo "$(@)") b"
echo `@`
echo "`@`"
echo $( @ )
echo $(⏎@⏎)
echo <(@)
cat <(@)
cat < <(@)
echo > >(@)
echo $(( $(@) ))
echo $((`@`))
echo $[$(@)]
x=$(@)
x=`@`
x="$(@)"
x=$(@) echo
AB=$(@) echo
export x=$(@)
echo ${x:-$(@)}
echo "${x:-$(@)}"
echo ${x:-`@`}
echo ${x:=$(@)}
echo ${x+a}${y-$(@)}
echo ${x:+a} $(@)
x=a; echo ${x/a/$(@)}
x=a; echo ${x%$(@)}
echo ${x:$(@)}
x=($(@))
x[$(@)]=1
(( $(@) ))
((x=$(@),1))
[[ -n $(@) ]]
[[ a == $(@) ]]
[ -n "$(@)" ]
test $(@)
[ $(@) ]
if @; then echo; fi
if true; then @; fi
if false; then :; else @; fi
if false; then :; elif @; then :; fi
if true⏎then @⏎fi
while @; do break; done
while true; do @; break; done
until @; do break; done
until false; do @; break; done
for i in 1; do @; done
for i in $(@); do echo; done
for i in 1⏎do @⏎done
for i in 1; { @; }
for ((;;)); do @; break; done
case x in x) @;; esac
case $(@) in x) echo;; esac
case x in $(@)) echo;; esac
case x in a) echo;; *) @;; esac
case x in x) echo;& y) @;; esac
case x in x) echo;;& x) @;; esac
case x in (x) @ ;; esac
case x in x) @⏎esac
f() { @; }; f
f() ( @ ); f
function f { @; }; f
f () if true; then @; fi; f
true() { @; }; true
coproc @
echo a⏎@
echo a⏎⏎@
echo a # b⏎@
echo a;# b⏎@
# b⏎@
echo \⏎ a⏎@
echo 'a⏎b'⏎@
echo "a⏎b"; @
echo a \⏎; @
cat <<E⏎a⏎E⏎@
cat <<E⏎$(@)⏎E
cat <<E⏎`@`⏎E
cat <<'E'⏎a⏎E⏎@
cat <<-E⏎⇥a⏎⇥E⏎@
cat <<E; @⏎a⏎E
cat <<E && @⏎a⏎E
cat <<A <<B⏎a⏎A⏎b⏎B⏎@
cat <<"E F"⏎a⏎E F⏎@
cat <<E⏎\⏎E⏎@⏎E
cat <<E⏎$\⏎(@)⏎E
cat <<''⏎a⏎⏎@
cat <<E$x⏎E$x⏎@
cat <<\E⏎$(echo⏎E⏎@
(cat <<E⏎a⏎E⏎@)
cat <<E⏎a⏎E ⏎E⏎@
cat <<< $(@)
cat <<< "$(@)"
cat <<<a; @
echo $(cat <<E⏎a⏎E⏎@⏎)
cat <<E⏎${x:-$(@)}⏎E
cat <<E⏎$(( $(@) ))⏎E
eval %
eval echo a\; @
eval "$(echo %)"
eval $(echo %)
x=%; eval $x
x=%; eval "$x"
bash -c %
sh -c %
bash -c "$(echo %)"
bash -lc %
bash -e -c %
bash -c -e %
bash +x -c %
bash <<< %
bash <(echo %)
bash -c 'eval "$1"' a %
sh -c 'bash -c "$0"' %
bash -s <<< %
env bash -c %
exec bash -c %
command bash -c %
builtin eval %
command eval %
exec @
env @
env AB=1 @
env -i @
env -u x @
env -- @
timeout 5 @
timeout -k 1 5 @
timeout -s TERM 5 @
nohup @
nice @
nice -n 1 @
setsid -w @
stdbuf -o0 @
command @
command -p @
env timeout 5 nice @
xargs @
find . -maxdepth 0 -exec @ \;
find . -maxdepth 0 -exec @ ';'
find . -maxdepth 0 -execdir @ {} +
find . -maxdepth 0 -exec bash -c % \;
for i in -exec; do find . -maxdepth 0 $i @ \;; done
x=-exec; find . -maxdepth 0 $x @ \;
find . -maxdepth 0 -name a -o -exec @ {} +
PS4='$(@)'; set -x; true
read PS4 <<< '$(@)'; set -x; true
for PS4 in '$(@)'; do set -x; true; done
BASH_ENV='$(@)' bash -c true
export BASH_ENV='$(@)'; bash -c true
trap % EXIT
trap -- % EXIT
trap % ERR; false
trap % DEBUG; echo
x=%; trap "$x" EXIT
x='a[$(@)]'; test -v "$x"
test -v 'x[$(@)]'
[ -v 'x[$(@)]' ]
read 'x[$(@)]' <<< a
printf -v 'x[$(@)]' a
unset 'x[$(@)]'
let 'x[$(@)]'
x=1; unset 'x[$(@)]'
echo "${x[$(@)]}"
read RANDOM <<< 'x[$(@)]'
export RANDOM='x[$(@)]'
for RANDOM in 'x[$(@)]'; do :; done
OPTIND='x[$(@)]'
declare -i x='y[$(@)]'
x='y[$(@)]'; export RANDOM=x
x='a[$(@)]'; echo "${!x}"
x='$(@)'; echo "${x@P}"
compgen -W '$(@)'
jobs -x @
mapfile -C % -c 1 x <<< a
alias x=%; x
shopt -s expand_aliases; alias x=%⏎x
set -- %; eval "$@"
set -- @; "$@"
"$(echo touch)" m; @
echo >&'$(@)'
echo >&"$(@)"
echo a >&2
echo a 2>&1; @
echo a 2>&- ; @
{x}> /dev/null @
> /dev/null @
2>&1 @
< /dev/null @
@ < /dev/null
x=1 > /dev/null @
echo 'a'; @
echo "a"; @
echo $'a\'b'; @
echo $'a\\'; @ #'
echo "a\"b"; @
echo a\;b; @
echo \\; @
echo '\'; @
echo "\\"; @
echo a#b; @
echo $#; @
echo ${#x}; @
echo \#; @
echo '#'; @
echo {a,b}; @
echo {; @
echo }; @
echo [; @
echo ]]; @
echo !; @
echo $x; @
echo "$x"; @
echo $; @
echo "$"; @
echo $'\x27'; @
echo $"a"; @
echo ~; @
echo *; @
echo a=b; @
echo é; @
echo "é"; @
i\⏎f true; then @; fi
ec\⏎ho a; @
echo a &\⏎& @
(\⏎(x='$(@)'))
(\⏎(echo, '$(@)'))
echo $\⏎(@)
echo "$\⏎(@)"
((1)); @
( (@) )
((@))
$( echo echo; @ )
$(echo @)
`echo @`
echo a;;@
if true; then echo; fi; @
if true; then echo; fi && @
{⏎@⏎}
while read x; do @; done <<< a
{ @; } > /dev/null
( @ ) 2>&1
if true; then @; fi < /dev/null
for i in 1; do @; done > /dev/null
select x in a; do @; break; done <<< 1
echo a | @
@ | cat
echo a | cat - <(@)
echo % | bash
echo a | xargs -I{} @
echo | xargs -n 1 @
echo % | xargs -0 bash -c
echo a | xargs -I {} bash -c %
echo a | xargs -I% sh -c 'true; @'
cat <<E | @⏎a⏎E
xargs bash -c %
"""

# Pieces of lines, to be put together in any order.
PIECES = [
    *("echo ", "echo ", "cat ", "true", "a", "x", "touch m", "touch m", "touch m", "$(touch m)", "`touch m`"),
    *(
        " ",
        " ",
        " ",
        ";",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "|&",
        "\n",
        "\n",
        "\\\n",
        "\\",
        "'",
        '"',
        "`",
        "$(",
        ")",
        "(",
    ),
    *(
        "{ ",
        " }",
        "; }",
        "$",
        "$x",
        "${x}",
        "${x:-",
        "}",
        "<<E",
        "<<-E",
        "<<'E'",
        "E",
        "\nE\n",
        "<<<",
        "<(",
        ">(",
    ),
    *(
        "< /dev/null",
        "> /dev/null",
        "2>&1",
        ">&",
        "<&",
        "&>",
        "#",
        " #",
        "$'",
        '$"',
        "\\'",
        "((",
        "))",
        "$((",
        "$[",
    ),
    *(
        "[[ ",
        " ]]",
        "if ",
        "; then ",
        "; fi",
        "else ",
        "for x in ",
        "; do ",
        "; done",
        "while ",
        "case x in ",
        "x)",
    ),
    *(
        ";;",
        " esac",
        "! ",
        "time ",
        "eval ",
        "exec ",
        "env ",
        "xargs ",
        "find . -maxdepth 0 -exec ",
        " \\;",
        "{}",
    ),
    *(
        " +",
        "bash -c ",
        "sh -c ",
        "trap ",
        " EXIT",
        "command ",
        "AB=1 ",
        "x=",
        "f()",
        "function f ",
        "coproc ",
        "[",
    ),
    *(
        "]",
        "test ",
        "printf ",
        "-v ",
        "read ",
        "*",
        "~",
        "{a,b}",
        "$IFS",
        "$@",
        "\t",
        "\r",
        "--",
        "-c ",
        "timeout 5 ",
    ),
]


# The marker again, with its argument or its name hidden from whoever only looks at the text.
HIDDEN = [
    *(
        "touch ${x:-m}",
        'touch "${x:-m}"',
        "touch {m,n}",
        "touch {n,m}",
        "touch $'m'",
        "touch \\m",
        "touch \\\n m",
    ),
    *("x=m; touch $x", 'x=m; touch "$x"', "read x <<< m; touch $x", "x='n m'; touch $x", "x=m; touch $y$x"),
    *("for i in m; do touch $i; done", 'for i in n m; do touch "$i"; done', "x=am; touch ${x#a}"),
    *("x=ma; touch ${x%a}", "while read x; do touch $x; done <<< m", "touch `echo m`", 'touch "$(echo m)"'),
    *("touch $(echo n m)", "IFS=,; x=n,m; touch $x", "echo m | xargs touch", "echo m | xargs -n1 touch"),
    *("echo m | xargs -I{} touch {}", "echo m | xargs -I% -n1 touch %", "echo m | xargs -L1 touch"),
    *("echo m | xargs -I{} -L1 touch", "echo m | xargs -n1 -I{} touch {}", "echo touch m | xargs env"),
    *("echo touch m | xargs -I{} -L1 env", "echo m | xargs nice touch", "echo m | xargs -I{} env touch {}"),
    *(
        "sudo touch m",
        "sudo AB=1 touch m",
        "sudo AB=1 CD=2 touch m",
        "sudo -n AB=1 touch m",
        "sudo env touch m",
    ),
    *("env -S 'touch m'", "env --split-string='touch m'", "exec touch m", "command touch m", "nohup touch m"),
    *(
        "builtin command touch m",
        "stdbuf -o0 touch m",
        "nice -n 1 touch m",
        "timeout 9 touch m",
        "time touch m",
    ),
    *(
        "eval touch m",
        "eval 'touch ${x:-m}'",
        "bash -c 'touch $0' m",
        "bash -c 'touch \"$@\"' a m",
        "eval $'touch m'",
    ),
    *("set -- m; touch $1", "printf -v x m; touch $x", "x=(m); touch ${x[0]}", "mapfile x <<< m; touch $x"),
    *("f() { touch $1; }; f m", "f() { $1 m; }; f touch", "x=touch; $x m", "t${x:-ouch} m", "{touch,m}"),
    *("tou{ch,} m", "tou\\\nch m", "case m in *) touch m;; esac", "coproc touch m; wait", "touch -- m"),
    *(
        "shopt -s expand_aliases; alias x='touch m'\nx",
        "find . -maxdepth 0 -exec touch m \\;",
        "trap 'touch m' EXIT",
    ),
    *("trap 'touch $x' EXIT; x=m", "source <(echo touch m)", "bash <(echo touch m)", "touch m$((1-1+1))"),
    *("cat <<E | xargs touch\nm\nE", "cat <<E | bash\ntouch m\nE", "echo $(touch m)", "cat <(touch m)"),
    *("ls -A / > m; touch [m]", "> m; touch m*", "> m; touch ?", "touch m;"),
    *("select x in m; do touch $x; break; done <<< 1", "getopts m x -m; touch $x", "let x=1; touch m"),
]

# What words can be made of, and what stands in the variables and in the folder.
WORD_PIECES = [
    *(
        "a",
        "m",
        "-",
        ".",
        "/",
        "é",
        "' '",
        '"a b"',
        "\\'",
        '"$x"',
        "$x",
        "${y}",
        "${z:-push}",
        '"$y$x"',
        "$@",
    ),
    *(
        '"$@"',
        '"a $@"',
        '"$*"',
        "$*",
        "*",
        "?",
        "[a-p]",
        "[",
        "]",
        "{a,b}",
        "{,}",
        "{a,$x}",
        "{,$x}",
        "{",
        "}",
        "{1..3}",
    ),
    *("~", "~/", ":~", "$(echo b c)", '"$(echo d)"', "`echo e`", "${#x}", "${x%b}", "''", '""', "\\*", "!"),
]
VALUES = [
    "",
    "a",
    "a b",
    " ",
    "*",
    "[",
    "[a",
    "p*",
    "it's",
    "-f",
    "push",
    ".",
    "~",
    "{a,b}",
    "é",
    "'",
    "a'b c",
]
FILES = ["a", "a b", ".env", "push", "m", "it's", "-f", "b", "abc"]


def effect(rules: Permissions, line: str) -> str:
    call = CallView(id="", name="shell", arguments={"command": line}, raw={}, tool=TOOL)
    return rules.decide(call).effect


def is_allowed(line: str) -> bool:
    return effect(RULES, line) == "allow"


def runs_marker(line: str, programs: str = "/usr/bin") -> bool:
    """Run a line for real, and say whether the marker was there afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["bash", "--noprofile", "--norc", "-c", line.encode()],
            cwd=folder,
            env={"PATH": f"{programs}:/usr/bin:/bin", "HOME": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # read to its end, so that whoever holds it has ended
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
        return Path(folder, "m").exists()


def placed(place: str, command: str) -> str:
    line = place.replace("⏎", "\n").replace("⇥", "\t")
    return line.replace("@", command).replace("%", shlex.quote(command))


def places() -> list[str]:
    return PLACES.strip().split("\n")


def test_no_marker_runs_that_the_rules_did_not_see() -> None:
    lines = [placed(place, marker) for place, marker in product(places(), MARKERS)]
    chosen = random.Random(1).sample(lines, min(EXAMPLES, len(lines)))

    with ThreadPoolExecutor(4) as workers:
        ran = [line for line, did in zip(chosen, workers.map(runs_marker, chosen), strict=True) if did]

    assert [line for line in ran if is_allowed(line)] == []
    assert len(ran) > len(chosen) // 2  # else the lines would prove little


@pytest.mark.slow
def test_no_marker_runs_in_a_place_within_a_place() -> None:
    some = random.Random(2)
    nested = [
        placed(some.choice(places()), placed(some.choice(places()), "touch m")) for _ in range(EXAMPLES)
    ]

    allowed = [line for line in nested if is_allowed(line)]
    assert [line for line in allowed if runs_marker(line)] == []


def test_the_same_places_are_allowed_where_nothing_is_hidden() -> None:
    """The rules are not merely against everything."""
    allowed = [place for place in places() if is_allowed(placed(place, "true"))]

    assert len(allowed) > len(places()) // 2


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=14), st.sampled_from(["bash", "sh", "eval"]))
def test_no_marker_runs_in_a_line_of_random_pieces(pieces: list[str], shell: str) -> None:
    text = "".join(pieces)
    line = {
        "bash": text,
        "sh": f"sh -c {shlex.quote(text)}",
        "eval": f"sh -c {shlex.quote(f'eval {shlex.quote(text)}')}",
    }[shell]

    if "touch" in text and is_allowed(line):
        assert not runs_marker(line)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder with a sudo that needs no rights, and a program that says how it was called."""
    folder = tmp_path_factory.mktemp("programs")
    sudo = '#!/bin/bash\nwhile [[ $1 == -n || $1 == *=* ]]; do shift; done\nexec "$@"\n'
    probe = "#!/bin/bash\nprintf '%s\\0' \"$@\"\n"
    for name, text in {"sudo": sudo, "probe": probe}.items():
        program = folder / name
        program.write_text(text)
        program.chmod(0o755)
    return str(folder)


def test_nothing_that_is_denied_runs_because_it_is_hidden(programs: str) -> None:
    some = random.Random(3)
    lines = [placed(some.choice(places()), marker) for marker in HIDDEN * (EXAMPLES // 200 + 1)]
    lines += [*HIDDEN, *(f"true; {marker}" for marker in HIDDEN)]

    with ThreadPoolExecutor(4) as workers:
        did = workers.map(lambda line: runs_marker(line, programs), lines)
        ran = [line for line, marked in zip(lines, did, strict=True) if marked]

    assert [line for line in ran if effect(DENIED, line) == "allow"] == []
    understood = [line for line in ran if not read_line(line).problem]
    assert [line for line in understood if effect(DENIED, line) != "deny"] == []
    assert len(ran) > len(lines) // 2 and len(understood) > len(ran) // 4  # else this would prove little


@pytest.mark.slow
def test_nothing_that_is_denied_runs_in_a_place_within_a_place() -> None:
    some = random.Random(4)
    lines = [placed(some.choice(places()), placed(some.choice(places()), "touch m")) for _ in range(EXAMPLES)]

    allowed = [line for line in lines if effect(DENIED, line) == "allow"]
    assert [line for line in allowed if runs_marker(line)] == []


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=14))
def test_nothing_that_is_denied_runs_in_a_line_of_random_pieces(pieces: list[str]) -> None:
    line = "".join(pieces)

    if "touch" in line and effect(DENIED, line) == "allow":
        assert not runs_marker(line)


def a_line_of_words(some: random.Random) -> str:
    words = [
        "".join(some.choices(WORD_PIECES, k=some.choice([1, 1, 2, 3]))) for _ in range(some.choice([1, 2, 3]))
    ]
    return " ".join(["probe", *words])


def came_out(
    line: str, folder: str, programs: str, values: dict[str, str], arguments: list[str]
) -> str | None:
    """Have bash expand the words of a line, and return the command; None if it did not run."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", f"{line}; printf '|'", "bash", *arguments],
        cwd=folder,
        env={"PATH": f"{programs}:/usr/bin:/bin", "HOME": folder, "LC_ALL": "C.UTF-8", **values},
        capture_output=True,
        timeout=60,
        check=False,
    )
    words, end, more = done.stdout.decode().rpartition("|")
    if not end or more:
        return None
    return " ".join(["probe", *map(quote, words.removesuffix("\0").split("\0"))]) if words else "probe"


@pytest.mark.slow
def test_whatever_comes_out_has_the_shape_that_was_seen_before(programs: str, tmp_path: Path) -> None:
    some = random.Random(5)
    for name in FILES:
        (tmp_path / name).touch()
    cases = [
        (
            a_line_of_words(some),
            {name: some.choice(VALUES) for name in "xyz"},
            some.choices(VALUES, k=some.choice([0, 1, 2])),
        )
        for _ in range(EXAMPLES)
    ]
    cases = [case for case in cases if not read_line(case[0]).problem]

    with ThreadPoolExecutor(4) as workers:
        texts = list(workers.map(lambda case: came_out(case[0], str(tmp_path), programs, *case[1:]), cases))

    seen = [(case, text) for case, text in zip(cases, texts, strict=True) if text is not None]
    assert [(case, text) for case, text in seen if not has_shape(case[0], text)] == []
    assert len(seen) > EXAMPLES // 2


def has_shape(line: str, text: str) -> bool:
    """Say whether what came out is what rules that deny were held against, and what rules that allow were."""
    spelling = read_line(line).subjects[-1]
    if spelling.is_known:
        return text == spelling.shown
    may_be = [Glob.parse(glob).matches(text) for glob in spelling.possibly]
    allowed = [Glob.parse(glob).matches(text) for glob in spelling.surely]
    return any(may_be) and (any(allowed) or "'" in text)
