"""Reliability curves without bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from caltest._base.checks import one_of
from caltest.plots import canvas, scales
from caltest.plots.canvas import DASHED, GREY, Picture
from caltest.plots.scales import Scale
from caltest.predictions import FloatArray
from caltest.results import ReliabilityFit


def fitted(
    curve: ReliabilityFit,
    ax: Any = None,
    *,
    style: Literal["deviation", "classical"] = "classical",
    axis: Literal["probability", "log-odds"] = "probability",
    truth: Callable[[FloatArray], FloatArray] | None = None,
    recipe: bool = True,
) -> Picture:
    """Draw an isotonic or smooth reliability curve with its band.

    Parameters
    ----------
    curve : ReliabilityFit
        What :func:`caltest.reliability_fit` returned.
    ax, recipe
        As for every picture.
    style : {"deviation", "classical"}, default "classical"
        Whether the vertical axis is the outcome minus the prediction, or the outcome.
    axis : {"probability", "log-odds"}, default "probability"
        Scale of the probabilities.
    truth : callable, optional
        The true probability given the prediction, where it is known.

    Returns
    -------
    Picture
        With the artists "curve", "band", "diagonal", "histogram", "key" and, where drawn, "truth".
    """
    one_of("style", style, ("deviation", "classical"))
    one_of("axis", axis, ("probability", "log-odds"))
    scale, deviation = Scale(axis == "log-odds"), style == "deviation"
    top_class = curve.subject == "top"
    ax = canvas.paper(ax, canvas.COLUMN, 2.7 if deviation else 3.2)
    shown = np.isfinite(x := scale(curve.predicted))
    left, right = _ends(x[shown], scale, deviation and top_class)
    far = right - left + 9.0

    def height(p: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            y = scale(p) - x if deviation else scale(p)
        return np.clip(y, left - far, right + far)[shown]

    twin, artists = ax.twinx(), dict[str, Any]()
    artists["histogram"] = scales.histogram(twin, curve.spread, curve.n, scale)
    tallest = max(column.get_height() for column in artists["histogram"])
    scales.behind(ax, twin, tallest)
    line = [0.0, 0.0] if deviation else [left, right]
    dashed = {"marker": "", "linestyle": DASHED, "color": GREY, "linewidth": 0.8, "zorder": 2}
    (artists["diagonal"],) = ax.plot([left, right], line, **dashed)
    solid = {"linestyle": "-", "marker": "", "color": "#12406f", "linewidth": 1.5, "zorder": 3}
    (artists["curve"],) = ax.plot(x[shown], height(curve.fitted), **solid)
    honest = curve.band == "confidence"
    entries = {f"{'isotonic' if honest else curve.fit} curve": artists["curve"]}
    if curve.band != "none":
        band = {"color": "#f0b7b0", "alpha": 0.75, "linewidth": 0, "zorder": 1}
        ends = height(curve.low), height(curve.high)
        artists["band"] = ax.fill_between(x[shown], *ends, **band)
        held = "band of the true curve" if honest else "if calibrated"
        entries[f"{100 * curve.level:g} % {held}"] = artists["band"]
    entries["outcome = prediction"] = artists["diagonal"]
    if truth is not None:
        artists["truth"] = scales.true_curve(ax, truth, left, right, scale, deviation)
        entries["truth"] = artists["truth"]
    entries[f"share of rows, ≤ {100 * tallest:.3g} %"] = artists["histogram"]
    ax.set_xlim(left, right)
    if deviation:
        reach = [np.abs(height(v)) for v in (curve.fitted, curve.low, curve.high)]
        top = 1.1 * float(np.nanmax(np.minimum(np.concatenate(reach), right - left)))
        ax.set_ylim(-top, top)
    else:
        ax.set_ylim(left, right)
        scales.set_ticks(ax.yaxis, scale, left, right)
    scales.set_ticks(ax.xaxis, scale, left, right)
    outcome = "accuracy" if top_class else "frequency"
    said = "outcome − prediction" if deviation else outcome
    canvas.tidy(ax, "confidence" if top_class else "prediction", said)
    artists["key"] = canvas.key(ax, entries)
    if curve.test is not None:
        artists["headline"] = canvas.headline(ax, curve.test, artists["key"])
    return canvas.finished(ax, artists, curve.recipe, recipe)


def _ends(x: FloatArray, scale: Scale, short: bool) -> tuple[float, float]:
    if scale.log_odds:
        return x.min(), x.max()
    return scales.tenths(x.min(), x.max()) if short else (0.0, 1.0)
