"""The interval of a probability from a count."""

from __future__ import annotations

from typing import Any

import numpy as np


def clopper_pearson(successes: Any, trials: Any, level: float = 0.99) -> tuple[Any, Any]:
    """Return the Clopper–Pearson interval of a probability, for numbers or arrays of counts."""
    from scipy.special import betaincinv

    s, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    tail = (1.0 - level) / 2.0
    low = np.where(s > 0, betaincinv(np.maximum(s, 1.0), n - s + 1.0, tail), 0.0)
    high = np.where(s < n, betaincinv(s + 1.0, np.maximum(n - s, 1.0), 1.0 - tail), 1.0)
    return (float(low), float(high)) if low.ndim == 0 else (low, high)
