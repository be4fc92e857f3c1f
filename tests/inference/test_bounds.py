"""Bounds of binned errors piece by piece: noise of cells, tests of a size, formulas, methods."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from conftest import cells_of
from twins import bounds as twin

import caltest as ct
from caltest.data import Predictions
from caltest.inference import interval as interval_methods
from caltest.inference import inversion
from caltest.inference._input import evaluated
from caltest.inference.inversion import CellNoise, cell_noise, poisson_noise
from caltest.nulls import Run
from caltest.nulls.laws import clopper_pearson


def problem(seed, n, k, n_cells, shift=0.0):
    rng = np.random.default_rng([seed, n, k])
    probs = Predictions.of(rng.dirichlet(np.full(k, 0.7), n), np.zeros(n, dtype=int)).probs
    cells = np.sort(rng.integers(0, n_cells, n))
    labels = np.array([rng.choice(k, p=p) for p in probs])
    wrong = rng.random(n) < shift
    labels[wrong] = (probs[wrong].argmax(axis=1) + 1) % k
    return probs, labels, cells


pytestmark = pytest.mark.filterwarnings("ignore::caltest.errors.FewClustersWarning")


def noise_of(probs, labels, cells, draws=39, clusters=None, weights=None, seed=1):
    data = Predictions.of(probs, labels, clusters=clusters, weights=weights)
    partition = cells_of(lambda _: np.asarray(cells, dtype=int), data.probs, data.weights)
    return cell_noise(data, partition, draws, np.random.default_rng(seed))


def design(kind, n):
    """Clusters and weights of n rows."""
    rng = np.random.default_rng(n)
    clusters = rng.integers(0, n // 3, n) if "clusters" in kind else None
    return {"clusters": clusters, "weights": rng.uniform(0.5, 3.0, n) if "w" in kind else None}


#: Classes, rows, cells, share of wrong labels, facts of the rows.
KINDS = [
    (2, 40, 4, 0.0, ""),
    (2, 14, 9, 0.4, ""),
    (2, 60, 2, 0.5, ""),
    (3, 40, 4, 0.3, ""),
    (3, 12, 9, 0.0, ""),
    (2, 40, 4, 0.4, "clusters"),
    (3, 30, 3, 0.2, "clusters"),
    (2, 30, 4, 0.3, "w"),
]


@pytest.fixture(params=KINDS, ids=str)
def noise(request):
    k, n, n_cells, wrong, kind = request.param
    return noise_of(*problem(5, n, k, n_cells, wrong), **design(kind, n))


@pytest.mark.parametrize("kind", ["", "clusters", "w", "w clusters"])
@pytest.mark.parametrize("k", [2, 3])
def test_sums_and_variances_against_their_twin(k, kind):
    probs, labels, cells = problem(2, 30, k, 7, 0.3)
    given = design(kind, 30)
    found = noise_of(probs, labels, cells, **given)
    if kind:  # weights keep their ratios only
        weights = np.ones(30) if given["weights"] is None else given["weights"]
        given["weights"] = weights * found.size.sum() / weights.sum()
    expected = twin.facts(probs, labels, cells, **given)
    for name in ("size", "predicted", "sums", "variance", "hidden"):
        assert getattr(found, name) == pytest.approx(expected[name], abs=1e-12), name
    assert found.n == pytest.approx(expected["size"].sum())
    assert found.null_variance == pytest.approx(found.grain * expected["null"])
    if not kind:
        assert (found.grain == 1.0).all()
        assert found.parts is None
    else:
        assert (found.calibrated**2).mean(axis=0) == pytest.approx(1.0)
    assert found.mean_residuals == pytest.approx(expected["sums"] / expected["size"][:, None])


def test_pieces_of_the_noise_against_their_twins(noise):
    rng = np.random.default_rng(3)
    assert noise.unit == pytest.approx(twin.unit(noise))
    assert noise.towards_middle == pytest.approx(twin.middle(noise))
    size = rng.random(len(noise.size))
    assert noise.share_error(size) == pytest.approx(twin.share_error(noise, size))
    assert noise.share_noise(size) == pytest.approx(twin.share_noise(noise, size))
    assert noise.share_noise(np.full_like(size, 0.3)) == pytest.approx(0.0, abs=1e-12)
    for scale in (0.01, 0.2, 3.0):
        shift = scale * rng.random(noise.sums.shape)
        assert noise.implied_variance(shift) == pytest.approx(twin.implied(noise, shift))
        signed = noise.size[:, None] * (np.clip(noise.predicted + shift, 0, 1) - noise.predicted)
        for found, expected in zip(noise.draws(signed), twin.drawn(noise, signed), strict=True):
            assert found == pytest.approx(expected, abs=1e-9)
    for k, most in itertools.product((0.0, 0.3, 1.0), (0.0, 0.4, 1e3)):
        assert noise.noise(k, most) == pytest.approx(twin.noise(noise, k, most), abs=1e-9)


def test_noise_at_its_borders():
    """A half, ten expected events, predictions of 0 and 1, single rows."""
    sums = np.array([[0.4], [-3.0], [2.0], [0.0], [1.0], [0.7]])
    size = np.array([1.0, 20.0, 40.0, 5.0, 2.0, 4.0])
    predicted = np.array([[0.5], [0.5], [0.2], [0.0], [1.0], [0.325]])
    null = size[:, None] * predicted * (1.0 - predicted)
    variance = np.array([[0.0], [9.0], [6.0], [0.0], [0.5], [0.0]])
    hidden = np.array([[0.2], [0.0], [3.0], [0.0], [0.0], [0.1]])
    rng = np.random.default_rng(1)
    draws = [rng.standard_normal((19, 6, 1)) for _ in range(2)]
    rest = rng.standard_normal(19), np.ones((6, 1))
    noise = CellNoise(size, predicted, sums, null, variance, hidden, *draws, *rest)
    for shift in (np.zeros((6, 1)), np.array([[0.0], [0.0], [12.0], [2.5], [-1.0], [0.7]])):
        for found, expected in zip(noise.draws(shift), twin.drawn(noise, shift), strict=True):
            assert found == pytest.approx(expected, abs=1e-9)
    for k, most in itertools.product((0.0, 0.5, 1.0, 2.0), (0.0, 1.0, 50.0)):
        assert noise.noise(k, most) == pytest.approx(twin.noise(noise, k, most), abs=1e-9)
    assert noise.unit[3, 0] == pytest.approx(math.sqrt(5e-12))
    assert noise.towards_middle[:2, 0].min() > 0.0 > noise.towards_middle[4, 0]


def test_poisson_counts_from_normals():
    # Against the quantiles of the law; a Cornish-Fisher count may be one off, and seldom.
    z = scipy.stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    for mean in (0.01, 0.3, 1.0, 4.0, 25.0):
        found = poisson_noise(np.full_like(z, mean), z) + mean
        expected = scipy.stats.poisson.ppf(scipy.stats.norm.cdf(z), mean)
        assert np.abs(found - expected).max() <= 1.0
        assert (found != expected).mean() < 0.025
        assert [twin.events(mean, x) + mean for x in z[::97]] == pytest.approx(found[::97])
    assert poisson_noise(np.zeros(3), np.array([-1.0, 0.0, 4.0])).tolist() == [0.0, 0.0, 0.0]


def law_of_counts(p):
    """P(k events) by enumeration of all outcomes."""
    law = np.zeros(len(p) + 1)
    for y in itertools.product((0, 1), repeat=len(p)):
        law[sum(y)] += np.prod([q if x else 1 - q for q, x in zip(p, y, strict=True)])
    return law


def test_calibrated_draws_follow_the_law_of_the_counts():
    probs, labels, cells = problem(4, 24, 2, 4)
    found = noise_of(probs, labels, cells, draws=8000)
    for b, c in enumerate(np.unique(cells)):
        p = probs[cells == c, 0]
        counts = found.calibrated[:, b, 0] * math.sqrt((p * (1 - p)).sum()) + p.sum()
        assert counts == pytest.approx(np.rint(counts), abs=1e-9)
        law = law_of_counts(p)
        seen = np.bincount(np.rint(counts).astype(int), minlength=law.size)
        likely = law > 1e-3
        assert seen[~likely].sum() <= 8000 * law[~likely].sum() + 12
        chi = ((seen - 8000 * law) ** 2 / (8000 * np.maximum(law, 1e-300)))[likely].sum()
        assert chi < scipy.stats.chi2.ppf(1 - 1e-4, likely.sum())
    assert abs(found.normal.mean()) < 0.02
    assert found.normal.std() == pytest.approx(1.0, abs=0.02)
    assert found.shares.std() == pytest.approx(1.0, abs=0.04)


@pytest.mark.parametrize("rows", [4, 9, 10, 30])
def test_class_counts_of_a_cell(rows):
    probs, labels, _ = problem(6, rows, 3, 1)
    found = noise_of(probs, labels, np.zeros(rows, dtype=int), draws=20_000)
    covariance = np.diag(probs.sum(axis=0)) - probs.T @ probs
    sd = np.sqrt(np.diag(covariance))
    expected = covariance / np.outer(sd, sd)
    assert np.corrcoef(found.normal[:, 0].T) == pytest.approx(expected, abs=0.03)
    assert found.normal[:, 0].std(axis=0) == pytest.approx(1.0, abs=0.02)
    mean = probs.mean(axis=0)
    counts = found.calibrated[:, 0] * np.sqrt(rows * mean * (1 - mean)) + rows * mean
    whole = np.abs(counts - np.rint(counts)).max() < 1e-9
    assert whole == (rows < 10)  # few rows: multinomial, else normal
    assert found.calibrated[:, 0].std(axis=0) == pytest.approx(1.0, abs=0.03)
    assert np.abs(found.calibrated[:, 0].mean(axis=0)).max() < 0.03
    if whole:
        assert counts.sum(axis=1) == pytest.approx(rows)


def test_draws_of_whole_clusters():
    probs, labels, cells = problem(9, 60, 2, 3, 0.4)
    clusters = np.arange(60) % 10
    found = noise_of(probs, labels, cells, draws=20_000, clusters=clusters)
    residuals = (labels == 0) - probs[:, 0]
    sums = np.zeros((3, 10))
    for b, g in np.ndindex(3, 10):
        rows = (cells == b) & (clusters == g)
        sums[b, g] = residuals[rows].sum() - rows.sum() * residuals[cells == b].mean()
    sums /= np.sqrt((sums**2).sum(axis=1, keepdims=True))
    assert np.corrcoef(found.normal[:, :, 0].T) == pytest.approx(sums @ sums.T, abs=0.03)
    assert found.normal.std(axis=0) == pytest.approx(1.0, abs=0.02)


def test_draws_of_weighted_rows_have_the_variance_of_their_labels():
    probs, labels, cells = problem(9, 60, 2, 3)
    weights = np.random.default_rng(1).uniform(0.5, 3.0, 60)
    found = noise_of(probs, labels, cells, draws=20_000, weights=weights)
    w = weights * found.size.sum() / weights.sum()
    p = probs[:, 0]
    expected = np.array([(w**2 * p * (1 - p))[cells == b].sum() for b in range(3)])
    assert found.null_variance[:, 0] == pytest.approx(expected, rel=0.05)
    assert np.abs(found.calibrated.mean(axis=0)).max() < 0.03


def test_sizes_of_error_against_their_twins(noise):
    first, second = inversion.absolute_error, inversion.squared_error
    assert first(noise, noise.sums) == pytest.approx(twin.first_error(noise))
    assert second(noise, noise.sums) == pytest.approx(twin.second_error(noise))
    found = inversion.absolute_corrected(noise)
    assert found == pytest.approx(twin.first_corrected(noise), abs=1e-6)
    assert inversion.squared_corrected(noise) == pytest.approx(twin.second_corrected(noise))
    drawn = np.sqrt(noise.null_variance) * noise.calibrated
    n, size = noise.size.sum(), noise.size[:, None]
    assert twin.noise(noise, 0.0, 0.0) == pytest.approx(drawn)
    assert first(noise, drawn) == pytest.approx(np.abs(drawn).sum(axis=(1, 2)) / n)
    assert second(noise, drawn) == pytest.approx((drawn**2 / size).sum(axis=(1, 2)) / n)


@pytest.mark.parametrize("alpha", [0.1, 0.3])
@pytest.mark.parametrize("bound", ["first_low", "first_high", "second_low", "second_high"])
def test_bounds_against_their_twins(noise, bound, alpha):
    order, end = bound.split("_")
    size = inversion.CELL_SIZES["absolute" if order == "first" else "squared"]
    found = size.above(noise).high(alpha) if end == "high" else size.low(noise, alpha)
    assert found == pytest.approx(getattr(twin, bound)(noise, alpha), rel=5e-4, abs=1e-8)


def test_pvalue_of_a_margin_and_the_bound_agree(noise):
    for size in inversion.CELL_SIZES.values():
        above = size.above(noise)
        high = above.high(0.2)
        assert above.pvalue(high * 0.99) >= 0.2 - 1e-12
        assert above.pvalue(high * 1.01) <= 0.2 + 2 / 40


def test_end_of_what_holds():
    for end in (1e-3, 0.7, 1.0, 5.0, 1e6):
        found = inversion._boundary(lambda x, end=end: x <= end, 1.0)
        assert found == pytest.approx(end, rel=1.1e-4)
        assert found <= end
    assert inversion._boundary(lambda x: False, 4.0) == 4e-9
    assert inversion._boundary(lambda x: True, 2.0) == pytest.approx(2.0**31, rel=1e-3)
    calls = []
    inversion._boundary(lambda x: calls.append(x) or x < 3.0, 1.0)
    assert calls[:3] == [1.0, 2.0, 4.0]
    assert len(calls) < 20


def asked(statistic, probs, labels, **changes):
    lens = changes.pop("lens", ct.OneVsRest(1))
    prepared, estimate = evaluated(statistic, lens(Predictions.of(probs, labels)))
    run = Run(n_resamples=changes.pop("n_resamples", 9999), rng=1, workers=1)
    given = {"level": 0.95, "side": "two-sided", "run": run} | changes
    return interval_methods.IntervalProblem(statistic, lens, prepared, estimate, **given)


@pytest.mark.parametrize("side", ["two-sided", "lower", "upper"])
@pytest.mark.parametrize(
    ("low", "high", "zero"),
    [(0.0, 0.2, True), (1e-9, 0.2, False), (-0.1, 0.0, True), (-0.1, -1e-9, False)],
)
def test_whether_bootstrap_bounds_hold_zero(monkeypatch, side, low, high, zero):
    p = np.array([0.2, 0.4, 0.6, 0.8] * 5)
    request = asked(ct.ScoreGap(), p, np.arange(20) % 2, side=side)
    drawn = np.repeat([low, high], 500)
    monkeypatch.setattr(interval_methods, "_bootstrap", lambda _: (drawn, "complete"))
    found = interval_methods.by_bootstrap(request)
    above, below = low <= 0.0 or side == "upper", high >= 0.0 or side == "lower"
    assert found.contains_zero == (above and below)
    if side == "two-sided":
        assert found.contains_zero == zero
    assert (found.n_draws, found.method) == (1000, "bootstrap")
    assert found.corrected == pytest.approx(2.0 * request.estimate - drawn.mean())


def test_exact_cells_decide_about_zero():
    """Up to 24 cells of two classes the noise floor and the p-value are those of enumeration."""
    p, labels = np.array([0.1, 0.1, 0.6, 0.6, 0.9]), np.array([1, 0, 1, 0, 0])
    outcomes = np.array(list(itertools.product((0, 1), repeat=5)))
    chance = np.where(outcomes == 1, p, 1 - p).prod(axis=1)
    squared = ct.ECE(5, distance="sqeuclidean")
    for statistic in (ct.ECE(5), ct.ECE(5, distance="l1"), squared):
        found = interval_methods.by_inversion(asked(statistic, p, labels, level=0.5))
        values, t = np.array([statistic(p, y) for y in outcomes]), statistic(p, labels)
        assert found.null_mean == pytest.approx(chance @ values)
        assert found.pvalue == pytest.approx(chance[values >= t - 1e-12].sum())
        assert found.contains_zero == (found.pvalue > 0.25)
    root = interval_methods.by_inversion(asked(ct.RMSCE(ct.UniformBins(5)), p, labels, level=0.5))
    assert root.null_mean is None
    assert [root.low, root.high] == pytest.approx(np.sqrt([found.low / 2.0, found.high / 2.0]))


def test_chance_of_a_largest_gap_is_that_of_its_likeliest_cell():
    p = np.repeat([0.1, 0.6, 0.75, 0.95], [10, 30, 5, 4])
    firsts = [np.arange(10) < 8, np.arange(30) < 18, np.arange(5) < 4, np.arange(4) < 4]
    labels = np.concatenate(firsts).astype(int)
    request = asked(ct.MCE(ct.UniformBins(10)), p, labels, n_resamples=99)
    above = interval_methods.largest_above(request)
    law = scipy.stats.binom
    counts = [(0.9, 10, 2), (0.4, 30, 12), (0.25, 5, 1), (0.05, 4, 0)]  # of the first class
    for gap in (0.0, 0.04, 0.1, 0.2, 0.3, 0.62, 0.9):
        chances = [0.0]
        for q, n, k in counts:
            chances.append(law.cdf(k, n, q + gap) if q + gap < 1 else 0.0)
            chances.append(law.sf(k - 1, n, q - gap) if q - gap > 0 else 0.0)
        assert above.chance(gap) == pytest.approx(max(chances))
    found = interval_methods.by_cells(request)
    assert above.high(0.025) == pytest.approx(found.high, rel=2e-4)
    ends = [(q, scipy.stats.binomtest(k, n).proportion_ci(1 - 0.05 / 4)) for q, n, k in counts]
    assert found.low == pytest.approx(max(max(e.low - q, q - e.high) for q, e in ends))
    assert above.theta(0.3) == pytest.approx(0.3)


def test_ends_of_clopper_pearson():
    low, high = clopper_pearson(np.array([0, 3, 7]), 7, 0.9)
    beta = scipy.stats.beta
    assert low == pytest.approx([0.0, beta.ppf(0.05, 3, 5), beta.ppf(0.05, 7, 1)])
    assert high == pytest.approx([beta.ppf(0.95, 1, 7), beta.ppf(0.95, 4, 4), 1.0])
    assert clopper_pearson(7, 7, 0.9)[1] == 1.0
