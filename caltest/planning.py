"""Sample sizes: how many observations a test, an interval, a comparison or a monitor needs.

Start with :func:`plan`. :class:`Population` draws data sets, :class:`Task` evaluates one; true
probabilities are :class:`Slope`, :class:`Shift`, :class:`Bump` or fitted maps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import asinh, ceil
from typing import Any, Literal, Unpack

import numpy as np

from caltest._base.arrays import (
    RNG,
    FloatArray,
    IntArray,
    ProbsOrData,
    Values,
    as_ndarray,
    fraction,
    number,
    one_of,
    progress,
    whole,
)
from caltest._base.written import Fields, name_of
from caltest.data import Facts, Predictions
from caltest.data.facts import by_appearance
from caltest.data.lenses import Lens, LensLike, OneVsRest, as_lens
from caltest.errors import Reading, StatisticError
from caltest.inference import calibration_test, confidence_interval, equivalence_test
from caltest.inference._input import lens_for, seed_of, take_rows, take_tally
from caltest.inference.comparison import ComparedModel, Difference
from caltest.inference.dependence import SquaredError
from caltest.monitoring import Monitor
from caltest.nulls.laws import clopper_pearson
from caltest.read.arguments import read_arguments
from caltest.recalibration import PlattScaling, TemperatureScaling
from caltest.results.base import go_on
from caltest.results.decisions import FORMULAS, Plan
from caltest.statistics import ECE, CalibrationInTheLarge, StatisticLike, prepare
from caltest.tallies import AnyTally, problem_of_tally

#: Intervals whose length is known.
Formula = Literal["O:E", "intercept", "slope"]


def plan(
    like: ProbsOrData,
    labels: Values = None,
    statistic: StatisticLike | Monitor | Formula = ECE(),
    *,
    lens: LensLike | None = None,
    alternative: EventProbability | None = None,
    against: Values = None,
    width: float | None = None,
    tolerance: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    n_datasets: int = 400,
    rng: RNG = None,
    **facts: Unpack[Facts],
) -> Plan:
    """Compute the sample size for a test, an interval of a given width, or an equivalence test.

    The arguments decide what is planned: by default a test; with ``width`` an interval; with
    ``tolerance`` a test of equivalence; with ``against`` a comparison; with a :class:`Monitor` as
    the statistic the rows until its alarm. Without a formula, data sets are simulated: predictions
    are drawn from those given, labels from the true probabilities, and the test or interval is
    computed.

    Parameters
    ----------
    like : array_like, Predictions, Tally or callable
        Predictions like those to come, drawn with replacement; a :class:`Tally` of the event of two
        classes; or a function ``(rng, n) -> probs``: ``planning.LogisticNormal(0.1, 0.75)``.
    labels, statistic, lens, tolerance, rng, **facts
        As in :func:`equivalence_test`; weights and subgroups are refused. ``clusters`` are drawn
        whole, with the dependence of the labels given, and multiply formulas by their design
        effect; so are ``items`` with all their votes. "O:E", "intercept"
        (calibration-in-the-large) and "slope" plan intervals by formula.
    alternative : callable, optional
        From predicted to true probabilities, (n, K) both, such as ``planning.Slope(0.8)`` or a
        fitted recalibration. The default is fitted to the labels (Platt scaling, temperature
        scaling for several classes); without labels the model is calibrated.
    against : array_like or Predictions, optional
        A second model's predictions of the same rows, which are true (through ``alternative``, if
        there is one): how many rows show that the first is worse?
    width : float, optional
        Target length of intervals of level 1 − ``alpha``, on average.
    power, alpha : float, default 0.8, 0.05
        Target power, and level of the test; a monitor has its own level.
    n_datasets : int, default 400
        Data sets that are simulated, at least; for a width about half as many.

    Returns
    -------
    Plan
        ``n``, the number of rows, with its 95 % Monte Carlo interval ``low`` to ``high``.

    Raises
    ------
    StatisticError
        When two things are planned at once; when the alternative is calibrated; when the assumed
        error exceeds the tolerance; when fewer than 50 rows, or 10 of either label of two, are to
        estimate the alternative; or when two million rows do not suffice.

    Notes
    -----
    By formula, with p the predictions, q the true probabilities and z = logit p: n = (1 − φ) / (φ
    SE²) for log O:E, φ = E q; n = 1 / (a SE²) for calibration-in-the-large and a / ((a c − b²) SE²)
    for the slope, a, b, c = E q (1 − q) z^{0, 1, 2} (Riley et al., Statistics in Medicine 40,
    2021); and ((u √E p(1 − p) + v √(E q(1 − q) + Var(q − p))) / E(q − p))² for the test
    :class:`CalibrationInTheLarge`, u and v normal quantiles. The search regresses successes on √n
    (probit; Zimmer & Debelak, Psychological Methods 2023); rows to an alarm are a quantile.

    Examples
    --------
    >>> from caltest.planning import LogisticNormal
    >>> plan(LogisticNormal(0.1, 0.75), statistic="slope", width=2 * 1.96 * 0.1).n
    1536
    """
    fraction("power", power)
    fraction("alpha", alpha)
    for name, size in {"width": width, "tolerance": tolerance}.items():
        if size is not None:
            number(name, size, 0.0, np.inf)
    whole("n_datasets", n_datasets, 100)
    purpose = _purpose(statistic, width, tolerance, against)
    population = Population.of(like, labels, against, alternative, facts)
    if purpose in ("test", "monitoring") and population.truth is None:
        raise StatisticError(
            "nothing is wrong yet: pass labels, or what is true, such as "
            "alternative=planning.Slope(0.8)"
        )
    if purpose in ("test", "monitoring") and alternative is not None and population.nothing_wrong:
        raise StatisticError(
            f"under alternative={population.assumed} the model is calibrated, and no sample size "
            "shows an error that is not there: name one, such as planning.Slope(0.8)"
        )
    generator = np.random.default_rng(rng)
    first, _ = population.draw_rows(generator, 2)
    statistic, through, named = _looked_through(statistic, lens, first)
    alpha = statistic.alpha if isinstance(statistic, Monitor) else alpha
    large = purpose == "test" and isinstance(statistic, CalibrationInTheLarge)
    by_formula = isinstance(statistic, str) or (large and not population.clustered)
    if population.clustered and purpose in ("comparison", "monitoring"):
        raise StatisticError(f"plan does not take clusters for {purpose}")
    question = (purpose, statistic, through, population, width, tolerance, power, alpha)
    task = Task(*question, n_datasets, generator)
    answer, notes = _answered(task, by_formula)
    return Plan(
        statistic=named, lens=name_of(through), purpose=purpose,
        method="formula" if by_formula else "simulation",
        power=None if width is not None else float(power), alpha=float(alpha), width=width,
        tolerance=tolerance, like=str(population), alternative=population.assumed,
        assumed=str(getattr(alternative, "in_words", population.assumed)),
        present=population.present, n_classes=first.n_classes, event_name=first.event_name,
        seed=seed_of(rng), notes=notes, **vars(answer),
    )  # fmt: skip


def _answered(task: Task, by_formula: bool) -> tuple[SearchAnswer, tuple[str, ...]]:
    """Return (answer, notes): the sample size, scaled by the design effect for clusters.

    ``task`` is the planning problem; ``by_formula`` replaces the simulation by a closed formula.
    The :class:`SearchAnswer` has n, its 95 % Monte Carlo interval, and the sizes that were tried;
    notes are sentences on clusters, () without them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single data sets
        answer = formula(task) if by_formula else task.search()
    if not task.population.clustered:
        return answer, ()
    effect = task.population.dependence[0]
    if not by_formula:
        what = "items" if task.population.of_items else "clusters"
        notes = [f"whole {what} are drawn, with the design effect {effect:.2f} of those given"]
        if task.population.of_items:
            notes.append(_items_words(task.population, answer.n))
        return answer, tuple(notes)
    rows = {name: ceil(effect * vars(answer)[name]) for name in ("n", "low", "high")}
    note = f"rows as if independent, times {effect:.2f}, the design effect of clusters"
    return replace(answer, **rows), (note,)


