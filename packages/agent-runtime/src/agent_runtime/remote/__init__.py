"""Agents that live elsewhere and speak A2A, the open protocol between agents.

What comes from there is a stranger's: a call has a time limit, an answer has a size limit, an address is
checked before it is used, and the token goes nowhere but to the endpoint. The modules that need `a2a-sdk`
and httpx (`network` and `protocol`) are imported by the first call, never by this package.
"""

from agent_runtime.remote.agent import (
    RemoteAgent,
    RemoteAgentError,
    RemoteDelegateTool,
    RemoteReply,
    RemoteTask,
    discover,
)

__all__ = ["RemoteAgent", "RemoteAgentError", "RemoteDelegateTool", "RemoteReply", "RemoteTask", "discover"]
