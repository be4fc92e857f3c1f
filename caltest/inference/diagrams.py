"""Diagrams and decompositions: reliability without bins, on the simplex, over numbers of bins.

:func:`reliability_fit` draws isotonic or smooth curves with bands, among them the honest band of
Dimitriadis et al. (2023); :func:`reliability_simplex` has three or four classes;
:func:`bin_sensitivity` repeats the ECE for many numbers of bins; :func:`corp_decomposition` and
:func:`brier_decomposition` split a mean score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Unpack, cast

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import (
    BAND_LEVEL,
    MOST_BINS,
    N_TOGETHER,
    RNG,
    fraction,
    is_whole,
    one_of,
    whole,
)
from caltest._base.written import Fields, Written, name_of
from caltest.data import Facts, Predictions
from caltest.data.binning import EDGE_TOLERANCE, Binning, QuantileBins, UniformBins, as_binning
from caltest.data.distances import Distance
from caltest.data.lenses import Canonical, LensLike, OneVsRest
from caltest.errors import StatisticError, UnsupportedFactError
from caltest.inference._input import Analysis, evaluated
from caltest.inference.dependence import Coupled, agreeing_schemes
from caltest.inference.null import holm
from caltest.inference.reliability import View, cell_pvalues, drawn_pvalues, label_bars, spread
from caltest.nulls import LabelScheme, RedrawLabels, Run, SharedRedraws, Workers
from caltest.nulls.lanes import kernel
from caltest.results import (
    BinSensitivity,
    BrierDecomposition,
    CalibrationTestResult,
    CORPDecomposition,
    ReliabilityFit,
    ReliabilitySimplex,
    ending,
)
from caltest.statistics import (
    CORP,
    ECE,
    MAX_MASS,
    BrierScore,
    Cells,
    LogScore,
    Problem,
    RowProblem,
    SmoothECE,
)
from caltest.statistics.isotonic import Score, best_score
from caltest.statistics.smooth import KernelSmoother, smooth_curve

Fit = Literal["isotonic", "smooth", "band"]


#: Predictions, and the ends of a band there.
BandEnds = tuple[FloatArray, FloatArray, FloatArray]


#: Points of a curve: 1999 replicates of so many take 160 MB.
MOST_POINTS_OF_CURVE = 10_000


#: Rows of a tally that may have a band, which takes 8 bytes for each.
ROWS_OF_A_BAND = 10**7


def reliability_fit(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike | None = None,
    fit: Fit = "isotonic",
    band: Literal["consistency"] | None = "consistency",
    level: float = BAND_LEVEL,
    simultaneous: bool = False,
    points: int = 200,
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> ReliabilityFit:
    """Estimate the outcome as a function of the prediction, without bins.

    Parameters
    ----------
    probs, labels, lens, n_resamples, rng, workers, **facts
        As in :func:`calibration_test`, for a lens that leaves two classes. A :class:`Tally` has a
        ``"band"``, whose cells are rounded outward, and no other fit; ``"band"`` counts independent
        rows and takes neither clusters nor weights.
    fit : {"isotonic", "smooth", "band"}, default "isotonic"
        ``"isotonic"``: the CORP reliability curve, pool adjacent violators (Dimitriadis, Gneiting &
        Jordan 2021). ``"smooth"``: kernel smoothing at the scale of the error itself (Błasiok &
        Nakkiran 2024). ``"band"``: the isotonic curve, and where the true curve lies if it is
        increasing: everywhere together, at every n, whatever its form (Dimitriadis et al. 2023).
        Nothing is simulated, and there is no test; what the band proves is answered by
        :meth:`ReliabilityFit.band_test`.
    band : {"consistency"} or None, default "consistency"
        Where the curve of a calibrated model lies: labels are redrawn from the predictions and the
        curve is fitted anew; a kernel keeps the width that it has for the observed labels.
    level, simultaneous : float, default 0.9, and bool, default False
        Probability that the band holds the curve, at each point, or at all points together (max-T);
        for ``fit="band"`` everywhere.
    points : int, default 200, at most 10 000
        Where the curve is evaluated: half of them at quantiles of the predictions, half equally
        spaced. For ``fit="band"`` more distinct predictions than this are rounded to these points,
        outward, which costs no validity.

    Raises
    ------
    StatisticError
        For a lens that leaves more than two classes, or another fit or band.

    Notes
    -----
    O(n log n + B n). For ``"band"`` O(n log n + N²), N the distinct predictions after rounding:
    with [l_ij, u_ij] the Clopper–Pearson interval of the outcomes at predictions i … j, each side
    at (1 − level) / (N (N + 1)), the curve at x lies between the largest l_ij with x_j ≤ x and the
    smallest u_ij with x_i ≥ x. A band that crosses itself refutes that the curve is increasing.

    Examples
    --------
    >>> import caltest as ct
    >>> curve = reliability_fit(ct.examples.digits(), n_resamples=99, rng=1)
    >>> bool((np.diff(curve.fitted) >= 0).all()), curve.test.statistic
    (True, "CORP('brier')")
    >>> band = reliability_fit(ct.examples.digits(), fit="band")
    >>> answer = band.band_test(tolerance=0.1)
    >>> round(answer.at_least, 3), round(answer.at_most, 3), band.crosses
    (0.0, 0.44, False)
    """
    one_of("fit", fit, ("isotonic", "smooth", "band"))
    one_of("band", band, ("consistency", None))
    fraction("level", level)
    whole("points", points, 2, MOST_POINTS_OF_CURVE)
    verb = "reliability_fit(fit='band')" if fit == "band" else "reliability_fit"
    view = View.of(verb, probs, labels, facts, lens=lens, rng=rng)
    view.needs_two_classes("a curve")
    n_draws, ended, test = 0, "complete", None
    if fit == "band":
        at, fitted, low, high = _honest(view, level, points)
    elif view.from_sums:
        raise StatisticError(f"fit={fit!r} needs the rows: from a tally comes fit='band'")
    else:
        induced = view.induced
        at, p = _abscissae(view.problem, points), induced.probs[:, 0]
        low = high = np.full(at.size, np.nan)
        statistic: CORP | SmoothECE = CORP()
        curves: Callable[[IntArray], FloatArray]
        if fit == "smooth":
            statistic, width = SmoothECE(), smooth_curve(induced).width
            smoother = KernelSmoother(p, induced.weights, width, at)
            w = 1.0 if induced.weights is None else induced.weights
            curves = lambda labels: np.clip(at + smoother(w * ((labels == 0) - p)), 0.0, 1.0)  # noqa: E731
        else:
            pools = CORP().prepare(RowProblem(induced))
            curves = lambda labels: np.array([pools.fit(row)(at) for row in labels])  # noqa: E731
        fitted = curves(induced.labels[None, :])[0]
        run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
        if band is not None:
            scheme = RedrawLabels() if induced.n_clusters is None else SharedRedraws()
            (low, high), n_draws, ended = label_bars(
                induced, curves, scheme, level, simultaneous=simultaneous, **run
            )
        test = view.own_test(statistic, induced, run)
        ended = ending(ended, test.ended)
    return ReliabilityFit(
        predicted=at,
        fitted=fitted,
        low=np.clip(low, 0.0, 1.0),
        high=np.clip(high, 0.0, 1.0),
        spread=spread(view.problem),
        name=view.event,
        subject=view.lens.subject,
        fit=fit,
        band="confidence" if fit == "band" else band or "none",
        level=level,
        simultaneous=simultaneous or fit == "band",
        test=test,
        n_resamples=n_draws,
        ended=ended,
        **view.facts,
    )


def _abscissae(
    problem: Problem, points: int, ends: tuple[float, float] | None = None
) -> FloatArray:
    """Return the predictions at which a curve is drawn, increasing, (m,) with m at most ``points``.

    Half of them are quantiles of the predictions, half are equally spaced. ``problem`` holds the
    predictions behind the lens. ``ends`` (low, high) is the range, None for the range of the
    predictions.
    """
    p = problem.probs[:, 0]
    least, most = ends or (p.min(), p.max())
    quantiles = problem.quantiles(np.linspace(0.0, 1.0, -(-points // 2)))
    return np.unique(np.append(quantiles, np.linspace(least, most, points // 2)))


def _honest(view: View, level: float, points: int) -> tuple[FloatArray, ...]:
    """Return (at, fit, low, high) of the honest isotonic band, four arrays of shape (m,).

    ``at`` are predictions in increasing order, ``fit`` the isotonic curve there, and ``low`` and
    ``high`` the ends of the band. ``view`` holds the data behind the lens, ``level`` is the
    probability that the band holds an increasing curve everywhere. More than ``points`` different
    predictions are rounded to so many, outward; for tallies (sums over fine bins) the band holds
    for any prediction within a bin. StatisticError for tallies with weights or more than 10⁷ rows.
    """
    problem = view.problem
    if view.from_sums and view.data.weights is not None:
        raise UnsupportedFactError("reliability_fit does not take weights yet", fact="weights")
    if view.from_sums and problem.n > ROWS_OF_A_BAND:
        raise StatisticError(f"the band of more than {ROWS_OF_A_BAND} rows takes too much room")
    levels, rows = Cells.levels(problem), problem.tied_rows()
    first, (least, most) = levels.order[levels.starts[:-1]], problem.bounds
    x, least, most = (values[first] for values in (problem.probs[:, 0], least, most))
    grid = np.unique(np.append(least, most))
    if x.size > points:
        grid = _abscissae(problem, points, (least.min(), most.max()))
    hits = levels.sum(problem.events)
    at, low, high = honest_band(x, levels.counts, hits, level, grid, (least, most))
    return at, CORP().prepare(RowProblem(rows)).fit(rows.labels)(at), low, high


def honest_band(
    x: FloatArray, count: IntArray, hits: IntArray, level: float, grid: FloatArray,
    ends: tuple[FloatArray, FloatArray] | None = None,
) -> BandEnds:  # fmt: skip
    """Return (points, low, high): predictions in increasing order, and the ends of the band there.

    ``x`` (m,) are distinct predictions in increasing order with ``count`` rows and ``hits`` events,
    (m,) each. The band holds an increasing curve everywhere with probability ``level``. Predictions
    are rounded to ``grid``, which holds the smallest and the largest: up for the lower end, down
    for the upper, so that both hold for the predictions themselves. The band is given at the first
    and the last prediction of every grid cell. Where ``x`` are means, ``ends`` are two arrays (m,),
    the smallest and the largest predictions there may be; None for ``x``.
    """
    least, most = (x, x) if ends is None else ends
    up, down = np.searchsorted(grid, most), np.searchsorted(grid, least, side="right") - 1
    low = _lower_ends(*_merged(up, count, hits), grid.size, 1.0 - level)
    # The upper end is the lower one of the event that does not happen, read from the right.
    turned = _merged(grid.size - 1 - down[::-1], count[::-1], (count - hits)[::-1])
    high = 1.0 - _lower_ends(*turned, grid.size, 1.0 - level)[::-1]
    change = np.diff(up + down).astype(bool)
    ends_of_cell = np.append(True, change) | np.append(change, True)
    return x[ends_of_cell], low[down[ends_of_cell]], high[up[ends_of_cell]]


def _merged(at: IntArray, count: IntArray, hits: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return (cells, rows, events): the L occupied cells, and cumulative counts up to each of them.

    ``at``, ``count`` and ``hits`` (m,) are the cell, the rows and the events of groups of rows, in
    the order of cells. ``cells`` has shape (L,); cumulative counts have shape (L + 1,) and begin
    with 0.
    """
    cells, first = np.unique(at, return_index=True)
    sums = [np.append(0, np.cumsum(np.add.reduceat(v, first))) for v in (count, hits)]
    return cells, sums[0], sums[1]


