"""A pathology of static bins: perfect ranking, no error, and not calibrated.

Negatives predicted between 0.41 and 0.43, positives between 0.47 and 0.49, 45 % positives: with
ten bins all of them share one bin, their errors cancel, and the ECE is 0. The p-value of a blind
statistic is as blind: it is 1. Fifteen bins, bins of equal mass, or any statistic without bins
find the error of 0.47 at once, so that it is worth asking several questions.
"""

from __future__ import annotations

import warnings

import numpy as np

import caltest as ct
from paper_replications.conventions import COLUMNS, ask
from paper_replications.model import Context, Result, Table

PAPER = "Nixon et al. 2019"
WHERE = "§3.4"


def pathology(n: int, exact_zero: bool = False) -> ct.Predictions:
    """Return n predictions, 45 % of them of positives; evenly spaced, no randomness."""
    positives = round(0.45 * n)
    low, high = (0.4154545454, 0.4354545455) if exact_zero else (0.41, 0.43)

    def spaced(a: float, b: float, m: int) -> np.ndarray:
        return a + (b - a) * (np.arange(m) + 0.5) / m

    p = np.concatenate([spaced(low, high, n - positives), spaced(0.47, 0.49, positives)])
    with warnings.catch_warnings():  # predictions add up to exactly the number of events: meant so
        warnings.simplefilter("ignore", ct.DoubtfulInputWarning)
        return ct.Predictions.of(p, np.arange(n) >= n - positives, as_is=True)


def run(context: Context) -> Result:
    """Measure the same data by blind and by seeing statistics."""
    result, rows = Result(), []
    one = ct.OneVsRest(1)
    for exact_zero, known in (
        (
            False,
            {
                "mean": 0.447,
                "ten": 0.003,
                "more": 0.465,
                "mass": 0.4221,
                "tree": 0.4518,
                "z": -20.4,
                "kernel": 0.1456,
            },
        ),
        (
            True,
            {
                "mean": 0.45,
                "ten": 0.0,
                "more": 0.468,
                "mass": 0.4245,
                "tree": 0.4548,
                "z": -20.1,
                "kernel": 0.1444,
            },
        ),
    ):
        data = pathology(2000, exact_zero)
        name = "exact-zero variant" if exact_zero else "the paper's ranges"
        p, y = data.probs[:, 1], data.labels
        result.holds(
            f"{name}: every positive ranks above every negative",
            p[y == 1].min() > p[y == 0].max(),
            "AUC 1",
        )
        result.near(f"{name}: mean prediction", p.mean(), known["mean"], 1e-9, digits=3)
        for m in (5, 10):
            answer = ask(data, ct.ECE(m), one, context.seed)
            rows.append(answer.row(name, f"ECE({m})"))
            result.near(f"{name}: ECE, {m} bins", answer.estimate, known["ten"], 1e-9, digits=5)
            result.inside(
                f"{name}: p-value, {m} bins",
                answer.p,
                0.75,
                1.0,
                "1.0" if exact_zero else "0.80",
                digits=2,
            )
        truth = float(np.abs(y - p).mean())
        result.near(f"{name}: true error E|r − g|", truth, known["more"], 5.1e-4, digits=3)
        for m in (15, 20, 25, 50, 100):
            test = ct.calibration_test(data, None, ct.ECE(m), lens=one)
            result.near(f"{name}: ECE, {m} bins", test.estimate, known["more"], 6e-4, digits=3)
            result.inside(f"{name}: p-value, {m} bins", test.pvalue, 0.0, 1e-4, "1/(B + 1)")
        for label, statistic, value in (
            ("10 bins of equal mass", ct.ECE(ct.QuantileBins(10)), known["mass"]),
            ("data-dependent bins", ct.ECE(ct.VarianceTree(100)), known["tree"]),
        ):
            answer = ask(data, statistic, one, context.seed, published=context.times(999, 99))
            rows.append(answer.row(name, label))
            result.near(f"{name}: error, {label}", answer.estimate, value, 1.1e-3, digits=4)
            result.inside(f"{name}: p-value, {label}", answer.p, 0.0, 0.001, "1/(B + 1)")
        kernel = ct.calibration_test(
            data, None, ct.SKCE(), lens=one, n_resamples=199, rng=context.seed
        )
        result.near(f"{name}: SKCE, unbiased", kernel.estimate, known["kernel"], 1.5e-4, digits=4)
        result.inside(f"{name}: p-value, SKCE", kernel.pvalue, 0.0, 0.0051, "0.002")
        z = ct.Spiegelhalter()(data)
        result.near(
            f"{name}: Spiegelhalter's z (sign by convention)", -abs(z), known["z"], 0.051, digits=1
        )
    z = ct.Spiegelhalter()(pathology(100))
    result.near("Spiegelhalter's z at n = 100", -abs(z), -4.6, 0.051, digits=1)
    result.tables.append(Table("n = 2000, two conventions.", ["data", "statistic", *COLUMNS], rows))
    return result
