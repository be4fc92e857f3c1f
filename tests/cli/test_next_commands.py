"""Commands that a verb prints as the next step: each is executed, and leads on."""

import numpy as np
import pytest
from printed import FEW, commands_of, write

import caltest as ct


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def asked_of_models(path, rng, label, n=400):
    """Rows of two models with answers of their own; the second is overconfident by 0.25."""
    right = {"llama": 0.0, "qwen": 0.25}
    p = rng.uniform(0.4, 0.95, (n, 2)).round(3)
    y = (rng.random((n, 2)) < p - np.array([*right.values()])) * 1
    return write(
        path, item=[f"q{i}" for i in range(n) for _ in right], model=[*right] * n,
        confidence=p.ravel(), **{label: y.ravel()},
    )  # fmt: skip


def test_models_in_rows_are_each_compared_with_their_own_answers(tmp_path, rng, run):
    file = asked_of_models(tmp_path / "long.csv", rng, "correct")
    code, _, err = run("compare", file)
    ((_, words),) = commands_of(err)
    assert code == 2
    assert words[-2:] == ["--models", "model"]
    code, out, err = run(*words, *FEW)
    assert code == 0, err
    assert "llama is better calibrated" in out


def test_labels_that_differ_between_models_are_asked_about_unless_they_say_right_or_wrong(
    tmp_path, rng, run
):
    file = asked_of_models(tmp_path / "long.csv", rng, "outcome")
    given = ("compare", file, "--models", "model", "--label", "outcome", "--probs", "confidence")
    code, _, err = run(*given)
    ((line, words),) = commands_of(err)
    assert code == 2
    assert line.startswith("if each model has outcomes of its own: ")
    assert "--as-is" in words
    code, out, err = run(*words, *FEW)
    assert code == 0, err
    assert "llama is better calibrated" in out


def test_an_answer_and_its_key_are_not_searched_for_segments(tmp_path, rng, run):
    n = 800
    p = rng.uniform(0.3, 0.95, n).round(3)
    right = rng.random(n) < p
    key = rng.integers(0, 5, n)
    answer = np.where(right, key, (key + rng.integers(1, 5, n)) % 5)
    age = rng.integers(20, 90, n)
    columns = {"y": key, "pred": answer, "conf": p, "correct": right * 1}
    named = ("--label", "correct", "--probs", "conf")
    assert "segments" not in run("audit", write(tmp_path / "a.csv", **columns), *named)[1]
    file = write(tmp_path / "b.csv", **columns, age=age)
    assert "Not searched for segments: age. Run: " in run("audit", file, *named)[1]
    code, out, err = run("segments", file, *named, *FEW)
    assert code == 0, err
    assert "y (outcomes follow from it and pred)" in out
    words = {"y": key.astype(str), "pred": answer.astype(str), "age": age}
    with pytest.warns(ct.DoubtfulInputWarning, match="outcomes follow from 'y' and from 'pred'"):
        ct.segment_search(p, right, words, n_resamples=99, rng=0)


@pytest.mark.parametrize("case", ["other models", "one item a row"])
def test_no_search_is_printed_where_it_would_find_no_column(tmp_path, rng, run, case):
    p = rng.uniform(0.05, 0.95, 600)
    y = (rng.random(600) < p) * 1
    spare = {"vit": np.clip(p * 0.9 + 0.03, 0, 1)}
    if case == "one item a row":
        spare = {"item": [f"q{i}" for i in range(600)]}
    file = write(tmp_path / "rows.csv", **spare, resnet=p, y_true=y)
    named = ("--label", "y_true", "--probs", "resnet", "--as-is")
    code, out, err = run("audit", file, *named)
    assert (code, "segments" in out) == (0, False), err
    assert run("segments", file, *named)[0] == 2


def test_the_search_that_an_audit_prints_runs(tmp_path, rng, run):
    p = rng.uniform(0.05, 0.95, 600)
    file = write(
        tmp_path / "rows.csv", id=range(600), age=rng.integers(20, 90, 600), prob=p.round(4),
        label=(rng.random(600) < p) * 1,
    )  # fmt: skip
    out = run("audit", file)[1].replace("\n", " ")
    assert "Not searched for segments: age. Run: caltest segments" in out
    code, found, err = run("segments", file, *FEW)
    assert code == 0, err
    assert "age" in found


