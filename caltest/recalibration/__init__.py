"""Recalibration maps: fitted on held-out labels, applied to probabilities.

A method such as :class:`TemperatureScaling` is a value; its ``fit`` returns a map that is called on
new predictions, a :class:`Recalibrated`. Fit on one part of the data and test on another: a test on
the rows of the fit says nothing, and is refused when it is noticed.
"""

import lazy_loader

# Parts are imported when they are first asked for; ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
