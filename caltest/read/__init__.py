"""Read files and data frames as predictions.

:func:`read_predictions` (``files.py``) is the entry. ``contract.py`` chooses columns by name,
``expressions.py`` parses SQL, ``formats.py`` opens files, ``values.py`` evaluates cells,
``questioning.py`` asks where the data contradict the reading, ``suggestions.py`` proposes others.
"""

import lazy_loader

# Parts are imported when they are first asked for; ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
