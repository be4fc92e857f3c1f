"""Values that others have published, or that were verified by two independent methods."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import reference as ref
import scipy.stats
from conftest import seen

import caltest as ct

BINARY = ref.TUTORIAL_BINARY, ref.TUTORIAL_BINARY_LABELS
MULTI = ref.TUTORIAL_MULTI, ref.TUTORIAL_MULTI_LABELS
SQUARED = ct.ECE(5, distance="sqeuclidean")


def estimate(probs, labels, statistic, lens):
    return statistic(lens(ct.Predictions.of(probs, labels)))


def overlap(bracket, low, high):
    """Whether two brackets meet, ours being no wider than promised (1 %)."""
    return bracket[0] <= high and low <= bracket[1] and bracket[1] - bracket[0] <= 0.012 * high


# --- the tutorial ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "closed", "expected"),
    [
        (5, "right", 0.94 / 9),
        (5, "left", 0.94 / 9),
        (10, "right", 1.58 / 9),
        (10, "left", 2.12 / 9),
        (15, "right", 2.96 / 9),
        (15, "left", 2.96 / 9),
    ],
)
def test_against_tutorial_binary(m, closed, expected):
    value = estimate(*BINARY, ct.ECE(ct.UniformBins(m, closed=closed)), ct.TopK(1))
    assert value == pytest.approx(expected, abs=1e-14)


def test_against_tutorial_bins():
    induced = ct.TopK(1)(ct.Predictions.of(*BINARY))
    cells = ct.UniformBins(5)(induced.probs)
    table = {
        int(c): (
            int((cells == c).sum()),
            induced.probs[cells == c, 0].mean(),
            (induced.labels[cells == c] == 0).mean(),
        )
        for c in np.unique(cells)
    }
    assert table == {
        2: (2, pytest.approx(0.545), 0.5),
        3: (4, pytest.approx(0.6875), 0.75),
        4: (3, pytest.approx(2.6 / 3), pytest.approx(2 / 3)),
    }


@pytest.mark.parametrize(
    ("m", "closed", "expected"),
    [
        (2, "right", 0.212),
        (3, "right", 0.192),
        (4, "right", 0.212),
        (5, "right", 0.132),
        (10, "right", 0.312),
        (15, "right", 0.312),
        (3, "left", 0.192),
        (5, "left", 0.212),
    ],
)
def test_against_tutorial_multiclass(m, closed, expected):
    value = estimate(*MULTI, ct.ECE(ct.UniformBins(m, closed=closed)), ct.TopK(1))
    assert value == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    ("data", "lens", "statistic", "value", "p", "mean"),
    [
        (BINARY, ct.TopK(1), ct.ECE(5), 0.94 / 9, 0.8675084905, 0.2014172889),
        (BINARY, ct.TopK(1), ct.MCE(5), 0.2, 0.7771847455, 0.3700065169),
        (BINARY, ct.TopK(1), SQUARED, 2 * 0.0155194444, 0.8675084905, 2 * 0.0635657407),
        (BINARY, ct.OneVsRest(1), ct.ECE(5), 0.3222222222, 0.2325328593, 0.2596248889),
        (
            BINARY,
            ct.OneVsRest(1),
            ct.ECE(5, distance="sqeuclidean"),
            2 * 0.1153388889,
            0.3372507684,
            None,
        ),
        (MULTI, ct.TopK(1), ct.ECE(3), 0.192, 0.60508576, 0.201548),
        (MULTI, ct.TopK(1), ct.ECE(5), 0.132, 0.8367688, 0.209154),
    ],
)
@pytest.mark.parametrize("null", ["auto", "exact"])
def test_against_enumerated_tutorial_p(data, lens, statistic, value, p, mean, null):
    result = ct.calibration_test(*data, statistic, lens=lens, null=null)
    assert result.null == "exact"
    assert result.n_resamples == 0
    assert result.estimate == pytest.approx(value, abs=2e-10)
    low, high = result.pvalue_bracket
    assert low - 1e-8 <= p <= high + 1e-8
    assert high - low <= 0.0101 * high
    assert result.pvalue == high
    if mean is not None:
        assert result.null_mean == pytest.approx(mean, abs=5e-7)


def test_against_enumerated_tutorial_deviation():
    result = ct.calibration_test(*BINARY, ct.ECE(5), lens=ct.TopK(1))
    assert result.null_std == pytest.approx(0.0824845959, abs=1e-10)
    assert result.null_mean == pytest.approx(0.2014172889, abs=1e-10)


@pytest.mark.parametrize(
    ("m", "value", "p", "mean"),
    [
        (1, 0.247, 0.3797316811, 0.2087615238),
        (2, 0.417, 0.2170970909, 0.3506738541),
    ],
)
def test_against_canonical_tutorial_p(m, value, p, mean):
    # The printed p and mean are those of the slow dictionary law as well.
    cells = ref.uniform_cells(ref.TUTORIAL_MULTI, m)
    slow = ref.summary(*ref.vector_law(ref.TUTORIAL_MULTI, cells), value)
    assert slow[:2] == pytest.approx((p, mean), abs=1e-9)
    result = ct.calibration_test(
        *MULTI,
        ct.ECE(ct.UniformBins(m)),
        lens=ct.Canonical(),
        null=ct.RedrawLabels(),
        n_resamples=20_000,
        rng=1,
    )
    assert result.estimate == pytest.approx(value, abs=1e-14)
    assert abs(result.pvalue - p) < 4.5 * np.sqrt(p * (1 - p) / 20_000)
    assert abs(result.null_mean - mean) < 4.5 * slow[2] / np.sqrt(20_000)
    assert result.null_std == pytest.approx(slow[2], rel=0.03)


def test_against_published_weather():
    rained = [1] * 18 + [0] * 12
    result = ct.calibration_test([0.8] * 30, rained, lens=ct.OneVsRest(1))
    assert result.estimate == pytest.approx(0.2, abs=1e-15)
    assert result.pvalue == pytest.approx(0.010731062, abs=5e-10)
    oracle = scipy.stats.binomtest(18, 30, 0.8).pvalue
    assert result.pvalue_bracket == pytest.approx((oracle, oracle), abs=1e-12)


# --- calzone -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calzone():
    state = np.random.RandomState(123)  # the published stream
    p = scipy.stats.beta.rvs(0.5, 0.5, size=5000, random_state=state)
    return p, state.binomial(1, p)


def test_against_calzone_file(calzone, data_dir):
    path = data_dir / "binary" / "calzone_simulated_welldata.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert np.array_equal(calzone[0], [float(row["proba_1"]) for row in rows])
    assert np.array_equal(calzone[1], [float(row["label"]) for row in rows])


@pytest.mark.parametrize(
    ("statistic", "lens", "expected"),
    [
        (ct.ECE(10), ct.TopK(1), 0.009608653731328977),
        (ct.ECE(10), ct.OneVsRest(1), 0.01208775955804901),
        (ct.MCE(10), ct.TopK(1), 0.03926468843081976),
        (ct.MCE(10), ct.OneVsRest(1), 0.04848338618970194),
    ],
)
def test_against_calzone_values(calzone, statistic, lens, expected):
    assert estimate(*calzone, statistic, lens) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("lens", "expected"), [(ct.OneVsRest(1), 0.00873222), (ct.TopK(1), 0.00955612)]
)
def test_against_calzone_equal_count(calzone, lens, expected):
    # calzone itself loses the smallest prediction (0.00873397, 0.00945803); these keep it.
    value = estimate(*calzone, ct.ECE(ct.QuantileBins(10)), lens)
    assert value == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(
    ("statistic", "lens", "low", "high"),
    [
        (ct.ECE(10), ct.OneVsRest(1), 0.526140, 0.526603),
        (ct.ECE(15), ct.OneVsRest(1), 0.877989, 0.878443),
        (ct.ECE(10), ct.TopK(1), 0.366409, 0.367920),
        (ct.ECE(15), ct.TopK(1), 0.734588, 0.735329),
        (ct.ECE(10, distance="sqeuclidean"), ct.OneVsRest(1), 0.304559, 0.305330),
    ],
)
def test_against_convolved_calzone_p(calzone, statistic, lens, low, high):
    result = ct.calibration_test(*calzone, statistic, lens=lens)
    assert overlap(result.pvalue_bracket, low, high)


@pytest.mark.parametrize(
    ("m", "lens", "p"),
    [
        (10, ct.OneVsRest(1), 0.3174728595),
        (15, ct.OneVsRest(1), 0.6492379222),
        (10, ct.TopK(1), 0.0922947187),
        (15, ct.TopK(1), 0.2924384429),
    ],
)
def test_against_calzone_mce_p(calzone, m, lens, p):
    low, high = ct.calibration_test(*calzone, ct.MCE(m), lens=lens).pvalue_bracket
    assert low == pytest.approx(p, abs=1e-9)
    assert high == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize(
    ("m", "lens", "mean"),
    [
        (10, ct.OneVsRest(1), 0.0124516830),
        (15, ct.OneVsRest(1), 0.0152354007),
        (10, ct.TopK(1), 0.0088020315),
    ],
)
def test_against_calzone_noise_floor(calzone, m, lens, mean):
    assert ct.calibration_test(*calzone, ct.ECE(m), lens=lens).null_mean == pytest.approx(
        mean, abs=1e-9
    )


def test_against_calzone_null_deviation(calzone):
    result = ct.calibration_test(*calzone, ct.ECE(10), lens=ct.OneVsRest(1))
    assert result.null_std == pytest.approx(0.0030024336, abs=1e-9)


# --- the Gaussian mixture and the six points ---------------------------------------------------


def test_against_published_mixture_error():
    # The other order of the classes, an easy mistake, would give the second number.
    assert ct.examples.GaussianMixture(1, 1).expected_miscalibration() == pytest.approx(
        0.5637511405526426, abs=1e-10
    )
    assert ct.examples.GaussianMixture(-1, -1).expected_miscalibration() == pytest.approx(
        0.18412790739195806, abs=1e-10
    )


def test_against_published_mixture_distances():
    model = ct.examples.GaussianMixture(1, 1)
    assert model.expected_miscalibration("sqeuclidean") == pytest.approx(0.797358779108, abs=1e-10)
    assert model.expected_miscalibration("l1") == pytest.approx(2 * 0.5637511405526426, abs=1e-10)
    assert model.expected_miscalibration("max") == pytest.approx(0.5637511405526426, abs=1e-10)


@pytest.mark.parametrize(("b0", "b1"), [(0, -2), (0, 0)])
@pytest.mark.parametrize("distance", ["tv", "l1", "l2", "sqeuclidean", "max"])
def test_against_theory_calibrated_mixtures(b0, b1, distance):
    model = ct.examples.GaussianMixture(b0, b1)
    assert model.expected_miscalibration(distance) == pytest.approx(0, abs=1e-12)


def test_against_published_mixture_deviations():
    p = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
    expected = [0.9496, 0.8983, 0.7916, 0.6757, 0.5433, 0.3808, 0.1666, -0.1242, -0.4841, -0.8164]
    deviations = ct.examples.GaussianMixture(1, 1).calibration_function(p) - p
    assert deviations == pytest.approx([*expected, -0.9299], abs=6e-5)
    crossing = 1 / (1 + np.exp(-2 / 3))
    assert ct.examples.GaussianMixture(1, 1).calibration_function(crossing) == pytest.approx(
        crossing, abs=1e-14
    )


@pytest.mark.parametrize("beta", [(1, 1), (0.3, -2.5), (0, -2)])
def test_against_simulated_mixture(beta):
    # Where the model says p, class 0 occurs as often as the calibration function says.
    model = ct.examples.GaussianMixture(*beta)
    data = model.sample(100_000, rng=7)
    p, first = data.probs[:, 0], data.labels == 0
    truth = model.calibration_function(p)
    for low in np.arange(0, 1, 0.2):
        inside = (p > low) & (p <= low + 0.2)
        spread = np.sqrt((truth * (1 - truth))[inside].sum())
        assert abs((first - truth)[inside].sum()) < 4.5 * spread + 1e-9


@pytest.mark.parametrize(
    ("beta", "n", "m", "mean", "runs"),
    [
        ((0, -2), 100, 10, 0.0839, 2000),
        ((0, -2), 1000, 10, 0.0267, 500),
        ((0, -2), 100, 100, 0.1925, 1000),
        ((0, -2), 1000, 1, 0.0086, 500),
        ((0, 0), 100, 10, 0.0397946187, 2000),
        ((0, 0), 1000, 100, 0.0126125091, 500),
        ((1, 1), 100, 10, 0.5687, 1000),
        ((1, 1), 1000, 10, 0.5602, 300),
        ((1, 1), 1000, 100, 0.5714, 300),
        ((1, 1), 1000, 1, 0.1723, 300),
    ],
)
def test_against_simulated_mixture_estimates(beta, n, m, mean, runs):
    generator = np.random.default_rng(99)
    model, statistic = ct.examples.GaussianMixture(*beta), ct.ECE(ct.UniformBins(m))
    values = []
    for _ in range(runs):
        data = model.sample(n, generator)
        values.append(statistic(seen(data.probs, data.labels)))
    assert abs(np.mean(values) - mean) < 4.5 * np.std(values) / np.sqrt(runs) + 6e-4


def test_against_binomial_noise_floor():
    # A constant prediction of one half: E|Bin(n, ½)/n − ½|, in closed form.
    k = np.arange(101)
    expected = (scipy.stats.binom.pmf(k, 100, 0.5) * np.abs(k / 100 - 0.5)).sum()
    result = ct.calibration_test(np.full(100, 0.5), k[:100] % 2, lens=ct.OneVsRest(1))
    assert result.null_mean == pytest.approx(0.0397946187, abs=1e-10)
    assert result.null_mean == pytest.approx(expected, abs=1e-13)


def test_against_published_six_points_confidence():
    six = ct.examples.SixPoints()
    top = six.probs.argmax(axis=1)
    accuracy = six.truth[np.arange(6), top]
    assert six.probs.max(axis=1) == pytest.approx(np.full(6, 0.6), abs=1e-12)
    assert accuracy == pytest.approx([0.6, 0.7, 0.6, 0.5, 0.7, 0.5], abs=1e-12)
    assert accuracy.mean() == pytest.approx(0.6, abs=1e-12)
    for c in range(3):
        assert accuracy[top == c].mean() == pytest.approx(0.6, abs=1e-12)


def test_against_published_six_points_marginals():
    six = ct.examples.SixPoints()
    for c in range(3):
        for v in (0.1, 0.3, 0.6):
            chosen = np.isclose(six.probs[:, c], v)
            assert chosen.sum() == 2
            assert six.truth[chosen, c].mean() == pytest.approx(v, abs=1e-12)
    ranked = np.take_along_axis(six.truth, np.argsort(-six.probs, axis=1), axis=1)
    assert ranked.mean(axis=0) == pytest.approx([0.6, 0.3, 0.1], abs=1e-12)


def test_against_published_six_points_canonical():
    six = ct.examples.SixPoints()
    rows = [ref.DISTANCES["tv"](r, g) for r, g in zip(six.truth, six.probs, strict=True)]
    assert rows == pytest.approx(np.full(6, 0.1), abs=1e-12)
    assert six.expected_miscalibration() == pytest.approx(0.1, abs=1e-12)
    assert six.expected_miscalibration("sqeuclidean") == pytest.approx(0.02, abs=1e-12)
    assert six.expected_miscalibration("l2") == pytest.approx(np.sqrt(0.02), abs=1e-12)
    assert six.probs.mean(axis=0) == pytest.approx(np.full(3, 1 / 3), abs=1e-12)
    assert six.truth.mean(axis=0) == pytest.approx(np.full(3, 1 / 3), abs=1e-12)
    brier = (six.truth * ((six.probs[:, None] - np.eye(3)) ** 2).sum(axis=2)).sum(axis=1).mean()
    perfect = (six.truth * ((six.truth[:, None] - np.eye(3)) ** 2).sum(axis=2)).sum(axis=1).mean()
    assert (brier, perfect) == pytest.approx((0.54, 0.52), abs=1e-12)


def population_of_six_points():
    """Ten rows for each of the six predictions, labelled exactly as often as the truth says."""
    six = ct.examples.SixPoints()
    counts = np.round(10 * six.truth).astype(int)
    labels = np.concatenate([np.repeat(np.arange(3), c) for c in counts])
    return np.repeat(six.probs, 10, axis=0), labels


def test_against_published_six_points_through_lenses():
    data = ct.Predictions.of(*population_of_six_points())
    blind = [ct.TopK(1), ct.TopK(2), *(ct.OneVsRest(c) for c in range(3))]
    blind += [ct.Partition([[c], [d for d in range(3) if d != c]]) for c in range(3)]
    for lens in blind:
        assert ct.ECE(10)(lens(data)) == pytest.approx(0, abs=1e-12), lens
    assert ct.ECE(10)(data) == pytest.approx(0.1, abs=1e-12)
    assert ct.MCE(10)(data) == pytest.approx(0.1, abs=1e-12)
    assert ct.ECE(10, distance="sqeuclidean")(data) == pytest.approx(0.02, abs=1e-12)


# --- uu-sml, CalibrationErrors.jl, uncertainty-metrics, T-Cal ----------------------------------


@pytest.fixture(scope="module")
def uu():
    state = np.random.RandomState(1234)  # the published stream
    probs = state.dirichlet(np.ones(5), 20)
    return probs, state.randint(0, 5, 20)


@pytest.mark.parametrize(
    ("m", "distance", "expected"),
    [
        (1, "tv", 0.2995465892320518),
        (5, "tv", 0.7140210460100205),
        (10, "tv", 0.8400491314496861),
        (1, "l1", 2 * 0.2995465892320518),
        (5, "l1", 2 * 0.7140210460100205),
        (10, "l1", 2 * 0.8400491314496861),
        (1, "l2", 0.3248487716255848),
        (5, "l2", 0.7988805666899346),
        (10, "l2", 0.9877669640131223),
    ],
)
def test_against_uu_sml_grid(uu, m, distance, expected):
    bins = ct.UniformBins(m, closed="left", axes="first")
    assert ct.ECE(bins, distance=distance)(*uu) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(
    ("split", "expected"), [("mean", 0.6231882732061077), ("median", 0.6531080320331059)]
)
def test_against_uu_sml_tree(uu, split, expected):
    bins = ct.VarianceTree(5, split=split, stop="node")
    assert ct.ECE(bins)(*uu) == pytest.approx(expected, abs=1e-13)


def test_against_uu_sml_default_tree_stops_like_theirs(uu):
    assert ct.ECE(ct.VarianceTree(5, split="mean"))(*uu) == pytest.approx(
        0.6231882732061077, abs=1e-13
    )


@pytest.mark.parametrize(
    ("lens", "expected"),
    [
        (ct.TopK(1), 0.32525759511961055),
        (ct.TopK(2), 0.43275413883966557),
        (ct.Partition([[0, 1], [2, 3, 4]]), 0.5370973247696019),
    ],
)
def test_against_uu_sml_lenses(uu, lens, expected):
    bins = ct.UniformBins(10, closed="left", axes="first")  # their default
    assert estimate(*uu, ct.ECE(bins), lens) == pytest.approx(expected, abs=1e-13)


def test_against_uu_sml_bin_numbers():
    p = np.array([0, 0.5, 0.2, 0.7, 1, 0.95])
    bins = ct.UniformBins(5, closed="left")
    assert bins(p).tolist() == [0, 2, 1, 3, 4, 4]
    assert bins(np.column_stack([p, 1 - p])).tolist() == [0, 2, 1, 3, 4, 4]


@pytest.mark.parametrize(
    ("m", "expected"),
    [(1, 0.2995465892320518), (5, 0.7973223624831556), (10, 0.8400491314496861)],
)
def test_against_julia_grid(uu, m, expected):
    assert ct.ECE(ct.UniformBins(m, axes="all"))(*uu) == pytest.approx(expected, abs=1e-13)


def test_against_julia_zero_errors():
    half = np.array([[0, 1], [0.5, 0.5], [0.5, 0.5], [1, 0]])
    assert ct.ECE(10)(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1, 0])) == 0
    assert ct.ECE(10)(half, np.array([1, 1, 0, 0])) == 0


def test_against_julia_bin_index():
    assert (ct.UniformBins(10)(np.array([0, 0.1, 0.45, 1.0])) + 1).tolist() == [1, 1, 5, 10]
    pairs = np.array([[0.45, 0.55, 0.0], [0.42, 0.58, 0.0], [0.45, 0.61, 0.0]])
    cells = ct.UniformBins(10)(pairs)
    assert cells[0] == cells[1] != cells[2]  # (5, 6, 1) twice, then (5, 7, 1)


JULIA_POINTS = np.array(
    [[0.4, 0.1, 0.5], [0.5, 0.3, 0.2], [0.3, 0.7, 0.0], [0.1, 0.0, 0.9], [0.8, 0.1, 0.1]]
)


@pytest.mark.parametrize(
    ("m", "expected"),
    [
        (3, [[0], [1], [2], [3], [4]]),
        (2, [[0, 1], [2], [3], [4]]),
        (1, [[0, 1, 2, 3, 4]]),
    ],
)
def test_against_julia_uniform_cells(m, expected):
    assert ref.as_groups(ct.UniformBins(m)(JULIA_POINTS)) == expected


@pytest.mark.parametrize(
    ("min_size", "expected"),
    [
        (1, [[0], [1], [2], [3], [4]]),
        (2, [[0, 1, 3], [2, 4]]),
        (3, [[0, 1, 2, 3, 4]]),
    ],
)
def test_against_julia_median_variance(min_size, expected):
    assert ref.as_groups(ct.VarianceTree(min_size)(JULIA_POINTS)) == expected


def test_against_julia_median_variance_proportions():
    labels = np.array([0, 1, 2, 0, 1])  # proportions (.4, .4, .2) in the only cell
    expected = 0.5 * np.abs(np.array([0.4, 0.4, 0.2]) - JULIA_POINTS.mean(axis=0)).sum()
    assert ct.ECE(ct.VarianceTree(3))(JULIA_POINTS, labels) == pytest.approx(expected, abs=1e-15)


def test_against_julia_median_variance_three_points():
    points = JULIA_POINTS[:3]
    assert ref.as_groups(ct.VarianceTree(1)(points)) == [[0], [1], [2]]
    assert ref.as_groups(ct.VarianceTree(2)(points)) == [[0, 1, 2]]


def test_against_scikit_learn_docstring():
    # calibration_curve: three bins, frequencies 0, 0.5, 1 and means 0.2, 0.525, 0.85.
    p = np.array([0.1, 0.2, 0.3, 0.4, 0.65, 0.7, 0.8, 0.9, 1.0])
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    expected = (3 * 0.2 + 2 * 0.025 + 4 * 0.15) / 9
    assert estimate(p, y, ct.ECE(3), ct.OneVsRest(1)) == pytest.approx(expected, abs=1e-14)


def test_against_torchmetrics_docstring():
    p, y = np.array([0.25, 0.25, 0.55, 0.75, 0.75]), np.array([0, 0, 1, 1, 1])
    assert estimate(p, y, ct.ECE(2), ct.OneVsRest(1)) == pytest.approx(0.29, abs=1e-14)
    assert estimate(p, y, ct.MCE(2), ct.OneVsRest(1)) == pytest.approx(0.95 / 3, abs=1e-14)
    l2 = np.sqrt(estimate(p, y, ct.ECE(2, distance="sqeuclidean"), ct.OneVsRest(1)) / 2)
    assert l2 == pytest.approx(0.2918, abs=5e-5)


# --- real networks (only where the data folder is) ---------------------------------------------

TOP_LABEL_ECE = {
    "multiclass/cifar10_lenet5.npz": 0.1079,
    "multiclass/cifar100_lenet5.npz": 0.0149,
    "multiclass/cifar100_densenetbc100.npz": 0.1422,
    "multiclass/cifar10_densenet121.npz": 0.0410,
    "multiclass/cifar10_googlenet.npz": 0.0137,
    "multiclass/cifar10_vgg16_keras.npz": 0.0398,
    "multiclass/mnist_crossval.npz": 0.0030,
    "multiclass/news20_crossval.npz": 0.2011,
    "multiclass/mmlu_llama31_8b_instruct.npz": 0.1186,
    "multiclass/mmlu_llama31_8b_base.npz": 0.0395,
    "multiclass/sciq_verbal_gpt4o.npz": 0.0534,
    "multiclass/lsat_verbal_gpt4o.npz": 0.5333,
    "multiclass/hpc_cv.npz": 0.0712,
    "multiclass/fmi_rain_24h.npz": 0.0373,
    "multiclass/fmi_rain_48h.npz": 0.0358,
}

BINARY_ECE = {
    "toplabel/cifar10_densenet121_tcal.npz": 0.0202,
    "toplabel/cifar10_resnet50_tcal.npz": 0.0223,
    "toplabel/cifar100_resnet56_tcal.npz": 0.1520,
    "toplabel/cifar100_mobilenetv2_x1_4_tcal.npz": 0.1187,
    "toplabel/imagenet_resnet152_tcal.npz": 0.0499,
    "toplabel/cifar10_densenet40_markus93.npz": 0.0550,
    "binary/adult_random_forest.npz": 0.0465,
    "binary/icu_saps2.npz": 0.0426,
    "binary/segment_logistic.npz": 0.0549,
    "binary/coco_fasterrcnn_iou60.npz": 0.1926,
}

FORECAST_ECE = {
    ("precip_niamey_2016.csv", "Logistic", "obs"): 0.1119,
    ("precip_niamey_2016.csv", "EMOS", "obs"): 0.0843,
    ("precip_niamey_2016.csv", "ENS", "obs"): 0.2742,
    ("precip_niamey_2016.csv", "EPC", "obs"): 0.0610,
    ("solar_flares_c1.csv", "NOAA", "outcome"): 0.0533,
    ("solar_flares_c1.csv", "ASSA", "outcome"): 0.0511,
    ("solar_flares_c1.csv", "NICT", "outcome"): 0.1573,
    ("recidivism_broward.csv", "mturk", "outcome"): 0.1502,
    ("recidivism_broward.csv", "compas_linear", "outcome"): 0.1207,
    ("recidivism_broward.csv", "gbm", "outcome"): 0.0394,
    ("fivethirtyeight_nba_games.csv", "prob1", "prob1_outcome"): 0.0492,
}


def stored(data_dir, name):
    path = data_dir / name
    if not path.exists():
        pytest.skip(f"{name} is not in the data folder")
    with np.load(path, allow_pickle=False) as content:
        return {key: content[key] for key in content.files}


@pytest.mark.parametrize("name", TOP_LABEL_ECE)
def test_against_catalogued_top_label_errors(data_dir, name):
    content = stored(data_dir, name)
    logits = "logits" in content
    data = ct.Predictions.of(
        content["logits" if logits else "probs"], content["labels"], from_logits=logits
    )
    value = ct.ECE(ct.UniformBins(15))(ct.TopK(1)(data))
    assert value == pytest.approx(TOP_LABEL_ECE[name], abs=5.1e-5)


@pytest.mark.parametrize("name", BINARY_ECE)
def test_against_catalogued_binary_errors(data_dir, name):
    content = stored(data_dir, name)
    value = estimate(content["probs"], content["labels"], ct.ECE(15), ct.OneVsRest(1))
    assert value == pytest.approx(BINARY_ECE[name], abs=5.1e-5)


@pytest.mark.filterwarnings("ignore:all probabilities are 0 or 1")  # some forecast only yes and no
@pytest.mark.parametrize(("file", "column", "outcome"), FORECAST_ECE)
def test_against_catalogued_forecasts(data_dir, file, column, outcome):
    with (data_dir / "binary" / file).open() as lines:
        rows = [row for row in csv.DictReader(lines) if row[column].strip()]
    p = np.array([float(row[column]) for row in rows])
    y = np.array([float(row[outcome]) for row in rows])
    value = estimate(p[p >= 0], y[p >= 0], ct.ECE(15), ct.OneVsRest(1))
    assert value == pytest.approx(FORECAST_ECE[file, column, outcome], abs=5.1e-5)


def test_against_published_canonical_errors(data_dir):
    with (data_dir / "oracle" / "cifar10_canonical_published.csv").open() as file:
        published = list(csv.DictReader(file))
    assert len(published) >= 9
    for row in published:
        content = stored(data_dir, row["file"])
        probs, labels = content["probs"].astype(float), content["labels"].astype(int)
        grid, tree = ct.ECE(ct.UniformBins(10)), ct.ECE(ct.VarianceTree(100))
        expected = float(row["ECE_uniform"]), float(row["ECE_dynamic"])
        found = grid(seen(probs, labels)), tree(seen(probs, labels))
        assert found == pytest.approx(expected, abs=1e-8), row["file"]
        # Dividing float32 rows by their sums parts a few values that were tied at a median.
        data = ct.Predictions.of(content["probs"], content["labels"])
        found = grid(data), tree(data)
        assert found == pytest.approx(expected, abs=5e-7), row["file"]


def test_against_published_calzone_classes(data_dir):
    with (data_dir / "binary" / "calzone_simulated_misdata.csv").open() as file:
        rows = list(csv.DictReader(file))
    p = np.array([float(row["proba_1"]) for row in rows])
    y = np.array([float(row["label"]) for row in rows])
    assert estimate(p, y, ct.ECE(10), ct.OneVsRest(1)) == pytest.approx(
        0.08144644644456098, abs=1e-12
    )
    assert estimate(p, y, ct.MCE(10), ct.OneVsRest(1)) == pytest.approx(
        0.16811505300021426, abs=1e-12
    )
    result = ct.calibration_test(p, y, ct.ECE(10), lens=ct.OneVsRest(1))
    assert 0 < result.pvalue < 1e-9
