"""Answers that take a mean score apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from caltest.results.base import Result

if TYPE_CHECKING:
    from caltest.statistics.isotonic import IsotonicFit


@dataclass(frozen=True)
class CORPDecomposition(Result):
    """A mean score taken apart: ``mean_score = miscalibration − discrimination + uncertainty``.

    Attributes
    ----------
    mean_score : float
        S(p, y), the mean score of the predictions; smaller is better.
    miscalibration : float
        S(p, y) − S(p̂, y) ≥ 0, with p̂ the isotonic fit: what recalibration would gain.
    discrimination : float
        S(ȳ, y) − S(p̂, y) ≥ 0, with ȳ the share of events: what the ranking is worth.
    uncertainty : float
        S(ȳ, y), the score of the best constant prediction.
    score : {"brier", "log"}
        The score.
    lens : str
        Through which lens the event was seen.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    fit : IsotonicFit
        The isotonic fit p̂, to be drawn as a reliability curve; not part of the dictionary form.
    """

    mean_score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    score: str
    lens: str
    number: ClassVar[str] = "mean_score"
    title: ClassVar[str] = "mean score = miscalibration − discrimination + uncertainty"
    fit: IsotonicFit | None = field(
        default=None, repr=False, compare=False, metadata={"transient": True}
    )

    def _made(self) -> list[str]:
        return [f"CORP({self.score!r}) decomposition", self.lens]


@dataclass(frozen=True)
class BrierDecomposition(Result):
    """A Brier score taken apart over the cells of a partition.

    ``mean_score = reliability − resolution + uncertainty + within_variance − within_covariance``,
    exactly. With ḡ_b and r̄_b the mean prediction and the frequencies of the labels in cell b, r̄
    those of all rows and e_i the outcome as a vector:

    Attributes
    ----------
    mean_score : float
        The Brier score.
    reliability : float
        Σ_b (n_b / n) ‖ḡ_b − r̄_b‖² ≥ 0: miscalibration between cells.
    resolution : float
        Σ_b (n_b / n) ‖r̄_b − r̄‖² ≥ 0: how much the cells differ in what happens.
    uncertainty : float
        1 − ‖r̄‖², the score of always predicting r̄.
    within_variance : float
        (1/n) Σ_i ‖p_i − ḡ_b‖²: spread of predictions within cells.
    within_covariance : float
        (2/n) Σ_i (p_i − ḡ_b)·(e_i − r̄_b): how much of that spread is right.
    bins, lens : str
        The partition, and the lens through which it was made.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.

    Notes
    -----
    For two classes everything is halved, as in :class:`caltest.BrierScore`. The last two parts are
    0 when every cell holds a single prediction: the decomposition of Murphy (1973). With them the
    sum is exact for any cells (Stephenson, Coelho & Jolliffe 2008).
    """

    mean_score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float
    bins: str
    lens: str
    number: ClassVar[str] = "mean_score"
    title: ClassVar[str] = (
        "Brier score = reliability − resolution + uncertainty + within variance − within covariance"
    )

    def _made(self) -> list[str]:
        return [f"Brier decomposition over {self.bins}", self.lens]
