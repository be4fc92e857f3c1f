"""Several labels a row, as a stack of rows with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.containers import as_ndarray, names_of
from caltest._base.naming import nth
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError


class Stack(NamedTuple):
    """Pairs of a row and a label: probability, outcome, the label's name, the row, and notes."""

    probs: FloatArray
    labels: IntArray
    names: NDArray[Any]
    rows: IntArray
    notes: tuple[str, ...]


def stacked(probs: Any, labels: Any, names: Sequence[Any] | None) -> Stack:
    """Check arrays of shape (n, L) and put label below label; pairs without outcome are left out.

    Raises
    ------
    InvalidPredictionsError
        For other shapes, a single label, names that are not L different ones, probabilities that
        are missing, and outcomes that are not 0, 1 or missing.
    """
    columns = names_of(probs) if names is None else list(names)
    p, y = (as_ndarray(v, what) for v, what in ((probs, "probs"), (labels, "labels")))
    if p.ndim != 2 or p.shape != y.shape or p.shape[1] < 2 or not p.shape[0]:
        raise InvalidPredictionsError(
            "several labels a row come as probabilities and outcomes of one shape (n, L) with L ≥ 2"
            f", but these have {p.shape} and {y.shape}"
        )
    called = list(map(str, range(p.shape[1]) if columns is None else columns))
    if len(set(called)) < len(called) or len(called) != p.shape[1] or "" in called:
        raise InvalidPredictionsError(
            f"names are one of each of {p.shape[1]} labels, all different, none empty, not {called}"
        )
    try:
        p, y = p.astype(np.float64), y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidPredictionsError(f"probs and labels hold numbers: {error}") from None
    observed = ~np.isnan(y)
    for i, j in np.argwhere(observed & (y != 0.0) & (y != 1.0))[:1]:
        raise InvalidPredictionsError(
            f"labels: {nth(int(i))} of {called[j]} is {y[i, j]:g}; outcomes are 0, 1 or missing"
        )
    for i, j in np.argwhere(observed & ~((p >= 0.0) & (p <= 1.0)))[:1]:
        raise InvalidPredictionsError(
            f"probs: {nth(int(i))} of {called[j]} is {p[i, j]:g}, which is no probability"
        )
    for j in np.flatnonzero(~observed.any(axis=0))[:1]:
        raise InvalidPredictionsError(f"labels of {called[j]} are all missing: leave it out")
    label, row = np.nonzero(observed.T)
    left = int((~observed).sum())
    notes = (f"left out {several(left, 'pair')} of a row and a label without outcome",) * (left > 0)
    outcomes = y.T[observed.T].astype(np.int64)
    return Stack(p.T[observed.T], outcomes, np.array(called)[label], row, notes)
