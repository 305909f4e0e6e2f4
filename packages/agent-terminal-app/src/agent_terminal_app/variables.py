"""Variables of the environment that the command itself heeds, whatever it is asked to do."""

LOG_LEVEL = "AGENT_LOG_LEVEL"
"""Says how much is logged, where no flag does."""
COMPLETING = "_AGENT_COMPLETE"
"""Set by shells that want completions, and nothing else."""
