"""Files and frames as newcomers have them: read as what they are, or refused with both calls."""

import json
import re

import numpy as np
import pytest

import caltest as ct
from caltest.data.facts import are_dates, as_times
from caltest.errors import InvalidPredictionsError
from caltest.planning import Population
from caltest.read.arguments import read_arguments
from caltest.read.files import read_predictions

RNG = np.random.default_rng(11)


def written(path, columns):
    """Write columns as a CSV file."""
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join(",".join(map(str, row)) for row in [list(columns), *rows]) + "\n")
    return path


def stated(n=60, below=True):
    """Return answers of a model, how sure it says it is of them, and what is right."""
    truth, confidence = RNG.integers(0, 2, n), RNG.uniform(0.2 if below else 0.5, 1, n).round(2)
    answer = np.where(RNG.random(n) < 0.7, truth, 1 - truth)
    return answer, confidence, truth


NAMES = [
    ("Answer", "Confidence", "correct_answer"),
    ("model_answer", "stated_confidence", "answer"),
    ("choice", "conf", "target"),
    ("pred", "certainty", "truth"),
]


@pytest.mark.parametrize("values", [[0, 1], ["False", "True"], ["A", "B"]])
@pytest.mark.parametrize("names", NAMES)
def test_a_stated_confidence_is_about_the_answer(tmp_path, names, values):
    answer, confidence, truth = stated()
    words = [np.array(values)[answer], confidence, np.array(values)[truth]]
    columns = dict(zip(names, words, strict=True))
    for data in (
        read_predictions(written(tmp_path / "f.csv", columns)),
        read_arguments(columns, names[2]),
        read_arguments(columns),
    ):
        assert data.classes == ("wrong", "right")
        np.testing.assert_array_equal(data.labels, answer == truth)
        np.testing.assert_allclose(data.probs[:, 1], confidence)


def test_one_answer_to_all_may_be_right_or_wrong():
    _, certainty, truth = stated(below=False)
    data = read_arguments({"pred": np.zeros(60, int), "certainty": certainty, "truth": truth})
    np.testing.assert_array_equal(data.labels, truth == 0)


def test_answers_in_words_are_known_by_their_cells(tmp_path):
    answer, confidence, truth = (np.array([*"ABCD"] * 15), stated()[1], np.array([*"ABDC"] * 15))
    columns = {"question": np.arange(60), "said": answer, "sure": confidence, "key": truth}
    data = read_predictions(written(tmp_path / "f.csv", columns), "sure", "key")
    np.testing.assert_array_equal(data.labels, answer == truth)
    assert "as the probability that said equals key" in data.notes[0]


def test_answers_in_words_are_not_compared_with_whether_they_were_right(tmp_path):
    columns = {"model_answer": [*"xyzx"], "stated_confidence": [0.9, 0.7, 0.8, 0.6]}
    for name, classes in (("graded_correct", ("wrong", "right")), ("judged", None)):
        path = written(tmp_path / "f.csv", columns | {name: [True, False, True, True]})
        data = read_predictions(path)
        assert (data.labels.tolist(), data.classes) == ([1, 0, 1, 1], classes)


def test_verdicts_in_words_come_before_texts_of_answers(tmp_path, run):
    columns = {"model_answer": [*"xyzx"], "stated_confidence": [0.9, 0.7, 0.8, 0.6]}
    graded = {"grade": ["correct", "wrong", "refused", "incorrect"] * 2, "p": [0.7] * 8}
    with pytest.raises(InvalidPredictionsError, match="labels are text in column grade") as caught:
        read_predictions(written(tmp_path / "f.csv", graded | {"topic": [*"aabb"] * 2}))
    assert caught.value.remedies == (("--drop-label", "refused"),)
    columns |= {"gold": [*"vwvw"], "verdict": ["correct", "Incorrect", "correct", "correct"]}
    for label in (None, "verdict"):
        data = read_predictions(written(tmp_path / "f.csv", columns), label=label)
        assert data.labels.tolist() == [1, 0, 1, 1]
        assert "the event is 'correct'" in " ".join(data.notes)
    columns = {"answer": [1987] * 30, "stated_confidence": [90] * 30}
    columns["judge_verdict"] = [*["CORRECT"] * 20, *["INCORRECT"] * 9, "Unsure"]
    path = written(tmp_path / "f.csv", columns)
    named = "--label judge_verdict --pos-label CORRECT --drop-label Unsure"
    command = f"run: caltest test {path} --probs stated_confidence {named}\n"
    assert command in run("test", path)[2]
    data = read_predictions(path, drop_labels="Unsure")
    assert (data.labels.sum(), data.notes[1]) == (20, "judge_verdict says where answer was right")
    columns["judge_verdict"] = [*["Paris", "Rome", "Pisa", "Bari", "", "Como"] * 5]
    messages = run("test", written(path, columns), "--label", "judge_verdict")[2]
    assert "then: answer equals judge_verdict in no row (1987 and Paris in the first)" in messages
    assert messages.endswith("; no command is known that goes on from there\n")


def test_two_readings_are_spelled_out(tmp_path):
    """Of words, p may be that of "yes", or that the prediction is right."""
    p = np.array([0.9, 0.2, 0.7, 0.4, 0.5] * 4)
    words = np.array(["no", "yes"])[(p > 0.5).astype(int)]
    columns = {"prediction": words, "p": p, "y": ["yes", "no", "no", "yes", "no"] * 4}
    path = written(tmp_path / "f.csv", columns)
    message = r"say pos_label='yes' \(--pos-label yes\) or predicted_label='prediction' "
    for read, of in ((read_predictions, (path,)), (read_arguments, (columns, "y"))):
        with pytest.raises(InvalidPredictionsError, match=message):
            read(*of)
    assert np.array_equal(read_predictions(path, pos_label="yes").labels, [1, 0, 0, 1, 0] * 4)
    right = read_arguments(columns, "y", predicted_label="prediction").labels
    np.testing.assert_array_equal(right, [1, 1, 0, 0, 1] * 4)


