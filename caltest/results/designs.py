"""How rows depend on each other: what was learnt of folds, and of forecasts several steps ahead."""

from __future__ import annotations

from caltest.results.base import Record
from caltest.results.fields import described, entry

#: Chance below which folds were not dealt at random, and z of the contrast that folds leave.
UNLIKELY, MIRRORED = 1e-3, -3.0


@described()
class FoldSummary(Record):
    """The folds of cross-validated predictions, and what aligning their levels has changed.

    Of more than two classes levels are those of the likeliest class.
    """

    count: int = entry("The number of folds, and their rows.")
    smallest: int
    largest: int
    moved: float = entry("The largest |d_k|, by which the mean prediction of a fold is moved.")
    contrast: float = entry(
        "Σ w d r / √Σ w² d² v over rows, d that of their fold: N(0, 1) where models know none of "
        "these labels."
    )
    random: float = entry("The chance that folds of rows dealt at random differ as much.")

    @property
    def share(self) -> float:
        """The share of the rows that each model was fitted on."""
        return 1.0 - 1.0 / self.count

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about cross-validated predictions."""
        notes = [
            "folds are aligned, and p is not exact: models of other folds know these labels. The "
            f"answer is about models fitted on {100 * self.share:.0f} % of the rows, not one "
            "refitted on all"
        ]
        if self.random < UNLIKELY:
            notes.append(
                f"folds differ more than rows dealt at random (p = {self.random:.0e}): if they are "
                "sites or periods ask by= for each, what they share is not tested"
            )
        if self.contrast < MIRRORED:
            notes.append(
                "predictions are lower where events are more frequent, as cross-validation makes "
                "them: not aligned, such rows fail any test"
            )
        return tuple(notes)

    def __str__(self) -> str:
        rows = f"{self.smallest}" + (f"–{self.largest}" if self.largest > self.smallest else "")
        return (
            f"{self.count} of {rows} rows · levels moved by at most {self.moved:.2g} · about "
            f"models fitted on {100 * self.share:.0f} % of the rows"
        )


@described()
class HorizonSummary(Record):
    """Forecasts several steps ahead, and the dependence of overlapping outcomes that is allowed."""

    horizon: int = entry("By how many times forecasts are ahead.")
    times: int = entry("The number of different times.")
    dependence: float | None = entry(
        "λ, the degree to which rows less than ``horizon`` times apart share their label in what "
        "is redrawn; None where blocks of four horizons are the units instead.",
        default=None,
    )
    estimated: bool = entry("Whether λ is the upper 95 % limit of what labels show.", default=True)
    rows: int = entry("The number of rows; several may have one time.", default=0)

    def __str__(self) -> str:
        several = self.rows > self.times
        of = f"{self.times} times, {self.rows} rows" if several else f"{self.times} rows"
        if self.dependence is None:
            return f"{self.horizon} of {of}"
        limit = "at most " if self.dependence > 0.0 else "below 0.1"
        shown = f"{self.dependence:g}" if self.dependence > 0.0 or not self.estimated else ""
        said = f"{limit}{shown} (95 % limit)" if self.estimated else shown
        return f"{self.horizon} of {of} · dependence {said}"
