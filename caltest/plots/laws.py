"""Null distributions, p-values of several questions, and what the number of bins does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.nulls import ExactNull, NullDistribution, SimulatedNull
from caltest.plots import canvas
from caltest.plots.canvas import DASHED, GREY, INK, PALE, RED, Picture
from caltest.predictions import FloatArray
from caltest.results import BinSensitivity, CalibrationTestResult, Finding, format_p, short
from caltest.results.base import SMALLEST_SHOWN

#: Columns of a histogram, and atoms up to which a law is drawn atom by atom.
COLUMNS, ATOMS = 60, 40
#: The name and the sign of every finding; they differ in shape, not only in colour.
FOUND: dict[Finding, tuple[str, dict[str, Any]]] = {
    Finding.MISCALIBRATED: ("rejected", {"marker": "s", "color": RED}),
    Finding.IMPOSSIBLE_OUTCOME: ("impossible outcome", {"marker": "X", "color": RED}),
    Finding.NO_EVIDENCE: ("not rejected", {"marker": "o", "filled": False}),
    Finding.TOO_LITTLE_DATA: ("too little data", {"marker": "x"}),
}


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
    ax = canvas.paper(ax, canvas.COLUMN, 2.4)
    edges, mass = _columns(law, result.estimate)
    middle = 0.5 * (edges[1:] + edges[:-1])
    middle, estimate = middle - result.centre, result.estimate - result.centre
    loud = middle >= estimate if not result.two_sided else np.abs(middle) >= abs(estimate)
    loud |= np.abs(middle - estimate) < 1e-9 * (edges[-1] - edges[0])
    style = {"align": "edge", "edgecolor": "white", "linewidth": 0.2}
    colors = np.where(loud, RED, PALE)
    columns = ax.bar(edges[:-1], mass, np.diff(edges), color=colors, **style)
    top = 1.2 * float(mass.max())
    floor = ax.axvline(result.null_mean, color=INK, linestyle=DASHED, linewidth=0.8)
    estimate = ax.axvline(result.estimate, color=RED, linewidth=1.4)
    low, high = min(edges[0], result.estimate), max(edges[-1], result.estimate)
    margin = 0.04 * (high - low)
    ax.set(xlim=(low - margin, high + margin), ylim=(0.0, top))
    canvas.tidy(ax, short(result.statistic), "probability")
    entries = {"observed": estimate, "if calibrated: mean": floor}
    extreme = np.flatnonzero(loud)
    if extreme.size:
        entries["as far or farther"] = columns[int(extreme[0])]
    artists = {"columns": columns, "estimate": estimate, "floor": floor}
    artists["key"] = canvas.key(ax, entries)
    artists["headline"] = canvas.headline(ax, result, artists["key"])
    return canvas.finished(ax, artists, result.recipe, recipe)


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


def sensitivity(table: BinSensitivity, ax: Any = None, *, recipe: bool = True) -> Picture:
    """Draw estimate, noise floor and p-value over the number of bins.

    Parameters
    ----------
    table : BinSensitivity
        What :func:`caltest.bin_sensitivity` returned.
    ax, recipe
        As for every picture; a second panel for the p-values takes the upper part of the place.

    Returns
    -------
    Picture
        With the artists "estimate", "floor", "band" and "pvalue"; the second panel is
        ``picture.panels[0]``.
    """
    ax = canvas.paper(ax, canvas.COLUMN, 3.1)
    top = canvas.above(ax, 0.33)
    order = np.argsort(table.size, kind="stable")
    x = table.size[order]
    band = ax.fill_between(x, table.low[order], table.high[order], color="#d9d9d9", linewidth=0)
    (floor,) = ax.plot(x, table.null_mean[order], linestyle=DASHED, marker="", color=INK)
    (estimate,) = ax.plot(x, table.estimate[order], "o-", color=RED, markersize=3, linewidth=1.1)
    ax.set_xscale("log")
    ax.set_ylim(0.0, None)
    canvas.tidy(ax, "number of bins", "ECE")
    sizes = [m * 10**k for k in range(7) for m in (1, 2, 5) if x[0] <= m * 10**k <= x[-1]] or x[:1]
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
    ax.minorticks_off()
    entries = {"observed": estimate, "if calibrated: mean": floor}
    said = canvas.key(top, entries | {f"central {100 * table.level:g} %": band})
    p = np.maximum(table.pvalue[order], SMALLEST_SHOWN)
    (pvalue,) = top.plot(x, p, "o-", color=INK, markersize=2.5, linewidth=0.8)
    top.axhline(0.05, color=GREY, linewidth=0.7, linestyle=DASHED)
    canvas.beside(top, [0.05], ["0.05"])
    top.set_yscale("log")
    least = 10.0 ** np.floor(np.log10(min(p.min(), 0.01)) - 0.2)
    top.set_ylim(least, 1.6)
    ticks = _decades(least)
    top.set_yticks(ticks, [f"{t:g}" for t in ticks])
    top.minorticks_off()
    canvas.tidy(top, "", "p")
    top.tick_params(labelbottom=False, which="both", bottom=False)
    artists = {"estimate": estimate, "floor": floor, "band": band, "key": said}
    return canvas.finished(ax, artists, table.recipe, recipe, (Picture(top, {"pvalue": pvalue}),))


def pvalues(
    values: Sequence[float],
    names: Sequence[str],
    ax: Any = None,
    *,
    alpha: float = 0.05,
    findings: Sequence[Finding] = (),
    xlabel: str = "p-value",
    text: str = "",
    recipe: bool = True,
) -> Picture:
    """Draw the p-values of several questions on a logarithmic axis, and where rejection begins.

    What is drawn, what is printed at the right and what decides are the same number. Rejected
    questions have bold names and filled squares, or filled crosses where an impossible outcome
    decides; others are open circles, or thin crosses where there is too little data to tell.

    Parameters
    ----------
    values : sequence of float
        One line each; adjusted for their number, where they are read together.
    names : sequence of str
        What the lines are called.
    ax, recipe
        As for every picture.
    alpha : float, default 0.05
        Values up to this are rejections.
    findings : sequence of Finding, optional
        What was found; by default p-values up to ``alpha`` are rejections.
    xlabel, text : str, optional
        What the values are, and the recipe.

    Returns
    -------
    Picture
        With the artists "values", a list with one item a line, "alpha", "labels" and "key".
    """
    if not len(values):
        raise StatisticError("there are no tests to draw")
    ax = canvas.paper(ax, canvas.COLUMN, 1.4 + 0.2 * len(values))
    y = np.arange(len(values))[::-1]
    x = np.maximum(values, SMALLEST_SHOWN)
    level = ax.axvline(alpha, linestyle=DASHED, color=INK, linewidth=0.8)
    entries: dict[str, Any] = {f"level {alpha:g}": level}
    ax.set_yticks(y, names, parse_math=False)
    found = findings or [Finding.MISCALIBRATED if p <= alpha else Finding.NO_EVIDENCE for p in x]
    drawn = []
    for label, finding, *at in zip(ax.get_yticklabels(), found, x, y, strict=True):
        word, style = FOUND[finding]
        entries[word], mark = canvas.sign(**style), canvas.sign(**style)
        mark.set(data=[[v] for v in at], zorder=3)
        drawn.append(ax.add_line(mark))
        label.set_fontweight("bold" if finding.rejects else "normal")
    least = float(min(x.min(), alpha))
    ax.set(xscale="log", xlim=(least / 4.0, 2.0), ylim=(-0.6, len(y) - 0.4))
    ticks = _decades(least)
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    canvas.tidy(ax, xlabel)
    ax.tick_params(axis="y", length=0)
    labels = canvas.beside(ax, y, [f"p {canvas.related(format_p(p))}" for p in values])
    artists = {"values": drawn, "alpha": level, "labels": labels, "key": canvas.key(ax, entries)}
    return canvas.finished(ax, artists, text, recipe)


def _decades(least: float) -> FloatArray:
    """Return at most four powers of ten from 1 down to about a p-value."""
    exponent = int(np.floor(-np.log10(least)))
    return np.power(10.0, -np.arange(0, exponent + 1, max(1, -(-exponent // 3))))
