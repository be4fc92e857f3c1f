"""Searches through segments of models of several classes: size.

``python -m validation.segment_classes`` writes ``docs/segment_classes.md``; ``--quick`` is a small
version that prints. Either fails when searches of calibrated models reject more often than 0.07 by
more than chance allows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

import caltest as ct
from validation.pages import largest_rate, opening, table
from validation.segments import columns
from validation.study import Study, run

ALPHA, LIMIT, B = 0.05, 0.07, 199


@dataclass(frozen=True)
class Design:
    """Rows with features, and a model of K classes of which the first is more frequent."""

    n: int
    k: int
    d: int = 6
    skew: float = 0.0
    shift: float = 0.0  # of the log-odds of class 0, in one of five sites

    @property
    def key(self) -> str:
        words = " skew" * (self.skew > 0) + f", class 0 of a site shifted by {self.shift:g}" * (
            self.shift > 0
        )
        return f"K = {self.k}{words}, {self.n} rows"

    def __call__(self, rng):
        """Return features, probabilities and labels."""
        f = columns(self.n, self.d, rng)
        slopes = rng.standard_normal((3, self.k))
        x = np.column_stack([f["x1"], f["x2"], (f["age"] - 50) / 15])
        odds = x @ slopes - self.skew * np.arange(self.k)
        p = softmax(odds, axis=1)
        odds[f["site"] == "B", 0] += self.shift
        cut = softmax(odds, axis=1).cumsum(axis=1)[:, :-1]
        return f, p, (rng.random((self.n, 1)) > cut).sum(axis=1)


CALIBRATED = [Design(500, 3), Design(1000, 10), Design(600, 4, skew=1.5), Design(300, 3)]
DATA = {d.key: d for d in [*CALIBRATED, Design(1000, 3, shift=1.0)]}


def lenses(design):
    last = design.k - 1
    return {"top class": ct.TopK(1), "class 0": ct.OneVsRest(0), "last class": ct.OneVsRest(last)}


def tests(design):
    return {name: repr(lens) for name, lens in lenses(design).items()}


def measure(design, wanted, rng):
    """Return whether a search rejects, and whether it lists a segment."""
    f, p, y = design(rng)
    answers = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, lens in lenses(design).items():
            kind = {"lens": lens, "alpha": ALPHA, "n_resamples": B, "rng": int(rng.integers(2**31))}
            found = ct.segment_search(p, y, f, **kind)
            answers[name] = (found.pvalue <= ALPHA, bool(found.segments))
    return {name: answers[name] for name in wanted}


def page(found):
    """Return the page, and the cells that broke a promise."""
    broken, rows, claims = [], [], 3 * len(CALIBRATED)
    for name in found.shown:
        cells = []
        for test in tests(DATA[name]):
            rejected, listed = found.means(name, test)
            limit = largest_rate(LIMIT, found.trials(name, test), claims)
            if DATA[name] in CALIBRATED and max(rejected, listed) > limit:
                broken.append(f"{name}, {test}: {rejected:.3f}")
            cells.append(f"{rejected:.3f} ({listed:.3f})")
        rows.append([name, found.sets(name), *cells])
    head = ["model", "data sets", *lenses(CALIBRATED[0])]
    return HEADER.format(**opening(found)) + "\n".join([*table(head, rows), ""]), broken


HEADER = """# Segments of models of several classes, measured

How often does {{func}}`~caltest.segment_search` reject a calibrated model of K classes at the 5 %
level, and, in parentheses, list a segment? Probabilities are the softmax of linear functions of
three of six features; a skewed model has rare last classes. In the last line the log-odds of class
0 are wrong in the fifth of the rows from one site: that is power. Searches of two classes:
{{doc}}`segments`.

{made}

"""
STUDY = Study("segment_classes", DATA, tests, measure, page, sets=400, quick=4)
if __name__ == "__main__":
    run(STUDY)
