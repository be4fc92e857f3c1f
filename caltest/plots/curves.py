"""Curves: reliability without bins, Cox's, numbers of bins, plans, and evidence over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from caltest._base.checks import one_of
from caltest.plots import scales
from caltest.plots.canvas import BLUE, DASHED, GREY, INK, RED, Picture
from caltest.plots.chart import Chart
from caltest.plots.scales import Scale, decades
from caltest.plots.words import headline
from caltest.predictions import FloatArray
from caltest.results import BinSensitivity, CoxRecalibration, Plan, ReliabilityFit
from caltest.results.base import SMALLEST_SHOWN
from caltest.sequential import ComparisonMonitor, Monitor


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
    scale, deviation, top = Scale(axis == "log-odds"), style == "deviation", curve.subject == "top"
    chart = Chart.of(ax, 2.7 if deviation else 3.2)
    finite = np.isfinite(x := scale(curve.predicted))
    left, right = 0.0, 1.0
    if scale.log_odds:
        left, right = x[finite].min(), x[finite].max()
    elif deviation and top:
        left, right = scales.tenths(x[finite].min(), x[finite].max())
    far = right - left + 9.0

    def height(p: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            y = scale(p) - x if deviation else scale(p)
        return np.clip(y, left - far, right + far)[finite]

    shares = scales.histogram(curve.spread, curve.n, scale)
    tallest = float(shares[-1].max())
    columns = scales.columns(scales.behind(chart.ax, tallest), *shares)
    confidence = curve.band == "confidence"
    words = f"{'isotonic' if confidence else curve.fit} curve"
    heights = height(curve.fitted)
    chart.line("curve", x[finite], heights, words, color="#12406f", width=1.5, z=3)
    if curve.band != "none":
        meaning = "band of the true curve" if confidence else "if calibrated"
        band = height(curve.low), height(curve.high), f"{100 * curve.level:g} % {meaning}"
        chart.area("band", x[finite], *band, color="#f0b7b0", alpha=0.75)
    line = [0.0, 0.0] if deviation else [left, right]
    words = "outcome = prediction"
    chart.line("diagonal", [left, right], line, words, color=GREY, dash=DASHED)
    if truth is not None:
        scales.true_curve(chart, truth, left, right, scale, deviation)
    chart.mark("histogram", columns, f"share of rows, ≤ {100 * tallest:.3g} %")
    chart.ax.set(xlim=(left, right), ylim=(left, right))
    scales.set_ticks(chart.ax.xaxis, scale, left, right)
    if deviation:
        reach = [np.abs(height(v)) for v in (curve.fitted, curve.low, curve.high)]
        most = 1.1 * float(np.nanmax(np.minimum(np.concatenate(reach), right - left)))
        chart.ax.set_ylim(-most, most)
    else:
        scales.set_ticks(chart.ax.yaxis, scale, left, right)
    outcome = "outcome − prediction" if deviation else "accuracy" if top else "frequency"
    chart.axes("confidence" if top else "prediction", outcome)
    heading = "" if curve.test is None else headline(curve.test)
    return chart.finish(curve.recipe, recipe, headline=heading)


def cox(result: CoxRecalibration, ax: Any = None, *, recipe: bool = True) -> Picture:
    """Draw the frequency that Cox's recalibration gives to every prediction, with its band."""
    chart, p = Chart.of(ax, 3.2), np.linspace(0.0, 1.0, 401)[1:-1]
    frequency, low, high = result.curve(p)
    words = f"fitted: intercept {result.intercept:.2f}, slope {result.slope:.2f}"
    chart.line("curve", p, frequency, words.replace("-", "−"), width=1.3, z=3)
    chart.area("band", p, low, high, f"{100 * result.level:g} % band at each prediction")
    chart.diagonal([0, 1])
    chart.axes("prediction", "frequency", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    return chart.finish(result.recipe, recipe)


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
    chart, order = Chart.of(ax, 3.1), np.argsort(table.size, kind="stable")
    upper, x = chart.above(0.33), table.size[order]
    line: Any = {"color": RED, "marker": "o", "width": 1.1}
    chart.line("estimate", x, table.estimate[order], "observed", **line)
    mean = table.null_mean[order]
    chart.line("floor", x, mean, "if calibrated: mean", dash=DASHED, width=1.5)
    words = f"central {100 * table.level:g} %"
    chart.area("band", x, table.low[order], table.high[order], words, color="#d9d9d9")
    sizes = [m * 10**k for k in range(7) for m in (1, 2, 5) if x[0] <= m * 10**k <= x[-1]] or x[:1]
    chart.log("x", sizes)
    chart.axes("number of bins", "ECE", ylim=(0.0, None))
    p = np.maximum(table.pvalue[order], SMALLEST_SHOWN)
    pvalue = upper.line("", x, p, marker="o", size=2.5)
    upper.rule("", y=0.05, width=0.7, dash=DASHED)
    upper.beside([0.05], ["0.05"])
    least = 10.0 ** np.floor(np.log10(min(p.min(), 0.01)) - 0.2)
    upper.log("y", decades(least))
    upper.axes("", "p", ylim=(least, 1.6))
    upper.ax.tick_params(labelbottom=False, which="both", bottom=False)
    panels = (Picture(upper.ax, {"pvalue": pvalue}),)
    return chart.finish(table.recipe, recipe, panels=panels)


def planned(result: Plan, ax: Any = None, *, recipe: bool = True) -> Picture:
    """Draw what was reached with how many rows, what was wanted, and the rows that are needed."""
    chart = Chart.of(ax, 2.2)
    goal = result.power if result.width is None else result.width
    x, y = np.array(result.points or [(result.n, goal)], dtype=float).T
    chart.dots("points", x, y, "simulated" if result.points else "by formula", size=14)
    chart.rule("goal", "wanted", y=float(goal or 0.0), dash=DASHED)
    chart.rule("n", f"{result.n} rows", x=result.n, color=BLUE, width=0.9)
    ends = result.low, max(result.high, result.low + 1e-9)
    chart.mark("error", chart.ax.axvspan(*ends, color=BLUE, alpha=0.15))
    ticks = np.unique([min(x.min(), result.low), result.n, max(x.max(), result.high)])
    chart.log("x", ticks, [f"{t:.0f}" for t in ticks])
    power = result.width is None
    chart.axes("rows", "power" if power else "length", ylim=(0.0, 1.05 if power else None))
    return chart.finish(result.recipe, recipe)


def evidence(
    monitor: Monitor | ComparisonMonitor, ax: Any = None, *, recipe: bool = True
) -> Picture:
    """Draw evidence against rows, on a logarithmic scale, and where the alarm rings.

    Parameters
    ----------
    monitor : Monitor or ComparisonMonitor
        One that has seen rows.
    ax, recipe
        As for every picture.

    Returns
    -------
    Picture
        With the artists "alarm" and "threshold", and "evidence" and "leader" (in an inset, what the
        expert says that has earned most), or "a", "b" and, below, "difference" and "band".
    """
    alone = isinstance(monitor, Monitor)
    chart = Chart.of(ax, 2.4 if alone else 3.5)
    upper = chart if alone else chart.above(0.5)
    limit = monitor.alarm_at / np.log(10.0)
    upper.rule("threshold", "threshold", y=limit, color=INK, dash=DASHED)
    draw: Any = _evidence_against if alone else _evidence_between
    draw(chart, upper, monitor)
    if monitor.alarm is not None:
        upper.rule("alarm", "alarm", x=monitor.alarm, color=RED, dash=":", width=1.2)
    heading = monitor.leader if isinstance(monitor, Monitor) else ""
    return chart.finish(monitor.recipe, recipe, headline=heading)


def _evidence_against(chart: Chart, upper: Chart, monitor: Monitor) -> None:
    """Draw the evidence against one model, and the leading expert's curve in an inset."""
    rows, logs = monitor.history[:, 0], monitor.history[:, 1] / np.log(10.0)
    logs = np.minimum(logs, np.max(logs, initial=0.0, where=np.isfinite(logs)) + 1.0)
    one = "o" if rows.size == 1 else ""  # a line of one point is invisible
    chart.line("evidence", rows, logs, color=BLUE, width=1.2, marker=one, size=6.0)
    inset = Chart(chart.ax.inset_axes((0.06, 0.66, 0.24, 0.3)), chart.artists, chart.entries)
    p = np.linspace(0.001, 0.999, 400)
    inset.line("", [0, 1], [0, 1], color=GREY, dash=DASHED)
    inset.line("leader", p, monitor.best_curve(p), "leading expert", color=RED, width=1.0)
    inset.ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1), aspect="equal")
    chart.axes("rows", "log10 evidence", ylim=(max(logs.min(), -6.0) - 0.2, None))


def _evidence_between(chart: Chart, upper: Chart, monitor: ComparisonMonitor) -> None:
    """Draw the evidence for either forecaster, and below the difference of their scores."""
    history = monitor.history
    rows, a, b = history[:, 0], history[:, 1] / np.log(10.0), history[:, 2] / np.log(10.0)
    low, high = history[:, 3], history[:, 4]
    upper.line("a", rows, a, "a is better", color=BLUE, width=1.2)
    upper.line("b", rows, b, "b is better", color=RED, width=1.2, dash=(0, (5, 1.5)))
    upper.ax.tick_params(labelbottom=False)
    upper.axes("", "log10 evidence")
    words = f"{100.0 * (1.0 - monitor.alpha):g} % band"
    chart.area("band", rows, low, high, words)
    chart.line("difference", rows, 0.5 * (low + high), width=1.5)
    chart.rule("", y=0.0)
    reach = 1.5 * np.abs(history[len(rows) // 4 :, 3:]).max()
    chart.axes("rows", f"{monitor.score} score, a − b", ylim=(-reach, reach))
