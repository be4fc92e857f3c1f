"""Options written as in Python: lenses, statistics, nulls."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import click

import caltest as ct
from caltest import statistics
from caltest._base.foreign import refuse_misfit

BINNINGS = ("UniformBins", "EdgeBins", "QuantileBins", "VarianceTree")
#: What :mod:`caltest.statistics` has besides statistics.
FORMS = ("SCE", "TACE", "Spiegelhalter")
KERNELS = ("LaplaceKernel", "GaussianKernel", "TVKernel")
PROTOCOL = (
    *("Prepared", "prepare"),
    *("Statistic", "StatisticLike"),
    *("CellStatistic", "SumStatistic", "ResidualStatistic", "LabelStatistic"),
)
#: What an option may be in the end, by names: only what is written is imported.
HEADS: dict[str, tuple[str, ...]] = {
    "lens": ("TopK", "Partition", "OneVsRest", "Canonical"),
    "statistic": tuple(
        name for name in dir(statistics) if name not in {*FORMS, *KERNELS, *PROTOCOL}
    ),
    "null": (
        *("RedrawLabels", "SharedRedraws", "WildSigns"),
        *("OneRowPerCluster", "PopulationWeights", "ConsistencyResampling"),
    ),
    "bins": ("int", *BINNINGS, "SimplexGrid"),
    "alternative": ("Slope", "Shift", "Bump"),
    "like": ("LogisticNormal",),
}
#: What else it may be made of, or by.
PARTS: dict[str, tuple[str, ...]] = {"statistic": (*FORMS, *KERNELS, *BINNINGS)}
#: What may be written in it, as in Python.
VOCABULARY: dict[str, tuple[str, ...]] = {
    kind: tuple(head for head in (*heads, *PARTS.get(kind, ())) if head != "int")
    for kind, heads in HEADS.items()
}


def known(name: str) -> Callable[..., Any]:
    """Return what a name of the vocabulary stands for."""
    home: Any = ct if name in dir(ct) else ct.planning
    return getattr(home, name)


#: Characters of a recipe, of which the groups of a thousand classes take half; how many are shown.
LONGEST, SHOWN = 10_000, 100


def parse(text: str, vocabulary: Sequence[str], words: tuple[str, ...] = ()) -> Any:
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
        refuse_misfit(name, inspect.signature(known(name)), values, options)
        return known(name)(*values, **options)

    def build(node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            if node.id not in vocabulary and node is not tree.body:
                raise ValueError(f"there is no {node.id}; text goes in quotes: {node.id!r}")
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
            positive = build(node.operand)
            if isinstance(positive, (int, float)):
                return -positive
        raise ValueError(f"{ast.unparse(node)!r} is not understood")

    try:
        if len(text) > LONGEST:  # also so that the parser of Python cannot run out of its stack
            raise ValueError(f"it is longer than {LONGEST} characters")
        tree = ast.parse(text.strip(), mode="eval")
        return build(tree.body)
    except (SyntaxError, RecursionError, MemoryError, UnicodeError):
        raise ValueError("it is not written as in Python, such as TopK(1)") from None


class Recipe(click.ParamType):  # type: ignore[type-arg]
    """An option whose value is written as in Python."""

    name = "recipe"

    def __init__(self, kind: str, words: tuple[str, ...] = ()) -> None:
        self.kind, self.words = kind, words

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str) or value in self.words:
            return value
        shown = repr(value if len(value) <= SHOWN else value[:SHOWN] + "…")
        try:
            built = parse(value, VOCABULARY[self.kind], self.words)
        except (TypeError, ValueError) as error:
            self.fail(f"{shown}: {error}", param, ctx)
        if type(built).__name__ not in HEADS[self.kind]:
            names = ", ".join("a number" if h == "int" else h for h in HEADS[self.kind])
            self.fail(f"{shown} does not fit; choose one of {names}", param, ctx)
        return built
