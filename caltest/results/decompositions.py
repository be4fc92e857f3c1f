"""Answers that take a mean score apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caltest.results.base import Result
from caltest.results.fields import described, entry

if TYPE_CHECKING:
    from caltest.statistics.isotonic import IsotonicFit


@described(
    number="mean_score",
    title="mean score = miscalibration − discrimination + uncertainty",
    plotter="numbers.decomposition",
)
class CORPDecomposition(Result):
    """A mean score taken apart: ``mean_score = miscalibration − discrimination + uncertainty``."""

    mean_score: float = entry("S(p, y), the mean score of the predictions; smaller is better.")
    miscalibration: float = entry(
        "S(p, y) − S(p̂, y) ≥ 0, with p̂ the isotonic fit: what recalibration would gain."
    )
    discrimination: float = entry(
        "S(ȳ, y) − S(p̂, y) ≥ 0, with ȳ the share of events: what the ranking is worth."
    )
    uncertainty: float = entry("S(ȳ, y), the score of the best constant prediction.")
    score: str = entry("The score.", '{"brier", "log"}')
    lens: str = entry("Through which lens the event was seen.")
    fit: IsotonicFit | None = entry(
        "The isotonic fit p̂, to be drawn as a reliability curve; not part of the dictionary form.",
        "IsotonicFit",
        default=None,
        transient=True,
    )

    def _made(self) -> list[str]:
        return [f"CORP({self.score!r}) decomposition", self.lens]


@described(
    number="mean_score",
    title="Brier score = reliability − resolution + uncertainty"
    " + within variance − within covariance",
    plotter="numbers.decomposition",
)
class BrierDecomposition(Result):
    """A Brier score taken apart over the cells of a partition.

    ``mean_score = reliability − resolution + uncertainty + within_variance − within_covariance``,
    exactly. With ḡ_b and r̄_b the mean prediction and the frequencies of the labels in cell b, r̄
    those of all rows and e_i the outcome as a vector:

    Notes
    -----
    For two classes everything is halved, as in :class:`caltest.BrierScore`. The last two parts are
    0 when every cell holds a single prediction: the decomposition of Murphy (1973). With them the
    sum is exact for any cells (Stephenson, Coelho & Jolliffe 2008).
    """

    mean_score: float = entry("The Brier score.")
    reliability: float = entry("Σ_b (n_b / n) ‖ḡ_b − r̄_b‖² ≥ 0: miscalibration between cells.")
    resolution: float = entry(
        "Σ_b (n_b / n) ‖r̄_b − r̄‖² ≥ 0: how much the cells differ in what happens."
    )
    uncertainty: float = entry("1 − ‖r̄‖², the score of always predicting r̄.")
    within_variance: float = entry("(1/n) Σ_i ‖p_i − ḡ_b‖²: spread of predictions within cells.")
    within_covariance: float = entry(
        "(2/n) Σ_i (p_i − ḡ_b)·(e_i − r̄_b): how much of that spread is right."
    )
    bins: str = entry("The partition, and the lens through which it was made.")
    lens: str

    def _made(self) -> list[str]:
        return [f"Brier decomposition over {self.bins}", self.lens]
