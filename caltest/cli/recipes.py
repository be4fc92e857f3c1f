"""Options written as in Python: lenses, statistics, nulls, binnings.

:func:`parse` reads an expression such as ``"ECE(QuantileBins(10))"`` with Python's own parser,
allows names of a :class:`Vocabulary` only, and evaluates nothing else.
"""

from __future__ import annotations

import ast
import inspect
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

import caltest as ct
from caltest._base.written import Written, refuse_misfit
from caltest.cli.remedies import MisspeltError

BINNINGS = ("UniformBins", "EdgeBins", "QuantileBins", "VarianceTree")
UTILITIES = ("Costs", "TopKAccuracy", "ReciprocalRank")

#: Characters of a recipe, of which the groups of a thousand classes take half; how many are shown.
LONGEST, GROUPS_SHOWN = 10_000, 100


class Vocabulary(Mapping[str, Callable[..., Any]]):
    """Mapping of the names that an option may contain to objects of caltest.

    These are the public objects of one kind, such as statistics, and their ``parts``. Only the
    names that occur are imported.
    """

    def __init__(self, module: str, *parts: str, head: str = "") -> None:
        self.module, self.parts, self.head = module, parts, head

    def __getitem__(self, name: str) -> Callable[..., Any]:
        module: Any = import_module(self.module)
        if name in self.parts:
            return vars(module).get(name) or getattr(ct, name)
        value: Any = getattr(module, name) if self.head and name in dir(module) else None
        if inspect.isclass(value):
            abstract = ABC in value.__bases__ or inspect.isabstract(value) or value is Written
            null = not issubclass(value, ct.Scheme) or value.calibrated
            if issubclass(value, Written) and not abstract and null:
                return value
        elif inspect.isfunction(value) and name[0].isupper():  # another name, such as SCE
            return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        names = dir(import_module(self.module)) if self.head else ()
        yield from (*(name for name in names if name in self), *self.parts)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def fits(self, kind: type) -> bool:
        """Return whether a value of a type may be the whole option, not only a part of it."""
        return issubclass(kind, getattr(ct, self.head)) if self.head else kind in self.values()


#: What the options are made of.
VOCABULARY = {
    "lens": Vocabulary("caltest.data.lenses", head="Lens"),
    "statistic": Vocabulary("caltest.statistics", *BINNINGS, *UTILITIES, head="Statistic"),
    "null": Vocabulary("caltest.nulls", head="Scheme"),
    "bins": Vocabulary("caltest.inference", *BINNINGS, "SimplexGrid"),
    "alternative": Vocabulary("caltest.planning", "Slope", "Shift", "Bump"),
    "like": Vocabulary("caltest.planning", "LogisticNormal"),
}


def parse(
    text: str, vocabulary: Mapping[str, Callable[..., Any]], words: tuple[str, ...] = ()
) -> object:
    """Build a value from text such as ``ECE(UniformBins(15), distance="tv")``, or raise ValueError.

    Only the names of the vocabulary, numbers, strings and lists are understood; nothing is
    evaluated. ``words`` are named in errors beside the vocabulary.
    """

    def term(name: str, *values: object, **options: object) -> object:
        if name not in vocabulary:
            raise _unknown(name, (*words, *vocabulary))
        if any(isinstance(value, ct.Statistic) for value in (*values, *options.values())):
            raise ValueError(f"{name} is not made of statistics")
        refuse_misfit(name, inspect.signature(vocabulary[name]), values, options)
        return vocabulary[name](*values, **options)

    def build(node: ast.expr) -> object:
        if isinstance(node, ast.Name):
            if node.id not in vocabulary and node is not tree.body:
                raise ValueError(f"there is no {node.id}; text goes in quotes: {node.id!r}")
            return term(node.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if any(k.arg is None for k in node.keywords):
                raise ValueError(f"{ast.unparse(node)!r} is not understood")
            options = {str(k.arg): build(k.value) for k in node.keywords}
            return term(node.func.id, *map(build, node.args), **options)
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


def _unknown(name: str, choices: Sequence[str]) -> ValueError:
    """Return the error for an unknown name, with similar names or all known ones."""
    lower = {word.lower(): word for word in choices}
    close = get_close_matches(name.lower(), lower, 1, 0.7)
    close = close or [word for word in lower if word.startswith(name.lower())][:1]
    if not close:
        return ValueError(f"there is no {name}; known: {', '.join(choices)}")
    meant = lower[close[0]]
    return MisspeltError(f"there is no {name}: did you mean {meant}?", name, meant)


class Recipe(click.ParamType):  # type: ignore[type-arg]
    """Click type of options written as Python expressions, such as ``ECE(15)``."""

    name = "recipe"

    def __init__(self, kind: str, words: tuple[str, ...] = ()) -> None:
        self.vocabulary, self.words = VOCABULARY[kind], words
        self.numbers = ("a number",) * (kind == "bins")

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        if not isinstance(value, str) or value in self.words:
            return value
        shown = repr(value if len(value) <= GROUPS_SHOWN else value[:GROUPS_SHOWN] + "…")
        try:
            built = parse(value, self.vocabulary, (*self.numbers, *self.words))
        except (TypeError, ValueError) as error:
            self.fail(f"{shown}: {error}", param, ctx)
        if not (self.vocabulary.fits(type(built)) or (self.numbers and type(built) is int)):
            kinds = {name: kind for name, kind in self.vocabulary.items() if inspect.isclass(kind)}
            names = [name for name, kind in kinds.items() if self.vocabulary.fits(kind)]
            choices = ", ".join((*self.numbers, *names))
            self.fail(f"{shown} does not fit; choose one of {choices}", param, ctx)
        return built
