"""`AgentCore`, the public face: each part of it is a module of `agent_core.face`."""

from __future__ import annotations

from agent_core.face.actions import Actions
from agent_core.face.front_ends import FrontEnds
from agent_core.face.requests import Requests
from agent_core.face.sessions import Sessions
from agent_core.face.tools import ToolCalls


class AgentCore(Sessions, Requests, ToolCalls, Actions, FrontEnds):
    """A stateless pipeline: sessions and configurations go in, new sessions come out.

    A core holds registered plugins and nothing that belongs to a request, so one core serves any
    number of requests at once, in threads and on event loops.

    Args:
        model_cache: Where discovered models are remembered; pass one to several cores to share it.
    """
