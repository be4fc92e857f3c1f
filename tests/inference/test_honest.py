"""The honest band: against a slow twin, at every sample size, and the published table."""

import numpy as np
import pytest
from twins.curves import clopper_pearson_band

import caltest as ct
from caltest.inference.diagrams import honest_band


def _band(p, happened, level, grid):
    x, of = np.unique(p, return_inverse=True)
    return honest_band(x, np.bincount(of), np.bincount(of, happened).astype(int), level, grid)


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", ["random", "ties", "all", "none", "separated", "one value"])
def test_band_against_a_loop_over_all_intervals(rng, kind):
    p = np.round(rng.random(40), 1 if kind == "ties" else 6)
    p = np.full(40, 0.3) if kind == "one value" else p
    y = {"all": p >= 0.0, "none": p < 0.0, "separated": p > 0.5}.get(kind, rng.random(40) < p)
    band = _band(p, y, 0.9, np.unique(p))
    for ours, slow in zip(band, clopper_pearson_band(p, y, 0.9, np.unique(p)), strict=True):
        np.testing.assert_allclose(ours, slow, rtol=1e-9, atol=1e-12)


def test_rounded_band_against_a_loop_over_all_intervals(rng):
    p, grid = rng.random(200), np.linspace(0.0, 1.0, 8)
    y = rng.random(200) < p
    x, low, high = clopper_pearson_band(p, y, 0.8, grid)
    at, ours_low, ours_high = _band(p, y, 0.8, grid)
    # What is not told lies between a first and a last prediction with the same band.
    right = np.searchsorted(at, x)
    assert at.size < 20
    np.testing.assert_allclose(ours_low[right], low, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours_high[right], high, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("s", "n", "published"),
    [(1.0, 1024, 0.14), (0.9, 2048, 0.13), (0.9, 4096, 0.85), (0.8, 8192, 0.71)],
)
def test_crossings_against_the_published_table(s, n, published):
    # Table of Dimitriadis et al.: predictions rounded to three digits, outward; level .95.
    rng, a, grid, trials = np.random.default_rng(2), 2.0 * s - 1.0, np.arange(1001) / 1000.0, 200
    crossed = 0
    for _ in range(trials):
        x = rng.random(n)
        truth = 0.5 - a * (x - 0.5) + 4.0 * (a + 1.0) * (x - 0.5) ** 3
        _, low, high = _band(x, rng.random(n) < truth, 0.95, grid)
        crossed += bool((low > high).any())
    error = np.sqrt(published * (1.0 - published) * (1.0 / trials + 1.0 / 1000.0))
    assert crossed / trials == pytest.approx(published, abs=4.0 * error + 0.005)


@pytest.fixture(scope="module")
def band_of():
    """A function from the true event rate, as a function of p, to the band of 20 000 rows."""

    def fitted(rate, **options):
        rng = np.random.default_rng(0)
        p = rng.random(20_000)
        return ct.reliability_fit(p, rng.random(p.size) < rate(p), fit="band", **options)

    return fitted


def test_the_band_of_a_calibrated_model_proves_a_small_error(band_of):
    calibrated = band_of(lambda p: p)
    told = calibrated.band_test(0.2, between=(0.1, 0.9))
    assert told.at_least == 0.0
    assert 0.05 < told.at_most < 0.2
    assert told.verdict == "calibrated to within the tolerance"
    assert not calibrated.crosses
    assert calibrated.band_test(0.01).verdict == "cannot tell"


def test_the_band_of_an_extreme_model_proves_an_error(band_of):
    extreme = band_of(lambda p: 0.25 + 0.5 * p)
    told = extreme.band_test(0.05, between=(0.1, 0.9))
    assert 0.05 < told.at_least < 0.2 < told.at_most  # the error at .1 and .9 is .2
    assert told.verdict == "miscalibrated, and it matters"
    large = extreme.band_test(0.5, between=(0.1, 0.9))
    assert large.verdict == "miscalibrated, but too little to matter"
    assert extreme.band_test(0.22).verdict == "cannot tell"


def test_the_band_of_a_reversed_model_crosses_itself(band_of):
    reversed_model = band_of(lambda p: 1.0 - p, as_is=True)
    assert reversed_model.crosses
    assert np.isnan(reversed_model.band_test(0.5).at_most)


def test_margin_is_the_largest_distance_of_band_and_prediction(rng):
    p = rng.random(300)
    fit = ct.reliability_fit(p, rng.random(300) < p, fit="band", points=30)
    # At every prediction, not only at those of the table.
    (columns,) = fit._tables()
    np.testing.assert_array_equal(columns["predicted"][[0, -1]], fit.predicted[[0, -1]])
    right = np.searchsorted(fit.predicted, p)
    left = np.searchsorted(fit.predicted, p, side="right") - 1
    worst = np.maximum(fit.high[right] - p, p - fit.low[left])
    assert fit.band_test().at_most == pytest.approx(worst.max(), abs=1e-12)
