"""Statistics: how far from calibrated.

A statistic is a frozen value that is called on ``(probs, labels)`` and returns a number, or any
function that does. It may offer ``given(probs)``, a function of the labels alone for fixed
predictions; if what that returns has a ``term``, its null law can be computed (see
:mod:`caltest.exact`).
"""

import lazy_loader

# Families are imported when they are first asked for; ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
