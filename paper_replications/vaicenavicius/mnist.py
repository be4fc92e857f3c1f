"""Figure 3 as the paper has it: LeNet on the images of MNIST (needs --data, several minutes).

LeNet in NumPy, trained on 5000 of the images; 1000 for validation and 4000 for the tests. The
models with the best validation likelihood are found miscalibrated, although their error is no
larger than 0.02: a small error is not calibration. Run by name, ``V-MNIST``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import caltest as ct
from paper_replications.lenet import LeNet
from paper_replications.model import Context, Result
from paper_replications.vaicenavicius.figure3 import Run, draw, follow

PAPER = "Vaicenavicius et al. 2019"
WHERE = "Figure 3"
RECONSTRUCTION = "the split, and the lens and bins (top class, 10 bins), are ours."

IMAGES = "images/mnist.npz"


def run(context: Context) -> Result:
    """Train, test after every epoch, and look at the models of best likelihood."""
    result = Result()
    stored = context.stored(IMAGES)
    if stored is None:
        return result
    images = (stored["x_test"] / 255.0).astype(np.float32)
    labels = stored["y_test"].astype(np.int64)
    train, validation, test = np.split(np.random.default_rng(0).permutation(10_000), [5000, 6000])
    epochs = context.times(40, 10)

    def outputs(seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        net = LeNet(seed)
        for _ in net.train(images[train], labels[train], epochs=epochs):
            yield net.logits(images[validation]), net.logits(images[test])

    runs: list[Run] = [
        follow(outputs(seed), labels[validation], labels[test], ct.ECE(ct.VarianceTree(100)), 99)
        for seed in range(context.times(5, 1))
    ]
    best = np.array([curve.best for curve in runs])
    for seed, (curve, at) in enumerate(zip(runs, best, strict=True)):
        name = f"best model, seed {seed}"
        result.inside(
            f"accuracy, {name}", curve.accuracy[at], 0.955, 0.985, "0.971 … 0.980", digits=3
        )
        result.inside(f"nLL, {name}", curve.nll[at], 0.07, 0.17, "0.103 … 0.136", digits=3)
        result.inside(f"ECE, {name}", curve.ece[at], 0.004, 0.02, "0.0104 … 0.0161")
    rejected = sum(curve.p_top[at] <= 0.05 for curve, at in zip(runs, best, strict=True))
    result.inside(
        "best models rejected by the top class",
        rejected,
        0.6 * len(runs),
        len(runs),
        "5 of 5",
        digits=0,
    )
    whole = sum(curve.p_whole[at] <= 0.05 for curve, at in zip(runs, best, strict=True))
    result.inside(
        "best models rejected by the whole vector",
        whole,
        0.6 * len(runs),
        len(runs),
        "5 of 5",
        digits=0,
    )
    late = np.concatenate([curve.p_top[5:] for curve in runs])
    result.inside(
        "share of epochs (from the sixth) with p ≤ 0.05",
        (late <= 0.05).mean(),
        0.8,
        1.0,
        "0.985",
        digits=3,
    )
    if context.draw:
        draw(result, context, runs, "v_mnist")
    return result
