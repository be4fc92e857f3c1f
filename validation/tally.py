"""Answers from tallies beside those from rows.

``python -m validation.tally`` prints the table of ``docs/concepts/tallies.md``. It fails where
estimates differ by more than rounding, or brackets do not meet.
"""

from __future__ import annotations

import warnings

import numpy as np

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


def agreement(n: int = 20_000) -> None:
    """Print estimates and p-values of one data set."""
    rng = np.random.default_rng(2)
    p = rng.beta(0.3, 0.6, n)
    data = ct.Predictions.of(p, (rng.random(n) < p + 0.02 * p * (1 - p)).astype(int), as_is=True)
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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    agreement()
