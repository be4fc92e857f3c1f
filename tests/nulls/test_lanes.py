"""Outcomes in lanes: against NumPy twins of the draws, and for any blocks, threads and designs."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import seen

import caltest as ct
from caltest.nulls import draws
from caltest.nulls import lanes as compiled
from caltest.nulls.agreement import Agreement, AgreementReader, dependent
from caltest.nulls.clusters import Overlap, OverlapReader
from caltest.nulls.lanes import GAMMA, FollowLanes, SharedLanes, mixed, stream_keys
from caltest.statistics.prepared import prepare
from caltest.statistics.rows import Redraws

SEED = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
N = 240
STATISTICS = [
    *(ct.ECE(), ct.ECE(ct.QuantileBins(7)), ct.MCE(), ct.Kuiper(), ct.KolmogorovSmirnov()),
    *(ct.ATB(), ct.MultiScale(), ct.DebiasedL2(), ct.CoxScore(), ct.ScoreGap("log")),
    *(ct.SKCE(ct.LaplaceKernel(0.2)), ct.SKCE(ct.LaplaceKernel(0.2), estimator="biased")),
    *(ct.MMCE(), ct.ECE(lambda probs: np.arange(len(probs)) % 5), ct.SmoothECE()),
]
OF_LABELS = [
    *(ct.CORP(), ct.CORP(score="log"), ct.ICI(), ct.ICI(delta=0.001), ct.ICI(curve="loess")),
    *(ct.E50(), ct.E90(curve="loess"), ct.Emax(), ct.ECI(), ct.ECI(relative=False)),
]
DESIGNS = ["independent", "weights", "clusters", "weighted clusters", "two columns", "series"]


def predictions(design, seed=1):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(1.0, 2.0, N), 2)
    y = (rng.random(N) < p).astype(int)
    weights = rng.random(N) + 0.2 if "weight" in design else None
    first, second = rng.integers(0, 30, N), rng.integers(0, 12, N)
    clusters = first if "clusters" in design else None
    clusters = np.column_stack([first, second]) if design == "two columns" else clusters
    horizon = 3 if design == "series" else None
    data = ct.Predictions.of(p, y, weights=weights, clusters=clusters, horizon=horizon)
    return ct.OneVsRest(1)(data)


def scheme(design):
    if design in ("independent", "weights"):
        return ct.RedrawLabels()
    return ct.SharedRedraws(dependence=(0.2, 0.3) if design == "two columns" else 0.4)


def word(r, counter):
    """A word of replicate r as a uniform."""
    key = stream_keys(SEED, r, 1)[:, 0]
    with np.errstate(over="ignore"):
        return mixed(key[0] + GAMMA * np.uint64(counter), key[1]) * 2.0**-53


@pytest.mark.parametrize("coupling", ["label", "correctness"])
@pytest.mark.parametrize("design", ["clusters", "two columns", "series"])
def test_draws_are_those_of_the_definition(design, coupling):
    data = predictions(design)
    degree = np.array([0.2, 0.3]) if design == "two columns" else 0.4
    drawn = dependent(data, degree, coupling, coupling)(SEED, 3, 4)
    horizon = data.horizon or 1
    names = [data.clusters, data.crossed] if design == "two columns" else [data.clusters]
    codes = [np.unique(c, return_index=True, return_inverse=True) for c in names]
    number = [np.argsort(np.argsort(first))[inverse] for _, first, inverse in codes]
    if design == "series":
        number = [data.times - data.times.min()]
    roots = np.cumsum(np.sqrt(np.broadcast_to(degree, len(number))))
    for r in range(4):
        offset = int(stream_keys(SEED, 3 + r, 1)[2, 0] % np.uint64(horizon))
        for i, p in enumerate(data.probs[:, 0]):
            u = word(3 + r, i)
            if u < roots[-1]:
                column = 0 if u < roots[0] else 1
                block = (number[column][i] + offset) // horizon
                block += number[0].max() + 1 if column else 0
                u = word(3 + r, N + int(block))
                u = 1.0 - 2.0**-53 - u if coupling == "correctness" and p < 0.5 else u
            else:
                u = (u - roots[-1]) / (1.0 - roots[-1])
            assert drawn[r, i] == (u >= p)


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("design", DESIGNS)
def test_readers_find_the_values_of_drawn_labels(design, statistic):
    data = predictions(design)
    prepared = prepare(statistic, data)
    for factor in (1.0, 1.44):
        redraws = prepared.redraws(scheme(design), factor)
        assert isinstance(redraws, Redraws)
        labels = scheme(design).drawer(data)(SEED, 5, 70)
        expected = prepared.values(prepared.problem.outcomes(labels), factor)
        values = redraws.replicates(SEED, 5, 70)
        np.testing.assert_allclose(values, expected, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(redraws.replicates(SEED, 40, 1), values[35:36], rtol=1e-12)


@pytest.mark.parametrize("statistic", STATISTICS + OF_LABELS, ids=repr)
def test_readers_find_the_values_of_distinct_predictions(statistic):
    rng = np.random.default_rng(3)
    p, u = rng.random((2, 301))
    p[:9] = [0.0, 0.0, 1.0, *[0.5] * 6]  # runs of ties between rows that are read side by side
    prepared = prepare(statistic, ct.OneVsRest(1)(ct.Predictions.of(p, (u < p).astype(int))))
    labels = ct.RedrawLabels().drawer(prepared.data)(SEED, 0, 70)
    values = prepared.redraws(ct.RedrawLabels()).replicates(SEED, 0, 70)
    expected = [prepared(row) for row in labels]
    np.testing.assert_allclose(values, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("statistic", OF_LABELS, ids=repr)
@pytest.mark.parametrize("design", DESIGNS[:3])
def test_readers_find_the_values_of_statistics_of_labels(design, statistic):
    prepared = prepare(statistic, predictions(design))
    labels = scheme(design).drawer(prepared.data)(SEED, 5, 70)
    redraws = prepared.redraws(scheme(design))
    assert isinstance(redraws, Redraws) or (design == "weights" and isinstance(statistic, ct.CORP))
    values = redraws.replicates(SEED, 5, 70)
    np.testing.assert_allclose(values, prepared.batch(labels), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(values, [prepared(row) for row in labels], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(redraws.replicates(SEED, 40, 1), values[35:36], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::caltest.errors.ShortFollowupWarning")
@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_readers_find_the_values_of_drawn_follow_up(statistic):
    rng = np.random.default_rng(2)
    p = rng.beta(1.0, 2.0, N)
    event, lost = rng.exponential(4.0 / p), rng.exponential(9.0, N)
    ended = event <= lost
    competing = ended & (rng.random(N) < 0.4)
    time = np.minimum(event, lost).round(1)
    followup = ct.Followup(time, ended & ~competing, competing=competing, horizon=5)
    data = ct.OneVsRest(1)(ct.Predictions.of(p, followup))
    prepared = prepare(statistic, data)
    draw = ct.RedrawFollowup().drawer(data)
    assert isinstance(draw, FollowLanes)
    expected = prepared.values(ct.statistics.Drawn(draw(SEED, 2, 30)))
    values = prepared.redraws(ct.RedrawFollowup()).replicates(SEED, 2, 30)
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("design", ["clusters", "weighted clusters"])
@pytest.mark.parametrize("coupling", ["label", "correctness"])
def test_agreement_read_from_lanes_is_that_of_labels(design, coupling):
    agreement = Agreement.of(predictions(design), coupling)
    draw, read = dependent(agreement.data, 0.3, coupling), AgreementReader.of(agreement)
    found = draw.laid(read.order).gathered(read, SEED, 0, 70)
    labels = draw(SEED, 0, 70)
    for i, centred in enumerate((True, False)):
        expected = agreement.correlation(labels, centred)
        np.testing.assert_allclose(found[:, i], expected, rtol=1e-9, atol=1e-10)


def test_overlap_read_from_lanes_is_that_of_labels():
    data = predictions("series")
    draw, read = dependent(data, 0.3), OverlapReader.of(data)
    found = draw.laid(read.order).gathered(read, SEED, 0, 70)
    np.testing.assert_allclose(found, Overlap(data)(draw(SEED, 0, 70)), rtol=1e-9, atol=1e-9)


def test_statistics_of_a_joint_test_have_the_draws_of_each_alone():
    data = predictions("independent")
    pairs = [(statistic, ct.OneVsRest(1)) for statistic in STATISTICS[:-1]]
    joint = ct.joint_test(data, pairs=pairs, n_resamples=300, rng=1)
    for test, (statistic, lens) in zip(joint.tests, pairs, strict=True):
        run = {"lens": lens, "null": ct.RedrawLabels(), "n_resamples": 300, "rng": 1}
        alone = ct.calibration_test(data, None, statistic, **run)
        values = (each.null_distribution.values for each in (test, alone))
        np.testing.assert_allclose(*values, rtol=1e-11, atol=1e-13)


def test_memory_has_a_limit():
    draw = SharedLanes.independent(np.full((10, 2), 0.5))
    assert (draw.at_once, replace(draw, place=np.empty(10**7, np.int8)).at_once) == (64, 8)


def test_workers_by_default_change_no_number(monkeypatch):
    monkeypatch.setattr(draws, "PATIENCE", 0.0)
    monkeypatch.setattr(draws, "_cores", lambda: 3)
    data = seen(np.column_stack([np.linspace(0.1, 0.9, 50)] * 2) * [1, -1] + [0, 1])
    run = {"statistic": ct.Kuiper(), "null": ct.RedrawLabels(), "n_resamples": 999, "rng": 1}
    one, many = (ct.calibration_test(data, None, workers=w, **run) for w in (1, None))
    np.testing.assert_array_equal(one.null_distribution.values, many.null_distribution.values)


def test_without_a_folder_for_compiled_code_kernels_run_and_say_so_once(monkeypatch, capsys):
    numba = pytest.importorskip("numba")
    plain = numba.njit

    def refusing(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*args, **options)

    monkeypatch.setattr(numba, "njit", refusing)
    compiled._say_uncached.cache_clear()
    for _ in range(2):
        assert compiled.kernel(lambda x: x + 1)(1) == 2
    assert capsys.readouterr().err.count("set NUMBA_CACHE_DIR") == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("design", [*DESIGNS, "follow-up"])
def test_answers_do_not_jump_where_sums_take_over_from_rows(design, monkeypatch):
    """The same rows, just below the number from which sums are cheaper and just above it."""
    data = predictions("independent" if design == "follow-up" else design)
    if design == "follow-up":
        rng = np.random.default_rng(2)
        ended = rng.random(N) < 0.7
        followup = ct.Followup(rng.uniform(1.0, 9.0, N), ended, horizon=5)
        data = ct.OneVsRest(1)(ct.Predictions.of(data.probs[:, 0], followup))
    found = []
    for many in (N, N - 1):
        monkeypatch.setattr("caltest.inference._input.ROWS_FOR_SUMS", many)
        test = ct.calibration_test(data, None, ct.ECE(), n_resamples=99, rng=1)
        joint = ct.joint_test(data, pairs=[(ct.ECE(), None)] * 2, n_resamples=99, rng=1)
        found.append((test.estimate, joint.tests[0].estimate, test.pvalue))
    np.testing.assert_allclose(found[0][:2], found[1][:2], rtol=1e-10)
    assert abs(found[0][2] - found[1][2]) < 0.05
