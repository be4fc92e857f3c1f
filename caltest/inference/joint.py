"""Several statistics and lenses on the same redrawn labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from caltest._version import __version__
from caltest.errors import StatisticError
from caltest.inference.parts import evaluated, result_of, two_sided
from caltest.lenses import Canonical, Lens, Relabelling, apply
from caltest.multiplicity import max_t
from caltest.nulls import SimulatedNull
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.resampling import RedrawLabels, Workers, simulate
from caltest.results import JointTestResult
from caltest.statistics import Statistic
from caltest.written import name_of


def joint_test(
    data: Predictions,
    pairs: Sequence[tuple[Statistic, Lens]],
    n_resamples: int,
    rng: Any,
    workers: Workers,
) -> JointTestResult:
    """Test all pairs on the same redrawn labels: of the one lens, or of the whole vectors.

    O(B n) per pair; a user's lens is first applied K times, to learn what it makes of each class.
    """
    if not pairs:
        raise StatisticError("the list of (statistic, lens) pairs is empty")
    induced = [apply(lens, data) for _, lens in pairs]
    observed = [evaluated(s, seen) for (s, _), seen in zip(pairs, induced, strict=True)]
    estimates = [estimate for _, estimate in observed]
    source, lenses = data, [lens for _, lens in pairs]
    if all(lens == lenses[0] for lens in lenses):  # seen through one lens: draw what it shows
        source, lenses = induced[0], [Canonical() for _ in lenses]
    parts = [
        (fixed, _relabelling(lens, source, seen))
        for lens, (fixed, _), seen in zip(lenses, observed, induced, strict=True)
    ]
    values, ended = simulate(
        partial(_jointly, parts), RedrawLabels().sampler(source), n_resamples, rng, workers
    )
    tests = tuple(
        result_of(
            data, seen, statistic, lens, repr(RedrawLabels()), t, SimulatedNull(column, ended), rng
        )
        for (statistic, lens), seen, t, column in zip(
            pairs, induced, estimates, values.T.copy(), strict=True
        )
    )
    both = np.array([two_sided(statistic) for statistic, _ in pairs])
    evidence = [np.where(both, np.abs(v), v) for v in (np.array(estimates), values)]
    adjusted = tuple(max_t(evidence[0], evidence[1]))
    return JointTestResult(tests, adjusted, min(adjusted), len(values), ended, __version__)


def _relabelling(lens: Lens, data: Predictions, seen: Predictions) -> Relabelling:
    """Return the function from labels to induced labels; of a user's lens, by asking for each."""
    own: Any = getattr(lens, "relabelling", None)
    if own is not None:
        known: Relabelling = own(data)
        return known
    backwards = apply(lens, Predictions(data.probs[::-1], data.labels[::-1]))
    if seen.n != data.n or not np.array_equal(backwards.probs[::-1], seen.probs):
        raise StatisticError(
            f"the lens {name_of(lens)} picks or moves rows; tests on the same draws need a lens "
            "that treats every row by itself"
        )
    every = [np.full(data.n, k, dtype=np.int64) for k in range(data.n_classes)]
    table = np.column_stack([apply(lens, Predictions(data.probs, k)).labels for k in every])
    return partial(_looked_up, table)


def _looked_up(table: IntArray, labels: IntArray) -> IntArray:
    return table[np.arange(labels.size), labels]


def _jointly(parts: list[tuple[Any, Relabelling]], draw: tuple[FloatArray, IntArray]) -> FloatArray:
    return np.array([fixed(relabelled(draw[1])) for fixed, relabelled in parts])
