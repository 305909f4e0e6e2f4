"""The parts of `AgentApplication`, one idea a module; each method in two forms, from one flow.

::

    base       what every part works with
    sessions   sessions and their agents: made, read, listed, branched, moved
    talking    requests, and messages that come while one goes on
    deciding   approvals, and what was granted for longer
    actions    actions and lifecycles of plugins
    following  the event log
"""
