"""Tallies: sums over micro-cells, of any number of rows, from which exact answers follow."""

from caltest.tally.cells import MicroCells, TalliedCells
from caltest.tally.counts import Counts, Tallied
from caltest.tally.files import scan
from caltest.tally.statistics import by_residuals, tallied
from caltest.tally.tally import Tally

__all__ = [
    "Counts",
    "MicroCells",
    "Tallied",
    "TalliedCells",
    "Tally",
    "by_residuals",
    "scan",
    "tallied",
]
