"""The verbs that ask several questions at once: audits, and gates."""

from caltest.battery.audit import audit
from caltest.battery.gate import gate

__all__ = ["audit", "gate"]
