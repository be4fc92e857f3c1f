"""Values that others have published, or that were verified by two independent methods."""

import csv
from functools import partial

import numpy as np
import pytest
import scipy.stats
from conftest import STATISTICS, seen
from twins import basic as ref
from twins import families as families

import caltest as ct
from caltest import presets
from validation import agreement

BINARY = ref.TUTORIAL_BINARY, ref.TUTORIAL_BINARY_LABELS
MULTI = agreement.data("T")
TOP, ONE, WHOLE = ct.TopK(1), ct.OneVsRest(1), ct.Canonical()
SQUARED = partial(ct.ECE, distance="sqeuclidean")
LEFT = partial(ct.UniformBins, closed="left")
FIRST = partial(ct.UniformBins, closed="left", axes="first")  # the grid of uu-sml
WELL = agreement.data("W")
HALF = np.array([[0, 1], [0.5, 0.5], [0.5, 0.5], [1, 0]])
POINTS = np.array(  # of CalibrationErrors.jl
    [[0.4, 0.1, 0.5], [0.5, 0.3, 0.2], [0.3, 0.7, 0.0], [0.1, 0.0, 0.9], [0.8, 0.1, 0.1]]
)
SKLEARN = np.array([0.1, 0.2, 0.3, 0.4, 0.65, 0.7, 0.8, 0.9, 1.0]), np.arange(9) > 3
TORCH = np.array([0.25, 0.25, 0.55, 0.75, 0.75]), np.array([0, 0, 1, 1, 1])
MCGRAD = [0.6, 0.8, 0.2, 0.4]
TCAL = np.array([0.1, 0.2, 0.35, 0.6, 0.8, 0.95]), np.array([0, 1, 0, 1, 1, 1])


def estimate(probs, labels, statistic, lens):
    return statistic(lens(ct.Predictions.of(probs, labels)))


def overlap(bracket, low, high):
    """Whether two brackets meet, ours being no wider than promised (1 %)."""
    return bracket[0] <= high and low <= bracket[1] and bracket[1] - bracket[0] <= 0.012 * high


def stream(seed, *names):
    """Arguments drawn in turn from the generator of another program's tests."""
    state = np.random.RandomState(seed)
    draw = {
        "p": lambda: state.uniform(size=100),
        "y": lambda: state.choice([0, 1], 100),
        "probs": lambda: state.dirichlet(np.ones(5), 20),
        "labels": lambda: state.randint(0, 5, 20),
    }
    return {name: draw[name]() for name in names}


UU = tuple(stream(1234, "probs", "labels").values())
MAPIE = tuple(stream(1, "y", "p").values())[::-1]
(SCORES,) = stream(1, "p").values()
CALIBRATED = SCORES, (np.random.RandomState(1).uniform(size=200)[100:] <= SCORES).astype(int)
TRIPLE = (
    np.array(
        [
            [0.42610548, 0.41748077, 0.15641374], [0.44766216, 0.47721294, 0.0751249],
            [0.1862702, 0.15139402, 0.66233578], [0.05753544, 0.8561222, 0.08634236],
            [0.18697925, 0.29836466, 0.51465609],
        ]
    ),
    np.array([0, 1, 2, 1, 2]),
)  # fmt: skip
PAIR = np.array([0.91, 0.32, 0.66, 0.67, 0.57, 0.98, 0.41, 0.19]), [1, 0, 1, 1, 0, 1, 0, 0]


def nixon(metric, bins, threshold=0.01):
    """The authors' code."""
    return presets.nixon2019(metric, bins, threshold=threshold, variant="nixon").statistic


def nixon_bins(probs):
    edges = families.nixon_edges(probs[:, 0].tolist(), 5)
    return np.array([families.digit(x, edges) for x in probs[:, 0]])


