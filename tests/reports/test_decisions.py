"""Close enough, and how many rows: equivalence, tolerance, gates and plans."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

import caltest as ct
from caltest.planning import Bump, LogisticNormal, Shift, Slope, by_alarms, by_power, by_width
from caltest.results import AuditVerdict

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
U = ct.UniformBins
ESTIMATORS = [ct.ECE(10), ct.DebiasedL1(10), ct.DebiasedL2(10), ct.RMSCE(U(10)), ct.MCE(U(5))]


def drawn(n, gap=0.0, seed=0, sign=None):
    """Uniform predictions, and outcomes whose rate lies above by ``gap``, or by its sign."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    shift = gap if sign is None else gap * sign(p)
    return p, (rng.random(n) < np.clip(p + shift, 0.0, 1.0)).astype(int)


@pytest.mark.parametrize("statistic", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_the_smallest_tolerance_is_the_upper_bound_and_the_p_value_its_inverse(statistic, gap):
    run = {"rng": 3, "n_resamples": 999}
    data = ct.Predictions.of(*drawn(700, gap, seed=4))
    test = ct.equivalence_test(data, None, statistic, tolerance=0.05, **run)
    upper = ct.confidence_interval(data, None, statistic, side="upper", **run)
    assert "yes, as every upper bound of an error does" in str(upper)
    assert test.smallest_tolerance == pytest.approx(upper.high, rel=3e-4)
    for factor in (0.99, 1.01):
        again = ct.equivalence_test(
            data, None, statistic, tolerance=factor * test.smallest_tolerance, **run
        )
        assert again.equivalent == (factor > 1.0)
        assert abs(again.pvalue - 0.05) < 0.02
        assert (again.pvalue <= 0.05 + 1e-9) == (factor > 1.0) or again.pvalue == 0.05


@pytest.mark.parametrize("statistic", [ct.ECE(1), ct.MCE(U(1)), ct.DebiasedL2(1)], ids=repr)
@pytest.mark.parametrize(("n", "p", "rate"), [(60, 0.3, 0.4), (60, 0.5, 0.3), (200, 0.1, 0.13)])
def test_size_at_the_margin_by_enumeration(statistic, n, p, rate):
    """All predictions are p, so the number of events is all there is; its law is binomial."""
    margin = (rate - p) ** 2 if isinstance(statistic, ct.DebiasedL2) else abs(rate - p)
    size = 0.0
    for events in range(n + 1):
        mass = binom.pmf(events, n, rate)
        if mass > 1e-6:
            labels = (np.arange(n) < events).astype(int)
            test = ct.equivalence_test(
                np.full(n, p), labels, statistic, tolerance=margin, n_resamples=999, rng=events
            )
            size += mass * test.equivalent
    assert size <= 0.055


@pytest.mark.parametrize(
    ("n", "gap", "tolerance", "verdict", "rejects"),
    [
        (2000, 0.1, 0.05, AuditVerdict.MATTERS, True),
        (20_000, 0.02, 0.05, AuditVerdict.TOO_LITTLE_TO_MATTER, True),
        (3000, 0.0, 0.05, AuditVerdict.WITHIN_TOLERANCE, False),
        (300, 0.1, 0.05, AuditVerdict.CANNOT_TELL, True),
        (100, 0.0, 0.02, AuditVerdict.CANNOT_TELL, False),
    ],
)
def test_four_verdicts_from_one_pair_of_bounds(n, gap, tolerance, verdict, rejects):
    report = ct.audit(*drawn(n, gap, seed=1), tolerance=tolerance, n_resamples=199, rng=0)
    assert report.verdict is verdict
    assert report.rejects == rejects
    assert report.verdict.failed == (verdict is AuditVerdict.MATTERS)
    assert (report.low > tolerance) == (verdict is AuditVerdict.MATTERS)
    if verdict is not AuditVerdict.MATTERS:
        assert (report.high <= tolerance) == (verdict is not AuditVerdict.CANNOT_TELL)


@pytest.mark.slow
def test_a_subgroup_that_is_far_off_is_not_too_little_to_matter():
    p, y = drawn(20_000, seed=9)
    group = np.where(np.arange(p.size) < 500, "few", "many")
    few = group == "few"
    y[few] = np.random.default_rng(1).random(few.sum()) < 1.0 - p[few]
    report = ct.audit(p, y, by=group, tolerance=0.05, n_resamples=199, rng=0)
    assert report.high <= 0.05
    assert report.verdict is AuditVerdict.MATTERS
    assert any("by subgroup few is larger than the tolerance" in said for said in report.summary)


def two_models(n, seed=1, slope=1.5):
    """A calibrated model, one that is too steep, and the outcomes."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(n)
    right, steep = (1.0 / (1.0 + np.exp(-s * z)) for s in (1.0, slope))
    return right, steep, (rng.random(n) < right).astype(int)


@pytest.mark.slow
def test_a_gate_passes_fails_and_cannot_tell_with_the_rows_that_could():
    right, steep, y = two_models(5000)
    limits = {"tolerance": 0.05, "margin": 0.01, "rng": 1}
    good = ct.gate(right, y, against=steep, **limits)
    bad = ct.gate(steep, y, against=right, **limits)
    few = ct.gate(right[:200], y[:200], against=steep[:200], **limits)
    assert [g.verdict.exit_code for g in (good, bad, few)] == [0, 1, 3]
    assert [c.verdict for c in good.checks] == ["passed", "passed"]
    assert bad.checks[1].verdict is ct.GateVerdict.FAILED
    for c in (c for c in few.checks if c.verdict == "cannot tell"):
        assert 0 <= c.rows - 200 * ((c.high - c.low) / c.limit) ** 2 <= 100
    for gate in (good, bad, few):
        for check in gate.checks:
            expected = "passed" if check.high <= check.limit else "cannot tell"
            assert check.verdict == ("failed" if check.low > check.limit else expected)
            assert check.low <= check.corrected <= check.high
        assert type(gate).from_json(gate.to_json()).as_dict() == gate.as_dict()
    assert "(there are 200) should decide, unless the true value is within" in " ".join(
        str(few).split()
    )
    other = "are they the probability of {0}? Then give 1 − p"
    turned = ct.gate(1 - right, y, **limits, against=right, as_is=True)
    assert any(other.format(0) in note for note in turned.notes)
    audit = ct.audit(right, y, pos_label=0, rng=1, n_resamples=199, as_is=True)
    assert any(other.format(1) in sentence for sentence in audit.summary)
    assert "are they the prob" not in str(good) + str(ct.audit(right, y, n_resamples=199))


def test_the_tolerance_of_a_gate_is_beside_an_interval_and_alpha_is_shared():
    right, steep, y = two_models(2000)
    alone = ct.gate(steep, y, tolerance=0.05, alpha=0.04, n_resamples=999, rng=1).checks[0]
    interval = ct.confidence_interval(steep, y, level=0.92, n_resamples=999, rng=1)
    assert (alone.low, alone.high) == (interval.low, interval.high)
    assert (alone.estimate, alone.corrected) == (interval.estimate, interval.corrected)
    both = ct.gate(
        steep, y, against=right, tolerance=0.05, margin=0.1, alpha=0.04, n_resamples=999, rng=1
    )
    interval = ct.confidence_interval(steep, y, level=0.96, n_resamples=999, rng=1)
    assert (both.checks[0].low, both.checks[0].high) == (interval.low, interval.high)


@pytest.mark.slow
def test_the_bounds_of_a_difference_are_its_extremes():
    """Over all t and D within their bounds, √(t + D) − √t is what the gate prints."""
    for seed, (n, first) in enumerate([(400, 0), (400, 1), (3000, 0), (3000, 1)]):
        models = two_models(n, seed)
        a, b = models[first], models[1 - first]
        check = ct.gate(a, models[2], against=b, margin=0.01, rng=1).checks[0]
        difference = ct.compare(a, b, models[2], level=0.95, n_resamples=99, rng=1)
        old = ct.confidence_interval(b, models[2], ct.DebiasedL2(), n_resamples=1999, rng=1)
        t = np.linspace(old.low, old.high, 501)[:, None]
        d = np.linspace(difference.low, difference.high, 501)
        values = np.sqrt(np.maximum(t + d, 0.0)) - np.sqrt(t)
        assert check.low == pytest.approx(values.min(), abs=1e-3)
        assert check.high == pytest.approx(values.max(), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_a_gate_of_tallies_is_that_of_rows(weighted):
    right, steep, y = two_models(3000)
    facts = {"weights": np.tile([1.0, 2.0], 1500)} if weighted else {}
    limits = {"tolerance": 0.05, "margin": 0.02, "rng": 1}
    rows = ct.gate(right, y, against=steep, **limits, **facts)
    pairs = [ct.Tallies.of(p, y, **facts) for p in (right, steep)]
    other, *_, labels = two_models(2000, 2)[1:]
    apart = [ct.Predictions.of(right, y, **facts), ct.Predictions.of(other, labels)]
    tallies = [ct.Tally.of(right, y, **facts), ct.Tally.of(other, labels)]
    for told, found in [
        (rows, ct.gate(pairs[0], against=pairs[1], **limits)),
        *([ct.gate(a, against=b, paired=False, **limits) for a, b in (apart, tallies)],),
    ]:
        assert (found.verdict, found.n, found.names) == (told.verdict, told.n, told.names)
        assert found.effective_n == pytest.approx(told.effective_n)
        for own, check in zip(found.checks, told.checks, strict=True):
            assert (own.estimate, own.corrected, own.low, own.high) == pytest.approx(
                (check.estimate, check.corrected, check.low, check.high),
                rel=0.05 if weighted else 1e-4,
            )  # of weighted rows noise is drawn in another way


def test_assert_calibrated_fails_with_the_report(pytester):
    right, steep, y = two_models(5000)
    np.savez(pytester.path / "rows.npz", right=right, steep=steep, y=y)
    pytester.makeconftest("pytest_plugins = ['caltest.testing']")
    pytester.makepyfile(
        """
        import numpy as np
        rows = np.load("rows.npz")

        def test_good(assert_calibrated):
            assert_calibrated(rows["right"], rows["y"], tolerance=0.05)

        def test_bad(assert_calibrated):
            assert_calibrated(rows["steep"], rows["y"], tolerance=0.02, alpha=0.01)

        def test_few(assert_calibrated):
            assert_calibrated(rows["right"][:100], rows["y"][:100], tolerance=0.02)

        def test_function():
            from caltest.testing import assert_calibrated
            assert_calibrated(rows["right"], rows["y"], against=rows["steep"], margin=0.01)
        """
    )
    run = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=")
    run.assert_outcomes(passed=2, failed=2)
    run.stdout.fnmatch_lines(
        ["*AssertionError: the calibration gate says 'failed'", "*Verdict: FAILED", "*CANNOT TELL"]
    )
    assert "testing.py" not in run.stdout.str().split("short test summary")[0]


def test_published_sample_sizes():
    """R's sampsizeval(p = .1, c = .75, se_c = .025, se_cs = .1, se_cl = .1) recommends 1536."""
    like, z = LogisticNormal(0.1, 0.75), ndtri(0.975)
    assert ct.plan(like, statistic="slope", width=2 * z * 0.1).n == 1536
    assert ct.plan(like, statistic="intercept", width=2 * z * 0.1).n == 1224
    # Riley et al. (2021): N = (1 − φ) / (φ SE²); the interval is that of log O:E.
    data = np.full(10, 0.018)
    width = float(2.0 * np.sinh(z * 0.051))
    assert ct.plan(data, statistic="O:E", width=width).n == int(np.ceil(0.982 / (0.018 * 0.051**2)))


@pytest.mark.parametrize(
    ("p", "statistic", "words"),
    [
        ([0.3, 0.3, 0.3], "slope", "nothing of the slope: .* at least two values"),
        ([0.0, 1.0, 1.0], "intercept", "nothing of the intercept"),
        ([1.0, 1.0], "O:E", "all events are certain"),
        ([0.0, 0.0], "slope", "all events are impossible"),
    ],
)
def test_no_formula_plans_what_predictions_say_nothing_of(p, statistic, words):
    with pytest.raises(ct.StatisticError, match=words):
        ct.plan(np.array(p), statistic=statistic, width=0.4)


@pytest.mark.parametrize("power", [0.6, 0.9])
@pytest.mark.parametrize("needed", [30, 3000])
def test_the_search_finds_rows_whose_power_is_known(needed, power):
    def chance(n):
        return ndtr(np.sqrt(n / needed) * (ndtri(power) + 1.645) - 1.645)

    found = [
        by_power(lambda rng, n: rng.random() < chance(n), power, 400, np.random.default_rng(seed))
        for seed in range(60)
    ]
    logs = np.log([f.n / needed for f in found])
    assert abs(logs.mean()) < 0.05
    assert logs.std() < 0.12
    assert sum(f.low <= needed <= f.high for f in found) >= binom.ppf(1e-4, 60, 0.93)


def test_lengths_and_alarms_are_found():
    width = by_width(
        lambda rng, n: 5.0 / np.sqrt(n) * rng.uniform(0.9, 1.1), 0.1, 200, np.random.default_rng(1)
    )
    assert 2300 < width.low < 2500 < width.high < 2700
    alarms = by_alarms(
        lambda rng: int(rng.exponential(1000.0)) + 1, 0.8, 400, np.random.default_rng(1)
    )
    assert alarms.low < -1000.0 * np.log(0.2) < alarms.high
    with pytest.raises(ct.StatisticError, match="does not ring"):
        by_alarms(lambda rng: None, 0.8, 100, np.random.default_rng(1))
    with pytest.raises(ct.StatisticError, match="even 2000000 rows"):
        by_power(lambda rng, n: False, 0.8, 100, np.random.default_rng(1))


@pytest.mark.slow
def test_every_purpose_is_planned_by_its_verb():
    p, _ = drawn(2000, seed=5)
    run = {"rng": 1, "n_datasets": 100}
    equivalent = ct.plan(p, statistic=ct.ECE(), tolerance=0.08, **run)
    interval = ct.plan(p, statistic=ct.ECE(), width=0.08, **run)
    softer = Slope(0.6)(np.column_stack([1 - p, p]))[:, 1]
    comparison = ct.plan(p, statistic=ct.DebiasedL2(), against=softer, **run)
    monitor = ct.plan(p, statistic=ct.Monitor(), alternative=Slope(0.6), **run)
    plans = [equivalent, interval, comparison, monitor]
    words = ["equivalence", "interval", "comparison", "monitoring"]
    assert [plan.purpose for plan in plans] == words
    for plan in plans:
        assert plan.low <= plan.n <= plan.high
        assert (plan.present, plan.more) == (2000, max(plan.n - 2000, 0))


def test_a_monitor_is_planned_with_its_alpha_and_the_lens_that_is_asked_for():
    probs = np.random.default_rng(1).dirichlet(np.ones(3), 500)
    run = {"like": probs, "alternative": Slope(0.4), "n_datasets": 100, "rng": 1}
    strict = ct.plan(statistic=ct.Monitor(alpha=0.001), **run)
    loose = ct.plan(statistic=ct.Monitor(alpha=0.2), **run)
    assert (strict.alpha, strict.lens) == (0.001, "TopK(1)")
    assert loose.n < strict.n
    other = ct.plan(statistic=ct.Monitor(alpha=0.2), lens=ct.OneVsRest(2), **run)
    assert other.lens == "OneVsRest(2)"
    assert other.n != loose.n


def test_alternatives_are_distributions_and_mean_what_they_say():
    probs = np.random.default_rng(1).dirichlet([0.3] * 4, 50)
    probs[0] = [0.0, 1.0, 0.0, 0.0]
    for alternative in (Slope(0.5), Shift(1.0, 2), Bump(0.3, 0.1, 0.9, 2), Bump(-0.5, 0.2, 1.1)):
        truth = alternative(probs)
        np.testing.assert_allclose(truth.sum(axis=1), 1.0)
        assert (truth >= 0.0).all()
    np.testing.assert_allclose(Slope(1.0)(probs), probs, atol=1e-12)
    p = np.array([0.1, 0.4, 0.9])
    two = np.column_stack([1 - p, p])
    logit = np.log(p / (1 - p))
    np.testing.assert_allclose(Slope(0.7)(two)[:, 1], 1 / (1 + np.exp(-0.7 * logit)))
    np.testing.assert_allclose(Shift(0.3)(two)[:, 1], 1 / (1 + np.exp(-0.3 - logit)))
    np.testing.assert_allclose(Bump(0.2, 0.3, 0.5)(two)[:, 1], [0.1, 0.6, 0.9])
    draws = LogisticNormal(0.1, 0.75)(np.random.default_rng(1), 200_000)
    assert draws.mean() == pytest.approx(0.1, abs=0.002)
    y = np.random.default_rng(2).random(draws.size) < draws
    ranks = np.argsort(np.argsort(draws))
    auc = (ranks[y].mean() - (y.sum() - 1) / 2) / (~y).sum()
    assert auc == pytest.approx(0.75, abs=0.01)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    right, steep, y = two_models(3000)
    for name, p in (("new", right), ("new-2", right), ("old", steep)):
        rows = np.column_stack([np.arange(p.size), p, y])[:: -1 if name == "new-2" else 1]
        np.savetxt(f"{name}.csv", rows, delimiter=",", header="id,p,label", comments="")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("gate new.csv --probs p --tolerance .06", 0),
        ("gate new.csv --probs p --against old.csv --id id --tolerance .06 --margin .01", 0),
        ("gate old.csv --probs p --against new.csv --margin .01", 1),
        ("gate new.csv --probs p --tolerance .01", 3),
        ("gate new.csv new-2.csv --probs p --tolerance .06", 0),
        ("gate n*.csv --probs p --tolerance .06", 0),
        ("gate new.csv new-2.csv --probs p --tolerance .06 --against old.csv --margin .01", 2),
        ("gate new.csv --probs p --against old.csv --margin .05 --unpaired --as-is", 0),
        ("gate n*.csv --probs p --against o*.csv --margin .05 --unpaired", 0),
        ("gate new.csv --probs p --against old.csv --margin .05 --unpaired --id id", 2),
        ("gate new.csv --probs p", 2),
        ("gate new.csv --probs p --against new.csv --margin .1", 2),
        ("audit old.csv --probs p --tolerance .3 --fail-on-miscalibration --n-resamples 199", 0),
        ("audit old.csv --probs p --tolerance .01 --fail-on-miscalibration --n-resamples 199", 1),
        ("plan --like LogisticNormal(0.1,0.75) --statistic slope --width 0.392", 0),
        ("plan --like old.csv --probs p --statistic Kuiper() --n-datasets 100", 0),
        ("plan --like new.csv --probs p --monitor --alternative Slope(0.7) --n-datasets 100", 0),
        ("plan --like LogisticNormal(0.1) --width 0.1", 2),
        ("plan --like new.csv --probs p --alternative TopK(1)", 2),
    ],
)
def test_commands_and_their_exit_codes(files, run, words, code):
    found, _, err = run(*words.split())
    assert found == code
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="the action runs in bash")
def test_the_action_runs_the_gate(files):
    """The last step of the action, with the files that GitHub gives it."""
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    script = action["runs"]["steps"][-1]["run"]
    assert "${{" not in script  # nothing that a user writes becomes program text
    tool = files / "caltest"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m caltest "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    given = {"FILE": "new.csv", "AGAINST": "", "TOLERANCE": "0.01", "MARGIN": "", "ALPHA": "0.05"}
    given |= {"OPTIONS": "--probs=p\n--label=label\n", "RUNNER_TEMP": str(files)}
    given |= {"GITHUB_OUTPUT": str(files / "out"), "GITHUB_STEP_SUMMARY": str(files / "page")}
    path = {"PATH": f"{files}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    codes = [
        subprocess.run(
            ["bash", "-e", "-c", script], env={**os.environ, **given, **path, **more}
        ).returncode
        for more in ({"CANNOT_TELL": "fail"}, {"CANNOT_TELL": "pass"}, {"TOLERANCE": "0.06"})
    ]
    assert codes == [3, 0, 0]
    told = (files / "out").read_text().split()
    assert " ".join(told) == "verdict=cannot tell verdict=cannot tell verdict=passed"
    assert (files / "page").read_text().count("## Calibration gate") == 3


