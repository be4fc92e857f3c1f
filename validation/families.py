"""Errors of families: several tests of one model, several models, one seed used twice.

``python -m validation.families`` writes ``docs/families.md``; ``--quick`` is a small version that
prints. Either fails when a family has a false rejection more often than its level allows, beyond
chance.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr

import caltest as ct
from caltest.inference.null import holm
from validation.draws import labels_from, two_classes, uniform
from validation.pages import largest_rate, opening, table
from validation.study import Study, run

ALPHA = 0.05
B = 199


@dataclass(frozen=True)
class Questions:
    """One model, seen class by class through three statistics.

    The truth is a function of the predictions; the hypotheses of the classes named are true.
    """

    name: str
    n: int
    n_classes: int
    truth: Callable[[np.ndarray], np.ndarray]
    true: tuple[int, ...]

    @property
    def key(self) -> str:
        return f"{self.name}, {self.n_classes} classes, n={self.n}"


def calibrated(probs):
    return probs


def confused(a, b, share, probs):
    """Classes a and b take each other's place in a share of the rows; the others stay right."""
    truth = probs.copy()
    truth[:, [a, b]] = (1.0 - share) * probs[:, [a, b]] + share * probs[:, [b, a]]
    return truth


def last_five(share, probs):
    """The labels of the last five classes are uniform among them in a share of the rows."""
    truth = probs.copy()
    truth[:, 5:] = (1.0 - share) * probs[:, 5:] + share * probs[:, 5:].mean(axis=1, keepdims=True)
    return truth


@dataclass(frozen=True)
class Models:
    """Several models of the same rows, by the error each has: models of equal error tie."""

    name: str
    n: int
    errors: tuple[float, ...]

    @property
    def key(self) -> str:
        return f"{self.name}, n={self.n}"


@dataclass(frozen=True)
class OneSeed:
    """Two classes, drawn and tested with one seed, or with two."""

    name: str
    n: int
    same: bool

    @property
    def key(self) -> str:
        return f"{self.name}, n={self.n}"


QUESTIONS = [
    Questions("all classes right", 300, 3, calibrated, (0, 1, 2)),
    Questions("class 0 right, 1 and 2 confused a little", 300, 3, partial(confused, 1, 2, 0.1),
              (0,)),
    Questions("class 0 right, 1 and 2 confused a lot", 300, 3, partial(confused, 1, 2, 0.4), (0,)),
    Questions("all classes right", 1000, 10, calibrated, tuple(range(10))),
    Questions("classes 0 to 4 right, the others too sharp", 1000, 10, partial(last_five, 0.5),
              tuple(range(5))),
    Questions("all but 0 and 1 right", 1000, 10, partial(confused, 0, 1, 0.5), tuple(range(2, 10))),
]  # fmt: skip
MODELS = [
    Models("4 models, equal errors", 1000, (0.2,) * 4),
    Models("4 models, two and two of equal error", 1000, (0.0, 0.0, 0.4, 0.4)),
    Models("8 models, equal errors", 1000, (0.2,) * 8),
    Models("8 models, seven of equal error", 1000, (0.2,) * 7 + (0.6,)),
    Models("8 models, calibrated", 1000, (0.0,) * 8),
]
SEEDS = [
    OneSeed("one seed", 100, True),
    OneSeed("two seeds", 100, False),
    OneSeed("one seed", 1000, True),
    OneSeed("two seeds", 1000, False),
]
CASES = {case.key: case for case in [*QUESTIONS, *MODELS, *SEEDS]}

ADJUSTED = ("plain", "Holm", "max-T")
EVENT = ct.OneVsRest(1)
SEEDED = {
    "ECE(15)": ct.ECE(15),
    "Kuiper": ct.Kuiper(),
    "SKCE": ct.SKCE(),
    "Cox score": ct.CoxScore(),
    "log gap": ct.ScoreGap("log"),
}


def tests(case: Any) -> dict[str, Any]:
    if isinstance(case, Questions):
        return dict.fromkeys(ADJUSTED, 1)
    if isinstance(case, Models):
        return dict.fromkeys(ADJUSTED[:2], 1)
    return SEEDED


