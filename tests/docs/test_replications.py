"""The replications that take a moment, the runner, and the report. ``--quick`` in CI runs all."""

import numpy as np
import pytest
from click.testing import CliRunner

import caltest as ct
from paper_replications import nets
from paper_replications.__main__ import main
from paper_replications.items import run
from paper_replications.mixture import ETA, gap, limit
from paper_replications.model import Context, Result

QUICK = ["V-A1", "V-4.3", "V-B", "N-3.4", "B-WEATHER", "B-RECAL", "T"]
QUICK += [pytest.param("C-8", marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", QUICK)
def test_items_pass(name, tmp_path):
    outcome = run(name, Context(quick=True, out=tmp_path, draw=False))
    failed = [check for check in outcome.result.checks if not check.passed]
    assert ((failed, outcome.verdict), outcome.result.figures) == (([], "PASS"), [])


SLOW = pytest.param("X-CIFAR", 36, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "checks"), [("O-OVARIAN", 15), ("S-FOLLOWUP", 11), ("X-PRECIP", 24), SLOW]
)
def test_published_data(data_dir, tmp_path, name, checks):
    outcome = run(name, Context(quick=True, out=tmp_path, data=data_dir))
    assert outcome.verdict == "PASS"
    assert len(outcome.result.checks) >= checks


def test_published_decision_curves(data_dir, tmp_path):
    if not (data_dir / "decisions" / "df_binary.csv").is_file():
        pytest.skip("the data of dcurves are not among the optional data")
    outcome = run("D-CURVES", Context(quick=True, out=tmp_path, data=data_dir))
    assert outcome.verdict == "PASS"
    assert len(outcome.result.checks) == 8


@pytest.mark.slow
def test_report_holds_every_check_and_figure(tmp_path):
    import matplotlib

    settings = dict(matplotlib.rcParams)
    result = CliRunner().invoke(main, ["V-A1", "B-W", "X", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    markdown = (tmp_path / "replications.md").read_text(encoding="utf-8")
    html = (tmp_path / "replications.html").read_text(encoding="utf-8")
    for text in (markdown, html):
        assert all(words in text for words in ("P(at most 18 sunny days)", "SKIP"))
        assert "FAIL" not in text.replace(".fail", "")
        for figure in ("v_a1", "b_weather"):
            assert f"figures/{figure}.png" in text
            assert (tmp_path / "figures" / f"{figure}.png").stat().st_size > 5000
    assert dict(matplotlib.rcParams) == settings


def test_a_failing_check_and_a_crash_end_in_exit_code_1(tmp_path, monkeypatch):
    import paper_replications.guo_blog.weather as weather

    def wrong(context):
        result = Result()
        result.near("one | half", 0.5, 0.6, 0.01)
        return result

    def crash(context):
        raise RuntimeError("no such luck")

    for broken, said in ((wrong, "one \\| half"), (crash, "no such luck")):
        monkeypatch.setattr(weather, "run", broken)
        result = CliRunner().invoke(main, ["B-WEATHER", "--out", str(tmp_path)])
        assert (result.exit_code, "FAIL  B-WEATHER" in result.output) == (1, True)
        assert said in (tmp_path / "replications.md").read_text(encoding="utf-8")


def test_checks_can_fail():
    result = Result()
    result.near("near", 1.0, 1.2, 0.1)
    result.inside("inside", 3.0, 1.0, 2.0)
    result.holds("holds", False, "")
    rng = np.random.default_rng(0)
    result.simulated("simulated", rng.normal(0.0, 1.0, 1000), 0.2)
    result.share("share", np.arange(1000) < 300, 0.4)
    assert [check.passed for check in result.checks] == [False] * 5
    result = Result()
    result.simulated("simulated", rng.normal(0.0, 1.0, 1000), 0.05)
    result.share("share", np.arange(1000) < 300, 0.32)
    result.share("never", np.zeros(100, dtype=bool), 0.0)
    assert all(check.passed for check in result.checks)


def test_network_is_the_one_of_the_examples():
    for stage, epoch in (("overfit", -1), ("best", nets.best_epoch(0))):
        for part in ("test", "validation"):
            ours, stored = nets.predictions(0, epoch, part), ct.examples.digits(stage, part)
            np.testing.assert_array_equal(ours.labels, stored.labels)
            np.testing.assert_allclose(ours.probs, stored.probs, atol=1e-5)


def test_mixture_integrals_against_quadrature():
    model = ct.examples.GaussianMixture(1.0, 1.0)
    assert pytest.approx(model.expected_miscalibration(), abs=1e-9) == ETA
    assert limit(np.arange(2049) / 2048) == pytest.approx(ETA, abs=1e-6)
    data = model.sample(400_000, 3)
    p, y = data.probs[:, 0], data.labels == 0
    inside = (p > 0.3) & (p <= 0.7)
    assert ((y - p) * inside).mean() == pytest.approx(gap(0.3, 0.7), abs=0.004)
