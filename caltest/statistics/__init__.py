"""Test statistics and calibration errors, one family a file.

A statistic is a frozen value that is called on ``(probs, labels)`` and returns a number, or any
function that does. Its ``prepare(problem)`` fixes the predictions, see ``statistic``.
"""

import lazy_loader

# Parts are imported when they are first asked for; ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
