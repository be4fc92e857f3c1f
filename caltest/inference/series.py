"""Forecasts several steps ahead: the order of time, blocks for what redraws nothing, and doubts."""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from caltest._base.arrays import IntArray, largest
from caltest.errors import StatisticError
from caltest.predictions import Predictions
from caltest.results import HorizonSummary
from caltest.simulate.agreement import quarters
from caltest.simulate.series import timed

#: Forecasts that do not overlap, below which their dependence cannot be told; blocks hold four.
FEWEST, BLOCK = 10, 4
#: Surprises to be expected, and z of neighbours that agree more than chance.
SURPRISES, AGREEING = 20.0, 3.29
_NEIGHBOURS: WeakKeyDictionary[Predictions, float] = WeakKeyDictionary()


def in_time_order(data: Predictions) -> Predictions:
    """Return rows in the order of time, with blocks of 4h consecutive times as their clusters."""
    placed, h = timed(data)
    times = np.unique(placed).size
    if times < FEWEST * h:
        raise StatisticError(
            f"{times} times hold {times // h} forecasts of {h} steps that do "
            f"not overlap: at least {FEWEST} are needed"
        )
    if (np.diff(placed) < 0).any():
        data = data.take(np.argsort(placed, kind="stable"))
    return replace(data, clusters=blocks(np.sort(placed), BLOCK * h))


def blocks(times: IntArray, length: int) -> IntArray:
    """Return ⌊t / length⌋, a last block of less than half of it joined to the one before."""
    block = times // length
    last = int(block.max())
    if 2 * (times.max() + 1 - length * last) < length and last > 0:
        block = np.minimum(block, last - 1)
    return block


def refuse_few_blocks(verb: str, data: Predictions) -> None:
    """Refuse fewer than five blocks of 4h times, where these are the units."""
    if data.horizon is None:
        return
    placed, h = timed(data)
    times = np.unique(placed).size
    if times < 2 * FEWEST * h:
        raise StatisticError(
            f"{verb}: {times} times hold {times // (BLOCK * h)} blocks of {BLOCK * h} times, "
            "whose errors are taken for independent: at least 5 are needed"
        )


def summary_of(data: Predictions) -> HorizonSummary | None:
    """Say how rows overlap."""
    if data.horizon is None:
        return None
    placed, h = timed(data)
    return HorizonSummary(h, np.unique(placed).size, rows=data.n)


def neighbours(data: Predictions) -> float:
    """Return z of the products of neighbouring residuals, Σ a / √Σ a², a_i = x_i x_{i+1}.

    x is the residual of the event, or of whether the likeliest label is right (of more than two
    classes only that), less its mean among rows with about the same prediction; the larger z
    counts. 0 where few surprises are to be expected. O(n log n), once for the same predictions.
    """
    if data not in _NEIGHBOURS:
        z, top = [], largest(data.probs)
        if (1.0 - top).sum() >= SURPRISES:
            outcomes = [(top, data.labels == data.probs.argmax(axis=1))]
            if data.n_classes == 2:
                outcomes.append((data.probs[:, 0], data.labels == 0))
            for p, outcome in outcomes:
                x, part = outcome - p, quarters(p)
                # Less the mean of like predictions: miscalibration alone makes neighbours agree
                x -= (np.bincount(part, x) / np.maximum(np.bincount(part), 1))[part]
                products = x[1:] * x[:-1]
                z.append(products.sum() / max(np.sqrt((products**2).sum()), 1e-300))
        _NEIGHBOURS[data] = float(max(z, default=0.0))
    return _NEIGHBOURS[data]
