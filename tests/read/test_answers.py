"""Answers beside the truth: blanks, spelling, confidences; and what is suggested."""

import shlex

import numpy as np
import polars as pl
import pytest

import caltest as ct
from caltest._base.written import DependenceDoubt
from caltest.errors import DoubtfulInputError, InvalidPredictionsError
from caltest.read.files import read_predictions
from caltest.read.guesses import order_gap
from caltest.read.suggestions import _as_pattern


def refusal(columns, message, **options):
    with pytest.raises(InvalidPredictionsError, match=message) as caught:
        read_predictions(pl.DataFrame(columns), **options)
    return [(dict(reading.options), reading.when) for reading in caught.value.readings]


def drawn(n=200, seed=0):
    rng = np.random.default_rng(seed)
    sure = np.round(rng.uniform(0.2, 1.0, n), 3)
    names = np.array(["cat", "dog", "owl"])
    guess = rng.integers(0, 3, n)
    right = rng.random(n) < sure
    truth = np.where(right, guess, (guess + 1) % 3)
    return sure, names[guess], names[truth], right


BOXES = {
    "score": [0.9, 0.8, 0.7, 0.4],
    "found": ["cat", "dog", "cat", "dog"],
    "gt": ["cat", None, "cat", "cat"],
}


def test_a_blank_truth_beside_a_prediction_has_two_readings():
    options = {"probs": "score", "label": "gt", "predicted_label": "found"}
    (wrong, when), (unknown, other) = refusal(BOXES, "gt has no value in row 1", **options)
    assert when == "the prediction is wrong where gt is blank"
    assert other == "the outcome is not known where gt is blank"
    assert read_predictions(BOXES, **options | wrong).labels.tolist() == [1, 0, 1, 0]
    assert read_predictions(BOXES, **options | unknown).labels.tolist() == [1, 1, 0]


def test_an_expression_that_is_unknown_has_two_readings():
    options = {"probs": "score", "label": "gt = found"}
    (false, _), (unknown, _) = refusal(BOXES, "gt = found has no value", **options)
    assert read_predictions(BOXES, **options | false).labels.tolist() == [1, 0, 1, 0]
    assert unknown == {"drop_missing": True}


def test_a_blank_beside_a_single_value_may_be_the_other_outcome():
    columns = {"p": [0.2, 0.4, 0.6], "y": [1, None, 1]}
    (blank, when), _ = refusal(columns, "y has no value")
    assert when == "y is 1 or blank, and a blank is the other outcome"
    assert read_predictions(columns, **blank).labels.tolist() == [1, 0, 1]


def test_a_blank_among_both_outcomes_is_left_out():
    columns = {"p": [0.2, 0.4, 0.6], "y": [1, None, 0]}
    assert refusal(columns, "y has no value") == [({"drop_missing": True}, "")]


def test_rows_that_lack_answer_and_confidence_are_left_out():
    columns = {"conf": [0.2, None, 0.6], "answer": ["a", None, "b"], "y": ["a", "b", "a"]}
    readings = refusal(columns, "no value", predicted_label="answer")
    assert readings == [({"drop_missing": True}, "")]


@pytest.mark.parametrize("change", [str.upper, "{}.".format, " ({})".format, "**{}**".format])
@pytest.mark.parametrize("options", [{"predicted_label": "guess"}, {"label": "guess = truth"}])
def test_answers_that_differ_by_signs_or_case_are_asked_about(change, options):
    sure, guess, truth, right = drawn()
    guess = [change(g) if k % 3 == 0 else g for k, g in enumerate(guess)]
    columns = {"confidence": sure, "guess": guess, "truth": truth}
    options = {"probs": "confidence", "label": "truth"} | options
    if change is str.upper and "predicted_label" in options:  # case makes no difference there
        assert (read_predictions(columns, **options).labels == right).all()
        return
    with pytest.raises(DoubtfulInputError, match=r"answers such as .* count as wrong") as caught:
        read_predictions(columns, **options)
    (reading,) = caught.value.readings
    assert (read_predictions(columns, **options | dict(reading.options)).labels == right).all()
    as_is = read_predictions(columns, **options, as_is=True)
    assert as_is.labels.sum() < right.sum()


def test_numbers_that_are_written_otherwise_are_asked_about():
    columns = {
        "confidence": [0.5, 0.9, 0.7, 0.8],
        "answer": ["12.0", "7", "x", "1e2"],
        "gold": ["12", "7", "y", "100"],
    }
    options = {"predicted_label": "answer"}
    (reading, _) = refusal(columns, "2 answers such as '12.0' count as wrong", **options)[0]
    data = read_predictions(columns, **options | reading)
    assert data.labels.tolist() == [1, 1, 0, 1]


def test_the_note_says_how_answers_are_compared():
    sure, guess, truth, _ = drawn()
    columns = {"confidence": sure, "guess": guess, "truth": truth}
    note = read_predictions(columns, predicted_label="guess").notes[0]
    assert "the probability that guess equals truth (without regard to case)" in note


