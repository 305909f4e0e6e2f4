"""What the user is asked: by the agent (approvals) and by commands (dialogues)."""