def _items_words(population: Population, n: int) -> str:
    """Return a sentence that says how many items ``n`` votes are, at the mean number of votes.

    The mean is over the items of the ``population``.
    """
    assert population.data is not None
    assert population.data.items is not None
    votes = population.data.n / np.unique(population.data.items).size
    return f"a row is a vote: {n} rows are about {ceil(n / votes)} items of {votes:.3g} votes"


def _purpose(statistic: object, width: object, tolerance: object, against: object) -> str:
    """Return the kind of plan, a word; StatisticError for two kinds at once.

    ``width`` asks for an "interval", ``tolerance`` for "equivalence", ``against`` for a
    "comparison" (None each if not planned), and a monitor as the statistic for "monitoring";
    otherwise it is a "test". A ``statistic`` that is a name, such as "O:E", needs a width.
    """
    if isinstance(statistic, str):
        one_of("statistic", statistic, FORMULAS)
        if width is None:
            raise StatisticError(f"the interval of {statistic!r} needs a width")
    options = {"interval": width is not None, "equivalence": tolerance is not None}
    options |= {"comparison": against is not None, "monitoring": isinstance(statistic, Monitor)}
    purposes = [name for name, planned in options.items() if planned] or ["test"]
    if len(purposes) > 1:
        raise StatisticError(f"one thing is planned at a time, not {' and '.join(purposes)}")
    return purposes[0]


def _looked_through(
    statistic: Any, lens: LensLike | None, data: Predictions
) -> tuple[Any, Lens, str]:
    """Return (statistic, lens, name): the statistic as planned, its lens, and its printed name.

    A lens says which probabilities are assessed; ``lens`` None gives the default one for ``data``.
    A monitor as ``statistic`` gets the lens as its own; StatisticError if it has seen rows.
    """
    if not isinstance(statistic, Monitor):
        named = statistic if isinstance(statistic, str) else name_of(statistic)
        return statistic, as_lens(lens_for(statistic, lens, data), data), named
    if statistic.n:
        raise StatisticError("the rows until an alarm are planned for a monitor without rows")
    through = as_lens(statistic.lens if lens is None else lens, data)
    return replace(statistic, lens=through), through, f"Monitor(alpha={statistic.alpha:g})"


# ------------------------------------------------------------------------------
# How many rows: formulas, and searches over simulated data, with their Monte Carlo error.


Rng = np.random.Generator


#: Data sets of a batch; rows at which searches begin, and beyond which they end.
SETS_A_BATCH, ROWS_FIRST_TRIED, ROWS_LAST_TRIED = 20, 200, 2_000_000


#: Batches near the answer are those with this many times as many rows, or as few.
NEAR = 2.5


#: Standard errors to the ends of a 95 % interval; more than 1.96, as batches go where they are few.
REACH = 2.15


