"""Errors of several models, through several lenses, with several partitions.

The numbers of one model differ by a factor between partitions of the whole simplex, and models
change places when the partition changes. An error without its partition, and without what chance
would show, orders nothing.
"""

from __future__ import annotations

import itertools

import numpy as np

import caltest as ct
from caltest.data.lenses import Lens
from paper_replications import nets
from paper_replications.conventions import COLUMNS, ask
from paper_replications.model import Context, Result, Table
from paper_replications.vaicenavicius.figure1 import GROUPS

PAPER = "Vaicenavicius et al. 2019"
WHERE = "Appendix D"
RECONSTRUCTION = "the numbers of the appendix were not available; models on the noisy digits."

#: Columns of the table of real networks.
MEASURES: dict[str, tuple[ct.ECE, Lens]] = {
    "top class, 10 bins": (ct.ECE(10), ct.TopK(1)),
    "top class, tree": (ct.ECE(ct.VarianceTree(100)), ct.TopK(1)),
    "groups, 25 cells": (ct.ECE(ct.UniformBins(5, closed="left")), GROUPS),
    "groups, 100 cells": (ct.ECE(ct.UniformBins(10, closed="left")), GROUPS),
    "whole vector, grid of 10": (ct.ECE(ct.UniformBins(10)), ct.Canonical()),
    "whole vector, tree": (ct.ECE(ct.VarianceTree(100)), ct.Canonical()),
}
REAL = {
    "cifar10_densenet121": (0.0405, 0.0408, 0.0269, 0.0307, 0.0661, 0.0295),
    "cifar10_resnet18": (0.0539, 0.0529, 0.0355, 0.0382, 0.0749, 0.0364),
    "cifar10_resnet50": (0.0533, 0.0528, 0.0342, 0.0381, 0.0748, 0.0288),
}


def run(context: Context) -> Result:
    """Measure all models by all measures; check that the partition matters."""
    result = Result()
    models = {
        "best likelihood": nets.predictions(0, nets.best_epoch(0)),
        "after 40 epochs": nets.predictions(0, -1),
        "after 40 epochs, scaled": nets.scaled(0, -1)[0],
        "logistic regression": _logistic(),
    }
    grid, tree = [], []
    rows = []
    for name, data in models.items():
        for measure, (statistic, lens) in MEASURES.items():
            answer = ask(
                data, statistic, lens, context.seed, n_resamples=context.times(999, 199),
                published=context.times(199, 49),
            )  # fmt: skip
            rows.append(answer.row(name, measure))
            if measure == "whole vector, grid of 10":
                grid.append(answer.estimate)
            if measure == "whole vector, tree":
                tree.append(answer.estimate)
    result.tables.append(
        Table("Noisy digits, n = 900, two conventions.", ["model", "measure", *COLUMNS], rows)
    )
    factors = np.array(grid) / np.array(tree)
    result.inside(
        "smallest ratio of the two whole-vector errors", factors.min(), 1.2, 20.0, "> 1", digits=2
    )
    differs = [
        bool((grid[i] < grid[j]) != (tree[i] < tree[j]))
        for i, j in itertools.combinations(range(len(grid)), 2)
    ]
    result.numbers["pairs of models that change places"] = float(sum(differs))
    _real(result, context)
    return result


def _logistic() -> ct.Predictions:
    """Multinomial logistic regression on the pixels, with a ridge of 0.001."""
    from caltest.recalibration import SoftmaxLoss

    x, y = nets.digits().train
    d = x.shape[1]

    def forward(theta: np.ndarray) -> np.ndarray:
        return x @ theta.reshape(d, 10)

    def adjoint(residual: np.ndarray) -> np.ndarray:
        return (x.T @ residual).ravel()

    weights = SoftmaxLoss(forward, adjoint, y, np.zeros(10 * d), 1e-3).minimised().reshape(d, 10)
    images, labels = nets.digits().test
    return ct.Predictions.of(images @ weights, labels, from_logits=True)


def _real(result: Result, context: Context) -> None:
    tables: dict[str, list[float]] = {}
    for name, known in REAL.items():
        stored = context.stored(f"multiclass/{name}.npz")
        if stored is None:
            continue
        data = ct.Predictions.of(stored["probs"], stored["labels"])
        tables[name] = []
        for (measure, (statistic, lens)), value in zip(MEASURES.items(), known, strict=True):
            test = ct.calibration_test(
                data, None, statistic, lens=lens, n_resamples=context.times(199, 99),
                rng=context.seed,
            )  # fmt: skip
            tables[name].append(test.estimate)
            result.near(f"{name}: {measure}", test.estimate, value, 1e-4)
            result.inside(
                f"{name}: p-value, {measure}", test.pvalue, 0.0, 0.0101, "1/(B + 1)", digits=4
            )
    if len(tables) == len(REAL):
        for column, winner in (
            ("whole vector, grid of 10", "cifar10_densenet121"),
            ("whole vector, tree", "cifar10_resnet50"),
        ):
            k = list(MEASURES).index(column)
            found = min(tables, key=lambda name, k=k: tables[name][k])  # type: ignore[misc]
            result.holds(f"smallest error, {column}", found == winner, found, winner)
