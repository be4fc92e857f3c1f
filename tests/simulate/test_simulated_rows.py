"""Counted rows against the same rows copied, and against the generic path."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.stats
from conftest import seen

import caltest as ct
from caltest.simulate import poisson_rows, rows, streams
from caltest.simulate.rows import ClassResamples, RowResamples

SEED = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
DISTANCES = ["tv", "l1", "l2", "sqeuclidean", "max"]
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


def counted(statistic, probs, outcomes):
    """The kernel that counts rows, whichever the statistic itself would take."""
    fixed = statistic.given(seen(probs))
    cells = fixed.cells.bins, fixed.cells.order, fixed.cells.starts
    return RowResamples.of(probs, outcomes, *cells, fixed.distance, fixed.combine)


def copied(statistic, value, probs, order, count):
    """The statistic of copies of the rows that the words of a replicate stand for."""
    n = len(probs)
    key, twist, *_ = streams.keys(SEED, 0, count)
    with np.errstate(over="ignore"):
        z = key[:, None] + streams.GAMMA * np.arange(n, dtype=np.uint64)
        z = (z ^ (z >> 30)) * streams.FIRST_FACTOR ^ twist[:, None]
        z = (z ^ (z >> 27)) * streams.SECOND_FACTOR
        z ^= z >> 31
    values = []
    for words in z:
        drawn = [divmod(int(word) * n, 2**64) for word in words]
        at = np.array([row for row, _ in drawn])
        u = np.array([(rest >> 11) * 2.0**-53 for _, rest in drawn])
        labels = (u[:, None] >= value.upto[at]).sum(axis=1)
        values.append(statistic(seen(probs[order][at], labels)))
    return values


def compare(statistic, probs, labels):
    hot = (labels[:, None] == np.arange(probs.shape[1])).astype(float)
    for outcomes in (probs, hot):
        value = counted(statistic, probs, outcomes)
        order = np.lexsort(probs.T[::-1])  # any order finds the rows again
        twin = np.lexsort(value.probs.T[::-1])
        order = order[np.argsort(twin)]
        np.testing.assert_array_equal(probs[order], value.probs)
        expected = copied(statistic, value, probs, order, 12)
        ours = value.replicates(SEED, 0, 12)
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bins", [*QUANTILES, *TREES, ct.UniformBins(6)], ids=repr)
@pytest.mark.parametrize("decimals", [1, 2, 17])
@pytest.mark.parametrize("kind", [ct.ECE, ct.MCE])
def test_against_copies_for_two_classes(bins, decimals, kind):
    if decimals < 17 and isinstance(bins, ct.VarianceTree) and bins.split == "mean":
        pytest.skip("a value may be the mean, and rounding then says on which side it lies")
    compare(kind(bins), *problem(100, 2, decimals))
    compare(kind(bins), *problem(3, 2, decimals))


@pytest.mark.parametrize("bins", [*TREES, ct.UniformBins(3)], ids=repr)
@pytest.mark.parametrize("n_classes", [3, 7])
def test_against_copies(bins, n_classes):
    compare(ct.ECE(bins), *problem(150, n_classes))


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(
    "bins", [ct.QuantileBins(5), ct.VarianceTree(20), ct.UniformBins(3)], ids=repr
)
@pytest.mark.parametrize("kind", [ct.ECE, ct.MCE])
def test_distances(bins, distance, kind):
    compare(kind(bins, distance=distance), *problem(80, 2))
    if not isinstance(bins, ct.QuantileBins):
        compare(kind(bins, distance=distance), *problem(80, 4))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "n_classes"),
    [
        (ct.ECE(ct.QuantileBins(6)), 2),
        (ct.ECE(ct.VarianceTree(20)), 3),
        (ct.MCE(ct.UniformBins(3)), 3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("scheme", [ct.ConsistencyResampling(), ct.Bootstrap()], ids=repr)
def test_law_of_the_generic_path(statistic, n_classes, scheme, monkeypatch):
    monkeypatch.setattr(poisson_rows, "MAX_SUMS", 1)  # as if the cells were many
    data = seen(*problem(200, n_classes))
    ours = ct.replicate(data, statistic, scheme, n_resamples=4000, rng=1).values
    assert isinstance(statistic.given(data).fast(scheme), RowResamples)
    generic = ct.replicate(data, partial(statistic), scheme, n_resamples=1000, rng=2).values
    assert scipy.stats.ks_2samp(ours.round(9), generic.round(9)).pvalue > 1e-3


@pytest.mark.parametrize("scheme", [ct.ConsistencyResampling(), ct.Bootstrap()], ids=repr)
@pytest.mark.parametrize("aggregate", ["mean", "max"])
def test_class_wise_errors_against_copies(scheme, aggregate):
    probs, labels = problem(120, 4)
    statistic = ct.ClasswiseECE(7, aggregate=aggregate)
    value = statistic.given(seen(probs, labels)).fast(scheme)
    assert isinstance(value, ClassResamples)
    expected = copied(statistic, value, probs, np.arange(120), 12)
    np.testing.assert_allclose(value.replicates(SEED, 0, 12), expected, rtol=1e-9, atol=1e-12)
    assert statistic.given(seen(probs)).fast(ct.RedrawLabels()) is None
    weighted = replace(seen(probs), weights=np.arange(1.0, 121.0))
    assert statistic.given(weighted).fast(scheme) is None
    for moving in (
        ct.ACE(7),
        ct.ClasswiseECE(7, threshold=0.1),
        ct.ClasswiseECE(ct.QuantileBins(7)),
    ):
        assert moving.given(seen(probs)).fast(scheme) is None  # bins follow the sample


def test_same_for_any_chunks():
    probs, labels = problem(60, 3)
    value = ct.ECE(ct.VarianceTree(9)).given(seen(probs, labels)).fast(ct.Bootstrap())
    run = pickle.loads(pickle.dumps(value)).replicates
    whole = value.replicates(SEED, 0, 70)
    assert np.array_equal(whole, np.concatenate([run(SEED, a, 7) for a in range(0, 70, 7)]))
    assert run(SEED, 5, 0).shape == (0,)


@pytest.mark.parametrize("bins", [ct.QuantileBins(4), *TREES[:2], ct.UniformBins(4)], ids=repr)
def test_impossible_labels_are_never_drawn(bins):
    probs = np.eye(2)[np.arange(30) % 2]
    value = counted(ct.MCE(bins), probs, probs)
    assert not value.replicates(SEED, 0, 500).any()


@pytest.mark.parametrize("bins", [ct.QuantileBins(3), *TREES[:2], ct.UniformBins(2)], ids=repr)
def test_interpreted_as_compiled(bins, monkeypatch):
    probs, _ = problem(40, 2)
    value = counted(ct.ECE(bins), probs, probs)
    compiled = value.replicates(SEED, 0, 4)
    for name in ["_draw", "_fixed_error", "_quantile_error", "_tree_error"]:
        monkeypatch.setattr(rows, name, getattr(rows, name).py_func)
    with np.errstate(over="ignore"):
        interpreted = value.replicates(SEED, 0, 4)
    np.testing.assert_allclose(interpreted, compiled, rtol=1e-13)


def test_unknown_binnings_take_the_generic_path():
    data = seen(*problem(20, 2))
    fixed = ct.ECE(lambda p: (p[:, 0] > 0.5).astype(int)).given(data)
    assert fixed.fast(ct.ConsistencyResampling()) is fixed.fast(ct.Bootstrap()) is None
    assert not RowResamples.fits(fixed.cells.bins, 4)


def test_clusters_take_the_generic_path():
    data = seen(*problem(20, 2))
    clustered = ct.Bootstrap(clusters=np.arange(20) // 4)
    assert ct.ECE().given(data).fast(clustered) is None
    assert (
        ct.ECE().given(ct.Predictions.of(data, clusters=np.arange(20) // 4)).fast(ct.Bootstrap())
        is None
    )
