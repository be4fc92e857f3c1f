"""Null distributions with the estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.nulls import ExactNull, NullDistribution, SimulatedNull
from caltest.plots.canvas import DASHED, INK, PALE, RED, Picture
from caltest.plots.chart import Chart
from caltest.plots.words import headline
from caltest.predictions import FloatArray
from caltest.results import CalibrationTestResult, short

#: Columns of a histogram, and atoms up to which a law is drawn atom by atom.
COLUMNS, ATOMS = 60, 40


def null(result: CalibrationTestResult, ax: Any = None, *, recipe: bool = True) -> Picture:
    """Draw the null distribution with the estimate: how unusual is it?

    Parameters
    ----------
    result : CalibrationTestResult
        With its null distribution, so not one that was read from JSON.
    ax, recipe
        As for every picture.

    Returns
    -------
    Picture
        With the artists "columns", "estimate", "floor" and "key".
    """
    law = result.null_distribution
    if law is None:
        raise StatisticError(
            "this result has no null distribution. JSON does not keep it: run the test again; "
            "OneRowPerCluster() has none"
        )
    chart = Chart.of(ax, 2.4)
    edges, mass = _columns(law, result.estimate)
    middle = 0.5 * (edges[1:] + edges[:-1]) - result.centre
    estimate = result.estimate - result.centre
    extreme = middle >= estimate if not result.two_sided else np.abs(middle) >= abs(estimate)
    extreme |= np.abs(middle - estimate) < 1e-9 * (edges[-1] - edges[0])
    style = {"align": "edge", "edgecolor": "white", "linewidth": 0.2}
    colors = np.where(extreme, RED, PALE)
    columns = chart.ax.bar(edges[:-1], mass, np.diff(edges), color=colors, **style)
    chart.rule("estimate", "observed", x=result.estimate, color=RED, lw=1.4)
    chart.rule("floor", "if calibrated: mean", x=result.null_mean, color=INK, ls=DASHED)
    words = "as far or farther" if extreme.any() else ""
    chart.mark("columns", columns, words, columns[int(np.argmax(extreme))])
    low, high = min(edges[0], result.estimate), max(edges[-1], result.estimate)
    margin = 0.04 * (high - low)
    limits: Any = {"xlim": (low - margin, high + margin), "ylim": (0.0, 1.2 * float(mass.max()))}
    chart.axes(short(result.statistic), "probability", **limits)
    return chart.finish(result.recipe, recipe, headline=headline(result))


def _columns(law: NullDistribution, estimate: float) -> tuple[FloatArray, FloatArray]:
    """Return edges and probabilities of a histogram; the estimate is an edge or a centre."""
    if isinstance(law, SimulatedNull):
        values, mass = law.values, np.full(len(law), 1.0 / len(law))
        low, high, columns = values.min(), values.max(), min(COLUMNS, 10 + len(law) // 20)
    else:
        low, high, columns = law.ppf(1e-4), law.ppf(1.0 - 1e-4), COLUMNS
    if isinstance(law, ExactNull):
        values, mass = law.support, law.tail - np.append(law.tail[1:], 0.0)
        first = np.flatnonzero(np.diff(values, prepend=-np.inf) > 1e-9 * (high - low))
        values, mass = values[first], np.add.reduceat(mass, first)  # ties but for rounding
        likely = mass > 1e-6
        if likely.sum() <= ATOMS:
            return _around(values[likely]), mass[likely]
    step = max((high - low) / columns, 1e-12)
    left = estimate - step * np.ceil((estimate - low) / step)
    edges = left + step * np.arange(np.ceil((high - left) / step + 1e-9) + 1)
    edges -= 1e-9 * step  # what ties with the estimate lies on its right
    if isinstance(law, (SimulatedNull, ExactNull)):
        return edges, np.histogram(values, edges, weights=mass)[0]
    return edges, -np.diff([law.sf(float(edge)) for edge in edges])


def _around(atoms: FloatArray) -> FloatArray:
    """Return edges half-way between equidistant atoms, and beyond the outer ones."""
    if atoms.size == 1:
        return atoms[0] + np.array([-0.5, 0.5])
    middle = 0.5 * (atoms[1:] + atoms[:-1])
    return np.concatenate([[2 * atoms[0] - middle[0]], middle, [2 * atoms[-1] - middle[-1]]])
