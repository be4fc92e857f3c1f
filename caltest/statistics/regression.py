"""Classical tests of two classes: in the large, O:E, Hosmer–Lemeshow, Spiegelhalter's z."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from caltest._base.checks import one_of, whole
from caltest._base.compiled import kernel
from caltest.binning import Binning, QuantileBins, as_binning
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.statistics.cells import CellLaw, Cells
from caltest.statistics.prepared import Law, Prepared, Statistic, chi_squared, event, normal
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
class ScaledGaps(Prepared):
    """centre + Σ_g (O_g − E_g)^degree / scale_g over cells of two classes, predictions fixed.

    O_g counts the events in cell g and E_g is what was predicted; a cell of infinite scale adds
    nothing. ``against`` says what speaks against the limit law besides few surprises.
    """

    expected: FloatArray = field(repr=False)
    scale: FloatArray = field(repr=False)
    law: Law | None = field(repr=False)
    against: str | None = None
    cells: Cells = field(kw_only=True, repr=False)
    degree: int = field(kw_only=True)
    by_events: ClassVar[bool] = True
    enough: float = field(default=4.0, kw_only=True)

    def __call__(self, labels: IntArray) -> float:
        return float(self.of_events(self.cells.sum(labels == 0)))

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the values for label vectors of shape (B, n), by compiled counts."""
        observed = np.empty((len(labels), len(self.cells)))
        _events(labels, self.cells.order, self.cells.starts, observed)
        return self.of_events(observed)

    def of_events(self, events: Any) -> FloatArray:
        """Return the values for weights of the events in the cells, with the bits of their law."""
        return self._added(events - self.expected)

    def of_residuals(self, residuals: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the values for moved residuals, whose sums are the gaps."""
        return self._added(self.cells.sum(multipliers * residuals[:, 0], axis=1))

    def _added(self, gaps: FloatArray) -> FloatArray:
        return np.asarray(self.centre + (gaps**self.degree / self.scale).sum(axis=-1))

    def cell_law(self) -> CellLaw:
        """Return the law of the events in a cell, pushed through its term."""
        return CellLaw(self.cells, self._term)

    def _term(self, cell: int, count: IntArray) -> FloatArray:
        gap: FloatArray = count - self.expected[cell]
        return self.centre + gap**self.degree / self.scale[cell]

    def laws(self) -> Mapping[str, Law]:
        """Return the limit law, by name."""
        return {"asymptotic": self.law} if self.law else {}

    def doubt(self) -> str | None:
        """Return why the limit law is known to fail in data such as these, if it is."""
        return self.against or super().doubt()


@kernel
def _events(labels, order, starts, events_out):  # type: ignore[no-untyped-def]
    # How often label 0 occurs in every cell, O(n) per label vector.
    for r in range(labels.shape[0]):
        row = labels[r]
        for b in range(starts.size - 1):
            seen = 0
            for i in range(starts[b], starts[b + 1]):
                seen += row[order[i]] == 0
            events_out[r, b] = seen


@dataclass(frozen=True, repr=False)
class CalibrationInTheLarge(Statistic):
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

    takes_weights: ClassVar[bool] = True

    def given(self, data: Predictions) -> ScaledGaps:
        """Fix the predictions: all rows are one cell."""
        return _of_rows(self, data)


@dataclass(frozen=True, repr=False)
class OERatio(Statistic):
    """The O:E ratio: events observed over events expected, all in all.

    O / E = Σ_i y_i / Σ_i p_i, in [0, n / E]: 1.2 says that there were 20 % more events than
    predicted. Two-sided around 1, and the same test as :class:`CalibrationInTheLarge`: the default
    null of ``calibration_test`` is the Poisson-binomial law of O, ``null="asymptotic"`` is
    N(1, Σ p (1 − p) / E²). Blind to everything that leaves the total right.

    Raises
    ------
    StatisticError
        For more than two classes, or when every prediction is 0 or 1.

    Notes
    -----
    O(n).

    References
    ----------
    Riley, Debray, Collins et al. (2021), "Minimum sample size for external validation of a clinical
    prediction model with a binary outcome", Statistics in Medicine 40.

    Examples
    --------
    >>> OERatio()([0.2, 0.4, 0.6, 0.8], [0, 1, 1, 1])
    1.5
    """

    takes_weights: ClassVar[bool] = True

    def given(self, data: Predictions) -> ScaledGaps:
        """Fix the predictions: all rows are one cell."""
        return _of_rows(self, data)


def _of_rows(statistic: CalibrationInTheLarge | OERatio, data: Predictions) -> ScaledGaps:
    """Take all rows for one cell."""
    p = event(data, statistic)
    w = np.ones(p.size) if data.weights is None else data.weights
    cells = Cells(np.arange(p.size), np.array([0, p.size]), weights=data.weights)
    variance = float((w**2 * p) @ data.probs[:, 1])
    return all_in_all(statistic, data, cells, float(w @ p), variance)


def all_in_all(
    statistic: CalibrationInTheLarge | OERatio,
    data: Any,
    cells: Cells,
    expected: float,
    variance: float,
) -> ScaledGaps:
    """Return the gap of one cell of all rows: in standard deviations around 0, or in E around 1."""
    refuse_certain(statistic, variance > NO_VARIANCE * data.n)
    centre, deviation = float(isinstance(statistic, OERatio)), float(np.sqrt(variance))
    unit = expected if centre else deviation
    law = partial(normal, centre, deviation / unit)
    facts: Any = {"degree": 1, "two_sided": True, "centre": centre, "null_mean": centre}
    return ScaledGaps(data, np.array([expected]), np.array([unit]), law, cells=cells, **facts)


@dataclass(frozen=True, repr=False)
class HosmerLemeshow(Statistic):
    """The Hosmer–Lemeshow statistic, a sum of squared standardised gaps over bins.

    C = Σ_g (O_g − E_g)² / V_g with O_g events observed and E_g = Σ p_i predicted in bin g, and
    V_g = n_g p̄_g (1 − p̄_g) as published, or V_g = Σ p_i (1 − p_i) with ``variance="exact"``
    (Stallard 2009). Bins that can show one outcome only (V_g = 0) are left out.

    Parameters
    ----------
    bins : binning, default QuantileBins(10)
        The partition, by name; the default has groups of equal size with ties kept together.
    variance : {"binomial", "exact"}, default "binomial"
        The variance of a bin: that of equal predictions, which is too large, or the true one.
    df : int, optional
        Degrees of freedom of the χ² law under ``null="asymptotic"``; by default the number of
        bins g that are not left out. On data that did not fit the model, E_g are fixed numbers
        and the g standardised gaps are independent, so g is right; the textbook's g − 2 belongs to
        the data on which a logistic model was fitted. With ten bins, g − 2 rejects 11.5 % of
        calibrated models at 5 %.

    Raises
    ------
    StatisticError
        For more than two classes, a number for ``bins``, or when no bin can show more than one
        outcome.

    Notes
    -----
    O(n log n), then O(n) for each further set of labels. The χ² law is liberal where bins
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
    >>> HosmerLemeshow(QuantileBins(2))(probs, np.array([0, 0, 0, 1, 1, 1, 1, 1]))
    4.0625
    """

    bins: Binning = QuantileBins(10)
    _: KW_ONLY
    variance: Literal["binomial", "exact"] = "binomial"
    df: int | None = None
    takes_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", as_binning(self.bins, number=False))
        one_of("variance", self.variance, ("binomial", "exact"))
        if self.df is not None:
            whole("df", self.df)

    def given(self, data: Predictions) -> ScaledGaps:
        """Fix the predictions: partition them once."""
        p, rest = event(data, self), data.probs[:, 1]
        cells = Cells.of(self.bins, data.probs, data.weights)
        w = np.ones(p.size) if data.weights is None else data.weights
        sums = (cells.sum(w * p), cells.sum(w * rest), cells.sum(w**2 * p * rest))
        return self.of_sums(data, cells, *sums, cells.sum(w**2))

    def of_sums(
        self,
        data: Any,
        cells: Cells,
        expected: FloatArray,
        missed: FloatArray,
        true: FloatArray,
        squares: FloatArray,
    ) -> ScaledGaps:
        """Return the statistic of cells with the sums of w p, w (1 − p), w² p (1 − p) and w²."""
        equal = expected * missed * squares / cells.mass**2
        variance = true if self.variance == "exact" else equal
        varies = variance > NO_VARIANCE * cells.counts
        refuse_certain(self, bool(varies.any()))
        scale = np.where(varies, variance, np.inf)
        law = partial(chi_squared, self.df or int(varies.sum()))
        mean, least, against = float((true / scale).sum()), float(true[varies].min()), None
        if self.df is not None and self.df < varies.sum():
            against = f"df={self.df} is for the rows of the fit, others have {varies.sum()}"
        elif least < LEAST_VARIANCE:
            against = (
                f"the number of events in a group has a variance of only {least:.2g}, it takes "
                f"{LEAST_VARIANCE:g}"
            )
        return ScaledGaps(
            data, expected, scale, law, against, cells=cells, degree=2, null_mean=mean
        )


def Spiegelhalter() -> ScoreGap:  # noqa: N802
    """Spiegelhalter's z: is the Brier score what the predictions say it should be?

    z = Σ_i (y_i − p_i)(1 − 2 p_i) / √Σ_i (1 − 2 p_i)² p_i (1 − p_i), positive when the score is
    worse than promised: overconfidence. This is ``ScoreGap("brier")`` under the name by which it is
    known; for K classes it is the same standardised Brier score.

    Returns
    -------
    ScoreGap
        Of the Brier score. Two-sided; ``null="asymptotic"`` is N(0, 1).

    Notes
    -----
    Sharp against over- and underconfidence, blind to shifts that cancel around ½. Size of the
    normal law at 5 %: 0.034 to 0.055 (n = 50, 200, 1000; uniform to very confident predictions).

    References
    ----------
    Spiegelhalter (1986), "Probabilistic prediction in patient management and clinical trials",
    Statistics in Medicine 5, 421–433.

    Examples
    --------
    >>> round(Spiegelhalter()(np.array([0.9, 0.9, 0.2]), np.array([0, 1, 0])), 6)
    1.250926
    """
    return ScoreGap("brier")
