"""Many replicates at once, in compiled passes over the rows: the shortcuts of binned errors."""

from caltest.statistics.lanes.classwise import ClasswiseRedraws
from caltest.statistics.lanes.redraws import CellRedraws
from caltest.statistics.lanes.resamples import CellResamples
from caltest.statistics.lanes.rows import RowResamples

__all__ = ["CellRedraws", "CellResamples", "ClasswiseRedraws", "RowResamples"]
