"""Tests, intervals, comparisons and diagrams: one verb a file.

``_input.py`` validates the arguments of all verbs, ``null.py`` chooses the null distribution; then
read :mod:`caltest.inference.calibration`.
"""

import lazy_loader

# Parts are imported when they are first asked for; ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
