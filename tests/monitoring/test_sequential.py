"""Monitors: the mixture against its definition, exact martingales, states, and what they say."""

import math
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from conftest import sloped
from twins import sequential as ref

import caltest as ct
from caltest.monitoring.watch import log_mixture, radius
from caltest.nulls import bets as kernels
from caltest.nulls import bets as mixture
from caltest.statistics.prepared import problem_of

# Mixtures after each row, by the definitions in twins/sequential.py
P = [0.9, 0.8, 0.95, 0.3, 0.1, 0.6, 0.99, 0.7, 0.2, 0.85]
Y = [0, 1, 0, 1, 0, 0, 1, 1, 1, 0]
M = [1.135679552, 1.035149938, 1.650021555, 1.526965346, 1.436514947]
M += [1.61908689, 1.507239676, 1.318915478, 1.496789383, 2.155212948]
P3 = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.9, 0.05, 0.05], [0.2, 0.2, 0.6]]
P3 += [[0.5, 0.4, 0.1], [0.05, 0.9, 0.05], [0.6, 0.1, 0.3], [0.25, 0.5, 0.25], [0.98, 0.01, 0.01]]
Y3 = [0, 2, 2, 1, 2, 0, 1, 2, 0, 2]
M3 = [0.9869340913, 1.022630252, 1.034698905, 1.179629818, 1.143082338]
M3 += [1.096541582, 1.050378347, 1.081594756, 1.072983976, 2.877904564]


@pytest.mark.interpreted
def test_reference_sequences():
    np.testing.assert_allclose(np.exp(ct.Monitor().update(P, Y).history[:, 1]), M, atol=1e-9)
    assert ct.EValue()(P, Y) == pytest.approx(3.310425896, abs=1e-9)  # of the slow twin
    p, y = np.array(P), np.array(Y)
    assert [ref.two_classes(p[:n], y[:n]) for n in range(1, 11)] == pytest.approx(M, abs=1e-9)
    assert ref.two_classes(p, y, mode="static") == pytest.approx(3.310425896, abs=1e-9)
    three = ct.Monitor(lens=ct.Canonical()).update(P3, Y3)
    np.testing.assert_allclose(np.exp(three.history[:, 1]), M3, atol=1e-9)


@pytest.mark.parametrize("style", ["uniform", "confident", "rare", "ties"])
def test_two_classes_by_definition(style):
    rng = np.random.default_rng(5)
    draws = {
        "uniform": lambda: rng.random(140),
        "confident": lambda: 1 - 10.0 ** -rng.uniform(0, 14, 140),
        "rare": lambda: 10.0 ** -rng.uniform(0, 14, 140),
        "ties": lambda: rng.integers(1, 20, 140) / 20,
    }
    p = draws[style]()
    y = (rng.random(140) < 0.2 + 0.6 * p).astype(int)
    for mode in ("monitor", "change"):
        monitor = ct.Monitor(change=mode == "change").update(p, y)
        for n in (31, 32, 33, 96, 140):
            expected = ref.two_classes(p[:n], y[:n], mode=mode)
            if expected > 0:
                assert np.exp(monitor.history[n - 1, 1]) == pytest.approx(expected, rel=1e-10)
    assert ct.EValue()(p, y) == pytest.approx(ref.two_classes(p, y, mode="static"), rel=1e-10)


