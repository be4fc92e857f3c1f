"""E-values of all rows at once: the final wealth of bets against calibration.

The bets are those of :class:`caltest.Monitor` without late starts, compiled in
:mod:`caltest.nulls.bets`; an e-value E gives the p-value min(1, 1/E).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest._base import IntArray
from caltest.errors import StatisticError
from caltest.nulls import bets as mixture
from caltest.nulls.bets import STATIC
from caltest.nulls.laws import markov
from caltest.statistics.prepared import LabelStatistic
from caltest.statistics.problem import Problem
from caltest.statistics.statistic import Statistic, rows_of

#: Larger logarithms of e-values are cut off, so that results are finite numbers.
LARGEST = 700.0


@dataclass(frozen=True, eq=False)
class _Mixture(LabelStatistic):
    """E-value with fixed predictions.

    The final wealth of the mixture of bets, for label vectors.
    """

    def of_labels(self, labels: IntArray) -> float:
        h = self.data.horizon or 1
        place = np.zeros(labels.size) if self.data.times is None else self.data.times % h
        logs = []
        for j in np.unique(place):
            state, y = mixture.start(self.data.n_classes), labels[place == j]
            path = mixture.bet(self.data.probs[place == j], y, np.ones(y.size), STATIC, state)
            logs.append(path[-1])
        # The largest of h e-values, divided by h, is at most their mean, and so is one as well.
        return float(np.exp(min(max(logs) - np.log(h), LARGEST)))


@dataclass(frozen=True, repr=False)
class EValue(Statistic):
    """E-value for calibration: final wealth of bets against the null, starting from 1.

    Σ_j π_j Π_i q_j(y_i) / p_i(y_i) over fixed experts j: shifts, slopes, label noise, local shifts;
    the mixture of :class:`Monitor` without late starts. With ``horizon`` times are dealt to h such
    products, and E is the largest of them, divided by h. Its expectation under calibration is at
    most 1 at every n, so that P(E ≥ 1/α) ≤ α: the p-value is min(1, 1/E), ``null="betting"``, also
    for rows that depend on earlier ones; e-values of several data sets may be multiplied. It costs
    power. O(n K). Values are cut off at e⁷⁰⁰. Rows that are predicted with certainty are no bets.
    Shafer, JRSS A 184, 2021; Vovk & Wang, Annals of Statistics 49, 2021.

    Examples
    --------
    >>> round(EValue()([0.9, 0.8, 0.95, 0.3, 0.1, 0.6, 0.99], [0, 1, 0, 1, 0, 0, 1]), 4)
    2.0145
    """

    essential = 0

    def prepare(self, problem: Problem) -> LabelStatistic:
        rows = rows_of(problem, self)
        if rows.times is not None and np.unique(rows.times).size < rows.n:
            raise StatisticError(
                f"{self!r} with horizon= bets on one row of each time: rows of one time may depend "
                "on each other"
            )
        return _Mixture(problem, laws={"betting": markov}, usual_null="betting")
