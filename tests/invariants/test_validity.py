"""Type-I error by simulation: a calibrated model is rejected at level α with probability ≤ α.

Limits are binomial: a correct test fails one of these with probability below 1e-5, and all seeds
are fixed.
"""

import warnings

import numpy as np
import pytest
import scipy.stats

import caltest as ct
from caltest.simulate import LabelSampler

ALPHA = 0.05
RESAMPLES = 99  # (99 + 1) · 0.05 is whole: the size of a continuous statistic is 0.05 exactly


def rejections(make, statistic, lens, runs, seed, **options):
    """How often calibrated data sets of ``make`` are rejected, and all p-values."""
    generator = np.random.default_rng(seed)
    options = {"n_resamples": RESAMPLES, **options}
    pvalues = np.empty(runs)
    for r in range(runs):
        probs = make(generator)
        labels = LabelSampler.of(probs)(generator.random(len(probs)))
        result = ct.calibration_test(probs, labels, statistic, lens=lens, rng=generator, **options)
        pvalues[r] = result.pvalue
    return int((pvalues <= ALPHA).sum()), pvalues


def dirichlet(n, k, concentration):
    return lambda generator: generator.dirichlet(np.full(k, concentration), n)


def nine_values(n):
    def make(generator):
        p = generator.integers(1, 10, n) / 10
        return np.column_stack([1 - p, p])

    return make


def confident(n):
    def make(generator):
        p = 1 - generator.beta(0.5, 5, n)
        return np.column_stack([p, 1 - p])

    return make


def few_values_and_a_crowd(n):
    def make(generator):
        p = np.where(generator.random(n) < 0.6, 0.8, np.round(generator.random(n), 1))
        return np.column_stack([1 - p, p])

    return make


EXACT = {
    "top-100-bins": (dirichlet(50, 3, 1.0), ct.ECE(ct.UniformBins(100)), ct.TopK(1)),
    "binary-15": (dirichlet(50, 2, 1.0), ct.ECE(ct.UniformBins(15)), ct.TopK(1)),
    "quantiles": (dirichlet(80, 5, 0.3), ct.ECE(ct.QuantileBins(10)), ct.TopK(1)),
    "class-2": (dirichlet(80, 5, 0.3), ct.ECE(15, distance="sqeuclidean"), ct.OneVsRest(2)),
    "confident": (confident(100), ct.ECE(ct.UniformBins(15)), ct.TopK(1)),
    "nine": (nine_values(100), ct.ECE(ct.UniformBins(15)), ct.OneVsRest(1)),
    "nine-max": (nine_values(100), ct.MCE(ct.UniformBins(15)), ct.OneVsRest(1)),
    "nine-30": (nine_values(30), ct.ECE(ct.UniformBins(10)), ct.OneVsRest(1)),
    "crowd": (few_values_and_a_crowd(60), ct.ECE(ct.QuantileBins(10)), ct.OneVsRest(1)),
    "crowd-left": (
        few_values_and_a_crowd(60),
        ct.ECE(ct.QuantileBins(10, closed="left")),
        ct.OneVsRest(1),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_size_of_the_exact_test(name):
    # A law belongs to the predictions: one test for each of 12 sets gives it, and the p-values of
    # 300 more calibrated label vectors are read off. Given the predictions every p is valid.
    make, statistic, lens = EXACT[name]
    generator, pvalues = np.random.default_rng(21), []
    for _ in range(12):
        probs = make(generator)
        draw = LabelSampler.of(probs)
        labels = draw(generator.random(len(probs)))
        result = ct.calibration_test(probs, labels, statistic, lens=lens)
        assert result.null == "exact"
        pvalues.append(result.pvalue)
        for _ in range(300):
            seen = lens(ct.Predictions.of(probs, draw(generator.random(len(probs)))))
            pvalues.append(result.null_distribution.sf(statistic(seen.probs, seen.labels)))
    pvalues = np.array(pvalues)
    for level in (0.01, ALPHA, 0.2, 0.5, 0.8):
        assert (pvalues <= level).sum() <= scipy.stats.binom.isf(1e-5, pvalues.size, level)
    # Not asleep either, as far as discreteness lets it.
    assert (pvalues <= 0.5).mean() > 0.35


def test_simulated_p_is_uniform_for_a_continuous_statistic():
    make, statistic = dirichlet(40, 3, 1.0), ct.ECE(ct.VarianceTree(10))
    _, pvalues = rejections(make, statistic, ct.Canonical(), 1000, seed=3, n_resamples=19)
    counts = np.bincount(np.round(20 * pvalues).astype(int) - 1, minlength=20)
    assert counts.size == 20
    assert scipy.stats.chisquare(counts).pvalue > 1e-5


def test_claim_that_consistency_resampling_rejects_calibrated_models():
    # Ten classes, 250 rows, a grid: some 206 cells. The published scheme rejects nearly always.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.SparseBinsWarning)
        rejected, _ = rejections(
            dirichlet(250, 10, 0.1),
            ct.ECE(ct.UniformBins(10)),
            ct.Canonical(),
            60,
            seed=5,
            null=ct.ConsistencyResampling(),
        )
    assert rejected / 60 > 0.9


def test_consistency_resampling_is_fine_with_full_bins():
    make = dirichlet(200, 2, 1.0)
    rejected, _ = rejections(
        make, ct.ECE(5), ct.OneVsRest(1), 200, seed=7, null=ct.ConsistencyResampling()
    )
    assert rejected <= scipy.stats.binom.isf(1e-5, 200, 0.065)