def test_a_tie_between_two_classes_refuses_no_file(tmp_path):
    p = np.array([0.9, 0.5, 0.2, 0.5])
    columns = {"y_pred": [1, 0, 0, 1], "score": p, "y": [1, 1, 0, 0]}
    np.testing.assert_array_equal(read_arguments(columns, "y").labels, [1, 1, 0, 0])
    columns["y_pred"] = [0, 0, 1, 1]
    with pytest.raises(InvalidPredictionsError, match="could be the probability of label 0"):
        read_arguments(columns, "y")
    columns["y_pred"] = [1, 0, 1, 1]
    with pytest.raises(InvalidPredictionsError, match="different classes in row 3, 1 row in all"):
        read_predictions(written(tmp_path / "f.csv", columns))


def test_rows_of_two_models_are_asked_about(tmp_path):
    columns = {"p": [0.2, 0.8, 0.4], "y": [0, 1, 1], "model": ["a", "b", "b"]}
    path = written(tmp_path / "f.csv", columns)
    with pytest.raises(InvalidPredictionsError, match=r"models \(a, b\).*--by model.*--one-m"):
        read_predictions(path)
    assert read_predictions(path, one_model=True).n == 3
    assert list(read_predictions(path, by="model").subgroups()) == ["a", "b"]
    with pytest.raises(InvalidPredictionsError, match="leave the column out"):
        read_arguments(columns, "y")


def test_rows_are_renormalised_if_asked_for(tmp_path, done, refused):
    columns = {"p_a": [0.5, 0.3, 0.25], "p_b": [0.4, 0.7, 0.75], "label": ["a", "b", "b"]}
    path = written(tmp_path / "f.csv", columns)
    refused("row 1 sums to 0.9 (1 of 3 rows", "test", path)
    refused("pass renormalise=True (--renormalise)", "test", path)
    assert "renormalised as asked for (sums from 0.9 to 0.9)" in done("test", path, "--renormalise")
    data = read_arguments(columns, "label", renormalise=True)
    np.testing.assert_allclose(data.probs[:, 0], [5 / 9, 0.3, 0.25])
    with pytest.raises(InvalidPredictionsError, match="row 0 sums to 0"):
        read_arguments([[0.0, 0.0], [0.5, 0.5]], [0, 1], renormalise=True)


def test_remarks_are_no_labels_and_windows_text_is_read(tmp_path, refused):
    path = tmp_path / "f.csv"
    rows = "".join(f"0,{i};{'gbuöts'[i % 2 :: 2]};{'Rück' * (i == 8)}\n" for i in range(1, 9))
    path.write_bytes(f"Score;Läsion;Bemerkung\n{rows}".encode("cp1252"))
    assert (data := read_predictions(path, pos_label="bös")).labels.tolist() == [1, 0] * 4
    assert "labels from Läsion" in data.notes[0]
    assert "text read as cp1252" in data.notes[1]
    with pytest.raises(InvalidPredictionsError, match="7 of 8 rows; is Bemerkung the") as caught:
        read_predictions(path, label="Bemerkung")
    assert not caught.value.remedies
    path.write_bytes("p;y;é\n0,3;1;".encode() + b"\xfc\n")  # of two encodings
    refused("not a text file in UTF-8", "test", path, "--by", "é")
    two = {"p": [0.2, 0.7, 0.4, 0.1] * 2, "here": [*"abab"] * 2, "there": [*"baab"] * 2}
    with pytest.raises(InvalidPredictionsError, match="the label: here or there"):
        read_arguments(two)


def test_rows_that_cannot_be_read_are_left_out_if_asked_for(tmp_path):
    columns = {"p": [0.2, "refused", "", 0.4, 0.9], "y": [0, 1, 1, "", 1]}
    data = read_predictions(written(tmp_path / "f.csv", columns), drop_missing=True)
    np.testing.assert_allclose(data.probs[:, 1], [0.2, 0.9])
    assert data.notes[1].endswith("(y 1, p 1); p held no number in 1, such as 'refused'")
    p, y = np.array([0.2, np.nan, 0.4, 0.8]), np.array([0, 1, 1, 1])
    with pytest.raises(InvalidPredictionsError, match=r"row 1 is nan .1 such.*drop_missing=True"):
        ct.calibration_test(p, y)
    result = ct.calibration_test(p, y, drop_missing=True, by=[*"abab"])
    assert (result.n, result.notes[0]) == (3, "dropped 1 of 4 rows with missing cells (probs 1)")
    data = read_arguments({"b": p, "a": 1 - p}, [*"abbb"], drop_missing=True)
    assert (data.classes, data.labels.tolist()) == (("b", "a"), [1, 0, 0])


def binary(n, shift=0):
    p = RNG.random(n).round(6)
    return {"p": p, "y": (RNG.random(n) < p).astype(int), "site": np.arange(n) % 25 + 25 * shift}


def test_last_rows_without_an_outcome_are_left_out_and_reversed_probabilities_doubted(
    tmp_path, refused, done
):
    columns = {name: values.astype(object) for name, values in binary(300).items()}
    columns["p"], columns["y"][200:] = 1 - columns["p"], ""
    out = done("test", path := written(tmp_path / "f.csv", columns))
    assert "left out the last 100 of 300 rows, which have no outcome yet." in out
    assert "are they the probability of 0? Then say" in out
    columns["y"][:200].sort()  # the last rows are from anywhere
    for y, words in ((columns["y"], "100 missing cells"), ([*columns["y"][:-1], 1], "99 missing")):
        refused(words, "test", written(path, columns | {"y": y}))


