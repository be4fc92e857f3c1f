"""The command line, as its users meet it."""

import inspect
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import LENSES, PARTITIONS, SCHEMES, STATISTICS

import caltest as ct
from caltest import cli, statistics
from caltest.cli import options as shared


@pytest.fixture
def csv(tmp_path):
    data = ct.examples.GaussianMixture(0.0, -2.0).sample(500, 1)
    path = tmp_path / "calibrated.csv"
    rows = zip(data.probs[:, 1], data.labels, strict=True)
    path.write_text("p,label\n" + "".join(f"{float(p)!r},{y}\n" for p, y in rows))
    return path


def test_audit_without_a_file_uses_the_example(run):
    code, out, err = run("audit", "--n-resamples", 199)
    assert code == 0
    assert "embedded example" in err
    assert "900 predictions, 10 classes" in out
    assert "Verdict: MISCALIBRATED" in out


def test_the_gate_looks_at_subgroups(run, tmp_path, rng):
    p = rng.random(3000)
    part = np.where(np.arange(3000) < 15, "few", "rest")
    y = np.where(part == "few", p < 0.5, rng.random(3000) < p).astype(int)
    path = tmp_path / "groups.csv"
    rows = zip(p, y, part, strict=True)
    path.write_text("p,label,part\n" + "".join(f"{float(a)!r},{b},{c}\n" for a, b, c in rows))
    asked = ("test", path, "--probs", "p", "--fail-on-miscalibration", "--alpha", 0.01)
    assert (run(*asked)[0], run(*asked, "--by", "part")[0]) == (0, 1)


def test_test_command_equals_python(csv, done):
    statistic = ct.ECE(ct.QuantileBins(10), distance="l2")
    asked = ("--lens", "OneVsRest(1)", "--null", "RedrawLabels", "--seed", 4, "--n-resamples", 99)
    out = done("test", csv, "--json", "--statistic", statistic, *asked)
    options = {"lens": ct.OneVsRest(1), "null": ct.RedrawLabels(), "n_resamples": 99, "rng": 4}
    expected = ct.calibration_test(ct.read_predictions(csv), None, statistic, **options)
    assert ct.CalibrationTestResult.from_json(out) == expected


def test_exit_code_for_gates(run, csv):
    assert run("audit", csv, "--fail-on-miscalibration")[0] == 0
    assert run("test", "--fail-on-miscalibration")[0] == 1
    assert run("audit", "--fail-on-miscalibration", "--n-resamples", 199)[0] == 1


@pytest.fixture
def models(tmp_path):
    data = ct.examples.GaussianMixture(0.0, -2.0).sample(1000, 1)
    odds = np.log(data.probs[:, 1] / data.probs[:, 0])
    for name, slope in (("good", 1.0), ("steep", 4.0), ("flat", 0.2)):
        z, p = slope * odds, 1.0 / (1.0 + np.exp(-slope * odds))
        rows = list(enumerate(zip(p.tolist(), z.tolist(), data.labels, strict=True)))
        rows = rows if name == "good" else rows[::-1]
        for file, column in ((name, 0), (f"{name}-z", 1)):
            text = "".join(f"id{i},{row[column]!r},{row[2]}\n" for i, row in rows)
            (tmp_path / f"{file}.csv").write_text("id,p,y\n" + text)
    return tmp_path


AS_FREQUENT = "each label is as frequent in both, as in another"


@pytest.mark.parametrize(
    "verb", [("compare",), ("gate", "--margin", ".1", "--against")], ids=["compare", "gate"]
)
@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
def test_files_are_matched_by_a_column_of_ids_and_refused_without(run, models, refused, verb):
    command, *options = verb
    words = (command, models / "good.csv", *options)
    assert "rows of steep brought into the order of good" in run(*words, models / "steep.csv")[1]
    steep = (models / "steep.csv").read_text()
    (models / "other.csv").write_text(steep.replace("id,", "n,", 1))
    assert "rows of other brought into the order of good" in run(*words, models / "other.csv")[1]
    (models / "bare.csv").write_text(re.sub(r"^id\d*,", "", steep, flags=re.MULTILINE))
    refused(AS_FREQUENT, *words, models / "bare.csv")
    refused("\nsay: caltest ", *words, models / "bare.csv")