def test_commands_after_a_doubt_name_the_clusters(tmp_path, rng, run):
    patient = np.repeat(np.arange(150), 4)
    p = np.repeat(rng.uniform(0.2, 0.8, 150), 4)
    same = np.repeat(rng.random(150), 4)
    y = (np.where(rng.random(600) < 0.8, same, rng.random(600)) < p) * 1
    file = write(tmp_path / "rows.csv", MRN=[f"m{i}" for i in patient],
                 age=rng.integers(20, 90, 600), prob=p.round(4), label=y)  # fmt: skip
    out = run("audit", file)[1]
    assert "outcomes of rows with the same MRN are correlated" in out
    again = "To allow for these clusters, run: caltest {} {} --clusters MRN"
    assert again.format("audit", file) in out.split("\n")
    assert f"run: caltest segments {file} --clusters MRN" in out
    assert "correlated" not in run("audit", file, "--clusters", "MRN")[1]
    for verb in ("test", "interval"):
        assert f"  {again.format(verb, file)}" in run(verb, file)[1].split("\n")


def test_a_report_prints_the_commands_that_allow_for_clusters_and_search(tmp_path, rng, run):
    patient = np.repeat(np.arange(150), 4)
    p = np.repeat(rng.uniform(0.2, 0.8, 150), 4)
    same = np.repeat(rng.random(150), 4)
    y = (np.where(rng.random(600) < 0.8, same, rng.random(600)) < p) * 1
    file = write(tmp_path / "rows.csv", MRN=[f"m{i}" for i in patient],
                 age=rng.integers(20, 90, 600), prob=p.round(4), label=y)  # fmt: skip
    page = tmp_path / "page.html"
    run("report", file, "-o", str(page), *FEW)
    text = page.read_text()
    assert f"run: caltest report {file} -o {page} --n-resamples 99 --clusters MRN" in text
    assert f"run: caltest segments {file} --n-resamples 99 --clusters MRN" in text


def test_a_plan_for_a_file_is_run_with_like(tmp_path, rng, run):
    p = rng.uniform(0.05, 0.95, 500).round(4)
    file = write(tmp_path / "old.csv", prob=p, label=(rng.random(500) < p**1.5) * 1)
    code, _, err = run("plan", file)
    ((line, words),) = commands_of(err)
    assert code == 2
    assert line == f"run: caltest plan --like {file}"
    assert run(*words, "--n-datasets", "100")[0] == 0


def test_rows_of_one_hospital_that_agree_put_the_verdict_in_doubt(tmp_path, rng, run):
    n, hospitals = 3000, 30
    where = rng.integers(0, hospitals, n)
    p = rng.uniform(0.05, 0.6, n).round(4)
    level = rng.normal(0.5, 0.6, hospitals)[where]
    y = (rng.random(n) < 1 / (1 + np.exp(-(np.log(p / (1 - p)) + level)))) * 1
    file = write(tmp_path / "h.csv", hospital=[f"H{k}" for k in where], risk=p, outcome=y)
    code, out, _ = run("audit", file)
    assert code == 0
    assert "Verdict: IN DOUBT" in out
    assert "pass --clusters hospital" in out.replace("\n", " ")
    out = run("audit", file, "--clusters", "hospital")[1]
    assert "in doubt" not in out.lower()


def test_subgroups_of_repeated_outcomes_are_suggested_with_their_clusters(tmp_path, rng, run):
    cases, readers = 250, 4
    p = np.repeat(rng.uniform(0.05, 0.95, cases), readers)
    y = np.repeat(rng.random(cases) < p[::readers], readers) * 1
    seen = np.clip(p + rng.normal(0, 0.03, p.size), 0.01, 0.99).round(3)
    file = write(
        tmp_path / "r.csv", case=[f"c{i}" for i in range(cases) for _ in range(readers)],
        reader=["R0", "R1", "R2", "R3"] * cases, prob=seen, label=y,
    )  # fmt: skip
    code, _, err = run("audit", file)
    assert code == 2
    words = next(words for line, words in commands_of(err) if "by itself" in line)
    assert words[-4:] == ["--by", "reader", "--clusters", "case"]
    code, out, err = run(*words)
    assert code == 0, err
    assert "IN DOUBT" not in out


