"""How far labels depend along two columns of clusters, such as readers and patients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from caltest.errors import StatisticError
from caltest.predictions import IntArray, Predictions
from caltest.simulate.agreement import Agreement
from caltest.simulate.dependent import ClusterDrawer, Coupling, Degree, Pair


@dataclass(frozen=True, eq=False)
class CrossedAgreement:
    """How far residuals of rows agree that share a first cluster, a second, or both.

    ``columns`` are the agreements of either, ``both`` that of rows which share both, if any do.
    """

    columns: tuple[Agreement, Agreement]
    both: Agreement | None

    @classmethod
    def of(cls, data: Predictions, coupling: Coupling) -> CrossedAgreement:
        """Take the columns apart; rows that share both clusters count once."""
        assert data.clusters is not None
        assert data.crossed is not None
        codes = data.clusters * (int(data.crossed.max()) + 1) + data.crossed

        def agreement(clusters: IntArray) -> Agreement:
            return Agreement.of(replace(data, clusters=clusters, crossed=None), coupling)

        shared = agreement(codes) if np.unique(codes).size < data.n else None
        return cls((agreement(data.clusters), agreement(data.crossed)), shared)

    @cached_property
    def limits(self) -> Pair:
        """The limit of each column, with the other λ 0."""
        first, second = (column.limits().overall for column in self.columns)
        return first, second

    @cached_property
    def joint(self) -> Pair:
        """Σ c_ij over pairs of rows of one cluster, of each column: V1."""
        first, second = (float(column.sums[1].sum()) for column in self.columns)
        return first, second

    def observed(self, centred: bool = False) -> float:
        """Return N = N_a + N_b − N_ab of the observed labels."""
        both = 0.0 if self.both is None else self.both.observed(centred)
        return sum(column.observed(centred) for column in self.columns) - both

    def inflation(self, limits: Pair, centred: bool = False) -> float:
        """Return κ: how much more labels agree than any draw with such shares of λ allows."""
        variance = float(self.columns[0].sums[0].sum())
        # The strongest draw in the ratio of both limits, with √λ₁ + √λ₂ = 1.
        roots = float(np.sqrt(limits).sum())
        shares = np.array(limits) / roots**2 if roots > 0.0 else np.full(2, 0.25)
        allowed = variance + float(shares @ self.joint)
        return max(1.0, (variance + self.observed(centred)) / allowed) if allowed > 1e-9 else 1.0


@dataclass(frozen=True, eq=False)
class TwoColumns:
    """Agreement along two columns, of which the first may share one thing and the second another.

    Labels are drawn with E[r_i · r_j] = (λ₁ [a_i = a_j] + λ₂ [b_i = b_j]) c_ij, which needs √λ₁ +
    √λ₂ ≤ 1. Each λ is the limit of what its column shows when the other is 0.
    """

    data: Predictions
    couplings: tuple[Coupling, Coupling]
    first: CrossedAgreement
    second: CrossedAgreement

    def degree(self, dependence: Degree | None) -> Pair:
        """Return (λ₁, λ₂), given or at the limits.

        Where √λ₁ + √λ₂ > 1 one is cut: of both ways that which allows the larger λ₁ V1_a + λ₂ V1_b.
        """
        if isinstance(dependence, tuple):
            return dependence
        if dependence is not None:
            raise StatisticError("dependence of two columns of clusters is a pair (λ₁, λ₂)")
        limits = self.first.limits[0], self.second.limits[1]
        joint = self.first.joint[0], self.second.joint[1]
        one, other = np.sqrt(limits)
        if one + other <= 1.0 + 1e-9:
            return limits
        ways = (limits[0], float((1.0 - one) ** 2)), (float((1.0 - other) ** 2), limits[1])
        return max(ways, key=lambda way: way[0] * joint[0] + way[1] * joint[1])

    def inflation(self, dependence: Degree | None, centred: bool = False) -> float:
        """Return the larger κ of what either column shares."""
        limits = self.degree(dependence)
        return max(each.inflation(limits, centred) for each in (self.first, self.second))

    def drawer(self, dependence: Degree | None) -> ClusterDrawer:
        """Return what draws labels with this dependence."""
        return ClusterDrawer.of(self.data, np.array(self.degree(dependence)), *self.couplings)