def test_a_class_that_is_a_threshold_of_its_confidence_is_asked_about():
    rng = np.random.default_rng(1)
    p = np.round(rng.random(300), 3)
    columns = {
        "stay": 1 - p,
        "churned": np.where(rng.random(300) < p, "Yes", "No"),
        "predicted": np.where(p > 0.5, "Yes", "No"),
    }
    options = {"probs": "stay", "label": "churned", "predicted_label": "predicted"}
    message = "stay seems to be the probability of No, and not how sure"
    ((reading, when),) = refusal(columns, message, **options)
    assert (reading, when) == (
        {"predicted_label": None, "label": "churned = 'No'"},
        "stay is the probability of No",
    )
    offered = refusal(columns, "say which is the event", probs="stay", label="churned")
    assert [when for _, when in offered] == ["No is the event", "Yes is the event"]


def test_a_stated_confidence_below_one_half_is_none_of_a_class():
    rng = np.random.default_rng(2)
    sure, guess = rng.random(300), rng.choice(["a", "b"], 300)
    other = np.where(guess == "a", "b", "a")
    columns = {"conf": sure, "guess": guess, "y": np.where(rng.random(300) < sure, guess, other)}
    assert read_predictions(columns, predicted_label="guess").n == 300


def test_all_that_is_in_the_way_is_said_at_once():
    sure, guess, truth, right = drawn()
    columns = {
        "confidence": [None if k == 5 else int(c) for k, c in enumerate(100 * sure)],
        "answer": [None if k == 5 else g for k, g in enumerate(guess)],
        "gold": truth,
    }
    message = r"no value in row 5 .* leave out such rows; confidence is \d+ in row 0"
    ((reading, when),) = refusal(columns, message, predicted_label="answer")
    assert when == ""
    assert reading == {"drop_missing": True, "probs": "confidence / 100"}
    data = read_predictions(columns, predicted_label="answer", **reading)
    assert (data.labels == np.delete(right, 5)).all()


def test_readings_of_two_refusals_are_combined():
    columns = {"p": [25.0, 75.0, 50.5], "y": ["no", "yes", "yes"]}
    readings = refusal(columns, "p is 25 in row 0.*; y is yes")
    assert readings == [
        ({"probs": "p / 100", "label": "y = 'yes'"}, "yes is the event"),
        ({"probs": "p / 100", "label": "y = 'no'"}, "no is the event"),
    ]


def test_a_further_code_beside_a_time_is_a_competing_event():
    rng = np.random.default_rng(3)
    columns = {
        "p": rng.random(90),
        "Ereignis": np.arange(90) % 3,
        "Monate": np.round(rng.uniform(0, 60, 90), 1),
    }
    ((reading, _),) = refusal(columns, "Monate has the name of a time", label="Ereignis = 1")
    assert reading == {
        "label": None, "event": "Ereignis = 1", "competing": "Ereignis = 2", "time": "Monate",
        "horizon": "NUMBER",
    }  # fmt: skip


# ------------------------------------------------------------------------------
# What is suggested where caltest does not recognise a column name.


def suggestions(columns, **options):
    return refusal(columns, "caltest does not recognise a column name", **options)


@pytest.mark.parametrize("names", [("answer", "correct_answer"), ("pred_class", "gt_class")])
def test_an_answer_and_the_truth_are_suggested_together(names):
    sure, guess, truth, right = drawn()
    answer, gold = names
    columns = {answer: guess, "confidence": sure, gold: truth, "tokens": np.arange(200) + 5}
    assert suggestions(columns) == [
        ({"predicted_label": answer, "label": gold, "probs": "confidence"}, "")
    ]
    data = read_predictions(columns, **suggestions(columns)[0][0])
    assert (data.labels == right).all()


def test_a_score_is_perhaps_the_confidence_in_an_answer():
    sure, guess, truth, _ = drawn()
    readings = suggestions({"score": sure, "found": guess, "gt": truth})
    options = {"predicted_label": "found", "label": "gt", "probs": "score"}
    assert (options, "score is the confidence in found") in readings


def test_a_named_answer_stays_one():
    sure, guess, truth, _ = drawn()
    columns = {"answer": guess, "confidence": np.rint(100 * sure).astype(int), "key": truth}
    assert suggestions(columns, predicted_label="answer") == [
        ({"label": "key", "probs": "confidence / 100"}, "")
    ]


def test_a_group_is_no_outcome():
    sure, _, _, right = drawn(1000)
    site = np.random.default_rng(3).choice(["Graz", "Ulm", "Bern"], 1000)
    readings = suggestions({"chance": sure, "site": site, "ok": np.where(right, "J", "N")})
    assert readings == [({"label": "ok = 'J'", "probs": "chance"}, "J is the event")]
    assert suggestions({"chance": sure, "site": site}) == [
        ({"label": "COLUMN", "probs": "chance"}, "")
    ]


