"""How many rows: formulas, and searches over simulated data, with their Monte Carlo error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import asinh, ceil
from typing import Any

import numpy as np

from caltest._base.arrays import FloatArray
from caltest._base.progress import progress
from caltest._base.written import Fields
from caltest.errors import StatisticError
from caltest.inference import calibration_test, confidence_interval, equivalence_test
from caltest.inference.reach import Difference, Side
from caltest.inference.squared_error import SquaredError
from caltest.lenses import Lens
from caltest.planning.population import Population
from caltest.predictions import Predictions
from caltest.results.base import go_on
from caltest.statistics import prepare

Rng = np.random.Generator
#: Data sets of a batch; rows at which searches begin, and beyond which they end.
BATCH, FIRST, MOST = 20, 200, 2_000_000
#: Batches near the answer are those with this many times as many rows, or as few.
NEAR = 2.5
#: Standard errors to the ends of a 95 % interval; more than 1.96, as batches go where they are few.
REACH = 2.15

#: Logarithm of the ratio of two numbers of rows from which on the slope between them is no chance.
APART = 0.5


@dataclass(frozen=True)
class Answer:
    """Rows needed, the ends of a 95 % interval for Monte Carlo error, and what came out where."""

    n: int
    low: int
    high: int
    points: tuple[tuple[float, float], ...] = ()
    n_resamples: int = 0


def by_power(
    trial: Callable[[Rng, int], bool], power: float, n_datasets: int, rng: Rng, first: int = FIRST
) -> Answer:
    """Search the rows at which ``trial`` succeeds with this probability.

    Rows are doubled or halved until both sides are known; further batches go to the answer of a
    probit regression of successes on √n.
    """
    tried: dict[int, list[int]] = {}

    def run(n: int, size: int = BATCH) -> float:
        wins, trials = tried.setdefault(n, [0, 0])
        wins += sum(trial(rng, n) for _ in range(size))
        tried[n] = [wins, trials + size]
        advance(size)
        return wins / (trials + size)

    with progress(n_datasets, "data sets") as advance:
        n = max(first, 4)
        rising = run(n) < power
        while rising or n > 4:
            n = 2 * n if rising else max(n // 2, 4)
            if n > MOST:
                raise StatisticError(
                    f"even {MOST} rows would not do in {power:.0%} of data sets: the alternative "
                    "is too close to what is to be told from it"
                )
            if (run(n) < power) != rising:
                break
        answer = float(np.mean(sorted(tried)[-2:] if rising else sorted(tried)[:2]))
        while sum(trials for _, trials in tried.values()) < n_datasets:
            step = (0.8, 1.0, 1.25)[len(tried) % 3]
            run(max(4, round(step * answer)))
            answer = _regressed(tried, answer, power)[0]
        answer, error = _regressed(tried, answer, power)
    shares = {n: wins / trials for n, (wins, trials) in tried.items()}
    return _answer(answer, error, shares, sum(trials for _, trials in tried.values()))


def _answer(answer: float, error: float, tried: dict[int, float], n_datasets: int) -> Answer:
    """Return an answer whose logarithm has this standard error."""
    low, high = answer * np.exp(np.array([-1.0, 1.0]) * min(REACH * error, 3.0))
    points = tuple((float(n), tried[n]) for n in sorted(tried))
    return Answer(int(np.ceil(answer)), int(low), int(np.ceil(high)), points, n_datasets)


def _regressed(tried: dict[int, list[int]], about: float, power: float) -> tuple[float, float]:
    """Return the rows with this power by a probit regression, and the error of their logarithm."""
    from scipy.special import ndtr, ndtri

    near = [(m, *tried[m]) for m in tried if about / NEAR <= m <= about * NEAR]
    rows, wins, trials = (np.array(column, dtype=float) for column in zip(*near, strict=True))
    # Half a failure and half a success at the ends, so that the fit exists.
    x = np.sqrt(np.concatenate([rows, [about / NEAR, about * NEAR]]) / about)
    wins, trials = np.append(wins, [0.0, 0.5]), np.append(trials, [0.5, 0.5])
    design, beta = np.column_stack([np.ones(x.size), x]), np.array([ndtri(power) - 1.5, 1.5])
    for _ in range(50):
        eta = np.clip(design @ beta, -4.0, 4.0)
        share, density = ndtr(eta), np.exp(-0.5 * eta**2) / np.sqrt(2.0 * np.pi)
        weight = trials * density**2 / (share * (1.0 - share))
        information = design.T @ (weight[:, None] * design)
        pull = design.T @ (density * (wins - trials * share) / (share * (1.0 - share)))
        step = np.linalg.solve(information, pull)
        beta = beta + step * min(1.0, 1.0 / np.abs(step).max())
        if np.abs(step).max() < 1e-8:
            break
    slope = max(beta[1], 0.3)
    root = float(np.clip((ndtri(power) - beta[0]) / slope, NEAR**-0.5, NEAR**0.5))
    gradient = np.array([1.0, root]) / slope
    error = 2.0 * float(np.sqrt(gradient @ np.linalg.solve(information, gradient))) / root
    return about * root**2, error


def by_width(
    width: Callable[[Rng, int], float], goal: float, n_datasets: int, rng: Rng, first: int = FIRST
) -> Answer:
    """Search the rows at which intervals are as long as wanted on average: by secants in logs."""
    tried: dict[int, FloatArray] = {}
    few, size, n, slope = max(n_datasets // 24, 2), max(n_datasets // 6, 2), max(first, 4), -0.5
    with progress(4 * few + 2 * size, "data sets") as advance:
        for trials in (few, few, few, few, size, size):
            if n not in tried or tried[n].size < trials:
                tried[n] = np.array([width(rng, n) for _ in range(trials)])
                advance(trials)
            means = {m: float(values.mean()) for m, values in tried.items()}
            nearest = sorted(means, key=lambda m: abs(np.log(means[m] / goal)))
            best = next(m for m in nearest if tried[m].size >= trials)
            apart = (m for m in nearest if abs(np.log(m / best)) > APART)
            if (other := next(apart, None)) is not None:
                change = np.log(means[best] / means[other])
                slope = float(np.clip(change / np.log(best / other), -0.6, -0.2))
            answer = best * (goal / means[best]) ** (1.0 / slope)
            if answer > MOST:
                raise StatisticError(f"even {MOST} rows would not give intervals of {goal:g}")
            n = max(4, round(answer))
    values = tried[best]
    error = float(values.std(ddof=1) / np.sqrt(values.size) / values.mean() / abs(slope))
    return _answer(answer, error, means, sum(map(len, tried.values())))


def by_alarms(
    alarm: Callable[[Rng], int | None], power: float, n_datasets: int, rng: Rng
) -> Answer:
    """Find the rows after which an alarm has rung in this share of data sets: a quantile."""
    from scipy.special import bdtr

    alarms: list[float] = []
    with progress(n_datasets, "data sets") as advance:
        while len(alarms) < n_datasets:
            alarms.append(alarm(rng) or np.inf)
            if alarms.count(np.inf) >= (1.0 - power) * n_datasets:
                raise StatisticError(f"the alarm does not ring within {MOST} rows often enough")
            advance(1)
    ordered, j = np.sort(alarms), np.arange(n_datasets)
    chance = bdtr(j, n_datasets, power)  # that at most j alarms are below the quantile
    places = [int(np.argmax(chance >= share)) for share in (0.5, 0.025, 0.975)]
    n, low, high = (int(min(ordered[j], MOST)) for j in places)
    points = tuple((float(m), (j + 1.0) / n_datasets) for j, m in enumerate(ordered) if m < np.inf)
    return Answer(n, low, high, points, n_datasets)


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
        *question, run = self._question(np.random.default_rng(0), MANY)  # no draw of the search
        error = confidence_interval(*question, side="lower", level=SURE, n_resamples=9999, **run)
        if error.low is not None and error.low > tolerance:
            raise StatisticError(
                f"what is taken to be true has an error of about {error.corrected:.3g} "
                f"({error.statistic}), which is not below the tolerance of {tolerance:g}: no "
                "number of rows would show that it is"
            )

    def _question(self, rng: Rng, n: int) -> tuple[Predictions, None, Any, Fields]:
        """Return what verbs take: a data set, no labels beside it, the statistic, and options."""
        data, _ = self.population.draw(rng, n)
        return data, None, self.statistic, {"lens": self.lens, "rng": int(rng.integers(2**63))}

    def _succeeds(self, rng: Rng, n: int) -> bool:
        """Say whether n rows show what is planned; few rows may have no answer."""
        try:
            if self.purpose == "comparison":
                return self._first_is_worse(rng, n)
            *question, run = self._question(rng, n)
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
        *question, run = self._question(rng, n)
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