#: Logarithm of the ratio of two numbers of rows from which on the slope between them is no chance.
SLOPE_RATIO = 0.5


@dataclass(frozen=True)
class SearchAnswer:
    """Sample size, its 95 % Monte Carlo interval, and the (n, power) points of the search.

    ``low`` and ``high`` are the interval of ``n``; ``points`` are pairs of a number of rows tried
    and the power, or mean width of intervals, found there, and ``intervals`` the 95 % Monte Carlo
    intervals of these. ``n_resamples`` counts simulated data sets.
    """

    n: int
    low: int
    high: int
    points: tuple[tuple[float, float], ...] = ()
    intervals: tuple[tuple[float, float], ...] = ()
    n_resamples: int = 0


def by_power(
    trial: Callable[[Rng, int], bool],
    power: float,
    n_datasets: int,
    rng: Rng,
    first: int = ROWS_FIRST_TRIED,
) -> SearchAnswer:
    """Return the sample size at which ``trial`` succeeds with probability ``power``.

    ``trial(rng, n)`` simulates one data set of n rows and says whether it succeeds; at least
    ``n_datasets`` are simulated, from ``rng``. n begins at ``first``, and is doubled or halved
    until both sides are known. Further data sets are then simulated at the answer of a probit
    regression of successes on √n. The answer has n, its 95 % interval and the power at the sizes
    tried. StatisticError if two million rows do not suffice.
    """
    tried: dict[int, list[int]] = {}

    def run(n: int, size: int = SETS_A_BATCH) -> float:
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
            if n > ROWS_LAST_TRIED:
                raise StatisticError(
                    f"even {ROWS_LAST_TRIED} rows would not do in {power:.0%} of data sets: the "
                    "alternative is too close to what is to be told from it"
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
    counts = np.array([tried[n] for n in sorted(tried)])
    ends = np.transpose(clopper_pearson(counts[:, 0], counts[:, 1], 0.95))
    return _answer(answer, error, shares, ends, sum(trials for _, trials in tried.values()))


def _answer(
    answer: float, error: float, tried: dict[int, float], ends: FloatArray, n_datasets: int
) -> SearchAnswer:
    """Return an answer from an estimate of n and the standard error of its logarithm.

    ``answer`` is the estimate of n and ``error`` the standard error of log n: the 95 % interval of
    n has the factors exp(∓ 2.15 ``error``), at most exp(3). ``tried`` maps n to the power, or mean
    length of intervals, found there, ``ends`` (P, 2) are 95 % intervals of these for the P sizes in
    increasing order, ``n_datasets`` is the number of simulated data sets.
    """
    low, high = answer * np.exp(np.array([-1.0, 1.0]) * min(REACH * error, 3.0))
    points = tuple((float(n), tried[n]) for n in sorted(tried))
    intervals = tuple((float(a), float(b)) for a, b in ends)
    n, most = int(np.ceil(answer)), int(np.ceil(high))
    return SearchAnswer(n, int(low), most, points, intervals, n_datasets)


def _regressed(tried: dict[int, list[int]], about: float, power: float) -> tuple[float, float]:
    """Return (n, error): the n with power ``power`` by probit regression on √n, and its error.

    ``tried`` maps n to [successes, trials]; the error is the standard error of log n, and ``about``
    a rough answer: only sizes within a factor of 2.5 of it are used.
    """
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
    width: Callable[[Rng, int], float],
    goal: float,
    n_datasets: int,
    rng: Rng,
    first: int = ROWS_FIRST_TRIED,
) -> SearchAnswer:
    """Return the n at which intervals have the target length on average, by secants in logs.

    ``width(rng, n)`` is the length of the interval of one simulated data set of n rows, ``goal``
    the target, ``first`` the first n tried, ``rng`` the generator. Six rounds of data sets are
    simulated, about ``n_datasets`` in all; lengths fall about as n^−½. The answer has n, its 95 %
    interval and the mean length at the sizes tried. StatisticError if two million rows do not
    suffice.
    """
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
            apart = (m for m in nearest if abs(np.log(m / best)) > SLOPE_RATIO)
            if (other := next(apart, None)) is not None:
                change = np.log(means[best] / means[other])
                slope = float(np.clip(change / np.log(best / other), -0.6, -0.2))
            answer = best * (goal / means[best]) ** (1.0 / slope)
            if answer > ROWS_LAST_TRIED:
                raise StatisticError(
                    f"even {ROWS_LAST_TRIED} rows would not give intervals of {goal:g}"
                )
            n = max(4, round(answer))
    values = tried[best]
    error = float(values.std(ddof=1) / np.sqrt(values.size) / values.mean() / abs(slope))
    ends = np.array([_mean_ends(tried[n]) for n in sorted(tried)])
    return _answer(answer, error, means, ends, sum(map(len, tried.values())))


def _mean_ends(values: FloatArray) -> tuple[float, float]:
    """Return (low, high), Student's 95 % interval of the mean of independent ``values`` (m,)."""
    from scipy.special import stdtrit

    half = float(values.std(ddof=1) / np.sqrt(values.size) * stdtrit(values.size - 1, 0.975))
    return float(values.mean()) - half, float(values.mean()) + half


