"""Several models in one diagram, and the difference of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.plots import canvas, marks, scales
from caltest.plots.canvas import BLUE, GREY, INK, RED, Picture
from caltest.results import (
    ComparisonResult,
    ReliabilityCurve,
    ReliabilityDifference,
    format_p,
    short,
)

#: Colour, marker and line of each model; the colours differ in darkness as well.
STYLES: tuple[tuple[str, str, Any], ...] = (
    (INK, "o", "-"),
    (RED, "s", (0, (5, 1.5))),
    ("#5fa2dd", "D", (0, (1, 1))),
    ("#7a5195", "p", (0, (4, 1, 1, 1))),
    ("#c9a227", "h", (0, (7, 3))),
)


def comparison(
    curves: Sequence[ReliabilityCurve],
    ax: Any = None,
    *,
    names: Sequence[str],
    recipe: bool = True,
) -> Picture:
    """Draw the deviations of several models in one diagram, each with its own bars.

    Neighbouring bins are connected; a line never crosses an empty bin. Filled marks lie outside
    their bars; those beyond the frame are as in :func:`reliability`.

    Parameters
    ----------
    curves : sequence of ReliabilityCurve
        Two to five curves of one component each, made with the same lens and bins.
    ax, recipe
        As for every picture; the recipe is that of the first curve.
    names : sequence of str
        What the models are called.

    Returns
    -------
    Picture
        With the artists "marks", "lines", "bars" and "edge", each a list with one item a model.
    """
    if not 2 <= len(curves) <= len(STYLES) or any(len(c.names) > 1 for c in curves):
        raise StatisticError(
            f"a comparison draws 2 to {len(STYLES)} curves of one component each; pick components "
            "with curve.of(j)"
        )
    if len({(c.lens, c.bins) for c in curves}) > 1:
        raise StatisticError("the curves must have the same lens and the same bins")
    if len(names) != len(curves):
        raise StatisticError(f"{len(curves)} curves need as many names, not {len(names)}")
    ax, first = canvas.paper(ax, canvas.COLUMN, 3.0), curves[0]
    top = max(
        marks.reach(c.count, *(v - c.predicted for v in (c.observed, c.low, c.high)))
        for c in curves
    )
    sides = [np.concatenate([getattr(c, end) for c in curves]) for end in ("bin_low", "bin_high")]
    _axes(ax, first, sides[0].min(), sides[1].max(), top, "outcome − prediction")
    spread = 0.009 * (np.arange(len(curves)) - 0.5 * (len(curves) - 1))
    artists: dict[str, Any] = {"marks": [], "lines": [], "bars": [], "edge": []}
    for curve, shift, (color, marker, line) in zip(curves, spread, STYLES, strict=False):
        x, y = curve.predicted, curve.deviation
        low, high = (side - curve.predicted for side in (curve.low, curve.high))
        pale = {"color": color, "linewidth": 0.9, "alpha": 0.55, "zorder": 1.5}
        artists["bars"].append(marks.bars(ax, x + shift, low, high, (-top, top), **pale))
        artists["lines"].append(marks.connected(ax, x, y, curve.cell, color, line))
        look = curve.outside, top
        artists["marks"].append(marks.points(ax, x, y, curve.count, *look, color, marker))
        artists["edge"].append(marks.beyond(ax, x, y, *look, color=color))
    entries = {
        f"{name}: ECE {curve.tests[0].estimate:.3f}, p {canvas.relation(curve.tests[0])}": (
            canvas.sign(marker, color, line=line)
        )
        for name, curve, (color, marker, line) in zip(names, curves, STYLES, strict=False)
    }
    if first.band != "none":
        held = "if calibrated" if first.is_consistency else "for the truth"
        entries[f"{100 * first.level:g} % {held}"] = canvas.sign("|", GREY)
        entries["inside its bar"] = canvas.sign(color=GREY, filled=False)
    far = np.concatenate([np.abs(c.deviation) > top for c in curves])
    entries |= marks.entries(np.concatenate([c.count for c in curves]), far)
    artists["key"] = canvas.key(ax, entries)
    return canvas.finished(ax, artists, first.recipe, recipe)


def _axes(
    ax: Any,
    curve: ReliabilityCurve | ReliabilityDifference,
    least: float,
    most: float,
    top: float,
    ylabel: str,
) -> None:
    """Show all probabilities, of the top class those that occur, and the line of no deviation."""
    of_top = curve.subject == "top"
    ax.set(xlim=scales.tenths(least, most) if of_top else (0.0, 1.0), ylim=(-top, top))
    ax.axhline(0.0, color=GREY, linewidth=0.7, zorder=1)
    canvas.tidy(ax, "confidence" if of_top else "average prediction", ylabel)


def difference(curve: ReliabilityDifference, ax: Any = None, *, recipe: bool = True) -> Picture:
    """Draw the difference of the deviations of two models, with its band.

    Parameters
    ----------
    curve : ReliabilityDifference
        What :func:`caltest.reliability_difference` returned.
    ax, recipe
        As for every picture.

    Returns
    -------
    Picture
        With the artists "marks", "lines", "bars", "edge"; marks are filled where the band leaves
        out 0.
    """
    ax, count = canvas.paper(ax, canvas.COLUMN, 2.6), curve.count_a + curve.count_b
    x, y = curve.predicted, curve.difference
    top = marks.reach(count, y, curve.low, curve.high)
    _axes(ax, curve, x.min(), x.max(), top, "difference of deviations")
    away = (curve.low > 0.0) | (curve.high < 0.0)
    artists = {
        "bars": marks.bars(ax, x, curve.low, curve.high, (-top, top), color=BLUE),
        "lines": marks.connected(ax, x, y, curve.cell, INK),
        "marks": marks.points(ax, x, y, count, away, top),
        "edge": marks.beyond(ax, x, y, away, top),
    }
    entries = {
        "differs from 0": canvas.sign(),
        "may be 0": canvas.sign(filled=False),
        f"{100 * curve.level:g} % interval": canvas.sign("|", BLUE),
    }
    artists["key"] = canvas.key(ax, entries | marks.entries(count, np.abs(y) > top))
    artists["name"] = canvas.heading(ax, " − ".join(curve.names), artists["key"])
    return canvas.finished(ax, artists, curve.recipe, recipe)


def differences(
    results: Sequence[ComparisonResult],
    ax: Any = None,
    *,
    pvalues: Sequence[float] | None = None,
    recipe: bool = True,
) -> Picture:
    """Draw the differences of the calibration error of pairs of models.

    Parameters
    ----------
    results : sequence of ComparisonResult
        One line each: a dot at the difference, its interval, and its p-value. Within the grey span
        differences are smaller than the margin: an interval inside it is a tie.
    ax, recipe
        As for every picture.
    pvalues : sequence of float, optional
        What is printed at the right, by default the p-values of the results.

    Returns
    -------
    Picture
        With the artists "differences", "intervals" and "labels".
    """
    if not results:
        raise StatisticError("there are no comparisons to draw")
    first = results[0]
    ax = canvas.paper(ax, canvas.COLUMN, 1.1 + 0.2 * len(results))
    y = np.arange(len(results))[::-1]
    entries: dict[str, Any] = {"difference": canvas.sign()}
    if first.low is not None:
        entries[f"{100 * first.level:g} % interval"] = canvas.sign("_", BLUE, line="-")
        if first.margin > 0.0:  # errors are squares, and so is the margin
            reach = first.margin**2
            entries["a tie"] = ax.axvspan(-reach, reach, color="#e4e4e4", linewidth=0)
    ax.axvline(0.0, color=GREY, linewidth=0.7)
    ends = [(r.low, r.high) if r.low is not None else (np.nan, np.nan) for r in results]
    low, high = np.array(ends, dtype=np.float64).T
    intervals = ax.hlines(y, low, high, color=BLUE, linewidth=1.3)
    dots = ax.scatter([r.difference for r in results], y, s=16, color=INK, zorder=3)
    ax.set_yticks(y, [" − ".join(r.names) for r in results], parse_math=False)
    ax.set_ylim(-0.6, len(results) - 0.4)
    canvas.tidy(ax, f"difference of {short(first.tested)}")
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=4)
    shown = [r.pvalue for r in results] if pvalues is None else pvalues
    labels = canvas.beside(ax, y, [f"p {canvas.related(format_p(p))}" for p in shown])
    artists = {"differences": dots, "intervals": intervals, "labels": labels}
    artists["key"] = canvas.key(ax, entries)
    return canvas.finished(ax, artists, first.recipe, recipe)
