"""What expressions over text, marks, codes and scales take for granted, and what is asked."""

import numpy as np
import polars as pl
import pytest

from caltest.data.ends import like_time
from caltest.data.questions import Column, Rows
from caltest.errors import InvalidPredictionsError
from caltest.read.expressions import terms_of, with_column
from caltest.read.files import read_predictions

RAIN = {"p": [0.2, 0.4, 0.6, 0.8], "mm": ["0.0", "T", "10", "7"]}


def refusal(table, *, kind=InvalidPredictionsError, **options):
    with pytest.raises(kind) as caught:
        read_predictions(table, **options)
    return caught.value


@pytest.mark.parametrize("label", ["mm >= 0.2", "mm >= 8", "mm = 0.0", "mm / 2 > 1", "8.5 < mm"])
def test_text_among_numbers_is_refused_with_its_cells(label):
    error = refusal(RAIN, label=label)
    assert "mm is 'T' (1 row), first in row 1" in str(error)
    number = label.replace("mm", "TRY_CAST(mm AS DOUBLE)")
    assert dict(error.readings[0].options) == {"label": number, "drop_missing": True}


def test_readings_of_text_among_numbers_run():
    error = refusal(RAIN, label="mm >= 0.2")
    lacking, zero = (read_predictions(RAIN, **dict(r.options)) for r in error.readings)
    assert lacking.labels.tolist() == [0, 1, 1]
    assert zero.labels.tolist() == [0, 0, 1, 1]


def test_text_is_compared_as_numbers_where_no_word_is_left():
    data = read_predictions(RAIN, label="mm >= 8.5", where="mm <> 'T'")
    assert data.labels.tolist() == [0, 1, 0]  # as text, 7 is above 8.5 no less than 10 below


def test_text_far_down_a_file_is_refused(tmp_path):
    path = tmp_path / "rain.csv"
    rows = [f"0.5,{k % 3}.5\n" for k in range(12_000)] + ["0.5,T\n"]
    path.write_text("p,mm\n" + "".join(rows))
    assert "mm is 'T' (1 row), first in row 12001" in str(refusal(path, label="mm >= 0.7"))


@pytest.mark.parametrize(
    ("probs", "expected"),
    [
        ("d", [0.86, 0.05, 0.3]),
        ("1 - d", [0.14, 0.95, 0.7]),
        ("d * 1.0", [0.86, 0.05, 0.3]),
        ("CASE WHEN d < 0.1 THEN 0.1 ELSE d END", [0.86, 0.1, 0.3]),
    ],
)
def test_percents_are_numbers_inside_expressions(probs, expected):
    data = read_predictions({"d": ["86%", "5 %", "30%"], "y": [0, 1, 0]}, probs=probs)
    assert data.probs[:, 1] == pytest.approx(expected)


def test_percents_beside_plain_numbers_are_refused():
    table = {"d": ["86%", "0.5", "30%"], "y": [0, 1, 0]}
    assert "use one notation" in str(refusal(table, probs="1 - d"))


def test_codes_of_text_stay_text():
    schema = pl.DataFrame({"code": ["01", "1"]}).schema
    assert terms_of("code = '1'", schema)[0].written == ()
    data = read_predictions({"p": [0.1, 0.9], "code": ["01", "1"]}, label="code = '1'")
    assert data.labels.tolist() == [0, 1]


@pytest.mark.parametrize("label", ["coalesce(mm, 0) > 1", "mm IN (1, 2)"])
def test_what_cannot_be_computed_is_said_without_the_engine(label):
    said = str(refusal(RAIN, label=label))
    assert "mm holds text where numbers are expected" in said
    assert "dtype" not in said
    assert "dyn" not in said


def test_columns_are_replaced_outside_of_quotes_only():
    assert with_column("mm > 1 AND x = 'mm'", "mm", "f(mm)") == "f(mm) > 1 AND x = 'mm'"
    assert with_column('1 - "Dem %"', "Dem %", "d") == "1 - d"


def test_whole_numbers_up_to_ten_have_two_scales():
    error = refusal({"p": [4, 1, 10, 7], "y": [0, 1, 1, 0]})
    assert [r.options["probs"] for r in error.readings] == ["p / 10", "p / 100"]
    assert all(r.when for r in error.readings)


def test_times_beside_percents_are_told_without_a_warning():
    rng = np.random.default_rng(0)
    p, t = rng.random(200), rng.exponential(5.0, 200)
    y = (rng.random(200) < p).astype(np.int64)
    with np.errstate(all="raise"):
        assert not like_time(Rows(100.0 * p, y), Column("t", t))


@pytest.mark.parametrize("probs", ["risk", "risk / 1"])
def test_limits_are_half_their_number_or_missing(probs):
    table = {"risk": ["<0.01", "0.5", "0.25"], "y": [0, 1, 0]}
    readings = {r.when: r.options for r in refusal(table, probs=probs).readings}
    assert {*readings} == {"'<0.01' counts as 0.005", "'<0.01' is a missing value"}
    kept = read_predictions(table, **readings["'<0.01' counts as 0.005"])
    assert kept.probs[:, 1].tolist() == [0.005, 0.5, 0.25]
    options = {**readings["'<0.01' is a missing value"]}
    assert read_predictions(table, **options).n == 2
