"""The command line, as its users meet it."""

import inspect
import json
from dataclasses import replace

import numpy as np
import pytest

import caltest as ct
from caltest import cli, simulate, statistics
from caltest.cli import recipes


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
    assert run(*asked)[0] == 0
    assert run(*asked, "--by", "part")[0] == 1


def test_audit_of_a_file(csv, done):
    out = done("audit", csv)
    assert "Verdict: CALIBRATED" in out
    assert "read 500 rows, 2 classes from column p, labels from label" in out


def test_json_and_out(run, csv, tmp_path, done):
    out = done("audit", csv, "--json", "--out", tmp_path / "report.json")
    report = ct.AuditReport.from_json(out)
    assert report.n == 500
    assert json.loads((tmp_path / "report.json").read_text()) == json.loads(out)
    run("audit", csv, "--out", tmp_path / "report.txt")
    assert (tmp_path / "report.txt").read_text().startswith("Calibration audit")


def test_test_command_equals_python(csv, done):
    out = done(
        *("test", csv, "--lens", "OneVsRest(1)", "--json", "--null", "RedrawLabels"),
        *("--statistic", 'ECE(QuantileBins(10), distance="l2")', "--seed", 4),
        *("--n-resamples", 99),
    )
    expected = ct.calibration_test(
        ct.read_predictions(csv),
        None,
        ct.ECE(ct.QuantileBins(10), distance="l2"),
        lens=ct.OneVsRest(1),
        null=ct.RedrawLabels(),
        n_resamples=99,
        rng=4,
    )
    assert ct.CalibrationTestResult.from_json(out) == expected


def test_exit_code_for_gates(run, csv):
    assert run("audit", csv, "--fail-on-miscalibration")[0] == 0
    assert run("test", "--fail-on-miscalibration")[0] == 1
    assert run("audit", "--fail-on-miscalibration", "--n-resamples", 199)[0] == 1


def test_lens_of_two_classes_is_the_event(run, csv, done):
    out = done("test", csv, "--json", "--n-resamples", 99)
    assert json.loads(out)["lens"] == "OneVsRest(1)"
    assert json.loads(run("test", "--json")[1])["lens"] == "TopK(1)"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("SCE", ct.ClasswiseECE(ct.UniformBins(15))),
        ("TACE(10, threshold=0.02)", ct.ACE(10, threshold=0.02)),
        ("Spiegelhalter()", ct.ScoreGap("brier")),
    ],
)
def test_statistics_by_their_other_names(text, value):
    assert recipes.Recipe("statistic").convert(text, None, None) == value


def test_interval_of_clusters(tmp_path, refused, done):
    data = ct.examples.GaussianMixture(0.0, -2.0).sample(600, 1)
    path = tmp_path / "f.csv"
    rows = [
        f"{float(p)!r},{y},s{i % 60}\n"
        for i, (p, y) in enumerate(zip(data.probs[:, 1], data.labels, strict=True))
    ]
    path.write_text("p,label,site\n" + "".join(rows))
    arguments = ("interval", path, "--clusters", "site", "--n-resamples", 199, "--json")
    out = done(*arguments)
    assert json.loads(out)["n_clusters"] == 60
    refused("no column 'patient' among p, label, site", "interval", path, "--clusters", "patient")


def test_weights_and_clusters_of_files(run, tmp_path, refused):
    rng = np.random.default_rng(4)
    u = rng.standard_normal(400)
    p, y, w = 1 / (1 + np.exp(-u)), (rng.random(400) < 0.5).astype(int), rng.integers(1, 5, 400)
    g = np.arange(400) // 4
    paths = []
    for name, slope in (("a", 1.0), ("b", 2.0)):
        q = 1 / (1 + np.exp(-slope * u))
        lines = (f"{float(q[i])!r},{y[i]},{w[i]},{g[i]}" for i in range(400))
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text("\n".join(["p,label,w,site", *lines]))
    facts, few = ("--weights", "w", "--clusters", "site"), ("--n-resamples", 99, "--json")
    for command in ("test", "interval", "audit"):
        code, out, _ = run(command, paths[0], "--weights", "w", "--json")
        assert code == 0, command
        effective = json.loads(out).get("effective_n") if command != "audit" else 320
        assert effective == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=0.1), command
    code, out, _ = run("compare", *paths, *facts, *few)
    found = json.loads(out)
    known = {"clusters": g, "weights": w, "n_resamples": 99, "rng": 0, "names": ("a", "b")}
    expected = ct.compare(p, 1 / (1 + np.exp(-2.0 * u)), y, ct.DebiasedL2(15), **known)
    assert (found["difference"], found["pvalue"]) == (expected.difference, expected.pvalue)
    assert (found["n_clusters"], found["effective_n"]) == (100, expected.effective_n)
    refused("no column 'weight'", "test", paths[0], "--weights", "weight")


@pytest.fixture
def models(tmp_path):
    data = ct.examples.GaussianMixture(0.0, -2.0).sample(1000, 1)
    odds = np.log(data.probs[:, 1] / data.probs[:, 0])
    for name, slope in (("good", 1.0), ("steep", 4.0), ("flat", 0.2)):
        p = 1.0 / (1.0 + np.exp(-slope * odds))
        rows = list(enumerate(zip(p, data.labels, strict=True)))
        text = "".join(
            f"id{i},{float(p)!r},{y}\n" for i, (p, y) in (rows if name == "good" else rows[::-1])
        )
        (tmp_path / f"{name}.csv").write_text("id,p,y\n" + text)
    return tmp_path


