"""Every call of reliable §3 on the command line ends in an answer or in one sentence.

Run on commit 626a36f5: pooled parts with a column ``user`` ended in KeyError, ``--clusters ''`` in
IndexError, a closed standard output in AttributeError, all with exit code 1 and a traceback;
``--by a --by b`` looked at b only; ``--recorded`` was unknown. Deep JSON in a file and NUL bytes
were sentences there already, and are kept so.
"""

import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import caltest as ct
from caltest.read import formats

N = 200
RNG = np.random.default_rng(4)
P = RNG.random(N).round(4)
Y = (RNG.random(N) < P).astype(int)


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "rows.csv"
    pl.DataFrame({"p": P, "y": Y, "g": np.arange(N) % 3, "h": np.arange(N) % 2}).write_csv(path)
    return path


@pytest.mark.parametrize(
    "name", ["user", "patient", "customer", "device", "subject", "household", "member"]
)
def test_pooled_parts_with_a_column_of_persons(name, tmp_path, run):
    who = RNG.integers(0, 30, N)
    for part in (0, 1):
        rows = {"p": P[part::2], "y": Y[part::2], name: who[part::2]}
        pl.DataFrame(rows).write_parquet(tmp_path / f"part-{part}.parquet")
    status, out, err = run("test", tmp_path / "part-*.parquet", "--probs", "p", "--label", "y")
    assert status == 0, err
    assert "n=200" in out


def test_segments_of_several_files_are_refused_in_a_sentence(csv, run):
    status, _, err = run("segments", csv, csv, "--probs", "p", "--label", "y")
    assert status == 2
    assert "unexpected extra argument" in err


@pytest.mark.parametrize("option", ["clusters", "time", "by", "weights", "probs", "label", "folds"])
def test_an_empty_name_is_refused(option, csv, run):
    status, _, err = run("audit", csv, f"--{option}", "")
    assert status == 2
    assert f"'--{option}'" in err or f"--{option}" in err
    assert "it is empty: name a column" in err


def test_an_option_given_twice_is_refused(csv, run):
    status, _, err = run("audit", csv, "--probs", "p", "--label", "y", "--by", "g", "--by", "h")
    assert status == 2
    assert "--by is given 2 times: give it once, with commas" in err


def test_a_level_that_needs_more_draws_is_printed_with_its_digits(csv, run):
    words = ("interval", csv, "--probs", "p", "--label", "y", "--level", "0.999999999999")
    status, _, err = run(*words)
    assert status == 2
    assert "level=0.999999999999 needs at least" in err


@pytest.mark.parametrize("name", ["deep.json", "deep.jsonl"])
def test_deep_json_is_one_sentence(name, tmp_path, run):
    (tmp_path / name).write_text("[" * 100_000)
    status, _, err = run("audit", tmp_path / name)
    assert status == 2
    assert err == f"caltest: {name}: its brackets are nested too deeply\n"


def test_a_nul_byte_is_named_by_its_line(tmp_path, run):
    (tmp_path / "nul.csv").write_bytes(b"p\x00q,y\n0.5,1\n")
    status, _, err = run("audit", tmp_path / "nul.csv")
    assert status == 2
    assert "line 1 holds a NUL byte" in err


def test_names_that_turn_text_around_are_printed_without_it(tmp_path, run):
    rows = {"p": P, "y": Y, "g\u202e": np.where(Y, "a\u202e", "b")}
    pl.DataFrame(rows).write_csv(tmp_path / "bidi.csv")
    status, out, err = run("audit", tmp_path / "bidi.csv", "--probs", "p", "--label", "nothing")
    assert status == 2
    assert "\u202e" not in out + err


def test_long_names_are_cut_in_messages(tmp_path, run):
    (tmp_path / "long.csv").write_text("a," + "(" * 20_000 + "\n0.5,red\n0.25,blue\n0.25,green\n")
    for verb in ("audit", "grades"):
        status, _, err = run(verb, tmp_path / "long.csv")
        assert status == 2
        assert "(" * 59 + "…" in err
        assert len(err.splitlines()[0]) < 400


