"""Results: frozen values, printed, drawn, and written as JSON or data frames.

Every result is a frozen dataclass derived from :class:`caltest.results.base.Result`: it prints, has
``to_json``, ``to_frame``, ``to_markdown`` and ``to_latex``, and ``plot`` where there is a picture.
"""

from .aspects import ClassComponent as ClassComponent
from .aspects import IndividualErrorResult as IndividualErrorResult
from .aspects import RevisionTest as RevisionTest
from .aspects import WorstClassResult as WorstClassResult
from .audits import AuditReport as AuditReport
from .audits import AuditRow as AuditRow
from .audits import Segment as Segment
from .audits import SegmentSearch as SegmentSearch
from .base import ClusterSummary as ClusterSummary
from .base import FoldSummary as FoldSummary
from .base import FollowupSummary as FollowupSummary
from .base import HorizonSummary as HorizonSummary
from .base import Record as Record
from .base import Result as Result
from .base import Subgroups as Subgroups
from .base import ending as ending
from .base import short as short
from .decisions import DecisionCurve as DecisionCurve
from .decisions import EquivalenceTestResult as EquivalenceTestResult
from .decisions import GateCheck as GateCheck
from .decisions import GateResult as GateResult
from .decisions import GradeTest as GradeTest
from .decisions import GradeTests as GradeTests
from .decisions import Plan as Plan
from .decisions import PromiseResult as PromiseResult
from .estimates import BrierDecomposition as BrierDecomposition
from .estimates import CentreCurve as CentreCurve
from .estimates import ConfidenceIntervalResult as ConfidenceIntervalResult
from .estimates import CORPDecomposition as CORPDecomposition
from .estimates import CoxRecalibration as CoxRecalibration
from .estimates import MetaAnalysis as MetaAnalysis
from .estimates import PooledEffect as PooledEffect
from .figures import BandTest as BandTest
from .figures import BinSensitivity as BinSensitivity
from .figures import ReliabilityCurve as ReliabilityCurve
from .figures import ReliabilityDifference as ReliabilityDifference
from .figures import ReliabilityFit as ReliabilityFit
from .figures import ReliabilitySimplex as ReliabilitySimplex
from .hypotheses import CalibrationTestResult as CalibrationTestResult
from .hypotheses import ComparisonResult as ComparisonResult
from .hypotheses import ComparisonTable as ComparisonTable
from .hypotheses import JointTestResult as JointTestResult
from .hypotheses import ScoreDifference as ScoreDifference
from .rendering import format_p as format_p
from .rendering import format_range as format_range
from .rendering import format_value as format_value
from .rendering import with_sd as with_sd
from .verdicts import AuditVerdict as AuditVerdict
from .verdicts import ComparisonVerdict as ComparisonVerdict
from .verdicts import Finding as Finding
from .verdicts import GateVerdict as GateVerdict
from .verdicts import GradeVerdict as GradeVerdict
from .verdicts import Provenance as Provenance

__all__ = [
    "AuditReport",
    "AuditRow",
    "AuditVerdict",
    "BandTest",
    "BinSensitivity",
    "BrierDecomposition",
    "CORPDecomposition",
    "CalibrationTestResult",
    "CentreCurve",
    "ClassComponent",
    "ClusterSummary",
    "ComparisonResult",
    "ComparisonTable",
    "ComparisonVerdict",
    "ConfidenceIntervalResult",
    "CoxRecalibration",
    "DecisionCurve",
    "EquivalenceTestResult",
    "Finding",
    "FoldSummary",
    "FollowupSummary",
    "GateCheck",
    "GateResult",
    "GateVerdict",
    "GradeTest",
    "GradeTests",
    "GradeVerdict",
    "HorizonSummary",
    "IndividualErrorResult",
    "JointTestResult",
    "MetaAnalysis",
    "Plan",
    "PooledEffect",
    "PromiseResult",
    "ReliabilityCurve",
    "ReliabilityDifference",
    "ReliabilityFit",
    "ReliabilitySimplex",
    "RevisionTest",
    "ScoreDifference",
    "Segment",
    "SegmentSearch",
    "Subgroups",
    "WorstClassResult",
]
