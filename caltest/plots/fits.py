"""Reliability curves without bins."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from caltest.plots import scales
from caltest.plots.canvas import Picture
from caltest.plots.chart import Chart
from caltest.plots.scales import Frame, Truth
from caltest.plots.words import headline
from caltest.results import ReliabilityFit
from caltest.results.numbers import in_percent


def fitted(
    curve: ReliabilityFit,
    ax: Any = None,
    *,
    style: Literal["deviation", "classical"] = "classical",
    axis: Literal["probability", "log-odds"] = "probability",
    truth: Truth | None = None,
    recipe: bool = True,
) -> Picture:
    """Draw an isotonic or smooth reliability curve with its band.

    Parameters
    ----------
    style : {"deviation", "classical"}, default "classical"
        Whether the vertical axis is the outcome minus the prediction, or the outcome.
    axis, truth
        As in :func:`caltest.plots.reliability`.

    Returns
    -------
    Picture
        With the artists "curve", "band", "diagonal", "histogram", "key" and, where drawn, "truth".
    """
    scale, deviation = scales.chosen(style, axis)
    chart, top = Chart.of(ax, 2.7 if deviation else 3.2), curve.subject == "top"
    x = scale(curve.predicted)
    finite = np.isfinite(x)
    left, right = 0.0, 1.0
    if scale.log_odds:
        left, right = x[finite].min(), x[finite].max()
    elif deviation and top:
        left, right = scales.tenths(x[finite].min(), x[finite].max())
    frame, far = Frame((left, right), (left, right), scale, deviation), right - left + 9.0
    heights, low, high = (
        np.clip(frame.height(v, curve.predicted), left - far, right + far)[finite]
        for v in (curve.fitted, curve.low, curve.high)
    )
    if deviation:
        most = 1.1 * float(np.nanmax(np.minimum(np.abs([heights, low, high]), right - left)))
        frame = Frame((left, right), (-most, most), scale)
    shares = scales.histogram(curve.spread, curve.n, scale)
    tallest = float(shares[-1].max())
    columns = scales.columns(scales.behind(chart.ax, tallest), *shares)
    confidence = curve.band == "confidence"
    words = f"{'isotonic' if curve.fit == 'band' else curve.fit} curve"
    chart.line("curve", x[finite], heights, words, color="#12406f", lw=1.5, zorder=3)
    if curve.band != "none":
        meaning = "band of the true curve" if confidence else "if calibrated"
        meaning += "" if curve.simultaneous or not confidence else ", each point"
        words = f"{100 * curve.level:g} % {meaning}"
        chart.area("band", x[finite], low, high, words, color="#f0b7b0", alpha=0.75)
    chart.diagonal(frame.x, [0.0, 0.0] if deviation else None)
    frame.begin(chart, truth)
    chart.mark("histogram", columns, f"rows (tallest column {in_percent(tallest)})")
    chart.axes("confidence" if top else "prediction", frame.labels(curve.subject)[1])
    words = "" if curve.test is None else headline(curve.test)
    return chart.finish(curve.recipe, recipe, headline=words)
