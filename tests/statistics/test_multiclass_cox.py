"""The score tests of the whole vector, the worst class, and the recalibration that is enough."""

import itertools

import numpy as np
import pytest
from conftest import sloped

import caltest as ct
from caltest.inference.joint import enough, fitted_probabilities
from caltest.statistics.prepared import prepare, problem_of

PARTS = ("level", "temperature", "vector")


def drawn(rng, q):
    above = rng.random((len(q), 1)) > q.cumsum(axis=1)[:, :-1]
    return above.sum(axis=1)


def reference():
    """The data of the fixed values: sharpened predictions of four classes, seed 20261127."""
    rng = np.random.default_rng(20261127)
    probs = rng.dirichlet([1, 2, 3, 1.0], 200)
    q = probs**0.7
    return probs, drawn(rng, q / q.sum(axis=1, keepdims=True))


def slow(probs, labels, part, weights=None):
    """u' V^- u from the model: scores and their covariance by loops over rows and labels."""
    n, k = probs.shape
    w = np.ones(n) if weights is None else weights
    z = np.log(np.clip(probs, 1e-12, 1.0))
    size = {"level": k, "temperature": k + 1, "vector": 2 * k}[part]
    u, v = np.zeros(size), np.zeros((size, size))

    def score(i, y):
        s = np.zeros(size)
        s[y] = 1.0
        if part == "temperature":
            s[k] = z[i, y]
        elif part == "vector":
            s[k + y] = z[i, y]
        return s

    for i in range(n):
        each = np.array([score(i, y) for y in range(k)])
        mean = probs[i] @ each
        u += w[i] * (each[labels[i]] - mean)
        v += w[i] ** 2 * ((each - mean).T * probs[i]) @ (each - mean)
    scale = np.sqrt(np.diag(v))
    scale[scale == 0.0] = 1.0
    inverse = np.linalg.pinv(v / np.outer(scale, scale), rcond=1e-10, hermitian=True)
    return (u / scale) @ inverse @ (u / scale)


@pytest.mark.parametrize(
    ("part", "estimate", "pvalue"),
    [  # computed once by other code, from the formulas of the docstring
        ("level", 6.588801580337275, 0.08622541269224686),
        ("temperature", 14.028975121250186, 0.0072031509867176826),
        ("vector", 26.350566570107375, 0.00043593829458023057),
    ],
)
def test_fixed_values_with_their_chi_squared_law(part, estimate, pvalue):
    found = ct.calibration_test(*reference(), ct.MulticlassCox(part), null="asymptotic")
    assert found.lens == "Canonical()"
    assert found.estimate == pytest.approx(estimate, rel=1e-8)
    assert found.pvalue == pytest.approx(pvalue, rel=1e-8)


def test_the_worst_class_of_the_fixed_data():
    # z computed once by other code, from the formulas of the docstring
    found = ct.worst_class(*reference(), rng=1)
    worst = found.components[0]
    assert (worst.name, worst.direction) == ("0", "too extreme")
    assert worst.z == pytest.approx(-3.0968103442823742, rel=1e-8)
    assert found.components[1].z == pytest.approx(-2.4681130198993033, rel=1e-8)
    assert found.components[2].z == pytest.approx(-2.261660041301225, rel=1e-8)
    assert found.test.estimate == pytest.approx(3.0968103442823742, rel=1e-8)
    assert worst.adjusted == found.pvalue == pytest.approx(0.0197, abs=0.005)
    assert [part.name for part in found.named] == ["0"]
    assert found.repair == "temperature"


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_the_slow_twin(part, weighted):
    probs, labels = reference()
    weights = np.random.default_rng(2).integers(1, 5, len(labels)) if weighted else None
    facts = {} if weights is None else {"weights": weights}
    value = ct.MulticlassCox(part)(probs, labels, **facts)
    assert value == pytest.approx(slow(probs, labels, part, weights), rel=1e-9)


