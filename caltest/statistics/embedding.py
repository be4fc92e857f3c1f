"""Errors of mean embeddings: UCME at a few locations, and MMCE of confidences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from caltest.errors import StatisticError
from caltest.nulls import AsymptoticNull
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.kernels import Kernel, LaplaceKernel, fitted
from caltest.statistics.pairs import Line
from caltest.statistics.problem import OfLabels, event


@dataclass(frozen=True)
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
    >>> from caltest.statistics.kernels import GaussianKernel
    >>> at = ([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], [0, 0, 1])
    >>> round(UCME(at, GaussianKernel(1.0))(np.eye(2), np.array([1, 0])), 6)
    0.066596
    """

    locations: int | tuple[Any, Any] = 10
    kernel: Kernel = LaplaceKernel()
    form: Literal["mean", "score"] = "mean"

    def __post_init__(self) -> None:
        if self.form not in ("mean", "score"):
            raise StatisticError(f"form must be 'mean' or 'score', not {self.form!r}")
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
    def laws(self) -> Mapping[str, Callable[[IntArray], AsymptoticNull]]:
        """The χ² law of the score form."""
        return {"asymptotic": self._chi2} if self.form == "score" else {}

    def _chi2(self, labels: IntArray) -> AsymptoticNull:
        from scipy.stats import chi2

        return AsymptoticNull(chi2(self.weights.shape[1]))


@dataclass(frozen=True)
class MMCE(OfLabels):
    """Maximum mean calibration error of a two-class problem (Kumar et al. 2018).

    MMCE² = Σ_{i,j} w_i w_j (c_i − p_i) (c_j − p_j) exp(−|p_i − p_j| / ν), where c_i says whether
    class 0 occurred (after ``TopK(1)``: the top class was right) and p_i is its probability. The
    value is the root.

    Parameters
    ----------
    bandwidth : float, default 0.4
        The ν of the paper.
    weights : {"equal", "balanced"}, default "equal"
        ``"equal"``: w_i = 1/n. ``"balanced"``: the weighted version of the paper, w_i = 1/m for the
        m rows with c_i = 1 and 1/(n − m) for the others.

    Raises
    ------
    StatisticError
        When there are more than two classes.

    Notes
    -----
    In [0, 1]. O(n log n) once, O(n) for further labels. MMCE² with equal weights is half of
    ``SKCE(TVKernel(0.4), estimator="biased")``. The value is biased upward, as an ECE is, and the
    null of the test accounts for it. The balanced value of a calibrated
    model tends to 0 only if both outcomes are equally frequent, and tests with it are weak.

    References
    ----------
    Kumar, Sarawagi & Jain, "Trainable calibration measures for neural networks from kernel mean
    embeddings", ICML 2018.

    Examples
    --------
    >>> round(MMCE()(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1])), 6)
    0.236227
    """

    bandwidth: float = 0.4
    weights: Literal["equal", "balanced"] = "equal"

    def __post_init__(self) -> None:
        if not (isinstance(self.bandwidth, (int, float)) and 0.0 < self.bandwidth < np.inf):
            raise StatisticError(f"bandwidth must be a number > 0, not {self.bandwidth!r}")
        if self.weights not in ("equal", "balanced"):
            raise StatisticError(f"weights must be 'equal' or 'balanced', not {self.weights!r}")

    def given(self, probs: FloatArray) -> FixedMMCE:
        """Fix the predictions: sort them once."""
        n = event(probs, "MMCE").size
        return FixedMMCE(Line.of(probs, 1.0 / self.bandwidth, n), self.weights == "balanced")


@dataclass(frozen=True, eq=False)
class FixedMMCE:
    """The MMCE of fixed predictions: a function of the labels."""

    line: Line
    balanced: bool

    def __call__(self, labels: IntArray) -> float:
        weights = np.full(labels.size, 1.0 / labels.size)
        if self.balanced:
            hits = np.count_nonzero(labels == 0)
            weights = 1.0 / np.where(labels == 0, hits, labels.size - hits)
        totals = self.line.weighted(labels, weights[:, None])
        squares = np.square(weights) @ self.line.rows(labels)[1]
        return float(_root(totals + squares)[0])

    def redraws(self, probs: FloatArray) -> MMCERedraws | None:
        """Return the null under redrawn labels, for equal weights."""
        return None if self.balanced else MMCERedraws(self.line)


@dataclass(frozen=True, eq=False)
class MMCERedraws:
    """The MMCE with labels redrawn, replicate by replicate."""

    line: Line

    def replicates(self, seed: tuple[int, int], first: int, count: int) -> FloatArray:
        """Return replicates ``first``, …; each depends on the seed and its own number only."""
        totals, squares = self.line.redrawn(seed, first, count)
        return _root(totals + squares) / self.line.p.size


def _root(doubled: FloatArray) -> FloatArray:
    # The two classes of a row have opposite residuals, so sums over both are twice those of one.
    return np.sqrt(np.maximum(0.5 * doubled, 0.0))
