"""Class-wise errors and RMSCE: twins, published values, invariants, validity."""

import numpy as np
import pytest
from conftest import problem, seen
from test_published import nixon
from twins import basic as ref
from twins import families as slow

import caltest as ct
from caltest.statistics import ACE, SCE, TACE, ClasswiseECE, Flips
from caltest.statistics.prepared import problem_of

STATISTICS = [
    ClasswiseECE(), ClasswiseECE(ct.QuantileBins(5), aggregate="max"),
    ClasswiseECE(5, threshold=0.05), SCE(5), nixon("sce", 5), ACE(4), nixon("ace", 4), TACE(4),
    nixon("tace", 3, 0.2),
]  # fmt: skip


def expected(statistic, probs, labels):
    def error(p, y):
        if isinstance(statistic, ACE):
            return slow.range_error(p, y, statistic.bins)
        bins = statistic.bins
        if isinstance(bins, ct.QuantileBins):
            return slow.gaps_by_count(p, y, ref.quantile_cells(p, bins.n_bins))
        if isinstance(bins, ct.UniformBins):
            return slow.gaps_by_count(p, y, ref.uniform_cells(p, bins.n_bins))
        if isinstance(bins, ct.EdgeBins):  # the authors' static bins
            edges = np.linspace(0, 1, len(bins.edges) + 1)[1:]
        else:
            edges = slow.nixon_edges(p, bins.n_bins)
        return slow.gaps_by_count(p, y, [slow.digit(x, edges) for x in p])

    values = slow.by_class(probs, labels, statistic.threshold, error)
    largest = isinstance(statistic, ClasswiseECE) and statistic.aggregate == "max"
    return max(values) if largest else np.mean(values)


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("style", ["plain", "decimals", "corners"])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_against_slow_twin(statistic, k, style):
    for n in (1, 3, 47):
        probs, labels = problem(n, n, k, style)
        value = expected(statistic, probs, labels)
        assert statistic(seen(probs, labels)) == pytest.approx(value, abs=1e-12)
        fixed = statistic.prepare(problem_of(seen(probs)))
        assert fixed.batch(labels[None])[0] == pytest.approx(value, abs=1e-12)


def test_pooled_ranges_keep_their_weight():
    # Ranges of one: three end at 0.2 and pool, the fourth is 0.8: 3/4 and 1/4, as the formula has
    # it when all three show the same gap.
    p, y = np.array([0.2, 0.2, 0.2, 0.8]), np.array([0, 0, 0, 0])
    assert [ACE(4)(p, y), SCE(2)(p, y)] == pytest.approx([0.75 * 0.2 + 0.25 * 0.8] * 2)


def test_moved_residuals_are_classes_of_gaps():
    probs, labels = problem(15, 30, 4)
    data = seen(probs, labels)
    fixed = TACE(3, threshold=0.1).prepare(problem_of(data))
    weights = np.random.default_rng(1).normal(size=(2, 30))
    for value, w in zip(fixed.values(Flips(weights)), weights, strict=True):
        gaps = np.zeros(fixed.shares.size + 1)
        for i in range(30):
            for k in range(4):
                gaps[fixed.cell[i, k]] += w[i] * data.residuals[i, k]
        errors = np.abs(gaps[:-1]) * fixed.shares
        assert value == pytest.approx(errors.sum() / 4, abs=1e-13)
