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
from caltest.statistics.cox import CoxLR, CoxScore
from caltest.statistics.cox_estimates import cox_recalibration
from caltest.statistics.cumulative import KolmogorovSmirnov, Kuiper
from caltest.statistics.debiased import DebiasedL1, DebiasedL2
from caltest.statistics.ici import E50, E90, ICI, Emax
from caltest.statistics.isotonic import CORP, corp_decomposition
from caltest.statistics.kernel import (
    MMCE,
    SKCE,
    UCME,
    GaussianKernel,
    LaplaceKernel,
    TVKernel,
)
from caltest.statistics.multiclass import ACE, RMSCE, SCE, TACE, ClasswiseECE
from caltest.statistics.multiscale import MultiScale
from caltest.statistics.regression import CalibrationInTheLarge, HosmerLemeshow, Spiegelhalter
from caltest.statistics.scores import (
    BrierScore,
    LogScore,
    ScoreGap,
    SphericalScore,
    brier_decomposition,
)
from caltest.statistics.smooth import SmoothECE
from caltest.statistics.sweep import Sweep

Statistic = Callable[[FloatArray, IntArray], float]

__all__ = [
    "ACE",
    "CORP",
    "E50",
    "E90",
    "ECE",
    "ICI",
    "MCE",
    "MMCE",
    "RMSCE",
    "SCE",
    "SKCE",
    "TACE",
    "UCME",
    "BrierScore",
    "CalibrationInTheLarge",
    "ClasswiseECE",
    "CoxLR",
    "CoxScore",
    "DebiasedL1",
    "DebiasedL2",
    "Emax",
    "GaussianKernel",
    "HosmerLemeshow",
    "KolmogorovSmirnov",
    "Kuiper",
    "LaplaceKernel",
    "LogScore",
    "MultiScale",
    "ScoreGap",
    "SmoothECE",
    "SphericalScore",
    "Spiegelhalter",
    "Statistic",
    "Sweep",
    "TVKernel",
    "brier_decomposition",
    "corp_decomposition",
    "cox_recalibration",
    "given",
]


def given(statistic: Statistic, probs: FloatArray) -> Callable[[IntArray], float]:
    """Fix the predictions of a statistic, by its own method where it has one."""
    own: Any = getattr(statistic, "given", None)
    if own is not None:
        fixed: Callable[[IntArray], float] = own(probs)
        return fixed
    return partial(statistic, probs)
