"""Which lens is used: the one named, a user's function, or the usual one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from caltest._base.written import name_of
from caltest.errors import StatisticError
from caltest.lenses import Canonical, Lens, LensLike, OneVsRest, TopK
from caltest.predictions import Predictions


@dataclass(frozen=True, repr=False)
class OfFunction(Lens):
    """A user's function as a lens: what it returns is checked, and keeps the facts of the rows."""

    function: Callable[[Predictions], Predictions]

    def __call__(self, data: Predictions) -> Predictions:
        induced = self.function(data)
        if not isinstance(induced, Predictions):
            raise StatisticError(
                f"the lens {self!r} returned {type(induced).__name__}; a lens takes Predictions "
                "and returns Predictions, for instance with Predictions.of(probs, labels)"
            )
        if induced.n == data.n:
            shown = {name: vars(induced)[name] for name in ("probs", "labels", "classes")}
            return replace(data, **shown, induced=True)
        facts = (induced.weights, data.weights), (induced.clusters, data.clusters)
        if any(picked is None and given is not None for picked, given in facts):
            raise StatisticError(
                f"the lens {self!r} picks rows and loses their weights or clusters: pick them with "
                "data.take(rows)"
            )
        return replace(induced, induced=True)

    def __repr__(self) -> str:
        return name_of(self.function)


def default_lens(data: Predictions) -> Lens:
    """Return the lens used when none is named: the event of two classes, else the top class."""
    if data.induced:  # what a lens has made is looked at as it is
        return Canonical()
    return OneVsRest(1) if data.n_classes == 2 else TopK(1)


def as_lens(lens: LensLike | None, data: Predictions) -> Lens:
    """Return the lens to use: the usual one for None, a function as a value.

    StatisticError for neither, and for a function that makes probabilities by the labels.
    """
    if lens is None:
        return default_lens(data)
    if isinstance(lens, Lens):
        return lens
    if not callable(lens) or isinstance(lens, type):
        raise StatisticError(f"lens must be a lens such as TopK(1) or a function, not {lens!r}")
    wrapped = OfFunction(lens)
    swapped = replace(data, labels=(data.labels + 1) % data.n_classes)
    if not np.array_equal(wrapped(swapped).probs, wrapped(data).probs):
        raise StatisticError(
            f"the lens {wrapped!r} makes probabilities, or picks rows, by looking at the labels: "
            "no test would be valid after that"
        )
    return wrapped
