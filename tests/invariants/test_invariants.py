"""Properties that hold for all inputs, and agreement of the compiled, NumPy and slow paths."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from conftest import PROBLEMS, SEEDS, seen
from conftest import problem as make
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import basic as ref

import caltest as ct
from caltest.nulls import LabelSampler
from caltest.statistics.prepared import problem_of

DISTANCES = ["tv", "l1", "l2", "sqeuclidean", "max"]
SETTINGS = settings(max_examples=40, deadline=None)
CLOSED, AXES = st.sampled_from(["right", "left"]), st.sampled_from(["all", "first"])
SPLITS, STOPS = st.sampled_from(["median", "mean"]), st.sampled_from([None, "child", "node"])
ANY_BINS = st.one_of(
    st.builds(ct.UniformBins, st.integers(1, 30), closed=CLOSED, axes=AXES),
    st.builds(ct.VarianceTree, st.integers(1, 20), split=SPLITS, stop=STOPS),
)
FLAT_BINS = st.builds(ct.QuantileBins, st.integers(1, 20), closed=CLOSED)


def slow_cells(bins, probs):
    if isinstance(bins, ct.UniformBins):
        return ref.uniform_cells(probs, bins.n_bins, bins.closed, bins.axes)
    if isinstance(bins, ct.QuantileBins):
        first = probs if probs.ndim == 1 else probs[:, 0]
        return ref.quantile_cells(first, bins.n_bins, bins.closed)
    return ref.tree_cells(probs, bins.min_size, bins.split, bins.stop)


def check_all_paths(probs, labels, bins):
    cells = slow_cells(bins, probs)
    assert ref.as_groups(bins(probs)) == ref.as_groups(cells)
    for distance in [*DISTANCES, ref.hellinger]:
        for kind, slow in ((ct.ECE, ref.ece), (ct.MCE, ref.mce)):
            statistic = kind(bins, distance=distance)
            fixed = statistic.prepare(problem_of(seen(probs)))
            expected = slow(probs, labels, cells, distance)
            tolerance = 1e-13 if isinstance(distance, str) else 1e-7  # √ of rounding at 0
            values = statistic(seen(probs, labels)), fixed(labels), *fixed.batch(labels[None])
            assert values == pytest.approx((expected,) * 3, abs=tolerance)


@pytest.mark.slow
@SETTINGS
@given(PROBLEMS, ANY_BINS)
def test_paths_against_slow_twin(problem, bins):
    check_all_paths(*problem, bins)


@SETTINGS
@given(SEEDS, st.integers(1, 60), st.sampled_from(["decimals", "ties", "corners"]), FLAT_BINS)
def test_paths_against_slow_twin_with_quantiles(seed, n, style, bins):
    check_all_paths(*make(seed, n, 2, style), bins)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize(
    "bins",
    [
        ct.UniformBins(10),
        ct.UniformBins(15, closed="left", axes="first"),
        ct.VarianceTree(20),
        ct.VarianceTree(20, split="mean"),
    ],
    ids=repr,
)
def test_paths_against_slow_twin_on_larger_data(k, bins):
    check_all_paths(*make(k, 700, k), bins)


def test_one_bin_function_is_a_binning():
    probs, labels = make(1, 50, 3)
    halves = ct.ECE(lambda rows: (rows[:, 1] > 0.4).astype(int))
    expected = ref.ece(probs, labels, (probs[:, 1] > 0.4).astype(int))
    assert halves(probs, labels) == pytest.approx(expected, abs=1e-14)
    odd = ct.ECE(lambda rows: np.where(rows[:, 1] > 0.4, -7, 10**9))
    assert odd(probs, labels) == pytest.approx(halves(probs, labels), abs=1e-15)


@SETTINGS
@given(st.integers(1, 200), CLOSED)
def test_zero_and_one_are_in_the_end_bins(m, closed):
    bins = ct.UniformBins(m, closed=closed)
    assert bins(np.array([0.0, 5e-324, 1 - 2**-53, 1.0])).tolist() == [0, 0, m - 1, m - 1]
    assert bins(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist() == [0, m - 1]


@pytest.mark.parametrize("m", range(1, 101))
def test_decimals_land_by_decimal_arithmetic(m):
    decimals = np.array([d / 100 for d in range(101)] + [d / 1000 for d in range(1001)])
    exact = [Fraction(d, 100) for d in range(101)] + [Fraction(d, 1000) for d in range(1001)]
    fractions = np.array([k / m for k in range(m + 1)])
    sums = np.array([0.1 + 0.2, 0.1 + 0.7, 1 - 0.9, 0.3 * 3, 0.7 + 0.1 + 0.1])
    for closed in ("right", "left"):
        bins = ct.UniformBins(m, closed=closed)
        expected = [
            min(max(-(-x * m // 1) - 1, 0), m - 1) if closed == "right" else min(x * m // 1, m - 1)
            for x in exact
        ]
        assert bins(decimals).tolist() == expected
        landed = [max(k - 1, 0) if closed == "right" else min(k, m - 1) for k in range(m + 1)]
        assert bins(fractions).tolist() == landed
        assert bins(sums).tolist() == bins(np.array([0.3, 0.8, 0.1, 0.9, 0.9])).tolist()
        two = np.column_stack([1 - fractions, fractions])  # 1 − p carries its own rounding
        assert bins(two).tolist() == [
            max(m - k - 1, 0) if closed == "right" else min(m - k, m - 1) for k in range(m + 1)
        ]


@SETTINGS
@given(
    st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=60),
    st.integers(1, 25),
    CLOSED,
)
def test_quantile_bins_against_slow_twin(values, m, closed):
    x = np.array(values)
    cells = ct.QuantileBins(m, closed=closed)(x)
    assert ref.as_groups(cells) == ref.as_groups(ref.quantile_cells(x, m, closed))
    assert (np.diff(cells[np.argsort(x, kind="stable")]) >= 0).all()  # bins follow the values


@SETTINGS
@given(PROBLEMS, st.integers(1, 9))
def test_top_k_against_slow_twin(problem, k):
    probs, labels = problem
    k = min(k, probs.shape[1] - 1)
    seen = ct.TopK(k)(ct.Predictions.of(probs, labels, as_is=True))
    expected, induced = ref.top_k(probs, labels, k)
    assert seen.probs == pytest.approx(expected, abs=1e-12)
    assert seen.labels.tolist() == induced.tolist()


@SETTINGS
@given(PROBLEMS, SEEDS)
def test_partition_against_slow_twin(problem, seed):
    probs, labels = problem
    k = probs.shape[1]
    generator = np.random.default_rng(seed)
    order = generator.permutation(k)
    cuts = np.sort(generator.choice(np.arange(1, k), generator.integers(1, k), replace=False))
    groups = [g.tolist() for g in np.split(order, cuts)]
    seen = ct.Partition(groups)(ct.Predictions.of(probs, labels, as_is=True))
    expected, induced = ref.partition(probs, labels, groups)
    assert seen.probs == pytest.approx(expected, abs=1e-12)
    assert seen.labels.tolist() == induced.tolist()


@SETTINGS
@given(PROBLEMS, SEEDS)
def test_label_sampler_against_slow_twin(problem, seed):
    probs, _ = problem
    generator = np.random.default_rng(seed)
    rows = generator.integers(0, len(probs), 30)
    uniforms = generator.random(30)
    uniforms[:2] = 0.0, 1 - 2**-53
    expected = [ref.draw_label(probs[i], u) for i, u in zip(rows, uniforms, strict=True)]
    assert LabelSampler.of(probs)(uniforms, rows).tolist() == expected


@settings(max_examples=30, deadline=None)
@given(
    PROBLEMS,
    st.sampled_from(["auto", ct.RedrawLabels()]),
    st.sampled_from(DISTANCES),
    st.sampled_from([ct.TopK(1), ct.OneVsRest(0), ct.Canonical()]),
)
@pytest.mark.filterwarnings("ignore::caltest.DegenerateDataWarning")
def test_p_is_never_zero_nor_above_one(problem, null, distance, lens):
    run = {"lens": lens, "null": null, "n_resamples": 39, "rng": 0, "as_is": True}
    for kind in (ct.ECE, ct.MCE):
        result = ct.calibration_test(*problem, kind(5, distance=distance), **run)
        assert 0 < result.pvalue <= 1
        if result.n_resamples:
            assert result.pvalue >= 1 / 40
            assert (40 * result.pvalue) % 1 == pytest.approx(0, abs=1e-9)
        assert result.pvalue == pytest.approx(
            (1 + np.sum(np.asarray(result.null_distribution) >= result.estimate - 1e-9)) / 40
            if result.n_resamples
            else max(result.pvalue_bracket[1], 0.0),
            abs=1e-12,
        )


def test_perfect_and_impossible_forecasts():
    certain = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    with pytest.warns(ct.DegenerateDataWarning):
        right = ct.calibration_test(certain, [0, 1, 2, 0, 1, 2], ct.ECE(5), rng=0)
    assert ((right.estimate, right.pvalue), right.impossible) == ((0, 1), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ct.DegenerateDataWarning)  # a refutation does say something
        wrong = ct.calibration_test(certain, [0, 1, 2, 0, 1, 1], ct.ECE(5), rng=0)
    assert wrong.impossible == 1
    assert 0 < wrong.pvalue < 1e-10
