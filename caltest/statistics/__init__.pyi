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
from .evalue import EValue as EValue
from .isotonic import CORP as CORP
from .isotonic import Sweep as Sweep
from .kernel import MMCE as MMCE
from .kernel import SKCE as SKCE
from .multiclass_cox import MulticlassCox as MulticlassCox
from .multiclass_cox import WorstClass as WorstClass
from .prepared import CellStatistic as CellStatistic
from .prepared import LabelStatistic as LabelStatistic
from .prepared import Prepared as Prepared
from .prepared import ResidualStatistic as ResidualStatistic
from .prepared import SumStatistic as SumStatistic
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
from .regression import OERatio as OERatio
from .regression import Spiegelhalter as Spiegelhalter
from .rows import Drawn as Drawn
from .rows import Flips as Flips
from .rows import FollowupProblem as FollowupProblem
from .rows import RowProblem as RowProblem
from .rows import row_problem as row_problem
from .scores import BrierScore as BrierScore
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
from .statistic import Statistic as Statistic
from .statistic import StatisticLike as StatisticLike
from .statistic import prepare as prepare
from .tiles import GaussianKernel as GaussianKernel
from .tiles import LaplaceKernel as LaplaceKernel
from .tiles import TVKernel as TVKernel
from .variational import RefinementError as RefinementError
from .variational import VariationalError as VariationalError
