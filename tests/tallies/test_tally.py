"""Tallies: sums that do not depend on order, and answers that those of the rows confirm."""

import warnings

import numpy as np
import pytest
from conftest import cells_of

import caltest as ct
from caltest.inference import _input as analysis
from caltest.inference.inversion import cell_noise
from caltest.statistics.prepared import problem_of
from caltest.tallies import TallyProblem
from caltest.tallies import grid as one_pass
from caltest.tallies.grid import Grid, mean_position
from caltest.tallies.problems import binomials

#: Statistics of a tally whose p-value is computed.
EXACT = [
    ct.ECE(), ct.ECE(ct.UniformBins(12, closed="left"), distance="l2"),
    ct.ECE(ct.EdgeBins([0.05, 0.2, 0.5])), ct.ECE(10, distance="sqeuclidean"), ct.MCE(10),
    ct.RMSCE(ct.UniformBins(10)), ct.CalibrationInTheLarge(), ct.OERatio(),
    ct.HosmerLemeshow(ct.UniformBins(10)), ct.HosmerLemeshow(ct.UniformBins(10), variance="exact"),
]  # fmt: skip


def problem(seed, n=None):
    """Predictions from uniform to nearly sure, with exact 0 and 1, and outcomes."""
    rng = np.random.default_rng(seed)
    n = n or int(10 ** rng.uniform(1, 3.5))
    a, b = [(1, 1), (0.3, 0.6), (0.01, 5), (0.05, 0.05), (50, 50)][seed % 5]
    p = rng.beta(a, b, n)
    if seed % 3 == 0:
        p = p.round(2)  # many on edges
    if seed % 4 == 0:
        p[: n // 5] = rng.integers(0, 2, n // 5)
    tilt = rng.choice([0.0, 0.03])
    return p, (rng.random(n) < np.where((p > 0) & (p < 1), p * (1 - tilt), p)).astype(int)


def tally_of_parts(p, y, parts, seed=0, **facts):
    rng = np.random.default_rng(seed)
    part = rng.integers(0, parts, len(p))
    order = rng.permutation(parts)
    pick = lambda j: {k: v[part == j] for k, v in facts.items()}  # noqa: E731
    return sum(ct.Tally.of(p[part == j], y[part == j], **pick(j)) for j in order if j in part)


@pytest.mark.parametrize("seed", range(8))
def test_same_for_any_parts_and_order(seed):
    p, y = problem(seed, 500)
    whole = ct.Tally.of(p, y)
    assert whole.n == 500
    assert all(tally_of_parts(p, y, k, k) == whole for k in (2, 7, 100))
    assert ct.Tally.of(p[::-1], y[::-1]) == whole
    assert whole != ct.Tally.of(p, 1 - y, as_is=True)


def test_weights_are_kept_apart():
    p, y = problem(1, 400)
    w = np.random.default_rng(9).choice([0.0, 0.5, 2.0, 3.0], 400)
    whole = ct.Tally.of(p, y, weights=w)
    assert (whole.n, whole) == ((w > 0).sum(), tally_of_parts(p, y, 9, weights=w))
    assert whole.strata.tolist() == [0.5, 2.0, 3.0]


def test_stored_and_read_again():
    p, y = problem(2, 300)
    tally = ct.Tally.of(p, y, classes=["no", "yes"], weights=np.tile([1.0, 2.0], 150))
    assert ct.Tally.from_json(tally.to_json()) == tally
    partition = ct.Tally.of(ct.examples.digits(), lens=ct.Partition([[0, 1], list(range(2, 10))]))
    assert ct.Tally.from_json(partition.to_json()) == partition


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 7, 100, 4800])
def test_cells_lie_where_they_say(size):
    rng, grid = np.random.default_rng(size), Grid(size)
    p = np.concatenate([
        rng.random(500), 10.0 ** -rng.uniform(0, 300, 300), 1.0 - 10.0 ** -rng.uniform(0, 16, 300),
        np.arange(size + 1) / size, [0.0, 1.0, 0.5, 0.1 + 0.2, 1e-16],
    ])  # fmt: skip
    rest = 1.0 - p
    for x, r in zip(p, rest, strict=True):
        key, sums, _ = grid.sums(np.array([[x, r]]), np.array([True]))
        centre, away, half, _ = (float(v[0]) for v in grid.of(key))
        near = half * (1 + 1e-9)
        assert abs(x - centre) <= near + 2e-16
        assert abs(r - away) <= near + 2e-16
        assert abs(centre + half * float(mean_position(sums)[0]) - x) <= half * 2.0**-52 + 2e-16
    mirrored, *_ = grid.sums(np.column_stack([rest, p]), np.ones(p.size, bool))
    straight, *_ = grid.sums(np.column_stack([p, rest]), np.ones(p.size, bool))
    assert np.array_equal(np.sort(grid.last - mirrored), straight)


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("m", [1, 10, 12, 15, 16, 20, 25, 30, 32, 50, 64, 100])
def test_bins_are_made_of_cells(m, closed):
    rng = np.random.default_rng(m)
    p = np.concatenate([rng.random(300), np.arange(101) / 100, [0.1 + 0.2, 1e-15, 1.0, 0.0]])
    y = (rng.random(p.size) < p).astype(int)
    bins = ct.UniformBins(m, closed=closed)
    found = ct.calibration_test(ct.Tally.of(p, y), None, ct.ECE(bins))
    assert found.estimate == pytest.approx(ct.ECE(bins)(p, y), abs=1e-13)


