"""Several models in one diagram, and the difference of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.plots import marks, scales
from caltest.plots.canvas import BLUE, GREY, INK, RED, Picture
from caltest.plots.chart import Chart
from caltest.plots.words import p_equals, sign
from caltest.results import ReliabilityCurve, ReliabilityDifference

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
    chart, first = Chart.of(ax, 3.0), curves[0]
    top = max(
        marks.reach(c.count, *(v - c.predicted for v in (c.observed, c.low, c.high)))
        for c in curves
    )
    ends = [np.concatenate([getattr(c, end) for c in curves]) for end in ("bin_low", "bin_high")]
    _axes(chart, first, ends[0].min(), ends[1].max(), top, "outcome − prediction")
    spread = 0.009 * (np.arange(len(curves)) - 0.5 * (len(curves) - 1))
    artists = chart.artists
    artists |= {"marks": [], "lines": [], "bars": [], "edge": []}
    for name, curve, shift, style in zip(names, curves, spread, STYLES, strict=False):
        (color, marker, line), test = style, curve.tests[0]
        x, y = curve.predicted, curve.deviation
        low, high = (side - curve.predicted for side in (curve.low, curve.high))
        pale = {"color": color, "linewidth": 0.9, "alpha": 0.55, "zorder": 1.5}
        artists["bars"].append(marks.bars(chart.ax, x + shift, low, high, (-top, top), **pale))
        artists["lines"].append(marks.connected(chart.ax, x, y, curve.cell, color, line))
        look = curve.outside, top
        artists["marks"].append(marks.points(chart.ax, x, y, curve.count, *look, color, marker))
        artists["edge"].append(marks.beyond(chart.ax, x, y, *look, color=color))
        words = f"{name}: ECE {test.estimate:.3f}, {p_equals(test.shown_p)}"
        chart.entries[words] = sign(marker, color, line=line)
    if first.band != "none":
        meaning = "if calibrated" if first.is_consistency else "for the truth"
        chart.entries[f"{100 * first.level:g} % {meaning}"] = sign("|", GREY)
        chart.entries["inside its bar"] = sign(color=GREY, filled=False)
    far = np.concatenate([np.abs(c.deviation) > top for c in curves])
    chart.entries |= marks.entries(np.concatenate([c.count for c in curves]), far)
    return chart.finish(first.recipe, recipe)


def _axes(
    chart: Chart,
    curve: ReliabilityCurve | ReliabilityDifference,
    least: float,
    most: float,
    top: float,
    ylabel: str,
) -> None:
    """Show all probabilities, of the top class those that occur, and the line of no deviation."""
    of_top = curve.subject == "top"
    chart.rule("", y=0.0, width=0.7, z=1)
    limits: Any = {
        "xlim": scales.tenths(least, most) if of_top else (0.0, 1.0),
        "ylim": (-top, top),
    }
    chart.axes("confidence" if of_top else "average prediction", ylabel, **limits)


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
    chart, count = Chart.of(ax, 2.6), curve.count_a + curve.count_b
    x, y, low, high = curve.predicted, curve.difference, curve.low, curve.high
    top, away = marks.reach(count, y, low, high), (low > 0.0) | (high < 0.0)
    _axes(chart, curve, x.min(), x.max(), top, "difference of deviations")
    chart.mark("bars", marks.bars(chart.ax, x, low, high, (-top, top), color=BLUE))
    chart.mark("lines", marks.connected(chart.ax, x, y, curve.cell, INK))
    points = marks.points(chart.ax, x, y, count, away, top)
    chart.mark("marks", points, "differs from 0", sign())
    chart.entries["may be 0"] = sign(filled=False)
    chart.entries[f"{100 * curve.level:g} % interval"] = sign("|", BLUE)
    chart.mark("edge", marks.beyond(chart.ax, x, y, away, top))
    chart.entries |= marks.entries(count, np.abs(y) > top)
    return chart.finish(curve.recipe, recipe, headline=" − ".join(curve.names))