#: Data, lens, statistic, its published value and how far it may be off.
ESTIMATES = [
    # the ECE tutorial
    *((BINARY, TOP, ct.ECE(m), x / 9, 1e-14) for m, x in ((5, 0.94), (10, 1.58), (15, 2.96))),
    *((BINARY, TOP, ct.ECE(LEFT(m)), x / 9, 1e-14) for m, x in ((5, 0.94), (10, 2.12), (15, 2.96))),
    (MULTI, TOP, ct.ECE(2), 0.212, 1e-14),
    (MULTI, TOP, ct.ECE(3), 0.192, 1e-14),
    (MULTI, TOP, ct.ECE(4), 0.212, 1e-14),
    (MULTI, TOP, ct.ECE(5), 0.132, 1e-14),
    (MULTI, TOP, ct.ECE(10), 0.312, 1e-14),
    (MULTI, TOP, ct.ECE(15), 0.312, 1e-14),
    (MULTI, TOP, ct.ECE(LEFT(3)), 0.192, 1e-14),
    (MULTI, TOP, ct.ECE(LEFT(5)), 0.212, 1e-14),
    # calzone; without its smallest prediction, which it loses: 0.00873397 and 0.00945803
    (WELL, ONE, ct.ECE(ct.QuantileBins(10)), 0.00873222, 2e-5),
    (WELL, TOP, ct.ECE(ct.QuantileBins(10)), 0.00955612, 2e-5),
    (WELL, ONE, ct.BrierScore(), 0.1251856656, 1e-10),
    (WELL, ONE, ct.LogScore(), 0.3856328095, 1e-10),
    (WELL, ONE, ct.ScoreGap(), 0.3763269161877356, 1e-11),
    (WELL, ONE, ct.KolmogorovSmirnov(scaled=True), 1.260203322378282, 1e-11),
    (WELL, ONE, ct.Kuiper(scaled=True), 1.5647015260021386, 1e-11),
    (WELL, ONE, ct.ICI(span=0.5, delta=0.001), 0.00558856942568957, 1e-12),
    # T-Cal and Kumar et al.
    (WELL, ONE, ct.DebiasedL2(10), 5.431794e-05, 6e-11),
    (WELL, ONE, ct.DebiasedL2(10, estimator="tcal"), 5.413033e-05, 6e-11),
    (WELL, ONE, ct.DebiasedL2(15), -1.854988e-04, 6e-11),
    (WELL, ONE, ct.DebiasedL2(15, estimator="tcal"), -1.847517e-04, 6e-11),
    (WELL, TOP, ct.DebiasedL2(10), 1.016686e-04, 6e-11),
    (WELL, TOP, ct.DebiasedL2(10, estimator="tcal"), 1.015006e-04, 6e-11),
    (WELL, ONE, ct.DebiasedL2(10, estimator="kumar"), 5.412142e-05, 6e-11),
    (WELL, ONE, ct.DebiasedL2(15, estimator="kumar"), -1.861306e-04, 6e-11),
    (WELL, TOP, ct.DebiasedL2(10, estimator="kumar"), 1.015922e-04, 6e-11),
    ((WELL[0][:300], WELL[1][:300]), ONE, ct.DebiasedL2(10), -0.002103737507764719, 1e-14),
    (TCAL, ONE, ct.DebiasedL2(2, estimator="tcal"), -0.0238889, 1e-7),
    (TCAL, ONE, ct.DebiasedL2(LEFT(2), estimator="tcal"), -0.0238889, 1e-7),
    # uu-sml: whole vectors, trees, lenses; its scores lack the 1 of ours, but for the log score
    *((UU, WHOLE, ct.ECE(FIRST(m)), x, 1e-13)
      for m, x in ((1, 0.2995465892320518), (5, 0.7140210460100205), (10, 0.8400491314496861))),
    *((UU, WHOLE, ct.ECE(FIRST(m), distance="l1"), 2 * x, 1e-13)
      for m, x in ((1, 0.2995465892320518), (5, 0.7140210460100205), (10, 0.8400491314496861))),
    *((UU, WHOLE, ct.ECE(FIRST(m), distance="l2"), x, 1e-13)
      for m, x in ((1, 0.3248487716255848), (5, 0.7988805666899346), (10, 0.9877669640131223))),
    (UU, WHOLE, ct.ECE(ct.VarianceTree(5, split="mean", stop="node")), 0.6231882732061077, 1e-13),
    (UU, WHOLE, ct.ECE(ct.VarianceTree(5, split="mean")), 0.6231882732061077, 1e-13),
    (UU, WHOLE, ct.ECE(ct.VarianceTree(5, stop="node")), 0.6531080320331059, 1e-13),
    (UU, TOP, ct.ECE(FIRST(10)), 0.32525759511961055, 1e-13),
    (UU, ct.TopK(2), ct.ECE(FIRST(10)), 0.43275413883966557, 1e-13),
    (UU, ct.Partition([[0, 1], [2, 3, 4]]), ct.ECE(FIRST(10)), 0.5370973247696019, 1e-13),
    (UU, WHOLE, ct.BrierScore(), 1 - 0.005322001032383283, 1e-12),
    (UU, WHOLE, ct.LogScore(), 2.3424792408429744, 1e-12),
    (UU, WHOLE, ct.SphericalScore(), 1 - 0.3019243424723797, 1e-12),
    # CalibrationErrors.jl
    (UU, WHOLE, ct.ECE(1), 0.2995465892320518, 1e-13),
    (UU, WHOLE, ct.ECE(5), 0.7973223624831556, 1e-13),
    (UU, WHOLE, ct.ECE(10), 0.8400491314496861, 1e-13),
    ((np.eye(2)[::-1], np.array([1, 0])), WHOLE, ct.ECE(10), 0.0, 0.0),
    ((HALF, np.array([1, 1, 0, 0])), WHOLE, ct.ECE(10), 0.0, 0.0),
    # the examples of scikit-learn's and torchmetrics' documentation
    (SKLEARN, ONE, ct.ECE(3), (3 * 0.2 + 2 * 0.025 + 4 * 0.15) / 9, 1e-14),
    (TORCH, ONE, ct.ECE(2), 0.29, 1e-14),
    (TORCH, ONE, ct.MCE(2), 0.95 / 3, 1e-14),
    (TORCH, ONE, ct.RMSCE(ct.UniformBins(2)), 0.2918, 5e-5),
    # MCGrad
    ((MCGRAD, [0, 1, 0, 1]), ONE, ct.Kuiper(scaled=True), 0.67082, 5e-6),
    ((MCGRAD, [1, 1, 1, 1]), ONE, ct.Kuiper(scaled=True), 2.23607, 5e-6),
    ((MCGRAD, [0, 1, 0, 0]), ONE, ct.Kuiper(scaled=True), 1.34164, 5e-6),
    # MAPIE; its 5.354395 for Kuiper leaves out the origin of the walk
    (MAPIE, ONE, ct.KolmogorovSmirnov(scaled=True), 5.607741, 1e-6),
    (MAPIE, ONE, ct.Kuiper(scaled=True), 5.607740505675768, 1e-12),
    (CALIBRATED, ONE, ct.ScoreGap(), 0.9352421307896744, 1e-12),
    (CALIBRATED, ONE, ct.Spiegelhalter(), 0.9352421307896744, 1e-12),
    # the code of Nixon et al.
    (MULTI, WHOLE, nixon("sce", 5), 0.1676, 1e-10),
    (MULTI, WHOLE, nixon("ace", 5), 0.176, 1e-10),
    (MULTI, WHOLE, nixon("ace", 3), 0.1296, 1e-10),
    (MULTI, WHOLE, nixon("tace", 3, 0.01), 0.1343555556, 1e-10),
    (MULTI, WHOLE, nixon("tace", 3, 0.1), 0.2001523810, 1e-10),
    (BINARY, WHOLE, nixon("sce", 5), 0.3222222222, 1e-10),
    (BINARY, WHOLE, ct.SCE(5), 0.3222222222, 1e-10),
    (BINARY, WHOLE, nixon("ace", 5), 0.2777777778, 1e-10),
    (BINARY, WHOLE, nixon("ace", 3), 0.1422222222, 1e-10),
    (BINARY, WHOLE, ct.ACE(3), 0.1422222222, 1e-10),  # nine rows, no ties: all rules agree
    (BINARY, WHOLE, nixon("tace", 3, 0.1), 0.1973611111, 1e-10),
    (MULTI, TOP, ct.RMSCE(nixon_bins), 0.1750095236, 1e-10),
    (BINARY, TOP, ct.RMSCE(nixon_bins), 0.2364083097, 1e-10),
    (TRIPLE, TOP, ct.ECE(30), 0.412713502, 1e-8),
    (PAIR, TOP, ct.ECE(30), 0.18125, 1e-12),
]  # fmt: skip


