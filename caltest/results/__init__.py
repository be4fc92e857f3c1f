"""Answers: frozen, printable, and ready for JSON."""

from caltest.results.audit import AuditReport, AuditRow
from caltest.results.base import Record, Result, ending, format_p, format_value, short
from caltest.results.calibration import CalibrationTestResult, JointTestResult
from caltest.results.clusters import ClusterSummary
from caltest.results.comparison import ComparisonResult, ComparisonTable, ScoreDifference
from caltest.results.cox import CoxRecalibration
from caltest.results.curves import BinSensitivity, ReliabilityDifference, ReliabilityFit
from caltest.results.decompositions import BrierDecomposition, CORPDecomposition
from caltest.results.interval import ConfidenceIntervalResult
from caltest.results.reliability import ReliabilityCurve
from caltest.results.simplex import ReliabilitySimplex
from caltest.results.subgroups import Subgroups
from caltest.results.verdicts import AuditVerdict, ComparisonVerdict, Finding

__all__ = [
    "AuditReport",
    "AuditRow",
    "AuditVerdict",
    "BinSensitivity",
    "BrierDecomposition",
    "CORPDecomposition",
    "CalibrationTestResult",
    "ClusterSummary",
    "ComparisonResult",
    "ComparisonTable",
    "ComparisonVerdict",
    "ConfidenceIntervalResult",
    "CoxRecalibration",
    "Finding",
    "JointTestResult",
    "Record",
    "ReliabilityCurve",
    "ReliabilityDifference",
    "ReliabilityFit",
    "ReliabilitySimplex",
    "Result",
    "ScoreDifference",
    "Subgroups",
    "ending",
    "format_p",
    "format_value",
    "short",
]
