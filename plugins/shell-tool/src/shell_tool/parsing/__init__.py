r"""What a command line would do, as far as that can be told from its text.

A line is *understood* if every command that bash could run for it is known by name. Whatever could hide
another command makes it *not understood*: the reader knows a part of bash, and only forms in that part of
which bash has one reading. So it never has to guess, and a doubt costs a question, not a command that
nobody allowed.

Not all words of a command are known before it runs. Such a word has a *shape*, which fits everything that it
may turn out to be: a rule that allows must fit all of that, and one that asks or denies counts if it fits
some of it.

It is written by hand, since what there is cannot be relied upon for this. `tree-sitter-bash` (0.25.1) is
made for editors: it reads `echo $'a\\'; id #'` as one command without an error, sees no backticks in here
documents and in `${a:-`id`}`, and ends a here document at an indented delimiter. `bashlex` has the GPL, and
its last release is of 2023. The tests hold this reader against bash itself instead.

::

    errors            NotUnderstood
    pieces            a part of a word, as it was read
    shapes            what a word may turn out to be that is only known when it runs
    words             a word: what is known of it, and one spelling for equal words
    spelling          words in a row, as rules see them
    commands          a simple command
    word_reader       quotes, escapes, expansions
    redirections      `> file`, here documents
    line_reader       lists, pipelines, loops: everything that holds commands
    wrappers          commands that run their arguments: sudo, xargs, sh -c
    builtins          builtins of bash that evaluate their arguments
    git_options       what may stand between git and what it is to do
    line              read_line: what must be allowed, and what must be watched for
    suggestions       what to offer to a person who allows something for longer
"""

from shell_tool.parsing.line import Line, read_line
from shell_tool.parsing.suggestions import suggest
from shell_tool.parsing.words import quote

__all__ = ["Line", "quote", "read_line", "suggest"]