@pytest.mark.parametrize("part", PARTS)
def test_two_classes_are_three_of_which_one_never_occurs(part):
    p, y = sloped(300)
    three = np.column_stack([1 - p, p, np.zeros_like(p)])
    assert ct.MulticlassCox(part)(p, y) == pytest.approx(ct.MulticlassCox(part)(three, y), rel=1e-9)
    assert ct.WorstClass()(p, y) == pytest.approx(ct.WorstClass()(three, y), rel=1e-9)


def test_two_classes_with_one_temperature_are_the_score_of_cox():
    p, y = sloped(300)
    three = np.column_stack([1 - p, p, np.zeros_like(p)])
    ours = ct.calibration_test(three, y, ct.MulticlassCox(), null="asymptotic")
    cox = ct.calibration_test(p, y, ct.CoxScore(), null="asymptotic")
    assert ours.estimate == pytest.approx(cox.estimate, rel=1e-12)
    assert ours.pvalue == pytest.approx(cox.pvalue, rel=1e-11)


def test_the_exact_law_is_that_of_all_label_vectors():
    rng = np.random.default_rng(5)
    probs = rng.dirichlet(np.ones(3), 6)
    statistic, observed = ct.MulticlassCox("vector"), rng.integers(0, 3, 6)
    vectors = np.array(list(itertools.product(range(3), repeat=6)))
    chance = np.prod(probs[np.arange(6), vectors], axis=1)
    values = prepare(statistic, problem_of(ct.Predictions(probs, observed))).batch(vectors)
    reached = values >= statistic(probs, observed) - 1e-9
    exact = ct.calibration_test(probs, observed, statistic, null="exact")
    assert exact.pvalue == pytest.approx(chance[reached].sum(), rel=1e-9)
    assert chance @ values == pytest.approx(5.0, rel=1e-9)  # E u' V^- u is the rank, 2 K - 1


def test_two_classes_made_of_more_are_refused_by_every_verb():
    probs, labels = reference()
    words = r"tests the whole probability vector, but this lens leaves 2 of 4 classes"
    for lens in (ct.TopK(1), ct.OneVsRest(0), ct.Partition([[0, 1], [2, 3]])):
        for statistic in (ct.MulticlassCox(), ct.WorstClass()):
            with pytest.raises(ct.StatisticError, match=words):
                ct.calibration_test(probs, labels, statistic, lens=lens)
            with pytest.raises(ct.StatisticError, match=words):
                statistic(lens(ct.Predictions.of(probs, labels)))
            with pytest.raises(ct.StatisticError, match=words):
                ct.joint_test(probs, labels, pairs=[(statistic, lens)])
    many = np.repeat(probs, 300, axis=0), np.repeat(labels, 300)
    with pytest.raises(ct.StatisticError, match=words):  # 60 000 rows, of which sums are looked at
        ct.calibration_test(*many, ct.MulticlassCox(), lens=ct.TopK(1))
    both = {"a": probs, "b": probs[::-1]}
    with pytest.raises(ct.StatisticError, match=words):
        ct.compare(both["a"], both["b"], labels, ct.MulticlassCox())


def test_the_usual_lens_of_joint_tests_is_the_whole_vector():
    joint = ct.joint_test(
        *reference(), pairs=[(ct.MulticlassCox(), None), (ct.ECE(), None)], n_resamples=99, rng=0
    )
    assert [test.lens for test in joint.tests] == ["Canonical()", "TopK(1)"]


@pytest.mark.parametrize("part", PARTS)
def test_tallies_of_two_classes_answer_as_their_rows(part):
    p, y = sloped(400)
    rows = ct.calibration_test(p, y, ct.MulticlassCox(part), n_resamples=99, rng=0)
    sums = ct.calibration_test(ct.Tally.of(p, y), None, ct.MulticlassCox(part), n_resamples=99)
    assert sums.estimate == pytest.approx(rows.estimate, rel=1e-9 if part != "vector" else 1e-3)
    assert sums.null == rows.null == ("exact" if part == "level" else "RedrawLabels()")


