"""Resampled rows against enumeration, the binomial law, copies of rows, and the generic path."""

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from conftest import seen

import caltest as ct
from caltest.nulls import lanes as streams
from caltest.nulls import resampled_rows as row_counts
from caltest.nulls import resampled_rows as row_errors
from caltest.nulls import resampled_rows as rows
from caltest.nulls.lanes import kernel
from caltest.statistics.prepared import problem_of

SEED = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
SCHEMES = [ct.ConsistencyResampling(), ct.Bootstrap()]
TREES = [
    ct.VarianceTree(12),
    ct.VarianceTree(9, split="mean"),
    ct.VarianceTree(15, split="median", stop="node"),
    ct.VarianceTree(1, split="mean", stop="child"),
]
QUANTILES = [ct.QuantileBins(m, closed=closed) for m in (1, 4, 15) for closed in ("right", "left")]


def problem(n, n_classes, decimals=17, seed=3):
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(n_classes, 0.5), n).round(decimals)
    probs[:, -1] = np.abs(1.0 - probs[:, :-1].sum(axis=1))
    return probs, generator.integers(n_classes, size=n)


def resamples(statistic, scheme, probs, labels=None):
    value = statistic.prepare(problem_of(seen(probs, labels))).row_resamples(scheme)
    assert isinstance(value, rows.RowResamples)
    return value


def copied(statistic, value, count):
    """The statistic of copies of the rows, as often as the counts of a replicate say."""
    counted, error = value.counts, value.error
    probs = error.probs if isinstance(error, rows.SumError) else error.args[0]
    key, totals = streams.stream_keys(SEED, 0, 1)[:, 0], np.zeros(rows.COUNT_LANES, dtype=np.int64)
    counts = counted.room(len(probs), rows.COUNT_LANES)
    counted.poisson(key, 0, 0, counts, totals)
    row_counts.count_singles(key, 0, counted.upto, totals, counts)
    assert (counts.sum(axis=(0, 1)) == len(probs)).all()
    values = []
    for lane in range(count):
        pairs = np.repeat(np.argwhere(counts[..., lane]), counts[..., lane][counts[..., lane] > 0],
                          axis=0)  # fmt: skip
        values.append(statistic(seen(probs[pairs[:, 0]], pairs[:, 1])))
    return values


