"""Rows that do not count alike: sums, exact laws and verbs with weights."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from twins import errors as reference_errors
from twins import families as reference_families
from twins import kernel as reference_kernel

import caltest as ct
from caltest.statistics import Flips, prepare

P = np.array([0.2, 0.3, 0.4, 0.6, 0.7, 0.9])
Y = np.array([0, 1, 0, 1, 0, 1])
W = np.array([1, 2, 1, 3, 1, 2])
#: Statistic, value, exact p, of 64 signs: by enumeration.
ENUMERATED = [
    (ct.ECE(2), 0.15, 0.928768, 60),
    (ct.MCE(2), 0.2, 0.937168, 64),
    (ct.ECE(2, distance="sqeuclidean"), 2 * 0.0241666667, 0.928768, 60),
    (ct.CalibrationInTheLarge(), 0.752828421, 0.640168, 32),
    (ct.DebiasedL2(2), -0.101163636, None, None),
    (ct.BrierScore(), 0.217, None, None),
]


@pytest.mark.parametrize(("statistic", "value", "pvalue", "signs"), ENUMERATED)
def test_enumerated_values(statistic, value, pvalue, signs):
    test = ct.calibration_test(P, Y, statistic, weights=0.37 * W)
    assert test.estimate == pytest.approx(value, abs=1e-8)
    assert test.effective_n == pytest.approx(5.0, abs=1e-12)
    if pvalue is None:
        return
    assert test.null == "exact"
    assert test.pvalue == pytest.approx(pvalue, abs=1e-6)
    prepared = prepare(statistic, ct.OneVsRest(1)(ct.Predictions.of(P, Y, weights=W)))
    flips = np.array(list(product([1.0, -1.0], repeat=6)))
    values = prepared.values(Flips(flips))
    loud = np.abs(values) if prepared.two_sided else values
    assert (loud >= abs(test.estimate) - 1e-12).sum() == signs


@pytest.mark.parametrize("seed", range(4))
def test_exact_laws_are_enumerated_laws(seed):
    rng = np.random.default_rng(seed)
    p, w = rng.random(9), rng.integers(1, 6, 9)
    y = (rng.random(9) < p).astype(int)
    data = ct.OneVsRest(1)(ct.Predictions.of(p, y, weights=w))
    every = np.array(list(product([0, 1], repeat=9)))
    mass = np.where(every == 0, data.probs[:, 0], data.probs[:, 1]).prod(axis=1)
    for statistic in (ct.ECE(3), ct.MCE(3), ct.HosmerLemeshow(ct.UniformBins(3))):
        test = ct.calibration_test(p, y, statistic, weights=w)
        values = prepare(statistic, data).batch(every)
        expected = mass[values >= test.estimate - 1e-12].sum()
        assert test.null == "exact"
        low, high = test.pvalue_bracket
        assert low - 1e-12 <= expected <= high + 1e-12
        assert test.null_mean == pytest.approx(mass @ values, abs=1e-9)


KERNEL = ct.TVKernel(0.3)
RULES = ("unbiased", "biased", "linear")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weighted_kernel_errors_are_weighted_means_over_pairs(rng, n_classes):
    n = 14
    probs, w = rng.dirichlet(np.ones(n_classes), n), rng.uniform(0.1, 3.0, n)
    y = rng.integers(n_classes, size=n)
    data = ct.Predictions(probs, y, weights=w, induced=True)
    k = partial(reference_kernel.KERNELS["tv"], nu=0.3)
    h = np.array([[reference_kernel.h(probs, y, i, j, k) for j in range(n)] for i in range(n)])
    row, column = np.indices((n, n))
    for rule, pairs in zip(RULES, (row != column, row >= 0, row // 2 == column // 2), strict=True):
        pairs = pairs & ((row != column) | (rule == "biased"))
        expected = np.average(h[pairs], weights=np.outer(w, w)[pairs])
        fixed = prepare(ct.SKCE(KERNEL, estimator=rule), data)
        assert fixed(y) == pytest.approx(expected, rel=1e-9)
        assert fixed.values(Flips(np.ones((1, n))))[0] == pytest.approx(expected, rel=1e-9)
        assert not fixed.laws


@pytest.mark.parametrize("curve", ["lowess", "loess"])
def test_weighted_curves_are_weighted_fits(rng, curve):
    p, w = rng.random(50), rng.uniform(0.1, 3.0, 50)
    y = (rng.random(50) < p).astype(float)
    data = ct.OneVsRest(1)(ct.Predictions.of(p, y.astype(int), weights=w))
    if curve == "lowess":
        fit = [reference_families.lowess_at(x, p, y, 2 / 3, w) for x in p]
    else:
        fit = reference_errors.loess(p, y, row_weights=w)
    exact = {} if curve == "loess" else {"delta": 0.0}
    gaps = np.abs(p - fit)
    square, mean = np.average(gaps**2, weights=w), np.average(y, weights=w)
    expected = {
        ct.ICI: np.average(gaps, weights=w),
        ct.Emax: gaps.max(),
        ct.ECI: square / np.average((p - mean) ** 2, weights=w),
        ct.E50: reference_errors.quantile(gaps, 0.5, w),
        ct.E90: reference_errors.quantile(gaps, 0.9, w),
    }
    for kind, value in expected.items():
        assert kind(curve=curve, **exact)(data) == pytest.approx(value, rel=1e-8), kind
    alike = reference_errors.quantile(gaps, 0.9, np.full(50, 3.0))
    assert alike == pytest.approx(np.quantile(gaps, 0.9), rel=1e-12)


def test_calibration_in_the_weighted_population(rng):
    p, w = rng.uniform(0.1, 0.9, 500), rng.integers(1, 3, 500)
    y = (rng.random(500) < p).astype(int)
    options = {"weights": w, "n_resamples": 199, "rng": 1}
    nulls = (ct.RedrawLabels(), ct.WildSigns())
    both = [ct.calibration_test(p, y, null=null, **options) for null in nulls]
    found = ct.calibration_test(p, y, null=ct.PopulationWeights(), **options)
    assert found.pvalue == max(test.pvalue for test in both)
    assert found.null == "PopulationWeights()"
    assert f"p is {both[0].shown_p} for redrawn labels" in found.notes[0]
    refused = {
        "effective n is 0.": {"weights": rng.pareto(1.5, 500) + 0.1},
        r"\(at least 100\)": {"probs": p / 20, "weights": w},
        "is for weights": {"weights": None},
        "without clusters": {"weights": w, "clusters": np.arange(500) // 5},
    }
    for said, data in refused.items():
        with pytest.raises(ct.StatisticError, match=said):
            ct.calibration_test(**{"probs": p, "labels": y, "null": ct.PopulationWeights()} | data)


@pytest.mark.slow
def test_size_and_power_in_the_weighted_population():
    rejected, runs = np.zeros(2), 300
    for seed in range(runs):
        rng = np.random.default_rng([seed, 9])
        p, w = rng.uniform(0.15, 0.85, 500), rng.choice([1, 2], 500)
        chance, true = rng.random(500), p + np.where(w == 1, 0.14, -0.07)  # E[w (y − p)] = 0
        for j, shift in enumerate((0.0, 0.06)):
            run = {"null": ct.PopulationWeights(), "weights": w, "n_resamples": 99, "rng": seed}
            found = ct.calibration_test(p, chance < true + shift, ct.ECE(5), **run)
            rejected[j] += found.pvalue <= 0.05
    assert rejected[0] / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
    assert rejected[1] / runs > 0.4


def test_debiased_absolute_error_by_hand():
    """One cell: the gap of weighted means, its noise from (Σ w)² / Σ w² rows."""
    from scipy.stats import norm

    p, y, w = np.array([0.2, 0.4, 0.6]), np.array([0, 1, 1]), np.array([1.0, 2.0, 5.0])
    rate, gap = 7 / 8, 7 / 8 - (0.2 + 0.8 + 3.0) / 8
    sigma = np.sqrt(rate * (1 - rate) / (64 / 30))
    noisy = 2 * sigma * norm.pdf(gap / sigma) + gap * (2 * norm.cdf(gap / sigma) - 1)
    data = ct.Predictions.of(p, y, weights=w)
    lens = ct.OneVsRest(1)
    found = ct.calibration_test(data, None, ct.DebiasedL1(1), lens=lens, n_resamples=19)
    assert found.estimate == pytest.approx(2 * gap - noisy, rel=1e-12)
    tally = ct.calibration_test(ct.Tally.of(data), None, ct.DebiasedL1(1), n_resamples=19)
    assert tally.estimate == pytest.approx(found.estimate, rel=1e-9)


@pytest.mark.parametrize("statistic", [ct.ClasswiseECE(3), ct.ACE(3), ct.TACE(3, threshold=0.2)])
def test_classwise_errors_by_hand(rng, statistic):
    """Weighted gaps of the cells of every class, which do not look at weights."""
    p = rng.dirichlet(np.ones(3), 40)
    y, w = rng.integers(0, 3, 40), rng.choice([1.0, 2.0, 7.0], 40)
    errors = []
    for k in range(3):
        kept = np.flatnonzero(p[:, k] > getattr(statistic, "threshold", 0.0))
        kept = kept[np.argsort(p[kept, k])]
        if isinstance(statistic, ct.ClasswiseECE):
            parts = [kept[np.ceil(3 * p[kept, k]) == b] for b in (1, 2, 3)]
            shares = [w[part].sum() / w[kept].sum() for part in parts]
        else:
            size = kept.size // 3
            parts, shares = np.split(kept, [size, 2 * size]), [1 / 3] * 3
        gaps = [w[j] @ ((y[j] == k) - p[j, k]) / w[j].sum() if j.size else 0.0 for j in parts]
        errors.append(np.dot(shares, np.abs(gaps)))
    assert statistic(p, y, weights=w) == pytest.approx(np.mean(errors), rel=1e-9)
    assert statistic(p, y, weights=np.full(40, 3.0)) == statistic(p, y)
    found = ct.calibration_test(p, y, statistic, lens=ct.Canonical(), weights=w, n_resamples=99)
    assert found.estimate == pytest.approx(np.mean(errors), rel=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_sweep_by_hand(rng, norm):
    """Cut at ranks of rows, stopped and measured by weighted frequencies."""
    for _ in range(20):
        p, w = rng.random(50).round(2), rng.choice([1.0, 1.7, 9.0], 50)
        y = (rng.random(50) < p).astype(int)
        order = np.argsort(p, kind="stable")
        value = None
        for b in range(1, 51):
            ends = [p[order][-(-j * 50 // b) - 1] for j in range(1, b + 1)]
            bins = np.searchsorted(np.unique(ends), p)
            mass, events, sums = (np.bincount(bins, w * v) for v in (np.ones(50), y, p))
            if (np.diff(events / mass) < -1e-9).any():
                break
            gaps = np.abs(events - sums)
            value = gaps.sum() if norm == "l1" else np.sqrt(gaps**2 @ (1 / mass) * w.sum())
        assert ct.Sweep(norm=norm)(p, y, weights=w) == pytest.approx(value / w.sum(), rel=1e-9)


@pytest.mark.parametrize("heavy", [[1e8, 1e-8], [1e9, 0.3], [1e9, 0.3, 0.7]])
def test_small_weights_are_no_zeros_beside_huge_ones(rng, heavy):
    p = rng.uniform(0.05, 0.45, 90)
    p[:3] += 0.5
    y = (rng.random(90) < p).astype(int)
    w = np.append(np.full(3, heavy[0]), np.resize(heavy[1:], 87))
    kept = ct.Predictions.of(p, y, weights=w).in_ratios().weights
    np.testing.assert_allclose(kept / kept[0], w / w[0], rtol=1e-8)
    for data in ((p, y), (ct.Tally.of(p, y, weights=w),)):
        facts = {} if len(data) == 1 else {"weights": w}
        options = {"n_resamples": 99, "rng": 1, **facts}
        largest = ct.calibration_test(*data, statistic=ct.MCE(ct.UniformBins(2)), **options)
        gaps = [abs(np.average((y - p)[s], weights=w[s])) for s in (p < 0.5, p > 0.5)]
        assert largest.estimate == pytest.approx(max(gaps), rel=1e-6)
        whole = ct.calibration_test(*data, statistic=ct.CalibrationInTheLarge(), **options)
        assert (whole.pvalue > 0.05) == (abs(whole.estimate) < 1.9)


@pytest.mark.parametrize("n", [3, 300])
@pytest.mark.parametrize("eps", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_right_where_all_is_nearly_certain_is_no_evidence(rng, n, eps, weighted):
    p = 1.0 - eps * rng.random(n)
    y, bins = np.ones(n, dtype=int), ct.UniformBins(10)
    facts = {"weights": rng.integers(1, 4, n)} if weighted else {}
    for statistic in (ct.CalibrationInTheLarge(), ct.OERatio(), ct.HosmerLemeshow(bins)):
        for data in (ct.Predictions.of(p, y, **facts), ct.Predictions.of(1.0 - p, 1 - y, **facts)):
            for asked in (data, ct.Tally.of(data)):
                test = ct.calibration_test(asked, statistic=statistic, null="exact")
                assert test.pvalue == pytest.approx(1.0), (statistic, type(asked))


@pytest.mark.parametrize("clusters", [None, np.arange(400) // 4])
def test_weights_that_depend_on_outcomes_are_noted(rng, clusters):
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    facts = {"clusters": clusters, "n_resamples": 99, "rng": 0}
    uneven = y + rng.uniform(1.0, 1.2, 400)
    for weights, noted in ((rng.random(400), False), (uneven, True), (1.0 + p, False)):
        answer = ct.calibration_test(p, y, weights=weights, **facts)
        words = "no test is valid if weights depend on outcomes"
        assert any(words in note for note in answer.notes) == noted


@pytest.mark.parametrize("rates", [(0.2, 1.0), (0.25, 1.0, 0.5)])
def test_rows_that_were_sampled_by_their_outcome_are_tested_as_sampled(rng, rates):
    """With weights 1/rate of the label: probabilities of sampled rows by Bayes' rule."""
    probs = rng.dirichlet(np.linspace(3.0, 1.0, len(rates)), 3000)
    rates, labels = np.array(rates), np.array([rng.choice(len(rates), p=row) for row in probs])
    seen = rng.random(3000) < rates[labels]
    p, y = probs[seen], labels[seen]
    with pytest.warns(ct.DoubtfulInputWarning, match="sampled by their outcome"):
        weighted = ct.calibration_test(p, y, weights=0.3 / rates[y], rng=0)
    bayes = p * rates / (p @ rates)[:, None]
    plain = ct.calibration_test(bayes, y, rng=0)
    assert (weighted.estimate, weighted.pvalue) == pytest.approx((plain.estimate, plain.pvalue))
    assert weighted.pvalue > 0.01
    few = np.flatnonzero(y == 1)[9:]  # of a label with so few rows a common weight may be chance
    p, y = np.delete(p, few, axis=0), np.delete(y, few)
    assert ct.calibration_test(p, y, weights=1.0 / rates[y], rng=0).effective_n < y.size
