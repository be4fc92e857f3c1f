"""Reliability curves: predictions against outcomes, bin by bin, with bars. Numbers only."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np

from caltest._base.arrays import RNG
from caltest._base.checks import fraction, one_of
from caltest._base.defaults import BAND_LEVEL, N_TOGETHER
from caltest._base.written import name_of
from caltest.binning import FIXED, Binning, UniformBins, as_binning
from caltest.errors import StatisticError
from caltest.inference.admission import ROWS
from caltest.lenses import LensLike
from caltest.predictions import Facts, FloatArray, Predictions
from caltest.problem import Cells, Problem
from caltest.reliability.bars import confidence_bars, consistency_bars, simulated_bars
from caltest.reliability.view import View, spread, two_class_problems
from caltest.results import CalibrationTestResult, ReliabilityCurve, ending
from caltest.results.reliability import CONFIDENCE
from caltest.simulate import (
    LabelScheme,
    RedrawLabels,
    RowScheme,
    Run,
    Scheme,
    SharedRedraws,
    Workers,
)
from caltest.statistics import ECE
from caltest.statistics.base import problem_of

#: What is honoured besides probabilities and labels.
FACTS = ROWS | {"by", "followup", "several labels a row"}
Band = Literal["consistency", "confidence", "clopper-pearson", "wilson"] | Scheme | None


def reliability_curve(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike | None = None,
    bins: Binning | int = UniformBins(15),
    band: Band = "consistency",
    level: float = BAND_LEVEL,
    simultaneous: bool = False,
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> ReliabilityCurve:
    """Compare predictions with outcomes bin by bin: the numbers of a reliability diagram.

    Parameters
    ----------
    probs, labels, n_resamples, rng, workers, **facts
        As in :func:`calibration_test`. With ``by`` every subgroup has its curves.
    lens : lens, optional
        As in :func:`calibration_test`. A two-class lens gives one curve, of its event; others give
        one for each induced class: each rank of ``TopK(k)``, each group of ``Partition``.
    bins : binning or int, default UniformBins(15)
        As in :class:`ECE`; the same for every curve.
    band : str, scheme or None, default "consistency"
        *Consistency* bars, where a calibrated model's frequency lies: ``"consistency"`` computes
        them exactly; ``RedrawLabels()`` and ``ConsistencyResampling()`` simulate them, the latter
        as published. *Confidence* bars, where the true frequency may lie: ``"clopper-pearson"``
        (also called ``"confidence"``) or ``"wilson"``. None leaves bars out. With ``clusters``
        there are those of :class:`SharedRedraws` only, and with :class:`Followup`, whose
        frequencies are Kaplan–Meier's (Aalen–Johansen's), those of :class:`RedrawFollowup`.
    level : float, default 0.9
        Probability that a bar holds what it should.
    simultaneous : bool, default False
        Whether ``level`` is for all bars together: bins are independent, several curves share the
        rest by Bonferroni's inequality; simulated bars are max-T bars. At 90 % one calibrated bin
        in ten lies outside its pointwise bar.

    Raises
    ------
    StatisticError
        When bins, band or level do not fit.

    Notes
    -----
    O(n) per curve, O(n log n) for bins that sort.

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
    binning, sums_of = as_binning(bins), []
    if band is None or isinstance(band, str):  # bars that are computed
        sums_of = [ECE(binning)]
    view = View.of(
        "reliability_curve", probs, labels, facts,
        lens=lens, rng=rng, takes={*FACTS, "tally"}, summable=sums_of,
    )  # fmt: skip
    band = _allowed(band, view)
    name = band if isinstance(band, str) else "none" if band is None else repr(band)
    name = {"consistency": "exact", "confidence": "clopper-pearson"}.get(name, name)
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    names, groups, tests, notes = _tested(view, binning, run)
    cells = [
        [Cells.of(binning, problem_of(part)) for part in two_class_problems(induced)]
        for induced in groups
    ]
    curves = [of_class for group in cells for of_class in group]
    table = _table(curves, binning)
    low = high = np.full(table["count"].size, np.nan)
    n_draws, ended = 0, "complete"
    if band is not None:
        low, high, n_draws, ended = _bars(band, groups, cells, level, simultaneous, run)
    if n_draws:  # simulated bars hold deviations
        low, high = low + table["predicted"], high + table["predicted"]
    order = np.lexsort((table["predicted"], table["component"]))
    return ReliabilityCurve(
        **{column: values[order] for column, values in table.items()},
        low=low[order],
        high=high[order],
        spread=np.array([spread(of_class.problem) for of_class in curves]),
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


def _tested(view: View, binning: Binning, run: Run) -> tuple[
    tuple[str, ...], list[Predictions | Problem], list[CalibrationTestResult], tuple[str, ...]
]:  # fmt: skip
    """Return names, data and tests of what can be tested, and a note of each subgroup left out."""
    names, tests, problems, left_out = list[str](), list[CalibrationTestResult](), [], list[str]()
    for group, induced in view.groups.items():
        try:
            parts = two_class_problems(induced)
            results = [view.test(ECE(binning), part, run) for part in parts]
        except StatisticError as error:
            left_out.append(f"subgroup {group} is left out: {error}")
            if len(left_out) == len(view.groups):
                raise
            continue
        inner = view.components if len(view.components) > 1 or not group else ("",)
        names += [" · ".join(filter(None, (group, component))) for component in inner]
        tests += results
        problems.append(induced)
    summed = tests[0].notes if view.from_sums else ()
    notes = dict.fromkeys((*view.facts["notes"], *left_out, *summed))
    return tuple(names), problems, tests, tuple(notes)


def _allowed(band: Band, view: View) -> Band:
    """Return bars that know of clusters, weights and follow-up, or refuse others."""
    if (only := view.units.only_null) is not None and band is not None:
        if band not in ("consistency", only):
            raise StatisticError(f"band={band!r} needs every outcome: use 'consistency'")
        return only
    weights = view.data.weights
    if view.units.n_clusters is not None:
        band = SharedRedraws() if band == "consistency" else band
        if band is not None and (isinstance(band, str) or not band.takes_clusters):
            raise StatisticError(
                f"band={band!r} takes rows for independent, but they come in clusters: use "
                "band='consistency'"
            )
    if weights is not None and band in (*CONFIDENCE, "confidence"):
        raise StatisticError(f"band={band!r} counts rows, not weights: use band='consistency'")
    if weights is not None and band == "consistency" and (weights != np.rint(weights)).any():
        band = RedrawLabels()  # without a lattice there is no exact law
    if view.from_sums and not (band is None or isinstance(band, str)):
        raise StatisticError(f"{band!r} draws rows, which a tally does not have")
    return band


def _bars(
    band: Band, groups: list[Predictions | Problem], cells: list[list[Cells]], level: float,
    simultaneous: bool, run: Run,
) -> tuple[FloatArray, FloatArray, int, str]:  # fmt: skip
    """Return the bars of all curves, how many data sets were drawn for them, and the ending."""
    curves = [of_class for group in cells for of_class in group]
    drawing = (LabelScheme, RowScheme, type(curves[0].problem.only_null))
    simulated = isinstance(band, drawing)
    if simultaneous:  # a share for each of what is not drawn together (Bonferroni)
        level = 1.0 - (1.0 - level) / len(groups if simulated else curves)
    if simulated and isinstance(band, Scheme) and band.calibrated:
        results = [
            simulated_bars(induced, parts, band, level, simultaneous=simultaneous, **run)
            for induced, parts in zip(groups, cells, strict=True)
        ]
        each, (n_draws, *_), ends = zip(*results, strict=True)
        low, high = np.concatenate(each, axis=1)
        return low, high, n_draws, ending(*ends)
    if band == "consistency":
        each = tuple(
            consistency_bars(of_class, level, simultaneous=simultaneous) for of_class in curves
        )
    elif band in ("confidence", *CONFIDENCE):
        method = "clopper-pearson" if band == "confidence" else str(band)
        each = tuple(
            confidence_bars(
                c.sum(c.problem.events), c.counts, level, method, simultaneous=simultaneous
            )
            for c in curves
        )
    else:
        raise StatisticError(
            "band must be 'consistency', 'confidence', 'clopper-pearson', 'wilson', "
            f"RedrawLabels(), ConsistencyResampling() or None, not {band!r}"
        )
    low, high = np.concatenate(each, axis=1)
    return low, high, 0, "complete"


def _table(curves: list[Cells], bins: Binning) -> dict[str, Any]:
    """Return the columns of all curves, one after the other, in the order of their cells."""
    tables = []
    for component, cells in enumerate(curves):
        first, problem = cells.starts[:-1], cells.problem
        p = problem.probs[cells.order, 0]
        number = problem.numbers(bins)[cells.order[first]].astype(np.int64)
        bin_low, bin_high = np.minimum.reduceat(p, first), np.maximum.reduceat(p, first)
        if isinstance(bins, FIXED):
            edges = np.array([0.0, *bins.edges, 1.0])
            bin_low, bin_high = edges[number], edges[number + 1]
        tables.append({
            "component": np.full(first.size, component),
            "cell": number,
            "bin_low": bin_low,
            "bin_high": bin_high,
            "count": cells.counts,
            "predicted": cells.mean(problem.probs[:, 0]),
            "observed": problem.frequencies(cells),
        })  # fmt: skip
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
