"""Which picture belongs to which result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caltest import results
from caltest.errors import StatisticError
from caltest.plots.canvas import Picture
from caltest.plots.comparison import difference, differences
from caltest.plots.decisions import limits, planned
from caltest.plots.evidence import evidence
from caltest.plots.fits import fitted
from caltest.plots.forest import forest, grades, sites
from caltest.plots.laws import null, pvalues, sensitivity
from caltest.plots.numbers import cox, decomposition, interval
from caltest.plots.reliability import reliability
from caltest.plots.simplex import simplex
from caltest.sequential import ComparisonMonitor, Monitor

PICTURES: dict[type[results.Record], Callable[..., Picture]] = {
    results.AuditReport: lambda report, ax, **options: pvalues(
        [row.adjusted for row in report.rows],
        [row.lens for row in report.rows],
        ax,
        alpha=report.alpha,
        findings=[row.verdict for row in report.rows],
        **{"xlabel": "adjusted p-value", "text": report.recipe, **options},
    ),
    results.BinSensitivity: sensitivity,
    results.CalibrationTestResult: null,
    results.ComparisonResult: lambda result, ax, **options: differences([result], ax, **options),
    results.ComparisonTable: lambda table, ax, **options: differences(
        table.pairs, ax, pvalues=table.adjusted, **options
    ),
    results.ConfidenceIntervalResult: interval,
    results.CORPDecomposition: decomposition,
    results.BrierDecomposition: decomposition,
    results.CoxRecalibration: cox,
    results.EquivalenceTestResult: limits,
    results.GateResult: limits,
    results.GradeTests: grades,
    results.JointTestResult: lambda result, ax, **options: pvalues(
        result.adjusted,
        [f"{results.short(t.statistic)} · {t.lens}" for t in result.tests],
        ax,
        **{"xlabel": "adjusted p-value", "text": result.recipe, **options},
    ),
    results.MetaAnalysis: sites,
    results.Plan: planned,
    results.ReliabilityCurve: reliability,
    results.ReliabilityDifference: difference,
    results.ReliabilityFit: fitted,
    results.ReliabilitySimplex: simplex,
    results.Subgroups: forest,
    Monitor: evidence,
    ComparisonMonitor: evidence,
}


def draw(result: results.Record, ax: Any = None, **options: Any) -> Picture:
    """Draw a result: what its ``.plot()`` does.

    Tests are drawn by :func:`null`, joint tests and audits by :func:`pvalues`, subgroups by
    :func:`forest`, sites by :func:`sites`, grades by :func:`grades`, comparisons by
    :func:`differences`, monitors by :func:`evidence`, what :mod:`caltest.reliability` returns by
    :func:`reliability`, :func:`fitted`, :func:`difference`, :func:`sensitivity` and
    :func:`simplex`; intervals, decompositions, Cox's recalibration, gates and plans have pictures
    of their own.

    Parameters
    ----------
    result : Result
        What a verb returned.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure, one column (3.25 in) wide.
    **options
        Those of the function that draws it.

    Raises
    ------
    StatisticError
        When there is no picture of such a result.
    """
    picture = PICTURES.get(type(result))
    if picture is None:
        drawn = ", ".join(kind.__name__ for kind in PICTURES)
        raise StatisticError(
            f"there is no picture of a {type(result).__name__}: print it. "
            f"There are pictures of {drawn}"
        )
    return picture(result, ax, **options)
