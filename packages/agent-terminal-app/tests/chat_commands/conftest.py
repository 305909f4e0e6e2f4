"""A place to sit down at: an application on a disk, and chats with it that are typed line by line."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider
from agent_terminal_app.chat.commands.registry import load_commands
from agent_terminal_app.chat.loop import Chat

if TYPE_CHECKING:
    from pathlib import Path

ESC = "\x1b"
"""Typed in place of a line: the person leaves what is asked, or stops what is at work."""


class Paper:
    """A screen that keeps its lines."""

    def __init__(self, *, color: bool = False, width: int | None = None) -> None:
        self.color = color
        self.is_live = False
        self.width = width
        self.lines: list[str] = []

    def line(self, text: str = "") -> None:
        self.lines += text.split("\n")


class Echo(ScriptedProvider):
    """Repeats what was said."""

    name = "demo"

    def __init__(self) -> None:
        super().__init__(itertools.repeat(_echo), name="demo")


def _echo(messages: list[dict[str, Any]]) -> Reply:
    said = str(messages[-1]["content"])
    return Reply(text=f"You said: {said}", usage={"input_tokens": len(said), "output_tokens": 10})


class Clock:
    """A tool."""

    name = "clock"
    version = "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        parameters = {"type": "object", "properties": {}, "additionalProperties": False}
        about = {"name": "clock", "description": "Tell the time.", "parameters": parameters}
        return [{"type": "function", "function": about}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "result": "12:00"}


class Desk:
    """An application that stays while chats come and go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.width: int | None = None
        self.plugins: list[Any] = [Echo, Clock]
        self.config: dict[str, Any] = {
            "agents": {"assistant": {"model": "demo", "description": "Repeats."}},
            "models": {"demo": {"provider": "demo"}},
            "default_agent": "assistant",
        }

    def open(self) -> AgentApplication:
        return AgentApplication(
            self.config,
            store=f"sqlite:///{self.folder}/app.db",
            assets=self.folder / "assets",
            plugins=self.plugins,
            installed=False,
        )

    def paper(self, *, color: bool = False) -> Paper:
        """Return an empty screen."""
        return Paper(color=color, width=self.width)

    def chat(self, *typed: str, session: str | None = None, color: bool = False) -> list[str]:
        """Type lines, each when the one before was dealt with, and return what was shown."""
        paper = self.paper(color=color)
        asyncio.run(self._sit(Chat(self.open, paper, session), typed))
        return paper.lines

    def sessions(self) -> list[str]:
        """Return the ids of all sessions, the last used first."""
        with self.open() as app:
            return [info.id for info in app.list_sessions().sessions]

    def said(self, session_id: str) -> list[str]:
        """Return what was said in a session."""
        with self.open() as app:
            return [str(message.content) for message in app.load_session(session_id).messages]

    async def _sit(self, chat: Chat, typed: Sequence[str]) -> None:
        chat.start()
        try:
            for line in typed:
                if chat.left.is_set():
                    return
                if line == ESC:
                    chat.interrupt()
                else:
                    await chat.take(line)
                await chat.finish()
        finally:
            await chat.close()


@pytest.fixture(autouse=True, scope="session")
def commands() -> None:
    """Load the commands, as every chat does when it opens."""
    load_commands()


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_KEYRING", "off")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path)


Doing = Callable[[str, dict[str, Any]], dict[str, Any]]


class Acting:
    """A feature whose actions are given, and what they do."""

    version = "1"

    def __init__(self, name: str, actions: list[dict[str, Any]], do: Doing, ui: Sequence[Any] = ()) -> None:
        self.name = name
        self._actions = actions
        self._do = do
        self._ui = list(ui)
        self.contexts: list[dict[str, Any]] = []

    def get_actions(self) -> list[dict[str, Any]]:
        return self._actions

    def get_ui_elements(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        return self._ui

    def execute_action(
        self, action_id: str, session: Any, native_messages: Any, params: dict[str, Any], context: Any
    ) -> dict[str, Any]:
        self.contexts.append(context)
        return self._do(action_id, params)


@pytest.fixture
def acting() -> type[Acting]:
    return Acting


@pytest.fixture
def esc() -> str:
    return ESC
