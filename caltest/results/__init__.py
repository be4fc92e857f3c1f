"""Answers: frozen, printable, and ready for JSON."""

from caltest.results.audit import AuditReport, AuditRow
from caltest.results.base import Result, format_p, format_value
from caltest.results.calibration import CalibrationTestResult, JointTestResult

__all__ = [
    "AuditReport",
    "AuditRow",
    "CalibrationTestResult",
    "JointTestResult",
    "Result",
    "format_p",
    "format_value",
]
