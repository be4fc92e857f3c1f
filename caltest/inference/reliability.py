"""Reliability curves, bin by bin with consistency or confidence bars, and their difference.

:func:`reliability_curve` is the entry: consistency bars (quantiles under the null) are exact where
cells have laws, and simulated with clusters or follow-up. :func:`reliability_difference` compares
two models bin by bin.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Unpack

import numpy as np

from caltest._base import Ended, FloatArray, IntArray
from caltest._base.arrays import BAND_LEVEL, N_TOGETHER, RNG, fraction, one_of
from caltest._base.written import name_of
from caltest.data import Facts, Predictions
from caltest.data.binning import FIXED, Binning, UniformBins, as_binning
from caltest.data.lenses import Canonical, LensLike, OneVsRest
from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.inference._input import Analysis, paired_rows
from caltest.inference.calibration import calibration_test
from caltest.nulls import (
    Batches,
    LabelScheme,
    RedrawLabels,
    RowScheme,
    Run,
    Scheme,
    SharedRedraws,
    Workers,
    simulate,
    simulate_by,
)
from caltest.nulls.laws import clopper_pearson
from caltest.results import CalibrationTestResult, ReliabilityCurve, ReliabilityDifference, ending
from caltest.results.figures import CONFIDENCE_BARS, SPREAD_EDGES
from caltest.statistics import ECE, Cells, Outcomes, Problem, StatisticLike
from caltest.statistics.prepared import problem_of
from caltest.statistics.rows import RowProblem
from caltest.tallies import MicroCells

BandScheme = Literal["consistency", "confidence", "clopper-pearson", "wilson"] | Scheme | None


def reliability_curve(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike | None = None,
    bins: Binning | int = UniformBins(15),
    band: BandScheme = "consistency",
    level: float = BAND_LEVEL,
    simultaneous: bool = False,
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = None,
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
        (also called ``"confidence"``) or ``"wilson"``. None leaves bars out. With ``clusters`` only
        the bars of :class:`SharedRedraws` are available, and with :class:`Followup`, whose
        frequencies are Kaplan–Meier's (Aalen–Johansen's), those by :class:`RedrawFollowup`.
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
        lens=lens, rng=rng, summable=sums_of,
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
    table = _columns_of_curves(curves, binning)
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
    """Test each curve of a reliability diagram; return (names, data, tests, notes).

    ``view`` holds the data behind the lens, with a curve for each subgroup and class. ``names`` and
    ``tests`` have one entry for each curve, ``data`` one for each subgroup: its predictions and
    outcomes. A subgroup that cannot be tested is left out, and a note (sentence) says why;
    StatisticError if none can. ``binning`` makes the cells of the ECE that is tested; ``run`` holds
    n_resamples, rng and workers.
    """
    names, tests, problems, left_out = list[str](), list[CalibrationTestResult](), [], list[str]()
    for group, induced in view.groups.items():
        try:
            parts = two_class_problems(induced)
            results = [view.own_test(ECE(binning), part, run) for part in parts]
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


def _allowed(band: BandScheme, view: View) -> BandScheme:
    """Return the kind of bars that fits the design of the data, a name, a redraw scheme or None.

    It is ``band``, or a scheme of redraws in place of "consistency" where clusters, weights or
    follow-up leave no exact law. ``view`` holds the data behind the lens. StatisticError for bars
    that ignore clusters, weights or censoring.
    """
    if (only := view.problem.only_null) is not None and band is not None:
        if band not in ("consistency", only):
            raise StatisticError(f"band={band!r} needs every outcome: use 'consistency'")
        return only
    weights = view.data.weights
    if view.problem.n_clusters is not None:
        band = SharedRedraws() if band == "consistency" else band
        if band is not None and (isinstance(band, str) or not band.takes_clusters):
            raise StatisticError(
                f"band={band!r} takes rows for independent, but they come in clusters: use "
                "band='consistency'"
            )
    if weights is not None and band in (*CONFIDENCE_BARS, "confidence"):
        raise StatisticError(f"band={band!r} counts rows, not weights: use band='consistency'")
    if weights is not None and band == "consistency":
        whole = (weights == np.rint(weights)).all()
        if not whole or weights.sum() > MOST_STEPS:
            band = RedrawLabels()  # without a lattice there is no exact law
    if view.from_sums and not (band is None or isinstance(band, str)):
        raise StatisticError(f"{band!r} draws rows, which a tally does not have")
    return band


def _bars(
    band: BandScheme, groups: list[Predictions | Problem], cells: list[list[Cells]], level: float,
    simultaneous: bool, run: Run,
) -> tuple[FloatArray, FloatArray, int, str]:  # fmt: skip
    """Return (low, high, number of draws, ending) of the bars of all curves.

    ``band`` is the kind of bars, a name or a redraw scheme. ``groups`` are the predictions and
    outcomes of each subgroup, and ``cells`` has, for each of them, the partition of every curve.
    ``level`` is shared among curves if ``simultaneous``. ``low`` and ``high`` have shape (L,), the
    L cells of all curves concatenated; simulated ones (number of draws above 0) hold observed −
    predicted, others observed frequencies. ``run`` holds n_resamples, rng and workers. The ending
    is "complete" or "interrupted". StatisticError for an unknown ``band``.
    """
    curves = [of_class for group in cells for of_class in group]
    drawing = (LabelScheme, RowScheme, type(curves[0].problem.only_null))
    simulated = isinstance(band, drawing)
    if simultaneous:  # a share for each curve or draw (Bonferroni)
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
    elif band in ("confidence", *CONFIDENCE_BARS):
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


def _columns_of_curves(curves: list[Cells], bins: Binning) -> dict[str, Any]:
    """Return the columns of a reliability diagram, arrays (L,) by name of the result's field.

    ``curves`` has the partition of the rows into cells for each curve, and ``bins`` made them.
    Columns are the numbers of the curve and the bin, edges, counts, mean prediction and observed
    frequency. Cells of all curves are concatenated, L in all.
    """
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


# ------------------------------------------------------------------------------
# Bars for observed frequencies, cell by cell: two kinds that answer two questions.
#
# *Consistency* bars hold what a calibrated model would show on these predictions; *confidence* bars
# hold what the true frequency may be, given what was observed.


Bars = tuple[FloatArray, FloatArray]


#: Largest sum of whole weights for which the exact law of a cell is computed, O(n Σ w).
MOST_STEPS = 2**24


def consistency_bars(cells: Cells, level: float, *, simultaneous: bool = False) -> Bars:
    """Return (low, high), (L,) each: central ranges of the observed frequency under calibration.

    ``cells`` partition binary predictions into L cells. The ranges are quantiles of the exact law
    of the number of events (label 0) in each cell. ``level`` is the smallest probability that the
    observed frequency lies between the bars, ends included; at most (1 − level) / 2 is left on
    either side. With ``simultaneous`` it is the probability that *all* frequencies lie between
    their bars. Cells are independent given the predictions, so that it is a product, and the bars
    cut the same largest tail probability from every cell that keeps it. O(n) for the laws, O(L log
    n) for the bars.
    """
    laws = [(first, np.cumsum(pmf)) for first, pmf, _ in cells.laws()]
    side = _shared_side(laws, level) if simultaneous else 0.5 * (1.0 - level)
    low, high = np.array([_central_range(cdf, side) for _, cdf in laws]).T
    first = np.array([first for first, _ in laws])
    return (first + low) / cells.mass, (first + high) / cells.mass


def _central_range(cdf: FloatArray, side: float) -> tuple[int, int]:
    low = int(np.searchsorted(cdf, side, side="right"))
    high = int(np.searchsorted(cdf, 1.0 - side - 1e-12, side="left"))
    return low, min(high, cdf.size - 1)


def _shared_side(laws: list[tuple[int, FloatArray]], level: float) -> float:
    """Return the largest tail probability that may be cut on both sides of every cell's law.

    All observed counts then lie within their central ranges with probability at least ``level``.
    ``laws`` holds, for each cell, (first count, distribution function at it and the next counts).
    """

    def covered(side: float) -> float:
        product = 1.0
        for _, cdf in laws:
            low, high = _central_range(cdf, side)
            product *= cdf[high] - (cdf[low - 1] if low else 0.0)
        return product

    # Bonferroni's share always suffices; between it and the pointwise share, bisect.
    enough, too_much = 0.5 * (1.0 - level) / len(laws), 0.5 * (1.0 - level)
    if covered(too_much) >= level:
        return too_much
    while too_much > enough * (1.0 + 1e-6):
        middle = np.sqrt(enough * too_much)
        enough, too_much = (middle, too_much) if covered(middle) >= level else (enough, middle)
    return enough


def cell_pvalues(cells: Cells, hits: IntArray) -> FloatArray:
    """Return the exact two-sided p-value of the number of events of each of L cells, (L,).

    An event is label 0 of two classes. ``cells`` partition the predictions, and ``hits`` (L,) are
    the numbers s of events. p = min(1, 2 min(P(S ≤ s), P(S ≥ s))), S Poisson-binomial, and never 0.
    """
    values = []
    for s, (first, pmf, lost) in zip(hits, cells.laws(), strict=True):
        j = int(s) - first
        below = pmf[: max(j + 1, 0)].sum()
        above = pmf[max(j, 0) :].sum()
        values.append(min(1.0, 2.0 * (min(below, above) + lost)))
    return np.maximum(values, np.finfo(float).tiny)


def confidence_bars(
    successes: IntArray, counts: IntArray, level: float, method: str = "clopper-pearson", *,
    simultaneous: bool = False,
) -> Bars:  # fmt: skip
    """Return an interval (low, high) for the mean true probability of each of L cells, (L,) each.

    ``successes`` (L,) of ``counts`` (L,) rows had the outcome. The intervals of Clopper & Pearson
    (1934) never fall short of the level, even when probabilities differ within a cell (Hoeffding
    1956); the intervals of Wilson (1927), ``method="wilson"``, are shorter and hold it on average.
    With ``simultaneous`` each has level^(1/L), because cells are independent (Šidák 1967).
    """
    from scipy.special import ndtri

    if simultaneous:
        level = level ** (1.0 / len(counts))
    if method == "clopper-pearson":
        return clopper_pearson(successes, counts, level)
    s, n = successes.astype(np.float64), counts.astype(np.float64)
    z2 = float(ndtri(0.5 * (1.0 - level))) ** 2
    centre = (s + 0.5 * z2) / (n + z2)
    half = np.sqrt(z2 * (s * (n - s) / n + 0.25 * z2)) / (n + z2)
    return np.where(s > 0, centre - half, 0.0), np.where(s < n, centre + half, 1.0)


def simulated_bars(
    data: Predictions | Problem, cells: Sequence[Cells], scheme: Scheme, level: float, *,
    simultaneous: bool, **run: Unpack[Run],
) -> tuple[Bars, int, Ended]:  # fmt: skip
    """Return ((low, high), number of draws, ending).

    The first are ranges of observed − predicted in simulated data.

    ``data`` are the predictions and outcomes behind the lens, and ``cells`` the partitions of the
    rows for the first J classes; ``low`` and ``high`` follow each other class by class, (L,) for L
    cells in all. ``scheme`` draws the data sets. If it resamples rows, as for the bars of
    Vaicenavicius et al. (2019, Fig. 4), the size of a cell varies; replicates in which a cell is
    empty do not count for it. With ``simultaneous`` all values lie within their bars with
    probability ``level``. ``run`` are n_resamples, rng and workers; the ending is "complete" or
    "interrupted". O(B n J).
    """
    if (problem := cells[0].problem).only_null is not None:
        gaps, ended = simulate_by(problem.redraws(scheme, _CellGaps(cells[0])), **run)
    elif isinstance(data, Predictions) and isinstance(scheme, LabelScheme):
        gaps_of = partial(_gaps, data.probs, cells)
        return label_bars(data, gaps_of, scheme, level, simultaneous=simultaneous, **run)
    else:
        assert isinstance(data, Predictions)
        assert isinstance(scheme, RowScheme)
        named = replace(data, ids=np.arange(data.n))  # rows are known by their names when drawn
        values, ended = simulate(partial(_gap_sums, cells), scheme.sampler(named), **run)
        sums, sizes = np.split(values, 2, axis=1)
        with np.errstate(invalid="ignore"):
            gaps = sums / sizes
    return quantile_bars(gaps, level, simultaneous=simultaneous), len(gaps), ended


@dataclass(frozen=True, eq=False)
class _CellGaps:
    """Statistic of B redrawn outcomes: observed − predicted in each of L cells, values (B, L).

    ``cells`` partition the predictions.
    """

    cells: Cells
    counted = ()

    def values(self, outcomes: Outcomes, factor: float = 1.0) -> FloatArray:
        return np.asarray(factor**0.5 * self.cells.problem.gaps(self.cells, outcomes))


def label_bars(
    data: Predictions, values: Callable[[IntArray], FloatArray], scheme: LabelScheme, level: float,
    *, simultaneous: bool, **run: Unpack[Run],
) -> tuple[Bars, int, Ended]:  # fmt: skip
    """Return ((low, high), number of draws, ending): ranges of values of redrawn labels, (L,) each.

    ``values`` maps B label vectors (B, n) to L values each, (B, L), whose quantiles at ``level``
    are the bars. ``scheme`` redraws the labels of ``data``; where it has several laws, such as
    kinds of dependence, the ranges hold under all of them. With ``simultaneous`` all values lie
    within their bars with probability ``level``. ``run`` are n_resamples, rng and workers; the
    ending is "complete" or "interrupted".
    """
    parts = [
        simulate_by(Batches(each.drawer(data), data.n, values), **run) for each in scheme.each(data)
    ]
    bars = [quantile_bars(draws, level, simultaneous=simultaneous) for draws, _ in parts]
    low, high = zip(*bars, strict=True)
    widest = np.minimum.reduce(low), np.maximum.reduce(high)
    return widest, len(parts[0][0]), ending(*(ended for _, ended in parts))


def drawn_pvalues(
    data: Predictions, cells: Cells, scheme: LabelScheme, inflation: float, **run: Unpack[Run]
) -> tuple[FloatArray, FloatArray, int, Ended]:
    """Return (p-values, adjusted p-values, number of draws, ending) of L cells, by redraws.

    Both arrays have shape (L,). ``data`` are predictions and outcomes of K classes, and ``cells``
    partition the rows. With Δ_bk observed − predicted of class k in cell b and s_bk its root mean
    square over observed and drawn labels, the statistic of the cell is T_b = max_k |Δ_bk| / s_bk.
    Drawn Δ are multiplied by √``inflation`` first. p = (1 + #{T* ≥ T}) / (1 + B) for B draws T*;
    for the adjusted one T* is the largest of all cells (max-T). Observed and drawn labels are
    exchangeable under calibration. ``scheme`` says how labels are drawn; ``run`` are n_resamples,
    rng and workers. The ending is "complete" or "interrupted". O(B n K).
    """
    each = [cells] * data.n_classes
    batches = Batches(scheme.drawer(data), data.n, partial(_gaps, data.probs, each))
    replicates, ended = simulate_by(batches, **run)
    gaps = np.vstack([_gaps(data.probs, each, data.labels[None]), np.sqrt(inflation) * replicates])
    spread = np.sqrt((gaps**2).mean(axis=0))
    sizes = np.abs(gaps) / np.where(spread > 1e-12, spread, np.inf)
    sizes = sizes.reshape(len(gaps), data.n_classes, -1).max(axis=1)
    observed = sizes[0] - 1e-10  # rounding must not split ties
    adjusted = (sizes.max(axis=1)[:, None] >= observed).mean(axis=0)
    return (sizes >= observed).mean(axis=0), adjusted, len(replicates), ended


def _gaps(probs: FloatArray, cells: Sequence[Cells], labels: IntArray) -> FloatArray:
    """Return observed − predicted in all L cells, (B, L), for B label vectors ``labels`` (B, n).

    ``probs`` (n, K) are the predictions; ``cells`` has a partition of the rows for each of the
    first classes, whose cells follow each other.
    """
    gaps = [c.mean(labels == j) - c.mean(probs[:, j]) for j, c in enumerate(cells)]
    return np.concatenate(gaps, axis=1)


def _gap_sums(cells: Sequence[Cells], resample: Predictions) -> FloatArray:
    """Return sums of observed − predicted in all L cells, followed by the cells' sizes, (2 L,).

    ``cells`` has a partition of the rows for each of the first classes, whose cells follow each
    other. ``resample`` are rows drawn with replacement, whose ``ids`` are their places in the data.
    """
    sums, sizes = [], []
    for j, of_class in enumerate(cells):
        cell, size = of_class.of_unit[resample.ids], len(of_class)
        sums.append(np.bincount(cell, (resample.labels == j) - resample.probs[:, j], size))
        sizes.append(np.bincount(cell, minlength=size))
    return np.concatenate([*sums, *sizes])


def quantile_bars(draws: FloatArray, level: float, *, simultaneous: bool = False) -> Bars:
    """Return (low, high), (L,) each: bars that hold a further draw with probability ``level``.

    ``draws`` (B, L) are B replicates of L values, NaN where a cell was empty. Pointwise bars are
    the ⌊(B + 1)(1 − level) / 2⌋-th smallest and largest values, because a further draw is as likely
    to have any rank. Simultaneous bars are mean ± c · sd, where c is the same order statistic of
    the largest standardised distance over all columns (max-T), so that all L values lie within
    them. StatisticError for fewer replicates than the level needs.
    """
    valid = (~np.isnan(draws)).sum(axis=0)
    side = (1.0 - level) * (1.0 if simultaneous else 0.5)
    # Rounding must not take a rank away: 0.05 (1999 + 1) is 100.
    if side * (int(valid.min()) + 1) < 1.0 - 1e-9:
        raise StatisticError(
            f"level {level:g} needs at least {int(np.ceil(1.0 / side - 1e-9)) - 1} replicates in "
            f"every cell, but there are {int(valid.min())}: raise n_resamples or take fewer bins"
        )
    if simultaneous:
        centre, spread = np.nanmean(draws, axis=0), np.nanstd(draws, axis=0)
        moves = spread > 1e-12
        distances = np.abs(draws - centre) / np.where(moves, spread, np.inf)
        largest = np.sort(np.nanmax(distances, axis=1))
        c = largest[len(largest) - int(side * (len(largest) + 1) + 1e-9)]
        return centre - c * spread, centre + c * spread
    ordered = np.sort(draws, axis=0)  # NaN last
    rank = (side * (valid + 1) + 1e-9).astype(np.int64)
    column = np.arange(draws.shape[1])
    return ordered[rank - 1, column], ordered[valid - rank, column]


# ------------------------------------------------------------------------------
# What a picture shows: data seen through a lens, part by part, and the tests that go with it.


class View(Analysis):
    """Validated data behind a lens, for a diagram with a curve for each subgroup and class.

    It holds data, lens and problem (predictions and outcomes behind the lens) as :class:`Analysis`.
    """

    @property
    def event(self) -> str:
        """Name of the event, the first class that the lens leaves of these data."""
        return self.components[0]

    @property
    def groups(self) -> dict[str, Predictions | Problem]:
        """Predictions and outcomes behind the lens of every subgroup, by name of the subgroup.

        Without subgroups there is one entry, all rows under ""; for a tally it has sums over fine
        bins.
        """
        if self.from_sums:
            return {"": self.problem}
        plain, groups = replace(self.induced, by=None), self.induced.subgroups()
        return {name: plain.take(rows) for name, rows in groups.items()} or {"": plain}

    def own_test(
        self, statistic: StatisticLike, part: Predictions | Problem, run: Run
    ) -> CalibrationTestResult:
        """Return the calibration test of one part of the data by ``statistic``, with default null.

        ``part`` has the predictions and outcomes of a subgroup or class behind the lens; ``run``
        holds n_resamples, rng and workers. The warning of a statistic with one possible value is
        suppressed.
        """
        rows = part.data if isinstance(part, RowProblem) else part
        lens, data = (None, rows.tally) if isinstance(rows, MicroCells) else (Canonical(), rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)
            test = calibration_test(data, None, statistic, lens=lens, **run)
        return replace(test, lens=name_of(self.lens), n_classes=self.data.n_classes)


def two_class_problems(induced: Predictions | Problem) -> list[Predictions | Problem]:
    """Return the binary problems of a reliability diagram, one for each panel, as a list.

    ``induced`` are the predictions and outcomes behind the lens. For two classes it is their
    problem alone, for more each class against the rest, in turn.
    """
    if not isinstance(induced, Predictions) or induced.n_classes == 2:
        return [induced]
    return [OneVsRest(j)(induced) for j in range(induced.n_classes)]


def spread(problem: Problem) -> IntArray:
    """Return a histogram: the number of predictions in each of the fine bins ``SPREAD_EDGES``.

    The shape is (len(SPREAD_EDGES) − 1,), integers. ``problem`` holds the predictions behind the
    lens, of which the probability of the event (class 0) is taken.
    """
    counts, _ = np.histogram(problem.probs[:, 0], SPREAD_EDGES, weights=problem.count)
    return counts.astype(np.int64)


# ------------------------------------------------------------------------------
# Two models in one diagram: the difference of their reliability curves, with a band.


def reliability_difference(
    probs_a: object,
    probs_b: object,
    labels: object = None,
    *,
    names: tuple[str, str] = ("A", "B"),
    lens: LensLike | None = None,
    bins: Binning | int = UniformBins(15),
    level: float = BAND_LEVEL,
    simultaneous: bool = False,
    **facts: Unpack[Facts],
) -> ReliabilityDifference:
    """Compare observed − predicted of two models on the same observations, bin by bin.

    In each bin that both models use: observed − predicted of model a minus its value for model b,
    with a confidence band for the difference of the mean true deviations of the rows put there.

    Parameters
    ----------
    probs_a, probs_b, labels, names, lens, **facts
        As in :func:`compare`, for the same observations and a lens that leaves two classes.
    bins : binning or int, default UniformBins(15)
        Made from the predictions of both models together.
    level, simultaneous : float, default 0.9, and bool, default False
        Probability that an interval covers its target, or all do (Šidák's inequality, which needs
        no independence).

    Raises
    ------
    StatisticError
        For a lens that leaves more than two classes, or models of different observations.

    Notes
    -----
    Wald intervals with one success and one failure added to each model's bin, which holds the
    level also with few rows (Agresti & Caffo 2000), and with the covariance of the rows that both
    models put into the bin (as Bonett & Price 2012 for fully paired data). O(n).

    Examples
    --------
    >>> import caltest as ct
    >>> overfit, best = ct.examples.digits("overfit"), ct.examples.digits("best")
    >>> curve = reliability_difference(overfit, best, bins=5)
    >>> curve.difference.round(3)
    array([-0.147, -0.103, -0.209, -0.1  ])
    """
    fraction("level", level)
    binning = as_binning(bins)
    models, labels, matched = paired_rows({"probs_a": probs_a, "probs_b": probs_b}, labels, {})
    views = [
        View.of("reliability_difference", probs, labels, facts, lens=lens)
        for probs in models.values()
    ]
    for view in views:
        view.needs_two_classes("the difference of two curves")
    first, second = (view.rows for view in views)
    if first.n != second.n or not np.array_equal(first.labels, second.labels):
        raise StatisticError(
            "the two models must predict the same observations in the same order: their labels "
            "differ"
        )
    probs = np.concatenate([view.problem.probs for view in views])
    cell = np.unique(binning(probs), return_inverse=True)[1].reshape(2, -1)
    size, both = int(cell.max()) + 1, cell[0] == cell[1]
    happened = np.array([view.problem.labels == 0 for view in views], dtype=np.float64)
    of_models = zip(cell, probs[:, 0].reshape(2, -1), happened, strict=True)
    sums = [[np.bincount(c, w, size) for w in (None, p, y)] for c, p, y in of_models]
    count, p, y = np.moveaxis(np.array(sums, dtype=np.float64), 1, 0)
    # Σ (y − ȳ)(z − z̄) over the rows that both models put into a cell
    rows, first_y, second_y, products = (
        np.bincount(cell[0][both], w, size)
        for w in (None, *happened[:, both], happened[:, both].prod(axis=0))
    )
    covariance = products - first_y * second_y / np.maximum(rows, 1)
    common = np.flatnonzero((count > 0).all(axis=0))
    predicted = p.sum(axis=0)[common] / count.sum(axis=0)[common]
    common = common[np.argsort(predicted, kind="stable")]
    count, p, y = (values[:, common] for values in (count, p, y))
    difference, low, high = _band(count, p, y, covariance[common], level, simultaneous)
    notes = (*first.notes, *second.notes, *matched.values())
    return ReliabilityDifference(
        predicted=np.sort(predicted, kind="stable"), difference=difference, low=low, high=high,
        count_a=count[0].astype(np.int64), count_b=count[1].astype(np.int64), cell=common,
        names=names, name=views[0].event, subject=views[0].lens.subject, bins=name_of(binning),
        level=level, simultaneous=simultaneous,
        **views[0].facts | {"notes": tuple(dict.fromkeys(notes))},
    )  # fmt: skip


def _band(count: FloatArray, p: FloatArray, y: FloatArray, shared: FloatArray, level: float,
          simultaneous: bool) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """Return (difference, low, high), (L,) each.

    The difference is observed − predicted of a first model less that value for a second.

    ``low`` and ``high`` are the ends of a confidence band at ``level``. ``count``, ``p`` and ``y``
    (2, L) are numbers of rows, sums of predictions and sums of outcomes in L bins, by model;
    ``shared`` (L,) is the summed covariance of outcomes of rows that both models put into a bin.
    With ``simultaneous`` the band holds in all bins together.
    """
    from scipy.special import ndtri

    predicted, more = np.subtract(*(p / count)), count + 2.0
    share = (y + 1.0) / more  # with one success and one failure more
    variance = (share * (1.0 - share) / more).sum(axis=0) - 2.0 * shared / more.prod(axis=0)
    if simultaneous:
        level = level ** (1.0 / len(predicted))
    half = float(ndtri(0.5 + 0.5 * level)) * np.sqrt(np.maximum(variance, 0.0))
    centre = np.subtract(*share) - predicted
    return np.subtract(*(y / count)) - predicted, centre - half, centre + half
