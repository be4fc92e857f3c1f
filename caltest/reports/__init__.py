"""Verdicts: audits, gates, and the page for people who decide.

``Report`` and ``report`` are not imported here: an audit needs neither pages nor pictures.
"""

from caltest.reports.audit import audit
from caltest.reports.gate import gate

__all__ = ["audit", "gate"]
