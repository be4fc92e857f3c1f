"""Cross-validated predictions: levels of folds, what is said of them, and what is refused."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2

import caltest as ct
from caltest.data.lenses import as_lens, moved, shifts_of
from caltest.errors import DoubtfulInputWarning

P = np.array([0.15, 0.25, 0.35, 0.15, 0.55, 0.45, 0.75, 0.85, 0.65, 0.75, 0.95, 0.35])
Y = np.array([0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1])
ALIGNED = (
    *(0.21239917387, 0.12482180507, 0.41707771606, 0.21239917387, 0.34338234193, 0.52088464491),
    *(0.82093415946, 0.70799642273, 0.71162658963, 0.82093415946, 0.89046609693, 0.41707771606),
)
#: Statistic, value on the aligned rows, exact p, floor: by enumeration.
ENUMERATED = [
    (ct.ECE(5), 0.26463395034, 0.25436441741, 0.22689174023),
    (ct.CalibrationInTheLarge(), 0.06666666667, 0.73659807749, 0.09898683675),
    (ct.Kuiper(), 0.10607017276, 0.82611780393, 0.15969095108),
    (ct.CoxScore(), 0.66261293056, 0.74489247085, 2.0),
]


def twelve():
    p = np.column_stack([P, 1.0 - P])
    fold = np.arange(12) % 3
    probs = moved(p, shifts_of(p, fold, np.ones(12))[fold])
    return ct.Predictions(probs, 1 - Y, induced=True)


def deal(seed, n=300, k=5, slope=1.0, noise=0.3):
    """Return predictions of k models whose levels differ, labels, and folds."""
    rng = np.random.default_rng(seed)
    z, fold = rng.standard_normal(n), rng.permutation(np.arange(n) % k)
    p = expit(slope * z + noise * rng.standard_normal(k)[fold])
    return p, (rng.random(n) < expit(z)).astype(int), fold


def by_bisection(p, fold, w):
    """A slow twin of the alignment: the level of each fold by halving."""
    out, inside = p.copy(), (p > 0) & (p < 1)
    target = (w * p)[inside].sum() / w[inside].sum()
    for k in np.unique(fold[inside]):
        i, low, high = inside & (fold == k), -50.0, 50.0
        for _ in range(200):
            middle = (low + high) / 2
            above = (w[i] * expit(logit(p[i]) - middle)).sum() > target * w[i].sum()
            low, high = (middle, high) if above else (low, middle)
        out[i] = expit(logit(p[i]) - low)
    return out


def test_levels_are_those_of_all_rows():
    np.testing.assert_allclose(twelve().probs[:, 0], ALIGNED, rtol=0, atol=1e-10)
    rng = np.random.default_rng(0)
    for n, k in product((40, 300), (2, 7)):
        p, fold, w = expit(3 * rng.standard_normal(n)), rng.integers(0, k, n), rng.exponential(1, n)
        p[:4] = 0.0, 1.0, 1e-12, 1 - 1e-12
        probs = np.column_stack([1 - p, p])
        seen = moved(probs, shifts_of(probs, fold, w)[fold])[:, 1]
        np.testing.assert_allclose(seen, by_bisection(p, fold, w), rtol=1e-9, atol=1e-11)


def test_several_classes_have_the_means_of_all_rows():
    first = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    rows = np.array([*first, [0.5, 0.25, 0.25], [0.2, 0.2, 0.6], [0.05, 0.9, 0.05]])
    fold = np.repeat([0, 1], 3)
    seen = moved(rows, shifts_of(rows, fold, np.ones(6))[fold])
    # by other code: Newton's steps until the means of the fold are those of all rows
    np.testing.assert_allclose(seen[0], (0.62383885031, 0.2324557039, 0.14370544579), atol=1e-10)
    rng = np.random.default_rng(1)
    probs, fold = rng.dirichlet(np.full(30, 0.05), 400), rng.integers(0, 4, 400)
    seen = moved(probs, shifts_of(probs, fold, np.ones(400))[fold])
    for k in range(4):  # proportional fitting ends where Newton's method does
        np.testing.assert_allclose(seen[fold == k].mean(0), probs.mean(0), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("statistic", "value", "pvalue", "floor"), ENUMERATED)
def test_enumerated_values(statistic, value, pvalue, floor):
    test = ct.calibration_test(twelve(), None, statistic, n_resamples=5000)
    if statistic == ct.CalibrationInTheLarge():  # in standard deviations
        v = twelve().probs.prod(axis=1).sum()
        value, floor = value * 12 / np.sqrt(v), 0.0
    numbers = test.estimate, test.pvalue, test.null_mean
    assert numbers == pytest.approx((value, pvalue, floor), abs=1e-8)


def test_one_fold_and_equal_levels_change_nothing():
    p, y, _ = deal(1)
    plain = ct.calibration_test(p, y, ct.Kuiper(), n_resamples=99, rng=1)
    assert ct.calibration_test(p, y, ct.Kuiper(), n_resamples=99, rng=1, folds=["a"] * 300) == plain
    twice, halves = (np.tile(p, 2), np.tile(y, 2)), np.repeat([0, 1], 300)
    same = ct.calibration_test(*twice, ct.Kuiper(), n_resamples=99, rng=1, folds=halves)
    again = ct.calibration_test(*twice, ct.Kuiper(), n_resamples=99, rng=1)
    assert (same.estimate, same.pvalue) == (again.estimate, again.pvalue)


def test_models_that_know_base_rates_only_are_one_level():
    rng = np.random.default_rng(12)
    y, fold = (rng.random(500) < 0.3).astype(int), rng.permutation(np.arange(500) % 10)
    p = np.array([y[fold != k].mean() for k in fold])
    with pytest.warns(DoubtfulInputWarning, match="or pass folds="):  # folds of one size
        assert ct.calibration_test(p, y, ct.CoxScore(), n_resamples=199, rng=1).pvalue < 0.05
    data = ct.Predictions.of(p, y, folds=fold)
    assert np.unique(as_lens(None, data)(data).probs).size == 2  # ties, to the last digit
    test = ct.calibration_test(data, None, ct.CoxScore(), n_resamples=199, rng=1)
    assert test.pvalue > 0.9
    assert test.folds.contrast < -3
    assert "taken out by aligning" in " ".join(test.notes)


def test_summary():
    p, y, fold = deal(4)
    seen = ct.calibration_test(p, y, folds=fold).folds
    n, d = np.bincount(fold), np.bincount(fold, p) / np.bincount(fold) - p.mean()
    r, v = y - p, p * (1 - p)
    contrast = (d[fold] @ r) / np.sqrt(d[fold] ** 2 @ v)
    within = ((p - (d + p.mean())[fold]) ** 2).sum() / (300 - 5)
    random = chi2.sf((n * d**2 / (within + v.mean() / (300 / n - 1) ** 2)).sum(), 4)
    assert (seen.count, seen.smallest, seen.largest) == (5, 60, 60)
    expected = (abs(d).max(), contrast, random)
    assert (seen.moved, seen.contrast, seen.random) == pytest.approx(expected)
    p, y, fold = deal(4, noise=1.0)
    assert "dealt at random" in " ".join(ct.calibration_test(p, y, folds=fold).notes)


def test_subgroups_are_of_aligned_rows():
    p, y, fold = deal(5)
    half = np.arange(300) < 150
    data = ct.Predictions.of(p, y, folds=fold)
    aligned = as_lens(None, data)(data)
    by = np.where(half, "a", "b")
    seen = ct.calibration_test(p, y, by=by, folds=fold).subgroups.tests[0]
    assert seen.estimate == ct.ECE()(aligned.take(half))
    joint = ct.joint_test(p, y, pairs=[(ct.ECE(), None)], folds=fold, by=by, n_resamples=9, rng=1)
    assert joint.subgroups.tests[0].tests[0].estimate == seen.estimate
    pair = ct.compare(p, p**1.3, y, by=by, folds=fold, n_resamples=9, rng=1)
    expected = ct.DebiasedL2()(aligned.take(half))
    assert pair.subgroups.tests[0].test_a.estimate == pytest.approx(expected, abs=1e-12)


RUN = {"n_resamples": 99, "rng": 1}


@pytest.fixture(scope="module")
def in_folds():
    p, y, fold = deal(6)
    return ct.Predictions.of(p, y, folds=fold)


@pytest.fixture(scope="module")
def aligned(in_folds):
    """The rows with their folds moved to one level."""
    return as_lens(None, in_folds)(in_folds)


@pytest.mark.parametrize("verb", [ct.confidence_interval, ct.reliability_curve, ct.bin_sensitivity])
def test_verbs_look_at_aligned_rows(verb, in_folds, aligned):
    one, other = verb(in_folds, **RUN), verb(aligned, **RUN)
    assert one.folds.count == 5
    assert "not about differences between folds" in " ".join(one.notes)
    for name in ("estimate", "low", "frequency", "values"):
        assert np.array_equal(vars(one).get(name, 0), vars(other).get(name, 0))


def test_the_corp_decomposition_is_of_aligned_rows(in_folds, aligned):
    of_folds, plain = ct.corp_decomposition(in_folds), ct.corp_decomposition(aligned)
    assert of_folds.miscalibration == pytest.approx(plain.miscalibration)


def test_the_cox_line_of_folds_has_a_wider_interval(in_folds, aligned):
    line, plain = ct.cox_recalibration(in_folds), ct.cox_recalibration(aligned)
    assert line.slope == plain.slope
    assert line.slope_se == pytest.approx(np.sqrt(2) * plain.slope_se, rel=1e-12)
    assert line.lr_slope == pytest.approx(((line.slope - 1) / line.slope_se) ** 2)
    assert "Wald test of" in str(line)


def test_weighted_folds_are_aligned_by_their_weighted_means(in_folds):
    weighted = replace(in_folds, weights=np.where(np.arange(300) < 150, 1.0, 2.0))
    moved = as_lens(None, weighted)(weighted)
    sums, fold = moved.weights * moved.probs[:, 0], in_folds.folds
    means = np.bincount(fold, sums) / np.bincount(fold, moved.weights)
    np.testing.assert_allclose(means, means[0], atol=1e-11)


def test_audits_gates_and_reports_take_folds(in_folds):
    _, y, fold = deal(6)
    p3 = np.random.default_rng(0).dirichlet(np.ones(3), 300)
    assert ct.audit(p3, y, folds=fold, n_resamples=199, rng=1).folds.count == 5
    assert ct.equivalence_test(in_folds, tolerance=0.1, rng=1).folds.count == 5
    assert ct.gate(in_folds, tolerance=0.3, rng=1).verdict in ("passed", "cannot tell", "failed")
    assert "levels moved by" in ct.report(in_folds, rng=1, n_resamples=99).to_markdown()


def test_wrong_calls():
    p, y, fold = deal(7)
    cases = {
        "leave-one-out": lambda: ct.calibration_test(p, y, folds=np.arange(300)),
        "EValue": lambda: ct.calibration_test(p, y, ct.EValue(), folds=fold),
        "does not take folds": lambda: ct.meta_analysis(p, y, by=fold, folds=fold),
        "Monitor does not take folds": lambda: ct.Monitor().update(p, y, folds=fold),
        "a tally keeps no folds": lambda: ct.Tally.of(p, y, folds=fold),
        "profile": lambda: ct.cox_recalibration(p, y, folds=fold, method="profile"),
        "GroupKFold": lambda: ct.calibration_test(p, y, folds=fold, clusters=np.arange(300) // 3),
        "plan does not take folds": lambda: ct.plan(p, y, folds=fold),
        "different folds": lambda: ct.compare(
            ct.Predictions.of(p, y, folds=fold), ct.Predictions.of(p, y, folds=1 - fold % 2)
        ),
        "has no value": lambda: ct.calibration_test(p, y, folds=[None, *fold[1:]]),
        "one value for each": lambda: ct.calibration_test(p, y, folds=fold[1:]),
    }
    for words, call in cases.items():
        with pytest.raises((ct.StatisticError, ct.InvalidPredictionsError), match=words):
            call()


def test_sums_that_are_exactly_the_events_are_doubted():
    p, y, fold = deal(8, noise=0.0)
    c = 0.0
    for _ in range(30):  # an intercept, fitted to the end
        q = expit(logit(p) + c)
        c += (y - q).sum() / (q * (1 - q)).sum()
    fitted = expit(logit(p) + c)
    with pytest.warns(DoubtfulInputWarning, match="add up to exactly the number of events"):
        ct.Predictions.of(fitted, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ct.Predictions.of(fitted, y, folds=fold)
        ct.Predictions.of(p, y)
        ct.Predictions.of(np.round(p, 3), y)


@pytest.mark.slow
def test_sizes():
    """Base rates and penalised logistic regressions in ten folds: sizes at most those of spec."""
    rng, reject = np.random.default_rng(10), {"base": 0, "true": 0}
    for _ in range(200):
        z, fold = rng.standard_normal(500), rng.permutation(np.arange(500) % 10)
        y = (rng.random(500) < expit(z - 1)).astype(int)
        base = np.array([y[fold != k].mean() for k in range(10)])[fold]
        for name, p in (("base", base), ("true", expit(z - 1))):
            test = ct.calibration_test(p, y, ct.CoxScore(), n_resamples=199, rng=rng, folds=fold)
            reject[name] += test.pvalue <= 0.05
    assert reject["base"] == 0
    assert reject["true"] <= 22


def test_a_fold_of_weight_0_is_as_if_left_out():
    p, y, fold = deal(1)
    inside = fold < 3
    weighted = ct.calibration_test(p, y, folds=fold, weights=inside.astype(float))
    alone = ct.calibration_test(p[inside], y[inside], folds=fold[inside])
    assert (weighted.estimate, weighted.pvalue) == pytest.approx((alone.estimate, alone.pvalue))
