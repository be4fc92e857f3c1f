"""Commands ``decide`` and ``revisions``: what they print, their exit codes, and refusals."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

import caltest as ct


@pytest.fixture
def slow_forecasts(tmp_path):
    """Write 60 questions with 20 forecasts each that go half of the way."""
    rng = np.random.default_rng(3)
    news = rng.standard_normal((60, 20)).cumsum(axis=1) / np.sqrt(20)
    right = ndtr((rng.normal(0, 0.7, (60, 1)) + news) / np.sqrt(1 - np.arange(20) / 20))
    slow = right.copy()
    for day in range(1, 20):
        slow[:, day] = slow[:, day - 1] + 0.5 * (right[:, day] - slow[:, day - 1])
    lines = ["question,date,p,topic,outcome"]
    for q in range(60):
        outcome = q % 2 if q < 30 else ""
        lines += [
            f"q{q},2026-11-{day + 1:02},{slow[q, day]:.6f},{'abc'[q % 3]},{outcome}"
            for day in range(20)
        ]
    path = tmp_path / "forecasts.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def risks(tmp_path):
    """Write 500 calibrated risks."""
    rng = np.random.default_rng(1)
    p = rng.beta(1, 3, 500)
    y = (rng.random(500) < p).astype(int)
    path = tmp_path / "risks.csv"
    np.savetxt(path, np.column_stack([p, y]), delimiter=",", header="p,label", comments="")
    return path


def test_revisions_are_those_of_python(run, slow_forecasts):
    code, out, err = run(
        "revisions", slow_forecasts, "--ids", "question", "--time", "date", "--json"
    )
    assert code == 0
    assert json.loads(out)["directions"][0] == "too slow"
    assert "ids from question, time from date, probs from p" in err


def test_an_alarm_is_exit_code_1_where_that_is_asked(run, slow_forecasts, tmp_path):
    picture = tmp_path / "evidence.png"
    code, out, _ = run(
        "revisions", slow_forecasts, "--ids", "question", "--time", "date",
        "--fail-on-miscalibration", "--plot", picture,
    )  # fmt: skip
    assert code == 1
    assert "Most of the evidence says too slow" in out
    assert picture.stat().st_size > 1000


def test_rows_outcomes_and_groups_are_expressions(run, slow_forecasts):
    code, out, err = run(
        "revisions", slow_forecasts, "--ids", "question", "--time", "date", "--label", "outcome",
        "--groups", "topic", "--where", "topic <> 'c'", "--json",
    )  # fmt: skip
    result = json.loads(out)
    assert code == 0
    assert (result["n_questions"], result["n_groups"]) == (40, 2)
    assert "those where topic <> 'c'" in err


def test_a_column_that_is_not_there_is_named(run, slow_forecasts):
    code, _, err = run("revisions", slow_forecasts, "--ids", "question", "--time", "day")
    assert code == 2
    assert "no column 'day'" in err


def test_two_columns_of_probabilities_are_a_question(run, tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("q,t,p,prob\n1,1,0.2,0.3\n1,2,0.3,0.4\n")
    code, _, err = run("revisions", path, "--ids", "q", "--time", "t")
    assert code == 2
    assert "the forecast could be p or prob" in err
    assert "if prob is meant: caltest revisions" in err


def test_promised_costs_of_a_file_are_those_of_python(run, risks, tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("action,1,0\nwait,4,0\ntreat,1,1\n")  # columns are matched by name
    code, out, _ = run("decide", risks, "--costs", costs, "--json")
    p, y = np.loadtxt(risks, delimiter=",", skiprows=1).T
    expected = ct.promise(p, y.astype(int), ct.Costs([[0, 4], [1, 1]]))
    assert code == 0
    assert json.loads(out)["realised"] == pytest.approx(expected.realised)
    assert json.loads(out)["pvalue"] == pytest.approx(expected.pvalue)
    assert json.loads(out)["actions"] == ["wait", "treat"]


def test_a_broken_promise_is_exit_code_1_where_that_is_asked(run, tmp_path):
    path = tmp_path / "over.csv"
    path.write_text("p,label\n" + "0.9,1\n0.9,0\n" * 100)
    words = ("decide", path, "--threshold", "0.5", "--fail-on-miscalibration", "--as-is")
    assert run(*words)[0] == 1


def test_decide_takes_weights_and_clusters(run, risks, tmp_path):
    p, y = np.loadtxt(risks, delimiter=",", skiprows=1).T
    path = tmp_path / "visits.csv"
    patients, weights = np.arange(p.size) // 4, 1.0 + np.arange(p.size) % 3
    rows = zip(p, y, patients, weights, strict=True)
    lines = [f"{a},{b:.0f},{c},{d}\n" for a, b, c, d in rows]
    path.write_text("p,label,patient,weight\n" + "".join(lines))
    words = ("--clusters", "patient", "--weights", "weight", "--json")
    code, out, _ = run("decide", path, "--threshold", "0.2", *words)
    assert code == 0
    assert json.loads(out)["n_clusters"] == p.size / 4
    mean = np.average(np.where(p >= 0.2, np.where(y == 1, 1.0, -0.25), 0.0), weights=weights)
    assert json.loads(out)["realised"] == pytest.approx(mean)


def test_curve_is_printed(run, risks):
    code, out, _ = run("decide", risks, "--curve")
    assert code == 0
    assert out.startswith("Decision curve")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("action,0,2\nwait,0,4\n", "the classes are 0, 1"),
        ("action,0,1\nwait,0,much\n", "holds a cost that is not a number"),
    ],
)
def test_costs_that_do_not_fit_are_refused(run, risks, tmp_path, content, message):
    costs = tmp_path / "costs.csv"
    costs.write_text(content)
    code, _, err = run("decide", risks, "--costs", costs)
    assert code == 2
    assert message in err


def test_one_question_at_a_time(run, risks):
    code, _, err = run("decide", risks, "--threshold", "0.2", "--curve")
    assert code == 2
    assert "name one of --costs FILE, --threshold T and --curve" in err


def test_a_missing_option_is_a_place_to_fill_in(run, slow_forecasts):
    code, _, err = run("revisions", slow_forecasts, "--ids", "question")
    assert code == 2
    assert "--time EXPR" in err


@pytest.fixture
def leads():
    """Return columns of 40 questions whose forecasts go half of the way, by hours of lead."""
    rng = np.random.default_rng(8)
    path = (0.5 + 0.05 * rng.standard_normal((40, 6)).cumsum(axis=1)).clip(0.02, 0.98)
    hours = np.tile(np.arange(144, 0, -24), 40)
    return {"day": np.repeat(np.arange(40), 6), "lead_hours": hours, "p": path.ravel().round(4)}


def test_lead_times_are_asked_about_with_a_command_for_each_reading(run, leads, tmp_path):
    file = tmp_path / "leads.csv"
    pl.DataFrame(leads).write_csv(file)
    call = ["revisions", file, "--ids", "day", "--time", "lead_hours"]
    code, _, err = run(*call)
    assert code == 2
    assert "the forecast of 24 would be taken for the first and that of 144 for the last" in err
    assert "if lead_hours counts down to the event: caltest revisions" in err
    assert "--time=-lead_hours" in err
    assert "--as-is" in err
    down = run(*call[:-2], "--time=-lead_hours", "--json")[1]
    assert json.loads(down) != json.loads(run(*call, "--as-is", "--json")[1])
    right = ct.Revisions(leads["day"], -leads["lead_hours"], leads["p"])
    assert json.loads(down)["log_evidence"] == right.test().log_evidence


def test_rounded_forecasts_are_charged_alike_on_the_command_line_and_in_python(
    run, leads, tmp_path
):
    file = tmp_path / "percents.csv"
    pl.DataFrame(leads | {"p": leads["p"].round(2)}).write_csv(file)
    call = ["revisions", file, "--ids", "day", "--time=-lead_hours", "--json"]
    python = ct.Revisions(leads["day"], -leads["lead_hours"], leads["p"].round(2)).test()
    found = json.loads(run(*call)[1])
    assert found["log_evidence"] == python.log_evidence
    assert found["log_evidence"] < json.loads(run(*call, "--step", "0")[1])["log_evidence"]


@pytest.mark.parametrize("name", ["lead_hours", "Lead time (h)", "days_before", "hours ahead"])
def test_series_of_lead_times_are_asked_about(leads, name):
    times = pl.Series(name, leads["lead_hours"])
    with pytest.raises(ct.DoubtfulInputError, match="Pass times=-times"):
        ct.Revisions(leads["day"], times, leads["p"])
    for fine in (-times, times.alias("hour"), times.to_numpy()):
        ct.Revisions(leads["day"], fine, leads["p"])
    ct.Revisions(leads["day"], times, leads["p"], as_is=True)
