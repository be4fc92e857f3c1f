"""Statistical hypothesis tests for the calibration of probabilistic classifiers.

Start with :func:`audit` (every usual question at once) or :func:`calibration_test` (one statistic
through one lens); :class:`Predictions` holds probabilities, labels and the design of the data.
Names are imported when they are first used, so that ``import caltest`` is fast.
"""

import ast
from pathlib import Path

import lazy_loader

from caltest._version import __version__ as __version__


def _imports(stub: Path) -> list[tuple[str, str]]:
    """Return (module, name) of each name that a stub exports; the module is "" for a subpackage.

    ``stub`` is the path of a ``.pyi`` file. ``from .room import *`` stands for all names that the
    stub of the subpackage ``room`` exports: those in its ``__all__``, or without one all that it
    imports.
    """
    found, listed = list[tuple[str, str]](), None
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            listed = set(ast.literal_eval(node.value))
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if alias.name == "*":
                room = stub.parent / node.module / stub.name
                found += [(node.module, name) for _, name in _imports(room)]
            else:
                found.append((node.module or "", alias.name))
    return found if listed is None else [(module, name) for module, name in found if name in listed]


def _lazy(stub: Path) -> tuple[set[str], dict[str, list[str]]]:
    """Return (subpackages, names): arguments of ``lazy_loader.attach``, read from a stub.

    ``stub`` is the path of a ``.pyi`` file. The first is a set of the subpackages that it exports,
    the second a dict of lists: all other exported names, by the module that defines them.
    """
    names: dict[str, list[str]] = {}
    for module, name in _imports(stub):
        names.setdefault(module, []).append(name)
    return {*names.pop("")}, names


# Names are imported when they are first asked for (SPEC 1). ``__init__.pyi`` says from where; what
# is public of a room is listed in the stub of the room alone.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, *_lazy(Path(__file__).with_suffix(".pyi"))
)