def test_codes_beside_a_time_are_ends_of_follow_up():
    rng = np.random.default_rng(4)
    columns = {
        "riesgo": rng.random(200),
        "meses": np.round(rng.uniform(0, 99, 200), 1),
        "evento": rng.integers(0, 3, 200),
        "centro": rng.choice(["A", "B", "C"], 200),
    }
    assert suggestions(columns) == [
        (
            {
                "label": None, "event": "evento = 1", "competing": "evento = 2", "time": "meses",
                "horizon": "NUMBER", "probs": "riesgo",
            },
            "rows were followed for meses",
        )
    ]  # fmt: skip
    refused = refusal(columns, "evento is", probs="riesgo", label="evento")
    assert refused[0][0]["competing"] == "evento = 2"


def test_counts_are_for_another_command():
    columns = {
        "Rating": ["A", "B", "C", "all"],
        "PD %": [0.5, 2.0, 11.0, None],
        "firms": [900, 400, 120, 1420],
        "defaulted firms": [4, 9, 15, 28],
    }
    with pytest.raises(InvalidPredictionsError) as caught:
        read_predictions(pl.DataFrame(columns))
    (reading,) = caught.value.readings
    assert reading.verb == "grades"
    assert reading.options == {
        "n": "firms", "events": '"defaulted firms"', "probability": '"PD %" / 100',
    }  # fmt: skip


def test_percents_of_candidates_are_told_with_the_winner_of_each():
    rng = np.random.default_rng(5)
    p = np.rint(100 * rng.random(300)).astype(int)
    left = rng.random(300) < p / 100
    columns = {
        "Left %": [f"{v}%" for v in p],
        "Right %": [f"{100 - v}%" for v in p],
        "won": np.where(left, "Left party", "Right party"),
    }
    assert [when for _, when in suggestions(columns)] == [
        "Left party is the event",
        "Right party is the event",
    ]
    for options, _ in suggestions(columns):
        data = read_predictions(columns, **options)
        assert np.corrcoef(data.probs[:, 1], data.labels)[0, 1] > 0.5


def test_logits_are_suggested_as_such():
    z = np.random.default_rng(6).normal(size=(60, 3))
    columns = {f"logit_{k}": z[:, k] for k in range(3)} | {"target": np.arange(60) % 3}
    ((options, _),) = suggestions(columns)
    assert options == {
        "label": "target", "probs": "logit_0, logit_1, logit_2", "from_logits": True,
    }  # fmt: skip


def test_amounts_that_follow_predictions_are_outcomes_with_a_place():
    rng = np.random.default_rng(7)
    pop = 10 * rng.integers(0, 11, 400)
    mm = np.round(np.where(rng.random(400) < pop / 100, rng.exponential(4, 400), 0.0), 1)
    readings = suggestions({"PoP": pop, "mm": mm, "tmax": np.round(rng.normal(12, 8, 400), 1)})
    assert ({"label": "mm >= NUMBER", "probs": "PoP / 100"}, "") in [
        (options, "") for options, _ in readings
    ]


def test_whole_percents_of_classes_are_divided_and_named_by_the_label():
    P = np.array([[20, 30, 50], [60, 30, 10], [0, 10, 90]] * 10)
    names = ["below", "normal", "above"]
    columns = dict(zip(names, P.T, strict=True)) | {"observed": np.tile([*names], 10)}
    assert suggestions(columns) == [
        (
            {"label": "observed", "probs": "below / 100, normal / 100, above / 100",
             "classes": "below,normal,above"},
            "",
        )
    ]  # fmt: skip


def test_the_largest_probability_is_no_label():
    P = np.random.default_rng(8).dirichlet(np.ones(3), 100)
    names = np.array(["x", "y", "z"])
    columns = {f"out:{n}": P[:, k] for k, n in enumerate(names)}
    columns |= {"top": names[P.argmax(axis=1)], "found": names[np.arange(100) % 3]}
    assert [options["label"] for options, _ in suggestions(columns)] == ["found"]


def test_classes_that_columns_do_not_name_have_places():
    P = np.random.default_rng(9).dirichlet(np.ones(3), 50).round(4)
    columns = {f"q_{n}": P[:, k] for k, n in enumerate("abc")} | {"kind": np.arange(50) % 3 + 1}
    assert [options["classes"] for options, _ in suggestions(columns)] == ["CLASS1,CLASS2,CLASS3"]


def test_numbers_that_are_called_nothing_are_percents_only_if_the_user_says_so():
    rng = np.random.default_rng(10)
    bmi = np.round(rng.uniform(18, 40, 300), 1)
    ill = (rng.random(300) < bmi / 50).astype(int)
    assert suggestions({"bmi": bmi, "ill": ill}) == [
        ({"label": "ill", "probs": "bmi / 100"}, "bmi is a probability in percent")
    ]


