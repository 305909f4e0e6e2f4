"""The chat: what is typed, what is shown, and the conversation between them.

::

    markdown       text as it arrives, shown line by line
    screen         where lines go: a terminal, or a pipe
    rendering      events of a run as lines
    conversation   one session of the application: send, steer, queue, interrupt, decide
    commands       /help and its like
    prompt         what is typed, with keys and completion
    loop           all of it together
"""
