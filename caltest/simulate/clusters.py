"""Labels redrawn with the predicted probability of every row, and dependence within clusters.

Multiplying whole clusters of residuals by ±1 also respects clusters, but fails with few of them or
rare events, and has less power. Here a row joins its cluster's common draw with probability √λ and
draws alone otherwise: marginals are exact for every λ, and two rows of a cluster have the λ-fold of
the covariance that a common draw gives them. What is drawn in common is the label, or whether the
likeliest label is right: neither can make the dependence of the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np

from caltest._base.checks import number, one_of, whole
from caltest._base.facts import by_appearance
from caltest.errors import StatisticError
from caltest.predictions import IntArray, Predictions
from caltest.simulate.agreement import Agreement
from caltest.simulate.crossed import CrossedAgreement, Pair, is_pair, limits_of
from caltest.simulate.dependent import COUPLINGS, ClusterDrawer, Coupling, Dependence
from caltest.simulate.labels import LabelDrawer
from caltest.simulate.schemes import Drawer, LabelScheme, RedrawLabels, Scheme
from caltest.simulate.series import Overlap, SeriesDrawer
from caltest.simulate.streams import Seed


@dataclass(frozen=True, repr=False)
class SharedRedraws(LabelScheme):
    """Keep the predictions, draw labels from them that depend on each other within clusters.

    Every row has the label distribution that was predicted for it. With probability √λ it takes
    part in the draw that its cluster shares, otherwise it draws alone. Rows may share two things:

    * their *label*: two classes compare one uniform with the prediction of each row, more classes
      take the largest of log p_k + γ_k with Gumbel variables γ of the cluster. Residuals then have
      E[r_i · r_j] = λ c_ij exactly, c_ij ≥ 0 the value at λ = 1.
    * their *correctness*, as in easy and difficult patients: one uniform is compared with the
      largest probability of each row, and says whether that label is right; which other label a
      row shows that is wrong, it draws alone.

    A test draws both ways and takes the larger p-value, of each with its own λ. Without clusters
    this is :class:`RedrawLabels`.

    Parameters
    ----------
    dependence : float in [0, 1] or a pair of them, optional
        λ, of two columns of clusters (λ₁, λ₂); by default the upper 95 % confidence limit of what
        the labels show: the largest of 0.1, 0.2, …, 1 at which labels of a cluster agree no more
        than the observed ones in at least 5 % of 199 draws (0 if there is none). Rows of a quarter
        of the predictions, or in clusters of about one size, have a larger λ of their own where
        they agree too much for the common one (p ≤ 0.05), so that copies do not hide behind
        clusters whose labels exclude each other.
    coupling : {"label", "correctness"}, optional
        What rows share; by default both are tried.
    horizon : int, optional
        Of forecasts h steps ahead, whose fact ``horizon`` it repeats. Clusters are then blocks of h
        times that begin anywhere: E[r_i · r_j] = λ (1 − |t_i − t_j| / h)₊ c_ij, and λ is the limit
        of what rows less than h times apart show.

    Notes
    -----
    It assumes that a label follows its own prediction, given the other predictions of its cluster
    and its size. O(n K) a label vector.
    """

    dependence: float | Pair | Dependence | None = None
    coupling: Coupling | tuple[Coupling, Coupling] | None = None
    horizon: int | None = None
    takes_clusters: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.dependence is not None and not isinstance(self.dependence, Dependence):
            pair = self.dependence if isinstance(self.dependence, tuple) else (self.dependence,)
            for degree in pair:
                number("dependence", degree, 0.0, 1.0, "[]")
            if len(pair) > 2 or (len(pair) == 2 and np.sqrt(pair).sum() > 1.0 + 1e-9):
                raise StatisticError("dependence of two columns needs √λ₁ + √λ₂ ≤ 1")
        for coupling in () if self.coupling is None else np.atleast_1d(self.coupling):
            one_of("coupling", str(coupling), COUPLINGS)
        if self.horizon is not None:
            whole("horizon", self.horizon, 2)
            if isinstance(self.coupling, tuple) or isinstance(self.dependence, tuple):
                raise StatisticError("forecasts h steps ahead have one coupling and dependence")

    def each(self, data: Predictions) -> tuple[SharedRedraws, ...]:
        """Return the schemes to try: both couplings, but one of two that draw the same.

        Of two classes these are the same where the likelier label is one for all rows.
        """
        if self.horizon != data.horizon:
            return self._ahead(data).each(data)
        if data.crossed is not None and not isinstance(self.coupling, tuple):
            return self._each_pair(data)
        if self.coupling is not None:
            return (self,)
        label, correctness = (replace(self, coupling=coupling) for coupling in COUPLINGS)
        one_label = data.n_classes == 2 and np.ptp(data.probs.argmax(axis=1)) == 0
        return (label,) if one_label else (label, correctness)

    def _ahead(self, data: Predictions) -> SharedRedraws:
        """Return the scheme with the horizon of the data."""
        if self.horizon not in (None, data.horizon):
            raise StatisticError(f"{self!r} is for data with horizon={self.horizon}")
        return replace(self, horizon=data.horizon)

    def _each_pair(self, data: Predictions) -> tuple[SharedRedraws, ...]:
        """Return the couplings of two columns: of two classes each with each."""
        if self.coupling is not None:
            return (replace(self, coupling=(self.coupling, self.coupling)),)  # type: ignore[arg-type]
        if data.n_classes > 2:
            return tuple(replace(self, coupling=(each, each)) for each in COUPLINGS)
        one_label = np.ptp(data.probs.argmax(axis=1)) == 0
        pairs = product(COUPLINGS[: 1 if one_label else 2], repeat=2)
        return tuple(replace(self, coupling=(a, b)) for a, b in pairs)

    def drawer(self, data: Predictions) -> Drawer:
        """Prepare the rows; O(n K), and without ``dependence`` some 4000 label vectors.

        Without ``coupling`` labels are shared.
        """
        if self._ahead(data).horizon is not None:
            given, kind = self.dependence, self.coupling or "label"
            assert not isinstance(kind, tuple)
            one = given if isinstance(given, (int, float)) else Overlap.of(data, kind).limit()
            return SeriesDrawer.of(data, one, kind)
        if data.crossed is not None:
            couplings = self.coupling if isinstance(self.coupling, tuple) else ("label", "label")
            return ClusterDrawer.of(data, np.array(self._of_two(data)), *couplings)
        if data.n_clusters is None:
            return RedrawLabels().drawer(data)
        coupling, dependence = self.coupling or "label", self.dependence
        if isinstance(coupling, tuple) or (
            isinstance(dependence, tuple) and not isinstance(dependence, Dependence)
        ):
            raise StatisticError(f"{self!r} is for two columns of clusters")
        agreement = Agreement.of(data, coupling)
        limits = agreement.limits() if dependence is None else Dependence.of(dependence)
        return ClusterDrawer.of(data, agreement.of_rows(limits), coupling)

    def _of_two(self, data: Predictions) -> Pair:
        """Return λ of two columns of clusters, given or at the limits of the labels."""
        if is_pair(self.dependence):
            return self.dependence
        if self.dependence is not None:
            raise StatisticError("dependence of two columns of clusters is a pair (λ₁, λ₂)")
        couplings = self.coupling if isinstance(self.coupling, tuple) else ("label", "label")
        first, second = (CrossedAgreement.of(data, coupling) for coupling in couplings)
        return limits_of(first, second)


@dataclass(frozen=True, repr=False)
class WildSigns(Scheme):
    """Multiply the residuals of every cluster by +1 or −1: for statistics of residuals.

    It assumes that the sum of the residuals of a cluster is as likely positive as negative, which
    few clusters and rare events violate: sizes of 0.2 to 0.7 at 0.05 were measured with ten
    clusters of rare events. Rows without clusters change sign one by one. Cameron, Gelbach &
    Miller, Review of Economics and Statistics 90, 2008.
    """

    takes_clusters: ClassVar[bool] = True

    def drawer(self, data: Predictions) -> Drawer:
        """Prepare to draw the signs of all rows; O(n) each."""
        rows = np.arange(data.n) if data.clusters is None else by_appearance(data.clusters)
        return partial(_signs, LabelDrawer.of(np.full((int(rows.max()) + 1, 2), 0.5)), rows)


def _signs(
    draw: LabelDrawer, rows: IntArray, seed: Seed, first: int, count: int, out: Any = None
) -> IntArray:
    return 1 - 2 * draw(seed, first, count)[:, rows]


@dataclass(frozen=True, repr=False)
class OneRowPerCluster(Scheme):
    """Test one row of every cluster, drawn at random, and once more, and again.

    Each draw gives a valid p-value; that of all is 2 min_j (1/j) Σ_{i≤j} p_i (Gasparin, Wang &
    Ramdas, arXiv:2404.03484), valid for any dependence within clusters. Clusters weigh alike,
    whatever their size; power is that of a single draw at half the level.

    Parameters
    ----------
    draws : int, default 100
        How often one row of every cluster is drawn.
    """

    draws: int = 100
    takes_clusters: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole("draws", self.draws)

    def rows(self, data: Predictions, rng: np.random.Generator) -> IntArray:
        """Return one row of every cluster."""
        order = rng.permutation(data.n)
        codes = order if data.clusters is None else data.clusters[order]
        return np.sort(order[np.unique(codes, return_index=True)[1]])


@dataclass(frozen=True, repr=False)
class PopulationWeights(Scheme):
    """Ask whether the model is calibrated in the weighted population, not in every row.

    E[w (y − p) | cell] = 0, as where a survey weighs groups up that are calibrated otherwise. The
    p-value is the larger of those of :class:`RedrawLabels` and of :class:`WildSigns`, and there is
    none where it is known to fail (sizes of up to 0.6 at 0.05): for weights so uneven that the
    effective number of rows is below three quarters of them, and with fewer than 100 surprising
    outcomes to be expected, (Σ w m)² / Σ w² m with m = 1 − max_k p_k.
    """

    def refuse(self, data: Predictions) -> None:
        """Refuse data of which nothing is known, or too little."""
        m, w = 1.0 - data.probs.max(axis=1), data.weights
        if w is None or data.n_clusters is not None:
            raise StatisticError(f"{self!r} is for weights, and for rows without clusters")
        share, surprises = data.effective_n / data.n, (w @ m) ** 2 / max(w**2 @ m, 1e-300)
        if share < 0.75 or surprises < 100.0:
            raise StatisticError(
                f"{self!r} holds no level here: the effective n is {share:.2f} of n (at least 0.75 "
                f"is needed) and {surprises:.3g} surprising outcomes are expected (at least 100). "
                "Without it every row is taken for calibrated"
            )