@pytest.mark.parametrize("name", ["long.csv", "long.jsonl"])
def test_a_line_too_long_is_refused_by_its_number(name, tmp_path, run, monkeypatch):
    monkeypatch.setattr(formats, "LONGEST_LINE", 10_000)
    monkeypatch.setattr(formats, "BYTES_A_BLOCK", 256)
    row = "0.4,1\n" if name.endswith("csv") else '{"p": 0.4, "y": 1}\n'
    text = ("p,y\n" if name.endswith("csv") else "") + row * 3000
    (tmp_path / name).write_text(text)
    assert run("test", tmp_path / name)[0] == 0  # the file is long, its lines are not
    (tmp_path / name).write_text(text + "x" * 10_001)
    status, _, err = run("test", tmp_path / name)
    assert status == 2
    assert f"line {text.count(chr(10)) + 1} is longer than" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "streams", [">&-", "2>&- >/dev/null", ">&- 2>&-", "<&- >/dev/null", "<&- >&- 2>&-"]
)
def test_closed_streams(streams, csv):
    command = f'"{sys.executable}" -m caltest test "{csv}" --probs p --label y {streams}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_an_output_that_is_full_is_a_sentence(csv):
    command = f'"{sys.executable}" -m caltest test "{csv}" --probs p --label y > /dev/full'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "caltest: [Errno 28] No space left on device\n"


def test_an_unexpected_error_is_70_and_one_sentence(csv, run, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("second line\nis left out")

    monkeypatch.setattr(ct, "audit", broken)
    status, out, err = run("audit", csv, "--probs", "p", "--label", "y")
    assert (status, out) == (70, "")
    assert err == (
        "caltest: unexpected error (RuntimeError: second line); please report it with the output "
        "of the same command and --debug\n"
    )
    status, _, err = run("audit", csv, "--probs", "p", "--label", "y", "--debug")
    assert status == 70
    assert "Traceback" in err


# ------------------------------------------------------------------------------
# Follow-up in completed units.


@pytest.fixture
def cohort(tmp_path):
    path = tmp_path / "cohort.csv"
    years = np.floor(RNG.exponential(6.0, N)).clip(0, 20) + 1.0
    died = RNG.random(N) < 0.7
    pl.DataFrame({"risk": P, "years": 2.0 * years, "died": died.astype(int)}).write_csv(path)
    return path, 2.0 * years, died


COHORT = ("--probs", "risk", "--event", "died", "--time", "years", "--horizon", "6")


@pytest.mark.parametrize("recorded", ["floor", "ceil"])
def test_completed_units_on_the_command_line(recorded, cohort, run):
    path, years, died = cohort
    status, out, err = run("test", path, *COHORT, "--recorded", recorded, "--unit", "2")
    assert status == 0, err
    followed = ct.Followup(years, died, 6.0, unit=2.0, recorded=recorded)
    test = ct.calibration_test(P, followed, rng=0)
    exact = ct.calibration_test(P, ct.Followup(years, died, 6.0), rng=0)
    assert test.estimate != exact.estimate
    assert f"{test.estimate:.3f}" in out


def test_a_horizon_inside_a_unit_is_refused(cohort, run):
    words = [*COHORT[:-1], "5", "--recorded", "floor", "--unit", "2"]
    status, _, err = run("test", cohort[0], *words)
    assert status == 2
    assert "the horizon 5 lies inside a unit of 2" in err


def test_a_unit_without_follow_up_is_refused_with_a_way_on(csv, run):
    status, _, err = run("test", csv, "--probs", "p", "--label", "y", "--unit", "2")
    assert status == 2
    assert "are for follow-up: name the event" in err


def test_read_predictions_takes_the_unit(cohort):
    path, years, died = cohort
    read = ct.read_predictions(
        path, "risk", event="died", time="years", horizon=6, unit=2.0, recorded="floor"
    )
    made = ct.Predictions.of(P, ct.Followup(years, died, 6.0, unit=2.0, recorded="floor"))
    assert np.array_equal(read.weights, made.weights)