def test_a_binary_label_beside_a_time_puts_a_rejection_in_doubt_until_it_is_answered(
    tmp_path, rng, run
):
    p = rng.uniform(0.1, 0.6, 1500).round(4)
    early = rng.random(1500) < p * 0.6
    days = rng.integers(30, 2000, 1500)
    file = write(tmp_path / "cens.csv", prob=p, label=early * 1, days=days)
    out = run("audit", file)[1].replace("\n", " ")
    assert "Verdict: IN DOUBT, FOR THE REASON GIVEN BELOW" in out
    assert "Pass --event label, --time days and --horizon NUMBER if so, else --as-is." in out
    assert run("audit", file, "--event", "label", "--time", "days", "--horizon", "900")[0] == 0
    assert "Verdict: MISCALIBRATED" in run("audit", file, "--as-is")[1]


def followed_models(folder, rng, n=500):
    """Two files of risks by five years, the second too low; status in words."""
    hazard = np.exp(rng.normal(-2.5, 0.6, n))
    time, end = rng.exponential(1.0 / hazard), rng.uniform(1.0, 12.0, n)
    risk = 1.0 - np.exp(-5.0 * hazard)
    columns = {
        "time_years": np.minimum(time, end).round(3),
        "status": np.where(time <= end, "relapse", "censored"),
    }
    return [
        write(folder / f"{name}.csv", risk_5y=p.round(4), **columns)
        for name, p in (("old", risk), ("new", risk**2))
    ]


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("segments", ("--min-rows", "50", "--alpha", "0.1")),
        ("monitor", ("--state", "s.json", "--alpha", "0.1")),
    ],
)
def test_follow_up_is_audited_where_a_command_does_not_take_it(tmp_path, rng, run, verb, options):
    file, _ = followed_models(tmp_path, rng)
    code, _, err = run(verb, *options, file)
    ((line, words),) = commands_of(err)
    assert code == 2
    assert "risk_5y is the risk by time 5" in line
    assert words[0] == "audit"
    assert ("--alpha" in words) == ("--alpha" in options)
    code, out, err = run(*words)
    assert code == 0, err
    assert "500 predictions" in out


def test_models_with_follow_up_are_each_audited(tmp_path, rng, run):
    old, new = followed_models(tmp_path, rng)
    code, _, err = run("compare", old, new, "--seed", "3")
    printed = [words for _, words in commands_of(err)]
    assert code == 2
    assert [[word for word in words if word in (old, new)] for words in printed] == [[old], [new]]
    verdicts = ["Verdict: MISCALIBRATED" in run(*words)[1] for words in printed]
    assert verdicts == [False, True]


def test_words_of_the_outcome_keep_the_other_options(tmp_path, rng, run):
    p = rng.uniform(0.05, 0.95, 600).round(4)
    died = np.where(rng.random(600) < p, "deceduto", "vivo")
    files = [
        write(
            tmp_path / f"{name}.csv",
            id=range(600),
            probabilita=q,
            esito=died,
            eta=rng.integers(20, 90, 600),
        )
        for name, q in (("a", p), ("b", (p**2).round(4)))
    ]
    for words in (
        ("compare", *files, "--seed", "3", "--level", "0.9"),
        ("segments", files[0], "--min-rows", "50", "--n-resamples", "99"),
        ("monitor", files[0], "--state", str(tmp_path / "s.json"), "--alpha", "0.01"),
    ):
        code, _, err = run(*words)
        ((line, printed),) = commands_of(err)
        assert code == 2
        assert line.startswith("if deceduto is the event: ")
        assert printed[: len(words)] == [*words]
        code, _, err = run(*printed)
        assert code == 0, err


