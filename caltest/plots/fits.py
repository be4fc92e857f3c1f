"""Reliability curves without bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from caltest.checks import one_of
from caltest.plots.canvas import COLUMN, GREY, Picture, foot, headline, paper, tidy
from caltest.plots.scales import (
    Scale,
    histogram,
    label_shares,
    lower_third,
    set_ticks,
    tenths,
    true_curve,
)
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
    """Draw an isotonic or smooth reliability curve with its consistency band.

    Parameters
    ----------
    curve : ReliabilityFit
        What :func:`caltest.reliability_fit` returned.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure, one column (3.25 in) wide.
    style : {"deviation", "classical"}, default "classical"
        Whether the vertical axis is the outcome minus the prediction, or the outcome.
    axis : {"probability", "log-odds"}, default "probability"
        Scale of the probabilities.
    truth : callable, optional
        The true probability given the prediction, where it is known.
    recipe : bool, default True
        Whether to write the recipe at the foot.

    Returns
    -------
    Picture
        With the artists "curve", "band", "diagonal", "histogram" and, where drawn, "truth".
    """
    one_of("style", style, ("deviation", "classical"))
    one_of("axis", axis, ("probability", "log-odds"))
    scale, deviation = Scale(axis == "log-odds"), style == "deviation"
    ax = paper(ax, COLUMN, 2.35 if deviation else 2.9)
    x = scale(curve.predicted)
    shown = np.isfinite(x)
    left, right = (0.0, 1.0) if axis == "probability" else (x[shown].min(), x[shown].max())
    if deviation and axis == "probability":
        left, right = tenths(x.min(), x.max())
    far = right - left + 9.0

    def height(p: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            y = scale(p) - x if deviation else scale(p)
        return np.clip(y, left - far, right + far)[shown]

    artists: dict[str, Any] = {}
    twin = ax.twinx()
    artists["histogram"] = histogram(twin, curve.spread, curve.n, scale)
    lower_third(ax, twin, artists["histogram"])
    label_shares(artists["histogram"])
    line = [0.0, 0.0] if deviation else [left, right]
    (artists["diagonal"],) = ax.plot(
        [left, right], line, linestyle=(0, (4, 2)), color=GREY, linewidth=0.8, zorder=2
    )
    if curve.n_resamples:
        artists["band"] = ax.fill_between(
            x[shown],
            height(curve.low),
            height(curve.high),
            color="#f0b7b0",
            alpha=0.75,
            linewidth=0,
            zorder=1,
        )
    if truth is not None:
        artists["truth"] = true_curve(ax, truth, left, right, scale, deviation)
    (artists["curve"],) = ax.plot(
        x[shown], height(curve.fitted), color="#12406f", linewidth=1.5, zorder=3
    )
    ax.set_xlim(left, right)
    if deviation:
        reach = [np.abs(height(v)) for v in (curve.fitted, curve.low, curve.high)]
        top = 1.1 * float(np.nanmax(np.minimum(np.concatenate(reach), right - left)))
        ax.set_ylim(-top, top)
    else:
        ax.set_ylim(left, right)
        set_ticks(ax.yaxis, scale, left, right)
    set_ticks(ax.xaxis, scale, left, right)
    top_class = curve.lens == "TopK(1)"
    outcome = "accuracy" if top_class else "frequency"
    tidy(
        ax,
        "confidence" if top_class else "prediction",
        "outcome − prediction" if deviation else outcome,
    )
    artists["headline"] = headline(ax, curve.test)
    artists["foot"] = foot(ax, curve.recipe, recipe)
    return Picture(ax, artists, recipe=curve.recipe)
