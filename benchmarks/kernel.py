"""How long a kernel test takes: matrices in a NumPy loop, and this package.

CPU seconds of one thread for B = 1000 replicates of the SKCE with redrawn labels, set-up (without
the choice of the bandwidth) included, medians within one run. The loop keeps the whole matrix of
kernel values, is timed on a few replicates and scaled. Run:
``OPENBLAS_NUM_THREADS=1 python -m benchmarks.kernel [--quick]``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import confident, seconds
from caltest.data import Predictions
from caltest.inference import replicate
from caltest.nulls import RedrawLabels
from caltest.statistics import SKCE, GaussianKernel, LaplaceKernel, TVKernel

B = 1000
WIDTH = 0.3


def flat(n: int, n_classes: int) -> np.ndarray:
    """Return predictions spread evenly over the simplex."""
    return np.random.default_rng(0).dirichlet(np.ones(n_classes), n)


def ours(statistic: SKCE, probs: np.ndarray) -> None:
    """Prepare and run the redraws."""
    data = Predictions(probs, np.zeros(len(probs), dtype=np.int64), induced=True)
    replicate(data, statistic, RedrawLabels(), n_resamples=B, rng=1)


def numpy_loop(kernel: Callable[..., np.ndarray], probs: np.ndarray, replicates: int) -> float:
    """Return the time of B replicates as one would write them, with the whole matrix."""
    n, n_classes = probs.shape
    rng = np.random.default_rng(0)
    cumulative = probs.cumsum(axis=1)[:, :-1]
    start = time.process_time()
    values = kernel(probs, probs)
    np.fill_diagonal(values, 0.0)
    set_up = time.process_time() - start
    columns = 1 if n_classes == 2 else n_classes

    def replicate() -> None:
        labels = (rng.random((n, 1)) >= cumulative).sum(axis=1)
        residuals = np.eye(n_classes)[labels] - probs
        kept = residuals[:, :columns]
        (2.0 if columns == 1 else 1.0) * np.sum(kept * (values @ kept)) / (n * (n - 1))

    return set_up + B * seconds(replicate, replicates)


def report(name: str, statistic: SKCE, probs: np.ndarray, repeats: int, loop: bool = True) -> None:
    ours(statistic, probs[:300])  # compile
    mine = seconds(lambda: ours(statistic, probs), repeats)
    shown = f"{name:44s} {len(probs):7d} {probs.shape[1]:4d} {mine:9.3f}"
    if loop:
        theirs = numpy_loop(statistic.kernel, probs, 3)
        shown += f" {theirs:9.2f} {theirs / mine:8.0f}"
    print(shown, flush=True)


def main() -> None:
    quick = "--quick" in sys.argv
    n, repeats = (2000, 1) if quick else (10_000, 3)
    print(f"{'B = 1000':44s} {'n':>7s} {'K':>4s} {'ours s':>9s} {'numpy s':>9s} {'ratio':>8s}")
    report("two classes, TV, along the line", SKCE(TVKernel(WIDTH)), flat(n, 2), repeats)
    report("two classes, Gaussian, tiles", SKCE(GaussianKernel(WIDTH)), flat(n, 2), repeats)
    for name, make in [("flat", flat), ("confident", confident)]:
        for n_classes in (3, 10, 100):
            statistic = SKCE(LaplaceKernel(WIDTH))
            report(f"{name}, tiles", statistic, make(n, n_classes), repeats)
    for label, statistic in [
        ("two classes, TV, along the line", SKCE(TVKernel(WIDTH))),
        ("flat, linear", SKCE(LaplaceKernel(WIDTH), estimator="linear")),
        ("flat, blocks of √n", SKCE(LaplaceKernel(WIDTH), estimator="block")),
    ]:
        n_classes = 2 if label.startswith("two") else 10
        report(label, statistic, flat(10 * n, n_classes), 1, loop=False)


if __name__ == "__main__":
    main()
