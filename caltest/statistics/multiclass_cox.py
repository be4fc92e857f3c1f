"""Cox's score test of the whole probability vector, and the class that is most wrong.

Both statistics are functions of two sums per class, of weighted residuals r = w (1{y = j} − p_j)
and of r log p_j. They are the scores at (a, b) = (0, 1) of the model
P(y = j) ∝ exp(a_j) p_j^b_j, which shifts and stretches the log-probabilities of every class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import one_of
from caltest.nulls.laws import chi_squared
from caltest.statistics.prepared import Prepared, SumStatistic
from caltest.statistics.problem import ABSENT, Cells, Outcomes, Problem, ResidualSums
from caltest.statistics.regression import (
    NO_VARIANCE,
    PROBABILITY_CLIP,
    CoxScore,
    ScaledGaps,
    refuse_certain,
)
from caltest.statistics.rows import Flips
from caltest.statistics.statistic import Statistic

#: Which parameters of the model may differ from (0, 1): the levels of all classes; these and one
#: exponent in common; the level and the exponent of every class.
CoxPart = Literal["level", "temperature", "vector"]


#: What is said of a class: (is it a slope, is the component positive).
COMPONENT_DIRECTIONS = {
    (False, True): "too low",
    (False, False): "too high",
    (True, True): "too timid",
    (True, False): "too extreme",
}


#: Σ p (1 − p) of a class below which the χ² law rejects calibrated models too often.
LEAST_EXPECTED = 5.0


#: Eigenvalues of the correlation matrix of the scores, as a share of the largest, that are 0.
RANK = 1e-10


@dataclass(frozen=True, repr=False)
class MulticlassCox(Statistic):
    """Rao's score test of a = 0, b = 1 in P(y = j) ∝ exp(a_j) p_j^b_j, for K classes.

    With the score u of the free parameters and its covariance V under calibration,

    S = u' V⁻ u,  u = (Σ_i w_i (1{y_i = j} − p_ij))_j and sums of w (1{y = j} − p_j) log p_j,

    where V⁻ is the Moore–Penrose inverse of the correlation matrix of the scores, rescaled. Nothing
    is fitted. ``null="asymptotic"`` is χ² with rank V degrees of freedom. It needs Σ p_j (1 − p_j)
    of at least 5 for every class that can occur, and warns otherwise: with rarer classes it
    rejected up to 0.17 of 1000 calibrated data sets at 0.05. Redrawn labels are valid always. For
    two classes the part "temperature" is :class:`CoxScore`. The model is the multinomial
    recalibration of Van Hoorde et al., Statistics in Medicine 33, 2014, with the exponents of
    vector scaling (Guo et al., ICML 2017).

    The usual lens is ``Canonical()``. StatisticError for two classes that a lens made of more, and
    where every prediction is 0 or 1. Probabilities are at least 1e-12 in logarithms. O(n K²) once,
    then O(n) for each set of labels.

    Parameters
    ----------
    part : {"temperature", "level", "vector"}, default "temperature"
        "level" frees a (K − 1 degrees of freedom): is every class as frequent as predicted?
        "temperature" frees one exponent in addition: are predictions too extreme, or not extreme
        enough? "vector" frees an exponent for every class (2K − 1 degrees of freedom; 3 for K = 2).

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]
    >>> round(MulticlassCox()(probs, [1, 0, 0]), 6)
    3.274747
    """

    part: CoxPart = "temperature"
    of_whole_vector: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("part", self.part, ("level", "temperature", "vector"))

    def prepare(self, problem: Problem) -> Prepared:
        if problem.n_classes == 2 and self.part == "temperature":
            return CoxScore().prepare(problem)
        scores = _scores_of(problem, self.part)
        refuse_certain(self, bool((np.diag(scores.covariance) > NO_VARIANCE * problem.n).any()))
        if problem.n_classes == 2 and self.part == "level":
            return ScaledGaps(
                problem, scores.covariance[0], 2,
                cells=Cells.whole(problem), null_mean=1.0, min_surprises=4.0,
                laws={"asymptotic": partial(chi_squared, 1)},
            )  # fmt: skip
        root, df = whitening(scores.covariance)
        return QuadraticForm(
            problem, root, scores.logits,
            cells=Cells.whole(problem), scores=scores.tables, observed_scores=scores.observed,
            null_mean=float(df), min_surprises=4.0, law_caveat=_rare_class(problem),
            laws={"asymptotic": partial(chi_squared, df)}, remark=scores.remark,
        )  # fmt: skip


@dataclass(frozen=True, repr=False)
class WorstClass(Statistic):
    """The largest error of a class in standard deviations: of its level, or of its slope.

    With S_j = Σ_i w_i (1{y_i = j} − p_ij), T_j = Σ_i w_i (1{y_i = j} − p_ij) log p_ij and their
    covariance under calibration,

    max_j max(|a_j|, |b_j|),  a_j = S_j / sd S_j,  b_j = (T_j − β_j S_j) / sd(T_j − β_j S_j),

    with β_j = Cov(S_j, T_j) / Var S_j. a > 0: the probability of class j is too low; a < 0: too
    high; b > 0: too timid, closer to its mean than it should be; b < 0: too extreme. Classes are
    not made uncorrelated, since that would mix their names. Labels are redrawn; with the largest
    component as the statistic, the p-values of single components are adjusted for all of them
    (single-step max-T, Westfall & Young 1993). :func:`caltest.worst_class` gives these.

    The usual lens is ``Canonical()``. StatisticError for two classes that a lens made of more, and
    where every prediction is 0 or 1. Probabilities are at least 1e-12 in logarithms. O(n K²) once,
    then O(n) for each set of labels.

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]
    >>> round(WorstClass()(probs, [1, 0, 0]), 6)
    2.143922
    """

    of_whole_vector: ClassVar[bool] = True

    def prepare(self, problem: Problem) -> LargestComponent:
        scores = _scores_of(problem, "vector")
        basis = standardised(scores.covariance, problem.d, NO_VARIANCE * problem.n)
        refuse_certain(self, bool(basis.any()))
        return LargestComponent(
            problem, basis, scores.logits,
            cells=Cells.whole(problem), scores=scores.tables, observed_scores=scores.observed,
            min_surprises=4.0, remark=scores.remark,
        )  # fmt: skip


# ------------------------------------------------------------------------------
# The statistics with the predictions fixed.


@dataclass(frozen=True, eq=False)
class ClassScores(SumStatistic):
    """Base class of standardised linear combinations of the residual sums of all classes.

    ``basis`` (R, d + K) has a row for each combination, and a column for each level, then for each
    slope. ``logits`` (n, K) are w log p where slopes of more than two classes are wanted: they are
    counted by label, which is faster than a score table for every class.
    """

    cells: Cells = field(kw_only=True, repr=False)
    basis: FloatArray = field(repr=False)
    logits: FloatArray | None = field(repr=False)

    def combinations(self, sums: ResidualSums) -> FloatArray:
        """Return the standardised combinations (B, R) of the sums of B sets of outcomes.

        ``sums`` hold the levels, residual sums of the d classes over all rows, in ``cells`` (B, 1,
        d), and the sums for slopes, Σ w r log p, in ``linear`` (B, T), if there are any. They are
        multiplied by ``basis``, so that its R rows are the columns here: each has mean 0 and
        variance 1 under calibration, or is 0 where it cannot vary.
        """
        levels = sums.cells[:, 0, :]
        linear = sums.linear if sums.linear.ndim == 2 else np.empty((len(levels), 0))
        return np.asarray(np.concatenate([levels, linear], axis=1) @ self.basis.T)

    @property
    def takes_counts(self) -> bool:
        return self.logits is None

    def values(self, outcomes: Outcomes, factor: float = 1.0) -> FloatArray:
        if self.logits is None:
            return super().values(outcomes, factor)
        levels = self.problem.sums(outcomes, self.cells).cells
        return self.of_sums(ResidualSums(levels, ABSENT, self._slopes(outcomes)).inflated(factor))

    def _slopes(self, outcomes: Outcomes) -> FloatArray:
        """Return Σ w r log p of every class, (B, K), for B sets of outcomes.

        These are label vectors (B, n), or multiples of the observed residuals.
        """
        assert self.logits is not None
        k = self.logits.shape[1]
        if isinstance(outcomes, Flips):
            hit = self.problem.labels[:, None] == np.arange(k)
            return np.asarray(outcomes.multipliers @ (self.logits * (hit - self.problem.probs)))
        first, flat = np.arange(0, self.logits.size, k), self.logits.ravel()
        counted = [np.bincount(y, np.take(flat, first + y), k) for y in outcomes]
        return np.array(counted) - (self.logits * self.problem.probs).sum(axis=0)

    @property
    def counted(self) -> tuple[Prepared, ...]:  # type: ignore[override]
        return super().counted if self.logits is None else ()


@dataclass(frozen=True, eq=False)
class QuadraticForm(ClassScores):
    """Score statistic of :class:`MulticlassCox` with fixed predictions.

    It is the squared length of the standardised scores, whose law tends to χ².
    """

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        return np.asarray(np.square(self.combinations(sums)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class LargestComponent(ClassScores):
    """Statistic of :class:`WorstClass` with fixed predictions: the largest |standardised score|."""

    def of_sums(self, sums: ResidualSums) -> FloatArray:
        return np.asarray(np.abs(self.combinations(sums)).max(axis=1))

    @property
    def components(self) -> FloatArray:
        """Standardised scores of the observed outcomes.

        Levels (d,), then slopes (K,), one array.
        """
        sums = self.problem.sums(self.problem.observed, self.cells, self.squares, None)
        linear = ABSENT if self.observed_scores is None else self.observed_scores[None, :]
        return self.combinations(ResidualSums(sums.cells, ABSENT, linear))[0]


# ------------------------------------------------------------------------------
# The scores of a problem, and their covariance if the model is calibrated.


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of Cox's model: d levels, followed by T further sums.

    ``covariance`` (d + T, d + T) is their covariance under calibration, ``tables`` their score
    tables and ``observed`` (T,) the further sums of the observed labels.
    """

    covariance: FloatArray
    tables: FloatArray | None = None
    observed: FloatArray | None = None
    logits: FloatArray | None = None
    remark: str = ""


