"""Which columns are read: those on the printed list, those that are named, and expressions."""

import json

import numpy as np
import polars as pl
import pytest
from files_of_tests import LABELS, PROBS, check

from caltest.errors import DoubtfulInputError, InvalidPredictionsError
from caltest.read.contract import CONTRACT, contract_text
from caltest.read.expressions import ends_of, quoted, split
from caltest.read.files import read_predictions

P, Y = [0.25, 0.75, 0.5], [0, 1, 1]


def refusal(columns, message, **options):
    with pytest.raises(InvalidPredictionsError, match=message) as caught:
        read_predictions(pl.DataFrame(columns), **options)
    return [(reading.options, reading.when) for reading in caught.value.readings]


@pytest.mark.parametrize("name", CONTRACT[0].names)
def test_labels_of_the_list(name):
    read = read_predictions({"p": P, name.upper(): Y})
    assert read.labels.tolist() == Y


@pytest.mark.parametrize("name", CONTRACT[1].names)
def test_probabilities_of_the_list(name):
    assert read_predictions({name: P, "y": Y}).probs[:, 1].tolist() == P


@pytest.mark.parametrize(
    "names", ["p_a p_b p_c", "prob_a prob_b prob_c", "Proba_a Proba_b Proba_c", "P_a P_b P_c"]
)
def test_families_name_the_classes(names):
    columns = dict(zip(names.split(), PROBS.T, strict=True))
    data = read_predictions(columns | {"y": np.array(list("abc"))[LABELS]})
    check(data)
    assert data.classes == ("a", "b", "c")


@pytest.mark.parametrize("names", ["p_2 p_0 p_1", "p2 p0 p1", "2 0 1"])
def test_families_of_numbers_are_in_their_order(names):
    columns = dict(zip(names.split(), PROBS[:, [2, 0, 1]].T, strict=True))
    check(read_predictions(columns | {"label": LABELS}))


def test_the_printed_table_has_every_name():
    assert all(f"`{name}`" in contract_text() for listed in CONTRACT for name in listed.names)


def test_two_labels_are_refused():
    refusal({"p": P, "y": Y, "target": Y}, "the label could be y or target; the columns are p ")


def test_two_probabilities_are_refused_with_a_reading_each():
    columns = {"risk": P, "p": [0.5, 0.5, 0.1], "y": Y}
    readings = refusal(columns, "the probability could be risk or p")
    assert [options["probs"] for options, _ in readings] == ["risk", "p"]


def test_columns_are_described_where_none_fits():
    columns = {"a": P, "b": ["x", "y", "y"], "c": [10, 20, 30]}
    message = r"a \(fractions 0.25 to 0.75, 3 values\); b \(x, y\); c \(10, 20, 30\)"
    refusal(columns, message)


def test_a_lone_reading_of_cells_is_suggested_and_never_taken():
    readings = refusal({"chance": P, "rained": Y}, "does not recognise a column name as the label")
    assert readings == [({"label": "rained", "probs": "chance"}, "")]


def test_names_that_are_words_of_sql_are_quoted_in_readings():
    columns = {"default": P, "user": Y}
    readings = refusal(columns, "caltest does not recognise a column name")
    assert readings == [({"label": '"user"', "probs": "default"}, "")]
    assert read_predictions(columns, **readings[0][0]).probs[:, 1].tolist() == P


def test_times_beside_an_unnamed_label_suggest_follow_up():
    columns = {"p": np.linspace(0.1, 0.9, 20), "dead": [0, 1] * 10, "years": np.arange(20) + 0.5}
    (options, when), *others = refusal(columns, "caltest does not recognise a column name")
    assert not others
    assert options["event"] == "dead"
    assert (options["label"], options["time"], options["horizon"]) == (None, "years", "NUMBER")
    assert when == "rows were followed for years"


def test_a_family_of_one_is_the_probability_of_label_1_only_if_it_says_so():
    assert read_predictions({"p_1": P, "y": Y}).probs[:, 1].tolist() == P
    refusal({"p_0": P, "y": Y}, "p_0 is the probability of one class alone")