def measure(case, wanted, rng):
    """Return what a family calls wrong that is not, and that is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(case, Questions):
            return answered(case, rng)
        return compared(case, rng) if isinstance(case, Models) else seeded(case, wanted, rng)


def answered(case, rng):
    """Return whether any true hypothesis is rejected, and the share of the others that are."""
    probs = rng.dirichlet(np.ones(case.n_classes), case.n)
    labels = labels_from(case.truth(probs), rng)
    asked = [
        (statistic, ct.OneVsRest(k))
        for k in range(case.n_classes)
        for statistic in (ct.ECE(15), ct.Kuiper(), ct.CoxScore())
    ]
    seed = int(rng.integers(2**63))
    joint = ct.joint_test(probs, labels, pairs=asked, n_resamples=999, rng=seed)
    true = np.repeat(np.isin(np.arange(case.n_classes), case.true), 3)
    plain = [test.pvalue for test in joint.tests]
    return {
        name: counted(np.array(p) <= ALPHA + 1e-12, true)
        for name, p in zip(ADJUSTED, (plain, holm(plain), joint.adjusted), strict=True)
    }


def counted(rejected, true):
    return rejected[true].any(), rejected[~true].mean() if not true.all() else 0.0


def compared(case, rng):
    """Return the same for all pairs of models of equal error: mirror images of the truth."""
    u = rng.normal(size=case.n)
    labels = (u + rng.normal(size=case.n) > 0.0).astype(np.int64)
    models = {}
    for j, error in enumerate(case.errors):
        sign = 1.0 if j % 2 else -1.0
        own = 0.3 * rng.normal(size=case.n)  # each knows the feature with noise of its own
        known = (u + own) / (1.09 * 1.18) ** 0.5  # P(label 1) = Φ of this, given u + own
        models[str(j)] = two_classes(ndtr(known + sign * error))
    answer = ct.compare_models(models, labels, lens=EVENT, n_resamples=1, rng=0)
    named = [(int(a), int(b)) for a, b in (pair.names for pair in answer.pairs)]
    true = np.array([case.errors[a] == case.errors[b] for a, b in named])
    plain = [pair.pvalue for pair in answer.pairs]
    return {
        name: counted(np.array(p) <= ALPHA, true)
        for name, p in zip(ADJUSTED, (plain, answer.adjusted), strict=False)
    }


def seeded(case, wanted, rng):
    """Return which tests reject calibrated data."""
    first, second = (int(seed) for seed in rng.integers(2**32, size=2))
    source = np.random.default_rng(first)
    probs = two_classes(uniform(source, case.n))
    labels = labels_from(probs, source)
    options = {"as_is": True, "lens": EVENT, "null": ct.RedrawLabels(), "n_resamples": B}
    options["rng"] = first if case.same else second
    pvalues = {
        name: ct.calibration_test(probs, labels, SEEDED[name], **options).pvalue for name in wanted
    }
    return {name: (p <= ALPHA + 1e-12,) for name, p in pvalues.items()}


def page(found):
    """Return the page, and the families with too many false rejections."""
    shown = [CASES[name] for name in found.shown]
    claims = sum(len(tests(case)) - (not isinstance(case, OneSeed)) for case in shown)
    broken: list[str] = []

    def rate(case, name):
        means, sets = found.means(case.key, name), found.sets(case.key)
        if means is None:
            return "–"
        if name != "plain" and means[0] > largest_rate(ALPHA, sets, claims):
            broken.append(f"{name}, {case.key}: {means[0]:.3f}")
            return f"**{means[0]:.3f}**"
        return f"{means[0]:.3f}"

    def part(kind, title, head, names, extra):
        cases = [case for case in shown if isinstance(case, kind)]
        rows = [
            [case.name, *extra(case), case.n, found.sets(case.key)]
            + [rate(case, name) for name in names]
            + [f"{found.means(case.key, n)[1]:.3f}" for n in names if kind is not OneSeed]
            for case in cases
        ]
        return "\n".join([title, *table(head, rows), "", ""])

    adjusted = [*ADJUSTED, *(f"{name}, found" for name in ADJUSTED)]
    pairwise = [*ADJUSTED[:2], *(f"{name}, found" for name in ADJUSTED[:2])]
    count = ["data sets"]
    text = part(Questions, QUESTIONS_HEAD, ["model", "K", "n", *count, *adjusted], ADJUSTED,
                lambda case: [case.n_classes])  # fmt: skip
    text += part(Models, MODELS_HEAD, ["models", "n", *count, *pairwise], ADJUSTED[:2],
                 lambda case: [])  # fmt: skip
    text += part(OneSeed, SEEDS_HEAD, ["data and test from", "n", *count, *SEEDED], list(SEEDED),
                 lambda case: [])  # fmt: skip
    return HEADER.format(b=B, **opening(found)) + text.rstrip() + "\n", broken


QUESTIONS_HEAD = """## Several questions about one model

Every class against the rest, by three statistics (`ECE(15)`, `Kuiper`, `CoxScore`): nine or thirty
tests; the hypotheses of the calibrated classes are true. "plain" takes every p-value by itself,
"max-T" is the method of `joint_test` and of `audit(adjust="max-T")`. "found" is the share of false
hypotheses that are rejected. Confused: two classes take each other's place in some rows.
"""
MODELS_HEAD = """## Several models, all pairs compared

`compare_models` of probit models, each of a feature with noise of its own, shifted up or down by
as much.
"""
SEEDS_HEAD = """## One seed for data and test

Calibrated data come from `numpy.random.default_rng(seed)`, and the test gets the same `rng=seed`,
or another. At most 0.05 is wanted.
"""
HEADER = """# Multiple testing: error rates of adjusted p-values

Adjusted p-values keep the chance of *any* false rejection at 5 %, also when some of the hypotheses
are false (strong control): by Holm's method and by max-T for several questions about one model, and
by Holm's method for all pairs of several models. A seed may serve for the data and for the test.

The tables show the share of data sets in which any true hypothesis is rejected at the 5 % level. A
rate in bold is larger than chance allows, one false alarm in a thousand such studies; "plain",
without adjustment, promises nothing here.

{made}

"""

STUDY = Study("families", CASES, tests, measure, page, sets=1000)
if __name__ == "__main__":
    run(STUDY)
