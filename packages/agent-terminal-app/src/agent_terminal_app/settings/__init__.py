"""Settings from several places, each value with where it came from.

There are five layers, and a later one overrides an earlier one: defaults, the user's file, the project's
file (once the user trusts it), the environment, flags. Tables are merged key by key, anything else is
replaced. Only the lists of permissions, also those of an agent, add up, and a `default = "deny"` there
stays, so that no layer can drop a rule of another.

A file is strict: an unknown key, a value of the wrong type or a secret in it is refused with its line. The
readers of `agent_runtime` decide what is valid; they are loaded only for the sections they read. Line numbers
are looked up only when they are asked for, since most starts never need them.

| module     | what it does                                             |
|------------|----------------------------------------------------------|
| `keypaths` | dotted keys, and the values they lead to                 |
| `files`    | a file to values, the line of each, and back to the disk |
| `secrets`  | keys that anybody could read, and references to them     |
| `rules`    | what a file may say, also as JSON Schema for editors     |
| `trust`    | which projects may change settings, and what that could do |
| `layers`   | all of it read for one start, with the origin of each value |
| `changes`  | values changed, everything else kept as it was           |
| `plugins`  | settings checked against the plugins they are for        |
"""

from agent_terminal_app.settings.changes import Change, set_value, unset_value
from agent_terminal_app.settings.layers import Settings, load_settings
from agent_terminal_app.settings.rules import settings_schema
from agent_terminal_app.settings.trust import trust_project

__all__ = [
    "Change",
    "Settings",
    "load_settings",
    "set_value",
    "settings_schema",
    "trust_project",
    "unset_value",
]
