"""Kernel calibration errors: SKCE over pairs of rows, and MMCE of confidences.

:class:`LaplaceKernel`, :class:`GaussianKernel` and :class:`TVKernel` choose their bandwidth from
the predictions. With two classes and kernels of |p − q| sums over pairs cost O(n log n)
(:class:`LineError`), otherwise values are computed tile by tile (:class:`TiledSKCE`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, cached_property, partial
from typing import ClassVar, Literal, Self, cast

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import AnyArray, largest, number, one_of, whole
from caltest._base.written import Written
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

# ------------------------------------------------------------------------------
# Kernels between predictions, which choose their bandwidth from them.


#: A kernel takes rows of probabilities, (a, K) and (b, K), and returns the (a, b) values.
Kernel = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, repr=False)
class DistanceKernel(Written):
    """Base class of kernels that depend on the distance of two rows of probabilities.

    Call it with rows (a, K) and (b, K) to get values (a, b). ``bandwidth`` is a number > 0,
    "median" for the median distance between predictions, or "median-with-diagonal", which counts
    the zero distance of each row with itself as well; StatisticError for others. A word becomes a
    number by :meth:`fitted`. A subclass sets ``distance``, "tv" or "l2".
    """

    bandwidth: float | str = "median"
    #: ``"tv"`` or ``"l2"``.
    distance: ClassVar[str] = "l2"
    #: Two rows of a two-class problem are this many times |p − q| apart, p and q of either class.
    two_class: ClassVar[float] = 2.0**0.5

    def __post_init__(self) -> None:
        width = self.bandwidth
        if not isinstance(width, str):
            number("bandwidth", width, 0.0, np.inf)
            object.__setattr__(self, "bandwidth", float(width))
        elif width not in ("median", "median-with-diagonal"):
            raise StatisticError(
                f"bandwidth must be a number > 0, 'median' or 'median-with-diagonal', not {width!r}"
            )

    def fitted(self, probs: FloatArray) -> Self:
        """Return this kernel with a numeric bandwidth, computed from predictions ``probs`` (n, K).

        A bandwidth given as a word, such as "median", is replaced by that distance, or 1 if all
        rows are equal; a number is kept.
        """
        if not isinstance(self.bandwidth, str):
            return self
        diagonal = self.bandwidth == "median-with-diagonal"
        if probs.shape[1] == 2:
            width = self.two_class * median_on_line(np.sort(probs[:, 0]), diagonal)
        else:
            width = median(probs, self.distance, diagonal)
        # For equal predictions every bandwidth gives the same values.
        return replace(self, bandwidth=width or 1.0)

    def __call__(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        """Return kernel values (a, b), in (0, 1], for ``rows`` (a, K) and ``others`` (b, K).

        Value (i, j) is exp(−distance / bandwidth) of row i and other row j. StatisticError while
        the bandwidth is a word such as "median". O(a b K).
        """
        values = self._distances(rows, others, squared=False)
        values *= -1.0 / float(self.bandwidth)
        return np.exp(values, out=values)

    def _distances(self, rows: FloatArray, others: FloatArray, *, squared: bool) -> FloatArray:
        if isinstance(self.bandwidth, str):
            raise StatisticError(f"{self!r} has no bandwidth yet: use {self!r}.fitted(probs)")
        out = np.empty((len(rows), len(others)))
        columns = np.ascontiguousarray(others.T)
        _distances(np.ascontiguousarray(rows), columns, self.distance == "tv", out)
        if self.distance == "l2" and not squared:
            np.sqrt(out, out=out)
        return out


@dataclass(frozen=True, repr=False)
class LaplaceKernel(DistanceKernel):
    """The kernel exp(−‖p − q‖₂ / ν) between rows of probabilities, in (0, 1].

    Parameters
    ----------
    bandwidth : float or {"median", "median-with-diagonal"}, default "median"
        The bandwidth ν > 0, StatisticError else, or a rule that makes it from the predictions
        alone, so that redrawn labels stay valid: the median of the distances ‖p − q‖₂ of all pairs
        i < j, or of all n² ordered pairs, the n zeros of rows with themselves included, as in the
        experiments of Widmann et al. (2019). Where it is 0 the mean distance of pairs i < j is
        taken, and 1 where that is 0 as well. For two classes ‖p − q‖₂ = √2 |p₁ − q₁|.

    Notes
    -----
    The median is exact and independent of the order of rows: O(n log n) for two classes; O(n² K)
    for more up to n = 10 000, above that over the pairs of 10 000 rows, taken at equal steps from
    the rows in lexicographic order.

    Examples
    --------
    >>> probs = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])
    >>> LaplaceKernel(0.5)(probs, probs).round(3).tolist()[0]
    [1.0, 0.243, 0.243]
    >>> LaplaceKernel("median").fitted(probs)
    LaplaceKernel(0.7071067811865476)
    """


@dataclass(frozen=True, repr=False)
class GaussianKernel(DistanceKernel):
    """The kernel exp(−‖p − q‖₂² / (2ν²)) between rows of probabilities, in (0, 1].

    ``bandwidth`` is the number ν > 0, or by default "median", the median of ‖p − q‖₂ over pairs of
    predictions; :class:`LaplaceKernel` says how that is computed.
    """

    def __call__(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        values = self._distances(rows, others, squared=True)
        values *= -0.5 / float(self.bandwidth) ** 2
        return np.exp(values, out=values)


@dataclass(frozen=True, repr=False)
class TVKernel(DistanceKernel):
    """The kernel exp(−TV(p, q) / ν) between rows, TV(p, q) = ½ Σ_k |p_k − q_k|, in (0, 1].

    The kernel of the experiments of Widmann et al. (2019); for two classes TV(p, q) = |p₁ − q₁|.
    ``bandwidth`` is the number ν > 0, or by default "median", the median of TV(p, q) over pairs of
    predictions; :class:`LaplaceKernel` says how that is computed.
    """

    distance: ClassVar[str] = "tv"
    two_class: ClassVar[float] = 1.0


# ------------------------------------------------------------------------------
# The errors, by tiles of pairs and, on a line, in order.


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

    ``tiles`` adds up h_ij = k(p_i, p_j) r_i · r_j, kernel times product of residuals, over pairs in
    blocks of rows; ``biased`` keeps pairs of a row and itself, and ``mass``, the divisor, is Σ w_i
    w_j over the pairs, w the weights of the rows.
    """

    tiles: Tiles
    biased: bool
    mass: float

    @property
    def n(self) -> int:
        """Number of rows in complete blocks of consecutive rows.

        An incomplete last block does not count.
        """
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
        """Return a resampler of this error on label redraws.

        ``scheme`` says how labels are drawn, such as ``RedrawLabels()``. The resampler's
        ``replicates(seed, first, count)`` returns values (count,). It evaluates many label vectors
        at once, which share the kernel values, the costly part. ``factor`` multiplies squared
        residuals, for clusters.
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
        The law has mean 0.
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
        """Return the bootstrap law of the unbiased error under calibration, for labels (n,).

        ``labels`` are the observed ones. The law holds 999 simulated values, from a fixed stream
        (Arcones & Giné 1992).
        """
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

    The statistic is the mean of h_ij over pairs of n rows. ``squares`` (n,) are the diagonal values
    h_ii. ``forms(d)`` returns (Σ d_i d_j h_ij, Σ d_i h_ij), sums over all i and j, (B,) each, for
    multinomial counts less 1, d of shape (B, n). The law holds 999 values, from a fixed stream.
    Widmann et al. compare n/(n − 1) SKCE_uq − SKCE_b with a bootstrap of it; here it is solved for
    SKCE_uq.
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

    A level is a group of rows with equal predictions; sums of levels are not kept. A block (n, B)
    holds B sets of outcomes, rows in increasing order of the predictions; ``values`` returns the
    statistic, (B,).
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

    The value is factor · (Σ_ij k_ij r_i r_j − Σ_i r_i²) / scale, or its square root where ``root``,
    with r the weighted residuals of the rows. The kernel is k = exp(−rate |p − q|). Let level g be
    the rows with the g-th smallest of L distinct predictions p_g and S_g the sum of their
    residuals. Then s_g = exp(−rate (p_g − p_{g−1})) (s_{g−1} + S_{g−1}) is the sum of k r over all
    rows before level g, so that a set of residual sums costs O(L). ``biased`` keeps the pairs of a
    row and itself, so that Σ r_i² is not taken off. ``decay`` (L,) holds exp(−rate (p_g −
    p_{g−1})).
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
        """Return the mean of k(p_i, p_j) r_i r_j over pairs of rows, a function of the outcomes.

        ``problem`` has two classes; its U units (rows, or cells of a tally) are grouped by
        prediction in O(U log U). ``statistic`` is named in remarks. The kernel is exp(−rate |p −
        q|), so ``rate`` is 1 / bandwidth; ``biased`` keeps the pairs of a row and itself. r are the
        residuals of the event.
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
        """Return the values (B,) of the error from Σ_ij k_ij r_i r_j and Σ r², (B,) each.

        ``total`` is the sum over all pairs, each row with itself included, for B sets of outcomes;
        ``squares`` is the sum of squared residuals, which is taken off unless the error is biased.
        """
        total = total if self.biased else total - squares
        values = self.factor * total / self.scale
        return np.sqrt(np.maximum(values, 0.0)) if self.root else values

    def all_pairs(self, sums: ResidualSums) -> FloatArray:
        """Return Σ_ij k_ij r_i r_j over all pairs, each row with itself included, shape (B,).

        k is the kernel, r the weighted residuals of the rows. ``sums`` has the residual sums of the
        L groups of equal predictions in ``cells`` (B, L, 1), for B sets of outcomes.
        """
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
    the event, label 1, occurred (after ``TopK(1)``: the top class was right), p_i is its
    probability, ν the ``bandwidth``, by default as in the paper, and w_i = 1/n, or the weight of
    the row over the sum of weights. The value is the root, in [0, 1]; MMCE² is half of
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


