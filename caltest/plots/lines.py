"""Pictures of curves, of null distributions, intervals and limits.

Each function takes a result and is called by its ``plot`` method: fitted curves, evidence over
time, sample sizes, decision curves, null distributions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from caltest._base import FloatArray
from caltest.data.facts import as_dates
from caltest.errors import StatisticError
from caltest.monitoring import ComparisonMonitor, Monitor
from caltest.nulls.laws import ExactNull, SimulatedNull
from caltest.plots import chart as scales
from caltest.plots.chart import (
    BLUE,
    DASHED,
    GREY,
    INK,
    PALE,
    RED,
    Chart,
    Frame,
    Picture,
    Style,
    Truth,
    decades,
    headline,
)
from caltest.results import (
    BinSensitivity,
    BrierDecomposition,
    CalibrationTestResult,
    ConfidenceIntervalResult,
    CORPDecomposition,
    CoxRecalibration,
    EquivalenceTestResult,
    GateResult,
    GateVerdict,
    Plan,
    ReliabilityFit,
    format_value,
    short,
)
from caltest.results.aspects import RevisionTest
from caltest.results.decisions import DecisionCurve
from caltest.results.hypotheses import NullDistribution
from caltest.results.rendering import SMALLEST_SHOWN, in_percent
from caltest.results.sketches import axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def fitted(
    curve: ReliabilityFit, ax: Axes | None = None, *,
    style: Literal["deviation", "classical"] = "classical",
    axis: Literal["probability", "log-odds"] = "probability", truth: Truth | None = None,
    recipe: bool = True,
) -> Picture:  # fmt: skip
    """Draw an isotonic or smooth reliability curve with its band.

    ``curve`` has predictions, fitted event rates and limits. ``style`` "classical" draws event
    rates with the diagonal, "deviation" observed − predicted; ``axis`` is the scale of the
    predictions. ``truth`` maps predictions to true probabilities, drawn as a line where it is
    known. The picture has the artists "curve", "band", "diagonal", "histogram", "key" and, where
    drawn, "truth". Without ``ax`` it makes a new figure; ``recipe`` prints the method below it.
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
        meaning = "band of the true curve" if confidence else "consistency band"
        meaning += "" if curve.simultaneous or not confidence else ", each point"
        words = f"{100 * curve.level:g} % {meaning}"
        chart.area("band", x[finite], low, high, words, color="#f0b7b0", alpha=0.75)
    chart.diagonal(frame.x, [0.0, 0.0] if deviation else None)
    frame.begin(chart, truth)
    chart.mark("histogram", columns, f"rows (up to {in_percent(tallest)})")
    chart.axes(*frame.labels(curve.subject, curve.event_name))
    words = "" if curve.test is None else headline(curve.test)
    return chart.finish(curve.recipe, recipe, headline=words)


