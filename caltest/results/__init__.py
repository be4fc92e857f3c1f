"""Answers: frozen, printable, and ready for JSON."""

from caltest.results.audit import AuditReport, AuditRow
from caltest.results.base import Result, format_p, format_value
from caltest.results.calibration import CalibrationTestResult, JointTestResult
from caltest.results.comparison import ComparisonResult, ComparisonTable, ScoreDifference

__all__ = [
    "AuditReport",
    "AuditRow",
    "CalibrationTestResult",
    "ComparisonResult",
    "ComparisonTable",
    "JointTestResult",
    "Result",
    "ScoreDifference",
    "format_p",
    "format_value",
]
