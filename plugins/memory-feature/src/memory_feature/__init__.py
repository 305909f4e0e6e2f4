"""Memory: facts that an agent keeps for later sessions, one readable file each.

::

    memory    one memory: its text, its file, and what may not be kept
    folder    the files of one scope: read, added, changed and removed, by several processes at once
    shelf     what a session has: the person's own memories, and those of a trusted project
    tools     remember, recall and forget, for the model
    actions   the same for people: a list to search, add to, change and remove from, with undo
    feature   the plugin
"""

from memory_feature.feature import MemoryFeature
from memory_feature.folder import MemoryFolder
from memory_feature.memory import Memory, MemoryProblem

__all__ = ["Memory", "MemoryFeature", "MemoryFolder", "MemoryProblem"]
