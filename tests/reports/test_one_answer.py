"""An audit agrees with itself: one family, one adjustment, one verdict."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import caltest as ct
from caltest.nulls.laws import SimulatedNull
from caltest.reports.findings import Judged, _is_low

RUN = {"n_resamples": 199, "rng": 1}


def test_parts_of_a_question_are_adjusted_for_all_questions():
    judged = Judged.of([0.03, 0.01, 0.2], [0.06, 0.03, 0.2], 0.05)
    assert [each.steps for each in judged] == [2, 3, 1]
    assert [each.rejected for each in judged] == [False, True, False]
    assert judged[0].part(0.03) == 0.06
    assert judged[1].part(0.02) == pytest.approx(0.06)
    assert judged[2].part(0.01) == 0.2


@pytest.mark.slow
def test_the_row_of_subgroups_their_table_and_the_sentence_give_one_answer():
    doubtful = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p, race = rng.uniform(0.1, 0.9, 400), np.arange(400) % 4
        y = (rng.random(400) < np.clip(p + 0.14 * (race == 1), 0, 1)).astype(int)
        row = ct.audit(p, y, by=race.astype(str), **RUN).rows[-1]
        wrong = sum(finding == "miscalibrated" for finding in row.groups.findings)
        assert (row.verdict == "miscalibrated") == (wrong > 0)
        assert min(row.groups.adjusted) == row.groups.pvalue == row.adjusted
        assert re.search(
            rf"{wrong} of 4 (is|are) miscalibrated by (its|their) adjusted p", row.detail
        )
        doubtful += row.pvalue <= 0.05 < row.adjusted
    assert doubtful  # of these, row and table used to differ


def test_a_segment_that_certainly_exceeds_the_tolerance_decides():
    rng = np.random.default_rng(1)
    n = 6000
    p, city = rng.uniform(0.1, 0.9, n), rng.choice(["Porto", "Braga", "Faro"], n, p=[0.1, 0.5, 0.4])
    y = (rng.random(n) < np.clip(p - 0.15 * (city == "Porto"), 0, 1)).astype(int)
    found = ct.audit(p, y, features={"city": city}, tolerance=0.05, **RUN)
    segments = next(row.search for row in found.rows if row.search is not None)
    assert segments.worst.at_least > 0.05
    assert found.verdict == "miscalibrated, and it matters"
    assert any(
        "Porto" in s and "differ by more than the tolerance 0.05" in s for s in found.summary
    )


def test_a_simulated_p_value_at_its_floor_is_an_upper_bound():
    p = np.linspace(0.05, 0.95, 600)
    y = (np.arange(600) % 10 < 3).astype(int)
    test = ct.calibration_test(p, y, ct.Kuiper(), null=ct.RedrawLabels(), **RUN)
    assert (test.at_floor, test.shown_p) == (True, "≤ 0.005")
    assert "≤ 0.005" in str(test)
    exact = ct.calibration_test(p, y)
    assert not exact.at_floor
    assert re.search(r"≤ 0\.0\d+", str(ct.audit(p, y, **RUN)))


def drawn_in_runs(seed):
    """Return calibrated forecasts of a slow series, whose neighbours depend."""
    rng = np.random.default_rng(seed)
    z = np.convolve(rng.standard_normal(1040), np.ones(40) / 40**0.5, "valid")[:1000]
    return np.full(1000, 0.5) + rng.uniform(-0.2, 0.2, 1000), (z > 0).astype(int)


def test_a_rejection_is_in_doubt_where_neighbours_agree():
    p, y = drawn_in_runs(3)
    found = ct.audit(p, y, **RUN)
    assert found.rejects
    assert (found.verdict, found.verdict.failed, found.verdict.exit_code) == ("in doubt", False, 3)
    assert found.summary[0].startswith("This is in doubt: neighbouring rows agree")
    assert "Verdict: IN DOUBT" in str(found)
    assert ct.AuditReport.from_json(found.to_json()).verdict == "in doubt"


def test_no_doubt_changes_what_was_not_rejected():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    found = ct.audit(np.tile(p, 2), np.tile(y, 2), **RUN)
    assert found.copies
    assert found.verdict in ("calibrated", "in doubt")
    assert found.verdict == "in doubt" or not found.rejects


def test_an_impossible_outcome_refutes_calibration_whatever_depends():
    p, y = drawn_in_runs(3)
    p[0], y[0] = 0.0, 1
    assert ct.audit(p, y, **RUN).verdict == "miscalibrated"


def test_the_command_line_exits_with_3_where_in_doubt(tmp_path, run):
    p, y = drawn_in_runs(3)
    path = tmp_path / "f.csv"
    path.write_text("p,label\n" + "\n".join(f"{a:.17g},{b}" for a, b in zip(p, y, strict=True)))
    assert run("audit", path)[0] == 0
    assert run("audit", path, "--fail-on-miscalibration")[0] == 3


@pytest.mark.parametrize("below", [5, 13, 14, 50])
def test_an_error_is_called_low_beyond_chance_over_all_questions(below):
    """With 7 questions at 5 %, (1 + j) / 2000 ≤ 0.0071 holds for j < 14 values below."""
    values = np.arange(1999.0)
    test = SimpleNamespace(null_distribution=SimulatedNull(values), estimate=below - 0.5)
    judged = Judged.of(np.linspace(0.1, 0.7, 7), np.ones(7), 0.05)[-1]
    assert judged.questions == 7
    assert _is_low(test, judged) == (below < 14)
    few = SimpleNamespace(null_distribution=SimulatedNull(values[:100]), estimate=-1.0)
    assert not _is_low(few, judged)  # 100 values cannot tell


def test_an_audit_says_that_an_error_is_further_below_its_floor_than_chance_explains():
    p = np.repeat(np.arange(1, 10) / 10, 100)
    y = np.concatenate([np.arange(100) < 100 * each for each in np.arange(1, 10) / 10])
    assert "further below the noise floor" in str(ct.audit(p, y.astype(int), rng=0))
