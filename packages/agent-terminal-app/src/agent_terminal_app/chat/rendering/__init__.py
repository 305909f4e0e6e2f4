"""What is shown, as lines: safe text, Markdown, tool calls, progress; and the screens that show them."""
