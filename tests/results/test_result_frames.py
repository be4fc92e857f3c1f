"""Results as data frames, and results that come back equal from JSON and pickles."""

import math
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import caltest as ct
from caltest.results.base import Record
from tests.results.test_result_tables import RESULTS

pl = pytest.importorskip("polars")

RNG = np.random.default_rng(5)
P = RNG.random(400)
Y = (RNG.random(400) < P**1.3).astype(int)
GROUPS = np.array(list("abcd"))[np.arange(400) % 4]
WITH_GAPS = {
    "no band": lambda: ct.reliability_fit(P, Y, band=None),
    "no bars": lambda: ct.reliability_curve(P, Y, band=None),
    "no slope": lambda: ct.audit(P, Y, rng=0),
    "subgroups": lambda: ct.audit(P, Y, by=GROUPS, rng=0),
    "untested subgroup": lambda: ct.calibration_test(P[:9], Y[:9], by=["a"] * 8 + ["b"]),
    "curve of sites": lambda: ct.meta_analysis(P, Y, by=np.arange(400) % 5, curve=True),
}
CALLS = RESULTS | WITH_GAPS


@pytest.fixture(scope="module", params=CALLS)
def result(request):
    return CALLS[request.param]()


def test_results_are_equal_after_a_pickle(result):
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert hash(again) == hash(result)


def test_results_are_equal_after_json(result):
    again = type(result).from_json(result.to_json())
    assert again == result
    assert hash(again) == hash(result)


def test_results_of_other_numbers_are_not_equal(result):
    assert replace(result, n=result.n + 1) != result
    assert result != result.as_dict()


def test_every_class_of_results_is_compared_by_its_dictionary_form():
    for kind in Record.kinds.values():
        assert kind.__eq__ is Record.__eq__, kind
        assert kind.__hash__ is Record.__hash__, kind


def test_polars_takes_a_result_as_it_is(result):
    frame = pl.DataFrame(result)
    assert isinstance(frame, pl.DataFrame)
    assert frame.height >= 1
    assert frame.equals(result.to_frame(), null_equal=True)


def test_pandas_and_pyarrow_have_the_columns_of_polars(result):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    from caltest.results.rendering import _in_pandas

    frame, made = result.to_frame(), _in_pandas(result._frame_columns())
    assert list(made.columns) == frame.columns == pyarrow.table(result).column_names
    pandas.testing.assert_frame_equal(
        made.astype(object).where(made.notna(), None),
        frame.to_pandas().astype(object).where(frame.to_pandas().notna(), None),
        check_dtype=False,
    )


def test_rows_of_a_curve_are_its_bins():
    curve = ct.reliability_curve(P, Y, bins=5)
    frame = curve.to_frame()
    assert frame["count"].to_list() == curve.count.tolist()
    np.testing.assert_array_equal(frame["observed"], curve.observed)
    assert frame.schema["outside"] == pl.Boolean


def test_rows_of_a_gate_are_its_checks_and_of_a_comparison_its_pairs():
    gate = ct.gate(P, Y, against=P**1.2, tolerance=0.1, margin=0.05)
    assert gate.to_frame()["verdict"].to_list() == [str(check.verdict) for check in gate.checks]
    table = ct.compare_models({"a": P, "b": P**1.5, "c": P**0.5}, Y)
    frame = table.to_frame()
    assert [*zip(frame["name_a"], frame["name_b"], strict=True)] == [p.names for p in table.pairs]
    assert frame["adjusted"].to_list() == [*table.adjusted]


def test_rows_of_a_regression_are_its_coefficients():
    cox = ct.cox_recalibration(P, Y)
    frame = cox.to_frame()
    slope = frame.row(by_predicate=pl.col("term") == "slope", named=True)
    assert (slope["low"], slope["high"]) == cox.slope_interval
    assert slope["pvalue"] == cox.lr_slope_pvalue


def test_columns_do_not_depend_on_what_was_found():
    for first, second in (
        (ct.gate(P, Y, tolerance=0.5), ct.gate(P, Y, tolerance=1e-6)),
        (ct.confidence_interval(P, Y), ct.confidence_interval(P, Y, by=GROUPS)),
        (ct.audit(P, Y), ct.audit(P, Y, by=GROUPS)),
    ):
        assert first.to_frame().schema == second.to_frame().schema


def test_a_monitor_gives_its_history():
    watch = ct.Monitor().update(P, Y)
    assert watch.to_frame()["log_evidence"].to_list() == watch.history[:, 1].tolist()
    dated = ct.Monitor().update(P[:2], Y[:2], time=np.array(["2026-01-01", "2026-01-02"], "M8[D]"))
    assert dated.to_frame().schema["time"] == pl.Datetime("us")


def test_subgroups_that_could_not_be_tested_have_no_numbers():
    groups = WITH_GAPS["untested subgroup"]().subgroups
    frame = groups.to_frame()
    assert frame["subgroup"].to_list() == ["a", "b"]
    missing = [test is None for test in groups.tests]
    assert frame["pvalue"].is_null().to_list() == missing


def test_a_tuple_of_floats_keeps_its_gaps_in_json():
    groups = WITH_GAPS["subgroups"]().rows[0].groups or WITH_GAPS["subgroups"]().rows[-1].groups
    changed = replace(groups, predicted=(math.nan,) * len(groups.names))
    assert all(map(math.isnan, type(groups).from_json(changed.to_json()).predicted))


@pytest.mark.slow
@pytest.mark.parametrize(("imported", "made"), [("polars", "polars"), ("pandas", "pandas")])
def test_a_frame_is_of_the_library_that_is_in_use(imported, made):
    pytest.importorskip(imported)
    program = (
        f"import {imported}, caltest as ct; "
        "print(type(ct.calibration_test([0.5] * 4, [0, 1, 1, 0]).to_frame()).__module__)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert shown.stdout.startswith(made), shown.stderr
