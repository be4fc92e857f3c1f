"""Where the ranges of adaptive binning lie while a network is trained.

Adaptive bins follow the predictions, and the predictions of a trained network are nearly all next
to 0: nine ranges of ten look at probabilities below a thousandth. With a threshold the opposite
happens: on the training set, once every image is fitted, the lowest range begins above 0.99.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from caltest.plots.chart import INK, LABEL
from paper_replications import nets
from paper_replications.model import Context, Result, canvas

PAPER = "Nixon et al. 2019"
WHERE = "Figure 2"
RECONSTRUCTION = "digits in place of Fashion-MNIST and MNIST."

SHOWN = (1, 5, 10, 20, 50, 100)
SMALL = (0.00, 0.31, 0.55, 0.72, 0.83, 0.87)
LARGE = (0.00, 0.14, 0.32, 0.48, 0.68, 0.80)


def lower_bounds(probs: np.ndarray, ranges: int, threshold: float = 0.0) -> np.ndarray:
    """Return the smallest prediction of each range of equal count, all classes pooled."""
    pooled = np.sort(probs[probs > threshold] if threshold else probs.ravel())
    size = pooled.size // ranges
    return np.asarray(pooled[np.arange(ranges) * max(size, 1)])


def run(context: Context) -> Result:
    """Train 200 epochs on the clean digits and follow the ranges."""
    result = Result()
    split = nets.digits(0.0, 900, 897)
    (x, y), (xv, _) = split.train, split.validation
    adaptive, fitted, thresholded, kept = [], [], [], []
    for parameters in nets.train(x, y, epochs=200, seed=0):
        probs = softmax(nets.logits(parameters, xv), axis=1)
        adaptive.append(lower_bounds(probs, 100))
        thresholded.append(lower_bounds(probs, 50, 0.01))
        kept.append(float((probs > 0.01).mean()))
        fitted.append(lower_bounds(softmax(nets.logits(parameters, x), axis=1), 15, 0.01))
    top, bottom, train = np.array(adaptive), np.array(thresholded), np.array(fitted)
    for epoch, small, large in zip(SHOWN, SMALL, LARGE, strict=True):
        result.near(
            f"share of the 100 lower bounds below 0.001, epoch {epoch}",
            (top[epoch - 1] < 1e-3).mean(),
            small,
            0.05,
            digits=2,
        )
        result.near(
            f"thresholded: share of the 50 lower bounds above 0.9, epoch {epoch}",
            (bottom[epoch - 1] > 0.9).mean(),
            large,
            0.07,
            digits=2,
        )
    result.inside(
        "lower bounds of 100 above 0.5, last epoch", (top[-1] > 0.5).sum(), 7, 10, "8 … 9", digits=0
    )
    result.near(
        "thresholded: share of predictions kept, last epoch", kept[-1], 0.118, 0.02, digits=3
    )
    result.near(
        "thresholded: median lower bound, epoch 100", np.median(bottom[99]), 1.0, 0.005, digits=3
    )
    result.near("training set: lowest bound, epoch 50", train[49, 0], 0.010, 0.005, digits=3)
    result.inside(
        "training set: second-lowest bound, epoch 100", train[99, 1], 0.9, 1.0, "> 0.96", digits=3
    )
    result.inside(
        "training set: lowest bound, epoch 200", train[-1, 0], 0.98, 1.0, "> 0.99", digits=3
    )
    if context.draw:
        figure, axes = canvas(4.6, 2, 2, sharex=True)
        titles = (
            "adaptive, 100 ranges,\nvalidation, log scale",
            "adaptive, 100 ranges,\nvalidation",
            "threshold 0.01, 15 ranges,\ntraining",
            "threshold 0.01, 50 ranges,\nvalidation",
        )
        panels = zip(axes.ravel(), (top, top, train, bottom), titles, strict=True)
        for axis, bounds, title in panels:
            epochs, last = np.arange(1, 201), bounds.shape[1] - 1
            axis.plot(epochs, bounds, color="#bdbdbd", lw=0.4, ls="-", marker="")
            for j, label, line in (
                (last, "highest", "-"), (last // 2, "middle", "--"), (0, "lowest", ":"),
            ):  # fmt: skip
                axis.plot(epochs, bounds[:, j], color=INK, lw=1.1, ls=line, marker="", label=label)
            axis.set_title(title, fontsize=LABEL - 1.0)
        for axis in axes[:, 0]:
            axis.set_ylabel("lower bound")
        for axis in axes[1]:
            axis.set_xlabel("epoch")
        for axis in axes.ravel()[1:]:
            axis.set_ylim(-0.03, 1.03)
        axes[0, 0].set(yscale="log", ylim=(1e-12, 1))
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper left", ncols=3)
        caption = "Lower bounds of the ranges, a grey line each; three of them are black."
        result.save(figure, "n_figure2", caption, context)
    return result
