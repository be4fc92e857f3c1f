"""Clusters and weights in comparisons, intervals and the other verbs, against definitions."""

import warnings
from itertools import product

import numpy as np
import pytest
from conftest import cells_of, seen
from scipy.special import ndtr
from scipy.stats import f, t

import caltest as ct
from caltest import recalibration
from caltest.data.binning import as_binning
from caltest.errors import FewClustersWarning
from caltest.inference.comparison import swapped_differences
from caltest.inference.dependence import SquaredError, base_variance
from caltest.nulls.agreement import Agreement
from caltest.statistics.prepared import problem_of

P = np.array([0.15, 0.25, 0.35, 0.15, 0.55, 0.45, 0.75, 0.85, 0.65, 0.75, 0.95, 0.35])
Y = np.array([0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1])
G = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 5])


def designed(probs, labels, clusters=None, weights=None):
    two = np.ndim(probs) == 1
    data = ct.OneVsRest(1)(ct.Predictions.of(probs, labels)) if two else seen(probs, labels)
    return ct.Predictions.of(data, clusters=clusters, weights=weights).in_ratios()


def error_of(data, bins=5):
    return SquaredError.of(cells_of(as_binning(bins), data.probs, data.weights), data)


def problem(rng, k, n=40, clustered=True, weighted=True):
    probs, labels = rng.dirichlet(np.full(k, 0.7), (2, n)), rng.integers(k, size=n)
    clusters = rng.integers(12, size=n) if clustered else None
    weights = rng.uniform(0.5, 3.0, n) if weighted else None
    return [designed(p, labels, clusters, weights) for p in probs]


def kernel(data, cells, centre=False):
    """w_b S_ub · S_vb summed over the cells, for all pairs of units; and what the units weigh."""
    w = np.ones(data.n) if data.weights is None else data.weights
    unit = np.arange(data.n) if data.clusters is None else data.clusters
    x = data.residuals[:, : 1 if data.n_classes == 2 else None].copy()
    units = np.unique(unit)
    h, size = np.zeros((units.size, units.size)), np.array([w[unit == u].sum() for u in units])
    for b in np.unique(cells):
        rows = cells == b
        if centre:
            x[rows] -= w[rows, None] * x[rows].sum(axis=0) / w[rows].sum()
        sums = np.array([x[rows & (unit == u)].sum(axis=0) for u in units])
        mass = np.array([w[rows & (unit == u)].sum() for u in units])
        if (mass > 0).sum() > 1:
            h += sums @ sums.T * mass.sum() / (mass.sum() ** 2 - (mass**2).sum())
    np.fill_diagonal(h, 0.0)
    return h, size


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_squared_error_and_its_variance_by_definition(rng, k, clustered, weighted):
    data = problem(rng, k, clustered=clustered, weighted=weighted)
    bins = as_binning(3)
    errors = [error_of(d, 3) for d in data]
    raw, centred = [], []
    for d, error in zip(data, errors, strict=True):
        cells = np.asarray(bins(d.probs))
        (h, size), (hc, _) = kernel(d, cells), kernel(d, cells, centre=True)
        raw.append(h / size.sum())
        centred.append(hc / size.sum())
        assert error.estimate == pytest.approx(h.sum() / size.sum(), abs=1e-12)
        unit = np.arange(d.n) if d.clusters is None else d.clusters
        for u in np.unique(unit):
            j = error.parts.unit[error.parts.of_row][unit == u][0]
            kept = d.take(unit != u)
            left, rest = kernel(kept, cells[unit != u])
            assert error.omitting[j] == pytest.approx(left.sum() / rest.sum(), abs=1e-12)
        changed = np.array(d.labels)
        changed[7] = (changed[7] + 1) % k
        again = error_of(ct.Predictions.of(d, changed), 3)
        assert error.changes[7, changed[7]] == pytest.approx(again.estimate - error.estimate)
    for paired in (True, False):
        if paired:
            moved = [errors[0].omitting - errors[1].omitting]
            found = [2 * ((pair[0] - pair[1]) ** 2).sum() for pair in (raw, centred)]
        else:
            moved = [error.omitting for error in errors]
            found = [2 * sum((part**2).sum() for part in pair) for pair in (raw, centred)]
        jackknife = sum((m.size - 1) * m.var() for m in moved)
        expected = max(jackknife - found[1], *found)
        assert base_variance(*errors, paired) == pytest.approx(expected, rel=1e-9)


