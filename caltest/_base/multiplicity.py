"""Several tests at once: p-values adjusted so that any false alarm stays rare."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import FloatArray, below


def holm(pvalues: list[float]) -> list[float]:
    """Return Holm's adjusted p-values (1979), valid under any dependence."""
    order = np.argsort(pvalues, kind="stable")
    remaining = len(pvalues) - np.arange(len(pvalues))
    stepped = np.minimum(1.0, np.maximum.accumulate(np.asarray(pvalues)[order] * remaining))
    return stepped[np.argsort(order)].tolist()


def max_t(observed: FloatArray, replicates: FloatArray) -> list[float]:
    """Return the step-down max-T adjusted p-values of Westfall & Young (1993).

    ``observed`` (S,) are the statistics, large against their hypotheses, ``replicates`` (B, S) the
    same ones on the same redrawn labels, all standardised over draws and observed value together.
    From the largest down, a p-value is the share (1 + b) / (1 + B) of draws whose maximum over this
    and all smaller statistics reaches it, made monotone. The smallest is exact under any
    dependence, as observed and drawn rows are exchangeable; single ones control the family when the
    joint law of the true hypotheses does not depend on the false ones.
    """
    rows = np.vstack([observed, replicates])
    tolerance = observed - [below(t, column) for t, column in zip(observed, rows.T, strict=True)]
    rows = np.where(np.abs(rows - observed) <= tolerance, observed, rows)  # rounding is no order
    spread = rows.std(axis=0)
    standard = (rows - rows.mean(axis=0)) / np.where(spread > tolerance, spread, np.inf)
    order = np.argsort(-standard[0], kind="stable")
    # Successive maxima: column j holds the largest of the j-th and all smaller statistics.
    largest = np.maximum.accumulate(standard[:, order[::-1]], axis=1)[:, ::-1]
    stepped = np.maximum.accumulate((largest >= standard[0, order] - 1e-12).mean(axis=0))
    return stepped[np.argsort(order)].tolist()