def of_three(path, rng, kind, n=400):
    """Calibrated probabilities of a, b, c, with votes, or several labels a row."""
    P = rng.dirichlet(np.ones(3), n) if kind == "votes" else rng.uniform(0.05, 0.95, (n, 3))
    P = P.round(4)
    if kind == "votes":
        P[:, 2] = (1.0 - P[:, 0] - P[:, 1]).round(4).clip(0.0)
        outcomes = rng.multinomial(5, P / P.sum(axis=1, keepdims=True))
    else:
        outcomes = (rng.random((n, 3)) < P) * 1
    names = [*"abc"]
    columns = {f"p_{name}": P[:, j] for j, name in enumerate(names)}
    return write(path, **columns, **{f"y_{name}": outcomes[:, j] for j, name in enumerate(names)})


@pytest.mark.parametrize(
    ("kind", "condition", "flag"),
    [
        pytest.param("votes", "they count votes", "--votes", marks=pytest.mark.slow),
        ("labels", "a row can have several labels at once", "--multilabel"),
    ],
)
def test_several_outcome_columns_are_votes_or_several_labels(
    tmp_path, rng, run, kind, condition, flag
):
    file = of_three(tmp_path / "three.csv", rng, kind)
    code, _, err = run("audit", file, "--label", "y_a,y_b,y_c")
    right = [words for line, words in commands_of(err) if condition in line]
    other = [words for line, words in commands_of(err) if condition not in line]
    assert (code, len(right), len(other)) == (2, 1, 1)
    assert flag in right[0]
    code, out, err = run(*right[0], "--n-resamples", "199")
    assert code == 0, err
    assert "Verdict: CALIBRATED" in out
    code, _, err = run(*other[0])  # the condition is false: no verdict
    assert code == 2
    if kind == "labels":
        ((line, words),) = commands_of(err)
        assert line.startswith("run: ")
        assert words == [*right[0][:3], "y_a, y_b, y_c", "--multilabel"]
        assert run(*words)[0] == 0


def test_counts_of_votes_beside_one_probability_are_no_several_labels(tmp_path, rng, run):
    p, size = rng.beta(2.0, 2.0, 400).round(4), rng.integers(2, 9, 400)
    yes = rng.binomial(size, p)
    file = write(tmp_path / "two.csv", p=p, n_no=size - yes, n_yes=yes)
    code, _, err = run("audit", file, "--label", "n_no,n_yes")
    ((_, words),) = commands_of(err)
    assert (code, "--multilabel" in words) == (2, False)
    code, out, err = run(*words, "--n-resamples", "199")
    assert code == 0, err
    assert "Verdict: CALIBRATED" in out


@pytest.fixture
def species(tmp_path, rng):
    """Calibrated probabilities pred_X of three outcomes obs_X that move together."""
    mean = rng.normal(-0.5, 1.2, 1200)
    columns = {}
    for name in ("Oak", "Ash", "Elm"):
        p = 1 / (1 + np.exp(-mean - rng.normal(0, 0.4, 1200)))
        columns |= {f"pred_{name}": p.round(4), f"obs_{name}": (rng.random(1200) < p) * 1}
    return write(tmp_path / "species.csv", elev=rng.integers(1, 2000, 1200), **columns)


def test_outcomes_are_paired_with_the_predictions_that_end_alike(species, run):
    code, _, err = run("audit", species, "--where", "elev > 10")
    found = [words[-3:] for _, words in commands_of(err)]
    assert code == 2
    assert sorted(found) == [[f"obs_{x}", "--probs", f"pred_{x}"] for x in ("Ash", "Elm", "Oak")]


def test_several_labels_are_offered_with_the_predictions_that_end_alike(species, run):
    code, _, err = run("audit", species, "--label", "obs_Oak,obs_Ash,obs_Elm")
    right = [words for line, words in commands_of(err) if "several labels" in line]
    assert (code, len(right)) == (2, 1)
    code, out, err = run(*right[0], "--n-resamples", "199")
    assert code == 0, err
    assert "Verdict: CALIBRATED" in out


@pytest.fixture
def two_models(tmp_path, rng):
    """A function that writes two models' files; ``change`` edits the columns of the old one."""
    p = rng.beta(2.0, 3.0, 1200).round(4)
    ids = [f"req-{k}" for k in range(1200)]
    new = {"id": ids, "prob": p, "label": (rng.random(1200) < p) * 1}

    def files(change):
        old = change({name: [*column] for name, column in new.items()})
        return write(tmp_path / "new.csv", **new), write(tmp_path / "old.csv", **old)

    return files


