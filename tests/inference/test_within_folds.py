"""Folds whose models memorise groups of rows: detection, tests within folds, shrunk excess.

Golden numbers are of a program in plain numpy that was written apart from the package, for the
study by which the remedies were chosen; data are made anew below. Its bins of equal counts are a
function here.
"""

from dataclasses import replace

import numpy as np
import pytest

import caltest as ct
from caltest.data.lenses import as_lens, close_pairs
from caltest.inference.calibration import FoldProblem, WithinFolds
from caltest.statistics.rows import RowProblem

#: z and partners of close pairs, width by width, of that program in plain numpy.
CLOSE = [
    *[(41.2621388511, 3.33668341709), (40.6780504519, 3.32100502513)],
    *[(35.3707801381, 3.15834170854), (28.1326245221, 2.8624120603)],
    *[(19.8802666508, 2.48175879397), (12.517890034, 2.71391959799)],
]
#: Statistic, value within folds, its share of 100 draws, and with the excess shrunk: likewise.
WITHIN = {
    "ECE": (0.132384567497, 0.64, 0.62),
    "ECEq": (0.179967884537, 0.4, 0.41),
    "DL2": (-0.00182205483078, 0.58, 0.57),
    "MS": (0.89571920811, 0.43, 0.45),
    "Kuiper": (0.106894452885, 0.34, 0.35),
    "Cox": (14.2331733268, 0.21, 0.24),
}


#: Statistic, value on aligned folds, and its share of 100 draws: of the program.
ALIGNED = {
    "ECE": (0.105215688061, 0.05),
    "ECEq": (0.125556305415, 0.1),
    "DL2": (0.0101154562684, 0.04),
    "MS": (1.72139405819, 0.2),
    "Kuiper": (0.0580114743789, 0.26),
    "Cox": (2.85296831813, 0.27),
}


def equal_counts(probs):
    p = probs[:, 0]
    return np.searchsorted(np.unique(np.quantile(p, np.arange(1, 15) / 15)), p, side="left")


STATISTICS = {
    "ECE": ct.ECE(15),
    "ECEq": ct.ECE(equal_counts),
    "DL2": ct.DebiasedL2(15),
    "MS": ct.MultiScale(),
    "Kuiper": ct.Kuiper(),
    "Cox": ct.CoxScore(),
}


def sites():
    """Return shrunk rates of ten sites in five folds, labels, folds, and uniforms (99, 200)."""
    rng = np.random.default_rng(2026)
    n, n_sites, k = 200, 10, 5
    site = rng.integers(0, n_sites, n)
    y = (rng.random(n) < (0.2 + 0.05 * np.arange(n_sites))[site]).astype(int)
    fold, p = rng.permutation(np.arange(n) % k), np.empty(n)
    for j in range(k):
        i = fold != j
        events = np.bincount(site[i], y[i], n_sites) + 20 * y[i].mean()
        p[~i] = (events / (np.bincount(site[i], minlength=n_sites) + 20))[site[~i]]
    return p, y, fold, rng.random((99, n))


def test_close_pairs_of_folds_are_those_of_the_reference():
    p, y, fold, _ = sites()
    data = ct.Predictions.of(p, y, folds=fold)
    aligned = as_lens(None, data)(data).probs[:, 0]
    np.testing.assert_allclose(close_pairs(p, aligned, fold), CLOSE, rtol=1e-8)


@pytest.mark.parametrize("name", ALIGNED)
def test_statistics_of_aligned_folds_are_those_of_the_reference(name):
    p, y, fold, uniforms = sites()
    data = as_lens(None, ct.Predictions.of(p, y, folds=fold))(ct.Predictions.of(p, y, folds=fold))
    aligned = data.probs[:, 0]
    assert aligned.sum() == pytest.approx(77.9648059331, rel=1e-8)  # of the program
    prepared = STATISTICS[name].prepare(RowProblem(data))
    t = prepared.batch(np.vstack([1 - y, np.where(uniforms < aligned, 0, 1)]))
    value, share = ALIGNED[name]
    assert t[0] == pytest.approx(value, rel=1e-8)
    assert (1 + (t[1:] >= t[0] - 1e-12).sum()) / 100 == share


@pytest.mark.parametrize("name", WITHIN)
def test_statistics_within_folds_are_those_of_the_reference(name):
    p, y, fold, uniforms = sites()
    data = ct.Predictions.of(p, y, folds=fold)
    apart = as_lens(None, data).apart(data)
    rows = replace(apart, folds=None, whole=None, induced=True)
    prepared = WithinFolds(STATISTICS[name]).prepare(FoldProblem(rows, fold))
    t = prepared.batch(np.vstack([1 - y, np.where(uniforms < p, 0, 1)]))
    value, plain, shrunk = WITHIN[name]
    assert t[0] == pytest.approx(value, rel=1e-8)
    less = t[1:].mean() + (t[0] - t[1:].mean()) / np.sqrt(5 / 4)
    shares = [(1 + (t[1:] >= x - 1e-12).sum()) / 100 for x in (t[0], less)]
    assert shares == [plain, shrunk]