def both(p, y, statistic, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options["statistic"] = statistic
        return [ct.calibration_test(*d, **options) for d in ((p, y), (ct.Tally.of(p, y),))]


@pytest.mark.parametrize("statistic", EXACT, ids=repr)
def test_exact_answers_are_those_of_rows(statistic):
    for seed in range(12):
        rows, tally = both(*problem(seed), statistic)
        scale = 1e-11 * max(1.0, abs(rows.estimate))
        assert tally.estimate == pytest.approx(rows.estimate, abs=scale)
        assert tally.null == "exact"
        low, high = tally.pvalue_bracket
        assert low <= rows.pvalue_bracket[1] * (1 + 1e-9)
        assert rows.pvalue_bracket[0] * (1 - 1e-9) <= high
        room = 1e-3 if isinstance(statistic, ct.RMSCE) else 1e-5  # whose support is a grid
        assert tally.null_mean == pytest.approx(rows.null_mean, rel=room, abs=1e-10)
        assert tally.null_std == pytest.approx(rows.null_std, rel=room)
        assert (tally.impossible, tally.n) == (rows.impossible, rows.n)


def test_the_law_of_the_brier_gap_needs_no_fine_grid():
    (p, y), facts = problem(15), {"statistic": ct.ScoreGap("brier"), "null": "asymptotic"}
    rows = ct.calibration_test(p, y, lens=ct.OneVsRest(1), **facts).pvalue
    assert ct.calibration_test(ct.Tally.of(p, y, grid=2), **facts).pvalue == pytest.approx(rows)


def laws_of(p, bins, grid):
    """The laws of the cells of rows and of their tally, with their bounds of the error."""
    probs = np.column_stack([p, 1.0 - p])
    cells = TallyProblem.of(ct.Tally.of(p, np.zeros(p.size, int), grid=grid))
    by_rows = cells_of(bins, probs).laws()
    return zip(by_rows, ct.Cells.of(bins, problem_of(cells)).laws(), strict=True)


def tails(first, pmf, n):
    law = np.zeros(n + 1)
    law[first : first + pmf.size] = pmf
    return np.cumsum(law[::-1])[::-1]


@pytest.mark.parametrize("grid", [2, 10, 100, 1000, 4800])
def test_laws_of_cells_are_within_their_bounds(grid):
    worst = 0.0
    warnings.simplefilter("ignore")
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p, _ = problem(seed, int(10 ** rng.uniform(0.5, 3.7)))
        for rows, tally in laws_of(p, ct.UniformBins(rng.choice([1, 2])), grid):
            apart = np.abs(tails(*rows[:2], p.size) - tails(*tally[:2], p.size)).max()
            assert apart <= rows[2] + tally[2] + 1e-15
            worst = max(worst, apart)
            if grid == 4800:
                assert tally[2] < 1e-9
    assert worst > 0.0


@pytest.mark.parametrize("weights", [(1.0, 1.7, 0.3), (1.0, 2.0, 5000.0), (1.0, np.sqrt(2.0))])
def test_weighted_intervals_are_those_of_rows(weights):
    """Sums are equal, the draws are others; laws are computed of the first weights only."""
    rng = np.random.default_rng(3)
    p = rng.beta(0.3, 0.6, 1500)
    y, w = (rng.random(1500) < p * 0.8).astype(int), rng.choice(weights, 1500)
    data, tally = ct.Predictions.of(p, y, weights=w).in_ratios(), ct.Tally.of(p, y, weights=w)
    rows = ct.OneVsRest(1)(data)
    micro, bins = TallyProblem.of(tally), ct.UniformBins(10)
    cells = ct.Cells.of(bins, problem_of(micro))
    assert cells.lawful == (weights[1] == 1.7)
    a = cell_noise(rows, cells_of(bins, rows.probs, rows.weights), 4000, rng)
    b = cell_noise(micro, cells, 4000, rng)
    scale = b.n / a.n  # weights in whole numbers, or not
    powers = {"size": 1, "predicted": 0, "sums": 1, "variance": 2, "hidden": 2}
    for name, power in powers.items():
        expected = scale**power * getattr(a, name)
        np.testing.assert_allclose(getattr(b, name), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(b.null_variance, scale**2 * a.null_variance, rtol=0.15)
    np.testing.assert_allclose(b.grain, scale * a.grain, rtol=0.15)
    np.testing.assert_allclose(b.calibrated.std(axis=0), 1.0, atol=0.07)
    np.testing.assert_allclose(b.calibrated.mean(axis=0), 0.0, atol=0.07)
    size = rng.random(len(cells))
    assert b.share_error(size) == pytest.approx(a.share_error(size))
    for statistic in (ct.ECE(), ct.DebiasedL2()):
        asked = {"n_resamples": 3999, "rng": 1}
        one = ct.confidence_interval(p, y, statistic, weights=w, **asked)
        two = ct.confidence_interval(tally, None, statistic, **asked)
        assert (two.estimate, two.effective_n) == pytest.approx((one.estimate, one.effective_n))
        for name in ("low", "high", "null_mean"):
            assert getattr(two, name) == pytest.approx(getattr(one, name), rel=0.06, abs=5e-4)


@pytest.mark.parametrize("grid", [97, None])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [50, 300])
def test_comparisons_are_those_of_rows(grid, weighted, size):
    """With few different predictions to rounding, else to what a mean says of a micro-cell."""
    models = []
    for seed, n, tilt in ((1, size, 0.0), (2, size + 40, 0.6)):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.5, 0.8, n)
        p = p if grid is None else np.rint(p * grid) / grid
        facts = {"weights": rng.choice([1.0, 1.7, 5.0], n)} if weighted else {}
        models.append(ct.Predictions.of(p, (rng.random(n) < p * (1 - tilt)).astype(int), **facts))
    asked = {"paired": False, "n_resamples": 99, "rng": 1}
    for statistic in (ct.DebiasedL2(), ct.ECE(ct.UniformBins(32))):
        rows = ct.compare(*models, None, statistic, **asked)
        found = ct.compare(*map(ct.Tally.of, models), None, statistic, **asked)
        for name in ("estimate_a", "estimate_b", "difference", "pvalue", "low", "high"):
            expected = pytest.approx(getattr(rows, name), rel=1e-5 if grid is None else 1e-9)
            assert getattr(found, name) == expected, name
        assert (found.n, found.verdict) == (size, rows.verdict)
        assert found.effective_n == pytest.approx(rows.effective_n)
        for own, of_rows in zip(found.scores, rows.scores, strict=True):
            exact = pytest.approx((of_rows.mean_a, of_rows.mean_b, of_rows.difference), rel=1e-9)
            assert (own.mean_a, own.mean_b, own.difference) == exact
            close = pytest.approx((of_rows.low, of_rows.high, of_rows.pvalue), rel=1e-4, abs=1e-6)
            assert (own.low, own.high, own.pvalue) == close
        assert [note for note in found.notes if "alone" in note] == list(rows.notes)


