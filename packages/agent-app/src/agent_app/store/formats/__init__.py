"""The tables of each format, as steps: what leads from one format to the next, for each database.

A step is never changed once it was released: databases are in every format that there ever was.
"""

from __future__ import annotations

from importlib.resources import files


def script(database: str, after: int, upto: int) -> str:
    """Return the statements that lead a database from one format to another, step by step."""
    steps = (files(__name__) / f"{database}-{number}.sql" for number in range(after + 1, upto + 1))
    return "\n".join(step.read_text(encoding="utf-8") for step in steps)
