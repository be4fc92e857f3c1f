"""Levels of folds: predictions of several models are moved until all folds have one mean."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import FloatArray, IntArray, largest
from caltest.errors import StatisticError

#: Newton steps at most, and decimals of log-odds that tell predictions apart: equal ones stay ties.
STEPS, DIGITS = 1000, 10


def shifts_of(probs: FloatArray, fold: IntArray, weights: FloatArray) -> FloatArray:
    """Return what is added to log p_ij in fold k, so that its mean vector is that of all rows.

    a_k, shape (F, K), solves Σ_{i∈k} w_i softmax(log p_i + a_k) / Σ_{i∈k} w_i = Σ w p / Σ w by
    Newton's method, with log-odds moved by at most 1 a step. Rows that are certain count nothing,
    nor do those of weight 0.
    A fold whose mean is the common one within 1e-14, or in which no row can move, has a_k = 0. A
    class without probability in a fold is left out there. O(n K²) a step, some six steps.
    """
    inside = (largest(probs) < 1.0) & (weights > 0.0)
    shifts = np.zeros((int(fold.max()) + 1, probs.shape[1]))
    if not inside.any():
        return shifts
    target = weights[inside] @ probs[inside] / weights[inside].sum()
    for k in np.unique(fold[inside]):
        rows = inside & (fold == k)
        p, w = probs[rows], weights[rows] / weights[rows].sum()
        possible = p.max(axis=0) > 0.0
        goal = np.where(possible, target, 0.0) / target[possible].sum()
        mean, last = w @ p, np.inf
        if np.abs(mean - goal).max() < 1e-14:
            continue
        for _ in range(STEPS):
            q = moved(p, shifts[k], digits=16)
            mean = w @ q
            curvature = np.diag(mean) - (w[:, None] * q).T @ q
            step = np.linalg.lstsq(curvature, goal - mean, rcond=1e-12)[0]
            size = float(np.abs(step).max())
            shifts[k] += step * min(1.0, 0.5 / max(size, 1e-300))
            if size < 1e-14 or last <= size < 1e-9:
                break
            last = size
        if np.abs(mean - goal).max() > 1e-6:
            raise StatisticError(
                "the folds cannot be aligned: classes that one model gives probability 0 are too "
                "likely for another; ask about the event or the top class, or predict again"
            )
    return shifts


def moved(probs: FloatArray, shifts: FloatArray, digits: int = DIGITS) -> FloatArray:
    """Return p_ij exp(a_ij), divided by their sums; of two classes with rounded log-odds."""
    with np.errstate(divide="ignore"):
        logs = np.log(probs)
    if probs.shape[1] == 2:
        from scipy.special import expit

        a = np.broadcast_to(shifts, probs.shape)
        z = np.round(logs[:, 0] - logs[:, 1] + (a[:, 0] - a[:, 1]), digits)
        return np.column_stack([expit(z), expit(-z)])
    logs = logs + shifts
    raised = np.exp(logs - largest(logs)[:, None])
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
