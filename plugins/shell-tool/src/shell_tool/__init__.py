"""A tool that runs commands in bash."""

from shell_tool.tool import ShellTool

__all__ = ["ShellTool"]
