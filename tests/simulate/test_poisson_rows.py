"""Compiled resampling of rows against enumeration, the binomial law, copies of rows, and itself."""

from __future__ import annotations

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import scipy.stats
from conftest import seen

import caltest as ct
from caltest.simulate import poisson_rows
from caltest.simulate.poisson_rows import CellResamples

SEED = (0x0123456789ABCDEF, 0xFEDCBA9876543210)


def problem(n, n_classes, seed=3):
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(n_classes, 0.5), n)
    return probs, generator.integers(n_classes, size=n)


def published(statistic, probs):
    fused = statistic.given(seen(probs)).fast(ct.ConsistencyResampling())
    assert isinstance(fused, CellResamples)
    return fused


def bootstrapped(statistic, probs, labels):
    fused = statistic.given(seen(probs, labels)).fast(ct.Bootstrap())
    assert isinstance(fused, CellResamples)
    return fused


def same_law(ours, generic):
    rounded = np.round(generic, 9), np.round(ours, 9)  # ties are ties in both
    assert scipy.stats.ks_2samp(*rounded).pvalue > 1e-3
    error = np.sqrt(generic.var() / generic.size + ours.var() / ours.size)
    assert abs(generic.mean() - ours.mean()) < 4 * error + 1e-12


# --- the right law --------------------------------------------------------------------------------