def test_rows_interpreted_as_compiled(monkeypatch):
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(300), rng.beta(0.02, 0.5, 300), [0.0, 1.0, 5e-324, 0.3, 0.5]])
    p = np.concatenate([p, 1.0 - p])
    rows = np.column_stack([p, 1.0 - p]), rng.random(p.size) < p
    compiled = Grid(60).sums(*rows)
    monkeypatch.setattr(one_pass, "_add_up", one_pass._add_up.py_func)
    for one, other in zip(compiled, Grid(60).sums(*rows), strict=True):
        assert np.array_equal(one, other)


def test_logarithms_are_right_to_the_last_bit_or_two():
    rng = np.random.default_rng(1)
    x = np.concatenate([0.5 * rng.random(200), 10.0 ** rng.uniform(-323, -1, 56)])
    lanes = np.zeros(one_pass.BUFFERS * one_pass.ABREAST)
    lanes[one_pass.X : one_pass.REST], lanes[one_pass.REST : one_pass.RARE] = x, 1.0 - x
    one_pass._logarithms(lanes, lanes.view(np.int64))
    logs = lanes[one_pass.LOGS : one_pass.EXPONENTS]
    np.testing.assert_array_max_ulp(logs, np.log(np.concatenate([x, 1.0 - x])), 2)


