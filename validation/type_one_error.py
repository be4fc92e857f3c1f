"""Type-I error of every kind of test on calibrated data.

``python -m validation.type_one_error`` writes ``docs/validity.md``; ``--quick`` is a small version
that prints. Either fails when a test that claims to be valid rejects calibrated models more often
than chance allows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import caltest as ct
from validation import draws
from validation.draws import binary, dirichlet, labels_from
from validation.pages import largest_rate, letter, opening, table, usual_largest
from validation.study import Study, run

LEVELS = (0.01, 0.05, 0.1)
B = 199


@dataclass(frozen=True)
class Scenario:
    """Calibrated predictions: n rows drawn by a function of (rng, n), each so many times."""

    name: str
    n: int
    draw: Callable[[np.random.Generator, int], np.ndarray]
    copies: int = 1

    @property
    def key(self) -> str:
        return f"{self.name}, n={self.n}"

    def __call__(self, rng: np.random.Generator) -> ct.Predictions:
        probs = self.draw(rng, self.n // self.copies)
        labels = labels_from(probs, rng)
        return ct.Predictions.of(
            *(np.repeat(x, self.copies, axis=0) for x in (probs, labels)), as_is=True
        )


def two(name, n, sample, *options, copies=1):
    draw = partial(sample, *options) if options else sample
    return Scenario(f"2 classes, {name}", n, partial(binary, draw), copies)


def many(n_classes, concentration, n):
    name = f"{n_classes} classes, Dirichlet({concentration:g})"
    return Scenario(name, n, partial(dirichlet, concentration, n_classes))


SCENARIOS = [
    two("uniform", 10, draws.uniform),
    two("uniform", 50, draws.uniform),
    two("uniform", 1000, draws.uniform),
    two("uniform", 3000, draws.uniform),
    two("very confident", 200, draws.confident),
    two("very confident", 3000, draws.confident),
    two("0 and 1 among them", 300, draws.certain),
    two("one value, .1", 20, draws.constant, 0.1),
    two("one value, .01", 1000, draws.constant, 0.01),
    two("two values, .1 and .7", 50, draws.values, (0.1, 0.7)),
    two("five values", 100, draws.values, (0.05, 0.2, 0.5, 0.7, 0.99)),
    two("nine values", 100, draws.tied),
    two("rate .0125, beta(.5, 40)", 500, draws.rare),
    two("rate .01, gamma(.5, .02)", 200, draws.gamma, 0.5, 0.02),
    two("rate .01, gamma(.5, .02)", 2000, draws.gamma, 0.5, 0.02),
    two("rate .004, gamma(.2, .02)", 3000, draws.gamma, 0.2, 0.02),
    two("hundredths in 32 bits", 200, draws.single, 2),
    many(3, 1.0, 100),
    many(3, 0.1, 1000),
    Scenario("3 classes, tenths (tied, zeros)", 200, partial(draws.rounded, 3)),
    many(10, 1.0, 250),
    many(10, 0.1, 250),
    many(10, 0.1, 2000),
    many(100, 0.1, 500),
    two("uniform, each row ten times", 1000, draws.uniform, copies=10),
]

REDRAW, PUBLISHED = ct.RedrawLabels(), ct.ConsistencyResampling()
TOP, EVENT, WHOLE = ct.TopK(1), ct.OneVsRest(1), ct.Canonical()


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


TREE, SQUARES = ct.VarianceTree(20), ct.ECE(15, distance="sqeuclidean")
BLOCK, LINEAR = ct.SKCE(estimator="block"), ct.SKCE(estimator="linear")
LIMIT = "asymptotic"
TESTS = [
    Case(ct.ECE(15), TOP, "exact"),
    Case(ct.ECE(100), TOP, "exact"),
    Case(ct.ECE(ct.QuantileBins(15)), EVENT, "exact"),
    Case(SQUARES, EVENT, "exact"),
    Case(ct.MCE(15), TOP, "exact"),
    Case(ct.HosmerLemeshow(), EVENT, "exact", largest=100),
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
    Case(ct.KolmogorovSmirnov(), EVENT, LIMIT),
    Case(ct.Kuiper(), EVENT, LIMIT),
    Case(ct.Spiegelhalter(), EVENT, LIMIT),
    Case(ct.ScoreGap("brier"), WHOLE, LIMIT),
    Case(ct.ScoreGap("log"), WHOLE, LIMIT),
    Case(ct.ScoreGap("spherical"), WHOLE, LIMIT),
    Case(ct.BrierScore(), EVENT, LIMIT),
    Case(ct.LogScore(), EVENT, LIMIT),
    Case(ct.CalibrationInTheLarge(), EVENT, LIMIT),
    Case(ct.CoxScore(), EVENT, LIMIT),
    Case(ct.CoxLR(), EVENT, LIMIT, largest=2000),
    Case(ct.HosmerLemeshow(), EVENT, LIMIT),
    Case(ct.SKCE(), EVENT, LIMIT, largest=300),
    Case(BLOCK, EVENT, LIMIT),
    Case(LINEAR, EVENT, LIMIT),
    Case(ct.ECE(15), TOP, PUBLISHED),
    Case(ct.ECE(100), TOP, PUBLISHED),
    Case(ct.ECE(ct.UniformBins(10)), WHOLE, PUBLISHED),
]
CASES = {str(case): case for case in TESTS}


def tests(scenario):
    return {name: case for name, case in CASES.items() if scenario.n <= case.largest}


def measure(scenario, wanted, rng):
    """Return at which levels the tests reject; one that has no answer does not."""
    data, seed = scenario(rng), int(rng.integers(2**63))
    answers = {}
    for name in wanted:
        case = CASES[name]
        options = {"lens": case.lens, "null": case.null, "n_resamples": B, "rng": seed}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p = ct.calibration_test(data, None, case.statistic, **options).pvalue
        except ct.StatisticError:
            p = 1.0
        answers[name] = [p <= level + 1e-12 for level in LEVELS]
    return answers


def promised(scenario, case):
    return case.valid and scenario.copies == 1


def page(found):
    """Return the page, and the cells that broke their promise."""
    shown = [s for s in SCENARIOS if s.key in found.shown]
    cells = [(s, name) for s in shown for name in tests(s)]
    claims = len(LEVELS) * sum(promised(s, CASES[name]) for s, name in cells)
    data = [(letter(i), s.name, s.n, found.sets(s.key)) for i, s in enumerate(shown)]
    lines = table(["", "data", "n", "data sets"], data, left=2)
    broken = []
    for column, level in enumerate(LEVELS):
        rows = []
        for name, case in CASES.items():
            row = [found.label(name)]
            for scenario in shown:
                means = found.means(scenario.key, name)
                if means is None:
                    row.append("–")
                    continue
                rate, sets = means[column], found.trials(scenario.key, name)
                too_often = rate > largest_rate(level, sets, claims)
                row.append(f"**{rate:.3f}**" if too_often else f"{rate:.3f}")
                if too_often and promised(scenario, case):
                    broken.append(f"{name}, {scenario.key}: {rate:.3f} at {level}")
            rows.append(row)
        head = ["test", *(letter(i) for i in range(len(shown)))]
        lines += ["", f"## At level {level:g}", "", *table(head, rows)]
    found_at = [(s, CASES[name], found.means(s.key, name)) for s, name in cells]
    rates = [means[1] for s, case, means in found_at if means and promised(s, case)]
    limits = [m[1] for s, case, m in found_at if m and case.null == LIMIT and s.copies == 1]
    words = {
        "b": B,
        "count": len(rates),
        "mean": np.mean(rates),
        "worst": max(rates),
        "usual": usual_largest(0.05, min(found.sets(s.key) for s in shown), len(rates)),
        "limits": len(limits),
        "bad": sum(rate > 0.075 for rate in limits),
        "most": max(limits),
    }
    return HEADER.format(**words, **opening(found)) + "\n".join([*lines, ""]), broken


HEADER = """# Type-I error of the tests