@pytest.mark.parametrize("short", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(
    "statistic", [ct.ECE(2), ct.MCE(3), ct.ECE(2, distance="sqeuclidean")], ids=repr
)
def test_against_enumeration(statistic, short, monkeypatch):
    """All 6³ draws of a row and a label, at any rate of the Poisson counts."""
    monkeypatch.setattr(poisson_rows, "SHORT", short)
    probs, labels = np.array([[0.25, 0.75], [0.6, 0.4], [0.9, 0.1]]), np.array([1, 0, 1])
    pairs = list(itertools.product(range(3), range(2)))
    values, weights, observed = [], [], []
    for draw in itertools.product(pairs, repeat=3):
        rows, drawn = (np.array(part) for part in zip(*draw, strict=True))
        values.append(statistic(seen(probs[rows], drawn)))
        weights.append(np.prod(probs[rows, drawn]) / 27)
        observed.append(np.prod(labels[rows] == drawn) / 27)
    count = 100 * 256
    for ours, chances in [
        (published(statistic, probs), weights),
        (bootstrapped(statistic, probs, labels), observed),
    ]:
        drawn = np.sort(ours.replicates(SEED, 0, count))
        assert np.sum(chances) == pytest.approx(1.0)
        order = np.argsort(values)
        for t in np.unique(np.round(values, 9))[:-1] + 1e-6:
            share = np.array(chances)[order][np.array(values)[order] <= t].sum()
            limit = 4.5 * np.sqrt(share * (1 - share) / count)
            assert abs(np.searchsorted(drawn, t) / count - share) <= limit


@pytest.mark.parametrize("worth", [1, 8, 10**6])
def test_counts_are_binomial(worth, monkeypatch):
    """A sure cell beside an even one tells how often its rows were drawn; at any cut of the bits.

    With ``worth`` above 2¹⁶ all counts but the first level are decided by further bits.
    """
    monkeypatch.setattr(poisson_rows, "WORTH", worth)
    monkeypatch.setattr(poisson_rows, "_ladders", poisson_rows._ladders.py_func)
    probs = np.repeat([[1.0, 0.0], [0.0, 1.0]], [60, 90], axis=0)
    wrong = np.repeat([1, 1], [60, 90])
    value = bootstrapped(ct.ECE(2), probs, wrong)
    assert value.depths.max() == (1 if worth > 65536 else 6 if worth == 8 else 7)
    counts = np.rint(value.replicates(SEED, 0, size := 40 * 256) * 150).astype(int)
    law = scipy.stats.binom(150, 0.4)
    edges = np.arange(45, 76, 3)
    observed = np.histogram(counts, np.r_[-1, edges, 151])[0]
    expected = np.diff(law.cdf(np.r_[-2, edges - 1, 150])) * size
    assert scipy.stats.chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_classes"), [(30, 2), (250, 2), (120, 4)])
@pytest.mark.parametrize(("kind", "distance"), [
    (ct.ECE, "tv"), (ct.ECE, "l1"), (ct.ECE, "l2"), (ct.ECE, "sqeuclidean"), (ct.ECE, "max"),
    (ct.MCE, "tv"), (ct.MCE, "max"),
])  # fmt: skip
def test_law_of_copied_rows(kind, distance, n_classes, n):
    probs, labels = problem(n, n_classes)
    data = seen(probs, labels)
    statistic = kind(ct.UniformBins(4), distance=distance)
    plain = partial(statistic)  # a function, without shortcuts
    for scheme, ours in [
        (ct.ConsistencyResampling(), published(statistic, probs)),
        (ct.Bootstrap(), bootstrapped(statistic, probs, labels)),
    ]:
        generic = ct.replicate(data, plain, scheme, n_resamples=600, rng=11).values
        same_law(ours.replicates(SEED, 0, 5120), generic)


def test_a_crowded_cell_is_flushed():
    """More rows in a cell than 16 bits count at once; the mean gap has a known variance."""
    p = np.random.default_rng(1).random(9001)
    probs = np.column_stack([p, 1 - p])
    values = published(ct.ECE(1), probs).replicates(SEED, 0, 512)
    assert (values**2).mean() * 9001 == pytest.approx((p * (1 - p)).mean(), rel=5 * 2**0.5 / 22)


@pytest.mark.parametrize("n", [1, 2, 9, 10, 200])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_impossible_pairs_are_never_drawn(n, n_classes):
    probs = np.eye(n_classes)[np.arange(n) % n_classes]
    sure = published(ct.MCE(3), probs)
    assert not sure.replicates(SEED, 0, 512).any()
    labels = probs.argmax(axis=1)
    assert not bootstrapped(ct.MCE(3), probs, labels).replicates(SEED, 0, 512).any()
    wrong = bootstrapped(ct.ECE(3), probs, (labels + 1) % n_classes).replicates(SEED, 0, 512)
    np.testing.assert_allclose(wrong, 1.0, rtol=1e-15)  # n pairs, all of them wrong


def test_ties_stay_ties():
    """Thirty forecasts of 0.8: the error is a multiple of 1/30 apart from rounding."""
    probs = np.tile([0.8, 0.2], (30, 1))
    values = published(ct.ECE(5), probs).replicates(SEED, 0, 2560)
    wins = np.abs(values - np.abs(np.arange(31)[:, None] / 30 - 0.8)).min(axis=0)
    assert wins.max() < 1e-14


# --- independence of how it is run ----------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_for_any_chunks_and_threads(n_classes):
    probs, labels = problem(300, n_classes)
    run = pickle.loads(pickle.dumps(bootstrapped(ct.MCE(5), probs, labels))).replicates
    whole = run(SEED, 0, 1000)
    assert np.unique(whole).size > 500
    assert np.array_equal(whole[777:801], run(SEED, 777, 24))
    assert np.array_equal(whole[250:520], run(SEED, 250, 270))
    with ThreadPoolExecutor(4) as pool:
        pieces = list(pool.map(lambda a: run(SEED, a, 50), range(0, 1000, 50)))
    assert np.array_equal(whole, np.concatenate(pieces))
    assert run(SEED, 3, 0).shape == (0,)
    assert not np.array_equal(whole, run((SEED[1], SEED[0]), 0, 1000))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_interpreted_as_compiled(n_classes, monkeypatch):
    probs, labels = problem(14, n_classes)
    values = [bootstrapped(ct.MCE(3), probs, labels).replicates(SEED, 0, 256)]
    for name in ["_ladders", "_add_poisson", "_finish"]:
        monkeypatch.setattr(poisson_rows, name, getattr(poisson_rows, name).py_func)
    with np.errstate(over="ignore"):
        values.append(bootstrapped(ct.MCE(3), probs, labels).replicates(SEED, 0, 256))
    np.testing.assert_allclose(*values, rtol=1e-13)


def test_only_fixed_cells_and_few_of_them():
    data = seen(problem(20, 2)[0])
    own = ct.ECE(3, distance=lambda r, g: abs(r - g)[0]).given(data)
    assert own.fast(ct.ConsistencyResampling()) is None
    moving = ct.ECE(ct.QuantileBins(3)).given(data).fast(ct.ConsistencyResampling())
    assert not isinstance(moving, CellResamples)
    assert CellResamples.fits(ct.UniformBins(3), 6)
    assert not CellResamples.fits(ct.UniformBins(3), poisson_rows.MAX_SUMS + 1)
