"""What is done with each simulated data set, by what is planned; and the formulas."""

from __future__ import annotations

from dataclasses import dataclass
from math import asinh, ceil
from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.inference import calibration_test, confidence_interval, equivalence_test
from caltest.inference.reach import Difference, Side
from caltest.inference.squared_error import SquaredError
from caltest.lenses import Lens
from caltest.planning.population import Population
from caltest.planning.search import MOST, Answer, Rng, by_alarms, by_power, by_width
from caltest.predictions import Predictions
from caltest.results.base import go_on
from caltest.statistics import prepare

#: Draws behind a bound, and behind a p-value at 5 %.
N_DRAWS, N_REPLICATES = 999, 199
#: Rows up to which a statistic may be without meaning.
FEW = 100
#: Rows that a monitor gets at once.
BLOCK = 512
#: Rows of a data set that shows how large the error is that is assumed, and how sure that is.
MANY, SURE = 100_000, 0.999


@dataclass(frozen=True, eq=False)
class Task:
    """What is planned: data sets are drawn, and its verb is called on each."""

    purpose: str
    statistic: Any
    lens: Lens
    population: Population
    width: float | None
    tolerance: float | None
    power: float
    alpha: float
    n_datasets: int
    rng: Rng

    def search(self) -> Answer:
        """Search the rows that are needed."""
        if self.tolerance is not None and self.population.truth is not None:
            self._refuse_larger_error(self.tolerance)
        if self.width is not None:
            return by_width(self._length, self.width, self.n_datasets, self.rng)
        if self.purpose == "monitoring":
            return by_alarms(self._alarm, self.power, self.n_datasets, self.rng)
        return by_power(self._succeeds, self.power, self.n_datasets, self.rng)

    def _refuse_larger_error(self, tolerance: float) -> None:
        """Say at once that the error is larger than the tolerance, which no rows would refute."""
        *question, run = self._drawn(np.random.default_rng(0), MANY)  # no draw of the search
        error = confidence_interval(*question, side="lower", level=SURE, n_resamples=9999, **run)
        if error.low is not None and error.low > tolerance:
            raise StatisticError(
                f"what is taken to be true has an error of about {error.corrected:.3g} "
                f"({error.statistic}), which is not below the tolerance of {tolerance:g}: no "
                "number of rows would show that it is"
            )

    def _drawn(self, rng: Rng, n: int) -> tuple[Predictions, None, Any, dict[str, Any]]:
        """Return what verbs take: a data set, no labels beside it, the statistic, and options."""
        data, _ = self.population.draw(rng, n)
        return data, None, self.statistic, {"lens": self.lens, "rng": int(rng.integers(2**63))}

    def _succeeds(self, rng: Rng, n: int) -> bool:
        """Say whether n rows show what is planned; few rows may have no answer."""
        try:
            if self.purpose == "comparison":
                return self._first_is_worse(rng, n)
            *question, run = self._drawn(rng, n)
            if self.tolerance is not None:
                run |= {"tolerance": self.tolerance, "alpha": self.alpha, "n_resamples": N_DRAWS}
                return equivalence_test(*question, **run).equivalent
            replicates = max(N_REPLICATES, ceil(10.0 / self.alpha) - 1)
            result = calibration_test(*question, n_resamples=replicates, **run)
        except StatisticError:
            if n >= FEW:
                raise
            return False
        go_on(result.ended)
        return result.pvalue <= self.alpha

    def _first_is_worse(self, rng: Rng, n: int) -> bool:
        """Compare squared errors as :func:`caltest.compare` does, without each model's own test."""
        sides = []
        for data in filter(None, self.population.draw(rng, n)):
            prepared = prepare(self.statistic, self.lens(data))
            if prepared.cells is None or prepared.cells.bins is None:
                raise StatisticError("comparisons are of binned errors: take DebiasedL2(bins)")
            sides.append(Side(SquaredError.of(prepared.cells, prepared.data), prepared.data))
        difference = Difference(sides[0], sides[1], True)
        return difference.value > 0.0 and difference.pvalue() <= self.alpha

    def _length(self, rng: Rng, n: int) -> float:
        """Return the length of an interval from n rows."""
        *question, run = self._drawn(rng, n)
        run |= {"level": 1.0 - self.alpha, "n_resamples": N_DRAWS}
        result = confidence_interval(*question, **run)
        if result.low is None or result.high is None:
            raise StatisticError("the interval is open: its length cannot be planned")
        return result.high - result.low

    def _alarm(self, rng: Rng) -> int | None:
        """Return after how many rows a monitor rings, if it does."""
        monitor, block = self.statistic, BLOCK
        while monitor.alarm is None and monitor.n < MOST:
            monitor = monitor.update(self.population.draw(rng, block)[0])
            block = min(2 * block, MOST // 8)
        alarm: int | None = monitor.alarm
        return alarm


def formula(task: Task) -> Answer:
    """Compute what needs no simulation, as the notes of :func:`caltest.plan` say."""
    from scipy.special import logit, ndtri

    p, q = task.population.event(task.lens, task.rng)
    z = -float(ndtri(task.alpha / 2.0))
    spread = q * (1.0 - q)
    if task.width is None:  # the test of calibration in the large
        null, alternative = (p * (1.0 - p)).mean(), spread.mean() + (q - p).var()
        reach = z * np.sqrt(null) + float(ndtri(task.power)) * np.sqrt(alternative)
        needed = (reach / max(abs((q - p).mean()), 1e-300)) ** 2
    elif task.statistic == "O:E":
        needed = (1.0 - q.mean()) / q.mean() * (z / asinh(task.width / 2.0)) ** 2
    else:
        inner = (p > 0.0) & (p < 1.0)
        odds = logit(np.where(inner, p, 0.5))
        a, b, c = (float((spread * inner * odds**k).mean()) for k in range(3))
        information = a if task.statistic == "intercept" else c - b * b / a
        needed = (2.0 * z / task.width) ** 2 / information
    if not needed <= MOST:
        raise StatisticError(f"even {MOST} rows would not do")
    n = ceil(needed - 1e-9)
    return Answer(n, n, n)
