"""Coverage of every kind of interval, on data whose binned error is known.

``python -m validation.coverage`` writes ``docs/coverage.md``; ``--quick`` is a small version that
prints. Either fails when the recommended method covers less than 93 % of the time by more than
chance allows.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from scipy.special import bdtr

import caltest as ct
from validation.known_errors import SCENARIOS, Scenario
from validation.pages import FALSE_ALARM, letter, opening, table
from validation.study import Study, run

LEVEL, GOAL = 0.95, 0.93
ALPHA = (1.0 - LEVEL) / 2.0
#: Draws of an inversion, and samples of the bootstrap, which is slow.
B, RESAMPLES = 999, 199
#: Rows from which the true error of fixed cells is computed.
MANY = 500_000

METHODS = {
    "ECE": ("inversion", "bootstrap"),
    "DebiasedL2": ("inversion", "bootstrap"),
    "MCE": ("inversion",),
}


def tests(scenario):
    """Return the statistics and methods that fit."""
    whole = isinstance(scenario.lens, ct.Canonical)
    left_out = set() if scenario.bootstrap else {"bootstrap"}
    if whole or scenario.cluster > 1:
        left_out.add("MCE")
    if scenario.lens == ct.TopK(3):
        left_out.add("MCE")
    return {
        f"{name} {method}": (name, method)
        for name, methods in METHODS.items()
        for method in methods
        if not {name, method} & left_out
    }


def true_errors(scenario: Scenario, probs: np.ndarray, q: np.ndarray) -> dict[str, float]:
    """Return the binned errors of predictions whose label probabilities are known."""
    g, r = induced_truth(scenario.lens, probs, q)
    rows = ct.Predictions(g, np.zeros(len(g), dtype=np.int64), induced=True)
    cells = ct.Cells.of(scenario.bins, ct.RowProblem(rows))
    gaps = cells.sum(r - g) / cells.counts[:, None]
    share, squares = cells.counts / len(g), (gaps**2).sum(axis=1)
    two_classes = g.shape[1] == 2
    return {
        "ECE": float(share @ np.abs(gaps).sum(axis=1)) / 2.0,
        "DebiasedL2": float(share @ squares) / (2.0 if two_classes else 1.0),
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


@cache
def of_new_data(scenario):
    """Return the errors of cells that do not depend on the sample."""
    rng = np.random.default_rng(20190416)
    probs = ct.Predictions.of(scenario.draw(rng, MANY), np.zeros(MANY, dtype=np.int64)).probs
    return true_errors(scenario, probs, scenario.truth(probs))


def measure(scenario, wanted, rng):
    """Return whether the intervals cover, and how long they are."""
    data, q = scenario(rng)
    seed = int(rng.integers(2**63))
    true = own = true_errors(scenario, data.probs, q)
    if scenario.fixed:
        true = {**of_new_data(scenario), "MCE": own["MCE"]}  # no row, no largest
    answers = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, statistic in (
            ("ECE", ct.ECE(scenario.bins)),
            ("DebiasedL2", ct.DebiasedL2(scenario.bins)),
            ("MCE", ct.MCE(scenario.bins)),
        ):
            methods = [m for m in METHODS[name] if f"{name} {m}" in wanted]
            for method, (low, high) in limits(scenario, data, statistic, methods, seed).items():
                value = true[name]
                covers = max(low, 0.0) <= value + 1e-9 and high >= value - 1e-9
                answers[f"{name} {method}"] = (covers, max(high, 0.0) - max(low, 0.0))
    return answers


def limits(scenario, data, statistic, methods, seed):
    """Return the limits by method; nothing where there is no answer, which does not cover."""
    found = dict.fromkeys(methods, (0.0, -1.0))
    lens = scenario.lens
    for method in set(methods) - {"bootstrap"}:
        with suppress(ct.StatisticError):
            answer = ct.confidence_interval(
                data, None, statistic, lens=lens, level=LEVEL, method=method,
                n_resamples=B, rng=seed,
            )  # fmt: skip
            found[method] = (answer.low, answer.high)
    if "bootstrap" in methods:
        induced = lens(data)
        values = ct.replicate(
            induced, statistic, ct.Bootstrap(), n_resamples=RESAMPLES, rng=seed
        ).values
        found["bootstrap"] = tuple(np.quantile(values, (ALPHA, 1.0 - ALPHA)))
    return {method: found[method] for method in methods}


def page(found):
    """Return the page, and the cells that missed the goal."""
    shown = [s for s in SCENARIOS if s.key in found.shown]
    data = [
        (letter(i), s.name, s.n, f"`{s.bins!r}`", found.sets(s.key)) for i, s in enumerate(shown)
    ]
    lines = table(["", "data", "n", "bins", "data sets"], data, left=2)
    recommended = {
        (name, s.key): found.means(s.key, f"{name} inversion") for name in METHODS for s in shown
    }
    rates = [means[0] for means in recommended.values() if means is not None]
    missed = []
    for name, methods in METHODS.items():
        for title, column in (("coverage", 0), ("mean length", 1)):
            rows = []
            for method in methods:
                row = [found.label(f"{name} {method}").removeprefix(f"{name} ")]
                for s in shown:
                    means = found.means(s.key, f"{name} {method}")
                    if means is None:
                        row.append("–")
                        continue
                    low = column == 0 and means[0] < GOAL
                    row.append(f"**{means[column]:.3f}**" if low else f"{means[column]:.3f}")
                    sets = found.trials(s.key, f"{name} {method}")
                    chance = bdtr(round(means[0] * sets), sets, GOAL)
                    if low and method == "inversion" and chance < FALSE_ALARM / len(rates):
                        missed.append(f"{name}, {s.key}: {means[0]:.3f}")
                rows.append(row)
            head = ["method", *(letter(i) for i in range(len(shown)))]
            lines += ["", f"## {name}: {title}", "", *table(head, rows)]
    words = {"b": B, "resamples": RESAMPLES, "count": len(rates), "mean": np.mean(rates)}
    text = HEADER.format(worst=min(rates), **words, **opening(found))
    return text + "\n".join([*lines, ""]), missed


HEADER = """# Coverage of confidence intervals

The 95 % interval that `confidence_interval` gives by default contains the true error of the cells
in {mean:.3f} of data sets on average over {count} cells of the tables below, and in {worst:.3f}
in the worst. Percentile bootstrap intervals are shorter and miss it, often always: a
sample of a sample has a larger error than the sample. What is covered is the error of *these
cells*: errors that cancel within a cell are not in it.

Predictions are drawn, labels are drawn from known probabilities, and every kind of interval is
computed; the tables show the share of intervals that contained the error of the cells, and how long
they were on average. A rate in bold is below 0.93.

"inversion" is `method="auto"`. Errors of `ECE` are in total variation, errors of `DebiasedL2` are
squared; for `ECE(bins, distance="sqeuclidean")` and two classes they and the interval are twice as
large. For cells that depend on the predictions, the error of the cells that were found counts, for
`MCE` the error of the occupied cells; otherwise of new data. "Grossly wrong": an event of rate .005
is predicted with .95 in a few rows, one of them at least in the data. Labels in a cluster of five
rows are correlated (0.5 on a normal scale) or copies, and intervals know the clusters.

Inversion uses {b} draws, the bootstrap {resamples} samples.

{made}

"""

STUDY = Study(
    "coverage",
    {s.key: s for s in SCENARIOS},
    tests,
    measure,
    page,
    quick=8,
    slow=tuple(f"{name} bootstrap" for name in METHODS),
)
if __name__ == "__main__":
    run(STUDY)
