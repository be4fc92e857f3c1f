"""What is said of segments above the bar: no echoes, intervals, and how much it matters."""

from __future__ import annotations

from itertools import takewhile

import numpy as np

from caltest._base.arrays import BoolArray, FloatArray, IntArray
from caltest._base.progress import progress
from caltest.segments.lattice import ALONE
from caltest.segments.scan import SHIFTS, TIES, Scan, log_moment, tilted

#: Segments that are listed, tried, and corrected one after the other; the largest correction.
MOST_LISTED, MOST_TRIED, MOST_CORRECTED, FARTHEST = 10, 40, 50, 6.0
#: Evidence that a second condition has to add to be named before the first alone: 2 nats, χ² of 4.
ADDED = 2.0
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


def likelihood(p: FloatArray, w: FloatArray, events: float, t: float) -> float:
    """Return t O − Σ w ln(1 − p + p eᵗ); far below 0 by the other label, for predictions of 1."""
    if t < SHIFTS[0]:
        p, events, t = 1.0 - p, float(w.sum()) - events, -t
    return float(t * events - w @ log_moment(p, t))


def best_shift(p: FloatArray, w: FloatArray, events: float) -> float:
    """Return the shift at which as many events are expected as seen, infinite where none does."""
    from scipy.optimize import brentq

    def gap(t: float) -> float:
        return float(w @ tilted(p, t)) - events

    # Possible labels of one kind only, also where predictions are nearly as sure as 0 and 1.
    if events <= w[p >= 1.0].sum() + 1e-12 or gap(-LAST) >= 0.0:
        return -np.inf
    if events >= w[p > 0.0].sum() - 1e-12 or gap(LAST) <= 0.0:
        return np.inf
    return float(brentq(gap, -LAST, LAST, xtol=1e-13))


def short_list(scan: Scan, y: FloatArray, evidence: FloatArray, bar: float) -> list[int]:
    """Return segments above the bar, each of which correcting the earlier ones leaves above it.

    Every segment above the bar may be named at its level, so that a plainer one comes first which
    has nearly as much evidence.
    """
    w, q, listed = scan.w, scan.p.copy(), list[int]()
    is_open, remaining = evidence > bar, evidence
    for _ in range(MOST_TRIED):
        if not is_open.any() or len(listed) == MOST_LISTED:
            break
        s = first_largest(np.where(is_open, remaining, -np.inf))
        if remaining[s] <= bar:
            break
        s = _plainer(scan, np.where(is_open & (remaining > bar), evidence, -np.inf), s)
        is_open[s] = False
        m = scan.lattice.rows(s)
        events = float(w[m] @ y[m])
        shift = best_shift(q[m], w[m], events)
        gain = likelihood(q[m], w[m], events, float(np.clip(shift, -LAST, LAST)))
        if gain / scan.dispersion[s] - scan.lattice.price[s] > bar:
            listed.append(s)
            q[m] = tilted(q[m], np.clip(shift, -FARTHEST, FARTHEST))
            remaining = left(scan, y, q, w, 1e-9)[0]
    return listed


def _plainer(scan: Scan, evidence: FloatArray, segment: int) -> int:
    """Return a segment of fewer of its columns with evidence as good as that, or the same."""
    of = {*scan.lattice.members[segment]}
    alone = takewhile(lambda member: len(member[1]) < 2, enumerate(scan.lattice.members))
    plain = [place for place, member in alone if {*member} < of]
    best = max(plain, key=lambda place: evidence[place], default=segment)
    return best if evidence[best] > evidence[segment] - ADDED else segment