def _scores_of(problem: Problem, part: CoxPart) -> _Scores:
    if problem.n_classes == 2:
        return _of_two(problem, part)
    p, z = problem.probs, np.log(np.maximum(problem.probs, PROBABILITY_CLIP))
    w = np.ones(len(p)) if problem.weight is None else problem.weight
    covariance = score_covariance(p, z, w**2, part)
    if part == "level":
        return _Scores(covariance)
    observed = observed_scores(p, z, problem.labels, w)
    if part == "temperature":
        return _Scores(covariance, z[None], observed[1].sum(keepdims=True))
    return _Scores(covariance, None, observed[1], w[:, None] * z)


def observed_scores(p: FloatArray, z: FloatArray, labels: IntArray, w: FloatArray) -> FloatArray:
    """Return Σ w (1{y = j} − p_j) and Σ w (1{y = j} − p_j) z_j of every class, shape (2, K).

    ``p`` and ``z`` (log-probabilities) have shape (n, K), ``labels`` and the weights ``w`` (n,).
    """
    k = p.shape[1]
    taken = w * np.take_along_axis(z, labels[:, None], axis=1)[:, 0]
    levels = np.bincount(labels, w, k) - w @ p
    return np.stack([levels, np.bincount(labels, taken, k) - w @ (p * z)])


