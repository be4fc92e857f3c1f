"""Kernel errors against published values, slow twins, exact moments and themselves."""

import csv
import math
import random
from functools import partial

import numpy as np
import pytest
from conftest import seen
from twins import kernel as slow

import caltest as ct
from caltest.errors import StatisticError
from caltest.nulls import LabelSampler
from caltest.statistics import MMCE, SKCE, Flips, GaussianKernel, LaplaceKernel, TVKernel
from caltest.statistics import kernel as kernels
from caltest.statistics import kernel as tiles
from caltest.statistics.kernel import MULTINOMIAL_DRAWS, residuals_of
from caltest.statistics.prepared import problem_of

TWINS = {LaplaceKernel: "laplace", GaussianKernel: "gauss", TVKernel: "tv"}
ESTIMATORS = [("unbiased", None), ("biased", None), ("linear", None), ("block", 5), ("block", 20)]


def problem(n, n_classes, concentration=0.5, seed=3):
    """Predictions with ties, zeros and ones, and labels of a calibrated model."""
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(n_classes, concentration), n)
    probs[: n // 6] = probs[0]
    if n >= 12:
        probs[n // 2 : n // 2 + 3] = np.eye(n_classes)[[0, 1, 1]]
    return probs, LabelSampler.of(probs)(generator.random(n))


def twin_kernel(chosen):
    return partial(slow.KERNELS[TWINS[type(chosen)]], nu=chosen.bandwidth)


def test_against_pycalibration():
    # Examples of pycalibration's README, by CalibrationErrors.jl; the two of ``unbiased`` and
    # ``centred`` were derived from the definition, those printed there being wrong.
    random.seed(1234)
    p = np.array([random.random() for _ in range(100)])
    y = np.array([random.getrandbits(1) for _ in range(100)])
    assert SKCE(TVKernel(1.0))(p, y) == pytest.approx(0.028399084017414655, rel=1e-12)
    generator = np.random.default_rng(1234)
    p, y = generator.random(100), generator.choice([True, False], 100)
    assert SKCE(TVKernel(1.0))(p, y) == pytest.approx(0.03320398246523166, rel=1e-12)
    generator = np.random.default_rng(1234)
    probs, labels = generator.dirichlet((3, 2, 5), 100), generator.integers(1, 4, 100) - 1
    unbiased = SKCE(TVKernel(1.0))(probs, labels)
    assert unbiased == pytest.approx(0.02129650889373521, rel=1e-12)
    centred = 100 / 99 * unbiased - SKCE(TVKernel(1.0), estimator="biased")(probs, labels)
    assert centred == pytest.approx(-0.006426550757474104, rel=1e-11)
    assert SKCE(LaplaceKernel(1.0))(probs, labels) == pytest.approx(0.02015240706950358, rel=1e-12)
    two = np.array([[0.1, 0.8, 0.1], [0.2, 0.5, 0.3]])
    value = SKCE(LaplaceKernel(1.0))(two, np.array([1, 2]))
    assert value == pytest.approx(-0.10317943453412069, rel=1e-13)


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
@pytest.mark.parametrize(
    ("labels", "unbiased", "biased"),
    [([0, 1], 0, 0), ([0, 0], 0, 0.5), ([1, 1], 0, 0.5), ([1, 0], -2 / math.e, 1 - 1 / math.e)],
)
def test_against_calibrationerrors_jl(labels, unbiased, biased):
    probs, k = np.eye(2), GaussianKernel(1.0)
    labels = np.array(labels)
    assert SKCE(k)(probs, labels) == pytest.approx(unbiased, abs=1e-15)
    assert SKCE(k, estimator="biased")(probs, labels) == pytest.approx(biased, abs=1e-15)
    assert SKCE(k)([1.0, 0.0], 1 - labels) == pytest.approx(unbiased, abs=1e-15)
    repeated = np.tile(probs, (10, 1)), np.tile(labels, 10)
    for statistic in [SKCE(k, estimator="block", block_size=2), SKCE(k, estimator="linear")]:
        assert statistic(*repeated) == pytest.approx(unbiased, abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["densenet121", "resnet18"])
def test_against_published_cifar10_values(data_dir, network):
    with (data_dir / "oracle" / "cifar10_canonical_published.csv").open() as file:
        published = {row["file"]: row for row in csv.DictReader(file)}
    name = f"multiclass/cifar10_{network}.npz"
    expected = {key: float(value) for key, value in published[name].items() if key != "file"}
    with np.load(data_dir / name) as file:
        # As they are stored: made to sum to 1, they move the 8th digit.
        probs, labels = file["probs"].astype(float), file["labels"].astype(int)
    chosen = TVKernel("median-with-diagonal").fitted(probs)
    for estimator, column in [("biased", "b"), ("unbiased", "uq"), ("linear", "ul")]:
        fixed = SKCE(chosen, estimator=estimator).prepare(problem_of(seen(probs)))
        value = fixed(labels)
        # Single precision in the source moves the few rows that "linear" looks at a little more.
        digits = 4e-7 if estimator == "linear" else 1e-8
        assert value == pytest.approx(expected[f"SKCE{column}_median"], rel=digits)
        if estimator == "linear":
            normal = fixed.laws["asymptotic"](labels).sf(value)
            assert normal == pytest.approx(expected["p_SKCEul_median_asymptotic"], abs=3e-8)


@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize(("estimator", "size"), ESTIMATORS)
def test_skce_against_double_loop(n_classes, kind, estimator, size):
    probs, labels = problem(43, n_classes)
    statistic = SKCE(kind(0.3), estimator=estimator, block_size=size)
    expected = slow.skce(probs, labels, twin_kernel(kind(0.3)), estimator, size)
    close = partial(pytest.approx, rel=1e-11, abs=1e-15)
    fixed = statistic.prepare(problem_of(seen(probs)))
    assert statistic(seen(probs, labels)) == close(expected)
    assert fixed.batch(np.tile(labels, (3, 1))) == close(np.full(3, expected))


@pytest.mark.parametrize("n", [1, 2, 3, 30, 31])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [TVKernel, LaplaceKernel])
def test_median_heuristic(n, n_classes, kind):
    for tied in (0, n // 2, n - 1, n):  # with many equal rows the median is 0
        probs, _ = problem(n, n_classes)
        probs[:tied] = probs[-1]
        for rule, diagonal in [("median", False), ("median-with-diagonal", True)]:
            expected = slow.median_distance(probs, kind.distance, diagonal)
            assert kind(rule).fitted(probs).bandwidth == pytest.approx(expected, rel=1e-14)


def test_median_of_many_rows_does_not_depend_on_their_order(monkeypatch):
    monkeypatch.setattr(kernels, "MEDIAN_ROWS", 400)
    probs, _ = problem(1001, 4)
    chosen = LaplaceKernel().fitted(probs)
    assert chosen == LaplaceKernel().fitted(np.random.default_rng(0).permutation(probs))
    monkeypatch.undo()
    assert chosen.bandwidth == pytest.approx(LaplaceKernel().fitted(probs).bandwidth, rel=0.05)


@pytest.mark.parametrize(
    ("n_classes", "kind", "size"),
    [(2, GaussianKernel, 90), (4, LaplaceKernel, 90), (4, LaplaceKernel, 40), (4, TVKernel, 2)],
)
def test_sums_of_tiles_agree(n_classes, kind, size):
    probs = problem(90, n_classes)[0][: 90 // size * size]
    fixed, uniforms = tiles.Tiles(probs, kind(0.2), size), np.random.default_rng(5)
    labels = np.stack([LabelSampler.of(probs)(uniforms.random(len(probs))) for _ in range(9)])
    totals, squares = fixed.sums(labels)
    for b, y in enumerate(labels):
        rows, diagonal = fixed.rows(residuals_of(probs, y))
        assert rows.sum() == pytest.approx(totals[b], abs=1e-11)
        assert diagonal.sum() == pytest.approx(squares[b], rel=1e-13)
    residuals, ones = residuals_of(probs, labels[0]), np.ones((len(probs), 2))
    for ours, expected in zip(fixed.weighted(residuals, ones), (totals, squares), strict=True):
        np.testing.assert_allclose(ours, expected[0], atol=1e-11)


@pytest.mark.parametrize("size", [600, 2, 5, 100, 300])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_tiles_change_nothing(size, n_classes, monkeypatch):
    probs, labels = problem(600, n_classes, 0.3)
    residuals = residuals_of(probs, labels)

    def sums():
        parts = tiles.Tiles(probs, GaussianKernel(0.3), size)
        return *parts.sums(labels[None]), *parts.rows(residuals)

    expected = sums()
    monkeypatch.setattr(tiles, "ROWS_A_TILE", 37)
    monkeypatch.setattr(tiles, "KERNEL_VALUES_KEPT", 0)
    for a, b in zip(sums(), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def test_a_kernel_may_be_a_function():
    def linear(rows, others):
        return 1.0 + rows @ others.T

    probs, labels = problem(25, 3)
    for estimator in ["unbiased", "biased"]:
        statistic = SKCE(linear, estimator=estimator)
        expected = slow.skce(probs, labels, lambda p, q: 1.0 + float(p @ q), estimator)
        assert statistic(probs, labels) == pytest.approx(expected, rel=1e-12)
    assert repr(SKCE(linear)) == "SKCE(linear, estimator='unbiased')"


@pytest.mark.parametrize("kind", [LaplaceKernel, TVKernel])
@pytest.mark.parametrize(("estimator", "size"), ESTIMATORS)
def test_blocks_of_near_predictions_and_small_bandwidths(kind, estimator, size):
    # From the last prediction of a block to the first of the next they fall by many bandwidths.
    p = np.random.default_rng(3).beta(0.1, 0.02, 50)
    probs, labels = np.column_stack([p, 1 - p]), np.arange(50) % 2
    statistic = SKCE(kind(0.001), estimator=estimator, block_size=size)
    expected = slow.skce(probs, labels, twin_kernel(kind(0.001)), estimator, size)
    assert statistic(seen(probs, labels)) == pytest.approx(expected, rel=1e-11, abs=1e-15)
    drawn = ct.replicate(seen(probs), statistic, ct.RedrawLabels(), n_resamples=20, rng=1)
    assert np.isfinite(drawn.values).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "statistic",
    [
        SKCE(TVKernel(0.3)),
        SKCE(TVKernel(0.3), estimator="biased"),
        SKCE(LaplaceKernel(0.3), estimator="block", block_size=7),
        MMCE(),
    ],
    ids=repr,
)
def test_moved_residuals_are_a_quadratic_form(statistic, n_classes):
    if isinstance(statistic, MMCE) and n_classes > 2:
        return
    data = seen(*problem(30, n_classes))
    fixed = statistic.prepare(problem_of(data))
    a, b = np.random.default_rng(1).normal(size=(2, 30))
    power = 2 if isinstance(statistic, MMCE) else 1
    whole, other, added, taken = fixed.values(Flips(np.stack([a, b, a + b, a - b]))) ** power
    assert added + taken == pytest.approx(2 * (whole + other), rel=1e-9, abs=1e-14)
    single = np.zeros((1, 30))
    single[0, 4] = 2.0
    value = fixed.values(Flips(single))[0] ** power
    norm = 4.0 * float(data.residuals[4] @ data.residuals[4])
    unbiased = isinstance(statistic, SKCE) and statistic.estimator != "biased"
    halves = 2 if isinstance(statistic, MMCE) else 1  # one component of two
    assert value == pytest.approx(0.0 if unbiased else norm / halves / 30**2, abs=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_and_two_rows(n_classes):
    probs, labels = problem(2, n_classes)
    for estimator in ["unbiased", "linear", "block"]:
        expected = slow.skce(probs, labels, twin_kernel(TVKernel(0.5)))
        assert SKCE(TVKernel(0.5), estimator=estimator)(probs, labels) == pytest.approx(expected)
        with pytest.raises(StatisticError, match=r"needs at least 2 rows, not 1"):
            SKCE(estimator=estimator)(probs[:1], labels[:1])
    residual = np.eye(n_classes)[labels[0]] - probs[0]
    assert SKCE(estimator="biased")(probs[:1], labels[:1]) == pytest.approx(residual @ residual)
    linear = SKCE(TVKernel(0.5), estimator="linear").prepare(problem_of(seen(probs)))
    with pytest.raises(StatisticError, match="differ"):
        linear.laws["asymptotic"](labels)


@pytest.mark.parametrize(("n_classes", "kind"), [(2, TVKernel), (2, GaussianKernel), (3, TVKernel)])
def test_bootstrap_is_that_of_calibrationtests_jl(n_classes, kind):
    probs, labels = problem(25, n_classes)
    fixed = SKCE(kind(0.4)).prepare(problem_of(seen(probs)))
    drawing = twin_kernel(kind(0.4)), MULTINOMIAL_DRAWS, np.random.default_rng(0)
    observed, replicates = slow.arcones_gine(probs, labels, *drawing)
    law = fixed.laws["asymptotic"](labels)
    # Both are the same test: the sides of one inequality, moved.
    n = 25
    moved = (law.values - fixed(labels)) * (1 + 1 / (n * (n - 1)))
    np.testing.assert_allclose(moved, replicates - observed, atol=1e-14)
    assert law.sf(fixed(labels)) == pytest.approx((replicates >= observed - 1e-14).mean())