def test_rows_without_a_group_are_one_and_rows_are_those_of_the_file(tmp_path, done):
    columns = {name: values.astype(object) for name, values in binary(200).items()}
    columns["site"][:] = ["", "NA", *[24, 72] * 99]
    columns["p"][[4, 9]], columns["y"][9] = ["", 0], 1
    path = written(tmp_path / "f.csv", columns)
    words = done("audit", path, "--by", "site")
    assert "Note: the subgroup (no value) is of 2 rows without a value of by." in words
    assert "(the first in row 10, counted from 1)" in words
    assert "dropped 3 of 200 rows" in done("audit", path, "--by", "site", "--drop-missing")
    p, y, site = (np.delete(values, 4) for values in columns.values())
    frame = {"p": p.astype(float), "y": y.astype(int)}
    values = np.array([v if v in (24, 72) else np.nan for v in site])
    for by in (values, {"site": values}, "site"):
        data = read_arguments(frame | {"site": site}, "y", by=by)
        names = [name.removeprefix("site=") for name in data.subgroups()]
        assert (names, data.n) == (["(no value)", "24", "72"], 199)
        assert data.notes[-1].startswith("the subgroup (no value) is of 2 rows")
    ages = read_arguments(frame | {"age": [np.nan, *range(198)]}, "y", by=["age"]).subgroups()
    assert [rows.size for rows in ages.values()] == [1, 50, 50, 49, 49]


def test_a_few_incomplete_rows_are_left_out_and_named(tmp_path, done, refused):
    """Where no others are paired with them, and what is missing is a prediction or an outcome."""
    columns = binary(200)
    p, y, site = (values.astype(object) for values in columns.values())
    y[4] = p[90] = ""
    path = written(tmp_path / "f.csv", {"p": p, "y": y, "site": site})
    note = "dropped 2 of 200 rows with missing cells (y in row 5, p in row 91; counted from 1"
    assert note in done("test", path)
    refused("column y has 1 missing cell", "gate", path, "--tolerance", 0.1)
    with pytest.raises(InvalidPredictionsError, match="column y has 1 missing cell, in row 5 "):
        read_predictions(path)
    site[7] = ""
    path = written(tmp_path / "f.csv", {"p": p, "y": y, "site": site})
    refused("complete these rows", "test", path, "--clusters", "site")
    y[100] = ""
    refused("y has 2 missing", "test", written(path, {"p": p, "y": y, "site": site}))
    words = np.where(np.arange(200) < 20, "not attempted", np.where(y == 1, "correct", "wrong"))
    p[90], p[:20] = 0.5, ""
    path = written(path, {"confidence": p, "label": words})
    assert "dropped 20 of 200 rows" in done("test", path)
    p[30] = ""
    refused("21 missing", "test", written(path, {"confidence": p, "label": words}))


