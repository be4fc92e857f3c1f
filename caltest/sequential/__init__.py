"""Looking while the data come in: monitors, whose evidence may be read at any time."""

from caltest.sequential.comparison import ComparisonMonitor
from caltest.sequential.monitor import Monitor

__all__ = ["ComparisonMonitor", "Monitor"]
