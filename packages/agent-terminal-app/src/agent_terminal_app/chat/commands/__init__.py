"""`/help` and the other commands of the chat, one small function each; plugin actions are commands too.

| module     | its commands                                                       |
|------------|--------------------------------------------------------------------|
| `registry` | what a command is and works with; none of its own                  |
| `sessions` | /new /sessions /resume /rename /export /import                     |
| `branches` | /edit /rewind /fork /undo /redo /compact                           |
| `messages` | /copy /show /attach /template                                      |
| `models`   | /model /agent /cost /context                                       |
| `plugins`  | /tools /plugins /permissions                                       |
| `cards`    | what an action shows: a title, a body, follow-ups to choose from   |
| `offers`   | the actions that plugins offer, and the forms for their inputs     |
| `actions`  | /actions, every action by its name, /1 to /8 for follow-ups        |
| `program`  | /config /theme /setup /help /commands /status /doctor /quit        |
"""