def test_a_failure_of_dependent_rows_is_in_doubt_and_a_pass_stays_one(tmp_path, run):
    rng = np.random.default_rng(4)
    p = np.repeat(rng.uniform(0.2, 0.8, 60), 20)
    y = (np.repeat(rng.random(60), 20) < p).astype(int)  # all rows of a patient have one outcome
    order = rng.permutation(p.size)
    rows = zip(np.repeat(np.arange(60), 20)[order], p[order], y[order], strict=True)
    file = tmp_path / "f.csv"
    file.write_text("patient,p,y\n" + "".join(f"m{g},{a:.6f},{b}\n" for g, a, b in rows))
    call = ("gate", str(file), "--tolerance")
    code, out, _ = run(*call, "0.02")
    again = f"run: caltest gate {file} --tolerance 0.02 --clusters patient"
    assert code == 3
    assert "Verdict: IN DOUBT" in out
    assert out.count("outcomes of rows with the same patient are correlated") == 1
    assert again in out
    told = json.loads(run(*call, "0.02", "--json")[1])
    assert (told["verdict"], told["checks"][0]["verdict"]) == ("in doubt", "in doubt")
    assert told["checks"][0]["low"] > 0.02
    assert told["doubts"][0].startswith("outcomes of rows with the same patient")
    assert told["clusters_call"].endswith("--clusters patient")
    code, out, _ = run(*shlex.split(again.partition("caltest ")[2]))
    assert (code, "Verdict: IN DOUBT" in out) == (3, False)  # the rows cannot tell
    code, out, _ = run(*call, "0.5")
    assert (code, "Verdict: PASSED" in out) == (0, True)
    alone = ct.read_predictions(file)
    given = ct.gate(alone, tolerance=0.02, rng=0)
    assert given.verdict is ct.GateVerdict.IN_DOUBT
    assert type(given).from_json(given.to_json()) == given
    independent = ct.gate(np.full(400, 0.2), np.arange(400) % 2, tolerance=0.02, rng=0, as_is=True)
    assert (independent.verdict, independent.doubts) == ("failed", ())


def test_a_failure_where_sizes_of_clusters_depend_on_outcomes_is_in_doubt():
    rng = np.random.default_rng(3)
    size = rng.integers(1, 7, 1500)
    cluster = np.repeat(np.arange(1500), size)
    y = (rng.random(cluster.size) < 0.7 / size[cluster]).astype(int)
    p = np.full(cluster.size, 0.45)
    result = ct.gate(p, y, tolerance=0.02, clusters=cluster, rng=0, as_is=True)
    assert (result.verdict, result.verdict.exit_code) == ("in doubt", 3)
    assert "residuals change with the size of the cluster" in result.doubts[0]
    assert "residuals change with the size of the cluster" in str(result)