def test_basis_points_are_divided():
    rng = np.random.default_rng(11)
    bp = np.round(rng.uniform(5, 900, 400), 1)
    columns = {"pd_bps": bp, "defaulted": (rng.random(400) < bp / 1e4).astype(int)}
    assert suggestions(columns)[0][0]["probs"] == "pd_bps / 10000"
    named = refusal(columns, "at most 1", probs="pd_bps", label="defaulted")
    assert named == [({"probs": "pd_bps / 10000"}, "")]
    (other,) = refusal({"p": [1.0, 730.0], "y": [0, 1]}, "p is 730")
    assert other == ({"probs": "p / NUMBER"}, "")


def test_shares_of_votes_are_counts_with_a_place():
    readings = refusal({"p": [0.2, 0.4, 0.9], "y": [0.2, 0.4, 0.8]}, "y holds fractions")
    assert readings[1] == (
        {"label": None, "votes": "round((1 - y) * NUMBER), round(y * NUMBER)"},
        "y is a proportion of NUMBER votes",
    )


def test_blanks_that_predictions_tell_are_the_other_outcome():
    sure, _, _, right = drawn()
    columns = {"conf": sure, "gt_id": [f"g{k}" if ok else None for k, ok in enumerate(right)]}
    ((options, when),) = suggestions(columns)
    assert when == "gt_id is blank where the event did not occur"
    assert (read_predictions(columns, **options).labels == right).all()


def test_percents_with_signs_of_grades_are_not_divided_twice():
    columns = {
        "Klasse": ["1", "2", "3"],
        "PD": ["0.20 %", "1.10 %", "7.00 %"],
        "Kunden": [2100, 900, 400],
        "Ausfälle": [5, 8, 31],
    }
    with pytest.raises(InvalidPredictionsError) as caught:
        read_predictions(pl.DataFrame(columns))
    (reading,) = caught.value.readings
    assert reading.options["probability"] == "PD"


def test_detections_of_the_wrong_class_are_no_events():
    rng = np.random.default_rng(11)
    n = 900
    score = rng.beta(3.0, 2.0, n)
    guess = rng.choice(["zorro", "tejón", "lince"], n)
    right, nothing = rng.random(n) < score, rng.random(n) < 0.6
    other = np.where(guess == "lince", "zorro", "lince")
    truth = [g if r else None if b else o
             for g, r, b, o in zip(guess, right, nothing, other, strict=True)]  # fmt: skip
    table = pl.DataFrame({"score": score, "especie": guess, "verdad": truth})
    with pytest.raises(InvalidPredictionsError) as caught:
        read_predictions(table, probs="score")
    labels = [str(r.options.get("label")) for r in caught.value.readings]
    assert "coalesce(verdad = especie, FALSE)" in labels
    assert "verdad IS NOT NULL" not in labels
    with pytest.raises(DoubtfulInputError, match="verdad that is not especie") as asked:
        read_predictions(table, "score", "verdad IS NOT NULL")
    (reading,) = asked.value.readings
    data = read_predictions(table, "score", reading.options["label"])
    assert data.labels.mean() == right.mean()


def test_a_compared_word_that_no_row_holds_is_asked_about():
    p = np.random.default_rng(1).random(300)
    animals = np.where(np.random.default_rng(2).random(300) < p, "cat", "dog")
    table = pl.DataFrame({"p": p, "animal": animals})
    readings = refusal(table, "never CAT", probs="p", label="animal = 'CAT'")
    assert readings == [({"label": "animal = 'cat'"}, "cat is meant")]
    readings = refusal(table, "never cow", probs="p", label="animal = 'cow'")
    assert [options["label"] for options, _ in readings] == ["animal = 'cat'", "animal = 'dog'"]
    assert read_predictions(table, probs="p", label="animal = 'cow'", as_is=True).n == 300
    assert read_predictions(table.head(1), probs="p", label="animal = 'cow'").n == 1


def test_marks_and_words_of_unknown_outcomes_are_left_out_and_no_event():
    rng = np.random.default_rng(3)
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    coded = np.where(rng.random(500) < 0.05, 9, y)
    readings = refusal({"p": p, "label": coded}, "label is")
    assert readings == [({"where": "label <> 9"}, "9 is a missing value")]
    words = np.where(coded == 9, "unknown", np.where(y == 1, "yes", "no"))
    readings = refusal({"p": p, "label": words}, "label is")
    assert {options["label"] for options, _ in readings} == {"label = 'yes'", "label = 'no'"}
    assert {options["where"] for options, _ in readings} == {"label <> 'unknown'"}
    three = rng.integers(7, 10, 500)  # 9 among its neighbours is a code
    assert len(refusal({"p": p, "label": three}, "label is")) == 3


