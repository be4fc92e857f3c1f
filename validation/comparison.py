"""Size and power of the comparison of two models, and coverage of its interval.

``python -m validation.comparison`` writes ``docs/comparison.md``; ``--quick`` is a small version
that prints. Either fails when the default test calls equally miscalibrated models different more
often than 6 % at the 5 % level, or calibrated ones more often than 5 %, beyond chance.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import caltest as ct
from caltest.inference.comparison import ComparedModel, Difference
from caltest.inference.dependence import SquaredError
from validation.pages import largest_rate, opening, table
from validation.pairs import PAIRS
from validation.study import Study, run

ALPHA = 0.05


def tests(pair):
    return {"z": 1}


def measure(pair, wanted, rng):
    """Return whether z rejects, and whether its interval covers."""
    a, b = (side(pair.bins, data) for data in pair(rng))
    z = Difference(a, b, pair.paired)
    low, high = z.limits(1.0 - ALPHA)
    covers = low <= truth(pair) <= high
    return {"z": (z.pvalue() <= ALPHA, covers)}


def side(bins, induced):
    """Return what a model brings to a comparison."""
    return ComparedModel(
        SquaredError.of(ct.Cells.of(bins, ct.RowProblem(induced)), induced), induced
    )


def truth(pair):
    """Return the difference that is estimated; 0 for equal errors."""
    return simulated(replace(pair, n=200_000)) if pair.kind == "unequal" else 0.0


@cache
def simulated(pair):
    rng = np.random.default_rng(20190416)
    statistic = ct.DebiasedL2(pair.bins)
    drawn = (pair(rng) for _ in range(5))
    return float(np.mean([statistic(a) - statistic(b) for a, b in drawn]))


def page(found):
    """Return the page, and the cells that broke their promise."""
    claims = sum(PAIRS[name].kind in LIMITS for name in found.shown)
    broken = []
    rows: dict[str, list[list[object]]] = {kind: [] for kind in HEADS}
    sizes, covered = [], []
    for name in found.shown:
        pair, sets = PAIRS[name], found.sets(name)
        z, coverage = found.means(name, "z")
        shown = f"{z:.3f}"
        if pair.kind in LIMITS:
            sizes.append(z)
            if z > largest_rate(LIMITS[pair.kind], sets, claims):
                shown = f"**{shown}**"
                broken.append(f"{name}: {z:.3f}")
        cells = [shown]
        if pair.kind == "unequal":  # elsewhere it covers when it does not reject
            cells.append(f"{coverage:.3f}")
            covered.append(coverage)
        rows[pair.kind].append([pair.name, f"`{pair.bins!r}`", pair.n, sets, *cells])
    head = ["models", "bins", "n", "data sets", "z"]
    words = {"mean": np.mean(sizes), "worst": max(sizes), "covered": min(covered)}
    text = HEADER.format(count=claims, **words, **opening(found))
    for kind, title in HEADS.items():
        text += "\n".join(
            [title, *table(head + ["coverage"] * (kind == "unequal"), rows[kind]), "", ""]
        )
    return text.rstrip() + "\n", broken


LIMITS = {"calibrated": 0.05, "equal": 0.06, "rare": 0.06}
HEADS = {
    "calibrated": "## Both models calibrated\n\nAt most 0.05 is wanted.\n",
    "equal": "## Both miscalibrated, by the same squared error\n\n0.05 is wanted, at most 0.06.\n",
    "rare": """## Rare events, and few rows grossly wrong

Equal errors again: at most 0.06 is wanted. "Sharp and constant": both are calibrated; one knows the
risk of each row, drawn from a gamma law, the other only its mean. "Grossly wrong": an event of
rate .005 is predicted with .95 in a few rows by mistake, and the other model is a constant with the
same squared error. Data sets without such a row are not counted: nobody can see a fault of which
the data contain no instance.
""",
    "copies": """## Copies

Rows that were copied are not independent, and no test of independent rows is valid for them: as a
warning, the same pair of models with equal errors from 100 distinct rows. Keep one of each.
""",
    "unequal": "## Different errors: power\n\nThe more the better. The last column is the share of "
    "95 % intervals that contain the true difference.\n",
}
HEADER = """# Comparison of models: type-I error and power

`compare` calls models of equal calibration error different in {mean:.3f} of data sets at the 5 %
level, on average over {count} kinds of data below, and in {worst:.3f} in the worst. Its power grows
with the rows, and its 95 % intervals contain the true difference in at least {covered:.3f}. It
cannot see a fault of which the data contain no instance, and takes rows for independent unless
clusters are given.

Pairs of models are drawn whose errors are known to be equal, or known to differ, and compared: the
tables show the share of data sets with p ≤ 0.05. `z` is the default. What the methods are:
{{doc}}`concepts/compare`; other ways of comparing: {{doc}}`ways`.

"S0", "S1", "S2", "S5" and "P3" are names of probit models: the label is 1 when a latent sum of
features plus noise is positive. In S0 each model knows another feature, so that they could change
places; in S1 one knows much and one little; in S2 one is too steep and one shifted, by as much; in
S5 a sharp and a vague model are both wrong by as much; in P3 one is right and one too steep. "Other
rows" means unpaired, "whole vector" that all classes are looked at together. A rate in bold is
larger than 0.05 (calibrated) or 0.06 (equal errors) by more than chance allows, one false alarm in
a thousand such studies.

{made}

"""

STUDY = Study("comparison", PAIRS, tests, measure, page, sets=2000, quick=25)
if __name__ == "__main__":
    run(STUDY)
