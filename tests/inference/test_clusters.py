"""Rows in clusters: the shared redraw, its strength, and what the verbs make of it."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import caltest as ct
from caltest.errors import FewClustersWarning
from caltest.nulls.agreement import Agreement
from caltest.statistics import Flips, prepare

P = np.array([0.15, 0.25, 0.35, 0.15, 0.55, 0.45, 0.75, 0.85, 0.65, 0.75, 0.95, 0.35])
Y = np.array([0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1])
G = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 5])
MANY = {"B": 40_000, "seed": (3, 4)}
#: Statistic, value, of 64 signs, exact p at λ = 0, ¼, 1, floor at 1: by enumeration.
ENUMERATED = [
    (ct.ECE(5), 0.416666667, 4, (0.00792695, 0.01269420, 0.03218045), 0.24025),
    (ct.MCE(5), 0.683333333, 32, (0.08011517, 0.10173979, 0.16329273), 0.46991538),
    (ct.DebiasedL2(5), 0.170416667, None, None, None),
]


def example():
    return ct.OneVsRest(1)(ct.Predictions.of(P, Y, clusters=G))


def quiet(function, *args, **facts):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewClustersWarning)
        return function(*args, **facts)


def few(rng, n_classes, sizes=(3, 1, 2, 2)):
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    probs = rng.dirichlet(np.ones(n_classes), clusters.size)
    probs[0, 0] = 0.0
    probs /= probs.sum(axis=1, keepdims=True)
    labels = [rng.choice(n_classes, p=row) for row in probs]
    return ct.Canonical()(ct.Predictions.of(probs, labels, clusters=clusters))


@pytest.mark.parametrize(("statistic", "value", "signs", "pvalues", "floor"), ENUMERATED)
def test_enumerated_values(statistic, value, signs, pvalues, floor):
    data = example()
    prepared = prepare(statistic, data)
    t = prepared(data.labels)
    assert t == pytest.approx(value, abs=1e-8)
    if signs is None:
        return
    flips = np.array(list(product([1.0, -1.0], repeat=6)))[:, G]
    assert (prepared.values(Flips(flips)) >= t - 1e-12).sum() == signs
    for dependence, p in zip((0.0, 0.25, 1.0), pvalues, strict=True):
        draw = ct.SharedRedraws(dependence=dependence).drawer(data)
        values = prepared.batch(draw(MANY["seed"], 0, MANY["B"]))
        error = 4 * (p * (1 - p) / MANY["B"]) ** 0.5
        assert (values >= t - 1e-12).mean() == pytest.approx(p, abs=error)
    assert values.mean() == pytest.approx(floor, abs=4 * values.std() / MANY["B"] ** 0.5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_of_one_cluster_are_left_out(rng, n_classes, weighted):
    data = few(rng, n_classes, (4, 3, 5, 1, 2, 6))
    data = ct.Predictions.of(data, weights=rng.random(data.n) if weighted else None)
    w = data.weights if weighted else np.ones(data.n)
    cell = ct.UniformBins(2)(data.probs) if n_classes == 2 else ct.VarianceTree(5)(data.probs)
    statistic = ct.DebiasedL2(2 if n_classes == 2 else ct.VarianceTree(5))
    r = data.residuals[:, : 1 if n_classes == 2 else None] / w[:, None]
    expected = 0.0
    for b in np.unique(cell):
        rows = np.flatnonzero(cell == b)
        pairs = [(i, j) for i in rows for j in rows if data.clusters[i] != data.clusters[j]]
        if pairs:
            products = sum(w[i] * w[j] * r[i] @ r[j] for i, j in pairs)
            expected += w[rows].sum() / w.sum() * products / sum(w[i] * w[j] for i, j in pairs)
    prepared = prepare(statistic, data)
    assert prepared(data.labels) == pytest.approx(expected, abs=1e-12)
    values = prepared.batch(ct.SharedRedraws(dependence=1.0).drawer(data)((1, 2), 0, 4000))
    assert values.mean() == pytest.approx(0.0, abs=4.5 * values.std() / 4000**0.5)
    ones = replace(data, clusters=np.arange(data.n))
    plain = replace(data, clusters=None)
    assert prepare(statistic, ones)(data.labels) == prepare(statistic, plain)(data.labels)


# Numbers of this example: sums over its pairs of rows, and for the shares and the effective number
# all 2¹² label vectors, by enumeration with other code.


def test_agreement_of_the_example_is_the_sum_over_its_pairs():
    data = example()
    agreement = Agreement.of(data)
    assert agreement.quarter.tolist() == [0, 0, 1, 0, 2, 1, 2, 3, 2, 2, 3, 1]
    assert agreement(data.labels[None], centred=False)[0, 0] == pytest.approx(1.01, abs=1e-12)
    assert agreement(data.labels[None])[0, 0] == pytest.approx(0.577083333, abs=1e-8)
    variance, joint = agreement.sums
    assert variance.sum() == pytest.approx(2.17, abs=1e-12)
    assert joint.sum() == pytest.approx(1.79, abs=1e-12)


@pytest.mark.parametrize(
    ("dependence", "share"), [(0.0, 0.91201188), (0.5, 0.79086361), (1.0, 0.63615984)]
)
def test_shared_redraws_of_the_example_agree_as_often_as_enumerated(dependence, share):
    data = example()
    labels = ct.SharedRedraws(dependence=dependence).drawer(data)((1, 2), 0, 40_000)
    below = (Agreement.of(data)(labels)[:, 0] <= 0.577083333 + 1e-8).mean()
    assert below == pytest.approx(share, abs=4 * (share * (1 - share) / 40_000) ** 0.5)


def test_the_summary_of_the_clusters_of_the_example():
    summary = quiet(ct.calibration_test, P, Y, ct.ECE(5), clusters=G, n_resamples=99).clusters
    assert summary.effective == pytest.approx(4.0824127414, abs=1e-9)
    assert summary.shared == pytest.approx(2.7166666667, abs=1e-9)
    assert (summary.count, summary.smallest, summary.largest) == (6, 1, 3)
    assert summary.notes[0].endswith("λ, the chance that two rows of a cluster go together")


def test_a_summary_of_clusters_says_that_the_null_was_widened():
    summary = quiet(ct.calibration_test, P, Y, ct.ECE(5), clusters=G, n_resamples=99).clusters
    inflated = replace(summary, inflation=1.44)
    assert str(inflated).endswith("(95 % limits) · inflation κ 1.44")
    assert "the null distribution is widened by the factor 1.20 (√κ)" in inflated.notes[1]


def check_redraws(labels, probs, agreement, expected):
    """Each row has its law, no label has probability 0, and rows agree as expected."""
    share = np.stack([(labels == k).mean(axis=0) for k in range(probs.shape[1])], axis=1)
    np.testing.assert_allclose(share, probs, atol=5 * 0.5 / len(labels) ** 0.5)
    assert not (labels[:, 0] == 0).any()  # of probability 0
    values = agreement(labels, centred=False)[:, 0]
    assert values.mean() == pytest.approx(expected, abs=4 * values.std() / len(labels) ** 0.5)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_expected_agreement_is_proportional_to_the_dependence(rng, n_classes):
    data = few(rng, n_classes)
    agreement = Agreement.of(data)
    variance, joint = agreement.sums
    p, expected, own = data.probs, 0.0, 0.0
    for i, j in product(range(data.n), repeat=2):
        if n_classes == 2:
            same = min(p[i, 0], p[j, 0]) - p[i, 0] * p[j, 0]
        else:
            same = -p[i] @ p[j]
            for k in np.flatnonzero((p[i] > 0) & (p[j] > 0)):
                same += 1.0 / np.maximum(p[i] / p[i, k], p[j] / p[j, k]).sum()
        expected += same * (data.clusters[i] == data.clusters[j] and i != j)
    for i in range(data.n):
        own += p[i, 0] * (1 - p[i, 0]) if n_classes == 2 else 1 - (p[i] ** 2).sum()
    assert (joint.sum(), variance.sum()) == pytest.approx((expected, own), abs=1e-12)
    for dependence in (0.0, 0.36, 1.0):
        labels = ct.SharedRedraws(dependence=dependence).drawer(data)((5, 6), 0, 60_000)
        check_redraws(labels, p, agreement, dependence * joint.sum())


def shared_correctness(probs, dependence, u, alone):
    """Return labels of rows of one cluster, by the definition: one row of numbers a draw."""
    joining, top = dependence**0.5, probs.argmax(axis=1)
    labels = []
    for i, p in enumerate(probs):
        right = np.where(alone[0, i] < joining, u, alone[1, i]) < p[top[i]]
        others = np.delete(p, top[i])
        which = (alone[2, i][:, None] > others.cumsum() / max(others.sum(), 1e-300)).sum(axis=1)
        wrong = np.delete(np.arange(p.size), top[i])[np.minimum(which, p.size - 2)]
        labels.append(np.where(right, top[i], wrong))
    return np.stack(labels, axis=1)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("dependence", [0.0, 0.36, 1.0])
def test_rows_that_share_correctness(rng, n_classes, dependence):
    data = few(rng, n_classes, (3, 2))
    draw = ct.SharedRedraws(dependence=dependence, coupling="correctness").drawer(data)
    labels = draw((5, 6), 0, 60_000)
    code = n_classes ** np.arange(3)
    seen = np.bincount(labels[:, :3] @ code, minlength=n_classes**3) / 60_000
    uniforms = rng.random(60_000), rng.random((3, 3, 60_000))
    slow = shared_correctness(data.probs[:3], dependence, *uniforms)
    expected = np.bincount(slow @ code, minlength=n_classes**3) / 60_000
    error = 5 * np.sqrt(2 * np.maximum(expected, 1e-4) / 60_000)
    assert (np.abs(seen - expected) < error).all()
    agreement = Agreement.of(data, "correctness")
    check_redraws(labels, data.probs, agreement, dependence * agreement.sums[1].sum())


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("coupling", ["label", "correctness"])
@pytest.mark.parametrize("centred", [True, False])
def test_agreement_as_defined(rng, n_classes, coupling, centred):
    data = few(rng, n_classes, (4, 3, 5, 1, 2))
    data = ct.Predictions.of(data, weights=rng.random(data.n))
    agreement = Agreement.of(data, coupling)
    w, top = data.weights[:, None], data.probs.argmax(axis=1)
    x = (data.residuals / w)[:, : 1 if n_classes == 2 else None]
    if coupling == "correctness":
        x = ((data.labels == top) - data.probs.max(axis=1))[:, None]
    for q in range(4 if centred else 0):
        rows = agreement.quarter == q
        if rows.any():
            x = x - rows[:, None] * (w * x)[rows].sum(axis=0) / w[rows].sum()
    parts = [agreement.quarter == q for q in range(4)] + [agreement.size == s for s in range(4)]
    values, expected = agreement(data.labels[None], centred=centred)[0], []
    for part, value in zip([np.ones(data.n, bool), *parts], values, strict=True):
        sums = [((w * x)[part & (data.clusters == g)].sum(axis=0) ** 2).sum() for g in range(5)]
        squares = ((w * x)[part] ** 2).sum()
        assert value == pytest.approx(sum(sums) - squares, abs=1e-12)
        expected.append((sum(sums) - squares) / squares if squares > 1e-12 else np.inf)
    ratios = agreement.correlation(data.labels[None], centred=centred)[0]
    np.testing.assert_allclose(ratios, expected, atol=1e-10)


@pytest.mark.slow
def test_pairs_that_exclude_each_other_do_not_hide_copies(rng):
    rejected, notes = 0, ""
    for _ in range(40):
        case = rng.integers(0, 2, 150)
        copies = np.repeat(rng.uniform(0.6, 0.95, 12), 6)
        p = np.append(np.full(300, 0.5), copies)
        pairs = np.stack([case, 1 - case], axis=1).ravel()
        y = np.append(pairs, np.repeat(rng.random(12), 6) < copies).astype(int)
        group = np.append(np.repeat(np.arange(150), 2), 150 + np.repeat(np.arange(12), 6))
        test = ct.calibration_test(p, y, ct.CoxScore(), clusters=group, n_resamples=199, rng=1)
        rejected += test.pvalue <= 0.05
        notes += str(test.clusters)
        assert test.clusters.dependence < test.clusters.in_parts
    assert rejected <= 6
    assert "λ up to 1 where rows agree more than elsewhere" in notes
    y[300:] = 1  # no copy is wrong, by chance: that is no sign that copies are independent
    data = ct.OneVsRest(1)(ct.Predictions.of(p, y, clusters=group))
    assert Agreement.of(data).limits().by_prediction[3] == 1.0


def test_labels_that_agree_beyond_any_redraw_inflate_the_null(rng):
    y = rng.integers(0, 2, 60)
    clusters = np.repeat(np.arange(60), 4)
    x = 3.0 * (y[clusters] - 0.5) + rng.standard_normal(240)
    p = 1 / (1 + np.exp(-3.0 * x))
    test = ct.calibration_test(p, y[clusters], ct.Kuiper(), clusters=clusters, n_resamples=499)
    assert test.clusters.inflation > 1.0
    square = ct.calibration_test(p, y[clusters], ct.CoxScore(), clusters=clusters, n_resamples=499)
    data = ct.OneVsRest(1)(ct.Predictions.of(p, y[clusters], clusters=clusters))
    fixed = ct.SharedRedraws(test.clusters.dependence, coupling="label")
    for result, statistic, power in ((test, ct.Kuiper(), 0.5), (square, ct.CoxScore(), 1.0)):
        law = ct.replicate(data, statistic, fixed, n_resamples=499, rng=0)
        asked = {"lens": ct.Canonical(), "null": fixed, "n_resamples": 499, "rng": 0}
        same = quiet(ct.calibration_test, data, None, statistic, **asked)
        expected = result.clusters.inflation**power * np.asarray(law)
        np.testing.assert_allclose(same.null_distribution, expected, rtol=1e-12)


def test_statistics_that_see_labels_cannot_be_inflated(rng):
    clusters = np.arange(240) // 4
    y = rng.integers(0, 2, 60)
    x = 3.0 * (y[clusters] - 0.5) + rng.standard_normal(240)
    p = 1 / (1 + np.exp(-3.0 * x))
    facts = {"clusters": clusters, "n_resamples": 199, "rng": 0}

    def mean_gap(probs, labels):
        return abs((probs[:, 1] - labels).mean())

    with pytest.raises(ct.StatisticError, match=r"mean_gap sees labels.*κ = 1\.\d+.*OneRowPer"):
        ct.calibration_test(p, y[clusters], mean_gap, **facts)
    facts["null"] = ct.SharedRedraws()
    for statistic, applied in ((mean_gap, False), (ct.ECE(), True)):
        asked = quiet(ct.calibration_test, p, y[clusters], statistic, **facts)
        assert asked.clusters.inflation_applied == applied


def test_other_nulls(rng):
    data = example()
    drawn = ct.OneRowPerCluster(draws=30)
    test = quiet(ct.calibration_test, P, Y, ct.ECE(5), clusters=G, null=ct.WildSigns(), rng=1)
    assert test.pvalue == pytest.approx(4 / 64, abs=0.008)
    one = ct.calibration_test(P, Y, ct.ECE(5), clusters=G, null=drawn, rng=2)
    generator = np.random.default_rng(2)
    plain = ct.Predictions.of(P, Y)
    tests = [
        ct.calibration_test(plain.take(drawn.rows(data, generator)), None, ct.ECE(5), rng=generator)
        for _ in range(30)
    ]
    eighth = sorted(t.pvalue for t in tests)[7]
    assert one.pvalue == pytest.approx(min(1.0, 30 / 8 * eighth), rel=1e-12)
    assert (one.n, one.n_resamples, tests[0].n) == (12, 30, 6)
    for null in ("exact", "asymptotic", ct.ConsistencyResampling(), ct.RedrawLabels()):
        statistic = ct.CoxScore() if null == "asymptotic" else ct.ECE(5)
        with pytest.raises(ct.StatisticError, match=r"in clusters: use null='auto'"):
            ct.calibration_test(P, Y, statistic, clusters=G, null=null)
    with pytest.raises(ct.StatisticError, match=r"too few clusters \(3\)"):
        ct.calibration_test(P, Y, clusters=np.arange(12) % 3)
    with pytest.raises(ct.StatisticError, match="all rows are of one cluster"):
        ct.calibration_test(P, Y, clusters=G * 0, null=ct.OneRowPerCluster())
    with pytest.raises(ct.StatisticError, match="dependence must"):
        ct.SharedRedraws(dependence=1.5)
    with pytest.raises(ct.StatisticError, match="coupling must be 'label' or 'correctness'"):
        ct.SharedRedraws(coupling="labels")


def test_several_questions_are_answered_one_by_one(rng):
    probs = rng.dirichlet(np.ones(3), 150)
    labels = (rng.random(150)[:, None] > probs.cumsum(axis=1)).sum(axis=1)
    clusters = np.arange(150) // 3
    pairs = [(ct.ECE(5), ct.TopK(1)), (ct.Kuiper(), ct.OneVsRest(0))]
    run = {"clusters": clusters, "n_resamples": 199, "rng": 1}
    joint = ct.joint_test(probs, labels, pairs=pairs, **run)
    single = [ct.calibration_test(probs, labels, s, lens=look, **run) for s, look in pairs]
    assert joint.tests == tuple(single)
    assert joint.pvalue == min(1.0, 2 * min(t.pvalue for t in single))
    with pytest.raises(ct.StatisticError, match="use adjust='holm'"):
        ct.audit(probs, labels, clusters=clusters, adjust="max-T")


@pytest.mark.parametrize("by", [None, np.arange(60) % 2, {"a": np.arange(60) > 9}])
def test_ctrl_c_ends_tests_of_many_parts(rng, by):
    p = rng.random(60)
    calls = []

    def impatient(probs, labels):
        calls.append(labels)
        if len(calls) > 300:
            raise KeyboardInterrupt
        return float(probs[labels == 0, 0].sum())

    null = ct.OneRowPerCluster() if by is None else ct.RedrawLabels()
    facts = {"clusters": np.arange(60) // 3} if by is None else {"by": by}
    with pytest.raises(KeyboardInterrupt):
        ct.calibration_test(p, rng.random(60) < p, impatient, null=null, n_resamples=199, **facts)
    assert len(calls) == 301


def ending_with_the_event(rng, count=2000, quarters=6):
    """Return predictions, labels and clusters of quarters that end when the event has occurred.

    The hazard is constant, so that each prediction of the next four quarters is right.
    """
    risk = rng.beta(1.0, 14.0, count)
    end = rng.exponential(size=count) / (-np.log1p(-risk) / 4.0)
    cluster, quarter = np.nonzero(np.arange(quarters) < end[:, None])
    return risk[cluster], (end[cluster] <= quarter + 4).astype(int), cluster


def test_a_rejection_where_rows_end_with_the_event_is_in_doubt():
    p, y, cluster = ending_with_the_event(np.random.default_rng(3))
    report = quiet(ct.audit, p, y, clusters=cluster, n_resamples=199, rng=0)
    assert report.rows[1].test.clusters.size_effect < -5.0
    assert any(row.verdict.rejects for row in report.rows)
    assert report.verdict.value == "in doubt"
    assert "such as the first" in report.summary[0]
    assert not any("residuals change with the size" in note for note in report.notes)
    first = np.unique(cluster, return_index=True)[1]
    assert quiet(ct.audit, p[first], y[first], n_resamples=199, rng=0).verdict.value == "calibrated"


def test_sizes_that_no_outcome_has_chosen_leave_a_rejection_as_it_is(rng):
    cluster = np.repeat(np.arange(200), rng.integers(1, 8, 200))
    p = rng.uniform(0.2, 0.8, cluster.size)
    y = (rng.random(p.size) < p + 0.15).astype(int)
    report = quiet(ct.audit, p, y, clusters=cluster, n_resamples=199, rng=0)
    assert report.verdict.value == "miscalibrated"
