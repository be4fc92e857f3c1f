"""Answers: frozen, printable, and ready for JSON."""

from caltest.results.audit import AuditReport, AuditRow
from caltest.results.base import Result, format_p, format_value
from caltest.results.calibration import CalibrationTestResult, JointTestResult
from caltest.results.comparison import ComparisonResult, ComparisonTable, ScoreDifference
from caltest.results.curves import BinSensitivity, ReliabilityDifference, ReliabilityFit
from caltest.results.interval import ConfidenceIntervalResult
from caltest.results.reliability import ReliabilityCurve
from caltest.results.simplex import ReliabilitySimplex

__all__ = [
    "AuditReport",
    "AuditRow",
    "BinSensitivity",
    "CalibrationTestResult",
    "ComparisonResult",
    "ComparisonTable",
    "ConfidenceIntervalResult",
    "JointTestResult",
    "ReliabilityCurve",
    "ReliabilityDifference",
    "ReliabilityFit",
    "ReliabilitySimplex",
    "Result",
    "ScoreDifference",
    "format_p",
    "format_value",
]
