"""Cumulative errors: Kolmogorov–Smirnov, Kuiper and averaged two-bin errors of summed gaps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

import numpy as np

from caltest._base.compiled import kernel
from caltest.errors import StatisticError
from caltest.predictions import BoolArray, FloatArray, IntArray, Predictions
from caltest.statistics.brownian import BrownianNull, Extent
from caltest.statistics.prepared import Law, Prepared, Statistic, by_value, event


@dataclass(frozen=True, eq=False)
class _Walked(Prepared):
    """A walk along the sorted rows, predictions fixed; a subclass says what is measured of it.

    ``ends`` says where, in ``order``, each group of equal probabilities ends, and ``expected`` how
    many events are predicted up to there.
    """

    order: IntArray = field(repr=False)
    ends: IntArray = field(repr=False)
    expected: FloatArray = field(repr=False)

    @abstractmethod
    def _measured(self, walks: FloatArray) -> FloatArray:
        """Measure walks of shape (B, G), which begin at 0."""

    def __call__(self, labels: IntArray) -> float:
        events = (labels[self.order] == 0)[None, :]
        return float(self._measured(self._at_ends(events) - self.expected)[0])

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the errors for label vectors of shape (B, n), by compiled walks."""
        walks = np.empty((len(labels), self.ends.size))
        _walk(labels, self.order, self.ends, self.expected, walks, walks[:0])
        return self._measured(walks)

    def of_residuals(self, residuals: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the errors for moved residuals: walks of their sums."""
        moved = np.take(multipliers * residuals[:, 0], self.order, axis=1)
        return self._measured(self._at_ends(moved))

    def _at_ends(self, steps: FloatArray | BoolArray) -> FloatArray:
        return np.cumsum(steps, axis=1, dtype=np.float64)[:, self.ends - 1]


@dataclass(frozen=True, eq=False)
class Walk(_Walked):
    """A cumulative error whose predictions are fixed: how far a walk goes.

    Its end has the standard deviation ``sigma``; one event adds ``unit``, 1 / n unless ``scaled``.
    With weights n is their total, the ``mass``.
    """

    sigma: float
    unit: float
    mass: float
    extent: Extent
    enough: float = field(default=2.0, kw_only=True)

    def batch(self, labels: IntArray) -> FloatArray:
        """Return the errors for label vectors of shape (B, n): only turning points are kept."""
        turns = np.empty((len(labels), 2))
        _walk(labels, self.order, self.ends, self.expected, turns[:0], turns)
        return self._measured(turns)

    def _measured(self, walks: FloatArray) -> FloatArray:
        highest, lowest = walks.max(axis=1, initial=0.0), walks.min(axis=1, initial=0.0)
        spread = np.maximum(highest, -lowest) if self.extent == "maximum" else highest - lowest
        return np.asarray(self.unit * spread)

    def laws(self) -> Mapping[str, Law]:
        """Return the limit for many distinct predictions, by name."""
        return {"asymptotic": self._limit}

    def _limit(self, labels: IntArray) -> BrownianNull:
        return BrownianNull(self.extent, self.sigma * self.unit * self.mass)


@dataclass(frozen=True, eq=False)
class TwoBins(_Walked):
    """An averaged two-bin error whose predictions are fixed: squares of a walk and of what is left.

    ``widths`` are how far the thresholds reach that cut after each group of equal probabilities,
    over n²; the last one counts those below all of them, too, where one bin is as empty.
    """

    widths: FloatArray = field(repr=False)

    def _measured(self, walks: FloatArray) -> FloatArray:
        return np.asarray(((walks**2 + (walks[:, -1:] - walks) ** 2) * self.widths).sum(axis=1))


@kernel
def _walk(labels, order, ends, expected, walks_out, turns_out):  # type: ignore[no-untyped-def]
    # Every walk, or without room its turning points, O(n). Bytes fit into the nearest cache.
    n = order.size
    happened, events = np.empty(n, dtype=np.uint8), np.zeros(n + 1, dtype=np.int64)
    for r in range(labels.shape[0]):
        for i in range(n):
            happened[i] = labels[r, i] == 0
        hits = np.int64(0)
        for i in range(n):
            hits += np.int64(happened[order[i]])  # a sum of bytes would wrap at 256
            events[i + 1] = hits
        if walks_out.size > 0:
            for g in range(ends.size):
                walks_out[r, g] = events[ends[g]] - expected[g]
            continue
        # Two walkers, because each minimum waits for the one before.
        half = ends.size // 2
        lowest = highest = low = high = 0.0
        for g in range(half):
            step = events[ends[g]] - expected[g]
            lowest, highest = min(lowest, step), max(highest, step)
            step = events[ends[half + g]] - expected[half + g]
            low, high = min(low, step), max(high, step)
        step = events[ends[-1]] - expected[-1]
        turns_out[r, 0] = min(lowest, low, step)
        turns_out[r, 1] = max(highest, high, step)


@dataclass(frozen=True, repr=False)
class _CumulativeError(Statistic):
    """What both statistics share: a walk along the sorted predictions."""

    _: KW_ONLY
    scaled: bool = False
    takes_weights: ClassVar[bool] = True
    extent: ClassVar[Extent]
    essential: ClassVar[int] = 0

    def given(self, data: Predictions) -> Walk:
        """Fix the predictions: sort them once, and leave a function of the labels."""
        p = event(data, self)
        order, ends = by_value(p)
        w = 1.0 if data.weights is None else data.weights
        mass = float(p.size if data.weights is None else data.weights.sum())
        sigma = float(np.sqrt((w**2 * p * data.probs[:, 1]).sum())) / mass
        if self.scaled and sigma == 0.0:
            raise StatisticError(
                f"{self!r} divides by the standard deviation under calibration, which is 0 because "
                "every prediction is 0 or 1; leave scaled=False"
            )
        unit = 1.0 / (sigma * mass if self.scaled else mass)
        expected = np.cumsum(p[order])[ends - 1]
        return Walk(data, order, ends, expected, sigma, unit, mass, self.extent, degree=1)


class KolmogorovSmirnov(_CumulativeError):
    """Largest cumulative difference between outcomes and predictions (ECCE-MAD), for two classes.

    The value is max_k |C_k|, with rows sorted by the probability p of the event (class 0), C_0 = 0
    and C_k = (1/n) Σ_{i≤k} (y_i − p_i) (Arrieta-Ibarra et al. 2022). Rows with equal predictions
    enter together, so that the order of rows never matters. There are no bins to choose. Sees
    shifts and tilts well; errors that change sign along p many times cancel.

    Parameters
    ----------
    scaled : bool, default False
        Divide by σ = √(Σ p (1 − p)) / n, the standard deviation of C_n under calibration: the value
        is then of order 1 at every n.

    Raises
    ------
    StatisticError
        For more than two classes; when ``scaled`` and all predictions are 0 or 1.

    Notes
    -----
    O(n log n) once, O(n) for each further set of labels. The range is [0, 1]. ``laws`` offers
    ``"asymptotic"``, the law of σ max|W| (:class:`BrownianNull`): slightly conservative with few
    rows or ties, because a walk in steps visits less than Brownian motion.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu, "Metrics of calibration for probabilistic
    predictions", JMLR 23, 2022.

    Examples
    --------
    >>> round(KolmogorovSmirnov()([0.6, 0.8, 0.2, 0.4], [0, 1, 0, 0]), 12)
    0.3
    """

    extent: ClassVar[Extent] = "maximum"


class Kuiper(_CumulativeError):
    """Range of the cumulative differences (ECCE-R), for two classes.

    max_k C_k − min_k C_k over k = 0, …, n with C_0 = 0: the largest difference |Σ (y − p)| / n over
    all intervals of predictions, which is the empirical cutoff calibration error of Rossellini et
    al. (2025). See :class:`KolmogorovSmirnov` for C and the parameters. It does not depend on from
    which end the predictions are summed.

    References
    ----------
    Rossellini, Soloff, Barber, Ren & Willett, "Can a calibration metric be both testable and
    actionable?", 2025 (arXiv:2502.19851).

    Examples
    --------
    >>> round(Kuiper()([0.6, 0.8, 0.2, 0.4], [0, 1, 0, 0]), 12)
    0.3
    """

    extent: ClassVar[Extent] = "range"


@dataclass(frozen=True, repr=False)
class ATB(Statistic):
    """Averaged two-bin calibration error, for two classes: a truthful measure.

    ATB = ∫₀¹ n⁻² [(Σ_{p_i < q} (p_i − y_i))² + (Σ_{p_i ≥ q} (p_i − y_i))²] dq: the rows are cut in
    two at every threshold q, and the squared errors of both bins averaged over q, by a sum that is
    exact. No predictions have a smaller expected ATB than the true probabilities. Its noise floor
    is in closed form: the mean under calibration is Σ p_i (1 − p_i) / n², which is
    ``ATB().given(data).null_mean``. It sees what :class:`KolmogorovSmirnov` sees. Weights multiply
    p − y, and their total is n.

    Raises
    ------
    StatisticError
        For more than two classes.

    Notes
    -----
    O(n log n) once, O(n) for each further set of labels. The range is [0, 1].

    References
    ----------
    Hartline, Hu & Wu, "A perfectly truthful calibration measure", COLT 2026 (arXiv:2508.13100).

    Examples
    --------
    >>> ATB()([0.25, 0.75], [0, 1]), ATB()([0.5, 0.5], [1, 1])
    (0.015625, 0.25)
    """

    takes_weights: ClassVar[bool] = True

    def given(self, data: Predictions) -> TwoBins:
        """Fix the predictions: sort them once, and leave a function of the labels."""
        p = event(data, self)
        order, ends = by_value(p)
        w = np.ones(p.size) if data.weights is None else data.weights
        ordered, squared = p[order], w.sum() ** 2
        reached = ordered[ends - 1]
        widths = np.diff(reached, append=1.0 + reached[0]) / squared
        floor = float((w**2 * p * data.probs[:, 1]).sum() / squared)
        expected = np.cumsum(ordered)[ends - 1]
        return TwoBins(data, order, ends, expected, widths, degree=2, null_mean=floor)
