"""Statistics against their slow twins: values, batches, moved residuals and enumerated laws."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from conftest import STATISTICS, problem, seen
from twins import Row, event
from twins import basic as ref
from twins import curves as curves
from twins import families as families

import caltest as ct
from caltest.statistics import Flips
from caltest.statistics.prepared import problem_of

STYLES = pytest.mark.parametrize("style", ["plain", "decimals", "ties", "corners"])


@dataclass(frozen=True)
class Twin:
    """A statistic, and its value as computed from the probabilities and labels by loops."""

    statistic: Any
    twin: Callable[..., float]
    classes: tuple[int, ...] = (2,)
    least: int = 1
    #: Whether the twin takes multipliers of the residuals as its third argument.
    moved: bool = False

    def __str__(self) -> str:
        return repr(self.statistic)


def walk(which, scaled=False):
    def value(p, y, signs=None):
        return curves.cumulative(p, y, signs)[which] / (curves.walk_sigma(p) if scaled else 1.0)

    return event(value)


def mean_score(probs, labels, name):
    return np.mean([curves.row_score(r, y, name) for r, y in zip(probs, labels, strict=True)])


def score_gap(name):
    return lambda probs, labels, signs=None: curves.score_gap(probs, labels, name, signs)


def hosmer_lemeshow(cells, variance="binomial"):
    return event(lambda p, y, signs=None: families.hosmer_lemeshow(p, y, cells(p), variance, signs))


def root_mean_square(p, y, m):
    cells = ref.as_groups(ref.quantile_cells(p, m))
    return math.sqrt(sum(sum(y[i] - p[i] for i in g) ** 2 / len(g) for g in cells) / len(p))


def debiased(bins):
    def value(probs, labels, signs=None):
        signs = np.ones(len(probs)) if signs is None else signs
        return ref.debiased(signs[:, None] * ref.residuals(probs, labels), bins(probs))

    return value


def multiscale(probs, labels, signs=None):
    """The largest T_m over its standard deviation, both from pairs of rows."""
    n, k = probs.shape
    signs, d = np.ones(n) if signs is None else signs, 1 if k == 2 else k
    covariances, values = [(np.diag(p) - np.outer(p, p))[:d, :d] for p in probs], []
    for m in 2 ** np.arange(1, int(np.log2(n)) + 1):
        smallest = max(1, -(-n // m))
        cells = ref.uniform_cells(probs, int(m)) if k == 2 else ref.tree_cells(probs, smallest)
        deviation = math.sqrt(families.debiased_variance(covariances, cells))
        if deviation > 1e-12:
            moved = signs[:, None] * ref.residuals(probs, labels)
            values.append(ref.debiased(moved, cells) / deviation)
    return max(values)


def lowess(summary, span):
    def value(p, y):
        return summary([abs(families.lowess_at(x, p, y, span) - x) for x in p])

    return event(value)


MANY, QUARTERS = (2, 3, 10), ct.QuantileBins(4)
quarters, fifths = partial(ref.quantile_cells, m=4), partial(ref.uniform_cells, m=5)
SUMMARIES = (ct.ICI, np.mean), (ct.E50, np.median), (ct.E90, partial(np.quantile, q=0.9))
TWINS: list[Twin | Row] = [
    *(row for row in STATISTICS if row.twin),
    Twin(ct.KolmogorovSmirnov(), walk(0), moved=True),
    Twin(ct.Kuiper(), walk(1), moved=True),
    Twin(ct.KolmogorovSmirnov(scaled=True), walk(0, True), least=9, moved=True),
    Twin(ct.Kuiper(scaled=True), walk(1, True), least=9, moved=True),
    Twin(ct.BrierScore(), partial(mean_score, name="brier"), (*MANY, 100)),
    Twin(ct.LogScore(), partial(mean_score, name="log"), (*MANY, 100)),
    Twin(ct.SphericalScore(), partial(mean_score, name="spherical"), (*MANY, 100)),
    Twin(ct.ScoreGap("brier"), score_gap("brier"), (*MANY, 100), 9, moved=True),
    Twin(ct.ScoreGap("log"), score_gap("log"), (*MANY, 100), 9, moved=True),
    Twin(ct.ScoreGap("spherical"), score_gap("spherical"), (*MANY, 100), 9, moved=True),
    Twin(ct.CORP("brier"), event(lambda p, y: curves.corp(p, y, "brier")[0])),
    Twin(ct.CORP("log"), event(lambda p, y: curves.corp(p, y, "log")[0])),
    Twin(ct.Sweep(), event(lambda p, y: families.sweep(p, y, 1)[0])),
    Twin(ct.Sweep(norm="l2"), event(lambda p, y: families.sweep(p, y, 2)[0])),
    Twin(ct.CalibrationInTheLarge(), event(families.in_the_large), least=9, moved=True),
    Twin(ct.CoxScore(), event(families.cox_score), least=40, moved=True),
    Twin(ct.HosmerLemeshow(QUARTERS), hosmer_lemeshow(quarters), least=40),
    Twin(
        ct.HosmerLemeshow(QUARTERS, variance="exact"),
        hosmer_lemeshow(quarters, "exact"),
        least=40,
        moved=True,
    ),
    Twin(ct.HosmerLemeshow(ct.UniformBins(5)), hosmer_lemeshow(fifths), least=40),
    *(Twin(ct.RMSCE(ct.QuantileBins(m)), event(root_mean_square, m)) for m in (1, 4, 15)),
    Twin(ct.DebiasedL2(3), debiased(ct.UniformBins(3)), MANY, moved=True),
    Twin(ct.DebiasedL2(ct.VarianceTree(9)), debiased(ct.VarianceTree(9)), MANY, moved=True),
    Twin(ct.MultiScale(), multiscale, MANY, 9, moved=True),
    *(
        Twin(kind(span=span, delta=0.0), lowess(summary, span), least=9)
        for kind, summary in (*SUMMARIES, (ct.Emax, np.max))
        for span in (2 / 3, 0.3, 1.0)
    ),
]


@STYLES
@pytest.mark.parametrize("row", TWINS, ids=str)
def test_values_and_batches(row, style):
    close = {"rel": 1e-9, "abs": 1e-12 if row.least == 1 else 1e-10}
    for seed, n in enumerate((1, 2, 9, 40, 41)):
        for k in row.classes if n >= row.least else ():
            probs, labels = problem(seed, n, k, style)
            expected = pytest.approx(row.twin(probs, labels), **close)
            fixed = row.statistic.prepare(problem_of(seen(probs)))
            assert row.statistic(seen(probs, labels)) == expected == fixed(labels)
            assert fixed.batch(np.tile(labels, (2, 1))) == pytest.approx([expected.expected] * 2)


@STYLES
@pytest.mark.parametrize("row", [row for row in TWINS if row.moved], ids=str)
@pytest.mark.slow
def test_moved_residuals(row, style):
    for k in row.classes:
        probs, labels = problem(k, 40, k, style)
        labels = np.where(probs[np.arange(40), labels] > 0, labels, probs.argmax(axis=1))
        signs = np.random.default_rng(k).choice([-1.0, 1.0, 0.5, 2.0], (3, 40))
        signs[0] = 1.0
        fixed = row.statistic.prepare(problem_of(seen(probs, labels)))
        expected = [row.twin(probs, labels, s) for s in signs]
        np.testing.assert_allclose(fixed.values(Flips(signs)), expected, rtol=1e-9, atol=1e-10)


SMALL = {
    2: (ref.TUTORIAL_BINARY[:, ::-1], 1 - ref.TUTORIAL_BINARY_LABELS),
    3: (np.random.default_rng(2).dirichlet(np.full(3, 0.5), 6), np.array([0, 2, 1, 1, 0, 2])),
}
FEW = [row for row in TWINS if row.least < 40]
LAWS = [pytest.param(row, k, id=f"{row}-{k}") for row in FEW for k in SMALL if k in row.classes]


@pytest.mark.parametrize(("row", "k"), LAWS)
def test_laws_by_enumeration(row, k):
    probs, labels = SMALL[k]
    result = ct.calibration_test(seen(probs, labels), None, row.statistic)
    values, weights = ref.enumerated_law(lambda y: row.twin(probs, y), probs)
    fixed = row.statistic.prepare(problem_of(seen(probs)))
    gaps = np.abs(values - fixed.centre) if fixed.two_sided else values
    tail = ref.summary(gaps, weights, gaps[np.argmin(np.abs(values - result.estimate))])[0]
    assert result.null == "exact"
    low, high = result.pvalue_bracket
    assert low - 1e-9 <= tail <= high + 1e-9
    assert high - low <= 0.0101 * high + 1e-12
    moments = pytest.approx(ref.summary(values, weights, 0.0)[1:], abs=1e-9)
    assert (result.null_mean, result.null_std) == moments
    if fixed.null_mean is not None:
        assert fixed.null_mean == pytest.approx(result.null_mean, abs=1e-9)
