"""Label noise: which measure follows the true error?

Ten classes whose true probabilities are known and grow from certain to uniform with τ. The mean
class-wise error of a trained network is computed exactly from the truth, and ECE, ACE and
TACE are compared with it. On the paper's scales the ECE moves away from the truth as labels become
noisier and ACE stays with it, as claimed. Three things belong beside that: networks differ by more
than neighbouring noise levels do; at little noise TACE is the worst of the three; and much of the
trend is a matter of scale, for the ECE sums over one class and the others average over ten.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

import caltest as ct
from caltest.nulls import LabelSampler
from paper_replications import nets
from paper_replications.model import ERRORS, Context, Result, Table, canvas, key

PAPER = "Nixon et al. 2019"
WHERE = "Figure 1"
RECONSTRUCTION = "the paper gives no generator; this one has a known distribution of the label."

NOISE = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
#: τ: true error, ECE, SCE, ACE, TACE.
KNOWN = {
    0.05: (0.0100, 0.0196, 0.0111, 0.0101, 0.0393),
    0.2: (0.0100, 0.0205, 0.0119, 0.0104, 0.0392),
    0.5: (0.0118, 0.0249, 0.0136, 0.0127, 0.0367),
    1.0: (0.0127, 0.0291, 0.0146, 0.0140, 0.0242),
    2.0: (0.0153, 0.0356, 0.0179, 0.0187, 0.0219),
    5.0: (0.0228, 0.0553, 0.0228, 0.0261, 0.0262),
    10.0: (0.0268, 0.0730, 0.0245, 0.0309, 0.0309),
}
#: Networks behind these numbers.
KNOWN_NETWORKS = 3
NAMES = ("true error", "ECE", "SCE", "ACE", "TACE")


def _scores(x: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(0)
    a, w1, w2 = (rng.normal(size=shape) for shape in ((6, 10), (6, 20), (20, 10)))
    return np.asarray(3.0 * (np.tanh(x @ w1) @ w2 / np.sqrt(20) + 0.5 * x @ a / np.sqrt(6)))


def _measure(tau: float, seed: int, context: Context) -> tuple[list[float], float, float]:
    """Return the five numbers, the top-class p-value, and the expected total variation."""
    rng = context.rng(1, seed, round(100 * tau))

    def draw(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = rng.normal(size=(n, 6))
        truth = softmax(_scores(x) / tau, axis=1)
        return x, truth, LabelSampler.of(truth)(rng.random(n))

    x, _, y = draw(2000)
    *_, last = nets.train(x, y, epochs=15, seed=seed, rate=5e-3, batch=50)
    x, truth, _ = draw(50_000)
    g = softmax(nets.logits(last, x), axis=1)
    errors = []
    for k in range(10):
        order = np.argsort(g[:, k])
        gaps = (truth[:, k] - g[:, k])[order].reshape(200, 250)
        errors.append(np.abs(gaps.mean(axis=1)).mean())
    tv = float(0.5 * np.abs(truth - g).sum(axis=1).mean())
    x, _, y = draw(5000)
    data = ct.Predictions.of(softmax(nets.logits(last, x), axis=1), y)
    values = [
        float(np.mean(errors)),
        ct.ECE(15)(ct.TopK(1)(data)),
        *(s(data) for s in (ct.SCE(15), ct.ACE(15), ct.TACE(15))),
    ]
    whole = ct.calibration_test(
        data, None, ct.ECE(ct.VarianceTree(100)), lens=ct.Canonical(), n_resamples=199,
        rng=context.seed,
    )  # fmt: skip
    return values, whole.pvalue, tv


def run(context: Context) -> Result:
    """Train at seven noise levels and compare with the truth."""
    result, rows = Result(), []
    seeds = range(context.times(8, 3))
    found = np.zeros((len(NOISE), len(seeds), 5))
    pvalues = np.zeros((len(NOISE), len(seeds)))
    for i, tau in enumerate(NOISE):
        distances = []
        for j in seeds:
            found[i, j], pvalues[i, j], tv = _measure(tau, j, context)
            distances.append(tv)
        mean = found[i].mean(axis=0)
        rows.append(
            [
                f"{tau}",
                *(f"{v:.4f}" for v in mean),
                f"{np.mean(distances):.3f}",
                f"{pvalues[i].max():.3f}",
            ]
        )
    columns = ["τ", *NAMES, "E total variation", "largest p of the whole vector"]
    result.tables.append(Table("Means over the networks.", columns, rows))
    # Networks of one noise level spread in proportion to their mean, alike at every level.
    spread = (found.std(axis=1, ddof=1) / found.mean(axis=1)).mean(axis=0)
    for i, tau in enumerate(NOISE):
        for k, name in enumerate(NAMES):
            known = KNOWN[tau][k]
            error = spread[k] * known * np.sqrt(1.0 / len(seeds) + 1.0 / KNOWN_NETWORKS)
            ours = found[i, :, k].mean()
            result.near(f"{name}, τ = {tau}", ours, known, ERRORS * error + 5e-5)
    gaps = np.abs(found[:, :, 1:] - found[:, :, :1]).mean(axis=1)
    few, many = gaps[np.array(NOISE) <= 0.5, 0].mean(), gaps[np.array(NOISE) >= 2.0, 0].mean()
    result.inside(
        "distance of the ECE from the truth, τ ≥ 2, as a multiple of that at τ ≤ 0.5",
        many / few,
        1.5,
        10.0,
        "grows; 3.0",
        digits=2,
    )
    result.inside("largest distance of ACE from the truth", gaps[:, 2].max(), 0.0, 0.006, "< 0.006")
    late = np.array(NOISE) >= 2.0
    result.holds(
        "from τ = 2 on TACE is less than half as far off as ECE",
        bool((gaps[late, 3] < 0.5 * gaps[late, 0]).all()),
        ", ".join(f"{g:.4f}" for g in gaps[late, 3]),
    )
    result.holds(
        "at τ = 0.05 TACE is further off than ECE",
        gaps[0, 3] > gaps[0, 0],
        f"{gaps[0, 3]:.3f} > {gaps[0, 0]:.3f}",
    )
    relative = np.abs(found[:, :, 1] - 5 * found[:, :, 0]).mean(axis=1) / (
        5 * found[:, :, 0].mean(axis=1)
    )
    result.inside(
        "on one scale (truth × K/2) the ECE is off by, at least",
        relative.min(),
        0.35,
        0.7,
        "0.44",
        digits=2,
    )
    result.inside(
        "on one scale (truth × K/2) the ECE is off by, at most",
        relative.max(),
        0.4,
        0.75,
        "0.63",
        digits=2,
    )
    result.inside(
        "largest p-value of the whole vector", pvalues.max(), 0.0, 0.05, "all rejected", digits=3
    )
    if context.draw:
        figure, (left, right) = canvas(4.6, 2, sharex=True)
        from matplotlib import rcParams

        styles = list(rcParams["axes.prop_cycle"])
        for k, name in enumerate(NAMES):
            mean, sd = found[:, :, k].mean(axis=1), found[:, :, k].std(axis=1, ddof=1)
            left.plot(NOISE, mean, label=name, **styles[k])
            left.fill_between(
                NOISE, mean - sd, mean + sd, color=styles[k]["color"], alpha=0.15, lw=0
            )
            if k:
                right.plot(NOISE, gaps[:, k - 1], **styles[k])
        left.set(xscale="log", ylabel="error")
        right.set(xscale="log", xlabel="label noise τ", ylabel="|measure − true error|")
        key(left, ncols=3)
        caption = (
            "Means ± sd over networks; raw scales as in the paper (ECE sums, the others average)."
        )
        result.save(figure, "n_figure1", caption, context)
    return result
