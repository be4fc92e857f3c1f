"""The report: what was asked, found and not examined, on one page for people who decide."""

from caltest.reporting.document import Report
from caltest.reporting.verb import report

__all__ = ["Report", "report"]
