"""Statistics: how far from calibrated."""

from .binned import ECE, MCE
from .cox import CoxLR, CoxScore
from .cox_estimates import cox_recalibration
from .cumulative import KolmogorovSmirnov, Kuiper
from .debiased import DebiasedL1, DebiasedL2
from .ici import E50, E90, ICI, Emax
from .isotonic import CORP, corp_decomposition
from .kernel import (
    MMCE,
    SKCE,
    UCME,
    GaussianKernel,
    LaplaceKernel,
    TVKernel,
)
from .multiclass import ACE, RMSCE, SCE, TACE, ClasswiseECE
from .multiscale import MultiScale
from .problem import Statistic, given
from .regression import CalibrationInTheLarge, HosmerLemeshow, Spiegelhalter
from .scores import (
    BrierScore,
    LogScore,
    ScoreGap,
    SphericalScore,
    brier_decomposition,
)
from .smooth import SmoothECE
from .sweep import Sweep

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
