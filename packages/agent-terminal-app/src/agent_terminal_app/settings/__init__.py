"""Settings from several places, each value with where it came from.

Five layers, the later counting more: defaults, the person's file, the project's file (once somebody trusted
it), the environment, flags. Tables are merged key by key, anything else is replaced; only the lists of
permissions, those of an agent among them, add up, and a `default = "deny"` there stays, so that no layer can
drop a rule of another.

A file is strict: a key that nobody knows, a value of the wrong kind or a key of a provider in it is refused
with its line. What is right is decided by the readers of `agent_runtime`, which are loaded only for the
sections they read; the lines are looked up only when somebody asks for them, for most starts never do.

| module     | what it does                                             |
|------------|----------------------------------------------------------|
| `ways`     | dotted keys, and the values they lead to                 |
| `sources`  | a file to values, and the line of each                   |
| `faults`   | what no layer may say                                    |
| `secrets`  | keys that stand where anybody may read, and references   |
| `layers`   | one over the other, and where each value came from       |
| `trust`    | which projects may change settings                       |
| `reach`    | what each setting can run, read or send                  |
| `loading`  | all of it, for one start                                 |
| `schema`   | the same rules as JSON Schema, for editors               |
| `writing`  | values changed, everything else kept as it was           |
| `replacing`| files written whole or not at all                        |
"""

from agent_terminal_app.settings.loading import Settings, load_settings
from agent_terminal_app.settings.schema import settings_schema
from agent_terminal_app.settings.trust import trust_project
from agent_terminal_app.settings.writing import Change, set_value, unset_value

__all__ = [
    "Change",
    "Settings",
    "load_settings",
    "set_value",
    "settings_schema",
    "trust_project",
    "unset_value",
]
