"""Tallies that keep clusters apart: the answers of the rows, from any source, in parts."""

import numpy as np
import pytest
from scipy.stats import beta
from scipy.stats import t as student

import caltest as ct


def images(count=120, seed=0, pixels=60):
    """Pixels of images that are right or wrong together to a part, and which image each is of."""
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(count), rng.integers(pixels // 2, 2 * pixels, count))
    p = np.round(rng.beta(0.5, 2.0, image.size), 3)
    u = np.where(rng.random(image.size) < 0.5, rng.random(count)[image], rng.random(image.size))
    right = u < np.maximum(p, 1 - p)
    return p, np.where(p > 0.5, right, ~right).astype(int), image


P, Y, IMAGE = images()
EYE = np.eye(3)
#: Sums of two rows of one cluster.
LINE = {"cell": [3], "n": [2], "p": [0.055], "p2": [0.0016], "y": [1], "yp": [0.027]}
LINE |= {"cluster": ["a"]}
TALLY = ct.ClusteredTally.of(P, Y, clusters=IMAGE)


@pytest.mark.parametrize(
    "statistic", [ct.ECE(), ct.ECE(20), ct.MCE(12), ct.RMSCE(ct.UniformBins(10))], ids=repr
)
def test_cells_answer_as_the_rows_do(statistic):
    run = {"statistic": statistic, "n_resamples": 999, "rng": 3}
    rows = ct.calibration_test(P, Y, clusters=IMAGE, null=ct.WildSigns(), **run)
    sums = ct.calibration_test(TALLY, **run)
    assert sums.estimate == pytest.approx(rows.estimate, rel=1e-12)
    assert sums.null_mean == pytest.approx(rows.null_mean, rel=0.1)
    assert sums.pvalue == pytest.approx(rows.pvalue, abs=0.06)
    assert (sums.null, sums.n_clusters, sums.n) == ("WildSigns()", 120, P.size)
    few = (ct.ClusteredTally.of(P[r], Y[r], clusters=IMAGE[r]) for r in (IMAGE < 100, IMAGE < 99))
    assert 0 < ct.calibration_test(next(few), statistic=statistic, n_resamples=99).pvalue <= 1
    with pytest.raises(ct.StatisticError, match="99 clusters are too few"):
        ct.calibration_test(next(few), statistic=statistic)


@pytest.mark.parametrize("y", [Y, np.where(P < 0.3, 0, Y)], ids=["as predicted", "too few"])
def test_replicates_are_sums_of_signed_clusters(y):
    """A slow twin: the signs of all clusters drawn one by one, and the ECE of what they make."""
    tally = ct.ClusteredTally.of(P, y, clusters=IMAGE)
    test = ct.calibration_test(tally, statistic=ct.ECE(10), n_resamples=4000, rng=0)
    rng, cell = np.random.default_rng(1), np.clip(np.ceil(P * 10 - 1e-9).astype(int) - 1, 0, 9)
    sums = np.zeros((120, 10))
    np.add.at(sums, (IMAGE, cell), y - P)
    sums *= max(1.0, (P * (1 - P)).sum() / np.square(y - P).sum()) ** 0.5
    values = np.abs(rng.choice([-1, 1], (4000, 120)) @ sums).sum(axis=1) / P.size
    assert test.null_mean == pytest.approx(values.mean(), rel=0.04)
    assert test.null_std == pytest.approx(values.std(), rel=0.08)


@pytest.mark.parametrize("statistic", [ct.CoxScore(), ct.Kuiper(), ct.ScoreGap("brier")], ids=repr)
def test_statistics_of_means_are_near_those_of_rows(statistic):
    run = {"statistic": statistic, "n_resamples": 999, "rng": 3}
    rows = ct.calibration_test(P, Y, clusters=IMAGE, null=ct.WildSigns(), **run)
    sums = ct.calibration_test(TALLY, **run)
    assert sums.estimate == pytest.approx(rows.estimate, rel=0.02, abs=1e-3)
    assert sums.pvalue == pytest.approx(rows.pvalue, abs=0.06)


def test_parts_add_up_also_of_one_image():
    thirds = [np.arange(P.size) % 3 == k for k in range(3)]
    parts = [ct.ClusteredTally.of(P[s], Y[s], clusters=IMAGE[s]) for s in thirds]
    joined = sum(parts)
    assert joined.names == TALLY.names
    np.testing.assert_array_equal(joined.cell, TALLY.cell)
    np.testing.assert_allclose(joined.sums, TALLY.sums, rtol=1e-12)
    with pytest.raises(ct.StatisticError, match="do not add up"):
        joined + ct.ClusteredTally.of(P, Y, clusters=IMAGE, n_cells=60)


def test_the_mean_gap_has_the_interval_of_cluster_sums():
    gap, low, high = TALLY.mean_gap(0.9)
    assert gap == pytest.approx((Y - P).mean(), rel=1e-12)
    rows = np.bincount(IMAGE)
    without = [(Y - P)[g != IMAGE].mean() - gap for g in range(120)]
    error = np.sqrt(119 / 120 * np.square(without).sum())
    units = P.size**2 / (rows**2).sum()
    half = student(units - 1).ppf(0.95) * error
    trials = Y.mean() * (1 - Y.mean()) * (1.6448536269514722 / half) ** 2
    limits = binomtest_like(trials * Y.mean(), trials, 0.1)
    np.testing.assert_allclose([low, high], limits - P.mean(), rtol=1e-9)
    assert high - low == pytest.approx(2 * half, rel=0.1)


def binomtest_like(x, n, alpha):
    """Clopper–Pearson by quantiles of beta laws, for numbers that need not be whole."""
    return np.array([beta(x, n - x + 1).ppf(alpha / 2), beta(x + 1, n - x).ppf(1 - alpha / 2)])


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 1.0])
def test_the_interval_of_the_mean_gap_covers_where_events_are_rare(factor):
    """120 images, an event in 12 of them if a whole image shares its label: 0.105 of 200 before."""
    missed = 0
    for seed in range(200):
        rng = np.random.default_rng([5, seed])
        image = np.arange(120).repeat(rng.integers(30, 120, 120))
        p = np.minimum(rng.beta(0.5, 2.0, 120)[image] / 2.0, 0.95)
        y = (rng.random(120)[image] < factor * p).astype(int)
        _, low, high = ct.ClusteredTally.of(p, y, clusters=image).mean_gap()
        truth = ((factor - 1.0) * p).mean()
        missed += not low <= truth <= high
    assert missed <= 18  # 0.05 of 200, and a chance of 0.01 above


