"""Reliability curves without bins: isotonic (CORP) and smooth, with bands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Unpack

import numpy as np

from caltest._base.arrays import RNG
from caltest._base.checks import fraction, one_of, whole
from caltest._base.compiled import kernel
from caltest._base.defaults import BAND_LEVEL, N_TOGETHER
from caltest.errors import StatisticError, UnsupportedFactError
from caltest.inference.admission import ROWS
from caltest.lenses import LensLike
from caltest.predictions import Facts, FloatArray, IntArray
from caltest.problem import Cells, Problem, RowProblem
from caltest.reliability.bars import label_bars
from caltest.reliability.view import View, spread
from caltest.results import ReliabilityFit, ending
from caltest.simulate import RedrawLabels, Run, SharedRedraws, Workers
from caltest.statistics import CORP, SmoothECE
from caltest.statistics.smooth import KernelSmoother, smooth_curve

Fit = Literal["isotonic", "smooth", "band"]
#: Predictions, and the ends of a band there.
Band = tuple[FloatArray, FloatArray, FloatArray]
#: Rows of a tally that may have a band, which takes 8 bytes for each.
MOST_ROWS = 10**7


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
    workers: Workers = 1,
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
    points : int, default 200
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
    whole("points", points, 2)
    takes = {"tally", *({"folds"} if fit == "band" else ROWS)}
    view = View.of("reliability_fit", probs, labels, facts, lens=lens, rng=rng, takes=takes)
    view.needs_two_classes("a curve")
    n_draws, ended, test = 0, "complete", None
    if fit == "band":
        at, fitted, low, high = _honest(view, level, points)
    elif view.from_sums:
        raise StatisticError(f"fit={fit!r} needs the rows: from a tally comes fit='band'")
    else:
        induced = view.induced
        at, p = _points(view.units, points), induced.probs[:, 0]
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
        test = view.test(statistic, induced, run)
        ended = ending(ended, test.ended)
    return ReliabilityFit(
        predicted=at,
        fitted=fitted,
        low=np.clip(low, 0.0, 1.0),
        high=np.clip(high, 0.0, 1.0),
        spread=spread(view.units),
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


def _points(problem: Problem, points: int, ends: tuple[float, float] | None = None) -> FloatArray:
    """Return quantiles of the predictions and points at equal distances between the ends."""
    p = problem.probs[:, 0]
    least, most = ends or (p.min(), p.max())
    quantiles = problem.quantiles(np.linspace(0.0, 1.0, -(-points // 2)))
    return np.unique(np.append(quantiles, np.linspace(least, most, points // 2)))


def _honest(view: View, level: float, points: int) -> tuple[FloatArray, ...]:
    """Return where the band is shown, of tallies rounded outward, the isotonic fit and its ends."""
    problem = view.units
    if view.from_sums and view.data.weights is not None:
        raise UnsupportedFactError("reliability_fit does not take weights yet", fact="weights")
    if view.from_sums and problem.n > MOST_ROWS:
        raise StatisticError(f"the band of more than {MOST_ROWS} rows takes too much room")
    levels, rows = Cells.levels(problem), problem.tied_rows()
    first, (least, most) = levels.order[levels.starts[:-1]], problem.bounds
    x, least, most = (values[first] for values in (problem.probs[:, 0], least, most))
    grid = np.unique(np.append(least, most))
    if x.size > points:
        grid = _points(problem, points, (least.min(), most.max()))
    hits = levels.sum(problem.events)
    at, low, high = honest_band(x, levels.counts, hits, level, grid, (least, most))
    return at, CORP().prepare(RowProblem(rows)).fit(rows.labels)(at), low, high


def honest_band(
    x: FloatArray, count: IntArray, hits: IntArray, level: float, grid: FloatArray,
    ends: tuple[FloatArray, FloatArray] | None = None,
) -> Band:  # fmt: skip
    """Return predictions, increasing, and the ends of the band there.

    Distinct predictions, with their rows and events, are rounded to a grid that holds the smallest
    and the largest: up for the lower end, down for the upper, so that both hold for the predictions
    themselves. The band is given at the first and the last prediction of every cell. Where ``x``
    are means, ``ends`` are the smallest and the largest predictions there may be.
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
    """Return the occupied cells, and rows and events up to each of them."""
    cells, first = np.unique(at, return_index=True)
    sums = [np.append(0, np.cumsum(np.add.reduceat(v, first))) for v in (count, hits)]
    return cells, sums[0], sums[1]


def _lower_ends(
    cells: IntArray, rows: IntArray, events: IntArray, size: int, alpha: float
) -> FloatArray:
    """Return the lower end at every point of the grid, of which some are occupied cells."""
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
