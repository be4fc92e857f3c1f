"""What results say of follow-up."""

from __future__ import annotations

from caltest.results.base import Record
from caltest.results.fields import described, entry


@described()
class FollowupSummary(Record):
    """How far rows were followed, in results of :class:`caltest.Followup`."""

    horizon: float = entry("By when the event occurs.")
    events: int = entry(
        "Rows with the event by the horizon, with a competing event, free of both at the horizon, "
        "and unknown as they were censored before."
    )
    competing: int
    free: int
    unknown: int
    strata: int = entry("Strata in which the curve of censoring was fitted.")
    by_prediction: bool = entry("Whether these are groups by rank of the prediction.")
    heaviest: float = entry("The largest weight.")
    effective_n: float = entry("(Σ W)² / Σ W², and its share of all rows.")
    share: float
    lost: float = entry("1 − Σ W / n: rows that no row followed to the horizon stands for.")
    smallest: int = entry("Rows of the smallest stratum.")

    @property
    def known(self) -> int:
        """Rows of which it is known whether the event occurred by the horizon."""
        return self.events + self.competing + self.free

    def __str__(self) -> str:
        by = "by prediction" if self.by_prediction else "as given"
        strata = f"{self.strata} groups {by}" if self.strata > 1 else "all together"
        return (
            f"by {self.horizon:g}: {self.events} had the event, {self.competing} a competing one, "
            f"{self.free} neither, {self.unknown} were censored before, for whom others of their "
            f"group stand ({strata}; largest weight {self.heaviest:.1f}, effective n "
            f"{self.effective_n:.0f})"
        )
