"""Estimates, p-values and diagrams of the Gaussian mixture, for three models.

The perfect model, a constant one (both calibrated), and one that is badly wrong (true error
0.5638). Estimates of calibrated models always overestimate, by an amount that is known in advance:
the noise floor falls like 1/√n and grows with the number of bins. Estimates of the wrong model err
on both sides, and with fixed bins and many samples they settle below the truth. A test at 5 %
rejects the calibrated models in 5 % of data sets at every n, and the wrong one always.
"""

from __future__ import annotations

import numpy as np

import caltest as ct
from caltest.plots.chart import BLUE, INK, RED
from paper_replications.conventions import COLUMNS, ask
from paper_replications.mixture import ETA, limit
from paper_replications.model import Context, Result, Table, canvas, key, named, reach

PAPER = "Vaicenavicius et al. 2019"
WHERE = "§5.1, Figures 6–14"
RECONSTRUCTION = (
    "which figure of each pair varies n and which the bins is unknown; the first is taken to vary "
    "n at 10 bins, the second the number of bins."
)

MODELS = {"perfect": (0.0, -2.0), "constant": (0.0, 0.0), "uncalibrated": (1.0, 1.0)}
#: (model, n, bins): mean of the estimate, share above the truth; from 2000 data sets (500 at 10⁴).
ESTIMATES = {
    ("perfect", 100, 10): (0.0838, 1.0),
    ("perfect", 100, 100): (0.1920, 1.0),
    ("perfect", 1000, 10): (0.0267, 1.0),
    ("perfect", 1000, 100): (0.0838, 1.0),
    ("perfect", 10_000, 10): (0.0083, 1.0),
    ("perfect", 10_000, 100): (0.0266, 1.0),
    ("constant", 100, 10): (0.0399, 0.91),
    ("constant", 1000, 10): (0.0127, 0.98),
    ("constant", 10_000, 10): (0.0040, 0.996),
    ("uncalibrated", 10, 10): (0.6228, 0.71),
    ("uncalibrated", 10, 100): (0.6650, 0.89),
    ("uncalibrated", 100, 10): (0.5694, 0.56),
    ("uncalibrated", 100, 100): (0.6230, 0.94),
    ("uncalibrated", 1000, 10): (0.5607, 0.41),
    ("uncalibrated", 1000, 100): (0.5716, 0.74),
    ("uncalibrated", 10_000, 5): (0.5531, 0.012),
    ("uncalibrated", 10_000, 10): (0.5587, 0.12),
    ("uncalibrated", 10_000, 100): (0.5643, 0.55),
    ("uncalibrated", 10_000, 1): (0.1727, 0.0),
}
LIMITS = {
    1: 0.172269, 2: 0.500346, 3: 0.563637, 5: 0.553076, 10: 0.558357, 15: 0.563637, 20: 0.563385,
    50: 0.563749, 100: 0.563749,
}  # fmt: skip
DEVIATIONS = {
    0.05: 0.9496, 0.1: 0.8983, 0.2: 0.7916, 0.3: 0.6757, 0.4: 0.5433, 0.5: 0.3808, 0.6: 0.1666,
    0.7: -0.1242, 0.8: -0.4841, 0.9: -0.8164, 0.95: -0.9299,
}  # fmt: skip
#: Rejection rates of two mild models, from 400 data sets.
MILD = {
    (0.0, -2.4): {30: 0.095, 100: 0.13, 300: 0.19, 1000: 0.475},
    (0.2, -2.0): {30: 0.045, 100: 0.083, 300: 0.08, 1000: 0.23},
}
#: What a box of a box plot is made of.
PARTS = ("medianprops", "boxprops", "whiskerprops", "capprops")
BIN_DEVIATIONS = (0.925, 0.841, 0.733, 0.610, 0.464, 0.277, 0.022, -0.314, -0.669, -0.910)


