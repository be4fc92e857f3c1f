"""Nested clusters and repeated cross-validation: what is noted, and what is refused."""

import numpy as np
import pytest

import caltest as ct


@pytest.mark.filterwarnings("ignore::caltest.errors.FewClustersWarning")
def test_clusters_that_lie_within_subgroups_are_noted():
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(100), 4)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    run = {"clusters": patient, "n_resamples": 199, "rng": 1}
    found = ct.calibration_test(p, y, by=[f"hospital {h}" for h in patient // 10], **run)
    assert any("the 100 clusters lie within 10 subgroups" in note for note in found.notes)
    nine = np.minimum(patient // 10, 8)
    few = ct.calibration_test(p, y, by=[f"hospital {h}" for h in nine], **run)
    assert not any("lie within" in note for note in few.notes)  # fewer than ten subgroups
    alike = ct.calibration_test(p, y, by=np.where(patient % 2, "f", "m"), **run)
    assert not any("lie within" in note for note in alike.notes)


def test_folds_of_repeated_cross_validation_are_refused_with_what_to_do():
    p, folds = np.full(60, 0.5), np.column_stack([np.arange(60) % 5, np.arange(60) // 12])
    with pytest.raises(ct.InvalidPredictionsError, match="twice the median of the p-values"):
        ct.calibration_test(p, np.arange(60) % 2, folds=folds)
