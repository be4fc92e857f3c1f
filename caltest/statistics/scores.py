"""Proper scores: as estimates, and as tests by their distance from what the predictions promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from caltest._base.checks import one_of
from caltest._base.compiled import dense_kernel
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.statistics.prepared import Law, Prepared, Statistic, as_problem, normal

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
class ScoredRows(Prepared):
    """A sum of scores whose predictions are fixed: (Σ_i table[i, y_i]) / divisor.

    That is what calibration promises plus Σ_i table_i · r_i / divisor, r the residuals. A score
    gap is promised 0: it is linear in r and has a degree. The promise of a mean score stays when
    residuals change their signs, so it has none: look at the gap instead.

    Attributes
    ----------
    table : ndarray of shape (n, K)
        What each row adds for each label.
    divisor : float
        n for a mean, the standard deviation of the sum for a standardised one.
    deviation : float
        Standard deviation of the value when the predictions are calibrated; its mean is
        ``null_mean``.
    """

    table: FloatArray = field(repr=False)
    divisor: float
    deviation: float
    null_mean: float = field(kw_only=True)
    enough: float = field(default=8.0, kw_only=True)

    def __call__(self, labels: IntArray) -> float:
        return float(self._weighted[np.arange(labels.size), labels].sum() / self.divisor)

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n), by compiled look-ups."""
        return looked_up(self._weighted, labels) / self.divisor

    def of_residuals(self, residuals: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the gaps for moved residuals: Σ_i m_i table_i · r_i, in standard deviations."""
        if self.degree is None:
            return super().of_residuals(residuals, multipliers)
        # A class of probability 0 that was not observed has no residual, and maybe no finite score.
        scores = np.where(residuals == 0.0, 0.0, self.table)
        gaps = (scores * residuals).sum(axis=1)
        with np.errstate(invalid="ignore"):  # 0 · ∞: a label that was impossible and did not occur
            each = np.where(multipliers == 0.0, 0.0, multipliers * gaps)
        return np.asarray(each.sum(axis=1) / self.divisor)

    @cached_property
    def _weighted(self) -> FloatArray:
        weights = self.data.weights
        return self.table if weights is None else self.table * weights[:, None]

    def laws(self) -> Mapping[str, Law]:
        """Return the normal limit, by name."""
        return {"asymptotic": partial(normal, self.null_mean, self.deviation)}

    @property
    def tails(self) -> float:
        """Σ of fourth moments over variance²: the excess kurtosis and squared skewness are less.

        Both by Cauchy's inequality; O(n K).
        """
        probs = self.data.probs
        possible = np.where(probs > 0.0, self._weighted, 0.0)
        away = (possible - (probs * possible).sum(axis=1)[:, None]) ** 2
        return float((probs * away**2).sum() / (probs * away).sum() ** 2)


def looked_up(table: FloatArray, labels: IntArray) -> FloatArray:
    """Return Σ_i table[i, labels[b, i]] for label vectors of shape (B, n)."""
    sums = np.empty(len(labels))
    _chosen(labels, table, sums)
    return sums


@dense_kernel
def _chosen(labels, table, sums_out):  # type: ignore[no-untyped-def]
    for r in range(labels.shape[0]):
        total = 0.0
        for i in range(labels.shape[1]):
            total += table[i, labels[r, i]]
        sums_out[r] = total


def _moments(data: Predictions, table: FloatArray) -> tuple[FloatArray, float]:
    """Return the expected score of every row, and the standard deviation of their sum."""
    probs, weights = data.probs, 1.0 if data.weights is None else data.weights[:, None]
    possible = np.where(probs > 0.0, table, 0.0)
    expected = (probs * possible).sum(axis=1)
    variance = (weights**2 * probs * (possible - expected[:, None]) ** 2).sum()
    return expected, float(np.sqrt(variance))


@dataclass(frozen=True, repr=False)
class _MeanScore(Statistic):
    """What the scores share: a mean over the rows of a table."""

    name: ClassVar[str]
    takes_weights: ClassVar[bool] = True

    def per_row(self, probs: Any, labels: Any = None) -> FloatArray:
        """Return the score of every row, shape (n,); arguments as in :meth:`Predictions.of`."""
        data = as_problem(Predictions.of(probs, labels))
        return NAMED[self.name](data.probs)[np.arange(data.n), data.labels]

    def given(self, data: Predictions) -> ScoredRows:
        """Fix the predictions: tabulate the scores once, and leave a function of the labels."""
        table = NAMED[self.name](data.probs)
        expected, deviation = _moments(data, table)
        mass = float(data.n if data.weights is None else data.weights.sum())
        promised = float(np.average(expected, weights=data.weights))
        return ScoredRows(data, table, mass, deviation / mass, null_mean=promised)


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
    >>> round(SphericalScore()([[3 / 7, 4 / 7]], [0]), 12)
    0.4
    """

    name: ClassVar[str] = "spherical"


@dataclass(frozen=True, eq=False)
class ScaledScore(Prepared):
    """1 − mean score / that of the best constant prediction, with the predictions fixed."""

    scored: ScoredRows = field(repr=False)
    shares: FloatArray = field(repr=False)

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n)."""
        classes = range(self.data.n_classes)
        squares = sum(((labels == k) * self.shares).sum(axis=1) ** 2 for k in classes)
        return 1.0 - self.scored.batch(labels) / _uncertainty(squares, self.shares, len(classes))


def _uncertainty(squares: Any, shares: FloatArray, k: int) -> FloatArray:
    """Return 1 − Σ_k ȳ_k², halved for two classes; at least that of one other, lightest row."""
    lightest = shares[shares > 0.0].min()
    least = 2.0 * lightest * (1.0 - lightest)
    return np.asarray((0.5 if k == 2 else 1.0) * np.maximum(1.0 - squares, least))


@dataclass(frozen=True, repr=False)
class ScaledBrierScore(Statistic):
    """Scaled Brier score, the share of the uncertainty that is explained (Brier skill score, IPA).

    1 − B / B(ȳ), B the :class:`BrierScore` and B(ȳ) that of always predicting the observed shares
    of the classes: 1 is perfect, 0 as good as knowing the shares only. Larger is better; as a test
    it is two-sided around what calibrated predictions promise, the ratio of the expected scores.
    Where all outcomes are equal, B(ȳ) is taken as if one were another. O(n K).

    Raises
    ------
    StatisticError
        For a single row.

    References
    ----------
    Kattan & Gerds (2018), "The index of prediction accuracy", Diagnostic and Prognostic Research 2.

    Examples
    --------
    >>> ScaledBrierScore()([0.75, 0.75, 0.25, 0.25], [1, 1, 0, 0])
    0.75
    """

    takes_weights: ClassVar[bool] = True

    def given(self, data: Predictions) -> ScaledScore:
        """Fix the predictions: tabulate the scores once, and leave a function of the labels."""
        if data.n == 1:
            raise StatisticError(f"{self!r} compares with the shares of the classes: give two rows")
        scored, p = BrierScore().given(data), data.probs
        w = np.ones(data.n) if data.weights is None else data.weights
        w = w / w.sum()
        # Σ_k E ȳ_k², whose variance is Σ_i w_i² p_ik (1 − p_ik).
        squares = ((w @ p) ** 2 + w**2 @ (p * (1.0 - p))).sum()
        centre = 1.0 - scored.null_mean / float(_uncertainty(squares, w, data.n_classes))
        return ScaledScore(data, scored, w, two_sided=True, centre=centre)


@dataclass(frozen=True, repr=False)
class ScoreGap(Statistic):
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
    takes_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("score", self.score, NAMED)

    def given(self, data: Predictions) -> ScoredRows:
        """Fix the predictions: tabulate the gaps once, and leave a function of the labels."""
        table = NAMED[self.score](data.probs)
        expected, deviation = _moments(data, table)
        if deviation <= NOTHING * np.sqrt(data.n):
            raise StatisticError(
                f"{self!r} is not defined: every prediction is 0, ½ or 1 (for more classes, "
                "uniform over those it allows), so no label that can occur changes the "
                f"{self.score} score. Use CalibrationInTheLarge() or an ECE"
            )
        gaps = table - expected[:, None]
        return ScoredRows(
            data, gaps, deviation, 1.0, two_sided=True, degree=1, null_mean=0.0, enough=4.0
        )