def run(context: Context) -> Result:
    """Check exact values, simulated estimates, rejection rates and the diagrams."""
    result = Result()
    wrong = ct.examples.GaussianMixture(1.0, 1.0)
    result.near("true error of β = (1, 1)", wrong.expected_miscalibration(), ETA, 1e-9, digits=9)
    result.near(
        "the same, squared distance",
        wrong.expected_miscalibration("sqeuclidean"),
        0.7973587790,
        1e-9,
        digits=9,
    )
    for name in ("perfect", "constant"):
        model = ct.examples.GaussianMixture(*MODELS[name])
        result.near(f"true error of the {name} model", model.expected_miscalibration(), 0.0, 1e-12)
    for p, known in DEVIATIONS.items():
        ours = float(wrong.calibration_function(p)) - p
        result.near(f"true deviation of β = (1, 1) at p = {p}", ours, known, 5.1e-5)
    for m, known in LIMITS.items():
        ours = limit(np.arange(m + 1) / m)
        result.near(f"limit of the estimate, {m} bins", ours, known, 6e-7, digits=6)
    estimates = _estimates(result, context)
    _floor(result, context)
    _rejections(result, context)
    _diagrams(result, context)
    if context.draw:
        _draw(result, context, estimates)
    return result


def _estimates(result: Result, context: Context) -> dict[tuple[str, int, int], np.ndarray]:
    values: dict[tuple[str, int, int], list[float]] = {key: [] for key in ESTIMATES}
    for k, (name, beta) in enumerate(MODELS.items()):
        for n in sorted({n for model, n, _ in ESTIMATES if model == name}):
            repeats = context.times(1000, 200) if n < 10_000 else context.times(300, 60)
            bins = [m for model, size, m in ESTIMATES if (model, size) == (name, n)]
            for j in range(repeats):
                data = ct.examples.GaussianMixture(*beta).sample(n, context.rng(1, k, n, j))
                for m in bins:
                    values[name, n, m].append(ct.ECE(m)(data))
    for (name, n, m), (mean, above) in ESTIMATES.items():
        found = np.array(values[name, n, m])
        trials = 2000 if n < 10_000 else 500
        where = f"{name}, n = {n}, {m} bin{'s' * (m > 1)}"
        result.simulated(
            f"mean estimate, {where}",
            found,
            mean,
            paper_error=found.std() / np.sqrt(trials),
            rounding=5e-5,
        )
        truth = ETA if name == "uncalibrated" else 0.0
        result.share(
            f"P(estimate > truth), {where}", found > truth + 1e-12, above, paper_trials=trials,
            rounding=0.005,
        )  # fmt: skip
    return {key: np.array(found) for key, found in values.items()}


def _floor(result: Result, context: Context) -> None:
    for m, known in ((5, 0.598), (10, 0.844), (20, 1.192), (100, 2.662)):
        found = []
        for j in range(context.times(200, 60)):
            data = ct.examples.GaussianMixture().sample(2000, context.rng(2, m, j))
            found.append(ct.ECE(m)(data) * np.sqrt(2000))
        error = 4.0 * float(np.std(found)) / np.sqrt(len(found))
        result.near(
            f"√n × mean estimate of the perfect model, {m} bins",
            float(np.mean(found)),
            known,
            0.03 * known + error,
            digits=3,
        )


def _rejections(result: Result, context: Context) -> None:
    repeats = context.times(400, 100)

    def rejections(beta: tuple[float, float], n: int) -> np.ndarray:
        model = ct.examples.GaussianMixture(*beta)
        key = [3, n, *(round(100 * abs(b)) for b in beta)]
        return np.array(
            [
                ct.calibration_test(
                    model.sample(n, context.rng(*key, j)), None, ct.ECE(10), lens=ct.OneVsRest(0)
                ).pvalue
                <= 0.05
                for j in range(repeats)
            ]
        )

    for name in ("perfect", "constant"):
        for n in (30, 100, 1000):
            limit_of_share = 0.05 + 4.0 * np.sqrt(0.05 * 0.95 / repeats)
            share = rejections(MODELS[name], n).mean()
            result.inside(
                f"rejections of the {name} model, n = {n}", share, 0.0, limit_of_share, "≤ 0.05",
                digits=3,
            )  # fmt: skip
    share = rejections(MODELS["uncalibrated"], 30).mean()
    result.near("rejections of the uncalibrated model, n = 30", share, 1.0, 0.0, digits=3)
    for beta, known in MILD.items():
        for n, rate in known.items():
            # Exact p-values are a little smaller than those of 199 redraws.
            result.share(
                f"rejections of β = {beta}, n = {n}",
                rejections(beta, n),
                rate,
                paper_trials=400,
                rounding=0.01,
            )


