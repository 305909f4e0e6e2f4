"""Copying: by our own escape sequence, and by programs that really run."""

from __future__ import annotations

import asyncio
import base64
import os
import pty
import stat
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from agent_terminal_app.chat import clipboard

if TYPE_CHECKING:
    from pathlib import Path


def install(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    return tmp_path


KEEP = "import sys, pathlib; pathlib.Path(__file__).with_suffix('.got').write_bytes(sys.stdin.buffer.read())"


@pytest.mark.parametrize(
    ("name", "variable"), [("wl-copy", "WAYLAND_DISPLAY"), ("xclip", "DISPLAY"), ("xsel", "DISPLAY")]
)
def test_a_program_of_the_desktop_gets_the_text_to_the_letter(
    programs: Path, monkeypatch: pytest.MonkeyPatch, name: str, variable: str
) -> None:
    install(programs, name, KEEP)
    monkeypatch.setenv(variable, ":0")

    done = asyncio.run(clipboard.copy("naïve\n$(touch x) 'quoted'"))

    assert done == [f"that of the desktop ({name})"]
    assert (programs / f"{name}.got").read_text() == "naïve\n$(touch x) 'quoted'"


def test_programs_of_a_desktop_that_is_not_there_are_not_started(programs: Path) -> None:
    install(programs, "wl-copy", KEEP)

    assert asyncio.run(clipboard.copy("text")) == []
    assert not (programs / "wl-copy.got").exists()


def test_a_program_that_fails_gives_way_to_the_next(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(programs, "wl-copy", "raise SystemExit(1)")
    install(programs, "xclip", KEEP)
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("DISPLAY", ":0")

    assert asyncio.run(clipboard.copy("text")) == ["that of the desktop (xclip)"]


def test_a_program_that_hangs_is_given_up(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(programs, "wl-copy", "import time; time.sleep(600)")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setattr(clipboard, "PATIENCE", 0.2)

    assert asyncio.run(clipboard.copy("text")) == []


def test_a_terminal_gets_our_sequence_and_nothing_else(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "__stdout__", terminal)
        done = asyncio.run(clipboard.copy("a secret\n"))
        monkeypatch.undo()

    written = os.read(ours, 10_000)
    os.close(ours)
    assert done == ["the clipboard of the terminal (OSC 52)"]
    assert written == b"\x1b]52;c;" + base64.b64encode(b"a secret\n") + b"\x07"


def test_a_text_that_is_too_long_for_a_terminal_is_not_cut() -> None:
    assert clipboard.sequence("x" * 60_000) is None


@given(st.text(max_size=200))
def test_no_text_can_end_the_sequence(text: str) -> None:
    made = clipboard.sequence(text)

    assert made is not None
    inside = made.removeprefix("\x1b]52;c;").removesuffix("\x07")
    assert base64.b64decode(inside).decode() == text.encode(errors="replace").decode()
    assert "\x1b" not in inside and "\x07" not in inside