@pytest.mark.slow
def test_the_interval_of_the_mean_gap_covers_where_a_few_clusters_hold_most_rows():
    missed = 0
    for seed in range(200):
        rng = np.random.default_rng([3, seed])
        sizes = np.minimum((3 * (rng.pareto(1.2, 120) + 1)).astype(int), 2000)
        u, p = rng.random(120).repeat(sizes), rng.uniform(0.05, 0.95, sizes.sum())
        u = np.where(rng.random(u.size) < 0.5, u, rng.random(u.size))
        tally = ct.ClusteredTally.of(p, (u < p).astype(int), clusters=np.arange(120).repeat(sizes))
        _, low, high = tally.mean_gap()
        missed += low > 0.0 or high < 0.0
    assert missed <= 20  # 0.05 of 200, and a chance of 0.001 above; 0.14 by normal sums


def test_a_curve_has_bars_of_cluster_sums():
    curve = ct.reliability_curve(TALLY, bins=10, level=0.9, n_resamples=9999, rng=0)
    rows = ct.reliability_curve(P, Y, bins=10, band=None)
    np.testing.assert_allclose(curve.observed, rows.observed, rtol=1e-12)
    np.testing.assert_allclose(curve.predicted, rows.predicted, rtol=1e-12)
    inside = (P > 0.2) & (P <= 0.3)
    sums = np.bincount(IMAGE[inside], (Y - P)[inside])
    half = 1.6448536269514722 * np.sqrt(np.square(sums).sum()) / inside.sum()
    assert curve.high[2] - curve.predicted[2] == pytest.approx(half, rel=0.03)
    assert curve.band == "WildSigns()"
    assert (ct.reliability_curve(TALLY, bins=10, simultaneous=True, rng=0).high >= curve.high).all()


def test_from_a_database():
    duckdb, pd = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    pixels = pd.DataFrame({"score": P, "seen": Y.astype(bool), "image": IMAGE})
    query = ct.tally_sql("pixels", "score", "seen", cluster="image")
    tally = ct.ClusteredTally.from_table(duckdb.sql(query))
    assert sorted(tally.names) == sorted(TALLY.names)
    found = ct.calibration_test(tally, statistic=ct.ECE(10), rng=0)
    assert found.estimate == pytest.approx(ct.ECE(10)(P, Y), rel=1e-12)
    assert tally.mean_gap() == pytest.approx(TALLY.mean_gap(), rel=1e-9)
    pixels.loc[7, "score"] = 1.5
    with pytest.raises(ct.InvalidPredictionsError, match=r"cluster 0: 1 rows .* cell -1 of 120"):
        ct.ClusteredTally.from_table(duckdb.sql(query))
    with pytest.raises(ct.StatisticError, match="keeps no weights"):
        ct.tally_sql("pixels", "score", "seen", cluster="image", weights="w")


