"""Reliability curves: the table, and bars that hold what they promise."""

import numpy as np
import pytest
import scipy.stats
from conftest import cells_of

import caltest as ct
from caltest.inference import reliability_curve
from caltest.inference.diagrams import bin_sensitivity
from caltest.inference.reliability import (
    cell_pvalues,
    confidence_bars,
    consistency_bars,
    quantile_bars,
    reliability_difference,
)


def _cells(p, m):
    return cells_of(ct.UniformBins(m), np.column_stack([p, 1 - p]))


def _limits(level, trials):
    """Return where the number of hits lies, but for a chance of 2e-6, if the level is held."""
    return scipy.stats.binom.ppf(1e-6, trials, level), scipy.stats.binom.isf(1e-6, trials, level)


def test_table_against_a_loop_over_the_bins(rng):
    p, y = rng.random(400), rng.integers(0, 2, 400)
    curve = reliability_curve(p, y, lens=ct.OneVsRest(1), bins=ct.UniformBins(7))
    for row, j in enumerate(curve.cell):
        inside = (p > j / 7) & (p <= (j + 1) / 7)
        assert curve.count[row] == inside.sum()
        assert curve.predicted[row] == pytest.approx(p[inside].mean(), abs=1e-12)
        assert curve.observed[row] == pytest.approx(y[inside].mean(), abs=1e-12)
        assert (curve.bin_low[row], curve.bin_high[row]) == (j / 7, (j + 1) / 7)
    assert curve.count.sum() == curve.n == curve.spread.sum() == 400
    np.testing.assert_allclose(curve.deviation, curve.observed - curve.predicted)
    edges = [*np.arange(21) / 20, *1 / (1 + np.exp(-np.linspace(-14, 14, 57))), 0.0, 1.0]
    np.testing.assert_array_equal(curve.spread[0], np.histogram(p, np.unique(edges))[0])
    test = ct.calibration_test(p, y, ct.ECE(7), lens=ct.OneVsRest(1))
    assert curve.tests[0].pvalue == test.pvalue


@pytest.mark.parametrize(
    ("lens", "names"),
    [
        (ct.TopK(1), ("top class",)),
        (ct.TopK(2), ("largest", "second", "all others")),
        (ct.OneVsRest("b"), ("class b",)),
        (ct.Partition([["a", "b"], ["c", "d"]]), ("a, b",)),
        (ct.Partition([["a"], ["b"], ["c", "d"]]), ("a", "b", "c, d")),
        (ct.Canonical(), ("class a", "class b", "class c", "class d")),
    ],
)
def test_components_are_the_induced_classes(rng, lens, names):
    probs, labels = rng.dirichlet(np.ones(4), 200), rng.integers(0, 4, 200)
    data = ct.Predictions.of(probs, labels, classes=None)
    data = ct.Predictions(data.probs, data.labels, ("a", "b", "c", "d"))
    curve = reliability_curve(data, lens=lens, bins=5)
    induced = lens(data)
    assert curve.names == names
    for j in range(len(names)):
        part = curve.of(j)
        assert part.count.sum() == 200
        means = [np.average(v, weights=part.count) for v in (part.predicted, part.observed)]
        assert means == pytest.approx([induced.probs[:, j].mean(), (induced.labels == j).mean()])


@pytest.mark.parametrize("band", ["consistency", "wilson", ct.RedrawLabels(), None])
def test_every_subgroup_has_its_curve(rng, band):
    p, ward = rng.random(300), rng.choice(["a", "b", "c"], 300)
    y = rng.random(300) < p
    options = {"bins": 3, "band": band, "n_resamples": 199, "rng": 1}
    curve = reliability_curve(p, y, by=ward, **options)
    assert curve.names == ("a", "b", "c")
    for j, name in enumerate("abc"):
        part, own = curve.of(j), reliability_curve(p[ward == name], y[ward == name], **options)
        for column in ("count", "predicted", "observed", "low", "high"):
            np.testing.assert_array_equal(getattr(part, column), getattr(own, column))
        np.testing.assert_array_equal(part.spread, own.spread)
        assert part.tests == own.tests


