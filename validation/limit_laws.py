"""Size of the limit laws at 5 %, in kinds of data that suit them and in kinds that do not.

``PYTHONPATH=. python -m validation.limit_laws`` prints the table of ``docs/concepts/nulls.md``:
the share of calibrated data sets that each law rejects, and the share in which it warns. It fails
when a law rejects more than 1.5 times its level, beyond chance, in data sets of a kind in which it
does not warn.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.stats import binom

import caltest as ct
from caltest.errors import LimitLawWarning, StatisticError

LEVEL = 0.05
#: What a warned-of law may exceed: this share above its level is a failure.
ALLOWED = 1.5
#: Chance that a law that keeps to it fails somewhere.
FALSE_ALARM = 1e-3


def uniform(rng, n):
    return rng.random(n)


def confident(rng, n):
    p = rng.beta(20.0, 0.5, n)
    return np.where(rng.random(n) < 0.5, p, 1.0 - p)


def values(distinct, rng, n):
    return rng.choice(distinct, n)


def certain(rng, n):
    return np.clip(rng.uniform(-0.3, 1.3, n), 0.0, 1.0)


def beta(a, b, rng, n):
    return rng.beta(a, b, n)


def dirichlet(concentration, n_classes, rng, n):
    return rng.dirichlet(np.full(n_classes, concentration), n)


#: What the predictions are, how many, and how they are drawn.
KINDS: list[tuple[str, int, Callable[[np.random.Generator, int], np.ndarray]]] = [
    ("uniform", 10, uniform),
    ("uniform", 25, uniform),
    ("uniform", 100, uniform),
    ("uniform", 500, uniform),
    ("very confident", 100, confident),
    ("very confident", 500, confident),
    ("one value, .05", 50, partial(values, [0.05])),
    ("two values, .1 and .9", 50, partial(values, [0.1, 0.9])),
    ("tenths", 100, partial(values, np.arange(1, 10) / 10)),
    ("zeros and ones among them", 300, certain),
    ("rare, 1 event expected", 100, partial(beta, 0.5, 49.5)),
    ("rare, 3 events expected", 300, partial(beta, 0.5, 49.5)),
    ("rare, 10 events expected", 500, partial(beta, 0.5, 24.5)),
    ("3 classes, Dirichlet(1)", 100, partial(dirichlet, 1.0, 3)),
    ("10 classes, Dirichlet(.1)", 100, partial(dirichlet, 0.1, 10)),
    ("10 classes, Dirichlet(.1)", 500, partial(dirichlet, 0.1, 10)),
]
kernel = ct.LaplaceKernel("median")
TWO = [
    ct.CalibrationInTheLarge(),
    ct.CoxScore(),
    ct.CoxLR(),
    ct.HosmerLemeshow(),
    ct.HosmerLemeshow(df=8),
    ct.KolmogorovSmirnov(),
    ct.Kuiper(),
]
ANY = [
    ct.ScoreGap("brier"),
    ct.ScoreGap("log"),
    ct.ScoreGap("spherical"),
    ct.BrierScore(),
    ct.LogScore(),
    ct.SphericalScore(),
    ct.SKCE(kernel, estimator="unbiased"),
    ct.SKCE(kernel, estimator="linear"),
    ct.SKCE(kernel, estimator="block"),
    ct.UCME(estimator="score"),
]
BOUNDS = [ct.SKCE(kernel, estimator="biased"), ct.SKCE(kernel, estimator="unbiased")]
#: Statistic, its law, and its lens; by default the event of two classes, else the whole vector.
LAWS = [
    *((statistic, "asymptotic", ct.OneVsRest(1)) for statistic in TWO),
    *((statistic, "asymptotic", ct.Canonical()) for statistic in ANY),
    *((statistic, "distribution-free", ct.Canonical()) for statistic in BOUNDS),
]


def data_sets(kind: int, count: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Draw predictions of one kind, and labels from them."""
    _, n, draw = KINDS[kind]
    for number in range(count):
        rng = np.random.default_rng([seed, kind, number])
        probs = draw(rng, n)
        cumulative = probs[:, None] if probs.ndim == 1 else probs.cumsum(axis=1)[:, :-1]
        above = (rng.random(n)[:, None] >= cumulative).sum(axis=1)
        yield probs, 1 - above if probs.ndim == 1 else above


def asked(probs, labels, statistic, law, lens) -> tuple[float, bool]:
    """Return the p-value, nan where there is none, and whether the law warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = ct.calibration_test(probs, labels, statistic, lens=lens, null=law)
        except StatisticError:
            return np.nan, False
    return result.pvalue, any(w.category is LimitLawWarning for w in caught)


def row(statistic, law, lens, count: int, seed: int) -> tuple[list[str], list[str]]:
    """Return a row of the table, and the kinds in which the law fails without a warning."""
    cells, failures = [], []
    for kind, (name, n, _) in enumerate(KINDS):
        found = [asked(*data, statistic, law, lens) for data in data_sets(kind, count, seed)]
        pvalue, warned = (np.array(column) for column in zip(*found, strict=True))
        there = np.isfinite(pvalue)
        if there.mean() < 0.5:
            cells.append("–")
            continue
        rejected = pvalue[there] <= LEVEL
        share = warned[there].mean()
        mark = "!" if share > 0.5 else ""
        cells.append(f"{rejected.mean():.3f}{mark}")
        silent = rejected[~warned[there]]
        claims = len(KINDS) * len(LAWS)
        if silent.size and silent.sum() > binom.isf(
            FALSE_ALARM / claims, silent.size, ALLOWED * LEVEL
        ):
            failures.append(f"{statistic!r} {law}, {name}, n = {n}: {silent.mean():.3f}")
    return cells, failures


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="200 data sets of each kind")
    parser.add_argument("--seed", type=int, default=20190416)
    options = parser.parse_args()
    count, broken = 200 if options.quick else 2000, []
    for number, (name, n, _) in enumerate(KINDS):
        print(f"{number + 1}. {name}, n = {n}")
    print("| statistic |", " | ".join(str(k + 1) for k in range(len(KINDS))), "|")
    print("|---|" + "--:|" * len(KINDS))
    for statistic, law, lens in LAWS:
        cells, failures = row(statistic, law, lens, count, options.seed)
        print(f"| `{statistic!r}` {law} |", " | ".join(cells), "|", flush=True)
        broken += failures
    for failure in broken:
        print("fails without a warning:", failure)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
