"""Other ways of comparing two models, on pairs whose errors are equal or differ.

``python -m validation.ways`` writes ``docs/ways.md``; ``--quick`` is a small version that prints.
"""

from __future__ import annotations

import warnings

import caltest as ct
from validation.pages import opening, table
from validation.pairs import PAIRS
from validation.study import Study, run

ALPHA = 0.05
B = 199
#: The pairs on which the other ways are shown: same rows, two classes, 15 bins.
SHOWN = {
    key: PAIRS[key]
    for name in (
        "own features (S0)",
        "sharp and vague (S1)",
        "steep and shifted (S2)",
        "sharp and vague, both wrong (S5)",
        "right and steep by 1.3 (P3)",
    )
    for key in (f"{name}, n=500", f"{name}, n=2000")
}
WAYS = ("z", "swap, DebiasedL2", "swap, ECE", "one p ≤ 0.05", "Brier")


def tests(pair):
    return dict.fromkeys(WAYS, 1)


def measure(pair, wanted, rng):
    """Return which ways call the models different."""
    a, b, labels = pair.draw(rng, pair.n)
    common = {"as_is": True, "lens": pair.lens, "n_resamples": B, "rng": int(rng.integers(2**63))}
    squares = ct.DebiasedL2(15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = ct.compare(a, b, labels, squares, **common)
        swap = ct.compare(a, b, labels, squares, method="swap", **common)
        ece = ct.compare(a, b, labels, ct.ECE(15), method="swap", **common)
    called = (
        z.pvalue <= ALPHA,
        swap.pvalue <= ALPHA,
        ece.pvalue <= ALPHA,
        (ece.pvalue_a <= ALPHA) != (ece.pvalue_b <= ALPHA),
        z.scores[0].pvalue <= ALPHA,
    )
    return {way: (yes,) for way, yes in zip(WAYS, called, strict=True)}


def page(found):
    rows = [
        [SHOWN[name].name, SHOWN[name].n, found.sets(name)]
        + [f"{found.means(name, way)[0]:.3f}" for way in WAYS]
        for name in found.shown
    ]
    head = ["models", "n", "data sets", *WAYS]
    return HEADER.format(b=B, **opening(found)) + "\n".join([*table(head, rows), ""]), []


HEADER = """# Invalid comparisons: Brier scores, swaps, two p-values

The default of `compare`, `z`, leaves models of equal error alone, and finds models of different
error (P3) when there are enough rows. Swapping answers another question, and "one is significantly
miscalibrated, the other is not" finds differences where there are none. Brier scores compare skill,
not calibration.

The tables show the share of data sets in which the models are called different at the 5 % level.
The pairs are defined in {{doc}}`comparison`, with 15 bins: in S0 two calibrated models could change
places; in S1 one is sharp and one vague; in S2 one is too steep and one shifted, by as much; in S5
a sharp and a vague model are wrong by as much; in P3 one is right and one too steep. "One p ≤ 0.05"
counts data sets in which exactly one of the two models is called miscalibrated by its exact ECE
test. Swapping tests whether the models could change places in every row, which holds in S0 only.

Resampling uses {b} replicates.

{made}

"""

STUDY = Study("ways", SHOWN, tests, measure, page, quick=1)
if __name__ == "__main__":
    run(STUDY)