def test_the_chi_squared_law_warns_of_a_class_that_hardly_occurs():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet([2.0, 2.0, 0.01], 200)
    with pytest.warns(ct.LimitLawWarning, match="class 2 hardly occurs .* it takes 5"):
        ct.calibration_test(probs, drawn(rng, probs), ct.MulticlassCox(), null="asymptotic")


def test_predictions_that_are_all_sure_are_refused():
    sure = np.eye(3)[[0, 1, 2, 0]]
    for statistic in (*map(ct.MulticlassCox, PARTS), ct.WorstClass()):
        with pytest.raises(ct.StatisticError, match="every prediction is 0 or 1"):
            statistic(sure, [0, 1, 2, 1])


def test_digits_of_sure_predictions_are_kept():
    """Σ p (1 − p) is added up from the other probabilities: 1 − p alone would be rounding."""
    rng = np.random.default_rng(3)
    small = 1e-9 * rng.dirichlet(np.ones(2), 50)
    probs = np.column_stack([1.0 - small.sum(axis=1), small])
    value = ct.MulticlassCox("level")(probs, np.r_[1, np.zeros(49, dtype=int)])
    total = small.sum(axis=0)
    expected = (1 - total[0]) ** 2 / total[0] + total[1]  # Pearson's, with next to no variance
    assert value == pytest.approx(expected, rel=1e-6)


def test_the_fit_of_shifts_and_slope_has_scores_of_zero():
    probs, labels = reference()
    z = np.log(probs)
    q = fitted_probabilities(z, labels, shifts=True, slope=True)
    residual = (labels[:, None] == np.arange(4)) - q
    assert np.abs(residual.sum(axis=0)).max() < 1e-5
    assert abs((residual * z).sum()) < 1e-4


@pytest.mark.parametrize(
    ("repair", "slopes", "shifts"),
    [
        ("temperature", 0.6, 0.0),
        ("level", 1.0, np.array([0.8, 0.0, -0.3, 0.0])),
        ("level and temperature", 0.6, np.array([0.8, 0.0, -0.3, 0.0])),
        ("vector", np.array([0.5, 1.0, 1.0, 0.8]), 0.0),
    ],
)
def test_the_smallest_recalibration_that_is_enough_is_found(repair, slopes, shifts):
    found = []
    for seed in range(10):
        rng = np.random.default_rng([8, seed])
        probs = rng.dirichlet(np.full(4, 0.7), 3000) + 1e-9
        q = probs**slopes * np.exp(shifts)
        labels = drawn(rng, q / q.sum(axis=1, keepdims=True))
        found.append(enough(probs / probs.sum(axis=1, keepdims=True), labels, 0.05)[0])
    assert found.count(repair) >= 8


def test_worst_class_takes_weights_and_clusters_and_comes_back_from_json():
    probs, labels = reference()
    found = ct.worst_class(probs, labels, clusters=np.arange(200) // 4, n_resamples=199, rng=0)
    assert (found.n_clusters, found.repair) == (50, "")
    weighted = ct.worst_class(probs, labels, weights=np.arange(200) + 1.0, n_resamples=199, rng=0)
    assert weighted.effective_n is not None
    again = ct.WorstClassResult.from_json(found.to_json())
    assert again.components == found.components
    with pytest.raises(ct.StatisticError, match="for three classes or more"):
        ct.worst_class(probs[:, 0], labels == 1)


def test_an_audit_names_the_shifted_class():
    rng = np.random.default_rng(14)
    probs = rng.dirichlet(np.ones(5), 2000)
    q = probs * np.exp([0.0, 0.6, 0.0, 0.0, 0.0])
    labels = drawn(rng, q / q.sum(axis=1, keepdims=True))
    report = ct.audit(probs, labels, n_resamples=199, rng=0)
    row = next(row for row in report.rows if row.aspect == "levels")
    assert (row.lens, row.worst, row.verdict) == ("Canonical() Cox", "class 1", "miscalibrated")
    assert "class 1 is too low" in row.detail
    assert "a shift of the log-probability of every class" in row.detail
    assert row.classes.repair == "level"
