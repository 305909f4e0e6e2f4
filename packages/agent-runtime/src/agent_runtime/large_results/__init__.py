"""Large results: one budget for what a model reads of a tool call, text and images alike.

::

    cutting   what of a result fits, and what is left out
    keeping   where that goes, and how it is read again
    plugin    the agent's `results` section: the budget, and the tool that pages

Every tool's results pass here, so no tool needs a limit of its own. Nothing is thrown away while there is an
asset store: the model is told how to read on, and a front end finds the whole under `left_out` in the
message's metadata.
"""

from agent_runtime.large_results.plugin import LargeResultsPlugin

__all__ = ["LargeResultsPlugin"]