def test_a_confidence_needs_to_be_told_of_what():
    columns = {"confidence": P, "y": Y, "guess": ["a", "b", "b"]}
    readings = refusal(columns, "confidence is how sure a model is of an answer")
    assert readings == [
        ({"predicted_label": "COLUMN"}, ""),
        ({"label": "y"}, "y says whether the answer was right"),
    ]
    readings = refusal(columns | {"guess": [1, 0, 1]}, "confidence is how sure a model is")
    assert readings[0][0] == {"predicted_label": "guess", "label": "y", "probs": "confidence"}
    assert readings[0][1] == "guess is the answer"


def test_a_confidence_beside_correct_is_about_the_answer():
    data = read_predictions({"confidence": P, "correct": Y})
    assert (data.classes, data.labels.tolist()) == (("wrong", "right"), Y)


def test_a_predicted_class_is_compared_without_case_and_prefix():
    columns = {"score": P, "y": [0, 1, 1], "guess": ["LABEL_0", "LABEL_1", "LABEL_0"]}
    data = read_predictions(columns, probs="score", predicted_label="guess")
    assert data.labels.tolist() == [1, 1, 0]


def test_classes_in_no_order_are_not_made_up():
    columns = {f"p_{name}": column for name, column in zip("abc", PROBS.T, strict=True)}
    readings = refusal(columns | {"y": LABELS}, "y is 0, 1, 2, but the classes .* are a, b, c")
    places = {"classes": "CLASS1,CLASS2,CLASS3"}
    assert readings == [(places, "they are 0, 1, 2, in the order of the columns")]
    check(read_predictions(columns | {"y": LABELS}, classes=[0, 1, 2]))


def test_codes_of_outcomes_are_refused_with_an_expression_each():
    readings = refusal({"p": P, "y": [1, 2, 2]}, r"y is 2 \(2\), 1 \(1\)")
    assert readings[0] == ({"label": "y = 2"}, "2 is the event")
    readings = refusal({"p": P, "y": ["no", "yes", "yes"]}, "say which is the event")
    assert readings[0] == ({"label": "y = 'yes'"}, "yes is the event")


def test_three_codes_of_follow_up_have_places():
    columns = {"p": P, "status": [1, 2, 3], "time": [1.0, 2.0, 3.0]}
    readings = refusal(columns, "say which is the event", event="status", time="time", horizon=2)
    assert readings == [({"event": "status = CODE", "competing": "status = CODE"}, "")]


def test_percents_are_refused_with_a_division():
    readings = refusal({"p": [25.0, 75.5, 50.0], "y": Y}, "p is 25 in row 0")
    assert readings == [({"probs": "p / 100"}, "")]


def test_whole_percents_among_fractions_are_asked_about():
    columns = {"p": [25.0, 75.0, 0.5], "y": Y}
    readings = refusal(columns, "0.5 in row 2 stands among percents that are whole")
    assert [when for _, when in readings] == ["0.5 is 0.5 %", "0.5 is 50 %"]
    read = read_predictions(columns, **readings[1][0])
    assert read.probs[:, 1].tolist() == [0.25, 0.75, 0.5]


def test_cumulative_probabilities_are_refused_with_differences():
    columns = {"c1": [0.1, 0.3, 0.5], "c2": [0.4, 0.8, 0.9], "c3": [1.0, 1.0, 1.0], "y": [1, 2, 3]}
    ((options, _),) = refusal(columns, "they are cumulative", probs="c1, c2, c3")
    assert options == {"probs": "c1, c2 - c1, c3 - c2", "classes": "1,2,3"}
    data = read_predictions(columns, probs=options["probs"], classes=[1, 2, 3])
    np.testing.assert_allclose(data.probs[0], [0.1, 0.3, 0.6])


# --- expressions ---------------------------------------------------------------------------------


TABLE = {"p": P, "y": Y, "site": ["a", "b", "a"], "k": [1, 2, 3], "m": [4, 4, 4]}
TABLE |= {"t": ["1", "7", "10"]}


