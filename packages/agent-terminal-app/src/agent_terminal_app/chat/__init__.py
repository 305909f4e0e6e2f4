"""The chat: a prompt to type into, the conversation with an agent, and the lines on the screen.

| room           | what is in it                                                                       |
|----------------|-------------------------------------------------------------------------------------|
| `loop`         | the chat as a whole: takes each line and decides what happens with it               |
| `plain`        | the same chat without a prompt: for pipes and plain terminals                       |
| `conversation` | one session of the application: say, queue, take back, interrupt                    |
| `work`         | the agent at work: one request after the other, and sessions in use elsewhere       |
| `queue`        | messages that wait to be delivered                                                  |
| `agent`        | which agent and model answer, and the tools that depend on the model                |
| `usage`        | tokens and cost of a session                                                        |
| `attachments`  | files, pictures and @mentions that go with a message                                |
| `shell`        | `!command`, run in the user's own shell                                             |
| `keymap`       | what keys do, and `keys.toml`                                                       |
| `clipboard`    | copying to the terminal's and the desktop's clipboard                               |
| `questions/`   | what the agent or a command asks: approvals, the edit mode, dialogues               |
| `commands/`    | `/help` and the other slash commands                                                |
| `rendering/`   | text, Markdown, tool calls and progress as lines of a screen                        |
| `prompt/`      | the prompt itself, on prompt_toolkit: keys, completion, layout, pager               |

Models and their keys are in `agent_app.catalogue`, context windows in `agent_app.context_windows`: other
front ends need them as well.

`prompt/` is the only room that needs prompt_toolkit, and the modules of `commands/` are
loaded by `commands.registry.load_commands` once the prompt is there. The names below are loaded when they are
first used. So `agent` starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.lazy import lazy_names

if TYPE_CHECKING:
    from agent_terminal_app.chat.appearance import Appearance
    from agent_terminal_app.chat.keymap import load_keys
    from agent_terminal_app.chat.loop import Chat
    from agent_terminal_app.chat.plain import run_in_lines
    from agent_terminal_app.chat.prompt.prompt import PromptScreen, run_prompt

__all__ = ["Appearance", "Chat", "PromptScreen", "load_keys", "run_in_lines", "run_prompt"]

HOMES = {
    "agent_terminal_app.chat.appearance": ("Appearance",),
    "agent_terminal_app.chat.keymap": ("load_keys",),
    "agent_terminal_app.chat.loop": ("Chat",),
    "agent_terminal_app.chat.plain": ("run_in_lines",),
    "agent_terminal_app.chat.prompt.prompt": ("PromptScreen", "run_prompt"),
}
__getattr__ = lazy_names(__name__, HOMES)
