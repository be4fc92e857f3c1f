"""Wrong and doubtful calls: refused by one sentence with row and value, or answered rightly.

A refusal must come from a ``raise`` of caltest, be one line, and say what the table says. Inputs
are tried in every verb; the other tables hold one call a line, with what is said behind the arrow.
"""

import linecache
import re
import traceback
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import caltest as ct
from caltest.statistics.isotonic import isotonic_fit
from caltest.statistics.smooth import smooth_curve

RNG = np.random.default_rng(0)
N = 12
p, y = RNG.random(N).round(3), np.arange(N) % 2
P, Y = RNG.dirichlet([1, 1, 1], N), np.arange(N) % 3
D = ct.Predictions.of(p, y)
SURE, THIRDS = (np.array([0.0, 1.0]), np.array([0, 1])), np.full((N, 3), 1 / 3)
FITS = smooth_curve, isotonic_fit
CLUSTERS, SLOPE = np.arange(N) // 2, ct.planning.Slope(0.4)
CURVE = ct.reliability_curve(D)
FITTED = ct.recalibration.PlattScaling().fit(p, y)
RUN = {"n_resamples": 39, "rng": 0}
GRADES = {"n": [9], "events": [1], "probability": [0.1]}


def holding(values, value, row=4):
    """Return values one of which is another."""
    changed = np.array(values, dtype=object if isinstance(value, str) else float)
    changed[row] = value
    return changed


def complaint(call, words):
    """Return what is wrong with the refusal of a call, or nothing."""
    try:
        call()
    except (TypeError, ValueError) as error:
        *_, last = traceback.extract_tb(error.__traceback__)
        source = linecache.getline(last.filename, last.lineno).strip()
        own = "caltest" in Path(last.filename).parts and source.startswith("raise")
        message = str(error)
        if own and message.isprintable() and len(message) < 500 and re.search(words, message):
            return ""
        return f"{source} in {last.filename} says {message!r}, not {words!r}"
    return "it is accepted"


def complaints(calls):
    """Return what is wrong with the refusals of calls, by name."""
    found = {name: complaint(call, words) for name, (call, words) in calls.items()}
    return {name: wrong for name, wrong in found.items() if wrong}


