"""The ECE grows with the number of bins, and so does its noise floor.

The page draws the ECE of calibrated data against the number of bins and finds that it rises five
fold from 10 to 299. Laid over the null distribution on these predictions, the rise
disappears: the curve follows its noise floor, and the p-value never leaves the range of a
calibrated model. More data have the opposite effect, in proportion to 1/√n.
"""

from __future__ import annotations

import numpy as np

import caltest as ct
from caltest.plots.chart import GREY, INK, RED
from paper_replications.calzone_docs.values import simulated
from paper_replications.model import Context, Result, canvas, key

PAPER = "calzone documentation"
WHERE = "ECE and MCE as function of bin size"

POINTS = (10, 20, 50, 100, 150, 200, 250, 299)
WIDTH = (0.012088, 0.018880, 0.026399, 0.037788, 0.042491, 0.054374, 0.059451, 0.065202)
COUNT = (0.008734, 0.012315, 0.022371, 0.030116, 0.039797, 0.048425, 0.056945, 0.060830)
FLOORS = {10: 0.0124, 50: 0.0276, 100: 0.0391, 200: 0.0555, 299: 0.0677}
BY_SIZE = {100: 0.0868, 500: 0.0392, 1000: 0.0284, 5000: 0.0123, 20_000: 0.0063, 100_000: 0.0028}


def run(context: Context) -> Result:
    """Compute the two curves, the noise floor, and the effect of the sample size."""
    result = Result()
    data, bins = simulated(), range(10, 300)
    width, count = (
        np.array([ct.presets.calzone(metric, bins=m)(data) for m in bins])
        for metric in ("ece-h", "ece-c")
    )
    for name, curve, known in (("width", width, WIDTH), ("count", count, COUNT)):
        for m, value in zip(POINTS, known, strict=True):
            result.near(f"ECE, {m} bins of equal {name}", curve[m - 10], value, 6e-7, digits=6)
        result.near(
            f"correlation of the curve with the number of bins, equal {name}",
            np.corrcoef(bins, curve)[0, 1],
            0.980 if name == "width" else 0.978,
            5e-4,
            digits=3,
        )
    result.holds(
        "the two curves differ at every number of bins",
        bool((width != count).all()),
        f"smallest difference {np.abs(width - count).min():.1e}",
    )
    tests = {
        m: ct.calibration_test(data, None, **ct.presets.calzone("ece-h", bins=m), null="exact")
        for m in (10, 20, 30, 50, 75, 100, 150, 200, 250, 299)
    }
    for m, floor in FLOORS.items():
        result.near(f"noise floor, {m} bins", tests[m].null_mean, floor, 4e-4)
    low, high = min(t.pvalue for t in tests.values()), max(t.pvalue for t in tests.values())
    result.holds(
        "the p-value stays between 0.3 and 1 for every number of bins",
        low > 0.3 and high < 1.0,
        f"{low:.2f} … {high:.2f}",
        "0.5 … 0.96",
    )
    _by_size(result, context)
    if context.draw:
        figure, (top, axes) = canvas(4.0, 2, sharex=True, gridspec_kw={"height_ratios": (1, 3)})
        low_band, high_band = np.array([_band(t) for t in tests.values()]).T
        means = [t.null_mean for t in tests.values()]
        top.plot(list(tests), [t.pvalue for t in tests.values()], color=INK)
        top.axhline(0.05, color=GREY, ls="--", lw=0.8, label="0.05")
        key(top)
        top.set(ylabel="p", ylim=(0, 1.05))
        axes.fill_between(
            list(tests),
            low_band,
            high_band,
            color="#d9d9d9",
            lw=0,
            label="5–95 % under calibration",
        )
        plain = {"marker": "", "lw": 0.9}
        axes.plot(list(tests), means, **plain, color=INK, ls="--", label="noise floor")
        axes.plot(bins, width, **plain, color=RED, ls="-", label="equal width")
        axes.plot(bins, count, **plain, color="#8fc1ee", ls="-", label="equal count")
        axes.set(xlabel="number of bins", ylabel="ECE, class 1, n = 5000")
        key(axes, ncols=2)
        caption = (
            "The page's two curves, the noise floor with bins of equal width, and the "
            "p-value (dashed: 0.05)."
        )
        result.save(figure, "c_curve", caption, context)
    return result


def _band(test: ct.CalibrationTestResult) -> tuple[float, float]:
    law = test.null_distribution
    assert law is not None
    return law.ppf(0.05), law.ppf(0.95)


def _by_size(result: Result, context: Context) -> None:
    means = []
    for j, (n, known) in enumerate(BY_SIZE.items()):
        values = []
        for i in range(context.times(200, 40)):
            rng = context.rng(5, j, i)
            p = rng.beta(0.5, 0.5, n)
            values.append(ct.ECE(10)(p, (rng.random(n) < p).astype(np.int64)))
        means.append(np.mean(values))
        error = float(np.std(values)) / np.sqrt(200)
        result.simulated(
            f"mean ECE of calibrated data, n = {n}", values, known, paper_error=error,
            rounding=5e-5,
        )  # fmt: skip
    slope = np.polyfit(np.log(list(BY_SIZE)), np.log(means), 1)[0]
    result.near("slope of log ECE against log n", slope, -0.5, 0.02, digits=3)