def test_a_mark_among_probabilities_may_be_a_missing_value():
    p = np.random.default_rng(4).random(200)
    y = (np.random.default_rng(5).random(200) < p).astype(int)
    for mark, where in ((-999.0, "prob >= 0"), (99.0, "prob <= 1")):
        marked = np.where(np.arange(200) < 20, mark, p)
        readings = refusal({"prob": marked, "label": y}, "in 20 rows", probs="prob")
        assert readings == [({"where": where}, f"{mark:g} is a missing value")]
        assert (
            read_predictions(
                pl.DataFrame({"prob": marked, "label": y}), probs="prob", where=where
            ).n
            == 180
        )


def test_rows_of_one_item_bring_an_audit_in_doubt():
    rng = np.random.default_rng(8)
    q = rng.beta(3, 2, 300)
    own, item = rng.beta(0.3 * q, 0.3 * (1.0 - q)), np.repeat(np.arange(300), 8)
    order = rng.permutation(2400)
    y = (rng.random(2400) < own[item]).astype(int)
    table = pl.DataFrame({"prob": q[item], "label": y, "item": [f"s{i}" for i in item]})[order]
    data = read_predictions(table)
    (doubt,) = (note for note in data.notes if isinstance(note, DependenceDoubt))
    assert "item" in doubt
    assert ct.audit(data).verdict is ct.AuditVerdict.IN_DOUBT


def test_arrays_with_a_column_for_each_row_are_refused_with_the_transpose(tmp_path):
    rng = np.random.default_rng(12)
    probs, file = rng.dirichlet(np.ones(3), 50), tmp_path / "a.npz"
    np.savez(file, probs=probs.T, labels=rng.integers(0, 3, 50))
    with pytest.raises(InvalidPredictionsError, match=r"store the transpose, probs\.T"):
        read_predictions(file)
    np.savez(file, probs=probs, labels=rng.integers(0, 3, 50), means=probs.T)
    assert read_predictions(file).n == 50