ESTIMATES += [
    (data, lens, row.statistic, value, tolerance)
    for row in STATISTICS
    for data, lens, value, tolerance in row.published
]


@pytest.mark.parametrize(("data", "lens", "statistic", "expected", "tolerance"), ESTIMATES)
def test_estimates(data, lens, statistic, expected, tolerance):
    assert estimate(*data, statistic, lens) == pytest.approx(expected, rel=0.0, abs=tolerance)


@pytest.mark.parametrize(
    ("data", "lens", "statistic", "value", "p", "mean"),
    [  # all 2⁹ or 2¹⁰ vectors of labels (of hits of the top class), listed by other code
        (BINARY, TOP, ct.ECE(5), 0.94 / 9, 0.8675084905, 0.2014172889),
        (BINARY, TOP, ct.MCE(5), 0.2, 0.7771847455, 0.3700065169),
        (BINARY, TOP, SQUARED(5), 2 * 0.0155194444, 0.8675084905, 2 * 0.0635657407),
        (BINARY, ONE, ct.ECE(5), 0.3222222222, 0.2325328593, 0.2596248889),
        (BINARY, ONE, SQUARED(5), 2 * 0.1153388889, 0.3372507684, None),
        (BINARY, ONE, ct.KolmogorovSmirnov(), 0.0844444444, 0.8685400513, None),
        (BINARY, ONE, ct.Kuiper(), 0.1133333333, 0.8897448069, None),
        (MULTI, TOP, ct.ECE(3), 0.192, 0.60508576, 0.201548),
        (MULTI, TOP, ct.ECE(5), 0.132, 0.8367688, 0.209154),
    ],
)
@pytest.mark.parametrize("null", ["auto", "exact"])
def test_against_enumerated_tutorial_p(data, lens, statistic, value, p, mean, null):
    result = ct.calibration_test(*data, statistic, lens=lens, null=null)
    assert (result.null, result.n_resamples) == ("exact", 0)
    assert result.estimate == pytest.approx(value, abs=2e-10)
    low, high = result.pvalue_bracket
    assert low - 1e-8 <= p <= high + 1e-8
    assert high - low <= 0.0101 * high
    assert result.pvalue == high
    if mean is not None:
        assert result.null_mean == pytest.approx(mean, abs=5e-7)


