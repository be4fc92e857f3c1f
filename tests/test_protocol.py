"""What a statistic may declare beyond being a function: two sides, and laws of its own."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.stats

import caltest as ct
from caltest import Predictions, StatisticError
from caltest.nulls import AsymptoticNull, SimulatedNull, reaching
from caltest.statistics.problem import as_problem, event


@dataclass(frozen=True)
class Fixed:
    p: np.ndarray

    def __call__(self, labels):
        return float(((labels == 0) - self.p).sum() / np.sqrt((self.p * (1 - self.p)).sum()))

    @property
    def laws(self):
        return {"asymptotic": lambda labels: AsymptoticNull(scipy.stats.norm())}


@dataclass(frozen=True)
class MeanGap:
    """Outcomes minus predictions, standardised: signed."""

    two_sided = True

    def __call__(self, probs, labels):
        rows, codes = as_problem(probs, labels)
        return self.given(rows)(codes)

    def given(self, probs):
        return Fixed(event(probs, "MeanGap"))


FEW = Predictions.of([0.9, 0.8, 0.8, 0.7, 0.6, 0.95], [0, 0, 1, 0, 0, 1])


def by_enumeration(data):
    p, t = data.probs[:, 1], abs(MeanGap()(data.probs[:, 1], data.labels))
    total = 0.0
    for code in range(2**data.n):
        y = code >> np.arange(data.n) & 1
        if abs(MeanGap()(p, y)) >= t - 1e-9:
            total += float(np.where(y == 1, p, 1 - p).prod())
    return total


def test_two_sides_are_added_up_exactly():
    result = ct.calibration_test(FEW, None, MeanGap(), lens=ct.OneVsRest(1))
    assert result.null == "exact"
    assert result.estimate < 0
    assert result.pvalue == pytest.approx(by_enumeration(FEW), rel=1e-9)
    assert result.null_mean == pytest.approx(0, abs=1e-12)


def test_two_sides_are_counted_in_a_simulation():
    null = ct.RedrawLabels()
    result = ct.calibration_test(FEW, None, MeanGap(), lens=ct.OneVsRest(1), null=null, rng=1)
    assert result.pvalue == pytest.approx(by_enumeration(FEW), abs=4 * result.pvalue_error)


def test_two_sides_stop_early_and_count_in_max_t():
    calm = ct.examples.SixPoints().sample(300, rng=2)
    early = ct.calibration_test(
        calm, None, MeanGap(), null=ct.RedrawLabels(), stop="early", rng=1, n_resamples=999
    )
    assert early.ended == "early"
    low = Predictions.of(np.full(200, 0.8), np.repeat([1, 0], [100, 100]))
    joint = ct.calibration_test(low, None, [(MeanGap(), ct.OneVsRest(1))], n_resamples=99, rng=1)
    assert joint.adjusted == (0.01,)


def test_a_law_of_its_own():
    asymptotic = ct.calibration_test(FEW, None, MeanGap(), lens=ct.OneVsRest(1), null="asymptotic")
    t = abs(asymptotic.estimate)
    assert asymptotic.pvalue == pytest.approx(2 * scipy.stats.norm.sf(t))
    assert (asymptotic.null_mean, asymptotic.null_std) == (0.0, 1.0)
    assert "asymptotic: not exact" in str(asymptotic)
    assert asymptotic.null_distribution.ppf(0.975) == pytest.approx(1.959964, abs=1e-6)
    assert asymptotic.null_distribution.rvs(3, rng=1).shape == (3,)


def test_a_law_that_is_not_there_is_refused():
    with pytest.raises(StatisticError, match="'auto', 'exact', RedrawLabels"):
        ct.calibration_test(FEW, null="asymptotic")


def test_an_event_needs_two_classes():
    with pytest.raises(StatisticError, match="MeanGap is for two classes, but there are 3"):
        MeanGap()(np.full((2, 3), 1 / 3), np.array([0, 1]))


def test_a_vector_of_probabilities_is_seen_as_by_one_vs_rest():
    rows, labels = as_problem([0.8, 0.3], [1, 0])
    seen = ct.OneVsRest(1)(Predictions.of([0.8, 0.3], [1, 0]))
    np.testing.assert_allclose(rows, seen.probs)
    np.testing.assert_array_equal(labels, seen.labels)


def test_reaching_counts_ties():
    values = np.array([-2.0, 0.3, 0.1 + 0.2, 1.0])
    np.testing.assert_array_equal(reaching(0.3, values), [False, True, True, True])
    np.testing.assert_array_equal(reaching(-0.3, values, two_sided=True), [True] * 4)
    assert SimulatedNull(values).sf(0.3) == 0.75
