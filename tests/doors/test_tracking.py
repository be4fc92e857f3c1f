"""What reaches MLflow and Weights & Biases, shown by small modules in their place, and by them."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import caltest as ct
from caltest.tracking import log_to_mlflow, log_to_wandb

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


@pytest.mark.parametrize(("log", "name"), [(log_to_mlflow, "mlflow"), (log_to_wandb, "wandb")])
def test_the_extra_is_named(log, name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"pip install 'caltest\[{name}\]'"):
        log(TEST)
