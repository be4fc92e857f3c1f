"""The squared kernel calibration error, and its nulls."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from caltest._base.checks import one_of, whole
from caltest.errors import StatisticError
from caltest.nulls import AsymptoticNull, SimulatedNull
from caltest.predictions import FloatArray, IntArray
from caltest.problem import Flips, Problem
from caltest.simulate import CHUNK, Batches, LabelScheme, Scheme, Shortcut, WildSigns
from caltest.statistics.base import Law, Prepared, Statistic, normal, rows_of
from caltest.statistics.kernel.features import Features
from caltest.statistics.kernel.kernels import (
    DistanceKernel,
    Kernel,
    LaplaceKernel,
    TVKernel,
    fitted,
)
from caltest.statistics.kernel.line import Line
from caltest.statistics.kernel.pairs import Pairs, residuals_of
from caltest.statistics.kernel.tiles import Tiles

#: Multinomial draws of the asymptotic null of the unbiased estimator, from a stream of their own.
DRAWS = 999


@dataclass(frozen=True, repr=False)
class SKCE(Statistic):
    """Squared kernel calibration error, of any number of classes at once.

    With residuals r_i = onehot(y_i) − p_i and h_ij = k(p_i, p_j) r_i·r_j, the matrix-valued kernel
    being k times the identity (Widmann et al., NeurIPS 2019, arXiv:1910.11385, Table 1):

    - ``"unbiased"``: 2 / (n (n − 1)) Σ_{i<j} h_ij, signed, 0 on average for a calibrated model;
    - ``"biased"``: n⁻² Σ_{i,j} h_ij ≥ 0;
    - ``"block"``: the mean over ⌊n/m⌋ blocks of m consecutive rows of the unbiased estimate in the
      block; rows of an incomplete last block are left out;
    - ``"linear"``: the same with m = 2.

    With weights these are means of h_ij with weights w_i w_j over the same pairs: ``"unbiased"`` is
    Σ_{i≠j} w_i w_j h_ij / ((Σ w)² − Σ w²), ``"biased"`` Σ_{i,j} w_i w_j h_ij / (Σ w)². Bandwidths
    and blocks do not look at weights.

    Parameters
    ----------
    kernel : kernel, default LaplaceKernel()
        :class:`LaplaceKernel`, :class:`GaussianKernel`, :class:`TVKernel`, or a function of rows
        (a, K) and (b, K) that returns the (a, b) values of a symmetric, positive definite kernel.
    estimator : {"unbiased", "biased", "block", "linear"}, default "unbiased"
        See above. Blocks depend on the order of the rows, and their tests are weak; use them when
        n is too large for all pairs.
    block_size : int, optional
        The m of ``"block"``, at least 2; by default ⌊√n⌋.
    features : int, optional
        Replace the kernel by that of an even number of random features whose mean it is
        (Rahimi & Recht 2007; frequencies from a fixed stream). This is another kernel, as good for
        a test as the first: with labels redrawn the test is valid as it is. For large n.

    Raises
    ------
    StatisticError
        For options that do not fit each other, and for fewer rows than the estimator needs: 2
        for ``"unbiased"`` and ``"linear"``, m for ``"block"``.

    Notes
    -----
    The value is for whole rows: of two classes r_i·r_j is 2 (y_i − p_i)(y_j − p_j), so that it is
    twice that of tools that work with one probability and leave out the factor. It is that of
    CalibrationErrors.jl and pycalibration.

    *Nulls.* Redrawn labels (the default) are valid at every n. ``null="asymptotic"``, for
    "unbiased": the bootstrap of Arcones & Giné (1992) for a degenerate U-statistic, in the form of
    CalibrationTests.jl, with 999 multinomial draws from a fixed stream; for "block" and "linear": a
    normal law with the variance of the ⌊n/m⌋ values. ``null="distribution-free"``: bounds that hold
    at every n (Widmann et al. 2019, Theorems 2 and 3, with B = 2 for kernels up to 1), for negative
    estimates 1; they have next to no power. With weights labels are redrawn.

    *Cost.* Two classes with :class:`LaplaceKernel` or :class:`TVKernel`: O(n log n) once and O(n)
    for every further set of labels, milliseconds for a test with n = 10⁴. Otherwise O(n² K) once;
    a replicate costs at most n² / 2 additions in vector instructions, n² / (2K) kernel values for
    flat predictions of many classes, and 2 (f n)² / K for a share f of rows whose label is not the
    likeliest, K > 2. Memory stays below 0.3 GB at n = 10⁴. For n =
    10⁵ and three or more classes take ``features=512``, O(n D) a replicate, or blocks. With weights
    a replicate of three or more classes is O(n² K), or O(n D K), as matrix products.

    Examples
    --------
    >>> probs = np.array([[0.1, 0.8, 0.1], [0.2, 0.5, 0.3]])
    >>> round(SKCE(LaplaceKernel(1.0))(probs, np.array([1, 2])), 12)
    -0.103179434534
    >>> SKCE()
    SKCE(LaplaceKernel('median'), estimator='unbiased')
    """

    kernel: Kernel = LaplaceKernel()
    _: KW_ONLY
    estimator: Literal["unbiased", "biased", "block", "linear"] = "unbiased"
    block_size: int | None = None
    features: int | None = None
    essential: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not callable(self.kernel) or isinstance(self.kernel, type):
            raise StatisticError(
                f"kernel must be a kernel such as LaplaceKernel() or a function of two arrays of "
                f"rows, not {self.kernel!r}"
            )
        one_of("estimator", self.estimator, ("unbiased", "biased", "block", "linear"))
        if self.block_size is not None:
            whole("block_size", self.block_size, least=2)
            if self.estimator != "block":
                raise StatisticError(f"block_size is for estimator='block', not {self.estimator!r}")
        if self.features is None:
            return
        pairs = self.estimator in ("unbiased", "biased")
        if not (pairs and isinstance(self.kernel, DistanceKernel)):
            raise StatisticError(
                "features are for a kernel of caltest and estimator='unbiased' or 'biased'"
            )
        whole("features", self.features, least=2)
        if self.features % 2:
            raise StatisticError(f"features must be an even number ≥ 2, not {self.features!r}")

    def prepare(self, problem: Problem) -> FixedSKCE:
        data = rows_of(problem, self, weights=True)
        n, probs = data.n, data.probs
        size = n
        if self.estimator == "linear":
            size = 2
        elif self.estimator == "block":
            size = self.block_size or max(2, int(n**0.5))
        needed = 1 if self.estimator == "biased" else max(2, size)
        if n < needed:
            raise StatisticError(f"{self!r} needs at least {needed} rows, not {n}")
        chosen = fitted(self.kernel, probs)
        used = probs[: n // size * size]
        w = (np.ones(n) if data.weights is None else data.weights)[: len(used)].reshape(-1, size)
        biased = self.estimator == "biased"
        mass = w.sum() ** 2 if biased else (w * (w.sum(axis=1, keepdims=True) - w)).sum()
        pairs: Pairs
        if self.features is not None and isinstance(chosen, DistanceKernel):
            rng = np.random.default_rng(0)
            pairs = Features(used, chosen.frequencies(self.features // 2, data.n_classes, rng))
        elif isinstance(chosen, (LaplaceKernel, TVKernel)) and data.n_classes == 2:
            pairs = Line.of(used, chosen.two_class / float(chosen.bandwidth), size)
        else:
            pairs = Tiles(used, chosen, size)
        bounded = isinstance(chosen, DistanceKernel)
        options = (len(used), size, self.estimator, bounded, float(mass))
        mean = None if biased else 0.0
        fixed = FixedSKCE(problem, pairs, *options, null_mean=mean, min_surprises=20.0)
        return replace(fixed, laws=fixed.limit_laws())


@dataclass(frozen=True, eq=False)
class FixedSKCE(Prepared):
    """The SKCE of fixed predictions: a function of the labels of the first ``n`` rows."""

    pairs: Pairs
    n: int
    size: int
    estimator: str
    bounded: bool
    #: Σ w_i w_j over the pairs that count.
    mass: float

    def values(self, outcomes: Any, factor: float = 1.0) -> FloatArray:
        if isinstance(outcomes, Flips):
            moved = self.data.residuals[: self.n], outcomes.multipliers[:, : self.n].T
            return factor * self._value(*self.pairs.weighted(*moved))
        labels = np.ascontiguousarray(outcomes[:, : self.n])
        if self.problem.weight is None:
            return factor * self._value(*self.pairs.sums(labels))
        # Class by class: kernel values then serve all label vectors at once.
        probs, w = self.problem.probs[: self.n], self.problem.weight[: self.n, None]
        two = self.problem.n_classes == 2
        each = np.tile([1.0, -1.0] if two else [1.0], (self.n, 1))
        classes = range(self.problem.d)
        residuals = (w * ((labels == k).T - probs[:, [k]]) for k in classes)
        totals, squares = zip(*(self.pairs.weighted(each, r) for r in residuals), strict=True)
        return factor * self._value(np.sum(totals, axis=0), np.sum(squares, axis=0))

    def redraws(self, scheme: Scheme, factor: float = 1.0) -> Shortcut:
        """Return draws in larger batches where each makes kernel values anew."""
        if self.pairs.kept or not isinstance(scheme, LabelScheme) or isinstance(scheme, WildSigns):
            return super().redraws(scheme, factor)
        n, at_once = self.data.n, max(CHUNK, min(4 * CHUNK, 2**24 // self.data.n))
        evaluate = partial(self.values, factor=factor)
        return Batches(scheme.drawer(self.data), n, evaluate, labels_at_once=at_once * n)

    def row_means(self, labels: IntArray) -> FloatArray:
        """Return for every row the mean of h_ij over its pairs, shape (n,).

        Without weights their mean is the statistic. Of a U-statistic twice their deviations from it
        are the influence of the rows, n Var = 4 Var(h_i·), from which two models can be compared on
        the same data. Rows are those in complete blocks.
        """
        totals, squares = self.pairs.rows(self._residuals(labels))
        if self.estimator == "biased":
            return (totals + squares) / self.n
        return totals / (self.size - 1)

    def limit_laws(self) -> dict[str, Law]:
        """Return the asymptotic and the distribution-free null, where there is one."""
        laws: dict[str, Law] = {}
        if self.problem.weight is not None:
            return laws
        if self.bounded:
            laws["distribution-free"] = self._bound
        if self.estimator == "unbiased":
            laws["asymptotic"] = self._bootstrap
        elif self.estimator != "biased":
            laws["asymptotic"] = self._normal
        return laws

    def _residuals(self, labels: IntArray) -> FloatArray:
        return residuals_of(self.data.probs[: self.n], labels[: self.n])

    def _value(self, totals: FloatArray, squares: FloatArray) -> FloatArray:
        return (totals + squares if self.estimator == "biased" else totals) / self.mass

    def _normal(self, labels: IntArray) -> AsymptoticNull:
        blocks = self.row_means(labels).reshape(-1, self.size).mean(axis=1)
        spread = float(blocks.std())
        if spread == 0.0:
            raise StatisticError(
                f"the asymptotic null needs blocks that differ, but all {blocks.size} have the "
                f"value {blocks[0]:g}; use null=RedrawLabels()"
            )
        return normal(0.0, spread / blocks.size**0.5, labels)

    def _bootstrap(self, labels: IntArray) -> SimulatedNull:
        # Widmann et al. compare n/(n − 1) SKCE_uq − SKCE_b with a bootstrap of it; solved for
        # SKCE_uq. D holds multinomial counts less 1.
        n = self.n
        residuals = self._residuals(labels)
        totals, squares = self.pairs.rows(residuals)
        rng = np.random.default_rng(0)
        values = np.empty(DRAWS)
        for a in range(0, DRAWS, 128):
            part = values[a : a + 128]
            drawn = rng.integers(n, size=(part.size, n)) + n * np.arange(part.size)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=n * part.size)
            d = counts.reshape(part.size, n).T.astype(np.float64) - 1.0
            part[:] = sum(self.pairs.weighted(residuals, d)) - squares @ d
            part += 2.0 / n * ((totals + squares) @ d) - (n - 1) / n * squares.sum()
        return SimulatedNull(values / (n * (n - 1) + 1))

    def _bound(self, labels: IntArray) -> TailBound:
        if self.estimator == "biased":
            return TailBound(2.0 / self.n, 1.0)
        independent = self.n // self.size * (self.size // 2)
        return TailBound(2.0 / independent**0.5, 0.0)


@dataclass(frozen=True)
class TailBound:
    """A law with P(T ≥ t) = exp(−x²/2), a bound that holds for every calibrated model.

    x = max(0, t / scale) for ``shift`` 0, and max(0, √(t / scale) − 1) for ``shift`` 1. Mean and
    deviation are those of this law, which is far wider than that of the statistic.
    """

    scale: float
    shift: float

    def mean(self) -> float:
        """Return the mean of the bounding law."""
        root = (np.pi / 2.0) ** 0.5
        return self.scale * float(3.0 + 2.0 * root if self.shift else root)

    def std(self) -> float:
        """Return the standard deviation of the bounding law."""
        root = (np.pi / 2.0) ** 0.5  # moments of x: √(π/2), 2, 3 √(π/2), 8
        second = 1.0 + 4.0 * root + 12.0 + 12.0 * root + 8.0 if self.shift else 2.0
        return float(np.sqrt(self.scale**2 * second - self.mean() ** 2))

    def sf(self, t: float) -> float:
        """Return the bound on P(T ≥ t)."""
        ratio = max(0.0, t) / self.scale
        x = max(0.0, ratio**0.5 - 1.0) if self.shift else ratio
        return float(np.exp(-0.5 * x * x))

    def ppf(self, q: float) -> float:
        """Return the q-quantile of the bounding law."""
        return float(self._values(np.array(1.0 - q)))

    def rvs(self, size: int, rng: Any = None) -> FloatArray:
        """Draw independent values from the bounding law."""
        return self._values(1.0 - np.random.default_rng(rng).random(size))

    def _values(self, tail: FloatArray) -> FloatArray:
        x = np.sqrt(-2.0 * np.log(tail))
        return self.scale * ((1.0 + x) ** 2 if self.shift else x)
