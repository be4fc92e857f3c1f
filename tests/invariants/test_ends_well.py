"""Calls with extreme values end in an answer or in a sentence that names the bound.

Run on commit 626a36f5: ``10**400`` ended in OverflowError, ``level=1 - 1e-12`` in
ZeroDivisionError, ``Monitor.from_json("{}")`` in KeyError and deep JSON in RecursionError,
``compare_models([...])`` in ValueError, ``Tally.from_dask`` of a pandas frame in AttributeError.
"""

import numpy as np
import pytest
from conftest import cells_of

import caltest as ct
from caltest import planning
from caltest.data.binning import as_binning
from caltest.inference.dependence import SquaredError

RNG = np.random.default_rng(0)
P = RNG.random(200)
Y = (RNG.random(200) < P).astype(int)
HUGE = [10**400] * 200
INPUT, WRONG = ct.InvalidPredictionsError, ct.StatisticError

REFUSED = [
    (INPUT, lambda: ct.audit(HUGE, Y), "probs.*beyond 1.8e308"),
    (INPUT, lambda: ct.audit(P, HUGE), "labels.*beyond 1.8e308"),
    (INPUT, lambda: ct.audit(P, Y, weights=HUGE), "weights.*beyond 1.8e308"),
    (INPUT, lambda: ct.Monitor().update(P, Y, time=HUGE), "time.*beyond 1.8e308"),
    (INPUT, lambda: ct.audit(P, Y, weights=np.geomspace(1e-290, 1e10, 200)),
     r"weights: row 0 is 1e-290 .* more than 1e\+100 times"),
    (WRONG, lambda: ct.confidence_interval(P, Y, level=1 - 1e-12), "needs at least 200.* draws"),
    (WRONG, lambda: ct.calibration_test(P, Y, n_resamples=10**400), "a whole number of 1329 bits"),
    (WRONG, lambda: ct.ECE(10**5000), "a whole number of 16610 bits"),
    (TypeError, lambda: ct.compare_models([P, P**2], Y), "takes a mapping"),
    (WRONG, lambda: ct.plan(P, Y, alternative=planning.Slope(1)), "error that is not there"),
    (WRONG, lambda: ct.reliability_fit(P, Y, points=10**9), "points must be at most 10000"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "call", "words"), REFUSED)
def test_refused_in_a_sentence(error, call, words):
    with pytest.raises(error, match=words) as info:
        call()
    assert len(str(info.value)) < 400


@pytest.mark.parametrize("kind", [ct.Tally, ct.Tallies])
def test_a_frame_in_memory_is_not_one_of_dask(kind):
    pytest.importorskip("dask")
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="from_dask takes a Dask data frame, not a pandas"):
        kind.from_dask(pandas.DataFrame({"p": P, "y": Y}))


def test_an_exact_null_of_too_many_cells_is_refused(monkeypatch):
    from caltest.inference import null

    monkeypatch.setattr(null, "MOST_EXACT_CELLS", 50)
    with pytest.raises(WRONG, match="exact null is computed for at most 50"):
        ct.calibration_test(P, Y, ct.ECE(1000), null="exact")


@pytest.mark.parametrize("text", ["{}", "[]", "null", "", "[" * 100_000, '{"a":' * 100_000])
@pytest.mark.parametrize("kind", [ct.Monitor, ct.Tally, ct.Tallies])
def test_a_damaged_state_is_refused_in_a_sentence(kind, text):
    with pytest.raises(INPUT, match="caltest") as info:
        kind.from_json(text)
    assert len(str(info.value)) < 200


def test_a_tally_says_what_it_lacks():
    with pytest.raises(INPUT, match="it lacks 'cells'"):
        ct.Tally.from_json("{}")


@pytest.mark.parametrize("horizon", [np.ones(3), np.ones((200, 2)), [[1.0]]])
def test_horizons_are_one_or_one_a_row(horizon):
    with pytest.raises(INPUT, match="horizon must be a number, or hold one for each"):
        ct.Followup(P, Y, horizon)


def test_readers_of_batches_are_refused_or_read():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"p": P, "y": Y})
    with pytest.raises(INPUT, match="read only once: pass list"):
        ct.audit(pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches()))
    reader = pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert ct.read_predictions(reader, "p", "y").n == 200


def test_names_with_control_characters_are_printed_without_them():
    named = ct.audit(np.c_[1 - P, P], Y, classes=["a\0", "b\u202e"], rng=0)
    assert not {"\0", "\u202e"} & {*str(named)}


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
def test_a_segment_is_never_impossible():
    rng = np.random.default_rng(1)
    for seed in range(10):
        y = (RNG.random(200) < np.where(P > 0.5, 0.99, 0.01)).astype(int)  # far from calibrated
        features = {"a": rng.integers(0, 5, 200), "b": rng.normal(size=200)}
        found = ct.segment_search(P, y, features, n_resamples=99, rng=seed)
        assert min(s.pvalue for s in found.segments) >= 0.01
        assert found.pvalue >= 0.01