def by_pairs(p, y, clusters, weights, bins):
    """Σ_b W_b Σ w_i w_j r_i r_j / Σ w_i w_j / Σ W_b over pairs of a cell and of two clusters."""
    p, y, clusters, w = (np.asarray(v, float) for v in (p, y, clusters, weights))
    cell, r, total = np.ceil(p * bins), y - p, 0.0
    for c in np.unique(cell):
        rows = np.flatnonzero(cell == c)
        pairs = [(i, j) for i, j in product(rows, rows) if clusters[i] != clusters[j]]
        if pairs:
            products = sum(w[i] * w[j] * r[i] * r[j] for i, j in pairs)
            total += w[rows].sum() * products / sum(w[i] * w[j] for i, j in pairs)
    return total / w.sum()


def test_enumerated_example_leaves_out_pairs_of_a_cluster():
    assert error_of(designed(P, Y)).estimate == pytest.approx(0.174166667, abs=1e-9)
    assert error_of(designed(P, Y, G)).estimate == pytest.approx(0.170416667, abs=1e-9)
    p, y, w = [0.2, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 1, 0, 1, 0, 1], [1, 2, 1, 3, 1, 2]
    assert error_of(designed(p, y, weights=w), 2).estimate == pytest.approx(-0.101163636, abs=1e-9)
    found = [by_pairs(P, Y, g, np.ones(12), 5) for g in (np.arange(12), G)]
    found.append(by_pairs(p, y, np.arange(6), w, 2))
    assert found == pytest.approx([0.174166667, 0.170416667, -0.101163636], abs=1e-9)


def test_compare_takes_clusters_and_weights(rng):
    u = np.repeat(rng.standard_normal(60), 3) + rng.standard_normal(180)
    p, q = 1 / (1 + np.exp(-u)), 1 / (1 + np.exp(-2.5 * u))
    y, g = (rng.random(180) < p).astype(int), np.repeat(np.arange(60), 3)
    w = rng.uniform(0.5, 2.0, 180)
    plain = ct.compare(p, q, y, n_resamples=99, rng=1)
    alone = {"clusters": np.arange(180), "weights": np.full(180, 7.0)}
    assert plain.as_dict() == ct.compare(p, q, y, **alone, n_resamples=99, rng=1).as_dict()
    known = ct.compare(p, q, y, clusters=g, weights=w, n_resamples=99, rng=1)
    names = np.array([f"p{j}" for j in rng.permutation(60)])[g]
    order = rng.permutation(180)
    moved = ct.compare(p[order], q[order], y[order], clusters=names[order], weights=9 * w[order],
                       n_resamples=99, rng=1)  # fmt: skip
    assert (moved.difference, moved.pvalue) == pytest.approx((known.difference, known.pvalue))
    assert (moved.low, moved.high) == pytest.approx((known.low, known.high))
    a = ct.Predictions.of(p, y, clusters=g)
    with pytest.raises(ct.InvalidPredictionsError, match="A and B have different clusters"):
        ct.compare(a, q, y)


def test_score_differences_of_clusters_and_weights(rng):
    p, q = rng.random((2, 30))
    y, g, w = rng.integers(0, 2, 30), np.repeat(np.arange(10), 3), rng.uniform(0.5, 2.0, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewClustersWarning)
        found = ct.compare(p, q, y, clusters=g, weights=w, n_resamples=9).scores[0]
    d = (p - y) ** 2 - (q - y) ** 2
    mean = np.average(d, weights=w)
    sums = np.bincount(g, w * (d - mean))
    error = np.sqrt(10 / 9 * (sums**2).sum()) / w.sum()
    assert found.difference == pytest.approx(mean)
    size = np.bincount(g, w)
    freedom = size.sum() ** 2 / (size**2).sum() - 1
    assert found.high - mean == pytest.approx(t.ppf(0.975, freedom) * error)


def interval(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewClustersWarning)
        return ct.confidence_interval(*args, **{"n_resamples": 1999, "rng": 1} | options)


def test_intervals_with_weights(rng):
    p, w = rng.random(300), rng.integers(1, 4, 300)
    y = (rng.random(300) < 0.5 * p + 0.1).astype(int)
    plain = interval(p, y, ct.DebiasedL2(5))
    assert interval(p, y, ct.DebiasedL2(5), weights=np.full(300, 0.3)) == plain
    for statistic in (ct.ECE(5), ct.DebiasedL2(5), ct.ECE(ct.VarianceTree(40))):
        found = interval(p, y, statistic, weights=w)
        assert found.estimate == pytest.approx(statistic(p, y, weights=w))
        assert found.low <= found.corrected <= found.high
        scaled = interval(p, y, statistic, weights=0.01 * w)
        assert (scaled.low, scaled.high) == pytest.approx((found.low, found.high), rel=1e-9)
    debiased = interval(p, y, ct.DebiasedL2(5), weights=w)
    assert debiased.estimate == debiased.corrected
    with pytest.raises(ct.StatisticError, match="weights"):
        interval(p, y, ct.MCE(5), weights=w)