def by_alarms(
    alarm: Callable[[Rng], int | None], power: float, n_datasets: int, rng: Rng
) -> SearchAnswer:
    """Return the n by which an alarm is raised in a share ``power`` of data sets: a quantile.

    ``alarm(rng)`` is the number of the row of the alarm in one simulated data set, or None for no
    alarm, and ``n_datasets`` are simulated from ``rng``. Order statistics give the 95 % interval.
    The answer has n, its 95 % interval and the share of data sets with an alarm by each n.
    StatisticError if too few data sets raise an alarm.
    """
    from scipy.special import bdtr

    alarms: list[float] = []
    with progress(n_datasets, "data sets") as advance:
        while len(alarms) < n_datasets:
            alarms.append(alarm(rng) or np.inf)
            if alarms.count(np.inf) >= (1.0 - power) * n_datasets:
                raise StatisticError(
                    f"the alarm does not ring within {ROWS_LAST_TRIED} rows often enough"
                )
            advance(1)
    ordered, j = np.sort(alarms), np.arange(n_datasets)
    chance = bdtr(j, n_datasets, power)  # that at most j alarms are below the quantile
    places = [int(np.argmax(chance >= share)) for share in (0.5, 0.025, 0.975)]
    n, low, high = (int(min(ordered[j], ROWS_LAST_TRIED)) for j in places)
    points = tuple((float(m), (j + 1.0) / n_datasets) for j, m in enumerate(ordered) if m < np.inf)
    return SearchAnswer(n, low, high, points, (), n_datasets)


#: Draws behind a bound, and behind a p-value at 5 %.
N_DRAWS, N_REPLICATES = 999, 199


#: Rows up to which a statistic may be without meaning.
UNDEFINED_UP_TO = 100


#: Rows that a monitor gets at once.
MONITOR_BLOCK = 512


#: Rows of a data set that shows how large the error is that is assumed, and how sure that is.
ROWS_OF_EFFECT, EFFECT_LEVEL = 100_000, 0.999


