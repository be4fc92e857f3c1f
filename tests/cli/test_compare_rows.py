"""Which rows ``compare`` and ``gate`` compare: models in columns, rows and files of known truth."""

import numpy as np
import pytest
from printed import FEW, lines_of, words_of, write

import caltest as ct
from caltest.inference.comparison import usual_margin


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def bent(p, factor):
    return np.round(1.0 / (1.0 + ((1.0 - p) / p) ** factor), 4)


@pytest.fixture
def answers(tmp_path, rng):
    """Confidences of two models in their own answers: the second is overconfident by 0.25."""
    a, b = rng.uniform(0.3, 0.95, 800).round(2), rng.uniform(0.5, 0.95, 800).round(2)
    return write(
        tmp_path / "answers.csv", question=range(800),
        mistral_conf=a, mistral_ok=(rng.random(800) < a) * 1,
        qwen_conf=b, qwen_ok=(rng.random(800) < b - 0.25) * 1,
    )  # fmt: skip


def test_models_with_outcomes_of_their_own_are_each_compared_with_theirs(answers, run):
    probs = ("--probs", "mistral_conf,qwen_conf")
    code, _, err = run("compare", answers, *probs)
    (line,) = lines_of(err)
    assert line.startswith("run: ")
    assert words_of(line)[-2:] == ["--label", "mistral_ok, qwen_ok"]
    code, out, err = run(*words_of(line), *FEW)
    assert code == 0, err
    assert "mistral_conf is better calibrated" in out


def test_the_outcome_of_one_model_is_asked_about_for_both(answers, run):
    given = ("--probs", "mistral_conf,qwen_conf", "--label", "mistral_ok")
    code, _, err = run("compare", answers, *given)
    assert code == 2
    assert "mistral_ok is that of one" in err
    assert run("compare", answers, *given, "--as-is", *FEW)[0] == 0


def test_own_labels_in_python_and_refused_for_arrays(rng):
    p = rng.beta(2.0, 2.0, 400)
    a, b = (ct.Predictions.of(p, (rng.random(400) < p) * 1) for _ in range(2))
    with pytest.raises(ct.InvalidPredictionsError, match="different labels"):
        ct.compare(a, b)
    assert ct.compare(a, b, own_labels=True, n_resamples=19, rng=0).paired
    with pytest.raises(ct.InvalidPredictionsError, match="own_labels=True is for models"):
        ct.compare(p, p, a.labels, own_labels=True)


@pytest.fixture
def files(tmp_path, rng):
    p = rng.beta(2.0, 3.0, 900).clip(0.01, 0.99)
    y, case = (rng.random(900) < p) * 1, rng.permutation(900)
    some = rng.permutation(900)[:500]
    new = write(tmp_path / "new.csv", case=case[some], prob=p[some].round(4), outcome=y[some])
    old = write(tmp_path / "old.csv", case=case, prob=bent(p, 2.0), outcome=y)
    return new, old


@pytest.mark.parametrize("verb", ["compare", "gate"])
def test_files_that_share_some_rows_are_compared_on_these(files, verb, run):
    new, old = files
    more = FEW if verb == "compare" else ("--margin", "0.02")
    words = (new, old) if verb == "compare" else (new, "--against", old)
    code, _, err = run(verb, *words, *more)
    assert code == 2
    (line,) = lines_of(err)
    assert line.startswith("run: ")
    assert words_of(line)[-3:] == ["--ids", "case", "--drop-missing"]
    code, out, err = run(*words_of(line))
    assert code in (0, 1, 3), err
    assert "500 rows whose ids all files have, of 900 rows" in out


@pytest.mark.parametrize("verb", ["compare", "gate"])
def test_rows_that_two_files_share_are_not_taken_as_independent(files, verb, run):
    new, old = files
    words = (new, old) if verb == "compare" else (new, "--against", old, "--margin", "0.02")
    code, _, err = run(verb, *words, "--unpaired")
    assert code == 2
    assert "500 values of case are in both files, each with the same outcome" in err
    assert run(verb, *words, "--unpaired", "--as-is")[0] in (0, 1, 3)


def test_files_whose_row_numbers_agree_by_chance_stay_unpaired(tmp_path, rng, run):
    paths = []
    for name, n in (("a.csv", 300), ("b.csv", 400)):
        p = rng.beta(2.0, 3.0, n)
        y = (rng.random(n) < p) * 1
        paths.append(write(tmp_path / name, row=range(n), prob=p.round(4), outcome=y))
    _, _, err = run("compare", *paths)
    (line,) = lines_of(err)
    assert line.startswith("if the files hold different observations: ")
    assert words_of(line)[-1] == "--unpaired"
    assert run(*words_of(line), *FEW)[0] == 0


def test_labels_in_one_order_without_ids_are_not_unpaired(tmp_path, rng, run):
    p = rng.beta(2.0, 3.0, 200)
    y = (rng.random(200) < p) * 1
    paths = [write(tmp_path / f"{k}.csv", prob=bent(p, 1.0 + k), outcome=y) for k in (0, 1)]
    code, _, err = run("compare", *paths, "--unpaired")
    assert code == 2
    assert "same outcomes in the same order" in err
    assert run(*words_of(lines_of(err)[0]), *FEW)[0] == 0


