"""Limit laws warn in data in which they are known to fail, and not where they hold."""

import warnings

import numpy as np
import pytest

import caltest as ct

KERNEL = ct.LaplaceKernel(0.3)
LAWS = [
    ct.CalibrationInTheLarge(), ct.CoxScore(), ct.CoxLR(), ct.HosmerLemeshow(),
    ct.KolmogorovSmirnov(), ct.Kuiper(), ct.ScoreGap("brier"), ct.ScoreGap("log"), ct.BrierScore(),
    ct.LogScore(), ct.SphericalScore(), ct.SKCE(KERNEL, estimator="unbiased"),
    ct.SKCE(KERNEL, estimator="linear"), ct.SKCE(KERNEL, estimator="block"),
]  # fmt: skip


def warned(probs, labels, statistic, null="asymptotic"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ct.calibration_test(probs, labels, statistic, lens=ct.OneVsRest(1), null=null)
    return [str(w.message) for w in caught if w.category is ct.LimitLawWarning]


def drawn(sample, n, seed=0):
    rng = np.random.default_rng(seed)
    p = sample(rng, n)
    labels = (rng.random(n) < p).astype(int)
    labels[:2] = 0, 1
    return p, labels


@pytest.mark.parametrize("statistic", LAWS, ids=str)
def test_one_expected_event_is_too_few_for_every_law(statistic):
    p, labels = drawn(lambda rng, n: rng.beta(0.5, 49.5, n), 100)
    (said,) = warned(p, labels, statistic)
    assert "null=RedrawLabels()" in said


@pytest.mark.parametrize("statistic", LAWS, ids=str)
def test_three_hundred_uniform_predictions_are_enough_for_every_law(statistic):
    p, labels = drawn(lambda rng, n: rng.random(n), 300)
    assert warned(p, labels, statistic) == []


def test_what_is_said_of_hosmer_and_lemeshow():
    p, labels = drawn(lambda rng, n: rng.random(n), 300)
    (said,) = warned(p, labels, ct.HosmerLemeshow(df=8))
    assert "df=8 is for the rows of the fit" in said
    p, labels = drawn(lambda rng, n: rng.beta(0.1, 0.1, n), 500)
    (said,) = warned(p, labels, ct.HosmerLemeshow())
    assert "variance of only" in said
