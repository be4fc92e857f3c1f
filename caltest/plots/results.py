"""Pictures of results that are lists of others."""

from __future__ import annotations

from typing import Any

from caltest.plots.canvas import Picture
from caltest.plots.tables import differences, pvalues
from caltest.results import (
    AuditReport,
    ComparisonResult,
    ComparisonTable,
    JointTestResult,
    Record,
    short,
)


def audit(report: AuditReport, ax: Any = None, **options: Any) -> Picture:
    """Draw the adjusted p-values of an audit."""
    words = {"xlabel": "adjusted p-value", "text": report.recipe, "alpha": report.alpha}
    words["findings"] = [row.verdict for row in report.rows]
    adjusted = [row.adjusted for row in report.rows]
    return pvalues(adjusted, [row.lens for row in report.rows], ax, **{**words, **options})


def joint(result: JointTestResult, ax: Any = None, **options: Any) -> Picture:
    """Draw the adjusted p-values of tests."""
    words = {"xlabel": "adjusted p-value", "text": result.recipe}
    names = [f"{short(test.statistic)} · {test.lens}" for test in result.tests]
    return pvalues(result.adjusted, names, ax, **{**words, **options})


def pair(result: ComparisonResult, ax: Any = None, **options: Any) -> Picture:
    """Draw the difference of two models."""
    return differences([result], ax, **options)


def pairs(table: ComparisonTable, ax: Any = None, **options: Any) -> Picture:
    """Draw the differences of all pairs."""
    return differences(table.pairs, ax, pvalues=table.adjusted, **options)


def draw(result: Record, ax: Any = None, **options: Any) -> Picture:
    """Draw a result: the same as its ``plot``.

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
    picture: Picture = result.plot(ax, **options)
    return picture
