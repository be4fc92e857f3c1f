"""Theorem 2 as a picture: the error that cells show, the true error, and intervals."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import caltest as ct
from caltest.inference import confidence_interval

TARGET = Path(__file__).parents[1] / "concepts" / "theorem2.svg"
MODEL, N, SEED = ct.examples.GaussianMixture(0.2, -3.0), 2000, 2
BINS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50)


def binned(m, p, r):
    """The error of m cells when there are very many predictions p, right with chance r."""
    return np.abs(np.bincount(ct.UniformBins(m)(p), r - p)).sum() / p.size


if __name__ == "__main__":
    p = MODEL.sample(2_000_000, rng=0).probs[:, 0]
    r = MODEL.calibration_function(p)
    limits = [binned(m, p, r) for m in BINS]
    data = MODEL.sample(N, rng=SEED)
    answers = [
        confidence_interval(data, None, ct.ECE(m), lens=ct.OneVsRest(0), rng=SEED) for m in BINS
    ]
    for m, limit, answer in zip(BINS, limits, answers, strict=True):
        print(f"{m:>3} bins: error {limit:.4f}, interval {answer.low:.4f} to {answer.high:.4f}")
    true = MODEL.expected_miscalibration()
    print(f"true error {true:.4f}")
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "caltest", "font.size": 9}):
        figure = Figure(figsize=(6.0, 3.2), layout="constrained")
        axes = figure.subplots()
        low, high = ([getattr(a, end) for a in answers] for end in ("low", "high"))
        axes.vlines(BINS, low, high, color="#9db8d2", linewidth=6, label=f"95 % interval, n = {N}")
        axes.plot(BINS, [a.estimate for a in answers], "o", color="#1f4e79", label="ECE", zorder=3)
        axes.plot(BINS, limits, color="#b5532a", label="error of the cells")
        axes.axhline(true, color="black", linestyle="--", linewidth=1, label="true error")
        axes.set(xscale="log", xticks=BINS, xticklabels=BINS, xlabel="bins", ylim=(0, None))
        axes.set_ylabel("calibration error")
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left", ncols=2)
        axes.set_ylim(0, 1.35 * max(high))
        figure.savefig(TARGET, metadata={"Date": None})
