"""Statistics of a vector tally: what each is made of, from sums over leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

from caltest._base.written import name_of
from caltest.distances import rowwise
from caltest.errors import StatisticError
from caltest.predictions import FloatArray
from caltest.statistics.binned import ECE, MCE
from caltest.statistics.debiased import DebiasedL2
from caltest.statistics.kernel import SKCE
from caltest.statistics.kernel.kernels import DistanceKernel, fitted
from caltest.statistics.prepared import normal
from caltest.statistics.scores import NOTHING, BrierScore, LogScore, ScoreGap
from caltest.tally.counts import Tallied
from caltest.tally.leaves import Leaves
from caltest.tally.rows import UNIT
from caltest.tally.statistics import Limit


@dataclass(frozen=True, eq=False)
class OfLeaves(Tallied):
    """A statistic of a vector tally, as a function of the numbers of labels in its leaves."""

    _within: ClassVar[float] = 0.0


def of_leaves(statistic: Any, leaves: Leaves) -> OfLeaves:
    """Make a statistic of a vector tally; StatisticError where its sums do not say what it is."""
    if type(statistic) not in BUILDERS:
        known = ", ".join(kind.__name__ for kind in BUILDERS)
        raise StatisticError(
            f"{name_of(statistic)} needs the rows: pass their predictions. From a tally of whole "
            f"vectors, which keeps sums over leaves, come {known}"
        )
    return BUILDERS[type(statistic)](statistic, leaves)


def _binned(statistic: ECE | MCE, leaves: Leaves) -> OfLeaves:
    cells, distance = leaves.coarse(statistic.bins), statistic.distance
    if not isinstance(distance, str):
        raise StatisticError(f"{statistic!r} needs the rows: from a tally come named distances")
    expected, mass = cells.sum(leaves.expected), cells.counts
    largest = statistic.combine == "max"

    def value(labels: Any) -> FloatArray:
        sums = np.add.reduceat(labels, cells.starts[:-1], axis=1) - expected
        gaps = rowwise(distance)(sums / mass[:, None], np.zeros(1))
        return np.asarray(gaps.max(axis=1) if largest else gaps @ (mass / mass.sum()))

    return OfLeaves(cast(Any, leaves), value, float(value(leaves.labels[None])[0]), cells=cells)


def _squared_norms(leaves: Leaves) -> tuple[FloatArray, Callable[[Any], FloatArray]]:
    """Return Σ |r|² of every leaf, and about that for drawn numbers of labels.

    For class k those of a calibrated model had Σ p² / Σ p on average.
    """
    chosen, total = leaves.tally.chosen / UNIT, leaves.count + leaves.squares.sum(axis=1)
    had = leaves.squares / np.maximum(leaves.expected, 1e-300)
    return total - 2.0 * chosen, lambda labels: total - 2.0 * (labels * had).sum(axis=2)


def _debiased(statistic: DebiasedL2, leaves: Leaves) -> OfLeaves:
    if statistic.estimator == "kumar":
        raise StatisticError(f"{statistic!r} is for two classes")
    cells = leaves.coarse(statistic.bins)
    size, own = cells.counts, statistic.estimator == "tcal"
    weights = np.where(size > 1, 1.0 / (leaves.n * np.maximum(size - (not own), 1)), 0.0)
    squares, drawn = _squared_norms(leaves)

    expected = cells.sum(leaves.expected)

    def excess(labels: Any, norms: FloatArray) -> FloatArray:
        sums = np.add.reduceat(labels, cells.starts[:-1], axis=1) - expected
        return (np.square(sums).sum(axis=2) - cells.sum(norms, axis=1)) @ weights

    observed = float(excess(leaves.labels[None], squares[None])[0])
    return OfLeaves(
        cast(Any, leaves),
        lambda labels: excess(labels, drawn(labels)),
        observed,
        cells=cells,
        null_mean=0.0,
    )


def _skce(statistic: SKCE, leaves: Leaves) -> OfLeaves:
    if statistic.estimator not in ("unbiased", "biased"):
        raise StatisticError(f"{statistic!r} needs the rows, in their order: pass predictions")
    chosen, n = fitted(statistic.kernel, leaves.probs), leaves.n
    biased = statistic.estimator == "biased"
    if statistic.features is not None and isinstance(chosen, DistanceKernel):
        rng = np.random.default_rng(0)
        waves = leaves.probs @ chosen.frequencies(statistic.features // 2, leaves.n_classes, rng)
        root = np.column_stack([np.cos(waves), np.sin(waves)]) * (2.0 / statistic.features) ** 0.5
        diagonal = np.ones(len(root))
    else:
        values = np.asarray(chosen(leaves.probs, leaves.probs), dtype=np.float64)
        lengths, vectors = np.linalg.eigh(values)
        kept = lengths > 1e-12 * lengths[-1]
        root, diagonal = vectors[:, kept] * np.sqrt(lengths[kept]), np.diag(values)
    squares, drawn = _squared_norms(leaves)
    promised = leaves.expected.T @ root

    def pairs(labels: Any, norms: FloatArray) -> FloatArray:
        total = np.square(np.tensordot(labels, root, axes=(1, 0)) - promised).sum(axis=(1, 2))
        return total / n**2 if biased else (total - norms @ diagonal) / (n * (n - 1.0))

    observed = float(pairs(leaves.labels[None], squares[None])[0])
    return OfLeaves(
        cast(Any, leaves), lambda labels: pairs(labels, drawn(labels)), observed,
        null_mean=None if biased else 0.0, remark="the kernel is that of leaves' mean predictions",
    )  # fmt: skip


def _linear(
    leaves: Leaves, name: str, centre: float, scale: float, two_sided: bool, enough: float
) -> OfLeaves:
    """Return a score gap in units of ``scale``; draws have its variance, and the shape of leaves'.

    Of a leaf they know the score of its mean prediction only.
    """
    p = leaves.probs
    slopes = -2.0 * p if name == "brier" else -np.log(np.clip(p, 1e-300, None))
    variance = leaves.variance(slopes)
    gap, deviation = _gap(leaves, name)
    of_draws = deviation / (scale * max(np.sqrt(max(variance, 0.0)), 1e-300))
    mean = float((leaves.expected * slopes).sum())

    def value(labels: Any) -> FloatArray:
        gaps = labels.reshape(len(labels), -1) @ slopes.ravel() - mean
        return np.asarray(centre + gaps * of_draws)

    limit = Limit(
        cast(Any, leaves), {"asymptotic": partial(normal, centre, deviation / scale)}, enough=enough
    )
    facts: Any = {"two_sided": two_sided, "null_mean": centre, "enough": enough}
    return OfLeaves(cast(Any, leaves), value, centre + gap / scale, limit, **facts)


def _gap(leaves: Leaves, name: str) -> tuple[float, float]:
    """Return Σ (score − promise) and its standard deviation."""
    if name == "brier":
        variance = 4.0 * leaves.total("brier_variance")
        return 2.0 * leaves.total("brier_gap"), float(np.sqrt(max(variance, 0.0)))
    gap = leaves.total("log_score") - leaves.total("entropy")
    lost = np.inf if leaves.tally.refuted else gap
    return lost, float(np.sqrt(max(leaves.total("log_variance"), 0.0)))


def _score_gap(statistic: ScoreGap, leaves: Leaves) -> OfLeaves:
    if statistic.score not in ("brier", "log"):
        raise StatisticError(f"{statistic!r} needs the rows: from a tally come 'brier' and 'log'")
    _, deviation = _gap(leaves, statistic.score)
    if deviation <= NOTHING * np.sqrt(leaves.n):
        raise StatisticError(
            f"{statistic!r} is not defined: every prediction is uniform over the classes it allows,"
            f" so no label that can occur changes the {statistic.score} score"
        )
    return _linear(leaves, statistic.score, 0.0, deviation, True, 4.0)


def _mean_score(statistic: BrierScore | LogScore, leaves: Leaves) -> OfLeaves:
    promised = leaves.n - leaves.total("squares")
    if statistic.name == "log":
        promised = leaves.total("entropy")
    return _linear(leaves, statistic.name, promised / leaves.n, float(leaves.n), False, 8.0)


BUILDERS: dict[type, Callable[[Any, Leaves], OfLeaves]] = {
    ECE: _binned, MCE: _binned, DebiasedL2: _debiased, ScoreGap: _score_gap,
    BrierScore: _mean_score, LogScore: _mean_score, SKCE: _skce,
}  # fmt: skip
