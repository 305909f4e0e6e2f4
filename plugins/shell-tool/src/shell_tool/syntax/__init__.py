r"""What a command line would do, as far as its text says.

A line is *understood* if every command that bash could run for it is known by name. Whatever could hide
another command makes it *not understood*: the reader knows a part of bash, and only forms in that part of
which bash has one reading. So it never has to guess, and a doubt costs a question, not a command that
nobody allowed.

Not all words of a command are known before it runs. Such a word has a *shape*, which fits everything that it
may turn out to be: a rule that allows must fit all of that, and one that asks or denies counts if it fits
some of it.

It is written by hand, since no library can be relied upon for this. `tree-sitter-bash` (0.25.1) is
made for editors: it reads `echo $'a\\'; id #'` as one command without an error, sees no backticks in here
documents and in `${a:-`id`}`, and ends a here document at an indented delimiter. `bashlex` fails on 5 of the
16 lines that it was compared with, has the GPL, and its last release is of 2023. The tests compare this
reader with bash itself instead.

::

    words             a word: its pieces, what it may turn out to be, one spelling; a simple command
    word_reader       quotes, escapes, expansions
    redirections      `> file`, here documents
    line_reader       lists, pipelines, loops: everything that holds commands
    wrappers          commands that run their arguments (sudo, xargs, sh -c)
    git               what a call of git comes to
    builtins          builtins of bash that evaluate their arguments
    line              read_line: what must be allowed and what must be watched for; suggest: what to offer
"""

from shell_tool.syntax.line import Line, read_line, suggest
from shell_tool.syntax.words import quote

__all__ = ["Line", "quote", "read_line", "suggest"]
