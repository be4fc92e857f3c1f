"""Numbers: their null distributions, intervals and limits, and the parts of a score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from caltest.errors import StatisticError
from caltest.nulls import ExactNull, NullDistribution, SimulatedNull
from caltest.plots.canvas import BLUE, DASHED, GREY, INK, PALE, RED, Picture, Style
from caltest.plots.chart import Chart
from caltest.plots.words import headline, sign
from caltest.predictions import FloatArray
from caltest.results import (
    BrierDecomposition,
    CalibrationTestResult,
    ConfidenceIntervalResult,
    CORPDecomposition,
    EquivalenceTestResult,
    GateResult,
    format_value,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The parts of a score with the sign with which they count, in the order of the steps.
PARTS: dict[type, dict[str, int]] = {
    CORPDecomposition: {"uncertainty": 1, "discrimination": -1, "miscalibration": 1},
    BrierDecomposition: {
        **{"uncertainty": 1, "resolution": -1, "reliability": 1},
        **{"within_variance": 1, "within_covariance": -1},
    },
}


def limits(
    result: GateResult | EquivalenceTestResult, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw errors with their bounds, one a line, and what they are to lie below."""
    if isinstance(result, GateResult):
        rows = [(c.question, c.corrected, c.low, c.high, c.limit) for c in result.checks]
    else:
        bound = result.smallest_tolerance
        rows = [(short(result.statistic), result.estimate, 0.0, bound, result.tolerance)]
    names, *columns = zip(*rows, strict=True)
    estimate, low, high, limit = (np.array(column) for column in columns)
    chart = Chart.of(ax, 1.4 + 0.3 * len(rows))
    y = chart.rows(names)
    chart.dots("estimate", estimate, y, "estimate", s=22)
    chart.spans("bounds", y, low, high, "bounds", lw=1.5)
    ends = chart.ax.vlines(limit, y - 0.35, y + 0.35, color=GREY, linestyle=DASHED)
    chart.mark("limit", ends, "limit", sign("|", GREY))
    chart.rule("", x=0.0, color=INK, lw=0.6)
    chart.axes("error", ticks=5)
    return chart.finish(result.recipe, recipe)


def interval(
    result: ConfidenceIntervalResult, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw an estimate, its interval (an arrow where it is open) and the noise floor."""
    chart = Chart.of(ax, 1.5)
    low = None if result.side == "upper" else result.low
    high = None if result.side == "lower" else result.high
    ends = [v for v in (low, high) if v is not None]
    values = np.array([0.0, result.estimate, result.null_mean, *ends])
    margin = 0.06 * max(float(np.ptp(values)), 1e-9)
    left, right = values.min() - margin, values.max() + margin
    chart.dots("estimate", [result.estimate], [0.0], "estimate", s=28)
    side = "interval" if result.side == "two-sided" else f"{result.side} bound"
    span = left if low is None else low, right if high is None else high
    chart.spans("interval", 0.0, *span, f"{100 * result.level:.4g} % {side}", lw=1.5)
    for bound, edge, head in ((low, left, "<"), (high, right, ">")):
        at, marker = (edge, head) if bound is None else (bound, "|")
        chart.line("", at, 0.0, color=BLUE, marker=marker, ms=7.0).set_clip_on(False)
    chart.rule("floor", "mean if calibrated", x=result.null_mean, ls=DASHED, lw=1.0)
    chart.axes(short(result.statistic), xlim=(left, right), ylim=(-1.0, 1.0), ticks=6)
    chart.ax.set_yticks([])
    chart.ax.spines["left"].set_visible(False)
    return chart.finish(result.recipe, recipe, shift=0.0)


def decomposition(
    parts: CORPDecomposition | BrierDecomposition, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw the parts of a mean score as steps from 0 to it."""
    signs = PARTS[type(parts)]
    steps = np.array([s * vars(parts)[name] for name, s in signs.items()])
    heights, levels = np.append(steps, parts.mean_score), np.cumsum(steps)
    begin = np.append(levels - steps, 0.0)
    chart = Chart.of(ax, 1.3 + 0.2 * heights.size)
    words = [f"{'+' if s > 0 else '−'} {n.replace('_', ' ')}" for n, s in signs.items()]
    y = chart.rows([*words, "= mean score"])
    colors = [PALE] * steps.size + [INK]
    bars = chart.ax.barh(y, heights, 0.6, left=begin, color=colors, edgecolor=INK, linewidth=0.6)
    chart.mark("bars", bars, "added", bars[int(np.argmax(steps >= 0.0))])
    for j in np.flatnonzero(heights < 0.0):
        bars[j].set_hatch("////")
        chart.entries.setdefault("taken off", bars[j])
    chart.rule("", x=0.0, color=INK, lw=0.6)
    chart.ax.vlines(levels, y[1:] - 0.3, y[:-1] + 0.3, color=GREY, linewidth=0.6, zorder=0)
    ends = 1.06 * np.append(begin, begin + heights)
    chart.axes("score", xlim=(ends.min(), ends.max()), ticks=5)
    values = [vars(parts)[name] for name in (*signs, "mean_score")]
    chart.beside(y, [format_value(value) for value in values])  # signed as the table has them
    return chart.finish(parts.recipe, recipe)


#: Columns of a histogram, and atoms up to which a law is drawn atom by atom.
COLUMNS, ATOMS = 60, 40


def null(result: CalibrationTestResult, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw the null distribution, which JSON does not keep, with the estimate: how unusual is it?

    The artists are "columns", "estimate", "floor" and "key".
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
    style = Style(align="edge", edgecolor="white", linewidth=0.2)
    colors = np.where(extreme, RED, PALE)
    columns = chart.ax.bar(edges[:-1], mass, np.diff(edges), color=colors, **style)
    chart.rule("estimate", "observed", x=result.estimate, color=RED, lw=1.4)
    chart.rule("floor", "if calibrated: mean", x=result.null_mean, color=INK, ls=DASHED)
    words = "as far or farther" if extreme.any() else ""
    chart.mark("columns", columns, words, columns[int(np.argmax(extreme))])
    low, high = min(edges[0], result.estimate), max(edges[-1], result.estimate)
    margin = 0.04 * (high - low)
    ends = low - margin, high + margin
    most = 1.2 * float(mass.max())
    chart.axes(short(result.statistic), "probability", xlim=ends, ylim=(0.0, most))
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