@pytest.mark.parametrize(
    ("m", "value", "p", "mean"),
    [(1, 0.247, 0.3797316811, 0.2087615238), (2, 0.417, 0.2170970909, 0.3506738541)],
)
def test_against_canonical_tutorial_p(m, value, p, mean):
    # The printed p and mean are those of the slow dictionary law as well.
    slow = ref.summary(*ref.vector_law(MULTI[0], ref.uniform_cells(MULTI[0], m)), value)
    assert slow[:2] == pytest.approx((p, mean), abs=1e-9)
    run = {"lens": WHOLE, "null": ct.RedrawLabels(), "n_resamples": 20_000, "rng": 1}
    result = ct.calibration_test(*MULTI, ct.ECE(ct.UniformBins(m)), **run)
    assert result.estimate == pytest.approx(value, abs=1e-14)
    assert abs(result.pvalue - p) < 4.5 * np.sqrt(p * (1 - p) / 20_000)
    assert abs(result.null_mean - mean) < 4.5 * slow[2] / np.sqrt(20_000)
    assert result.null_std == pytest.approx(slow[2], rel=0.03)


def test_against_published_weather():
    # P(|X − 24| ≥ 6) for X ~ binomial(30, .8), as binomtest has it below
    result = ct.calibration_test([0.8] * 30, [1] * 18 + [0] * 12, lens=ct.OneVsRest(1))
    assert result.estimate == pytest.approx(0.2, abs=1e-15)
    assert result.pvalue == pytest.approx(0.010731062, abs=5e-10)
    oracle = scipy.stats.binomtest(18, 30, 0.8).pvalue
    assert result.pvalue_bracket == pytest.approx((oracle, oracle), abs=1e-12)


