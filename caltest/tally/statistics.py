"""Statistics of a tally: what each is made of, from sums over micro-cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from caltest._base.written import name_of
from caltest.binning import UniformBins
from caltest.errors import StatisticError
from caltest.lenses import OneVsRest, TopK
from caltest.predictions import FloatArray, IntArray
from caltest.statistics.binned import ECE, MCE, RMSCE, BinnedError
from caltest.statistics.cox import CoxScore, Scores
from caltest.statistics.cumulative import KolmogorovSmirnov, Kuiper, Walk
from caltest.statistics.debiased import (
    ABSOLUTE,
    SQUARED,
    DebiasedL1,
    DebiasedL2,
    KumarL1,
    KumarL2,
    of_pairs,
)
from caltest.statistics.multiscale import MultiScale, without_rounding
from caltest.statistics.prepared import Law, Prepared, normal
from caltest.statistics.regression import (
    NO_VARIANCE,
    CalibrationInTheLarge,
    HosmerLemeshow,
    OERatio,
    all_in_all,
    refuse_certain,
)
from caltest.statistics.scores import NOTHING, BrierScore, LogScore, ScoreGap
from caltest.tally.cells import MicroCells, TalliedCells, made_of_cells
from caltest.tally.counts import Tallied, Value
from caltest.tally.grid import GRID


def tallied(statistic: Any, micro: Any) -> Tallied:
    """Make a statistic of a tally, of its ``problem()``.

    Raises
    ------
    StatisticError
        When the sums of a tally do not say what it is.
    """
    refuse_unknown(statistic)
    return BUILDERS[type(statistic)](statistic, micro)


def refuse_early(statistic: Any, lens: Any) -> None:
    """Refuse, before hours of reading, what no tally of the lens can say."""
    if lens is None or lens == TopK(1) or isinstance(lens, OneVsRest):
        refuse_unknown(statistic)


def refuse_unknown(statistic: Any) -> None:
    """Refuse what a tally cannot say, and name what it can."""
    if type(statistic) not in BUILDERS:
        known = ", ".join(kind.__name__ for kind in BUILDERS)
        raise StatisticError(
            f"{name_of(statistic)} needs the rows: pass their predictions. From a tally, which "
            f"keeps sums over micro-cells, come {known}"
        )


def same_as_rows(statistic: Any) -> bool:
    """Whether a tally on the usual grid has the value of the rows, to rounding."""
    if type(statistic) not in BUILDERS or isinstance(statistic, (KolmogorovSmirnov, Kuiper)):
        return False
    if isinstance(statistic, MultiScale):
        return statistic.scales is not None and all(GRID % m == 0 for m in statistic.scales)
    if isinstance(statistic, ECE) and not isinstance(statistic.distance, str):
        return False
    in_bins = (ECE, MCE, RMSCE, DebiasedL1, DebiasedL2, HosmerLemeshow)
    return not isinstance(statistic, in_bins) or made_of_cells(statistic.bins)


def by_residuals(micro: MicroCells, inner: Prepared) -> Tallied:
    """Use that a statistic sees outcomes through the sums of their residuals."""
    each = np.tile([1.0, -1.0], (micro.count.size, 1))

    def value(events: FloatArray) -> FloatArray:
        gaps = events - micro.count * micro.probs[:, 0]
        return inner.of_residuals(each, micro.weight * gaps)

    if inner.by_events and inner.cells is not None:
        seen = inner.of_events(inner.cells.sum((micro.weight * micro.labels)[None, :], axis=1))
    else:
        seen = inner.of_residuals(each, (micro.weight * micro.residuals)[None, :])
    observed = float(seen[0])
    facts: Any = {
        "cells": inner.cells, "estimand": inner.estimand, "two_sided": inner.two_sided,
        "centre": inner.centre, "null_mean": inner.null_mean, "enough": inner.enough,
    }  # fmt: skip
    data: Any = micro
    return Tallied(data, value, observed, inner, **facts)


def _binned(statistic: ECE | MCE | RMSCE, micro: MicroCells) -> Tallied:
    bins = TalliedCells.made_of(statistic.bins, micro)
    data: Any = micro
    if isinstance(statistic, RMSCE):
        return by_residuals(micro, BinnedError.of(data, bins, "sqeuclidean", root=True))
    if not isinstance(statistic.distance, str):
        raise StatisticError(f"{statistic!r} needs the rows: from a tally come named distances")
    return by_residuals(micro, BinnedError.of(data, bins, statistic.distance, statistic.combine))


def _debiased(statistic: DebiasedL1 | DebiasedL2, micro: MicroCells) -> Tallied:
    data: Any = micro
    bins = TalliedCells.made_of(statistic.bins, micro)
    if isinstance(statistic, DebiasedL1) or statistic.estimator == "kumar":
        predicted = bins.mean(micro.probs[:, 0])
        if isinstance(statistic, DebiasedL1):
            units = bins.mass**2 / bins.sum(micro.weight**2 * micro.count)
            inner: Any = KumarL1(data, predicted, units, cells=bins, estimand=ABSOLUTE)
        elif micro.tally.weights is not None:
            raise StatisticError(f"{statistic!r} does not take weights: use estimator='pairs'")
        else:
            inner = KumarL2(data, predicted, cells=bins, estimand=SQUARED)

        def kumar(events: Any) -> FloatArray:
            return inner.of_events(bins.sum(micro.weight * events, axis=1))

        observed = float(kumar(micro.labels[None, :])[0])
        return Tallied(data, kumar, observed, inner, cells=bins, estimand=inner.estimand)
    assert isinstance(statistic, DebiasedL2)
    weights = _pair_weights(bins, micro, with_own=statistic.estimator == "tcal")
    value, values = _excess([bins], [weights], micro)
    return Tallied(
        data, lambda events: value(events)[:, 0], float(values[0]), cells=bins, estimand=SQUARED,
        null_mean=0.0,
    )  # fmt: skip


def _pair_weights(bins: TalliedCells, micro: MicroCells, with_own: bool = False) -> FloatArray:
    """Return what Σ r_i r_j over pairs of rows of each cell counts, as ``pair_weights``."""
    own = 0.0 if with_own else bins.sum(micro.weight**2 * micro.count)
    return of_pairs(bins, own)


def _excess(
    bins: list[TalliedCells], weights: list[FloatArray], micro: MicroCells
) -> tuple[Value, FloatArray]:
    """Return Σ_b w_b (S_b² − Q_b) for several partitions, as a function, and of the rows."""
    w, n, p = micro.weight, micro.count, micro.probs[:, 0]

    def combined(sums: FloatArray, squares: FloatArray) -> FloatArray:
        return np.column_stack([
            (c.sum(w * sums, axis=1) ** 2 - c.sum(w**2 * squares, axis=1)) @ own
            for c, own in zip(bins, weights, strict=True)
        ])  # fmt: skip

    def value(events: FloatArray) -> FloatArray:
        return combined(events - n * p, events * (1.0 - 2.0 * p) + micro.squares)

    squares = micro.labels - 2.0 * micro.event_sums + micro.squares
    return value, combined(micro.residuals[None, :], squares[None, :])[0]


def _multiscale(statistic: MultiScale, micro: MicroCells) -> Tallied:
    scales = statistic.scales
    if scales is None:
        most = max(2, micro.n.bit_length())
        scales = tuple(2**b for b in range(1, most) if micro.tally.grid % 2**b == 0)
    bins, weights, deviations = [], [], []
    for m in scales:
        cells = TalliedCells.made_of(UniformBins(m), micro)
        weight = _pair_weights(cells, micro)
        squared = micro.weight**2
        total = cells.sum(squared * micro.variance) ** 2
        cross = without_rounding(total, cells.sum(squared**2 * micro.squared_variance))
        variance = 2.0 * float(weight**2 @ cross)
        if variance > 0.0:
            bins.append(cells)
            weights.append(weight)
            deviations.append(np.sqrt(variance))
    if not bins:
        raise StatisticError(f"{statistic!r} is undefined: no scale has a cell that can vary")
    value, observed = _excess(bins, weights, micro)
    data: Any = micro
    remark = f"MultiScale has the scales {scales[0]} to {scales[-1]}"
    return Tallied(
        data, lambda events: (value(events) / deviations).max(axis=1),
        float((observed / deviations).max()), remark=remark,
    )  # fmt: skip


def _all_in_all(statistic: CalibrationInTheLarge | OERatio, micro: MicroCells) -> Tallied:
    whole = np.arange(micro.count.size), np.array([0, micro.count.size])
    bins = TalliedCells(*whole, weights=micro.weights, micro=micro)
    expected = float(micro.weights @ micro.probs[:, 0])
    variance = float(micro.weight**2 @ micro.variance)
    return by_residuals(micro, all_in_all(statistic, micro, bins, expected, variance))


def _hosmer_lemeshow(statistic: HosmerLemeshow, micro: MicroCells) -> Tallied:
    bins = TalliedCells.made_of(statistic.bins, micro)
    expected, rest = (bins.sum(micro.weights * column) for column in micro.probs.T)
    true, own = (bins.sum(micro.weight**2 * part) for part in (micro.variance, micro.count))
    return by_residuals(micro, statistic.of_sums(micro, bins, expected, rest, true, own))


def _cox(statistic: CoxScore, micro: MicroCells) -> Tallied:
    total = float(micro.weight**2 @ micro.variance)
    refuse_certain(statistic, total > NO_VARIANCE * micro.n)
    vz = micro.total("cut_vz_low", 2) + micro.total("cut_vz_high", 2)
    vzz = micro.total("cut_vzz", 2)
    mean = vz / total
    spread = vzz - vz * mean
    df = 2 if spread > 1e-12 * vzz + NO_VARIANCE else 1
    cut = np.clip(micro.probs, 1e-12, 1.0 - 1e-12)
    centred = np.log(cut[:, 0]) - np.log(cut[:, 1]) - mean
    data: Any = micro
    inner = Scores(data, centred, np.array([total, np.inf]), df, degree=2, null_mean=float(df))
    level = float(micro.weight @ micro.residuals)
    slope = micro.total("cut_rz") - mean * level
    if df == 2:  # draws are of the cells, and so is their variance
        v = micro.weight**2 * micro.variance
        inner = replace(inner, information=np.array([total, float(v @ centred**2)]))
    observed = level**2 / total + (slope**2 / spread if df == 2 else 0.0)
    return replace(by_residuals(micro, inner), observed=observed)


def _linear(
    micro: MicroCells, slopes: FloatArray, observed: float, deviation: float, centre: float,
    two_sided: bool, enough: float,
) -> Tallied:  # fmt: skip
    """Return centre + Σ slopes · residuals, normal in the limit."""
    law = {"asymptotic": partial(normal, centre, deviation)}

    def value(events: FloatArray) -> FloatArray:
        gaps = micro.weight * (events - micro.count * micro.probs[:, 0])
        return np.asarray(centre + gaps @ slopes)

    data: Any = micro
    limit = Limit(data, law, enough=enough)
    facts: Any = {"two_sided": two_sided, "null_mean": centre, "enough": enough}
    return Tallied(data, value, observed, limit, **facts)


@dataclass(frozen=True, eq=False)
class Limit(Prepared):
    """What has nothing but limit laws."""

    by_name: Mapping[str, Law] = field(repr=False)

    def batch(self, labels: IntArray) -> FloatArray:
        """Refuse."""
        raise NotImplementedError

    def laws(self) -> Mapping[str, Law]:
        """Return the limit laws, by name."""
        return self.by_name


def _of_score(name: str, micro: MicroCells) -> tuple[FloatArray, float, float]:
    """Return the slopes in the residuals, Σ w (score − promise), and its variance."""
    if name == "brier":
        gap = micro.labels - 2.0 * micro.event_sums  # Σ r (1 − 2p) = Σ y − 2 Σ y p − Σ p + 2 Σ p²
        gap = gap - micro.count * micro.probs[:, 0] + 2.0 * micro.squares
        variance = float(micro.weight**2 @ micro.brier_variance)
        return micro.probs[:, 1] - micro.probs[:, 0], float(micro.weight @ gap), variance
    cut = np.clip(micro.probs, 1e-300, None)
    lost = np.inf if micro.impossible.size else -micro.total("rz")
    return np.log(cut[:, 1]) - np.log(cut[:, 0]), lost, micro.total("vzz", 2)


def _score_gap(statistic: ScoreGap, micro: MicroCells) -> Tallied:
    if statistic.score not in ("brier", "log"):
        raise StatisticError(f"{statistic!r} needs the rows: from a tally come 'brier' and 'log'")
    slopes, gap, variance = _of_score(statistic.score, micro)
    deviation = float(np.sqrt(max(variance, 0.0)))
    if deviation <= NOTHING * np.sqrt(micro.n):
        raise StatisticError(
            f"{statistic!r} is not defined: every prediction is 0, ½ or 1, so no label that can "
            f"occur changes the {statistic.score} score. Use CalibrationInTheLarge() or an ECE"
        )
    return _linear(micro, slopes / deviation, gap / deviation, 1.0, 0.0, True, 4.0)


def _mean_score(statistic: BrierScore | LogScore, micro: MicroCells) -> Tallied:
    slopes, gap, variance = _of_score(statistic.name, micro)
    mass = float(micro.weights.sum())
    promised = float(micro.weight @ micro.variance)
    if statistic.name == "log":
        promised = micro.total("entropy")
    facts = float(np.sqrt(variance)) / mass, promised / mass, False, 8.0
    return _linear(micro, slopes / mass, (promised + gap) / mass, *facts)


def _walk(statistic: KolmogorovSmirnov | Kuiper, micro: MicroCells) -> Tallied:
    mass = float(micro.weights.sum())
    sigma = float(np.sqrt(micro.weight**2 @ micro.variance)) / mass
    if statistic.scaled and sigma == 0.0:
        raise StatisticError(
            f"{statistic!r} divides by the standard deviation under calibration, which is 0 "
            "because every prediction is 0 or 1; leave scaled=False"
        )
    unit = 1.0 / (sigma * mass if statistic.scaled else mass)
    ends = np.append(np.flatnonzero(np.diff(micro.key)) + 1, micro.key.size)
    order, along = np.arange(micro.key.size), np.empty(0)
    data: Any = micro
    walk = Walk(data, order, ends, along, sigma, unit, mass, statistic.extent, degree=1)
    remark = f"{type(statistic).__name__} sees nothing within a micro-cell"
    return replace(by_residuals(micro, walk), remark=remark)


BUILDERS: dict[type, Callable[[Any, MicroCells], Tallied]] = {
    ECE: _binned, MCE: _binned, RMSCE: _binned, DebiasedL1: _debiased, DebiasedL2: _debiased,
    CalibrationInTheLarge: _all_in_all, OERatio: _all_in_all, HosmerLemeshow: _hosmer_lemeshow,
    CoxScore: _cox, ScoreGap: _score_gap, BrierScore: _mean_score, LogScore: _mean_score,
    KolmogorovSmirnov: _walk, Kuiper: _walk, MultiScale: _multiscale,
}  # fmt: skip
