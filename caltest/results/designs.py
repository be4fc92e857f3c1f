"""How rows depend on each other: what was learnt of clusters, folds and forecasts far ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from caltest.results.base import Record
from caltest.results.fields import described, entry

#: z beyond which sizes of clusters, or weights, and residuals are not associated by chance.
ASSOCIATED = 3.29
#: Chance below which folds were not dealt at random, and z of the contrast that folds leave.
UNLIKELY, MIRRORED = 1e-3, -3.0


def degrees(kinds: Mapping[str, Sequence[float | None]], estimated: bool) -> str:
    """Say with which chance rows have each in common, along one column of clusters or two."""
    shares = []
    for kind, limits in kinds.items():
        values = [limit for limit in limits if limit is not None]
        words = " and ".join(f"{limit:.3g}" for limit in values)
        if estimated:
            words = f"at most {words}" if any(values) else "below 0.1"
        shares += [f"{kind}: {words}"] if values else []
    return f"chance λ that two rows {', '.join(shares)}{' (95 % limits)' if estimated else ''}"


def _sizes(parts: ClusterSummary | FoldSummary) -> str:
    larger = f"–{parts.largest}" if parts.largest > parts.smallest else ""
    return f"{parts.count} of {parts.smallest}{larger} rows"


@described()
class ClusterSummary(Record):
    """The clusters behind a test, and the dependence that its null distribution allows for."""

    count: int = entry("The number of clusters, and their rows.")
    smallest: int
    largest: int
    effective: float = entry("(Σ v_g)² / Σ v_g², v_g the variance of the sum of a cluster.")
    shared: float = entry("Clusters expected to have a rarer label, if they shared labels.")
    dependence: float | None = entry(
        "λ, the degree to which rows of a cluster share their label in what is redrawn, and that "
        "to which they share whether the likeliest label is right; None where not tried."
    )
    correctness: float | None
    in_parts: float = entry("The largest λ of a part of the rows: where some agree more than all.")
    estimated: bool = entry("Whether λ is the upper 95 % limit of what labels show, or given.")
    inflation: float = entry(
        "κ, above 1 where labels of a cluster agree more than any redraw allows: replicates of a "
        "statistic of degree d in the residuals are multiplied by κ^{d/2}."
    )
    size_effect: float = entry("z of the association of the size of a cluster and its residuals.")
    inflation_applied: bool = entry(
        "False where replicates could not be multiplied, because the statistic sees labels and "
        "the scheme was asked for by name: p-values are then too small where κ > 1.",
        default=True,
    )
    name: str = entry("What the clusters are called, of two columns.", default="")
    beside: ClusterSummary | None = entry("The clusters of the second column.", default=None)

    @property
    def along(self) -> tuple[ClusterSummary, ...]:
        """The columns along which rows may depend, or the first where neither shows that."""
        if self.beside is None:
            return (self,)
        return tuple(each for each in (self, self.beside) if each.in_parts > 0.0) or (self,)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the dependence means for a reader, and how clusters are not all alike."""
        notes = [
            "rows of a cluster depend on each other, which makes errors by chance larger: floors "
            "and p-values allow for it as far as labels show it (λ)"
        ]
        remedy = "test with null=OneRowPerCluster()"
        if self.beside is not None:
            remedy = "test rows of which no two share a cluster of either column"
        if self.inflation > 1.0 and self.inflation_applied:
            notes.append(
                "rows of a cluster agree more than outcomes in common explain: errors by chance "
                f"are taken as {self.inflation**0.5:.2f} times as large (√κ), so that the test "
                "stays valid and finds less"
            )
        if abs(self.size_effect) > ASSOCIATED:
            notes.append(
                f"residuals change with the size of the cluster (z = {self.size_effect:+.1f}): the "
                f"test is valid if sizes do not depend on outcomes; {remedy} if they may"
            )
        if not self.inflation_applied:
            notes.append(
                "κ could not be applied to a statistic that sees labels: the p-value is too "
                f"small; {remedy}"
            )
        return tuple(notes)

    def _of(self) -> str:
        return f"{_sizes(self)}, as informative as {self.effective:.1f} of equal weight"

    def __str__(self) -> str:
        columns = self._of()
        along = [self] if self.beside is None else [self, self.beside]
        if self.beside is not None:
            columns = f"{self.name}: {columns} · {self.beside.name}: {self.beside._of()}"
        kinds = {
            "share their label": [each.dependence for each in along],
            "are right together": [each.correctness for each in along],
        }
        applied = "" if self.inflation_applied else " (not applied)"
        within = self.in_parts > max(self.dependence or 0.0, self.correctness or 0.0)
        parts = f" · λ up to {self.in_parts:g} where rows agree more than elsewhere" * within
        more = f" · inflation κ {self.inflation:.2f}{applied}" * (self.inflation > 1.0)
        return f"{columns} · {degrees(kinds, self.estimated)}{parts}{more}"


