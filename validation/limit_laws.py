"""Size of the limit laws at 5 %, in kinds of data that suit them and in kinds that do not.

``python -m validation.limit_laws`` writes the table of ``docs/concepts/nulls.md``: the share of
calibrated data sets that each law rejects, marked where it warns in most of them; ``--quick`` is a
small version that prints. Either fails when a law rejects more than 1.5 times its level, beyond
chance, in those data sets of a kind in which it does not warn.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import binom

import caltest as ct
from caltest.errors import LimitLawWarning, StatisticError

LEVEL = 0.05
#: How many times its level a law may reach without a warning.
ALLOWED = 1.5
#: Chance that laws that keep to it fail somewhere.
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
#: Data sets of each kind; fewer for statistics of pairs of rows.
COUNT, PAIRS = 1500, 400
kernel = ct.LaplaceKernel("median")
TWO = {
    "in the large": ct.CalibrationInTheLarge(),
    "Cox score": ct.CoxScore(),
    "Cox ratio": ct.CoxLR(),
    "H–L": ct.HosmerLemeshow(),
    "H–L, df = 8": ct.HosmerLemeshow(df=8),
    "K–S": ct.KolmogorovSmirnov(),
    "Kuiper": ct.Kuiper(),
}
ANY = {
    "gap Brier": ct.ScoreGap("brier"),
    "gap log": ct.ScoreGap("log"),
    "Brier": ct.BrierScore(),
    "log": ct.LogScore(),
    "SKCE unbiased": ct.SKCE(kernel, estimator="unbiased"),
    "SKCE linear": ct.SKCE(kernel, estimator="linear"),
    "SKCE block": ct.SKCE(kernel, estimator="block"),
}
#: Name, statistic, and lens: the event of two classes, or all that there is.
LAWS = [
    *((name, statistic, ct.OneVsRest(1)) for name, statistic in TWO.items()),
    *((name, statistic, ct.Canonical()) for name, statistic in ANY.items()),
]
PAGE = Path(__file__).parents[1] / "docs" / "concepts" / "nulls.md"
BEGIN, END = "<!-- limit laws -->\n", "<!-- end of limit laws -->\n"


def data_sets(kind: int, count: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Draw predictions of one kind, and labels from them."""
    _, n, draw = KINDS[kind]
    for number in range(count):
        rng = np.random.default_rng([seed, kind, number])
        probs = draw(rng, n)
        cumulative = probs[:, None] if probs.ndim == 1 else probs.cumsum(axis=1)[:, :-1]
        above = (rng.random(n)[:, None] >= cumulative).sum(axis=1)
        yield probs, 1 - above if probs.ndim == 1 else above


def asked(probs, labels, statistic, lens) -> tuple[float, bool]:
    """Return the p-value, nan where there is none, and whether the law warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = ct.calibration_test(
                probs, labels, statistic, lens=lens, null="asymptotic", as_is=True
            )
        except StatisticError:
            return np.nan, False
    return result.pvalue, any(w.category is LimitLawWarning for w in caught)


def cell(kind: int, name: str, statistic, lens, count: int, seed: int) -> tuple[str, str | None]:
    """Return a cell of the table, and what it says if the law fails without a warning."""
    found = [asked(*data, statistic, lens) for data in data_sets(kind, count, seed)]
    pvalue, warned = (np.array(column) for column in zip(*found, strict=True))
    there = np.isfinite(pvalue)
    if there.mean() < 0.5:
        return "–", None
    rejected, warned = pvalue[there] <= LEVEL, warned[there].astype(bool)
    shown = f"{rejected.mean():.3f}{' !' if warned.mean() > 0.5 else ''}"
    silent = rejected[~warned]
    most = binom.isf(FALSE_ALARM / (len(KINDS) * len(LAWS)), silent.size, ALLOWED * LEVEL)
    failed = silent.size > 0 and silent.sum() > most
    return shown, f"{name}, {KINDS[kind][0]}, n = {KINDS[kind][1]}: {shown}" if failed else None


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the data sets, printed")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    lines = [f"| predictions | n | {' | '.join(name for name, *_ in LAWS)} |"]
    lines.append("|---|--:|" + "--:|" * len(LAWS))
    broken = []
    for kind, (what, n, _) in enumerate(KINDS):
        row = []
        for name, statistic, lens in LAWS:
            count = PAIRS if "SKCE" in name else COUNT
            count = count // 10 if options.quick else count
            shown, failure = cell(kind, name, statistic, lens, count, options.seed)
            row.append(shown)
            broken += [failure] if failure else []
        lines.append(f"| {what} | {n} | {' | '.join(row)} |")
        print(lines[-1], flush=True)
    if not options.quick:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        after = rest.split(END)[1]
        text = before + BEGIN + "\n".join(lines) + "\n" + END + after
        PAGE.write_text(text, encoding="utf-8")
    for failure in broken:
        print("fails without a warning:", failure)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
