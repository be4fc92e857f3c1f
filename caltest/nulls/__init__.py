"""Null distributions: exact laws, and Monte Carlo draws where there is no law.

``draws.py`` is the engine with its schemes, ``laws.py`` has exact and limit laws, ``clusters.py``
and ``agreement.py`` dependent rows, ``lanes.py`` and ``resampled_rows.py`` compiled draws,
``bets.py`` e-values.
"""

import lazy_loader

# Parts are imported when they are first asked for; ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
