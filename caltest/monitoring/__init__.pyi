"""Sequential monitoring: evidence that stays valid at every look."""

from .forecasters import ComparisonMonitor as ComparisonMonitor
from .monitor import Monitor as Monitor
from .revisions import Revisions as Revisions