@pytest.fixture
def frames():
    """The rows of one model twice, the second time from the last to the first."""
    first = {"txn_id": range(9), "p": np.arange(9) / 10, "y": [0, 1, 1] * 3}
    return [first, {name: values[::-1] for name, values in first.items()}]


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
@pytest.mark.parametrize("columns", [("txn_id", "p", "y"), ("txn_id", "p")])
def test_gate_matches_tables_by_a_column_of_ids(frames, columns):
    old = {name: frames[1][name] for name in columns}
    found = ct.gate(frames[0], statistic=ct.ECE(2), against=old, margin=0.1)
    assert "rows of old brought" in found.notes[1]
    assert found.checks[0].estimate == 0.0


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
def test_compare_models_matches_tables_by_a_column_of_ids(frames):
    table = ct.compare_models(dict(zip("ab", frames, strict=True)), statistic=ct.DebiasedL2(2))
    assert table.pairs[0].difference == 0.0


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
def test_compare_reads_logits_of_one_model_only(models, refused, done):
    good, steep, logits = (models / f"{name}.csv" for name in ("good", "steep", "steep-z"))
    pair = ct.ComparisonResult.from_json(done("compare", good, steep, "--json"))
    assert pair.verdict is ct.ComparisonVerdict.FIRST_BETTER
    mixed = ct.ComparisonResult.from_json(done("compare", good, logits, "--json"))
    assert mixed.pvalue == pytest.approx(pair.pvalue)
    sentence = "no value outside [0, 1], unlike steep-z: leave --from"
    refused(sentence, "compare", good, logits, "--from-logits")


@pytest.mark.parametrize(
    ("order", "code"),
    [
        (("good", "steep"), 1),
        (("steep", "good"), 0),
        (("good", "flat", "steep"), 1),
        (("steep", "flat", "good"), 0),
    ],
)
@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
def test_compare_fails_if_a_later_model_is_worse(run, models, order, code):
    files = [models / f"{name}.csv" for name in order]
    assert run("compare", "--id", "id", "--fail-if-worse", *files)[0] == code


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
def test_compare_lends_labels_by_id(models, done):
    good, flat = models / "good.csv", models / "flat.csv"
    flat.write_text("\n".join(row.rpartition(",")[0] for row in flat.read_text().split()))
    assert "flat: labels of good.csv matched by id" in done("compare", good, flat)


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
def test_compare_refuses_ids_that_are_twice_or_missing(models, refused):
    good, steep = models / "good.csv", models / "steep.csv"
    steep.write_text(steep.read_text().replace("id7,", "id8,"))
    refused(AS_FREQUENT, "compare", good, steep)
    refused("steep has ids more than once: id8", "compare", good, steep, "--id", "id")
    steep.write_text(steep.read_text().partition("id8,")[0])
    refused(" lacks ids of good: id0, id1, id2, ", "compare", good, steep, "--id", "id")


@pytest.mark.parametrize(
    ("command", "verb"),
    [
        (("test",), "calibration_test"),
        (("audit",), "audit"),
        (("plot", "--kind", "null", "--out", "f.png"), "calibration_test"),
        (("plot", "--kind", "audit", "--out", "f.png"), "audit"),
    ],
)
def test_a_run_that_was_cut_short_says_so(run, monkeypatch, tmp_path, command, verb):
    original = getattr(ct, verb)

    def cut_short(*args, **options):
        return replace(original(*args, **options), ended="interrupted")

    monkeypatch.setattr(ct, verb, cut_short)
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(*command)
    assert code == 130
    assert "Interrupted" in out


