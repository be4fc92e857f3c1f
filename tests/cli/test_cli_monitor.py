"""``caltest monitor``: no row twice, none lost, whatever happens."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import caltest as ct


def rows(n, seed=0, slope=0.7):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.001, 0.999, n).round(6)
    return p, (rng.random(n) < 1 / (1 + ((1 - p) / p) ** slope)).astype(int)


def written(path, *columns):
    lines = (",".join(map(str, row)) for row in zip(*columns, strict=True))
    path.write_text("\n".join([",".join(("p", "label", "time")[: len(columns)]), *lines, ""]))
    return path


def state_of(path):
    return ct.Monitor.from_dict(json.loads(path.read_text())["monitor"])


def test_runs_add_up_to_one(run, tmp_path, done):
    p, y = rows(3000)
    data, state = tmp_path / "f.csv", tmp_path / "s.json"
    for n in (1000, 1000, 1001, 3000):
        written(data, p[:n], y[:n])
        out = done("monitor", data, "--state", state, "--alpha", 0.01)
    expected = ct.Monitor(alpha=0.01).update(p, y)
    assert state_of(state) == expected
    assert "f.csv: 1999 new rows, 0 wait for a label" in out
    code, out, _ = run("monitor", data, "--state", state, "--fail-on-alarm", "--json")
    answer = json.loads(out)
    assert (code, answer["alarm"], answer["evidence"]) == (1, expected.alarm, expected.evidence)
    assert answer["files"] == {"f.csv": {"new": 0, "waiting": 0, "lost": [], "late": []}}
    assert state.stat().st_size < 100_000


def test_rows_wait_for_labels(run, tmp_path):
    p, y = rows(100)
    data, state = tmp_path / "f.csv", tmp_path / "s.json"

    def seen(labels, predictions=p):
        return run("monitor", written(data, predictions, labels), "--state", state)[1]

    late = [str(v) for v in y]
    late[60] = late[61] = late[80] = ""
    out = seen(late)
    assert "60 new rows, 40 wait for a label" in out
    assert "row 61 of f.csv has no label" in out
    assert out.endswith(f"run: caltest monitor {data} --state {state} --drop-missing\n")
    late[60] = str(y[60])
    assert "1 new rows, 39 wait" in seen(late)
    assert "39 new rows, 0 wait" in seen(y)
    assert state_of(state) == ct.Monitor().update(p, y)
    assert "0 new rows, 1 wait" in seen([*y, ""], np.append(p, 0.5))
    data, state = tmp_path / "g.csv", tmp_path / "t.json"
    assert "0 new rows, 100 wait" in seen([""] * 100)


def test_a_batch_without_events_is_read(done, tmp_path):
    p = [f"{100 * v:.4f} %" for v in rows(30)[0]]
    p[3] = ""
    first = written(tmp_path / "week-1.csv", p, ["no"] * 30)
    second = written(tmp_path / "week-2.csv", p[4:], ["no", "yes"] * 13)
    state = tmp_path / "s.json"
    said = ("--probs", "CAST(REPLACE(p, ' %', '') AS DOUBLE) / 100", "--label", "label = 'yes'")
    for files in ((first,), (first, second)):
        done("monitor", *files, "--state", state, "--drop-missing", *said)
    assert state_of(state).n == 55


@pytest.mark.parametrize("timed", [False, True])
def test_rows_whose_label_is_lost_are_left_out_for_good(run, done, tmp_path, refused, timed):
    p, y = rows(300)
    times = np.array([f"2024-{1 + row // 28:02d}-{1 + row % 28:02d}" for row in range(300)])
    options = ("--time", "time", "--horizon", 1) if timed else ()
    lost, columns = np.isin(np.arange(300), (40, 41, 42, 90)), (times,) * timed
    gaps = np.where(lost | (np.arange(300) >= 198), "", y.astype(str))
    predictions = np.where(np.arange(300) == 7, "", p.astype(str))
    data, state = tmp_path / "f.csv", tmp_path / "s.json"
    written(data, predictions[:200], gaps[:200], *(c[:200] for c in columns))
    command = ("monitor", data, "--state", state, *options)
    assert "p has no value in row 8" in run(*command)[2]
    out = " ".join(done(*command, "--drop-missing").split())
    named = "193 new rows, 2 wait for a label, 4 without one left out for good (rows 41, 42, 43, 91"
    first = f"the first that waits is row 199{' (2024-08-03)' * timed} of f.csv"
    said = " ".join(out.split())  # sentences are broken into lines
    assert all(words in said for words in (named, first, "left out 1 row without"))
    gaps[40], gaps[198:] = str(y[40]), y[198:]  # one comes late, and does not count any more
    written(data, predictions, gaps, *columns)
    moved = data.rename(tmp_path / "g.csv")
    assert "102 new rows, 0 wait" in done("monitor", moved, *command[2:], "--drop-missing")
    keep = ~lost & (np.arange(300) != 7)
    dates = {"time": times[keep]} if timed else {}
    assert state_of(state) == ct.Monitor().update(p[keep], y[keep], **dates)
    gaps[91] = str(1 - y[91])
    written(moved, predictions, gaps, *columns)
    refused("are not those that were counted before", "monitor", moved, *command[2:],
            "--drop-missing")  # fmt: skip


def test_a_last_line_that_is_being_written_waits(run, tmp_path):
    p, y = rows(50)
    data, state = written(tmp_path / "f.csv", p, y), tmp_path / "s.json"
    whole = data.read_text()
    data.write_text(whole[:-1])
    assert "49 new rows, 1 wait" in run("monitor", data, "--state", state)[1]
    later = written(tmp_path / "g.csv", *rows(30, seed=2))
    out = run("monitor", data, later, "--state", state, "--drop-missing")[1]
    assert "row 50 of f.csv waits for the end of its line" in out
    data.write_text(whole)
    assert "1 new rows, 0 wait" in run("monitor", data, "--state", state)[1]


def test_times_order_rows_of_several_files(run, tmp_path, refused):
    p, y = rows(400)
    times = np.array([f"2024-01-{1 + row // 20:02d}" for row in range(400)])
    state, shuffled = tmp_path / "s.json", np.random.default_rng(1).permutation(400)
    first, second = np.sort(shuffled[:250])[::-1], np.sort(shuffled[250:])
    late = y.astype(str)
    late[310] = ""
    one = written(tmp_path / "one.csv", p[first], late[first], times[first])
    two = written(tmp_path / "two.csv", p[second], late[second], times[second])
    arguments = (one, two, "--state", state, "--time", "time", "--horizon", 2)
    run("monitor", *arguments)
    assert (state_of(state).n, state_of(state).steps) == (300, 15)  # row 310's day waits
    late[310] = str(y[310])
    written(one, p[first], late[first], times[first])
    written(two, p[second], late[second], times[second])
    run("monitor", *arguments)
    order = np.argsort(times[np.append(first, second)], kind="stable")
    rows_of = np.append(first, second)[order]
    expected = ct.Monitor(horizon=2).update(p[rows_of], y[rows_of], time=times[rows_of])
    assert state_of(state).n == 400
    assert state_of(state).log_evidence == pytest.approx(expected.log_evidence)
    three = written(tmp_path / "three.csv", p[:1], y[:1], times[:1])
    earlier = "row 1, counted from 1, is of no later time"
    refused(earlier, "monitor", *arguments[:2], three, *arguments[2:])
    other = state.with_stem(f"{state.stem}-2")
    new = f"if the rows are of another model: caltest monitor {three} --state {other}\n"
    refused(new, "monitor", three, "--state", state)  # of another model
    fresh = (two, "--state", tmp_path / "fresh.json")
    assert run("monitor", *fresh)[0] == 0
    refused("has counted rows without times", "monitor", one, *fresh[1:], "--time", "time")
    two.write_text(two.read_text().replace("p,label", "risk,y", 1))
    refused("has risk, y: rows of another model", "monitor", *fresh)
    assert run("monitor", *fresh, "--probs", "risk", "--label", "y")[0] == 0


def test_rows_that_wait_in_a_file_that_is_not_given_are_named(done, tmp_path):
    p, y = rows(240)
    days = np.array([f"2024-01-{1 + row // 30:02d}" for row in range(240)])
    gaps = np.where(np.arange(240) == 95, "", y.astype(str))

    def seen(name, labels, a, b):
        data = written(tmp_path / name, p[a:b], labels[a:b], days[a:b])
        return done("monitor", data, "--state", tmp_path / "s.json", "--time", "time")

    assert "90 new rows, 30 wait" in seen("one.csv", gaps, 0, 120)
    named = "Note: 30 rows of 2024-01-04 and later in one.csv "
    assert f"{named}still wait for a label: give that file" in seen("two.csv", [""] * 180, 120, 180)
    assert f"{named}waited for a label and are now left out" in seen("two.csv", y, 120, 180)
    assert "in one.csv" not in seen("three.csv", y, 180, 240)
    late = "0 new rows, 0 wait for a label, 30 left out for good, as later ones were bet on"
    assert late in seen("one.csv", y, 0, 120)
    assert "0 new rows, 0 wait for a label.\n" in seen("one.csv", y, 0, 120)
    keep = np.arange(240) // 30 != 3
    expected = ct.Monitor().update(p[keep], y[keep], time=days[keep])
    assert state_of(tmp_path / "s.json").log_evidence == pytest.approx(expected.log_evidence)


def test_files_under_a_new_name_count_once(run, tmp_path, refused):
    p, y = rows(100)
    data, state = written(tmp_path / "log.csv", p[:80], y[:80]), tmp_path / "s.json"
    run("monitor", data, "--state", state)
    renamed = written(data.rename(tmp_path / "log.1.csv"), p, y)
    assert "20 new rows" in run("monitor", renamed, "--state", state)[1]
    assert (run("monitor", renamed, renamed, "--state", state)[0], state_of(state).n) == (0, 100)
    q, z = rows(140, seed=9)
    other = written(tmp_path / "new.csv", q[:100], z[:100])
    copy = written(tmp_path / "copy.csv", q[:100], z[:100])
    refused("is a copy of another", "monitor", other, copy, "--state", state)
    run("monitor", other, "--state", state)
    assert state_of(state).n == 200
    longer = written(tmp_path / "longer.csv", q, z)
    shorter = written(tmp_path / "shorter.csv", q[:120], z[:120])
    assert run("monitor", longer, shorter, "--state", state)[0] == 2
    written(data, *rows(30, seed=4))  # the log was begun anew
    assert "30 new rows" in run("monitor", data, "--state", state)[1]
    assert state_of(state).n == 230
    assert "0 new rows" in run("monitor", copy, "--state", state)[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("\n", "\n0.5,1\n", 1), "its first 50 rows are not those"),
        (lambda text: "p,label\n0.5,1\n", "its first 50 rows are not those"),
        (lambda text: text + "0.4\n", "line 52 has 1 cell,"),
        (lambda text: text + "1.4,1\n", "p is 1.4 in row 51"),
    ],
)
def test_what_was_counted_cannot_change(run, tmp_path, change, message):
    data, state = written(tmp_path / "f.csv", *rows(50)), tmp_path / "s.json"
    run("monitor", data, "--state", state)
    before = state.read_bytes()
    data.write_text(change(data.read_text()))
    code, out, err = run("monitor", data, "--state", state)
    assert (code, out, message in err, state.read_bytes()) == (2, "", True, before)


def test_a_state_keeps_its_question(run, tmp_path, refused):
    data, state = written(tmp_path / "f.csv", *rows(50)), tmp_path / "s.json"
    run("monitor", data, "--state", state, "--change", "--run-length", 5000)
    assert state_of(state).change
    for option in (("--alpha", 0.01), ("--lens", "OneVsRest(0)"), ("--horizon", 2)):
        refused("a new question needs a new state", "monitor", data, "--state", state, *option)
    assert run("monitor", data, "--state", state, "--lens", "OneVsRest(1)", "--change")[0] == 0


@pytest.mark.slow
def test_only_one_writes_at_a_time(tmp_path):
    p, y = rows(2000)
    data, state = written(tmp_path / "f.csv", p, y), tmp_path / "s.json"
    command = [sys.executable, "-m", "caltest", "monitor", str(data), "--state", str(state)]
    environment = {**os.environ, "PYTHONPATH": str(Path(ct.__file__).parents[1])}
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate()[0].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert sorted("2000 new rows" in text for text in said) == [False, True]
    assert state_of(state) == ct.Monitor().update(p, y)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_run_that_is_killed_while_it_writes_has_not_been(run, tmp_path, monkeypatch, step):
    p, y = rows(60)
    data, state = tmp_path / "f.csv", tmp_path / "s.json"
    run("monitor", written(data, p[:30], y[:30]), "--state", state)
    before = state.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, step, lambda *_: sys.exit(9))
        assert run("monitor", written(data, p, y), "--state", state)[0] == 9
    assert state.read_bytes() == before
    run("monitor", data, "--state", state)
    assert state_of(state) == ct.Monitor().update(p, y)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"monitor": 1, "files": {}}'])
def test_a_file_that_is_no_state_is_named_and_kept(refused, tmp_path, content):
    data, state = written(tmp_path / "f.csv", *rows(30)), tmp_path / "s.json"
    state.write_text(content)
    refused("s.json is no state of caltest monitor", "monitor", data, "--state", state)
    refused("Missing argument 'FILES...'", "monitor", "--state", state)
    assert state.read_text() == content


def test_tallies_are_batches(run, tmp_path, done):
    days = [ct.Tally.of(*rows(400, seed)) for seed in range(4)]
    paths = [tmp_path / f"day-{j}.json" for j in range(4)]
    for path, day in zip(paths, days, strict=True):
        path.write_text(day.to_json(), encoding="utf-8")
    state, other = tmp_path / "s.json", tmp_path / "other.json"
    assert run("monitor", *paths[:3], "--state", state)[0] == 0
    copy = tmp_path / "copy.json"
    copy.write_bytes(paths[0].read_bytes())
    out = done("monitor", copy, *paths, "--state", state, "--json")
    new = {name: count["new"] for name, count in json.loads(out)["files"].items()}
    earlier = ["copy.json", *(path.name for path in paths[:3])]
    assert new == dict.fromkeys(earlier, 0) | {"day-3.json": 400}
    expected = ct.Monitor()
    for day in days:
        expected = expected.update(day)
    assert state_of(state) == expected
    run("monitor", paths[1], paths[0], "--state", other)
    assert state_of(other) == ct.Monitor().update(days[1]).update(days[0])


def test_rows_that_were_followed_for_a_time_are_asked_about_before_counting_begins(run, tmp_path):
    rng = np.random.default_rng(1)
    p = np.round(rng.beta(1.5, 4, 1000), 3)
    time = rng.exponential(-60 / np.log1p(-np.clip(p, 0.01, 0.99)))
    lost = rng.uniform(12, 120, 1000)
    months, died = np.ceil(np.minimum(time, lost)).astype(int), (time <= lost).astype(int)
    data, state = tmp_path / "f.csv", tmp_path / "s.json"
    lines = [f"{a},{b},{c}" for a, b, c in zip(p, died, months, strict=True)]
    data.write_text("\n".join(["p,label,x", *lines, ""]))
    code, _, error = run("monitor", data, "--state", state)
    assert (code, state.exists()) == (2, False)
    assert "rows with the event have lower values of x" in error
    assert run("monitor", data, "--state", state, "--as-is")[0] == 0


def test_a_drift_of_a_watched_model_is_no_misreading(run, tmp_path):
    p, y = rows(400)
    first, later, state = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "s.json"
    assert run("monitor", written(first, p, y), "--state", state)[0] == 0
    code = run("monitor", written(later, p, 1 - y), "--state", state)[0]
    assert code == 0
    assert state_of(state).n == 800


def test_a_pattern_in_quotes_is_all_files_like_it(tmp_path, run):
    rng = np.random.default_rng(3)
    for day in (1, 2, 3):
        p = rng.beta(2.0, 3.0, 60)
        y = (rng.random(60) < p).astype(int)
        rows = [f"{a:.4f},{b}" for a, b in zip(p, y, strict=True)]
        (tmp_path / f"day{day}.csv").write_text("\n".join(["p,y", *rows]) + "\n")
    code, out, err = run("monitor", str(tmp_path / "day*.csv"), "--state", str(tmp_path / "s.json"))
    assert code == 0, err
    assert "rows        180" in out
    code, _, err = run("monitor", str(tmp_path / "x*.csv"), "--state", str(tmp_path / "s.json"))
    assert code == 2
    assert "no file is like" in err
