"""The verb that says how many rows are needed."""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import ceil
from typing import Any, Literal, Unpack

import numpy as np

from caltest._base.arrays import RNG, Source, Values
from caltest._base.checks import fraction, number, one_of, whole
from caltest._base.written import name_of
from caltest.errors import StatisticError
from caltest.inference.analysis import seed_of
from caltest.lens_choice import as_lens
from caltest.lenses import Lens, LensLike
from caltest.planning.population import Population, Truth
from caltest.planning.search import Answer, Task, formula
from caltest.predictions import Facts, Predictions
from caltest.results.decisions import FORMULAS, Plan
from caltest.sequential import Monitor
from caltest.statistics import ECE, CalibrationInTheLarge, StatisticLike

#: Intervals whose length is known.
Formula = Literal["O:E", "intercept", "slope"]


def plan(
    like: Source,
    labels: Values = None,
    statistic: StatisticLike | Monitor | Formula = ECE(),
    *,
    lens: LensLike | None = None,
    alternative: Truth | None = None,
    against: Values = None,
    width: float | None = None,
    tolerance: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    n_datasets: int = 400,
    rng: RNG = None,
    **facts: Unpack[Facts],
) -> Plan:
    """Say how many rows are needed: to find a fault, to bound an error, to show that it is small.

    What is planned follows from what is given: a test; with ``width`` an interval; with
    ``tolerance`` a test of equivalence; with ``against`` a comparison; with a :class:`Monitor` as
    the statistic the rows until its alarm. Where there is no formula, rows like those given are
    drawn, labels from what is true of them, and the verb is called.

    Parameters
    ----------
    like : array_like, Predictions, Tally or callable
        Predictions like those to come, drawn with replacement; a :class:`Tally` of the event of two
        classes; or a function ``(rng, n) -> probs``: ``planning.LogisticNormal(0.1, 0.75)``.
    labels, statistic, lens, tolerance, rng, **facts
        As in :func:`equivalence_test`; weights and subgroups are refused. ``clusters`` are drawn
        whole, with the dependence of the labels given, and multiply formulas by their design
        effect. "O:E", "intercept" (given slope 1) and "slope" stand for intervals of known length.
    alternative : callable, optional
        From predicted to true probabilities, (n, K) both, such as ``planning.Slope(0.8)`` or a
        fitted recalibration; by default what the labels ask for (Platt scaling, temperature scaling
        for several classes), and without labels the model is calibrated.
    against : array_like or Predictions, optional
        A second model's predictions of the same rows, which are true (through ``alternative``, if
        there is one): how many rows show that the first is worse?
    width : float, optional
        The length that intervals of level 1 − ``alpha`` shall have, on average.
    power, alpha : float, default 0.8, 0.05
        Share of data sets that shall find what is there, and level of the test; a monitor has its
        own.
    n_datasets : int, default 400
        Data sets that are simulated, at least; for a width about half as many.

    Raises
    ------
    StatisticError
        When two things are planned at once, nothing is wrong that a test could find, the error that
        is assumed exceeds the tolerance, fewer than 50 rows, or 10 of either label of two, shall
        say what is wrong, or two million do not do.

    Notes
    -----
    By formula, with p the predictions, q what is true and z = logit p: n = (1 − φ) / (φ SE²) for
    log O:E, φ = E q; n = 1 / (a SE²) for the intercept and a / ((a c − b²) SE²) for the slope,
    a, b, c = E q (1 − q) z^{0, 1, 2} (Riley et al., Statistics in Medicine 40, 2021); and
    ((u √E p(1 − p) + v √(E q(1 − q) + Var(q − p))) / E(q − p))² for the test
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
    generator = np.random.default_rng(rng)
    first, _ = population.draw(generator, 2)
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
        present=population.present, n_classes=first.n_classes, seed=seed_of(rng), notes=notes,
        **vars(answer),
    )  # fmt: skip


def _answered(task: Task, by_formula: bool) -> tuple[Answer, tuple[str, ...]]:
    """Return the rows needed, by the design effect of clusters more, and a note on these."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single data sets
        answer = formula(task) if by_formula else task.search()
    if not task.population.clustered:
        return answer, ()
    effect = task.population.dependence[0]
    if not by_formula:
        note = f"whole clusters are drawn, with the design effect {effect:.2f} of those given"
        return answer, (note,)
    rows = {name: ceil(effect * vars(answer)[name]) for name in ("n", "low", "high")}
    note = f"rows as if independent, times {effect:.2f}, the design effect of clusters"
    return replace(answer, **rows), (note,)


def _purpose(statistic: object, width: object, tolerance: object, against: object) -> str:
    """Return what is planned, and refuse two things at once."""
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
    """Return the statistic, the lens that it looks through, and its name."""
    if not isinstance(statistic, Monitor):
        named = statistic if isinstance(statistic, str) else name_of(statistic)
        return statistic, as_lens(lens, data), named
    if statistic.n:
        raise StatisticError("the rows until an alarm are planned for a monitor without rows")
    through = as_lens(statistic.lens if lens is None else lens, data)
    return replace(statistic, lens=through), through, f"Monitor(alpha={statistic.alpha:g})"
