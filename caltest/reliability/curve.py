"""Reliability curves: predictions against outcomes, bin by bin, with bars. Numbers only."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np

from caltest._base.checks import fraction, one_of
from caltest._base.defaults import BAND_LEVEL, N_TOGETHER
from caltest._base.written import name_of
from caltest.binning import FIXED, Binning, UniformBins, as_binning
from caltest.errors import StatisticError
from caltest.inference.analysis import ROWS
from caltest.lenses import LensLike
from caltest.predictions import Facts, FloatArray, Predictions
from caltest.problem import Cells
from caltest.reliability.bars import (
    Bars,
    bootstrap_bars,
    confidence_bars,
    consistency_bars,
    simulated_bars,
)
from caltest.reliability.view import View, spread, two_class_problems
from caltest.results import CalibrationTestResult, ReliabilityCurve, ending
from caltest.results.reliability import CONFIDENCE
from caltest.simulate import LabelScheme, RedrawLabels, RowScheme, SharedRedraws, Workers
from caltest.statistics import ECE
from caltest.statistics.base import problem_of

#: What is honoured besides probabilities and labels.
FACTS = ROWS | {"by"}
Band = (
    Literal["consistency", "confidence", "clopper-pearson", "wilson", "bootstrap"]
    | LabelScheme
    | RowScheme
    | None
)


def reliability_curve(
    probs: Any,
    labels: Any = None,
    *,
    lens: LensLike | None = None,
    bins: Binning | int = UniformBins(15),
    band: Band = "consistency",
    level: float = BAND_LEVEL,
    simultaneous: bool = False,
    n_resamples: int = N_TOGETHER,
    rng: Any = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> ReliabilityCurve:
    """Compare predictions with outcomes bin by bin: the numbers of a reliability diagram.

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`.
    lens : lens, optional
        Which probabilities are looked at; by default as in :func:`calibration_test`. A two-class
        lens gives one curve, of its event; others give one for each induced class: ``TopK(k)`` for
        each rank, ``Partition`` for each group, ``Canonical()`` for each class.
    bins : binning or int, default UniformBins(15)
        As in :class:`ECE`; the same for every curve.
    band : str, scheme or None, default "consistency"
        *Consistency* bars, where a calibrated model's frequency lies: ``"consistency"`` computes
        them exactly; ``RedrawLabels()`` and ``ConsistencyResampling()`` simulate them, the latter
        as published. *Confidence* bars, where the true frequency may lie: ``"clopper-pearson"``
        (also called ``"confidence"``), ``"wilson"``, or ``"bootstrap"``, which has no width where
        all outcomes of a bin are alike. None leaves bars out. With ``clusters`` there are those of
        :class:`SharedRedraws` only.
    level : float, default 0.9
        Probability that a bar holds what it should.
    simultaneous : bool, default False
        Whether ``level`` is for all bars together: bins are independent, several curves share the
        rest by Bonferroni's inequality; simulated bars are max-T bars.
    n_resamples, rng, workers, **facts
        As in :func:`calibration_test`. With ``by`` every subgroup has its curves.

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
    one_of("simultaneous", simultaneous, (True, False))
    binning, takes = as_binning(bins), {*FACTS, "tally"}
    computed = band is None or (isinstance(band, str) and band != "bootstrap")
    sums_of = [ECE(binning)] if computed else []
    view = View.of(
        "reliability_curve", probs, labels, facts, lens=lens, rng=rng, takes=takes, summable=sums_of
    )
    band = _for_weights(_for_clusters(band, view.problem), view.data.weights)
    if view.from_sums and not (band is None or isinstance(band, str)):
        raise StatisticError(f"{band!r} draws rows, which a tally does not have")
    options: dict[str, Any] = {"n_resamples": n_resamples, "rng": rng, "workers": workers}
    names, groups, tests, notes = _tested(view, binning, options)
    parts = [part for induced in groups for part in two_class_problems(induced)]
    cells = [Cells.of(binning, problem_of(part)) for part in parts]
    name = band if isinstance(band, str) else "none" if band is None else repr(band)
    name = {"consistency": "exact", "confidence": "clopper-pearson"}.get(name, name)
    low = high = np.full(sum(map(len, cells)), np.nan)
    n_draws, ended = 0, "complete"
    table = _joined([_table(c, binning) for c in cells])
    if isinstance(band, (LabelScheme, RowScheme)) and band.calibrated:
        options |= {"simultaneous": simultaneous}
        (low, high), n_draws, ended = _simulated(groups, cells, band, level, options)
        low, high = low + table["predicted"], high + table["predicted"]
    elif name in ("exact", *CONFIDENCE):
        low, high = _bars(name, cells, level, simultaneous, n_resamples, rng)
        n_draws = n_resamples if name == "bootstrap" else 0
    elif band is not None:
        raise StatisticError(
            "band must be 'consistency', 'confidence', 'clopper-pearson', 'wilson', 'bootstrap', "
            f"RedrawLabels(), ConsistencyResampling() or None, not {band!r}"
        )
    order = np.lexsort((table["predicted"], table["component"]))
    return ReliabilityCurve(
        **{column: values[order] for column, values in table.items()},
        low=low[order],
        high=high[order],
        spread=np.array([spread(c.problem) for c in cells]),
        names=names,
        subject=view.lens.subject,
        bins=name_of(binning),
        band=name,
        level=level,
        simultaneous=simultaneous,
        tests=tuple(tests),
        n_resamples=n_draws,
        ended=ending(ended, *(test.ended for test in tests)),
        **view.facts | {"notes": notes},
    )


def _tested(
    view: View, binning: Binning, options: dict[str, Any]
) -> tuple[tuple[str, ...], list[Predictions], list[CalibrationTestResult], tuple[str, ...]]:
    """Return names, data and tests of what can be tested, and a note of each subgroup left out."""
    known = view.facts["notes"]
    names, tests, notes = [], [], list(known)
    problems = []
    for group, induced in view.groups.items():
        try:
            parts = two_class_problems(induced)
            results = [view.test(ECE(binning), part, options) for part in parts]
        except StatisticError as error:
            if not group or len(notes) - len(known) == len(view.groups) - 1:
                raise
            notes.append(f"subgroup {group} is left out: {error}")
            continue
        components = view.lens.components(view.data)
        inner = components if len(components) > 1 or not group else ("",)
        names += [" · ".join(filter(None, (group, component))) for component in inner]
        tests += results
        problems.append(induced)
    summed = tests[0].notes if view.from_sums else ()
    return tuple(names), problems, tests, tuple(dict.fromkeys((*notes, *summed)))


def _simulated(
    groups: list[Predictions],
    cells: list[Cells],
    band: LabelScheme | RowScheme,
    level: float,
    options: dict[str, Any],
) -> tuple[Bars, int, str]:
    """Return simulated deviations of all cells, group by group."""
    if options["simultaneous"]:  # a share for each group
        level = 1.0 - (1.0 - level) / len(groups)
    each = len(cells) // len(groups)
    parts = [
        simulated_bars(induced, cells[each * g : each * (g + 1)], band, level, **options)
        for g, induced in enumerate(groups)
    ]
    low, high = (np.concatenate(side) for side in zip(*(bars for bars, _, _ in parts), strict=True))
    return (low, high), parts[0][1], ending(*(ended for _, _, ended in parts))


def _for_clusters(band: Band, induced: Predictions) -> Band:
    """Return bars that know of the dependence within clusters, or refuse others."""
    if induced.n_clusters is None:
        return band
    band = SharedRedraws() if band == "consistency" else band
    if band is not None and (isinstance(band, str) or not band.takes_clusters):
        raise StatisticError(
            f"band={band!r} takes rows for independent, but they come in clusters: use "
            "band='consistency'"
        )
    return band


def _for_weights(band: Band, weights: FloatArray | None) -> Band:
    """Return bars that know of weights, or refuse others."""
    if weights is not None and band in (*CONFIDENCE, "confidence"):
        raise StatisticError(f"band={band!r} counts rows, not weights: use band='consistency'")
    whole = weights is None or bool((weights == np.rint(weights)).all())
    return band if whole or band != "consistency" else RedrawLabels()  # without a lattice


def _table(cells: Cells, bins: Binning) -> dict[str, Any]:
    """Return the columns of one curve, in the order of its cells."""
    first, problem = cells.starts[:-1], cells.problem
    p = problem.probs[cells.order, 0]
    weight = 1.0 if problem.weight is None else problem.weight
    number = problem.numbers(bins)[cells.order[first]].astype(np.int64)
    bin_low, bin_high = np.minimum.reduceat(p, first), np.maximum.reduceat(p, first)
    if isinstance(bins, FIXED):
        edges = np.array([0.0, *bins.edges, 1.0])
        bin_low, bin_high = edges[number], edges[number + 1]
    return {
        "cell": number,
        "bin_low": bin_low,
        "bin_high": bin_high,
        "count": cells.counts,
        "predicted": cells.mean(problem.probs[:, 0]),
        "observed": cells.sum(weight * problem.events) / cells.mass,
    }


def _joined(tables: list[dict[str, Any]]) -> dict[str, Any]:
    sizes = [len(table["count"]) for table in tables]
    joined = {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}
    return {"component": np.repeat(np.arange(len(tables)), sizes), **joined}


def _bars(
    kind: str,
    cells: list[Cells],
    level: float,
    simultaneous: bool,
    n_resamples: int,
    rng: Any,
) -> Bars:
    """Return bars of all curves that take no simulation of labels."""
    if simultaneous:  # a share for each curve: curves of one data set depend on each other
        level = 1.0 - (1.0 - level) / len(cells)
    together: dict[str, Any] = {"simultaneous": simultaneous}
    bars: list[Bars] = []
    for cell in cells:
        hits = cell.sum(cell.problem.events)
        if kind == "exact":
            bars.append(consistency_bars(cell, level, **together))
        elif kind == "bootstrap":
            options: dict[str, Any] = {"n_resamples": n_resamples, "rng": rng}
            bars.append(bootstrap_bars(hits, cell.counts, level, **together, **options))
        else:
            bars.append(confidence_bars(hits, cell.counts, level, kind, **together))
    low, high = (np.concatenate(side) for side in zip(*bars, strict=True))
    return low, high