@pytest.mark.filterwarnings("default")
def test_outcomes_against_rounded_probabilities_are_no_proof(tmp_path, run, refused, done):
    """If half a step explains them, of clusters as often as their rows are otherwise together."""
    p, day = np.repeat([0, 10, 50, 90, 100], 40), np.arange(200) // 20
    y = (np.arange(200) % 10 < p // 10).astype(int)
    for days, wrong, independent in ((slice(5, 6), 1, 120), (slice(20), 20, 200)):
        y[days] = 1  # of twenty all are of one day
        path = written(tmp_path / "f.csv", {"day": day, "pop": p, "y": y})
        _, out, error = run("test", path, "--clusters", "day")
        assert ("n = 120" in out, "rounding to multiples of 0.1 explains" in error) == (True, True)
        assert f"n = {independent}" in done("test", path)
        assert "n = 120" in done("test", path, "--rounded")
        note = f"{wrong} of 80 outcomes predicted with probability 0 or 1 were otherwise"
        assert read_predictions(path, rounded=True).notes[-1].endswith(f"may be rounded: {note}")
        assert "had predicted probability exactly 0" in done("test", path, "--not-rounded")
    refused("for two classes", "test", written(path, {"p_0": [0.2], "p_1": [0.3], "p_2": [0.5],
            "y": [1]}), "--rounded")  # fmt: skip


def test_an_event_may_be_an_amount_beyond_a_limit(tmp_path, refused):
    columns = {"pop": [0.1, 0.8, 0.3, 0.6], "mm": ["0.0", "7.1", "", "0.2"], "site": [*"abab"]}
    path = written(tmp_path / "f.csv", columns)
    refused("no labels found among pop, mm, site; name them", "test", path)
    refused("beyond a limit, say label='mm>=0.5' (--label 'mm>=0.5')", "test", path)
    refused("'x' is not a number", "test", path, "--label", "mm>x")
    refused("no column 'nm' among pop, mm", "test", path, "--label", "nm>=1")
    kinds = written(
        tmp_path / "k.csv", {"mel": [0.1, 0.8, 0.3] * 9, "dx": [*"xyz"] * 8 + ["mel"] * 3}
    )
    for more in ((), ("--pos-label", "mel")):
        refused("label='dx==mel'", "test", kinds, "--probs", "mel", "--label", "dx", *more)
    assert read_predictions(kinds, "mel", "dx==mel").labels.tolist() == [0] * 24 + [1] * 3
    for sign, wet in ((">=0.2", [0, 1, 1]), ("> 0.2", [0, 1, 0]), ("<=0.2", [1, 0, 1])):
        for read, of in ((read_predictions, (path, "pop")), (read_arguments, (columns,))):
            data = read(*of, f"mm{sign}", drop_missing=True)
            assert (data.labels.tolist(), data.probs[2, 1]) == (wet, 0.6)


def test_free_answers_are_compared_as_a_reader_would(tmp_path):
    truth = np.array([f"{first}{second}" for first in "ABCDEF" for second in "vwxyz"])
    answer = truth.astype(object)
    answer[:4] = "av", "Aw.", "It is Ax, surely", "B"
    columns = {"model_answer": answer, "confidence": [0.9] * 30, "correct_answer": truth}
    with pytest.warns(ct.DoubtfulInputWarning, match="among other words in 1 row, which are taken"):
        data = read_arguments(columns)
    np.testing.assert_array_equal(data.labels, [1, 1, 0, 0, *[1] * 26])
    assert "whatever their case and last point (which matters in 2 rows)" in data.notes[0]


def test_facts_that_are_not_used_are_doubted(tmp_path):
    columns = binary(40) | {"user_id": np.arange(40) // 2}
    path = written(tmp_path / "f.csv", columns)
    with pytest.warns(ct.DoubtfulInputWarning, match=r"20 values in 40 rows.*\(--clusters user_id"):
        read_predictions(path)
    assert read_predictions(path, clusters="user_id").n_clusters == 20
    path = written(path, binary(40) | {"sample_weight": [1, 2] * 20})
    with pytest.warns(ct.DoubtfulInputWarning, match="all rows count alike"):
        read_predictions(path)
    assert read_predictions(path, weights="sample_weight").effective_n < 40
    assert read_predictions(written(path, columns | {"user_id": np.arange(40)})).n == 40


NAMES_OF_TWO = [("gpt4", "claude"), ("model_a", "model_b"), ("one", "two"), ("ordered", "shuffled")]


@pytest.mark.parametrize("names", NAMES_OF_TWO)
def test_files_of_two_models_are_asked_about(tmp_path, run, done, names):
    """By their names, or by the same labels in one order, also that of their ids."""
    first = binary(200) | {"case_id": np.arange(200)}
    second = first | {"p": first["p"] ** 2} if names[0] in ("one", "ordered") else binary(200)
    order = RNG.permutation(200) if names[0] == "ordered" else np.arange(200)
    second = {name: values[order] for name, values in second.items()}
    both = zip(names, (first, second), strict=True)
    files = [written(tmp_path / f"{name}.csv", columns) for name, columns in both]
    code, _, error = run("audit", *files)
    new, old = (path.name for path in files)
    assert re.search(rf"caltest compare \S*{new} \S*{old} ", error)
    assert re.search(rf"caltest gate \S*{new} --against \S*{old} --margin 0.01 ", error)
    assert (code, "--one-model\n" in error) == (2, True)
    done("audit", *files, "--one-model", "--n-resamples", 99)


def test_parts_of_one_model_are_pooled(tmp_path):
    for name in ("gpt4_part1", "gpt4_part2", "monday", "tuesday", "2024-01", "2024-02"):
        written(tmp_path / f"{name}.csv", binary(60))
    assert read_predictions(tmp_path / "*.csv").n == 360


def test_a_reordered_file_is_not_monitored_again(tmp_path, done):
    columns, run = binary(100), ("monitor", "--state", tmp_path / "state", "--json")
    done(*run, written(tmp_path / "a.csv", columns))
    for name in ("a.csv", "b.csv"):
        order = RNG.permutation(100)
        path = written(tmp_path / name, {key: values[order] for key, values in columns.items()})
        assert '"new": 0' in done(*run, path)
    assert '"new": 100' in done(*run, written(tmp_path / "c.csv", binary(100)))


TIMES = """
2024-01-01T00:00:00+01:00 | 2024-01-01T00:00:00Z | 2024-01-01 01:00 UTC -> 1 2
01.01.2024 | 2.1.2024 | 03-Jan-2024 | Jan. 4, 2024 -> 24 48 72
31.01.2024 12:00 | 01.02.2024 13:30 | Feb 1, 2024 11:30 PM -> 25.5 35.5
2024-01-31 | 2024-02-01 06:00 | 2024/2/2 9:00 -> 30 57
1/2/2024 | 13/2/2024 -> 288
1/2/2024 | 1/13/2024 1:00 AM -> 265
2023-12 | 2024-W01 | 2024Q1 -> 744 744
20240228 | 20240301 -> 48
20240228 | 20240230 -> 0.000556
1/2/2024 | 2024-01-01 -> row 0 is '1/2/2024', which could be 2024-02-01 (the day first) or 2024-01
13/2/2024 | 2/13/2024 -> row 0 is '13/2/2024', the day first, and row 1 is '2/13/2024', the month f
2024-01-01 | 1.1.24 -> row 1 is '1.1.24'; times are numbers, dates such as 2024-12-31
"""


@pytest.mark.parametrize("line", TIMES.strip().splitlines())
def test_times_as_people_write_them(line):
    times, expected = (part.split(" | ") for part in line.split(" -> "))
    if "row" in line:
        with pytest.raises(InvalidPredictionsError, match=re.escape(expected[0])):
            as_times(times, 2)
        return
    seconds = as_times(times, len(times))
    hours = " ".join(f"{(later - seconds[0]) / 3600.0:.3g}" for later in seconds[1:])
    assert (hours, are_dates(times)) == (expected[0], "20240230" not in times)


#: Columns of times, up to the last, and risks, a horizon, events and options, and what is read.
FOLLOWED = """
months risk 9 9 alive dead -> ('alive' censored, 'dead' the event)
months risk 9 9 censored Died -> ('Died' the event, 'censored' censored)
months risk 9 9 disease-free Relapsed -> ('Relapsed' the event, 'disease-free' censored)
months risk 9 9 alive dead pos_label=alive -> ('alive' the event, 'dead' censored)
months risk 9 9 2 1 pos_label=2 -> ('1' censored, '2' the event)
months risk 9 9 0 1 2 classes=0|2,1 -> ('0' censored, '1' the event, '2' censored)
months risk 9 9 A B C classes=B,C,A -> ('A' competing, 'B' censored, 'C' the event)
months risk 9 9 2 1 -> run: --pos-label 2 or --classes 0,1,2
months risk 9 9 0 1 event=is_censored -> run: --pos-label 0 or --pos-label 1
months risk 9 9 stable worse -> run: --pos-label stable or --pos-label worse
months risk 9 9 0 1 2 pos_label=2 -> run: !--pos-label --classes 0,2,1 or !--pos-label --cl
months risk 9 9 A B C pos_label=A classes=A,B -> run: !--pos-label or !--classes
months risk 9 9 A B C classes=A,B -> event: row 3 is 'C', which is none of classes=['A', 'B'] (--cl
OS_MONTHS risk 240 5 0 1 -> run: --horizon 60 or --horizon 5months
OS_MONTHS risk_5y 240 36 0 1 -> run: --horizon 60 or --horizon 36months
OS_MONTHS risk_5y 240 60 0 1 -> by 60.
OS_MONTHS risk 240 1826 0 1 -> run: --horizon 60 or --horizon 1826months
OS_MONTHS risk 240 5years 0 1 -> by 60.
months risk 60 12 0 1 -> by 12.
time_d pred_12m 5000 12 0 1 -> run: --horizon 365 or --horizon 12days
time_days pred_12m 5000 365 0 1 -> by 365.
time_days risk 5000 3 0 1 -> run: --horizon 1096 or --horizon 91 or --horizon 3days
time_days risk 5000 30 0 1 -> by 30.
survdays model2_m 5000 5days 0 1 -> by 5.
years risk 20 60 0 1 -> run: --horizon 5 or --horizon 60years
years risk 20 1 0 1 -> by 1.
years risk 20 60months 0 1 -> by 5.
years risk 20 5parsec 0 1 -> horizon is a number, or one with its unit such as 5years, not '5parsec'
time risk_5y 240 5 0 1 -> run: --horizon 60
time risk 240 5years 0 1 -> run: --horizon 60
time risk 60 5 0 1 -> by 5.
"""


@pytest.mark.filterwarnings("ignore::caltest.ShortFollowupWarning")
def test_how_long_and_to_what_rows_were_followed(tmp_path):
    for line in FOLLOWED.strip().splitlines():
        said, expected = line.split(" -> ")
        time, risk, last, by, *cells = [word for word in said.split() if "=" not in word]
        options = dict(word.split("=") for word in said.split() if "=" in word)
        if "classes" in options:
            options["classes"] = options["classes"].split(",")
        columns = {risk: [0.05] * 240, time: np.linspace(0.0, float(last), 240)}
        event = options.pop("event", "y")
        path = written(tmp_path / "f.csv", columns | {event: (cells * 120)[:240]})
        horizon = by if by[-1].isalpha() else float(by)
        try:
            data = read_predictions(path, event=event, time=time, horizon=horizon, **options)
            found = f"{data.notes[0]} by {data.followup.horizon:g}."
        except InvalidPredictionsError as error:
            found = f"{error} run: {' or '.join(' '.join(way) for way in error.remedies)}."
        assert expected in found, line
    columns |= {"time": 3.0 * columns["time"], "y": [0, 1] * 120}
    with pytest.warns(ct.DoubtfulInputWarning, match="if 5 years .60 months, 261 weeks, 1826 da"):
        read_predictions(written(path, columns), event="y", time="time", horizon=5)
    columns = {"risk_5y": [0.05] * 240, "time_days": columns["time"], "y": columns["y"]}
    with pytest.warns(ct.DoubtfulInputWarning, match="is 5 months, but risk_5y says 5 years"):
        read_predictions(written(path, columns), event="y", time="time_days", horizon="5months")


def test_slope_and_ratio_are_words_of_every_command(tmp_path, done):
    path = written(tmp_path / "f.csv", columns := binary(400))
    fit = ct.cox_recalibration(columns["p"], columns["y"])
    for options in ((), ("--clusters", "site")):
        for word in ("slope", "intercept", "O:E"):
            found = json.loads(done("interval", path, "--statistic", word, "--json", *options))
            (low,), (high,) = found["low"], found["high"]
            assert low < high
            if word == "slope" and not options:
                assert (low, high) == pytest.approx(fit.slope_interval, abs=1e-9)
            assert "p" in done("test", path, "--statistic", word, *options)
    assert "rows" in done("plan", "--like", path, "--statistic", "O:E", "--width", ".2")


def test_a_plan_draws_whole_clusters(tmp_path, done):
    p = np.repeat(RNG.uniform(0.2, 0.8, 60), 3)
    y, clusters = np.repeat(RNG.random(60) < p[::3], 3).astype(int), np.repeat(np.arange(60), 3)
    same = Population.of(p, y, None, lambda probs: probs, {"clusters": clusters})
    effect, correlation = same.dependence
    assert (effect, round(correlation, 2)) == (pytest.approx(3.0), 1.0)
    apart, rng = np.arange(180) % 60, np.random.default_rng(1)  # of different predictions
    other = np.where(rng.random(180) < 0.6, apart % 2, rng.integers(2, size=180))
    mixed = Population.of(p, other, None, lambda probs: probs, {"clusters": apart}).dependence
    squares = np.bincount(apart, other - p) ** 2
    assert mixed[0] == pytest.approx(squares.sum() / np.square(other - p).sum())
    assert 0.1 < mixed[1] < 0.9
    drawn, _ = same.draw(np.random.default_rng(0), 90)
    assert drawn.n_clusters == 30
    assert (drawn.labels.reshape(30, 3) == drawn.labels[::3, None]).mean() > 0.95
    whole = Population.of(RNG.dirichlet([1, 2, 3], 4000), None, None, None, {})
    drawn, _ = whole.draw(np.random.default_rng(0), 4000)
    shares = np.bincount(drawn.labels, minlength=3) / 4000
    assert shares == pytest.approx(drawn.probs.mean(axis=0), abs=0.03)
    path = written(tmp_path / "f.csv", {"p": p, "y": y, "ward": clusters})
    asked = ("plan", "--like", path, "--statistic", "O:E", "--width", ".3", "--json")
    alone, together = (json.loads(done(*asked, *more)) for more in ((), ("--clusters", "ward")))
    assert together["n"] == pytest.approx(effect * alone["n"], rel=0.15)  # residuals of the fit
    assert "the design effect of clusters" in together["notes"][0]


def test_european_numbers_percent_and_names_around_labels(tmp_path, refused, done):
    (tmp_path / "a.csv").write_text(
        "Datum;Chance;Ereignis\n1.1.2024;0,25;1\n2.1.2024;0,5;0\n3.1.2024;1;1\n"
    )
    data = read_predictions(tmp_path / "a.csv")
    np.testing.assert_array_equal(data.probs[:, 1], [0.25, 0.5, 1.0])
    assert "from column Chance, labels from Ereignis, not used: Datum" in data.notes[0]
    (tmp_path / "a.csv").write_bytes("Größe;p;y\n1.234,5;0,25;1\n12;0,5;0\n".encode("cp1252"))
    data = read_predictions(tmp_path / "a.csv", features="Größe")
    assert data.features.named["Größe"].values.tolist() == [1234.5, 12.0]
    assert ct.scan(tmp_path / "a.csv", "p", "y").n == 2
    percents = ("conf", [8, 5, 90]), ("conf", ["8%", "5%", "10 %"]), ("PD %", [8, 5, 10])
    for name, cells in percents:
        path = written(tmp_path / "b.csv", {name: cells, "correct": [1, 0, 1]})
        for data in (read_predictions(path), read_predictions(path, percent=True)):
            np.testing.assert_array_equal(data.probs[:2, 1], [0.08, 0.05])
            assert f"from column {name} in percent" in data.notes[0]
    data = read_arguments({"p_a": [70.5, 20], "p_b": [29.5, 80], "y": [0, 1]})  # sums of 100
    np.testing.assert_array_equal(data.probs[:, 1], [0.295, 0.8])
    for cells in ([8, 5, 10], ["80%", "50", "1"]):  # a scale of another kind, and both
        path = written(tmp_path / "b.csv", {"confidence": cells, "correct": [1, 0, 1]})
        refused("(--percent)" if cells[0] == 8 else "write all in one way", "test", path)
    path = written(tmp_path / "b.csv", {"score": [80, 50, 100], "correct": [1, 0, 1]})
    refused("(--percent)", "test", path)
    columns = {"p_0": [0.5, 0.25], "p_1": [0.25, 0.5], "p_3": [0.1, 0.1], "y": [3, 2]}
    refused("label 2 occurs, but has no column beside p_0", "test", written(path, columns))
    done("audit", path, "--label", "y>=3", "--probs", "p_0", "--tolerance", "5%")
    refused("5.0 is not in the range", "audit", path, "--tolerance", "500%")
    columns = {"P(home)": [0.5, 0.25], "P(away)": [0.5, 0.75], "won": ["away", "home"]}
    data = read_predictions(written(tmp_path / "c.csv", columns), "P(home),P(away)", "won")
    assert data.classes == ("home", "away")
    columns = {"polar bear": [0.5, 0.2], "ant": [0.5, 0.8], "y": ["Polar_Bear", "ANT "]}
    for data in (read_predictions(written(tmp_path / "c.csv", columns)), read_arguments(columns)):
        assert (data.classes, data.labels.tolist()) == (("polar bear", "ant"), [0, 1])
        assert "case or blanks: ANT is ant, Polar_Bear is polar bear" in data.notes[-1]


CALLED = [
    {"case": [1, 2, 3, 4], "forecast_prob": [0.1, 0.8, 0.3, 0.6], "rain": [*"nynn"]},
    {"sex": [0, 1, 1, 0], "Risk (5y)": [0.1, 0.8, 0.3, 0.6], "relapse": [0, 1, 0, 0]},
    {"PoP": [10, 80, 30, 60], "wet": [False, True, False, False], "mm": [0.0, 7.1, 0.0, 0.0]},
    {"share": [0.1, 0.8, 0.3, 0.6], "y_true": ["absent", "present", "absent", "absent"]},
    {"mm": [0.5, 7.1, 0.9, 3.0], "pctr": [0.1, 0.8, 0.3, 0.6], "clicked": [0, 1, 0, 0]},
    {"pom": ["10%", "80%", "30%", "60%"], "lr": [0.5] * 4, "tumour": [*"nynn"]},
    {"score": [410, 720, 388, 650], "Defaulted within 12m": [*"NYNN"], "PD": [0.1, 0.8, 0.3, 0.6]},
    {"smoker": [1, 0, 0, 1], "fraud_score": [0.1, 0.8, 0.3, 0.6], "is_fraud": [*"ftff"]},
    {"weight": [0.1, 0.2, 0.5, 1], "churned": [0, 1, 0, 0], "propensity": [0.1, 0.8, 0.3, 0.6]},
]


@pytest.mark.parametrize("columns", CALLED)
def test_one_column_may_be_known_by_its_cells(tmp_path, columns):
    for data in (read_predictions(written(tmp_path / "f.csv", columns)), read_arguments(columns)):
        np.testing.assert_allclose(data.probs[:, 1], [0.1, 0.8, 0.3, 0.6])
        np.testing.assert_array_equal(data.labels, [0, 1, 0, 0])
        unlisted = not {"forecast_prob", "Risk (5y)", "PoP"} & {*columns}
        assert unlisted == any(", the only one with fractions" in note for note in data.notes)


def four(row, head=""):
    """Return the same four forecasts and events, written in some way."""
    rows = enumerate(zip((0.1, 0.8, 0.3, 0.6), (0, 1, 0, 0), strict=True))
    return "\n".join([*[head] * bool(head), *(row.format(i, p, y) for i, (p, y) in rows), ""])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("f.txt", four("{}|{}|{}", "id|p|y")),
        ("f.csv", four("{1}\t{2}", "Predicted Probability\tTrue label?").encode("utf-16")),
        ("f.csv", four("{0},{0},{1},{2}", "x,y,prob,mask")),
        ("f.csv", four("{1},{2}", "p,y") + "-,1\n0.5,--\n#N/A,0\n.,.\n"),
        ("f.jsonl", four('{{"id": "a{}", "pctr": {}, "clicked": {}}}')),
    ],
)
def test_files_as_other_programs_write_them(tmp_path, name, content):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    data = read_predictions(tmp_path / name, drop_missing="-" in str(content))
    np.testing.assert_allclose(data.probs[:, 1], [0.1, 0.8, 0.3, 0.6])
    np.testing.assert_array_equal(data.labels, [0, 1, 0, 0])