def compare(statistic, probs, labels):
    for scheme in SCHEMES:
        value = resamples(statistic, scheme, probs, labels)
        ours = value.replicates(SEED, 0, 12)
        np.testing.assert_allclose(ours, copied(statistic, value, 12), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("short", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(
    "statistic",
    [ct.ECE(2), ct.MCE(3), ct.ECE(2, distance="sqeuclidean"), ct.ECE(ct.QuantileBins(2))],
    ids=repr,
)
def test_against_enumeration(statistic, short, monkeypatch):
    """All 6³ draws of a row and a label, at any rate of the Poisson counts."""
    monkeypatch.setattr(row_counts, "SHORT", short)
    probs, labels = np.array([[0.25, 0.75], [0.6, 0.4], [0.9, 0.1]]), np.array([1, 0, 1])
    pairs = list(itertools.product(range(3), range(2)))
    values, weights, observed = [], [], []
    for draw in itertools.product(pairs, repeat=3):
        at, drawn = (np.array(part) for part in zip(*draw, strict=True))
        values.append(statistic(seen(probs[at], drawn)))
        weights.append(np.prod(probs[at, drawn]) / 27)
        observed.append(np.prod(labels[at] == drawn) / 27)
    count = 100 * 256
    for scheme, chances in zip(SCHEMES, [weights, observed], strict=True):
        drawn = np.sort(resamples(statistic, scheme, probs, labels).replicates(SEED, 0, count))
        assert np.sum(chances) == pytest.approx(1.0)
        order = np.argsort(values)
        for t in np.unique(np.round(values, 9))[:-1] + 1e-6:
            share = np.array(chances)[order][np.array(values)[order] <= t].sum()
            limit = 4.5 * np.sqrt(share * (1 - share) / count)
            assert abs(np.searchsorted(drawn, t) / count - share) <= limit


@pytest.mark.parametrize(("worth", "depth"), [(1, 7), (8, 6), (1024, 4), (10**6, 1)])
def test_counts_are_binomial(worth, depth, monkeypatch):
    """A sure cell beside an even one tells how often its rows were drawn; at any cut of the bits.

    With ``worth`` above 2¹⁶ all counts but the first level are decided by further bits.
    """
    monkeypatch.setattr(row_counts, "WORTH", worth)
    monkeypatch.setattr(row_counts, "_ladders", row_counts._ladders.py_func)
    probs = np.repeat([[1.0, 0.0], [0.0, 1.0]], [60, 90], axis=0)
    value = resamples(ct.ECE(2), ct.Bootstrap(), probs, np.ones(150, dtype=np.int64))
    assert value.counts.depths.max() == depth
    counts = np.rint(value.replicates(SEED, 0, size := 40 * 256) * 150).astype(int)
    law = scipy.stats.binom(150, 0.4)
    edges = np.arange(45, 76, 3)
    observed = np.histogram(counts, np.r_[-1, edges, 151])[0]
    expected = np.diff(law.cdf(np.r_[-2, edges - 1, 150])) * size
    assert scipy.stats.chisquare(observed, expected).pvalue > 1e-3


def test_a_crowded_cell_is_flushed():
    """More rows in a cell than are counted in one go; the mean gap has a known variance."""
    p = np.random.default_rng(1).random(9001)
    values = resamples(ct.ECE(1), SCHEMES[0], np.column_stack([p, 1 - p])).replicates(SEED, 0, 512)
    assert (values**2).mean() * 9001 == pytest.approx((p * (1 - p)).mean(), rel=5 * 2**0.5 / 22)


@pytest.mark.parametrize("n", [1, 2, 9, 10, 200])
@pytest.mark.parametrize("n_classes", [2, 4, 41])
def test_impossible_pairs_are_never_drawn(n, n_classes):
    probs = np.eye(n_classes)[np.arange(n) % n_classes]
    labels = probs.argmax(axis=1)
    for statistic in (ct.MCE(3), ct.ClasswiseECE(3), ct.ECE(ct.VarianceTree(2))):
        for scheme in SCHEMES:
            assert not resamples(statistic, scheme, probs, labels).replicates(SEED, 0, 512).any()
    wrong = resamples(ct.ECE(3), SCHEMES[1], probs, (labels + 1) % n_classes)
    np.testing.assert_allclose(wrong.replicates(SEED, 0, 512), 1.0, rtol=1e-15)  # n pairs, all so


@pytest.mark.parametrize("bins", [*QUANTILES, *TREES, ct.UniformBins(6)], ids=repr)
@pytest.mark.parametrize("kind", [ct.ECE, ct.MCE])
def test_against_copies_for_two_classes(bins, kind):
    # A rounded value may be the mean, and rounding then says on which side of a cut it lies.
    by_mean = isinstance(bins, ct.VarianceTree) and bins.split == "mean"
    for decimals in (17,) if by_mean else (1, 2, 17):
        compare(kind(bins), *problem(100, 2, decimals))
        compare(kind(bins), *problem(3, 2, decimals))


@pytest.mark.parametrize("bins", [*TREES, ct.UniformBins(3)], ids=repr)
@pytest.mark.parametrize("n_classes", [3, 7, 41])
def test_against_copies(bins, n_classes):
    compare(ct.ECE(bins), *problem(150, n_classes))


@pytest.mark.parametrize("distance", ["tv", "l1", "l2", "sqeuclidean", "max"])
@pytest.mark.parametrize("bins", [ct.QuantileBins(5), ct.VarianceTree(20), ct.UniformBins(3)])
@pytest.mark.parametrize("kind", [ct.ECE, ct.MCE])
def test_distances(bins, distance, kind):
    compare(kind(bins, distance=distance), *problem(80, 2))
    if not isinstance(bins, ct.QuantileBins):
        compare(kind(bins, distance=distance), *problem(80, 4))


@pytest.mark.parametrize("aggregate", ["mean", "max"])
@pytest.mark.parametrize("n_classes", [2, 4, 41])
def test_class_wise_errors_against_copies(aggregate, n_classes):
    compare(ct.ClasswiseECE(7, aggregate=aggregate), *problem(120, n_classes))


@pytest.mark.parametrize("statistic", [
    ct.MCE(5), ct.ClasswiseECE(4), ct.ECE(ct.VarianceTree(9)), ct.ECE(ct.QuantileBins(5)),
], ids=repr)  # fmt: skip
def test_same_for_any_chunks_lanes_and_threads(statistic, monkeypatch):
    n_classes = 2 if isinstance(getattr(statistic, "bins", None), ct.QuantileBins) else 3
    value = resamples(statistic, ct.Bootstrap(), *problem(300, n_classes))
    run = pickle.loads(pickle.dumps(value)).replicates
    whole = run(SEED, 0, 600)
    assert np.unique(whole).size > 300
    assert np.array_equal(whole[377:401], run(SEED, 377, 24))
    assert np.array_equal(whole[250:520], run(SEED, 250, 270))
    with ThreadPoolExecutor(4) as pool:
        pieces = list(pool.map(lambda a: run(SEED, a, 100), range(0, 600, 100)))
    assert np.array_equal(whole, np.concatenate(pieces))
    assert run(SEED, 3, 0).shape == (0,)
    assert not np.array_equal(whole, run((SEED[1], SEED[0]), 0, 600))
    monkeypatch.setattr(rows, "COUNTS_HELD", 300 * n_classes * 32)  # as if memory were short
    monkeypatch.setattr(rows, "TABLES", 1)
    monkeypatch.setattr(rows, "STRETCH", 1)
    assert np.array_equal(whole[:300], run(SEED, 0, 300))


@pytest.mark.parametrize(
    ("statistic", "n_classes"),
    [(ct.MCE(3), 2), (ct.ECE(3), 3), (ct.ECE(ct.QuantileBins(3)), 2), (ct.ECE(TREES[0]), 3),
     (ct.ECE(TREES[1]), 2), (ct.ClasswiseECE(3), 3)],
    ids=repr,
)  # fmt: skip
def test_interpreted_as_compiled(statistic, n_classes, monkeypatch):
    monkeypatch.setattr(rows, "COUNT_LANES", 8)
    probs, labels = problem(14, n_classes)
    for module in (None, row_counts, row_errors, rows):
        for name, function in [] if module is None else list(vars(module).items()):
            if isinstance(function, kernel):
                monkeypatch.setattr(module, name, function.py_func)
        with np.errstate(over="ignore"):
            value = resamples(statistic, ct.Bootstrap(), probs, labels).replicates(SEED, 0, 16)
        if module is None:
            compiled = value
    np.testing.assert_allclose(value, compiled, rtol=1e-13)


def test_what_cannot_be_counted_is_copied():
    data = seen(*problem(20, 2))
    clusters = np.arange(20) // 4
    clustered = ct.Predictions.of(data, clusters=clusters)
    for scheme in SCHEMES:
        for statistic in (
            ct.ECE(3, distance=lambda r, g: abs(r - g)[0]),
            ct.ECE(lambda p: (p[:, 0] > 0.5).astype(int)),
            ct.ACE(7),
            ct.ClasswiseECE(7, threshold=0.1),
            ct.ClasswiseECE(ct.QuantileBins(7)),
        ):
            assert statistic.prepare(problem_of(data)).row_resamples(scheme) is None
    weighted = replace(data, weights=np.arange(1.0, 21.0))
    assert ct.ClasswiseECE(7).prepare(problem_of(weighted)).row_resamples(ct.Bootstrap()) is None
    assert ct.ECE().prepare(problem_of(data)).row_resamples(ct.Bootstrap(clusters=clusters)) is None
    assert ct.ECE().prepare(problem_of(clustered)).row_resamples(ct.Bootstrap()) is None
    by_class = ct.ClasswiseECE(7).prepare(problem_of(data))
    assert by_class.row_resamples(ct.Bootstrap()) is not None
    assert by_class.row_resamples(ct.Bootstrap(clusters=clusters)) is None
