"""One chat, from its first line to the last: what is opened, what is said before, and where it is held.

This is what `agent` alone does, so it loads as little as it can before the first prompt.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from functools import partial
from typing import TYPE_CHECKING

from agent_terminal_app.chat.screen import TextScreen, is_dumb, wants_color
from agent_terminal_app.chat.themes import NO_COLOURS, use_theme
from agent_terminal_app.errors import CommandError
from agent_terminal_app.tables import is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_app import AgentApplication
    from agent_terminal_app.chat.screen import Screen
    from agent_terminal_app.opening import Opened
    from agent_terminal_app.settings import Settings

DEMO = "A demonstration: no model, nothing is kept. /help lists the commands."
"""What is said before a demonstration."""


def talk(
    model: str | None = None,
    default_agent: str | None = None,
    session: str | None = None,
    *,
    last: bool = False,
    demo: bool = False,
    plain: bool = False,
) -> int:
    """Hold a chat, and return the exit code.

    Args:
        session: The session to go on with: its id, the beginning of it, or its title.
        last: Go on with the last session.
        demo: Talk to a demonstration in place of a model; nothing is kept.
        plain: No colours and nothing that moves.

    Raises:
        CommandError: If there is no such session.
    """
    if demo:
        return _talk(_open_demo, [DEMO], session, last=last, plain=plain)
    from agent_terminal_app.first_run.greeting import greeting

    opened = _open(model, default_agent, plain=plain)
    settings = opened.settings
    plain = plain or bool(settings.values["ui"]["plain"])
    open_app = partial(opened.application, titles=True)
    return _talk(open_app, greeting(settings), session, last=last, plain=plain, kept=opened)


def last_session(application: AgentApplication) -> str:
    """Return the id of the session that was used last.

    Raises:
        CommandError: If there is none.
    """
    page = application.list_sessions(limit=1)
    if not page.sessions:
        raise CommandError("there is no session to go on with", hint="`agent chat` begins one")
    return page.sessions[0].id


def _open(model: str | None, default_agent: str | None, *, plain: bool) -> Opened:
    """Return the settings; the person is asked about those of the project, or warned if nobody can be."""
    from agent_terminal_app.opening import open_quietly, tell_warnings

    opened = open_quietly(model=model, default_agent=default_agent)
    if opened.settings.untrusted is not None and somebody_is_there():
        from agent_terminal_app.first_run.sitting import asking, hold
        from agent_terminal_app.first_run.trusting import ask_about_project

        opened = hold(partial(ask_about_project, asking(plain=plain), opened))
    else:
        tell_warnings(opened.settings)
    if model is not None and opened.settings.values.get("agents"):
        from agent_terminal_app.commands.run import with_model

        opened = with_model(opened, model)
    return opened


def _open_demo() -> AgentApplication:
    from agent_terminal_app.logs import keep_off_the_screen, stop_log
    from agent_terminal_app.wiring import open_demo

    stop_log()
    keep_off_the_screen()
    return open_demo()


def somebody_is_there() -> bool:
    """Say whether a person sits at a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def _talk(
    open_app: Callable[[], AgentApplication],
    first_lines: list[str],
    session: str | None,
    *,
    last: bool,
    plain: bool,
    kept: Opened | None = None,
) -> int:
    """Greet, and talk until the person leaves.

    Args:
        kept: Where what is typed is kept, and what is offered; None if nothing is.
    """
    theme = "auto" if kept is None else kept.settings.values["ui"]["theme"]
    use_theme(theme)
    screen: Screen = TextScreen(color=wants_color(sys.stdout, plain=plain or theme == NO_COLOURS))
    for line in first_lines:
        screen.line(line)
    if session or last:
        open_app, session = _resumed(open_app, session)
    if not somebody_is_there() or plain or is_dumb():
        return _in_lines(open_app, screen, session, None if kept is None else kept.settings)
    return _in_terminal(open_app, session, kept, color=screen.color)


def _resumed(
    open_app: Callable[[], AgentApplication], session: str | None
) -> tuple[Callable[[], AgentApplication], str]:
    """Return the application, open already, and the session that is meant: by what was given, or the last."""
    from agent_terminal_app.commands.sessions import find_session

    application = open_app()
    try:
        found = find_session(application, session).id if session else last_session(application)
    except BaseException:
        application.close()
        raise
    return (lambda: application), found


def _in_terminal(
    open_app: Callable[[], AgentApplication], session: str | None, kept: Opened | None, *, color: bool
) -> int:
    gc.disable()  # while modules are loaded there is nothing to collect, and the prompt would wait for it
    from agent_terminal_app.chat.keymap import load_keys
    from agent_terminal_app.chat.loop import Chat
    from agent_terminal_app.chat.prompt import PromptScreen, run_prompt
    from agent_terminal_app.paths import Paths

    paths = Paths.of_this_user() if kept is None else kept.paths
    keys = load_keys(paths.keyboard)

    async def sit() -> int:
        asyncio.get_running_loop().call_soon(gc.enable)  # our turn comes when the prompt waits for a key
        screen = PromptScreen(color=color)
        chat = Chat(open_app, screen, session, keys)
        if kept is None:
            return await run_prompt(chat, None)
        telling = asyncio.create_task(_tell_later(screen, kept.settings))
        try:
            return await run_prompt(chat, paths.typed)
        finally:
            telling.cancel()

    return asyncio.run(sit())


async def _tell_later(screen: Screen, settings: Settings) -> None:
    """Show what is found out while the person types already."""
    from agent_terminal_app.first_run.greeting import later

    async for line in later(settings):
        screen.line(line)


def _in_lines(
    open_app: Callable[[], AgentApplication], screen: Screen, session: str | None, settings: Settings | None
) -> int:
    from agent_terminal_app.chat.loop import Chat
    from agent_terminal_app.chat.plain import run_in_lines
    from agent_terminal_app.first_run.greeting import missing_key, missing_weights

    if settings is not None:
        for line in filter(None, (missing_weights(settings), missing_key(settings))):
            screen.line(line)
    return asyncio.run(run_in_lines(Chat(open_app, screen, session)))
