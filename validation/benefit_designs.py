"""Utilities and decision curves of rows with weights and clusters: size, and coverage of limits.

``python -m validation.benefit_designs`` writes ``docs/benefit_designs.md``; ``--quick`` is a small
version that prints. Either fails when calibrated models are rejected, or intervals miss, more often
than promised, by more than chance allows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

import caltest as ct
from validation.benefit import ALPHA, CENTRES, LEVEL, THREE, Population
from validation.pages import largest_rate, opening, table
from validation.study import Study, run

#: Rows of a cluster, and the chance that two labels of it are one draw.
SIZE, SHARED = 5, 0.3
CURVE = np.array([0.05, 0.1, 0.2, 0.3, 0.5])
B = 199


@dataclass(frozen=True)
class Sample:
    """Rows with weights or clusters, of two models whose net benefit is known.

    ``kind`` is "weights" (gamma with 2 degrees, independent of all else), "clusters" or "weighted
    clusters"; with three classes only the size of the test is measured.
    """

    kind: str
    prevalence: float
    threshold: float
    n: int
    k: int = 2

    @property
    def name(self):
        what = f"prevalence {self.prevalence:g}, threshold {self.threshold:g}"
        return f"{self.kind}, {what if self.k == 2 else 'costs of three classes'}"

    @property
    def key(self):
        return f"{self.name}, n = {self.n}"

    def facts(self, rng):
        facts = {}
        if "clusters" in self.kind:
            facts["clusters"] = np.arange(self.n) // SIZE
        if self.kind != "clusters":
            facts["weights"] = rng.gamma(2.0, size=self.n)
        return facts

    def uniforms(self, rng):
        """Return n uniforms; with clusters each row takes the shared one with chance √λ."""
        own = rng.random(self.n)
        if "clusters" not in self.kind:
            return own
        shared = np.repeat(rng.random(self.n // SIZE), SIZE)
        return np.where(rng.random(self.n) < np.sqrt(SHARED), shared, own)

    def measure(self, wanted, rng):
        facts, u = self.facts(rng), self.uniforms(rng)
        answers, seed = {}, int(rng.integers(2**31))
        if self.k > 2:
            p = rng.dirichlet(np.ones(self.k), self.n)
            y = (u[:, None] > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
            found = ct.promise(p, y, THREE, n_resamples=B, rng=seed, **facts)
            return {"promise": (found.pvalue <= ALPHA,)}
        centre = CENTRES[self.prevalence]
        z = rng.normal(centre, 1.5, self.n)
        y = (u < expit(z)).astype(int)
        if "promise" in wanted:
            utility = ct.Costs.threshold(self.threshold)
            found = ct.promise(expit(z), y, utility, n_resamples=B, rng=seed, **facts)
            answers["promise"] = (found.pvalue <= ALPHA,)
        first = expit(z + rng.normal(0.0, 0.3, self.n))
        second = expit(centre + 0.8 * (z - centre) + rng.normal(0.0, 0.9, self.n))
        one, difference, curve = TRUTHS[self.prevalence, self.threshold].truth
        at = [self.threshold]
        found = ct.decision_curve(first, y, at, against=second, n_resamples=1, **facts)
        answers["net benefit"] = (bool(found.low[0] <= one <= found.high[0]),)
        low, high = found.difference_low[0], found.difference_high[0]
        answers["difference"] = (bool(low <= difference <= high),)
        whole = ct.decision_curve(first, y, CURVE, n_resamples=1, **facts)
        truth = curve[np.rint(100 * CURVE).astype(int) - 1]
        inside = (whole.low_all <= truth + 1e-15) & (truth <= whole.high_all + 1e-15)
        answers["whole curve"] = (bool(inside.all()),)
        return {name: answer for name, answer in answers.items() if name in wanted}


PLACES = [(0.02, 0.2, 200), (0.1, 0.05, 200), (0.1, 0.2, 1000), (0.3, 0.2, 200)]
KINDS = ("weights", "clusters", "weighted clusters")
TRUTHS = {(p, t): Population(p, t, 200) for p, t, _ in PLACES}
DESIGNS = {
    sample.key: sample
    for kind in KINDS
    for sample in (*(Sample(kind, *place) for place in PLACES), Sample(kind, 0.0, 0.0, 200, 3))
}
COLUMNS = ("promise", "net benefit", "difference", "whole curve")


def tests(design):
    return dict.fromkeys(COLUMNS if design.k == 2 else COLUMNS[:1], 1)


def measure(design, wanted, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.FewClustersWarning)
        return design.measure(wanted, rng)


def page(found):
    """Return the page, and the cells that broke their promise."""
    rows, broken, sizes, covers = [], [], [], []
    shown = [DESIGNS[name] for name in found.shown]
    claims = sum(len(tests(design)) for design in shown)
    for design in shown:
        cells = []
        for name in COLUMNS:
            if name not in tests(design):
                cells.append("–")
                continue
            rate, sets = found.means(design.key, name)[0], found.trials(design.key, name)
            wrong, allowed = (rate, ALPHA) if name == "promise" else (1.0 - rate, 1.0 - LEVEL)
            (sizes if name == "promise" else covers).append(rate)
            broken += [f"{name}, {design.key}: {rate:.3f}"] * (
                wrong > largest_rate(allowed, sets, claims)
            )
            cells.append(f"{rate:.3f}")
        rows.append([design.name, design.n, found.sets(design.key), *cells])
    head = ["rows", "n", "data sets", "rejected by `promise`", "net benefit covered"]
    lines = table([*head, "difference of two models", "whole curve"], rows)
    words = {"worst": max(sizes), "least": min(covers), "b": B, "size": SIZE, "shared": SHARED}
    return HEADER.format(**words, **opening(found)) + "\n".join([*lines, ""]), broken


HEADER = """# Utilities and decision curves with weights and clusters: size and coverage

`promise` rejects at most {worst:.3f} of calibrated models at the 5 % level, and 95 % intervals of
net benefit cover in at least {least:.3f} of data sets, in the designs below. Clusters have {size}
rows, of which two share a label with chance λ = {shared:g}; weights are gamma with 2 degrees, which
leaves two thirds of the rows effective. p-values come from {b} sets of redrawn labels, and the
dependence is estimated. The simultaneous limits of the whole curve are for 5 thresholds from 0.05
to 0.5. The designs without weights and clusters: {{doc}}`benefit`.

{made}

"""

STUDY = Study("benefit_designs", DESIGNS, tests, measure, page, sets=200, quick=4)
if __name__ == "__main__":
    run(STUDY)
