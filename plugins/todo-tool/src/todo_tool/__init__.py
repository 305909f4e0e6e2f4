"""A plan that the agent keeps and the person sees."""

from todo_tool.feature import TodoTool

__all__ = ["TodoTool"]
