"""The unnormalised calibration mean embedding: kernel residuals at a few locations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from caltest._base.checks import MOST_BINS, is_whole, one_of, whole
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.statistics.kernel.kernels import Kernel, LaplaceKernel, fitted
from caltest.statistics.prepared import Law, Prepared, Statistic, chi_squared

#: Variance of each component that the χ² law takes.
LEAST_VARIANCE = 0.008


@dataclass(frozen=True, repr=False)
class UCME(Statistic):
    """Unnormalised calibration mean embedding: kernel residuals at a few test locations.

    With locations (q_l, z_l), a row of probabilities and a class, and
    m_l = (1/n) Σ_i k(p_i, q_l) (1{y_i = z_l} − p_i[z_l]), the value is

    - ``estimator="mean"``: (1/J) Σ_l m_l² (Widmann et al. 2021, §5);
    - ``estimator="score"``: n² mᵀ V⁻¹ m, where V = Σ_i Cov(k(p_i, q_l) 1{Y_i = z_l}) is the
      covariance of n m for a calibrated model with these predictions. The mean is then the rank of
      V, J at most.

    With weights m_l is (1/Σ w) Σ_i w_i k(p_i, q_l) (…), and the terms of V count w_i². Locations
    and bandwidths do not look at weights.

    Parameters
    ----------
    locations : int or (rows, classes), default 10
        The J locations; rows of shape (J, K) and classes (J,). A number J means: of the rows of
        predictions in lexicographic order those at ranks ⌊(l + ½) n / J⌋, with classes l mod K.
    kernel : kernel, default LaplaceKernel()
        As for :class:`SKCE`.
    estimator : {"mean", "score"}, default "mean"
        See above.

    Raises
    ------
    StatisticError
        For locations that do not fit the predictions, and for ``"score"`` when predictions leave
        nothing to chance at any location.

    Notes
    -----
    O(n J K) once, O(n J) for further labels. ``"score"`` has ``null="asymptotic"``, χ² with as many
    degrees of freedom as V has rank; with weights there is none, and labels are redrawn.
    CalibrationTests.jl uses the covariance of the observed terms instead of V; that of the
    predictions is the same in the limit, and cannot become singular by chance.

    References
    ----------
    Widmann, Lindsten & Zachariah, "Calibration tests beyond classification", ICLR 2021.

    Examples
    --------
    >>> from caltest import GaussianKernel
    >>> at = ([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], [0, 0, 1])
    >>> round(UCME(at, GaussianKernel(1.0))(np.eye(2), np.array([1, 0])), 6)
    0.066596
    """

    locations: int | tuple[Any, Any] = 10
    kernel: Kernel = LaplaceKernel()
    _: KW_ONLY
    estimator: Literal["mean", "score"] = "mean"
    takes_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("estimator", self.estimator, ("mean", "score"))
        if is_whole(self.locations):
            whole("locations", self.locations, most=MOST_BINS)
            return
        try:
            rows, classes = self.locations  # type: ignore[misc]
            rows, classes = np.asarray(rows, dtype=float), np.asarray(classes, dtype=int)
            fits = rows.ndim == 2 and classes.shape == (len(rows),) and len(rows) > 0
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise StatisticError(
                "locations must be a number, or rows of probabilities (J, K) and classes (J,), not "
                f"{self.locations!r}"
            )
        plain = (tuple(map(tuple, rows.tolist())), tuple(classes.tolist()))
        object.__setattr__(self, "locations", plain)

    def given(self, data: Predictions) -> FixedUCME:
        """Fix the predictions: locations, kernel values and covariance."""
        probs = data.probs
        rows, classes = self._chosen(probs)
        values = fitted(self.kernel, probs)(probs, rows)
        w = np.ones(data.n) if data.weights is None else data.weights
        if self.estimator == "score":  # which sees labels themselves, not weighted residuals
            values = values * (w / w.mean())[:, None]
        expected = values * probs[:, classes]
        if self.estimator == "mean":
            weights = np.eye(len(rows)) / (w.sum() * len(rows) ** 0.5)
        else:
            same = classes[:, None] == classes
            covariance = (values.T @ expected) * same - expected.T @ expected
            scale, axes = np.linalg.eigh(covariance)
            kept = scale > 1e-10 * max(1.0, scale[-1])
            if not kept.any():
                raise StatisticError(
                    "the predictions leave nothing to chance at the locations of UCME: every "
                    "probability of their classes is 0 or 1, or every row is far away. Choose "
                    "other locations or a larger bandwidth"
                )
            weights = axes[:, kept] / np.sqrt(scale[kept])
        degree, mean = (2, None) if self.estimator == "mean" else (None, float(weights.shape[1]))
        return FixedUCME(
            data, values, classes, expected.sum(axis=0), weights, degree=degree, null_mean=mean
        )

    def _chosen(self, probs: FloatArray) -> tuple[FloatArray, IntArray]:
        n, n_classes = probs.shape
        if isinstance(self.locations, tuple):
            rows, classes = np.array(self.locations[0]), np.array(self.locations[1])
            if rows.shape[1] != n_classes or classes.min() < 0 or classes.max() >= n_classes:
                raise StatisticError(
                    f"locations with {rows.shape[1]} probabilities and classes up to "
                    f"{classes.max()} do not fit predictions of {n_classes} classes"
                )
            return rows, classes
        every = np.arange(self.locations)
        ordered = np.lexsort(probs.T[::-1])
        return probs[ordered[(2 * every + 1) * n // (2 * self.locations)]], every % n_classes


@dataclass(frozen=True, eq=False)
class FixedUCME(Prepared):
    """The UCME of fixed predictions: |Wᵀ n m|² as a function of the labels."""

    values: FloatArray
    classes: IntArray
    expected: FloatArray
    weights: FloatArray
    enough: float = field(default=4.0, kw_only=True)

    def __call__(self, labels: IntArray) -> float:
        met = np.empty(self.classes.size)
        for k in np.unique(self.classes):
            here = self.classes == k
            met[here] = (labels == k).astype(np.float64) @ self.values[:, here]
        return self._norm(met - self.expected)

    def of_residuals(self, residuals: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the values for moved residuals."""
        if self.degree is None:
            return super().of_residuals(residuals, multipliers)
        moved = self.values * residuals[:, self.classes]
        return np.array([self._norm(row @ moved) for row in multipliers])

    def _norm(self, embedded: FloatArray) -> float:
        return float(np.square(embedded @ self.weights).sum())

    def laws(self) -> Mapping[str, Law]:
        """Return the χ² law of the score."""
        if self.degree is not None or self.data.weights is not None:
            return {}
        return {"asymptotic": partial(chi_squared, self.weights.shape[1])}

    def doubt(self) -> str | None:
        """Return why the limit law is known to fail in data such as these, if it is."""
        least = 1.0 / float(np.square(self.weights).sum(axis=0).max())
        if least < LEAST_VARIANCE:
            return f"a component has a variance of only {least:.2g}, it takes {LEAST_VARIANCE:g}"
        return super().doubt()
