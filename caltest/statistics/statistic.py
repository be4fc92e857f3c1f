"""The statistic protocol, and preparation: the one place that tells statistics from functions.

:func:`prepare` fixes the predictions of a statistic or a plain function; :func:`rows_of` gives a
statistic the rows it needs, or explains why a tally cannot.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.written import Written, name_of
from caltest.data import Facts, Predictions
from caltest.errors import Reading, StatisticError, UnsupportedFactError
from caltest.nulls import REPLICATES_A_STREAM
from caltest.read.arguments import read_arguments
from caltest.statistics.prepared import LabelStatistic, Prepared
from caltest.statistics.problem import Problem
from caltest.statistics.rows import Drawn, FollowupProblem, RowProblem, row_problem

#: What verbs accept: a statistic, or a function of an induced problem.
StatisticLike = Callable[..., float]


class Statistic(ABC, Written):
    """Base class of calibration statistics, such as :class:`ECE`.

    Call an instance with probabilities and labels to get its value, a float; large values are
    evidence against calibration. A subclass implements :meth:`prepare`, which fixes the
    predictions.
    """

    #: Whether it looks at rows with follow-up by the labels and weights of those that are known.
    of_known_rows: ClassVar[bool] = False
    #: Whether it is about all classes: two classes that a lens made of more are refused.
    of_whole_vector: ClassVar[bool] = False
    #: Whether it is of items with several outcomes, independent of each other given the prediction.
    of_items: ClassVar[bool] = False

    def __call__(self, probs: object, labels: object = None, **facts: Unpack[Facts]) -> float:
        """Return the value; arguments and errors are as in :meth:`Predictions.of`.

        For two classes label 1 is the event, or class 0 of ``Predictions(…, induced=True)``.
        """
        # Weights of 2 and 4 give the number that 1 and 2 give, to the last bit.
        facts.setdefault("rounded", False)  # the value of all rows
        data = read_arguments(probs, labels, **facts).in_ratios()
        return prepare(self, RowProblem.of(data)).observed

    @abstractmethod
    def prepare(self, problem: Problem) -> Prepared:
        """Return the statistic with fixed predictions, a function of the outcomes.

        ``problem`` holds the predictions.
        """


def rows_of(
    problem: Problem, statistic: object, *, weights: bool = False, labels: bool = True
) -> Predictions:
    """Return the rows of a problem; StatisticError for a tally, or for weights unless taken.

    ``labels`` says that the labels of all rows are needed, which follow-up does not know.
    """
    if not problem.exact:
        raise StatisticError(
            f"{name_of(statistic)} needs the rows: pass their predictions. From a tally, which "
            "keeps sums over micro-cells, come statistics that are made of sums, such as ECE, "
            "DebiasedL2, CoxScore, Kuiper or ScoreGap"
        )
    if labels and problem.only_null is not None:
        raise StatisticError(
            f"{name_of(statistic)} looks at the labels of all rows, of which follow-up leaves some "
            "unknown: take a statistic of residuals, such as ECE or Kuiper, or ICI or CORP"
        )
    if problem.weight is not None and not weights:
        message = f"{name_of(statistic)} does not take weights yet"
        raise UnsupportedFactError(message, fact="weights")
    rows: Predictions = problem.data
    return rows


@dataclass(frozen=True, eq=False)
class PreparedFunction(LabelStatistic):
    """User-defined function ``(probs, labels) -> float`` with fixed predictions.

    With ``weighted`` it is called with a third argument, the weights of the rows.
    """

    function: StatisticLike
    weighted: bool
    replicates_at_once: ClassVar[int] = REPLICATES_A_STREAM

    def of_labels(self, labels: IntArray) -> float:
        weights = (self.problem.weight,) if self.weighted else ()
        return float(self.function(self.problem.probs, labels, *weights))


@dataclass(frozen=True, eq=False)
class KnownRows(Prepared):
    """Statistic of censored rows that is computed from the rows with known outcomes.

    Weights are inverse probabilities of not being censored. Each draw has other known rows, so the
    statistic is prepared anew for it.
    """

    problem: FollowupProblem
    statistic: Statistic
    inflatable: ClassVar[bool] = False
    replicates_at_once: ClassVar[int] = REPLICATES_A_STREAM

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        assert isinstance(outcomes, Drawn)
        values = np.zeros(len(outcomes.signed))  # as of residuals: 0 where no row is known
        for b in np.flatnonzero(outcomes.signed.any(axis=1)):
            rows = RowProblem(self.problem.known_rows(outcomes.signed[b]))
            values[b] = self.statistic.prepare(rows).observed
        return values


def prepare(statistic: StatisticLike, source: Problem | Predictions) -> Prepared:
    """Fix the predictions of a statistic or function; StatisticError if it cannot take them."""
    problem = row_problem(source) if isinstance(source, Predictions) else source
    if isinstance(statistic, Statistic):
        if statistic.of_whole_vector and problem.n_classes == 2:
            refuse_merged(statistic, getattr(problem.data, "merged", 0), problem.n_classes)
        if statistic.of_known_rows and isinstance(problem, FollowupProblem):
            return KnownRows(problem, statistic)
        return statistic.prepare(problem)
    if not callable(statistic) or isinstance(statistic, type):
        raise StatisticError(
            f"statistic must be a statistic such as ECE(15) or a function (probs, labels) -> "
            f"float, not {statistic!r}"
        )
    # A function sees rows: a tally is refused here, and not within it.
    rows_of(problem, statistic, weights=True)
    try:
        weighted = "weights" in inspect.signature(statistic).parameters
    except ValueError:  # some builtins have no signature
        weighted = False
    if problem.weight is not None and not weighted:
        raise StatisticError(
            f"{name_of(statistic)} does not take weights: give it a third parameter named weights"
        )
    return PreparedFunction(problem, statistic, weighted)


def refuse_merged(statistic: object, before: int, n_classes: int) -> None:
    """Raise StatisticError for a statistic of the whole vector if a lens has merged classes.

    ``before`` is the number of classes before the lens. Testing the two merged classes would be
    another test than the one asked for.
    """
    if n_classes == 2 < before and isinstance(statistic, Statistic) and statistic.of_whole_vector:
        raise StatisticError(
            f"{name_of(statistic)} tests the whole probability vector, but this lens leaves 2 of "
            f"{before} classes: use the lens Canonical(), or a statistic of two classes, such as "
            "CoxScore(), through this lens",
            [Reading({"lens": "Canonical()"})],
        )


def problem_of(source: Problem | Predictions) -> Problem:
    """Return the problem of predictions; a problem is returned as it is."""
    return row_problem(source) if isinstance(source, Predictions) else source


def coarseness(statistic: object, problem: Problem) -> str:
    """Return the remark that a statistic of sorted rows loses order within cells; "" for rows.

    A tally keeps no order of the rows within its cells.
    """
    return "" if problem.exact else f"{type(statistic).__name__} sees nothing within a micro-cell"
