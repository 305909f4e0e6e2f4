"""The start of a chat: the settings are opened, the user is greeted, and a screen is chosen.

This is what `agent` alone does, so it loads as little as it can before the first prompt.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_terminal_app import chat, views
from agent_terminal_app.application import open_demo, open_quietly, show_warnings
from agent_terminal_app.chat.rendering.screen import TextScreen, is_dumb, wants_color
from agent_terminal_app.chat.rendering.text import NO_COLOURS, use_theme
from agent_terminal_app.chat.rendering.wrap import wrapped
from agent_terminal_app.errors import CommandError
from agent_terminal_app.first_run.ask import hold, open_ask
from agent_terminal_app.first_run.welcome import greeting, later, missing_key, missing_weights
from agent_terminal_app.logs import keep_off_the_screen, stop_log
from agent_terminal_app.output import is_terminal
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings.trust import (
    changes,
    leave_alone,
    leave_folder_alone,
    read_project,
    trust_file,
    trust_folder,
    undecided_instructions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_app import AgentApplication
    from agent_terminal_app.application import Opened
    from agent_terminal_app.chat.rendering.screen import Screen
    from agent_terminal_app.first_run.ask import Ask
    from agent_terminal_app.settings import Settings
    from agent_terminal_app.settings.files import ConfigFile

DEMO = "A demonstration: no model, nothing is kept. /help lists the commands."
"""What is said before a demonstration."""
YES, NOT_NOW = "Use them until they change", "Continue without them"
ALWAYS = "Use them, also when they change"
NEVER = "Never use them, and do not ask again"


def talk(
    model: str | None = None,
    default_agent: str | None = None,
    session: str | None = None,
    *,
    prompt: str = "",
    last: bool = False,
    demo: bool = False,
    plain: bool = False,
    server: str | None = None,
) -> int:
    """Run a chat until the user leaves, and return the exit code.

    Args:
        prompt: What is said first.
        session: The session to continue: its id, the beginning of it, or its title.
        last: Continue the last session of this folder.
        demo: Talk to a demonstration in place of a model; nothing is kept.
        plain: No colours and nothing that moves.
        server: The address of a server whose agents and sessions are used, in place of this user's own.

    Raises:
        CommandError: If there is no such session.
    """
    if demo:
        return _talk(_open_demo, [DEMO], session, prompt, last=last, plain=plain)
    if server is not None:
        return _talk_to_server(server, session, prompt, plain=plain)
    opened = _open(model, default_agent, plain=plain)
    settings = opened.settings
    plain = plain or bool(settings.values["ui"]["plain"])
    open_app = partial(opened.application, titles=True)
    return _talk(open_app, greeting(settings), session, prompt, last=last, plain=plain, opened=opened)


def _talk_to_server(server: str, session: str | None, prompt: str, *, plain: bool) -> int:
    """Run a chat with the agents of a server; of the settings of this computer, those of the screen count."""
    from agent_terminal_app.remote import connect_chat  # few chats have one

    opened = open_quietly()
    show_warnings(opened.settings)
    plain = plain or bool(opened.settings.values["ui"]["plain"])
    application = connect_chat(server, opened.paths)
    about = [f"The agents of {server}. /help lists the commands."]
    return _talk(lambda: application, about, session, prompt, last=False, plain=plain, screen_of=opened)


def _open(model: str | None, default_agent: str | None, *, plain: bool) -> Opened:
    """Return the settings; the user is asked about those of the project, or warned if nobody can be asked."""
    opened = open_quietly(model=model, default_agent=default_agent)
    says = undecided_instructions(opened.paths, Path.cwd())
    if (opened.settings.untrusted is not None or says) and has_user():
        opened = hold(partial(ask_about_project, open_ask(plain=plain), opened))
        if says:
            hold(partial(ask_about_instructions, open_ask(plain=plain), opened, says))
    else:
        show_warnings(opened.settings)
    return opened.with_model(model)


def _open_demo() -> AgentApplication:
    stop_log()
    keep_off_the_screen()
    return open_demo()


def has_user() -> bool:
    """Say whether somebody sits at a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


# The project's settings


