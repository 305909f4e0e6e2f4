"""For whoever runs the platform: a record of what a store acknowledged, to hold against the store."""

from agent_app.testing.comparison import Comparison
from agent_app.testing.ledger import Ledger

__all__ = ["Comparison", "Ledger"]
