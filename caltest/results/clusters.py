"""What a test found out about the clusters of its rows."""

from __future__ import annotations

from caltest.results.base import Record
from caltest.results.fields import described, entry

#: z beyond which sizes of clusters and residuals are not associated by chance.
ASSOCIATED = 3.29


@described()
class ClusterSummary(Record):
    """The clusters behind a test, and the dependence that its null distribution allows for."""

    count: int = entry("The number of clusters, and their rows.")
    smallest: int
    largest: int
    effective: float = entry(
        "(Σ v_g)² / Σ v_g², v_g the variance of the sum of a cluster: as many equal clusters "
        "would weigh the same."
    )
    shared: float = entry(
        "Clusters in which a label other than the commonest is expected, if clusters shared labels."
    )
    dependence: float | None = entry(
        "λ, the degree to which rows of a cluster share their label in what is redrawn, and that "
        "to which they share whether the likeliest label is right; None where it was not tried, "
        "or would be the same."
    )
    correctness: float | None
    in_parts: float = entry("The largest λ of a part of the rows: where some agree more than all.")
    estimated: bool = entry(
        "Whether λ is the upper 95 % limit of what the labels show, or was given."
    )
    inflation: float = entry(
        "κ, above 1 where labels of a cluster agree more than any redraw allows: replicates of a "
        "statistic of degree d in the residuals are multiplied by κ^{d/2}."
    )
    size_effect: float = entry(
        "z of the association between the size of a cluster and its residuals; see the notes."
    )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about clusters that are not all alike."""
        notes = []
        overall = max(self.dependence or 0.0, self.correctness or 0.0)
        if self.in_parts > overall:
            notes.append(
                f"some rows depend on others of their cluster more than all do (λ up to "
                f"{self.in_parts:g}, {overall:g} overall): they are drawn with their own λ"
            )
        if abs(self.size_effect) > ASSOCIATED:
            notes.append(
                f"residuals change with the size of the cluster (z = {self.size_effect:+.1f}): the "
                "test is valid if sizes do not depend on outcomes; test with "
                "null=OneRowPerCluster() if they may"
            )
        return tuple(notes)

    def __str__(self) -> str:
        rows = f"{self.smallest}" + (f"–{self.largest}" if self.largest > self.smallest else "")
        kinds = {"labels": self.dependence, "being right": self.correctness}
        shares = [f"{kind} {self._bound(x)}" for kind, x in kinds.items() if x is not None]
        limits = " (95 % limits)" if self.estimated else ""
        return (
            f"{self.count} of {rows} rows, effective {self.effective:.1f} · dependence of "
            f"{', of '.join(shares)}{limits} · κ {self.inflation:.2f}"
        )

    def _bound(self, degree: float) -> str:
        if not self.estimated:
            return f"{degree:g}"
        return f"at most {degree:g}" if degree > 0.0 else "below 0.1"
