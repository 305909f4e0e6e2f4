"""The first run: what is there beside the embedded model, and how a person connects it.

::

    connections   what can answer: providers, services, servers on this machine
    looking       what of it is there: keys in the environment, stored keys, servers that listen
    greeting      what a person reads first
    asking        the four ways to ask a person something
    lines         asking in plain lines
    terminal      asking in a terminal, with keys and completion
    draft         what is known so far of what shall be connected
    checking      the provider is asked for its models
    choosing      which model is recommended
    dialogue      from nothing to a draft that is complete, step by step
    saving        the draft written, all of it or nothing
    weights       the file that the embedded model needs
    trusting      whether the settings of a project shall count
"""
