"""The chat: what is typed, what is shown, and the conversation between them.

What is said and done:

| module         | what it has                                                              |
|----------------|--------------------------------------------------------------------------|
| `loop`         | all of it together: a line comes in, and something happens               |
| `work`         | the agent at work: what it does, what waits for it, what it asks         |
| `conversation` | one session of the application: say, queue, take back, interrupt         |
| `waiting`      | messages that wait, as people see them                                   |
| `approvals`    | what the agent asks, and what a line means as an answer                  |
| `modes`        | whether it asks before it edits files                                    |
| `held`         | a session that another process has                                       |
| `model_tools`  | tools that follow the model                                              |
| `wanted_calls` | what the model wanted of a call that was refused                         |
| `commands`     | /help and its like; `dialogue` runs one, `own_commands` are this screen's |
| `shelling`     | !command; `shell_line` runs it                                           |
| `gathering`    | what goes with a message: `attachments`, `mentions`, `workspace`         |

What is shown:

| module         | what it has                                                              |
|----------------|--------------------------------------------------------------------------|
| `rendering`    | the events of a run as lines; `remarks` are the chat's own               |
| `folds`        | what is one line and can be opened; `displays` by type                   |
| `progress`     | what goes on now; `meters` what it costs                                 |
| `markdown`     | text as it arrives; `inline` marks, `grid` tables, `highlight` code      |
| `transcript`   | the whole session as lines; `paging` and `pager` show them               |
| `text`         | text made safe, styled and measured; `themes` its colours, `rows` its width |
| `screen`       | where lines go: a pipe or a terminal; `above` the prompt                 |

What is typed:

| module         | what it has                                                              |
|----------------|--------------------------------------------------------------------------|
| `prompt`       | the prompt; `plain` is the chat without one                              |
| `input_line`   | the line that is typed; `pastes`, `completion`, `typed` before           |
| `key_actions`  | what keys do, and which; `key_names`, `keymap` and `keys.toml`, `bindings` |
| `layout`       | what stands around the prompt; `pane`, `redrawing`, `resizing`           |
| `terminal`     | signals and foreign output; `keyboard`                                   |
"""