def _diagrams(result: Result, context: Context) -> None:
    panels, rows = {}, []
    for k, (name, beta) in enumerate(MODELS.items()):
        data = ct.examples.GaussianMixture(*beta).sample(10_000, context.rng(4, k))
        panels[name] = ct.reliability_curve(
            data, lens=ct.OneVsRest(0), bins=10, band=ct.ConsistencyResampling(),
            n_resamples=context.times(1000, 300), rng=context.rng(5, k),
        )  # fmt: skip
        rows.append(ask(data, ct.ECE(10), ct.OneVsRest(0), context.seed).row(name))
    result.tables.append(Table("n = 10 000, two conventions.", ["model", *COLUMNS], rows))
    perfect, constant, wrong = (panels[name] for name in MODELS)
    result.inside(
        "perfect: largest deviation", np.abs(perfect.deviation).max(), 0.0, 0.06, "± 0.045"
    )
    result.inside(
        "perfect: bins outside 90 % bars", perfect.outside.sum(), 0, 4, "about 1 of 10", digits=0
    )
    result.near("constant: number of bins", constant.count.size, 1, 0.0, digits=0)
    result.inside("constant: deviation", np.abs(constant.deviation).max(), 0.0, 0.02, "≤ 0.012")
    gaps = np.abs(wrong.deviation - BIN_DEVIATIONS)
    result.inside(
        "uncalibrated: largest distance from the true deviation of a bin",
        gaps.max(),
        0.0,
        0.04,
        "≤ 0.03",
    )
    result.near("uncalibrated: bins outside their bars", wrong.outside.sum(), 10, 0.0, digits=0)
    if context.draw:
        caption = (
            "deviations, 5–95 % of consistency resamples (red), true deviation (green), share of "
            "predictions (blue)."
        )
        for number, names in (("8", ("perfect", "constant")), ("14", ("uncalibrated",))):
            figure, axes = canvas(2.9 * len(names), len(names), squeeze=False)
            for axis, name in zip(axes.flat, names, strict=True):
                model = ct.examples.GaussianMixture(*MODELS[name])
                truth = None if name == "constant" else model.calibration_function
                top = reach(*(panels[n] for n in names))
                named(panels[name].plot(axis, truth=truth, top=top), name)
            title = "Figure 14: " if number == "14" else "Figures 8, 11: "
            result.save(figure, f"v_figure{number}", title + caption, context)


def _draw(
    result: Result, context: Context, estimates: dict[tuple[str, int, int], np.ndarray]
) -> None:
    figure, axes = canvas(6.0, 3, sharey=True)
    for axis, name in zip(axes, MODELS, strict=True):
        truth = ETA if name == "uncalibrated" else 0.0
        axis.axhline(truth, color=RED, lw=0.9, ls="--", label="true error")
        for m, colour in ((10, BLUE), (100, INK)):
            keys = [key for key in estimates if key[0] == name and key[2] == m]
            for i, one in enumerate(keys):
                axis.boxplot(
                    estimates[one],
                    positions=[np.log10(one[1]) + (0.12 if m == 100 else -0.12)],
                    widths=0.2,
                    showfliers=False,
                    **{part: {"color": colour, "linewidth": 0.9} for part in PARTS},
                    label=f"{m} bins" if i == 0 else None,
                )
        sizes = sorted({key[1] for key in estimates if key[0] == name})
        axis.set_xticks(np.log10(sizes), [str(n) for n in sizes])
        axis.set_title(name, loc="right")
        axis.set(xlabel="n", ylabel="estimate")
    key(axes[0], ncols=3)
    caption = "Figures 6, 9, 12: estimates in simulated data sets; red, the true error."
    result.save(figure, "v_figure6", caption, context)
    figure, axes = canvas(2.9)
    bins = np.arange(1, 101)
    for name, beta in MODELS.items():
        data = [
            ct.examples.GaussianMixture(*beta).sample(1000, context.rng(6, j)) for j in range(20)
        ]
        mean = [np.mean([ct.ECE(int(m))(d) for d in data]) for m in bins[::3]]
        axes.plot(bins[::3], mean, ms=2.5, label=name)
    axes.plot(
        bins,
        [limit(np.arange(m + 1) / m) for m in bins],
        color="#7f7f7f",
        ls="-",
        marker="",
        lw=0.8,
        label="uncalibrated, n → ∞",
    )
    axes.set(xlabel="bins", ylabel="mean estimate, n = 1000")
    key(axes, ncols=2)
    caption = "Figures 7, 10, 13: mean estimates against the number of bins (20 data sets)."
    result.save(figure, "v_figure7", caption, context)
