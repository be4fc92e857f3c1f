"""When a change began: the likeliest row, from sums of log-likelihood ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.bets.kernels import CLIP
from caltest.sequential.watch import Times

if TYPE_CHECKING:
    from caltest.sequential.monitor import Monitor

#: Slopes and shifts of the log-odds that a change may have, and their walks before the first row.
SLOPES = np.array([1.0] * 6 + [0.5, 0.7, 1.4, 2.0])
SHIFTS = np.array([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0] + [0.0] * 4)
BEGIN = np.outer([0.0, 0.0, 1.0, np.nan], np.ones(SLOPES.size))
#: Rows that are looked at together.
AT_ONCE = 2**16


def of_change(
    before: Monitor, after: Monitor, p_and_y: FloatArray, weights: FloatArray, times: Times
) -> dict[str, Any]:
    """Return where a change began once the alarm rings, and till then the walks that tell.

    A walk adds up the log-likelihood ratios of a line against the predictions; a change to the line
    began most likely after its lowest point, however rows are split.
    """
    walks, end = before.walks, None if after.alarm is None else after.alarm - before.n
    if not before.change or before.alarm is not None or (before.n and not walks):  # after tallies
        return {}
    rows = np.column_stack([p_and_y, weights])[:end]
    total, low, start, began = np.frombuffer(walks).reshape(4, -1).copy() if walks else BEGIN.copy()
    for a in range(0, len(rows), AT_ONCE):
        p, y, weight = rows[a : a + AT_ONCE].T[:, :, None]
        side, z = 1.0 - 2.0 * y, np.log(np.maximum(p, CLIP)) - np.log(np.maximum(1.0 - p, CLIP))
        gain = np.logaddexp(0.0, side * z) - np.logaddexp(0.0, side * (SLOPES * z + SHIFTS))
        path = np.vstack([total, weight * gain]).cumsum(axis=0)[1:]
        first, place, total = before.n + a + 1, path.argmin(axis=0), path[-1]
        began = np.where(start == first, np.nan if times is None else times[a], began)
        lower = path.min(axis=0) < low
        low, start = np.minimum(low, path.min(axis=0)), np.where(lower, first + place + 1, start)
        if times is not None:  # that of a row that is to come is put right when it comes
            began = np.where(lower, times[np.minimum(a + place + 1, len(times) - 1)], began)
    if after.alarm is None:
        return {"walks": np.array([total, low, start, began]).tobytes()}
    best = int(np.argmax(total - low))
    when = None if times is None else float(began[best])
    return {"walks": b"", "onset": int(start[best]), "onset_time": when}