def score_covariance(p: FloatArray, z: FloatArray, w: FloatArray, part: CoxPart) -> FloatArray:
    """Return the covariance of the scores of ``part`` for labels drawn from p; ``w`` are w².

    The shape is (K, K) for "level", (K + 1, K + 1) for "temperature", (2 K, 2 K) for all.
    """
    levels = _covariance(p, w)
    if part == "level":
        return levels
    if part == "temperature":
        away = z - (p * z).sum(axis=1)[:, None]
        across = w @ (p * away)
        variance = np.array([[w @ (p * away**2).sum(axis=1)]])
        return np.block([[levels, across[:, None]], [across[None, :], variance]])
    across = _covariance(p, w, right=z)
    return np.block([[levels, across], [across.T, _covariance(p, w, z, z)]])


def _covariance(
    p: FloatArray, w: FloatArray, left: FloatArray | None = None, right: FloatArray | None = None
) -> FloatArray:
    """Return Σ_i w_i Cov(f_j 1{y = j}, g_k 1{y = k}) over rows, (K, K).

    ``left`` f and ``right`` g are scores (n, K), 1 where None. p_j (1 − p_j) is computed as p_j
    times the sum of the other probabilities, so that confident predictions keep their digits.
    """
    f = p if left is None else left * p
    g = p if right is None else right * p
    both = f if right is None else f * right
    apart = -(f * w[:, None]).T @ g
    others = (both * w[:, None]).T @ p
    np.fill_diagonal(others, 0.0)
    np.fill_diagonal(apart, others.sum(axis=1))
    return np.asarray(apart)


