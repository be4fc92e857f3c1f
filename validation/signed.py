"""Coverage of the interval of the signed difference observed − predicted.

``python -m validation.signed`` writes ``docs/signed.md``; ``--quick`` is a small version that
prints. Either fails when 95 % intervals cover less than 93 % of the time by more than chance
allows, where units (rows or clusters) are 20 or more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, expit

import caltest as ct
from validation.pages import FALSE_ALARM, opening, table
from validation.study import Study, run

LEVEL, GOAL = 0.95, 0.93
ALPHA = (1.0 - LEVEL) / 2.0


@dataclass(frozen=True)
class Design:
    """Rows whose log-odds are normal, and how the truth differs from the predictions."""

    n: int
    centre: float  # mean log-odds of the predictions
    shift: float = 0.0  # the truth is σ(shift + slope · log-odds)
    slope: float = 1.0
    cluster: int = 1  # rows of a cluster, which share a normal effect of this sd
    effect: float = 0.0
    weighted: bool = False
    truth: str = "calibrated"

    @property
    def key(self) -> str:
        words = [f"n = {self.n}", f"{RATES[self.centre]} predicted ({self.truth})"]
        if self.cluster > 1:
            words.append(f"clusters of {self.cluster}")
        return ", ".join([*words, *["weighted"] * self.weighted])


RATES = {-4.5: "1.7 %", -3.0: "7 %", -1.5: "22 %", 0.0: "50 %"}
TRUTHS = {"calibrated": (0.0, 1.0), "too low": (1.0, 1.0), "too extreme": (0.0, 0.5),
          "not extreme enough": (0.0, 2.0)}  # fmt: skip
PLAIN = [
    Design(n, centre, *line, truth=truth)
    for n in (20, 50, 200, 2000) for centre in RATES for truth, line in TRUTHS.items()
]  # fmt: skip
DEPENDENT = [
    Design(n, centre, *TRUTHS[truth], cluster=size, effect=1.0, truth=truth)
    for n, size in ((100, 5), (500, 10), (200, 10)) for centre in (-3.0, -1.5)
    for truth in ("calibrated", "too low")
] + [
    Design(n, centre, *TRUTHS[truth], weighted=True, truth=truth)
    for n in (50, 500) for centre in (-3.0, -1.5) for truth in ("calibrated", "too low")
]  # fmt: skip
DESIGNS = {design.key: design for design in [*PLAIN, *DEPENDENT]}


def tests(design):
    return {"shift": "signed"}


def measure(design, wanted, rng):
    """Return whether the interval misses low and high, and its length, for one data set."""
    n_units = design.n // design.cluster
    z = design.centre + rng.standard_normal(design.n)
    p, mean = expit(z), design.shift + design.slope * z
    clusters, q = None, expit(mean)
    if design.cluster > 1:
        clusters = np.repeat(np.arange(n_units), design.cluster)
        effects = design.effect * rng.standard_normal(n_units)
        nodes, shares = np.polynomial.hermite_e.hermegauss(20)  # the mean over effects
        q = expit(mean[:, None] + design.effect * nodes) @ shares / shares.sum()
        chance = expit(mean + effects[clusters])
        if design.truth == "calibrated":
            p = q
    else:
        chance = q
    y = (rng.random(design.n) < chance).astype(int)
    w = rng.exponential(size=design.n) if design.weighted else None
    truth = float(np.average(q - p, weights=w))
    data = ct.Predictions.of(p, y, weights=w, clusters=clusters, as_is=True)
    found = ct.confidence_interval(data, None, ct.MeanDifference(), level=LEVEL)
    return {"shift": (found.low > truth, found.high < truth, found.high - found.low)}


def page(found):
    """Return the page, and the designs that broke the promise."""
    shown, broken, parts = set(found.shown), [], []
    for title, designs in (("Independent rows", PLAIN), ("Clusters and weights", DEPENDENT)):
        rows = []
        for design in (d for d in designs if d.key in shown):
            low, high, width = found.means(design.key, "shift")
            sets, cover = found.trials(design.key, "shift"), 1.0 - low - high
            if bdtr(round(cover * sets), sets, GOAL) < FALSE_ALARM / len(DESIGNS):
                broken.append(f"{design.key}: {cover:.3f}")
            misses = (f"{100 * low:.1f} %", f"{100 * high:.1f} %")
            rows.append([design.key, sets, f"{100 * cover:.1f} %", *misses, f"{100 * width:.1f}"])
        head = ["data", "data sets", "covered", "too high", "too low", "mean length (pp)"]
        parts += ["", f"## {title}", "", table_words[title], "", *table(head, rows)]
    return HEADER.format(**opening(found)) + "\n".join([*parts[1:], ""]), broken


table_words = {
    "Independent rows": """Log-odds of the predictions are normal with sd 1. "Too low": the truth is
one unit of log-odds higher; "too extreme" and "not extreme enough": its slope is 0.5 and 2.""",
    "Clusters and weights": """Rows of a cluster share a normal effect of sd 1 on the log-odds;
weights are exponential, so that half of the rows count as one (effective n = n / 2).""",
}
HEADER = """# Coverage of the signed difference

How often 95 % intervals of observed − predicted, `confidence_interval(…, MeanDifference())`, hold
the true mean difference of their rows, at event rates down to 0.1 % and from 20 rows on. "Too high"
and "too low" are the shares of intervals that lie above and below the truth; each is at most 2.5 %
where the promise is kept. Intervals of rare events are longer than needed: counts are discrete.

{made}

"""

STUDY = Study("signed", DESIGNS, tests, measure, page, sets=500, quick=25)
if __name__ == "__main__":
    run(STUDY)