@pytest.mark.parametrize(
    ("options", "probs", "labels"),
    [
        ({"probs": "1 - p"}, [0.75, 0.25, 0.5], Y),
        ({"probs": "k / m"}, [0.25, 0.5, 0.75], Y),
        ({"label": "site = 'a'"}, P, [1, 0, 1]),
        ({"label": "NOT y"}, P, [1, 0, 0]),
        ({"label": "k >= 2"}, P, [0, 1, 1]),
        ({"where": "site = 'a'"}, [0.25, 0.5], [0, 1]),
        ({"probs": '"p"', "label": "CASE WHEN site = 'b' THEN 1 ELSE 0 END"}, P, [0, 1, 0]),
        ({"label": "CAST(t AS DOUBLE) > 6"}, P, [0, 1, 1]),
    ],
)
def test_expressions(options, probs, labels):
    read = read_predictions(pl.DataFrame(TABLE), **options)
    np.testing.assert_allclose(read.probs[:, 1], probs)
    assert read.labels.tolist() == labels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("P", r"no column 'P' \(did you mean 'p'\?\): the columns are p, y, site"),
        ("1 -", "'1 -' is neither a column nor an expression"),
        ("sum(p)", "not a value of each row: it is a sum"),
        ("p / sum(p)", "not a value of each row"),
        ("count(*)", "not a value of each row: it uses no column"),
        ("0.5", "not a value of each row: it uses no column"),
        ("p; drop", "neither a column nor an expression"),
        ("p + z", "there is no column 'z'"),
    ],
)
def test_expressions_that_are_none(text, message):
    refusal(TABLE, message, probs=text)


def test_text_is_not_compared_with_numbers_letter_by_letter():
    refusal(TABLE, r"letter by letter.*CAST\(t AS DOUBLE\)", label="t >= '6'")


def test_several_columns_where_one_is_wanted():
    refusal(TABLE, r"weights is one column or expression, not 2 \(p, y\)", weights="p, y")


def test_a_name_is_a_name_before_it_is_an_expression():
    columns = {"NR-AR": P, "NR": [1.0, 2.0, 3.0], "AR": [1.0, 1.0, 1.0], "y": Y}
    assert read_predictions(columns, probs="NR-AR").probs[:, 1].tolist() == P


def test_rows_where_the_condition_is_unknown_are_left_out_and_counted():
    columns = {"p": P, "y": Y, "g": ["a", "b", None]}
    data = read_predictions(columns, where="g <> 'b'")
    assert data.notes[0].startswith(
        "read 1 of 3 rows, those where g <> 'b' (1 row where it is unknown)"
    )
    assert data.places.tolist() == [0]


@pytest.mark.parametrize(
    ("where", "left_out"),
    [("lead = 24 AND mm > -99", "3 of 50"), ("(mm > -99) AND (lead = 24)", "3 of 50"),
     ("mm > -99", "3 of 100"), ("lead = 24", "")],
)  # fmt: skip
def test_rows_without_an_outcome_are_counted_among_those_that_other_conditions_keep(
    where, left_out
):
    rng = np.random.default_rng(0)
    mm = np.where(np.arange(100) < 3, -99.0, rng.gamma(0.5, 2.0, 100))
    columns = {"p": rng.random(100), "mm": mm, "lead": np.repeat([24, 48], 50)}
    data = read_predictions(columns, label="mm >= 0.2", where=where, as_is=True)
    (said,) = [n for n in data.notes if "rows have no outcome" in n] or [""]
    assert said.partition(" rows")[0] == left_out


@pytest.mark.parametrize("where", ["p > 0.28", "p > 0.28 AND y >= 0"])
def test_a_column_of_the_condition_is_found_in_its_role(where):
    data = read_predictions({"p": P, "y": Y}, where=where)
    assert (data.probs[:, 1].tolist(), data.labels.tolist()) == ([0.75, 0.5], [1, 1])


