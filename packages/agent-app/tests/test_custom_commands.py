"""Commands as Markdown files: names, places for arguments, and files that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, strategies as st

from agent_app.custom_commands import CustomCommand, find_commands

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def test_files_are_commands_by_their_path_and_the_first_folder_wins(tmp_path: Path) -> None:
    head = "\ufeff---\r\ndescription: 'Looks at a change'\r\nargument-hint: [FILE]\r\n---\r\n"
    own = write(
        tmp_path / "own", review=f"{head}Review $1 for $2. All: $ARGUMENTS", git__message="# Say it\n"
    )
    other = write(
        tmp_path / "other", review="Other.", empty="---\na: b\n---\n", bad=b"\xff\xfe", **{"not ok": "x"}
    )

    found = find_commands([own, other, tmp_path / "missing"])

    assert sorted(found) == ["bad", "empty", "git:message", "review"]
    assert found["bad"].problem == "the file is not UTF-8 text"
    assert found["empty"].problem == "the file has no prompt"
    assert not found["review"].problem
    assert (found["review"].description, found["review"].takes) == ("Looks at a change", "[FILE]")
    assert found["review"].prompt("'a b.py' speed now") == "Review a b.py for speed. All: 'a b.py' speed now"
    assert found["review"].prompt("it's") == "Review it's for . All: it's"
    assert found["git:message"].description == "Say it"
    assert found["git:message"].prompt("in French") == "# Say it\n\nin French"


@given(st.text(), st.text())
def test_any_text_takes_any_arguments(text: str, typed: str) -> None:
    made = CustomCommand(name="x", text=text, description="", takes="", path=None)  # type: ignore[arg-type]

    assert isinstance(made.prompt(typed), str)
