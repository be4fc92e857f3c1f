"""Which choices make a network overconfident: width and weight decay.

Guo et al. vary one choice of a network at a time; here two are crossed. Wider networks are a little
more accurate and much more overconfident. Weight decay undoes that at no cost in accuracy, and with
the largest decay the error equals the noise floor; the smallest changes nothing that can be
told from noise. (Depth and batch normalisation need other networks than the small one here.)
"""

from __future__ import annotations

import numpy as np

import caltest as ct
from caltest.plots.chart import GREY
from paper_replications import nets
from paper_replications.model import Context, Result, Table, canvas, key

PAPER = "Blog on Guo et al. 2017"
WHERE = "Figure 2 of the paper"
RECONSTRUCTION = "a network of one hidden layer on the noisy digits in place of CIFAR-100."

WIDTHS = (16, 64, 256)
DECAYS = (0.0, 1e-4, 1e-3, 3e-3)


def run(context: Context) -> Result:
    """Train every combination, and check the directions that the paper names."""
    result, rows = Result(), []
    seeds = range(context.times(3, 2))
    found = np.array([[[_measured(w, d, seed) for seed in seeds] for d in DECAYS] for w in WIDTHS])
    ece, floor, _, accuracy, confidence = np.moveaxis(found.mean(axis=2), 2, 0)
    for i, width in enumerate(WIDTHS):
        result.holds(
            f"{width} units: smaller error with weight decay 0.001, and again with 0.003",
            bool((np.diff(ece[i, [0, 2, 3]]) < 0.0).all()),
            " > ".join(f"{e:.3f}" for e in ece[i, [0, 2, 3]]),
            "falls",
        )
        for j, decay in enumerate(DECAYS):
            pvalues = ", ".join(f"{p:.2g}" for p in found[i, j, :, 2])
            numbers = (ece[i, j], floor[i, j], pvalues, accuracy[i, j], confidence[i, j])
            rows.append([width, f"{decay:g}", *numbers])
    result.holds(
        "without decay: wider, larger error",
        bool((np.diff(ece[:, 0]) > 0.0).all()),
        " < ".join(f"{e:.3f}" for e in ece[:, 0]),
        "rises",
    )
    cost = (accuracy[:, :1] - accuracy).max()
    result.inside("largest loss of accuracy by weight decay", cost, 0.0, 0.01, digits=3)
    columns = ["units", "decay", "ECE, 10 bins", "noise floor", "p", "accuracy", "confidence"]
    caption = f"After 40 epochs, means of {len(seeds)} networks"
    result.tables.append(Table(f"{caption}; p of each.", columns, rows))
    if context.draw:
        figure, axes = canvas(4.3, 2, sharex=True)
        for j, decay in enumerate(DECAYS):
            for axis, values in zip(axes, (ece, 1.0 - accuracy), strict=True):
                axis.plot(WIDTHS, values[:, j], label=f"weight decay {decay:g}")
        floors = {"color": GREY, "ls": "--", "marker": "", "label": "noise floor"}
        axes[0].plot(WIDTHS, floor.mean(axis=1), **floors)
        axes[0].set(xscale="log", ylabel="ECE, 10 bins", ylim=(0, None))
        axes[0].set_xticks(WIDTHS, [str(w) for w in WIDTHS])
        axes[0].minorticks_off()
        key(axes[0], ncols=2)
        axes[1].set(xlabel="hidden units", ylabel="share of wrong answers", ylim=(0, 0.25))
        result.save(figure, "b_factors", f"{caption}.", context)
    return result


def _measured(width: int, decay: float, seed: int) -> tuple[float, ...]:
    """Return the ECE, its noise floor, its p-value, accuracy and mean confidence."""
    split = nets.digits()
    *_, last = nets.train(*split.train, seed=seed, hidden=width, decay=decay)
    images, labels = split.test
    data = ct.Predictions.of(nets.logits(last, images), labels, from_logits=True)
    test = ct.calibration_test(data, None, **ct.presets.guo2017(10))
    measured = (test.estimate, test.null_mean, test.pvalue)
    return *measured, nets.accuracy(data), nets.confidence(data)