def test_rows_without_an_outcome_yet_are_left_out_by_their_label(tmp_path, run):
    words, risk = np.array([*["Pending"] * 9, *["benign", "malignant"] * 26][:60]), stated()[1]
    columns, rows = {"doctor": [*"ab"] * 30, "risk": risk, "result": words}, slice(9, None)
    path = written(tmp_path / "f.csv", columns)
    assert f"run: caltest test {path} --drop-label Pending\n" in run("test", path)[2]
    for data in (
        read_predictions(path, drop_labels=["Pending"]),
        read_arguments(columns, drop_labels=["Pending"]),
        read_arguments(risk, words, pos_label="malignant", drop_labels="Pending"),
    ):
        np.testing.assert_array_equal(data.labels, words[rows] == "malignant")
        np.testing.assert_allclose(data.probs[:, 1], risk[rows])
        assert "left out 9 of 60 rows by their label (Pending 9)" in data.notes
    with pytest.raises(InvalidPredictionsError, match="no label in column result is 'Pend'") as e:
        read_predictions(path, label="result", drop_labels=["Pend"])
    assert e.value.remedies == (("Pend", "Pending"),)
    words[9:20] = "lost"
    command = f"test {written(path, columns)} --drop-label Pending --pos-label malignant"
    assert f"run: caltest {command} --drop-label lost\n" in run(*command.split())[2]


