"""Free answers, which are compared with the true ones as a reader would."""

from __future__ import annotations

import warnings

import numpy as np

from caltest._base.event_words import lowered
from caltest._base.written import several
from caltest.errors import DoubtfulInputWarning
from caltest.tables.source import Column

#: Different true answers from which on these are no names of classes.
FREE = 27


def answers_alike(
    truth: Column, answer: Column, names: tuple[str, str]
) -> tuple[Column, Column, str]:
    """Return true and given answers so that they can be compared, and how in words.

    Free answers are alike whatever their case and last point. One that holds the true answer among
    other words is none that is equal, which is doubted: somebody has to judge it.
    """
    if truth.dtype.kind != "U" or answer.dtype.kind != "U" or np.unique(truth).size < FREE:
        return truth, answer, ""
    label, reply = (np.char.rstrip(lowered(texts), ".") for texts in (truth, answer))
    more = int(((label == reply) & (np.char.strip(truth) != np.char.strip(answer))).sum())
    pairs = zip(label.tolist(), reply.tolist(), strict=True)
    longer = sum(a != b and f" {a} " in f" {b} ".replace(",", " ") for a, b in pairs if a)
    if longer:
        warnings.warn(
            f"{names[0]} holds {names[1]} among other words in {several(longer, 'row')}, which are "
            "taken as wrong: if they are right, have the answers judged, and name the column of "
            "the verdicts with label= (--label)",
            DoubtfulInputWarning,
            stacklevel=5,
        )
    how = f", whatever their case and last point (which matters in {several(more, 'row')})"
    return label, reply, how * bool(more)