def test_compare_matches_rows_by_id(run, models, refused, done):
    good, steep, flat = (models / f"{name}.csv" for name in ("good", "steep", "flat"))
    refused("different labels", "compare", good, steep)
    out = done("compare", good, steep, "--id", "id", "--json")
    pair = ct.ComparisonResult.from_json(out)
    assert pair.verdict is ct.ComparisonVerdict.FIRST_BETTER
    assert run("compare", good, steep, "--id", "id", "--fail-if-worse")[0] == 1
    assert run("compare", steep, good, "--id", "id", "--fail-if-worse")[0] == 0
    three = ("compare", "--id", "id", "--fail-if-worse")
    assert run(*three, good, flat, steep)[0] == 1
    assert run(*three, steep, flat, good)[0] == 0
    steep.write_text(steep.read_text().replace("id7,", "id8,"))
    refused("steep has ids more than once (1 in all): id8", "compare", good, steep, "--id", "id")


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


def test_help_documents_exit_codes(done):
    out = done("audit", "--help")
    assert "Exit codes: 0 done" in " ".join(out.split())


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_list_has_the_first_sentence_of_every_command(name, done):
    command = cli.cli.get_command(None, name)
    said = cli.COMMANDS[name][1]
    assert " ".join(command.help.split("\n\n")[0].split()) == said
    out = done("--help")
    assert f"{name} {said}" in " ".join(out.split())


def test_recipes_name_every_statistic():
    named = {name: getattr(statistics, name) for name in statistics.__all__}
    known = {
        name
        for name, value in named.items()
        if inspect.isclass(value)
        and issubclass(value, ct.Statistic)
        and not inspect.isabstract(value)
    }
    statistic = recipes.VOCABULARY["statistic"]
    assert known == {
        n for n, made in statistic.items() if isinstance(made, type) and statistic.fits(made)
    }


def test_a_scheme_is_found_by_its_export(monkeypatch):
    class Coins(ct.LabelScheme):
        def drawer(self, data):
            raise NotImplementedError

    monkeypatch.setattr(simulate, "Coins", Coins, raising=False)
    assert isinstance(recipes.Recipe("null").convert("Coins()", None, None), Coins)
    assert not {"Scheme", "LabelScheme", "Bootstrap"} & set(recipes.VOCABULARY["null"])


@pytest.mark.parametrize(
    "value",
    [
        ct.TopK(3),
        ct.Partition([[0, 1], [2, 3]]),
        ct.OneVsRest(2),
        ct.Canonical(),
        ct.ECE(ct.UniformBins(10, closed="left"), distance="sqeuclidean"),
        ct.MCE(ct.QuantileBins(7, closed="left")),
        ct.ECE(ct.VarianceTree(30, split="mean", stop="child")),
        ct.ECE(ct.UniformBins(5, axes="first"), distance="max"),
        ct.RedrawLabels(),
        ct.ConsistencyResampling(),
    ],
    ids=repr,
)
def test_values_print_as_they_are_parsed(value):
    vocabulary = dict(item for words in recipes.VOCABULARY.values() for item in words.items())
    assert recipes.parse(repr(value), vocabulary) == value


def test_audit_of_arrays(tmp_path, done):
    data = ct.examples.SixPoints().sample(2000, 1)
    path = tmp_path / "f.npz"
    np.savez(path, probs=data.probs, labels=data.labels)
    out = done("audit", path)
    assert "Verdict: MISCALIBRATED" in out


def test_clusters_and_subgroups_of_a_file(run, tmp_path, refused, done):
    rng = np.random.default_rng(3)
    p = rng.random(120)
    rows = zip(
        p, rng.random(120) < p, np.arange(120) // 4, rng.choice(["a", "b"], 120), strict=True
    )
    path = tmp_path / "visits.csv"
    path.write_text(
        "p,y,patient,ward\n" + "".join(f"{a},{int(b)},{c},{d}\n" for a, b, c, d in rows)
    )
    facts = ("--clusters", "patient", "--by", "ward", "--n-resamples", 99)
    code, out, _ = run("test", path, *facts, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["clusters"]["count"] == 30
    assert found["subgroups"]["names"] == ["a", "b"]
    code, out, _ = run("test", path, *facts)
    assert "clusters       30 of 4 rows, effective" in out
    assert "calibrated in every subgroup" in out
    out = done("interval", path, "--by", "ward", "--n-resamples", 999)
    assert "intervals of 0.975 each" in out
    other = tmp_path / "other.csv"
    other.write_text(path.read_text())
    out = done("compare", path, other, "--by", "ward")
    assert "equal error in every subgroup" in out
    refused("--by names a column: give the FILE that has it", "audit", "--by", "ward")
    for kind in ("forest", "sites", "deviation", "audit"):
        drawn = ("plot", path, "--by", "ward", "--kind", kind, "-o", tmp_path / "f.svg", "--json")
        out = done(*drawn)
        assert json.loads(out)
        assert (tmp_path / "f.svg").stat().st_size > 0
        (tmp_path / "f.svg").unlink()
    assert run("plot", path, "--kind", "sites", "-o", tmp_path / "f.svg")[0] == 2
    assert run(*drawn[:4], "--kind", "isotonic", "-o", tmp_path / "f.svg")[0] == 2
