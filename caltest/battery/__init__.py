"""The audit: every usual question in one call."""

from caltest.battery.audit import audit

__all__ = ["audit"]
