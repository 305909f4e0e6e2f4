"""A research agent: it gives questions to delegates, which work at the same time, and writes a report."""

import os
from dataclasses import dataclass

from agent_runtime import Agent, RunResult, UsageLimits

LIBRARY = {
    "tea": "Tea is made of the leaves of Camellia sinensis. It was first drunk in China.",
    "coffee": "Coffee is made of the roasted seeds of Coffea. It was first drunk in Yemen.",
}


@dataclass
class Report:
    """What was found out.

    Attributes:
        summary: Two sentences.
        sources: The entries that were read.
    """

    summary: str
    sources: list[str]


def look_up(entry: str) -> str:
    """Return an entry of the library."""
    return LIBRARY.get(entry.lower(), f"There is no such entry; there is {', '.join(LIBRARY)}.")


def research(model: object, librarian_model: object, question: str) -> RunResult[Report]:
    librarian = Agent(
        librarian_model,
        name="librarian",
        description="Reads the library and answers one question about one thing.",
        tools=[look_up],
    )
    lead = Agent(
        model,
        name="lead",
        output_type=Report,
        delegates=[librarian],
        instructions="Split the question, give each part to the librarian, and write a report.",
        limits=UsageLimits(requests=20),
    )
    return lead.run(question)


if __name__ == "__main__":
    model = os.environ.get("MODEL", "local")
    result = research(model, model, "Compare tea and coffee.")
    print(result.output.summary, result.output.sources, f"{result.usage.total_tokens} tokens", sep="\n")
