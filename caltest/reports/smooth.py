"""The flexible curve of a clinical report: lowess, with a band at each prediction."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.special import stdtrit

from caltest._base.arrays import FloatArray
from caltest.errors import StatisticError
from caltest.problem import RowProblem
from caltest.reliability.view import View, spread
from caltest.results import ReliabilityFit
from caltest.statistics import ICI
from caltest.statistics.ici import SmoothGaps

#: A smooth curve takes half a kB a row: more rows than this go without.
MOST_SMOOTHED = 200_000
#: With fewer independent rows or clusters than this there is no band.
FEWEST = 5


def lowess(view: View, level: float) -> ReliabilityFit:
    """Fit the curve of :class:`caltest.ICI`, with pointwise confidence limits.

    A value of the curve is Σ_i s_i y_i. Its variance is G / (G − 1) · Σ_g (Σ_{i in g} s_i r_i)²,
    r_i the residuals from the curve and g the clusters, or the rows where there are none (Liang &
    Zeger, Biometrika 73, 1986); the limits are those of t with G − 1 degrees of freedom.
    """
    if view.from_sums:
        raise StatisticError("a smooth curve needs the rows, and a tally has none")
    data = view.induced
    if data.followup is not None:
        raise StatisticError("lowess needs every outcome, and follow-up ends before some")
    if data.n > MOST_SMOOTHED:
        raise StatisticError(f"left out above {MOST_SMOOTHED} rows: it takes too much room")
    units = data.n if data.n_clusters is None else data.n_clusters
    if units < FEWEST:
        raise StatisticError(f"a smooth curve with a band needs {FEWEST} rows or clusters")
    gaps = ICI().prepare(RowProblem(data))
    fitted = gaps.smoother @ _events(gaps)
    half = _error(gaps, np.interp(gaps.ordered, gaps.anchors, fitted))
    half *= stdtrit(units - 1, 0.5 + 0.5 * level)
    return ReliabilityFit(
        predicted=gaps.anchors,
        fitted=np.clip(fitted, 0.0, 1.0),
        low=np.clip(fitted - half, 0.0, 1.0),
        high=np.clip(fitted + half, 0.0, 1.0),
        spread=spread(view.units),
        name=view.event,
        subject=view.lens.subject,
        fit="lowess",
        band="confidence",
        level=level,
        simultaneous=False,
        test=None,
        **view.facts,
    )


def _events(gaps: SmoothGaps) -> FloatArray:
    """Return the outcomes in increasing order of the predictions."""
    return np.asarray(gaps.data.labels[gaps.order] == 0, dtype=np.float64)


def _error(gaps: SmoothGaps, curve: FloatArray) -> FloatArray:
    """Return the standard error of the curve at its anchors."""
    residuals = _events(gaps) - curve
    clusters = gaps.data.clusters
    unit = (
        np.arange(curve.size) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    )
    unit = unit.ravel()[gaps.order]
    n_units = int(unit.max()) + 1
    member = csr_array((residuals, (np.arange(unit.size), unit)), shape=(unit.size, n_units))
    sums = (gaps.smoother @ member).power(2).sum(axis=1)
    return np.asarray(np.sqrt(n_units / (n_units - 1.0) * sums))
