"""What a table of grades raises a question about, and what it never proposes."""

import numpy as np
import polars as pl
import pytest

import caltest as ct

PERCENT = {
    "grade": [1, 2, 3, 4],
    "obligors": [2000, 3000, 5000, 4000],
    "defaults": [1, 12, 37, 120],
    "PD": [0.05, 0.12, 0.35, 0.9],
}


def test_percents_below_one_are_a_question():
    table = pl.DataFrame(PERCENT)
    with pytest.raises(ct.DoubtfulInputError, match="predicts 5810 events and 170 were observed"):
        ct.grade_tests(table)
    assert str(ct.grade_tests(table, as_is=True)).count("no evidence") == 7
    assert "risk underestimated in 2, 3, 4" in str(ct.grade_tests(table, probability="PD / 100"))


def test_observed_rates_are_not_proposed_where_a_total_lacks_the_prediction():
    table = pl.DataFrame(
        {
            "rating": ["A", "B", "C", "Total"],
            "obligors": [1900, 2500, 250, 4650],
            "defaults": [1, 12, 68, 81],
            "Assigned (%)": [0.12, 0.35, 15.0, None],
            "Observed (%)": [0.05, 0.48, 27.2, 1.74],
        }
    )
    with pytest.raises(ct.InvalidPredictionsError) as refused:
        ct.grade_tests(table)
    assert not any("Observed" in str(reading.options) for reading in refused.value.readings)


def test_rows_of_outcomes_are_no_grades():
    table = pl.DataFrame({"rating": ["A"] * 300, "pd": [0.1] * 300, "default": [0.0, 1.0] * 150})
    with pytest.raises(ct.InvalidPredictionsError, match="each row is one outcome"):
        ct.grade_tests(table)


def refused_readings(table, what):
    with pytest.raises(
        ct.InvalidPredictionsError, match="does not recognise a column name"
    ) as refused:
        what(table)
    return [(reading.verb, dict(reading.options)) for reading in refused.value.readings]


def test_an_audit_of_many_counts_points_to_grades():
    rng = np.random.default_rng(4)
    n, p = rng.integers(50, 5000, 800), (0.001 + 0.02 * rng.random(800)).round(6)
    cells = {"ad_group": range(800), "impressions": n, "clicks": rng.binomial(n, p), "ctr": p}
    options = {"n": "impressions", "events": "clicks", "probability": "ctr"}
    options["alternative"] = "two-sided"  # clicks are asked about both sides, PDs about high risk
    table = pl.DataFrame(cells)
    assert refused_readings(table, ct.read_predictions) == [("grades", options)]
    rows = table.with_columns(clicks=pl.Series(rng.permutation(n)))
    assert refused_readings(rows, ct.read_predictions)[0][0] != "grades"


def test_basis_points_are_divided_and_grades_of_several_years_are_named_by_both():
    n, bp = [310, 820, 1900], [50, 120, 300]
    table = pl.DataFrame(
        {
            "Jahr": [2020] * 3 + [2021] * 3, "Klasse": [1, 2, 3] * 2, "Anzahl": n * 2,
            "Ausfälle": [2, 9, 60, 1, 11, 55], "PD (bp)": bp * 2,
        }
    )  # fmt: skip
    options = {"n": "Anzahl", "events": '"Ausfälle"', "probability": '"PD (bp)" / 10000'}
    assert refused_readings(table, ct.read_predictions) == [("grades", options)]
    tests = ct.grade_tests(table, **options)
    assert all(name in str(tests) for name in ("2020 1", "2020 3", "2021 1", "2021 3"))


def test_the_rows_of_each_cohort_are_offered_where_grades_repeat():
    table = pl.DataFrame({name: cells * 2 for name, cells in PERCENT.items()})
    table = table.with_columns(cohort=pl.Series([2020] * 4 + [2021] * 4))
    with pytest.raises(ct.InvalidPredictionsError, match="every grade has one row") as refused:
        ct.grade_tests(table, probability="PD / 100")
    readings = [r.options["where"] for r in refused.value.readings]
    assert readings == ["cohort = 2020", "cohort = 2021"]
    one = ct.grade_tests(table, probability="PD / 100", where=readings[1])
    assert "risk underestimated in 2, 3, 4" in str(one)
