"""Revisions: expectation 1 by enumeration, values of the slow twin, effect, and refusals."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr
from twins import revisions as slow

import caltest as ct
from caltest.errors import DoubtfulInputError, InvalidPredictionsError


def in_rows(paths):
    """Return ids, times and probabilities of paths of shape (Q, T)."""
    count, length = np.shape(paths)
    return np.repeat(np.arange(count), length), np.tile(np.arange(length), count), np.ravel(paths)


def gaussian(seed, questions, length, pull=1.0):
    """Return probabilities that a Brownian path ends above 0, revised by ``pull`` of the way."""
    rng = np.random.default_rng(seed)
    start = rng.normal(0.0, 0.7, (questions, 1))
    walk = np.cumsum(rng.standard_normal((questions, length)) / np.sqrt(length), axis=1)
    t = np.arange(length) / length
    walk = np.hstack([np.zeros((questions, 1)), walk])[:, :length]
    q = ndtr((start + walk) / np.sqrt(1.0 - t))
    p = q.copy()
    for k in range(1, length):
        p[:, k] = np.clip(p[:, k - 1] + pull * (q[:, k] - p[:, k - 1]), 0.001, 0.999)
    return p


def seeded():
    """Return the paths and outcomes of the recorded values."""
    rng = np.random.default_rng(20261127)
    return np.round(rng.random((4, 9)), 2), rng.integers(0, 2, 4)


def test_recorded_log_evidence_of_independent_questions():
    paths, y = seeded()
    # From the reference program of the method's specification, e_process(P, y, "product").
    test = ct.Revisions(*in_rows(paths), np.repeat(y, 9), least=0.0).test()
    assert test.log_evidence == pytest.approx(21.944863596771167, abs=1e-10)


def test_recorded_log_evidence_of_dependent_questions():
    paths, y = seeded()
    # From the same program, e_process(P, y, "time").
    test = ct.Revisions(*in_rows(paths), np.repeat(y, 9), least=0.0, dependent=True).test()
    assert test.log_evidence == pytest.approx(6.904564627037511, abs=1e-10)


def test_recorded_excess_movement():
    paths, _ = seeded()
    test = ct.Revisions(*in_rows(paths), least=0.0).test()
    # Σ over the four questions of the same program's movement(P).
    assert test.movement - test.resolved == pytest.approx(1.4508 + 1.4486 + 1.4346 + 2.164)


@pytest.mark.parametrize("least", [0.0, 0.2])
@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1], [0, 1, 1, 0], [0, 0, 0, 0]])
def test_evidence_is_that_of_the_slow_twin(groups, least):
    paths, _ = seeded()
    rows = None if groups is None else np.repeat(groups, 9)
    test = ct.Revisions(*in_rows(paths), groups=rows, least=least).test()
    twin = slow.log_evidence(paths, groups, least)
    np.testing.assert_allclose(test.history[1:, 1], twin, atol=1e-10)


@pytest.mark.parametrize("start", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("least", [0.0, 0.15, 0.3])
def test_expected_evidence_is_1_at_every_time(start, least):
    paths, chance = slow.lattice_martingale(start, 5)
    expected = np.zeros(5)
    for path, q in zip(paths, chance, strict=True):
        history = ct.Revisions(*in_rows([path]), least=least).test().history
        expected += q * np.exp(history[1:, 1])
    np.testing.assert_allclose(expected, 1.0, atol=1e-12)


@pytest.mark.parametrize("groups", [None, [0, 0]])
def test_expected_evidence_of_two_independent_questions_is_1(groups):
    first, a = slow.lattice_martingale(0.25, 3)
    second, b = slow.lattice_martingale(0.6, 3)
    total = 0.0
    for path, q in zip(first, a, strict=True):
        for other, w in zip(second, b, strict=True):
            rows = in_rows([path, other])
            marks = None if groups is None else np.repeat(groups, 4)
            total += q * w * ct.Revisions(*rows, groups=marks, least=0.0).test().evidence
    assert total == pytest.approx(1.0, abs=1e-12)


def test_dependent_questions_need_a_group():
    paths, chance = slow.lattice_martingale(0.25, 4)
    both = [np.stack([path, 1.0 - path]) for path in paths]  # one news moves both
    product, grouped = (
        sum(
            q * ct.Revisions(*in_rows(pair), least=0.0, dependent=how).test().evidence
            for pair, q in zip(both, chance, strict=True)
        )
        for how in (False, True)
    )
    assert grouped == pytest.approx(1.0, abs=1e-12)
    assert product > 1.1  # independence is an assumption, and this is what it costs


def test_expected_movement_evidence_is_1():
    paths, chance = slow.lattice_martingale(0.5, 5)
    e = [np.exp(ct.Revisions(*in_rows([p]), least=0.0).test().movement_log_evidence) for p in paths]
    assert np.dot(chance, e) == pytest.approx(1.0, abs=1e-12)


def test_copies_and_missing_days_change_nothing():
    paths = np.random.default_rng(0).random((3, 6))
    copies = np.repeat(paths, 3, axis=1)
    missing = copies.copy()
    missing[:, 1::3] = np.nan
    plain, often, gaps = (ct.Revisions(*in_rows(p)).test() for p in (paths, copies, missing))
    assert plain.log_evidence == often.log_evidence == gaps.log_evidence
    assert gaps.notes == ("18 rows without a forecast count as no revision",)


def test_order_of_rows_does_not_matter():
    ids, times, probs = in_rows(gaussian(1, 20, 15))
    order = np.random.default_rng(2).permutation(ids.size)
    plain = ct.Revisions(ids, times, probs).test()
    mixed = ct.Revisions(ids[order], times[order], probs[order]).test()
    assert plain.log_evidence == pytest.approx(mixed.log_evidence, abs=1e-9)


def test_slow_forecasters_are_found_and_named():
    test = ct.Revisions(*in_rows(gaussian(3, 100, 30, pull=0.5))).test()
    assert test.alarm
    assert test.direction == "too slow"
    assert 0.35 < test.effect_low < test.effect_high < 0.6


def test_fast_forecasters_are_found_and_named():
    test = ct.Revisions(*in_rows(gaussian(4, 100, 30, pull=1.5))).test()
    assert test.alarm
    assert test.direction == "too fast"
    assert test.effect_low > 1.2


def test_calibrated_forecasters_go_all_the_way():
    test = ct.Revisions(*in_rows(gaussian(5, 200, 30))).test()
    assert not test.alarm
    assert test.effect_low < 1.0 < test.effect_high


def test_an_outcome_is_the_last_forecast():
    paths, y = seeded()
    ids, times, probs = in_rows(paths)
    as_rows = ct.Revisions(*in_rows(np.column_stack([paths, y])), least=0.0).test()
    apart = ct.Revisions(ids, times, probs, dict(enumerate(y)), least=0.0).test()
    assert apart.log_evidence == as_rows.log_evidence


def test_a_certain_forecast_that_comes_back_is_no_infinite_evidence():
    test = ct.Revisions([0, 0, 0], [1, 2, 3], [0.5, 0.0, 0.2], least=0.0).test()
    # Log e-value of the reference program of the method's specification.
    assert test.log_evidence == pytest.approx(1.48, abs=0.01)


def test_forecasts_in_percent_settle_bets_after_three_steps():
    rows = in_rows(np.round(gaussian(6, 20, 10), 2))
    assert ct.Revisions(*rows).least == pytest.approx(0.03)
    assert ct.Revisions(*in_rows(gaussian(6, 20, 10))).least == 0.0


@pytest.mark.parametrize(
    ("values", "grid"),
    [
        (lambda p: np.round(p, 2), 0.01),
        (lambda p: np.round(p / 0.025) * 0.025, 0.025),  # was taken for thousandths
        (lambda p: np.round(p / 0.02) * 0.02, 0.02),
        (lambda p: np.round(p / 0.005) * 0.005, 0.005),
        (lambda p: np.where(p < 0.1, np.round(p, 3), np.round(p, 2)), 0.01),
        (lambda p: p, 0.0),
    ],
)
def test_the_grid_of_rounded_forecasts_is_found(values, grid):
    made = ct.Revisions(*in_rows(values(gaussian(6, 20, 30))))
    assert made.grid == grid
    assert (made.least, made.step) == pytest.approx((3 * grid, 0.6 * grid))
    plain = ct.Revisions(*in_rows(values(gaussian(6, 20, 30))), least=0.0)
    assert (plain.grid, plain.least, plain.step) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("questions", "length", "start", "grid"),
    [(400, 100, 0.0, 0.01), (200, 60, -2.2, 0.01), (200, 100, 0.0, 0.025), (100, 60, 0.0, 0.05)],
)
def test_rounded_calibrated_forecasts_raise_no_alarm(questions, length, start, grid):
    # Without the charge for rounding: alarms in .47, .52, 1.00 and .95 of larger data sets
    alarms = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, questions])
        walk = np.cumsum(rng.standard_normal((questions, length)), axis=1) / np.sqrt(length)
        left = np.sqrt(1.0 - np.arange(1, length) / length)
        exact = ndtr((start + walk[:, :-1]) / left)
        alarms += ct.Revisions(*in_rows(np.round(exact / grid) * grid)).test().alarm
    assert alarms == 0


def test_a_rounded_path_that_just_crossed_earns_nothing():
    # A continuous path that has just entered its cell from below leaves by ± 3 steps with
    # probabilities 2/5 and 3/5 (ruin: the ends are 3 and 2 steps away)
    chances = {0.53: 0.4, 0.47: 0.6}
    total = plain = 0.0
    for end, chance in chances.items():
        rows = [0, 0], [1, 2], [0.5, end]
        total += chance * ct.Revisions(*rows).test().evidence
        plain += chance * np.exp(ct.Revisions(*rows, least=0.0).test().log_evidence)
    assert total <= 1.0 + 1e-12
    assert plain == pytest.approx(1.0, abs=1e-12)  # up and down cancel in the mixture
    down = {
        step: sum(
            chance
            * np.exp(ct.Revisions([0, 0], [1, 2], [0.5, end], step=step).test().history[-1, 1])
            for end, chance in chances.items()
        )
        for step in (0.0, 0.006, 0.01)
    }
    assert down[0.01] < down[0.006] <= down[0.0]


@pytest.mark.parametrize("steps", [10, 20, 40, 50])
def test_a_coarse_grid_has_no_movement_and_no_interval(steps):
    # 500 calibrated sets in multiples of 0.025: the interval missed 1 in 36 %
    test = ct.Revisions(*in_rows(np.round(gaussian(6, 20, 30) * steps) / steps)).test()
    assert test.movement_log_evidence == 0.0
    assert np.isnan(test.effect_low)
    assert any("too coarse" in note for note in test.notes)


def test_slow_forecasters_are_found_in_percents():
    test = ct.Revisions(*in_rows(np.round(gaussian(3, 100, 30, pull=0.5), 2))).test()
    assert test.alarm
    assert test.direction == "too slow"


def test_dates_are_times():
    days = np.datetime64("2026-11-01") + np.arange(4)
    test = ct.Revisions(["a"] * 4, days.astype(str), [0.1, 0.9, 0.1, 0.9], least=0.0).test()
    assert test.dates
    assert test.n_times == 4


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 1], [5, 5], [0.2, 0.3]), {}, "rows 0 and 1 forecast question 1 at one time"),
        (([1, 1], [1, 2], [0.2, 20.0]), {}, "row 1 is 20, outside"),
        (([1, 1], [1, 2], [0.2, 0.3], [0, 1]), {}, "question 1 has outcome 0 in row 0 and 1"),
        (([1, 1], [1, 2], [0.2, 0.3], [0, 2]), {}, "row 1 is 2, not 0 or 1"),
        (([1, 1], [1, 2], [0.2, 0.3], ["yes", "yes"]), {}, "row 0 is 'yes', not 0 or 1"),
        (([1, 1], [1, 2], [0.2, 0.3], {9: 1}), {}, "there is no question 9"),
        (([1, 1], [1, 2], [0.2, 0.3]), {"groups": [1, 2]}, "question 1 is in two groups"),
        (([1], [1], [[0.2, 0.8]]), {}, r"shape \(1, 2\)"),
        (([1], [1], [np.nan]), {}, "every value is missing"),
        (([], [], []), {}, "nothing to test"),
    ],
)
def test_bad_input_is_named(arguments, options, message):
    with pytest.raises(InvalidPredictionsError, match=message):
        ct.Revisions(*arguments, **options)


def test_result_survives_json():
    test = ct.Revisions(*in_rows(gaussian(7, 5, 8))).test()
    assert ct.RevisionTest.from_json(test.to_json()) == test
    assert json.loads(test.to_json())["kind"] == "RevisionTest"


def test_picture_shows_evidence_and_the_alarm():
    test = ct.Revisions(*in_rows(gaussian(3, 100, 30, pull=0.5))).test()
    picture = test.plot()
    assert {"evidence", "threshold", "alarm"} <= set(picture.artists)
    assert "predictable" in str(test)


def test_one_forecast_is_no_revision():
    test = ct.Revisions([1], [1], [0.4]).test()
    assert (test.evidence, test.pvalue) == pytest.approx((1.0, 1.0))
    assert test.n_revisions == 0
    assert np.isnan(test.effect)


def paths(questions, seed):
    """Return (ids, times, forecasts) of rounded Brownian forecasts that end nearly certain."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(questions, 12)) / 12**0.5
    left = 1.0 - np.arange(12) / 12
    p = ndtr((np.cumsum(steps, axis=1) - steps) / left**0.5)
    return np.repeat(np.arange(questions), 12), np.tile(np.arange(12), questions), p.ravel()


def test_times_along_which_forecasts_grow_less_certain_are_asked_about():
    ids, times, p = paths(80, 0)
    assert not ct.Revisions(ids, times, p).test().alarm
    with pytest.raises(DoubtfulInputError, match="less certain at the end of times") as asked:
        ct.Revisions(ids, -times, p)
    assert [reading.options for reading in asked.value.readings] == [
        {"time": "-times"}, {"as_is": True}
    ]  # fmt: skip
    assert ct.Revisions(ids, -times, p, as_is=True).test().alarm
    with pytest.raises(DoubtfulInputError, match="end of week"):
        ct.Revisions(ids, pl.Series("week", -times), p)


def test_paths_that_count_up_are_not_asked_about_however_many_questions():
    for seed in range(40):
        ids, times, p = paths(15 + 10 * seed, seed)
        ct.Revisions(ids, times, p)
        ct.Revisions(ids, times, p, dependent=True)
