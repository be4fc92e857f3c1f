"""Tallies: sums over fine bins of any number of observations, in place of the rows.

Start with :class:`Tally` (one binary question) and :class:`Tallies` (several); :func:`scan` makes
them from files, :func:`tally_sql` in a database.
"""

import lazy_loader

# Parts are imported when they are first asked for; ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
