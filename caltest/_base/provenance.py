"""Where predictions come from, as far as it matters for a test of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from caltest._base.arrays import BoolArray


@dataclass(frozen=True, eq=False)
class Provenance:
    """A recalibration that predictions went through.

    ``method`` is written as in Python, and was fitted on ``n_fitted`` rows; ``overlap``, bool of
    shape (n,), says which of the rows at hand are among them.
    """

    method: str
    n_fitted: int
    overlap: BoolArray = field(repr=False)

    @property
    def n_overlap(self) -> int:
        """How many of the rows at hand are rows of the fit."""
        return int(self.overlap.sum())
