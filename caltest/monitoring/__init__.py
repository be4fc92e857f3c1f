"""Sequential monitoring: evidence that stays valid at every look.

:class:`Monitor` watches one model, :class:`ComparisonMonitor` two, :class:`Revisions` forecasts
that are updated before their outcome is known.
"""

import lazy_loader

# Parts are imported when they are first asked for; ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
