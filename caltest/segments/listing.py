"""What is said of segments above the bar: no echoes, intervals, and how much it matters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.progress import progress
from caltest.segments.lattice import ALONE
from caltest.segments.scan import SHIFTS, TIES, Scan, log_moment, sums, tilted

#: Segments that are listed, tried, and corrected one after the other; the largest correction.
MOST_LISTED, MOST_TRIED, MOST_CORRECTED, FARTHEST = 10, 40, 50, 6.0
#: Shifts that stand for "no or every possible event happens".
LAST = 30.0
#: Parts of the rows that are held out in turn, and rows of the others that are learnt from.
FOLDS, LEARNT = 5, 50_000
#: Shares of rows whose reach is told; quantile of the power, and how much of the gain the grid has.
SHARES, POWER, GRID = (0.05, 0.2), 0.84, 0.98
#: Rows that stand for all, spread over the order of predictions.
ENOUGH = 100_000


def first_largest(values: FloatArray) -> int:
    """Return the first place of the largest value, but for rounding."""
    return int(np.flatnonzero(values >= values.max() - TIES)[0])


def left(
    scan: Scan, q: FloatArray, events: FloatArray, floor: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (O − E)² / (2 φ max(V, floor)) − π under predictions q, with O − E and V."""
    expected, variance = sums(scan.lattice, np.stack([scan.w * q, scan.w * q * (1.0 - q)], 1)).T
    gap, variance = events - expected, np.maximum(variance, floor)
    return 0.5 * gap**2 / (variance * scan.dispersion) - scan.lattice.price, gap, variance


def likelihood(p: FloatArray, w: FloatArray, events: float, t: float) -> float:
    """Return t O − Σ w ln(1 − p + p eᵗ); far below 0 by the other label, for predictions of 1."""
    if t < SHIFTS[0]:
        p, events, t = 1.0 - p, float(w.sum()) - events, -t
    return float(t * events - w @ log_moment(p, t))


def best_shift(p: FloatArray, w: FloatArray, events: float) -> float:
    """Return the shift at which as many events are expected as seen, infinite where none does."""
    from scipy.optimize import brentq

    if events <= w[p >= 1.0].sum() + 1e-12:
        return -np.inf
    if events >= w[p > 0.0].sum() - 1e-12:
        return np.inf

    def gap(t: float) -> float:
        return float(w @ tilted(p, t)) - events

    if gap(-LAST) >= 0.0 or gap(LAST) <= 0.0:  # nearly as sure as 0 and 1
        return -np.inf if gap(-LAST) >= 0.0 else np.inf
    return float(brentq(gap, -LAST, LAST, xtol=1e-13))


def short_list(scan: Scan, y: FloatArray, evidence: FloatArray, bar: float) -> list[int]:
    """Return segments above the bar, each of which correcting the earlier ones leaves above it."""
    w, q, listed = scan.w, scan.p.copy(), list[int]()
    is_open, remaining = evidence > bar, evidence
    events = sums(scan.lattice, (w * y)[:, None])[:, 0] if is_open.any() else evidence
    for _ in range(MOST_TRIED):
        if not is_open.any() or len(listed) == MOST_LISTED:
            break
        s = first_largest(np.where(is_open, remaining, -np.inf))
        if remaining[s] <= bar:
            break
        is_open[s] = False
        m = scan.lattice.rows(s)
        shift = best_shift(q[m], w[m], float(w[m] @ y[m]))
        t = float(np.clip(shift, -LAST, LAST))
        gain = likelihood(q[m], w[m], float(w[m] @ y[m]), t)
        if gain / scan.dispersion[s] - scan.lattice.price[s] > bar:
            listed.append(s)
            q[m] = tilted(q[m], np.clip(shift, -FARTHEST, FARTHEST))
            remaining = left(scan, q, events, 1e-9)[0]
    return listed


class Difference(NamedTuple):
    """The mean residual of a segment, the ends of its interval, and the shift behind it."""

    mean: float
    low: float
    high: float
    shift: float