def cox(result: CoxRecalibration, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw Cox's recalibration curve, observed against predicted, with its band.

    ``result`` is the fit, with intercept and slope. The picture has the artists "curve" and "band".
    Without ``ax`` it makes a new figure; ``recipe`` prints the method below it.
    """
    chart, p = Chart.of(ax, 3.2), np.linspace(0.0, 1.0, 401)[1:-1]
    frequency, low, high = result.curve(p)
    words = f"fitted: intercept {result.intercept:.2f}, slope {result.slope:.2f}"
    chart.line("curve", p, frequency, words.replace("-", "−"), lw=1.3, zorder=3)
    chart.area("band", p, low, high, f"{100 * result.level:g} % band at each prediction")
    chart.diagonal([0, 1])
    chart.axes(*axes_of("event", result.event_name), xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    return chart.finish(result.recipe, recipe)


def sensitivity(table: BinSensitivity, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw the ECE, its noise floor and its p-value against the number of bins.

    ``table`` has them for several binnings. The artists are "estimate", "floor" and "band";
    "pvalue" belongs to ``panels[0]`` of the picture, a second panel in the upper third. Without
    ``ax`` it makes a new figure; ``recipe`` prints the method below it.
    """
    chart, order = Chart.of(ax, 3.1), np.argsort(table.size, kind="stable")
    upper, x = chart.above(0.33), table.size[order]
    chart.line("estimate", x, table.estimate[order], "observed", color=RED, marker="o", lw=1.1)
    chart.line("floor", x, table.null_mean[order], "noise floor", ls=DASHED, lw=1.5)
    words = f"central {100 * table.level:g} %"
    chart.area("band", x, table.low[order], table.high[order], words, color="#d9d9d9")
    sizes = [m * 10**k for k in range(7) for m in (1, 2, 5) if x[0] <= m * 10**k <= x[-1]]
    chart.log("x", sizes or x[:1].tolist())
    chart.axes("Number of bins", "ECE", ylim=(0.0, None))
    p = np.maximum(table.pvalue[order], SMALLEST_SHOWN)
    pvalue = upper.line("", x, p, marker="o", ms=2.5)
    upper.rule("", y=0.05, lw=0.7, ls=DASHED)
    upper.beside([0.05], ["0.05"])
    least = 10.0 ** np.floor(np.log10(min(p.min(), 0.01)) - 0.2)
    upper.log("y", decades(least))
    upper.axes("", "p-value", ylim=(least, 1.6))
    upper.ax.tick_params(labelbottom=False, which="both", bottom=False)
    panels = (Picture(upper.ax, {"pvalue": pvalue}),)
    return chart.finish(table.recipe, recipe, panels=panels)


def planned(result: Plan, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw the power or length found at each n, the target, and the n that is needed.

    ``result`` is the plan. Bars are 95 % Monte Carlo intervals: upright ones of the power or length
    at each n, the one at the target of n; a formula has none. The picture has the artists "points",
    "bars", "curve" (between simulated points), "goal", "n", "error" and "key". Without ``ax`` it
    makes a new figure; ``recipe`` prints the method below it.
    """
    chart, power = Chart.of(ax, 2.2), result.width is None
    goal = result.power if power else result.width
    x, y = np.array(result.points or [(result.n, goal)], dtype=float).T
    wanted, many = float(goal or 0.0), x.size > 30  # a point for each data set is a curve
    chart.line("curve", x, y, "simulated" if many else "", color=INK if many else GREY)
    if result.intervals:
        low, high = np.array(result.intervals, dtype=float).T
        bars = chart.ax.vlines(x, low, high, colors=[INK], linewidths=0.8)
        chart.mark("bars", bars)
    if not many:
        simulated = "simulated, with 95 % interval" if result.intervals else "simulated"
        chart.dots("points", x, y, simulated if result.points else "by formula", s=14)
    chart.rule("goal", y=wanted, ls=DASHED)
    chance = result.high > result.low
    words = f"n = {result.n}" + chance * f"\n({result.low} to {result.high})"
    chart.rule("n", x=result.n, color=BLUE, lw=0.9)
    if chance:
        error = chart.spans("error", wanted, result.low, result.high, lw=3.0, head="")
        error.set_zorder(2.5)
    around = 1.25 if x.size > 1 else 2.0
    ends = min(x.min(), result.low) / around, max(x.max(), result.high) * around
    chart.log("x", _round_numbers(*ends))
    chart.axes("Observations", "Power" if power else "Length of the interval", xlim=ends,
               ylim=(0.0, 1.05 if power else 1.15 * max(float(y.max()), wanted)))  # fmt: skip
    place = Style(va="bottom", zorder=2, transform=chart.ax.get_yaxis_transform())
    left = result.n > np.sqrt(ends[0] * ends[1])  # the side with more room
    near = Style(va="bottom", ha="right" if left else "left", zorder=2, color=BLUE)
    near |= {"transform": chart.ax.get_xaxis_transform()}
    at = result.n * (0.97 if left else 1.03)
    chart.artists["n label"] = chart.tag(words, at, 0.03, **near)
    chart.artists["goal label"] = chart.tag(f"target {wanted:g}", 0.01, wanted, **place)
    return chart.finish(result.recipe, recipe)


def _round_numbers(low: float, high: float) -> list[float]:
    """Return at most six round numbers from ``low`` to ``high``, for a logarithmic axis.

    They are evenly spaced on it, such as 10, 100 and 1000.
    """
    every = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for digits in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        ticks = [m * 10.0**k for k in every for m in digits if low <= m * 10.0**k <= high]
        if len(ticks) >= 3:
            break
    return ticks[:: -(-len(ticks) // 6)]


def evidence(
    monitor: Monitor | ComparisonMonitor, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw e-values against observations, on a logarithmic scale, and the alarm threshold.

    Where rows have times, these are the axis. StatisticError if the monitor has seen no rows. The
    picture has the artists "alarm", "threshold" and "threshold label", and "evidence" and "leader"
    (beside it, the calibration curve on which the most successful betting strategy bets); for two
    forecasters instead "a", "b" and, below, "difference" and "band". Without ``ax`` it makes a new
    figure; ``recipe`` prints the method below it.
    """
    if monitor.n == 0:
        raise StatisticError(
            "the monitor has seen no rows: update() returns one that has, m = m.update(…)"
        )
    alone = isinstance(monitor, Monitor)
    chart = Chart.of(ax, 2.4 if alone else 3.5)
    upper = chart if alone else chart.above(0.5)
    threshold = monitor.alarm_at / np.log(10.0)
    upper.rule("threshold", y=threshold, color=INK, ls=DASHED)
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
    _alarm_line(upper, threshold)
    leader = monitor.leader if isinstance(monitor, Monitor) else ""
    return chart.finish(monitor.recipe, recipe, headline=leader)


def decision_curve(
    result: DecisionCurve, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw net benefit against the threshold, with simultaneous limits.

    ``result`` has the net benefit at all thresholds. The picture has the artists "model" and
    "band", "always" and "never" (acting always or never), "promised", and "other" (the other model,
    if there is one). Without ``ax`` it makes a new figure; ``recipe`` prints the method below it.
    """
    chart = Chart.of(ax, 2.6)
    t = result.thresholds
    words = f"{100.0 * result.level:g} % limits, all thresholds together"
    chart.area("band", t, result.low_all, result.high_all, words)
    chart.line("always", t, result.treat_all, "act always", color=GREY, lw=1.0, ls=DASHED)
    chart.rule("never", "act never", y=0.0, color=INK, lw=0.8)
    chart.line("promised", t, result.promised, "promised", color=BLUE, lw=0.9, ls=":")
    if result.against:
        dashes = (0, (5, 1.5))
        chart.line("other", t, result.other, result.against, color=RED, lw=1.2, ls=dashes)
    chart.line("model", t, result.net_benefit, "model", color=BLUE, lw=1.4)
    shown = result.net_benefit, result.treat_all, result.promised
    top = max(1e-6, *(float(values.max()) for values in shown))
    chart.axes("Threshold probability", "Net benefit", ylim=(-0.2 * top, 1.1 * top))
    return chart.finish(result.recipe, recipe)


def revisions(result: RevisionTest, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw the e-value of a test of revisions against time, on a logarithmic scale.

    ``result`` has its history. The picture has the artists "evidence", "threshold" (1/alpha) and
    "alarm" (its first time, if it is raised). Without ``ax`` it makes a new figure; ``recipe``
    prints the method below it.
    """
    chart = Chart.of(ax, 2.4)
    times, logs = result.history.T
    threshold = -np.log10(result.alpha)
    when: Any = as_dates(times) if result.dates else times
    marker = "o" if times.size == 1 else ""
    chart.line("evidence", when, logs / np.log(10.0), color=BLUE, lw=1.2, marker=marker, ms=6.0)
    chart.rule("threshold", y=threshold, color=INK, ls=DASHED)
    if result.alarm_time is not None:
        at: Any = as_dates(result.alarm_time) if result.dates else result.alarm_time
        chart.rule("alarm", "first alarm", x=at, color=RED, ls=":", lw=1.2)
    if result.dates:
        chart.by_date()
    chart.axes("Time", "e-value")
    chart.ax.set_ylim(min(chart.ax.get_ylim()[0], -0.2), None)
    _alarm_line(chart, threshold)
    headline = f"revisions are {result.direction}" if result.alarm else ""
    return chart.finish(result.recipe, recipe, headline=headline)


def _alarm_line(chart: Chart, threshold: float) -> None:
    """Label the alarm line where curves leave room, and write powers of ten at the axis.

    ``chart`` is the picture under construction. ``threshold``, the alarm line, and all heights are
    decimal logarithms of e-values.
    """
    low, high = chart.ax.get_ylim()
    high = max(high, threshold + 0.2 * (max(high, threshold) - low))
    chart.ax.set_ylim(low, high)
    curves = [np.asarray(line.get_ydata(), float) for line in chart.ax.get_lines()]
    curves = [y for y in curves if y.size > 2] or [np.zeros(3)]
    # whichever end the curves keep farther away from is free for the words
    near = [
        min(float(np.min(np.abs(y[part] - threshold))) for y in curves)
        for part in (np.s_[: curves[0].size // 2 + 1], np.s_[curves[0].size // 2 :])
    ]
    x, ha = (0.01, "left") if near[0] >= near[1] else (0.99, "right")
    across = chart.ax.get_yaxis_transform()
    words = f"alarm at e-value {10.0**threshold:.4g}"
    at = threshold + 0.015 * (high - low)
    chart.artists["threshold label"] = chart.tag(words, x, at, ha=ha, va="bottom", transform=across)
    first, last = np.ceil(low), np.floor(high)
    powers = np.arange(first, last + 1.0, max(1.0, np.ceil((last - first) / 5.0)))
    texts = [f"{10.0**k:g}" if abs(k) < 4 else f"1e{k:.0f}" for k in powers]
    chart.ax.set_yticks(powers, texts)


def _evidence_against(chart: Chart, monitor: Monitor) -> None:
    """Draw the e-values of a monitor, and in an inset the curve of its leading expert.

    ``chart`` is the picture under construction; ``monitor`` has the history of the e-value. Experts
    are betting strategies, each for one calibration curve.
    """
    rows, logs = _along(monitor), monitor.history[:, 1] / np.log(10.0)
    logs = np.minimum(logs, np.max(logs, initial=0.0, where=np.isfinite(logs)) + 1.0)
    one = "o" if rows.size == 1 else ""  # a line of one point is invisible
    chart.line("evidence", rows, logs, color=BLUE, lw=1.2, marker=one, ms=6.0)
    inset = Chart(chart.ax.inset_axes((1.03, 0.62, 0.22, 0.38)), chart.artists, chart.entries)
    p = np.linspace(0.001, 0.999, 400)
    inset.line("", [0, 1], [0, 1], color=GREY, ls=DASHED)
    words = "event rates under the best bet"
    inset.line("leader", p, monitor.best_curve(p), words, color=RED, lw=1.0)
    inset.ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1), aspect="equal")
    chart.axes(_unit(monitor), "e-value", ylim=(max(logs.min(), -6.0) - 0.2, None))


def _along(monitor: Monitor | ComparisonMonitor) -> FloatArray:
    """Return the horizontal positions of the m points of a monitor's history, (m,).

    They are times, or numbers of rows where there are no times.
    """
    return monitor.history[:, 0] if monitor.times is None else monitor.times


def _unit(monitor: Monitor | ComparisonMonitor) -> str:
    return "Observations" if monitor.times is None else "Time"


def _evidence_between(chart: Chart, upper: Chart, monitor: ComparisonMonitor) -> None:
    """Draw the e-values for either forecaster, and below the difference of their scores, a − b.

    ``upper`` and ``chart`` are the upper and the lower part of the picture under construction;
    ``monitor`` has the history of both e-values and of the band.
    """
    rows, (a, b, low, high) = _along(monitor), monitor.history[:, 1:5].T
    upper.line("a", rows, a / np.log(10.0), "a is better", color=BLUE, lw=1.2)
    upper.line("b", rows, b / np.log(10.0), "b is better", color=RED, lw=1.2, ls=(0, (5, 1.5)))
    upper.ax.tick_params(labelbottom=False)
    upper.axes("", "e-value")
    chart.area("band", rows, low, high, f"{100.0 * (1.0 - monitor.alpha):g} % band")
    chart.line("difference", rows, 0.5 * (low + high), lw=1.5)
    chart.rule("")
    reach = 1.5 * np.abs(monitor.history[len(rows) // 4 :, 3:]).max()
    score = monitor.score[:1].upper() + monitor.score[1:]
    chart.axes(_unit(monitor), f"{score} score, a − b", ylim=(-reach, reach))


# ------------------------------------------------------------------------------
# Numbers: their null distributions, intervals and limits, and the parts of a score.


#: The parts of a score with the sign with which they count, in the order of the steps.
SCORE_PARTS: dict[type, dict[str, int]] = {
    CORPDecomposition: {"uncertainty": 1, "discrimination": -1, "miscalibration": 1},
    BrierDecomposition: {
        **{"uncertainty": 1, "resolution": -1, "reliability": 1},
        **{"within_variance": 1, "within_covariance": -1},
    },
}


#: Verdicts with the symbol that the terminal has, which needs no colour.
SAID: dict[GateVerdict, str] = {
    GateVerdict.PASSED: "✓ passed",
    GateVerdict.FAILED: "◆ failed",
    GateVerdict.IN_DOUBT: "? in doubt",
    GateVerdict.CANNOT_TELL: "? cannot tell",
}


def limits(
    result: GateResult | EquivalenceTestResult, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw errors with their bounds, one per line, their limits, and the verdict in words.

    ``result`` is a gate with its checks, or a test of equivalence. The verdict stands over the
    picture with a symbol, and beside every check where there are several. The picture has the
    artists "estimate", "bounds", "limit", "limit labels", "labels", "headline" and "key". Without
    ``ax`` it makes a new figure; ``recipe`` prints the method below it.
    """
    if isinstance(result, GateResult):
        rows = [(c.question, c.corrected, c.low, c.high, c.limit) for c in result.checks]
    else:
        bound = result.smallest_tolerance
        rows = [(short(result.statistic), result.estimate, 0.0, bound, result.tolerance)]
    names, *columns = zip(*rows, strict=True)
    estimate, low, high, limit = (np.array(column) for column in columns)
    chart = Chart.of(ax, 1.5 + 0.36 * len(rows))
    y = chart.rows(names)
    chart.ax.set_ylim(-0.6, y[0] + 0.9)  # room for the label of the first limit
    chart.dots("estimate", estimate, y, "estimate", s=22)
    chart.spans("bounds", y, low, high, "confidence bounds", lw=1.5)
    chart.mark("limit", chart.ax.vlines(limit, y - 0.28, y + 0.28, color=INK, lw=1.4))
    word = "limit" if isinstance(result, GateResult) else "tolerance"
    chart.artists["limit labels"] = [
        chart.tag(f"{word} {value:g}", value, at + 0.32, ha="center", va="bottom")
        for value, at in zip(limit, y, strict=True)
    ]
    chart.rule("", x=0.0, color=GREY, lw=0.6)
    chart.axes("Calibration error", ticks=5)
    if isinstance(result, GateResult):
        verdict = SAID[result.verdict]
        if len(rows) > 1:
            chart.beside(y, [SAID[check.verdict] for check in result.checks])
    else:
        verdict = "✓ within the tolerance" if result.equivalent else SAID[GateVerdict.CANNOT_TELL]
    picture = chart.finish(result.recipe, recipe, headline=verdict)
    chart.artists["headline"].set_fontweight("bold")
    return picture


def interval(
    result: ConfidenceIntervalResult, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw an estimate, its interval (an arrow where it is open) and the noise floor.

    ``result`` has these numbers. The picture has the artists "estimate", "interval" and "floor".
    Without ``ax`` it makes a new figure; ``recipe`` prints the method below it.
    """
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
    chart.rule("floor", "noise floor", x=result.null_mean, ls=DASHED, lw=1.0)
    chart.axes(short(result.statistic), xlim=(left, right), ylim=(-1.0, 1.0), ticks=6)
    chart.ax.set_yticks([])
    chart.ax.spines["left"].set_visible(False)
    return chart.finish(result.recipe, recipe, shift=0.0)


def decomposition(
    parts: CORPDecomposition | BrierDecomposition, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw the parts of a mean score as steps that lead from 0 to the score.

    ``parts`` is the decomposition. The picture has the artist "bars". Without ``ax`` it makes a new
    figure; ``recipe`` prints the method below it.
    """
    signs = SCORE_PARTS[type(parts)]
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
    chart.axes("Score", xlim=(ends.min(), ends.max()), ticks=5)
    values = [vars(parts)[name] for name in (*signs, "mean_score")]
    chart.beside(y, [format_value(value) for value in values])  # signed as the table has them
    return chart.finish(parts.recipe, recipe)


#: Columns of a histogram, and atoms up to which a law is drawn atom by atom.
HISTOGRAM_COLUMNS, ATOMS = 60, 40


def null(result: CalibrationTestResult, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw the null distribution of a test with the estimate: how unusual is it?

    StatisticError if ``result`` has lost its null distribution, which JSON does not keep. The
    picture has the artists "columns", "estimate", "floor" and "key". Without ``ax`` it makes a new
    figure; ``recipe`` prints the method below it.
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
    chart.rule("floor", "noise floor", x=result.null_mean, color=INK, ls=DASHED)
    words = "as far or farther" if extreme.any() else ""
    chart.mark("columns", columns, words, columns[int(np.argmax(extreme))])
    low, high = min(edges[0], result.estimate), max(edges[-1], result.estimate)
    margin = 0.04 * (high - low)
    ends = low - margin, high + margin
    most = 1.2 * float(mass.max())
    chart.axes(short(result.statistic), "Probability", xlim=ends, ylim=(0.0, most))
    return chart.finish(result.recipe, recipe, headline=headline(result))


def _columns(law: NullDistribution, estimate: float) -> tuple[FloatArray, FloatArray]:
    """Return (edges, probabilities) of a histogram of the null distribution ``law``.

    The ``estimate`` is an edge, or the centre of a column for discrete laws. For m columns edges
    have shape (m + 1,), probabilities (m,).
    """
    if isinstance(law, SimulatedNull):
        values, mass = law.values, np.full(len(law), 1.0 / len(law))
        low, high, columns = values.min(), values.max(), min(HISTOGRAM_COLUMNS, 10 + len(law) // 20)
    else:
        low, high, columns = law.ppf(1e-4), law.ppf(1.0 - 1e-4), HISTOGRAM_COLUMNS
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
    """Return the edges half-way between equidistant values, and beyond the outer ones, (m + 1,).

    ``atoms`` (m,) are the values.
    """
    if atoms.size == 1:
        return atoms[0] + np.array([-0.5, 0.5])
    middle = 0.5 * (atoms[1:] + atoms[:-1])
    return np.concatenate([[2 * atoms[0] - middle[0]], middle, [2 * atoms[-1] - middle[-1]]])