@pytest.mark.slow
def test_intervals_with_clusters_use_the_law_of_the_test(rng):
    """One prediction a cluster, nearly equal labels: V between clusters of a cell is next to 0."""
    covered, runs = 0, 40
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        g = np.repeat(np.arange(20), 5)
        z = np.sqrt(0.9) * rng.normal(size=20)[g] + np.sqrt(0.1) * rng.normal(size=100)
        p = rng.random(20)[g]
        covered += interval(p, ndtr(z) < p, clusters=g, n_resamples=199, level=0.9).low == 0.0
    assert covered >= 35  # of 40; noise of independent rows where V is 0 gave 29
    found = interval(P, Y, ct.DebiasedL2(5), clusters=G)
    assert found.corrected == pytest.approx(by_pairs(P, Y, G, np.ones(12), 5), abs=1e-12)
    with pytest.raises(ct.StatisticError, match=r"too few clusters \(3\)"):
        interval(P, Y, clusters=np.arange(12) % 3)


@pytest.mark.parametrize("seed", [2, 10])
def test_certain_predictions_that_are_right_do_not_inflate_the_noise(seed):
    rng = np.random.default_rng(seed)
    g, w = np.repeat(np.arange(30), 4), rng.uniform(0.2, 3, 120)
    p = np.where(rng.random(120) < 0.5, 1.0, 0.0)
    data = designed(np.column_stack([p, 1.0 - p]), (p == 0).astype(int), g, w)
    found = interval(data, None, ct.ECE(5), lens=ct.Canonical())
    assert found.low == 0.0 < found.high < 0.1  # rounding made κ endless, and the upper end 1


@pytest.mark.slow
def test_swapping_clusters_by_enumeration(rng):
    p, q = rng.random((2, 8))
    y, g = rng.integers(0, 2, 8), np.array([0, 0, 1, 1, 1, 2, 3, 3])
    a, b = (ct.Predictions.of(x, y) for x in (p, q))
    observed = abs(ct.ECE(3)(a) - ct.ECE(3)(b))
    values = []
    for signs in product([False, True], repeat=4):
        m = np.array(signs)[g]
        first, second = np.where(m, q, p), np.where(m, p, q)
        values.append(abs(ct.ECE(3)(first, y) - ct.ECE(3)(second, y)))
    exact = np.mean(np.array(values) >= observed - 1e-12)
    sides = [designed(x, y, g) for x in (p, q)]
    drawn, _ = swapped_differences(ct.ECE(3), *sides, True, 4999, 3, 1)
    share = (np.abs(drawn) >= observed - 1e-12).mean()
    assert share == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 4999) ** 0.5 + 1e-3)


def test_cox_with_weights_and_clusters(rng):
    p, w = rng.uniform(0.1, 0.9, 80), rng.integers(1, 4, 80)
    y, g = (rng.random(80) < p).astype(int), np.repeat(np.arange(20), 4)
    plain = ct.cox_recalibration(p, y)
    assert ct.cox_recalibration(p, y, weights=np.full(80, 3), clusters=np.arange(80)) == plain
    heavy = ct.cox_recalibration(p, y, weights=0.5 * w, clusters=g)
    copied = ct.cox_recalibration(np.repeat(p, w), np.repeat(y, w), clusters=np.repeat(g, w))
    for name in ("intercept", "slope", "in_the_large"):
        for value in (name, f"{name}_se"):
            assert getattr(heavy, value) == pytest.approx(getattr(copied, value), rel=1e-9)
    z = np.log(p / (1 - p))
    x, q = np.column_stack([np.ones(80), z]), 1 / (1 + np.exp(-heavy.intercept - heavy.slope * z))
    information = (x * (w * q * (1 - q))[:, None]).T @ x
    moved = []
    for u in range(20):
        rows = g == u
        own = (x[rows] * (w * q * (1 - q))[rows, None]).T @ x[rows]
        moved.append(np.linalg.solve(information - own, x[rows].T @ (w * (y - q))[rows]))
    covariance = 0.95 * np.array(moved).T @ np.array(moved)
    assert (heavy.slope_se**2, heavy.covariance) == pytest.approx(tuple(covariance[1, ::-1]))
    size = np.bincount(g, w)
    freedom = size.sum() ** 2 / (size**2).sum() - 1
    reach = t.ppf(0.975, freedom) * heavy.slope_se
    assert heavy.slope_interval == pytest.approx((heavy.slope - reach, heavy.slope + reach))
    beyond = t.sf(abs(heavy.slope - 1) / heavy.slope_se, freedom)
    assert heavy.lr_slope_pvalue == pytest.approx(2 * beyond)
    d = np.array([heavy.intercept, heavy.slope - 1])
    wald = d @ np.linalg.inv(covariance) @ d
    beyond = f.sf(wald * (freedom - 1) / (2 * freedom), 2, freedom - 1)
    assert (heavy.lr, heavy.lr_pvalue) == pytest.approx((wald, beyond))
    assert "Wald test, by the jackknife, of" in str(heavy)
    assert "20 clusters, weighted: effective n" in heavy.recipe
    with pytest.raises(ct.StatisticError, match="takes no clusters, weights or folds"):
        ct.cox_recalibration(p, y, clusters=g, method="profile")


