"""Classical tests for two classes: Spiegelhalter's z, calibration-in-the-large, Hosmer–Lemeshow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from caltest.binning import Binning, QuantileBins
from caltest.checks import one_of, whole
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.binned import as_binning, grouped
from caltest.statistics.laws import Law, chi_squared, normal
from caltest.statistics.problem import OfLabels, event
from caltest.statistics.scores import ScoredRows, ScoreGap

#: Variance per row below which a statistic cannot vary: only rounding is left of it.
NO_VARIANCE = 1e-24


def refuse_certain(statistic: Any, varies: bool) -> None:
    """Refuse predictions under which a calibrated model has one outcome only."""
    if not varies:
        raise StatisticError(
            f"{statistic!r} is undefined: every prediction is 0 or 1, so a calibrated model has "
            "one outcome only"
        )


@dataclass(frozen=True, eq=False)
class CellSum:
    """Σ_g (O_g − E_g)^power / scale_g over cells of a two-class problem, predictions fixed.

    O_g counts the events in cell g and E_g is what was predicted; a cell of infinite scale adds
    nothing. The law under redrawn labels can be computed (see :mod:`caltest.exact`).
    """

    order: IntArray = field(repr=False)
    starts: IntArray = field(repr=False)
    expected: FloatArray = field(repr=False)
    scale: FloatArray = field(repr=False)
    power: int
    laws: Mapping[str, Law] = field(repr=False)
    combine: ClassVar[str] = "sum"
    unit: ClassVar[None] = None

    @property
    def counts(self) -> IntArray:
        """Number of rows in each cell."""
        return np.diff(self.starts)

    def __call__(self, labels: IntArray) -> float:
        observed = np.add.reduceat(labels[self.order] == 0, self.starts[:-1], dtype=np.int64)
        return float(((observed - self.expected) ** self.power / self.scale).sum())

    def term(self, cell: int, count: IntArray) -> FloatArray:
        """Return what a cell adds when ``count`` of its rows have label 0."""
        gap: FloatArray = count - self.expected[cell]
        return gap**self.power / self.scale[cell]


@dataclass(frozen=True, repr=False)
class CalibrationInTheLarge(OfLabels):
    """Calibration-in-the-large: are there as many events as predicted, all in all?

    z = Σ_i (y_i − p_i) / √Σ_i p_i (1 − p_i), signed: positive when events were under-predicted.
    Two-sided; ``null="asymptotic"`` is N(0, 1), the default null of ``calibration_test`` computes
    the exact law. Blind to everything that leaves the total right.

    Raises
    ------
    StatisticError
        For more than two classes, or when every prediction is 0 or 1.

    Notes
    -----
    O(n). Size of the normal law at 5 %: 0.035 to 0.056 (n = 50, 200, 1000; uniform, confident, very
    confident and rare-event predictions).

    References
    ----------
    Cox (1958), "Two further applications of a model for binary regression", Biometrika 45.

    Examples
    --------
    >>> CalibrationInTheLarge()(np.array([0.5, 0.5, 0.5, 0.5]), np.array([1, 1, 1, 1]))
    2.0
    """

    two_sided: ClassVar[bool] = True

    def given(self, probs: FloatArray) -> CellSum:
        """Fix the predictions: all rows are one cell."""
        p = event(probs, repr(self))
        variance = float(p @ probs[:, 1])
        refuse_certain(self, variance > NO_VARIANCE * p.size)
        scale, total = np.array([np.sqrt(variance)]), np.array([p.sum()])
        starts, law = np.array([0, p.size]), partial(normal, 0.0, 1.0)
        return CellSum(np.arange(p.size), starts, total, scale, 1, {"asymptotic": law})


@dataclass(frozen=True, repr=False)
class HosmerLemeshow(OfLabels):
    """The Hosmer–Lemeshow statistic, a sum of squared standardised gaps over groups.

    C = Σ_g (O_g − E_g)² / V_g with O_g events observed and E_g = Σ p_i predicted in group g, and
    V_g = n_g p̄_g (1 − p̄_g) as published, or V_g = Σ p_i (1 − p_i) with ``variance="exact"``
    (Stallard 2009). Groups that can show one outcome only (V_g = 0) are left out.

    Parameters
    ----------
    groups : int or binning, default 10
        A number m means ``QuantileBins(m)``, groups of equal size with ties kept together.
    variance : {"binomial", "exact"}, default "binomial"
        The variance of a group: that of equal predictions, which is too large, or the true one.
    df : int, optional
        Degrees of freedom of the χ² law under ``null="asymptotic"``; by default the number of
        groups g that are not left out. On data that did not fit the model, E_g are fixed numbers
        and the g standardised gaps are independent, so g is right; the textbook's g − 2 belongs to
        the data on which a logistic model was fitted. With ten groups, g − 2 rejects 11.5 % of
        calibrated models at 5 %.

    Raises
    ------
    StatisticError
        For more than two classes, or when no group can show more than one outcome.

    Notes
    -----
    O(n log n), then O(n) for each further set of labels. The χ² law is liberal where groups
    expect few events: at 5 % it rejects 8 to 13 % of calibrated models that are very confident or
    forecast rare events (n = 50, 200, 1000), also with the exact variance. The exact null, the
    default of ``calibration_test``, has no such trouble and does not use ``df``.

    References
    ----------
    Hosmer & Lemeshow (1980), "Goodness of fit tests for the multiple logistic regression model",
    Communications in Statistics A 9. Stallard (2009), "Simple tests for the external validation of
    mortality prediction scores", Statistics in Medicine 28.

    Examples
    --------
    >>> probs = np.array([0.2, 0.2, 0.2, 0.2, 0.5, 0.5, 0.5, 0.5])
    >>> HosmerLemeshow(2)(probs, np.array([0, 0, 0, 1, 1, 1, 1, 1]))
    4.0625
    """

    groups: Binning | int = 10
    variance: Literal["binomial", "exact"] = "binomial"
    df: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", as_binning(self.groups, QuantileBins))
        one_of("variance", self.variance, ("binomial", "exact"))
        if self.df is not None:
            whole("df", self.df)

    def given(self, probs: FloatArray) -> CellSum:
        """Fix the predictions: group them once."""
        p = event(probs, repr(self))
        order, starts = grouped(self.groups, probs)
        expected = np.add.reduceat(p[order], starts[:-1])
        if self.variance == "exact":
            variance = np.add.reduceat((p * probs[:, 1])[order], starts[:-1])
        else:
            rest = np.add.reduceat(probs[order, 1], starts[:-1])
            variance = expected * rest / np.diff(starts)
        varies = variance > NO_VARIANCE * np.diff(starts)
        refuse_certain(self, bool(varies.any()))
        law = partial(chi_squared, self.df or int(varies.sum()))
        scale = np.where(varies, variance, np.inf)
        return CellSum(order, starts, expected, scale, 2, {"asymptotic": law})


@dataclass(frozen=True, repr=False)
class Spiegelhalter(OfLabels):
    """Spiegelhalter's z: is the Brier score what the predictions say it should be?

    z = Σ_i (y_i − p_i)(1 − 2 p_i) / √Σ_i (1 − 2 p_i)² p_i (1 − p_i), positive when the score is
    worse than promised: overconfidence. For K classes it is the same standardised Brier score,

    z = Σ_i (Σ_k p_ik² − p_{i,y_i}) / √Σ_i Var(p_{i,Y}), Y drawn from p_i.

    Two-sided; ``null="asymptotic"`` is N(0, 1). Sharp against over- and underconfidence, blind to
    shifts that cancel around ½. This is :class:`~caltest.statistics.scores.ScoreGap` of the Brier
    score under the name by which it is known.

    Raises
    ------
    StatisticError
        When no label can change the score: every prediction of two classes is 0, ½ or 1.

    Notes
    -----
    O(n K), then O(n) for each further set of labels. Size of the normal law at 5 %:
    0.034 to 0.055 (n = 50, 200, 1000; uniform to very confident predictions).

    References
    ----------
    Spiegelhalter (1986), "Probabilistic prediction in patient management and clinical trials",
    Statistics in Medicine 5, 421–433.

    Examples
    --------
    >>> round(Spiegelhalter()(np.array([0.9, 0.9, 0.2]), np.array([0, 1, 0])), 6)
    1.250926
    """

    two_sided: ClassVar[bool] = True

    def given(self, probs: FloatArray) -> ScoredRows:
        """Fix the predictions: standardise the Brier score once."""
        try:
            return ScoreGap("brier").given(probs)
        except StatisticError:
            raise StatisticError(
                f"{self!r} is undefined: every prediction is 0, ½ or 1 (for more classes, uniform "
                "over those it allows), so no label changes the Brier score. Use "
                "CalibrationInTheLarge() or an ECE"
            ) from None
