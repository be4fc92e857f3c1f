"""What defines a number of a study: a text that changes when what is measured does."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import textwrap
from functools import partial
from types import CodeType, FunctionType
from typing import Any


def definition(what: Any) -> str:
    """Return a text that changes when what is measured does: code, options and constants.

    The functions and plain constants of the studies that a function uses belong to it.
    """
    if isinstance(what, partial):
        return definition((what.func, what.args, what.keywords))
    if isinstance(what, FunctionType):
        return _source(what, set())
    if dataclasses.is_dataclass(what) and _ours(type(what)):
        drawn = definition(vars(type(what)).get("__call__"))
        return drawn + definition([getattr(what, f.name) for f in dataclasses.fields(what)])
    if isinstance(what, dict):
        return definition(sorted(what.items()))
    if isinstance(what, (list, tuple)):
        return "(" + ", ".join(map(definition, what)) + ")"
    text = repr(what)
    if " at 0x" in text:  # would be another in every run
        raise TypeError(f"{text} cannot be told from another: use a function of the studies")
    return text


def _ours(what: Any) -> bool:
    return what.__module__.split(".")[0] in ("validation", "__main__")


def _source(function: FunctionType, seen: set[str]) -> str:
    seen.add(function.__name__)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    body = tree.body[0]
    assert isinstance(body, ast.FunctionDef)
    if ast.get_docstring(body) is not None:
        del body.body[0]
    text = ast.unparse(tree)
    for name in sorted(_names(function.__code__)):
        used = inspect.unwrap(function.__globals__.get(name))
        if name in seen or used is None:
            continue
        if isinstance(used, FunctionType) and _ours(used):
            text += _source(used, seen)
        elif isinstance(used, (int, float, str, tuple, partial)):
            text += f"{name}={definition(used)}"
    return text


def _names(code: CodeType) -> set[str]:
    inner = (_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*inner)


def short(*parts: object) -> str:
    """Return eight letters that stand for all of these."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]
