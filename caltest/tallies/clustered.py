"""Tallies of clusters: sums over micro-cells for every cluster, such as the pixels of an image.

:class:`ClusteredTally` adds up over files and machines; tests of residual sums treat clusters as
independent units, by random signs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from caltest._base import FloatArray, IntArray
from caltest._base.arrays import fraction, whole
from caltest.data import Facts, Predictions
from caltest.data.binning import EDGE_TOLERANCE
from caltest.data.facts import as_names
from caltest.data.lenses import Lens, LensLike, as_lens
from caltest.errors import FewClustersWarning, InvalidPredictionsError, StatisticError
from caltest.nulls.laws import clopper_pearson
from caltest.read.arguments import questioned_arrays
from caltest.read.grade_tables import count_table, read_columns
from caltest.tallies.grid import CLUSTER_CELLS, AnyTally
from caltest.tallies.tally import event_through, refuse_in_memory, rows_to_tally

if TYPE_CHECKING:
    from dask.dataframe import DataFrame
    from pandas import DataFrame as PandasFrame


#: Fewest clusters: with 50 random signs rejected up to .12 at .05.
FEWEST_CLUSTERS = 100


#: Rare events, each in a cluster of its own, below which tests and intervals fail.
RARE_EVENTS = 10.0


#: Of the rows of a cluster in a cell: their number, Σ p, Σ p², Σ y and Σ y p.
CLUSTER_SUMS = ("n", "p", "p2", "y", "yp")


#: Rows of a partition that are added up together, about 100 MB.
BATCH = 1 << 20


#: Most lines of a tally that is added up by workers: 2.2 GB, 7 GB while two are added.
MOST_LINES = 40_000_000


@dataclass(frozen=True, eq=False)
class ClusteredTally(AnyTally):
    """Sums of a two-class question over the rows of every cluster in every micro-cell of [0, 1].

    10⁹ pixels of 10⁴ images are 10⁶ lines of five sums. Rows of a cluster may depend on each other
    in any way; clusters are independent. :func:`calibration_test` and :func:`reliability_curve`
    take one in place of predictions, with random signs of whole clusters for their null
    (:class:`WildSigns`), which at least 100 clusters are needed for, and residuals times the root
    of Σ p (1 − p) / Σ (y − p)² where that is above 1; :meth:`mean_gap` has an interval. Make one
    with :meth:`of`. Tallies of other rows are added with ``+``, also of rows of the same clusters.
    Signs are drawn in the order of names: others change a p-value by Monte Carlo error.

    Attributes
    ----------
    names : tuple of str
        Names of the G clusters.
    cluster, cell : ndarray of shape (U,), int
        For each of U lines, a cluster in a cell: the index of the cluster, and which of ``n_cells``
        cells (k/m, (k + 1)/m], m = ``n_cells``.
    sums : ndarray of shape (U, 5)
        For each line: rows, Σ p, Σ p², Σ y and Σ y p, y = 1 for the event.
    lens : lens
        The choice of the event, such as ``OneVsRest(1)``.
    n_cells : int
        Number of cells of equal width, by default 120.
    classes : tuple of str or None
        Names of the classes, None if they have none.
    notes : tuple of str
        How the rows were read.
    """

    names: tuple[str, ...]
    cluster: IntArray = field(repr=False)
    cell: IntArray = field(repr=False)
    sums: FloatArray = field(repr=False)
    lens: Lens
    n_cells: int = CLUSTER_CELLS
    classes: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    n_classes = 2
    weights = None

    @classmethod
    def of(
        cls,
        probs: object,
        labels: object = None,
        *,
        lens: LensLike | None = None,
        n_cells: int = CLUSTER_CELLS,
        **facts: Unpack[Facts],
    ) -> Self:
        """Tally rows by cluster; O(n log n).

        ``probs``, ``labels`` and other ``facts`` are as in :meth:`Predictions.of`. The keyword
        ``clusters`` is an array of names or numbers (n,); [0, 1] is cut into ``n_cells`` cells.
        ``lens`` says which probabilities are assessed, by default the event. StatisticError without
        clusters, with weights or subgroups, and for more than two classes behind the lens.
        """
        whole("n_cells", n_cells)
        if isinstance(facts.get("clusters"), (str, type(None))):
            raise StatisticError(
                "ClusteredTally needs clusters=, their names as an array beside probs and labels: "
                "without them make a Tally"
            )
        if facts.get("drop_missing") or facts.get("drop_labels"):
            raise StatisticError("a tally of clusters drops no rows: leave them out before")
        clusters = facts.pop("clusters")
        data, through = rows_to_tally(lens, probs, labels, facts)
        data = questioned_arrays(data, probs, labels, facts)
        if data.weights is not None:
            raise StatisticError("a tally of clusters keeps no weights: leave them out")
        of_rows = as_names(clusters, data.n, "clusters of a tally").astype(str)
        induced, event = event_through(through, data)
        p, y = induced[:, 0], event.astype(np.float64)
        names, group = np.unique(of_rows, return_inverse=True)
        cell = np.maximum(np.ceil((p - EDGE_TOLERANCE) * n_cells).astype(np.int64) - 1, 0)
        columns = [np.ones(p.size), p, p * p, y, y * p]
        head = through, n_cells, data.classes, data.notes
        return cls._added(names, group.ravel(), cell, columns, *head)

    @classmethod
    def _added(
        cls, names: Iterable[str], group: IntArray, cell: IntArray, columns: Iterable[FloatArray],
        lens: Lens, n_cells: int, classes: tuple[str, ...] | None = None,
        notes: tuple[str, ...] = (),
    ) -> Self:  # fmt: skip
        lines, where = np.unique(group * n_cells + cell, return_inverse=True)
        sums = [np.bincount(where.ravel(), column, lines.size) for column in columns]
        named = tuple(map(str, names))
        cluster, cell = np.divmod(lines, n_cells)
        return cls(named, cluster, cell, np.column_stack(sums), lens, n_cells, classes, notes)

    @classmethod
    def from_table(
        cls, table: object, *, lens: LensLike | None = None, n_cells: int = CLUSTER_CELLS
    ) -> Self:
        """Read the result of :func:`tally_sql` with ``cluster=``, or a table like it.

        ``table`` is a data frame, mapping of columns, duckdb relation or path. Its columns are
        ``cluster``, ``cell`` (from 0 to ``n_cells`` − 1), ``n`` rows, and the sums ``p``, ``p2``,
        ``y`` and ``yp`` of p, p², y and y p over them. ``lens`` is the event they are of, by
        default ``OneVsRest(1)``. InvalidPredictionsError for sums that no rows have.
        """
        with count_table(table) as counts:
            columns = read_columns(counts, ("cluster", "cell", *CLUSTER_SUMS))
        numbers = [np.asarray(columns[name], dtype=np.float64) for name in (*CLUSTER_SUMS, "cell")]
        n, p, p2, y, yp, cell = numbers
        right = (cell >= 0) & (cell < n_cells) & (n >= 1) & (p >= 0) & (p <= n) & (y >= 0)
        right &= (y <= n) & (cell == np.rint(cell)) & (np.abs(p * n_cells - (cell + 0.5) * n) <= n)
        right &= (n == np.rint(n)) & (y == np.rint(y)) & (np.minimum(p2, yp) >= 0)
        right &= np.maximum(p2, yp) <= p * (1.0 + EDGE_TOLERANCE)
        if not right.all():
            row = int(np.argmin(right))
            raise InvalidPredictionsError(
                f"line {row + 1}, cluster {columns['cluster'][row]}: {n[row]:g} rows with Σ p = "
                f"{p[row]:g}, Σ p² = {p2[row]:g}, Σ y = {y[row]:g} and Σ y p = {yp[row]:g} are "
                f"not of cell {cell[row]:g} of {n_cells}; rows "
                "without a probability in [0, 1] or an outcome of 0 or 1 come there"
            )
        names, group = np.unique(np.asarray(columns["cluster"]).astype(str), return_inverse=True)
        through = as_lens(lens, Predictions.of([0.5, 0.5], [0, 1]))
        places = group.ravel(), cell.astype(np.int64)
        return cls._added(names, *places, numbers[:-1], through, n_cells)

    @classmethod
    def from_dask(cls, frame: DataFrame, p: str, label: str, cluster: str, **options: Any) -> Self:
        """Tally a Dask data frame partition by partition; columns are given by name.

        ``p``, ``label`` and ``cluster`` are column names; ``options`` (``lens``, ``n_cells`` and
        others) are passed to :meth:`of`. TypeError for another frame, InvalidPredictionsError for
        one without rows. Needs the package dask.
        """
        from caltest.read.formats import imported

        dask = imported("dask", "dask", "Dask data frames")
        refuse_in_memory(frame)

        def part(rows: PandasFrame) -> Self | None:
            tally: Self | None = None
            for start in range(0, len(rows), BATCH):
                some = rows.iloc[start : start + BATCH]
                names = some[cluster].to_numpy()
                one = cls.of(some[p].to_numpy(), some[label].to_numpy(), clusters=names, **options)
                tally = one if tally is None else _within_memory(tally + one)
            return tally

        def both(a: Self | None, b: Self | None) -> Self | None:
            return b if a is None else a if b is None else _within_memory(a + b)

        # In pairs, so that no worker holds more than two sums, instead of all on one machine
        waiting = [dask.delayed(part, pure=False)(rows) for rows in frame.to_delayed()]
        while len(waiting) > 1:
            pairs = zip(waiting[::2], waiting[1::2], strict=False)
            added = [dask.delayed(both, pure=False)(a, b) for a, b in pairs]
            waiting = added + waiting[len(waiting) // 2 * 2 :]
        (tally,) = dask.compute(waiting[0])
        if tally is None:
            raise InvalidPredictionsError("the data frame has no rows")
        return tally

    @property
    def n(self) -> int:
        return round(float(self.sums[:, 0].sum()))

    @property
    def n_clusters(self) -> int:  # type: ignore[override]
        """Number of clusters G."""
        return len(self.names)

    @property
    def effective_n(self) -> float:
        return float(self.n)

    @property
    def impossible(self) -> IntArray:
        """Array of zeros with one entry for each outcome of probability 0 that the sums reveal.

        They are counted where all rows of a cluster in a cell have probability 0, or all 1.
        """
        n, p, _, y, _ = self.sums.T
        return np.zeros(int(y[p == 0.0].sum() + (n - y)[p == n].sum()), dtype=np.int64)

    @property
    def question(self) -> dict[str, object]:
        return {"lenses": self.lens, "numbers of cells": self.n_cells, "classes": self.classes}

    def through(self, lens: LensLike | None) -> Self:
        """Return the tally itself if ``lens`` is its own lens or None, else StatisticError.

        A lens says which probabilities are assessed.
        """
        if lens is None or lens == self.lens:
            return self
        raise StatisticError(f"this is a tally of {self.lens!r}: tally the rows with {lens!r}, too")

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, ClusteredTally):
            return NotImplemented
        self.refuse_other(other, "do not add up")
        names, place = np.unique([*self.names, *other.names], return_inverse=True)
        first, second = np.split(place.ravel(), [self.n_clusters])
        group = np.concatenate([first[self.cluster], second[other.cluster]])
        cell = np.concatenate([self.cell, other.cell])
        columns = np.concatenate([self.sums, other.sums]).T
        notes = tuple(dict.fromkeys((*self.notes, *other.notes)))
        head = self.lens, self.n_cells, self.classes, notes
        return self._added(names, group, cell, columns, *head)

    def warn(self, stack: int = 3) -> None:
        """Warn (FewClustersWarning) if sums of clusters are so skewed that random signs fail.

        The sums are of residuals. This is checked for clusters whose rows all share their label.
        With n_g rows and the mean prediction p_g of a cluster and v_g = p_g (1 − p_g), the sums are
        as skewed as a count of (Σ n_g² v_g)³ / (Σ n_g³ v_g |1 − 2 p_g|)² rare events, of which at
        least 10 are needed. ``stack`` is the stack level of the warning.
        """
        n, p = (np.bincount(self.cluster, column) for column in self.sums[:, :2].T)
        skew = p / n * (1.0 - p / n) * n**2
        events = skew.sum() ** 3 / max((skew @ (n * abs(1.0 - 2.0 * p / n))) ** 2, 1e-300)
        if events < RARE_EVENTS:
            warnings.warn(
                "events are rare, or few clusters hold most of them: if rows of a cluster shared "
                f"their label it would be as if {events:.1f} had been expected, and it takes "
                f"{RARE_EVENTS:g}. Tests at 0.05 then rejected up to 0.14 of calibrated models, "
                "and intervals of 95 % missed up to 0.20",
                FewClustersWarning,
                stacklevel=stack,
            )

    def mean_gap(self, level: float = 0.95) -> tuple[float, float, float]:
        """Return the mean of y − p over all rows, and its confidence interval for new rows.

        m = Σ_g R_g / n with R_g = Σ (y − p) of cluster g, n = Σ_g n_g, has the jackknife's variance
        s² = (G − 1) / G Σ_g (R_g − m n_g)² / (n − n_g)² with n² / Σ_g n_g² − 1 degrees of freedom,
        for G clusters of n_g rows. The limits are Clopper–Pearson limits for the number of rows
        that has this variance, ȳ (1 − ȳ) (z / (t s))², ȳ the event rate, z and t quantiles of the
        normal and the t law, less the mean prediction (Korn & Graubard, Survey Methodology 24,
        1998), or for n² / Σ_g n_g² rows where all labels are equal. StatisticError for one cluster.

        Parameters
        ----------
        level : float, default 0.95
            Coverage of the interval, between 0 and 1.

        Returns
        -------
        mean, low, high : float
            Observed − predicted, and the ends of its interval.
        """
        from scipy.special import ndtri, stdtrit

        fraction("level", level)
        rows, p, y = (
            np.bincount(self.cluster, self.sums[:, j], self.n_clusters) for j in (0, 1, 3)
        )
        count, n = self.n_clusters, rows.sum()
        if count < 2:
            raise StatisticError("an interval needs two clusters at least, and there is one")
        self.warn()
        mean, rate, trials = (y - p).sum() / n, y.sum() / n, n**2 / (rows**2).sum()
        parts = (y - p - mean * rows) / (n - rows)
        side = 0.5 + level / 2.0
        half = stdtrit(max(trials - 1.0, 1.0), side) * np.sqrt((1.0 - 1.0 / count) * parts @ parts)
        if 0.0 < rate < 1.0 and half > 0.0:
            trials = rate * (1.0 - rate) * (ndtri(side) / half) ** 2
        low, high = clopper_pearson(trials * rate, trials, level)
        return float(mean), low - float(rate - mean), high - float(rate - mean)

    def __repr__(self) -> str:
        return f"ClusteredTally(n={self.n}, {self.lens!r}, {self.n_clusters} clusters)"


def _within_memory(tally: ClusteredTally) -> Any:
    """Return the tally unchanged if a Dask worker can hold it, up to 40 million lines.

    A line is a cluster in a cell. StatisticError, with advice, for more.
    """
    lines = len(tally.cell)
    if lines > MOST_LINES:
        raise StatisticError(
            f"the sums of {tally.n_clusters} clusters have more than {MOST_LINES} lines "
            f"({lines * 56 / 1e9:.1f} GB), more than workers can be trusted to hold: take fewer "
            "cells (n_cells=), or add up in a database (tally_sql with cluster=)"
        )
    return tally
