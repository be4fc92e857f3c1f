"""Sequential monitoring: evidence that stays valid at every look."""

from .monitor import Monitor as Monitor
from .revisions import Revisions as Revisions
from .watch import ComparisonMonitor as ComparisonMonitor
