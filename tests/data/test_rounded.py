"""Stated probabilities of 0 and 1 that rounding made: left out aloud, in Python as in files."""

import warnings

import numpy as np
import pytest

import caltest as ct
from caltest.errors import DoubtfulInputWarning


def percents(seed, n=3000):
    """Return calibrated predictions rounded to 2 decimals, and labels."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.2, 5.0, n)
    return np.round(p, 2), (rng.random(n) < p).astype(int)


def test_rows_that_rounding_contradicts_are_left_out_aloud():
    for seed in range(3):
        p, y = percents(seed)
        if not ((p == 0) & (y == 1)).any():
            continue
        with pytest.warns(DoubtfulInputWarning, match="rounding to multiples of 0.01 explains"):
            data = ct.Predictions.of(p, y)
        assert data.n == (p > 0).sum()
        assert any("may be rounded" in note for note in data.notes)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::caltest.errors.DoubtfulInputWarning")
def test_audits_of_rounded_percents_hold_their_level():
    # 200 sets: .740 before, .035 with rounded="auto"; here 25
    verdicts = [str(ct.audit(*percents(s), n_resamples=199, rng=1).verdict) for s in range(25)]
    assert verdicts.count("miscalibrated") <= 5


def test_rows_stay_where_asked_and_in_values_and_comparisons():
    p, y = percents(1)
    assert ct.Predictions.of(p, y, rounded=False).n == 3000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ct.calibration_test(p, y, n_resamples=99, rounded=False).n == 3000
        assert ct.ECE()(p, y) == pytest.approx(ct.ECE()(ct.Predictions.of(p, y, rounded=False)))
        assert ct.compare(p, np.round(p, 1), y).n == 3000
        assert ct.Tally.of(p, y).n == 3000
        assert ct.Monitor().update(p, y).n == 3000


def test_predictions_are_rounded_only_when_asked():
    p, y = percents(1)
    data = ct.Predictions.of(p, y, rounded=False)
    assert ct.Predictions.of(data) is data
    assert ct.Predictions.of(data, rounded=True).n == (p > 0).sum()


def test_zeros_that_rounding_cannot_explain_stay():
    p, y = percents(1)
    y = np.where((p == 0) & (np.arange(3000) % 10 == 0), 1, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ct.Predictions.of(p, y).n == 3000
