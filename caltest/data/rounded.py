"""Probabilities of 0 and 1 that may be rounded, and the rows they make impossible.

:func:`without_rounded` leaves such rows out where the values lie on a grid of 0.01 or coarser and
half a step explains the contradiction; :func:`step_of` finds the grid.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import bdtrc

from caltest._base.written import several
from caltest.data.facts import by_appearance
from caltest.errors import DoubtfulInputWarning, InvalidPredictionsError, Reading, spelt

if TYPE_CHECKING:
    from caltest.data.predictions import Predictions


#: Steps to which people round probabilities, and the rows from which on values show one.
ROUND_STEPS, ROWS_OF_STEPS = (0.25, 0.2, 0.1, 0.05, 0.02, 0.01), 50


#: How probable so many contradictions must be, if they are of values that were rounded.
EXPLAINED = 0.05


def without_rounded(data: Predictions, rounded: bool | Literal["auto"]) -> Predictions:
    """Leave out rows of two classes whose probability is exactly 0 or 1, with a note.

    ``"auto"`` does so only if outcomes of probability 0 occurred and rounding explains them. That
    is, all values are multiples of a step s, and an event of probability s/2 would occur as often:
    P(X ≥ k) > 0.05 for k contradictions in n rows of 0 or 1, X binomial (n, s/2). In clusters with
    a contradiction one counts, and their rows share the probability. O(n).
    """
    auto = rounded == "auto"
    if not rounded or (auto and (data.n_classes > 2 or data.probs.min() > 0.0)):
        return data
    if auto and not data.impossible.size:
        return data
    if data.n_classes > 2:
        raise InvalidPredictionsError(
            "rounded=True (--rounded) leaves out rows of probability 0 or 1: it is for two classes",
            [Reading({"rounded": None})],
        )
    p = data.probs[:, 1]
    inner = (p > 0.0) & (p < 1.0)
    n_ends, n_against, step = int((~inner).sum()), data.impossible.size, step_of(p)
    units = np.arange(data.n) if data.clusters is None else by_appearance(data.clusters)
    # Rows of a cluster may all be otherwise together: clusters are counted, each with its chance
    n_units, rate = np.unique(units[~inner]).size, step / 2.0 * n_ends
    k = np.unique(units[data.impossible]).size
    explained = step > 0.0 and bdtrc(k - 1, n_units, min(rate / max(n_units, 1), 1.0)) > EXPLAINED
    if auto and not (explained and inner.any() and data.followup is None):
        return data
    if not inner.any():
        no_others = "rounded=True: every probability is 0 or 1"
        raise InvalidPredictionsError(no_others, [Reading({"rounded": None})])
    share = f"{n_against} of {n_ends} outcomes predicted with probability 0 or 1 were otherwise"
    if auto:
        warnings.warn(
            f"{share}, which rounding to multiples of {step:g} explains: these rows are left out; "
            + spelt("if 0 was meant to be never, say rounded=False (--not-rounded)"),
            DoubtfulInputWarning,
            stacklevel=4,
        )
    note = f"left out {several(n_ends, 'row')} of probability 0 or 1, which may be rounded"
    return replace(data, notes=(*data.notes, f"{note}: {share}")).take(inner)


def step_of(p: np.ndarray) -> float:
    """Return the largest step of which all probabilities are multiples; 0 if there is none."""
    if p.size < ROWS_OF_STEPS:
        return 0.0
    values = np.unique(p)
    return next(
        (s for s in ROUND_STEPS if np.allclose(values, np.rint(values / s) * s, 0, 1e-9)), 0.0
    )
