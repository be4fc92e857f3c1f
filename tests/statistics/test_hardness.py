"""Inputs that once broke, or could break, a promise."""

import numpy as np
import pytest
from conftest import seen

import caltest as ct
from caltest import RedrawLabels, StatisticError
from caltest._base.poisson_binomial import poisson_binomial
from caltest.simulate.labels import LabelDrawer
from caltest.statistics.base import problem_of


def test_a_probability_above_one_by_rounding_is_certain():
    first, pmf, _ = poisson_binomial(np.array([1.0 + 2.3e-16, 0.5]))
    assert (first, list(pmf)) == (1, [0.5, 0.5])
    probs = np.array([[1.0000000000000002, 0.0]] * 100 + [[0.97, 0.03]] * 100)
    labels = np.r_[np.zeros(100), np.ones(15), np.zeros(85)]
    clean = ct.calibration_test(np.minimum(probs, 1.0), labels)
    assert ct.calibration_test(probs, labels).pvalue == clean.pvalue < 1e-6


@pytest.mark.parametrize("n_classes", [3, 50])
@pytest.mark.parametrize("distance", ["l2", "sqeuclidean", "max", "tv"])
def test_compiled_and_plain_values_agree_to_the_last_ties(n_classes, distance):
    """Gaps near zero: corrections that cancel would differ by the root of the rounding."""
    rng = np.random.default_rng(1)
    probs = np.full((20_000, n_classes), 1.5e-6 / (n_classes - 1))
    probs[:, 0] = 1.0 - 1.5e-6
    data = seen(probs)
    fixed = ct.ECE(1, distance=distance).prepare(problem_of(data))
    for _ in range(20):
        labels = (rng.random(20_000) < 1e-4).astype(np.int64)
        assert fixed.batch(labels[None])[0] == pytest.approx(fixed(labels), rel=1e-11, abs=1e-15)
    observed = fixed(np.zeros(20_000, int))
    for values in (
        fixed.redraws(ct.RedrawLabels()).replicates((1, 2), 0, 400),
        fixed.batch(LabelDrawer.of(probs)((1, 2), 0, 400)),
    ):
        assert abs(np.abs(values - observed).min()) < 1e-15


def test_probabilities_that_vanish_beside_one():
    for lens in (ct.OneVsRest(1), ct.OneVsRest(0), ct.TopK(1), ct.Canonical()):
        data = ct.Predictions(np.array([[1.0, 1e-17]] * 3), np.array([1, 0, 0]))
        result = ct.calibration_test(data, None, ct.ECE(1), lens=lens)
        assert result.pvalue == pytest.approx(3e-17, rel=1e-6)


@pytest.mark.parametrize("bins", [5, 10])
def test_infinite_distances_are_refused(bins):
    def divergence(r, g):
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(g > 0, g * np.log(g / r), 0.0).sum())

    p = np.linspace(0.05, 0.9, 60)
    with pytest.raises(StatisticError, match="finite number"):
        ct.calibration_test(
            p, np.tile([0, 1], 30), ct.ECE(bins, distance=divergence), lens=ct.OneVsRest(1)
        )


def test_an_atom_at_the_estimate_does_not_refine_for_ever():
    """Few expected errors: the upper end is right, and found on a modest grid."""
    generator = np.random.default_rng(0)
    p = generator.beta(20, 0.5, 200)
    p = np.where(generator.random(200) < 0.5, p, 1 - p)
    labels = (generator.random(200) < p).astype(int)
    exact = ct.calibration_test(p, labels, lens=ct.OneVsRest(1))
    simulated = ct.calibration_test(
        p, labels, lens=ct.OneVsRest(1), null=RedrawLabels(), n_resamples=19_999, rng=1
    )
    assert exact.null_distribution.support.size < 200_000
    assert simulated.pvalue_bracket[0] <= exact.pvalue <= simulated.pvalue_bracket[1] + 1e-3