def calzone(data_dir, name):
    path = data_dir / "binary" / f"calzone_simulated_{name}.csv"
    table = np.genfromtxt(path, delimiter=",", names=True)
    return table["proba_1"], table["label"].astype(int)


@pytest.mark.parametrize(
    ("statistic", "expected", "tolerance"),
    [
        # calzone-tool 0.1.0 on its simulated_misdata.csv
        (ct.ECE(10), 0.08144644644456098, 1e-12),
        (ct.MCE(10), 0.16811505300021426, 1e-12),
        (ct.Spiegelhalter(), 29.62552957462551, 1e-10),
        (ct.HosmerLemeshow(ct.UniformBins(10)), 1027.9402186034245, 1e-9),
        (ct.ICI(span=0.5, delta=0.001), 0.07356445428053172, 1e-11),
        # relplot 1.0.3, smECE(p, y)
        (ct.presets.relplot(task="binary"), 0.08650801122963021, 1e-14),
        # by other code from the formulas of Arrieta-Ibarra et al. (2022)
        (ct.KolmogorovSmirnov(scaled=True), 9.996642893242793, 1e-10),
        (ct.Kuiper(scaled=True), 11.421681716982144, 1e-10),
        # as in CORP below
        (ct.CORP(), 0.01102819373, 6e-12),
        (ct.BrierScore(), 0.13471290316, 6e-12),
    ],
)
def test_against_calzone_misdata(data_dir, statistic, expected, tolerance):
    assert statistic(*calzone(data_dir, "misdata")) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(
    ("statistic", "lens", "low", "high"),
    [  # laws of the cells' counts, convolved by other code on grids rounded down and up
        (ct.ECE(10), ONE, 0.526140, 0.526603),
        (ct.ECE(15), ONE, 0.877989, 0.878443),
        (ct.ECE(10), TOP, 0.366409, 0.367920),
        (ct.ECE(15), TOP, 0.734588, 0.735329),
        (SQUARED(10), ONE, 0.304559, 0.305330),
        (ct.MCE(10), ONE, 0.3174728595, 0.3174728595),
        (ct.MCE(15), ONE, 0.6492379222, 0.6492379222),
        (ct.MCE(10), TOP, 0.0922947187, 0.0922947187),
        (ct.MCE(15), TOP, 0.2924384429, 0.2924384429),
    ],
)
def test_against_convolved_calzone_p(statistic, lens, low, high):
    bracket = ct.calibration_test(*WELL, statistic, lens=lens).pvalue_bracket
    assert overlap(bracket, low, high) or bracket == pytest.approx((low, high), abs=1e-9)
    if low == high:
        assert bracket == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize(
    ("m", "lens", "mean", "deviation"),
    [  # mean and sd of the laws above, from binomial convolutions cell by cell
        (10, ONE, 0.0124516830, 0.0030024336),
        (15, ONE, 0.0152354007, None),
        (10, TOP, 0.0088020315, None),
    ],
)
def test_against_calzone_noise_floor(m, lens, mean, deviation):
    result = ct.calibration_test(*WELL, ct.ECE(m), lens=lens)
    assert result.null_mean == pytest.approx(mean, abs=1e-9)
    assert deviation is None or result.null_std == pytest.approx(deviation, abs=1e-9)