A, B = RNG.random(30).round(3), RNG.random(30).round(3)
WORN = (A < B).astype(int)
UNCLEAR = [
    (
        {"share": A, "price": B, "well": WORN, "smoker": 1 - WORN},
        [f"--label {y} --probs {p}" for y in ("well", "smoker") for p in ("share", "price")],
    ),
    ({"share": (100 * A).astype(int), "mm": 50 * B, "y": WORN}, ["--probs share --percent"]),
    (
        {"conf": A, "gold": [*"ab"] * 15, "pred": [*"AbcD", "b"] * 6, "is_correct": WORN},
        ["--label gold", "--label is_correct"],
    ),
    (
        {"p": A, "risk": B, "kept": np.array(["kept", "lost"])[WORN]},
        ["--pos-label lost", "--pos-label kept"],  # the rarer one first
    ),
]


@pytest.mark.parametrize(("columns", "options"), UNCLEAR)
def test_two_readings_are_refused_with_commands_that_work(tmp_path, run, columns, options):
    path = written(tmp_path / "my file.csv", columns)
    code, _, error = run("test", path)
    runs = re.findall(r"^run: caltest test '.*my file.csv' (.*)$", error, re.M)
    assert (code, runs) == (2, options)
    for words in options:
        assert run("test", path, *words.split())[0] == 0
    if "share" in columns and "mm" not in columns:
        assert run("compare", path, "--label", "well")[2].endswith(" --probs share,price\n")


