"""Type-I error by simulation: a calibrated model is rejected at level α with probability ≤ α.

Limits are binomial: a correct test fails one of these with probability below 1e-5, and all seeds
are fixed.
"""

import warnings

import numpy as np
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