# ------------------------------------------------------------------------------
# Sums over pairs of rows, tile by tile: h_ij = k(p_i, p_j) r_i·r_j without an n × n matrix.


#: Sums over pairs of rows, and over rows with themselves.
Sums = tuple[FloatArray, FloatArray]


#: Rows of a tile of the matrix of kernel values.
ROWS_A_TILE = 256


#: Kernel values that stay in memory; of more rows they are made anew, tile by tile.
KERNEL_VALUES_KEPT = 2**24


#: Replicates side by side where labels are compared pair by pair, and classes up to which they are.
LANES_OF_PAIRS, FEW_CLASSES = 64, 127


#: So many pairs are compared in the time in which a kernel value is looked up and added.
PAIRS_COMPARED = 22.0


@dataclass(frozen=True, eq=False)
class Tiles:
    """Sums of h_ij = k(p_i, p_j) r_i·r_j over pairs in blocks of ``size`` rows, r = onehot(y) − p.

    ``probs`` (n, K) are the predictions p, ``kernel`` is k, a function of rows (a, K) and (b, K)
    with values (a, b). Labels are compared with a reference: of a row with a class of probability
    above ½ that class, of others none. Against it a set of labels is a short list of entries ±1,
    (row, class), so Σ h_ij is a constant, plus a number for each entry, plus k(p_i, p_j) for pairs
    of entries of the same class: some n² / (2K) kernel values a replicate for flat predictions, and
    far fewer for confident ones, instead of the n² K products of the matrix form. Where the lists
    would be long, the reference is empty and labels are compared pair by pair, 64 replicates side
    by side: n² / 2 additions in vector instructions, whatever K is. Memory is bounded: up to 2²⁴
    kernel values are kept (n ≈ 5 700), of larger matrices a tile at a time.
    """

    probs: FloatArray
    kernel: Kernel = field(repr=False)
    size: int

    @property
    def in_memory(self) -> bool:
        """True if the kernel values of all pairs, at most 2²⁴, are kept in memory.

        Otherwise they are computed anew, tile by tile, for each pass.
        """
        return len(self.probs) * max(self.size, ROWS_A_TILE // 4) // 2 <= KERNEL_VALUES_KEPT

    def sums(self, labels: IntArray) -> Sums:
        """Return (Σ_{i≠j} h_ij, Σ_i h_ii), (B,) each, for label vectors (B, n).

        h_ij = k(p_i, p_j) r_i · r_j is the kernel times the product of the residuals r = onehot(y)
        − p; pairs are within blocks of rows.
        """
        top, constant, linear = self._prepared
        totals = np.full(len(labels), constant)
        n, n_classes = self.probs.shape
        rows = np.arange(n)
        if self._dense:
            lanes = np.zeros((n, -(-len(labels) // LANES_OF_PAIRS) * LANES_OF_PAIRS), dtype=np.int8)
            lanes[:, : len(labels)] = labels.T
            pairs = np.zeros(lanes.shape[1])
            for t, u, values in self._tiles():
                factor = 1.0 if t == u else 2.0
                _compared(values, lanes[self._slice(t)], lanes[self._slice(u)], factor, pairs)
            totals += pairs[: len(labels)] + [linear[rows, row].sum() for row in labels]
        else:
            codes = np.empty((len(labels), 2 * n), dtype=np.int32)
            starts = np.empty((len(labels), self._cuts.size, n_classes + 1), dtype=np.int32)
            _entries(labels, top, self._cuts, linear, codes, starts, totals)
            for t, u, values in self._tiles():
                _pair_sums(values, codes, starts, t, u, 1.0 if t == u else 2.0, totals)
        norms = np.square(self.probs).sum(axis=1)
        of_label = [self.probs[rows, row] @ self._diagonal for row in labels]
        return totals, (1.0 + norms) @ self._diagonal - 2.0 * np.array(of_label)

    def rows(self, residuals: FloatArray) -> Sums:
        """Return (Σ_{j≠i} h_ij, h_ii) of every row i, (n,) each; O(n² K).

        h_ij = k(p_i, p_j) r_i · r_j is the kernel times the product of residuals, with
        ``residuals`` (n, K) the r; j runs over the block of consecutive rows that holds row i.
        """
        totals = np.einsum("ik,ik->i", residuals, self._times(residuals))
        return totals, np.square(residuals).sum(axis=1) * self._diagonal

    def weighted(self, residuals: FloatArray, weights: FloatArray) -> Sums:
        """Return (Σ_{i≠j} w_i w_j h_ij, Σ_i w_i² h_ii) for columns of weights, (B,) each.

        ``weights`` (n, B) are B sets of w, and h_ij = k(p_i, p_j) r_i · r_j with ``residuals`` (n,
        K) the r; pairs are within blocks of rows. O(n² (K + B)), as matrix products.
        """
        totals = np.zeros(weights.shape[1])
        for t, u, values in self._tiles():
            rows, others = self._slice(t), self._slice(u)
            h = values * (residuals[rows] @ residuals[others].T)
            part = np.einsum("ib,ib->b", weights[rows], h @ weights[others])
            totals += part if t == u else 2.0 * part
        return totals, np.square(residuals).sum(axis=1) * self._diagonal @ np.square(weights)

    @cached_property
    def _cuts(self) -> IntArray:
        """Row indices where the parts of the rows start, and n, the end of the last, integers.

        The kernel matrix is computed in tiles, one part of the rows against another. A part has up
        to 256 rows: a block (a run of rows whose pairs are summed), several small ones, or a piece
        of a larger one.
        """
        together = max(1, ROWS_A_TILE // 4 // self.size) * self.size
        step = ROWS_A_TILE if self.size >= ROWS_A_TILE else together
        stride, n = max(step, self.size), len(self.probs)
        starts = [np.arange(a, min(a + stride, n), step) for a in range(0, n, stride)]
        return np.append(np.concatenate(starts), n)

    def _slice(self, t: int) -> slice:
        return slice(self._cuts[t], self._cuts[t + 1])

    def _tiles(self) -> Iterable[tuple[int, int, FloatArray]]:
        return self._values if self.in_memory else self._fresh()

    @cached_property
    def _values(self) -> list[tuple[int, int, FloatArray]]:
        return list(self._fresh())

    def _fresh(self) -> Iterator[tuple[int, int, FloatArray]]:
        """Yield (t, u, kernel values) for pairs of tiles t ≤ u of rows, computed anew.

        Values are a matrix, rows of tile t by rows of tile u, with 0 on the diagonal and between
        different blocks. Pairs of tiles without a common block are left out.
        """
        first = self._cuts[:-1] // self.size
        for t, block in enumerate(first):
            rows = self._slice(t)
            for u in range(t, int(np.searchsorted(first, block, side="right"))):
                others = self._slice(u)
                values = self.kernel(self.probs[rows], self.probs[others])
                if t == u:
                    inside = np.arange(rows.start, rows.stop) // self.size
                    pairs = inside[:, None] == inside
                    np.fill_diagonal(pairs, False)
                    values = np.where(pairs, values, 0.0)
                yield t, u, np.ascontiguousarray(values, dtype=np.float64)

    @cached_property
    def _diagonal(self) -> FloatArray:
        parts = [self.probs[self._slice(t)] for t in range(self._cuts.size - 1)]
        return np.concatenate([np.diag(self.kernel(part, part)) for part in parts])

    @cached_property
    def _prepared(self) -> tuple[IntArray, float, FloatArray]:
        """(reference, constant, addends): parts of the sum of h_ij over pairs i ≠ j.

        They follow from the predictions alone. h_ij is the kernel times the product of residuals.
        ``reference`` (n,) is the class of probability above ½ of each row, or −1; ``constant`` is
        the sum if every label is its reference, and ``addends`` (n, K) its change if one row has
        another label. If labels are compared pair by pair, all references are −1.
        """
        top, residuals = _reference(self.probs)
        if self._dense:
            top, residuals = np.full_like(top, -1), -self.probs
        clear = top >= 0
        pulled = self._times(residuals)
        linear = 2.0 * pulled
        linear[clear] -= linear[clear, top[clear]][:, None]
        return top, float(np.sum(residuals * pulled)), linear

    @cached_property
    def _dense(self) -> bool:
        """True if labels are compared pair by pair, as this costs less than lists of deviations.

        The lists hold the rows whose label is not their class of probability above ½.
        """
        top, residuals = _reference(self.probs)
        clear = np.arange(self.probs.shape[1]) == top[:, None]
        entries = np.where(clear, residuals, self.probs).sum(axis=0)
        listed = float(entries @ entries) * self.size / len(self.probs)
        few = self.probs.shape[1] <= FEW_CLASSES
        return few and PAIRS_COMPARED * listed > len(self.probs) * max(self.size, ROWS_A_TILE // 4)

    def _times(self, columns: FloatArray) -> FloatArray:
        """Return the kernel matrix (n, n) times ``columns`` (n, K), shape (n, K).

        Kernel values of a row and itself, and of rows in different blocks of consecutive rows,
        count as 0.
        """
        product = np.zeros_like(columns)
        for t, u, values in self._tiles():
            rows, others = self._slice(t), self._slice(u)
            product[rows] += values @ columns[others]
            if t != u:
                product[others] += values.T @ columns[rows]
        return product


def residuals_of(probs: FloatArray, labels: IntArray) -> FloatArray:
    """Return the residuals onehot(y_i) − p_i, (n, K).

    ``probs`` (n, K) are the predictions p, ``labels`` (n,) the labels y.
    """
    residuals = -probs
    residuals[np.arange(len(probs)), labels] += 1.0
    return residuals


def _reference(probs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return (top, residuals) for predictions (n, K).

    ``top`` (n,) is the class with probability above ½, or −1 if no class has one. ``residuals``
    (n, K) are onehot(top) − p, and −p in rows where ``top`` is −1.
    """
    top = np.where(largest(probs) > 0.5, probs.argmax(axis=1), -1)
    residuals = -probs
    residuals[top >= 0, top[top >= 0]] += 1.0
    return top, residuals


@kernel
def _entries(  # type: ignore[no-untyped-def]
    labels, top, cuts, linear, codes_out, starts_out, totals_out
):
    # O(n + K tiles) per replicate: entries grouped by tile and class, a row of the tile times 2,
    # plus 1 if it is negative.
    n_classes = linear.shape[1]
    filled = np.empty(n_classes, dtype=np.int64)
    for q in range(labels.shape[0]):
        place = 0
        for t in range(cuts.size - 1):
            filled[:] = 0
            for i in range(cuts[t], cuts[t + 1]):
                y = labels[q, i]
                if y != top[i]:
                    totals_out[q] += linear[i, y]
                    filled[y] += 1
                    if top[i] >= 0:
                        filled[top[i]] += 1
            for k in range(n_classes):
                starts_out[q, t, k] = place
                place += filled[k]
                filled[k] = starts_out[q, t, k]
            starts_out[q, t, n_classes] = place
            for i in range(cuts[t], cuts[t + 1]):
                y = labels[q, i]
                if y != top[i]:
                    codes_out[q, filled[y]] = 2 * (i - cuts[t])
                    filled[y] += 1
                    if top[i] >= 0:
                        codes_out[q, filled[top[i]]] = 2 * (i - cuts[t]) + 1
                        filled[top[i]] += 1


@kernel
def _pair_sums(values, codes, starts, t, u, factor, totals_out):  # type: ignore[no-untyped-def]
    # Σ ± k over pairs of entries of a class, one in tile t and one in tile u.
    for q in range(totals_out.size):
        total = 0.0
        for k in range(starts.shape[2] - 1):
            first, last = starts[q, u, k], starts[q, u, k + 1]
            for a in range(starts[q, t, k], starts[q, t, k + 1]):
                row = values[codes[q, a] >> 1]
                sign = 1.0 - 2.0 * (codes[q, a] & 1)
                even, odd = 0.0, 0.0  # two sums, so that one need not wait for the other
                for b in range(first, last - 1, 2):
                    c, d = codes[q, b], codes[q, b + 1]
                    even += row[c >> 1] if c & 1 == 0 else -row[c >> 1]
                    odd += row[d >> 1] if d & 1 == 0 else -row[d >> 1]
                if (last - first) & 1:
                    c = codes[q, last - 1]
                    even += row[c >> 1] if c & 1 == 0 else -row[c >> 1]
                total += sign * (even + odd)
        totals_out[q] += factor * total


@kernel
def _compared(values, rows, others, factor, totals_out):  # type: ignore[no-untyped-def]
    # Σ k over pairs of equal labels, eight pairs and LANES_OF_PAIRS replicates at a time.
    sums = np.empty(LANES_OF_PAIRS)
    eights = values.shape[1] // 8 * 8
    for start in range(0, totals_out.size, LANES_OF_PAIRS):
        lanes = slice(start, start + LANES_OF_PAIRS)
        sums[:] = 0.0
        for i in range(values.shape[0]):
            labels, line = rows[i, lanes], values[i]
            for j in range(0, eights, 8):
                a, b, c, d = line[j], line[j + 1], line[j + 2], line[j + 3]
                e, f, g, h = line[j + 4], line[j + 5], line[j + 6], line[j + 7]
                s, t, u, v = (others[j, lanes], others[j + 1, lanes], others[j + 2, lanes],
                              others[j + 3, lanes])  # fmt: skip
                w, x, y, z = (others[j + 4, lanes], others[j + 5, lanes], others[j + 6, lanes],
                              others[j + 7, lanes])  # fmt: skip
                for q in range(LANES_OF_PAIRS):
                    k = labels[q]
                    low = ((a if s[q] == k else 0.0) + (b if t[q] == k else 0.0)) + (
                        (c if u[q] == k else 0.0) + (d if v[q] == k else 0.0)
                    )
                    high = ((e if w[q] == k else 0.0) + (f if x[q] == k else 0.0)) + (
                        (g if y[q] == k else 0.0) + (h if z[q] == k else 0.0)
                    )
                    sums[q] += low + high
            for j in range(eights, values.shape[1]):
                for q in range(LANES_OF_PAIRS):
                    sums[q] += line[j] if others[j, start + q] == labels[q] else 0.0
        for q in range(LANES_OF_PAIRS):
            totals_out[start + q] += factor * sums[q]


@kernel
def _distances(rows, columns, manhattan, out):  # type: ignore[no-untyped-def]
    # O(a b K): total variation, or the square of the Euclidean distance.
    for i in range(rows.shape[0]):
        line = out[i]
        line[:] = 0.0
        for k in range(rows.shape[1]):
            x = rows[i, k]
            if manhattan:
                for j in range(line.size):
                    line[j] += abs(x - columns[k, j])
            else:
                for j in range(line.size):
                    line[j] += (x - columns[k, j]) ** 2
        if manhattan:
            for j in range(line.size):
                line[j] *= 0.5


# ------------------------------------------------------------------------------
# The median heuristic for the bandwidth of a kernel.


#: Up to this many rows of three or more classes the median is over all pairs, above over a sample.
MEDIAN_ROWS = 10_000


def median(probs: FloatArray, distance: str, diagonal: bool) -> float:
    """Return the median distance between pairs of rows of ``probs`` (n, K), for K ≥ 3.

    ``distance`` is "tv", the total variation, or "l2"; ``diagonal`` includes pairs of a row and
    itself and both orders of others. If the median is 0, the mean distance over pairs is returned,
    0 if all rows are equal. A sample of 10 000 rows stands for more.
    """
    n = len(probs)
    if n > MEDIAN_ROWS:
        ordered = np.lexsort(probs.T[::-1])
        probs = probs[ordered[np.arange(MEDIAN_ROWS) * n // MEDIAN_ROWS]]
    columns = np.ascontiguousarray(probs.T)
    manhattan = distance == "tv"

    @cache
    def digits(prefix: int, shift: int) -> IntArray:
        counts = np.zeros(2**16, dtype=np.int64)
        _digits(columns, manhattan, prefix, shift, counts)
        return counts

    def kth(rank: int, copies: int, zeros: int) -> float:
        # Radix selection: distances are ≥ 0, so that their bits are ordered as they are.
        prefix = 0
        for shift in (48, 32, 16, 0):
            cumulative = np.cumsum(copies * digits(prefix, shift)) + (zeros if prefix == 0 else 0)
            digit = int(np.searchsorted(cumulative, rank, side="right"))
            rank -= int(cumulative[digit - 1]) if digit else 0
            prefix = prefix << 16 | digit
        return float(np.int64(prefix).view(np.float64))

    def mean() -> float:
        return _total_distance(columns, manhattan) / max(1, len(probs) * (len(probs) - 1) // 2)

    return _middle(kth, len(probs), diagonal) or mean()


def median_on_line(x: FloatArray, diagonal: bool) -> float:
    """Return the median |x_i − x_j| over pairs of increasing numbers ``x`` (n,).

    ``diagonal`` includes pairs of a number and itself and both orders of others. If the median is
    0, the mean over pairs i < j is returned, 0 if all numbers are equal. O(n) for each of at most
    64 bisections.
    """

    def kth(rank: int, copies: int, zeros: int) -> float:
        # The smallest t with more than ``rank`` distances ≤ t, by bisection over its bits.
        low, high = 0, int((x[-1] - x[0]).view(np.int64))
        while low < high:
            middle = (low + high) // 2
            t = np.int64(middle).view(np.float64)
            if zeros + copies * _pairs_within(x, t) > rank:
                high = middle
            else:
                low = middle + 1
        return float(np.int64(low).view(np.float64))

    def mean() -> float:
        n = x.size
        return float((2.0 * np.arange(n) - (n - 1)) @ x) / (n * (n - 1) // 2)

    return 0.0 if x[0] == x[-1] else _middle(kth, x.size, diagonal) or mean()


def _middle(kth: Callable[[int, int, int], float], n: int, diagonal: bool) -> float:
    """Return the median distance over pairs of n values; 0 if there is no pair.

    ``kth(rank, copies, zeros)`` returns the distance of a rank, from 0, among pairs i < j, each
    counted ``copies`` times, with ``zeros`` extra distances of 0. With ``diagonal`` every pair
    counts twice, and each value once with itself.
    """
    copies, zeros = (2, n) if diagonal else (1, 0)
    total = zeros + copies * (n * (n - 1) // 2)
    if total == 0:
        return 0.0
    low = kth((total - 1) // 2, copies, zeros)
    return low if total % 2 else 0.5 * (low + kth(total // 2, copies, zeros))


@kernel
def _digits(columns, manhattan, prefix, shift, counts_out):  # type: ignore[no-untyped-def]
    # O(n² K): how often each value of 16 bits occurs among the distances that begin with prefix.
    # In pieces that stay in the nearest cache.
    n_classes, n = columns.shape
    line = np.empty(512)
    bits = line.view(np.int64)
    for start in range(0, n, line.size):
        for i in range(start + 1, n):
            size = min(line.size, i - start)
            line[:size] = 0.0
            for k in range(n_classes):
                x, others = columns[k, i], columns[k, start : start + size]
                if manhattan:
                    for j in range(size):
                        line[j] += abs(x - others[j])
                else:
                    for j in range(size):
                        line[j] += (x - others[j]) ** 2
            for j in range(size):
                line[j] = 0.5 * line[j] if manhattan else np.sqrt(line[j])
            for j in range(size):
                if bits[j] >> shift >> 16 == prefix:
                    counts_out[bits[j] >> shift & 65535] += 1


@kernel
def _total_distance(columns, manhattan):  # type: ignore[no-untyped-def]
    # O(n² K).
    n_classes, n = columns.shape
    total = 0.0
    for i in range(n):
        for j in range(i):
            d = 0.0
            for k in range(n_classes):
                x = columns[k, i] - columns[k, j]
                d += 0.5 * abs(x) if manhattan else x * x
            total += d if manhattan else np.sqrt(d)
    return total


@kernel
def _pairs_within(x, t):  # type: ignore[no-untyped-def]
    # O(n): how many pairs of increasing numbers are at most t apart.
    first, count = 0, 0
    for j in range(x.size):
        while x[j] - x[first] > t:
            first += 1
        count += j - first
    return count
