"""What the fused kernels gain over the batches that any statistic can be evaluated in.

CPU seconds of one thread for B = 1000 replicates, set-up included, medians within one run. A kernel
that gains less than three times is to go. Run: ``python -m benchmarks.fused``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import caltest as ct
from benchmarks.measure import confident, seconds
from caltest.nulls import Batches, LabelScheme, RowScheme, simulate, simulate_by
from caltest.statistics.prepared import problem_of

B = 1000


def by_batches(
    statistic: ct.ECE, scheme: LabelScheme | RowScheme, data: ct.Predictions, count: int
) -> None:
    """Run without the fused kernel: batches of labels, or samples one by one."""
    prepared = statistic.prepare(problem_of(data))
    if isinstance(scheme, LabelScheme):
        simulate_by(Batches.of(scheme, data, prepared.batch), count, 1, 1)
    else:
        evaluate = lambda sample: statistic.prepare(problem_of(sample)).observed  # noqa: E731
        simulate(evaluate, scheme.sampler(data), count, 1, 1)


def main() -> None:
    """Time every pair of a statistic and a scheme that has a fused kernel."""
    labels, published, rows = ct.RedrawLabels(), ct.ConsistencyResampling(), ct.Bootstrap()
    grid, tree, equal = ct.ECE(10), ct.ECE(ct.VarianceTree(100)), ct.ECE(ct.QuantileBins(15))
    cases: list[tuple[Any, LabelScheme | RowScheme, int]] = [
        *((ct.ECE(15), labels, k) for k in (2,)),
        *((grid, labels, k) for k in (3, 10)),
        *((tree, labels, k) for k in (3, 10, 100)),
        (ct.SKCE(ct.TVKernel(0.3)), labels, 2),
        *((ct.ECE(15), scheme, 2) for scheme in (published, rows)),
        (equal, published, 2),
        *((grid, published, k) for k in (3, 10)),
        *((tree, published, k) for k in (3, 10)),
    ]
    print(f"{'B = 1000, n = 10⁴':60}{'batch ms':>10}{'fused ms':>10}{'gain':>7}")
    for statistic, scheme, k in cases:
        probs = confident(10**4, k)
        data = ct.Predictions(probs, np.zeros(len(probs), dtype=np.int64), induced=True)
        fused = seconds(partial(ct.replicate, data, statistic, scheme, n_resamples=B, rng=1), 3)
        few = B if isinstance(scheme, LabelScheme) else 50
        batch = B / few * seconds(partial(by_batches, statistic, scheme, data, few), 3)
        name = f"{statistic!r}, {scheme!r}, K={k}"
        print(f"{name:60}{1e3 * batch:10.1f}{1e3 * fused:10.1f}{batch / fused:7.1f}", flush=True)


if __name__ == "__main__":
    main()
