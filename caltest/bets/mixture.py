"""The wealth of a mixture of fixed bets against calibration: at the start, and after more rows."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.progress import progress
from caltest.bets import kernels
from caltest.bets.kernels import SCALARS, TWO_CLASSES

#: Rows between two looks at the clock and at Ctrl-C.
AT_ONCE = 2**18


def start(n_classes: int) -> FloatArray:
    """Return the state before the first row: 1482 numbers, and 61 K + 55 more for K > 2 classes."""
    two = np.zeros(TWO_CLASSES)
    two[kernels.KEPT] = 1.0
    two[kernels.FLAT] = kernels.PRIOR.sum()
    two[SCALARS : kernels.LATE_AT] = kernels.PRIOR
    two[kernels.TREE_AT : kernels.STOP_AT] = np.tile(kernels.SHIFT_PRIOR, 2 * kernels.LEAVES)
    two[kernels.STOP_AT :] = 1.0
    if n_classes == 2:
        return two
    prior = class_prior(n_classes)
    nested = np.tile(kernels.NESTED_PRIOR, n_classes)
    many = np.concatenate([np.zeros(SCALARS), prior, np.zeros(prior.size), nested])
    many[kernels.KEPT] = 1.0
    many[kernels.FLAT] = prior.sum()
    return np.append(two, many)


def class_prior(n_classes: int) -> FloatArray:
    """Return the shares of the flat experts of K > 2 classes: powers, noise, each class's own."""
    each = np.append(np.full(16, 0.15 / 16), np.full(6, 0.1 / 6)) / n_classes
    return np.concatenate([np.full(16, 0.25 / 16), np.full(6, 0.15 / 6), np.tile(each, n_classes)])


def bet(
    probs: FloatArray, labels: IntArray, weights: FloatArray, mode: int, state: FloatArray
) -> FloatArray:
    """Bet on every row, one after the other; return the log of the wealth after each, shape (n,).

    The state is moved on in place. A bet of weight w ≤ 1 stakes that share of the wealth. The event
    of two classes is class 0. O(n (220 + 60 K)) after the first use, which compiles.
    """
    n, n_classes = probs.shape
    if n > AT_ONCE:
        parts = []
        with progress(n, "rows") as done:
            for a in range(0, n, AT_ONCE):
                some = slice(a, a + AT_ONCE)
                parts.append(bet(probs[some], labels[some], weights[some], mode, state))
                done(len(parts[-1]))
        return np.concatenate(parts)
    rows, path = np.empty((n, 4)), np.empty(n)
    if n_classes == 2:
        rows[:, :2], rows[:, 2], rows[:, 3] = probs, labels == 0, weights
        kernels.bet_two(rows, mode, state, path)
        return path
    every, top = np.arange(n), probs.argmax(axis=1)
    rows[:, 0] = probs[every, top]
    rows[:, 1] = probs.sum(axis=1) - rows[:, 0]
    sure = np.flatnonzero(rows[:, 1] < 1e-6)  # where the difference loses digits
    others = probs[sure]
    others[np.arange(sure.size), top[sure]] = 0.0
    rows[sure, 1] = others.sum(axis=1)
    rows[:, 2], rows[:, 3] = labels == top, weights
    kernels.bet_two(rows, mode, state[:TWO_CLASSES], path)
    probs = np.ascontiguousarray(probs)
    prior = class_prior(n_classes)
    kernels.bet_many(probs, labels, weights, mode, state[TWO_CLASSES:], prior, path)
    return path


def scalar(states: FloatArray, which: int) -> FloatArray:
    """Return a scalar of states of shape (h, size): of all classes, not of the top class."""
    return states[:, which if states.shape[1] == TWO_CLASSES else TWO_CLASSES + which]
