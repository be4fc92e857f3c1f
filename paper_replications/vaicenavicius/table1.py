"""A classifier that every usual lens calls calibrated, and that is wrong on every row.

Six predictions, equally likely, with the true distribution of the label beside each. The
confidence of the predicted class is right, every probability of a single class is right, and so is
every probability of a group of classes; yet each whole vector is off by total variation 0.1. Only
a test of the whole vector can see that: its power grows to 1 with the sample, while the others stay
at their level for ever.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import caltest as ct
from caltest.data.lenses import Lens
from caltest.plots.chart import GREY
from paper_replications.conventions import COLUMNS, ask
from paper_replications.model import Context, Result, Table, canvas, key, named

PAPER = "Vaicenavicius et al. 2019"
WHERE = "Example 1, Table 1, Figure 2"

SIZES = (50, 100, 200, 300, 500, 1000)
POWER = (0.15, 0.35, 0.70, 0.91, 0.99, 1.0)
MEANS = (0.199, 0.159, 0.135, 0.127, 0.118, 0.113)
#: Data sets behind the numbers that are compared with.
KNOWN = 300
SIX = ct.ECE(ct.UniformBins(10))  # a cell for each of the six predictions


def run(context: Context) -> Result:
    """Check the identities exactly, and the power of three tests by simulation."""
    result = Result()
    six = ct.examples.SixPoints()
    g, r = six.probs, six.truth
    _identities(result, g, r)
    repeats = context.times(300, 60)
    lenses: tuple[Lens, ...] = (ct.Canonical(), ct.TopK(1), ct.OneVsRest(0))
    rejected = np.zeros((len(SIZES), 3, repeats), dtype=bool)
    estimates = np.zeros((len(SIZES), repeats))
    for i, n in enumerate(SIZES):
        for j in range(repeats):
            data = six.sample(n, context.rng(1, i, j))
            for k, lens in enumerate(lenses):
                test = ct.calibration_test(
                    data, None, SIX, lens=lens, n_resamples=199, rng=context.rng(2, i, j, k)
                )
                rejected[i, k, j] = test.pvalue <= 0.05
                if k == 0:
                    estimates[i, j] = test.estimate
    for i, n in enumerate(SIZES):
        result.share(
            f"power of the test of the whole vector at n = {n}",
            rejected[i, 0],
            POWER[i],
            paper_trials=KNOWN,
            rounding=0.005,
        )
        result.simulated(
            f"mean estimate of the whole vector at n = {n} (truth 0.1)",
            estimates[i],
            MEANS[i],
            paper_error=estimates[i].std() / np.sqrt(KNOWN),
            rounding=0.0005,
            digits=3,
        )
    result.inside("power at n = 1000", rejected[-1, 0].mean(), 0.98, 1.0, "≥ 0.98", digits=3)
    for k, name in ((1, "top class"), (2, "class 1 against the rest")):
        limit = 0.05 + 4.0 * np.sqrt(0.05 * 0.95 / rejected[:, k].size)
        rate = rejected[:, k].mean()
        result.inside(
            f"rejections by the test of the {name}, all n", rate, 0.0, limit, "≤ 0.05", digits=3
        )
    data = six.sample(1000, context.rng(3))
    rows = [ask(data, SIX, lens, context.seed).row(repr(lens)) for lens in lenses]
    result.tables.append(
        Table("One sample of n = 1000, two conventions.", ["lens", *COLUMNS], rows)
    )
    if context.draw:
        _draw(result, context, g, r, rejected.mean(axis=2))
    return result


def _identities(result: Result, g: np.ndarray, r: np.ndarray) -> None:
    top = g.argmax(axis=1)
    correct = r[np.arange(6), top]
    result.near("P(correct | confidence 0.6)", correct.mean(), 0.6, 1e-12)
    for row, (ours, paper) in enumerate(zip(correct, (0.6, 0.7, 0.6, 0.5, 0.7, 0.5), strict=True)):
        result.near(f"P(correct) of prediction {row + 1}", ours, paper, 1e-12, digits=1)
    worst = max(abs(r[g[:, k] == v, k].mean() - v) for k, v in product(range(3), (0.1, 0.3, 0.6)))
    result.near("largest error of the nine statements P(Y = k | g_k = v) = v", worst, 0.0, 1e-12)
    worst = max(abs(correct[top == k].mean() - 0.6) for k in range(3))
    result.near("largest error of P(correct) given the predicted class", worst, 0.0, 1e-12)
    ranked = np.take_along_axis(r, np.argsort(-g, axis=1), axis=1).mean(axis=0)
    for rank, (ours, paper) in enumerate(zip(ranked, (0.6, 0.3, 0.1), strict=True)):
        result.near(f"P(label has rank {rank + 1})", ours, paper, 1e-12, digits=1)
    worst = max(
        abs((1.0 - r[g[:, k] == v, k]).mean() - (1.0 - v))
        for k, v in product(range(3), (0.1, 0.3, 0.6))
    )
    result.near("largest error of the three partitions into two groups", worst, 0.0, 1e-12)
    six = ct.examples.SixPoints()
    gaps = 0.5 * np.abs(r - g).sum(axis=1)
    result.near("expected miscalibration, total variation", gaps.mean(), 0.1, 1e-12)
    result.near("worst row, total variation", gaps.max(), 0.1, 1e-12)
    result.near(
        "expected miscalibration, squared distance",
        six.expected_miscalibration("sqeuclidean"),
        0.02,
        1e-12,
    )
    result.near(
        "expected miscalibration, l2", np.linalg.norm(r - g, axis=1).mean(), 0.02**0.5, 1e-12
    )
    result.near("mean prediction of class 1", g[:, 0].mean(), 1 / 3, 1e-12)
    result.near("frequency of class 1", r[:, 0].mean(), 1 / 3, 1e-12)
    result.near("expected Brier score of the predictions", _brier(g, r), 0.54, 1e-12)
    result.near("expected Brier score of the truth", _brier(r, r), 0.52, 1e-12)


def _brier(p: np.ndarray, truth: np.ndarray) -> float:
    """Expected squared distance of a prediction from the one-hot label."""
    return float(((p**2).sum(axis=1) + 1.0 - 2.0 * (p * truth).sum(axis=1)).mean())


def _draw(
    result: Result, context: Context, g: np.ndarray, r: np.ndarray, power: np.ndarray
) -> None:
    figure, (left, right) = canvas(5.8, 2, height_ratios=(1.6, 1.0))
    # 1000 rows of each prediction, with labels in exactly the true proportions
    labels = np.concatenate([np.repeat((1, 2, 3), np.rint(1000 * row).astype(int)) for row in r])
    rows = ct.Predictions.of(np.repeat(g, 1000, axis=0), labels, classes=[1, 2, 3])
    picture = ct.reliability_simplex(rows, bins=4, rng=context.seed).plot(left)
    named(picture, "from prediction to truth")
    for k, name in enumerate(("whole vector", "top class", "class 1 against the rest")):
        right.plot(SIZES, power[:, k], label=name)
    right.axhline(0.05, color=GREY, lw=0.8, ls="--", label="0.05")
    right.set(xscale="log", xlabel="n", ylabel="share of data sets rejected", ylim=(-0.03, 1.03))
    right.set_xticks(SIZES, [str(n) for n in SIZES])
    right.minorticks_off()
    key(right, ncols=2)
    caption = "Above: predictions and truth on the simplex. Below: power of three tests at 5 %."
    result.save(figure, "v_table1", caption, context)
