"""How many rows are needed, and what may be wrong with a model."""

from caltest.planning.plan import plan
from caltest.planning.population import Bump, LogisticNormal, Shift, Slope

__all__ = ["Bump", "LogisticNormal", "Shift", "Slope", "plan"]