def _of_two(problem: Problem, part: CoxPart) -> _Scores:
    """Return the scores for two classes: the level of the event, and the slopes of both classes.

    They need only sums that tallies keep as well. ``part`` says which of them are wanted.
    """
    level = float(problem.variance_of(Cells.whole(problem))[0])
    if part == "level":
        return _Scores(np.array([[level]]))
    cut = partial(np.maximum, PROBABILITY_CLIP)
    first, second = (
        problem.linear("log p", lambda p: np.column_stack([np.log(cut(p[:, 0])), 0.0 * p[:, 0]])),
        problem.linear("log p", lambda p: np.column_stack([0.0 * p[:, 1], np.log(cut(p[:, 1]))])),
    )
    slopes = [term.table[:, 0] - term.table[:, 1] for term in (first, second)]
    across = float(problem.variance @ (slopes[0] * slopes[1]))
    covariance = np.array(
        [
            [level, first.covariance, second.covariance],
            [first.covariance, first.variance, across],
            [second.covariance, across, second.variance],
        ]
    )
    tables, observed = np.stack([first.table, second.table]), [first.observed, second.observed]
    return _Scores(covariance, tables, np.array(observed), remark=first.remark)


def whitening(covariance: FloatArray) -> tuple[FloatArray, int]:
    """Return (R, rank) with R V Rᵀ = 1 on the range of the covariance V; R has shape (rank, T).

    The rank is taken from the correlation matrix, so that scores of different scales count equally.
    """
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = values > RANK * values.max()
    return (vectors[:, kept] / np.sqrt(values[kept])).T / scale, int(kept.sum())


def standardised(covariance: FloatArray, d: int, nothing: float) -> FloatArray:
    """Return the matrix that standardises d levels, and K slopes given the levels, (d + K, d + K).

    Rows are 0 where a component cannot vary.
    """
    basis = np.zeros_like(covariance)
    for row in range(len(covariance)):
        level = min(row, d - 1) if row < d else min(row - d, d - 1)
        variance = covariance[level, level]
        if variance <= nothing:
            continue
        if row < d:
            basis[row, row] = variance**-0.5
            continue
        along = covariance[row, level] / variance
        left = covariance[row, row] - along * covariance[row, level]
        if left > 1e-9 * covariance[row, row]:  # of equal predictions only rounding is left
            basis[row, row] = left**-0.5
            basis[row, level] = -along * left**-0.5
    return basis


def _rare_class(problem: Problem) -> str | None:
    """Return the reason why the χ² law is inaccurate, or None.

    The reason names the class with too few expected outcomes.
    """
    p = problem.probs
    w = np.ones(len(p)) if problem.mass is None else problem.mass
    each = p * (1.0 - p)
    sums, squares = w @ each, (w * (1.0 if problem.weight is None else problem.weight)) @ each
    expected = np.divide(sums**2, squares, out=np.full(sums.size, np.inf), where=squares > 0.0)
    j = int(expected.argmin())
    if expected[j] >= LEAST_EXPECTED:
        return None
    names = getattr(problem.data, "class_name", str)
    return (
        f"class {names(j)} hardly occurs (Σ p (1 − p) = {expected[j]:.2g}, it takes "
        f"{LEAST_EXPECTED:g} for every class)"
    )