def test_labels_that_only_one_file_has_are_matched_by_id(two_models, run):
    new, old = two_models(lambda c: {"id": c["id"], "prob": c["prob"]})
    code, out, _ = run("gate", new, "--against", old, "--label", "label", "--margin", "0.02")
    assert (code, "passed" in out.lower()) == (0, True)
    assert "labels of new.csv matched by id" in out
    by_words = ("--label", "label = 1", "--margin", "0.02")
    assert run("gate", new, "--against", old, *by_words)[1].count("passed") == out.count("passed")


def test_the_id_that_one_file_has_twice_is_named(two_models, run):
    new, old = two_models(lambda c: {name: [*v, *v[7:9]] for name, v in c.items()})
    code, _, err = run("gate", new, "--against", old, "--margin", "0.02")
    assert code == 2
    assert "id is 'req-7' in 2 rows of old (2 such ids): keep one row of each" in err


@pytest.fixture
def renamed(tmp_path, rng):
    """Return a function that writes two models whose columns have other names in the old file."""
    z = rng.normal(0, 1.3, 900)
    p, q = (1 / (1 + np.exp(-s * z)) for s in (1.0, 1.4))
    y, order = (rng.random(900) < p) * 1, rng.permutation(900)
    ids = np.array([f"C{i:04d}" for i in range(900)])

    def files(label=True, size=900):
        new = write(tmp_path / "new.csv", customer=ids, score=p.round(4),
                    churned=np.where(y, "yes", "no"))  # fmt: skip
        o = order[:size]
        old = {"customer": ids[o], "score_v1": q[o].round(4)}
        old |= {"churned": np.where(y, "yes", "no")[o]} if label else {}
        return new, write(tmp_path / "old.csv", **old)

    return files


@pytest.mark.parametrize("options", [{}, {"label": False}, {"size": 800}])
def test_a_gate_asks_for_label_scores_ids_and_margin_in_one_question(renamed, run, options):
    new, old = renamed(**options)
    code, _, err = run("gate", new, "--against", old)
    ((line, words),) = commands_of(err)
    assert code == 2
    assert "exceed that of the model in use, --margin NUMBER such as 0.01" in err
    assert line.startswith("if yes is the event")
    assert [w for w in words if w.endswith((".csv=score", ".csv=score_v1"))] == [
        f"{new}=score", f"{old}=score_v1",
    ]  # fmt: skip
    assert ("--ids" in words) == (options == {"size": 800})
    code, out, err = run(*(w.replace("NUMBER", "0.2") for w in words))
    assert code == 0, err
    assert "passed" in out


@pytest.mark.slow
def test_a_score_of_another_name_in_one_file_is_named_for_this_file(tmp_path, rng, run):
    p = rng.uniform(0.05, 0.95, 500).round(3)
    y = (rng.random(500) < p) * 1
    new, old = write(tmp_path / "n.csv", p=p, y=y), write(tmp_path / "o.csv", score=p**2, y=y)
    calls = [["compare", new, old], ["compare", old, new], ["compare", new, old, "--probs", "p"],
             ["gate", new, "--against", old, "--margin", "0.3"],
             ["plan", "--like", new, "--against", old, "--n-datasets", "100"]]  # fmt: skip
    for call in calls:
        code, _, err = run(*call)
        ((line, words),) = commands_of(err)
        assert (code, line[:5], f"{old}=score" in words) == (2, "run: ", True)
        code, _, err = run(*words)
        assert code == 0, err
    code, _, err = run("compare", new, old, "--probs-of", "third.csv=score")
    assert code == 2
    assert "--probs-of third.csv=score begins with none of the files" in err


def test_a_gate_without_a_limit_has_a_place_for_it(tmp_path, rng, run):
    p = rng.uniform(0.05, 0.95, 200).round(3)
    file = write(tmp_path / "f.csv", p=p, y=(rng.random(200) < p) * 1)
    ((line, _),) = commands_of(run("gate", file)[2])
    assert line == f"say: caltest gate {file} --tolerance NUMBER"