def _lower_ends(
    cells: IntArray, rows: IntArray, events: IntArray, size: int, alpha: float
) -> FloatArray:
    """Return the lower limits of the honest band at every point of the grid, (size,).

    ``size`` is the number of points. ``cells`` (L,) are the indices of the L points with rows,
    ``rows`` and ``events`` (L + 1,) cumulative counts over them, from 0; ``alpha`` is the error
    probability of all limits together.
    """
    from scipy.special import gammaln

    ends = np.zeros(size)
    log_factorial = gammaln(np.arange(rows[-1] + 1.0) + 1.0)
    share = np.log(alpha / (cells.size * (cells.size + 1.0)))
    _raise_ends(rows, events, log_factorial, share, bounds := np.zeros(cells.size))
    ends[cells] = bounds
    return np.maximum.accumulate(ends)


@kernel
def _raise_ends(rows, events, log_factorial, log_alpha, ends_out):  # type: ignore[no-untyped-def]
    # The largest Clopper–Pearson bound of all intervals of cells that end at k or before.
    low, log_low, log_rest, best = 0.0, -np.inf, 0.0, 0
    for k in range(ends_out.size):
        for turn in range(k + 2):
            i = best if turn == 0 else k + 1 - turn  # what was best is so again, as a rule
            n, s = rows[k + 1] - rows[i], events[k + 1] - events[i]
            if s <= n * low:
                continue
            ways = log_factorial[n] - log_factorial[s] - log_factorial[n - s]
            if low > 0.0 and ways + s * log_low + (n - s) * log_rest >= log_alpha:
                continue  # P(X = s) alone is too large
            # Newton's method in log p on log P(X >= s), which is concave: from the left, no step
            # goes too far. Where its start is below, P(X >= s) <= (e n p / s)^s.
            at = max(log_low, log_alpha / s + np.log(s / n) - 1.0)
            for _ in range(200):
                p = np.exp(at)
                odds, term, tail, j = p / (1.0 - p), 1.0, 1.0, s
                while j < n and term > 1e-17 * tail:
                    term *= odds * (n - j) / (j + 1)
                    tail += term
                    j += 1
                over = ways + s * at + (n - s) * np.log1p(-p) + np.log(tail) - log_alpha
                step = -over * tail / s
                if step <= 1e-15:
                    break
                at += step
            if at > log_low:
                low, log_low, best = np.exp(at), at, i
                log_rest = np.log1p(-low)
        ends_out[k] = low


