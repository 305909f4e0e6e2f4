"""For operators and tests: a record of what a store acknowledged, to compare with the store."""

from agent_app.testing.ledger import Comparison, Ledger

__all__ = ["Comparison", "Ledger"]