def test_a_condition_on_one_column_of_a_family_keeps_it_whole():
    columns = dict(zip(("p_0", "p_1", "p_2"), PROBS.T, strict=True)) | {"y": LABELS}
    data = read_predictions(columns, where="p_2 >= 0")
    check(data)


def test_of_two_fits_the_one_outside_of_the_condition_is_read():
    columns = {"risk": [0.1, 0.9, 0.8], "p": P, "correct": [1, 1, 0], "y": Y}
    data = read_predictions(columns, where="risk > 0.5 AND correct >= 0")
    assert (data.probs[:, 1].tolist(), data.labels.tolist()) == ([0.75, 0.5], [1, 1])


def test_subgroups_of_an_expression_are_called_by_it():
    data = read_predictions(TABLE, by="k >= 2")
    assert data.by.tolist() == ["NOT (k >= 2)", "k >= 2", "k >= 2"]


def test_split_at_commas_outside_of_brackets_and_quotes():
    assert split("c1, f(a, b), 'x,y'") == ["c1", "f(a, b)", "'x,y'"]


def test_quoting_of_names():
    names = ["p", "user", "a b", 'say "x"', "1st", "ü"]
    assert [*map(quoted, names)] == ["p", '"user"', '"a b"', '"say ""x"""', '"1st"', '"ü"']


@pytest.mark.parametrize(
    ("names", "ends"),
    [
        ("p_cat p_dog", "cat dog"),
        ("No Yes", "No Yes"),
        ("score_cat score_car", "cat car"),
        ("cal_p0 cal_p1", "0 1"),
        ("c10 c11", "10 11"),
    ],
)
def test_ends_of_names(names, ends):
    assert ends_of(names.split()) == ends.split()


# --- guards --------------------------------------------------------------------------------------


@pytest.fixture
def survival():
    rng = np.random.default_rng(0)
    risk = rng.beta(1, 2, 400)
    return {"surv": 1 - risk, "died": (rng.random(400) < risk).astype(int)}


def test_a_question_is_a_refusal_with_the_readings(survival):
    with pytest.raises(DoubtfulInputError, match="died is rarer where surv is higher") as caught:
        read_predictions(survival, "surv", "died")
    readings = [reading.options for reading in caught.value.readings]
    assert readings == [{"probs": "1 - surv"}, {"label": "NOT died"}]


def test_as_is_turns_a_question_into_a_note(survival):
    data = read_predictions(survival, "surv", "died", as_is=True)
    assert data.notes[1].startswith("read as it is, although died is rarer")
    np.testing.assert_array_equal(data.probs[:, 1], survival["surv"])


def test_a_second_set_of_probabilities_is_asked_about():
    rng = np.random.default_rng(1)
    p = rng.random(200)
    columns = {"p": p, "calibrated": 0.8 * p + 0.1, "y": (rng.random(200) < p).astype(int)}
    with pytest.raises(DoubtfulInputError, match="predictions could be p or calibrated"):
        read_predictions(columns)
    assert read_predictions(columns, probs="p").n == 200


def test_large_tables_sorted_by_model_are_asked_about():
    rng = np.random.default_rng(2)
    n, models = 40_000, 3
    p, y = rng.random(n), rng.integers(0, 2, n)
    columns = {"id": np.tile(np.arange(n), models), "model": np.repeat(np.arange(models), n)}
    columns |= {"p": np.tile(p, models), "y": np.tile(y, models)}
    with pytest.raises(DoubtfulInputError, match="every id has 3 rows") as caught:
        read_predictions(columns)
    assert caught.value.readings[0].options == {"where": "model = 0"}