def test_what_ctrl_c_cut_short_says_so(monkeypatch):
    from caltest.nulls import draws as engine

    genuine, calls = engine._chunk, []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return genuine(*args)

    monkeypatch.setattr(engine, "_chunk", interrupted)
    data = ct.examples.digits("best")
    for run in (
        lambda: reliability_curve(data, bins=5, band=ct.RedrawLabels(), rng=1),
        lambda: ct.reliability_fit(data, n_resamples=999, rng=1),
    ):
        calls.clear()
        curve = run()
        assert (curve.ended, curve.n_resamples) == ("interrupted", 256)
        assert "Interrupted" in str(curve)


@pytest.mark.parametrize(("n", "m"), [(40, 4), (300, 10)])
def test_simultaneous_bars_hold_all_outcomes_with_their_level(rng, n, m):
    p = rng.random(n)
    cells = _cells(p, m)
    low, high = consistency_bars(cells, 0.9, simultaneous=True)
    observed = cells.sum(rng.random((20_000, n)) < p, axis=1) / cells.counts
    inside = ((observed >= low - 1e-12) & (observed <= high + 1e-12)).all(axis=1)
    # The level is held, and not by bars as wide as Bonferroni's at twice the confidence.
    assert inside.sum() >= _limits(0.9, 20_000)[0]
    assert inside.mean() < (0.93 if n == 300 else 1.0)


@pytest.mark.parametrize("simultaneous", [False, True])
def test_redrawn_bars_agree_with_computed_ones(rng, simultaneous):
    data = ct.examples.GaussianMixture().sample(2000, rng)
    options = {"bins": 6, "simultaneous": simultaneous, "lens": ct.OneVsRest(0)}
    exact = reliability_curve(data, **options)
    drawn = reliability_curve(data, band=ct.RedrawLabels(), rng=1, **options)
    assert "RedrawLabels() null" not in drawn.recipe
    assert "B=1999" in drawn.recipe
    width = exact.high - exact.low
    assert (np.abs(drawn.low - exact.low) < 0.12 * width + 1.0 / exact.count).all()
    assert (np.abs(drawn.high - exact.high) < 0.12 * width + 1.0 / exact.count).all()


def test_resampled_bars_against_a_loop(rng):
    """The bars of Vaicenavicius et al. (2019, Fig. 4), written from their description."""
    p = rng.random(150)
    y = rng.random(150) < p
    cell = np.minimum((np.ceil(3 * p) - 1).astype(int), 2)
    draws = np.empty((3000, 3))
    for r in range(3000):
        rows = rng.integers(150, size=150)
        q, c = p[rows], cell[rows]
        z = rng.random(150) < q
        draws[r] = [(z[c == b] - q[c == b]).mean() for b in range(3)]
    band = ct.ConsistencyResampling()
    curve = reliability_curve(p, y, lens=ct.OneVsRest(1), bins=3, band=band, rng=3)
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    np.testing.assert_allclose(curve.low - curve.predicted, low, atol=0.015)
    np.testing.assert_allclose(curve.high - curve.predicted, high, atol=0.015)


def test_quantile_bars_count_the_further_draw():
    draws = np.arange(1.0, 20.0)[:, None]  # 19 replicates: 5 % on either side is one rank
    assert quantile_bars(draws, 0.9) == (1.0, 19.0)
    draws = np.vstack([draws, [[np.nan]]])
    assert quantile_bars(draws, 0.9) == (1.0, 19.0)


def test_cell_pvalues_against_the_binomial_law():
    cells = _cells(np.repeat([0.1, 0.6], [40, 25]), 2)
    for hits in ([0, 0], [4, 15], [40, 25], [9, 21]):
        expected = []
        for s, n, q in zip(hits, (40, 25), (0.1, 0.6), strict=True):
            law = scipy.stats.binom(n, q)
            expected.append(min(1.0, 2.0 * min(law.cdf(s), law.sf(s - 1))))
        found = cell_pvalues(cells, np.array(hits))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_intervals_against_scipy():
    s, n = np.array([0, 1, 7, 20]), np.array([10, 12, 20, 20])
    for method, name in (("clopper-pearson", "exact"), ("wilson", "wilson")):
        low, high = confidence_bars(s, n, 0.9, method)
        for j in range(4):
            ci = scipy.stats.binomtest(int(s[j]), int(n[j])).proportion_ci(0.9, method=name)
            np.testing.assert_allclose((low[j], high[j]), (ci.low, ci.high), atol=1e-12)