def test_agreement_of_large_clusters_by_part_of_the_pairs(rng):
    probs, w = rng.dirichlet(np.ones(4), 700), rng.uniform(0.5, 2.0, 700)
    facts = {"clusters": np.repeat([0, 1], [600, 100]), "weights": w}
    data = ct.Canonical()(ct.Predictions.of(probs, np.zeros(700, int), **facts))
    found = Agreement.of(data).sums[1]
    expected = []
    for rows in (slice(0, 600), slice(600, 700)):
        p, v, total = probs[rows], w[rows], 0.0
        for i in range(len(p)):
            largest = np.maximum(p[i] / p[i][:, None], p[:, None, :] / p[:, :, None])  # (m, k, l)
            shared = (1.0 / largest.sum(axis=2)).sum(axis=1) - p @ p[i]
            total += v[i] * (v @ shared - v[i] * shared[i])
        expected.append(total)
    assert found[1] == pytest.approx(expected[1], rel=1e-12)
    assert found[0] == pytest.approx(expected[0], rel=5e-3)
    assert found[0] != pytest.approx(expected[0], rel=1e-9)


METHODS = [
    *(recalibration.TemperatureScaling(), recalibration.VectorScaling()),
    *(recalibration.MatrixScaling(), recalibration.PlattScaling()),
    *(recalibration.BetaCalibration(), recalibration.IsotonicRegression()),
    recalibration.HistogramBinning(),
]


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("k", [2, 3])
def test_recalibration_with_weights_is_that_of_repeated_rows(rng, method, k):
    probs = rng.dirichlet(np.ones(k), 120)
    labels = (rng.random(120)[:, None] > (probs**0.6).cumsum(axis=1) / (probs**0.6).sum(
        axis=1, keepdims=True)).sum(axis=1)  # fmt: skip
    w = rng.integers(0, 4, 120)
    new = rng.dirichlet(np.ones(k), 9)
    heavy = method.fit(probs, labels, weights=0.3 * w)
    copied = method.fit(np.repeat(probs, w, axis=0), np.repeat(labels, w))
    np.testing.assert_allclose(heavy(new), copied(new), atol=1e-6)
    assert heavy.nll_before == pytest.approx(copied.nll_before)
    assert heavy.nll_after == pytest.approx(copied.nll_after, abs=1e-6)
    equal, plain = method.fit(probs, labels, weights=np.full(120, 2.0)), method.fit(probs, labels)
    np.testing.assert_allclose(equal(new), plain(new), atol=1e-12)


def test_cross_fitted_errors_keep_clusters_together_and_weigh_rows(rng):
    p, g = rng.random(60), np.repeat(np.arange(20), 3)
    y, w = (rng.random(60) < p).astype(int), rng.uniform(0.5, 2.0, 60)
    for statistic in (ct.VariationalError(), ct.RefinementError("log")):
        fixed = statistic.prepare(problem_of(designed(p, y, g, w)))
        assert all(np.unique(fixed.fold[g == j]).size == 1 for j in range(20))
        q = p.copy()
        for k in range(5):
            held = fixed.fold == k
            fit = recalibration.IsotonicRegression().fit(p[~held], y[~held], weights=w[~held])
            q[held] = fit(p[held])
        gain = np.where(q == p, 0.0, np.sign(q - p)) * (y - p)
        if isinstance(statistic, ct.RefinementError):
            gain = -np.log(np.maximum(np.where(y == 1, q, 1 - q), 2.0**-53))
        assert fixed(1 - y) == pytest.approx(np.average(gain, weights=w), rel=1e-9)
    with pytest.raises(ct.StatisticError, match="two clusters in each fold, 10 in all"):
        ct.VariationalError()(p, y, clusters=np.minimum(g, 8))


@pytest.mark.slow
def test_a_plan_from_clusters_draws_them_whole():
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(40), 4)
    p = rng.beta(2, 2, 40)[patient]
    data = ct.Predictions.of(p, (rng.random(160) < p**0.6).astype(int), clusters=patient)
    found = ct.plan(data, n_datasets=100, rng=0)
    assert any(note.startswith("whole clusters are drawn") for note in found.notes)
