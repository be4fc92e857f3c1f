"""Tallies over time: bets on sums are fair, however coarse the cells; pages of tallies."""

import math
from itertools import product

import numpy as np
import pytest
from conftest import sloped

import caltest as ct
from caltest.monitoring.monitor import _earned, bet_sums
from caltest.nulls import bets as kernels
from caltest.nulls import bets as mixture
from caltest.reports.document import first_of_kind
from caltest.reports.measures import Measures
from caltest.tallies import TallyProblem


def chance(p, y):
    return float(np.prod(np.where(np.array(y) == 1, p, 1.0 - np.array(p))))


def wealth_of(tally, mode, state):
    moved = state.copy()
    bet_sums(tally, mode, moved)
    return moved


BATCHES = {
    "alone in their cells": ([0.1, 0.32, 0.5, 0.97], 4800),
    "two in a cell": ([0.3, 0.45, 0.8, 0.81], 3),
    "extremes": ([1e-9, 1e-15, 1 - 1e-9, 1e-200, 0.0, 1.0], 4800),
    "ties": ([0.25, 0.25, 0.25, 0.25, 0.25], 4800),
}


@pytest.mark.parametrize("mode", [kernels.STATIC, kernels.MONITOR, kernels.CHANGE])
@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_the_expected_factor_of_a_batch_is_one(batch, mode):
    p, grid = batch
    state = mixture.start(2)
    mixture.bet(*_rows(*sloped(75)), mode, state)  # also over row 96, below
    state = wealth_of(ct.Tally.of(*sloped(20, seed=1)), mode, state)
    before, mean = np.exp(state[kernels.NOW]), 0.0
    # what has probability 0 is another matter
    outcomes = [y for y in product([0, 1], repeat=len(p)) if chance(p, y) > 0.0]
    for y in outcomes:
        after = wealth_of(ct.Tally.of(p, y, grid=grid, as_is=True), mode, state)[kernels.NOW]
        mean += chance(p, y) * np.exp(after)
    begun = 1.0 if mode == kernels.CHANGE and 95 + len(p) >= 96 else 0.0
    assert mean == pytest.approx(before + begun, rel=1e-8)