@dataclass(frozen=True, eq=False)
class Task:
    """Planning problem: data sets are drawn from a population, and each is tested.

    ``purpose`` is "test", "interval" (whose length counts), "equivalence", "comparison" or
    "monitoring". ``population`` draws predictions and labels; ``statistic`` (or monitor, or name of
    a formula), ``lens``, ``width``, ``tolerance``, ``power``, ``alpha``, ``n_datasets`` and ``rng``
    are arguments of :func:`plan`.
    """

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

    def search(self) -> SearchAnswer:
        """Search for the sample size of this plan by simulation.

        The :class:`SearchAnswer` has n, its 95 % interval and the power, or mean length of
        intervals, at the sizes tried. StatisticError if no size up to two million is enough.
        """
        if self.tolerance is not None and self.population.truth is not None:
            self._refuse_larger_error(self.tolerance)
        if self.width is not None:
            return by_width(self._length, self.width, self.n_datasets, self.rng)
        if self.purpose == "monitoring":
            return by_alarms(self._alarm, self.power, self.n_datasets, self.rng)
        return by_power(self._succeeds, self.power, self.n_datasets, self.rng)

    def _refuse_larger_error(self, tolerance: float) -> None:
        """Raise StatisticError if the assumed error exceeds ``tolerance``: no n could show less.

        The error is bounded from a data set of 100 000 rows, at level 0.999.
        """
        *question, run = self._question(
            np.random.default_rng(0), ROWS_OF_EFFECT
        )  # no draw of the search
        error = confidence_interval(
            *question, side="lower", level=EFFECT_LEVEL, n_resamples=9999, **run
        )
        if error.low is not None and error.low > tolerance:
            raise StatisticError(
                f"the assumed error is about {error.corrected:.3g} "
                f"({error.statistic}), not below the tolerance of {tolerance:g}: no number of rows "
                "could show that it is below"
            )

    def _question(self, rng: Rng, n: int) -> tuple[Predictions, None, Any, Fields]:
        """Draw n rows from ``rng``; return (data, None, statistic, options).

        They are the arguments of :func:`calibration_test` and its relatives. The data have their
        labels, so that None is passed for these. The options are a dict with ``lens`` and ``rng``,
        a seed.
        """
        data, _ = self.population.draw_rows(rng, n)
        return data, None, self.statistic, {"lens": self.lens, "rng": int(rng.integers(2**63))}

    def _succeeds(self, rng: Rng, n: int) -> bool:
        """Draw a data set of n rows from ``rng``, test it, and return whether it shows the effect.

        The effect is a rejection, an equivalence, or a first model that is worse, by the purpose of
        this plan. It is False if n, below 100, is too small for the statistic.
        """
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
            if n >= UNDEFINED_UP_TO:
                raise
            return False
        go_on(result.ended)
        return result.pvalue <= self.alpha

    def _first_is_worse(self, rng: Rng, n: int) -> bool:
        """Draw n rows from ``rng``; return whether the first model is shown to be worse.

        It is :func:`caltest.compare` without each model's own test: the difference of debiased
        squared errors, first − second, is positive with p ≤ alpha. StatisticError for a statistic
        without bins.
        """
        sides = []
        for data in filter(None, self.population.draw_rows(rng, n)):
            prepared = prepare(self.statistic, self.lens(data))
            if prepared.cells is None or prepared.cells.bins is None:
                raise StatisticError("comparisons are of binned errors: take DebiasedL2(bins)")
            sides.append(
                ComparedModel(SquaredError.of(prepared.cells, prepared.data), prepared.data)
            )
        difference = Difference(sides[0], sides[1], True)
        return difference.value > 0.0 and difference.pvalue() <= self.alpha

    def _length(self, rng: Rng, n: int) -> float:
        """Draw n rows from ``rng``; return the length of the statistic's confidence interval.

        StatisticError if an end of it is open.
        """
        *question, run = self._question(rng, n)
        run |= {"level": 1.0 - self.alpha, "n_resamples": N_DRAWS}
        result = confidence_interval(*question, **run)
        if result.low is None or result.high is None:
            raise StatisticError("the interval is open: its length cannot be planned")
        return result.high - result.low

    def _alarm(self, rng: Rng) -> int | None:
        """Draw rows from ``rng`` until the monitor raises an alarm; return their number.

        It is None if there is no alarm within two million rows. The monitor is the statistic of
        this plan.
        """
        monitor, block = self.statistic, MONITOR_BLOCK
        while monitor.alarm is None and monitor.n < ROWS_LAST_TRIED:
            monitor = monitor.update(self.population.draw_rows(rng, block)[0])
            block = min(2 * block, ROWS_LAST_TRIED // 8)
        alarm: int | None = monitor.alarm
        return alarm


def formula(task: Task) -> SearchAnswer:
    """Return the sample size of the planning problem ``task`` by a closed formula, without error.

    It is for intervals of "O:E", "intercept" and "slope", and for the test of
    calibration-in-the-large; the notes of :func:`caltest.plan` list the formulas. The low and high
    of the answer equal its n. StatisticError if predictions do not determine the interval, or two
    million rows do not suffice.
    """
    from scipy.special import logit, ndtri

    p, q = task.population.event(task.lens, task.rng)
    z = -float(ndtri(task.alpha / 2.0))
    spread = q * (1.0 - q)
    if task.width is None:  # the test of calibration in the large
        null, alternative = (p * (1.0 - p)).mean(), spread.mean() + (q - p).var()
        reach = z * np.sqrt(null) + float(ndtri(task.power)) * np.sqrt(alternative)
        needed = (reach / max(abs((q - p).mean()), 1e-300)) ** 2
    elif not 0.0 < q.mean() < 1.0:
        raise StatisticError(
            f"all events are {'certain' if q.mean() else 'impossible'} under the true "
            f"probabilities: an interval of {task.statistic!r} needs some of both outcomes"
        )
    elif task.statistic == "O:E":
        needed = (1.0 - q.mean()) / q.mean() * (z / asinh(task.width / 2.0)) ** 2
    else:
        inner = (p > 0.0) & (p < 1.0)
        odds = logit(np.where(inner, p, 0.5))
        a, b, c = (float((spread * inner * odds**k).mean()) for k in range(3))
        information = a if task.statistic == "intercept" or a == 0.0 else c - b * b / a
        if information <= 1e-12 * max(a, c):  # rounding leaves c − b² / a above or below 0
            raise StatisticError(
                f"the predictions say nothing of the {task.statistic}: pass predictions between "
                "0 and 1" + ", of at least two values" * (task.statistic == "slope")
            )
        needed = (2.0 * z / task.width) ** 2 / information
    if not needed <= ROWS_LAST_TRIED:
        raise StatisticError(f"even {ROWS_LAST_TRIED} rows would not do")
    n = ceil(needed - 1e-9)
    return SearchAnswer(n, n, n)


# ------------------------------------------------------------------------------
# Rows that a plan draws: predictions, true probabilities, and alternatives.


#: Probabilities below this count as this in logarithms.
LOG_FLOOR = 2.0**-53


def _changed(probs: FloatArray, slope: float, shift: float | FloatArray = 0.0) -> FloatArray:
    from scipy.special import softmax

    return np.asarray(softmax(slope * np.log(np.maximum(probs, LOG_FLOOR)) + shift, axis=1))


@dataclass(frozen=True)
class Slope:
    """Assumed truth: log-odds are ``slope`` times the predicted ones.

    Call it with probabilities (n, K) to get the true ones, (n, K). A slope below 1 stands for an
    overconfident model; it is above 0 and at most 10, StatisticError else. For several classes,
    true probabilities are proportional to p^slope: temperature T is Slope(1/T).
    """

    slope: float

    def __post_init__(self) -> None:
        number("slope", self.slope, 0.0, 10.0)

    @property
    def in_words(self) -> str:
        return f"logit slope {self.slope:g}"

    def __call__(self, probs: FloatArray) -> FloatArray:
        return _changed(probs, self.slope)


@dataclass(frozen=True)
class Shift:
    """Assumed truth: the log-odds of class ``c`` are ``shift`` above the predicted ones.

    Call it with probabilities (n, K) to get the true ones, (n, K). Class 1 is the default; the
    ratios of the other classes stay.
    """

    shift: float
    c: int = 1

    @property
    def in_words(self) -> str:
        side = "above" if self.shift > 0.0 else "below"
        return f"log-odds of class {self.c} {abs(self.shift):g} {side} the predicted ones"

    def __call__(self, probs: FloatArray) -> FloatArray:
        return _changed(probs, 1.0, self.shift * (np.arange(probs.shape[1]) == self.c))


@dataclass(frozen=True)
class Bump:
    """Assumed truth: class ``c`` is more frequent by ``height`` for predictions in (low, high).

    Call it with probabilities (n, K) to get the true ones, (n, K). Predictions and height are
    probabilities of class c, by default 1; a negative height makes it less frequent. The result is
    kept in [0, 1], and the ratios of the other classes stay.
    """

    height: float
    low: float
    high: float
    c: int = 1

    @property
    def in_words(self) -> str:
        more = "more" if self.height > 0.0 else "less"
        where = f"for predictions of {self.low:g} to {self.high:g}"
        return f"class {self.c} {more} frequent by {abs(self.height):g} {where}"

    def __call__(self, probs: FloatArray) -> FloatArray:
        p = probs[:, self.c]
        q = np.clip(p + self.height * ((p > self.low) & (p < self.high)), 0.0, 1.0)
        others = np.where(np.arange(probs.shape[1]) == self.c, 0.0, probs)
        total = others.sum(axis=1, keepdims=True)
        rest = np.where(
            total > 0.0, others / np.maximum(total, LOG_FLOOR), 1.0 / (probs.shape[1] - 1)
        )
        rest[:, self.c] = 0.0
        result = (1.0 - q)[:, None] * rest
        result[:, self.c] = q
        return result


@dataclass(frozen=True)
class LogisticNormal:
    """Risks of an event whose log-odds are normal: a model given by event rate and c-statistic.

    ``rate`` is the event rate, ``concordance`` the c-statistic (area under the ROC curve), ½ to 1.
    Call it with (rng, n) to draw n risks, (n,). Mean and variance follow Pavlou et al., "Estimation
    of required sample size for external validation of risk models for binary outcomes", Statistical
    Methods in Medical Research 30, 2021.
    """

    rate: float
    concordance: float

    def __post_init__(self) -> None:
        fraction("rate", self.rate)
        number("concordance", self.concordance, 0.5, 1.0)

    def of_normals(self, z: FloatArray) -> FloatArray:
        """Return risks, probabilities of the event, for standard normal ``z``, same shape."""
        from scipy.special import expit, ndtri

        apart = 2.0 * ndtri(self.concordance) ** 2
        mean = (self.rate - 0.5) * apart + np.log(self.rate / (1.0 - self.rate))
        variance = apart * (1.0 + apart * self.rate * (1.0 - self.rate))
        return np.asarray(expit(mean + np.sqrt(variance) * z))

    def __call__(self, rng: np.random.Generator, n: int) -> FloatArray:
        return self.of_normals(rng.standard_normal(n))


EventProbability = Callable[[FloatArray], FloatArray]


#: Rows from which formulas are computed where a model is drawn from.
MANY_ROWS = 200_000


#: Rows, and rows of the rarer label, from which what is true can be learned.
LEAST_LEARNT, LEAST_RARE = 50, 10


#: Halvings of the correlation of labels, and data sets that show what it makes of them.
CORRELATION_HALVINGS, SETS_OF_LABELS = 10, 20


@dataclass(frozen=True, eq=False)
class LikeTally:
    """Sampler of predictions with the frequencies of a tally's cells.

    Called with (rng, n) it draws n predictions, (n, 2). ``n`` is the number of rows of the tally,
    ``probs`` (U, 2) are the mean predictions of its cells, and ``up_to`` (U,) the cumulative shares
    of the rows in them.
    """

    n: int
    probs: FloatArray
    up_to: FloatArray

    def at(self, shares: FloatArray) -> FloatArray:
        """Return quantiles of the predictions of the tally, (m, 2), for labels 0 and 1.

        ``shares`` (m,) are in [0, 1]; the order is by the event probability.
        """
        return self.probs[np.searchsorted(self.up_to, shares)]

    def __call__(self, rng: np.random.Generator, n: int) -> FloatArray:
        return self.at(rng.random(n))


@dataclass(frozen=True, eq=False)
class Population:
    """Sampler of predictions, with their assumed true probabilities, and of a second model.

    ``like`` is what the user gave: data, a tally's sampler, or a function (rng, n) -> probs.
    ``data`` are the rows it holds, None for a tally or function. ``truth`` maps predictions (n, K)
    to true probabilities, None if the model is calibrated, and ``against`` are the predictions of
    the second model for the same rows, None without one. ``assumed`` says the truth in words.
    """

    like: Any
    data: Predictions | None
    against: Predictions | None
    truth: EventProbability | None
    assumed: str

    @classmethod
    def of(
        cls,
        like: object,
        labels: object,
        against: object,
        alternative: EventProbability | None,
        facts: Facts,
    ) -> Population:
        """Return the population for the arguments of :func:`plan`, which raises its errors.

        ``like`` is data, a tally or a function (rng, n) -> probs, ``labels`` the labels of data,
        ``against`` the second model's predictions or None, and ``facts`` the keywords of
        :meth:`Predictions.of`. Without ``alternative``, a map from predicted to true probabilities,
        the assumed truth is fitted to the labels.
        """
        if alternative is not None and not callable(alternative):
            raise StatisticError(
                f"alternative is a function from predicted to true probabilities, such as "
                f"planning.Slope(0.8), not {alternative!r}"
            )
        data = second = None
        assumed = "calibrated" if alternative is None else name_of(alternative)
        if isinstance(like, AnyTally):
            like, rows = _of_tally(like, labels, facts)
            alternative, assumed = (alternative, assumed) if alternative else _fitted(rows, like.n)
        elif not callable(like):
            labelled = isinstance(like, Predictions) or labels is not None
            if not labelled:
                labels = np.zeros(np.shape(as_ndarray(like, "probs"))[:1], dtype=np.int64)
            data = take_rows("plan", like, labels, facts)
            if data.items is not None and data.items_in_clusters:
                raise StatisticError(
                    "plan takes items with their votes, or clusters, but not items that lie in "
                    "clusters: leave clusters= (--clusters) out to plan for independent items",
                    [Reading({"clusters": None})],
                )
            if data.clusters is not None and not labelled:
                raise StatisticError("clusters show how much rows depend only beside labels")
            if against is not None:
                beside = None if isinstance(against, Predictions) else data.labels
                second = take_rows("plan", against, beside, {})
                if second.probs.shape != data.probs.shape:
                    raise StatisticError("against: predictions of the same rows are needed")
            elif labelled and alternative is None:
                alternative, assumed = _fitted(replace(data, ids=None, clusters=None), data.n)
        if against is not None and second is None:
            raise StatisticError(
                "a comparison is planned like predictions, not like a function or a tally"
            )
        assumed = "the other model" if against is not None and alternative is None else assumed
        return cls(like, data, second, alternative, assumed)

    @property
    def present(self) -> int | None:
        """Number of rows that the user gave; None if predictions are drawn from a function."""
        source = self.like if isinstance(self.like, LikeTally) else self.data
        return None if source is None else source.n

    def probs(self, rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
        """Draw n rows from ``rng``; return (predictions, true probabilities), (n, K) each.

        Rows of data are drawn with replacement.
        """
        if self.data is None:
            probs = read_arguments(
                self.like(rng, n), np.zeros(n, dtype=np.int64), rounded=False
            ).probs
            return probs, self._true(probs)
        rows = rng.integers(self.data.n, size=n)
        probs = self.data.probs[rows]
        return probs, self._true(probs if self.against is None else self.against.probs[rows])

    @property
    def nothing_wrong(self) -> bool:
        """True if assumed true probabilities equal the predictions: no test can reject."""
        probs, truth = self.probs(np.random.default_rng(0), 256)
        return truth.shape == probs.shape and bool((np.abs(truth - probs) <= 1e-12).all())

    def _true(self, probs: FloatArray) -> FloatArray:
        return probs if self.truth is None else np.asarray(self.truth(probs))

    def draw_rows(self, rng: np.random.Generator, n: int) -> tuple[Predictions, Predictions | None]:
        """Draw n rows from ``rng``, labelled by the true probabilities; return (rows, second).

        ``second`` has the second model's predictions for these rows, with the same labels; None
        without a second model. Clusters are drawn whole, with their dependence.
        """
        if self.clustered:
            assert self.data is not None
            rows, clusters = self._clusters(rng, n)
            probs = self.data.probs[rows]
            labels = _labels(rng, self._true(probs), clusters, self.dependence[1])
            items = clusters if self.of_items else None
            return Predictions(probs, labels, clusters=clusters, items=items), None
        seed = rng.integers(2**63)
        probs, truth = self.probs(np.random.default_rng(seed), n)
        uniform = rng.random(n)[:, None]
        labels = (uniform >= np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
        if self.against is None:
            return Predictions(probs, labels), None
        rows = np.random.default_rng(seed).integers(self.against.n, size=n)
        return Predictions(probs, labels), Predictions(self.against.probs[rows], labels)

    @property
    def of_items(self) -> bool:
        """True if the clusters are items with several votes, which share their predictions."""
        return self.data is not None and self.data.items is not None

    @property
    def clustered(self) -> bool:
        """True if the rows given come in clusters, such as patients or items with votes."""
        return self.data is not None and self.data.clusters is not None

    @cached_property
    def dependence(self) -> tuple[float, float]:
        """(design effect, correlation) of labels in a cluster; (1, 0) without clusters.

        The design effect is Σ over clusters of (Σ r)² divided by Σ r², at least 1, with r = y − q
        of class 1 or the most likely class, q its true probability. Labels are thresholded normal
        variables with one correlation within a cluster, which keeps the probabilities of every row;
        the correlation that gives the design effect is found by bisection on the same draws.
        """
        data = self.data
        if data is None or data.clusters is None:
            return 1.0, 0.0
        truth, clusters = self._true(data.probs), by_appearance(data.clusters)
        event = 1 if data.n_classes == 2 else data.probs.argmax(axis=1)
        likely = truth[np.arange(data.n), event]

        def effect(labels: IntArray) -> float:
            residuals = (labels == event) - likely
            return float((np.bincount(clusters, residuals) ** 2).sum() / (residuals**2).sum())

        observed, low, high = max(1.0, effect(data.labels)), 0.0, 1.0
        for _ in range(CORRELATION_HALVINGS if observed > 1.0 else 0):
            middle, rng = (low + high) / 2.0, np.random.default_rng(0)
            effects = [effect(_labels(rng, truth, clusters, middle)) for _ in range(SETS_OF_LABELS)]
            low, high = (middle, high) if np.mean(effects) < observed else (low, middle)
        return observed, low

    def _clusters(self, rng: np.random.Generator, n: int) -> tuple[IntArray, IntArray]:
        """Draw whole clusters from ``rng``, with replacement, until there are n rows.

        Return (row indices, cluster numbers), (n,) each. A cluster that is drawn twice has two
        numbers, and the last one is cut.
        """
        assert self.data is not None
        clusters = by_appearance(self.data.clusters)
        order = np.argsort(clusters, kind="stable")
        ends = np.cumsum(np.bincount(clusters))
        few = ceil(2.0 * n * ends.size / ends[-1]) + 10
        chosen = rng.integers(ends.size, size=few)
        sizes = np.diff(np.append(0, ends))[chosen]
        chosen = chosen[: int(np.searchsorted(np.cumsum(sizes), n)) + 1]
        parts = [order[(ends[c - 1] if c else 0) : ends[c]] for c in chosen]
        numbers = np.repeat(np.arange(len(parts)), [part.size for part in parts])
        return np.concatenate(parts)[:n], numbers[:n]

    def event(self, lens: Lens, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return (predictions, true probabilities) of the event of a lens, (m,) each.

        They are of m rows of the population, drawn from ``rng`` where a function makes them.
        ``lens`` says which probabilities are assessed and leaves two classes, such as ``TopK(1)``;
        StatisticError if not.
        """
        shares = (np.arange(MANY_ROWS) + 0.5) / MANY_ROWS
        if isinstance(self.like, LogisticNormal):
            from scipy.special import ndtri

            p = self.like.of_normals(ndtri(shares))
            probs = np.column_stack([1.0 - p, p])
        elif isinstance(self.like, LikeTally):
            probs = self.like.at(shares)
        else:
            probs = self.probs(rng, MANY_ROWS)[0] if self.data is None else self.data.probs
        truth = self._true(probs)
        likely = np.zeros(len(probs))
        for k in range(probs.shape[1]):
            induced = lens(Predictions(probs, np.full(len(probs), k)))
            likely += np.where(induced.labels == 0, truth[:, k], 0.0)
        if induced.n_classes != 2:
            raise StatisticError(f"{lens!r} shows no event: take OneVsRest(c) or TopK(1)")
        return induced.probs[:, 0], likely

    def __str__(self) -> str:
        if self.present is None:
            return repr(self.like) if isinstance(self.like, LogisticNormal) else "a function"
        return f"{self.present} rows"


def _labels(
    rng: np.random.Generator, truth: FloatArray, clusters: IntArray, correlation: float
) -> IntArray:
    """Draw labels (n,) with the probabilities ``truth`` from normals correlated within clusters.

    ``rng`` is the generator, ``truth`` (n, K) are probabilities of the classes, ``clusters`` (n,)
    numbers from 0, and ``correlation`` is the correlation of the normals of two rows of a cluster.
    A label is the interval of cumulative probabilities in which the normal's quantile lies.
    """
    from scipy.special import ndtr

    shared = rng.standard_normal(int(clusters.max()) + 1)[clusters]
    latent = np.sqrt(correlation) * shared
    latent += np.sqrt(1.0 - correlation) * rng.standard_normal(clusters.size)
    above = ndtr(latent)[:, None] >= np.cumsum(truth, axis=1)[:, :-1]
    return above.sum(axis=1)


def _of_tally(tally: AnyTally, labels: object, facts: Facts) -> tuple[LikeTally, Predictions]:
    """Return (sampler, rows): a sampler of a tally's predictions, and weighted rows.

    The sampler is called with (rng, n) and draws predictions (n, 2). The rows are used to fit an
    assumed truth; their weights are numbers of observations. StatisticError for more than two
    classes, for weighted rows, and for ``labels`` or design arguments ``facts``, which a tally
    holds already.
    """
    if tally.n_classes > 2 or tally.weights is not None:
        raise StatisticError("plan takes tallies of two classes, and none of weighted rows")
    problem = problem_of_tally(take_tally("plan", tally, labels, facts, OneVsRest(1)))
    probs, each = problem.quadrature
    up_to = np.cumsum(each)
    like = LikeTally(problem.n, probs[:, ::-1], up_to / up_to[-1])
    rows, times, _ = problem.expand()
    return like, Predictions(rows.probs[:, ::-1], 1 - rows.labels, weights=times)


def _fitted(data: Predictions, n: int) -> tuple[EventProbability, str]:
    """Return (truth, description): a recalibration fitted to the labels as the assumed truth.

    It is Platt scaling for two classes, temperature scaling for more, a function from probabilities
    (n, K) to probabilities (n, K), and its name in words. ``n`` is the number of rows that ``data``
    stand for. StatisticError below 50, or 10 of either label of two.
    """
    each = np.bincount(data.labels, data.weights, data.n_classes)
    if n < LEAST_LEARNT or (data.n_classes == 2 and each.min() < LEAST_RARE):
        raise StatisticError(
            f"{n} rows, {each.min():.0f} of the rarest label, are too few to estimate the true "
            f"probabilities; this takes {LEAST_LEARNT} rows and, for two classes, {LEAST_RARE} of "
            "either label. Name them instead, such as alternative=planning.Slope(0.8)"
        )
    if data.n_classes == 2:
        platt = PlattScaling().fit(data)
        return platt, f"a Platt fit to these rows, by which P(event) is {_mean_shift(platt, data)}"
    scaled = TemperatureScaling().fit(data)
    fitted = f"temperature {getattr(scaled.map, 'temperature', 1.0):.3g}, fitted to these rows"
    meaning = "divides the logits: above 1 if predictions are overconfident"
    return scaled, f"{fitted} ({meaning}), by which confidence is {_mean_shift(scaled, data)}"


def _mean_shift(truth: EventProbability, data: Predictions) -> str:
    """Return the mean distance of assumed true from predicted probabilities, in words.

    It is of the likeliest class for more than two classes, else of label 1.
    """
    top = data.probs.argmax(axis=1) if data.n_classes > 2 else np.ones(len(data.probs), dtype=int)
    rows = np.arange(len(data.probs))
    distance = np.abs(np.asarray(truth(data.probs))[rows, top] - data.probs[rows, top])
    mean = float(np.average(distance, weights=data.weights))
    return f"off by {mean:.2g} on average"
