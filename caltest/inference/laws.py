"""Which null distribution answers, and how it comes about."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Literal

import numpy as np

from caltest.errors import SparseBinsWarning, StatisticError
from caltest.exact import MAX_CELLS, MAX_ENUMERATION, cell_null, enumerated_null, n_label_vectors
from caltest.inference.parts import two_sided
from caltest.nulls import NullDistribution, reaching
from caltest.predictions import Predictions
from caltest.resampling import (
    ConsistencyResampling,
    RedrawLabels,
    Resampler,
    Workers,
    replicates_of,
)
from caltest.statistics import Statistic
from caltest.written import name_of

#: Rows per occupied cell below which consistency resampling is not to be trusted.
MIN_ROWS_PER_CELL = 20

Null = Literal["auto", "exact", "asymptotic", "distribution-free"] | Resampler


def null_distribution(
    statistic: Statistic,
    fixed: Any,
    induced: Predictions,
    estimate: float,
    null: Null,
    n_resamples: int,
    rng: Any,
    workers: Workers,
    stop_early: bool,
) -> NullDistribution:
    """Return the law that was asked for; the parameters are those of ``calibration_test``."""
    laws = getattr(fixed, "laws", {})
    known = null in ("auto", "exact", *laws) if isinstance(null, str) else hasattr(null, "sampler")
    if not known or isinstance(null, type):
        choices = ", ".join(repr(name) for name in ("auto", "exact", *laws))
        raise StatisticError(
            f"the null of {name_of(statistic)} is one of {choices}, RedrawLabels() or "
            f"ConsistencyResampling(), not {null!r}"
        )
    if not getattr(null, "calibrated", True):
        raise StatisticError(
            f"{null!r} cannot be a null: its data sets are as miscalibrated as the observed one. "
            "Use null=RedrawLabels(); resampled rows are for confidence_interval"
        )
    if isinstance(null, str) and null in laws:
        law: NullDistribution = laws[null](induced.labels)
        return law
    if isinstance(null, str):
        cells = fixed.starts.size - 1 if hasattr(fixed, "term") else np.inf
        if induced.n_classes == 2 and cells <= (MAX_CELLS if null == "auto" else induced.n):
            return cell_null(fixed, induced.probs, estimate)
        limit = MAX_ENUMERATION if null == "exact" else n_resamples
        if n_label_vectors(induced.probs) <= limit:
            return enumerated_null(getattr(fixed, "evaluate", fixed), induced.probs)
        if null == "exact":
            raise StatisticError(
                f"there is no exact null for {name_of(statistic)} with {induced.n} rows of "
                f"{induced.n_classes} classes: it needs a two-class lens and a binned statistic, "
                "or very few rows. Use null=RedrawLabels(), which is valid always"
            )
        null = RedrawLabels()
    if isinstance(null, ConsistencyResampling):
        _warn_if_sparse(fixed)
    stop_when = partial(reaching, estimate, two_sided=two_sided(statistic)) if stop_early else None
    return replicates_of(
        statistic, fixed, null, induced, n_resamples, rng, workers, stop_when=stop_when
    )


def _warn_if_sparse(fixed: Any) -> None:
    counts = getattr(fixed, "counts", None)
    if counts is not None and counts.mean() < MIN_ROWS_PER_CELL:
        warnings.warn(
            f"only {counts.mean():.1f} rows per occupied cell: consistency resampling rejects "
            "calibrated models too often below 20 (up to always at 1). Use null=RedrawLabels(), "
            "which is valid at every sample size, or fewer bins",
            SparseBinsWarning,
            stacklevel=4,
        )