@pytest.mark.filterwarnings("ignore::caltest.LimitLawWarning")  # df=8 is compared with
@pytest.mark.parametrize(
    ("statistic", "value", "pvalue"),
    [
        # by two other programs, from the formulas: score test and likelihood ratio by Newton's
        # steps, Stallard's variance, and Brownian laws by their series
        (ct.CoxScore(), 1.3108622009, 0.5192181792),
        (ct.CoxLR(), 1.3056862347, 0.5205636473),
        (ct.HosmerLemeshow(ct.UniformBins(10), variance="exact"), 8.9220982053, 0.5395124029),
        (ct.KolmogorovSmirnov(), None, 0.4148791607),
        (ct.Kuiper(), None, 0.4566308201),
        # calzone-tool 0.1.0, which takes two degrees of freedom off; then df = 10
        (ct.HosmerLemeshow(ct.UniformBins(10), df=8), 8.884991559088098, 0.35209071874348785),
        (ct.HosmerLemeshow(ct.UniformBins(10)), 8.884991559088098, 0.5430520576),
        (ct.Spiegelhalter(), 0.3763269161877356, 0.7066738713391099),
    ],
)
def test_against_calzone_limit_laws(statistic, value, pvalue):
    result = ct.calibration_test(*WELL, statistic, lens=ONE, null="asymptotic")
    assert value is None or result.estimate == pytest.approx(value, rel=1e-9)
    assert result.pvalue == pytest.approx(pvalue, rel=1e-8)


def test_against_mapie_p():
    result = ct.calibration_test(*CALIBRATED, ct.Spiegelhalter(), lens=ONE, null="asymptotic")
    assert result.pvalue == pytest.approx(2 * 0.174832, abs=2e-6)  # printed one-sided


#: Data, prediction, mean score, miscalibration, discrimination and uncertainty: the first two by
#: other code (pooled adjacent violators), the others as printed.
CORP = [
    ("welldata", None, (0.12518566555, 0.00150095612, 0.12630085057, 0.24998556), 6e-12),
    ("misdata", None, (0.13471290316, 0.01102819373, 0.12630085057, 0.24998556), 6e-12),
    # Dimitriadis, Gneiting & Jordan (2021)
    ("niamey", "Logistic", (0.205746, 0.017076, 0.055541, 0.244211), 5e-7),
    ("niamey", "EMOS", (0.232025, 0.018283, 0.030469, 0.244211), 5e-7),
    ("niamey", "ENS", (0.266168, 0.066072, 0.044115, 0.244211), 5e-7),
    ("niamey", "EPC", (0.234282, 0.022350, 0.032279, 0.244211), 5e-7),
]


