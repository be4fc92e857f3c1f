"""What reaches MLflow and Weights & Biases, shown by small modules in their place, and by them."""

import re
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import caltest as ct
from caltest.errors import UnmeasuredWarning
from caltest.tracking import log_to_mlflow, log_to_wandb, mlflow_metric

DATA = ct.examples.digits()
TEST = ct.calibration_test(DATA)


@pytest.fixture(scope="module")
def report():
    return ct.audit(DATA, n_resamples=199, rng=0)


def kept(folder):
    """Return the content of the files of a folder, which is gone later."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.fixture
def mlflow(monkeypatch):
    """A module with the documented calls of MLflow: log_metrics and log_artifacts."""
    module = ModuleType("mlflow")
    module.logged = logged = SimpleNamespace(metrics={}, files={})

    def log_metrics(metrics, step=None):
        for key, value in metrics.items():
            assert re.fullmatch(r"[\w\-. :/]+", key)  # what MLflow allows
            assert isinstance(value, float)
            logged.metrics[key, step] = value

    def log_artifacts(local_dir, artifact_path=None):
        logged.files[artifact_path] = kept(local_dir)

    module.log_metrics, module.log_artifacts = log_metrics, log_artifacts
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return logged


@pytest.fixture
def wandb(monkeypatch):
    """A module with the documented calls of W&B: run.log, run.log_artifact, Image, Artifact."""
    module = ModuleType("wandb")
    logged = SimpleNamespace(metrics={}, files={}, images={})

    class Artifact:
        def __init__(self, name, type):
            assert re.fullmatch(r"[\w\-.]+", name)
            self.name, self.type = name, type

        def add_dir(self, local_path):
            logged.files[self.name] = kept(local_path)

    def log(data, step=None):
        for key, value in data.items():
            logged.metrics[key, step] = value

    def image(path):
        return ("image", Path(path).read_bytes()[:4])

    run = SimpleNamespace(id="3x7", log=log)
    run.log_artifact = lambda artifact: logged.images.update({artifact.type: artifact})
    module.run, module.Image, module.Artifact = run, image, Artifact
    monkeypatch.setitem(sys.modules, "wandb", module)
    return logged


def test_a_test_in_mlflow(mlflow):
    log_to_mlflow(TEST, "valid", step=3)
    expected = {k: getattr(TEST, k) for k in ("estimate", "pvalue", "null_mean", "null_std")}
    expected |= {"n": 900.0, "impossible": 0.0, "pvalue_error": 0.0}
    logged = {k.removeprefix("valid/"): v for (k, _), v in mlflow.metrics.items()}
    assert expected.items() <= logged.items()
    assert {step for _, step in mlflow.metrics} == {3}
    assert not any("seed" in key or "two_sided" in key for key, _ in mlflow.metrics)
    ((where, files),) = mlflow.files.items()
    assert where == "valid"
    assert files["result.json"].decode() == TEST.to_json()
    assert files["result.md"].decode() == TEST.to_markdown()
    assert files["figure.png"].startswith(b"\x89PNG")


def test_an_audit_in_mlflow(mlflow, report):
    log_to_mlflow(report)
    for j, row in enumerate(report.rows):
        found = {k: v for (k, _), v in mlflow.metrics.items() if f"/rows/{j}_" in k}
        assert sorted(v for k, v in found.items() if k.endswith("/adjusted")) == [row.adjusted]
        assert sorted(v for k, v in found.items() if k.endswith("/estimate")) == [row.test.estimate]
    assert mlflow.metrics["calibration/rows/0_TopK_1/adjusted", None] == report.rows[0].adjusted
    assert mlflow.metrics["calibration/accuracy", None] == report.accuracy
    assert not any("alpha" in key for key, _ in mlflow.metrics)


def test_wandb(wandb, report):
    log_to_wandb(report, "valid", step=2)
    assert wandb.metrics["valid/rows/0_TopK_1/adjusted", 2] == report.rows[0].adjusted
    assert wandb.metrics["valid/figure", 2] == ("image", b"\x89PNG")
    assert set(wandb.files["valid-3x7"]) == {"result.json", "result.md", "figure.png"}
    assert set(wandb.images) == {"calibration"}


def test_wandb_without_a_run(wandb):
    run, sys.modules["wandb"].run = sys.modules["wandb"].run, None
    with pytest.raises(RuntimeError, match=r"call wandb.init\(\) first"):
        log_to_wandb(TEST)
    log_to_wandb(TEST, run=run)
    assert wandb.metrics["calibration/estimate", None] == TEST.estimate


@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_mlflow_evaluates_it(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = (rng.random(200) < p**2).astype(int)
    rows = rng.dirichlet(np.ones(3), 200)
    frame = pandas.DataFrame({"p": p, "y": y, "rows": list(rows), "k": rng.integers(0, 3, 200)})
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")

    def logged(data, predictions, targets):
        with mlflow.start_run():
            found = mlflow.models.evaluate(
                data=data, targets=targets, predictions=predictions, extra_metrics=[mlflow_metric()]
            )
        return {k.removeprefix("calibration/"): v for k, v in found.metrics.items()}

    for columns, arrays in ((("p", "y"), (p, y)), (("rows", "k"), (rows, frame.k.to_numpy()))):
        test, found = ct.calibration_test(*arrays), logged(frame, *columns)
        assert found["estimate"] == pytest.approx(test.estimate)
        assert found["noise_floor"] == pytest.approx(test.null_mean)
        assert found["pvalue"] == pytest.approx(test.pvalue)
    wrong = logged(frame.assign(p=p + 1.0), "p", "y")
    assert np.isnan([wrong[name] for name in ("estimate", "noise_floor", "pvalue")]).all()


def test_hostile_predictions_raise_nothing_inside_mlflow(monkeypatch):
    module = ModuleType("mlflow.metrics")
    module.MetricValue = SimpleNamespace
    module.make_metric = lambda eval_fn, greater_is_better, name: eval_fn
    monkeypatch.setitem(sys.modules, "mlflow", ModuleType("mlflow"))
    monkeypatch.setitem(sys.modules, "mlflow.metrics", module)
    ask, rng, answers = mlflow_metric(), np.random.default_rng(5), []
    strange = [None, [], [0.5], ["a"], [[0.5, 0.5], [0.5]], 3, [np.nan], [1.0000001], [[]]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnmeasuredWarning)
        for i in range(200):
            n = int(rng.integers(0, 5))
            p = rng.choice(
                [0.0, 0.25, 0.5, 1.0, 7.0, np.nan], n, p=[0.2, 0.3, 0.2, 0.2, 0.05, 0.05]
            )
            y = rng.integers(0, 2 if i % 3 else 3, n if i % 5 else n + 1)
            pair = (p, y) if i % 4 else (strange[i % 9], strange[i % 7])
            answers.append(ask(*pair).aggregate_results)
    pvalues = np.array([answer["pvalue"] for answer in answers])
    assert ((pvalues > 0.0) & (pvalues <= 1.0) | np.isnan(pvalues)).all()
    assert 0 < np.isfinite(pvalues).sum() < 200
    with pytest.warns(
        UnmeasuredWarning, match="calibration is nan: InvalidPredictionsError"
    ) as said:
        ask([2.0], [1])
    assert len(said) == 1


def test_without_mlflow_the_metric_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow.metrics", None)
    with pytest.raises(ImportError, match=r"pip install 'caltest\[mlflow\]'"):
        mlflow_metric()


@pytest.mark.parametrize(("log", "name"), [(log_to_mlflow, "mlflow"), (log_to_wandb, "wandb")])
def test_the_extra_is_named(log, name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"pip install 'caltest\[{name}\]'"):
        log(TEST)
