"""The two conventions of a consistency p-value, beside each other.

Labels redrawn from the observed predictions (valid at every sample size), and predictions
bootstrapped before labels are drawn (as published by Vaicenavicius et al.).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import caltest as ct
from caltest.statistics import Statistic


def exact_p(p: float) -> str:
    """Return a p-value with the digits that a comparison with a published one needs."""
    if p < 1e-12:
        return "< 1e-12"
    return f"{p:.3f}" if p >= 0.01 else f"{p:.4f}" if p >= 0.001 else f"{p:.1e}"


@dataclass(frozen=True)
class Answer:
    """A statistic, its noise floor, and its p-value by either convention."""

    estimate: float
    floor: float
    p: float
    published_floor: float
    published_p: float

    def row(self, *first: Any) -> Sequence[Any]:
        """Return the answer as a row of a table."""
        return [
            *first,
            f"{self.estimate:.4f}",
            f"{self.floor:.4f}",
            exact_p(self.p),
            f"{self.published_floor:.4f}",
            exact_p(self.published_p),
        ]


#: Headings of :meth:`Answer.row`.
COLUMNS = (
    "estimate",
    "noise floor (labels redrawn)",
    "p",
    "noise floor (predictions bootstrapped)",
    "p",
)


def ask(
    data: ct.Predictions,
    statistic: Statistic,
    lens: Any,
    rng: Any,
    *,
    n_resamples: int = 999,
    published: int | None = None,
) -> Answer:
    """Test by both conventions; ``published`` replicates for the second, by default as many."""
    ours = ct.calibration_test(data, None, statistic, lens=lens, n_resamples=n_resamples, rng=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.SparseBinsWarning)
        theirs = ct.calibration_test(
            data,
            None,
            statistic,
            lens=lens,
            null=ct.ConsistencyResampling(),
            n_resamples=published or n_resamples,
            rng=rng,
        )
    return Answer(ours.estimate, ours.null_mean, ours.pvalue, theirs.null_mean, theirs.pvalue)
