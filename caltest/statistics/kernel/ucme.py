"""The unnormalised calibration mean embedding: kernel residuals at a few locations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from caltest.checks import one_of
from caltest.errors import StatisticError
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.kernel.kernels import Kernel, LaplaceKernel, fitted
from caltest.statistics.laws import Law, chi_squared
from caltest.statistics.problem import OfLabels


@dataclass(frozen=True, repr=False)
class UCME(OfLabels):
    """Unnormalised calibration mean embedding: kernel residuals at a few test locations.

    With locations (q_l, z_l), a row of probabilities and a class, and
    m_l = (1/n) Σ_i k(p_i, q_l) (1{y_i = z_l} − p_i[z_l]), the value is

    - ``form="mean"``: (1/J) Σ_l m_l² (Widmann et al. 2021, §5);
    - ``form="score"``: n² mᵀ V⁻¹ m, where V = Σ_i Cov(k(p_i, q_l) 1{Y_i = z_l}) is the covariance
      of n m for a calibrated model with these predictions; J on average for such a model.

    Parameters
    ----------
    locations : int or (rows, classes), default 10
        The J locations; rows of shape (J, K) and classes (J,). A number J means: of the rows of
        predictions in lexicographic order those at ranks ⌊(l + ½) n / J⌋, with classes l mod K.
    kernel : kernel, default LaplaceKernel()
        As for :class:`SKCE`.
    form : {"mean", "score"}, default "mean"
        See above.

    Raises
    ------
    StatisticError
        For locations that do not fit the predictions, and for ``"score"`` when predictions leave
        nothing to chance at any location.

    Notes
    -----
    O(n J K) once, O(n J) for further labels. ``"score"`` has ``null="asymptotic"``, χ² with as many
    degrees of freedom as V has rank. CalibrationTests.jl uses the covariance of the observed
    terms instead of V; that of the predictions is the same in the limit, and cannot become singular
    by chance.

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
    form: Literal["mean", "score"] = "mean"

    def __post_init__(self) -> None:
        one_of("form", self.form, ("mean", "score"))
        if isinstance(self.locations, (int, np.integer)):
            if self.locations < 1:
                raise StatisticError(f"locations must be ≥ 1, not {self.locations}")
            return
        try:
            rows, classes = self.locations
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

    def given(self, probs: FloatArray) -> FixedUCME:
        """Fix the predictions: locations, kernel values and covariance."""
        rows, classes = self._chosen(probs)
        values = fitted(self.kernel, probs)(probs, rows)
        expected = values * probs[:, classes]
        if self.form == "mean":
            weights = np.eye(len(rows)) / (len(probs) * len(rows) ** 0.5)
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
        return FixedUCME(values, classes, expected.sum(axis=0), weights, self.form)

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
class FixedUCME:
    """The UCME of fixed predictions: |Wᵀ n m|² as a function of the labels."""

    values: FloatArray
    classes: IntArray
    expected: FloatArray
    weights: FloatArray
    form: str

    def __call__(self, labels: IntArray) -> float:
        met = np.einsum("nj,nj->j", self.values, labels[:, None] == self.classes)
        scores = (met - self.expected) @ self.weights
        return float(scores @ scores)

    @property
    def laws(self) -> Mapping[str, Law]:
        """The χ² law of the score form."""
        law = partial(chi_squared, self.weights.shape[1])
        return {"asymptotic": law} if self.form == "score" else {}
