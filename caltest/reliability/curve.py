"""Reliability curves: predictions against outcomes, bin by bin, with bars. Numbers only."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from caltest._version import __version__
from caltest.binning import Binning, EdgeBins, UniformBins
from caltest.checks import fraction
from caltest.errors import StatisticError
from caltest.lenses import Lens, TopK, apply
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.reliability.bars import (
    Bars,
    bootstrap_bars,
    confidence_bars,
    consistency_bars,
    resampled_bars,
)
from caltest.reliability.parts import components_of, names_of, own_test
from caltest.resampling import ConsistencyResampling, RedrawLabels, Workers
from caltest.results import ReliabilityCurve
from caltest.results.reliability import CONFIDENCE, SPREAD_EDGES
from caltest.statistics import ECE
from caltest.statistics.binned import Cells
from caltest.written import name_of

Band = (
    Literal["consistency", "confidence", "clopper-pearson", "wilson", "bootstrap"]
    | RedrawLabels
    | ConsistencyResampling
    | None
)
#: Bars that take no simulation.
COMPUTED = ("exact", "clopper-pearson", "wilson", "none")


def reliability_curve(
    probs: Any,
    labels: Any = None,
    *,
    lens: Lens = TopK(1),
    bins: Binning | int = UniformBins(15),
    band: Band = "consistency",
    level: float = 0.9,
    simultaneous: bool = False,
    n_resamples: int = 1999,
    rng: Any = None,
    workers: Workers = 1,
) -> ReliabilityCurve:
    """Compare predictions with outcomes bin by bin: the numbers of a reliability diagram.

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`.
    lens : callable, default TopK(1)
        Which probabilities are looked at. A two-class lens gives one curve, of its event; others
        give one for each induced class: ``TopK(k)`` one for each rank, ``Partition`` one for each
        group, ``Canonical()`` one for each class.
    bins : binning or int, default UniformBins(15)
        As in :class:`ECE`; the same for every curve.
    band : str, RedrawLabels, ConsistencyResampling or None, default "consistency"
        *Consistency* bars, where a calibrated model's frequency lies: ``"consistency"`` computes
        them exactly; ``RedrawLabels()`` and ``ConsistencyResampling()`` simulate them, the latter
        as published. *Confidence* bars, where the true frequency may lie: ``"clopper-pearson"``
        (also called ``"confidence"``), ``"wilson"``, or ``"bootstrap"``, which has no width where
        all outcomes of a bin are alike. None leaves bars out.
    level : float, default 0.9
        Probability that a bar holds what it should.
    simultaneous : bool, default False
        Whether ``level`` is for all bars together. Computed bars use that bins are independent,
        and Bonferroni's inequality over several curves; simulated ones are max-T bars over all of
        them.
    n_resamples, rng, workers
        For simulated bars, and for tests over more than 128 bins.

    Returns
    -------
    ReliabilityCurve

    Raises
    ------
    StatisticError
        When bins, band or level do not fit.

    Notes
    -----
    O(n) per curve, O(n log n) for bins that sort. At 90 % one calibrated bin in ten lies outside
    its pointwise bar: ask for ``simultaneous`` bars before reading anything into a single cross.

    References
    ----------
    Bröcker & Smith, "Increasing the reliability of reliability diagrams", Weather and Forecasting
    2007; Vaicenavicius et al. 2019, §4.4.

    Examples
    --------
    >>> import caltest as ct
    >>> curve = reliability_curve(ct.examples.digits(), bins=5)
    >>> curve.count
    array([ 12,  68, 121, 699])
    >>> curve.deviation.round(3)
    array([-0.022, -0.038, -0.153, -0.058])
    >>> curve.outside
    array([False, False,  True,  True])
    """
    fraction("level", level)
    data = Predictions.of(probs, labels)
    induced = apply(lens, data)
    statistic = ECE(bins)
    seen = components_of(induced)
    cells = [statistic.given(part.probs) for part in seen]
    table = _joined([_table(p, c, statistic.bins) for p, c in zip(seen, cells, strict=True)])
    options = {"n_resamples": n_resamples, "rng": rng, "workers": workers}
    low, high, name = _bars(band, induced, cells, table, level, simultaneous, options)
    order = np.lexsort((table["predicted"], table["component"]))
    return ReliabilityCurve(
        **{name: column[order] for name, column in table.items()},
        low=low[order],
        high=high[order],
        spread=np.array([np.histogram(part.probs[:, 0], SPREAD_EDGES)[0] for part in seen]),
        names=names_of(lens, data, induced),
        lens=name_of(lens),
        bins=name_of(statistic.bins),
        band=name,
        level=level,
        simultaneous=simultaneous,
        n=induced.n,
        n_classes=data.n_classes,
        n_resamples=0 if name in COMPUTED else n_resamples,
        tests=tuple(own_test(part, statistic, lens, data, **options) for part in seen),
        notes=data.notes,
        version=__version__,
    )


def _table(part: Predictions, cells: Cells, bins: Any) -> dict[str, Any]:
    """Return the columns of one curve, in the order of its cells."""
    first = cells.starts[:-1]
    p = part.probs[cells.order, 0]
    number = np.asarray(bins(part.probs))[cells.order[first]].astype(np.int64)
    left, right = np.minimum.reduceat(p, first), np.maximum.reduceat(p, first)
    if isinstance(bins, (UniformBins, EdgeBins)):
        inner = bins.edges if isinstance(bins, EdgeBins) else np.arange(1, bins.m) / bins.m
        edges = np.array([0.0, *inner, 1.0])
        left, right = edges[number], edges[number + 1]
    hits = np.add.reduceat(part.labels[cells.order] == 0, first, dtype=np.int64)
    return {
        "cell": number,
        "left": left,
        "right": right,
        "count": cells.counts,
        "predicted": cells.sums[:, 0] / cells.counts,
        "observed": hits / cells.counts,
    }


def _joined(tables: list[dict[str, Any]]) -> dict[str, Any]:
    sizes = [len(table["count"]) for table in tables]
    joined = {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}
    return {"component": np.repeat(np.arange(len(tables)), sizes), **joined}


def _bars(
    band: Band,
    induced: Predictions,
    cells: list[Cells],
    table: dict[str, Any],
    level: float,
    simultaneous: bool,
    options: dict[str, Any],
) -> tuple[FloatArray, FloatArray, str]:
    """Return the bars of all curves, and their name."""
    count, component = table["count"], table["component"]
    if band is None:
        empty = np.full(count.size, np.nan)
        return empty, empty, "none"
    if isinstance(band, (RedrawLabels, ConsistencyResampling)):
        gaps = resampled_bars(
            induced,
            _numbered(cells),
            level,
            keep_predictions=band.fixes_predictions,
            simultaneous=simultaneous,
            **options,
        )
        return gaps[0] + table["predicted"], gaps[1] + table["predicted"], repr(band)
    if simultaneous:  # a share for each curve: curves of one data set depend on each other
        level = 1.0 - (1.0 - level) / len(cells)
    name = {"consistency": "exact", "confidence": "clopper-pearson"}.get(band, band)
    hits = np.rint(table["observed"] * count).astype(np.int64)
    parts: list[Bars] = []
    fixed: Any
    for j, (part, fixed) in enumerate(zip(components_of(induced), cells, strict=True)):
        s, n = hits[component == j], count[component == j]
        if name == "exact":
            bars = consistency_bars(fixed, part.probs, level, simultaneous=simultaneous)
        elif name == "bootstrap":
            drawn = {k: options[k] for k in ("n_resamples", "rng")}
            bars = bootstrap_bars(s, n, level, simultaneous=simultaneous, **drawn)
        elif name in CONFIDENCE:
            bars = confidence_bars(s, n, level, name, simultaneous=simultaneous)
        else:
            raise StatisticError(
                "band must be 'consistency', 'confidence', 'clopper-pearson', 'wilson', "
                f"'bootstrap', RedrawLabels(), ConsistencyResampling() or None, not {band!r}"
            )
        parts.append(bars)
    low, high = (np.concatenate(side) for side in zip(*parts, strict=True))
    return low, high, name


def _numbered(cells: list[Cells]) -> IntArray:
    """Return the cell of every row for every curve, numbered through over the curves."""
    numbers = np.empty((cells[0].order.size, len(cells)), dtype=np.int64)
    before = 0
    for j, fixed in enumerate(cells):
        numbers[fixed.order, j] = before + np.repeat(np.arange(fixed.counts.size), fixed.counts)
        before += fixed.counts.size
    return numbers
