"""Size and power of the comparison of two models, and coverage of its interval.

``python -m validation.comparison`` writes ``docs/comparison.md``; ``--quick`` is a small version
that prints. Either fails when the default test calls equally miscalibrated models different more
often than 6 % at the 5 % level, or calibrated ones more often than 5 %, beyond chance.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtr, softmax

import caltest as ct
from caltest.inference.reach import Difference, Side
from caltest.inference.squared_error import SquaredError
from validation.study import labels_from, largest_rate, run, table
from validation.study import two_classes as two

ALPHA = 0.05
B = 199

Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Scenario:
    """Two models on the same rows: a function of (rng, n) to (probs_a, probs_b, labels)."""

    name: str
    kind: str  # "calibrated", "equal" error, or "unequal"
    draw: Draw
    lens: ct.lenses.Lens = ct.OneVsRest(1)
    bins: object = ct.UniformBins(15)
    sizes: tuple[int, ...] = (200, 500, 2000, 10_000)
    paired: bool = True


def probit(rng, latent):
    return (latent + rng.normal(size=latent.size) > 0.0).astype(np.int64)


def own_features(slope, rng, n):
    """Exchangeable models, each of its own feature; calibrated for slope 1."""
    u, w = rng.normal(size=(2, n))
    return two(ndtr(slope * u / 2**0.5)), two(ndtr(slope * w / 2**0.5)), probit(rng, u + w)


def sharp_and_vague(slope, shift, rng, n):
    u, w = 0.3 * rng.normal(size=n), 2.0 * rng.normal(size=n)
    return two(ndtr(slope * (u + w))), two(ndtr(u / 5**0.5 + shift)), probit(rng, u + w)


def nearly_the_same(rng, n):
    u, w = rng.normal(size=n), 0.3 * rng.normal(size=n)
    return two(ndtr(u + w)), two(ndtr(u / 1.09**0.5)), probit(rng, u + w)


def steep_and_shifted(rng, n):
    u = rng.normal(size=n)
    return two(ndtr(1.3 * u)), two(ndtr(u + 0.14781)), probit(rng, u)


def too_high_and_too_low(shift, scale, rng, n):
    """Mirror images: equal errors of opposite sign on every bin."""
    u = scale * rng.normal(size=n)
    return two(ndtr(u + shift)), two(ndtr(u - shift)), probit(rng, u)


def confident(rng, n):
    u, w = 2.5 * rng.normal(size=n) + 2.0, 1.5 * rng.normal(size=n)
    return two(ndtr(u + w)), two(ndtr(u / 3.25**0.5)), probit(rng, u + w)


def right_and_steep(slope, rng, n):
    u = rng.normal(size=n)
    return two(ndtr(u)), two(ndtr(slope * u)), probit(rng, u)


def noisy_logits(n_classes, sharpness, slopes, rng, n):
    """Softmax models of the same classes, each with noise of its own."""
    logits = sharpness * rng.normal(size=(n, n_classes))
    labels = labels_from(softmax(logits, axis=1), rng)
    a, b = (
        softmax(slope * (logits + 0.5 * rng.normal(size=logits.shape)), axis=1) for slope in slopes
    )
    return a, b, labels


def mixed_truth(share, rng, n):
    """Calibrated against shrunk or sharpened Dirichlet predictions of three classes."""
    truth = rng.dirichlet(np.ones(3), n)
    return truth, (1.0 - share) * truth + share / 3.0, labels_from(truth, rng)


mirrored = too_high_and_too_low
SCENARIOS = [
    Scenario("own features (S0)", "calibrated", partial(own_features, 1.0)),
    Scenario("sharp and vague (S1)", "calibrated", partial(sharp_and_vague, 1.0, 0.0)),
    Scenario("nearly the same model", "calibrated", nearly_the_same),
    Scenario("very confident", "calibrated", confident),
    Scenario(
        "sharp and vague, equal-mass bins",
        "calibrated",
        partial(sharp_and_vague, 1.0, 0.0),
        bins=ct.QuantileBins(15),
    ),
    Scenario(
        "sharp and vague, 50 bins",
        "calibrated",
        partial(sharp_and_vague, 1.0, 0.0),
        bins=ct.UniformBins(50),
        sizes=(200, 1000),
    ),
    Scenario("steep and shifted (S2)", "equal", steep_and_shifted),
    Scenario("sharp and vague, both wrong (S5)", "equal", partial(sharp_and_vague, 1.3, 0.08777)),
    Scenario("own features, both steep", "equal", partial(own_features, 1.5)),
    Scenario("too high and too low by 0.2", "equal", partial(mirrored, 0.2, 1.0)),
    Scenario("too high and too low by 0.5", "equal", partial(mirrored, 0.5, 1.0)),
    Scenario(
        "too high and too low by 0.2, 50 bins",
        "equal",
        partial(mirrored, 0.2, 1.0),
        bins=ct.UniformBins(50),
        sizes=(200, 1000),
    ),
    Scenario("very confident, too high and too low", "equal", partial(mirrored, 0.4, 3.0)),
    Scenario(
        "too high and too low, equal-mass bins",
        "equal",
        partial(mirrored, 0.2, 1.0),
        bins=ct.QuantileBins(15),
    ),
    Scenario(
        "10 classes, top class, both overconfident",
        "equal",
        partial(noisy_logits, 10, 2.0, (2.0, 2.0)),
        ct.TopK(1),
    ),
    Scenario(
        "10 classes, top class, nearly calibrated",
        "equal",
        partial(noisy_logits, 10, 2.0, (0.8, 0.8)),
        ct.TopK(1),
    ),
    Scenario(
        "10 classes, two largest, both overconfident",
        "equal",
        partial(noisy_logits, 10, 2.0, (1.5, 1.5)),
        ct.TopK(2),
        ct.UniformBins(5),
        (200, 500, 2000),
    ),
    Scenario(
        "3 classes, whole vector, both overconfident",
        "equal",
        partial(noisy_logits, 3, 1.0, (1.5, 1.5)),
        ct.Canonical(),
        ct.VarianceTree(20),
        (200, 500, 2000),
    ),
    Scenario(
        "own features, both steep, other rows",
        "equal",
        partial(own_features, 1.5),
        sizes=(200, 500, 2000),
        paired=False,
    ),
    Scenario(
        "sharp and vague, other rows",
        "calibrated",
        partial(sharp_and_vague, 1.0, 0.0),
        sizes=(200, 500, 2000),
        paired=False,
    ),
    Scenario("right and steep by 1.3 (P3)", "unequal", partial(right_and_steep, 1.3)),
    Scenario("right and steep by 1.6", "unequal", partial(right_and_steep, 1.6)),
    Scenario(
        "right and steep by 1.6, other rows",
        "unequal",
        partial(right_and_steep, 1.6),
        sizes=(200, 500, 2000),
        paired=False,
    ),
    Scenario(
        "10 classes, top class, slopes 0.8 and 1.2",
        "unequal",
        partial(noisy_logits, 10, 2.0, (0.8, 1.2)),
        ct.TopK(1),
    ),
    Scenario(
        "3 classes, whole vector, right and shrunk",
        "unequal",
        partial(mixed_truth, 0.3),
        ct.Canonical(),
        ct.UniformBins(4),
        (200, 500, 2000),
    ),
]
LIMITS = {"calibrated": 0.05, "equal": 0.06}
#: The scenarios on which the other ways of comparing are shown.
SHOWN = ("own features (S0)", "sharp and vague (S1)", "steep and shifted (S2)",
         "sharp and vague, both wrong (S5)", "right and steep by 1.3 (P3)")  # fmt: skip
OTHERS = ("z", "bootstrap", "swap, DebiasedL2", "swap, ECE", "one p ≤ 0.05", "Brier")


def pair(scenario, rng, n):
    """Draw both models and look through the lens."""
    a, b, labels = scenario.draw(rng, n)
    labels_b = labels
    if not scenario.paired:
        _, b, labels_b = scenario.draw(rng, n)
    return (
        scenario.lens(ct.Predictions(a, labels)),
        scenario.lens(ct.Predictions(b, labels_b)),
    )


def differences(index, n, repetitions, seed):
    """Return the p-values of z and jackknife, and the interval, shape (repetitions, 4)."""
    scenario = SCENARIOS[index]
    rng = np.random.default_rng([seed, index, n])
    found = np.empty((repetitions, 4))
    for r in range(repetitions):
        a, b = (side(scenario.bins, d) for d in pair(scenario, rng, n))
        z, jackknife = (Difference(a, b, scenario.paired, cautious) for cautious in (False, True))
        found[r] = z.pvalue(), jackknife.pvalue(), *z.limits(1.0 - ALPHA)
    return found


def side(bins, induced):
    """Return what a model brings to a comparison."""
    return Side(SquaredError.of(ct.Cells.of(bins, induced.probs), induced), induced)


def truth(scenario, seed):
    """Return the difference that is estimated, from as many rows as needed; 0 for equal errors."""
    if scenario.kind != "unequal":
        return 0.0
    rng = np.random.default_rng(seed)
    drawn = [pair(scenario, rng, 200_000) for _ in range(5)]
    statistic = ct.DebiasedL2(scenario.bins)
    return float(np.mean([statistic(a) - statistic(b) for a, b in drawn]))


def other_ways(index, n, repetitions, seed):
    """Return which of the other ways call the models different, shape (repetitions, ways)."""
    warnings.simplefilter("ignore")
    scenario = SCENARIOS[index]
    rng = np.random.default_rng([seed, index, n, 1])
    called = np.empty((repetitions, len(OTHERS)), dtype=bool)
    for r in range(repetitions):
        a, b, labels = scenario.draw(rng, n)
        common = {"lens": scenario.lens, "n_resamples": B, "rng": rng}
        z = ct.compare(a, b, labels, ct.DebiasedL2(15), **common)
        ece = ct.compare(a, b, labels, ct.ECE(15), method="swap", **common)
        pvalues = [
            z.pvalue,
            ct.compare(a, b, labels, ct.DebiasedL2(15), method="bootstrap", **common).pvalue,
            ct.compare(a, b, labels, ct.DebiasedL2(15), method="swap", **common).pvalue,
            ece.pvalue,
            float((ece.pvalue_a <= ALPHA) == (ece.pvalue_b <= ALPHA)),
            z.scores[0].pvalue,
        ]
        called[r] = np.array(pvalues) <= ALPHA
    return called


def study(quick, seed, workers):
    """Run everything; return the tables as Markdown and the cells that broke their promise."""
    full = 100 if quick else 2000
    tasks = [
        (i, n, max(full // 4, full * 500 // max(500, n)))
        for i, s in enumerate(SCENARIOS)
        for n in (s.sizes[:2] if quick else s.sizes)
    ]
    shown = [(i, n) for i, s in enumerate(SCENARIOS) if s.name in SHOWN for n in (500, 2000)]
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(differences, *zip(*tasks, strict=True), [seed] * len(tasks)))
        others = []
        if not quick:
            indices, sizes = zip(*shown, strict=True)
            others = list(pool.map(other_ways, indices, sizes, [200] * len(shown),
                                   [seed] * len(shown)))  # fmt: skip
    claims = sum(SCENARIOS[i].kind in LIMITS for i, *_ in tasks)
    broken = []
    rows: dict[str, list[list[object]]] = {kind: [] for kind in HEADS}
    for (i, n, repetitions), columns in zip(tasks, found, strict=True):
        s = SCENARIOS[i]
        *pvalues, low, high = columns.T
        rates = [float((p <= ALPHA).mean()) for p in pvalues]
        cells = [f"{rate:.3f}" for rate in rates]
        if s.kind in LIMITS:
            if rates[0] > largest_rate(LIMITS[s.kind], repetitions, claims):
                cells[0] = f"**{cells[0]}**"
                broken.append(f"{s.name}, n={n}: {rates[0]:.3f}")
        else:
            true = truth(s, seed)
            cells.append(f"{((low <= true) & (true <= high)).mean():.3f}")
        rows[s.kind].append([s.name, f"`{s.bins!r}`", n, repetitions, *cells])
    parts = []
    for kind, title in HEADS.items():
        head = ["models", "bins", "n", "data sets", "z", "jackknife"]
        parts += [title, *table(head + ["coverage"] * (kind == "unequal"), rows[kind]), ""]
    if others:
        rates_of = [
            [SCENARIOS[i].name, n, *(f"{rate:.3f}" for rate in called.mean(axis=0))]
            for (i, n), called in zip(shown, others, strict=True)
        ]
        parts += [OTHER_WAYS.format(b=B), *table(["models", "n", *OTHERS], rates_of), ""]
    return "\n".join(parts), broken


HEADS = {
    "calibrated": "## Both models calibrated\n\nAt most 0.05 is wanted.\n",
    "equal": "## Both miscalibrated, by the same squared error\n\n0.05 is wanted.\n",
    "unequal": "## Different errors: power\n\nThe last column is the share of 95 % intervals that "
    "contain the true difference.\n",
}
HEADER = """# Comparing two models, measured

How often does `compare` call two models differently calibrated, at the 5 % level? Pairs of models
are drawn whose errors are known to be equal, or known to differ, and compared. `z` is the default,
`jackknife` the same test without the correction of its variance: it is cautious near calibration.
What the methods are: {{doc}}`concepts/compare`.

"S0", "S1", "S2", "S5" and "P3" are probit models: the label is 1 when a latent sum of features plus
noise is positive. "Other rows" means unpaired. A rate in bold is larger than 0.05 (calibrated) or
0.06 (equal errors) by more than chance allows, one false alarm in a thousand such studies.

Seed {seed}; regenerate with `python -m validation.comparison` ({minutes:.0f} minutes of one core).

"""

OTHER_WAYS = """## Other ways of comparing

The same scenarios with 15 bins, 200 data sets each, {b} replicates; the standard error of a rate of
0.05 is 0.015. In all but P3 the errors are equal. "One p ≤ 0.05" counts data sets
in which exactly one of the two models is called miscalibrated by its exact ECE test. Swapping tests
exchangeability, which holds in S0 only; Brier scores measure skill.
"""


if __name__ == "__main__":
    run(__doc__, study, "comparison.md", HEADER)
