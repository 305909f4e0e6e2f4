"""`/help` and its like: one small function each, and the actions of plugins beside them.

| module       | its commands                                   |
|--------------|------------------------------------------------|
| `talk`       | what a command works with; none of its own     |
| `registry`   | what a command is; none of its own             |
| `sessions`   | /new /sessions /resume /rename                 |
| `transfer`   | /export /import                                |
| `branches`   | /edit /rewind /fork                            |
| `undoing`    | /undo /redo                                    |
| `compacting` | /compact                                       |
| `copying`    | /copy                                          |
| `models`     | /model /agent                                  |
| `meters`     | /cost /context                                 |
| `plugins`    | /tools /plugins                                |
| `actions`    | /actions, and every action by its name         |
| `outcomes`   | what came of an action; none of its own        |
| `follow_ups` | /1 to /8, what a card offers                   |
| `permissions`| /permissions                                   |
| `settings`   | /config                                        |
| `setup`      | /setup                                         |
| `about`      | /help /doctor /quit                            |
"""

# Importing a module registers its commands; they are listed in this order.
from agent_terminal_app.chat.commands import (  # noqa: I001 - the order is that of /help
    sessions as sessions,
    transfer as transfer,
    branches as branches,
    undoing as undoing,
    compacting as compacting,
    copying as copying,
    models as models,
    meters as meters,
    plugins as plugins,
    actions as actions,
    follow_ups as follow_ups,
    permissions as permissions,
    settings as settings,
    setup as setup,
    about as about,
)
from agent_terminal_app.chat.commands.registry import COMMANDS, Quit, Talk, names, run_command

__all__ = ["COMMANDS", "Quit", "Talk", "names", "run_command"]
