"""Agents that live elsewhere and speak A2A, the open protocol between agents.

What comes from there is a stranger's: a call has a time limit, an answer has a size limit, an address is
looked at before it is used, and the token goes nowhere but to the endpoint. The modules that need
`a2a-sdk` and httpx (`addresses` up to `calls`) are imported by the first call, never by this package.
"""

from agent_runtime.remote.agent import RemoteAgent
from agent_runtime.remote.discovery import discover
from agent_runtime.remote.errors import RemoteAgentError
from agent_runtime.remote.reply import RemoteReply
from agent_runtime.remote.tool import RemoteDelegateTool

__all__ = ["RemoteAgent", "RemoteAgentError", "RemoteDelegateTool", "RemoteReply", "discover"]
