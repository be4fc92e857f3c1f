"""Statistics: how far from calibrated.

A statistic is a frozen value that is called on ``(probs, labels)`` and returns a number, or any
function that does. It may offer ``given(probs)``, a function of the labels alone for fixed
predictions; if what that returns has a ``term``, its null law can be computed (see
:mod:`caltest.exact`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from caltest.predictions import FloatArray, IntArray
from caltest.statistics.binned import ECE, MCE
from caltest.statistics.debiased import DebiasedL1, DebiasedL2

Statistic = Callable[[FloatArray, IntArray], float]

__all__ = ["ECE", "MCE", "DebiasedL1", "DebiasedL2", "Statistic", "given"]


def given(statistic: Statistic, probs: FloatArray) -> Callable[[IntArray], float]:
    """Fix the predictions of a statistic, by its own method where it has one."""
    own: Any = getattr(statistic, "given", None)
    if own is not None:
        fixed: Callable[[IntArray], float] = own(probs)
        return fixed
    return partial(statistic, probs)
