"""Answers from tallies beside those from rows, and how often tests from tallies reject.

``python -m validation.tally`` prints both tables of ``docs/scale.md``; two minutes of one core. It
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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--size" not in sys.argv:
        agreement()
    size()
