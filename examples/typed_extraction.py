"""Typed extraction: an invoice becomes an object; what does not add up goes back to the model."""

import os
from dataclasses import dataclass

from agent_runtime import Agent, ModelRetry


@dataclass
class Line:
    what: str
    price: float


@dataclass
class Invoice:
    """An invoice.

    Attributes:
        number: As printed, with its letters.
        lines: What was bought.
        total: As printed at the end.
    """

    number: str
    lines: list[Line]
    total: float


def extractor(model: object) -> Agent[None, Invoice]:
    agent = Agent(model, output_type=Invoice, instructions="Read the invoice exactly as it is printed.")

    @agent.output_validator
    def adds_up(invoice: Invoice) -> Invoice:
        total = sum(line.price for line in invoice.lines)
        if abs(total - invoice.total) > 0.005:
            raise ModelRetry(f"the lines add up to {total:.2f}, and the total is {invoice.total:.2f}")
        return invoice

    return agent


TEXT = "Invoice A-17. Green tea 4.50, cups 12.00. Total 16.50 euros."

if __name__ == "__main__":
    print(extractor(os.environ.get("MODEL", "local")).run(TEXT).output)
