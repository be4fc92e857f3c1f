"""Estimates of the error are biased, and differently for different models.

Two calibrated models of a fair coin: the constant prediction 1/2 and the one that knows the
outcome. Both have true error 0, but the estimate of the first is 0.12 on average at n = 10 and
the one of the second is 0. A miscalibrated model (true error 0.2) in a single bin shows 0.042 at
n = 100, next to 0.040 of the calibrated constant: the estimates say nothing about which is which.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import binom

import caltest as ct
from caltest.plots.chart import RED
from paper_replications.model import Context, Result, canvas, key

PAPER = "Vaicenavicius et al. 2019"
WHERE = "Appendix A.1"
RECONSTRUCTION = (
    "the text of the appendix was not available; this works out the remark of §4.3 that biases can "
    "differ."
)

SIZES = (1, 2, 5, 10, 20, 50, 100, 1000, 10_000)
CONSTANT = (0.5, 0.25, 0.1875, 0.123047, 0.088099, 0.056138, 0.039795, 0.012613, 0.003989)


def run(context: Context) -> Result:
    """Compare exact binomial sums with caltest's exact null, and with the known values."""
    result = Result()
    for n, known in zip(SIZES, CONSTANT, strict=True):
        result.near(
            f"mean estimate of the constant model, n = {n}", _constant(n), known, 1e-6, digits=6
        )
    for n in (1, 5, 100, 1000):
        with warnings.catch_warnings():  # one toss can only show one error
            warnings.simplefilter("ignore", ct.DegenerateDataWarning)
            test = ct.calibration_test(np.full(n, 0.5), np.arange(n) % 2, ct.ECE(1), null="exact")
        result.near(
            f"the same by caltest's exact null, n = {n}",
            test.null_mean,
            _constant(n),
            1e-9,
            digits=6,
        )
    labels = context.rng(1).integers(0, 2, 1000)
    knowing = ct.ECE(1)(ct.Predictions(np.column_stack([1.0 - labels, labels]), labels))
    result.near("estimate of the model that knows the outcome", knowing, 0.0, 1e-15)
    for n, known in ((10, 0.135), (100, 0.042), (1000, 0.013)):
        ours = _reversed(n)
        result.near(
            f"mean estimate of the reversed model in one bin (truth 0.2), n = {n}",
            ours,
            known,
            1.5e-3,
            digits=4,
        )
    result.holds(
        "at n = 100 a calibrated model shows nearly what one with error 0.2 shows",
        abs(_reversed(100) - _constant(100)) < 0.003,
        f"{_constant(100):.4f} and {_reversed(100):.4f}",
        "0.040 and 0.042",
    )
    if context.draw:
        _draw(result, context)
    return result


def _constant(n: int) -> float:
    """E|S/n − 1/2| for S ~ Binomial(n, 1/2)."""
    s = np.arange(n + 1)
    return float(np.abs(s / n - 0.5) @ binom.pmf(s, n, 0.5))


def _reversed(n: int) -> float:
    """E|mean(Y) − mean(g)| with g = 0.4 or 0.6 at random and P(Y = 1 | g) = 1 − g.

    With M of the n predictions at 0.6 the sum of the gaps is S − 0.4 n − 0.2 M, S the number of
    events; the two binomials of S given M are convolved.
    """
    total = 0.0
    weights = binom.pmf(np.arange(n + 1), n, 0.5)
    for m in np.flatnonzero(weights > 1e-14):
        law = np.convolve(
            binom.pmf(np.arange(m + 1), m, 0.4), binom.pmf(np.arange(n - m + 1), n - m, 0.6)
        )
        total += weights[m] * float(np.abs(np.arange(n + 1) - 0.4 * n - 0.2 * m) @ law) / n
    return total


def _draw(result: Result, context: Context) -> None:
    figure, axes = canvas(2.9)
    axes.loglog(SIZES, [_constant(n) for n in SIZES], label="constant 1/2, calibrated")
    sizes = (1, 2, 5, 10, 20, 50, 100, 300)
    axes.loglog(sizes, [_reversed(n) for n in sizes], label="reversed, true error 0.2")
    axes.axhline(0.2, color=RED, ls=":", lw=1.0, label="true error of the reversed model")
    axes.set(xlabel="n", ylabel="mean estimate, one bin")
    key(axes)
    caption = (
        "Mean estimates in one bin: the calibrated model and the miscalibrated one look alike."
    )
    result.save(figure, "v_a1", caption, context)
