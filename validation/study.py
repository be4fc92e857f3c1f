"""What the studies share: models, labels, limits of chance, tables, and the command line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import binom

#: Where the pages are.
DOCS = Path(__file__).parents[1] / "docs"
#: Chance that a method that keeps its promise fails a study, over all cells of it.
FALSE_ALARM = 1e-3

#: Quickly or not, seed, workers → tables as Markdown, and the cells that broke their promise.
Study = Callable[[bool, int, int], tuple[str, list[str]]]


def two_classes(p: np.ndarray) -> np.ndarray:
    """Return rows of probabilities from those of class 1."""
    return np.column_stack([1.0 - p, p])


def labels_from(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a label for every row; one of probability 0 is never drawn."""
    cumulative = np.cumsum(probs, axis=1)[:, :-1]
    labels = (rng.random(len(probs))[:, None] >= cumulative).sum(axis=1)
    return np.where(probs[np.arange(len(labels)), labels] > 0, labels, probs.argmax(axis=1))


def largest_rate(level: float, trials: int, claims: int) -> float:
    """Return the rate that a test of this level exceeds by chance in few of so many claims."""
    return float(binom.isf(FALSE_ALARM / claims, trials, level) / trials)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> list[str]:
    """Return the lines of a table in Markdown, whose first columns are flush left."""
    rule = ["---"] * left + ["--:"] * (len(head) - left)
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(rule) + "|"]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def run(
    description: str | None,
    study: Study,
    page: str,
    header: str,
    *,
    seed: int = 20190416,
    broken: str = "too often",
    **words: object,
) -> None:
    """Run a study from the command line; write its page, or print it; fail if a promise is broken.

    The header is a format for ``seed``, ``minutes`` of one core, and the words given.
    """
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small version, printed only")
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    start = time.perf_counter()
    tables, cells = study(options.quick, options.seed, options.workers)
    seconds = time.perf_counter() - start
    if options.quick:
        print(tables)
    else:
        minutes = seconds * options.workers / 60.0
        text = header.format(seed=options.seed, minutes=minutes, **words) + tables
        (DOCS / page).write_text(text, encoding="utf-8")
    print(f"{seconds:.0f} s")
    for cell in cells:
        print(f"{broken}: {cell}")
    sys.exit(1 if cells else 0)
