"""What bash really runs, beside what the rules would have let run.

A marker command is put into a line, in every place that a command can hide in. Bash runs the line in a
folder of its own. If the marker ran, rules that allow everything else must not have allowed the line. These
are the real rules of the runtime.
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

from hypothesis import given, settings, strategies as st

from agent_runtime.permissions import Permissions
from agent_runtime.phases import CallView
from shell_tool import ShellTool

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
RULES = Permissions.from_section({"allow": [*ALLOWED, r"shell(x\=*)", r"shell(AB\=$*)"]})

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


def is_allowed(line: str) -> bool:
    call = CallView(id="", name="shell", arguments={"command": line}, raw={}, tool=TOOL)
    return RULES.decide(call).effect == "allow"


def runs_marker(line: str) -> bool:
    """Run a line for real, and say whether the marker was there afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["bash", "--noprofile", "--norc", "-c", line.encode()],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "HOME": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # read to its end, so that whoever holds it has ended
            stderr=subprocess.STDOUT,
            timeout=30,
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
