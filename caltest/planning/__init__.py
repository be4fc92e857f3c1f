"""How many rows are needed, and what may be wrong with a model."""

from caltest.planning.alternatives import Bump, LogisticNormal, Shift, Slope
from caltest.planning.plan import plan

__all__ = ["Bump", "LogisticNormal", "Shift", "Slope", "plan"]
