"""Proper scores: as estimates, and as tests by their distance from what the predictions promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from caltest._numba import kernel
from caltest.binning import Binning
from caltest.checks import one_of
from caltest.errors import StatisticError
from caltest.predictions import BoolArray, FloatArray, IntArray
from caltest.statistics.binned import ECE, cell_of_rows
from caltest.statistics.lanes.events import EventRedraws
from caltest.statistics.laws import Law, normal
from caltest.statistics.problem import OfLabels, as_problem
from caltest.written import Written

#: Standard deviations per root of n that are rounding.
NOTHING = 1e-13


def _brier(probs: FloatArray) -> FloatArray:
    scale = 0.5 if probs.shape[1] == 2 else 1.0
    return scale * ((probs**2).sum(axis=1)[:, None] - 2.0 * probs + 1.0)


def _log(probs: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return -np.log(probs)


def _spherical(probs: FloatArray) -> FloatArray:
    return 1.0 - probs / np.sqrt((probs**2).sum(axis=1))[:, None]


#: The score of every row for every label it could have, shape (n, K); smaller is better.
NAMED: dict[str, Callable[[FloatArray], FloatArray]] = {
    "brier": _brier,
    "log": _log,
    "spherical": _spherical,
}


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """A sum of scores whose predictions are fixed: what is left is a function of the labels.

    The value is (Σ_i table[i, y_i]) / divisor.

    Attributes
    ----------
    table : ndarray of shape (n, K)
        What each row adds for each label.
    divisor : float
        n for a mean, the standard deviation of the sum for a standardised one.
    expectation, deviation : float
        Mean and standard deviation of the value when the predictions are calibrated.
    """

    table: FloatArray = field(repr=False)
    divisor: float
    expectation: float
    deviation: float

    def evaluate(self, labels: IntArray) -> float:
        """Return the value for these labels, without a compiler."""
        return float(self.table[np.arange(labels.size), labels].sum() / self.divisor)

    def __call__(self, labels: IntArray) -> float:
        return float(_looked_up(self.table, labels) / self.divisor)

    def values(self, events: BoolArray) -> FloatArray:
        """Return the values for events of shape (B, n): label 0 of a two-class problem, or 1."""
        sums = np.empty(len(events))
        _chosen(events, self.table, sums)
        return sums / self.divisor

    def redraws(self, probs: FloatArray) -> EventRedraws | None:
        """Return the compiled null under redrawn labels, for two classes."""
        if probs.shape[1] != 2:
            return None
        return EventRedraws.of(np.arange(len(probs)), probs, self.values)

    @property
    def laws(self) -> Mapping[str, Law]:
        """The normal limit, by name."""
        return {"asymptotic": partial(normal, self.expectation, self.deviation)}


@kernel
def _looked_up(table, labels):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(labels.size):
        total += table[i, labels[i]]
    return total


@kernel
def _chosen(events, table, sums_out):  # type: ignore[no-untyped-def]
    n = events.shape[1]
    for r in range(events.shape[0]):
        row = events[r]
        s0 = s1 = s2 = s3 = 0.0  # four sums, because one would wait for itself
        for i in range(0, n - 3, 4):
            s0 += table[i, 0] if row[i] else table[i, 1]
            s1 += table[i + 1, 0] if row[i + 1] else table[i + 1, 1]
            s2 += table[i + 2, 0] if row[i + 2] else table[i + 2, 1]
            s3 += table[i + 3, 0] if row[i + 3] else table[i + 3, 1]
        for i in range(n - n % 4, n):
            s0 += table[i, 0] if row[i] else table[i, 1]
        sums_out[r] = s0 + s1 + s2 + s3


def _moments(probs: FloatArray, table: FloatArray) -> tuple[FloatArray, float]:
    """Return the expected score of every row, and the standard deviation of their sum."""
    possible = np.where(probs > 0.0, table, 0.0)
    expected = (probs * possible).sum(axis=1)
    variance = (probs * (possible - expected[:, None]) ** 2).sum()
    return expected, float(np.sqrt(variance))


@dataclass(frozen=True, repr=False)
class _MeanScore(Written):
    """What the scores share: a mean over the rows of a table."""

    name: ClassVar[str]

    def per_row(self, probs: Any, labels: Any) -> FloatArray:
        """Return the score of every row, shape (n,)."""
        rows, codes = as_problem(probs, labels)
        return NAMED[self.name](rows)[np.arange(codes.size), codes]

    def __call__(self, probs: FloatArray, labels: IntArray) -> float:
        return float(self.per_row(probs, labels).mean())

    def given(self, probs: FloatArray) -> ScoredRows:
        """Fix the predictions: tabulate the scores once, and leave a function of the labels."""
        n, table = len(probs), NAMED[self.name](probs)
        expected, deviation = _moments(probs, table)
        return ScoredRows(table, n, float(expected.mean()), deviation / n)


class BrierScore(_MeanScore):
    """Mean squared error of the probabilities, for any number of classes; smaller is better.

    (1/n) Σ_i Σ_k (p_ik − 1{y_i = k})², in [0, 2] for K > 2 classes (Brier 1950). For two classes
    half of that, the familiar (1/n) Σ (p − y)² in [0, 1]; scikit-learn does the same.

    Notes
    -----
    A score measures calibration and skill together. Its null law is that of a calibrated model with
    the same predictions; a large value speaks for overconfidence only, so test with
    :class:`ScoreGap`, which looks at both sides. ``per_row`` gives the n scores that are averaged.
    O(n K) once, O(n) for each further set of labels.

    References
    ----------
    Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78,
    1950.

    Examples
    --------
    >>> BrierScore()([0.75, 0.5], [1, 0])
    0.15625
    >>> BrierScore()([[0.5, 0.25, 0.25]], [0])
    0.375
    """

    name: ClassVar[str] = "brier"


class LogScore(_MeanScore):
    """Mean negative log-likelihood, for any number of classes; smaller is better.

    −(1/n) Σ_i log p_i,y_i, in nats, in [0, ∞] (Good 1952). It is infinite when a label of
    probability 0 occurs; nothing is clipped, and the verbs refuse it then. See :class:`BrierScore`
    for testing and cost.

    Examples
    --------
    >>> round(LogScore()([0.5, 0.25], [1, 0]), 6)
    0.490415
    """

    name: ClassVar[str] = "log"


class SphericalScore(_MeanScore):
    """Mean spherical score, for any number of classes; smaller is better.

    (1/n) Σ_i (1 − p_i,y_i / ‖p_i‖₂), in [0, 1]: the spherical score of Good (1971) taken from 1, so
    that 0 is best as for the other scores. See :class:`BrierScore` for testing and cost.

    Examples
    --------
    >>> round(SphericalScore()([[0.6, 0.8]], [0]), 12)
    0.4
    """

    name: ClassVar[str] = "spherical"


@dataclass(frozen=True, repr=False)
class ScoreGap(OfLabels):
    """How far a proper score is from what the predictions promise, in standard deviations.

    z = Σ_i (s(p_i, y_i) − e_i) / √(Σ_i v_i), with e_i and v_i the mean and the variance of the
    score s(p_i, Y) when Y is drawn from p_i. A model that is calibrated has z of mean 0 and
    variance 1 at every n. z > 0 means worse than promised, overconfident on balance; z < 0 means
    better than promised, underconfident. Both count as evidence. With Brier scores and two classes
    this is the z of Spiegelhalter (1986); for K classes its Brier form is
    e_i = 1 − ‖p_i‖², v_i = 4 (Σ_k p_ik³ − ‖p_i‖⁴).

    Errors that leave the mean score as promised are not seen: a shift of predictions that are
    symmetric around ½, for instance.

    Parameters
    ----------
    score : {"brier", "log", "spherical"}, default "brier"
        Which score.

    Raises
    ------
    StatisticError
        For another score; when the score of no row depends on its label other than by impossible
        ones (all predictions uniform, or all 0 and 1).

    Notes
    -----
    O(n K) once, in time and memory, O(n) for each further set of labels. ``laws`` offers
    ``"asymptotic"``, the standard normal. With ``"log"``, z is infinite when a label of probability
    0 occurs.

    References
    ----------
    Spiegelhalter, "Probabilistic prediction in patient management and clinical trials", Statistics
    in Medicine 5, 1986.

    Examples
    --------
    >>> ScoreGap()([0.75, 0.75, 0.75], [1, 1, 1])
    -1.0
    """

    score: str = "brier"
    two_sided: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("score", self.score, NAMED)

    def given(self, probs: FloatArray) -> ScoredRows:
        """Fix the predictions: tabulate the gaps once, and leave a function of the labels."""
        table = NAMED[self.score](probs)
        expected, deviation = _moments(probs, table)
        if deviation <= NOTHING * np.sqrt(len(probs)):
            raise StatisticError(
                f"{self!r} is not defined: with these predictions the {self.score} score of a "
                "calibrated model is the same for all labels that can occur"
            )
        return ScoredRows(table - expected[:, None], deviation, 0.0, 1.0)


@dataclass(frozen=True)
class BrierDecomposition:
    """A Brier score taken apart over the cells of a partition.

    ``mean_score = reliability − resolution + uncertainty + within_variance − within_covariance``,
    exactly. With ḡ_b and r̄_b the mean prediction and the frequencies of the labels in cell b, r̄
    those of all rows and e_i the outcome as a vector:

    Attributes
    ----------
    mean_score : float
        The Brier score.
    reliability : float
        Σ_b (n_b / n) ‖ḡ_b − r̄_b‖² ≥ 0: miscalibration between cells.
    resolution : float
        Σ_b (n_b / n) ‖r̄_b − r̄‖² ≥ 0: how much the cells differ in what happens.
    uncertainty : float
        1 − ‖r̄‖², the score of always predicting r̄.
    within_variance : float
        (1/n) Σ_i ‖p_i − ḡ_b‖²: spread of predictions within cells.
    within_covariance : float
        (2/n) Σ_i (p_i − ḡ_b)·(e_i − r̄_b): how much of that spread is right.

    For two classes everything is halved, as in :class:`BrierScore`. The last two are 0 when every
    cell holds a single prediction: the decomposition of Murphy (1973). With them the sum is exact
    for any cells (Stephenson, Coelho & Jolliffe 2008).
    """

    mean_score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float


def brier_decomposition(probs: Any, labels: Any, bins: Binning | int = 15) -> BrierDecomposition:
    """Take the Brier score apart over the cells of a partition. O(n K).

    Reliability is biased upward and resolution too, by chance, the more the smaller the cells are;
    :func:`~caltest.statistics.isotonic.corp_decomposition` needs no cells.

    Parameters
    ----------
    probs : array_like of shape (n, K) or (n,)
        Predictions; a 1-D array is the probability of label 1.
    labels : array_like of shape (n,)
        Observed labels.
    bins : binning or int, default 15
        The partition, as for :class:`~caltest.statistics.binned.ECE`.

    References
    ----------
    Murphy, "A new vector partition of the probability score", Journal of Applied Meteorology 12,
    1973. Stephenson, Coelho & Jolliffe, "Two extra components in the Brier score decomposition",
    Weather and Forecasting 23, 2008.

    Examples
    --------
    >>> parts = brier_decomposition([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 0])
    >>> parts.mean_score, parts.reliability, parts.resolution, parts.uncertainty
    (0.1875, 0.0625, 0.0625, 0.1875)
    """
    rows, codes = as_problem(probs, labels)
    n, n_classes = rows.shape
    cells = ECE(bins).given(rows)
    cell = cell_of_rows(cells.order, cells.starts)
    outcomes = np.eye(n_classes)[codes]
    happened = np.zeros_like(cells.sums)
    np.add.at(happened, (cell, codes), 1.0)
    size = cells.counts[:, None]
    predicted, observed, overall = cells.sums / size, happened / size, outcomes.mean(axis=0)
    spread, surprise = rows - predicted[cell], outcomes - observed[cell]
    scale = 0.5 if n_classes == 2 else 1.0
    return BrierDecomposition(
        mean_score=BrierScore()(rows, codes),
        reliability=scale * float((size * (predicted - observed) ** 2).sum() / n),
        resolution=scale * float((size * (observed - overall) ** 2).sum() / n),
        uncertainty=scale * float(1.0 - overall @ overall),
        within_variance=scale * float((spread**2).sum() / n),
        within_covariance=scale * float(2.0 * (spread * surprise).sum() / n),
    )
