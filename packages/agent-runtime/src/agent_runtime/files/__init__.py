"""Declarations from TOML, YAML and JSON files; what is wrong is told with its file and line.

A file becomes two things: its data, and the *places* of everything in it, a mapping from the way to a value
(`("agents", "helper", "max_rounds")`) to the offset where its key begins. The specs read the data and know
nothing of files. When one of them refuses a field, the field is followed into the data and its place looked
up; what has no place of its own, such as a field that is missing, stands where the nearest thing around it
does.

The standard library's parsers decide what is valid JSON and TOML, but they keep no places. A small walker
goes over the same text and only notes where keys begin. PyYAML's nodes bring their places along.

All formats keep the same rules: no key twice, whole numbers of 64 bits, finite numbers, no dates, and limits
for depth and size that no honest file meets.

| module         | what it does                                             |
|----------------|----------------------------------------------------------|
| `reading`      | files and directories to declarations                    |
| `declarations` | a document to specs                                      |
| `reader`       | one declaration; follows what is wrong back to its place |
| `json_text`    | JSON to a document                                       |
| `toml_text`    | TOML to a document                                       |
| `yaml_text`    | YAML to a document                                       |
| `walking`      | goes over JSON, and the values of TOML, and notes places |
| `refusals`     | what the standard library's parsers refuse, in our words |
| `documents`    | data with places, and how places are kept                |
| `values`       | values that no declaration can hold                      |
| `ways`         | ways through data                                        |
| `problems`     | what is wrong in a text, before its file is known        |
| `limits`       | how much a file may hold                                 |
"""

from agent_runtime.files.limits import MAX_BYTES, MAX_DEPTH, MAX_VALUES
from agent_runtime.files.reading import Declarations, load_specs

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_VALUES", "Declarations", "load_specs"]