@pytest.mark.parametrize(("method", "slack"), [("clopper-pearson", 0.0), ("wilson", 0.03)])
def test_simultaneous_intervals_cover(rng, method, slack):
    counts, truth = np.array([8, 30, 200, 50]), np.array([0.1, 0.5, 0.8, 0.98])
    covered = 0
    for _ in range(3000):
        hits = rng.binomial(counts, truth)
        low, high = confidence_bars(hits, counts, 0.9, method, simultaneous=True)
        covered += bool(((low <= truth) & (truth <= high)).all())
    assert covered >= _limits(0.9 - slack, 3000)[0]


@pytest.mark.slow
@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("n", [60, 600])
def test_band_of_the_difference_covers(rng, n, simultaneous):
    trials, covered, total = 400, 0, 0
    asked = {"lens": ct.OneVsRest(1), "bins": 5, "simultaneous": simultaneous}
    for _ in range(trials):
        x = rng.normal(0.0, 1.5, n)
        truth, a = 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(-1.3 * x - 0.2))
        b = 1 / (1 + np.exp(-0.6 * x - 0.3 * rng.normal(size=n)))
        curve = reliability_difference(a, b, rng.random(n) < truth, **asked)
        ca, cb = (np.minimum(np.ceil(5 * p) - 1, 4).astype(int) for p in (a, b))
        kept = [k for k in range(5) if (ca == k).any() and (cb == k).any()]
        target = [(truth - a)[ca == k].mean() - (truth - b)[cb == k].mean() for k in kept]
        inside = (target >= curve.low) & (target <= curve.high)
        covered += inside.all() if simultaneous else inside.sum()
        total += 1 if simultaneous else inside.size
    # Bins of one data set share rows, hence the allowance of a further percent.
    assert covered >= _limits(0.89, total)[0]


def test_sensitivity_is_a_row_of_tests():
    data = ct.examples.digits("best")
    table = bin_sensitivity(data, bins=[5, ct.QuantileBins(20)])
    for j, bins in enumerate((5, ct.QuantileBins(20))):
        test = ct.calibration_test(data, None, ct.ECE(bins))
        assert (table.estimate[j], table.pvalue[j]) == (test.estimate, test.pvalue)
        assert test.null_distribution.sf(table.high[j]) <= 0.06
        assert test.null_distribution.sf(table.low[j]) >= 0.94
    np.testing.assert_array_equal(table.size, [5, 20])


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_bars_of_equal_predictions_against_the_binomial_quantiles(level):
    low, high = consistency_bars(_cells(np.repeat([0.05, 0.3, 0.8], [400, 50, 7]), 10), level)
    for b, (value, n) in enumerate([(0.05, 400), (0.3, 50), (0.8, 7)]):
        law = scipy.stats.binom(n, value)
        assert round(low[b] * n) == law.ppf((1 - level) / 2 + 1e-12)
        assert round(high[b] * n) == law.ppf(1 - (1 - level) / 2 - 1e-12)


def test_bands_of_differences_bin_by_bin():
    from caltest.inference.reliability import _band

    count = np.array([[40.0, 10.0, 25.0], [30.0, 12.0, 50.0]])
    p, y = count * [[0.2, 0.5, 0.8], [0.3, 0.4, 0.7]], np.array([[9.0, 4, 21], [8.0, 7, 33]])
    shared = np.array([1.5, 0.0, 2.0])
    found = _band(count, p, y, shared, 0.9, False)
    for b in range(3):
        (n, m), (a, c) = count[:, b] + 2.0, (y[:, b] + 1.0) / (count[:, b] + 2.0)
        sd = (a * (1 - a) / n + c * (1 - c) / m - 2.0 * shared[b] / (n * m)) ** 0.5
        gap = p[0, b] / count[0, b] - p[1, b] / count[1, b]
        assert found[0][b] == pytest.approx(y[0, b] / count[0, b] - y[1, b] / count[1, b] - gap)
        assert found[1][b] == pytest.approx(a - c - gap - 1.6448536 * sd, abs=1e-6)  # z of 90 %
        assert found[2][b] == pytest.approx(a - c - gap + 1.6448536 * sd, abs=1e-6)
