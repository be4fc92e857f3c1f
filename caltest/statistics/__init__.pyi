"""Test statistics and calibration errors, one family a file.

A statistic is a frozen value that is called on ``(probs, labels)`` and returns a number, or any
function that does. Its ``prepare(problem)`` fixes the predictions, see ``statistic``.
"""

from .binned import ACE as ACE
from .binned import ECE as ECE
from .binned import MCE as MCE
from .binned import RMSCE as RMSCE
from .binned import SCE as SCE
from .binned import TACE as TACE
from .binned import ClasswiseECE as ClasswiseECE
from .binned import DebiasedL1 as DebiasedL1
from .binned import DebiasedL2 as DebiasedL2
from .binned import MultiScale as MultiScale
from .cumulative import ATB as ATB
from .cumulative import KolmogorovSmirnov as KolmogorovSmirnov
from .cumulative import Kuiper as Kuiper
from .cumulative import UtilityCalibration as UtilityCalibration
from .isotonic import CORP as CORP
from .isotonic import RefinementError as RefinementError
from .isotonic import Sweep as Sweep
from .isotonic import VariationalError as VariationalError
from .kernel import MMCE as MMCE
from .kernel import SKCE as SKCE
from .kernel import GaussianKernel as GaussianKernel
from .kernel import LaplaceKernel as LaplaceKernel
from .kernel import TVKernel as TVKernel
from .prepared import CellStatistic as CellStatistic
from .prepared import LabelStatistic as LabelStatistic
from .prepared import Prepared as Prepared
from .prepared import ResidualStatistic as ResidualStatistic
from .prepared import Statistic as Statistic
from .prepared import StatisticLike as StatisticLike
from .prepared import SumStatistic as SumStatistic
from .prepared import prepare as prepare
from .problem import MAX_MASS as MAX_MASS
from .problem import Cells as Cells
from .problem import Estimand as Estimand
from .problem import LinearTerm as LinearTerm
from .problem import Outcomes as Outcomes
from .problem import Problem as Problem
from .problem import ResidualSums as ResidualSums
from .regression import CalibrationInTheLarge as CalibrationInTheLarge
from .regression import CoxLR as CoxLR
from .regression import CoxScore as CoxScore
from .regression import HosmerLemeshow as HosmerLemeshow
from .regression import MeanDifference as MeanDifference
from .regression import MulticlassCox as MulticlassCox
from .regression import OERatio as OERatio
from .regression import Spiegelhalter as Spiegelhalter
from .regression import WorstClass as WorstClass
from .rows import Drawn as Drawn
from .rows import Flips as Flips
from .rows import FollowupProblem as FollowupProblem
from .rows import RowProblem as RowProblem
from .rows import row_problem as row_problem
from .scores import BrierScore as BrierScore
from .scores import EValue as EValue
from .scores import IndividualError as IndividualError
from .scores import LogScore as LogScore
from .scores import ScaledBrierScore as ScaledBrierScore
from .scores import ScoreGap as ScoreGap
from .scores import SphericalScore as SphericalScore
from .smooth import E50 as E50
from .smooth import E90 as E90
from .smooth import ECI as ECI
from .smooth import ICI as ICI
from .smooth import Emax as Emax
from .smooth import SmoothECE as SmoothECE

__all__ = [
    "ACE",
    "ATB",
    "CORP",
    "E50",
    "E90",
    "ECE",
    "ECI",
    "ICI",
    "MCE",
    "MMCE",
    "RMSCE",
    "SCE",
    "SKCE",
    "TACE",
    "BrierScore",
    "CalibrationInTheLarge",
    "CellStatistic",
    "Cells",
    "ClasswiseECE",
    "CoxLR",
    "CoxScore",
    "DebiasedL1",
    "DebiasedL2",
    "EValue",
    "Emax",
    "Estimand",
    "GaussianKernel",
    "HosmerLemeshow",
    "IndividualError",
    "KolmogorovSmirnov",
    "Kuiper",
    "LabelStatistic",
    "LaplaceKernel",
    "LogScore",
    "MeanDifference",
    "MultiScale",
    "MulticlassCox",
    "OERatio",
    "Prepared",
    "RefinementError",
    "ResidualStatistic",
    "RowProblem",
    "ScaledBrierScore",
    "ScoreGap",
    "SmoothECE",
    "SphericalScore",
    "Spiegelhalter",
    "Statistic",
    "SumStatistic",
    "Sweep",
    "TVKernel",
    "UtilityCalibration",
    "VariationalError",
    "WorstClass",
]