def test_a_column_of_a_family_that_is_no_class_is_left_out_by_the_command(tmp_path, rng, run):
    probs = rng.dirichlet(np.ones(3), 500)
    k = (probs.cumsum(axis=1) > rng.random((500, 1))).argmax(axis=1)
    columns = {f"p_{name}": probs[:, j] for j, name in enumerate(("cat", "dog", "fox"))}
    label = np.array(["cat", "dog", "fox"])[k]
    file = write(tmp_path / "f.csv", **columns, p_value=rng.random(500), label=label)
    ((line, words),) = commands_of(run("audit", file)[2])
    assert line == f"run: caltest audit {file} --probs 'p_cat, p_dog, p_fox'"
    code, out, _ = run(*words, "--n-resamples", "299")
    assert (code, "Verdict: CALIBRATED" in out) == (0, True)


def test_a_percentage_is_offered_beside_a_fraction_with_the_prediction_named(tmp_path, rng, run):
    p = rng.beta(1, 20, 3000)
    status = np.where(rng.random(3000) < p, "D", "P")
    file = write(tmp_path / "f.csv", pd_pct=(100 * p).round(3), prob_last_year=rng.beta(1, 20, 3000)
                 .round(4) * 0.5 + p.round(4) * 0.5, status=status)  # fmt: skip
    lines = commands_of(run("audit", file)[2])
    assert [line.partition(": ")[0] for line, _ in lines] == [
        "if D is the event and pd_pct in percent is the prediction",
        "if D is the event and prob_last_year is the prediction",
    ]
    assert "Verdict: CALIBRATED" in run(*lines[0][1], *FEW)[1]


def test_a_mark_beside_0_and_1_is_asked_about(tmp_path, rng, run):
    p = rng.uniform(0.05, 0.95, 600).round(2)
    rain = np.where(rng.random(600) < 0.02, "M", ((rng.random(600) < p) * 1).astype(str))
    file = write(tmp_path / "f.csv", p=p, rain=rain)
    ((_, words),) = commands_of(run("audit", file, "--label", "rain = '1'")[2])
    assert words[-2:] == ["--where", "rain <> 'M'"]


@pytest.mark.parametrize("kind", ["dates", "sides"])
def test_columns_that_agree_in_no_row_are_no_answers(tmp_path, rng, run, kind):
    p = rng.uniform(0.05, 0.95, 600).round(3)
    first = rng.integers(0, 40, 600)
    second = (first + rng.integers(1, 4, 600)) % 40
    named = {"dates": ("init_day", "valid_day"), "sides": ("player", "opponent")}[kind]
    cells = {named[0]: [f"x{i}" for i in first], named[1]: [f"x{i}" for i in second]}
    file = write(tmp_path / "f.csv", **cells, win=p, won=(rng.random(600) < p) * 1)
    assert "--predicted-label" not in run("audit", file)[2]
    asked = ("--predicted-label", named[0], "--label", named[1], "--probs", "win")
    code, _, err = run("audit", file, *asked)
    assert code == 2
    assert f"{named[0]} equals {named[1]} in none of 600 rows" in err


def test_an_age_along_which_a_model_errs_is_searched_and_no_cluster(tmp_path, rng, run):
    age, p = rng.integers(20, 90, 2500), rng.uniform(0.2, 0.8, 2500)
    y = (rng.random(2500) < np.clip(p + (age - 55) / 140, 0, 1)) * 1
    patient = rng.integers(0, 500, 2500)
    columns = {"age": age, "p": p.round(4), "label": y}
    out = run("audit", write(tmp_path / "f.csv", **columns), *FEW)[1]
    assert "correlated" not in out
    assert "Not searched for segments: age. Run: " in out
    same = rng.random(500)[patient]
    z = (np.where(rng.random(2500) < 0.6, same, rng.random(2500)) < p) * 1
    columns = {"patient": patient, "p": p.round(4), "label": z}
    assert "same patient are correlated" in run("audit", write(tmp_path / "g.csv", **columns))[1]