async def ask_about_project(ask: Ask, opened: Opened) -> Opened:
    """Ask whether to use the project's settings, unless that is decided, and return what holds then.

    What is trusted is what was shown, byte for byte. Nobody is asked about a file that cannot be used anyway.
    """
    if opened.settings.untrusted is None:
        return opened
    try:
        file = read_project(opened.paths, Path.cwd())
    except CommandError as error:
        ask.tell(f"! {error}; it is ignored")
        return opened
    title = "\n".join([f"{file.path} wants to change settings:", *changes(file)])
    number = await ask.choose(f"{title}\nUse these settings?", [NOT_NOW, YES, NEVER])
    return _decided(opened, file, number)


async def ask_about_instructions(ask: Ask, opened: Opened, says: list[str]) -> None:
    """Ask whether what a project says may reach the model, and write the answer down."""
    title = "\n".join(["This project has instructions for the agent:", *(f"  {line}" for line in says)])
    match await ask.choose(f"{title}\nDo you trust this project?", [NOT_NOW, ALWAYS, NEVER]):
        case 1:
            trust_folder(opened.paths, Path.cwd())
        case 2:
            leave_folder_alone(opened.paths, Path.cwd())


def _decided(opened: Opened, file: ConfigFile, number: int | None) -> Opened:
    match number:
        case 1:
            trust_file(opened.paths, file)
        case 2:
            leave_alone(opened.paths, file)
        case _:
            return opened
    return opened.again()


# The screen


def _talk(
    open_app: Callable[[], AgentApplication],
    first_lines: list[str],
    session: str | None,
    prompt: str,
    *,
    last: bool,
    plain: bool,
    opened: Opened | None = None,
    screen_of: Opened | None = None,
) -> int:
    """Greet, and talk until the user leaves.

    Args:
        prompt: What is said first.
        opened: The settings, and where what is typed is kept; None if nothing is.
        screen_of: The settings of the screen, where no others count.
    """
    screen_settings = opened or screen_of
    theme = "auto" if screen_settings is None else screen_settings.settings.values["ui"]["theme"]
    use_theme(theme)
    screen: Screen = TextScreen(color=wants_color(sys.stdout, plain=plain or theme == NO_COLOURS))
    if session or last:  # nobody is greeted who cannot be let in
        open_app, session, about = _resumed(open_app, session)
        first_lines = [*first_lines, *filter(None, [about])]
    for line in first_lines:
        for row in wrapped(line, screen.width):
            screen.line(row)
    if not has_user() or plain or is_dumb():
        return _in_lines(open_app, screen, session, prompt, None if opened is None else opened.settings)
    return _in_terminal(open_app, session, prompt, opened, color=screen.color)


def _resumed(
    open_app: Callable[[], AgentApplication], session: str | None
) -> tuple[Callable[[], AgentApplication], str, str]:
    """Return the application, open already, the session, and a line if a later one is elsewhere."""
    application = open_app()
    try:
        found, about = (
            (views.find_session(application, session), "")
            if session
            else views.last_session_here(application)
        )
    except BaseException:
        application.close()
        raise
    return (lambda: application), found.id, about


def _in_terminal(
    open_app: Callable[[], AgentApplication],
    session: str | None,
    prompt: str,
    opened: Opened | None,
    *,
    color: bool,
) -> int:
    gc.disable()  # while modules are loaded there is nothing to collect, and the prompt would wait for it
    paths = Paths.of_this_user() if opened is None else opened.paths
    keys = chat.load_keys(paths.keyboard)

    async def talk_there() -> int:
        asyncio.get_running_loop().call_soon(gc.enable)  # our turn comes when the prompt waits for a key
        screen = chat.PromptScreen(color=color)
        appearance = None if opened is None else chat.Appearance.of(opened.settings.values["ui"])
        talk = chat.Chat(open_app, screen, session, keys, appearance)
        if opened is None:
            return await chat.run_prompt(talk, None, prompt)
        findings = asyncio.create_task(_show_findings(screen, opened.settings))
        try:
            return await chat.run_prompt(talk, paths.typed, prompt)
        finally:
            findings.cancel()

    return asyncio.run(talk_there())


async def _show_findings(screen: Screen, settings: Settings) -> None:
    """Show what is found out while the user types already."""
    async for line in later(settings):
        for row in wrapped(line, screen.width):
            screen.line(row)


def _in_lines(
    open_app: Callable[[], AgentApplication],
    screen: Screen,
    session: str | None,
    prompt: str,
    settings: Settings | None,
) -> int:
    if settings is not None:
        for line in filter(None, (missing_weights(settings), missing_key(settings))):
            screen.line(line)
    return asyncio.run(chat.run_in_lines(chat.Chat(open_app, screen, session), first=prompt))