def test_train_rows_far_down_are_asked_about():
    rng = np.random.default_rng(3)
    n = 120_000
    p = rng.random(n)
    columns = {"p": p, "y": (rng.random(n) < p).astype(int)}
    columns["part"] = np.repeat(["test", "train"], n // 2)
    with pytest.raises(
        DoubtfulInputError, match="part separates the rows that the model was trained on"
    ):
        read_predictions(columns)


def test_a_second_code_of_an_event_is_asked_about(tmp_path):
    rng = np.random.default_rng(1)
    status = rng.integers(0, 3, 300)
    path = tmp_path / "codes.csv"
    lines = [f"{p:.4f},{t:.3f},{s}" for p, t, s in zip(
        rng.random(300), rng.exponential(5, 300), status, strict=True
    )]  # fmt: skip
    path.write_text("\n".join(["risk,years,status", *lines]) + "\n")
    asked = {"probs": "risk", "event": "status = 1", "time": "years", "horizon": 5}
    with pytest.raises(DoubtfulInputError, match="status has the values 0, 1, 2") as refusal:
        read_predictions(path, **asked)
    assert {"competing": "status = 2"} in [dict(r.options) for r in refusal.value.readings]
    assert read_predictions(path, **asked, competing="status = 2").n == 300
    assert read_predictions(path, **asked, as_is=True).n == 300


def test_nines_far_from_all_values_are_asked_about(tmp_path):
    amounts = np.random.default_rng(2).exponential(3.0, 200).round(1)
    amounts[:10] = -99.9
    path = tmp_path / "rain.csv"
    path.write_text("p,mm\n" + "".join(f"0.4,{mm}\n" for mm in amounts))
    with pytest.raises(DoubtfulInputError, match=r"mm is -99\.9 in 10 rows") as refusal:
        read_predictions(path, label="mm >= 0.2")
    assert dict(refusal.value.readings[0].options) == {"where": "mm > -99.9"}
    assert read_predictions(path, label="mm >= 0.2", where="mm > -99.9").n == 190


@pytest.mark.parametrize(
    ("cells", "condition"),
    [
        (("-inf", "0.5"), "p >= 0"),
        (("inf", "-inf"), "p >= 0 AND p <= 1"),
        (("inf", "99.5"), "p <= 100"),
    ],
)
def test_infinite_numbers_are_left_out_by_a_condition(tmp_path, cells, condition):
    rows = "".join(f"{cell},{k}\n" for k, cell in enumerate(cells))
    (tmp_path / "f.csv").write_text("p,y\n0.25,0\n" + rows)
    with pytest.raises(InvalidPredictionsError, match=r"p is -?inf in row 2 ") as caught:
        read_predictions(tmp_path / "f.csv")
    assert [r.options for r in caught.value.readings] == [{"where": condition}]


@pytest.mark.parametrize("header", ["p,y", ",y"])
def test_digits_of_other_scripts_are_no_numbers(tmp_path, header):
    (tmp_path / "f.csv").write_text(header + "\n0.2,0\n٠.٣,1\n0.7,1\n", encoding="utf-8")
    with pytest.raises(InvalidPredictionsError, match=r" is '٠.٣' in row 2, .* digits 0 to 9"):
        read_predictions(tmp_path / "f.csv", probs=header[:-2] or "column_1")


def test_one_word_among_numbers_is_a_missing_value_of_its_column(tmp_path):
    (tmp_path / "f.csv").write_text("p_a,p_b,y\n0.2,0.8,b\n0.3,-,a\n0.6,0.4,a\n")
    with pytest.raises(
        InvalidPredictionsError, match="p_b is '-' in row 2, which is not"
    ) as caught:
        read_predictions(tmp_path / "f.csv")
    options = {"probs": "p_a, NULLIF(p_b, '-')", "classes": "a,b", "drop_missing": True}
    assert [(r.options, r.when) for r in caught.value.readings] == [
        (options, "'-' is a missing value")
    ]
    options["classes"] = ["a", "b"]
    assert read_predictions(tmp_path / "f.csv", **options).labels.tolist() == [1, 0]


@pytest.mark.parametrize("cells", ["ca. 0.01", "-,0\nn.a."])
def test_words_of_two_kinds_or_with_digits_are_no_missing_values(tmp_path, cells):
    (tmp_path / "f.csv").write_text(f"p,y\n0.2,0\n{cells},1\n0.7,1\n")
    with pytest.raises(InvalidPredictionsError, match=r"row 2, which is not a number$") as caught:
        read_predictions(tmp_path / "f.csv")
    assert caught.value.readings == ()


def test_a_percentage_below_one_is_asked_about(tmp_path):
    path = tmp_path / "clicks.csv"
    path.write_text("ctr_pct,click\n" + "0.4,0\n0.9,0\n0.2,0\n0.3,0\n" * 20 + "0.9,1\n")
    with pytest.raises(DoubtfulInputError, match="ctr_pct is called a percentage"):
        read_predictions(path, "ctr_pct", "click")
    read = read_predictions(path, "ctr_pct / 100", "click")
    assert read.probs[:, 1].max() == pytest.approx(0.009)


def test_fractions_called_a_percentage_are_read_where_labels_say_so(tmp_path):
    path = tmp_path / "clicks.csv"
    path.write_text("ctr_pct,click\n" + "0.4,0\n0.9,1\n0.2,0\n0.3,1\n" * 20)
    assert read_predictions(path, "ctr_pct", "click").probs[:, 1].max() == 0.9


def test_a_negative_mark_among_amounts_of_any_spread_is_asked_about(tmp_path):
    amounts = np.random.default_rng(2).lognormal(3.0, 1.5, 200).round(1)
    amounts[:3] = -9
    path = tmp_path / "crp.csv"
    path.write_text("p,crp\n" + "".join(f"0.4,{value}\n" for value in amounts))
    with pytest.raises(DoubtfulInputError, match="crp is -9 in 3 rows"):
        read_predictions(path, label="crp >= 20")


def test_two_models_of_one_event_are_not_its_two_classes(tmp_path):
    path = tmp_path / "both.csv"
    path.write_text("p_new,p_old,defect\n" + "0.4,0.5,0\n0.9,0.7,1\n0.2,0.1,0\n0.3,0.3,1\n" * 20)
    with pytest.raises(InvalidPredictionsError) as refusal:
        read_predictions(path)
    offered = [dict(reading.options).get("probs") for reading in refusal.value.readings]
    assert offered == ["p_new", "p_old"]
    assert all(reading.when for reading in refusal.value.readings)


@pytest.mark.parametrize("kind", ["alike", "permuted", "other words"])
def test_options_of_a_row_say_what_the_probabilities_are_of(tmp_path, kind):
    rng, words = np.random.default_rng(0), ["Bern", "Oslo", "Paris", "Rome"]
    records, places, by_word = [], [], []
    for _ in range(40):
        drawn = {"alike": words[:3], "permuted": rng.permutation(words[:3]).tolist()}
        options = drawn.get(kind, rng.permutation(words)[:3].tolist())
        probs, place = rng.dirichlet(np.ones(3)).round(3).tolist(), int(rng.integers(3))
        probs[0] = round(1.0 - probs[1] - probs[2], 3)
        records.append({"probs": probs, "options": options, "answer": options[place]})
        order = np.argsort(options) if kind == "permuted" else np.arange(3)
        by_word.append(np.array(probs)[order])
        places.append(int(np.flatnonzero(order == place)[0]))
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(records))
    with pytest.raises(InvalidPredictionsError, match="the options of each row say it") as caught:
        read_predictions(path, label="answer")
    (reading,) = caught.value.readings
    options = {"label": "answer", **reading.options}
    assert reading.complete
    if "classes" in options:
        options["classes"] = options["classes"].split(",")
    read = read_predictions(path, **options)
    np.testing.assert_allclose(read.probs, np.array(by_word), atol=1e-9)
    assert read.labels.tolist() == places


def test_exchanged_columns_are_suggested_the_other_way_round():
    columns = {"p": [0.25, 0.75, 0.5, 0.125], "label": [0, 1, 1, 0]}
    readings = refusal(columns, "p holds fractions", probs="label", label="p")
    assert readings == [({"probs": "p", "label": "label"}, "")]


def test_a_search_of_all_columns_is_told_the_likely_label():
    columns = {"chance": P, "rained": Y, "age": range(40, 40 + len(Y))}
    readings = refusal(columns, "does not recognise a column name as the label", features="*")
    assert readings == [({"label": "rained", "probs": "chance"}, "")]
