"""Curves: reliability without bins, Cox's, numbers of bins, plans, and evidence over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from caltest._base.facts import as_dates
from caltest.errors import StatisticError
from caltest.plots import scales
from caltest.plots.canvas import BLUE, DASHED, GREY, INK, RED, Picture
from caltest.plots.chart import Chart
from caltest.plots.scales import Frame, Truth, decades
from caltest.plots.words import headline
from caltest.predictions import FloatArray
from caltest.results import BinSensitivity, CoxRecalibration, Plan, ReliabilityFit
from caltest.results.numbers import SMALLEST_SHOWN, in_percent
from caltest.sequential import ComparisonMonitor, Monitor

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def fitted(
    curve: ReliabilityFit, ax: Axes | None = None, *,
    style: Literal["deviation", "classical"] = "classical",
    axis: Literal["probability", "log-odds"] = "probability", truth: Truth | None = None,
    recipe: bool = True,
) -> Picture:  # fmt: skip
    """Draw an isotonic or smooth reliability curve with its band.

    Options are those of :func:`caltest.plots.reliability`. The artists are "curve", "band",
    "diagonal", "histogram", "key" and, where drawn, "truth".
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


def cox(result: CoxRecalibration, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw the frequency that Cox's recalibration gives to every prediction, with its band."""
    chart, p = Chart.of(ax, 3.2), np.linspace(0.0, 1.0, 401)[1:-1]
    frequency, low, high = result.curve(p)
    words = f"fitted: intercept {result.intercept:.2f}, slope {result.slope:.2f}"
    chart.line("curve", p, frequency, words.replace("-", "−"), lw=1.3, zorder=3)
    chart.area("band", p, low, high, f"{100 * result.level:g} % band at each prediction")
    chart.diagonal([0, 1])
    chart.axes("prediction", "frequency", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    return chart.finish(result.recipe, recipe)


def sensitivity(table: BinSensitivity, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw the ECE, its noise floor and its p-value against the number of bins.

    The artists are "estimate", "floor", "band" and "pvalue", which lies on a second panel in the
    upper part of the place, ``picture.panels[0]``.
    """
    chart, order = Chart.of(ax, 3.1), np.argsort(table.size, kind="stable")
    upper, x = chart.above(0.33), table.size[order]
    chart.line("estimate", x, table.estimate[order], "observed", color=RED, marker="o", lw=1.1)
    chart.line("floor", x, table.null_mean[order], "if calibrated: mean", ls=DASHED, lw=1.5)
    words = f"central {100 * table.level:g} %"
    chart.area("band", x, table.low[order], table.high[order], words, color="#d9d9d9")
    sizes = [m * 10**k for k in range(7) for m in (1, 2, 5) if x[0] <= m * 10**k <= x[-1]]
    chart.log("x", sizes or x[:1].tolist())
    chart.axes("number of bins", "ECE", ylim=(0.0, None))
    p = np.maximum(table.pvalue[order], SMALLEST_SHOWN)
    pvalue = upper.line("", x, p, marker="o", ms=2.5)
    upper.rule("", y=0.05, lw=0.7, ls=DASHED)
    upper.beside([0.05], ["0.05"])
    least = 10.0 ** np.floor(np.log10(min(p.min(), 0.01)) - 0.2)
    upper.log("y", decades(least))
    upper.axes("", "p", ylim=(least, 1.6))
    upper.ax.tick_params(labelbottom=False, which="both", bottom=False)
    panels = (Picture(upper.ax, {"pvalue": pvalue}),)
    return chart.finish(table.recipe, recipe, panels=panels)


def planned(result: Plan, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw what was reached with how many rows, what was wanted, and the rows that are needed."""
    chart, power = Chart.of(ax, 2.2), result.width is None
    goal = result.power if power else result.width
    x, y = np.array(result.points or [(result.n, goal)], dtype=float).T
    chart.dots("points", x, y, "simulated" if result.points else "by formula", s=14)
    chart.rule("goal", "wanted", y=float(goal or 0.0), ls=DASHED)
    chart.rule("n", f"{result.n} rows", x=result.n, color=BLUE, lw=0.9)
    ends = result.low, max(result.high, result.low + 1e-9)
    chart.mark("error", chart.ax.axvspan(*ends, color=BLUE, alpha=0.15))
    ticks = np.unique([min(x.min(), result.low), result.n, max(x.max(), result.high)])
    chart.log("x", ticks, [f"{t:.0f}" for t in ticks])
    chart.axes("rows", "power" if power else "length", ylim=(0.0, 1.05 if power else None))
    return chart.finish(result.recipe, recipe)


def evidence(
    monitor: Monitor | ComparisonMonitor, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw e-values against rows, on a logarithmic scale, and where the alarm rings.

    Where rows have times, these are the axis. The monitor must have seen rows. The artists are
    "alarm" and "threshold", and "evidence" and "leader" (beside it, what the bet says that has
    earned most), or "a", "b" and, below, "difference" and "band".
    """
    if monitor.n == 0:
        raise StatisticError(
            "the monitor has seen no rows: update() returns one that has, m = m.update(…)"
        )
    alone = isinstance(monitor, Monitor)
    chart = Chart.of(ax, 2.4 if alone else 3.5)
    upper = chart if alone else chart.above(0.5)
    threshold = monitor.alarm_at / np.log(10.0)
    words = f"alarm at an e-value of {10.0**threshold:.4g}"
    upper.rule("threshold", words, y=threshold, color=INK, ls=DASHED)
    if isinstance(monitor, Monitor):
        _evidence_against(chart, monitor)
    else:
        _evidence_between(chart, upper, monitor)
    if monitor.alarm is not None:
        at: Any = monitor.alarm  # or a date, which matplotlib takes as well
        if monitor.times is not None and monitor.alarm_time is not None:
            at = as_dates(monitor.alarm_time) if monitor.dates else monitor.alarm_time
        upper.rule("alarm", f"alarm {monitor.alarm_words}", x=at, color=RED, ls=":", lw=1.2)
    if monitor.times is not None and monitor.dates:
        chart.by_date()
    low, high = upper.ax.get_ylim()
    room_above = 0.06 * (max(high, threshold) - low)
    upper.ax.set_ylim(low, max(high, threshold + room_above))
    low, high = np.ceil(low), np.floor(upper.ax.get_ylim()[1])  # powers of ten
    powers = np.arange(low, high + 1.0, max(1.0, np.ceil((high - low) / 5.0)))
    texts = [f"{10.0**k:g}" if abs(k) < 4 else f"1e{k:.0f}" for k in powers]
    upper.ax.set_yticks(powers, texts)
    leader = monitor.leader if isinstance(monitor, Monitor) else ""
    return chart.finish(monitor.recipe, recipe, headline=leader)


def _evidence_against(chart: Chart, monitor: Monitor) -> None:
    """Draw the evidence against one model, and what the best bet expects beside it."""
    rows, logs = _along(monitor), monitor.history[:, 1] / np.log(10.0)
    logs = np.minimum(logs, np.max(logs, initial=0.0, where=np.isfinite(logs)) + 1.0)
    one = "o" if rows.size == 1 else ""  # a line of one point is invisible
    chart.line("evidence", rows, logs, color=BLUE, lw=1.2, marker=one, ms=6.0)
    inset = Chart(chart.ax.inset_axes((1.03, 0.62, 0.22, 0.38)), chart.artists, chart.entries)
    p = np.linspace(0.001, 0.999, 400)
    inset.line("", [0, 1], [0, 1], color=GREY, ls=DASHED)
    words = "frequencies that the best bet expects"
    inset.line("leader", p, monitor.best_curve(p), words, color=RED, lw=1.0)
    inset.ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1), aspect="equal")
    chart.axes(_unit(monitor), "e-value", ylim=(max(logs.min(), -6.0) - 0.2, None))


def _along(monitor: Monitor | ComparisonMonitor) -> FloatArray:
    """Return the times of the history, or else its rows."""
    return monitor.history[:, 0] if monitor.times is None else monitor.times


def _unit(monitor: Monitor | ComparisonMonitor) -> str:
    if monitor.times is None:
        return "rows"
    return "" if monitor.dates else "time"


def _evidence_between(chart: Chart, upper: Chart, monitor: ComparisonMonitor) -> None:
    """Draw the evidence for either forecaster, and below the difference of their scores."""
    rows, (a, b, low, high) = _along(monitor), monitor.history[:, 1:5].T
    upper.line("a", rows, a / np.log(10.0), "a is better", color=BLUE, lw=1.2)
    upper.line("b", rows, b / np.log(10.0), "b is better", color=RED, lw=1.2, ls=(0, (5, 1.5)))
    upper.ax.tick_params(labelbottom=False)
    upper.axes("", "e-value")
    chart.area("band", rows, low, high, f"{100.0 * (1.0 - monitor.alpha):g} % band")
    chart.line("difference", rows, 0.5 * (low + high), lw=1.5)
    chart.rule("")
    reach = 1.5 * np.abs(monitor.history[len(rows) // 4 :, 3:]).max()
    chart.axes(_unit(monitor), f"{monitor.score} score, a − b", ylim=(-reach, reach))