@described()
class FoldSummary(Record):
    """The folds of cross-validated predictions, and what aligning their levels has changed.

    Of more than two classes levels are those of the likeliest class.
    """

    count: int = entry("The number of folds, and their rows.")
    smallest: int
    largest: int
    moved: float = entry("The largest |d_k|, by which the mean prediction of a fold is moved.")
    contrast: float = entry("Σ w d r / √Σ w² d² v over rows: N(0, 1) if models know no label.")
    random: float = entry("The chance that folds of rows dealt at random differ as much.")

    @property
    def share(self) -> float:
        """The share of the rows that each model was fitted on."""
        return 1.0 - 1.0 / self.count

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about cross-validated predictions."""
        notes = [
            "folds are aligned, each moved to the mean prediction of all rows: it is asked whether "
            "predictions are too high or low in all, and how they are spread, not whether one fold "
            "is too high beside another",
            "models of other folds know these labels, which makes p-values approximate; they are "
            f"about models fitted on {100 * self.share:.0f} % of the rows, not one refitted on all",
        ]
        if self.random < UNLIKELY:
            notes.append(
                f"folds differ more than rows dealt at random (p = {self.random:.0e}): if they are "
                "sites or periods ask by= for each, what they share is not tested"
            )
        if self.contrast < MIRRORED:
            notes.append(
                "folds with more events have lower predictions, as cross-validation by itself "
                "makes them: this would fail any test, and was taken out by aligning the folds"
            )
        return tuple(notes)

    def __str__(self) -> str:
        return (
            f"{_sizes(self)} · levels moved by at most {self.moved:.2g} · about "
            f"models fitted on {100 * self.share:.0f} % of the rows"
        )


@described()
class HorizonSummary(Record):
    """Forecasts several steps ahead, and the dependence of overlapping outcomes that is allowed."""

    horizon: int = entry("By how many times forecasts are ahead.")
    times: int = entry("The number of different times.")
    dependence: float | None = entry(
        "As of clusters, of rows less than ``horizon`` times apart; None where not tried, or where "
        "blocks of four horizons are the units instead.",
        default=None,
    )
    correctness: float | None = None
    estimated: bool = entry("Whether λ is the upper 95 % limit of what labels show.", default=True)
    rows: int = entry("The number of rows; several may have one time.", default=0)

    @property
    def notes(self) -> tuple[str, ...]:
        """What rows of the same times mean for a reader."""
        near = f" or less than {self.horizon} times apart" * (self.horizon > 1)
        note = f"rows are of {self.times} times: those of one time{near} are taken to depend"
        return (note,) * (self.rows > self.times)

    def __str__(self) -> str:
        several = self.rows > self.times
        of = f"{self.times} times, {self.rows} rows" if several else f"{self.times} rows"
        if self.dependence is None and self.correctness is None:
            return f"{self.horizon} of {of}"
        kinds = {"share their label": [self.dependence], "are right together": [self.correctness]}
        return f"{self.horizon} of {of} · {degrees(kinds, self.estimated)}"
