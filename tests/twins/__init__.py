"""Slow twins: each quantity written once more from its paper, and not from the code.

A module with the twin of a statistic may also have its rows of the table ``STATISTICS`` of
``conftest.py``, in a list ``ROWS``: a new statistic then needs no other file of tests.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Row:
    """A statistic of the table, and what is known of it."""

    statistic: Any
    two_classes: bool = False
    #: Whether the order of the rows does not matter.
    any_order: bool = True
    #: Whether the exact law of its null is known for two classes.
    exact: bool = False
    #: Whether it takes weights, and a row of weight 2 then counts as two rows.
    weights: bool = True
    #: Whether repeated rows leave the value as weights do.
    copies: bool = True
    #: How near a tally of two classes comes to the value of the rows; None if it has none.
    tally: float | None = None
    #: Whether it is of the whole vector, and refuses two classes that a lens made of more.
    whole: bool = False
    #: Its value as computed from the probabilities and labels by loops, with class 0 as the event.
    twin: Callable[..., float] | None = None
    #: Rows at least with which the twin is compared.
    least: int = 1
    #: Whether the twin takes multipliers of the residuals as its third argument.
    moved: bool = False
    #: Published values: (probs, labels), the lens, the value, and how far it may be off.
    published: tuple[tuple[Any, Any, float, float], ...] = ()

    def __str__(self) -> str:
        return repr(self.statistic)

    @property
    def classes(self) -> tuple[int, ...]:
        """Numbers of classes with which the twin is compared."""
        return (2,) if self.two_classes else (3, 10) if self.whole else (2, 3, 10)


def rows() -> list[Row]:
    """Return the rows of all modules of this folder."""
    modules = (
        import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)
    )
    return [row for module in modules for row in getattr(module, "ROWS", ())]


def event(slow, *options):
    """Return the twin of a function of the probability of the event and of whether it happened."""
    return lambda probs, labels, *signs: slow(
        probs[:, 0], (labels == 0).astype(int), *options, *signs
    )
