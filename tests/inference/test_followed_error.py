"""Intervals of the error where follow-up ends before some outcomes."""

import numpy as np
import pytest

import caltest as ct
from caltest.inference.inversion import _sign_vectors
from caltest.statistics import MeanDifference

ERROR = ct.ECE(ct.QuantileBins(8))


def patients(n, slope, shift, seed):
    """Return risks by 5, the true risks, times and events."""
    rng = np.random.default_rng(seed)
    lp = rng.normal(-1.6, 0.9, n)
    rate = np.exp(slope * lp + shift)
    died, left = 5.0 * rng.exponential(1.0 / rate), rng.uniform(1.0, 12.0, n)
    p, q = (-np.expm1(-x) for x in (np.exp(lp), rate))
    return p, q, np.minimum(died, left), died <= left


def bounds(n, slope, shift, seed, statistic=ERROR, **options):
    p, _, time, event = patients(n, slope, shift, seed)
    seen = ct.Followup(time, event, 5.0)
    return ct.confidence_interval(p, seen, statistic, n_resamples=999, rng=seed, **options)


def test_without_censoring_the_difference_is_the_mean_residual_with_its_normal_interval():
    p, _, time, event = patients(400, 1.0, 0.3, 1)
    died = event & (time <= 5.0)
    time, event = np.where(died, time, 6.0), died
    found = ct.confidence_interval(p, ct.Followup(time, event, 5.0), MeanDifference())
    residuals = died - p
    half = 1.959964 * residuals.std(ddof=1) / 20.0
    assert found.method == "influence"
    assert found.estimate == pytest.approx(residuals.mean())
    assert found.high - found.estimate == pytest.approx(half, rel=1e-6)


def test_one_sided_bounds_are_nearer_and_open_on_the_other_side():
    both, low, high = (
        bounds(600, 0.75, -0.15, 2, side=side) for side in ("two-sided", "lower", "upper")
    )
    assert (low.high, high.low) == (1.0, 0.0)
    assert high.high < both.high
    assert low.low >= both.low


def test_all_signs_of_few_bins_are_listed():
    gaps = np.array([0.1, -0.2, 0.0])
    assert len({tuple(row) for row in _sign_vectors(gaps, np.eye(3))}) == 8


def test_subgroups_have_intervals_with_follow_up():
    p, _, time, event = patients(600, 1.0, 0.4, 3)
    by = np.where(np.arange(600) % 2, "Basel", "Bern")
    data = ct.Predictions.of(p, ct.Followup(time, event, 5.0), by=by)
    found = ct.confidence_interval(data, None, MeanDifference())
    assert found.subgroups is not None
    assert found.subgroups.names == ("Basel", "Bern")


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.75, -0.15), (1.0, 0.25)])
def test_95_percent_intervals_cover_in_at_least_93_percent(slope, shift):
    p, q, *_ = patients(200_000, slope, shift, 0)
    covered, signed, sets = 0, 0, 200
    for seed in range(1, sets + 1):
        mine = patients(400, slope, shift, seed)[0]
        cell = np.searchsorted(np.quantile(mine, np.arange(1, 8) / 8), p)
        error = np.abs(np.bincount(cell, q - p)).sum() / p.size
        found = bounds(400, slope, shift, seed)
        covered += found.low <= error <= found.high
        found = bounds(400, slope, shift, seed, MeanDifference())
        signed += found.low <= (q - p).mean() <= found.high
    assert covered >= 0.93 * sets
    assert signed >= 0.92 * sets
