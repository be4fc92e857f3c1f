"""Evidence that may be read after every row."""

from .forecasters import ComparisonMonitor as ComparisonMonitor
from .monitor import Monitor as Monitor
