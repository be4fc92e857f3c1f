"""Class-wise errors and RMSCE: twins, published values, invariants, validity."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import reference as ref
import reference_families as slow
import scipy.stats

import caltest as ct
from caltest import StatisticError
from caltest.exact import enumerated_null
from caltest.resampling import LabelSampler
from caltest.statistics import multiclass
from caltest.statistics.multiclass import ACE, RMSCE, SCE, TACE, ClasswiseECE

STATISTICS = [
    ClasswiseECE(),
    ClasswiseECE(ct.QuantileBins(5), aggregate="max"),
    ClasswiseECE(5, threshold=0.05),
    SCE(5),
    SCE(5, variant="nixon"),
    ACE(4),
    ACE(4, variant="nixon"),
    TACE(4),
    TACE(3, threshold=0.2, variant="nixon"),
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
    name, variant = type(statistic).__name__, getattr(statistic, "variant", "paper")
    m, threshold = getattr(statistic, "m", 15), getattr(statistic, "threshold", 0.0)

    def error(p, y):
        if name == "ClasswiseECE" and isinstance(statistic.bins, ct.QuantileBins):
            return slow.gaps_by_count(p, y, ref.quantile_cells(p, statistic.bins.m))
        if name == "ClasswiseECE":
            return slow.gaps_by_count(p, y, ref.uniform_cells(p, statistic.bins.m))
        if name == "SCE" and variant == "nixon":
            edges = np.linspace(0, 1, m + 1)[1:]
            return slow.gaps_by_count(p, y, [slow.digit(x, edges) for x in p])
        if name == "SCE":
            return slow.gaps_by_count(p, y, ref.uniform_cells(p, m))
        if variant == "nixon":
            edges = slow.nixon_edges(p, m)
            return slow.gaps_by_count(p, y, [slow.digit(x, edges) for x in p])
        return slow.range_error(p, y, m)

    values = slow.by_class(probs, labels, threshold, error)
    return max(values) if getattr(statistic, "aggregate", "mean") == "max" else np.mean(values)


# --- slow twins ----------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("style", ["plain", "ties", "corners"])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_against_slow_twin(statistic, k, style):
    for n in (1, 3, 47):
        probs, labels = problem(n, n, k, style)
        assert statistic(probs, labels) == pytest.approx(
            expected(statistic, probs, labels), abs=1e-12
        )


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_a_hundred_classes_against_slow_twin(statistic):
    probs, labels = problem(5, 60, 100)
    assert statistic(probs, labels) == pytest.approx(expected(statistic, probs, labels), abs=1e-12)


def test_interpreted_as_compiled(monkeypatch):
    probs, labels = problem(6, 40, 5)
    compiled = TACE(3)(probs, labels)
    monkeypatch.setattr(multiclass, "_count", multiclass._count.py_func)
    assert TACE(3)(probs, labels) == compiled


@pytest.mark.parametrize("m", [1, 4, 15])
def test_rmsce_against_slow_twin(m):
    probs, labels = problem(7, 50, 2)
    p, y = probs[:, 1], labels
    total = sum(
        (sum(y[i] - p[i] for i in rows)) ** 2 / len(rows)
        for rows in ref.as_groups(ref.quantile_cells(p, m))
    )
    assert RMSCE(m)(p, y) == pytest.approx(math.sqrt(total / 50), abs=1e-12)
    half = ct.ECE(ct.QuantileBins(m), "sqeuclidean")(p, y) / 2
    assert RMSCE(m)(p, y) ** 2 == pytest.approx(half, abs=1e-13)


# --- published values ----------------------------------------------------------------------------

TUTORIALS = {
    "10x5": (ref.TUTORIAL_MULTI, ref.TUTORIAL_MULTI_LABELS),
    "9x2": (ref.TUTORIAL_BINARY, ref.TUTORIAL_BINARY_LABELS),
}


@pytest.mark.parametrize(
    ("data", "statistic", "value"),
    [
        ("10x5", SCE(5, "nixon"), 0.1676),
        ("10x5", ACE(5, "nixon"), 0.176),
        ("10x5", ACE(3, "nixon"), 0.1296),
        ("10x5", TACE(3, 0.01, "nixon"), 0.1343555556),
        ("10x5", TACE(3, 0.1, "nixon"), 0.2001523810),
        ("9x2", SCE(5, "nixon"), 0.3222222222),
        ("9x2", SCE(5), 0.3222222222),
        ("9x2", ACE(5, "nixon"), 0.2777777778),
        ("9x2", ACE(3, "nixon"), 0.1422222222),
        ("9x2", ACE(3), 0.1422222222),  # nine rows, no ties: all rules agree
        ("9x2", TACE(3, 0.1, "nixon"), 0.1973611111),
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

    seen = ct.TopK(1)(ct.Predictions.of(*TUTORIALS[data]))
    assert RMSCE(adaptive)(seen.probs, seen.labels) == pytest.approx(value, abs=1e-10)


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
    seen = ct.TopK(1)(ct.Predictions.of(probs, labels))
    assert ct.ECE(30)(seen.probs, seen.labels) == pytest.approx(0.412713502, abs=1e-8)
    p, y = np.array([0.91, 0.32, 0.66, 0.67, 0.57, 0.98, 0.41, 0.19]), [1, 0, 1, 1, 0, 1, 0, 0]
    seen = ct.TopK(1)(ct.Predictions.of(p, y))
    assert ct.ECE(30)(seen.probs, seen.labels) == pytest.approx(0.18125, abs=1e-12)


def test_all_rules_agree_without_ties_when_the_ranges_are_even():
    probs, labels = problem(8, 60, 4)
    value = ACE(6)(probs, labels)
    assert ACE(6, variant="nixon")(probs, labels) == pytest.approx(value, abs=1e-12)
    assert ClasswiseECE(ct.QuantileBins(6))(probs, labels) == pytest.approx(value, abs=1e-12)
    by_rank = []
    for k in range(4):
        parts = np.array_split(np.argsort(probs[:, k]), 6)
        by_rank.append(np.mean([abs((labels[r] == k).mean() - probs[r, k].mean()) for r in parts]))
    assert np.mean(by_rank) == pytest.approx(value, abs=1e-12)


def test_sce_is_classwise_ece_and_the_mean_over_one_vs_rest():
    probs, labels = problem(9, 70, 5, "ties")
    lenses = [ct.OneVsRest(k)(ct.Predictions.of(probs, labels)) for k in range(5)]
    by_class = [ct.ECE(10)(seen.probs, seen.labels) for seen in lenses]
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


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_fixed_predictions_can_be_pickled_and_called_again(statistic):
    probs, labels = problem(11, 30, 3)
    fixed = pickle.loads(pickle.dumps(statistic.given(probs)))
    assert fixed(labels) == statistic(probs, labels)
    fixed(np.zeros(30, dtype=np.int64))
    assert fixed(labels) == statistic(probs, labels)


def test_large_arrays_of_labels_of_any_kind():
    probs, labels = problem(12, 30, 3)
    assert SCE(5)(probs.tolist(), labels.tolist()) == SCE(5)(probs, labels.astype(np.int32))


# --- validity and power --------------------------------------------------------------------------


def test_redraws_of_rmsce_follow_its_law():
    probs, labels = problem(13, 9, 2)
    data = ct.Predictions.of(probs, labels)
    law = enumerated_null(RMSCE(3).given(probs).evaluate, probs)
    result = ct.calibration_test(
        data, None, RMSCE(3), lens=ct.Canonical(), null=ct.RedrawLabels(), rng=1, n_resamples=4999
    )
    assert result.null_mean == pytest.approx(law.mean(), abs=4 * law.std() / math.sqrt(4999))
    assert result.pvalue == pytest.approx(
        law.sf(result.estimate), abs=5 * result.pvalue_error + 1e-3
    )
    odd = RMSCE(lambda rows: (rows[:, 0] > 0.4).astype(int))
    assert odd.given(probs)(labels) == pytest.approx(odd.given(probs).evaluate(labels), abs=1e-12)


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_size_with_redrawn_labels(statistic):
    probs, _ = problem(14, 40, 4)
    fixed, draw = statistic.given(probs), LabelSampler.of(probs)
    generator = np.random.default_rng(3)
    values = np.array([fixed(draw(generator.random(40))) for _ in range(400 * 20)]).reshape(400, 20)
    rejected = int(((values[:, 1:] >= values[:, :1] - 1e-12).sum(axis=1) == 0).sum())
    low, high = scipy.stats.binom.ppf([1e-5, 1 - 1e-5], 400, 0.05)
    assert rejected <= high
    assert rejected >= low - 10  # a discrete statistic may reject less


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
        (lambda: SCE(0), "m must be a whole number"),
        (lambda: ACE(2.5), "m must be a whole number"),
        (lambda: TACE(15, threshold=1.0), r"threshold must lie in \[0, 1\)"),
        (lambda: ACE(15, variant="code"), "'paper' or 'nixon'"),
        (lambda: ClasswiseECE(aggregate="sum"), "'mean' or 'max'"),
        (lambda: ClasswiseECE("many"), "number of bins"),
        (lambda: RMSCE(None), "number of bins"),
        (lambda: RMSCE()(np.full((2, 3), 1 / 3), np.array([0, 1])), "for two classes"),
        (lambda: ClasswiseECE(lambda rows: rows[:, 0])(*problem(1, 5, 3)), "one integer per row"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(StatisticError, match=message):
        make()


def test_they_print_as_they_are_written():
    assert [repr(s) for s in STATISTICS] == [
        "ClasswiseECE(UniformBins(15))",
        "ClasswiseECE(QuantileBins(5), aggregate='max')",
        "ClasswiseECE(UniformBins(5), threshold=0.05)",
        "SCE(5)",
        "SCE(5, variant='nixon')",
        "ACE(4)",
        "ACE(4, variant='nixon')",
        "TACE(4)",
        "TACE(3, threshold=0.2, variant='nixon')",
    ]
    assert repr(RMSCE(5)) == "RMSCE(QuantileBins(5))"
