"""Classical tests of two classes: in the large, O:E, Hosmer–Lemeshow, Spiegelhalter's z."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from caltest._base.checks import one_of, whole
from caltest.binning import Binning, QuantileBins, as_binning
from caltest.errors import StatisticError
from caltest.predictions import FloatArray
from caltest.problem import Cells, Problem
from caltest.statistics.base import Statistic
from caltest.statistics.laws import chi_squared, normal
from caltest.statistics.prepared import CellStatistic
from caltest.statistics.scores import ScoreGap

#: Variance per row below which a statistic cannot vary: only rounding is left of it.
NO_VARIANCE = 1e-24
#: Variance of the number of events in a group that the χ² law of Hosmer and Lemeshow takes.
LEAST_VARIANCE = 0.15


def refuse_certain(statistic: Any, varies: bool) -> None:
    """Refuse predictions under which a calibrated model has one outcome only."""
    if not varies:
        raise StatisticError(
            f"{statistic!r} is undefined: every prediction is 0 or 1, so a calibrated model has "
            "one outcome only"
        )


@dataclass(frozen=True, eq=False)
class ScaledGaps(CellStatistic):
    """centre + Σ_g (O_g − E_g)^power / scale_g over cells of two classes, predictions fixed.

    O_g counts the events in cell g and E_g is what was predicted; a cell of infinite scale adds
    nothing.
    """

    scale: FloatArray = field(repr=False)
    power: int

    def terms(self, sums: FloatArray, at: slice = slice(None)) -> FloatArray:
        """Return what each cell adds, with its share of the centre."""
        return self.centre / len(self.cells) + sums[:, :, 0] ** self.power / self.scale[at]


@dataclass(frozen=True, repr=False)
class CalibrationInTheLarge(Statistic):
    """Calibration-in-the-large: are there as many events as predicted, all in all?

    z = Σ_i (y_i − p_i) / √Σ_i p_i (1 − p_i), signed: positive when events were under-predicted.
    Two-sided; ``null="asymptotic"`` is N(0, 1), the default null of ``calibration_test`` computes
    the exact law. Blind to everything that leaves the total right (Cox, Biometrika 45, 1958). For
    two classes, and predictions of which some are neither 0 nor 1; StatisticError else. O(n).

    Examples
    --------
    >>> CalibrationInTheLarge()(np.array([0.5, 0.5, 0.5, 0.5]), np.array([1, 1, 1, 1]))
    2.0
    """

    def prepare(self, problem: Problem) -> ScaledGaps:
        return _all_in_all(self, problem, 0.0)


@dataclass(frozen=True, repr=False)
class OERatio(Statistic):
    """The O:E ratio: events observed over events expected, all in all.

    O / E = Σ_i y_i / Σ_i p_i, in [0, n / E]: 1.2 says that there were 20 % more events than
    predicted (Riley et al., Statistics in Medicine 40, 2021). Two-sided around 1, and the same test
    as :class:`CalibrationInTheLarge`, for the same data: the default null of ``calibration_test``
    is the Poisson-binomial law of O, ``null="asymptotic"`` is N(1, Σ p (1 − p) / E²). O(n).

    Examples
    --------
    >>> OERatio()([0.2, 0.4, 0.6, 0.8], [0, 1, 1, 1])
    1.5
    """

    def prepare(self, problem: Problem) -> ScaledGaps:
        return _all_in_all(self, problem, 1.0)


def _all_in_all(statistic: Statistic, problem: Problem, centre: float) -> ScaledGaps:
    """Return the gap of all rows, in standard deviations or in expected events."""
    problem.event(statistic)
    cells = Cells.whole(problem)
    variance = float(problem.variance_of(cells)[0])
    refuse_certain(statistic, variance > NO_VARIANCE * problem.n)
    deviation = float(np.sqrt(variance))
    unit = float(cells.expected[0, 0]) if centre else deviation
    return ScaledGaps(
        problem, np.array([unit]), 1,
        cells=cells, two_sided=True, centre=centre, null_mean=centre, min_surprises=4.0,
        laws={"asymptotic": partial(normal, centre, deviation / unit)},
    )  # fmt: skip


@dataclass(frozen=True, repr=False)
class HosmerLemeshow(Statistic):
    """The Hosmer–Lemeshow statistic, a sum of squared standardised gaps over bins.

    C = Σ_g (O_g − E_g)² / V_g with O_g events observed and E_g = Σ p_i predicted in bin g, and
    V_g = n_g p̄_g (1 − p̄_g) as published (Communications in Statistics A 9, 1980), or
    V_g = Σ p_i (1 − p_i) with ``variance="exact"`` (Stallard, Statistics in Medicine 28, 2009).
    Bins that can show one outcome only (V_g = 0) are left out.

    Parameters
    ----------
    bins : binning, default QuantileBins(10)
        The partition, by name; the default has groups of equal size with ties kept together.
    variance : {"binomial", "exact"}, default "binomial"
        The variance of a bin: that of equal predictions, which is too large, or the true one.
    df : int, optional
        Degrees of freedom of the χ² law under ``null="asymptotic"``; by default the number of
        bins g that are not left out, which is right for data that did not fit the model. The
        textbook's g − 2 belongs to the data on which a logistic model was fitted.

    Raises
    ------
    StatisticError
        For more than two classes, a number for ``bins``, or when no bin can show more than one
        outcome.

    Notes
    -----
    O(n log n), then O(n) for each further set of labels. The χ² law is liberal where bins expect
    few events; the exact null, the default of ``calibration_test``, does not use ``df``.

    Examples
    --------
    >>> probs = np.array([0.2, 0.2, 0.2, 0.2, 0.5, 0.5, 0.5, 0.5])
    >>> HosmerLemeshow(QuantileBins(2))(probs, np.array([0, 0, 0, 1, 1, 1, 1, 1]))
    4.0625
    """

    bins: Binning = QuantileBins(10)
    _: KW_ONLY
    variance: Literal["binomial", "exact"] = "binomial"
    df: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins, number=False))
        one_of("variance", self.variance, ("binomial", "exact"))
        if self.df is not None:
            whole("df", self.df)

    def prepare(self, problem: Problem) -> ScaledGaps:
        problem.event(self)
        cells = Cells.of(self.bins, problem)
        true = problem.variance_of(cells)
        variance = problem.variance_of(cells, equal=self.variance == "binomial")
        varies = variance > NO_VARIANCE * cells.counts
        refuse_certain(self, bool(varies.any()))
        scale = np.where(varies, variance, np.inf)
        least, caveat = float(true[varies].min()), None
        if self.df is not None and self.df < varies.sum():
            caveat = f"df={self.df} is for the rows of the fit, others have {varies.sum()}"
        elif least < LEAST_VARIANCE:
            caveat = (
                f"the number of events in a group has a variance of only {least:.2g}, it takes "
                f"{LEAST_VARIANCE:g}"
            )
        return ScaledGaps(
            problem, scale, 2,
            cells=cells, null_mean=float((true / scale).sum()), min_surprises=4.0,
            laws={"asymptotic": partial(chi_squared, self.df or int(varies.sum()))},
            law_caveat=caveat,
        )  # fmt: skip


def Spiegelhalter() -> ScoreGap:  # noqa: N802
    """Spiegelhalter's z: is the Brier score what the predictions say it should be?

    z = Σ_i (y_i − p_i)(1 − 2 p_i) / √Σ_i (1 − 2 p_i)² p_i (1 − p_i), positive when the score is
    worse than promised: overconfidence. Another name of ``ScoreGap("brier")``.

    Examples
    --------
    >>> round(Spiegelhalter()(np.array([0.9, 0.9, 0.2]), np.array([0, 1, 0])), 6)
    1.250926
    """
    return ScoreGap("brier")
