"""Audits, release gates and reports: many questions, one verdict.

``Report`` and ``report`` are not imported here: an audit needs neither pages nor pictures.
"""

from caltest.reports.audit import audit
from caltest.reports.gate import gate

__all__ = ["audit", "gate"]
