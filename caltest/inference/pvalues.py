"""Which null distribution answers, how it comes about, and the arithmetic of p-values."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from caltest import simulate as draws
from caltest._base.arrays import RNG, reaching
from caltest._base.poisson_binomial import clopper_pearson
from caltest._base.written import name_of
from caltest.errors import LimitLawWarning, SparseBinsWarning, StatisticError
from caltest.exact import MAX_CELLS, MAX_ENUMERATION, cell_null, enumerated_null, n_label_vectors
from caltest.inference.analysis import Analysis
from caltest.inference.dependence import clustered
from caltest.nulls import ExactNull, NullDistribution, SimulatedNull
from caltest.predictions import Predictions
from caltest.problem import RowProblem
from caltest.results import CalibrationTestResult, ClusterSummary, HorizonSummary, ending
from caltest.simulate import (
    Batches,
    Reaching,
    RedrawLabels,
    Run,
    Scheme,
    Workers,
    simulate,
    simulate_by,
)
from caltest.statistics import Prepared, StatisticLike
from caltest.statistics.base import prepare

#: Rows per occupied cell below which consistency resampling is not to be trusted.
MIN_ROWS_PER_CELL = 20
VALID = "null=RedrawLabels(), which is valid at every sample size"

Null = Literal["auto", "exact", "asymptotic", "betting"] | Scheme


def null_distribution(
    statistic: StatisticLike, prepared: Prepared, estimate: float, null: Null, run: Run,
    stop_early: bool = False,
) -> NullDistribution:  # fmt: skip
    """Return the law that was asked for; the parameters are those of ``calibration_test``."""
    stop_when = None
    if stop_early:
        two_sided, centre = prepared.two_sided, prepared.centre
        stop_when = partial(reaching, estimate, two_sided=two_sided, centre=centre)
    if (only := prepared.problem.only_null) is not None:
        scheme = _refuse_other(only, only if null == "auto" else null)
        return replicates_of(statistic, prepared, scheme, run, stop_when=stop_when)
    betting = null == "betting" and prepared.data.horizon is not None
    if prepared.data.n_clusters is not None and not betting:
        return _of_clusters(statistic, prepared, estimate, null, run, stop_when)
    data, laws = prepared.data, prepared.laws
    words = ("auto", "exact", *laws)
    if not (null in words if isinstance(null, str) else isinstance(null, Scheme)):
        raise StatisticError(
            f"the null of {name_of(statistic)} is one of {', '.join(map(repr, words))}, "
            f"RedrawLabels() or ConsistencyResampling(), not {null!r}"
        )
    if isinstance(null, Scheme) and not null.calibrated:
        raise StatisticError(
            f"{null!r} cannot be a null: its data sets are as miscalibrated as the observed one. "
            "Use null=RedrawLabels(); resampled rows are for confidence_interval"
        )
    if isinstance(null, str) and null in laws:
        if null == "asymptotic" and (doubt := prepared.limit_caveat()) is not None:
            warnings.warn(
                f"the limit law of {name_of(statistic)} does not hold in such data: {doubt}. "
                f"Use {VALID}",
                LimitLawWarning,
                stacklevel=4,
            )
        return laws[null](data.labels)
    if isinstance(null, str):
        # Asked for, an exact law may take long; by itself only where it is cheaper than draws
        most = (data.n, MAX_ENUMERATION) if null == "exact" else (MAX_CELLS, run["n_resamples"])
        # Cells first: exact for any n. Enumeration is for what is no function of cells.
        law = prepared.cell_law() if data.n_classes == 2 else None
        if law is not None and len(law.cells) <= most[0]:
            return cell_null(law, estimate)
        if prepared.problem.exact and n_label_vectors(data.probs) <= most[1]:
            return enumerated_null(prepared, data.probs)
        if null == "exact":
            raise StatisticError(
                f"there is no exact null for {name_of(statistic)} with {data.n} rows of "
                f"{data.n_classes} classes: it needs a two-class lens and a binned statistic, "
                "or very few rows. Use null=RedrawLabels(), which is valid always",
                [("--null", "RedrawLabels()")],
            )
        null = RedrawLabels()
    rows = prepared.rows_per_cell if isinstance(null, draws.ConsistencyResampling) else None
    if rows is not None and rows < MIN_ROWS_PER_CELL:
        warnings.warn(
            f"only {rows:.1f} rows per occupied cell: consistency resampling rejects "
            f"calibrated models too often below 20 (up to always at 1). Use {VALID}, or fewer bins",
            SparseBinsWarning,
            stacklevel=4,
        )
    return replicates_of(statistic, prepared, null, run, stop_when=stop_when)


def _of_clusters(
    statistic: StatisticLike, prepared: Prepared, estimate: float, null: Null, run: Run,
    stop_when: Reaching | None,
) -> SimulatedNull:  # fmt: skip
    schemes, summary = clustered(null, prepared.data, stack=6)
    kappa = max(each.inflation for each in schemes)
    if isinstance(summary, ClusterSummary) and kappa > 1.0 and not prepared.inflatable:
        if isinstance(null, str):
            raise StatisticError(
                f"{name_of(statistic)} sees labels, to which the dependence that drawn clusters "
                f"leave out (κ = {kappa:.2f}) cannot be applied. Take a statistic of residuals, "
                "such as ECE, CoxScore or Kuiper"
                f"{', or null=OneRowPerCluster()' * (prepared.data.crossed is None)}"
            )
        # Asked for by name it runs all the same, and the result says that κ was left out.
        schemes = tuple(each._replace(inflation=1.0) for each in schemes)
        summary = replace(summary, inflation_applied=False)
    laws = [
        replicates_of(
            statistic, prepared, each.scheme, run,
            factor=each.inflation, stop_when=stop_when,
        )
        for each in schemes
    ]  # fmt: skip
    # The share of draws at least as extreme, as in the p-value below
    share = partial(reaching, estimate, two_sided=prepared.two_sided, centre=prepared.centre)
    # Which kind of dependence clusters have is not known: the less favourable one counts.
    largest = max(laws, key=lambda law: float(share(law.values).mean()))
    ended = ending(*(law.ended for law in laws))
    return replace(largest, ended=largest.ended if ended == "complete" else ended, clusters=summary)


def _refuse_other(only: Scheme, null: Null) -> Scheme:
    """Return the only null that data have; StatisticError for another."""
    if null != only:
        raise StatisticError(f"such data have the null {only!r} and not {null!r}: leave it out")
    return only


def replicates_of(
    statistic: StatisticLike, prepared: Prepared, scheme: Scheme, run: Run, *, factor: float = 1.0,
    stop_when: Reaching | None = None,
) -> SimulatedNull:  # fmt: skip
    """Evaluate a prepared statistic on the draws of a scheme, the fastest way there is."""
    data = prepared.data
    if (only := prepared.problem.only_null) is not None:
        _refuse_other(only, scheme)
    if data.n_clusters is not None and not scheme.takes_clusters:
        raise StatisticError(f"{scheme!r} does not take clusters yet")
    if isinstance(scheme, draws.RowScheme):
        if not prepared.problem.exact:
            raise StatisticError(f"{scheme!r} draws rows, which a tally does not have")
        fused = prepared.row_resamples(scheme)
        if fused is None:
            evaluate = lambda sample: prepare(statistic, sample).observed  # noqa: E731
            values = simulate(evaluate, scheme.sampler(data), **run, stop_when=stop_when)
        else:
            values = simulate_by(fused, **run, stop_when=stop_when)
        return SimulatedNull(*values)
    redraws, at_once = prepared.redraws(scheme, factor), prepared.replicates_at_once
    if isinstance(redraws, Batches) and stop_when is None:
        at_once = max(at_once, redraws.labels_at_once // data.n if at_once > draws.BLOCK else 0)
    return SimulatedNull(*simulate_by(redraws, **run, stop_when=stop_when, at_once=at_once))


def replicate(
    data: Predictions,
    statistic: StatisticLike,
    scheme: Scheme,
    *,
    n_resamples: int,
    rng: RNG = None,
    workers: Workers = 1,
) -> SimulatedNull:
    """Evaluate a statistic on drawn data: the engine behind every verb.

    Parameters
    ----------
    data : Predictions
        The observed data, seen through the lens.
    scheme : RedrawLabels, ConsistencyResampling, Bootstrap or another Scheme
        Where the data sets come from.
    statistic, n_resamples, rng, workers
        As in :func:`calibration_test`; Ctrl-C may make replicates fewer. Numbers do not depend on
        ``workers``, and the first replicates of a longer run are those of a shorter one.

    Raises
    ------
    StatisticError
        When a replicate is not a finite number, or the scheme is none.
    """
    if not isinstance(scheme, Scheme):
        raise StatisticError(
            f"{scheme!r} is no way to draw data: use RedrawLabels(), ConsistencyResampling(), "
            "Bootstrap(), or a subclass of LabelScheme or RowScheme"
        )
    if not isinstance(data, Predictions):
        raise StatisticError("data must be Predictions: pass Predictions.of(probs, labels)")
    prepared = prepare(statistic, RowProblem.of(data.in_ratios()))
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    return replicates_of(statistic, prepared, scheme, run)


def result_of(
    analysis: Analysis, prepared: Prepared, statistic: StatisticLike, null: str, estimate: float,
    law: NullDistribution,
) -> CalibrationTestResult:  # fmt: skip
    """Compare a value with its law: here is the arithmetic of p-values."""
    n_draws, error, ended = 0, 0.0, "complete"
    two_sided, centre = prepared.two_sided, prepared.centre
    if isinstance(law, SimulatedNull):
        n_draws, ended = len(law), law.ended
        exceeding = int(reaching(estimate, law.values, two_sided, centre).sum())
        # The observed data are one of B + 1 exchangeable draws, so that p is never 0.
        pvalue = (1 + exceeding) / (1 + n_draws)
        if ended == "early":
            # Besag & Clifford (1991): h / (draws until the h-th) is valid without the + 1.
            exceeding = draws.EXCEEDING
            pvalue = exceeding / n_draws
        error = float(np.sqrt(pvalue * (1.0 - pvalue) / n_draws))
        bracket = clopper_pearson(exceeding, n_draws)
    elif isinstance(law, ExactNull):
        bracket = law.bracket(estimate, two_sided, centre)
        # The upper end of the bracket errs on the safe side.
        pvalue = max(bracket[1], np.finfo(float).tiny)
    else:  # a limit law; only symmetric ones are used on both sides
        beyond = centre + abs(estimate - centre)
        sides = 2.0 * law.sf(beyond) if two_sided else law.sf(estimate)
        pvalue = max(min(1.0, sides), np.finfo(float).tiny)
        bracket = (float(pvalue), float(pvalue))
    dependence = law.clusters if isinstance(law, SimulatedNull) else None
    clusters = dependence if isinstance(dependence, ClusterSummary) else None
    series = {"series": dependence} if isinstance(dependence, HorizonSummary) else {}
    return analysis.result(
        CalibrationTestResult, statistic, prepared=prepared,
        notes=() if clusters is None else clusters.notes, null=null, two_sided=two_sided,
        centre=centre, estimate=estimate, pvalue=float(pvalue), pvalue_bracket=bracket,
        pvalue_error=error, null_mean=law.mean(), null_std=law.std(), n_resamples=n_draws,
        impossible=prepared.data.impossible.size, ended=ended, clusters=clusters,
        null_distribution=law, **series,
    )  # fmt: skip