def left(
    scan: Scan, y: FloatArray, q: FloatArray, w: FloatArray, floor: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (O − E)² / (2 φ max(V, floor)) − π under predictions q, with O − E and V."""
    gap, variance = scan.lattice.sums(np.stack([w * (y - q), w * q * (1.0 - q)]))
    variance = np.maximum(variance, floor)
    return 0.5 * gap**2 / (variance * scan.dispersion) - scan.lattice.price, gap, variance


def interval(
    p: FloatArray, w: FloatArray, y: FloatArray, level: float, dispersion: float
) -> tuple[float, float, float, float]:
    """Return the mean residual of a segment, the ends of its interval, and the best shift t̂.

    The interval is {δ(t): l(t̂) − l(t) ≤ level φ ψ}, l(t) = t O − K(t), δ(t) the mean of p(t) − p;
    ψ = max(1, Σ w² (y − p(t̂))² / Σ w² p(t̂) (1 − p(t̂))) allows for errors that cancel in a segment.
    No shift makes an impossible outcome possible: of such rows the ends take any probability.
    """
    from scipy.optimize import brentq

    weight, gap = float(w.sum()), float(w @ (y - p))
    possible = np.where(y > 0.0, p > 0.0, p < 1.0)
    free, offset = float(w[~possible].sum()), float(w[~possible] @ p[~possible])
    p, w, y = p[possible], w[possible], y[possible]
    events, expected = float(w @ y), float(w @ p) + offset
    shift = best_shift(p, w, events)
    at = float(np.clip(shift, -LAST, LAST))
    fit = tilted(p, at)
    v = float(w**2 @ (fit * (1.0 - fit)))
    spread = max(1.0, float(w**2 @ (y - fit) ** 2) / v) if v > TIES else 1.0
    lowest = likelihood(p, w, events, at) - level * dispersion * spread

    def above(t: float) -> float:
        return likelihood(p, w, events, t) - lowest

    def end(side: float) -> float:
        far = at + 2.0 * LAST * side
        if shift == side * np.inf or not np.isfinite(level) or above(far) >= 0.0:
            return float(w[p > 0.0 if side > 0.0 else p >= 1.0].sum())  # all or no possible events
        t = float(brentq(above, min(at, far), max(at, far), xtol=1e-13))
        return float(w @ tilted(p, t))

    low, high = end(-1.0) - expected, end(1.0) + free - expected
    return gap / weight, low / weight, high / weight, at


def strong_error(scan: Scan, y: FloatArray, cluster: IntArray, bar: float) -> tuple[float, float]:
    """Return D, the mean of 2 g r − g² with r = y − p, and its standard error.

    Corrections g = q − p of a fifth of the clusters are learnt on the others, in turn. As g has not
    seen their labels, E[2 g r − g²] ≤ E[y − p | x, p]². At most 250 times the sums of segments.
    """
    q, fold, w = scan.p.copy(), cluster % FOLDS, scan.w
    with progress(FOLDS, "folds") as advance:
        for k in range(FOLDS):
            others, teaching = np.flatnonzero(fold != k), np.zeros(q.size, dtype=bool)
            teaching[others[:: max(1, -(-others.size // LEARNT))]] = True
            q[fold == k] = _corrected(scan, y, teaching, bar)[fold == k]
            advance(1)
    g = q - scan.p
    d = 2.0 * g * (y - scan.p) - g * g
    mean = float(w @ d / w.sum())
    spread = np.bincount(cluster, w * (d - mean))
    return mean, float(np.sqrt((spread**2).sum()) / w.sum())


def _corrected(scan: Scan, y: FloatArray, teaching: BoolArray, bar: float) -> FloatArray:
    """Shift the segment with the most evidence above the bar by half its best shift, repeatedly."""
    q, w = scan.p.copy(), scan.w * teaching
    for _ in range(MOST_CORRECTED):
        evidence, gap, variance = left(scan, y, q, w, 0.5)
        s = first_largest(evidence)
        if evidence[s] <= bar:
            break
        m = scan.lattice.rows(s)
        q[m] = tilted(q[m], 0.5 * np.clip(gap[s] / variance[s], -1.0, 1.0))
    return q


def reach(scan: Scan, bar: float) -> tuple[tuple[float, float | None], ...]:
    """Return which difference in a share f of the rows is found with power 0.8; None if none is.

    By the price π of one column of numbers, t solves t K′(t) − K(t) − 0.84 t √K″(t) =
    (c + π) / 0.98, K = (f / φ) Σ w ln(1 − p + p eᵗ); the difference is (K′(t) − K′(0)) φ / (f Σ w).
    """
    from scipy.optimize import brentq

    order = np.argsort(scan.p, kind="stable")
    order = order[:: -(-order.size // ENOUGH)]
    p, w = scan.p[order], scan.w[order] * (scan.w.sum() / scan.w[order].sum())
    columns = len({members for members in scan.lattice.members if len(members) == 1})
    target = (bar + np.log(max(columns, 1) * ALONE)) / GRID

    def power(t: float, f: float) -> float:
        fit = tilted(p, t)
        gain = t * (w @ fit) - w @ log_moment(p, t)
        return float(f * gain - POWER * t * np.sqrt(f * (w @ (fit * (1.0 - fit))))) - target

    differences: list[tuple[float, float | None]] = []
    for share in SHARES:
        f = share / float(scan.dispersion[0])
        far = next((t for t in np.geomspace(0.01, LAST, 40) if power(t, f) > 0.0), None)
        t = 0.0 if far is None else float(brentq(power, 0.0, far, args=(f,)))
        gap = float((w @ tilted(p, t) - w @ p) / w.sum())
        differences.append((share, None if far is None else gap))
    return tuple(differences)
