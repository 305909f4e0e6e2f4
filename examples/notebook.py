# %% [markdown]
# An agent in a notebook. Open this file in Jupyter or VS Code: cells begin with `# %%`.

# %%
import os

from agent_runtime import Agent

get_ipython().run_line_magic("load_ext", "agent_runtime.notebook")

prices = {"tea": 3.5, "coffee": 4.0}


def price(drink: str) -> float:
    """Return the price of a drink."""
    return prices[drink]


barista = Agent(
    os.environ.get("MODEL", "local"), tools=[price], instructions="You know the prices of a café."
)

# %% [markdown]
# A cell that begins with `%%agent` is said to the agent; its answer is shown as it comes.

# %%
get_ipython().run_cell_magic("agent", "barista", "What does tea cost?")

# %%
result = get_ipython().run_cell_magic("agent", "barista", "And coffee?")
result  # shown with its tokens and costs