def test_columns_of_classes_are_known_by_their_cells(tmp_path):
    columns = {"image": [*"abc"], "cat": [0.8, 0.2, 0.3], "dog": [0.2, 0.8, 0.7]}
    data = read_predictions(written(tmp_path / "f.csv", columns | {"kind": ["cat", "dog", "dog"]}))
    assert (data.classes, data.labels.tolist()) == (("cat", "dog"), [0, 1, 1])


def test_probabilities_of_all_classes_are_known_by_their_sum(tmp_path):
    probs = {"flu": [0.7, 0.2, 0.3], "covid": [0.2, 0.5, 0.1], "healthy": [0.1, 0.3, 0.6]}
    columns = {"id": [7, 8, 9], "diagnosis": ["flu", "covid", "healthy"]}
    columns |= {f"pred_{name}": column for name, column in probs.items()}
    data = read_predictions(written(tmp_path / "f.csv", columns))
    assert (data.classes, data.labels.tolist()) == (tuple(probs), [0, 1, 2])
    data = read_predictions(written(tmp_path / "f.csv", probs | {"target": [0, 1, 2]}))
    np.testing.assert_allclose(data.probs.T, [*probs.values()])
    signed = {f"{name} (%)": [f"{100 * p:.0f}%" for p in column] for name, column in probs.items()}
    data = read_predictions(written(tmp_path / "f.csv", signed | {"True class": [*probs]}))
    np.testing.assert_allclose(data.probs.T, [*probs.values()])
    assert data.classes == tuple(probs)
    truth = {f"true_{name}": row for name, row in zip(probs, np.eye(3, dtype=int), strict=True)}
    of_100 = {f"% {name}": [100 * p for p in column] for name, column in probs.items()}
    data = read_arguments(of_100 | truth)
    np.testing.assert_allclose(data.probs.T, [*probs.values()])
    assert data.labels.tolist() == [0, 1, 2]
    rows = [dict(zip(probs, row, strict=True)) for row in zip(*probs.values(), strict=True)]
    records = [{"probs": row, "answer": "flu", "choices": [*probs]} for row in rows]
    (tmp_path / "f.json").write_text(json.dumps({"run": 1, "results": records}))
    data = read_predictions(tmp_path / "f.json")
    assert "rows are the objects under 'results'" in data.notes
    assert (data.classes, data.labels.tolist()) == (tuple(probs), [0, 0, 0])
    path = written(tmp_path / "f.csv", {"prediction": [0.2, 0.7], "label": [0, 1]})
    np.testing.assert_allclose(read_predictions(path).probs[:, 1], [0.2, 0.7])


