"""What `agent doctor` looks at; it looks and changes nothing.

::

    finding       what a check found, and checks that cannot hold anything up
    setup         configuration, agents, keys, servers: what people set
    places        sessions, log, disk: where things are kept
    program       versions, plugins, the embedded model, the terminal
"""