def test_halves_beside_cells_of_several_predictions():
    p, y = np.array([0.5] * 6 + [0.50012, 0.50014, 0.5002]), np.arange(9) % 2
    found = ct.calibration_test(ct.Tally.of(p, y))  # φ of ½ is 0 at ω = π
    assert found.pvalue == pytest.approx(ct.calibration_test(p, y).pvalue)


DRAWN = [ct.DebiasedL1(10), ct.CoxScore(), ct.ScoreGap("log"), ct.MultiScale([2, 4, 8])]


@pytest.mark.parametrize("statistic", EXACT[::3] + DRAWN, ids=repr)
def test_very_many_rows_are_summed_where_that_says_the_same(statistic, monkeypatch):
    p, y = problem(4, 900)
    data = ct.Predictions.of(p.clip(0.01, 0.99), y)
    options = {"statistic": statistic, "rng": 1, "n_resamples": 999}
    rows = ct.calibration_test(data, **options)
    monkeypatch.setattr(analysis, "ROWS_FOR_SUMS", 500)
    sums = ct.calibration_test(data, **options)
    assert any("micro-cells" in note for note in sums.notes)
    assert sums.estimate == pytest.approx(rows.estimate, rel=1e-9, abs=1e-12)
    assert sums.null == rows.null
    if sums.null == "exact":
        assert sums.pvalue == pytest.approx(rows.pvalue, rel=1e-6)
    else:
        assert abs(sums.pvalue - rows.pvalue) < 6 * np.hypot(rows.pvalue_error, 0.01)


