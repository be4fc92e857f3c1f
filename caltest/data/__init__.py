"""Predictions, outcomes and the design of the data; lenses and bins.

Start with :class:`Predictions`, then :class:`Lens` and the binnings.
"""

import lazy_loader

# Parts are imported when they are first asked for; ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
