"""What a test found out about the clusters of its rows."""

from __future__ import annotations

from caltest.results.base import Record
from caltest.results.fields import described, entry


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
    dependence: float = entry("λ, the degree of dependence of the redrawn labels.")
    estimated: bool = entry(
        "Whether λ is the upper 95 % limit of what the labels show, or was given."
    )
    inflation: float = entry(
        "κ, above 1 where labels of a cluster agree more than any redraw allows: replicates of a "
        "statistic of degree d in the residuals are multiplied by κ^{d/2}."
    )

    def __str__(self) -> str:
        rows = f"{self.smallest}" + (f"–{self.largest}" if self.largest > self.smallest else "")
        bound = f"at most {self.dependence:g} (95 % limit)"
        return (
            f"{self.count} of {rows} rows, effective {self.effective:.1f} · dependence "
            f"{bound if self.estimated else f'{self.dependence:g}'} · κ {self.inflation:.2f}"
        )