def test_models_in_rows_of_one_file_are_matched_by_the_column_that_names_them(tmp_path, rng, run):
    p = rng.beta(2.0, 3.0, 600).clip(0.01, 0.99)
    y = (rng.random(600) < p) * 1
    order = rng.permutation(1200)
    path = write(
        tmp_path / "long.csv", model=np.repeat(["ridge", "boost"], 600)[order],
        pacient=np.tile(np.arange(600), 2)[order],
        prob=np.concatenate([p.round(4), bent(p, 2.5)])[order], outcome=np.tile(y, 2)[order],
    )  # fmt: skip
    code, _, err = run("compare", path)
    (line,) = lines_of(err)
    assert "--models model" in line
    code, out, err = run(*words_of(line), *FEW)
    assert code == 0, err
    assert "ridge is better calibrated" in out
    code, _, err = run("compare", path, "--models", "prob")
    assert code == 2
    assert "a column of models has 2 to 50" in err


def test_percents_of_one_model_are_divided_in_the_columns_of_all(tmp_path, rng, run):
    p = np.rint(100 * rng.beta(2.0, 3.0, 400))
    y = (rng.random(400) < p / 100) * 1
    others = {"b": np.rint(100 * bent(p / 100, 2.0)), "c": bent(p / 100, 0.5)}
    path = write(tmp_path / "columns.csv", a=p.astype(int), outcome=y, **others)
    _, _, err = run("compare", path, "--probs", "a,b,c")
    (line,) = lines_of(err)
    assert words_of(line)[-1] == "a / 100, b / 100, c"
    assert line.startswith("run:")
    assert run(*words_of(line), *FEW)[0] == 0


def test_columns_with_outcomes_of_their_own_are_named_for_a_comparison(tmp_path, rng, run):
    P = rng.beta(2.0, 3.0, (400, 2)).round(4)
    cells = {f"p_{name}": P[:, j] for j, name in enumerate(("edema", "nodule"))}
    cells |= {name: (rng.random(400) < P[:, j]) * 1 for j, name in enumerate(("edema", "nodule"))}
    (line,) = lines_of(run("compare", write(tmp_path / "pairs.csv", **cells))[2])
    assert "each is a model with outcomes of its own" in line
    assert words_of(line)[-1] == "edema, nodule"
    assert run(*words_of(line), *FEW)[0] == 0


def test_a_column_of_models_is_named_although_nothing_else_is(tmp_path, rng, run):
    p = rng.integers(2, 20, 400) * 5
    right = np.where(rng.random(400) < p / 100, "correct", "incorrect")
    path = write(tmp_path / "llm.csv", qid=np.arange(400) // 2, model=["a", "b"] * 200,
                 answer=rng.integers(0, 99, 400), confidence=p, verdict=right)  # fmt: skip
    (line,) = lines_of(run("compare", path)[2])
    assert line.startswith("run:")
    assert words_of(line)[-2:] == ["--models", "model"]
    (line,) = lines_of(run(*words_of(line))[2])
    assert line.startswith("if correct is the event")
    (line,) = lines_of(run(*words_of(line), *FEW)[2])
    assert line.startswith("if each model has outcomes of its own")
    code, _, err = run(*words_of(line))
    assert code == 0, err


def test_the_margin_is_a_fifth_of_a_rare_outcome_at_most(rng):
    p = rng.beta(1.0, 150.0, 4000)
    y = (rng.random(4000) < p) * 1
    rows = ct.Predictions.of(p, y)
    assert usual_margin(rows) == pytest.approx(y.mean() / 5.0, rel=0.1)
    assert usual_margin(ct.Predictions.of([0.4, 0.6], [0, 1])) == 0.02
    doubled = ct.compare(p, np.minimum(2.0 * p, 1.0), y, n_resamples=19, rng=0)
    assert doubled.verdict != "tied"
    given = ct.compare(p, np.minimum(2.0 * p, 1.0), y, margin=0.02, n_resamples=19, rng=0)
    assert given.verdict == "tied"
    weighted = ct.Predictions.of(p, y, weights=np.where(y == 1, 1.0, 0.5))
    assert usual_margin(weighted) > usual_margin(rows)


def test_files_of_other_people_are_offered_no_ids(tmp_path, rng, run):
    paths = []
    for name, n, first in (("a.csv", 300, 0), ("b.csv", 400, 5000)):
        p = rng.beta(2.0, 3.0, n)
        y = (rng.random(n) < p) * 1
        people = range(first, first + n)
        paths.append(write(tmp_path / name, osoba=people, prob=p.round(4), outcome=y))
    _, _, err = run("compare", *paths)
    (line,) = lines_of(err)
    assert line.startswith("if the files hold different observations: ")
    assert run("compare", *paths, "--unpaired", *FEW)[0] == 0
