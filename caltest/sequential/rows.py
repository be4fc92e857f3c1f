"""Rows as a monitor sees them: one that comes alone, what is refused, bets of several."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest.bets import kernels, mixture
from caltest.errors import InvalidPredictionsError, StatisticError


def sums_after(
    sums: tuple[float, ...], probs: FloatArray, labels: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return 1, p and y of every row, and their sums after it, the same however rows are split.

    p and y are those of the event, of more than two classes of the likeliest.
    """
    rows = np.arange(len(probs))
    top = probs.argmax(axis=1) if probs.shape[1] > 2 else np.zeros_like(labels)
    addends = np.column_stack([np.ones(len(rows)), probs[rows, top], labels == top])
    return addends, np.vstack([sums, addends]).cumsum(axis=0)[1:]


def bet_dealt(
    rows: FloatArray, sizes: IntArray, dealt: IntArray, mode: int, states: FloatArray
) -> FloatArray:
    """Bet on rows of probabilities, label and weight, in bets of these many.

    ``dealt`` is the state of every bet; states are moved on in place. Returns the logarithm of the
    largest wealth after each bet.
    """
    labels, bet_of = rows[:, -2].astype(np.int64), np.repeat(np.arange(sizes.size), sizes)
    highest, every = np.full(sizes.size, -np.inf), np.arange(sizes.size)
    for j, state in enumerate(states):
        now, mine, places = mixture.scalar(states, kernels.NOW)[j], dealt[bet_of] == j, dealt == j
        some = rows[mine, :-2], labels[mine], rows[mine, -1]
        if (sizes == 1).all():
            path = mixture.bet(*some, mode, state)
        else:
            path = mixture.bet_at_times(*some, sizes[places], mode, state)
        last = np.searchsorted(np.flatnonzero(places), every, side="right")
        highest = np.maximum(highest, np.append(now, path)[last])
    return highest


def refuse_large(weights: FloatArray) -> None:
    """Refuse a stake of more than there is."""
    if weights.max() > 1.0:
        row = int(np.argmax(weights > 1.0))
        raise InvalidPredictionsError(
            f"weights: row {row} is {weights[row]:g}; a monitor stakes at most its "
            "wealth: divide the weights by the largest there can be"
        )


def refuse_times(times: FloatArray, n_classes: int, over: str | None) -> None:
    """Refuse rows of one time that cannot be one bet: of a time that is over, or many classes."""
    if over is not None:
        raise InvalidPredictionsError(
            f"time: row 0 is of {over}, on which the bet is made, one for all rows of a time, as "
            "they may depend on each other: give them at once, or say independent=True "
            "(--independent) before the first row"
        )
    if n_classes > 2 and (times[1:] == times[:-1]).any():
        raise StatisticError(
            "rows of one time may depend on each other: they are one bet, which needs a lens of "
            "two classes, such as TopK(1): choose one, or say independent=True (--independent)",
            [("--independent",)],
        )


def one_row(probs: object, labels: object) -> FloatArray | None:
    """Return p, 1 − p, label and weight of a row given as two numbers, or in lists; else None."""
    if isinstance(probs, (list, np.ndarray)) and isinstance(labels, (list, np.ndarray)):
        if len(probs) != 1 or len(labels) != 1:
            return None
        probs, labels = probs[0], labels[0]
    if not isinstance(probs, float) or not isinstance(labels, (int, np.integer, np.bool_)):
        return None
    if not (0.0 <= probs <= 1.0 and 0 <= labels <= 1):
        return None
    return np.array([[probs, 1.0 - probs, labels, 1.0]])