def test_labels_of_no_row_that_is_one_hot_are_a_sentence():
    # found by validation/fuzz.py, call 1219
    with pytest.raises((INPUT, WRONG)):
        ct.gate(P, np.empty((200, 0)), tolerance=0.1)


def test_few_draws_of_rare_events_divide_by_nothing():
    # found by validation/fuzz.py, calls 1532 and 1656
    p = np.where(np.arange(60) % 3, 1e-300, 0.5)
    y = (np.arange(60) % 6 == 0).astype(int)
    weights = np.where(np.arange(60) % 2, 1.0, 2.0)
    with np.errstate(all="raise", under="ignore"):
        interval = ct.confidence_interval(p, y, weights=weights, n_resamples=39, level=0.9, rng=0)
    assert 0.0 <= interval.low <= interval.high


def test_bars_of_huge_weights_are_drawn():
    # found by validation/fuzz.py, call 4390: a lattice of 3e12 steps
    weights = np.where(np.arange(200) % 2, 1.0, 1e10)
    curve = ct.reliability_curve(P, Y, weights=weights, n_resamples=99, rng=0)
    assert (curve.low <= curve.high).all()


def test_a_promise_that_is_broken_for_certain_is_never_impossible():
    # found by validation/fuzz.py, call 7542
    found = ct.promise([0.0, 0.0, 1.0], [1, 1, 0], ct.Costs.threshold(0.3), rng=0)
    assert 0.0 < found.pvalue < 1e-300


@pytest.mark.filterwarnings("ignore::caltest.LimitLawWarning")
def test_the_limit_law_of_certain_rows_is_a_point():
    # found by validation/fuzz.py, call 1633
    with np.errstate(all="raise", under="ignore"):
        test = ct.calibration_test([0.0, 0.0], [0, 0], ct.LogScore(), null="asymptotic")
    assert test.pvalue == 1.0


@pytest.mark.parametrize("decades", [8, 12, 90])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_weights_of_any_spread_are_compared(decades, seed):
    rng = np.random.default_rng(seed)
    p = rng.random(100)
    y = (rng.random(100) < p).astype(int)
    w = 10.0 ** rng.uniform(-decades / 2, decades / 2, 100)
    found = ct.compare(p, p**2, y, weights=w, rng=0)
    assert 0.0 < found.pvalue <= 1.0


@pytest.mark.parametrize("scale", [2.0**900, 2.0**-900])
def test_weights_are_relative(scale):
    w = np.resize([1.0, 2.0, 3.5], 200)
    one, other = (ct.audit(P, Y, weights=k * w, rng=0) for k in (1.0, scale))
    assert [row.pvalue for row in one.rows] == [row.pvalue for row in other.rows]


def test_one_row_of_more_than_half_of_the_weight_is_a_caution():
    notes = ct.audit(P, Y, weights=np.r_[1.0, 1e9, np.ones(198)], rng=0).notes
    assert any(note.startswith("caution: row 1 carries 100% of all weight") for note in notes)
    notes = ct.audit(P, Y, weights=np.resize([1.0, 2.0], 200), rng=0).notes
    assert not any("caution" in note for note in notes)


def test_leaving_out_a_unit_that_dominates_its_cell_is_leaving_it_out():
    # the twin leaves out the row and computes anew
    p, y = np.array([0.2, 0.4, 0.3, 0.25, 0.35]), np.array([0, 1, 0, 0, 1])
    w = np.array([1e12, 1.0, 2.0, 0.5, 1.5])
    data = ct.Predictions.of(p, y, weights=w)
    r = data.probs[:, 0] - (data.labels == 0)

    def pairs(rows):
        ww, x = w[rows], w[rows] * r[rows]
        products = [x[i] * x[j] for i in range(len(ww)) for j in range(len(ww)) if i != j]
        masses = [ww[i] * ww[j] for i in range(len(ww)) for j in range(len(ww)) if i != j]
        return sum(products) / sum(masses)

    error = SquaredError.of(cells_of(as_binning(ct.UniformBins(1)), data.probs, w), data)
    assert error.estimate == pytest.approx(pairs([0, 1, 2, 3, 4]), rel=1e-9)
    # a difference of sums of 1e12 of which 5 are left: 12 of 16 digits are gone
    assert error.omitting[0] == pytest.approx(pairs([1, 2, 3, 4]), rel=1e-4)