# ------------------------------------------------------------------------------
# Reliability on the simplex: whole vectors of three or four classes.


@dataclass(frozen=True, repr=False)
class SimplexGrid(Written):
    """The simplex cut into m slices along every axis: m² equal triangles for three classes.

    The cell of a row is (⌊m p_0⌋, …, ⌊m p_{K−1}⌋), in O(K n log n); for four classes these are
    m (m² + 1) / 2 tetrahedra and octahedra, which differ in volume. Points in which all m p_k are
    whole are corners of several cells and go to one that lies towards lower values of their largest
    probability; ``UniformBins(m, closed="left")`` is the same partition but for them.

    Parameters
    ----------
    n_bins : int, default 5
        Number of slices along an axis, m.

    Examples
    --------
    >>> SimplexGrid(2)(np.array([[0.6, 0.3, 0.1], [0.4, 0.4, 0.2], [1.0, 0.0, 0.0]]))
    array([1, 0, 1])
    """

    n_bins: int = 5

    def __post_init__(self) -> None:
        whole("n_bins", self.n_bins, most=MOST_BINS)

    def __call__(self, probs: FloatArray) -> IntArray:
        first, *others = self.slices(probs).T
        cell = first
        for slices in others:  # numbered anew for every axis, so that no number overflows
            cell = np.unique(cell * self.n_bins + slices, return_inverse=True)[1]
        return cell

    def slices(self, probs: FloatArray) -> IntArray:
        """Return the slice of every row along every axis of the simplex, integers (n, K).

        ``probs`` (n, K) are probability vectors. Slices are numbered from 0 to m − 1, m =
        ``n_bins``.
        """
        slices = np.floor(self.n_bins * (probs + EDGE_TOLERANCE)).astype(np.int64)
        corner = np.flatnonzero(slices.sum(axis=1) == self.n_bins)
        slices[corner, slices[corner].argmax(axis=1)] -= 1
        return slices


