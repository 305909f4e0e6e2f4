"""The first run: what could answer besides the embedded model, and how a user connects it.

::

    connections   what can answer: providers, services, servers on this machine; and what of it is there
    ask           how a user is asked, in plain lines or a terminal
    terminal      the questions in a terminal, with completion
    models        a provider is asked for its models
    draft         what was chosen so far, and how it is saved: all of it or nothing
    dialogue      from nothing to a complete draft, step by step
    welcome       what a user reads first
    weights       the file that the embedded model needs
"""