A test marked "exact" or "redraw" calls a *calibrated* model miscalibrated as rarely as its level
says, for every number of rows and every kind of prediction here: at 0.05 in {mean:.3f} of data sets
on average over {count} cells, and in {worst:.3f} in the worst, where chance alone makes the worst
of so many {usual:.3f}. A limit law, marked "asymptotic", is right when there is enough data: {bad}
of {limits} cells are above 0.075, the worst at {most:.3f}. All of them need independent rows: the
last kind of data, copies, shows what happens otherwise.

Predictions are drawn, labels are drawn from the predictions, and the test is run; the tables show
the share of data sets with p ≤ 0.01, 0.05 and 0.1. A valid test stays at or below the level, up to
the binomial error of the study: a rate in bold is larger than chance allows (one false alarm in a
thousand such studies). "exact" and "redraw" are caltest's own nulls.
"published" is consistency resampling as in Vaicenavicius et al. (2019), which bootstraps the
predictions too: it holds its level when cells are well filled and fails, up to rejecting every
calibrated model, when they are sparse. Cells of one row occur for `ECE(100)` with few rows, and
of whole vectors.

Simulated nulls use {b} replicates, so that the three levels are attained.

{made}

"""

SLOW = (
    Case(ct.ECE(100), TOP, "exact"),
    Case(ct.SmoothECE(), EVENT, largest=2000),
    Case(ct.MultiScale(), WHOLE, largest=2000),
)
STUDY = Study(
    "validity",
    {s.key: s for s in SCENARIOS},
    tests,
    measure,
    page,
    quick=8,
    slow=tuple(map(str, SLOW)),
)
if __name__ == "__main__":
    run(STUDY)
