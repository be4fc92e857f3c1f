"""Several models in one diagram, and the difference of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.plots import canvas
from caltest.plots.canvas import BLUE, GREY, INK, RED, Picture
from caltest.predictions import FloatArray, IntArray
from caltest.results import (
    ComparisonResult,
    ReliabilityCurve,
    ReliabilityDifference,
    format_p,
    short,
)

#: Colour and marker of each model; they differ in darkness as well.
STYLES = ((INK, "o"), (RED, "s"), ("#5fa2dd", "^"), ("#7a5195", "D"), ("#c9a227", "v"))


def comparison(
    curves: Sequence[ReliabilityCurve],
    ax: Any = None,
    *,
    names: Sequence[str] | None = None,
    recipe: bool = True,
) -> Picture:
    """Draw the deviations of several models in one diagram, each with its own bars.

    Neighbouring bins are connected; a line never crosses an empty bin. Filled markers lie outside
    their consistency bars.

    Parameters
    ----------
    curves : sequence of ReliabilityCurve
        Two to five curves of one component each, made with the same lens and bins.
    ax, recipe
        As for every picture; the recipe is that of the first curve.
    names : sequence of str, optional
        What the models are called, by default "model 1", "model 2", …

    Returns
    -------
    Picture
        With the artists "markers", "lines" and "bars", each a list with one item a model.
    """
    if not 2 <= len(curves) <= len(STYLES) or any(len(c.names) > 1 for c in curves):
        raise StatisticError(
            f"a comparison draws 2 to {len(STYLES)} curves of one component each; pick components "
            "with curve.of(j)"
        )
    if len({(c.lens, c.bins) for c in curves}) > 1:
        raise StatisticError("the curves must have the same lens and the same bins")
    names = [f"model {j + 1}" for j in range(len(curves))] if names is None else names
    ax = canvas.paper(ax, canvas.COLUMN, 2.5)
    ax.axhline(0.0, color=GREY, linewidth=0.7, zorder=1)
    spread = 0.009 * (np.arange(len(curves)) - 0.5 * (len(curves) - 1))
    artists: dict[str, Any] = {"markers": [], "lines": [], "bars": []}
    for curve, shift, (color, marker) in zip(curves, spread, STYLES, strict=False):
        x, y = curve.predicted, curve.deviation
        drawn = ~np.isnan(curve.low)
        low, high = (side - curve.predicted for side in (curve.low, curve.high))
        ends = x[drawn] + shift, low[drawn], high[drawn]
        artists["bars"].append(ax.vlines(*ends, color=color, linewidth=0.9, alpha=0.55))
        artists["lines"].append(_connected(ax, x, y, curve.cell, color))
        artists["markers"].append(_points(ax, x, y, curve.outside, color, 13, marker))
    many = [curve.count >= 5 for curve in curves]
    sides = [np.abs(c.deviation) for c in curves]
    sides += [
        np.abs(s - c.predicted)[m]
        for c, m in zip(curves, many, strict=True)
        for s in (c.low, c.high)
    ]
    top = 1.12 * float(np.nanmax(np.concatenate([*sides, [0.01]])))
    ax.set_ylim(-top, top)
    canvas.tidy(ax, _probability(curves[0]), "outcome − prediction")
    labels = [
        f"{name}: ECE {curve.tests[0].estimate:.3f}, p {canvas.relation(curve.tests[0])}"
        for name, curve in zip(names, curves, strict=True)
    ]
    # above the axes, where it hides nothing
    place: dict[str, Any] = {
        "loc": "lower left",
        "bbox_to_anchor": (-0.02, 1.0),
        "borderaxespad": 0.0,
    }
    handles = [_key(*style) for style in STYLES[: len(labels)]]
    artists["legend"] = canvas.legend(ax, handles, labels, handlelength=2.0, **place)
    return canvas.finished(ax, artists, curves[0].recipe, recipe)


def _key(color: str, marker: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=color, marker=marker, markersize=3.5, linewidth=0.8)


def _probability(curve: ReliabilityCurve | ReliabilityDifference) -> str:
    return "confidence" if curve.subject == "top" else "average prediction"


def _points(
    ax: Any, x: FloatArray, y: FloatArray, filled: Any, color: str, size: float, marker: str = "o"
) -> Any:
    """Draw markers, some of them filled."""
    faces = np.where(filled, color, "white")
    style = {"edgecolors": color, "linewidths": 0.9, "zorder": 4}
    return ax.scatter(x, y, s=size, marker=marker, facecolors=faces, **style)


def _connected(ax: Any, x: FloatArray, y: FloatArray, cell: IntArray, color: str) -> Any:
    """Draw lines between bins that are neighbours."""
    from matplotlib.collections import LineCollection

    pairs = np.flatnonzero(np.abs(np.diff(cell)) == 1)
    segments = [[(x[j], y[j]), (x[j + 1], y[j + 1])] for j in pairs]
    return ax.add_collection(LineCollection(segments, colors=color, linewidths=0.8, zorder=2))


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
        With the artists "markers", "lines", "bars"; markers are filled where the band leaves out 0.
    """
    ax = canvas.paper(ax, canvas.COLUMN, 2.2)
    ax.axhline(0.0, color=GREY, linewidth=0.7, zorder=1)
    x, y = curve.predicted, curve.difference
    bars = ax.vlines(x, curve.low, curve.high, color=BLUE, linewidth=1.1)
    for ends in (curve.low, curve.high):
        ax.plot(x, ends, "_", color=BLUE, markersize=5.0, markeredgewidth=1.0)
    away = (curve.low > 0.0) | (curve.high < 0.0)
    markers = _points(ax, x, y, away, INK, 15)
    artists = {"markers": markers, "bars": bars, "lines": _connected(ax, x, y, curve.cell, INK)}
    canvas.tidy(ax, _probability(curve), "difference of deviations")
    artists["name"] = canvas.corner(ax, "model a − model b, filled where it differs from 0")
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
    ax = canvas.paper(ax, canvas.COLUMN, 0.8 + 0.2 * len(results))
    y = np.arange(len(results))[::-1]
    if first.margin > 0.0 and first.low is not None:  # errors are squares, and so is the margin
        ax.axvspan(-(first.margin**2), first.margin**2, color="#e4e4e4", linewidth=0)
    ax.axvline(0.0, color=GREY, linewidth=0.7)
    ends = [(r.low, r.high) if r.low is not None else (np.nan, np.nan) for r in results]
    low, high = np.array(ends, dtype=np.float64).T
    intervals = ax.hlines(y, low, high, color=BLUE, linewidth=1.3)
    dots = ax.scatter([r.difference for r in results], y, s=16, color=INK, zorder=3)
    ax.set_yticks(y, [" − ".join(r.names) for r in results])
    ax.set_ylim(-0.6, len(results) - 0.4)
    canvas.tidy(ax, f"difference of {short(first.tested)}", size=canvas.HEAD + 0.5)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=4)
    shown = [r.pvalue for r in results] if pvalues is None else pvalues
    labels = canvas.beside(ax, y, [format_p(p) for p in shown])
    artists = {"differences": dots, "intervals": intervals, "labels": labels}
    return canvas.finished(ax, artists, first.recipe, recipe)