def test_ctrl_c_ends_cleanly(run, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(ct, "audit", interrupted)
    code, _, err = run("audit")
    assert code == 130
    assert err.strip().endswith("Interrupted.")


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_list_has_the_first_sentence_of_every_command(name, done):
    command = cli.cli.get_command(None, name)
    said = cli.COMMANDS[name][1]
    assert " ".join(command.help.split("\n\n")[0].split()) == said
    assert f"{name} {said}" in " ".join(done("--help").split())


def test_recipes_name_every_statistic():
    named = {name: getattr(statistics, name) for name in statistics.__all__}
    kinds = {n: v for n, v in named.items() if inspect.isclass(v) and not inspect.isabstract(v)}
    statistic = shared.VOCABULARY["statistic"]
    parsed = {n for n, v in statistic.items() if isinstance(v, type) and statistic.fits(v)}
    assert parsed == {n for n, kind in kinds.items() if issubclass(kind, ct.Statistic)}
    assert "Ece" not in statistic


def test_values_print_as_they_are_parsed():
    vocabulary = dict(item for words in shared.VOCABULARY.values() for item in words.items())
    for value in (*(row.statistic for row in STATISTICS), *LENSES, *PARTITIONS, *SCHEMES[:2]):
        assert shared.parse(repr(value), vocabulary) == value


@pytest.mark.slow
def test_clusters_and_subgroups_of_a_file(tmp_path, refused, done):
    rng = np.random.default_rng(3)
    p = rng.random(120)
    y, wards = rng.random(120) < p, rng.choice(["a", "b"], 120)
    rows = zip(p, y.astype(int), np.arange(120) // 4, wards, strict=True)
    path = tmp_path / "visits.csv"
    path.write_text("p,y,litter,ward\n" + "".join(",".join(map(str, r)) + "\n" for r in rows))
    facts = ("--clusters", "litter", "--by", "ward", "--n-resamples", 99)
    found = json.loads(done("test", path, *facts, "--json"))
    assert (found["clusters"]["count"], found["subgroups"]["names"]) == (30, ["a", "b"])
    twice = ("--clusters", "litter,ward", "--n-resamples", 99)
    assert "30 clusters" in done("test", path, *twice)
    out = done("interval", path, "--by", "ward", "--n-resamples", 999)
    assert "intervals of 0.975 each" in out
    other = tmp_path / "other.csv"
    other.write_text(path.read_text())
    done("compare", path, other, "--by", "ward")
    refused("--by is about columns: give the FILE", "audit", "--by", "ward")
    for kind in ("forest", "sites", "deviation", "audit"):
        drawn = ("plot", path, "--by", "ward", "--kind", kind, "-o", tmp_path / "f.svg", "--json")
        assert json.loads(done(*drawn))
        assert (tmp_path / "f.svg").stat().st_size > 0
        (tmp_path / "f.svg").unlink()


def test_two_outputs_of_one_name_are_refused(run, tmp_path):
    data = tmp_path / "two.csv"
    data.write_text("p,y\n" + "0.8,1\n0.3,0\n0.6,1\n0.2,1\n" * 10)
    both = tmp_path / "x.json"
    code, _, told = run("audit", data, "--resume", both, "--out", both)
    assert (code, "--out and --resume are one file" in told) == (2, True), told
    assert not both.exists()


def test_verify_without_resume_is_refused(run, tmp_path):
    data = tmp_path / "two.csv"
    data.write_text("p,y\n" + "0.8,1\n0.3,0\n0.6,1\n0.2,1\n" * 10)
    code, _, told = run("audit", data, "--verify")
    assert (code, "--verify compares files with the state" in told) == (2, True), told


@pytest.mark.parametrize("verb", [("compare",), ("gate", "--margin", 0.05)])
def test_two_models_may_be_columns_of_one_file(verb, done, tmp_path, rng):
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    path = tmp_path / "both.csv"
    rows = zip(p, p**2, y, strict=True)
    lines = [f"{float(a)!r},{float(b)!r},{c}" for a, b, c in rows]
    path.write_text("\n".join(["p_new,p_old,defect", *lines]) + "\n")
    text = done(verb[0], path, *verb[1:], "--probs", "p_new,p_old", "--label", "defect")
    assert "p_new" in text
    assert "compared on the 400 rows" in text


def test_a_file_of_a_like_name_is_no_command_to_run(run, tmp_path):
    (tmp_path / "scores_a.csv").write_text("p,y\n0.5,1\n0.25,0\n")
    code, _, error = run("audit", tmp_path / "scores_b.csv")
    assert code == 2
    assert f"if scores_a.csv is meant: caltest audit {tmp_path / 'scores_a.csv'}" in error


@pytest.mark.parametrize("verb", ["test", "interval"])
def test_a_rejection_of_rows_that_seem_to_depend_on_each_other_ends_with_3(verb, run, tmp_path):
    rng = np.random.default_rng(3)
    patient = np.repeat(np.arange(60), 10)
    p = rng.uniform(0.05, 0.95, 600).round(4)
    y = (rng.random(60)[patient] < p).astype(int)
    lines = "".join(f"{a},{b},{c}\n" for a, b, c in zip(patient, p, y, strict=True))
    (tmp_path / "rows.csv").write_text("patient,p,y\n" + lines)
    call = (verb, tmp_path / "rows.csv", "--fail-on-miscalibration")
    assert run(*call)[0] == 3
    assert run(*call, "--clusters", "patient")[0] == 0
