"""Type-I error of every kind of test on calibrated data.

``python -m validation.type_one_error`` writes ``docs/validity.md``; ``--quick`` is a small version
that prints. Either fails when a test that claims to be valid rejects calibrated models more often
than chance allows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import caltest as ct
from validation.study import labels_from, largest_rate, run, table, two_classes

LEVELS = (0.01, 0.05, 0.1)
B = 199


@dataclass(frozen=True)
class Scenario:
    """Calibrated predictions: n rows drawn by a function of (rng, n)."""

    name: str
    n: int
    draw: Callable[[np.random.Generator, int], np.ndarray]


def binary(sample, rng, n):
    return two_classes(sample(rng, n))


def uniform(rng, n):
    return rng.random(n)


def confident(rng, n):
    p = rng.beta(20.0, 0.5, n)
    return np.where(rng.random(n) < 0.5, p, 1.0 - p)


def tied(rng, n):
    return rng.integers(1, 10, n) / 10.0


def certain(rng, n):
    return np.clip(rng.uniform(-0.3, 1.3, n), 0.0, 1.0)


def rare(rng, n):
    return rng.beta(0.5, 40.0, n)


def dirichlet(concentration, n_classes, rng, n):
    return rng.dirichlet(np.full(n_classes, concentration), n)


def rounded(n_classes, rng, n):
    counts = rng.multinomial(10, rng.dirichlet(np.ones(n_classes), n))
    return counts / 10.0


SCENARIOS = [
    Scenario("2 classes, uniform", 50, partial(binary, uniform)),
    Scenario("2 classes, uniform", 1000, partial(binary, uniform)),
    Scenario("2 classes, uniform", 10_000, partial(binary, uniform)),
    Scenario("2 classes, very confident", 200, partial(binary, confident)),
    Scenario("2 classes, very confident", 10_000, partial(binary, confident)),
    Scenario("2 classes, nine tied values", 100, partial(binary, tied)),
    Scenario("2 classes, 0 and 1 among them", 300, partial(binary, certain)),
    Scenario("2 classes, rare event", 500, partial(binary, rare)),
    Scenario("3 classes, Dirichlet(1)", 100, partial(dirichlet, 1.0, 3)),
    Scenario("3 classes, Dirichlet(0.1)", 1000, partial(dirichlet, 0.1, 3)),
    Scenario("3 classes, tenths (tied, zeros)", 200, partial(rounded, 3)),
    Scenario("10 classes, Dirichlet(1)", 250, partial(dirichlet, 1.0, 10)),
    Scenario("10 classes, Dirichlet(0.1)", 250, partial(dirichlet, 0.1, 10)),
    Scenario("10 classes, Dirichlet(0.1)", 2000, partial(dirichlet, 0.1, 10)),
    Scenario("100 classes, Dirichlet(0.1)", 500, partial(dirichlet, 0.1, 100)),
]

REDRAW, PUBLISHED = ct.RedrawLabels(), ct.ConsistencyResampling()
TOP, EVENT, WHOLE = ct.TopK(1), ct.OneVsRest(0), ct.Canonical()


@dataclass(frozen=True)
class Case:
    """A statistic, a lens and a null; ``largest`` is the n up to which it is run."""

    statistic: Any
    lens: Any
    null: Any = REDRAW
    largest: int = 10_000

    @property
    def valid(self) -> bool:
        """Whether the test claims to hold its level at every n."""
        return self.null is REDRAW or self.null == "exact"

    def __str__(self) -> str:
        names = {REDRAW: "redraw", PUBLISHED: "published"}
        return f"`{self.statistic!r} · {self.lens!r}` {names.get(self.null, self.null)}"


TREE = ct.VarianceTree(20)
TESTS = [
    Case(ct.ECE(15), TOP, "exact"),
    Case(ct.ECE(100), TOP, "exact"),
    Case(ct.ECE(ct.QuantileBins(15)), EVENT, "exact"),
    Case(ct.ECE(15, distance="sqeuclidean"), EVENT, "exact"),
    Case(ct.MCE(15), TOP, "exact"),
    Case(ct.HosmerLemeshow(), EVENT, "exact", largest=1000),
    Case(ct.CalibrationInTheLarge(), EVENT, "exact"),
    Case(ct.ECE(15), TOP),
    Case(ct.RMSCE(), TOP),
    Case(ct.DebiasedL2(15), EVENT),
    Case(ct.DebiasedL1(15), EVENT),
    Case(ct.Sweep(), EVENT),
    Case(ct.MultiScale(), EVENT),
    Case(ct.KolmogorovSmirnov(), EVENT),
    Case(ct.Kuiper(), EVENT),
    Case(ct.SmoothECE(), EVENT, largest=2000),
    Case(ct.CORP(), EVENT),
    Case(ct.ICI(), EVENT, largest=2000),
    Case(ct.SKCE(), EVENT),
    Case(ct.MMCE(), EVENT, largest=2000),
    Case(ct.Spiegelhalter(), EVENT),
    Case(ct.CoxScore(), EVENT),
    Case(ct.ECE(ct.UniformBins(10)), WHOLE),
    Case(ct.ECE(TREE), WHOLE),
    Case(ct.DebiasedL2(TREE), WHOLE),
    Case(ct.MultiScale(), WHOLE, largest=2000),
    Case(ct.ClasswiseECE(15), WHOLE),
    Case(ct.ACE(15), WHOLE),
    Case(ct.TACE(15), WHOLE),
    Case(ct.SKCE(), WHOLE, largest=500),
    Case(ct.ScoreGap("brier"), WHOLE),
    Case(ct.ScoreGap("log"), WHOLE),
    Case(ct.KolmogorovSmirnov(), EVENT, "asymptotic"),
    Case(ct.Kuiper(), EVENT, "asymptotic"),
    Case(ct.Spiegelhalter(), EVENT, "asymptotic"),
    Case(ct.ScoreGap("log"), WHOLE, "asymptotic"),
    Case(ct.CalibrationInTheLarge(), EVENT, "asymptotic"),
    Case(ct.CoxScore(), EVENT, "asymptotic"),
    Case(ct.CoxLR(), EVENT, "asymptotic", largest=2000),
    Case(ct.HosmerLemeshow(), EVENT, "asymptotic"),
    Case(ct.SKCE(), EVENT, "asymptotic", largest=300),
    Case(ct.SKCE(estimator="linear"), EVENT, "asymptotic"),
    Case(ct.ECE(15), TOP, PUBLISHED),
    Case(ct.ECE(100), TOP, PUBLISHED),
    Case(ct.ECE(ct.UniformBins(10)), WHOLE, PUBLISHED),
]


def p_values(index: int, repetitions: int, seed: int) -> np.ndarray:
    """Return the p-values of all tests on calibrated data, shape (repetitions, tests)."""
    warnings.simplefilter("ignore")
    scenario = SCENARIOS[index]
    rng = np.random.default_rng([seed, index])
    found = np.full((repetitions, len(TESTS)), np.nan)
    asked = [(t, test) for t, test in enumerate(TESTS) if scenario.n <= test.largest]
    for r in range(repetitions):
        probs = scenario.draw(rng, scenario.n)
        data = ct.Predictions.of(probs, labels_from(probs, rng))
        for t, test in asked:
            found[r, t] = ct.calibration_test(
                data, None, test.statistic, lens=test.lens, null=test.null, n_resamples=B, rng=rng
            ).pvalue
    return found


def study(quick: bool, seed: int, workers: int) -> tuple[str, list[str]]:
    """Run everything; return the tables as Markdown and the cells that broke their promise."""
    full, least = (30, 10) if quick else (200, 60)
    sizes = [max(least, full * 300 // max(300, s.n)) for s in SCENARIOS]
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(p_values, range(len(SCENARIOS)), sizes, [seed] * len(SCENARIOS)))
    claims = len(SCENARIOS) * len(LEVELS) * sum(test.valid for test in TESTS)
    letters = [chr(ord("A") + s) for s in range(len(SCENARIOS))]
    data = [
        (letter, s.name, s.n, size)
        for letter, s, size in zip(letters, SCENARIOS, sizes, strict=True)
    ]
    lines = table(["", "data", "n", "data sets"], data, left=2)
    broken = []
    for level in LEVELS:
        rows = []
        for t, test in enumerate(TESTS):
            cells = []
            for scenario, p in zip(SCENARIOS, found, strict=True):
                if np.isnan(p[0, t]):
                    cells.append("–")
                    continue
                rate = (p[:, t] <= level + 1e-12).mean()
                too_often = rate > largest_rate(level, len(p), claims)
                cells.append(f"**{rate:.3f}**" if too_often else f"{rate:.3f}")
                if too_often and test.valid:
                    broken.append(f"{test}, {scenario.name}, n={scenario.n}: {rate:.3f} at {level}")
            rows.append([str(test), *cells])
        lines += ["", f"## At level {level:g}", "", *table(["test", *letters], rows)]
    return "\n".join([*lines, ""]), broken


HEADER = """# Type-I error

How often does each test call a *calibrated* model miscalibrated? Predictions are drawn, labels are
drawn from the predictions, and the test is run; the tables show the share of data sets with
p ≤ 0.01, 0.05 and 0.1. A valid test stays at or below the level, up to the binomial error of the
study: a rate in bold is larger than chance allows (one false alarm in a thousand such studies).

"exact" and "redraw" are caltest's own nulls, valid at every sample size. "published" is consistency
resampling as in Vaicenavicius et al. (2019), which bootstraps the predictions too: it holds its
level when cells are well filled and fails, up to rejecting every calibrated model, when they are
sparse. "asymptotic" is a classical limit law, as good as the limit is near.

Simulated nulls use {b} replicates, so that the three levels are attained. Seed {seed}; regenerate
with `python -m validation.type_one_error` ({minutes:.0f} minutes of one core).

"""


if __name__ == "__main__":
    run(__doc__, study, "validity.md", HEADER, b=B)
