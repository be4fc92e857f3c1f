"""Many replicates at once of a binned error with redrawn labels: one fused, compiled pass.

Replicates are the lanes of the inner loops. A row is visited once for a whole block of lanes: one
random word for each gives its label, counts are kept by class, and a finished cell is added to the
statistic of every lane before the next one starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caltest._numba import kernel
from caltest.distances import NAMED
from caltest.predictions import FloatArray, IntArray

if TYPE_CHECKING:
    from caltest.statistics.binned import Cells

#: Up to this many classes every threshold of a row is compared, above they are looked up.
LADDER_CLASSES = 40
#: Replicates that share a pass over the rows. No number depends on it.
LANES = 128

# Uniforms are multiples of 2⁻⁵³, as NumPy's: u < c means 2⁵³ u < ⌈2⁵³ c⌉ in whole numbers.
BITS = 53
WHOLE = 1 << BITS

# A replicate's key is two words of Philox (Salmon et al. 2011), a bijection of seed and number. Its
# rows are counted by SplitMix64 (Steele et al. 2014) with the second word mixed in half-way: the
# streams of two replicates cannot overlap, as a shift would also need equal second words.
GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, eq=False)
class CellRedraws:
    """The null of a binned error: fixed predictions and cells, labels drawn from the predictions.

    T = Σ_b (n_b / n) · d(counts_b / n_b, sums_b / n_b), or the largest d for ``combine="max"``,
    where row i adds to the counts of its cell the first class whose cumulative probability exceeds
    U(seed, replicate, i). The uniforms have 53 bits, so labels have the law of
    :class:`~caltest.resampling.LabelSampler`, and a class of probability 0 is never drawn.

    Notes
    -----
    O(n K) once. A replicate costs O(n K + L K) up to 40 classes, in vector instructions (some
    0.1 ns per row and class), and O(n) for more: indexed search (Chen & Asau 1974) in a table of
    8 K to 16 K bytes per row. The labels of a replicate do not depend on the cells, so that
    statistics with the same seed see the same labels.
    """

    order: IntArray = field(repr=False)
    starts: IntArray = field(repr=False)
    sums: FloatArray = field(repr=False)
    thresholds: IntArray = field(repr=False)
    guide: NDArray[np.int32] = field(repr=False)
    distance: str
    combine: str

    @classmethod
    def of(cls, cells: Cells, probs: FloatArray) -> CellRedraws:
        """Prepare the cells of a named distance; ``probs`` are the predictions they group."""
        if not isinstance(cells.distance, str):
            raise TypeError(f"compiled redraws need a named distance, not {cells.distance!r}")
        n, n_classes = probs.shape
        width = 1 << (n_classes - 1).bit_length() if n_classes > LADDER_CLASSES else 0
        order = np.ascontiguousarray(cells.order, dtype=np.int64)
        thresholds = np.empty((n, n_classes), dtype=np.int64)
        guide = np.empty((n, width), dtype=np.int32)
        _tables(np.ascontiguousarray(probs, dtype=np.float64), order, thresholds, guide)
        starts = np.ascontiguousarray(cells.starts, dtype=np.int64)
        sums = np.ascontiguousarray(cells.sums, dtype=np.float64)
        return cls(order, starts, sums, thresholds, guide, cells.distance, cells.combine)

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``.

        Each depends on the seed, two numbers below 2⁶⁴, and its own number only, hence not on how
        a run is cut into calls or spread over threads.
        """
        code = list(NAMED).index(self.distance)
        largest = self.combine == "max"
        values = np.zeros(count)
        if self.guide.size == 0:
            for a in range(0, count, LANES):
                part = values[a : a + LANES]
                keys = _keys(seed, first + a, part.size)
                _ladder_errors(
                    self.thresholds, self.order, self.starts, self.sums, *keys, code, largest, part
                )
            return values
        biggest = int(np.diff(self.starts).max())
        lanes = max(8, min(2 * LANES, 2**22 // biggest))  # labels of a cell: some 16 MB
        base = self._base(code)
        for a in range(0, count, lanes):
            part = values[a : a + lanes]
            labels = np.empty((part.size, biggest), dtype=np.int32)
            keys = _keys(seed, first + a, part.size)
            _lookup_errors(
                self.thresholds, self.guide, self.order, self.starts, self.sums, *base, *keys,
                code, largest, labels, part,
            )  # fmt: skip
        return values
