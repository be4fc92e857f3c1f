"""Redrawn labels, alone and fused with counting: NumPy twins, enumeration, the right law."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from conftest import seen

import caltest as ct
from caltest.nulls import Batches, LabelSampler
from caltest.nulls import lanes as streams
from caltest.nulls.draws import LADDER_CLASSES, LabelDrawer
from caltest.nulls.lanes import SharedLanes
from caltest.statistics.prepared import problem_of
from caltest.statistics.rows import CountedRedraws, Redraws

SEED = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
DISTANCES = ["tv", "l1", "l2", "sqeuclidean", "max"]
BINNINGS = [ct.UniformBins(10), ct.VarianceTree(20), lambda probs: np.zeros(len(probs), np.int64)]
BIG = LADDER_CLASSES + 13


def predictions(n, n_classes, concentration=0.5, seed=3):
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, concentration), n)


def redraws(statistic, probs):
    fused = statistic.prepare(problem_of(seen(probs))).redraws(ct.RedrawLabels())
    several = CountedRedraws if probs.shape[1] <= LADDER_CLASSES else Batches
    assert isinstance(fused, Redraws if probs.shape[1] == 2 else several)
    return fused


def drawer(probs):
    return ct.RedrawLabels().drawer(seen(probs))


def words(seed, first, count, n):
    """The random words of replicates (rows) and data rows (columns), by NumPy."""
    key, twist, *_ = streams.stream_keys(seed, first, count)
    z = key[:, None] + streams.GAMMA * np.arange(n, dtype=np.uint64)
    z = (z ^ (z >> 30)) * streams.FIRST_FACTOR ^ twist[:, None]
    z = (z ^ (z >> 27)) * streams.SECOND_FACTOR
    return z ^ (z >> 31)


def uniforms(seed, first, count, n):
    return (words(seed, first, count, n) >> 11) * 2.0**-53


def twin(statistic, probs, seed, first, count):
    fixed, draw = statistic.prepare(problem_of(seen(probs))), LabelSampler.of(probs)
    return np.array([fixed(draw(u)) for u in uniforms(seed, first, count, len(probs))])


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 6, 10, LADDER_CLASSES, LADDER_CLASSES + 1, 300])
def test_drawn_labels_against_numpy_twin(n_classes):
    probs = predictions(1100, n_classes)
    probs[:n_classes] = np.eye(n_classes)
    draw, sampler = drawer(probs), LabelSampler.of(probs)
    expected = np.stack([sampler(u) for u in uniforms(SEED, 5, 9, len(probs))])
    np.testing.assert_array_equal(draw(SEED, 5, 9), expected)
    room = np.empty((12, len(probs)), dtype=np.int64)
    drawn = draw(SEED, 7, 4, room)
    np.testing.assert_array_equal(drawn, expected[2:6])
    assert np.shares_memory(drawn, room)
    assert draw(SEED, 3, 0).shape == (0, len(probs))


@pytest.mark.parametrize("n_classes", [2, 3, BIG])
def test_batches_cut_a_run_anywhere(n_classes):
    probs = predictions(200, n_classes)
    data, statistic = seen(probs), ct.ECE(ct.VarianceTree(20))
    batches = Batches.of(ct.RedrawLabels(), data, statistic.prepare(problem_of(data)).batch)
    few = Batches(batches.drawer, batches.n, batches.batch, labels_at_once=7 * 200)
    expected = twin(statistic, probs, SEED, 5, 60)
    np.testing.assert_allclose(batches.replicates(SEED, 5, 60), expected, rtol=1e-11)
    np.testing.assert_array_equal(few.replicates(SEED, 5, 60), batches.replicates(SEED, 5, 60))
    fused = redraws(statistic, probs).replicates(SEED, 5, 60)
    np.testing.assert_allclose(fused, expected, rtol=1e-11)


@pytest.mark.parametrize("n_classes", [2, 3, 10, LADDER_CLASSES, LADDER_CLASSES + 1, BIG, 300])
@pytest.mark.parametrize("bins", BINNINGS, ids=["grid", "tree", "one cell"])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("kind", [ct.ECE, ct.MCE])
def test_against_numpy_twin(n_classes, bins, distance, kind):
    probs = predictions(150, n_classes)
    statistic = kind(bins, distance=distance)
    ours = redraws(statistic, probs).replicates(SEED, 5, 20)
    expected = twin(statistic, probs, SEED, 5, 20)
    # Squares cancel: a gap of 0 leaves the root of some 1e-16.
    np.testing.assert_allclose(ours, expected, rtol=1e-11, atol=1e-7 if distance == "l2" else 1e-13)


@pytest.mark.parametrize("n_classes", [2, 5, BIG])
@pytest.mark.parametrize("sure", [0, 1, -1])
def test_impossible_labels_are_never_drawn(n_classes, sure):
    probs = np.zeros((50, n_classes))
    probs[:, sure] = 1.0
    assert not redraws(ct.MCE(), probs).replicates(SEED, 0, 5000).any()


def test_sums_short_of_one_leave_the_rest_to_the_last_possible_label():
    probs = np.zeros((1, 12))
    probs[0, :10] = 0.1  # the cumulative sum stops at 1 − 1.1e-16
    tables = redraws(ct.ECE(ct.UniformBins(1)), probs).thresholds
    assert (tables[0, 9:] == streams.UNIFORM_STEPS).all()
    assert tables[0, 8] < streams.UNIFORM_STEPS
    assert LabelDrawer.of(probs)(SEED, 0, 5000).max() == 9


@pytest.mark.parametrize("seed", [SEED, (0, 0), (1, 0), (0, 1)])
def test_uniforms(seed):
    u = uniforms(seed, 0, 1000, 1000)
    for bits in [u, u * 2**20 % 1.0, u * 2**42 % 1.0]:  # top, middle and low bits
        counts = np.bincount((bits * 256).astype(int).ravel(), minlength=256)
        assert scipy.stats.chisquare(counts).pvalue > 1e-3
    centred = (u - 0.5) * np.sqrt(12.0)
    for lag in [1, 2, 3, 64, 128]:
        for a, b in [
            (centred[lag:], centred[:-lag]),  # replicates
            (centred[:, lag:], centred[:, :-lag]),  # rows
            (centred[lag:, lag:], centred[:-lag, :-lag]),
        ]:
            assert abs((a * b).mean()) * np.sqrt(a.size) < 4.5
    assert scipy.stats.kstest(centred.mean(axis=1) * np.sqrt(1000), "norm").pvalue > 1e-3
    for a, b in ((u[:, :-1], u[:, 1:]), (u[:-1], u[1:])):
        pairs = np.histogram2d(a.ravel(), b.ravel(), bins=32, range=[[0, 1]] * 2)[0]
        assert scipy.stats.chisquare(pairs.ravel()).pvalue > 1e-3


@pytest.mark.parametrize("n_classes", [2, 3, BIG])
def test_same_for_any_chunks_and_threads(n_classes):
    run = redraws(ct.ECE(ct.VarianceTree(20)), predictions(200, n_classes)).replicates
    whole = run(SEED, 0, 1000)
    assert np.array_equal(whole[:100], run(SEED, 0, 100))
    assert np.array_equal(whole[777:801], run(SEED, 777, 24))
    pieces = [run(SEED, a, min(37, 1000 - a)) for a in range(0, 1000, 37)]
    assert np.array_equal(whole, np.concatenate(pieces))
    with ThreadPoolExecutor(4) as pool:
        pieces = list(pool.map(lambda a: run(SEED, a, 50), range(0, 1000, 50)))
    assert np.array_equal(whole, np.concatenate(pieces))
    assert not np.array_equal(whole, run((SEED[1], SEED[0]), 0, 1000))


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("short", [0, 1])
def test_a_draw_on_a_threshold_has_passed_it(place, short):
    """Label k is drawn when U lies in [c_{k−1}, c_k): whole numbers meet their bound."""
    n = 700
    met = (words(SEED, 4, 1, n)[0] >> 11).astype(np.int64) + short
    thresholds = np.full((4, n), streams.UNIFORM_STEPS)
    thresholds[: place + 1] = met
    drawn = LabelDrawer(thresholds, np.empty((n, 0), dtype=np.int32))(SEED, 4, 1)[0]
    assert (drawn == (0 if short else place + 1)).all()
    if place == 0:
        drawn = replace(SharedLanes.independent(np.full((n, 2), 0.5)), upto=met)(SEED, 4, 1)[0]
        assert (drawn == 1 - short).all()


@pytest.mark.parametrize("short", [0, 1])
@pytest.mark.parametrize("moved", [0, 1])
def test_a_draw_on_a_threshold_of_many_has_passed_it(short, moved):
    n, n_classes = 300, 64
    drawer = LabelDrawer.of(np.full((n, n_classes), 1.0 / n_classes))
    before = drawer(SEED, 4, 1)[0]
    met = (words(SEED, 4, 1, n)[0] >> 11).astype(np.int64) + short
    thresholds, rows = drawer.thresholds.copy(), np.flatnonzero(before < n_classes - 2)
    for step in range(moved + 1):  # of one label, or of the next one too
        thresholds[rows, before[rows] + step] = met[rows]
    after = LabelDrawer(thresholds, drawer.guide)(SEED, 4, 1)[0]
    expected = before.copy()
    expected[rows] += 0 if short else moved + 1
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("n_classes", [3, LADDER_CLASSES])
@pytest.mark.parametrize("short", [0, 1])
def test_fused_draws_on_a_threshold_have_passed_it(n_classes, short):
    n = 60
    probs = np.full((n, n_classes), 1.0 / n_classes)
    fused = redraws(ct.ECE(1), probs)
    first = LabelDrawer.of(probs)(SEED, 4, 1)[0]
    rows = np.flatnonzero(first < n_classes - 1)
    met = (words(SEED, 4, 1, n)[0] >> 11).astype(np.int64) + short
    thresholds = fused.thresholds.copy()
    thresholds.reshape(n, -1)[rows, first[rows]] = met[rows]  # one cell: in the order of the rows
    expected = first.copy()
    expected[rows] += 0 if short else 1
    moved = replace(fused, thresholds=thresholds).replicates(SEED, 4, 1)[0]
    assert moved == pytest.approx(ct.ECE(1).prepare(problem_of(seen(probs)))(expected), rel=1e-12)
