"""What the benchmarks share: time, and predictions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def seconds(job: Callable[[], Any], repeats: int = 5) -> float:
    """Return the median CPU time of a call, after one that warms up."""
    job()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return statistics.median(times)


def confident(n: int, n_classes: int) -> np.ndarray:
    """Return predictions whose likeliest class has a probability of about 0.7 on average."""
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=1.5, size=(n, n_classes))
    logits[np.arange(n), rng.integers(n_classes, size=n)] += 4.0
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    return probs / probs.sum(axis=1, keepdims=True)