@pytest.mark.parametrize(("name", "column", "expected", "tolerance"), CORP)
def test_against_corp(data_dir, name, column, expected, tolerance):
    if column is None:
        data = calzone(data_dir, name)
    else:
        with (data_dir / "binary" / "precip_niamey_2016.csv").open() as file:
            rows = list(csv.DictReader(file))
        data = [float(row[column]) for row in rows], [int(row["obs"]) for row in rows]
    d = ct.corp_decomposition(*data)
    found = (d.mean_score, d.miscalibration, d.discrimination, d.uncertainty)
    assert found == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(
    ("name", "grouped", "slope", "low", "high", "intercept"),
    [  # calzone-tool 0.1.0 on its two files
        ("welldata", 3.694947603203135, 0.994249960703559, 0.93729, 1.05121, -0.04497652310964179),
        ("misdata", 1857.5843112885273, 0.4972021148608723, 0.46873, 0.52567, -0.04497703181369989),
    ],
)
def test_against_calzone_regressions(data_dir, name, grouped, slope, low, high, intercept):
    p, y = calzone(data_dir, name)
    # Its groups of equal count are (lo, hi] between quantiles: the smallest value is lost.
    edges, rest = np.quantile(p, np.linspace(0, 1, 11))[1:-1], np.argsort(p)[1:]
    groups = ct.HosmerLemeshow(lambda probs: np.searchsorted(edges, probs[:, 0], side="left"))
    assert groups(p[rest], y[rest]) == pytest.approx(grouped, rel=1e-10)
    answer = ct.cox_recalibration(np.clip(p, 1e-7, 1 - 1e-7), y)  # where it cuts probabilities off
    assert (answer.slope, answer.intercept) == pytest.approx((slope, intercept), rel=1e-10)
    assert answer.slope_interval == pytest.approx((low, high), abs=6e-6)
    # The same program, for both files.
    assert answer.intercept_interval == pytest.approx((-0.12349, 0.03353), abs=6e-6)


def test_against_published_mixture_error():
    # 0.56 in Vaicenavicius et al. (2019); by quadrature, split where the difference is 0.
    # The other order of the classes, an easy mistake, would give the second number.
    for theta, expected in ((1, 0.5637511405526426), (-1, 0.18412790739195806)):
        model = ct.examples.GaussianMixture(theta, theta)
        assert model.expected_miscalibration() == pytest.approx(expected, abs=1e-10)


def test_against_published_mixture_deviations():
    # σ(−2x) − p at x = logit p − 1, by hand from the two normal densities
    p = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
    expected = [0.9496, 0.8983, 0.7916, 0.6757, 0.5433, 0.3808, 0.1666, -0.1242, -0.4841, -0.8164]
    curve = ct.examples.GaussianMixture(1, 1).calibration_function
    assert curve(p) - p == pytest.approx([*expected, -0.9299], abs=6e-5)
    crossing = 1 / (1 + np.exp(-2 / 3))
    assert curve(crossing) == pytest.approx(crossing, abs=1e-14)


def test_against_published_six_points_canonical():
    six = ct.examples.SixPoints()
    rows = [ref.DISTANCES["tv"](r, g) for r, g in zip(six.truth, six.probs, strict=True)]
    assert rows == pytest.approx(np.full(6, 0.1), abs=1e-12)
    errors = [six.expected_miscalibration(*d) for d in ((), ("sqeuclidean",), ("l2",))]
    assert errors == pytest.approx([0.1, 0.02, np.sqrt(0.02)], abs=1e-12)
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
    errors = [s(data) for s in (ct.ECE(10), ct.MCE(10), ct.ECE(10, distance="sqeuclidean"))]
    assert errors == pytest.approx([0.1, 0.1, 0.02], abs=1e-12)


@pytest.mark.parametrize(
    ("bins", "n", "expected"),
    [
        (ct.UniformBins(3), 5, [[0], [1], [2], [3], [4]]),
        (ct.UniformBins(2), 5, [[0, 1], [2], [3], [4]]),
        (ct.UniformBins(1), 5, [[0, 1, 2, 3, 4]]),
        (ct.VarianceTree(1), 5, [[0], [1], [2], [3], [4]]),
        (ct.VarianceTree(2), 5, [[0, 1, 3], [2, 4]]),
        (ct.VarianceTree(3), 5, [[0, 1, 2, 3, 4]]),
        (ct.VarianceTree(1), 3, [[0], [1], [2]]),
        (ct.VarianceTree(2), 3, [[0, 1, 2]]),
    ],
)
def test_against_julia_cells(bins, n, expected):
    assert ref.as_groups(bins(POINTS[:n])) == expected


def stored(data_dir, name):
    path = data_dir / name
    if not path.exists():
        pytest.skip(f"{name} is not in the data folder")
    with np.load(path, allow_pickle=False) as content:
        return {key: content[key] for key in content.files}


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
