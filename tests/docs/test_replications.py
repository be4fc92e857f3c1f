"""The replications that take a moment, the runner, and the report. ``--quick`` in CI runs all."""

import numpy as np
import pytest
from click.testing import CliRunner

import caltest as ct
from paper_replications import items, nets
from paper_replications.__main__ import main
from paper_replications.items import MODULES, run
from paper_replications.mixture import ETA, gap, limit
from paper_replications.model import Context, Result

QUICK = ["V-A1", "V-4.3", "V-B", "N-3.4", "B-WEATHER", "B-RECAL", "T"]
QUICK += [pytest.param("C-8", marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", QUICK)
def test_items_pass(name, tmp_path):
    outcome = run(name, Context(quick=True, out=tmp_path, draw=False))
    failed = [check for check in outcome.result.checks if not check.passed]
    assert failed == []
    assert outcome.verdict == "PASS"
    assert outcome.result.figures == []


@pytest.mark.parametrize("name", MODULES)
def test_items_say_where_they_come_from(name):
    from importlib import import_module

    module = import_module(f"paper_replications.{MODULES[name]}")
    assert module.PAPER
    assert module.WHERE
    assert module.__doc__.count("\n\n") >= 1


@pytest.mark.parametrize("name", ["O-OVARIAN", "X-CIFAR", "X-PRECIP"])
def test_items_skip_without_their_data(name, tmp_path):
    assert run(name, Context(out=tmp_path)).verdict == "SKIP"


def test_published_e_processes(data_dir, tmp_path):
    outcome = run("X-PRECIP", Context(out=tmp_path, data=data_dir))
    assert outcome.verdict == "PASS"
    assert len(outcome.result.checks) == 24


def test_ovarian_tumours(data_dir, tmp_path):
    outcome = run("O-OVARIAN", Context(out=tmp_path, data=data_dir))
    assert outcome.verdict == "PASS"
    assert len(outcome.result.checks) == 15


@pytest.mark.slow
def test_published_networks(data_dir, tmp_path):
    outcome = run("X-CIFAR", Context(quick=True, out=tmp_path, data=data_dir))
    assert outcome.verdict == "PASS"
    assert len(outcome.result.checks) >= 36


def test_report_holds_every_check_and_figure(tmp_path):
    import matplotlib

    settings = dict(matplotlib.rcParams)
    result = CliRunner().invoke(main, ["V-A1", "B-W", "X", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    markdown = (tmp_path / "replications.md").read_text(encoding="utf-8")
    html = (tmp_path / "replications.html").read_text(encoding="utf-8")
    for text in (markdown, html):
        assert "P(at most 18 sunny days)" in text
        assert "SKIP" in text
        assert "FAIL" not in text.replace(".fail", "")
        assert "Reconstruction" in text
        for figure in ("v_a1", "b_weather"):
            assert f"figures/{figure}.png" in text
            assert (tmp_path / "figures" / f"{figure}.png").stat().st_size > 5000
    assert dict(matplotlib.rcParams) == settings
    assert "<td>0.010731062<td>" in html
    assert "&lt;" not in html.split("</style>")[0]


def test_a_failing_check_and_a_crash_end_in_exit_code_1(tmp_path, monkeypatch):
    import paper_replications.b_weather as weather

    def wrong(context):
        result = Result()
        result.near("one | half", 0.5, 0.6, 0.01)
        return result

    def crash(context):
        raise RuntimeError("no such luck")

    for broken, said in ((wrong, "one \\| half"), (crash, "no such luck")):
        monkeypatch.setattr(weather, "run", broken)
        result = CliRunner().invoke(main, ["B-WEATHER", "--out", str(tmp_path)])
        assert result.exit_code == 1
        assert "FAIL  B-WEATHER" in result.output
        assert said in (tmp_path / "replications.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("missing", ["jinja2", "markdown_it"])
def test_a_missing_extra_is_said_before_the_work(missing, tmp_path, monkeypatch):
    monkeypatch.setattr("paper_replications.__main__.find_spec", lambda name: name != missing)
    result = CliRunner().invoke(main, ["B-WEATHER", "--out", str(tmp_path / "report")])
    assert result.exit_code == 2
    assert "pip install '.[replications]'" in result.output
    assert not (tmp_path / "report").exists()


def test_unknown_items_are_refused():
    result = CliRunner().invoke(main, ["Z"])
    assert result.exit_code == 2
    assert "V-T1" in result.output


def test_the_same_seed_gives_the_same_numbers(tmp_path):
    one, two, other = (
        run("V-B", Context(quick=True, seed=seed, out=tmp_path, draw=False)).result.numbers
        for seed in (1, 1, 2)
    )
    assert one == two
    assert one != other


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


def test_strong_weight_decay_moves_every_weight_towards_zero():
    x, y = (part[:32] for part in nets.digits().train)
    first = np.random.default_rng(1).normal(0.0, np.sqrt(2.0 / 64), (64, 64))
    moved, *_ = next(nets.train(x, y, epochs=1, seed=1, rate=1e-4, decay=1e9))
    np.testing.assert_allclose(moved, first - 1e-4 * np.sign(first), atol=1e-9)


def test_mixture_integrals_against_quadrature():
    model = ct.examples.GaussianMixture(1.0, 1.0)
    assert pytest.approx(model.expected_miscalibration(), abs=1e-9) == ETA
    assert limit(np.arange(2049) / 2048) == pytest.approx(ETA, abs=1e-6)
    data = model.sample(400_000, 3)
    p, y = data.probs[:, 0], data.labels == 0
    inside = (p > 0.3) & (p <= 0.7)
    assert ((y - p) * inside).mean() == pytest.approx(gap(0.3, 0.7), abs=0.004)


def test_registry_and_modules_agree():
    from pathlib import Path

    folder = Path(items.__file__).parent
    modules = {path.stem for path in folder.glob("[vnbcotx]_*.py")}
    assert modules == set(MODULES.values())


def test_lenet_gradients_by_differences():
    from scipy.special import log_softmax

    from paper_replications.lenet import LeNet

    rng = np.random.default_rng(3)
    images, labels = rng.random((3, 28, 28)), np.array([1, 0, 7])
    images[:, :10] = 0.0  # ties in the pools
    net = LeNet(0)
    net.weights = [w.astype(float) for w in net.weights]
    net.biases = [b.astype(float) for b in net.biases]

    def loss():
        scores = net._forward(images)[-1][0]
        return -log_softmax(scores, axis=1)[np.arange(3), labels].mean()

    for parameter, gradient in zip(
        (*net.weights, *net.biases), net._gradients(images, labels), strict=True
    ):
        at = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        parameter[at] += 1e-6
        ahead = loss()
        parameter[at] -= 2e-6
        assert (ahead - loss()) / 2e-6 == pytest.approx(gradient[at], rel=1e-5)
        parameter[at] += 1e-6


def test_items_on_request_are_not_run_with_all():
    assert "V-MNIST" not in items.chosen([])
    assert "V-MNIST" not in items.chosen(["V"])
    assert items.chosen(["v-mnist"]) == ["V-MNIST"]
