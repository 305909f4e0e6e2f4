"""What a docstring tells the model."""

from typing import Annotated, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.functions import tool
from agent_core.functions.docstrings import read_docstring

GOOGLE = """Search the documents.

    Looks into titles first.

    Args:
        query (str): What to look for,
            in any language.
        limit (Callable[[int], str], optional): How many: at most.
        **options: Passed on.

    Returns:
        query: not a parameter.
    """

NUMPY = """Search the documents.

    Looks into titles first.

    Parameters
    ----------
    query : str
        What to look for,
        in any language.
    limit
        How many: at most.
    **options : dict
        Passed on.

    Returns
    -------
    query : list
        Not a parameter.
    """

SPHINX = """Search the documents.

    Looks into titles first.

    :param query: What to look for,
        in any language.
    :type query: str
    :param int limit: How many: at most.
    :keyword options: Passed on.
    :returns: Nothing about a parameter.
    """

EPYTEXT = """
    Search the documents.

    Looks into titles first.

    @param query: What to look for,
        in any language.
    @param limit: How many: at most.
    @param options: Passed on.
    """


PIECES = [
    "Args:",
    "    x: y",
    "        z",
    "Parameters",
    "----------",
    "x : y",
    ":param x: y",
    ":param :",
    "",
    " ",
]


@pytest.mark.parametrize("doc", [GOOGLE, NUMPY, SPHINX, EPYTEXT])
def test_every_style_gives_the_same_description_and_parameters(doc: str) -> None:
    read = read_docstring(doc)

    assert read.description == "Search the documents.\n\nLooks into titles first."
    assert read.parameters == {
        "query": "What to look for, in any language.",
        "limit": "How many: at most.",
        "options": "Passed on.",
    }


@pytest.mark.parametrize(
    ("doc", "description"),
    [
        (None, ""),
        ("", ""),
        ("One line.", "One line."),
        ("Note: this is prose.", "Note: this is prose."),
        ("Uses :func:`len` and\n:class:`list`.", "Uses :func:`len` and\n:class:`list`."),
        ("Sum.\n\nArgs:\n", "Sum."),
        ("Sum.\n\nArgs:\n    no colon here\n", "Sum."),
        ("Sum.\n\nParameters\n----------\n", "Sum."),
        ("Sum.\n\n:param x:\n", "Sum."),
        ("----\n----", ""),
    ],
)
def test_what_is_not_understood_is_left_alone(doc: str | None, description: str) -> None:
    read = read_docstring(doc)

    assert read.description == description
    assert read.parameters == {}


@settings(max_examples=40)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=9)).map("\n".join))
def test_no_docstring_is_too_strange_to_be_read(doc: str) -> None:
    read = read_docstring(doc)

    assert all(text.strip() for text in read.parameters.values())


def test_numpy_names_that_share_a_line_share_the_text() -> None:
    read = read_docstring("Add.\n\nParameters\n----------\nx, y : int\n    A number.\n")

    assert read.parameters == {"x": "A number.", "y": "A number."}


def test_paragraphs_and_blank_lines_inside_an_entry_belong_to_it() -> None:
    read = read_docstring("Add.\n\nArgs:\n    x: One.\n\n        Two.\n\n    y: Three.\nMore prose.")

    assert read.parameters == {"x": "One. Two.", "y": "Three."}


def test_the_schema_carries_the_docstring() -> None:
    @tool
    def search(query: str, limit: Annotated[int, "From the annotation."] = 5) -> None:
        """Search the documents.

        Args:
            query: What to look for.
            limit: From the docstring.
        """

    function: dict[str, Any] = search.get_tool_schemas()[0]["function"]

    assert function["description"] == search.description == "Search the documents."
    assert function["parameters"]["properties"]["query"]["description"] == "What to look for."
    assert function["parameters"]["properties"]["limit"]["description"] == "From the annotation."


def test_a_given_description_wins_over_the_docstring() -> None:
    @tool(description="Short.")
    def search() -> None:
        """Long."""

    assert search.description == "Short."