@pytest.mark.parametrize(
    ("statistic", "options"),
    [
        (ct.Kuiper(), {}),
        (ct.MultiScale(), {}),
        (ct.ECE(ct.QuantileBins(10)), {}),
        (ct.ECE(ct.UniformBins(7)), {}),
        (ct.ECE(), {"null": ct.ConsistencyResampling(), "n_resamples": 99}),
        (ct.ECE(), {"null": ct.RedrawLabels(), "weights": np.arange(900) % 3 + 1.0}),
        (ct.ECE(), {"clusters": np.arange(900) // 3, "n_resamples": 99}),
    ],
    ids=repr,
)
def test_rows_are_not_summed_where_sums_would_say_less(statistic, options, monkeypatch):
    p, y = problem(4, 900)
    options = {"n_resamples": 99, "rng": 1, **options}
    monkeypatch.setattr(analysis, "ROWS_FOR_SUMS", 500)
    found = ct.calibration_test(p.clip(0.01, 0.99), y, statistic, **options)
    assert not any("micro-cells" in note for note in found.notes)


def test_intervals_curves_and_joint_tests_of_very_many_rows(monkeypatch):
    p, y = problem(4, 900)
    data = ct.Predictions.of(p.clip(0.01, 0.99), y)

    def answers():
        interval = ct.confidence_interval(data, statistic=ct.DebiasedL2(), rng=1)
        close = ct.equivalence_test(data, tolerance=0.1, rng=1)
        curve = ct.reliability_curve(data)
        joint = ct.joint_test(data, pairs=[(ct.ECE(), None)], n_resamples=99, rng=1)
        assert ct.confidence_interval(data, method="bootstrap", rng=1, n_resamples=99).low > 0
        said = (interval, close, curve, *joint.tests)
        numbers = [interval.low, interval.high, close.pvalue, close.smallest_tolerance]
        numbers += [joint.tests[0].estimate, *curve.predicted, *curve.low, *curve.high]
        return numbers, [any("micro-cells" in note for note in r.notes) for r in said]

    rows, said = answers()
    assert not any(said)
    monkeypatch.setattr(analysis, "ROWS_FOR_SUMS", 500)
    sums, said = answers()
    assert all(said)
    assert sums == pytest.approx(rows, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("rows", [3, 40, 10**6])
def test_numbers_of_events_are_binomial(rows):
    from scipy.stats import binom

    p = np.array([0.0, 1e-9, 0.003, 0.3, 0.5, 0.97, 1.0])
    count = np.full(p.size, rows)
    draws = binomials(count, p, 1.0 - p, (3, 4), 0, 4000)
    again = [binomials(count, p, 1.0 - p, (3, 4), j, 1000) for j in range(0, 4000, 1000)]
    assert np.array_equal(draws, np.concatenate(again))
    for drawn, chance in zip(draws.T, p, strict=True):
        values, seen = np.unique(drawn, return_counts=True)
        reached = np.cumsum(seen) / 4000.0
        assert np.abs(reached - binom.cdf(values, rows, chance)).max() < 0.035  # p = 0.0001


def test_the_most_rows_overflow_no_sum():
    p = 0.5 / 4800  # at the end of a cell: all powers of t are 1
    grade = {"n": [2**33 - 1], "events": [0], "probability": [p]}
    most = TallyProblem.of(ct.Tally.from_table(grade))
    assert most.probs[0, 0] == pytest.approx(p, rel=1e-12)
    assert most.variance[0] == pytest.approx(most.n * p * (1 - p), rel=1e-9)


@pytest.mark.parametrize("statistic", [ct.LogScore(), ct.ScoreGap("log")], ids=repr)
def test_logarithms_of_a_tally_are_those_of_rows(statistic):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)
    run = {"n_resamples": 99, "rng": 0}
    of_sums = ct.calibration_test(ct.Tally.of(p, y), None, statistic, **run).estimate
    of_rows = ct.calibration_test(p, y, statistic, **run).estimate
    assert of_sums == pytest.approx(of_rows, abs=1e-12)
