"""Commands that the user, or a project that the user trusts, has written as Markdown files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from agent_app.custom_commands import FOLDERS, find_commands
from agent_core import AgentError
from agent_plugin_kit.trust import project_top
from agent_terminal_app.chat.attachments import gather
from agent_terminal_app.chat.commands.registry import Command, Talk, finder, fixed_names, suggester
from agent_terminal_app.chat.rendering.text import one_line
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings.trust import trusted_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app.custom_commands import CustomCommand
    from agent_terminal_app.chat.conversation import Conversation

GROUP = "Your commands"


def own_commands(conversation: Conversation) -> dict[str, CustomCommand]:
    """Return the commands that are there now; called in a thread."""
    return find_commands(_folders(conversation.folder()))


def _folders(folder: Path) -> Iterator[Path]:
    """Yield where commands are: in the project, if the user trusts it, and in the user's own places."""
    paths, top = Paths.of_this_user(), project_top(folder)
    if str(top.resolve()) in trusted_folders(paths):
        for place in dict.fromkeys((folder, top)):
            yield from (place / name for name in FOLDERS)
    yield paths.config / "commands"
    yield Path.home() / ".claude" / "commands"


@finder
async def find_custom(talk: Talk, name: str) -> Command | None:
    """Return the command of that name, if somebody has written one."""
    found = (await asyncio.to_thread(own_commands, talk.conversation)).get(name)
    if found is None:
        return None

    async def run(talk: Talk, rest: str) -> None:
        if found.problem:
            raise AgentError(f"/{name} cannot be used: {found.problem} ({found.path})")
        text = found.prompt(rest)
        gathered = await gather(talk.conversation, text)
        talk.note(f"{_short(found.path)}: {one_line(text, 80)}")
        talk.send(text, gathered.attached)

    details = f"The prompt in {found.path}. It is sent as if you had typed it."
    return Command(
        name=name,
        run=run,
        about=one_line(found.description, 80),
        group=GROUP,
        takes=one_line(found.takes, 40),
        details=details,
        idle=True,
    )


@suggester
def suggest_custom(conversation: Conversation) -> list[tuple[str, str]]:
    """Return the names, for completion."""
    taken = fixed_names()
    found = (one for one in own_commands(conversation).values() if one.name not in taken)
    return [(one.name, one_line(f"{one.takes} {one.description}".strip(), 80)) for one in found]


def _short(path: Path) -> str:
    """Return a path as seen from the folder of the chat."""
    folder = Path.cwd()
    return one_line(path.relative_to(folder) if path.is_relative_to(folder) else path)
