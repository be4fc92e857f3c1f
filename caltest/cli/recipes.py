"""Options written as in Python: lenses, statistics, nulls."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import click

import caltest as ct
from caltest import statistics
from caltest.reliability.simplex import SimplexGrid

LENSES = (ct.TopK, ct.Partition, ct.OneVsRest, ct.Canonical)
NULLS = (ct.RedrawLabels, ct.ConsistencyResampling)
STATISTICS = tuple(
    value
    for name in statistics.__all__
    if isinstance(value := getattr(statistics, name), type) and hasattr(value, "given")
)
BINNINGS = (ct.UniformBins, ct.EdgeBins, ct.QuantileBins, ct.VarianceTree)
#: What statistics are made of.
PARTS = (*BINNINGS, ct.LaplaceKernel, ct.GaussianKernel, ct.TVKernel)
#: What an option may be in the end.
HEADS: dict[str, tuple[Any, ...]] = {
    "lens": LENSES,
    "statistic": STATISTICS,
    "null": NULLS,
    "bins": (int, *BINNINGS, SimplexGrid),
}
#: What may be written in it, as in Python.
VOCABULARY: dict[str, dict[str, Any]] = {
    "lens": {head.__name__: head for head in LENSES},
    "statistic": {head.__name__: head for head in (*STATISTICS, *PARTS)},
    "null": {head.__name__: head for head in NULLS},
    "bins": {head.__name__: head for head in (*BINNINGS, SimplexGrid)},
}


def parse(text: str, vocabulary: dict[str, Callable[..., Any]]) -> Any:
    """Build a value from text such as ``ECE(UniformBins(15), distance="tv")``.

    Only the names of the vocabulary, numbers, strings and lists are understood; nothing is
    evaluated.

    Raises
    ------
    ValueError
        With what was not understood and what is known.
    """

    def build(node: ast.expr) -> Any:
        if isinstance(node, ast.Name) and node.id in vocabulary:
            return vocabulary[node.id]()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id not in vocabulary:
                raise ValueError(f"there is no {node.func.id}; known: {', '.join(vocabulary)}")
            if any(k.arg is None for k in node.keywords):
                raise ValueError(f"{ast.unparse(node)!r} is not understood")
            keywords = {str(k.arg): build(k.value) for k in node.keywords}
            return vocabulary[node.func.id](*[build(a) for a in node.args], **keywords)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [build(element) for element in node.elts]
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -build(node.operand)
        if isinstance(node, ast.Name):
            raise ValueError(f"there is no {node.id}; known: {', '.join(vocabulary)}")
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
            built = parse(value, VOCABULARY[self.kind])
        except (TypeError, ValueError) as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        if type(built) not in HEADS[self.kind]:
            names = ", ".join(head.__name__ for head in HEADS[self.kind])
            self.fail(f"{value!r} is not a {self.kind}; choose one of {names}", param, ctx)
        return built
