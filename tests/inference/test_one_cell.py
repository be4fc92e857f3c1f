"""Scores of very many rows whose predictions lie in few micro-cells: rows are asked."""

import numpy as np
import pytest

import caltest as ct
from caltest.inference._input import ROWS_FOR_SUMS, Analysis


@pytest.mark.parametrize("width", [1e-4, 4e-4])
def test_the_floor_of_cox_scores_in_one_cell_does_not_depend_on_labels(width):
    n = ROWS_FOR_SUMS + 2
    p = 0.3 + width * np.random.default_rng(0).random(n)
    floors, values = [], []
    for seed in (0, 2):
        y = (np.random.default_rng(seed).random(n) < p).astype(int)
        test = ct.calibration_test(p, y, ct.CoxScore(), n_resamples=19, rng=1)
        floors.append(test.null_mean)
        z = np.log(p / (1 - p))
        v, r = p * (1 - p), y - p
        z = z - (v @ z) / v.sum()
        values.append((test.estimate, r.sum() ** 2 / v.sum() + (r @ z) ** 2 / (v @ z**2)))
    assert floors[0] == floors[1]  # sums: a constant of the labels was added to every draw
    for found, expected in values:
        assert found == pytest.approx(expected, rel=1e-6)


def test_few_distinct_predictions_are_still_asked_by_their_sums():
    p = np.tile([0.2, 0.4, 0.6], ROWS_FOR_SUMS // 2)
    y = (np.random.default_rng(0).random(p.size) < p).astype(int)
    data = ct.Predictions.of(p, y)
    assert Analysis.through(ct.OneVsRest(1), data, summable=[ct.CoxScore()]).from_sums
