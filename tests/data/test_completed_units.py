"""Follow-up that was recorded in completed units, and the note on coarse times.

Golden numbers are of a program in plain numpy that was written apart from the package.
"""

import numpy as np
import pytest

import caltest as ct
from caltest.errors import InvalidPredictionsError, StatisticError


def exact(seed=2028, n=300):
    """Return risks by 5, exact times and events of a calibrated model."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 2.2, n)
    event, lost = 5 * np.log1p(-rng.random(n)) / np.log1p(-p), rng.exponential(10, n)
    return p, np.minimum(event, lost), (event <= lost).astype(int)


def by_rule(p, t, e):
    """Events at t + ½, censorings of a year at t + ¼ and t + ¾ in turn by prediction: slow."""
    year, seen = np.floor(t), {}
    placed = year + 0.5
    for i in sorted(np.flatnonzero(e == 0), key=lambda i: (year[i], p[i])):
        seen[year[i]] = seen.get(year[i], -1) + 1
        placed[i] = year[i] + (0.25, 0.75)[seen[year[i]] % 2]
    return placed


def test_times_within_completed_years_are_those_of_the_reference():
    p, t, e = exact()
    placed = ct.Followup(np.floor(t), e, 5, recorded="floor").placed(p)
    assert placed.time == pytest.approx(by_rule(p, t, e), abs=1e-12)
    # of the reference program
    assert placed.time.sum() == pytest.approx(1963.75, abs=1e-8)
    assert placed.time @ p == pytest.approx(513.297900252, rel=1e-8)
    weights = placed.censoring(p).weights
    # Kaplan and Meier's weights, of the reference program
    assert weights @ (placed.status == 1) == pytest.approx(91.7045297151, rel=1e-8)
    assert (weights**2).sum() == pytest.approx(460.838516257, rel=1e-8)


@pytest.mark.parametrize(
    ("times", "events", "squares"),
    # of the reference program
    [(np.floor, 108.267583403, 464.482480861), (np.asarray, 92.2589888651, 460.699931868)],
)
def test_weights_of_exact_and_floored_times_are_those_of_the_reference(times, events, squares):
    p, t, e = exact()
    followup = ct.Followup(times(t), e, 5)
    weights = followup.censoring(p).weights
    assert weights @ (followup.status == 1) == pytest.approx(events, rel=1e-8)
    assert (weights**2).sum() == pytest.approx(squares, rel=1e-8)


def test_years_begun_are_completed_years_and_one():
    p, t, e = exact()
    floor = ct.Followup(np.floor(t), e, 5, recorded="floor").placed(p)
    ceil = ct.Followup(np.floor(t) + 1, e, 5, recorded="ceil").placed(p)
    np.testing.assert_allclose(floor.time, ceil.time)
    months = ct.Followup(np.floor(t) * 12, e, 60, unit=12, recorded="floor").placed(p)
    np.testing.assert_allclose(months.time, 12 * floor.time)


def test_labels_are_those_of_times_within_their_units():
    data = ct.Followup([5, 4, 5, 4], [1, 1, 0, 0], 5, recorded="floor")
    assert data.status.tolist() == [0, 1, 0, -1]  # an event recorded as 5 is after 5
    assert data.labels.tolist() == [0, 1, 0, 0]


def test_weights_of_completed_units_answer_tests():
    p, t, e = exact(3, 1000)
    data = ct.Predictions.of(p, ct.Followup(np.floor(t), e, 5, recorded="floor"))
    assert data.followup.recorded == "exact"


def test_completed_years_hold_their_level_where_said():
    # Kuiper at 0.05 with 1000 rows, 200 sets: .43 as exact times, .04 as completed years
    rejected = np.zeros(2)
    for seed in range(20):
        p, t, e = exact(seed, 1000)
        for j, recorded in enumerate(("exact", "floor")):
            followup = ct.Followup(np.floor(t), e, 5, recorded=recorded)
            test = ct.calibration_test(p, followup, ct.Kuiper(), n_resamples=99, rng=1)
            rejected[j] += test.pvalue <= 0.05
    assert rejected[0] >= 4
    assert rejected[1] <= 4


@pytest.mark.parametrize(("name", "unit", "units"), [("years", 1, 5), ("exact", 0, 0)])
def test_the_note_on_coarse_times_is_on_rounded_years_only(name, unit, units):
    _, t, e = exact()
    times = np.floor(t) if unit else t
    followup = ct.Followup(times, e, 5)
    assert followup.coarse == units
    assert any("recorded='floor'" in note for note in followup.notes) == bool(units)
    assert ct.Followup(np.floor(12 * t), e, 60).coarse == 0  # months
    assert ct.Followup(np.floor(t), e, 5, recorded="floor").coarse == 0


def test_no_horizon_inside_a_unit_and_no_time_between_units():
    with pytest.raises(StatisticError, match=r"the horizon 4\.5 lies inside a unit of 1"):
        ct.Followup([4, 5], [1, 0], 4.5, recorded="floor")
    with pytest.raises(InvalidPredictionsError, match=r"is 4\.5, no multiple of unit=1"):
        ct.Followup([4.5, 5], [1, 0], 4, recorded="floor")
    with pytest.raises(InvalidPredictionsError, match="units begun"):
        ct.Followup([0, 5], [1, 0], 4, recorded="ceil")