def interval(
    p: FloatArray, w: FloatArray, y: FloatArray, level: float, dispersion: float
) -> Difference:
    """Return {δ(t): l(t̂) − l(t) ≤ level φ ψ}, l(t) = t O − K(t), as mean residuals.

    ψ = max(1, Σ w² (y − p(t̂))² / Σ w² p(t̂) (1 − p(t̂))) allows for errors that cancel in a segment.
    """
    from scipy.optimize import brentq

    events, weight, expected = float(w @ y), float(w.sum()), float(w @ p)
    shift = best_shift(p, w, events)
    at = float(np.clip(shift, -LAST, LAST))
    fit = tilted(p, at)
    v = float(w**2 @ (fit * (1.0 - fit)))
    spread = max(1.0, float(w**2 @ (y - fit) ** 2) / v) if v > TIES else 1.0

    lowest = likelihood(p, w, events, at) - level * dispersion * spread

    def above(t: float) -> float:
        return likelihood(p, w, events, t) - lowest

    ends = []
    for side in (-1.0, 1.0):
        far = at + 2.0 * LAST * side
        if shift == side * np.inf or not np.isfinite(level) or above(far) >= 0.0:
            all_or_none = w[p > 0.0] if side > 0.0 else w[p >= 1.0]
            ends.append(float(all_or_none.sum()) - expected)
        else:
            end = brentq(above, min(at, far), max(at, far), xtol=1e-13)
            ends.append(float(w @ tilted(p, end)) - expected)
    return Difference((events - expected) / weight, ends[0] / weight, ends[1] / weight, at)


class StrongError(NamedTuple):
    """D = mean of 2 g r − g², below E (E[y − p | x, p])² on average, and its standard error."""

    mean: float
    error: float


def strong_error(scan: Scan, y: FloatArray, cluster: IntArray, bar: float) -> StrongError:
    """Learn corrections on four fifths of the clusters, g = q − p on the last fifth, in turn.

    Steps shift the segment with the most evidence above the bar by half its best shift. Held-out
    rows, whose labels g has not seen, have E[2 g r − g²] ≤ E[y − p | x, p]². O(250 n d²) at most.
    """
    q, fold = scan.p.copy(), cluster % FOLDS
    with progress(FOLDS, "folds") as advance:
        for k in range(FOLDS):
            held, rows = fold == k, np.flatnonzero(fold != k)
            rows = rows[:: -(-rows.size // LEARNT)] if rows.size else rows
            own = scan.lattice.take(held)
            for s, t in _corrections(scan.take(rows), y[rows], bar):
                m = np.flatnonzero(held)[own.rows(s)]
                q[m] = tilted(q[m], t)
            advance(1)
    g, w = q - scan.p, scan.w
    d = 2.0 * g * (y - scan.p) - g * g
    mean = float(w @ d / w.sum())
    spread = np.bincount(cluster, w * (d - mean))
    return StrongError(mean, float(np.sqrt((spread**2).sum()) / w.sum()))


def _corrections(scan: Scan, y: FloatArray, bar: float) -> list[tuple[int, float]]:
    """Return segments and half shifts, until no evidence above the bar is left."""
    if not y.size:
        return []
    q, steps = scan.p.copy(), list[tuple[int, float]]()
    events = sums(scan.lattice, (scan.w * y)[:, None])[:, 0]
    for _ in range(MOST_CORRECTED):
        evidence, gap, variance = left(scan, q, events, 0.5)
        s = first_largest(evidence)
        if evidence[s] <= bar:
            break
        steps.append((s, 0.5 * float(np.clip(gap[s] / variance[s], -1.0, 1.0))))
        m = scan.lattice.rows(s)
        q[m] = tilted(q[m], steps[-1][1])
    return steps


def reach(scan: Scan, bar: float) -> tuple[tuple[float, float | None], ...]:
    """Return which difference in a share f of the rows is found with power 0.8; None if none is.

    By the price π of one column of numbers, t solves t K′(t) − K(t) − 0.84 t √K″(t) =
    (c + π) / 0.98, K = (f / φ) Σ w ln(1 − p + p eᵗ); the difference is (K′(t) − K′(0)) φ / (f Σ w).
    """
    from scipy.optimize import brentq

    order = np.argsort(scan.p, kind="stable")
    order = order[:: -(-order.size // ENOUGH)]
    p, w = scan.p[order], scan.w[order] * (scan.w.sum() / scan.w[order].sum())
    columns = max(int((scan.lattice.blocks[:, 3] == 0).sum()), 1)
    wanted, phi = (bar + np.log(columns * ALONE)) / GRID, float(scan.dispersion[0])
    reached: list[tuple[float, float | None]] = []
    for share in SHARES:

        def power(t: float, f: float = share / phi) -> float:
            fit = tilted(p, t)
            gain = t * (w @ fit) - w @ log_moment(p, t)
            return float(f * gain - POWER * t * np.sqrt(f * (w @ (fit * (1.0 - fit))))) - wanted

        far = next((t for t in np.geomspace(0.01, LAST, 40) if power(t) > 0.0), None)
        t = 0.0 if far is None else brentq(power, 0.0, far)
        gap = float((w @ tilted(p, t) - w @ p) / w.sum())
        reached.append((share, None if far is None else gap))
    return tuple(reached)
