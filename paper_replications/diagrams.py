"""Reliability diagrams of deviations with consistency bars, as published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import caltest as ct


@dataclass(frozen=True, eq=False)
class Deviations:
    """One entry a bin: mean prediction, deviation of the outcomes, bars, and share of rows."""

    predicted: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray
    count: np.ndarray

    @property
    def outside(self) -> np.ndarray:
        """Whether the deviation lies outside its bar."""
        return (self.deviation < self.low - 1e-12) | (self.deviation > self.high + 1e-12)

    def draw(
        self, axes: Any, title: str, truth: tuple[np.ndarray, np.ndarray] | None = None
    ) -> None:
        """Draw crosses, bars, the histogram, and the true deviation where it is known."""
        twin = axes.twinx()
        twin.bar(self.predicted, self.count / self.count.sum(), width=0.02, color="C0", alpha=0.35)
        twin.set(ylim=(0, 1), ylabel="proportion of predictions")
        axes.set_zorder(twin.get_zorder() + 1)
        axes.patch.set_visible(False)
        axes.axhline(0.0, color="0.5", lw=1)
        if truth is not None:
            axes.plot(*truth, color="C2", lw=1.5, label="true deviation")
        axes.vlines(self.predicted, self.low, self.high, color="C3", lw=4, alpha=0.5)
        axes.plot(self.predicted, self.deviation, "kx")
        axes.set(xlabel="average prediction", ylabel="deviation", title=title, xlim=(-0.03, 1.03))


def deviations(
    data: ct.Predictions,
    bins: Any,
    rng: np.random.Generator,
    *,
    lens: Any = ct.TopK(1),  # noqa: B008 (a frozen value)
    level: float = 0.9,
    n_resamples: int = 1000,
    published: bool = True,
) -> Deviations:
    """Return the deviations in every occupied bin of a two-class lens, and bars for each.

    Bars are quantiles of the deviation in resamples: predictions bootstrapped and labels drawn, as
    published, or labels drawn for the observed predictions. Bins stay those of the data.
    """
    seen = lens(data)
    p, event = seen.probs[:, 0], seen.labels == 0
    cells = np.unique(bins(seen.probs), return_inverse=True)[1].ravel()
    count = np.bincount(cells)
    predicted = np.bincount(cells, p) / count
    drawn = np.full((n_resamples, count.size), np.nan)
    for j in range(n_resamples):
        rows = rng.integers(p.size, size=p.size) if published else np.arange(p.size)
        gaps = (rng.random(p.size) < p[rows]) - p[rows]
        size = np.bincount(cells[rows], minlength=count.size)
        with np.errstate(invalid="ignore"):
            drawn[j] = np.bincount(cells[rows], gaps, minlength=count.size) / size
    tail = 0.5 * (1.0 - level)
    low, high = np.nanquantile(drawn, [tail, 1.0 - tail], axis=0)
    order = np.argsort(predicted)
    deviation = np.bincount(cells, event) / count - predicted
    return Deviations(*(a[order] for a in (predicted, deviation, low, high, count)))
