"""A band around the calibration curve that holds at every sample size, for any monotone curve."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.compiled import kernel

Band = tuple[FloatArray, FloatArray, FloatArray]


def honest_band(
    x: FloatArray,
    count: IntArray,
    hits: IntArray,
    level: float,
    grid: FloatArray,
    ends: tuple[FloatArray, FloatArray] | None = None,
) -> Band:
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
    shown = np.append(True, change) | np.append(change, True)
    return x[shown], low[down[shown]], high[up[shown]]


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
