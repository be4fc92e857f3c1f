"""Type-I error of every kind of test on calibrated data.

``python -m validation.type_one_error`` writes ``docs/validity.md``; ``--quick`` is a small version
that prints. Either fails when a test that claims to be valid rejects calibrated models more often
than chance allows.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

import caltest as ct

TARGET = Path(__file__).parents[1] / "docs" / "validity.md"
LEVELS = (0.01, 0.05, 0.1)
B = 199
#: Chance that a valid test fails this study, over all its cells.
FALSE_ALARM = 1e-3


@dataclass(frozen=True)
class Scenario:
    """Calibrated predictions: n rows drawn by a function of (rng, n)."""

    name: str
    n: int
    draw: Callable[[np.random.Generator, int], np.ndarray]


def binary(sample, rng, n):
    p = sample(rng, n)
    return np.column_stack([1.0 - p, p])


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
    Case(ct.ECE(15, "sqeuclidean"), EVENT, "exact"),
    Case(ct.MCE(15), TOP, "exact"),
    Case(ct.HosmerLemeshow(10), EVENT, "exact", largest=1000),
    Case(ct.CalibrationInTheLarge(), EVENT, "exact"),
    Case(ct.ECE(15), TOP),
    Case(ct.RMSCE(15), TOP),
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
    Case(ct.HosmerLemeshow(10), EVENT, "asymptotic"),
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
    table = np.full((repetitions, len(TESTS)), np.nan)
    asked = [(t, test) for t, test in enumerate(TESTS) if scenario.n <= test.largest]
    for r in range(repetitions):
        probs = scenario.draw(rng, scenario.n)
        cumulative = np.cumsum(probs, axis=1)
        cumulative[:, -1] = np.inf
        labels = (rng.random(scenario.n)[:, None] >= cumulative).sum(axis=1)
        labels = np.where(probs[np.arange(len(labels)), labels] > 0, labels, probs.argmax(axis=1))
        data = ct.Predictions.of(probs, labels)
        for t, test in asked:
            table[r, t] = ct.calibration_test(
                data, None, test.statistic, lens=test.lens, null=test.null, n_resamples=B, rng=rng
            ).pvalue
    return table


def study(quick: bool, seed: int, workers: int) -> tuple[str, list[str]]:
    """Run everything; return the tables as Markdown and the cells that broke their promise."""
    full, least = (30, 10) if quick else (600, 200)
    sizes = [max(least, full * 300 // max(300, s.n)) for s in SCENARIOS]
    with ProcessPoolExecutor(workers) as pool:
        tables = list(pool.map(p_values, range(len(SCENARIOS)), sizes, [seed] * len(SCENARIOS)))
    claims = sum(test.valid for test in TESTS)
    tail = FALSE_ALARM / (len(SCENARIOS) * claims * len(LEVELS))
    letters = [chr(ord("A") + s) for s in range(len(SCENARIOS))]
    lines = ["| | data | n | data sets |", "|---|---|--:|--:|"]
    for letter, scenario, size in zip(letters, SCENARIOS, sizes, strict=True):
        lines.append(f"| {letter} | {scenario.name} | {scenario.n} | {size} |")
    broken = []
    for level in LEVELS:
        lines += ["", f"## At level {level:g}", "", "| test | " + " | ".join(letters) + " |"]
        lines.append("|---|" + "--:|" * len(letters))
        for t, test in enumerate(TESTS):
            cells = []
            for scenario, table in zip(SCENARIOS, tables, strict=True):
                if np.isnan(table[0, t]):
                    cells.append("–")
                    continue
                rate = (table[:, t] <= level + 1e-12).mean()
                too_often = rate > binom.isf(tail, len(table), level) / len(table)
                cells.append(f"**{rate:.3f}**" if too_often else f"{rate:.3f}")
                if too_often and test.valid:
                    broken.append(f"{test}, {scenario.name}, n={scenario.n}: {rate:.3f} at {level}")
            lines.append(f"| {test} | {' | '.join(cells)} |")
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


def main() -> None:
    """Run the study from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small version, printed only")
    parser.add_argument("--seed", type=int, default=20190416)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    start = time.perf_counter()
    table, broken = study(options.quick, options.seed, options.workers)
    seconds = time.perf_counter() - start
    if options.quick:
        print(table)
    else:
        minutes = seconds * options.workers / 60.0
        text = HEADER.format(b=B, seed=options.seed, minutes=minutes) + table
        TARGET.write_text(text, encoding="utf-8")
    print(f"{len(SCENARIOS)} scenarios, {len(TESTS)} tests, {seconds:.0f} s")
    for cell in broken:
        print(f"too often: {cell}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
