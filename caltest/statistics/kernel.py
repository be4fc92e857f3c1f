"""Kernel calibration errors: SKCE over pairs of rows, and MMCE of confidences.

With two classes and kernels of |p − q| sums over pairs cost O(n log n) (:class:`LineError`),
otherwise values are computed tile by tile (:class:`TiledSKCE`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal, cast

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray, number, one_of, whole
from caltest.errors import StatisticError
from caltest.nulls import CHUNK, LABELS_AT_ONCE, Batches, LabelScheme, Scheme, Shortcut
from caltest.nulls.lanes import kernel, lane_kernel
from caltest.nulls.laws import AsymptoticNull, SimulatedNull, normal
from caltest.statistics.prepared import (
    Prepared,
    Reader,
    Statistic,
    SumStatistic,
    coarseness,
    rows_of,
)
from caltest.statistics.problem import Cells, Problem, ResidualSums, Squares
from caltest.statistics.rows import Flips
from caltest.statistics.tiles import (
    LANES_OF_PAIRS,
    DistanceKernel,
    Kernel,
    LaplaceKernel,
    Tiles,
    TVKernel,
    residuals_of,
)

#: Multinomial draws of the asymptotic null of the unbiased estimator, from a stream of their own.
MULTINOMIAL_DRAWS = 999


@dataclass(frozen=True, repr=False)
class SKCE(Statistic):
    """Squared kernel calibration error of the whole probability vector.

    With residuals r_i = onehot(y_i) − p_i and h_ij = k(p_i, p_j) r_i·r_j, the matrix-valued kernel
    being k times the identity (Widmann et al., NeurIPS 2019, arXiv:1910.11385, Table 1):

    - ``"unbiased"``: 2 / (n (n − 1)) Σ_{i<j} h_ij, signed, 0 on average for a calibrated model;
    - ``"biased"``: n⁻² Σ_{i,j} h_ij ≥ 0;
    - ``"block"``: the mean over ⌊n/m⌋ blocks of m consecutive rows of the unbiased estimate in the
      block; rows of an incomplete last block are left out;
    - ``"linear"``: blocks of m = 2.

    With weights these are means of h_ij with weights w_i w_j over the same pairs; bandwidths and
    blocks ignore them. For two classes r_i·r_j is 2 (y_i − p_i)(y_j − p_j), twice the value of
    tools that work with one probability and leave out the factor.

    Parameters
    ----------
    kernel : kernel, default LaplaceKernel()
        :class:`LaplaceKernel`, :class:`GaussianKernel`, :class:`TVKernel`, or a function of rows
        (a, K) and (b, K) that returns the (a, b) values of a symmetric, positive definite kernel.
    estimator : {"unbiased", "biased", "block", "linear"}, default "unbiased"
        See above. Blocks depend on the order of the rows, and their tests have little power; they
        are for an n that is too large for all pairs.
    block_size : int, optional
        The m of ``"block"``, at least 2; by default ⌊√n⌋.

    Notes
    -----
    StatisticError for options that do not fit each other, and for fewer rows than 2, or m.
    Redrawn labels are valid at every n. ``null="asymptotic"``, for rows of equal weight, is for
    "unbiased" the bootstrap of Arcones & Giné (1992) for a degenerate U-statistic, as in
    CalibrationTests.jl, by 999 multinomial draws from a fixed stream; for blocks a normal law.

    Two classes with :class:`LaplaceKernel` or :class:`TVKernel` and all pairs cost O(n log n) once
    and O(n) for every set of labels; with a number as bandwidth also of a tally. Otherwise O(n² K)
    once; a replicate costs at most n² / 2 additions in vector instructions, n² / (2K) kernel values
    for flat predictions of many classes, and 2 (f n)² / K for a share f of rows whose label is not
    the likeliest, K > 2; with weights O(n² K). Memory stays below 0.3 GB at n = 10⁴.

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

    def prepare(self, problem: Problem) -> Prepared:
        size, biased = problem.n, self.estimator == "biased"
        all_pairs = biased or self.estimator == "unbiased"
        if self.estimator == "linear":
            size = 2
        elif self.estimator == "block":
            size = self.block_size or max(2, int(problem.n**0.5))
        needed = 1 if biased else max(2, size)
        if problem.n < needed:
            raise StatisticError(f"{self!r} needs at least {needed} rows, not {problem.n}")
        mean = None if biased else 0.0
        kernel = self.kernel
        if (
            problem.n_classes == 2 and all_pairs and isinstance(kernel, (LaplaceKernel, TVKernel))
            # A median distance is not known to micro-cells, of which few may hold most rows.
            and (problem.exact or not isinstance(kernel.bandwidth, str))
        ):  # fmt: skip
            rate = kernel.two_class / float(kernel.fitted(problem.probs).bandwidth)
            line = LineError.of(problem, self, rate, biased)
            line = replace(line, factor=2.0, null_mean=mean, min_surprises=20.0)
            if biased or problem.weight is not None or not problem.exact:
                return line
            return replace(line, laws={"asymptotic": partial(_bootstrap_on_line, line)})
        data = rows_of(problem, self, weights=True)
        probs = data.probs[: data.n // size * size]
        if isinstance(kernel, DistanceKernel):
            kernel = kernel.fitted(data.probs)
        w = (np.ones(data.n) if data.weights is None else data.weights)[: len(probs)]
        w = w.reshape(-1, size)
        mass = w.sum() ** 2 if biased else (w * (w.sum(axis=1, keepdims=True) - w)).sum()
        tiles = Tiles(probs, kernel, size)
        fixed = TiledSKCE(problem, tiles, biased, float(mass), null_mean=mean, min_surprises=20.0)
        if data.weights is not None or biased:
            return fixed
        law = fixed.bootstrap if all_pairs else fixed.normal
        return replace(fixed, laws={"asymptotic": law})


@dataclass(frozen=True, eq=False)
class TiledSKCE(Prepared):
    """Squared kernel calibration error with fixed predictions, computed from pairs of rows.

    ``tiles`` adds up kernel values, ``biased`` keeps pairs of a row and itself, and ``mass`` is
    Σ w_i w_j over the pairs.
    """

    tiles: Tiles
    biased: bool
    mass: float

    @property
    def n(self) -> int:
        """Number of rows in complete blocks."""
        return len(self.tiles.probs)

    def values(self, outcomes: object, factor: float = 1.0) -> FloatArray:
        probs, tiles, w = self.tiles.probs, self.tiles, self.problem.weight
        if isinstance(outcomes, Flips):
            # Residuals times m multiply h_ij by m_i m_j.
            residuals, m = self.data.residuals[: self.n], outcomes.multipliers[:, : self.n].T
            return factor * self._value(*tiles.weighted(residuals, m))
        assert isinstance(outcomes, np.ndarray)
        labels = np.ascontiguousarray(outcomes[:, : self.n])
        if w is None:
            return factor * self._value(*tiles.sums(labels))
        # Class by class: kernel values then serve all label vectors at once.
        two = self.problem.n_classes == 2
        # For two classes the components are r and −r, so that r_i · r_j counts twice.
        each = np.tile([1.0, -1.0] if two else [1.0], (self.n, 1))
        classes = range(self.problem.d)
        residuals = (w[: self.n, None] * ((labels == k).T - probs[:, [k]]) for k in classes)
        totals, squares = zip(*(tiles.weighted(each, r) for r in residuals), strict=True)
        return factor * self._value(np.sum(totals, axis=0), np.sum(squares, axis=0))

    def redraws(self, scheme: Scheme, factor: float = 1.0) -> Shortcut:
        """Return a resampler on label redraws of ``scheme``.

        It evaluates many label vectors at once, which share the kernel values, the costly part.
        ``factor`` multiplies squared residuals, for clusters.
        """
        if not isinstance(scheme, LabelScheme):
            return super().redraws(scheme, factor)
        n, at_once = self.data.n, max(LANES_OF_PAIRS, LABELS_AT_ONCE // self.data.n)
        if not self.tiles.in_memory:
            at_once = max(CHUNK, min(4 * CHUNK, 2**24 // n))
        evaluate = partial(self.values, factor=factor)
        return Batches(scheme.drawer(self.data), n, evaluate, labels_at_once=at_once * n)

    def _value(self, totals: FloatArray, squares: FloatArray) -> FloatArray:
        return (totals + squares if self.biased else totals) / self.mass

    def normal(self, labels: IntArray) -> AsymptoticNull:
        """Return the normal limit law of the mean over blocks, for observed labels (n,).

        Its variance is estimated from the blocks. StatisticError if all blocks have the same value.
        """
        totals, _ = self.tiles.rows(residuals_of(self.tiles.probs, labels[: self.n]))
        size = self.tiles.size
        blocks = totals.reshape(-1, size).mean(axis=1) / (size - 1)
        spread = float(blocks.std())
        if spread == 0.0:
            raise StatisticError(
                f"the asymptotic null needs blocks that differ, but all {blocks.size} have the "
                f"value {blocks[0]:g}; use null=RedrawLabels()"
            )
        return normal(0.0, spread / blocks.size**0.5, labels)

    def bootstrap(self, labels: IntArray) -> SimulatedNull:
        """Return the bootstrap law of the mean over all pairs of rows, for observed labels (n,)."""
        residuals = residuals_of(self.tiles.probs, labels)
        totals, squares = self.tiles.rows(residuals)

        def forms(d: FloatArray) -> tuple[FloatArray, FloatArray]:
            pairs, diagonal = self.tiles.weighted(residuals, d.T)
            return pairs + diagonal, d @ (totals + squares)

        return _bootstrap(squares, forms)


def _bootstrap_on_line(line: LineError, labels: IntArray) -> SimulatedNull:
    assert line.cells is not None
    cells, residuals = line.cells, (labels == 0) - line.problem.probs[:, 0]

    def form(m: FloatArray) -> FloatArray:
        sums = ResidualSums(cells.sum(m * residuals, axis=1)[:, :, None])
        return 2.0 * line.all_pairs(sums)

    whole, squares = form(np.ones((1, residuals.size))), np.asarray(2.0 * residuals**2)

    def forms(d: FloatArray) -> tuple[FloatArray, FloatArray]:
        quadratic = form(d)
        return quadratic, 0.5 * (form(1.0 + d) - quadratic - whole)

    return _bootstrap(squares, forms)


def _bootstrap(
    squares: FloatArray, forms: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
) -> SimulatedNull:
    """Return the bootstrap law of a degenerate U-statistic (Arcones & Giné 1992), simulated.

    ``squares`` (n,) are the diagonal values h_ii. ``forms(d)`` returns Σ d_i d_j h_ij and Σ d_i
    h_ij, (B,) each, for multinomial counts less 1, d of shape (B, n). Widmann et al. compare n/(n −
    1) SKCE_uq − SKCE_b with a bootstrap of it; here it is solved for SKCE_uq.
    """
    # A stream of its own: the null of one set of labels is always the same.
    n, rng = squares.size, np.random.default_rng(0)
    values = np.empty(MULTINOMIAL_DRAWS)
    for first in range(0, MULTINOMIAL_DRAWS, 128):
        part = values[first : first + 128]
        rows = rng.integers(n, size=(part.size, n)) + n * np.arange(part.size)[:, None]
        counts = np.bincount(rows.ravel(), minlength=n * part.size)
        d = counts.reshape(part.size, n).astype(np.float64) - 1.0
        quadratic, linear = forms(d)
        part[:] = quadratic - d @ squares + 2.0 / n * linear - (n - 1) / n * squares.sum()
    return SimulatedNull(values / (n * (n - 1) + 1))


# ------------------------------------------------------------------------------
# Sums over all pairs of units along the line of their predictions, and the MMCE made of them.


@dataclass(frozen=True, eq=False)
class LineReader(Reader):
    """Reader that computes a :class:`LineError` from blocks of redrawn outcomes, level by level.

    A level is a group of rows with equal predictions; sums of levels are not kept.
    """

    at_once = 64

    def values(self, block: AnyArray, factor: float = 1.0) -> FloatArray:
        line = cast("LineError", self.statistic)
        pairs, squares = np.zeros((2, block.shape[1]))
        steps = np.empty(0) if self.residuals else self.steps[0]
        fixed = (self.weights, self.expected, line.decay, steps, not line.biased)
        pair_up(block, self.starts, *fixed, pairs, squares)
        squares += 0.0 if self.residuals else self.base[0, 0]
        return line.of_pairs(factor * pairs, factor * squares)


@lane_kernel
def pair_up(  # type: ignore[no-untyped-def]
    block, starts, weights, expected, decay, steps, unbiased, pairs, squares
):
    # O(n) per lane. Residuals come without steps, and are squared. Two cells of one row each, with
    # steps or none, share the loads and stores.
    lanes, weighted, squared = block.shape[1], weights.size > 0, steps.size == 0
    before, gap, n_cells = np.zeros(lanes), np.empty(lanes), starts.size - 1
    plain, b = not weighted and not (unbiased and squared), 0
    while b < n_cells:
        fade, first = decay[b], starts[b]
        if plain and b + 2 <= n_cells and starts[b + 2] == first + 2:
            row, after, fade_after = block[first], block[first + 1], decay[b + 1]
            less, less_after = expected[b], expected[b + 1]
            step, step_after = (steps[first], steps[first + 1]) if unbiased else (0.0, 0.0)
            for q in range(lanes):
                one, two = row[q] - less, after[q] - less_after
                faded = before[q] * fade
                total = pairs[q] + one * (2.0 * faded + one)
                faded = (faded + one) * fade_after
                pairs[q] = total + two * (2.0 * faded + two)
                before[q] = faded + two
                squares[q] += step * row[q] + step_after * after[q]
            b += 2
            continue
        for q in range(lanes):
            gap[q] = -expected[b]
        for i in range(starts[b], starts[b + 1]):
            row, w = block[i], weights[i] if weighted else 1.0
            for q in range(lanes):
                gap[q] += w * row[q]
            if unbiased and squared:
                for q in range(lanes):
                    squares[q] += row[q] * row[q]
            elif unbiased:
                step = steps[i]
                for q in range(lanes):
                    squares[q] += step * row[q]
        for q in range(lanes):
            faded = before[q] * fade
            pairs[q] += gap[q] * (2.0 * faded + gap[q])
            before[q] = faded + gap[q]
        b += 1


@dataclass(frozen=True, eq=False)
class LineError(SumStatistic):
    """Kernel error of two classes with fixed predictions.

    The value is factor · (Σ_ij k_ij r_i r_j − Σ_i r_i²) / scale, or its square root where ``root``.
    The kernel is k = exp(−rate |p − q|). Let level g be the rows with the g-th smallest distinct
    prediction p_g and S_g the sum of their residuals. Then s_g = exp(−rate (p_g − p_{g−1}))
    (s_{g−1} + S_{g−1}) is the sum of k r over all rows before level g, so that a set of residual
    sums costs O(L). ``biased`` keeps the pairs of a row and itself.
    """

    decay: FloatArray = field(repr=False)
    scale: float
    biased: bool
    factor: float = 1.0
    root: bool = False
    squares: ClassVar[Squares] = "whole"
    reader: ClassVar[type[Reader]] = LineReader

    @classmethod
    def of(cls, problem: Problem, statistic: object, rate: float, biased: bool) -> LineError:
        """Return the kernel error for a problem with its units grouped by prediction; O(U log U).

        ``statistic`` is named in errors, ``rate`` is 1 / bandwidth; ``biased`` keeps the pairs of a
        row and itself.
        """
        cells = Cells.levels(problem)
        # Nothing comes before the first level: exp(−∞) = 0.
        decay = np.exp(-rate * np.diff(cells.mean(problem.probs[:, 0]), prepend=-np.inf))
        scale = float(cells.mass.sum()) ** 2
        scale -= 0.0 if biased else float(cells.square_mass.sum())
        remark = coarseness(statistic, problem)
        return cls(problem, decay, scale, biased, cells=cells, remark=remark)

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        return self.of_pairs(self.all_pairs(sums), sums.squares[:, 0])

    def of_pairs(self, total: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the values (B,) from Σ_ij k_ij r_i r_j and Σ r² of B sets of outcomes.

        ``total`` (B,) is the sum over all pairs, ``squares`` (B,) the sum of squares.
        """
        total = total if self.biased else total - squares
        values = self.factor * total / self.scale
        return np.sqrt(np.maximum(values, 0.0)) if self.root else values

    def all_pairs(self, sums: ResidualSums) -> FloatArray:
        """Return Σ_ij k_ij r_i r_j over all pairs, each row with itself included, shape (B,)."""
        totals = np.zeros(len(sums.cells))
        _all_pairs(np.ascontiguousarray(sums.cells[:, :, 0].T), self.decay, totals)
        return totals


@kernel
def _all_pairs(steps, decay, totals_out):  # type: ignore[no-untyped-def]
    # O(L) per set of sums; steps (L, B), so that sets are the lanes of vectors.
    before = np.zeros(steps.shape[1])
    for g in range(steps.shape[0]):
        fade = decay[g]
        for q in range(before.size):
            s = steps[g, q]
            faded = before[q] * fade
            totals_out[q] += s * (2.0 * faded + s)
            before[q] = faded + s


@dataclass(frozen=True, repr=False)
class MMCE(Statistic):
    """Maximum mean calibration error of a two-class problem (Kumar, Sarawagi & Jain, ICML 2018).

    MMCE² = Σ_{i,j} w_i w_j (c_i − p_i) (c_j − p_j) exp(−|p_i − p_j| / ν), where c_i says whether
    class 0 occurred (after ``TopK(1)``: the top class was right), p_i is its probability, ν the
    ``bandwidth``, by default as in the paper, and w_i = 1/n, or the weight of the row over the
    sum of weights. The value is the root, in [0, 1]; MMCE² is half of
    ``SKCE(TVKernel(0.4), estimator="biased")``. Biased upward, as an ECE is. O(n log n) once, O(n)
    for further labels.

    Examples
    --------
    >>> round(MMCE()(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([0, 1])), 6)
    0.236227
    """

    _: KW_ONLY
    bandwidth: float = 0.4
    essential: ClassVar[int] = 0

    def __post_init__(self) -> None:
        number("bandwidth", self.bandwidth, 0.0, np.inf)

    def prepare(self, problem: Problem) -> LineError:
        problem.event(self)
        return replace(LineError.of(problem, self, 1.0 / self.bandwidth, biased=True), root=True)
