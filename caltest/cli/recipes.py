"""Options written as in Python: lenses, statistics, nulls."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import click

import caltest as ct
from caltest import statistics
from caltest.reliability.simplex import SimplexGrid

LENSES = (ct.TopK, ct.Partition, ct.OneVsRest, ct.Canonical)
NULLS = (
    ct.RedrawLabels,
    ct.SharedRedraws,
    ct.WildSigns,
    ct.OneRowPerCluster,
    ct.ConsistencyResampling,
)
BINNINGS = (ct.UniformBins, ct.EdgeBins, ct.QuantileBins, ct.VarianceTree)
STATISTICS = tuple(
    value
    for _, value in inspect.getmembers(statistics, inspect.isclass)
    if issubclass(value, ct.Statistic) and not inspect.isabstract(value)
)
#: What an option may be in the end.
HEADS: dict[str, tuple[Any, ...]] = {
    "lens": LENSES,
    "statistic": STATISTICS,
    "null": NULLS,
    "bins": (int, *BINNINGS, SimplexGrid),
}
#: What else it may be made of, or by.
PARTS: dict[str, tuple[Any, ...]] = {
    "statistic": (
        *(ct.SCE, ct.TACE, ct.Spiegelhalter),
        *(ct.LaplaceKernel, ct.GaussianKernel, ct.TVKernel),
        *BINNINGS,
    )
}
#: What may be written in it, as in Python.
VOCABULARY: dict[str, dict[str, Any]] = {
    kind: {head.__name__: head for head in (*heads, *PARTS.get(kind, ())) if head is not int}
    for kind, heads in HEADS.items()
}


def parse(text: str, vocabulary: dict[str, Callable[..., Any]], words: tuple[str, ...] = ()) -> Any:
    """Build a value from text such as ``ECE(UniformBins(15), distance="tv")``.

    Only the names of the vocabulary, numbers, strings and lists are understood; nothing is
    evaluated. ``words`` are named in errors beside the vocabulary.

    Raises
    ------
    ValueError
        With what was not understood and what is known.
    """

    def made(name: str, *values: Any, **options: Any) -> Any:
        if name not in vocabulary:
            raise ValueError(f"there is no {name}; known: {', '.join((*words, *vocabulary))}")
        if any(isinstance(value, ct.Statistic) for value in (*values, *options.values())):
            raise ValueError(f"{name} is not made of statistics")
        signature = inspect.signature(vocabulary[name])
        try:
            signature.bind(*values, **options)
        except TypeError as error:
            known = signature.parameters.values()
            takes = ", ".join(p.name + "=…" * (p.kind is p.KEYWORD_ONLY) for p in known)
            raise ValueError(f"{name} takes {takes or 'nothing'}: {error}") from None
        return vocabulary[name](*values, **options)

    def build(node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return made(node.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if any(k.arg is None for k in node.keywords):
                raise ValueError(f"{ast.unparse(node)!r} is not understood")
            options = {str(k.arg): build(k.value) for k in node.keywords}
            return made(node.func.id, *map(build, node.args), **options)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [build(element) for element in node.elts]
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -build(node.operand)
        raise ValueError(f"{ast.unparse(node)!r} is not understood")

    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        raise ValueError("it is not written as in Python, such as TopK(1)") from None
    return build(tree.body)


class Recipe(click.ParamType):  # type: ignore[type-arg]
    """An option whose value is written as in Python."""

    name = "recipe"

    def __init__(self, kind: str, words: tuple[str, ...] = ()) -> None:
        self.kind, self.words = kind, words

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Turn the text into a lens, statistic or null."""
        if not isinstance(value, str) or value in self.words:
            return value
        try:
            built = parse(value, VOCABULARY[self.kind], self.words)
        except (TypeError, ValueError) as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        if type(built) not in HEADS[self.kind]:
            names = ", ".join(head.__name__ for head in HEADS[self.kind])
            self.fail(f"{value!r} is not a {self.kind}; choose one of {names}", param, ctx)
        return built
