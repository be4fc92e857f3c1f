"""How large an error may be, and what that means beside the largest that can be lived with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.inference import confidence_interval
from caltest.reports.questions import Pair
from caltest.results import format_range
from caltest.simulate import Run
from caltest.tally import Source


@dataclass(frozen=True)
class Bounds:
    """An error, less its noise too, with bounds that are wrong with a chance of alpha at most."""

    estimate: float
    corrected: float
    low: float
    high: float
    alpha: float

    @classmethod
    def of(cls, data: Source, pair: Pair, alpha: float, draws: Run) -> Bounds:
        """Bound the error of a statistic seen through a lens."""
        statistic, lens = pair
        alpha = min(alpha, 0.25)
        interval = confidence_interval(data, None, statistic, lens=lens, level=1.0 - 2.0 * alpha,
                                    **draws)  # fmt: skip
        assert interval.low is not None
        assert interval.high is not None
        return cls(interval.estimate, interval.corrected, interval.low, interval.high, alpha)

    def within(self, limit: float) -> bool | None:
        """Return whether the error is at most ``limit``; None where that cannot be told."""
        return False if self.low > limit else True if self.high <= limit else None

    def rows_to_tell(self, n: int, limit: float) -> int | None:
        """Return how many rows would bring the bounds as close to each other as ``limit`` is to 0.

        These tell unless the truth is within about half the limit of it. Distances shrink like
        1/√n; the estimate is too noisy to say how far from the limit it will be. None where the
        bounds are as close already.
        """
        width = self.high - self.low
        return int(np.ceil(n * (width / limit) ** 2 / 100.0)) * 100 if width > limit > 0.0 else None

    def __str__(self) -> str:
        ends = format_range(self.low, self.high, " and ")
        return f"between {ends} ({100.0 - 200.0 * self.alpha:g} % interval)"