def test_from_dask():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    lazy = dd.from_pandas(pd.DataFrame({"score": P, "seen": Y, "image": IMAGE}), npartitions=5)
    tally = ct.ClusteredTally.from_dask(lazy, "score", "seen", "image")
    np.testing.assert_allclose(tally.sums, TALLY.sums, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ct.ClusteredTally.of(P, Y), "needs clusters="),
        (lambda: ct.ClusteredTally.of(P, Y, clusters=IMAGE, weights=P), "keeps no weights"),
        (lambda: ct.ClusteredTally.of(P, Y, clusters=IMAGE, features={"x": P}), "no features"),
        (lambda: ct.Tally.of(P, Y, features={"x": P}), "keeps no features"),
        (lambda: ct.ClusteredTally.of(P, Y, clusters={"a": IMAGE, "b": Y}), "clusters of a tally"),
        (lambda: ct.ClusteredTally.of(P, Y, clusters=np.stack([IMAGE, Y], 1)), "one value for"),
        (lambda: ct.ClusteredTally.of({"p": P, "c": IMAGE}, Y, clusters="c"), "as an array"),
        (lambda: ct.ClusteredTally.of(P, Y, clusters=IMAGE, drop_missing=True), "drops no rows"),
        (lambda: ct.ClusteredTally.of(ct.Predictions.of(P, Y, clusters=IMAGE)), "as an array"),
        (lambda: ct.ClusteredTally.from_table(LINE | {"yp": [1e9]}), "Σ y p = 1e"),
        (lambda: ct.ClusteredTally.from_table(LINE | {"p2": [np.nan]}), "Σ p² = nan"),
        (lambda: ct.ClusteredTally.from_table(LINE | {"n": [1.5]}), "1.5 rows"),
        (lambda: ct.ClusteredTally.from_table({c: [0] for c in LINE}), "0 rows"),
        (lambda: ct.ClusteredTally.of(EYE, [0, 1, 2], lens=ct.Canonical(), clusters=EYE[0]), "two"),
        (lambda: ct.calibration_test(ct.ClusteredTally.of(P, Y, clusters=IMAGE % 9)), "9 clusters"),
        (lambda: ct.calibration_test(TALLY, statistic=ct.ECE(7)), "multiples of 1/120"),
        (lambda: ct.calibration_test(TALLY, statistic=ct.DebiasedL2()), "pairs of clusters"),
        (lambda: ct.calibration_test(TALLY, statistic=ct.SKCE()), "needs the rows"),
        (lambda: ct.calibration_test(TALLY, null="exact"), "null WildSigns"),
        (lambda: ct.calibration_test(TALLY, null=ct.RedrawLabels()), "not RedrawLabels"),
        (lambda: ct.calibration_test(TALLY, lens=ct.TopK(1)), "tally the rows with TopK"),
        (lambda: ct.reliability_curve(TALLY, band="wilson"), "use 'consistency'"),
        (lambda: ct.confidence_interval(TALLY), "takes no tally of clusters"),
        (lambda: ct.audit(TALLY), "takes no tally of clusters"),
        (lambda: ct.cox_recalibration(TALLY), "takes no tally of clusters"),
        (lambda: ct.ClusteredTally.of(P[:5], Y[:5], clusters=[1] * 5).mean_gap(), "two clusters"),
        (lambda: ct.ClusteredTally.from_table({"cluster": ["a"]}), "no column 'cell'"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do(call, words):
    with pytest.raises((ct.StatisticError, ct.InvalidPredictionsError), match=words):
        call()


def test_rare_events_in_few_clusters_are_warned_of():
    p, y, image = images()
    tally = ct.ClusteredTally.of(p / 20, y * 0, clusters=image)
    with pytest.warns(ct.FewClustersWarning, match=r"as if \d\.\d had been expected"):
        ct.calibration_test(tally, n_resamples=99, rng=0)
    with pytest.warns(ct.FewClustersWarning, match="intervals of 95 % missed"):
        _, low, high = tally.mean_gap()
    assert low < 0.0 < high - 0.01


@pytest.mark.slow
@pytest.mark.parametrize("pixels", [20, 100])
def test_its_size_where_pixels_are_right_or_wrong_together(pixels):
    rejected = 0
    for seed in range(400):
        p, y, image = images(120, seed, pixels)
        tally = ct.ClusteredTally.of(p, y, clusters=image)
        rejected += ct.calibration_test(tally, n_resamples=199, rng=seed).pvalue <= 0.05
    assert rejected <= 0.08 * 400
