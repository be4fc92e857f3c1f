"""Coverage of every kind of interval, on data whose binned error is known.

``python -m validation.coverage`` writes ``docs/coverage.md``; ``--quick`` is a small version that
prints. Either fails when the recommended method covers less than 93 % of the time by more than
chance allows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr
from scipy.stats import binom

import caltest as ct
from caltest.inference import formulas
from validation.study import FALSE_ALARM, run, table

LEVEL, GOAL = 0.95, 0.93
ALPHA = (1.0 - LEVEL) / 2.0
B = 999
#: Rows from which the true error of fixed cells is computed.
MANY = 1_000_000

BOOTSTRAP = ("percentile", "basic", "bca", "bias-corrected")
METHODS = {
    "ECE": ("inversion", *BOOTSTRAP),
    "DebiasedL2": ("inversion", "normal", "sun", *BOOTSTRAP),
    "MCE": ("inversion",),
}
#: The bootstrap is slow: samples it draws, and data sets of which one gets it.
RESAMPLES, ONE_IN = 199, 4


@dataclass(frozen=True)
class Scenario:
    """Predictions, the probabilities labels are drawn from, and how they are looked at."""

    name: str
    n: int
    bins: Any
    draw: Callable[[np.random.Generator, int], np.ndarray]
    truth: Callable[[np.ndarray], np.ndarray]
    lens: Any = ct.OneVsRest(0)
    cluster: int = 1

    @property
    def fixed(self) -> bool:
        """Whether cells do not depend on the sample."""
        return isinstance(self.bins, ct.UniformBins)

    def labels(self, rng: np.random.Generator, q: np.ndarray) -> np.ndarray:
        """Draw labels, which depend on each other within a cluster but not on the other rows."""
        if self.cluster == 1:
            u = rng.random(len(q))
        else:
            shared = np.repeat(rng.standard_normal(len(q) // self.cluster), self.cluster)
            u = ndtr(0.5**0.5 * (shared + rng.standard_normal(len(q))))
        cumulative = np.cumsum(q, axis=1)
        cumulative[:, -1] = np.inf
        return (u[:, None] >= cumulative).sum(axis=1)


# --- predictions and truths --------------------------------------------------------------------


def binary(sample, rng, n):
    p = sample(rng, n)
    return np.column_stack([p, 1.0 - p])


def uniform(rng, n):
    return rng.random(n)


def middling(rng, n):
    return rng.uniform(0.3, 0.7, n)


def confident(rng, n):
    p = rng.beta(20.0, 0.5, n)
    return np.where(rng.random(n) < 0.5, p, 1.0 - p)


def sure(rng, n):
    return 1.0 - 0.5 * rng.beta(0.3, 10.0, n)


def rare(rng, n):
    return rng.beta(0.5, 40.0, n)


def dirichlet(concentration, n_classes, rng, n):
    return rng.dirichlet(np.full(n_classes, concentration), n)


def calibrated(probs):
    return probs


def two(p):
    return np.column_stack([p, 1.0 - p])


def slope(s, probs):
    return two(expit(s * logit(np.clip(probs[:, 0], 1e-12, 1.0 - 1e-12))))


def shifted(a, probs):
    return two(np.clip(probs[:, 0] + a, 0.0, 1.0))


def bump(low, high, a, probs):
    p = probs[:, 0]
    return two(np.where((p > low) & (p <= high), np.clip(p + a, 0.0, 1.0), p))


def doubled(probs):
    return two(np.minimum(2.0 * probs[:, 0], 1.0))


def mixed(share, probs):
    return (1.0 - share) * probs + share / probs.shape[1]


U, TREE, TOP, WHOLE = ct.UniformBins, ct.VarianceTree, ct.TopK(1), ct.Canonical()
UNIFORM, CONFIDENT = partial(binary, uniform), partial(binary, confident)
DIR3, DIR10 = partial(dirichlet, 1.0, 3), partial(dirichlet, 0.1, 10)
SCENARIOS = [
    Scenario("calibrated, uniform", 200, U(15), UNIFORM, calibrated),
    Scenario("calibrated, uniform", 500, U(2), UNIFORM, calibrated),
    Scenario("calibrated, uniform", 2000, U(50), UNIFORM, calibrated),
    Scenario("calibrated, uniform", 10_000, U(15), UNIFORM, calibrated),
    Scenario("calibrated, very confident", 200, U(15), CONFIDENT, calibrated),
    Scenario("slope 0.9", 2000, U(15), UNIFORM, partial(slope, 0.9)),
    Scenario("slope 0.5", 500, U(15), UNIFORM, partial(slope, 0.5)),
    Scenario("slope 0.5", 10_000, U(15), UNIFORM, partial(slope, 0.5)),
    Scenario("slope 3, sparse cells", 200, U(50), UNIFORM, partial(slope, 3.0)),
    Scenario("shift 0.1", 1000, U(10), partial(binary, middling), partial(shifted, 0.1)),
    Scenario("one cell in twenty wrong", 2000, U(50), UNIFORM, partial(bump, 0.9, 0.95, -0.3)),
    Scenario("very confident, slope 0.8", 200, U(50), CONFIDENT, partial(slope, 0.8)),
    Scenario("nearly sure, slope 0.5", 200, U(2), partial(binary, sure), partial(slope, 0.5)),
    Scenario("half of all far off", 10_000, U(2), UNIFORM, partial(bump, 0.5, 1.0, -0.45)),
    Scenario("rare event, risk doubled", 1000, U(50), partial(binary, rare), doubled),
    Scenario("equal mass, slope 0.8", 1000, ct.QuantileBins(15), CONFIDENT, partial(slope, 0.8)),
    Scenario("3 classes, top one, mixed 0.2", 500, U(15), DIR3, partial(mixed, 0.2), TOP),
    Scenario("3 classes, whole, calibrated", 500, TREE(50), DIR3, calibrated, WHOLE),
    Scenario("3 classes, whole, mixed 0.2", 2000, U(5), DIR3, partial(mixed, 0.2), WHOLE),
    Scenario("10 classes, top one, mixed 0.1", 1000, U(15), DIR10, partial(mixed, 0.1), TOP),
    Scenario("10 classes, whole, calibrated", 1000, TREE(50), DIR10, calibrated, WHOLE),
    Scenario("10 classes, whole, mixed 0.1", 10_000, TREE(200), DIR10, partial(mixed, 0.1), WHOLE),
    Scenario(
        "10 classes, top three, mixed 0.1", 2000, TREE(100), DIR10, partial(mixed, 0.1), ct.TopK(3)
    ),
    Scenario("calibrated, clusters of 5", 1000, U(15), UNIFORM, calibrated, cluster=5),
    Scenario("slope 0.5, clusters of 5", 1000, U(15), UNIFORM, partial(slope, 0.5), cluster=5),
]


# --- the study ---------------------------------------------------------------------------------


def true_errors(scenario: Scenario, probs: np.ndarray, q: np.ndarray) -> dict[str, float]:
    """Return the binned errors of predictions whose label probabilities are known."""
    g, r = induced_truth(scenario.lens, probs, q)
    cells = ct.Cells.of(scenario.bins, g)
    gaps = cells.sum(r - g) / cells.counts[:, None]
    share, squares = cells.counts / len(g), (gaps**2).sum(axis=1)
    two_classes = g.shape[1] == 2
    return {
        "ECE": float(share @ np.abs(gaps).sum(axis=1)) / 2.0,
        "DebiasedL2": float(share @ squares) / (2.0 if two_classes else 1.0),
        "sun": float(share @ (gaps[:, :-1] ** 2).sum(axis=1)),  # of the top k, not of the rest
        "MCE": float(np.abs(gaps[:, 0]).max()) if two_classes else np.nan,
    }


def induced_truth(lens: Any, probs: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the predictions of the induced problem, and the law of its labels."""
    seen = lens(ct.Predictions(probs, np.zeros(len(probs), dtype=np.int64))).probs
    r = np.zeros_like(seen)
    for k in range(probs.shape[1]):
        label = lens(ct.Predictions(probs, np.full(len(probs), k))).labels
        r[np.arange(len(r)), label] += q[:, k]
    return seen, r


