"""How labels are redrawn, and the law of the largest evidence of a calibrated model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from caltest._base.facts import FEWEST
from caltest.errors import StatisticError
from caltest.exact import enumerated_null, n_label_vectors
from caltest.inference.dependence import Coupled, clustered
from caltest.nulls import ExactNull
from caltest.predictions import FloatArray, Predictions
from caltest.results import ClusterSummary, ending
from caltest.segments.lattice import Lattice
from caltest.segments.scan import TIES, Scan
from caltest.simulate import Batches, LabelScheme, RedrawLabels, Run, simulate_by

#: Label vectors from which the variance of sums of clusters is taken, and their seed.
PILOTS, SEED = 64, (0x5EED, 0x5E6)


@dataclass(frozen=True, eq=False)
class Redraws:
    """How labels are drawn: schemes, the largest p-value of which counts, and what they rest on."""

    data: Predictions
    schemes: tuple[Coupled, ...]
    summary: ClusterSummary | None = None

    @classmethod
    def of(cls, data: Predictions) -> Redraws:
        """Redraw rows by themselves, or with the dependence within their clusters."""
        if data.n_clusters is None:
            return cls(data, (Coupled(RedrawLabels()),))
        if data.n_clusters < FEWEST:
            raise StatisticError(
                f"too few clusters ({data.n_clusters}) to tell how much their rows depend on each "
                f"other: a search takes at least {FEWEST}"
            )
        schemes, summary = clustered("auto", data, stack=5)
        return cls(data, schemes, summary if isinstance(summary, ClusterSummary) else None)

    def scan(self, lattice: Lattice) -> Scan:
        """Return what predictions say of all segments, with pilot draws of what clusters add."""
        data, p = self.data, np.ascontiguousarray(self.data.probs[:, 0])
        w = np.ones(data.n) if data.weights is None else data.weights

        def pilots() -> Iterator[FloatArray]:
            for each in self.schemes if data.n_clusters else ():
                assert isinstance(each.scheme, LabelScheme)
                drawer, spread = each.scheme.drawer(data), np.zeros(lattice.size)
                for first in range(PILOTS):
                    residuals = w * ((drawer(SEED, first, 1)[0] == 0) - p)
                    spread += lattice.sums(residuals[None])[0] ** 2
                yield spread / PILOTS

        return Scan.of(lattice, p, w, pilots())

    def law(self, scan: Scan, observed: float, run: Run, early_stop: bool) -> Law:
        """Return the law of the largest evidence: up to n_resamples label vectors, enumerated."""
        if self.data.n_clusters is None and n_label_vectors(self.data.probs) <= run["n_resamples"]:
            law = enumerated_null(lambda y: float(scan.largest(y[None])[0]), self.data.probs)
            return Law((law,), "exact", 0, "complete")
        laws, ends = [], []
        stop = (lambda values: values >= observed - TIES) if early_stop else None
        for scheme, inflation in self.schemes:
            assert isinstance(scheme, LabelScheme)
            draws = Batches.of(scheme, self.data, partial(scan.largest, inflation=inflation))
            values, end = simulate_by(draws, **run, stop_when=stop)
            # p = 20 / drawn (Besag & Clifford 1991) is that of 19 in one draw less.
            laws.append(values[:-1] if end == "early" else values)
            ends.append(end)
        ended = "early" if ends == ["early"] * len(ends) else ending(*ends)
        name = "SharedRedraws()" if self.data.n_clusters else "RedrawLabels()"
        return Law(tuple(laws), name, min(map(len, laws)), ended)


@dataclass(frozen=True, eq=False)
class Law:
    """The law of the largest evidence of a calibrated model: enumerated, or drawn by schemes."""

    laws: tuple[ExactNull | FloatArray, ...]
    name: str
    n_draws: int
    ended: str

    def pvalue(self, evidence: float) -> float:
        """Return the share of redraws that reach the evidence, (1 + b) / (1 + B) of B drawn."""
        return max(
            law.sf(evidence - TIES)
            if isinstance(law, ExactNull)
            else (1 + int((law >= evidence - TIES).sum())) / (1 + law.size)
            for law in self.laws
        )

    def bar(self, alpha: float) -> float:
        """Return what evidence must exceed for a p-value of at most ``alpha``."""
        bars = []
        for law in self.laws:
            if isinstance(law, ExactNull):
                bars.append(law.ppf(1.0 - alpha))
            else:
                place = int(alpha * (law.size + 1) + 1e-9)
                bars.append(float(np.sort(law)[-place]) if place else np.inf)
        return max(bars) + TIES
