"""Answers from tallies beside those from rows, and how often tests from tallies reject.

``python -m validation.tally`` prints the tables of ``docs/scale.md``; four minutes of one core. It
fails where estimates differ by more than rounding, brackets do not meet, or calibrated models are
rejected more often than chance allows.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy.stats import binom

import caltest as ct

BINNED = (
    ct.ECE(),
    ct.ECE(ct.QuantileBins(15)),
    ct.MCE(10),
    ct.RMSCE(ct.UniformBins(10)),
    ct.HosmerLemeshow(ct.UniformBins(10)),
    ct.CalibrationInTheLarge(),
)
DRAWN = (
    ct.DebiasedL1(),
    ct.DebiasedL2(),
    ct.CoxScore(),
    ct.ScoreGap(),
    ct.ScoreGap("log"),
    ct.BrierScore(),
    ct.KolmogorovSmirnov(),
    ct.Kuiper(),
    ct.MultiScale([2, 4, 8, 16, 32, 64]),
)
#: Those that see no further than the cells.
COARSE = (ct.ECE(ct.QuantileBins(15)), ct.KolmogorovSmirnov(), ct.Kuiper())
#: Data sets of which the size is counted, rows of each, and draws behind a p-value.
SETS, ROWS, B = 200, 300, 199
SHAPES = {"uniform": (1.0, 1.0), "Beta(0.3, 0.6)": (0.3, 0.6), "Beta(0.1, 3)": (0.1, 3.0)}


def agreement(n: int = 20_000) -> None:
    """Print estimates and p-values of one data set."""
    rng = np.random.default_rng(2)
    p = rng.beta(0.3, 0.6, n)
    data = ct.Predictions.of(p, (rng.random(n) < p + 0.02 * p * (1 - p)).astype(int))
    tally = ct.Tally.of(data)
    print("| statistic | from rows | tally − rows | p from rows | p from a tally |")
    print("|---|--:|--:|--:|--:|")
    for statistic in (*BINNED, *DRAWN):
        a, b = (ct.calibration_test(x, None, statistic, rng=1) for x in (data, tally))
        apart = b.estimate - a.estimate
        name = f"`{statistic!r}`".replace(", distance='tv'", "")
        shown = f"{a.estimate:.6g} | {apart:.0e} | {a.pvalue:.4f} | {b.pvalue:.4f}"
        print(f"| {name} | {shown} |")
        assert statistic in COARSE or abs(apart) <= 1e-11 * max(1.0, abs(a.estimate))
        assert statistic in COARSE[:1] or (
            a.pvalue_bracket[0] <= b.pvalue_bracket[1]
            and b.pvalue_bracket[0] <= a.pvalue_bracket[1]
        )


def size() -> None:
    """Print how often tests from tallies reject calibrated models at 5 %."""
    limit = int(binom.isf(1e-3 / 45, SETS, 0.05))
    print(
        f"\n| of {SETS} data sets, n = {ROWS} | {' | '.join(SHAPES)} |\n|---|{'--:|' * len(SHAPES)}"
    )
    for statistic in (*BINNED, *DRAWN):
        rates = []
        for shape in SHAPES.values():
            rejected = 0
            for j in range(SETS):
                rng = np.random.default_rng([j, 7])
                p = rng.beta(*shape, ROWS)
                tally = ct.Tally.of(ct.Predictions.of(p, (rng.random(ROWS) < p).astype(int)))
                test = ct.calibration_test(tally, None, statistic, n_resamples=B, rng=j)
                rejected += test.pvalue <= 0.05
            assert rejected <= limit, (statistic, rejected)
            rates.append(f"{rejected / SETS:.3f}")
        print(
            f"| `{statistic!r}` | {' | '.join(rates)} |".replace(", distance='tv'", ""), flush=True
        )


def two_models(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return two models of the same squared error, and the outcomes."""
    if kind.startswith("both calibrated"):
        t = rng.beta(*((0.5, 0.8) if kind == "both calibrated" else (0.05, 2.0)), n)
        fifth = np.searchsorted(np.quantile(t, [0.2, 0.4, 0.6, 0.8]), t)
        a, b = t, (np.bincount(fifth, t) / np.bincount(fifth))[fifth]
    elif kind == "error 0.08 each":
        t = rng.uniform(0.1, 0.9, n)
        a, b = t + 0.08 * np.sign(t - 0.5), t + 0.08
    else:
        t = rng.choice([0.02, 0.2, 0.5], n, p=[0.9, 0.08, 0.02])
        a, b = 1.5 * t, 0.5 * t
    return a, b, (rng.random(n) < t).astype(int)


def pairs(sets: int = 400) -> None:
    """Print how often models of equal error, on the same rows, are told apart at 5 %."""
    kinds = ("both calibrated", "both calibrated, rare", "error 0.08 each", "half too much, rare")
    sizes = (300, 5000)
    limit = int(binom.isf(1e-3 / 8, sets, 0.05))
    print(f"\n| of {sets} data sets | n = 300 | n = 5000 |\n|---|--:|--:|")
    for kind in kinds:
        found = []
        for n in sizes:
            tallies = (
                ct.PairTally.of(*two_models(kind, n, np.random.default_rng([j, n])))
                for j in range(sets)
            )
            rejected = sum(ct.compare(p, n_resamples=19, rng=1).pvalue <= 0.05 for p in tallies)
            assert rejected <= limit, (kind, n, rejected)
            found.append(f"{rejected / sets:.3f}")
        print(f"| {kind} | {' | '.join(found)} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--size" not in sys.argv:
        agreement()
    size()
    pairs()
