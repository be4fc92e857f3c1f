"""Results in the logs of experiments: MLflow, and Weights & Biases.

:func:`log_to_mlflow` and :func:`log_to_wandb` log numbers, JSON and the picture of a result;
:func:`mlflow_metric` is a metric for ``mlflow.evaluate`` that never raises.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from caltest._base.saving import write_file
from caltest.data.lenses import LensLike
from caltest.errors import or_nan
from caltest.inference import calibration_test
from caltest.results import Result
from caltest.statistics import ECE, StatisticLike

if TYPE_CHECKING:
    from mlflow.models import EvaluationMetric
    from wandb.sdk.wandb_run import Run

#: Numbers that were asked for, not found, and those of every class of an audit; they are in the
#: files.
SETTINGS = {
    *("alpha", "level", "limit", "margin", "n_classes", "n_resamples", "power", "seed"),
    *("tolerance", "width", "classes"),
}


def log_to_mlflow(result: Result, name: str = "calibration", *, step: int | None = None) -> None:
    """Log a result to the active run of MLflow, or to a new one.

    Its numbers become metrics whose names begin with ``name``, and it is kept as JSON, as Markdown
    and, where there is one, as a picture, in the artifacts under ``name``. ``step`` is passed to
    ``mlflow.log_metrics``. ImportError without MLflow, which ``caltest[mlflow]`` installs.
    """
    try:
        import mlflow
    except ImportError as error:
        raise ImportError("log_to_mlflow needs MLflow: pip install 'caltest[mlflow]'") from error
    mlflow.log_metrics(_metrics_of(result, name), step=step)
    with _files(result) as folder:
        mlflow.log_artifacts(str(folder), artifact_path=name)


def log_to_wandb(
    result: Result, name: str = "calibration", *, run: Run | None = None, step: int | None = None
) -> None:
    """Log a result to a run of Weights & Biases, as :func:`log_to_mlflow` does for MLflow.

    Its numbers are logged under keys that begin with ``name``, with its picture where there is one,
    and JSON, Markdown and picture are kept as an artifact. ``run`` is by default the active run,
    and ``step`` is passed to its ``log``. ImportError without W&B, which ``caltest[wandb]``
    installs; RuntimeError when no run is active.
    """
    try:
        import wandb
    except ImportError as error:
        raise ImportError("log_to_wandb needs W&B: pip install 'caltest[wandb]'") from error
    run = wandb.run if run is None else run
    if run is None:
        raise RuntimeError("there is no active run of W&B: call wandb.init() first, or pass run=")
    with _files(result) as folder:
        content: dict[str, object] = dict(_metrics_of(result, name))
        if (folder / "figure.png").exists():
            content[f"{name}/figure"] = wandb.Image(str(folder / "figure.png"))
        run.log(content, step=step)
        artifact = wandb.Artifact(f"{name}-{run.id}", type="calibration")
        artifact.add_dir(str(folder))
        run.log_artifact(artifact)


def mlflow_metric(
    statistic: StatisticLike = ECE(), *, name: str = "calibration", lens: LensLike | None = None
) -> EvaluationMetric:
    """Return a metric for ``extra_metrics`` of ``mlflow.models.evaluate``.

    The predictions that MLflow evaluates are probabilities of the event, or rows of probabilities
    of K classes; the targets are observed classes. ``name`` heads the logged metrics
    ``calibration/estimate``, ``calibration/noise_floor`` and ``calibration/pvalue``; ``statistic``
    and ``lens`` are as in :func:`caltest.calibration_test`. A number that cannot be measured is
    NaN, with an ``UnmeasuredWarning``. ImportError without MLflow.

    Examples
    --------
    ::

        mlflow.models.evaluate(
            data=frame, targets="died", predictions="risk", extra_metrics=[mlflow_metric()]
        )
    """
    try:
        from mlflow.metrics import MetricValue, make_metric
    except ImportError as error:
        raise ImportError("mlflow_metric needs MLflow: pip install 'caltest[mlflow]'") from error

    def ask(predictions: object, targets: object) -> dict[str, float]:
        probs = np.stack([np.asarray(row, dtype=float) for row in predictions])  # type: ignore[attr-defined]
        test = calibration_test(probs, np.asarray(targets), statistic, lens=lens, as_is=True)
        values = (test.estimate, test.null_mean, test.pvalue)
        return {of: float(value) for of, value in zip(OF_MLFLOW, values, strict=True)}

    def eval_fn(predictions: object, targets: object = None, metrics: object = None) -> object:
        unmeasured = dict.fromkeys(OF_MLFLOW, np.nan)
        found = or_nan(lambda: ask(predictions, targets), unmeasured, name)
        return MetricValue(aggregate_results=found)

    return make_metric(eval_fn=eval_fn, greater_is_better=False, name=name)


#: The numbers of a metric of MLflow.
OF_MLFLOW = ("estimate", "noise_floor", "pvalue")


def _metrics_of(result: Result, name: str) -> dict[str, float]:
    """Return the numbers of a result, its rows and tests, as a dict by names of metrics.

    Names are paths such as ``calibration/estimate``, which begin with ``name``. Settings such as
    alpha and seed are left out.
    """
    metrics: dict[str, float] = {}

    def collect(where: str, value: object) -> None:
        if isinstance(value, dict):
            for key in value.keys() - SETTINGS:
                collect(f"{where}/{key}", value[key])
        elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
            for j, item in enumerate(value):
                words = [*item.get("names", ()), item.get("score", ""), item.get("lens", "")]
                name_of_row = re.sub(r"[^\w.-]+", "_", " ".join([str(j), *words])).strip("_")
                collect(f"{where}/{name_of_row}", item)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            metrics[where] = float(value)

    collect(name, result.as_dict())
    return metrics


@contextmanager
def _files(result: Result) -> Iterator[Path]:
    """Context manager that yields a temporary folder with the files of a result.

    They are the result as JSON, as Markdown and, where there is one, as a picture.
    """
    with TemporaryDirectory() as folder:
        where = Path(folder)
        write_file(where / "result.json", result.to_json())
        write_file(where / "result.md", result.to_markdown())
        if result.plotter:
            picture = result.plot()
            picture.save(where / "figure.png")
            if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
                pyplot.close(picture.figure)
        yield where