def test_a_test_of_memorised_sites_is_made_within_folds_and_says_so():
    p, y, fold, _ = sites()
    found = ct.calibration_test(p, y, ct.DebiasedL2(15), folds=fold, n_resamples=999, rng=1)
    assert found.folds.memorised
    assert found.folds.within
    excess = WITHIN["DL2"][0] - found.null_mean
    assert found.estimate == pytest.approx(found.null_mean + excess / np.sqrt(5 / 4), rel=1e-8)
    assert found.notes[0].startswith("models memorise groups of rows")
    assert not any("folds are aligned" in note for note in found.notes)


def memorising(seed, n_folds):
    """Return predictions that are the event rates of sites in the other folds, labels, and folds.

    The generator comes last.
    """
    rng = np.random.default_rng(seed)
    level, site = 0.5 * rng.standard_normal(50) - 1.0, rng.integers(50, size=1000)
    y = (rng.random(1000) < 1 / (1 + np.exp(-level[site]))).astype(int)
    fold, p = rng.permutation(np.arange(1000) % n_folds), np.empty(1000)
    for j in range(n_folds):
        others = fold != j
        events = np.bincount(site[others], y[others], 50) + 20 * y[others].mean()
        p[~others] = (events / (np.bincount(site[others], minlength=50) + 20))[site[~others]]
    return p, y, fold, rng


def test_memorised_sites_are_rejected_no_more_often_than_fresh_rows():
    # Aligned folds: .317 (300 sets); fresh rows .163. Here 80 sets, three standard errors allowed
    rejected = 0
    for seed in range(80):
        p, y, fold, _ = memorising(seed, 10)
        test = ct.calibration_test(p, y, ct.DebiasedL2(), folds=fold, n_resamples=99, rng=1)
        rejected += test.pvalue <= 0.05
    assert rejected <= 22


@pytest.mark.parametrize("seed", range(5))
def test_sites_are_found_in_fifty_folds_of_few_rows(seed):
    # 0.4 partners a row: below the limit of few folds, and aligned tests rejected too often
    p, y, fold, _ = memorising(seed, 50)
    assert as_lens(None, ct.Predictions.of(p, y, folds=fold)).summary.memorised


@pytest.mark.parametrize("seed", range(5))
def test_no_sites_are_found_in_true_probabilities(seed):
    *_, fold, rng = memorising(seed, 50)
    true = rng.beta(1.2, 2.0, 1000)
    y = (rng.random(1000) < true).astype(int)
    assert not as_lens(None, ct.Predictions.of(true, y, folds=fold)).summary.memorised


@pytest.mark.parametrize("digits", [None, 3, 2, 1])
def test_true_models_and_rounded_ones_memorise_nothing(digits):
    for seed in range(15):
        rng = np.random.default_rng(seed)
        p = rng.beta(1.2, 2.0, 500)
        p = p if digits is None else np.clip(np.round(p, digits), 0.01, 0.99)
        fold, y = rng.permutation(np.arange(500) % 10), (rng.random(500) < p).astype(int)
        assert not as_lens(None, ct.Predictions.of(p, y, folds=fold)).summary.memorised


def test_a_joint_test_of_memorised_sites_is_made_within_folds():
    p, y, fold, _ = sites()
    pairs = [(ct.ECE(), None), (ct.CoxScore(), None)]
    joint = ct.joint_test(p, y, pairs=pairs, folds=fold, n_resamples=199, rng=1)
    assert joint.adjust == "Holm"
    assert all(test.folds.within for test in joint.tests)


def test_subgroups_of_memorised_sites_are_tested_within_folds():
    p, y, fold, _ = sites()
    by = np.arange(200) % 2
    found = ct.calibration_test(p, y, folds=fold, by=by, n_resamples=199, rng=1).subgroups
    assert all(test.folds.within for test in found.tested)
    assert any("calibrated alike is not tested" in note for note in found.notes)


def test_other_nulls_of_memorised_sites_are_refused():
    p, y, fold, _ = sites()
    with pytest.raises(ct.StatisticError, match="null='exact' does not hold"):
        ct.calibration_test(p, y, folds=fold, null="exact")


def test_estimates_of_memorised_sites_carry_a_note():
    p, y, fold, _ = sites()
    found = ct.cox_recalibration(p, y, folds=fold)
    assert any("models memorise groups" in note for note in found.notes)
    assert not found.folds.within


def test_sites_of_three_classes_are_tested_within_folds_by_vectors():
    rng = np.random.default_rng(3)
    site, y = rng.integers(0, 12, 600), rng.integers(0, 3, 600)
    fold, p = rng.permutation(np.arange(600) % 5), np.empty((600, 3))
    for j in range(5):
        i = fold != j
        counts = np.zeros((12, 3)) + 5
        np.add.at(counts, (site[i], y[i]), 1)
        p[~i] = (counts / counts.sum(axis=1, keepdims=True))[site[~i]]
    found = ct.calibration_test(
        p, y, ct.MultiScale(), lens=ct.Canonical(), folds=fold, n_resamples=99, rng=1
    )
    assert found.folds.within
    assert found.pvalue > 0.05
