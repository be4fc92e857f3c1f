"""Array types, checks of parameters, progress and number formats, shared by every room."""

import lazy_loader

# Parts are imported when they are first asked for; ``__init__.pyi`` says from where.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
