"""JSON: the standard library's parser for the data, a walk for the places and for keys that stand twice."""

from __future__ import annotations

import json

from agent_runtime.files.documents import Document
from agent_runtime.files.refusals import checked
from agent_runtime.files.walking import Walker


def parse_json(text: str) -> Document:
    """Return the document that a JSON text holds.

    Raises:
        Wrong: If the text is not valid, or a key stands in it twice.
    """
    walker = Walker(text, json.loads)
    walker.walk()
    data = checked(json.loads, text, "JSON")
    if walker.duplicate is not None:
        raise walker.duplicate
    return Document(data, walker.places)
