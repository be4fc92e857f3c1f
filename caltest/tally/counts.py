"""A statistic of a tally, as a function of numbers of events, and draws of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from caltest.binning import QuantileBins
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.simulate import RedrawLabels, Scheme, Shortcut
from caltest.statistics.cells import CellLaw
from caltest.statistics.prepared import Law, Prepared
from caltest.statistics.regression import ScaledGaps
from caltest.tally.binomials import binomials
from caltest.tally.cells import MicroCells, TalliedCells

#: Values for numbers of events (B, C).
Value = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Tallied(Prepared):
    """A statistic of a tally, as a function of the numbers of events in its micro-cells.

    ``observed`` is the value of the rows themselves, ``inner`` what offers limit laws and cell
    laws; in draws, the events of a micro-cell have its mean prediction.
    """

    value: Value = field(repr=False)
    observed: float
    inner: Prepared | None = field(default=None, repr=False)
    remark: str = field(default="", kw_only=True)

    @property
    def said(self) -> tuple[str, ...]:
        """Where the numbers come from, and what of them is as fine as the cells only."""
        said = [f"from sums over {cast(Any, self.data).said}"]
        if self.cells is not None and isinstance(self.cells.bins, QuantileBins):
            said.append("bins are of equal mass up to the rows of a micro-cell")
        return (*said, *filter(None, [self.remark]))

    def __call__(self, labels: IntArray) -> float:
        return self.observed

    def batch(self, labels: Any) -> FloatArray:
        """Return the values for numbers of events (B, C)."""
        return self.value(labels) + self._within

    @cached_property
    def _within(self) -> float:
        """What the rows add to the value of cells; added to draws, too, so that ties are ties."""
        return self.observed - float(self.value(self.data.labels[None, :].astype(np.float64))[0])

    def cell_law(self) -> CellLaw | None:
        """Return how the value is made of cell counts, where their law can be computed."""
        lawful = isinstance(self.cells, TalliedCells) and self.cells.lawful
        return self.inner.cell_law() if self.inner is not None and lawful else None

    def laws(self) -> Mapping[str, Law]:
        """Return the limit laws, by name."""
        return self.inner.laws() if self.inner is not None else {}

    def doubt(self) -> str | None:
        """Return why the limit law is known to fail in data such as these, if it is."""
        expected = cast(Any, self.data).surprising
        enough = 0.0 if self.inner is None else self.inner.enough
        against = self.inner.against if isinstance(self.inner, ScaledGaps) else None
        if against is not None or expected >= enough:
            return against
        return f"only {expected:.2g} surprising outcomes are expected, it takes {enough:g}"

    def fast(self, scheme: Scheme) -> Shortcut | None:
        """Return what draws numbers of events in place of labels."""
        if not isinstance(scheme, RedrawLabels):
            raise StatisticError(f"{scheme!r} draws rows, which a tally does not have")
        return cast(Shortcut, cast(Any, self.data).drawn(self.batch))


@dataclass(frozen=True, eq=False)
class Counts:
    """Draws of the numbers of events in the micro-cells of a calibrated model.

    They are binomial with the mean prediction of the cell; its spread makes the true variance
    smaller by 10⁻⁵ of itself at most, on the usual grid.
    """

    micro: MicroCells
    value: Value

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …, ``first + count − 1``."""
        p, rest = np.clip(self.micro.probs, 0.0, 1.0).T
        rows = self.micro.count.astype(np.int64)
        at_once = max(1, 2**22 // rows.size)
        values = []
        for start in range(first, first + count, at_once):
            some = min(at_once, first + count - start)
            values.append(self.value(binomials(rows, p, rest, seed, start, some)))
        return np.concatenate(values)
