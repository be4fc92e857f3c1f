"""How labels are redrawn, and the law of the largest evidence of a calibrated model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.exact import enumerated_null, n_label_vectors
from caltest.inference.dependence import FEWEST, Coupled, clustered
from caltest.nulls import ExactNull
from caltest.predictions import FloatArray, Predictions
from caltest.results import ClusterSummary, ending
from caltest.segments.lattice import Lattice
from caltest.segments.scan import TIES, Scan, sums
from caltest.simulate import Batches, LabelScheme, RedrawLabels, Workers, simulate_by

#: Label vectors from which the variance of sums of clusters is taken, and their seed.
PILOTS, SEED = 64, (0x5EED, 0x5E6)


def redraws_of(data: Predictions) -> tuple[tuple[Coupled, ...], ClusterSummary | None]:
    """Return how labels are redrawn, and what was learnt of clusters."""
    if data.n_clusters is None:
        return (Coupled(RedrawLabels()),), None
    if data.n_clusters < FEWEST:
        raise StatisticError(
            f"too few clusters ({data.n_clusters}) to tell how much their rows depend on each "
            f"other: a search takes at least {FEWEST}"
        )
    schemes, summary = clustered("auto", data, stack=5)
    return schemes, summary if isinstance(summary, ClusterSummary) else None


def scanned(data: Predictions, lattice: Lattice, schemes: tuple[Coupled, ...]) -> Scan:
    """Return what predictions say of all segments.

    Of clusters φ is the larger of that of independent rows and of pilot draws of every scheme.
    """
    w = np.ones(data.n) if data.weights is None else data.weights
    scan = Scan.of(lattice, np.ascontiguousarray(data.probs[:, 0]), w)
    widest = scan.squared
    for each in schemes if data.n_clusters else ():
        assert isinstance(each.scheme, LabelScheme)
        drawer, spread = each.scheme.drawer(data), np.zeros(lattice.size)
        for first in range(PILOTS):
            y = w * (drawer(SEED, first, 1)[0] == 0)
            spread += (sums(lattice, y[:, None])[:, 0] - scan.expected) ** 2
        widest = np.maximum(widest, spread / PILOTS)
    if widest is scan.squared:
        return scan
    ratio = widest / np.maximum(scan.variance, 1e-300)
    return replace(scan, dispersion=np.where(scan.variance > 0.0, ratio, 1.0))


@dataclass(frozen=True, eq=False)
class LargestOfRedraws:
    """The law of the largest evidence of a calibrated model: enumerated, or drawn by schemes."""

    laws: tuple[ExactNull | FloatArray, ...]
    name: str
    drawn: int
    ended: str

    @classmethod
    def of(
        cls,
        scan: Scan,
        data: Predictions,
        schemes: tuple[Coupled, ...],
        observed: float,
        run: tuple[int, Any, Workers],
        early_stop: bool,
    ) -> LargestOfRedraws:
        """Enumerate up to ``n_resamples`` label vectors, redraw of more."""
        if data.n_clusters is None and n_label_vectors(data.probs) <= run[0]:
            law = enumerated_null(lambda y: float(scan.largest(y[None])[0]), data.probs)
            return cls((law,), "exact", 0, "complete")
        laws, ends = [], []
        stop = (lambda values: values >= observed - TIES) if early_stop else None
        for scheme, inflation in schemes:
            assert isinstance(scheme, LabelScheme)
            draws = Batches.of(scheme, data, partial(scan.largest, inflation=inflation))
            values, end = simulate_by(draws, *run, stop_when=stop)
            # p = 20 / drawn (Besag & Clifford 1991) is that of 19 in one draw less.
            laws.append(values[:-1] if end == "early" else values)
            ends.append(end)
        ended = "early" if ends == ["early"] * len(ends) else ending(*ends)
        name = "SharedRedraws()" if data.n_clusters else "RedrawLabels()"
        return cls(tuple(laws), name, min(map(len, laws)), ended)

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
