"""Likelihood, accuracy, error and p-value while a network is trained.

Five initialisations, forty epochs, a test after each. The networks begin underconfident, pass
through a few epochs in which nothing speaks against calibration, and end overconfident, while
accuracy hardly changes. The best validation likelihood comes before the smallest error: the whole
vector is found miscalibrated there for nearly every initialisation, as the paper says, the
confidence alone for fewer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

import caltest as ct
from caltest.plots.chart import INK
from paper_replications import nets
from paper_replications.conventions import COLUMNS, ask
from paper_replications.model import Context, Result, Table, canvas, key

PAPER = "Vaicenavicius et al. 2019"
WHERE = "Figure 3"
RECONSTRUCTION = (
    "noisy digits and one hidden layer in place of LeNet on MNIST; lens and bins are not stated "
    "and are taken to be the top class in 10 bins."
)

TOP, WHOLE = ct.ECE(10), ct.ECE(ct.VarianceTree(50))
B = 299


@dataclass(frozen=True, eq=False)
class Run:
    """The curves of one initialisation; every array has one entry an epoch."""

    best: int
    validation: np.ndarray
    nll: np.ndarray
    accuracy: np.ndarray
    gap: np.ndarray
    ece: np.ndarray
    p_top: np.ndarray
    p_whole: np.ndarray


def follow(
    outputs: Iterable[tuple[np.ndarray, np.ndarray]],
    validation: np.ndarray,
    test: np.ndarray,
    whole: ct.ECE = WHOLE,
    n_resamples: int = B,
) -> Run:
    """Test a network after every epoch, given its logits on validation and test images."""
    rows = []
    for scores, test_scores in outputs:
        data = ct.Predictions.of(test_scores, test, from_logits=True)
        top = ct.calibration_test(data, None, TOP)
        canonical = ct.calibration_test(
            data, None, whole, lens=ct.Canonical(), n_resamples=n_resamples, rng=0
        )
        accuracy = nets.accuracy(data)
        rows.append(
            (
                nets.nll(scores, validation),
                nets.nll(test_scores, test),
                accuracy,
                nets.confidence(data) - accuracy,
                top.estimate,
                top.pvalue,
                canonical.pvalue,
            )
        )
    columns = np.array(rows).T
    return Run(int(np.argmin(columns[0])), *columns)


def _digits(seed: int) -> Run:
    (xv, yv), (xt, yt) = nets.digits().validation, nets.digits().test
    outputs = ((nets.logits(p, xv), nets.logits(p, xt)) for p in nets.history(seed))
    return follow(outputs, yv, yt)


def run(context: Context) -> Result:
    """Train, test, and check the story that the curves tell."""
    result = Result()
    runs = [_digits(seed) for seed in range(context.times(5, 2))]
    for seed, curve in enumerate(runs):
        name = f"seed {seed}"
        result.inside(
            f"confidence − accuracy at epoch 2, {name}",
            curve.gap[1],
            -0.40,
            -0.20,
            "−0.30",
            digits=2,
        )
        result.inside(
            f"smallest error of epochs 1–8, {name}",
            curve.ece[:8].min(),
            0.045,
            0.35,
            "0.075 … 0.30",
            digits=3,
        )
        result.inside(
            f"largest p-value of epochs 1–8, {name}",
            curve.p_top[:8].max(),
            0.0,
            1 / (B + 1),
            "1/300",
            digits=4,
        )
        lowest = int(curve.ece[9:20].argmin()) + 9
        result.inside(
            f"smallest error of epochs 10–20, {name}",
            curve.ece[lowest],
            0.008,
            0.024,
            "0.011 … 0.020",
            digits=3,
        )
        result.inside(
            f"its p-value, {name}", curve.p_top[lowest], 0.5, 1.0, "0.72 … 0.99", digits=2
        )
        result.inside(
            f"confidence − accuracy at epoch 40, {name}",
            curve.gap[-1],
            0.05,
            0.09,
            "0.06 … 0.08",
            digits=3,
        )
        result.inside(
            f"error at epoch 40, {name}", curve.ece[-1], 0.06, 0.09, "0.069 … 0.079", digits=3
        )
        result.inside(
            f"p-value at epoch 40, {name}", curve.p_top[-1], 0.0, 1 / (B + 1), "1/300", digits=4
        )
        result.inside(
            f"lowest accuracy after epoch 10, {name}",
            curve.accuracy[10:].min(),
            0.80,
            0.85,
            "0.81",
            digits=3,
        )
        result.inside(
            f"epoch of the best validation nLL, {name}", curve.best + 1, 9, 15, "10 … 14", digits=0
        )
        result.inside(
            f"best validation nLL, {name}",
            curve.validation[curve.best],
            0.56,
            0.63,
            "0.575 … 0.617",
            digits=3,
        )
    found = sum(curve.p_whole[curve.best] <= 0.05 for curve in runs)
    result.inside(
        "initialisations whose best model is rejected (whole vector)",
        found,
        0.6 * len(runs),
        len(runs),
        "4 of 5",
        digits=0,
    )
    rank = float(
        spearmanr(
            np.concatenate([c.ece for c in runs]), np.concatenate([c.p_top for c in runs])
        ).statistic
    )
    result.numbers["rank correlation of error and p-value over all epochs"] = rank
    rows = []
    for seed, curve in enumerate(runs):
        data = nets.predictions(seed, curve.best)
        for lens, statistic in ((ct.TopK(1), TOP), (ct.Canonical(), WHOLE)):
            answer = ask(
                data, statistic, lens, context.seed, n_resamples=B, published=context.times(B, 99)
            )
            rows.append(answer.row(f"seed {seed}, epoch {curve.best + 1}, {lens!r}"))
    result.tables.append(
        Table("Best validation likelihood, two conventions.", ["model", *COLUMNS], rows)
    )
    if context.draw:
        draw(result, context, runs, "v_figure3")
    return result


def draw(result: Result, context: Context, runs: list[Run], name: str) -> None:
    """Draw likelihood, accuracy, error and p-value by epoch."""
    from matplotlib import rcParams

    styles = list(rcParams["axes.prop_cycle"])
    figure, axes = canvas(5.6, 4, sharex=True)
    epochs = np.arange(1, runs[0].nll.size + 1)
    for axis, field in zip(axes, ("nll", "accuracy", "ece", "p_top"), strict=True):
        for j, curve in enumerate(runs):
            values = getattr(curve, field)
            style = styles[j] | {"marker": ""}
            axis.plot(epochs, values, **style, lw=0.9, label=f"seed {j}")
            best = {"color": style["color"], "ms": 9, "mec": INK, "mew": 0.5}
            axis.plot(curve.best + 1, values[curve.best], "*", **best)
    for axis, label in zip(axes, ("nLL", "accuracy", "ECE", "p-value"), strict=True):
        axis.set(ylabel=label, xlim=(0, epochs[-1] + 1))
    key(axes[0], ncols=3)
    axes[3].axhline(0.05, color=INK, ls=":", lw=1.0, label="0.05")
    axes[3].legend(*[v[-1:] for v in axes[3].get_legend_handles_labels()], loc="upper right")
    axes[3].set(xlabel="epoch", ylim=(-0.03, 1.03))
    figure.align_ylabels()
    caption = "On the test images; stars: best validation likelihood; dotted: 0.05."
    result.save(figure, name, caption, context)
