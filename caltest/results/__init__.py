"""Results: frozen values, printed, drawn, and written as JSON or data frames.

Every result is a frozen dataclass derived from :class:`caltest.results.base.Result`: it prints, has
``to_json``, ``to_frame``, ``to_markdown`` and ``to_latex``, and ``plot`` where there is a picture.
"""

import lazy_loader

# Parts are imported when they are first asked for; ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