def reliability_simplex(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike = Canonical(),
    bins: Binning | int = SimplexGrid(5),
    level: float = BAND_LEVEL,
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> ReliabilitySimplex:
    """Compare predicted vectors with outcomes cell by cell.

    Parameters
    ----------
    probs, labels, n_resamples, rng, workers, **facts
        As in :func:`calibration_test`; ``by`` is refused.
    lens : lens, default Canonical()
        Anything that leaves three classes, for a picture, or four, such as ``TopK(2)`` or
        ``Partition([[0, 1], [2, 3], [4, 5]])``.
    bins : binning or int, default SimplexGrid(5)
        The cells; a number m means ``SimplexGrid(m)``. ``VarianceTree`` follows the data.
    level : float, default 0.9
        Cells count as significant so that with a calibrated model none does with at least this
        probability.

    Raises
    ------
    StatisticError
        When the lens leaves fewer than three classes or more than four.

    Notes
    -----
    A cell's p-value is exact: the smallest two-sided Poisson-binomial p-value of its classes, times
    their number (Bonferroni); over the cells it is adjusted by Holm's method. O(n K). With clusters
    or weights that are no multiples of one number, labels are drawn as the test of the ECE draws
    them, inflated by its κ: the p-value belongs to the largest standardised deviation of a class,
    adjusted by the joint law of all cells (max-T; Westfall & Young 1993). O(B n K).

    References
    ----------
    Vaicenavicius et al. 2019, §4.4 and Fig. 1.

    Examples
    --------
    >>> import caltest as ct
    >>> six = ct.examples.SixPoints().sample(6000, rng=1)
    >>> simplex = reliability_simplex(six, rng=1)
    >>> simplex.count
    array([1031,  975, 1013,  965, 1017,  999])
    >>> simplex.significant.all()
    np.True_
    """
    fraction("level", level)
    view = View.of("reliability_simplex", probs, labels, facts, lens=lens, rng=rng)
    induced, n_classes = view.induced, view.induced.n_classes
    if n_classes not in (3, 4):
        raise StatisticError(
            f"reliability on the simplex is for three classes, or four without a picture, but "
            f"{name_of(view.lens)} leaves {n_classes}: group them, for instance with "
            "lens=Partition([[0, 1], [2], [3]])"
        )
    bins = SimplexGrid(int(bins)) if is_whole(bins) else as_binning(bins)
    cells = Cells.of(bins, RowProblem(induced))
    first, onehot = cells.starts[:-1], induced.labels[:, None] == np.arange(n_classes)
    ordered = induced.probs[cells.order]
    bin_low, bin_high = np.minimum.reduceat(ordered, first), np.maximum.reduceat(ordered, first)
    if isinstance(bins, SimplexGrid):
        bin_low = bins.slices(ordered[first]) / bins.n_bins
        bin_high = bin_low + 1.0 / bins.n_bins
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    test = view.own_test(ECE(bins), induced, run)
    pvalue, adjusted, n_draws, ended = _pvalues(induced, cells, test, run)
    return ReliabilitySimplex(
        bin_low=bin_low, bin_high=bin_high, count=cells.counts,
        predicted=np.stack([cells.mean(column) for column in induced.probs.T], axis=1),
        observed=np.stack([cells.mean(column) for column in onehot.T], axis=1), pvalue=pvalue,
        adjusted=adjusted, names=view.components, bins=name_of(bins), level=level, test=test,
        n_resamples=n_draws, ended=ending(test.ended, ended), **view.facts,
    )  # fmt: skip


def _pvalues(
    induced: Predictions, cells: Cells, test: CalibrationTestResult, run: Run
) -> tuple[FloatArray, FloatArray, int, str]:
    """Return (p-values, adjusted p-values, number of draws, ending) of the L cells of a simplex.

    Both arrays have shape (L,). They are exact, adjusted by Holm's method, where cells have exact
    laws (0 draws); otherwise from redrawn labels, adjusted by max-T. ``induced`` has the
    predictions and outcomes behind the lens, ``cells`` partition its rows, and ``test`` is the test
    of the ECE over the cells, which knows the clusters. ``run`` holds n_resamples, rng and workers.
    The ending is "complete" or "interrupted".
    """
    weights, clusters, k = induced.weights, test.clusters, induced.n_classes
    whole = weights is None or bool((weights == np.rint(weights)).all())
    if clusters is None and whole and cells.mass.max() <= (np.inf if weights is None else MAX_MASS):
        hits = [np.rint(cells.mean(induced.labels == j) * cells.mass).astype(int) for j in range(k)]
        pvalues = [
            cell_pvalues(replace(cells, problem=RowProblem(OneVsRest(j)(induced))), hits[j])
            for j in range(k)
        ]
        pvalue = np.minimum(1.0, k * np.min(pvalues, axis=0))
        return pvalue, np.array(holm(list(pvalue))), 0, "complete"
    none: tuple[Coupled, ...] = (Coupled(RedrawLabels()),)
    schemes = none if clusters is None else agreeing_schemes("auto", induced, stack=6)[0]
    parts = [
        drawn_pvalues(induced, cells, cast(LabelScheme, law), kappa, **run)
        for law, kappa in schemes
    ]
    pvalue, adjusted = np.max([part[:2] for part in parts], axis=0)
    return pvalue, adjusted, parts[0][2], ending(*(ended for *_, ended in parts))


# ------------------------------------------------------------------------------
# What the number of bins does to an estimate, its noise floor and its p-value.


#: Binnings that are named by a number of bins.
NUMBERED = (UniformBins, QuantileBins, SimplexGrid)


COUNTS = (2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)


def bin_sensitivity(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike | None = None,
    bins: Sequence[int | Binning] = COUNTS,
    distance: str | Distance = "tv",
    level: float = BAND_LEVEL,
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = None,
    **facts: Unpack[Facts],
) -> BinSensitivity:
    """Test the ECE for many numbers of bins: does the finding depend on the binning?

    Each p-value is valid for a binning chosen beforehand. The smallest of them is not: pass the
    statistics together to :func:`joint_test` for an adjusted one.

    Parameters
    ----------
    probs, labels, lens, n_resamples, rng, workers, **facts
        As in :func:`calibration_test`.
    bins : sequence of int or binning, default 2 … 100
        Numbers of equal-width bins, or binnings such as ``[QuantileBins(m) for m in (5, 10, 20)]``.
        For a :class:`Tally` the default keeps binnings made of its micro-cells.
    distance
        As in :class:`ECE`.
    level : float, default 0.9
        Central part of the null distribution that the noise band holds.

    Examples
    --------
    >>> import caltest as ct
    >>> table = bin_sensitivity(ct.examples.digits("best"), bins=[5, 15, 50])
    >>> table.estimate.round(3), table.null_mean.round(3)
    (array([0.054, 0.057, 0.07 ]), array([0.019, 0.032, 0.058]))
    """
    fraction("level", level)
    if not isinstance(bins, Sequence) or not bins:
        raise StatisticError("bins must be a list of numbers or binnings, such as [5, 15, 50]")
    view = View.of("bin_sensitivity", probs, labels, facts, lens=lens, rng=rng)
    grid = view.problem.grid
    if grid is not None and bins is COUNTS:
        bins = [count for count in COUNTS if grid % count == 0]
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    binnings = [as_binning(one) for one in bins]
    rows, tests = [], []
    for binning in binnings:
        test = view.own_test(ECE(binning, distance=distance), view.problem, run)
        law = test.null_distribution
        assert law is not None
        ends = law.ppf(0.5 * (1.0 - level)), law.ppf(0.5 * (1.0 + level))
        rows.append((test.estimate, test.null_mean, *ends, test.pvalue))
        tests.append(test)
    estimate, mean, low, high, pvalue = np.array(rows).T

    def occupied(binning: Binning) -> int:
        return len(Cells.of(binning, view.problem))

    sizes = [b.n_bins if isinstance(b, NUMBERED) else occupied(b) for b in binnings]
    return BinSensitivity(
        bins=tuple(map(name_of, binnings)), size=np.array(sizes), estimate=estimate,
        null_mean=mean, low=low, high=high, pvalue=pvalue, distance=name_of(distance), level=level,
        n_resamples=max(test.n_resamples for test in tests),
        ended=ending(*(test.ended for test in tests)), **view.facts,
    )  # fmt: skip


# ------------------------------------------------------------------------------
# Decompositions of a mean score: by isotonic regression, and over cells.
#
# :func:`corp_decomposition` has no bins (isotonic regression), :func:`brier_decomposition` has
# reliability, resolution and uncertainty over the cells of a partition.


def corp_decomposition(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike | None = None,
    score: Score = "brier",
    **facts: Unpack[Facts],
) -> CORPDecomposition:
    """Take a mean score apart into miscalibration, discrimination and uncertainty.

    Every part is a difference of scores under the isotonic fit: no bins, no tuning. O(n log n).

    Parameters
    ----------
    probs, labels, lens, **facts
        As in :func:`calibration_test`, for a lens with two classes. Clusters change no part. For a
        :class:`Tally` the fit ties the rows of a micro-cell; the mean score is exact.
    score : {"brier", "log"}, default "brier"
        (p − y)², or −log of the probability of the label: infinite for a label of probability 0, as
        are then ``mean_score`` and ``miscalibration``.

    References
    ----------
    Dimitriadis, Gneiting & Jordan, "Stable reliability diagrams for probabilistic classifiers",
    PNAS 118(8), 2021.

    Examples
    --------
    >>> parts = corp_decomposition([0.2, 0.6, 0.4, 0.9], [0, 0, 1, 1])
    >>> parts.mean_score, parts.miscalibration, parts.discrimination, parts.uncertainty
    (0.1925, 0.0675, 0.125, 0.25)
    """
    one_of("score", score, ("brier", "log"))
    analysis = Analysis.of("corp_decomposition", probs, labels, facts, lens=lens)
    induced = analysis.problem.tied_rows()
    fixed = CORP(score).prepare(RowProblem(induced))
    mean_score = fixed.mean_score(induced.labels)  # infinite where an impossible outcome occurred
    if analysis.from_sums:
        of_all = BrierScore() if score == "brier" else LogScore()
        mean_score = evaluated(of_all, analysis.problem)[1]
    fit = fixed.fit(induced.labels)
    # The best constant forecast is the rate of events: its score is the uncertainty
    w = np.ones(induced.n) if induced.weights is None else induced.weights
    events, total = np.array([[w[induced.labels == 0].sum()], [w.sum()]])
    recalibrated = best_score(fit.observed * fit.count, fit.count, score)
    uncertainty = best_score(events, total, score)
    return analysis.result(
        CORPDecomposition, mean_score=mean_score, miscalibration=mean_score - recalibrated,
        discrimination=uncertainty - recalibrated, uncertainty=uncertainty, score=score, fit=fit,
    )  # fmt: skip


def brier_decomposition(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike | None = None,
    bins: Binning | int = UniformBins(15),
    **facts: Unpack[Facts],
) -> BrierDecomposition:
    """Take the Brier score apart over the cells of a partition. O(n K).

    Sampling noise biases both reliability and resolution upward, the more the smaller the cells
    are; :func:`corp_decomposition` needs no cells.

    Parameters
    ----------
    probs, labels, lens, **facts
        As in :func:`calibration_test`; ``Canonical()`` takes the score of all classes apart.
        Clusters change no part. For a :class:`Tally` bins are made of its micro-cells, and all
        parts equal the parts of the rows.
    bins : binning or int, default UniformBins(15)
        The partition, as for :class:`caltest.ECE`.

    References
    ----------
    Murphy, "A new vector partition of the probability score", Journal of Applied Meteorology 12,
    1973. Stephenson, Coelho & Jolliffe, "Two extra components in the Brier score decomposition",
    Weather and Forecasting 23, 2008.

    Examples
    --------
    >>> parts = brier_decomposition([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 0])
    >>> parts.mean_score, parts.reliability, parts.resolution, parts.uncertainty
    (0.1875, 0.0625, 0.0625, 0.1875)
    """
    bins = as_binning(bins)
    analysis = Analysis.of("brier_decomposition", probs, labels, facts, lens=lens)
    problem = analysis.problem
    cells, (squares, products) = Cells.of(bins, problem), problem.products
    residuals = problem.sums(problem.observed, cells).cells
    assert residuals is not None
    size, p = cells.mass[:, None], cells.expected
    y = p + residuals[0]
    n, overall = size.sum(), y.sum(axis=0) / size.sum()
    parts = {
        "mean_score": squares - 2.0 * products + y.sum(),
        # Σ w (p̄ − ȳ)², with sums p and y in place of means
        "reliability": ((p - y) ** 2 / size).sum(),
        "resolution": (size * (y / size - overall) ** 2).sum(),
        "uncertainty": n * (overall * (1.0 - overall)).sum(),
        # Stephenson et al. (2008): what Murphy leaves out where predictions of a cell differ
        "within_variance": squares - (p**2 / size).sum(),
        "within_covariance": 2.0 * (products - (p * y / size).sum()),
    }
    numbers: Fields = {name: float(part / n) for name, part in parts.items()}
    return analysis.result(BrierDecomposition, bins=name_of(bins), **numbers)
