"""The methods behind an interval: test inversion, exact cells, the bootstrap, limits, Sun et al."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.exact import cell_null
from caltest.inference.formulas import basic, bca, bias_corrected, influence_error, percentile, sun
from caltest.inference.inversion import ABSOLUTE, SQUARED, CellSums, Size, cell_sums, reached
from caltest.inference.laws import null_distribution
from caltest.inference.parts import clopper_pearson, evaluated
from caltest.lenses import Lens, TopK
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.resampling import Bootstrap, Workers, replicate
from caltest.statistics import ECE, MCE, RMSCE, DebiasedL1, DebiasedL2
from caltest.statistics.binned import grouped

#: Methods that resample rows, for any statistic.
BOOTSTRAP = ("percentile", "basic", "bca", "bias-corrected")
#: Numbers in an array of draws, beyond which fewer are drawn, but never fewer than these.
MAX_DRAWN, MIN_DRAWS = 2**17, 999
#: Draws beyond a bound that it should rest on.
MIN_BEYOND = 20
#: Cells up to which the p-value that decides about 0 is exact; beyond, draws are quicker.
EXACT_CELLS = 24
#: Rows per cell below which an interval is wide because little can be known.
FEW_ROWS = 5.0


@dataclass(frozen=True)
class Target:
    """What a binned statistic estimates: ``factor`` times a size, or the largest gap (None).

    ``largest`` is the end of its range; with ``root`` it is the root of a size.
    """

    size: Size | None
    factor: float
    largest: float
    root: bool = False

    def scaled(self, value: float) -> float:
        """Return a value of the size on the scale of the statistic."""
        return float(np.sqrt(max(value, 0.0))) if self.root else self.factor * value


def target_of(statistic: Any, n_classes: int) -> Target | None:
    """Return what an interval of the statistic covers, or None where no method is known to cover.

    Of two classes only the first component enters a size, which is half of what ``"l1"`` and
    ``"sqeuclidean"`` add up.
    """
    two = n_classes == 2
    if isinstance(statistic, DebiasedL1):
        return Target(ABSOLUTE, 1.0, 1.0)
    if isinstance(statistic, DebiasedL2):
        return Target(SQUARED, 1.0, 1.0 if two else 2.0)
    if isinstance(statistic, RMSCE) and two:
        return Target(SQUARED, 1.0, 1.0, root=True)
    if not isinstance(statistic, (ECE, MCE)) or not isinstance(statistic.distance, str):
        return None
    factors = {"tv": 0.5, "l1": 1.0, "sqeuclidean": 1.0}
    if two:
        factors = {"tv": 1.0, "l1": 2.0, "l2": 2.0**0.5, "max": 1.0, "sqeuclidean": 2.0}
    if statistic.distance not in factors or (isinstance(statistic, MCE) and not two):
        return None
    factor = factors[statistic.distance]
    size = SQUARED if statistic.distance == "sqeuclidean" else ABSOLUTE
    return Target(
        None if isinstance(statistic, MCE) else size, factor, factor if two else 2 * factor
    )


@dataclass(frozen=True)
class Asked:
    """The question, seen through the lens; ``groups`` are the clusters, by number."""

    statistic: Any
    lens: Lens
    induced: Predictions
    estimate: float
    target: Target | None
    groups: IntArray | None
    level: float
    side: str
    n_resamples: int
    rng: Any
    workers: Workers

    @property
    def alpha(self) -> float:
        """The error probability of one bound."""
        alpha = (1.0 - self.level) / (2.0 if self.side == "two-sided" else 1.0)
        return round(alpha, 12)  # 1 − 0.95 is not 0.05, and p-values of draws are such fractions

    def partition(self) -> tuple[IntArray, IntArray]:
        """Return the rows in the order of their cells, and where the cells start."""
        return grouped(self.statistic.bins, self.induced.probs)

    def residuals(self) -> FloatArray:
        """Return onehot − probs, shape (n, K)."""
        outcomes = self.induced.labels[:, None] == np.arange(self.induced.n_classes)
        return outcomes - self.induced.probs


@dataclass(frozen=True)
class Answer:
    """Bounds and biases, before bounds are cut to the range of the error."""

    method: str
    estimate: float
    low: float
    high: float
    corrected: float
    null_bias: float
    contains_zero: bool
    pvalue: float | None = None
    n_cells: int | None = None
    n_draws: int = 0
    notes: tuple[str, ...] = ()


def by_inversion(asked: Asked) -> Answer:
    """Invert tests of the size of the error; see :mod:`caltest.inference.inversion`."""
    target, size = _binned(asked)
    order, starts = asked.partition()
    rng = _generator(asked.rng)
    n_draws = _n_draws(asked, starts.size - 1)
    cells = cell_sums(asked.induced, order, starts, asked.groups, n_draws, rng)
    null = size.calibrated(cells)
    floor, pvalue = target.factor * float(null.mean()), reached(null, size.observed(cells))
    if asked.groups is None and asked.induced.n_classes == 2 and starts.size - 1 <= EXACT_CELLS:
        plain = ECE(asked.statistic.bins, "sqeuclidean" if size is SQUARED else "tv")
        fixed, value = evaluated(plain, asked.induced)
        law = cell_null(fixed, asked.induced.probs, value)
        floor = target.factor * law.mean() / (2.0 if size is SQUARED else 1.0)
        pvalue = max(law.sf(value), np.finfo(float).tiny)
    plausible, corrected = pvalue > asked.alpha, target.scaled(size.corrected(cells))
    if abs(corrected - asked.estimate) < 1e-12:  # the statistic over pairs corrects itself
        corrected = asked.estimate
    return Answer(
        method="inversion",
        estimate=asked.estimate,
        low=0.0 if plausible else target.scaled(size.low(cells, asked.alpha)),
        high=target.scaled(size.high(cells, asked.alpha)),
        corrected=corrected,
        null_bias=floor if isinstance(asked.statistic, ECE) else _noise_floor(asked),
        contains_zero=plausible or asked.side == "upper",
        pvalue=pvalue,
        n_cells=starts.size - 1,
        n_draws=cells.shares.size,
        notes=_about_cells(cells),
    )


def _n_draws(asked: Asked, n_cells: int) -> int:
    """Return how many draws to make: fewer for many cells, but enough for the level."""
    if asked.alpha * (asked.n_resamples + 1) < 1.0:
        raise StatisticError(
            f"level={asked.level:g} needs at least {int(np.ceil(1.0 / asked.alpha)) - 1} draws, "
            f"but n_resamples is {asked.n_resamples}"
        )
    numbers = n_cells * (1 if asked.induced.n_classes == 2 else asked.induced.n_classes)
    if asked.groups is not None:
        numbers = max(numbers, int(asked.groups.max()) // 8)
    least = max(MIN_DRAWS, int(MIN_BEYOND / asked.alpha))
    return min(asked.n_resamples, max(least, MAX_DRAWN // numbers))


def by_cells(asked: Asked) -> Answer:
    """Bound the largest gap by Clopper–Pearson intervals of the cells' frequencies.

    From above every cell may use the whole error probability, since only the cell with the largest
    true gap counts; from below the L cells share it (Bonferroni).
    """
    assert asked.target is not None
    order, starts = asked.partition()
    size = np.diff(starts)
    predicted = np.add.reduceat(asked.induced.probs[order, 0], starts[:-1]) / size
    seen = np.add.reduceat(asked.induced.labels[order] == 0, starts[:-1], dtype=np.int64)

    def outside(alpha: float) -> tuple[FloatArray, FloatArray]:
        ends = [
            clopper_pearson(int(a), int(b), 1.0 - 2.0 * alpha)
            for a, b in zip(seen, size, strict=True)
        ]
        low, high = np.array(ends).T
        return low - predicted, predicted - high

    nearest = np.maximum(*outside(asked.alpha / size.size)).max()
    above, below = outside(asked.alpha)
    furthest = np.maximum(-above, -below).max()
    values = _bootstrap(asked)
    return Answer(
        method="cells",
        estimate=asked.estimate,
        low=_gap(asked, max(float(nearest), 0.0)),
        high=_gap(asked, float(furthest)),
        corrected=2.0 * asked.estimate - float(values.mean()),
        null_bias=_noise_floor(asked),
        contains_zero=bool(nearest <= 0.0) or asked.side == "upper",
        n_cells=size.size,
        n_draws=values.size,
    )


def _gap(asked: Asked, gap: float) -> float:
    """Return the distance that belongs to a gap of the first of two probabilities."""
    assert asked.target is not None
    return asked.target.factor * (gap**2 if asked.statistic.distance == "sqeuclidean" else gap)


def by_bootstrap(asked: Asked, method: str) -> Answer:
    """Use the spread of the statistic over resampled rows, or clusters."""
    values = _bootstrap(asked)
    if method == "percentile":
        low, high = percentile(values, asked.alpha)
    elif method == "basic":
        low, high = basic(values, asked.estimate, asked.alpha)
    elif method == "bca":
        parts = (asked.statistic, asked.induced, asked.groups)
        low, high = bca(values, asked.estimate, asked.alpha, *parts)
    else:
        low, high = bias_corrected(values, asked.estimate, asked.alpha)
    notes: tuple[str, ...] = ()
    if asked.target is not None and method in ("percentile", "bca"):
        notes = (
            "resampling adds noise to an error that noise has raised already, so this interval "
            "lies too high, and near calibration above the true error; method='auto' does not",
        )
    n_cells = None if asked.target is None else asked.partition()[1].size - 1
    return Answer(
        method=method,
        estimate=asked.estimate,
        low=low,
        high=high,
        corrected=2.0 * asked.estimate - float(values.mean()),
        null_bias=_noise_floor(asked),
        contains_zero=(low <= 0.0 or asked.side == "upper")
        and (high >= 0.0 or asked.side == "lower"),
        n_cells=n_cells,
        n_draws=values.size,
        notes=notes,
    )


def by_normal(asked: Asked) -> Answer:
    """Use the normal limit of the debiased squared error."""
    from scipy.special import ndtri

    target, _ = _binned(asked)
    order, starts = asked.partition()
    rng = _generator(asked.rng)
    cells = cell_sums(asked.induced, order, starts, asked.groups, 1, rng)
    cell = np.empty(order.size, dtype=np.int64)
    cell[order] = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    residuals = asked.residuals()[:, : cells.sums.shape[1]]
    error = influence_error(residuals, cells.gaps[cell], asked.groups)
    centre, reach = SQUARED.corrected(cells), -float(ndtri(asked.alpha)) * error
    return Answer(
        method="normal",
        estimate=asked.estimate,
        low=target.scaled(centre - reach),
        high=target.scaled(centre + reach),
        corrected=target.scaled(centre),
        null_bias=_noise_floor(asked),
        contains_zero=centre <= reach or asked.side == "upper",
        n_cells=starts.size - 1,
    )


def by_sun(asked: Asked) -> Answer:
    """Use the interval of Sun et al. for the k largest predictions, or a class of its own."""
    target, _ = _binned(asked)
    k = asked.induced.n_classes - 1
    if (k > 1 and not isinstance(asked.lens, TopK)) or asked.groups is not None:
        raise StatisticError(
            "method='sun' is for the lens TopK(k) or a two-class lens, and for independent rows"
        )
    if asked.side != "two-sided":
        raise StatisticError("method='sun' has no one-sided version; use method='auto'")
    probs, residuals = asked.induced.probs[:, :k], asked.residuals()[:, :k]
    answer = sun(probs, residuals, *asked.partition(), asked.level)
    notes: tuple[str, ...] = ()
    if k > 1:
        notes = (
            f"the estimate and the interval are of Σ π_b |Δ_b|² over the {k} largest predictions, "
            "without 'none of them'",
        )
    return Answer(
        method="sun",
        estimate=target.scaled(answer.estimate) if k > 1 else asked.estimate,
        low=target.scaled(answer.low),
        high=target.scaled(answer.high),
        corrected=target.scaled(answer.estimate),
        null_bias=0.0 if k > 1 else _noise_floor(asked),
        contains_zero=answer.contains_zero,
        n_cells=asked.partition()[1].size - 1,
        notes=notes,
    )


def _binned(asked: Asked) -> tuple[Target, Size]:
    assert asked.target is not None
    assert asked.target.size is not None
    return asked.target, asked.target.size


def _generator(rng: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise StatisticError(f"rng must be a seed ≥ 0 or a Generator: {error}") from None


def _bootstrap(asked: Asked) -> FloatArray:
    names: Any = {} if asked.groups is None else {"groups": asked.groups}
    drawn = replicate(
        asked.statistic,
        Bootstrap(**names),
        asked.induced,
        asked.n_resamples,
        rng=asked.rng,
        workers=asked.workers,
    )
    return drawn.values


def _noise_floor(asked: Asked) -> float:
    """Return the mean of the statistic when the model is calibrated: exact where that is cheap."""
    if isinstance(asked.statistic, DebiasedL2) and asked.statistic.estimator == "pairs":
        return 0.0
    fixed, _ = evaluated(asked.statistic, asked.induced)
    law = null_distribution(
        asked.statistic,
        fixed,
        asked.induced,
        asked.estimate,
        "auto",
        asked.n_resamples,
        asked.rng,
        asked.workers,
        False,
    )
    return law.mean()


def _about_cells(cells: CellSums) -> tuple[str, ...]:
    mean = cells.n / cells.size.size
    if mean >= FEW_ROWS:
        return ()
    return (
        f"cells hold {mean:.1f} rows on average: so few show little of the error, and the upper "
        "bound is high for that reason; fewer cells give a shorter interval",
    )
