"""What a line is about: every command in it, in one spelling, or that it is not understood."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from shell_tool.syntax import read_line
from shell_tool.syntax.git import other_spellings
from shell_tool.syntax.line import MAX_LENGTH
from shell_tool.syntax.line_reader import MAX_DEPTH
from shell_tool.syntax.words import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shell_tool.syntax.words import Spelling

ATTACK = """cat "$(cat <<'E'
E )" ; id > x #
E
)\""""

UNDERSTOOD: dict[str, list[str]] = {
    # one command, however it is spelled
    "git status": ["git status"],
    "  git   status\t-s  ": ["git status -s"],
    "git \\\n  status": ["git status"],
    "g'i't \"sta\"tus": ["git status"],
    "\\git st\\atus": ["git status"],
    "$'git' $'st\\x61tus'": ["git status"],
    "echo $'a\\tb\\n\\'\\\"\\101\\u0042'": ["echo 'a\tb\n'\\''\"AB'"],
    "git status # all of it": ["git status"],
    "# nothing": [],
    "": [],
    " \n\t\n": [],
    # what is quoted stays a part of its word
    "'git status' -s": ["'git status' -s"],
    "git 'status; rm -rf /'": ["git 'status; rm -rf /'"],
    'echo "a  b"': ["echo 'a  b'"],
    'echo "it\'s \\"so\\" \\$HOME \\\\ \\x"': ["echo 'it'\\''s \"so\" $HOME \\ \\x'"],
    "echo '' \"\" a''b": ["echo '' '' ab"],
    "echo '*.py' \\* \"?\" '[a]' '~' a~ HEAD~1": ["echo '*.py' '*' '?' '[a]' '~' a~ HEAD~1"],
    "echo '{a,b}' {} a{b} '#c' d#e": ["echo '{a,b}' {} a{b} '#c' d#e"],
    "echo 'a\nb'": ["echo 'a\nb'"],
    "echo é 'ß ß' 日本": ["echo é 'ß ß' 日本"],
    "echo $'*' $'\\x7e' \"\\X\"": ["echo '*' '~' '\\X'"],
    # expansions stay as they are written
    "echo $x'a b' *\"?\" \"$x\"'*'": ["echo $x'a b' *'?' \"$x\"'*'"],
    'cat $HOME/x "$HOME/a b" ${x} ${x:-y} ${#x} ${x%.py} $1 $@ $? $$': [
        'cat $HOME/x "$HOME/a b" ${x} ${x:-y} ${#x} ${x%.py} $1 $@ $? $$'
    ],
    "ls *.py a?[bc] ~/x {a,b} {1..3}": ["ls *.py a?[bc] ~/x {a,b} {1..3}"],
    'echo a$ $ "$" "a$ b"': ["echo 'a$' '$' '$' 'a$ b'"],
    # several
    "a; b && c || d | e |& f & g": ["a", "b", "c", "d", "e", "f", "g"],
    "a\nb\n\nc": ["a", "b", "c"],
    "a & b &": ["a", "b"],
    "! a; ! ! b; time c; time -p d; time -- e; ! time f": ["a", "b", "c", "d", "e", "f"],
    "(a; b) ; { c; d; }": ["a", "b", "c", "d"],
    "( (a) )": ["a"],
    "git status; git status": ["git status"],
    "if a; then b; elif c; then d; else e; fi": ["a", "b", "c", "d", "e"],
    "if a\nthen\nb\nfi": ["a", "b"],
    "while a; do b; done; until c\ndo d\ndone": ["a", "b", "c", "d"],
    "for f in *.py 'a b'; do cat $f; done": ["cat $f"],
    "for f\nin a\ndo cat $f\ndone": ["cat $f"],
    "for f do cat $f; done": ["cat $f"],
    "for f; do cat $f; done": ["cat $f"],
    "for f in a; { cat $f; }": ["cat $f"],
    "for PATH in /tmp; do a; done": ["for PATH in /tmp", "a"],
    "for x_y; do a; done": ["for x_y", "a"],
    "case $x in a|b) c;; (d) e;& *) f;;& g) esac": ["c", "e", "f"],
    "case x in\n a)\n b\n ;;\n esac": ["b"],
    "case x in esac": [],
    "case x in a)b;; (c)d;; esac": ["b", "d"],
    "echo if then fi done } esac": ["echo if then fi done } esac"],
    "if (a) then (b) fi": ["a", "b"],
    "if a; then if b; then c; fi fi": ["a", "b", "c"],
    # substitutions
    "echo $(a; b)": ["a", "b", "echo $(a; b)"],
    'echo "x $(a "$(b)") y"': ["b", 'a "$(b)"', 'echo "x $(a "$(b)") y"'],
    "echo `a b`": ["a b", "echo `a b`"],
    'echo "`a`"': ["a", 'echo "`a`"'],
    "diff <(a) <(b)": ["a", "b", "diff <(a) <(b)"],
    "a > >(b)": ["b", "> >(b)", "a"],
    "echo '$(a)' \\$x \"\\$(a)\" '`a`'": ["echo '$(a)' '$x' '$(a)' '`a`'"],
    "echo `a` `b` `c`d ``": ["a", "b", "c", "echo `a` `b` `c`d ``"],
    # assignments
    "AB='x y=z' CD= EF=a=b make": ["AB='x y=z' CD= EF=a=b make"],
    "CI=1 make test": ["CI=1 make test"],
    "LC_ALL=C LANG=de_DE.UTF-8 sort; export LC_CTYPE=C.utf8": [
        "LC_ALL=C LANG=de_DE.UTF-8 sort",
        "export LC_CTYPE=C.utf8",
    ],
    "CI=1 DIR='a b' make": ["CI=1 DIR='a b' make"],
    "X_1=$(a) make": ["a", "X_1=$(a) make"],
    "x=1": ["x=1"],
    "x+=1 y=2": ["x+=1 y=2"],
    "x=~/a": ["x=~/a"],
    "'CI=1' make": ["'CI=1' make"],
    "make CI=1": ["make CI=1"],
    "make X='a b'; make 'X=a b'; make X=\"a b\"": ["make 'X=a b'"],
    # redirections
    "a > out": ["> out", "a"],
    "a >'my file' 2>>log </etc/hosts <>x >|y": ["> 'my file'", ">> log", "< /etc/hosts", "<> x", "> y", "a"],
    "a &> out; b &>> out": ["> out", "a", ">> out", "b"],
    "> out": ["> out"],
    "> out a": ["> out", "a"],
    "a 2>&1 >&2 2>&- <&3 3<&4-": ["a"],
    "a > /dev/null 2> /dev/stderr < /dev/null": ["a"],
    "a > $x/out": ["> $x/out", "a"],
    "a > B=\\ c <<< D='e f'": ["> 'B= c'", "a <<< 'D=e f'"],
    "for X in A=\\ b; do c; done": ["for X in 'A= b'", "c"],
    "{ a; b; } > out": ["a", "b", "> out"],
    "(a) < in": ["a", "< in"],
    "while a; do b; done < in": ["a", "b", "< in"],
    "echo 2 > out; echo a2>out": ["> out", "echo 2", "echo a2"],
    # here documents
    "cat <<E\n\tE\nE\nls": ["cat <<< '\tE\n'", "ls"],
    "cat <<-E\n E\nXE\n\t\tE\nls": ["cat <<< ' E\nXE\n'", "ls"],
    "a\ncat <<E b\nc\nE": ["a", "cat b <<< 'c\n'"],
    "cat <<E; for f\na\nE\nin b; do c; done": ["cat <<< 'a\n'", "c"],
    "a <<< b <<< c": ["a <<< b <<< c"],
    "cat <<E\na b\nE\nls": ["cat <<< 'a b\n'", "ls"],
    "cat <<'E' > out; ls\n$(a) `b` \\\nE\n": ["> out", "cat <<< '$(a) `b` \\\n'", "ls"],
    "cat <<\\E\n$(a)\nE": ["cat <<< '$(a)\n'"],
    'cat <<"E.F"\n$(a)\nE.F': ["cat <<< '$(a)\n'"],
    "cat <<E\n$(a) $x ${y}\nE": ["cat <<< '$(a) $x ${y}\n'", "a"],
    "cat <<E\n E\nE \nE": ["cat <<< ' E\nE \n'"],
    "cat <<-E\n\ta\n\tE\nls": ["cat <<< '\ta\n'", "ls"],
    "cat <<A <<B\na\nA\nb\nB\nls": ["cat <<< 'a\n' <<< 'b\n'", "ls"],
    "cat <<E | grep a\nb\nE": ["cat <<< 'b\n'", "grep a"],
    "a <<< 'b c'; d <<< $x": ["a <<< 'b c'", "d <<< '$x'"],
    "{ a; } <<< b": ["a", "<<< b"],
    "{ a; } <<E\nb\nE": ["a", "<<< 'b\n'"],
    # commands in commands
    "sudo -n -E -H a": ["sudo -n -E -H a", "a"],
    "stdbuf -oL -eL a": ["stdbuf -oL -eL a", "a"],
    "env CI=1 make $x": ["env CI=1 make $x", "CI=1 make $x"],
    "find -exec a ';'": ["find -exec a ';'", "a"],
    "xargs -Ixy bash -c 'a y'": ["xargs -Ixy bash -c 'a y'", "bash -c 'a y'", "a y"],
    "trap -l": ["trap -l"],
    "sudo -n -u root rm x": ["sudo -n -u root rm x", "rm x"],
    "sudo -uroot rm x": ["sudo -uroot rm x", "rm x"],
    "env": ["env"],
    "env -i -u HOME CI=1 make": ["env -i -u HOME CI=1 make", "CI=1 make"],
    "env 'CI=1' make": ["env CI=1 make", "CI=1 make"],
    "env CI=1": ["env CI=1"],
    "nohup a; setsid -w b; nice -n 5 c; nice -n5 d": [
        "nohup a",
        "a",
        "setsid -w b",
        "b",
        "nice -n 5 c",
        "c",
        "nice -n5 d",
        "d",
    ],
    "timeout -k 1 -s KILL 5 a b": ["timeout -k 1 -s KILL 5 a b", "a b"],
    "timeout 5": ["timeout 5"],
    "stdbuf -oL a": ["stdbuf -oL a", "a"],
    "command -p a; command -v git; command -V git; builtin echo": [
        "command -p a",
        "a",
        "command -v git",
        "command -V git",
        "builtin echo",
        "echo",
    ],
    "exec a; exec; exec > out": ["exec a", "a", "exec", "> out"],
    "exec -a name a": ["exec -a name a", "a"],
    "sudo -- env -- timeout 1 a": ["sudo -- env -- timeout 1 a", "env -- timeout 1 a", "timeout 1 a", "a"],
    "/usr/bin/sudo a": ["/usr/bin/sudo a", "a"],
    "ls | xargs -0 -n 1 rm -f": ["ls", "xargs -0 -n 1 rm -f", 'rm -f "$@"'],
    "xargs -I{} cp {} x/{}": ["xargs -I{} cp {} x/{}", "cp {} x/{}"],
    "xargs -I % -- cp % x": ["xargs -I % -- cp % x", "cp % x"],
    "xargs": ["xargs"],
    "sudo AB=1 rm x; sudo -u me AB=1 CD=2 rm": [
        "sudo AB=1 rm x",
        "AB=1 rm x",
        "sudo -u me AB=1 CD=2 rm",
        "AB=1 CD=2 rm",
    ],
    "find . -name '*.py' -exec rm {} + -o -ok cat {} \\;": [
        "find . -name '*.py' -exec rm {} + -o -ok cat {} ';'",
        "rm {}",
        "cat {}",
    ],
    "find . -name x": ["find . -name x"],
    "find . -exec a + b {} ';'": ["find . -exec a + b {} ';'", "a + b {}"],
    "bash -c 'a; b' x": ["bash -c 'a; b' x", "a", "b"],
    "sh -lc 'a; b'": ["sh -lc 'a; b'", "a", "b"],
    "bash -ex -c a": ["bash -ex -c a", "a"],
    "bash script.sh -c a": ["bash script.sh -c a"],
    'bash script.sh "$x" <(a)': ["a", 'bash script.sh "$x" <(a)'],
    "bash -c \"bash -c 'a; b'\"": ["bash -c 'bash -c '\\''a; b'\\'''", "bash -c 'a; b'", "a", "b"],
    "eval 'a; b' c": ["eval 'a; b' c", "a", "b c"],
    "eval": ["eval"],
    "trap 'a; b' EXIT": ["trap 'a; b' EXIT", "a", "b"],
    "trap - EXIT; trap -p; trap": ["trap - EXIT", "trap -p", "trap"],
    "source x; . y": ["source x", ". y"],
    # builtins that evaluate, with nothing to evaluate
    "[ -f a ] && test -d b": ["[ -f a ]", "test -d b"],
    "read -r x; unset x; export X=1; wait": ["read -r x", "unset x", "export X=1", "wait"],
    "printf '%s' \"$x\"": ['printf %s "$x"'],
    "set -euo pipefail; set +x": ["set -euo pipefail", "set +x"],
}

NOT_UNDERSTOOD = [
    # arithmetic evaluates, and subscripts are arithmetic
    "echo $((1))", "echo $[1]", "((1))", "for ((;;)); do a; done", "echo ${a[1]}", "a[1]=2", "let a",
    "(\\\n(a))", 'echo "$((1))"',
    # expansions that assign, refer, substitute or evaluate
    "echo ${x:=y}", "echo ${!x}", "echo ${x@P}", "echo ${x/a/b}", "echo ${x:1}", "echo ${x:-$(a)}",
    "echo ${x:-`a`}", "echo ${x:-'a'}", "echo ${x", 'echo "${x:-}"}${y^^}',
    # the name of the command
    "$x", '"$x" a', "$(a) b", "`a` b", "~/bin/x", "*/x", "{a,b}", "'' a", "[a] b", "x$y",
    # quoting that is left open, joined, or not read alike everywhere
    "echo 'a", 'echo "a', "echo $'a", "echo a\\", "echo `a", "echo $(a", 'echo $"a"', "ec\\\nho",
    "echo a\\\nb", 'echo "a\\\nb"', "echo $'\\c@'", "echo $'\\xff'", "echo $'\\0'", "echo $'\\377'",
    "echo `a \\`b\\``", "echo `a 'b'`", 'echo `a "b"`',
    "a\\\n;b", "echo $\\\n(a)", "a;\\\nb",
    # constructs
    "f() { a; }", "f () (a)", "function f { a; }", "coproc a", "select x in a; do b; done", "[[ -f a ]]",
    "[[ a ]] && b", "a=(b)", "a=()", "echo a(b)", "echo @(a|b)", "a )", "then a", "fi", "}",
    "if a; then b", "case x in a", "case x in a b) c;; esac", "case x", "for", "for 1 in a; do b; done",
    "{ a", "( a", "a <(b", "done", "for x in a; do b", "a & & ) b", "case in", ";; )", "while a",
    # redirections
    "a >", "a > ", "a <<", "a >& b", "a >&$x", "a <&b", "a 2>&1b", "a {x}> b", "a 2>(b)", "a b<(c)",
    "a >;", "a <<$x\n$x", "a 1234> b", "a >&1234", "a 99999999999> b", "a {b[c]}> d", "a >&\uff12",
    "> b ! a", "echo $(< b ! a)", "echo <(> b coproc a)", "A1=b ! c", "> b time a", "> b { a",
    # what not every shell reads alike
    "sh -c 'a &> b c'", "sh -c 'a &>> b c'", "sh -c 'a |& b'", "sh -c 'a <<< b'", "sh -c 'a 12> b'",
    "sh -c 'time a'",
    "a | time b", "a |\n time -p b", "a |& time b", "echo $'\\u00e9'",
    # here documents
    "cat <<E\na", "cat <<E\n`a`\nE", "cat <<E\na\\\nE\nE", "cat <<E\n$((1))\nE", "cat <<E\n${x:=y}\nE",
    "cat <<E'F'\nEF", "cat <<$x\n$x", "cat <<a$(b)\nx", "echo $(cat <<E)\nE", "cat <<E 'a\nb'\nE",
    "cat <<E $(a\nb)\nE", "cat <<!\n!", "cat <<'E F'\nE F", "cat <<''\n\n", "cat <<-'\tE'\n\tE",
    "cat <<'E)'\nE)",
    "cat <<E\\\nF\nEF", "cat <<'E\nF'\nE", "cat <<E\na\n\tE",
    # substitutions: where they end
    ATTACK, "echo $(cat <<E\na\nE\n)", "echo <(cat <<E\na\nE\n)", "echo >(cat <<E\na\nE\n)",
    "echo `cat <<E\na\nE\n`",
    'echo "$(cat <<-E\n\tE\n)"', "echo $( (cat <<E\nE\n) )", "echo $({ cat; } <<E\nE\n)", "x=$(cat <<E\nE\n)",
    "cat <<E\n$(cat <<F\nF\n)\nE", "cat < <(cat <<E\nE\n)", "echo $(if cat <<E; then a; fi\nE\n)",
    "for x in $(cat <<E\nE\n); do a; done", "case $(cat <<E\nE\n) in a) b;; esac",
    "bash -c 'echo $(cat <<E\nE\n)'", "eval 'echo `cat <<E\nE\n`'",
    "echo $(a # )\n)", "echo `a # b`", "echo $(case x in x) a;; esac)", "echo $(case x in (x) a;; esac)",
    "echo $(a $'b')", "echo \"$(a $'\\'')\"",
    # commands in commands
    "sudo -x a", "sudo -s", "env -S 'a b'", "env $x a", "env A=$x a", "xargs -a f b", "xargs $x a",
    "xargs -I{} sh -c '{}'", "xargs sh -c", "xargs -I % -n 1 sh -c %", "command -x a", "sudo -v a",
    "bash -c +x a", "timeout $x a", "timeout -k $x 1 a", "nice -5 a", "find . $x",
    "find . -exec sh -c 'a {}' \\;", "find . -exec a", "find . -exec a +", "find . -exec",
    "find . -exec ';'", "find . -delete", "find . -fprintf x %p", "bash -c $x", 'bash -c "$x"', "bash $x",
    "bash -c -x a", "bash -O extglob -c a",
    "eval -- a", "command eval -- a", "bash //dev/stdin", "bash ../../dev/stdin", ". //dev/stdin",
    "bash stdin", "bash /../dev/fd/0", "env bash //dev/stdin <<< a", "rbash -c a", "logsave -s f a",
    "bash +x -c a", "bash --rcfile a", "eval $x", 'eval "$x"', "eval 'a; ((1))'", "trap $x EXIT",
    'trap "$x" EXIT', "trap -- a EXIT", "zsh -c a", "watch a", "strace a", "su -c a", "parallel a ::: b",
    "bash -c 'echo $((1))'", "busybox sh", "command $x", "builtin eval $x", "exec $x", 'sudo "$x"',
    "xargs env", "xargs -I{} -L1 env", "xargs -I{} -n2 a", "xargs -n 1 -I {} a", "xargs -L1 -I{} a",
    "xargs -I '' a", "sudo AB=1 -u me a", 'sudo AB=1 "$x"', "sudo ab=1 a", 'sudo "AB=$x" a', "ssh host a",
    "/lib64/ld-linux-x86-64.so.2 /bin/a", "ld.so a", "tmux new a", "setlock a b",
    # shells that read their commands from elsewhere
    "bash", "sh -", "bash -x", "bash --", "bash -s a", "bash script <<< a", "bash /dev/stdin",
    "source <(a)", "source -- <(a)", '. "$x"', "source $x", "source *",
    "source /dev/fd/3", ". /proc/self/fd/0", "source x <<< a", "bash <(a)", "cat x | bash",
    # builtins that evaluate
    "read 'a[$(b)]'", "read 'a[b]'", "unset 'a[b]'", "test -v 'a[b]'", "[ -v 'a[b]' ]", "getopts a 'a[b]'",
    'read "$x"', "unset 'a[`b`]'", 'test -v "$x"', "[ $x ]", "export $x",
    "export 'a[$(b)]=1'", "printf -v x y", 'printf "$x"', "printf -- a", "wait -p $x", "getopts a $x",
    "mapfile x", "readarray x", "compgen -W a", "alias a=b", "unalias a", "shopt -s extglob",
    "enable -f x y", "hash -p a b", "declare -i x", "typeset x", "local x=1", "set -k", "set -o posix",
    "set -- a", "set $x", "jobs -x a", "fc -s", "bind -x a", "history -c", "complete -C a b",
    # variables that are numbers, and those that look like a command
    "PS4='$(b)'", "read PS4 <<< a", "for PS4 in a; do b; done", "env PS4=a b", "BASH_ENV=a b", "export ENV=a",
    "sudo PROMPT_COMMAND=a b",
    "RANDOM=1", "SECONDS=1 a", "OPTIND+=1", "for RANDOM in a; do b; done", "read SRANDOM",
    "BASH_COMPAT=31", "POSIXLY_CORRECT=1", "LC_ALL=zh_CN.GBK", "LC_CTYPE=$x a", "LANG=ja_JP.SJIS a",
    "read LC_ALL",
    "for LC_ALL in a; do b; done", "export LANG=zh_TW.BIG5",
    "export HISTCMD=1", "ls=1 rm", "git=1 a", "x=1 a", "R=1 a", "env ls=1 a", "env '}=1' a", "Ab=1 c",
    # characters
    "a\rb", "a\x0bb", "a\x1bb", "a 'b\x00c'", "a\xa0b", "a\u2003b", "a\u200bb", "a '\u202e'", "a '\u2066'",
    "a\ud800", "a\x7f", "a\x85b", "echo $'\\e'",
]  # fmt: skip


def shown(spellings: Sequence[Spelling]) -> list[str]:
    return [spelling.shown for spelling in spellings]


@pytest.mark.parametrize(("line", "subjects"), UNDERSTOOD.items())
def test_a_line_is_about_every_command_in_it(line: str, subjects: list[str]) -> None:
    read = read_line(line)

    assert read.problem == ""
    assert shown(read.subjects) == subjects


@pytest.mark.parametrize("line", NOT_UNDERSTOOD)
def test_a_line_that_may_hide_something_is_one_subject_that_begins_like_no_command(line: str) -> None:
    read = read_line(line)

    assert read.problem
    assert shown(read.subjects) == [f"«{line}» is not understood"]
    assert read.subjects[0].surely == read.subjects[0].possibly == ("*",)


# What a line may turn out to be: for rules that allow, and in all spellings for those that ask and deny.
SHAPES: dict[str, tuple[list[str], list[str]]] = {
    'cat "$x"': (["cat *"], ["cat *"]),
    "cat $x": (["cat *", "cat"], ["cat *", "cat"]),
    "cat $x a": (["cat * a", "cat a"], ["cat * a", "cat a"]),
    'cat "$@"': (["cat *", "cat"], ["cat *", "cat"]),
    'cat "$*"': (["cat *"], ["cat *"]),
    "cat a$x": (["cat a*"], ["cat a*", "cat 'a*"]),
    "cat $x$y": (["cat *", "cat"], ["cat *", "cat"]),
    'cat "$x"/b': (["cat */b"], ["cat */b", "cat */b'"]),
    'cat "a $x"': (["cat 'a *'"], ["cat 'a *'"]),
    'cat "a? $x"': (["cat 'a\\? *'"], ["cat 'a\\? *'"]),
    "cat 'a '$x": (["cat *"], ["cat *"]),
    'cat "it\'s $x"': (["cat *"], ["cat *"]),
    "cat .e?v": (["cat .e*v"], ["cat .e*v", "cat .e*v'", "cat '.e*v", "cat '.e*v'"]),
    "cat p[u]sh": (["cat p*"], ["cat p*", "cat 'p*"]),
    "cat $x]y": (["cat *"], ["cat *"]),
    "cat {a,b}c": (["cat *", "cat"], ["cat *", "cat"]),
    'cat {a,"b"}': (["cat *"], ["cat *"]),
    "cat {,$x}": (["cat *", "cat"], ["cat *", "cat"]),
    'cat p[u"s"]"h"': (["cat p*"], ["cat p*", "cat 'p*"]),
    "cat a{b,c}": (["cat a*"], ["cat a*", "cat 'a*"]),
    "cat ~/x": (["cat */x"], ["cat */x", "cat */x'"]),
    "cat a=~/x": (["cat a=*"], ["cat a=*", "cat 'a=*"]),
    "cat --a=~me/x": (["cat --a=*/x"], ["cat --a=*/x", "cat --a=*/x'", "cat '--a=*/x", "cat '--a=*/x'"]),
    "cat \\*$x": (["cat *"], ["cat *"]),
    "cat $(a)": (["cat *", "cat"], ["cat *", "cat"]),
    "xargs cat": (["cat *", "cat"], ["cat *", "cat"]),
    "xargs -I% cp % x/%.y": (["cp * x/*.y"], ["cp * x/*.y", "cp * x/*.y'", "cp * 'x/*.y", "cp * 'x/*.y'"]),
    'xargs -I% cp "$x" %': (["cp * *", "cp *"], ["cp * *", "cp *"]),
    "find . -exec cat {} +": (["cat *"], ["cat *"]),
    "AB=$x cat": (["AB=* cat"], ["AB=* cat"]),
    "cat > $x/y": (["> */y"], ["> */y", "> */y'"]),
    "cat <<< $x": (["cat <<< *"], ["cat <<< *"]),
    "cat <<E\n$x\nE": (["cat <<< *"], ["cat <<< *"]),
    "for PATH in *; do a; done": (["for PATH in *"], ["for PATH in *"]),
    "cat $a $b $c $d $e": (["cat*****"], ["cat*****"]),
}


@pytest.mark.parametrize(("line", "shapes"), SHAPES.items())
def test_a_word_that_is_not_known_has_a_shape(line: str, shapes: tuple[list[str], list[str]]) -> None:
    read = read_line(line)

    *_, unknown = [subject for subject in read.subjects if not subject.is_known]
    assert (list(unknown.surely), list(unknown.possibly)) == shapes
    assert read.problem == "" and unknown in read.watched
    assert read.name(unknown) == f"«{line}»"


@pytest.mark.parametrize(
    ("line", "uses"),
    [
        ("git -C x --no-pager push a", [["git push a"]]),
        ("/usr/bin/git --git-dir=x -c a.b=c push", [["git push"]]),
        ('git -C "$x" log', [["git log"]]),
        ("git push", []),
        ("git", []),
        ("git -C", [["git"]]),
        ("git -c alias.p=push p", [["git *"]]),
        ("git -c Include.path=x p", [["git *"]]),
        ('git -c "$x" p', [["git *"]]),
        ("git --exec-path=x p", [["git *"]]),
        ("git -C $x log", [["git *"]]),
        ("git -$x push", [["git *"]]),
        ("git --config-env=alias.p=x p", [["git *"]]),
        ("hit -C x push", []),
    ],
)
def test_git_is_seen_without_the_options_before_its_subcommand(line: str, uses: list[list[str]]) -> None:
    [command] = read_line(line).commands

    found = other_spellings(command)
    assert [list(use.possibly) or [use.shown] for use in found] == uses
    assert set(found) <= set(read_line(line).watched)


@pytest.mark.parametrize("within", ["eval {}", "trap {} EXIT", "env eval {}", "bash -c {}"])
def test_what_shells_read_in_different_ways_is_understood_for_bash_alone(within: str) -> None:
    line = quote(within.format(quote("echo $'a'")))

    assert read_line(f"bash -c {line}").problem == ""
    assert bool(read_line(f"sh -c {line}").problem) == (within != "bash -c {}")


@pytest.mark.parametrize(
    ("line", "watched"),
    [
        ("CI=1 rm x", ["rm x"]),
        ("/bin/rm x", ["/bin/rm x", "rm x"]),
        ("env AB=1 ./rm x", ["env AB=1 ./rm x", "./rm x", "rm x"]),
        ("cat <<< x", ["cat <<< x"]),
        ("/bin/cat <<< x", ["/bin/cat <<< x", "cat <<< x"]),
        ("/rm x", ["/rm x", "rm x"]),
        ("rm/ x", ["rm/ x"]),
        ("x=1", []),
        ("rm -rf $((1)); ls", ["rm -rf $", "1", "ls"]),
        ("ls; if true; then 'rm' x; fi; ((1))", ["ls", "true", "rm x", "fi", "1", "then", "rm", "x"]),
        ("sudo rm x; zsh -c 'rm y'", ["sudo rm x", "rm x", "zsh -c 'rm y'", "zsh -c rm y", "zsh -c", "rm y"]),
    ],
)
def test_rules_that_ask_or_deny_see_other_forms_too(line: str, watched: list[str]) -> None:
    assert shown(read_line(line).watched) == watched


def test_a_line_that_is_too_long_is_not_looked_at_any_closer() -> None:
    longest = "x" * MAX_LENGTH

    assert shown(read_line(longest).subjects) == [longest]
    assert read_line(f"{longest}x").problem == f"more than {MAX_LENGTH} characters"
    assert len(read_line("".join(f"rm {number};" for number in range(200_000))).watched) < 1_000


LONG = [
    "$(",
    "(",
    "( ",
    "`",
    "{ ",
    "if ",
    "eval ",
    "sudo ",
    '"$(',
    "case x in a) ",
    "<(",
    "a;",
    "${",
    "'",
    "\\\n",
]


@pytest.mark.parametrize("piece", LONG)
def test_a_line_that_is_deep_or_long_is_read_or_refused(piece: str) -> None:
    line = f"echo {piece * (MAX_LENGTH // len(piece))}"[:MAX_LENGTH]

    assert read_line(line).subjects


def test_many_here_documents_are_read() -> None:
    line = "cat" + " <<E" * 2_000 + "\nE" * 2_000

    assert read_line(line).problem == ""


def test_commands_within_commands_are_read_to_a_certain_depth() -> None:
    assert read_line("echo $(" * MAX_DEPTH + "ls" + ")" * MAX_DEPTH).problem == ""
    assert "deep" in read_line("echo $(" * (MAX_DEPTH + 1) + "ls" + ")" * (MAX_DEPTH + 1)).problem
    for wrapper in ("sudo ", "eval "):
        assert read_line(wrapper * MAX_DEPTH + "ls").problem == ""
        assert "deep" in read_line(wrapper * (MAX_DEPTH + 1) + "ls").problem
    document = "cat <<E\n$(a)\nE\n"
    assert "deep" in read_line("{ " * MAX_DEPTH + document + "; } " * MAX_DEPTH).problem


def test_what_stands_side_by_side_is_not_deep() -> None:
    assert read_line("(a);" * 50).problem == ""
    too_deep = "( " * (MAX_DEPTH + 1) + "a" + " )" * (MAX_DEPTH + 1)
    assert "deep" in read_line("(a);" * 50 + too_deep).problem
    beside = "( " * (MAX_DEPTH - 1) + "(a); ( (b) )" + " )" * (MAX_DEPTH - 1)
    assert "deep" in read_line(beside).problem


@given(st.text(max_size=40))
def test_any_text_is_read(line: str) -> None:
    read = read_line(line)

    assert bool(read.problem) == (shown(read.subjects) == [f"«{line}» is not understood"])


WORDS = st.text(st.sampled_from("ab =~:#*?[]{},.$'\"\\`!\n\t;&|()<>é"), max_size=6)


@given(WORDS)
def test_the_spelling_of_a_word_is_read_as_that_word(text: str) -> None:
    spelled = quote(text)

    [command] = read_line(f"x {spelled}").commands
    assert [word.literal for word in command.words] == ["x", text]
    assert command.words[1].shown == spelled


@given(st.lists(WORDS, max_size=4))
def test_what_a_line_is_about_is_about_the_same(words: list[str]) -> None:
    """The one spelling is a fixed point: whoever reads a subject as a line finds that very command."""
    line = " ".join(["x", *map(shlex.quote, words)])

    [subject] = shown(read_line(line).subjects)
    assert shown(read_line(subject).subjects) == [subject]
    assert shlex.split(subject) == ["x", *words]
