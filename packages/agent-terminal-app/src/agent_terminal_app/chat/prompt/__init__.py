"""The prompt, on prompt_toolkit: the input line, its keys and completions, and the lines around it."""
