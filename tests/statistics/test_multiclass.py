"""Class-wise errors and RMSCE: twins, published values, invariants, validity."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference as ref
import reference_families as slow
from conftest import seen

import caltest as ct
from caltest import StatisticError, presets
from caltest.problem import Flips
from caltest.simulate import LabelSampler
from caltest.statistics import ACE, RMSCE, SCE, TACE, ClasswiseECE
from caltest.statistics.base import problem_of


def nixon(metric, bins, threshold=0.01):
    """The authors' code."""
    return presets.nixon2019(metric, bins, threshold=threshold, variant="nixon").statistic


STATISTICS = [
    ClasswiseECE(),
    ClasswiseECE(ct.QuantileBins(5), aggregate="max"),
    ClasswiseECE(5, threshold=0.05),
    SCE(5),
    nixon("sce", 5),
    ACE(4),
    nixon("ace", 4),
    TACE(4),
    nixon("tace", 3, 0.2),
]


def problem(seed, n, k, style="plain"):
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(k, 0.5), n)
    if style == "ties":
        probs = generator.multinomial(10, probs) / 10
    elif style == "corners":
        probs[: n // 3] = np.eye(k)[generator.integers(0, k, n // 3)]
    return probs, generator.integers(0, k, n)


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


# --- slow twins ----------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("style", ["plain", "ties", "corners"])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_against_slow_twin(statistic, k, style):
    for n in (1, 3, 47):
        probs, labels = problem(n, n, k, style)
        value = expected(statistic, probs, labels)
        assert statistic(seen(probs, labels)) == pytest.approx(value, abs=1e-12)
        fixed = statistic.prepare(problem_of(seen(probs)))
        assert fixed.batch(labels[None])[0] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_a_hundred_classes_against_slow_twin(statistic):
    probs, labels = problem(5, 60, 100)
    assert statistic(probs, labels) == pytest.approx(expected(statistic, probs, labels), abs=1e-12)


@pytest.mark.parametrize("m", [1, 4, 15])
def test_rmsce_against_slow_twin(m):
    probs, labels = problem(7, 50, 2)
    p, y = probs[:, 1], labels
    total = sum(
        (sum(y[i] - p[i] for i in rows)) ** 2 / len(rows)
        for rows in ref.as_groups(ref.quantile_cells(p, m))
    )
    bins = ct.QuantileBins(m)
    assert RMSCE(bins)(p, y) == pytest.approx(math.sqrt(total / 50), abs=1e-12)
    half = ct.ECE(bins, distance="sqeuclidean")(p, y) / 2
    assert RMSCE(bins)(p, y) ** 2 == pytest.approx(half, abs=1e-13)


# --- published values ----------------------------------------------------------------------------

TUTORIALS = {
    "10x5": (ref.TUTORIAL_MULTI, ref.TUTORIAL_MULTI_LABELS),
    "9x2": (ref.TUTORIAL_BINARY, ref.TUTORIAL_BINARY_LABELS),
}


@pytest.mark.parametrize(
    ("data", "statistic", "value"),
    [
        ("10x5", nixon("sce", 5), 0.1676),
        ("10x5", nixon("ace", 5), 0.176),
        ("10x5", nixon("ace", 3), 0.1296),
        ("10x5", nixon("tace", 3, 0.01), 0.1343555556),
        ("10x5", nixon("tace", 3, 0.1), 0.2001523810),
        ("9x2", nixon("sce", 5), 0.3222222222),
        ("9x2", SCE(5), 0.3222222222),
        ("9x2", nixon("ace", 5), 0.2777777778),
        ("9x2", nixon("ace", 3), 0.1422222222),
        ("9x2", ACE(3), 0.1422222222),  # nine rows, no ties: all rules agree
        ("9x2", nixon("tace", 3, 0.1), 0.1973611111),
    ],
    ids=repr,
)
def test_values_of_the_authors_code(data, statistic, value):
    assert statistic(*TUTORIALS[data]) == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize(("data", "value"), [("10x5", 0.1750095236), ("9x2", 0.2364083097)])
def test_values_of_rmsce(data, value):
    def adaptive(probs):
        p = probs[:, 0].tolist()
        edges = slow.nixon_edges(p, 5)
        return np.array([slow.digit(x, edges) for x in p])

    induced = ct.TopK(1)(ct.Predictions.of(*TUTORIALS[data]))
    assert RMSCE(adaptive)(induced) == pytest.approx(value, abs=1e-10)


def test_unit_tests_of_the_authors():
    probs = np.array(
        [
            [0.42610548, 0.41748077, 0.15641374], [0.44766216, 0.47721294, 0.0751249],
            [0.1862702, 0.15139402, 0.66233578], [0.05753544, 0.8561222, 0.08634236],
            [0.18697925, 0.29836466, 0.51465609],
        ]
    )  # fmt: skip
    labels = np.array([0, 1, 2, 1, 2])
    # Their general error of the largest probability, 30 bins.
    induced = ct.TopK(1)(ct.Predictions.of(probs, labels))
    assert ct.ECE(30)(induced) == pytest.approx(0.412713502, abs=1e-8)
    p, y = np.array([0.91, 0.32, 0.66, 0.67, 0.57, 0.98, 0.41, 0.19]), [1, 0, 1, 1, 0, 1, 0, 0]
    induced = ct.TopK(1)(ct.Predictions.of(p, y))
    assert ct.ECE(30)(induced) == pytest.approx(0.18125, abs=1e-12)


def test_all_rules_agree_without_ties_when_the_ranges_are_even():
    probs, labels = problem(8, 60, 4)
    value = ACE(6)(probs, labels)
    assert nixon("ace", 6)(probs, labels) == pytest.approx(value, abs=1e-12)
    assert ClasswiseECE(ct.QuantileBins(6))(probs, labels) == pytest.approx(value, abs=1e-12)
    by_rank = []
    for k in range(4):
        parts = np.array_split(np.argsort(probs[:, k]), 6)
        by_rank.append(np.mean([abs((labels[r] == k).mean() - probs[r, k].mean()) for r in parts]))
    assert np.mean(by_rank) == pytest.approx(value, abs=1e-12)


def test_sce_is_classwise_ece_and_the_mean_over_one_vs_rest():
    probs, labels = problem(9, 70, 5, "ties")
    lenses = [ct.OneVsRest(k)(ct.Predictions.of(probs, labels)) for k in range(5)]
    by_class = [ct.ECE(10)(induced) for induced in lenses]
    assert SCE(10)(probs, labels) == pytest.approx(np.mean(by_class), abs=1e-12)
    assert ClasswiseECE(10)(probs, labels) == pytest.approx(np.mean(by_class), abs=1e-12)
    assert ClasswiseECE(10, aggregate="max")(probs, labels) == pytest.approx(max(by_class))


def test_cases_by_hand():
    certain = np.array([[1.0, 0.0], [0.0, 1.0]])
    for statistic in STATISTICS:
        assert statistic(certain, np.array([0, 1])) == 0.0
        assert statistic(certain, np.array([1, 0])) == pytest.approx(1.0)
    # A class with nothing above the threshold counts 0, and K still divides.
    probs = np.array([[0.5, 0.495, 0.005]] * 2)
    assert TACE(1)(probs, np.array([0, 0])) == pytest.approx((0.5 + 0.495 + 0.0) / 3)


def test_pooled_ranges_keep_their_weight():
    # Ranges of one: three end at 0.2 and pool, the fourth is 0.8: 3/4 and 1/4, as the formula has
    # it when all three show the same gap.
    p, y = np.array([0.2, 0.2, 0.2, 0.8]), np.array([0, 0, 0, 0])
    assert ACE(4)(p, y) == pytest.approx(0.75 * 0.2 + 0.25 * 0.8)
    assert SCE(2)(p, y) == pytest.approx(0.75 * 0.2 + 0.25 * 0.8)


# --- invariants ----------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("style", ["plain", "ties", "corners"])
def test_order_of_rows_and_classes_does_not_matter(statistic, style):
    probs, labels = problem(10, 80, 6, style)
    value, generator = statistic(probs, labels), np.random.default_rng(2)
    rows, classes = generator.permutation(80), generator.permutation(6)
    assert statistic(probs[rows], labels[rows]) == pytest.approx(value, abs=1e-12)
    relabelled = np.argsort(classes)[labels]
    assert statistic(probs[:, classes], relabelled) == pytest.approx(value, abs=1e-12)


# --- validity and power --------------------------------------------------------------------------


def test_classwise_errors_see_what_the_top_label_does_not():
    generator = np.random.default_rng(4)
    probs = generator.dirichlet(np.ones(10), 400)
    labels = LabelSampler.of(probs)(generator.random(400))
    labels[generator.random(400) < 0.15] = 0
    data = ct.Predictions.of(probs, labels)
    for statistic in (SCE(), ACE(), TACE(), ClasswiseECE(aggregate="max")):
        result = ct.calibration_test(
            data, None, statistic, lens=ct.Canonical(), n_resamples=199, rng=1
        )
        assert result.pvalue == 0.005, repr(statistic)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SCE(0), "a whole number ≥ 1"),
        (lambda: ACE(2.5), "bins must be a whole number"),
        (lambda: TACE(15, threshold=1.0), r"threshold must lie in \[0, 1\)"),
        (lambda: presets.nixon2019(variant="code"), "one of paper, nixon"),
        (lambda: ClasswiseECE(aggregate="sum"), "'mean' or 'max'"),
        (lambda: ClasswiseECE("many"), "number of bins"),
        (lambda: RMSCE(None), "number of bins"),
        (lambda: RMSCE(15), r"QuantileBins\(15\) for equal mass"),
        (lambda: RMSCE()(np.full((2, 3), 1 / 3), np.array([0, 1])), "for two classes"),
        (lambda: ClasswiseECE(lambda rows: rows[:, 0])(*problem(1, 5, 3)), "one integer per row"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(StatisticError, match=message):
        make()


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


def test_sparse_classes_are_noticed():
    data = seen(*problem(16, 60, 3))
    assert ClasswiseECE(20).prepare(problem_of(data)).rows_per_cell < 20
    assert ClasswiseECE(1).prepare(problem_of(data)).rows_per_cell == 60.0
    with pytest.warns(ct.SparseBinsWarning):
        ct.calibration_test(
            data, None, SCE(20), lens=ct.Canonical(), null=ct.ConsistencyResampling(),
            n_resamples=9, rng=1,
        )  # fmt: skip
