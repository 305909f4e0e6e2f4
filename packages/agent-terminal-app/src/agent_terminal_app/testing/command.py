"""The `agent` command in the process of a test, which is many times faster than one of its own.

What only a process shows (signals, pipes whose reader leaves, how the interpreter ends) needs a real one.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from agent_terminal_app.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def run_agent(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    stdin: str | bytes = "",
) -> subprocess.CompletedProcess[str]:
    """Run `agent` with some arguments in this process, and return what a process of its own would have given.

    Args:
        environment: All variables that it has; by default those of this process.
        folder: Where it runs; by default here.
        stdin: What is piped in.
    """
    code: object = 0
    typed = stdin.encode() if isinstance(stdin, str) else stdin
    with tempfile.TemporaryFile() as source:  # a chat in plain lines waits for its descriptor
        source.write(typed)
        source.seek(0)
        reader = io.TextIOWrapper(source, encoding="utf-8")
        stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with _surroundings(environment, folder, (reader, stdout, stderr)):
            try:
                main(list(arguments))
            except SystemExit as left:
                code = left.code
    number = code if isinstance(code, int) else 0
    return subprocess.CompletedProcess(arguments, number, _content(stdout), _content(stderr))


@contextmanager
def _surroundings(
    environment: Mapping[str, str] | None, folder: Path | None, streams: Sequence[TextIO]
) -> Iterator[None]:
    """Give this process other variables, another folder and other streams for a while."""
    before, here, own = dict(os.environ), Path.cwd(), (sys.stdin, sys.stdout, sys.stderr)
    try:
        if environment is not None:
            os.environ.clear()
            os.environ.update(environment)
        if folder is not None:
            os.chdir(folder)
        sys.stdin, sys.stdout, sys.stderr = streams
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = own
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)


def _content(stream: io.TextIOWrapper) -> str:
    stream.flush()
    content = stream.buffer
    assert isinstance(content, io.BytesIO)
    return content.getvalue().decode(errors="replace")
