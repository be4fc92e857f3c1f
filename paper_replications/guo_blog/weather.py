"""A forecast of 80 % sunshine on thirty days, and eighteen days of sun.

The forecast was wrong on 40 % of the days where it promised 20 %. Is the forecaster bad, or was the
month unlucky? With one prediction the answer is a binomial test, and caltest's exact null is it to
twelve digits: such a month happens to a good forecaster once in a hundred. It rejects at 5 %, not
at 1 %.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import binom, binomtest

import caltest as ct
from caltest.plots.chart import PALE, RED
from paper_replications.conventions import COLUMNS, ask
from paper_replications.model import Context, Result, Table, canvas, key

PAPER = "Blog on Guo et al. 2017"
WHERE = "the weather example"


def run(context: Context) -> Result:
    """Compare the exact p-value with the binomial test."""
    result = Result()
    data = ct.Predictions.of(np.full(30, 0.8), np.arange(30) < 18)
    test = ct.calibration_test(data, None, ct.ECE(), lens=ct.OneVsRest(1))
    result.near("gap between promise and outcome", test.estimate, 0.2, 1e-12)
    result.near("exact p-value", test.pvalue, 0.010731062, 5e-10, digits=9)
    oracle = binomtest(18, 30, 0.8).pvalue
    result.near("the same by the binomial test", test.pvalue, oracle, 1e-12, digits=12)
    result.near("P(at most 18 sunny days)", binom.cdf(18, 30, 0.8), 0.009493122, 5e-10, digits=9)
    result.holds(
        "rejected at 5 %, not at 1 %", 0.01 < test.pvalue <= 0.05, f"p = {test.pvalue:.4f}"
    )
    row = ask(data, ct.ECE(), ct.OneVsRest(1), context.seed, n_resamples=9999).row("thirty days")
    result.tables.append(Table("Two conventions.", ["data", *COLUMNS], [row]))
    if context.draw:
        figure, (left, right) = canvas(4.6, 2)
        days = np.arange(12, 31)
        extreme = np.abs(days / 30 - 0.8) >= 0.2 - 1e-9
        for far, label in ((False, "nearer to 24"), (True, "as far or farther")):
            law = binom.pmf(days, 30, 0.8) * (extreme == far)
            left.bar(days, law, color=RED if far else PALE, label=label)
        left.axvline(18, color=RED, lw=1.4, label="observed")
        key(left, ncols=2)
        left.set(xlabel="sunny days of 30 if the 80 % are right", ylabel="probability")
        left.set_xticks(days[::3])
        test.plot(right)
        caption = (
            "Sunny days, and the ECE they give; red: as far from 80 % as the observed month or "
            "further."
        )
        result.save(figure, "b_weather", caption, context)
    return result