def test_outcomes_of_a_follow_up_are_no_labels(tmp_path):
    columns = {"risk (%)": [10, 40, 25], "Follow-up (months)": [3.5, 60, 12], "outcome": [1, 0, 0]}
    path = written(tmp_path / "f.csv", columns)
    with pytest.raises(InvalidPredictionsError, match=r"'outcome' --time 'Follow-up .* --ho"):
        read_predictions(path)
    assert "months) seems to say" in read_predictions(path, label="outcome").notes[-1]
    for horizon, doubtful in ((10, True), (60, False), (500, True)):
        seen = ct.Followup(np.tile(203.0 * B, 3), np.ones(90), horizon=horizon)
        note = f"a horizon of {horizon} is in the same unit; {seen.labels.sum()} of 90 events"
        assert any(note in said for said in read_arguments(np.tile(A, 3), seen).notes) == doubtful
    with pytest.raises(InvalidPredictionsError, match=r"Followup\(frame\['Follow-up .*'outcome'"):
        read_arguments(columns)


def test_labels_of_a_second_file_are_matched(tmp_path):
    columns = {"image": [*"abc"], "cat": [0.8, 0.2, 0.3], "dog": [0.2, 0.8, 0.7]}
    probs, y = written(tmp_path / "p.csv", columns), tmp_path / "y.csv"
    truth = {"image": [*"bca"], "label": ["dog", "dog", "cat"]}
    data = read_predictions(probs, label=written(y, truth))
    assert data.labels.tolist() == [0, 1, 1]
    assert "labels of y.csv matched by image" in data.notes
    for image, message in (([*"bcd"], "no label for image a"), ([*"bcc"], "more than once")):
        with pytest.raises(InvalidPredictionsError, match=message):
            read_predictions(probs, label=written(y, truth | {"image": image}))


def test_steps_are_counted_in_the_order_of_time(tmp_path, run, done):
    days = (np.datetime64("2024-01-01") + np.arange(90)).astype(str)
    columns = binary(90) | {"day": days, "lag": RNG.permutation(90)}
    path = written(tmp_path / "f.csv", columns)
    asked = ("test", path, "--horizon", 3, "--n-resamples", 99, "--json")
    expected = json.loads(done(*asked))["pvalue"]
    order = RNG.permutation(90)
    written(path, {name: column[order] for name, column in columns.items()})
    code, _, error = run(*asked)
    assert (code, error[-12:]) == (2, " --time day\n")
    assert json.loads(done(*asked, "--time", "day"))["pvalue"] == expected


def test_clusters_may_be_features(tmp_path, done, refused):
    path = written(tmp_path / "f.csv", binary(200))
    refused("--clusters site --features site", "segments", path, "--clusters", "site")
    said = done("segments", path, "--clusters", "site", "--features", "site", "--n-resamples", 99)
    assert "features from site" in said
    refused("takes one column", "segments", path, "--clusters", "site,y")


RISKS = {"pid": [1, 2, 3], "risk5y": [0.1, 0.2, 0.4], "years": [2.5, 5.1, 0.3], "event": [0, 0, 1]}
NAMED = {"risk5y": [0.1, 0.2, 0.4], "years": [2.5, 5.1, 0.3], "cvd_event": [0, 0, 1]}
GRADES = {"grade": [*"ABC"], "PD": [0.1, 0.2, 0.3], "N": [90, 50, 20], "defaults": [8, 9, 7]}
TEN = {f"class{i}": [0.5, 0.3, 0.2] for i in range(1, 4)} | {"true": [1, 2, 3]}


@pytest.mark.parametrize(
    ("columns", "asked", "message"),
    [
        (RISKS, {}, r"say --event 'event' --time 'years' --horizon T, .* or --label 'event' if"),
        (NAMED, {}, r"say --event 'cvd_event' --time 'years' --horizon T"),
        (GRADES, {}, r"one row a grade, is for caltest grades FILE"),
        (TEN, {"label": "true"}, r"such as 'class\*'$"),
        (TEN, {"label": "true", "by": "class1,class2"}, r"takes one column; .*features="),
    ],
)
def test_a_refusal_names_what_would_be_right(tmp_path, columns, asked, message):
    with pytest.raises(InvalidPredictionsError, match=message):
        read_predictions(written(tmp_path / "f.csv", columns), **asked)
