"""Files of a workspace for a model: read, found, changed, and changed back."""

from files_tool.tool import FilesTool
from files_tool.undo import FilesUndo

__all__ = ["FilesTool", "FilesUndo"]
