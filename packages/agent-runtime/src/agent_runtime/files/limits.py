"""How much a file may hold, so that a hostile one is refused before it costs time or memory.

PyYAML and `tomllib` are written in Python: each takes about a second for a million characters, and PyYAML
another for some ten thousand values. The depth keeps the stack from running out, and the length of a number
keeps PyYAML from reading one in base 60, for which it takes the square of the time.
"""

MAX_BYTES = 1_000_000
"""How large a file may be."""
MAX_VALUES = 20_000
"""How many values a file may hold, those that YAML aliases repeat counted each time."""
MAX_DEPTH = 100
"""How deep the values of a file may be nested."""
MAX_DIGITS = 1_000
"""How many characters a number may have."""
