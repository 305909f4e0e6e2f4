"""For operators, plugin authors and tests: what a store acknowledged, and checks of application plugins."""

from agent_app.testing.conformance import ApplicationConformance
from agent_app.testing.ledger import Comparison, Ledger

__all__ = ["ApplicationConformance", "Comparison", "Ledger"]