def intervals(
    scenario: Scenario, data: ct.Predictions, seed: int, bootstrap: bool
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return (low, high) by statistic and method, for those that fit."""
    induced = scenario.lens(data)
    answers: dict[tuple[str, str], tuple[float, float]] = {}
    statistics = {
        "ECE": ct.ECE(scenario.bins),
        "DebiasedL2": ct.DebiasedL2(scenario.bins),
        "MCE": ct.MCE(scenario.bins),
    }
    for name, statistic in statistics.items():
        for method in set(METHODS[name]) - set(BOOTSTRAP):
            with suppress(ct.StatisticError):  # does not fit the lens, or knows no clusters
                answer = ct.confidence_interval(
                    data,
                    None,
                    statistic,
                    lens=scenario.lens,
                    level=LEVEL,
                    method=method,
                    n_resamples=B if name != "MCE" else 1,
                    rng=seed,
                )
                answers[name, method] = (answer.low, answer.high)
        if (
            not bootstrap
            or name == "MCE"
            or seed % ONE_IN
            or (data.n > 2000 and not scenario.fixed)
        ):
            continue
        estimate = statistic(induced)
        values = ct.replicate(statistic, ct.Bootstrap(), induced, RESAMPLES, rng=seed).values
        answers[name, "percentile"] = formulas.percentile(values, ALPHA)
        answers[name, "basic"] = formulas.basic(values, estimate, ALPHA)
        answers[name, "bias-corrected"] = formulas.bias_corrected(values, estimate, ALPHA)
        answers[name, "bca"] = formulas.bca(values, estimate, ALPHA, statistic, induced)
    return answers


def study_of(
    index: int, repetitions: int, seed: int, bootstrap: bool = True
) -> dict[tuple[str, str], np.ndarray]:
    """Return, by statistic and method, whether intervals covered, and how long they were."""
    warnings.simplefilter("ignore")
    scenario = SCENARIOS[index]
    rng = np.random.default_rng([seed, index])
    if scenario.fixed:
        probs = scenario.draw(rng, MANY)
        truth = true_errors(scenario, probs, scenario.truth(probs))
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for r in range(repetitions):
        probs = scenario.draw(rng, scenario.n)
        q = scenario.truth(probs)
        own = true_errors(scenario, probs, q)
        if not scenario.fixed:
            truth = own
        wanted = {**truth, "MCE": own["MCE"]}  # a cell without rows cannot be the largest
        clusters = None if scenario.cluster == 1 else np.arange(scenario.n) // scenario.cluster
        data = ct.Predictions.of(probs, scenario.labels(rng, q), clusters=clusters)
        for key, (low, high) in intervals(scenario, data, r, bootstrap).items():
            value = wanted["sun" if key[1] == "sun" else key[0]]
            covers = max(low, 0.0) <= value + 1e-9 and high >= value - 1e-9
            found.setdefault(key, []).append((covers, max(high, 0.0) - max(low, 0.0)))
    return {key: np.array(values, dtype=float) for key, values in found.items()}


def study(quick: bool, seed: int, workers: int) -> tuple[str, list[str]]:
    """Run everything; return the tables as Markdown and the cells that missed the goal."""
    full, least = (30, 12) if quick else (300, 150)
    sizes = [max(least, full * 500 // max(500, s.n)) for s in SCENARIOS]
    with ProcessPoolExecutor(workers) as pool:
        parts = list(
            pool.map(
                study_of,
                range(len(SCENARIOS)),
                sizes,
                [seed] * len(SCENARIOS),
                [not quick] * len(SCENARIOS),
            )
        )
    letters = [chr(ord("A") + s) for s in range(len(SCENARIOS))]
    data = [
        (letter, s.name, s.n, f"`{s.bins!r}`", size)
        for letter, s, size in zip(letters, SCENARIOS, sizes, strict=True)
    ]
    lines = table(["", "data", "n", "bins", "data sets"], data, left=2)
    claims = sum((name, "inversion") in part for name in METHODS for part in parts)
    missed = []
    for name, methods in METHODS.items():
        for title, column in (("coverage", 0), ("mean length", 1)):
            rows = []
            for method in methods:
                cells = []
                for scenario, part in zip(SCENARIOS, parts, strict=True):
                    if (name, method) not in part:
                        cells.append("–")
                        continue
                    values = part[name, method][:, column]
                    rate = values.mean()
                    low = column == 0 and rate < GOAL
                    cells.append(f"**{rate:.3f}**" if low else f"{rate:.3f}")
                    chance = binom.cdf(round(values.sum()), values.size, GOAL)
                    if low and method == "inversion" and chance < FALSE_ALARM / claims:
                        missed.append(f"{name}, {scenario.name}, n={scenario.n}: {rate:.3f}")
                rows.append([method, *cells])
            lines += ["", f"## {name}: {title}", "", *table(["method", *letters], rows)]
    return "\n".join([*lines, ""]), missed


HEADER = """# Coverage of intervals

How often does a 95 % interval contain the true binned error? Predictions are drawn, labels are
drawn from known probabilities, and every kind of interval is computed; the tables show the share of
intervals that contained the error of the cells, and how long they were on average. A rate in bold
is below 0.93. The standard error of a rate of 0.95 is 0.013 with 300 data sets and 0.018 with 150;
every fourth data set is also bootstrapped, for which it is 0.025 and 0.036.

"inversion" is `method="auto"`. Errors of `ECE` are in total variation, those of `DebiasedL2` are
squared; for `ECE(bins, distance="sqeuclidean")` and two classes they and the interval are twice as
large. For cells that depend on the predictions, the error of the cells that were found counts, for
`MCE` that of the occupied cells; otherwise that of new data. In the last two data sets labels in a
cluster of five rows are correlated (0.5 on a normal scale), and intervals know the clusters.

Inversion uses {b} draws, the bootstrap {resamples} samples. Seed {seed}; regenerate with
`python -m validation.coverage` ({minutes:.0f} minutes of one core).

"""


if __name__ == "__main__":
    run(
        __doc__,
        study,
        "coverage.md",
        HEADER,
        broken="below the goal",
        b=B,
        resamples=RESAMPLES,
    )
