"""What is done with each simulated data set, by what is planned; and the formulas."""

from __future__ import annotations

from collections.abc import Callable
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
from caltest.planning.search import MOST, Found, Rng, by_alarms, by_power, by_width
from caltest.predictions import Predictions
from caltest.results.base import go_on
from caltest.statistics import prepare

#: Draws behind a bound, and behind a p-value at 5 %.
N_DRAWS, N_REPLICATES = 999, 199
#: Rows up to which a statistic may be without meaning.
FEW = 100
#: Rows that a monitor gets at once.
BLOCK = 512


@dataclass(frozen=True, eq=False)
class Task:
    """What is planned."""

    statistic: Any
    lens: Lens
    population: Population
    width: float | None
    tolerance: float | None
    power: float
    alpha: float
    n_datasets: int
    rng: Rng

    def drawn(self, rng: Rng, n: int) -> tuple[Any, dict[str, Any]]:
        """Return a data set with what every verb is told about it."""
        data, _ = self.population.draw(rng, n)
        return data, {"lens": self.lens, "rng": int(rng.integers(2**63))}

    def searched(self, succeeds: Callable[[Rng, int], bool]) -> Found:
        """Search the rows for the power; few rows may have no answer."""

        def trial(rng: Rng, n: int) -> bool:
            try:
                return succeeds(rng, n)
            except StatisticError:
                if n >= FEW:
                    raise
                return False

        return by_power(trial, self.power, self.n_datasets, self.rng)


def test(task: Task) -> Found:
    """Simulate tests of calibration."""
    replicates = max(N_REPLICATES, ceil(10.0 / task.alpha) - 1)

    def rejects(rng: Rng, n: int) -> bool:
        data, run = task.drawn(rng, n)
        found = calibration_test(data, None, task.statistic, n_resamples=replicates, **run)
        go_on(found.ended)
        return found.pvalue <= task.alpha

    return task.searched(rejects)


def equivalence(task: Task) -> Found:
    """Simulate tests of equivalence."""
    assert task.tolerance is not None
    sure: dict[str, Any] = {
        "tolerance": task.tolerance,
        "alpha": task.alpha,
        "n_resamples": N_DRAWS,
    }

    def accepts(rng: Rng, n: int) -> bool:
        data, run = task.drawn(rng, n)
        return equivalence_test(data, None, task.statistic, **sure, **run).equivalent

    return task.searched(accepts)


def interval(task: Task) -> Found:
    """Simulate intervals."""
    assert task.width is not None

    def length(rng: Rng, n: int) -> float:
        data, run = task.drawn(rng, n)
        run |= {"level": 1.0 - task.alpha, "n_resamples": N_DRAWS}
        found = confidence_interval(data, None, task.statistic, **run)
        if found.low is None or found.high is None:
            raise StatisticError("the interval is open: its length cannot be planned")
        return found.high - found.low

    return by_width(length, task.width, task.n_datasets, task.rng)


def comparison(task: Task) -> Found:
    """Simulate comparisons of squared errors, as :func:`caltest.compare` tests them."""

    def finds(rng: Rng, n: int) -> bool:
        a, b = (side(data) for data in task.population.draw(rng, n) if data is not None)
        difference = Difference(a, b, True)
        return difference.value > 0.0 and difference.pvalue() <= task.alpha

    def side(data: Predictions) -> Side:
        prepared = prepare(task.statistic, task.lens(data))
        if prepared.cells is None or prepared.cells.bins is None:
            raise StatisticError("comparisons are of binned errors: take DebiasedL2(bins)")
        return Side(SquaredError.of(prepared.cells, prepared.data), prepared.data)

    return task.searched(finds)


def monitoring(task: Task) -> Found:
    """Simulate rows until the alarm."""

    def alarm(rng: Rng) -> int | None:
        monitor, block = task.statistic, BLOCK
        while monitor.alarm is None and monitor.n < MOST:
            monitor = monitor.update(task.population.draw(rng, block)[0])
            block = min(2 * block, MOST // 8)
        found: int | None = monitor.alarm
        return found

    return by_alarms(alarm, task.power, task.n_datasets, task.rng)


def formula(task: Task) -> Found:
    """Compute what needs no simulation."""
    from scipy.special import logit, ndtri

    p, q = task.population.event(task.lens, task.rng)
    z = -float(ndtri(task.alpha / 2.0))
    spread = q * (1.0 - q)
    if task.width is None:  # the test of calibration in the large
        null, own = (p * (1.0 - p)).mean(), spread.mean() + (q - p).var()
        reach = z * np.sqrt(null) + float(ndtri(task.power)) * np.sqrt(own)
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
    return Found(n, n, n, (), 0)


#: What is done, by what is planned.
TASKS: dict[str, Callable[[Task], Found]] = {
    "test": test,
    "interval": interval,
    "equivalence": equivalence,
    "comparison": comparison,
    "monitoring": monitoring,
    "formula": formula,
}
