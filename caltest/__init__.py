"""Statistical hypothesis tests for the calibration of probabilistic classifiers.

Start with :func:`audit` (every usual question at once) or :func:`calibration_test` (one statistic
through one lens); :class:`Predictions` holds probabilities, labels and the design of the data.
Names are imported when they are first used, so that ``import caltest`` is fast.
"""

import lazy_loader

from caltest._version import __version__ as __version__

# Names are imported when they are first asked for (SPEC 1); ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
