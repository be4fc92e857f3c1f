"""Proposition 1 and Theorems 1 and 2 as numbers.

*Proposition 1:* a model that predicts P(Y | h(X)) is calibrated whatever h is, also when h throws
nearly everything away; so calibration alone does not make a model good. *Theorem 1:* with more
samples and finer bins the estimate converges to the true error. *Theorem 2:* with the bins held
fixed it converges to less, unless the deviation keeps one sign in every bin. For the model
β₀ = β₁ = 1 that is the case as soon as one edge lies where the deviation changes sign, at
p* = 1/(1 + exp(−2/3)): two bins are then as good as infinitely many.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

import caltest as ct
from caltest.plots.chart import RED
from paper_replications.mixture import ETA, limit
from paper_replications.model import Context, Result, canvas, key

PAPER = "Vaicenavicius et al. 2019"
WHERE = "Proposition 1, Theorems 1 and 2"

#: Ticks of the figure.
SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)
NESTED = (1, 2, 4, 8, 16, 32, 64, 128)
SHORT = (
    -0.391482, -0.063405, -0.031181, -0.003867, -0.002441, -0.0000651, -0.0000651, -0.0000356,
)  # fmt: skip
#: What h keeps of x, and the edges of its cells on the line.
COARSENINGS: dict[str, tuple[np.ndarray | None, float]] = {
    "constant": (np.array([-np.inf, np.inf]), 0.693147),
    "sign": (np.array([-np.inf, 0.0, np.inf]), 0.437433),
    "rounded": (np.r_[-np.inf, np.arange(-8, 8) + 0.5, np.inf], 0.374131),
    "x itself": (None, 0.356316),
}


def run(context: Context) -> Result:
    """Check the three statements on the Gaussian mixture."""
    result = Result()
    for j, (name, (edges, known)) in enumerate(COARSENINGS.items()):
        result.near(f"expected nLL of P(Y | {name})", _expected_nll(edges), known, 1e-6, digits=6)
        pvalues = _pvalues(edges, context, j)
        share = float((pvalues <= 0.05).mean())
        limit_of_share = 0.05 + 4.0 * np.sqrt(0.05 * 0.95 / pvalues.size)
        result.inside(
            f"share of p ≤ 0.05 for P(Y | {name})", share, 0.0, limit_of_share, "≤ 0.05", digits=3
        )
    shortfalls = [limit(np.arange(m + 1) / m) - ETA for m in NESTED]
    for m, ours, known in zip(NESTED, shortfalls, SHORT, strict=True):
        tolerance = 6e-7 if abs(known) > 1e-3 else 6e-8
        result.near(f"limit minus truth, {m} bins", ours, known, tolerance, digits=6)
    result.holds(
        "refining nested bins never lowers the limit (Theorem 1)",
        bool((np.diff(shortfalls) >= -1e-12).all()),
        f"smallest step {np.diff(shortfalls).min():.1e}",
    )
    limits = np.array([limit(np.arange(m + 1) / m) for m in range(1, 101)])
    result.holds(
        "limit ≤ truth for every number of bins from 1 to 100 (Theorem 2)",
        bool((limits <= ETA + 1e-12).all()),
        f"largest excess {(limits - ETA).max():.1e}",
    )
    star = expit(2.0 / 3.0)
    result.near("where the deviation changes sign", star, 0.6607563688, 1e-10, digits=10)
    result.near(
        "truth minus limit of two bins cut there", ETA - limit(np.array([0, star, 1])), 0.0, 1e-12
    )
    result.near("truth minus limit of three equal bins", ETA - limits[2], 1.1e-4, 1e-5, digits=6)
    if context.draw:
        figure, axes = canvas(2.7)
        axes.plot(np.arange(1, 101), limits, ms=2.5, label="limit of the estimate")
        axes.axhline(ETA, color=RED, lw=0.9, ls="--", label="true error")
        axes.set(xscale="log", xlabel="bins of equal width", ylabel="error (total variation)")
        axes.set_xticks(SHOWN, [str(m) for m in SHOWN])
        axes.minorticks_off()
        key(axes, ncols=2)
        result.save(figure, "v_a2", "With the bins fixed the estimate converges to less.", context)
    return result


def _expected_nll(edges: np.ndarray | None) -> float:
    if edges is None:

        def integrand(x: float) -> float:
            g = expit(-2.0 * x)
            return -(norm.pdf(x, -1.0) * np.log(g) + norm.pdf(x, 1.0) * np.log1p(-g)) / 2.0

        return float(quad(integrand, -12.0, 12.0, epsabs=1e-12, limit=200)[0])
    minus, plus = 0.5 * _masses(edges)
    g = minus / (minus + plus)
    return float(-(minus @ np.log(g) + plus @ np.log1p(-g)))


def _masses(edges: np.ndarray) -> np.ndarray:
    """Probabilities of the cells under either class, shape (2, cells), accurate in both tails."""
    left = np.diff(norm.cdf(edges, np.array([[-1.0], [1.0]])))
    right = -np.diff(norm.sf(edges, np.array([[-1.0], [1.0]])))
    return np.where(edges[1:] > 1.0, right, left)


def _model(edges: np.ndarray | None) -> Callable[[np.ndarray], np.ndarray]:
    """Return g₁ = P(Y = −1 | h(x)) as a function of x."""
    if edges is None:
        return lambda x: expit(-2.0 * x)
    minus, plus = _masses(edges)
    return lambda x: (minus / (minus + plus))[np.searchsorted(edges, x) - 1]


def _pvalues(edges: np.ndarray | None, context: Context, key: int) -> np.ndarray:
    model, pvalues = _model(edges), []
    for j in range(context.times(400, 100)):
        rng = context.rng(4, key, j)
        signs = 2 * rng.integers(0, 2, 500) - 1
        p = model(rng.normal(signs, 1.0))
        data = ct.Predictions.of(np.column_stack([p, 1.0 - p]), (signs > 0).astype(int))
        pvalues.append(ct.calibration_test(data, None, ct.ECE(10), lens=ct.Canonical()).pvalue)
    return np.array(pvalues)