VERBS = {
    "calibration_test": lambda a, b, **o: ct.calibration_test(a, b, **RUN, **o),
    "joint_test": lambda a, b, **o: ct.joint_test(a, b, pairs=[(ct.ECE(), None)], **RUN, **o),
    "confidence_interval": lambda a, b, **o: ct.confidence_interval(a, b, **RUN, **o),
    "compare": lambda a, b, **o: ct.compare(a, a, b, **RUN, **o),
    "audit": lambda a, b, **o: ct.audit(a, b, n_resamples=199, rng=0, **o),
    "cox_recalibration": ct.cox_recalibration,
    "corp_decomposition": ct.corp_decomposition,
    "brier_decomposition": ct.brier_decomposition,
    "reliability_curve": lambda a, b, **o: ct.reliability_curve(a, b, **RUN, **o),
    "reliability_difference": lambda a, b, **o: ct.reliability_difference(a, a, b, **o),
    "fit": ct.recalibration.PlattScaling().fit,
    "statistic": ct.ECE(),
    "preset": ct.presets.sklearn(),
}
#: Inputs that every verb refuses: probabilities, labels, what is said.
INPUTS = {
    "path": ("f.csv", y, "probs is 'f.csv', not an array: read a file with read_predictions"),
    "sparse": (scipy.sparse.csr_array(P), Y, r"it is sparse: pass probs.toarray\(\)"),
    "generator": ((v for v in p), y, r"probs is a generator.*pass list\(…\) of it"),
    "model": (type("Model", (), {"predict_proba": len})(), y, r"model.predict_proba\(X\)"),
    "nothing": (None, y, "probs is None"),
    "a number": (0.3, 1, "probs is 0.3, not an array"),
    "no labels": (p, None, "labels are missing"),
    "empty": ([], [], "probs is empty"),
    "three axes": (np.zeros((2, 2, 2)), [0, 1], r"its shape is \(2, 2, 2\)"),
    "ragged": ([[0.5, 0.5], [1.0]], [0, 1], "all rows have the same length"),
    "complex": (p + 0j, y, "real numbers, not complex128"),
    "words": (["high"] * N, y, "probs: row 0 is 'high', which is not a number"),
    "a word": (holding(p, "high"), y, "probs: row 4 is 'high'"),
    "percent": (100 * p, y, r"probs: row 0 is 63\.7.*pass probs / 100"),
    "logits": (RNG.normal(0, 3, N), y, r"row 0 is .*logits: apply the logistic function, or pass"),
    "logs": (np.log(P), Y, "log-probabilities: apply exp"),
    "nan": (holding(p, np.nan), y, "probs: row 4 is nan"),
    "negative": (holding(p, -0.2), y, r"probs: row 4 is -0\.2, outside \[0, 1\]"),
    "above 1": (holding(p, 1.2), y, r"probs: row 4 is 1\.2, outside \[0, 1\]"),
    "sums": (1.1 * P, Y, r"probs: row 0 sums to 1\.1 \(12 of 12"),
    "masked": (np.ma.masked_array(p, p > 0.9), y, "masked array"),
    "one class": (np.ones((N, 1)), y, "a single column of ones"),
    "lengths": (p, y[:-1], "probs has 12 rows but labels has 11"),
    "swapped": (y, p, "look swapped"),
    "half labels": (p, y + 0.5, r"labels: row 0 is 0\.5"),
    "infinite": (
        holding(p, np.inf),
        y,
        r"row 4 is inf .* in all\): repair or leave out these rows",
    ),
    "missing label": (p, holding(y, np.nan), "labels: row 4 is nan"),
    "labels from 1": (P, Y + 1, "labels: row 2 is 3.*run from 1: pass classes=range"),
    "signs": (p, 2 * y - 1, "labels: row 0 is -1.*pass labels > 0"),
    "third label": (p, Y, "labels: row 2 is 2, but with 2 classes"),
    "text labels": (p, ["a", "b"] * 6, "labels are text.*pass classes="),
    "no outcomes": (p, [None] * N, "labels: row 0 is 'None'"),
    "sparse labels": (P, scipy.sparse.csr_array(np.eye(3)[Y]), r"labels.toarray\(\)"),
    "not one-hot": (P, np.ones((N, 3)), r"labels: row 0 is \[1.0, .*\], which is not one-hot"),
    "one-hot width": (P, np.eye(4)[Y], "one-hot with 4 columns"),
}
#: Facts that every verb refuses.
FACTS = {
    "n_bins": ({"n_bins": 10}, r"no argument 'n_bins': bins belong to the statistic"),
    "strategy": ({"strategy": "quantile"}, r"name the binning: .*QuantileBins\(10\)"),
    "sample_weight": ({"sample_weight": p}, "no argument 'sample_weight': did you mean weights=?"),
    "random_state": ({"random_state": 0}, "no argument 'random_state': use rng="),
    "n_jobs": ({"n_jobs": 2}, "no argument 'n_jobs': use workers="),
    "y_true": ({"y_true": y}, "no argument 'y_true': probabilities come first"),
    "nonsense": ({"nonsense": 1}, "no argument 'nonsense'$"),
    "pos_label": ({"pos_label": 7}, "pos_label is '7', but the labels are '0', '1'"),
    "set of classes": ({"classes": {0, 1}}, "classes is a set.*it has no order"),
    "text of classes": ({"classes": "ab"}, "classes is 'ab', not an array"),
    "class twice": ({"classes": [1, 1]}, "holds a name twice: 1, 1"),
    "three names": ({"classes": [0, 1, 2]}, "3 names but probs describes 2"),
    "negative weight": ({"weights": p - 0.9}, r"weights: row 0 is -0\.263"),
    "few weights": ({"weights": p[:3]}, "each of the 12 rows"),
    "no weight": ({"weights": 0 * p}, "weights are all 0"),
    "column": ({"weights": "w"}, "weights is 'w', .*names are for columns"),
    "missing cluster": ({"clusters": holding(y, np.nan)}, "clusters: row 4 has no value"),
    "groups by dict": ({"by": {"a": 1}}, r"by\['a'\] must hold one value for each of the 12 rows"),
    "logits in words": ({"from_logits": "yes"}, "from_logits must be True or False, not 'yes'"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_inputs_and_facts(verb):
    ask = VERBS[verb]
    inputs = {name: (partial(ask, a, b), words) for name, (a, b, words) in INPUTS.items()}
    facts = {name: (partial(ask, p, y, **more), words) for name, (more, words) in FACTS.items()}
    assert (complaints(inputs), complaints(facts)) == ({}, {})


def confident(rows):
    """Return predictions of three classes, every one of which comes true."""
    probs = np.tile([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1]], (rows // 2, 1))
    return probs, probs.argmax(axis=1)


DOUBTFUL = {
    "hard classes": ((np.tile([0.0, 1.0], 6), y[::-1]), {}, "all probabilities are 0 or 1"),
    "hard rows": ((np.eye(3)[Y], Y[::-1]), {}, "all probabilities are 0 or 1"),
    "predicted labels": (confident(40), {}, "every label is .* where 14 misses of 40"),
    "no logits": ((p, y), {"from_logits": True}, "look like probabilities already"),
}


@pytest.mark.parametrize("case", DOUBTFUL)
@pytest.mark.parametrize("verb", ["calibration_test", "fit", "statistic"])
def test_doubtful_input_is_warned_of(verb, case):
    given, facts, words = DOUBTFUL[case]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with suppress(ct.errors.DoubtfulInputError):  # tests ask about some of them as well
            VERBS[verb](*given, **facts)
    assert any(re.search(words, str(w.message)) for w in said)
    assert {w.category for w in said} <= {ct.DoubtfulInputWarning, ct.DegenerateDataWarning}


@pytest.mark.parametrize(
    ("probs", "labels", "facts"),
    [
        (list(map(str, p)), y, {}),
        (p.tolist(), y.tolist(), {}),
        (np.column_stack([1 - p, p]), np.eye(2)[y], {}),
        (p[:, None], y[:, None], {}),
        (p, y == 1, {}),
        (p, np.array(["no", "yes"])[y], {"classes": ["no", "yes"]}),
        (p, np.array(["no", "yes"])[y], {"pos_label": "yes"}),
        (p, 3 + 4 * y, {"classes": [3, 7]}),
        (1 - p, y, {"pos_label": 0}),
        (np.log(p) - np.log1p(-p), y, {"from_logits": True}),
        (p, y.astype(np.float32), {"weights": np.ones(N)}),
        (p, y, {"clusters": np.arange(N)}),
    ],
)
@pytest.mark.parametrize("verb", ["calibration_test", "statistic", "confidence_interval"])
def test_other_ways_to_say_the_same(verb, probs, labels, facts):
    expected = float(VERBS[verb](p, y))
    assert float(VERBS[verb](probs, labels, **facts)) == pytest.approx(expected, abs=1e-9)


def test_few_rows_are_not_doubted():
    ct.ECE()([0.0, 1.0, 1.0], [0, 1, 1])
    ct.ECE()([0.3, 0.6, 0.7], [0, 1, 1], from_logits=True)
    ct.ECE()(np.full(200, 0.05), np.zeros(200, dtype=int))  # no event among rare ones


def asked(**options):
    return ct.calibration_test(p, y, **options)


def interval(**options):
    return ct.confidence_interval(p, y, **options)


def compared(*models, **options):
    return ct.compare(*models, **RUN, **options)


def several(*models, **options):
    return ct.compare_models(*models, **RUN, **options)


def audit(**options):
    return ct.audit(p, y, **{"n_resamples": 199, **options})


def joint(pairs, **options):
    return ct.joint_test(p, y, pairs=pairs, **{**RUN, **options})


def gate(**options):
    return ct.gate(p, y, **options)


def close(**options):
    return ct.equivalence_test(p, y, **{"tolerance": 0.05, **options})


def plan(**options):
    return ct.plan(p, options.pop("labels", None), **{"statistic": ct.ECE(), **options})


def curve(**options):
    return ct.reliability_curve(p, y, **options)


NUMBER_OF_BINS = "bins must be a number of bins, a binning such as UniformBins"
CALLS = f"""
ct.ECE(0) -> n_bins must be a whole number ≥ 1, not 0
ct.ECE(ct.UniformBins) -> {NUMBER_OF_BINS}
ct.ECE(distance="euclid") -> unknown distance 'euclid'; choose one of 'tv'
ct.ECE(distance=2) -> distance must be a name or a function, not 2
ct.ECE(n_bins=3) -> ECE has no argument 'n_bins': did you mean bins=?
ct.ECE(norm="l2") -> ECE has no argument 'norm': use distance=
ct.RMSCE(15) -> name the binning: QuantileBins(15) for equal mass or UniformBins(15)
ct.ACE(10, threshold=2) -> threshold must lie in [0, 1), not 2
ct.ClasswiseECE(aggregate="sum") -> aggregate must be 'mean' or 'max', not 'sum'
ct.UniformBins(0) -> n_bins must be a whole number ≥ 1, not 0
ct.UniformBins(5, closed="both") -> closed must be 'right' or 'left', not 'both'
ct.UniformBins(5, axes="second") -> axes must be 'all' or 'first', not 'second'
ct.UniformBins(bins=3) -> UniformBins has no argument 'bins': did you mean n_bins=?
ct.QuantileBins(10**9) -> n_bins must be at most 1000000
ct.EdgeBins([0.1, 0.1]) -> EdgeBins needs increasing edges, not (0.1, 0.1)
ct.EdgeBins(["a"]) -> EdgeBins needs numbers as edges, not ['a']
ct.EdgeBins([0.1, 2]) -> EdgeBins needs edges within [0, 1], not (0.1, 2.0)
ct.VarianceTree(0) -> min_size must be a whole number ≥ 1, not 0
ct.VarianceTree(5, split="mode") -> split must be 'median' or 'mean', not 'mode'
ct.VarianceTree(5, stop="leaf") -> stop must be one of 'child', 'node', None, not 'leaf'
ct.SimplexGrid(0) -> n_bins must be a whole number ≥ 1, not 0
ct.TopK(True) -> k must be a whole number ≥ 1, not True
ct.TopK(3)(D) -> TopK(3) needs more than 3 classes, but there are 2: k must be at most 1
ct.OneVsRest(9)(D) -> there is no class 9, classes run from 0 to 1
ct.OneVsRest("cat")(D) -> there is no class named 'cat' (no names are known)
ct.OneVsRest(True) -> a class is a whole number or a name, not True
ct.Partition({{0: 1}}) -> Partition needs lists of classes
ct.Cumulative(-1) -> whole number ≥ 0
ct.Cumulative(3)(ct.Predictions.of(P, Y)) -> k must be at most 1
ct.audit(P, Y, ordered="yes") -> ordered must be True or False
audit(ordered=True) -> two cla
ct.Partition([[0]]) -> Partition needs at least two groups, none of them empty
ct.Partition([[0], [0, 1]]) -> Partition lists class 0 more than once
ct.Partition([[0], [1, 7]])(D) -> there is no class 7, classes run from 0 to 1
ct.Partition([[0], [2]])(ct.Predictions.of(P, Y)) -> leaves out class 1
ct.SKCE(estimator="u") -> estimator must be one of 'unbiased', 'biased', 'block', 'linear', not 'u'
ct.SKCE(block_size=2) -> block_size is for estimator='block', not 'unbiased'
ct.SKCE(estimator="block", block_size=1) -> block_size must be a whole number ≥ 2, not 1
ct.LaplaceKernel("mean") -> bandwidth must be a number > 0, 'median' or 'median-with-diagonal'
ct.Sweep(norm="l3") -> norm must be 'l1' or 'l2', not 'l3'
ct.Sweep(bins=3) -> Sweep has no argument 'bins': bins belong to the statistic
ct.ICI(span=0) -> span must lie in (0, 1], not 0
ct.HosmerLemeshow(10) -> name the binning: QuantileBins(10)
ct.HosmerLemeshow(groups=10) -> HosmerLemeshow has no argument 'groups': use clusters=
ct.HosmerLemeshow(variance="x") -> variance must be 'binomial' or 'exact', not 'x'
ct.HosmerLemeshow(df=0) -> df must be a whole number ≥ 1, not 0
ct.ScoreGap("hinge") -> score must be one of 'brier'
ct.CORP("x") -> score must be 'brier' or 'log', not 'x'
ct.DebiasedL2(estimator="x") -> estimator must be one of 'pairs', 'tcal', 'kumar', not 'x'
ct.ICI(curve="spline") -> curve must be 'lowess' or 'loess'
ct.ICI(curve="loess", delta=0.1) -> belongs to curve='lowess'
ct.ECI()([0.3, 0.3, 0.3], [0, 1, 1]) -> all predictions are equal
ct.CalibrationInTheLarge()(*SURE) -> every prediction is 0 or 1
ct.Spiegelhalter()(*SURE) -> not defined: every prediction is 0, ½ or 1
ct.Spiegelhalter()(THIRDS, Y) -> not defined: every prediction is 0, ½ or 1
ct.VariationalError("tvd") -> loss must be one of 'tv'
ct.VariationalError(folds=1) -> folds must be a whole number ≥ 2
ct.VariationalError(recalibration="platt") -> such as PlattScaling()
ct.VariationalError()([0.1, 0.2], [0, 1]) -> 10 in all; there are 2
ct.ScaledBrierScore()([0.3], [1]) -> give two rows
ct.LaplaceKernel()(np.eye(2), np.eye(2)) -> has no bandwidth yet
ct.ClasswiseECE(lambda rows: rows[:, 0])(P, Y) -> one integer per row
ct.EdgeBins([0.2])(P) -> one coordinate
ct.MultiScale([2, 2]) -> scales must be increasing
ct.MultiScale([0]) -> scales must be powers of two, which are nested, not 0
FITS[0](P, Y) -> for two classes
FITS[1](P, Y) -> isotonic_fit is for two classes
ct.ConsistencyResampling(B=3) -> ConsistencyResampling has no argument 'B': use n_resamples=
ct.Bootstrap("a").sampler(D) -> clusters is 'a', not an array
ct.Bootstrap([0] * 12).sampler(D) -> at least two
FITTED(D, from_logits=True) -> from_logits and pos_label are for arrays
FITTED([2.0, -3.0]) -> logits
ct.recalibration.TemperatureScaling().fit(holding(p, np.nan), y) -> row 4 is nan
ct.recalibration.PlattScaling(np.nan) -> penalty must be a number > 0, not nan
gate() -> say what may pass: tolerance=0.05
gate(margin=0.1) -> needs both: against= and margin=
gate(tolerance=0.1, by=y) -> gate does not take by
gate(tolerance=0.1, alpha=0) -> alpha must
gate(tolerance=0.1, statistic=ct.Kuiper()) -> no interval of Kuiper
gate(tolerance=0.1, paired="no") -> paired must be
close(by=y) -> does not take by
close(statistic=ct.MCE(5), clusters=CLUSTERS) -> no upper bound of MCE
close(tolerance=5) -> no error is larger than 1: one of 5 %
close(tolerance=0.0) -> tolerance must be a number > 0
plan() -> nothing is wrong yet
plan(width=0.1, tolerance=0.1) -> one thing is planned at a time
plan(statistic="slope") -> 'slope' needs a width
plan(statistic="slopes", width=1) -> statistic must be one of
plan(tolerance=0.1, n_datasets=5) -> n_datasets must be a whole
plan(labels=y, weights=p + 1) -> plan does not take weights
plan(against=p[:3]) -> probs has 3 rows
ct.plan(lambda rng, n: rng.random(n), against=p) -> like predictions, not like a function
ct.plan(p, statistic=ct.Monitor().update(p, y), alternative=SLOPE) -> without rows
ct.Monitor(alpha=0.0) -> alpha must lie in (0, 1)
ct.Monitor(run_length=3) -> run_length must be a whole number ≥ 32
ct.Monitor().plot() -> update
ct.Monitor(horizon=0) -> horizon must be a whole number ≥ 1
ct.Monitor().update(p, y, weights=2 * y) -> row 1 is 2; a monitor stakes at most
ct.Monitor().update(p, y, clusters=CLUSTERS) -> Monitor does not take clusters
ct.Monitor().update([1.2], [1]) -> row 0 is 1.2
ct.Monitor().update(float("nan"), 1) -> row 0 is nan
ct.Monitor().update(p, y).update(P, Y) -> 3 classes, those before 2
ct.ComparisonMonitor(score="rps") -> score must be
ct.ComparisonMonitor().update(P, P, Y) -> use OneVsRest(c)
ct.ComparisonMonitor(lens=ct.TopK(1)).update(P, P[:, ::-1], Y) -> does not show both forecasters
ct.ComparisonMonitor().update(D, ct.Predictions.of(p, 1 - y)) -> not of the same rows
ct.reliability_difference(P, P, Y, lens=ct.TopK(2)) -> needs a two-class lens
ct.reliability_difference(D, ct.Predictions.of(p, 1 - y)) -> same observations
ct.reliability_fit(p, y, by=y) -> reliability_fit does not take by
ct.reliability_simplex(P, Y, by=Y) -> does not take by yet
ct.tally_sql("loans", "", "y") -> not the name
ct.tally_sql("loans", "a\\0b", "y") -> not the name
ct.tally_sql("loans", "p", "y", dialect="oracle") -> dialect must be
ct.tally_sql("loans", "p", "y", grid=1) -> grid
ct.Tally.from_table([1, 2, 3]) -> a list is no table
ct.Predictions.of(D, pos_label=1) -> from_logits and pos_label are for arrays
ct.Predictions.of(P, Y, pos_label=1) -> pos_label is for a single column
ct.Predictions.of(P, Y, from_logits=True) -> no value is negative and each row adds up to 1: these
ct.Predictions.of(D, [1, 2]) -> these predictions have 12 rows but labels has 2
ct.Predictions.of(p, y, ["a", "b"], p) -> too many positional arguments
ct.presets.torchmetrics("l3") -> norm must be one of l1, l2, max, not 'l3'
ct.presets.calibrationerrors_jl("x") -> binning must be one of uniform, median-variance, not 'x'
ct.presets.guo2017(15)(p) -> labels are missing
asked(n_resamples=0) -> n_resamples must be a whole number ≥ 1, not 0
asked(n_resamples=10**9) -> n_resamples must be at most 10000000, not 1000000000
asked(rng=np.random.RandomState(0)) -> not a RandomState
asked(workers=0) -> workers must be a number ≥ 1 or a function like map, not 0
asked(null="simulate") -> is one of 'auto', 'exact', RedrawLabels() or ConsistencyResampling()
asked(null=ct.Bootstrap()) -> Bootstrap() cannot be a null
asked(early_stop="late") -> early_stop must be True or False, not 'late'
asked(null="betting") -> null='betting' is the law of EValue(): give statistic=EValue() with it
asked(lens=ct.OneVsRest(5)) -> there is no class 5
asked(folds=5) -> the fold of every row: for k, (_, test) in enumerate(splitter.split(X))
ct.Followup([0, 1], [30, 7], horizon=5) -> pass the times first, then whether the event was seen
ct.Followup([1, 2], [0, 1], 5, [0, 0]) -> takes time, event, horizon, unit=…
asked(lens=lambda d: 3) -> returned int; a lens takes Predictions and returns Predictions
asked(statistic="ECE") -> statistic must be a statistic such as ECE(15)
asked(statistic=[ct.ECE()]) -> calibration_test takes one statistic
asked(statistic=ct.presets.guo2017()) -> unpack it, **preset
asked(statistic=lambda p, y: "a") -> failed on probs of shape (12, 2)
asked(statistic=lambda p, y: np.nan) -> is nan on the observed data; it must be a finite number
asked(statistic=lambda p, y: p) -> failed on probs of shape (12, 2)
asked(statistic=ct.HosmerLemeshow(), lens=lambda d: ct.Predictions.of(P, Y)) -> is for two classes
asked(alpha=0.05) -> no argument 'alpha': use level= of intervals and pictures, alpha= of audit
asked(alternative="greater") -> see side= of confidence_interval
interval(level=95) -> level must lie in (0, 1), not 95
interval(side="left") -> side must be one of 'two-sided', 'lower', 'upper', not 'left'
interval(statistic=ct.SKCE()) -> no interval of SKCE
interval(statistic=lambda probs, labels: 0.1) -> method='bootstrap' if the statistic is an average
interval(statistic=ct.MCE(5), clusters=CLUSTERS) -> with clusters or weights
interval(n_resamples=99, level=0.99) -> needs at least 199 draws
ct.confidence_interval(P, Y, ct.ECE(5, distance="l2"), lens=ct.Canonical()) -> for 3 classes
ct.confidence_interval(P, Y, ct.MCE(5), lens=ct.Canonical()) -> for 3 classes
interval(clusters=[0] * 12) -> all rows are of one cluster
compared(p) -> probs_b is missing: pass the predictions of both models
compared(p, p[:3], y[:3]) -> model A: probs has 12 rows but labels has 3
compared(D, ct.Predictions.of(p[:4], y[:4])) -> A has 12 rows of 2 classes, B has 4
compared(p, p) -> labels are missing
compared(p, p, y, weight=y) -> no argument 'weight': did you mean weights=?
several({{"a": p, "b": p}}, label=y) -> has no argument 'label': did you mean labels=?
compared(y, p, p) -> model A: probs and labels look swapped
several({{"a": p, "b": p[:3]}}, y) -> model b: probs has 3 rows but labels has 12
compared({{"a": p, "b": p}}, y) -> several models are compared by compare_models
compared(p, P, y) -> A has 12 rows of 2 classes, B has 12 of 3: models are compared
compared(D, ct.Predictions.of(p, 1 - y)) -> different labels in 12 rows, first in row 0 (
compared(p, p[::-1], y, names="ab") -> names must be two names, not 'ab'
compared(p, p[::-1], y, margin=2) -> margin must lie in [0, 1], not 2
compared(p, p[::-1], y, method="t") -> method must be one of 'auto', 'z'
compared(p, p[::-1], y, paired=False) -> needs labels_b, the labels of the second model
compared(p, p[::-1], y, labels_b=y[:3]) -> model B: probs has 12 rows but labels has 3
compared(p, p[::-1], y, statistic=ct.SKCE()) -> no valid test of equal SKCE
audit(adjust="bonferroni") -> adjust must be 'holm' or 'max-T', not 'bonferroni'
audit(n_resamples=9) -> n_resamples=9 cannot reject anything at alpha=0.05: take at least 60
audit(lens=ct.TopK(1)) -> audit has no argument 'lens'
joint([ct.ECE()]) -> pairs must be a list such as
joint(ct.ECE()) -> pairs must be a list such as
curve(band=ct.Bootstrap()) -> band must be 'consistency', 'confidence'
ct.reliability_fit(p, y, fit="spline") -> fit must be one of 'isotonic', 'smooth', 'band'
ct.reliability_fit(P, Y, lens=ct.Canonical()) -> a curve needs a two-class lens
ct.reliability_fit(p, y, fit="band", points=1) -> points must be
ct.reliability_fit(p, y, fit="band", weights=1 + p) -> take weights
ct.reliability_fit(p, y, fit="band", clusters=CLUSTERS) -> clusters
ct.reliability_fit(p, y, fit="band").band_test(-0.1) -> tolerance must lie in
ct.reliability_fit(p, y, fit="band").band_test(between=(2, 3)) -> no pred
ct.reliability_fit(p, y, band=None, n_resamples=9).band_test() -> needs fit='band'
ct.reliability_simplex(p, y) -> is for three classes, or four without a picture
ct.reliability_difference(p, p[:4], y) -> probs has 4 rows but labels has 12
ct.bin_sensitivity(p, y, bins=5) -> bins must be a list of numbers or binnings
ct.cox_recalibration(p, y, method="x") -> method must be 'wald' or 'profile', not 'x'
ct.cox_recalibration(P, Y, lens=ct.Canonical()) -> is for two classes, but there are 3
ct.cox_recalibration(p, 0 * y) -> all outcomes are 0: the intercept is infinite
ct.cox_recalibration(p, 0 * y + 1) -> all outcomes are 1: the intercept is infinite
ct.cox_recalibration(0 * p + 0.5, y) -> all predictions are equal
ct.corp_decomposition(p, y, score="x") -> score must be 'brier' or 'log', not 'x'
ct.corp_decomposition(P, Y, lens=ct.Canonical()) -> is for two classes, but there are 3
ct.replicate(D, ct.ECE(), "boot", n_resamples=9) -> 'boot' is no way to draw data
ct.replicate(p, ct.ECE(), ct.RedrawLabels(), n_resamples=9) -> data must be Predictions
ct.recalibration.TemperatureScaling(penalty=0) -> penalty must be a number > 0, not 0
ct.recalibration.HistogramBinning(15) -> bins must be UniformBins or QuantileBins
ct.recalibration.TemperatureScaling().fit(p) -> labels are missing
ct.recalibration.TemperatureScaling()(D) -> is not fitted: call what its fit(probs, labels) returns
ct.plan(100) -> probs is 100, not an array
ct.audit(P.T, Y) -> so pass its transpose, probs.T
ct.recalibration.TemperatureScaling().fit(p, y, weights=-p) -> weights are ≥ 0
FITTED(P) -> the map was fitted on 2 classes, but these predictions have 3
FITTED(9 * p) -> outside [0, 1]
CURVE.plot(ax=3) -> ax must be matplotlib axes, not int
CURVE.plot(style="x") -> style must be 'deviation' or 'classical', not 'x'
CURVE.plot().save("a.gif") -> a picture is saved as .pdf, .svg or .png, not as a.gif
ct.AuditReport.from_json(CURVE.to_json()) -> this is the dictionary of a ReliabilityCurve
ct.report(D, profile="poetry") -> profile must be one of
ct.report(P, Y, lens=ct.Canonical()) -> a report needs a two-class lens
ct.grade_tests(GRADES, alternative="larger") -> alternative must be
ct.grade_tests(GRADES, method="wald") -> method must be
ct.grade_tests(GRADES, names="rating") -> no column 'rating'
ct.grade_tests(GRADES, sheet="A") -> sheet= is for Excel files
ct.grade_tests(GRADES, probability="n") -> one column has two roles
ct.grade_tests(D) -> is no table
ct.examples.digits("x") -> there is no 'test_x' among the digits
ct.examples.GaussianMixture(0.0, -2.0).sample(0) -> n must be a whole number ≥ 1, not 0
"""
CASES = [line.split(" -> ") for line in CALLS.strip().splitlines()]


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
@pytest.mark.parametrize("part", range(4))
def test_calls(part):
    calls = {call: (lambda call=call: eval(call), re.escape(words)) for call, words in CASES}
    assert complaints(dict(list(calls.items())[part::4])) == {}


COMMANDS = """
audit two.csv --bins 7 -> Bins belong to the statistic -> test two.csv --statistic 'ECE(7)'
audit two.csv --statistic ECE --json -> An audit asks its own -> test two.csv --json --statistic ECE
audit two.csv --level .9 -> The level of a test is --alpha -> audit two.csv --alpha 0.1
audit --n-resamples 1e4 -> '1e4' is not a valid integer
audit --n-resamples 10 -> cannot reject anything at alpha=0.05: take at least 140
audit --out nowhere/x.txt -> there is no folder nowhere
audit two.csv three.csv -> caltest does not recognise a column name as the probability
audit two.csv more.csv --by site --resume s -> rows in memory -> audit two.csv more.csv --by site
test two.csv more.csv --statistic SKCE --resume state -> needs the rows
audit nofile -> there is no file nofile
audit two.csv --label=lab -> no column 'lab'
audit . -> is a folder, not a file
test two.csv --lens top -> there is no top: did you mean TopK?
test two.csv --lens TopK(-'a') -> is not understood
segments two.csv --folds site --features site -> It is an option of audit
test two.csv --lens lambda:0 -> is not understood
test two.csv --lens OneVsRest -> OneVsRest takes c: missing a required argument: 'c'
test two.csv --lens= -> it is not written as in Python
test two.csv --statistic ece(9) -> no ece: did you mean ECE? -> test two.csv --statistic 'ECE(9)'
test two.csv --statistic ECE(n_bins=10) -> ECE has no argument 'n_bins': did you mean bins=?
test --lens TopK(99) -> must be at most 9
test two.csv --lens TopK(1 -> not written as in Python
test two.csv --statistic ECE(bins=ECE) -> ECE is not made of statistics
test two.csv --statistic Statistic() -> there is no Statistic
test two.csv --statistic UniformBins(5) -> does not fit; choose one of
test --null exact --lens Canonical -> no exact null
audit --nonsense -> No such option
test two.csv --null Bootstrap -> there is no Bootstrap; known: auto, exact
test two.csv --clusters site -> few -> test two.csv --clusters site --null 'OneRowPerCluster()'
interval two.csv --statistic SKCE -> no interval of SKCE
compare two.csv -> compare needs two models
compare two.csv two.csv -> one file was given twice
compare two.csv more.csv --statistic SKCE -> no valid test of equal SKCE
compare two.csv more.csv --margin 3 -> 3.0 is not in the range 0<=x<=1
audit two.csv --sheet A -> only Excel files have sheets -> audit two.csv
plot two.csv -> Missing option '-o' -> plot two.csv --out FILE
plot two.csv -o x.gif -> a picture ends in .pdf, .svg, .png -> plot two.csv --out x.svg
plot two.csv -o x.png --kind pie -> 'pie' is not one of
plot two.csv -o x.png --kind smooth --bins 10 -> --bins is for --kind deviation
plot two.csv -o x.png --kind isotonic --band wilson -> --band is for --kind deviation
plot two.csv -o x.png --bins 10.5 -> '10.5' does not fit; choose one of a number, UniformBins
plot three.csv -o x.png --kind smooth --lens Canonical -> a curve needs a two-class lens
gate two.csv --tolerance .1 --by site -> Subgroups are for audit
gate two.csv --tolerance .1 --ids site -> the rows of two files -> gate two.csv --tolerance .1
plan --like two.csv --clusters site --monitor --alternative Slope(0.5) -> take clusters for mon
monitor two.csv --state state.json --weights site -> It is an option of audit, compare
monitor two.csv --state state.json --clusters label -> No such option
monitor two.csv --state state.json --independent -> --independent is about the rows of one --time
monitor two.csv --state state.json --by site -> Subgroups are for audit
monitor two.csv --state state.json --run-length 100 -> --run-length is for --change
monitor two.csv --state state.json --change --alpha .01 -> --alpha is not for --change
audit two.csv more.csv --clusters site --resume state -> --clusters needs rows in memory
test three.csv --classes 2,1,0 -> called by these names in ano -> test three.csv --classes 0,1,2
grades both.csv -> each row is one outcome (label), not a grade -> audit both.csv
test marks.csv -> 'NaN%' in row 2 -> test marks.csv --probs "NULLIF(p, 'NaN%')" --drop-missing
test digits.csv -> p is '٠.٣' in row 2, which is not a number: write numbers with the digits 0 to 9
test infinite.csv -> p is inf in row 5 (1 inf -> test infinite.csv --where 'p <= 1'
test infinite.csv --probs p/10 -> p/10 is inf -> test infinite.csv --probs p/10 --where 'p/10 <= 1'
audit both.csv --probs steps -> a probability is at most 1 -> audit both.csv --probs 'steps / 100'
test two.csv --by site --by p -> --by is given 2 times: give it once, with commas: --by A,B
test two.csv --seed 1 --seed 2 -> --seed is given 2 times: give it once
test two.csv --clusters= -> it is empty: name a column, or leave the option out
test two.csv --time= --horizon 3 -> it is empty: name a column
test two.csv --out two.txt --label l.txt -> there is no column
audit both.csv --percent -> '--percent'. Divide in the -> audit both.csv --probs 'COLUMN / 100'
audit two.csv --pos-label 0 -> Say which label is the event -> audit two.csv --label "COLUMN = '0'"
monitor ab.csv ba.csv --state s.json -> name their classes differently: list their columns in
audit two.csv --by label -> caltest does not recognise a column name as the label
audit two.csv --clusters site,p -> caltest does not recognise a column name as the probability
test both.csv --probs p --event id --time label --horizon 5 -> an outcome is 0 or 1, so say which
audit both.csv --probs p --by id -> has 30 values in 30 rows
tset two.csv -> Did you mean 'test'? -> test two.csv
audt bank.csv -> Did you mean 'audit'? -> audit bank.csv
"""
COMMAND_CASES = [[*line.split(" -> "), ""][:3] for line in COMMANDS.strip().splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("wrong")
    for name, q in (("two", p), ("more", 1 - p)):
        rows = [f"{a:.4f},{b},s{i % 4}\n" for i, (a, b) in enumerate(zip(q, y, strict=True))]
        (where / f"{name}.csv").write_text("p,label,site\n" + "".join(rows))
    for a, b in ("ab", "ba"):
        (where / f"{a}{b}.csv").write_text(f"p_{a},p_{b},label\n0.3,0.7,b\n0.6,0.4,a\n")
    rows = [f"{1000 + i},0.{1 + i % 8},{i / 32},{i % 10},{i % 2}\n" for i in range(30)]
    (where / "both.csv").write_text("id,p,q,steps,label\n" + "".join(rows))
    rows = [f"{a!r},{b!r},{c!r},{k}\n" for (a, b, c), k in zip(P.tolist(), Y, strict=True)]
    (where / "three.csv").write_text("p_0,p_1,p_2,label\n" + "".join(rows))
    rows = [f"{a:.4f},{'bad' if b else 'good'}\n" for a, b in zip(p, y, strict=True)]
    (where / "bank.csv").write_text("p,state\n0.5,open\n,bad\n" + "".join(rows))
    (where / "marks.csv").write_text("p,label\n25%,0\nNaN%,1\n75%,1\n50%,0\n")
    (where / "digits.csv").write_text("p,label\n0.2,0\n٠.٣,1\n0.7,1\n", encoding="utf-8")
    rows = [f"{'inf' if i == 4 else a},{b}\n" for i, (a, b) in enumerate(zip(p, y, strict=True))]
    (where / "infinite.csv").write_text("p,label\n" + "".join(rows))
    return where


@pytest.mark.parametrize(("command", "words", "remedy"), COMMAND_CASES)
def test_commands(folder, run, monkeypatch, command, words, remedy):
    monkeypatch.chdir(folder)
    code, out, err = run(*command.split())
    assert (code, out) == (2, ""), err
    assert words in err, err
    assert not remedy or re.search(rf"\n(run|say|if .*): caltest {re.escape(remedy)}\n", err), err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "text",
    ["-" * 3000 + "1", "(" * 5000, "ECE(" * 300 + ")" * 300, "TopK(1)\0", "\ud800", "T" * 20_000],
)
def test_endless_recipes_are_refused_in_a_sentence(text, folder, run, monkeypatch):
    monkeypatch.chdir(folder)
    code, _, err = run("test", "two.csv", "--lens", text)
    assert code == 2
    assert "Invalid value for '--lens'" in err
    assert len(err) < 500


def test_only_options_with_close_names_are_suggested(run, tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("p,label\n" + "0.2,0\n0.7,1\n" * 30)
    _, _, err = run("report", "--quiet", file)
    assert "It is an option of audit" in err
    assert "--unit" not in err
    _, _, err = run("audit", "--quite", file)
    assert "Did you mean '--quiet'?" in err
    assert "--unit" not in err