def test_rows_of_other_leads_are_not_counted_as_rows_without_an_outcome(tmp_path, rng, run):
    p = rng.uniform(0.05, 0.95, 900).round(2)
    rain = np.where(rng.random(900) < 0.03, -99.0, np.where(rng.random(900) < p, 3.0, 0.0))
    file = write(tmp_path / "f.csv", p=p, mm=rain, lead=np.tile([24, 48, 72], 300))
    out = run("audit", file, "--label", "mm > 0.2", "--where", "(mm > -99) AND lead = 24", *FEW)[1]
    missing = int((rain.reshape(-1, 3)[:, 0] < 0).sum())
    assert f"{missing} of 300 rows have no outcome" in out


def test_all_forecasters_in_percent_are_converted_in_one_command(tmp_path, rng, run):
    p = rng.uniform(0.05, 0.95, (300, 3)).round(2)
    cells = {n: (100 * p[:, j]).round().astype(int) for j, n in enumerate(("amy", "bob", "cy"))}
    file = write(tmp_path / "f.csv", **cells, outcome=(rng.random(300) < p[:, 0]) * 1)
    ((line, words),) = commands_of(run("compare", file, "--probs", "amy,bob,cy")[2])
    assert line.startswith("run: ")
    assert words[-1] == "amy / 100, bob / 100, cy / 100"
    assert run(*words, *FEW)[0] == 0


def test_log_likelihoods_of_options_are_one_family(tmp_path, rng, run):
    z = rng.normal(-6, 1, (400, 4)).round(4)
    gold = np.array([*"ABCD"])[z.argmax(axis=1)]
    cells = {f"logprobs_{k}": z[:, k] for k in range(4)}
    file = write(tmp_path / "f.csv", **cells, prediction=gold[::-1], gold=gold)
    ((_, words),) = commands_of(run("audit", file)[2])
    assert words[words.index("--probs") + 1] == ", ".join(cells)
    assert "--from-logits" in words


def test_scores_below_0_are_logits_and_are_not_divided(tmp_path, rng, run):
    z = rng.normal(0, 6, 500).round(3)
    y = (rng.random(500) < 1 / (1 + np.exp(-z))) * 1
    file = write(tmp_path / "f.csv", y_score=z, y_prob=(1 / (1 + np.exp(-z))).round(5), y_true=y)
    words = [words for _, words in commands_of(run("audit", file)[2])]
    assert [w[w.index("--probs") + 1 :] for w in words] == [
        ["y_score", "--from-logits"],
        ["y_prob"],
    ]


def test_missing_options_are_named_together(forecasts_file, run):
    ((line, _),) = commands_of(run("revisions", forecasts_file)[2])
    assert line == f"say: caltest revisions {forecasts_file} --id EXPR --time EXPR"


@pytest.fixture
def forecasts_file(tmp_path):
    """A file of forecasts, which is not read."""
    return write(tmp_path / "f.csv", question=[1, 1], day=[1, 2], p=[0.4, 0.5])


def test_a_forecast_of_another_name_is_offered_to_revisions(tmp_path, run):
    rng = np.random.default_rng(2)
    steps = np.clip(50 + 5 * rng.normal(size=(40, 6)).cumsum(axis=1), 1, 99).round().astype(int)
    file = write(tmp_path / "f.csv", question=np.repeat([f"q{i}" for i in range(40)], 6),
                 day=np.tile(np.arange(6), 40), forecast=steps.ravel())  # fmt: skip
    call = ("revisions", file, "--ids", "question", "--time", "day")
    ((line, words),) = commands_of(run(*call)[2])
    assert line.startswith("if forecast is the forecast in percent: ")
    code, _, err = run(*words)
    assert code == 0, err


def test_ids_of_other_names_in_two_files_are_matched_by_their_words(tmp_path, rng, run):
    p = rng.uniform(0.05, 0.95, 400).round(3)
    y, order = (rng.random(400) < p) * 1, rng.permutation(400)
    ids = np.array([f"r{i}" for i in range(400)])
    new = write(tmp_path / "n.csv", ref=ids, p=p, y=y)
    old = write(tmp_path / "o.csv", case=ids[order], p=(p**2)[order], y=y[order])
    code, out, err = run("compare", new, old)
    assert code == 0, err
    assert "ids from ref" in out
    assert "ids from case" in out
    assert "n is better calibrated" in out
    named = run("compare", new, old, "--ids", "ref", "--ids-of", f"{old}=case")[1]
    assert named == out
