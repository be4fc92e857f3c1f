"""Evidence as the wealth of a gambler: e-values of all rows at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.bets import mixture
from caltest.bets.kernels import STATIC
from caltest.nulls import AsymptoticNull
from caltest.predictions import IntArray
from caltest.problem import Problem
from caltest.statistics.base import Statistic, rows_of
from caltest.statistics.prepared import LabelStatistic

#: Larger logarithms of e-values are cut off, so that results are finite numbers.
LARGEST = 700.0


class MarkovNull(AsymptoticNull):
    """The heaviest tail that an e-value can have under calibration: P(E ≥ t) = 1/t."""

    def mean(self) -> float:
        """Return what the expectation is at most."""
        return 1.0

    def std(self) -> float:
        """Return NaN: it is not known."""
        return float("nan")


@dataclass(frozen=True, eq=False)
class _Mixture(LabelStatistic):
    """The e-value of the mixture, of fixed predictions."""

    def of_labels(self, labels: IntArray) -> float:
        state, ones = mixture.start(self.data.n_classes), np.ones(self.data.n)
        path = mixture.bet(self.data.probs, labels, ones, STATIC, state)
        return float(np.exp(min(path[-1], LARGEST)))


def _markov(labels: IntArray) -> MarkovNull:
    """Return Markov's bound, the same for all labels."""
    from scipy.stats import pareto

    return MarkovNull(pareto(1.0))


@dataclass(frozen=True, repr=False)
class EValue(Statistic):
    """What a gambler makes of 1 by betting against calibration, for any number of classes.

    Σ_j π_j Π_i q_j(y_i) / p_i(y_i) over fixed experts j: shifts, slopes, label noise, local shifts;
    the mixture of :class:`Monitor` without late starts. Its expectation under calibration is 1 at
    every n, so that P(E ≥ 1/α) ≤ α: the p-value is min(1, 1/E), ``null="betting"``, also for rows
    that depend on earlier ones; e-values of several data sets may be multiplied. It costs power.

    Notes
    -----
    O(n K). Values are cut off at e⁷⁰⁰. Rows that are predicted with certainty are no bets. Shafer,
    JRSS A 184, 2021; Vovk & Wang, Annals of Statistics 49, 2021.

    Examples
    --------
    >>> round(EValue()([0.9, 0.8, 0.95, 0.3, 0.1, 0.6, 0.99], [0, 1, 0, 1, 0, 0, 1]), 4)
    2.0145
    """

    essential = 0

    def prepare(self, problem: Problem) -> LabelStatistic:
        rows_of(problem, self)
        return _Mixture(problem, laws={"betting": _markov}, usual_null="betting")