@pytest.mark.parametrize("K", [3, 4, 7])
def test_many_classes_by_definition(K):
    rng = np.random.default_rng(K)
    probs, y = rng.dirichlet(np.full(K, 0.7), 100), rng.integers(0, K, 100)
    monitor = ct.Monitor(lens=ct.Canonical()).update(probs, y)
    for n in (1, 20, 64, 100):
        expected = ref.many_classes(probs[:n], y[:n])
        assert np.exp(monitor.history[n - 1, 1]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("mode", [kernels.MONITOR, kernels.STATIC])
@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_no_bet_has_an_expected_gain(K, mode, weight):
    """Whatever came before, the mean over the outcomes of the next row is the wealth there is."""
    rng = np.random.default_rng(K)
    probs, y = rng.dirichlet(np.full(K, 0.5), 95), rng.integers(0, K, 95)
    state = mixture.start(K)
    mixture.bet(probs, y, np.ones(95), mode, state)
    forecasts = [*rng.dirichlet(np.full(K, 0.5), 20), np.eye(K)[0] * (1 - 1e-13) + 1e-13 / K]
    if K > 2:
        forecasts.append(np.r_[0.0, rng.dirichlet(np.ones(K - 1))])
    for p in forecasts:
        before = mixture.scalar(state[None, :], kernels.NOW)[0]
        mean = 0.0
        for k in np.flatnonzero(p):
            path = mixture.bet(p[None, :], np.array([k]), np.array([weight]), mode, state.copy())
            mean += p[k] * np.exp(path[0] - before)
        # log-odds are clipped at 1e-12, so that experts and forecasts may differ by that
        assert mean == pytest.approx(1.0, abs=1e-11)
        mixture.bet(p[None, :], rng.choice(K, 1, p=p), np.ones(1), mode, state)  # also over row 96


@pytest.mark.parametrize("mode", [kernels.MONITOR, kernels.STATIC, kernels.CHANGE])
def test_rows_of_one_time_are_a_bet_of_no_gain_however_they_depend(mode):
    rng = np.random.default_rng(mode)
    p, n = np.append(rng.random(117), [0.0, 1.0, 1e-9]), np.full(40, 3)
    columns = np.column_stack([p, 1 - p]), (rng.random(120) >= p).astype(int), np.ones(120)
    alone, apart, state = (mixture.start(2) for _ in range(3))
    one = mixture.bet_at_times(*columns, np.ones(120, int), mode, alone)
    np.testing.assert_allclose(one, mixture.bet(*columns, mode, apart), rtol=1e-10, atol=1e-12)
    mixture.bet_at_times(*columns, n, mode, state)  # after 120 rows a start is near
    for probs in (rng.random(5), np.array([0.2, 0.2, 0.2, 0.2, 0.2]), np.array([0.0, 1.0, 0.4])):
        cuts = np.sort(np.append(probs, [0.0, 1.0]))
        together = {tuple(probs > u): w for u, w in zip(cuts[:-1], np.diff(cuts), strict=True) if w}
        each = {y: np.where(y, probs, 1 - probs).prod() for y in product((0, 1), repeat=probs.size)}
        for law in (together, {y: w for y, w in each.items() if w}):
            mean = 0.0
            for y, chance in law.items():
                rows = np.column_stack([probs, 1 - probs]), 1 - np.array(y, int), np.ones(len(y))
                path = mixture.bet_at_times(*rows, np.array([len(y)]), mode, state.copy())
                mean += chance * np.exp(path[0] - state[kernels.NOW])
            assert mean == pytest.approx(1.0, abs=1e-9)


def test_rows_of_one_time_are_one_bet():
    p, y = sloped(600)
    days, cuts = np.repeat(np.arange(150), 4), (0, 4, 252, 600)
    split = ct.Monitor()
    for a, b in pairwise(cuts):
        split = split.update(p[a:b], y[a:b], time=days[a:b])
    assert split == ct.Monitor().update(p, y, time=days)
    assert (split.shared_times, split.means) == (True, pytest.approx((p.mean(), y.mean())))
    assert "600 at 150 times, one bet on each" in str(split)
    alone = ct.Monitor().update(p, y, time=np.arange(600))
    assert alone.log_evidence == pytest.approx(ct.Monitor().update(p, y).log_evidence)
    with pytest.raises(ct.InvalidPredictionsError, match="row 0 is of time 149, on which the bet"):
        split.update(p[:1], y[:1], time=[149])
    with pytest.raises(ct.StatisticError, match="needs a lens of two classes"):
        ct.Monitor(lens=ct.Canonical()).update(P3, Y3, time=[1] * 10)
    dealt = ct.Monitor(horizon=2).update(p, y, time=days)
    halves = [ct.Monitor().update(*(v[days % 2 == j] for v in (p, y)), time=days[days % 2 == j])
              for j in range(2)]  # fmt: skip
    best = max(half.log_evidence for half in halves)
    assert dealt.log_evidence == pytest.approx(best - np.log(2))


def test_detector_gains_what_is_injected():
    p, y = sloped(300)
    state = mixture.start(2)
    path = mixture.bet(np.column_stack([p, 1 - p]), 1 - y, np.ones(300), kernels.CHANGE, state)
    for t in range(300, 340):
        mean, before = 0.0, state.copy()
        for k, share in enumerate((0.3, 0.7)):
            state = before.copy()
            row = np.array([[0.3, 0.7]]), np.array([k]), np.ones(1)
            mean += share * np.exp(mixture.bet(*row, kernels.CHANGE, state)[0])
        gained = mean - np.exp(before[kernels.NOW])
        assert gained == pytest.approx(1.0 if (t + 1) % 32 == 0 else 0.0, abs=1e-9 * mean)
    assert path[-1] > 0


def test_e_values_have_expectation_one():
    p = np.random.default_rng(1).random(9)
    outcomes = np.array(list(product((0, 1), repeat=9)))
    chance = np.where(outcomes == 1, p, 1 - p).prod(axis=1)
    prepared = ct.EValue().prepare(problem_of(ct.OneVsRest(1)(ct.Predictions.of(p, outcomes[0]))))
    assert chance @ prepared.batch(1 - outcomes) == pytest.approx(1.0, abs=1e-12)


@pytest.fixture(scope="module")
def stream():
    return sloped(2500)


@pytest.fixture(scope="module")
def whole(stream):
    """The monitor of all rows in one update."""
    return ct.Monitor(alpha=0.01).update(*stream)


@pytest.mark.parametrize("seed", range(3))
def test_any_splitting_gives_the_same_monitor(stream, whole, seed):
    p, y = stream
    cuts = np.sort(np.random.default_rng(seed).integers(0, 2500, 20))
    split = ct.Monitor(alpha=0.01)
    for a, b in zip([0, *cuts], [*cuts, 2500], strict=True):
        split = split.update(p[a:b], y[a:b]) if b > a else split
    assert split == whole


def test_single_rows_in_any_form_give_the_same_monitor(stream, whole):
    p, y = stream
    single = ct.Monitor(alpha=0.01)
    for row in range(700):
        one = slice(row, row + 1)
        forms = [(float(p[row]), int(y[row])), ([p[row]], [y[row]]), (p[one], y[one])]
        single = single.update(*forms[row % 3])
    assert single.update(p[700:], y[700:]) == whole


def test_a_monitor_says_where_the_alarm_was_and_the_means(stream, whole):
    p, y = stream
    path = _path(p, y)
    assert whole.alarm == int(np.argmax(path >= np.log(100))) + 1
    assert whole.pvalue == pytest.approx(np.exp(-path.max()))
    assert whole.means == pytest.approx((p.mean(), y.mean()))
    after = p[whole.alarm :].mean(), y[whole.alarm :].mean()
    assert whole.means_since_alarm == pytest.approx(after)


def test_a_monitor_prints_the_means_since_the_alarm():
    high = ct.Monitor().update(np.full(60, 0.9), np.arange(60) % 2)
    rest = f"since       the alarm, row {high.alarm}: predicted 90.0 %, observed"
    assert rest in str(high)
    assert str(high).count(": too high\n") == 1


def test_a_tally_has_the_means_of_its_rows(stream, whole):
    assert ct.Monitor().update(ct.Tally.of(*stream)).means == pytest.approx(whole.means)


def test_a_monitor_of_an_earlier_version_has_the_means_of_later_rows(stream, whole):
    p, y = stream
    old = replace(whole, sums=(0.0, 0.0, 0.0)).update(p[:9], y[:9])
    assert f"observed {100 * y[:9].mean():.1f} % (last 9 rows)" in str(old)


def _path(p, y):
    return mixture.bet(
        np.column_stack([p, 1 - p]), 1 - y, np.ones(len(p)), kernels.MONITOR, mixture.start(2)
    )


def test_an_alarm_of_a_change_says_where_it_began_however_rows_are_split():
    p, y, days = *sloped(1000, 1.0), np.arange(1000) // 4 * 86400.0
    y[600:] = p[600:] > np.random.default_rng(3).random(400) / 2.0  # too low from row 601 on
    monitors = [ct.Monitor(change=True, independent=True)] * 3
    for j, size in enumerate((1000, 4, 20)):
        for part in (slice(a, a + size) for a in range(0, 1000, size)):
            monitors[j] = monitors[j].update(p[part], y[part], time=days[part])
    assert monitors[0] == monitors[1] == monitors[2] == ct.Monitor.from_json(monitors[0].to_json())
    onset, alarm = monitors[0].onset, monitors[0].alarm
    assert 585 < onset < 615 < alarm
    assert monitors[0].onset_time == days[onset - 1]
    assert f"began       likely at row {onset}, time {days[onset - 1]:.10g}  (" in str(monitors[0])
    lines = [(1, a) for a in (-1, -0.5, -0.25, 0.25, 0.5, 1)] + [(b, 0) for b in (0.5, 0.7, 1.4, 2)]
    z, side = np.log(p / (1.0 - p))[:alarm], 1.0 - 2.0 * y[:alarm]
    ratios = [np.log1p(np.exp(side * z)) - np.log1p(np.exp(side * (b * z + a))) for b, a in lines]
    assert np.cumsum(np.array(ratios)[:, ::-1], axis=1).max(axis=0).argmax() == alarm - onset
    assert ct.Monitor(change=True).update(ct.Tally.of(p, y)).update(p, y).onset is None
    assert "change=True estimates when it began" in str(ct.Monitor().update(p, y))


def test_a_slope_about_a_far_centre_is_said_as_what_most_predictions_are():
    for j, (b, a) in enumerate(kernels.LINES):
        state = mixture.start(2)
        state[kernels.SCALARS : kernels.LATE_AT] = np.arange(kernels.N_FLAT) == j
        _, words, curve = mixture.leader(state, 2, kernels.STATIC)
        side, _, where = words.partition(" ")[2].partition(" ")
        centre = 1.0 / (1.0 + np.exp(a / (b - 1.0))) if b != 1.0 else 0.5
        assert words.startswith("too ") == (b == 1.0 or not 0.1 <= centre <= 0.9)
        if words.startswith("too ") and b != 1.0:
            p = np.array([0.8 * centre if where.startswith("below") else 1 - 0.8 * (1 - centre)])
            assert ("low" if curve(p) > p else "high") == side


@pytest.mark.parametrize(
    "monitor",
    [
        ct.Monitor(),
        ct.Monitor(change=True, run_length=5000),
        ct.Monitor(horizon=3),
        ct.Monitor(lens=ct.OneVsRest(0)),
        ct.Monitor(lens=ct.Partition([[0], [1]])),
        ct.Monitor(lens=ct.Canonical()),
    ],
    ids=repr,
)
def test_state_survives_json_to_the_bit(monitor):
    p, y = sloped(3001)
    begun = monitor.update(p[:2000], y[:2000])
    again = ct.Monitor.from_json(begun.to_json())
    assert again == begun
    assert again.update(p[2000:], y[2000:]) == begun.update(p[2000:], y[2000:])
    assert ct.Monitor.from_json(monitor.to_json()) == monitor


def test_impossible_outcomes_settle_it_and_certain_ones_are_no_bets():
    p = [0.0, 1.0, 0.305, 1.0]  # no multiples of 0.01, which may be rounded
    sure = ct.Monitor().update(p[:2], [0, 1])
    assert sure.evidence == pytest.approx(1.0)
    settled = sure.update(p, [0, 1, 0, 0])
    assert (settled.impossible, settled.alarm, settled.evidence) == (1, 6, math.inf)
    assert (settled.pvalue, "unless probabilities were rounded" in str(settled)) == (0.0, True)
    again = ct.Monitor.from_json(settled.to_json())
    assert (again, again.update([0.5], [1]).evidence) == (settled, math.inf)
    assert again.update(0.5, 1).history[-1, 1] == math.inf
    many = ct.Monitor(lens=ct.Canonical()).update([[0.5, 0.5, 0.0]], [2])
    assert (many.evidence, many.impossible) == (math.inf, 1)
    test = ct.calibration_test([0.0, 0.5], [1, 1], ct.EValue())
    assert (test.impossible, test.pvalue < 1e-300) == (1, True)


def rounded_rows(seed, n=300, step=0.01):
    """Calibrated forecasts near 0 and 1, printed in multiples of a step."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.3, 0.3, n)
    return np.rint(p / step) * step, (rng.random(n) < p).astype(int)


def test_rounded_forecasts_raise_no_false_alarm():
    alarms = infinite = 0
    for seed in range(60):
        p, y = rounded_rows(seed, step=0.1)
        alarms += ct.Monitor().update(p, y).alarm is not None
        infinite += ct.Monitor(rounded=False).update(p, y).evidence == math.inf
    assert alarms <= 6  # 95 % point of Binomial(60, .05)
    assert infinite > 30  # what such rows did to a monitor that takes 0 for never


@pytest.mark.slow
@pytest.mark.parametrize("step", [0.1, 0.05, 0.01])
def test_rounded_forecasts_raise_false_alarms_in_at_most_alpha(step):
    alarms = sum(ct.Monitor().update(*rounded_rows(s, 500, step)).alarm is not None
                 for s in range(400))  # fmt: skip
    assert alarms <= 30  # 99.5 % point of Binomial(400, .05) is 31


def test_an_alarm_that_rounding_may_explain_is_marked():
    """Calibrated predictions of 0.6 % become 1 % by rounding, which 10 000 rows contradict."""
    y = (np.random.default_rng(0).random(10_000) < 0.006).astype(int)
    monitor = ct.Monitor().update(np.full(10_000, 0.01), y)
    assert monitor.alarm is not None
    assert monitor.within_rounding
    assert "multiples of 0.01" in str(monitor)


@pytest.mark.parametrize(
    ("p", "rate"),
    [(0.01, 0.03), (0.3, 0.33), (0.012, 0.003)],
    ids=["far off", "no rare event", "not rounded"],
)
def test_an_alarm_that_rounding_cannot_explain_is_not_marked(p, rate):
    y = (np.random.default_rng(1).random(10_000) < rate).astype(int)
    monitor = ct.Monitor().update(np.full(10_000, p), y)
    assert monitor.alarm is not None
    assert not monitor.within_rounding
    assert "multiples of 0.01" not in str(monitor)


def test_rounding_is_no_matter_before_an_alarm():
    assert not ct.Monitor().update([0.01, 0.02], [0, 0]).within_rounding


def test_a_late_change_of_rounded_predictions_is_not_taken_for_rounding():
    rng = np.random.default_rng(2)
    y = np.concatenate([rng.random(20_000) < 0.01, rng.random(2000) < 0.05]).astype(int)
    monitor = ct.Monitor().update(np.full(22_000, 0.01), y)
    assert monitor.alarm is not None
    assert not monitor.within_rounding


def test_rounded_rows_are_bet_on_as_if_nothing_were_staked_on_certain_ones():
    p, y = rounded_rows(3, 60)
    later = np.append(p, [0.12345, 0.0]), np.append(y, [0, 0])
    auto, kept, fine, inner = ct.Monitor(), ct.Monitor(rounded=False), False, False
    for forecast, outcome in zip(*later, strict=True):  # the rule, row by row
        fine |= abs(100 * forecast - round(100 * forecast)) > 1e-7
        inner |= 0 < forecast < 1
        auto = auto.update(float(forecast), int(outcome))
        if fine or not inner or 0 < forecast < 1:
            kept = kept.update(float(forecast), int(outcome))
        else:  # a row without a stake
            kept = kept.update([0.5], [int(outcome)], weights=[1e-15])
    assert auto.log_evidence == pytest.approx(kept.log_evidence, rel=1e-9)
    assert auto.log_evidence == ct.Monitor().update(*later).log_evidence
    assert auto.grid == "fine"


def test_an_outcome_of_probability_0_settles_it_where_forecasts_are_not_rounded():
    p, y = [0.123, 0.0], [0, 1]
    assert ct.Monitor().update(p, y).evidence == math.inf
    assert ct.Monitor().update([0.12, 0.0], y).evidence < 2.0
    assert "rounded=False" in str(ct.Monitor().update([0.12, 0.0], y))
    assert ct.Monitor().update([0.0, 1.0], [1, 1]).evidence == math.inf  # classes, no forecasts
    assert ct.Monitor(rounded=False).update([0.12, 0.0], y).evidence == math.inf


@pytest.mark.parametrize("K", [2, 3])
def test_rows_that_may_be_rounded_are_no_bets(K):
    rng = np.random.default_rng(K)
    probs, y = rng.dirichlet(np.ones(K), 60), rng.integers(0, K, 60)
    certain = np.arange(60) % 7 == 3
    probs[certain] = np.eye(K)[rng.integers(0, K, certain.sum())]
    monitor = ct.Monitor(rounded=True, lens=ct.Canonical()).update(probs, y)
    probs[certain] = 1 / K
    stakes = ct.Monitor(lens=ct.Canonical()).update(probs, y, weights=1 - certain)
    assert monitor.log_evidence == pytest.approx(stakes.log_evidence)
    assert monitor.impossible > 0
    assert "had probability 0, not bet on" in str(monitor)
    with pytest.raises(ct.StatisticError, match="rounded=True needs the rows"):
        ct.Monitor(rounded=True).update(ct.Tally.of(P, Y))


def test_a_doubt_of_late_outcomes_is_said_until_there_is_a_horizon():
    y = np.repeat(np.random.default_rng(0).integers(0, 2, 60), 5)
    p = np.full(300, 0.5)
    for monitor in (ct.Monitor().update(p, y), ct.ComparisonMonitor().update(p, p + 0.1, y)):
        assert "say how many steps ahead by horizon=" in str(monitor)
    assert "neighbouring" not in str(ct.Monitor(horizon=5).update(p, y))


def test_weights_are_stakes():
    p, y = sloped(120)
    weights = np.arange(120) % 4 / 3
    monitor = ct.Monitor().update(p, y, weights=weights)
    assert monitor.evidence == pytest.approx(ref.two_classes(p, y, weights=weights), rel=1e-10)


def test_horizons_are_dealt_to_processes():
    p, y = sloped(900)
    dealt = ct.Monitor(horizon=3)
    for a in range(0, 900, 100):  # not a multiple of three
        dealt = dealt.update(p[a : a + 100], y[a : a + 100])
    assert ("horizon" in ct.Monitor().recipe, "horizon 3" in dealt.recipe) == (False, True)
    apart = [ct.Monitor().update(p[j::3], y[j::3]) for j in range(3)]
    assert dealt.log_evidence == pytest.approx(max(m.log_evidence for m in apart) - np.log(3))
    paths = [_path(p[j::3], y[j::3]) for j in range(3)]
    largest = [max(paths[j][max((t - j) // 3, 0)] for j in range(3) if t >= j) for t in range(900)]
    assert dealt.pvalue == pytest.approx(min(1.0, 3 * np.exp(-max(largest))))
    rung = np.flatnonzero(np.array(largest) >= np.log(60))
    assert dealt.alarm == (rung[0] + 1 if rung.size else None)


def test_rows_of_one_time_are_one_step():
    p, y = sloped(600)
    days = [date(2024, 1, 1) + timedelta(days=row // 4) for row in range(600)]
    timed = ct.Monitor(horizon=2, independent=True)
    for a, b in ((0, 1), (1, 251), (251, 600)):
        timed = timed.update(p[a:b], y[a:b], time=np.array(days[a:b], dtype="datetime64"))
    step = np.arange(600) // 4 % 2
    apart = [ct.Monitor().update(p[step == j], y[step == j]) for j in range(2)]
    assert timed.log_evidence == pytest.approx(max(m.log_evidence for m in apart) - np.log(2))
    assert timed.steps == 150
    text = ct.Monitor(horizon=2, independent=True).update(p, y, time=[str(day) for day in days])
    assert text.log_evidence == pytest.approx(timed.log_evidence)
    assert timed.times.tolist() == [np.datetime64(days[int(n) - 1], "us") for n, _ in timed.history]
    assert (text.clock, text.alarm_time) == (timed.clock, timed.alarm_time)
    assert ct.Monitor.from_json(timed.to_json()) == timed
    with pytest.raises(ct.InvalidPredictionsError, match=r"time: row 0 is .* goes forward"):
        timed.update(p[:1], y[:1], time=[days[3].isoformat()])
    with pytest.raises(ct.InvalidPredictionsError, match="pass time= with all"):
        timed.update(p[:1], y[:1])
    with pytest.raises(ct.InvalidPredictionsError, match="earlier rows had no times"):
        ct.Monitor().update(p, y).update(p, y, time=np.arange(600))
    with pytest.raises(ct.InvalidPredictionsError, match="time: row 1 is "):
        ct.Monitor().update(p[:2], y[:2], time=["2024-01-01", ""])


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        (lambda z: 0.7 * z, "overconfident, slope 0"),
        (lambda z: 1.6 * z, "underconfident, slope 1"),
        (lambda z: z + 0.5, "too low by 0.5 in log-odds"),
        (lambda z: z - 1.0, "too high by 1 in log-odds"),
        (lambda z: np.where(abs(z - 1.5) < 0.5, z - 1.5, z), "predictions from"),
    ],
)
def test_the_leader_says_what_is_wrong(truth, words):
    rng = np.random.default_rng(3)
    p = rng.random(30_000)
    z = np.log(p / (1 - p))
    y = (rng.random(30_000) < 1 / (1 + np.exp(-truth(z)))).astype(int)
    for change in (False, True):
        monitor = ct.Monitor(change=change).update(p, y)
        assert monitor.leader.startswith(words)
        assert monitor.leader in str(monitor)
        x = np.array([0.3, 0.5, 0.75])
        q = 1 / (1 + np.exp(-truth(np.log(x / (1 - x)))))
        assert np.abs(monitor.best_curve(x) - q).max() < 0.13
    few = ct.Monitor().update(np.tile([0.8, 0.5], 15), [0, 0, 0, 1] * 7 + [0, 0])  # no late starts
    assert few.leader.startswith("predictions from")


def test_pictures_have_the_times_of_the_rows():
    p, y = sloped(4000)
    days = np.datetime64("2024-01-01") + np.arange(4000) // 10
    for time, labels in ((days, {"Apr", "Jul"}), (np.arange(4000) // 10, {"100", "200"})):
        both = ct.Monitor().update(p, y, time=time), ct.ComparisonMonitor()
        for monitor in (both[0], both[1].update(p, 1 - p, y, time=time)):
            picture = monitor.plot()
            if isinstance(monitor, ct.ComparisonMonitor):
                middle = monitor.history[:, 3:5].mean(axis=1)
                np.testing.assert_allclose(picture.artists["difference"].get_ydata(), middle)
            when = time[monitor.alarm - 1]
            assert f"at row {monitor.alarm}, {'time ' * (time is not days)}{when}" in str(monitor)
            picture.ax.figure.canvas.draw()
            assert labels <= {text.get_text() for text in picture.ax.get_xticklabels()}
    old = replace(ct.Monitor().update(p, y, time=days), clock=b"")  # of an earlier version
    assert old.plot().ax.get_xlabel() == "Observations"


@pytest.mark.slow
def test_betting_null_and_its_result():
    p, y = sloped(800)
    result = ct.calibration_test(p, y, ct.EValue())
    assert str(result) == str(ct.calibration_test(p, y, ct.EValue(), null="betting"))
    assert (result.statistic, result.null) == ("EValue()", "betting")
    assert result.pvalue == pytest.approx(1 / ct.EValue()(p, y))
    assert result.null_mean == 1.0
    simulated = ct.calibration_test(p[:100], y[:100], ct.EValue(), null=ct.RedrawLabels(), rng=0)
    assert simulated.null_mean < 10


def test_brier_evidence_is_that_of_henzi_and_ziegel():
    rng = np.random.default_rng(0)
    p, q, y = rng.random(200), rng.random(200), rng.integers(0, 2, 200)
    q[::7] = p[::7]
    monitor = ct.ComparisonMonitor().update(p, q, y)
    for at, (a, b) in enumerate(((p, q), (q, p))):
        even, best = (a + b) / 2, 0.75 * a + 0.25 * b
        expected = np.where(y == 1, best / even, (1 - best) / (1 - even)).cumprod()
        np.testing.assert_allclose(np.exp(monitor.history[:, 1 + at]), expected, rtol=1e-10)
    assert monitor.evidence == pytest.approx(tuple(np.exp(monitor.history[-1, 1:3])))
    assert monitor.difference == pytest.approx(np.mean((p - y) ** 2 - (q - y) ** 2))


@pytest.mark.parametrize("score", ["brier", "log"])
def test_evidence_of_a_comparison_is_fair_exactly_where_scores_are_even(score):
    for p, q in product((0.01, 0.2, 0.5, 0.7, 0.99), repeat=2):
        if p == q:
            continue
        one = [ct.ComparisonMonitor(score=score).update([p], [q], [y]) for y in (0, 1)]
        gain = np.array([monitor.evidence for monitor in one])
        lost = np.array([monitor.difference for monitor in one])
        even = lost[0] / (lost[0] - lost[1])  # where the expected scores are equal
        assert np.array([1 - even, even]) @ gain == pytest.approx([1.0, 1.0])
        for true in np.linspace(0, 1, 11):
            chance = np.array([1 - true, true])
            mean, worse = chance @ gain, chance @ lost
            assert mean[0] <= 1 + 1e-12 or worse < 0
            assert mean[1] <= 1 + 1e-12 or worse > 0


def test_boundary_has_the_values_of_confseq():
    """Printed in the tests of that program, for α = .05, v_opt = 100 and c = 2."""
    spread = 2 * np.log(10)
    rho = 100 / (spread + np.log(1 + spread))
    assert log_mixture(10, 100, rho, 2) == pytest.approx(-0.2490165, abs=5e-8)
    assert radius(100, 0.05, 100.0, 2.0) == pytest.approx(33.02017, abs=5e-6)


def test_boundary_is_that_of_a_mixture():
    """The mixture over λ of exp(λ s − ψ(λ) v), ψ(λ) = (−log(1 − cλ) − cλ)/c², as it is defined."""
    s, v, rho, c = 5.0, 12.0, 3.0, 2.0

    def psi(x):
        return (-math.log1p(-c * x) - c * x) / c**2

    def weight(x):
        return math.exp(-rho * psi(x)) / (1 - c * x) if x < 1 / c else 0.0

    total = scipy.integrate.quad(weight, 0, 1 / c, epsabs=1e-12)[0]
    value = scipy.integrate.quad(
        lambda x: weight(x) * math.exp(x * s - psi(x) * v), 0, 1 / c - 1e-14, epsabs=1e-12
    )[0]
    assert log_mixture(s, v, rho, c) == pytest.approx(math.log(value / total), abs=1e-7)


@pytest.mark.parametrize("times", [15, pytest.param(300, marks=pytest.mark.slow)])
def test_confidence_sequences_cover_at_all_times(times):
    rng, missed = np.random.default_rng(0), 0
    for _ in range(times):
        p, q, true = rng.random((3, 200))
        y = (rng.random(200) < true).astype(int)
        mean = np.cumsum((p - q) * (p + q - 2 * true)) / np.arange(1, 201)
        history = ct.ComparisonMonitor(alpha=0.2).update(p, q, y).history
        missed += bool(((mean < history[:, 3]) | (mean > history[:, 4])).any())
    assert missed <= scipy.stats.binom.ppf(0.999, times, 0.2)


@pytest.mark.parametrize("score", ["brier", "log"])
def test_comparisons_split_and_survive_json(score):
    rng = np.random.default_rng(1)
    p, q, y = rng.uniform(0.01, 0.99, 3000), rng.uniform(0.01, 0.99, 3000), rng.integers(0, 2, 3000)
    whole = ct.ComparisonMonitor(score=score).update(p, q, y)
    split = ct.ComparisonMonitor(score=score)
    for a, b in ((0, 1), (1, 700), (700, 3000)):
        split = ct.ComparisonMonitor.from_json(split.update(p[a:b], q[a:b], y[a:b]).to_json())
    assert split == whole
    assert len(whole.to_json()) < 100_000
    assert whole.low < whole.difference < whole.high


def test_comparisons_of_late_outcomes_are_dealt_to_processes():
    rng = np.random.default_rng(2)
    p, q, y = rng.random(600), rng.random(600), rng.integers(0, 2, 600)
    days = np.repeat(np.arange(200), 3)
    dealt, timed = ct.ComparisonMonitor(horizon=3), ct.ComparisonMonitor(horizon=3)
    for rows in (slice(0, 1), slice(1, 251), slice(251, 600)):
        dealt = dealt.update(p[rows], q[rows], y[rows])
        timed = timed.update(p[rows], q[rows], y[rows], time=days[rows])
    for monitor, steps in ((dealt, np.arange(600)), (timed, days)):
        mine = [steps % 3 == j for j in range(3)]
        apart = [ct.ComparisonMonitor(alpha=0.05 / 3).update(p[j], q[j], y[j]) for j in mine]
        evidence = np.max([one.evidence for one in apart], axis=0) / 3
        assert monitor.evidence == pytest.approx(tuple(evidence))
        pairs = zip(mine, apart, strict=True)
        ends = np.array([[j.sum() * one.low, j.sum() * one.high] for j, one in pairs])
        assert (monitor.low, monitor.high) == pytest.approx(tuple(ends.sum(axis=0) / 600))
        assert monitor.difference == pytest.approx(np.mean((p - y) ** 2 - (q - y) ** 2))
    assert ct.ComparisonMonitor.from_json(timed.to_json()) == timed
    np.testing.assert_allclose(dealt.history[-1, 3:], [dealt.low, dealt.high], rtol=1e-12)
    with pytest.raises(ct.InvalidPredictionsError, match=r"time: row 0 is .* goes forward"):
        timed.update(p[:1], q[:1], y[:1], time=[3])


def test_false_alarms_are_as_rare_as_promised():
    rng = np.random.default_rng(11)
    probs = rng.random((300, 1000))
    y = (rng.random((300, 1000)) < probs).astype(int)
    rung = sum(_path(p, row).max() >= np.log(5) for p, row in zip(probs, y, strict=True))
    assert 0 < rung <= scipy.stats.binom.ppf(0.9999, 300, 0.2)


def test_rows_after_an_alarm_are_told_from_the_first_on():
    p = np.full(60, 0.75)
    monitor = ct.Monitor().update(p, np.zeros(60, dtype=int), as_is=True)
    assert monitor.alarm is not None
    for rows, said in ((monitor.alarm, False), (monitor.alarm + 1, True)):
        text = str(ct.Monitor().update(p[:rows], np.zeros(rows, dtype=int), as_is=True))
        assert ("since       the alarm" in text) == said


def test_a_monitor_names_the_times_and_no_clusters_where_rows_depend():
    rng = np.random.default_rng(21)
    z, day = rng.normal(size=400), np.repeat([f"2024-01-{k:03d}" for k in range(400)], 5)
    p = rng.uniform(0.2, 0.6, 2000)
    y = (z[np.repeat(np.arange(400), 5)] < scipy.stats.norm.ppf(p)).astype(int)
    rows = ct.read_predictions({"p": p, "y": y, "day": day}, label="y")
    notes = " ".join(ct.Monitor().update(rows).notes)
    assert "if it is the time of the rows, name it, time='day'" in notes
    assert "clusters" not in notes
