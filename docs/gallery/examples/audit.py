"""Adjusted p-values of an audit

The adjusted p-value of every test of the audit, the same number that decides the verdict.
"""

import caltest as ct

picture = ct.audit(ct.examples.digits("best"), rng=0).plot()