def test_rows_of_a_batch_may_depend_on_earlier_ones():
    def forecast(past):
        return 0.1 + 0.7 * (sum(past) + 0.3) / (len(past) + 0.7)

    state, mean = mixture.start(2), 0.0
    for y in product([0, 1], repeat=6):
        p = np.array([forecast(y[:t]) for t in range(6)])
        after = wealth_of(ct.Tally.of(p, y), kernels.MONITOR, state)[kernels.NOW]
        mean += chance(p, y) * np.exp(after)
    assert mean == pytest.approx(1.0, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("grid", [2, 10])
@pytest.mark.parametrize("seed", range(3))
def test_what_moments_leave_open_is_taken_off(grid, seed):
    p = np.random.default_rng(seed).beta(*[(1, 1), (0.2, 0.2), (0.3, 3)][seed % 3], 7)
    state, mean = mixture.start(2), 0.0
    for y in product([0, 1], repeat=7):
        after = wealth_of(ct.Tally.of(p, y, grid=grid, as_is=True), kernels.STATIC, state)[
            kernels.NOW
        ]
        mean += chance(p, y) * np.exp(after)
    assert mean <= 1.0 + 1e-9
    assert mean > 0.9999  # and hardly more than that


def test_experts_earn_of_sums_what_they_earn_of_rows():
    p, y = sloped(40)
    flat, local = _earned(TallyProblem.of(ct.Tally.of(p, y)))
    z, leaf = np.log(p / (1 - p)), np.minimum(np.floor(32 * p**0.5 / (p**0.5 + (1 - p) ** 0.5)), 31)

    def earned(logit):
        q = 1 / (1 + np.exp(-logit))
        return np.log(np.where(y == 1, q / p, (1 - q) / (1 - p)))

    expected = [earned(b * z + a).sum() for b, a in kernels.LINES]
    assert flat[: kernels.N_LINES] == pytest.approx(np.array(expected), rel=0.01, abs=0.03)
    for node in (1, 2, 5, 31, 32 + int(leaf[0])):
        inside = [f"{32 + int(j):b}".startswith(f"{node:b}") for j in leaf]
        expected = [earned(z + shift)[inside].sum() for shift in kernels.EXPERT_SHIFTS]
        assert local[node] == pytest.approx(np.array(expected), rel=0.01, abs=0.03), node


def _rows(p, y):
    return np.column_stack([p, 1 - p]), 1 - y, np.ones(p.size)


def test_the_order_of_rows_in_a_batch_does_not_matter_and_mixing_works():
    p, y = sloped(3000)
    order = np.random.default_rng(0).permutation(1000)
    first = ct.Monitor().update(ct.Tally.of(p[:1000], y[:1000]))
    assert first == ct.Monitor().update(ct.Tally.of(p[:1000][order], y[:1000][order]))
    parts = ct.Tally.of(p[:300], y[:300]) + ct.Tally.of(p[300:1000], y[300:1000])
    assert first == ct.Monitor().update(parts)
    mixed = first.update(p[1000:2000], y[1000:2000]).update(ct.Tally.of(p[2000:], y[2000:]))
    assert mixed.n == 3000
    assert mixed.log_evidence > 10.0
    assert mixed.alarm in (1000, *range(1001, 2001), 3000)
    assert ct.Monitor.from_json(mixed.to_json()) == mixed


def test_very_many_rows_neither_overflow_nor_end_a_monitor():
    p, y = sloped(200_000)
    day = ct.Tally.of(p, y)
    year = sum([day] * 64)
    wrong = ct.Monitor().update(year).update(year)
    assert 1e5 < wrong.log_evidence < math.inf
    calm = ct.Tally.of(p, np.random.default_rng(1).random(p.size) < p)
    monitor = ct.Monitor().update(calm)
    assert -10.0 < monitor.log_evidence < 1.0
    assert monitor.update(day).alarm == 400_000
    assert wrong.update(calm).update(0.3, 1).log_evidence > 1e5
    change = ct.Monitor(change=True, run_length=10**6).update(calm)
    assert (change.alarm, change.update(day).alarm) == (None, 400_000)
    with pytest.raises(ct.StatisticError, match="200000 rows at once are more than"):
        ct.Monitor(change=True).update(calm)


def test_horizons_deal_tallies_as_steps():
    p, y = sloped(1200)
    days = [ct.Tally.of(p[200 * d : 200 * d + 200], y[200 * d : 200 * d + 200]) for d in range(6)]
    dealt = ct.Monitor(horizon=2)
    for time, day in enumerate(days):
        dealt = dealt.update(day, time=time)
    ends = []
    for j in range(2):
        own = ct.Monitor()
        for day in days[j::2]:
            own = own.update(day)
        ends.append(own.log_evidence)
    assert dealt.log_evidence == pytest.approx(max(ends) - math.log(2))
    with pytest.raises(ct.InvalidPredictionsError, match="sort the rows by time"):
        dealt.update(days[0], time=2)


def test_bands_of_sums_cover():
    missed = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.5, 0.5, 400)
        true = 1 / (1 + ((1 - p) / p) ** 0.6)
        fit = ct.reliability_fit(ct.Tally.of(p, rng.random(400) < true, grid=20), fit="band")
        here = 1 / (1 + ((1 - fit.predicted) / fit.predicted) ** 0.6)
        missed += bool(((here < fit.low - 1e-12) | (here > fit.high + 1e-12)).any())
    assert missed <= 18  # 10 of 100 are allowed, and chance


@pytest.mark.slow
def test_a_page_of_a_tally_says_what_that_of_its_rows_says(tmp_path):
    rng = np.random.default_rng(6)
    p = rng.beta(1.0, 1.0, 3000)
    y = (rng.random(3000) < 0.9 * p + 0.03).astype(int)
    options = {"profile": "clinical", "n_resamples": 199, "rng": 0, "name": "July"}
    rows = ct.report(p, y, **options)
    sums = ct.report(ct.Tally.of(p, y), **options)
    assert (sums.verdict, sums.n) == (rows.verdict, rows.n)
    needed = {"smooth"}  # the rows, for a curve of nearest neighbours
    assert [s.key for s in sums.sections] == [s.key for s in rows.sections if s.key not in needed]
    measures, whole = (first_of_kind(Measures, page.sections) for page in (sums, rows))
    assert set(whole.measure) - set(measures.measure) == {
        f"{name} (lowess)" for name in ("ICI", "E50", "E90", "ECI")
    }
    for name in measures.measure:
        assert measures.find(name) == pytest.approx(whole.find(name), rel=2e-3, nan_ok=True), name
    assert any(said.startswith("ICI (lowess): needs the rows") for said in sums.unexamined)
    pytest.importorskip("jinja2")
    for ending in (".html", ".md", ".tex", ".json"):
        sums.save(tmp_path / f"page{ending}")
    assert "not known from sums" in (tmp_path / "page.md").read_text()
    assert "<svg" in (tmp_path / "page.html").read_text()