def test_labels_of_fewer_values_than_classes_that_occur_are_another_outcome(tmp_path, run):
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(5), 400).round(6)
    P[:, 4] = 1.0 - P[:, :4].sum(axis=1)
    k = (P.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    columns = {f"p_birads{j + 1}": P[:, j] for j in range(5)}
    columns |= {"grade": k + 1, "density": rng.choice([*"abcd"], 400)}
    pl.DataFrame(columns).write_csv(tmp_path / "a.csv")
    code, _, err = run("audit", tmp_path / "a.csv", "--label", "density")
    assert code == 2
    assert "it is another outcome" in err
    assert "CLASS1" not in err
    (line,) = [line for line in run("audit", tmp_path / "a.csv")[2].splitlines() if "run:" in line]
    assert "--label grade --classes 1,2,3,4,5" in line
    four = "CASE WHEN grade > 4 THEN 1 ELSE grade END"
    assert read_predictions(pl.DataFrame(columns), label=four, classes=range(1, 6)).n_classes == 5


def test_answers_that_are_never_right_are_asked_about():
    names = [f"pl{k}" for k in range(10)]
    columns = {"player": names * 10, "opponent": (names[1:] + names[:1]) * 10, "p": [0.5] * 100}
    options = {"probs": "p", "label": "player", "predicted_label": "opponent"}
    with pytest.raises(ct.errors.DoubtfulInputError, match="equals player in none of 100 rows"):
        read_predictions(pl.DataFrame(columns), **options)
    assert read_predictions(pl.DataFrame(columns), **options, as_is=True).n == 100
    columns["p"] = [0.001] * 100
    assert read_predictions(pl.DataFrame(columns), **options).n == 100


@pytest.mark.parametrize(("verb", "stems"), [("audit", "py"), ("segments", ("score", "has"))])
def test_pairs_of_outcome_columns_are_labels_or_models(verb, stems, tmp_path, run):
    rng = np.random.default_rng(13)
    P = rng.uniform(0.05, 0.95, (300, 3)).round(4)
    names = ("a", "b", "c")
    columns = {f"{stems[0]}_{name}": P[:, j] for j, name in enumerate(names)}
    columns |= {
        f"{stems[1]}_{name}": (rng.random(300) < P[:, j]) * 1 for j, name in enumerate(names)
    }
    file = tmp_path / "labels.csv"
    pl.DataFrame(columns).write_csv(file)
    code, _, err = run(verb, file)
    assert code == 2
    printed = [line for line in err.splitlines() if line.startswith("if ")]
    assert all("is the only outcome" in line for line in printed[1:-1])
    assert len(printed) == 5
    printed = [printed[0], printed[-1]]
    for line, verb, said in zip(printed, ("audit", "compare"), ("labels", "a model"), strict=True):
        words = shlex.split(line.partition("caltest ")[2])
        assert (words[0], said in line) == (verb, True)
        assert run(*words, "--n-resamples", "199")[0] == 0


@pytest.mark.parametrize(
    ("shift", "late"), [(-0.8, False), (0.8, True)], ids=["fewer events", "more events"]
)
def test_a_time_brings_fewer_and_more_events_than_predicted_in_doubt(shift, late):
    rng = np.random.default_rng(9)
    z = rng.normal(-1.0, 1.0, 1500)
    y = (rng.random(1500) < 1.0 / (1.0 + np.exp(-z - shift))).astype(int)
    table = {"risk": 1.0 / (1.0 + np.exp(-z)), "label": y, "days": rng.integers(1, 900, 1500)}
    report = ct.audit(read_predictions(pl.DataFrame(table)), n_resamples=199)
    assert report.verdict is ct.AuditVerdict.IN_DOUBT
    said = (*report.notes, *report.summary)
    doubt = next(text for text in said if "days has the name of a time" in text)
    assert ("after the horizon" in doubt) == late


def test_a_horizon_in_years_beside_months_is_asked_about_where_names_say_so():
    rng = np.random.default_rng(10)
    risk = rng.beta(2, 8, 1200)
    months = np.minimum(60.0 * rng.exponential(1.0, 1200) / -np.log1p(-risk), 110.0).round(1)
    columns = {"risk_5y": risk, "months": months, "died": (months < 110.0) * 1}
    asked = {"event": "died", "time": "months", "probs": "risk_5y"}
    readings = refusal(columns, "times reach to 110", horizon=5, **asked)
    assert readings == [({"horizon": "60"}, "risk_5y is the risk by time 60")]
    assert read_predictions(pl.DataFrame(columns), horizon=60, **asked).n == 1200
    columns["p"] = columns.pop("risk_5y")
    data = read_predictions(pl.DataFrame(columns), horizon=5, **asked | {"probs": "p"})
    assert ct.audit(data, n_resamples=199).verdict is ct.AuditVerdict.IN_DOUBT


def test_two_ends_beside_censored_rows_are_each_the_event_and_the_named_one_is_first():
    rng = np.random.default_rng(11)
    columns = {
        "risk_relapse_5y": rng.random(300), "time_years": rng.exponential(3.0, 300).round(2),
        "status": rng.choice(["censored", "death", "relapse"], 300),
    }  # fmt: skip
    ways = [(o["event"], o["competing"]) for o, _ in suggestions(columns)]
    relapse, death = "status = 'relapse'", "status = 'death'"
    assert ways == [(relapse, death), (death, relapse)]
    followed = {"probs": "risk_relapse_5y", "time": "time_years", "horizon": 2}
    readings = refusal(columns, "competing event", event=relapse, **followed)
    assert [options["competing"] for options, _ in readings] == [death]


@pytest.mark.parametrize("name", ["odds", "x"])
def test_decimal_odds_are_the_reciprocals_of_probabilities(name):
    rng = np.random.default_rng(12)
    p = rng.uniform(0.02, 0.95, 600)
    columns = {name: np.round(1 / p, 3), "win": (rng.random(600) < p).astype(int)}
    ((options, when),) = suggestions(columns)
    assert options == {"label": "win", "probs": f"1 / {name}"}
    assert when == f"{name} holds decimal odds"


def test_odds_of_one_game_are_divided_by_their_sum():
    rng = np.random.default_rng(13)
    P = rng.dirichlet([3, 2, 3], 400).clip(0.02)
    P /= P.sum(axis=1, keepdims=True)
    ends = ("home", "draw", "away")
    columns = {f"odds_{e}": np.round(1 / (1.06 * P[:, k]), 2) for k, e in enumerate(ends)}
    columns = {n: v.clip(1.01) for n, v in columns.items()}
    truth = (P.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    columns["result"] = np.array(ends)[truth]
    ((options, _),) = suggestions(columns)
    options["classes"] = options["classes"].split(",")
    data = read_predictions(pl.DataFrame(columns), **options)
    assert data.n_classes == 3
    assert ct.calibration_test(data, n_resamples=199, rng=0).pvalue > 0.01


def test_a_coordinate_is_no_label_beside_a_match():
    rng = np.random.default_rng(14)
    score = rng.random(600)
    columns = {
        "x": rng.integers(0, 500, 600), "y": rng.integers(0, 500, 600), "score": score,
        "match": np.where(rng.random(600) < score, "TP", "FP"),
    }  # fmt: skip
    labels = [options["label"] for options, _ in suggestions(columns)]
    assert "match = 'TP'" in labels
    assert not any(label.startswith("y") for label in labels)
    readings = refusal(columns, "y is", label="y", probs="score")
    assert readings[0][0]["label"] == "match = 'TP'"


@pytest.mark.parametrize(("classes", "probs"), [
    (30, "softmax_*"),
    (20, ", ".join(f"softmax_{k}" for k in range(20))),
])  # fmt: skip
def test_commands_for_many_classes_have_a_pattern_of_columns(classes, probs):
    rng = np.random.default_rng(5)
    cells = {f"softmax_{k}": q for k, q in enumerate(rng.dirichlet(np.ones(classes), 300).T)}
    table = pl.DataFrame({**cells, "gt": rng.integers(0, classes, 300)})
    with pytest.raises(InvalidPredictionsError) as caught:
        read_predictions(table)
    assert [r.options for r in caught.value.readings] == [{"label": "gt", "probs": probs}]


def test_a_pattern_of_columns_stands_for_these_columns_only():
    names = [f"p{k}" for k in range(30)]
    listed = ", ".join(names)
    assert _as_pattern(listed, dict.fromkeys(names)) == "p*"
    assert _as_pattern(listed, dict.fromkeys([*names, "pred"])) == "p[0-9]*"
    assert _as_pattern(listed, dict.fromkeys([*names, "p99"])) == listed
    backwards = ", ".join(names[::-1])
    assert _as_pattern(backwards, dict.fromkeys(names)) == backwards


@pytest.mark.parametrize("label", ["rain = '1'", "rain <> '0'"])
def test_one_word_beside_0_and_1_is_never_an_outcome_however_rare(label):
    rng = np.random.default_rng(1)
    p = rng.random(400)
    rain = np.where(rng.random(400) < p, "1", "0")
    rain[7] = "M"
    where = [({"where": "rain <> 'M'"}, "the outcome is not known there")]
    assert refusal({"p": p, "rain": rain}, "0, 1, M", label=label) == where


@pytest.mark.parametrize("label", ["c IN ('P', 'LP')", "c = 'P' OR c = 'LP'", "c = 'P'"])
def test_the_most_frequent_code_may_be_the_one_that_is_not_known(label):
    rng = np.random.default_rng(2)
    p = rng.beta(0.6, 0.8, 1200)
    event, often = rng.random(1200) < p, rng.random(1200) < 0.7
    known = np.where(event, np.where(often, "P", "LP"), np.where(often, "B", "LB"))
    code = np.where(rng.random(1200) < 0.45, "VUS", known)
    where = [({"where": "c <> 'VUS'"}, "the outcome is not known there")]
    assert refusal({"p": p, "c": code}, "where it is VUS", label=label) == where


def test_ranks_that_are_text_or_grouped_by_a_column_called_n_do_not_stop_the_suggestions():
    rng = np.random.default_rng(14)
    wins = rng.integers(0, 2, 60).astype(bool)
    columns = {
        "Dem %": [f"{k}%" for k in rng.integers(1, 25, 60)], "n": np.arange(60) // 4,
        "place": np.tile([1, 2, 3, 4], 15), "Winner": np.where(wins, "Democrat", "Republican"),
    }  # fmt: skip
    assert any("Democrat" in options.get("label", "") for options, _ in suggestions(columns))


def test_a_percentage_is_offered_beside_a_fraction_that_is_no_prediction():
    rng = np.random.default_rng(0)
    p = rng.beta(1.0, 2.0, 800)
    y = (rng.random(800) < p).astype(int)
    columns = {"risk_pct": 100 * p, "frailty": rng.random(800), "died": y}
    assert suggestions(columns) == [({"label": "died", "probs": "risk_pct / 100"}, "")]
    columns = {"thousand_score": np.rint(1000 * p), "similarity": rng.random(800), "died": y}
    whens = [when for _, when in suggestions(columns)]
    assert whens == ["thousand_score is a probability in thousandths"]


def test_a_feature_that_ranks_outcomes_is_one_more_condition():
    rng = np.random.default_rng(0)
    p = rng.beta(1.0, 2.0, 800)
    y = (rng.random(800) < p).astype(int)
    near = np.clip(p + rng.normal(0, 0.2, 800), 0, 1)
    for name, said in (("risk_pct", "risk_pct"), ("Risiko", "Risiko")):
        columns = {"frailty": near, name: 100 * p, "died": y}
        assert [when for _, when in suggestions(columns)] == [
            f"died is the outcome and {said} in percent is the prediction",
            "died is the outcome and frailty is the prediction",
        ]


def test_an_old_prediction_comes_last_and_p_values_are_none():
    rng = np.random.default_rng(0)
    p = rng.beta(1.0, 2.0, 800)
    y = (rng.random(800) < p).astype(int)
    columns = {"pd_prev": p, "pd_now": 0.5 * p + 0.5 * rng.random(800), "outcome": y}
    whens = [when for _, when in suggestions(columns)]
    assert whens == ["pd_now is the prediction", "pd_prev is the prediction"]
    columns = {"p_value": rng.random(800), "risk_score": p, "outcome": y}
    readings = refusal(columns, "p_value is the probability of one class")
    assert readings == [({"label": "outcome", "probs": "risk_score"}, "")]


def test_two_codes_of_an_event_are_offered_together_and_parts_of_data_are_no_outcome():
    rng = np.random.default_rng(2)
    p = rng.beta(0.6, 0.8, 1200)
    often = rng.random(1200) < 0.6
    known = np.where(rng.random(1200) < p, np.where(often, "P", "LP"), np.where(often, "B", "LB"))
    columns = {"phat": p, "call": known, "in_training": (p > 0.5) * 1}
    found = suggestions(columns)
    assert found[0] == ({"label": "call IN ('LP', 'P')", "probs": "phat"}, "LP or P is the event")
    assert [when for _, when in found[1:]] == ["LP is the event", "P is the event"]


def test_amounts_that_fall_with_the_predictions_are_the_event_below_a_threshold():
    p = np.random.default_rng(3).random(200)
    columns = {"frost_prob": p, "tmin": 10.0 - 12.0 * p}
    ((options, _),) = suggestions(columns)
    assert options == {"label": "tmin < NUMBER", "probs": "frost_prob"}


def test_one_number_for_all_rows_is_an_expression():
    columns = {"x": [1.0, None, 3.0], "y": [1, 0, 1]}
    ((options, when),) = refusal(columns, "it uses no column", probs="0.9")
    assert when == ""
    assert read_predictions(columns, **options).probs[:, 1].tolist() == [0.9, 0.9, 0.9]


def test_numbers_without_a_telling_name_that_end_early_are_percents_only_if_so():
    ranks = {"score": [1, 5, 12], "y": [1, 0, 1]}
    whens = [when for _, when in refusal(ranks, "score is 1|score is 5", probs="score")]
    assert whens == ["score is in percent", "score is out of NUMBER"]
    odds = {"price": [1.4, 5.5, 12.5], "y": [1, 0, 1]}
    whens = [when for _, when in refusal(odds, "price is 1.4", probs="price")]
    assert whens == ["price is in percent", "price holds decimal odds"]
    assert refusal({"risk": [0.0, 5.0, 91.4], "y": [1, 0, 1]}, "risk is 5") == [
        ({"probs": "risk / 100"}, "")
    ]


def test_areas_under_two_curves_are_compared_as_by_delong():
    """Counted pair by pair: the placements of events and of other rows, and their variances."""
    rng = np.random.default_rng(4)
    y = (rng.random(60) < 0.4).astype(int)
    p, q = np.round(rng.random(60) + 0.4 * y, 1), np.round(rng.random(60) + 0.2 * y, 1)
    wins = [
        (x[y == 1][:, None] > x[y == 0]) + 0.5 * (x[y == 1][:, None] == x[y == 0]) for x in (p, q)
    ]
    rows, columns = (wins[0].mean(axis=k) - wins[1].mean(axis=k) for k in (1, 0))
    variance = rows.var(ddof=1) / rows.size + columns.var(ddof=1) / columns.size
    assert order_gap(p, q, y) == pytest.approx(rows.mean() / np.sqrt(variance), rel=1e-12)
    assert order_gap(p, p, y) == 0.0


def test_a_fraction_that_another_column_outranks_is_the_prediction_only_if_so():
    rng = np.random.default_rng(6)
    z = rng.normal(-1, 1.5, 400)
    y = (rng.random(400) < 1 / (1 + np.exp(-z))).astype(int)
    feature = 1 / (1 + np.exp(-0.5 * z - rng.normal(size=400)))
    columns = {"rate": feature, "Risiko": z, "died": y}
    assert [when for _, when in suggestions(columns)] == ["rate is the prediction"]
    columns = {"phat": 1 / (1 + np.exp(-z)), "bmi": rng.normal(27, 4, 400), "died": y}
    assert [when for _, when in suggestions(columns)] == [""]


def test_sixty_rows_with_an_outcome_are_no_grades():
    rng = np.random.default_rng(7)
    p = rng.random(60)
    columns = {"risk_new": p, "age": rng.integers(20, 90, 60), "died": (rng.random(60) < p) * 1}
    readings = suggestions(columns)
    assert [options["label"] for options, _ in readings] == ["died"]


@pytest.mark.parametrize(("spread", "condition"), [(0.004, ""), (0.4, "exclude each other")])
def test_rows_far_from_a_sum_of_one_are_divided_under_a_condition_only(spread, condition):
    rng = np.random.default_rng(12)
    probs = rng.dirichlet(np.ones(3), 200) * rng.uniform(1.0 - spread, 1.0, (200, 1))
    columns = {f"p_{name}": probs[:, k] for k, name in enumerate("abc")}
    columns["label"] = rng.choice(list("abc"), 200)
    [(options, when)] = refusal(columns, "sums to")
    assert (options, bool(when)) == ({"renormalise": True}, bool(condition))
    assert condition in when


def test_minus_one_beside_zero_and_one_may_be_not_known_and_is_no_event():
    rng = np.random.default_rng(13)
    columns = {"prob": rng.random(300), "label": rng.choice([-1, 0, 1], 300)}
    ways = [options for options, _ in refusal(columns, "say which is the event")]
    assert ways == [{"where": "label <> -1"}, {"label": "label = 1"}]
