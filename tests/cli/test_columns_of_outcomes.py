"""Columns that are known after the outcome: losses, stays that death ends, follow-up by dates."""

import numpy as np
import pytest
from printed import FEW, commands_of, write


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def losses(p, y):
    """Losses of each row, by name."""
    q = np.where(y == 1, p, 1 - p)
    return {"nll": -np.log(q), "brier": (y - p) ** 2, "gap": 3 * abs(y - p) + 1, "chance": q}


@pytest.mark.parametrize("kind", ["nll", "brier", "gap", "chance"])
def test_a_loss_of_each_row_is_not_searched_for_segments(tmp_path, rng, run, kind):
    p = rng.beta(2.0, 4.0, 1500).round(4)
    y = (rng.random(1500) < p) * 1
    spare = {kind: losses(p, y)[kind].round(6), "age": rng.integers(20, 90, 1500)}
    file = write(tmp_path / "a.csv", prob=p, label=y, **spare)
    assert "Not searched for segments: age. Run: " in run("audit", file)[1]
    code, out, err = run("segments", file, *FEW)
    assert code == 0, err
    assert f"{kind} (a loss: outcomes follow from it and the prediction)" in " ".join(out.split())


def test_losses_and_names_of_the_true_class_of_several_are_not_searched(tmp_path, rng, run):
    p = rng.dirichlet([1.0, 1.0, 1.0], 1200).round(5)
    y = (rng.random(1200)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    q = np.maximum(p[np.arange(1200), y], 1e-5)
    columns = {f"p{k}": p[:, k] for k in range(3)} | {"label": y, "loss": -np.log(q)}
    columns |= {"name": np.array(["cat", "dog", "frog"])[y], "age": rng.integers(20, 90, 1200)}
    file = write(tmp_path / "a.csv", **columns)
    out = run("audit", file, "--probs", "p0,p1,p2")[1]
    assert "Not searched for segments: age. Run: " in out


def test_functions_of_the_predictions_and_other_scores_are_searched(tmp_path, rng, run):
    p = rng.beta(1.0, 60.0, 3000).round(5) + 1e-4
    y = (rng.random(3000) < p) * 1
    spare = {"near": np.log(p) + rng.normal(0, 0.05, 3000)}
    spare |= {"sure": 3 * np.maximum(p, 1 - p)}
    out = run("audit", write(tmp_path / "a.csv", prob=p, label=y, **spare), "--as-is")[1]
    assert "Not searched for segments: near, sure. Run: " in out


def stays(path, rng, n=1500):
    """Deaths with calibrated risks; no stay that ends by death exceeds ten days."""
    p = rng.beta(2.0, 4.0, n).round(4)
    died = rng.random(n) < p
    stay = np.where(died, rng.integers(1, 11, n), rng.integers(1, 30, n))
    return write(path, risk=p, died=died * 1, length_of_stay=stay, age=rng.integers(20, 90, n))


def test_a_time_that_may_be_follow_up_is_offered_with_commands_that_go_on(tmp_path, rng, run):
    file = stays(tmp_path / "a.csv", rng)
    code, _, err = run("audit", file)
    (followed, time), (not_followed, plain) = commands_of(err)
    assert code == 2
    assert followed.startswith("if rows were followed for length_of_stay, say: ")
    assert "--horizon NUMBER" in " ".join(time)
    assert not_followed.startswith("if length_of_stay is not how long rows were followed: ")
    assert plain[-1] == "--as-is"
    code, out, err = run(*plain)
    assert code == 0, err
    assert "Verdict: CALIBRATED" in out
    assert "Not searched for segments: age. If the doubt above is settled, run: " in out


def followed_by_dates(path, rng, n=3000):
    """Deaths within 730 days of an index date; risks are right for 365 days. Dates are German."""
    p = rng.beta(2.0, 5.0, n).round(3)
    death = rng.exponential(365 / -np.log1p(-p)).astype(int) + 1
    last = rng.integers(200, 730, n)
    start = np.datetime64("2018-01-01") + rng.integers(0, 700, n)
    end = start + np.minimum(death, last)
    german = [[f"{d:%d.%m.%Y}" for d in days.tolist()] for days in (start, end)]
    dead = np.where(death <= last, "X", "")
    return write(path, entry=german[0], seen=german[1], exitus=dead, risk=(100 * p).round(1))


@pytest.mark.parametrize("given", [(), ("--label", "exitus IS NOT NULL", "--probs", "risk / 100")])
def test_follow_up_between_two_dates_is_asked_about_and_its_command_runs(tmp_path, rng, run, given):
    file = followed_by_dates(tmp_path / "a.csv", rng)
    code, _, err = run("audit", file, *given)
    line, words = commands_of(err)[0]
    assert code == 2
    assert "rows were followed for the time from entry to seen" in line
    assert words[words.index("--event") + 1] == "exitus IS NOT NULL"
    words[words.index("NUMBER")] = "365"
    code, out, err = run(*words, *FEW)
    assert code == 0, err
    assert "Verdict: CALIBRATED" in out


def test_two_dates_that_have_nothing_to_do_with_the_outcome_are_no_question(tmp_path, rng, run):
    p = rng.beta(2.0, 4.0, 1500).round(4)
    start = np.datetime64("2018-01-01") + rng.integers(0, 700, 1500)
    columns = {"ordered": start, "shipped": start + rng.integers(0, 90, 1500), "prob": p}
    file = write(tmp_path / "a.csv", **columns, label=(rng.random(1500) < p) * 1)
    code, _, err = run("audit", file, *FEW)
    assert code == 0, err


def test_a_cast_of_text_to_dates_is_named_with_the_expression_that_works(tmp_path, rng, run):
    file = followed_by_dates(tmp_path / "a.csv", rng)
    text = (tmp_path / "a.csv").read_text()
    header, *rows = text.splitlines()
    rows = [row.replace(",", ";").replace(".5", ",5") for row in rows if row.endswith(".5")]
    (tmp_path / "a.csv").write_text("\n".join([header.replace(",", ";"), *rows]) + "\n")
    named = ("--label", "exitus IS NOT NULL", "--probs", "risk / 100", "--as-is")
    code, _, err = run("audit", file, *named, "--where", "CAST(entry AS DATE) IS NOT NULL")
    day = rows[0].partition(";")[0]
    assert code == 2
    assert f"CAST(entry AS DATE) IS NOT NULL cannot be computed: entry is '{day}', text" in err
    ((_, words),) = commands_of(err)
    assert words[-1] == "DATE(entry, '%d.%m.%Y') IS NOT NULL"
    assert run(*words, *FEW)[0] == 0
