"""Pictures that are tables: a line for every subgroup, segment, site, grade, question or part.

Each function takes a result and is called by its ``plot`` method; marks are filled where the
adjusted p-value rejects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from caltest._base.arrays import one_of
from caltest.errors import StatisticError
from caltest.plots.chart import DASHED, GREY, INK, PALE, RED, Chart, Picture, Style, decades, sign
from caltest.results import (
    AuditReport,
    CalibrationTestResult,
    ComparisonResult,
    ComparisonTable,
    ConfidenceIntervalResult,
    Finding,
    GradeTests,
    GradeVerdict,
    IndividualErrorResult,
    JointTestResult,
    MetaAnalysis,
    PromiseResult,
    SegmentSearch,
    Subgroups,
    WorstClassResult,
    short,
)
from caltest.results.rendering import SMALLEST_SHOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: The name and the sign of every finding; they differ in shape, not only in colour.
FINDINGS: dict[Finding, tuple[str, Style]] = {
    Finding.MISCALIBRATED: ("rejected", {"marker": "s", "color": RED}),
    Finding.IMPOSSIBLE_OUTCOME: ("impossible outcome", {"marker": "X", "color": RED}),
    Finding.SINGLE_ITEMS: ("wrong for single items", {"marker": "D", "filled": False}),
    Finding.NO_EVIDENCE: ("not rejected", {"marker": "o", "filled": False}),
    Finding.TOO_LITTLE_DATA: ("too little data", {"marker": "x"}),
}


def forest(
    subgroups: Subgroups, ax: Axes | None = None, *, alpha: float = 0.05, recipe: bool = True
) -> Picture:
    """Draw the statistic of every subgroup, with its noise floor.

    ``subgroups`` holds the results of all subgroups. Marks are filled where the adjusted p-value,
    at the right, is at most ``alpha``; for a joint test the adjusted p-values are drawn, and for
    confidence intervals these. The picture has the artists "estimates", "floors", "labels" and
    "key". Without ``ax`` it makes a new figure; ``recipe`` prints the method below it.
    """
    test, adjusted = subgroups.tested[0], subgroups.adjusted
    if isinstance(test, ConfidenceIntervalResult):
        return _intervals(subgroups, ax, recipe)
    if not isinstance(test, CalibrationTestResult):
        tests = {n: p for n, p in zip(subgroups.names, adjusted, strict=True) if p is not None}
        text = Style(xlabel="Adjusted p-value", text=subgroups.recipe, recipe=recipe)
        return pvalues(list(tests.values()), list(tests), ax, alpha=alpha, **text)
    chart = Chart.of(ax, 1.3 + 0.2 * len(subgroups.names))
    named = zip(subgroups.names, subgroups.counts, strict=True)
    y = chart.rows([f"{name} ({n})" for name, n in named])
    rows = [(t.estimate, t.null_mean, t.null_std) if t else (np.nan,) * 3 for t in subgroups.tests]
    estimate, mean, sd = np.array(rows).T
    words = "noise floor ± sd"
    chart.spans("floors", y, mean - sd, mean + sd, words, color=RED, head="|")
    chart.dots("", mean, y, s=28, marker="|", color=RED, zorder=1, linewidths=1.3)
    filled = [p is not None and p <= alpha for p in adjusted]
    chart.dots("estimates", estimate, y, s=18, filled=filled, linewidths=0.9)
    if any(filled):
        chart.entries[f"adjusted p ≤ {alpha:g}"] = sign()
    if any(p is not None and p > alpha for p in adjusted):
        chart.entries["larger p" if any(filled) else "observed"] = sign(filled=False)
    if not test.two_sided and np.nanmin([estimate, mean - sd]) >= 0.0:
        chart.ax.set_xlim(0.0, None)
    chart.axes(short(test.statistic))
    chart.pvalues(y, adjusted)
    return chart.finish(subgroups.recipe, recipe)


def _intervals(subgroups: Subgroups, ax: Axes | None, recipe: bool) -> Picture:
    """Draw estimates with their simultaneous intervals, grey and hollow if the interval contains 0.

    ``subgroups`` holds the intervals of all subgroups. Without ``ax`` it makes a new figure;
    ``recipe`` prints the method below it. The picture has the artists "estimates", "intervals",
    "labels" and "key".
    """
    tests, named = subgroups.tests, zip(subgroups.names, subgroups.counts, strict=True)
    chart = Chart.of(ax, 1.3 + 0.2 * len(tests))
    y = chart.rows([f"{name} ({n})" for name, n in named])
    rows = [(t.estimate, t.low, t.high) if t else (np.nan,) * 3 for t in tests]
    estimate, low, high = np.array(rows, dtype=np.float64).T
    apart = np.array([t is not None and not t.contains_zero for t in tests])
    words = f"{100 * (1 - (1 - subgroups.tested[0].level) * len(tests)):.4g} % for all subgroups"
    for which, color, width in ((~apart, GREY, 1.0), (apart, INK, 1.4)):
        if which.any():
            chart.spans("intervals", y[which], low[which], high[which], words, color=color,
                        lw=width)  # fmt: skip
            words = ""
    for which, color in ((~apart, GREY), (apart, INK)):
        if which.any():
            chart.dots("estimates", estimate[which], y[which], s=18, color=color,
                       filled=[color == INK] * int(which.sum()), linewidths=0.9)  # fmt: skip
    if apart.any():
        chart.entries["0 lies outside"] = sign()
    chart.rule("", "calibrated", x=0.0, ls=DASHED, lw=0.9, zorder=0, color=GREY)
    signed = subgroups.tested[0].method == "shift"
    chart.axes("Observed − predicted" if signed else short(subgroups.tested[0].statistic))
    chart.pvalues(y, subgroups.adjusted)
    return chart.finish(subgroups.recipe, recipe)


def segments(result: SegmentSearch, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw observed − predicted of all rows and of every listed segment, with its interval.

    The end of the interval nearest to 0 is heavier where it leaves 0 out; adjusted p-values are at
    the right. Where ``result`` lists none, the five segments of most evidence are hollow. The
    picture has the artists "differences", "intervals", "least", "labels" and "key". Without ``ax``
    it makes a new figure; ``recipe`` prints the method below it.
    """
    rows = [result.whole, *(result.segments or result.strongest)]
    rows = rows[1:] if result.whole in rows[1:] else rows
    names = [f"{row.name} ({row.n})" for row in rows]
    chart = Chart.of(ax, 1.3 + sum(0.2 if len(name) < 20 else 0.32 for name in names))
    y = chart.rows(names)
    low, high, mean = np.array([(row.low, row.high, row.difference) for row in rows]).T
    words = f"{100 * (1 - result.alpha):g} % for all segments"
    chart.spans("intervals", y, low, high, words, color=INK, lw=1.0)
    sure = np.array([row.on_average for row in rows])
    nearest = np.where(np.abs(low) < np.abs(high), low, high)[sure]
    if sure.any():
        chart.dots("least", nearest, y[sure], "at least", marker="|", color=RED, s=45,
                   linewidths=2.4, zorder=2)  # fmt: skip
    listed = [row in result.segments for row in rows]
    chart.dots("differences", mean, y, s=18, filled=listed, linewidths=0.9)
    if any(listed):
        chart.entries["listed"] = sign()
    if not all(listed):
        chart.entries["not listed"] = sign(filled=False)
    chart.rule("", "calibrated", x=0.0, ls=DASHED, lw=0.9, zorder=0, color=GREY)
    chart.axes("Observed − predicted")
    chart.pvalues(y, [row.pvalue for row in rows])
    return chart.finish(result.recipe, recipe)


def sites(
    result: MetaAnalysis, ax: Axes | None = None, *,
    effect: Literal["O:E", "intercept", "slope", "curve"] = "O:E", recipe: bool = True,
) -> Picture:  # fmt: skip
    """Draw one measure of calibration at every site, its mean and its prediction interval.

    ``effect`` is the measure. A ratio, O:E, has a logarithmic axis. ``effect="curve"`` draws the
    calibration curves of a ``meta_analysis`` with ``curve=True``; StatisticError if ``result`` has
    none. The picture has the artists "sites", "intervals", "mean", "prediction" and "key". Without
    ``ax`` it makes a new figure; ``recipe`` prints the method below it.
    """
    from scipy.special import ndtri

    one_of("effect", effect, ("O:E", "intercept", "slope", "curve"))
    if effect == "curve":
        return _centres(result, ax, recipe)
    ratio, percent = effect == "O:E", f"{100 * result.level:g} %"
    pooled = {"O:E": result.log_oe, "intercept": result.intercept, "slope": result.slope}[effect]
    scale = np.exp if ratio else np.asarray
    chart = Chart.of(ax, 1.5 + 0.2 * len(result.sites))
    values, errors = np.array(pooled.values), np.array(pooled.errors)
    half = float(ndtri(0.5 + 0.5 * result.level)) * errors
    words = [f"{name} ({n})" for name, n in zip(result.sites, result.counts, strict=True)]
    y = chart.rows([*words, "mean", "a new site"])[:-2]
    weight = 1.0 / (errors**2 + pooled.tau**2)
    chart.spans("intervals", y, scale(values - half), scale(values + half), color=INK, lw=1.0)
    chart.dots("sites", scale(values), y, s=6.0 + 26.0 * weight / weight.max(), marker="s")
    chart.entries[f"site, {percent} interval"] = sign("s", INK, line="-")
    low, high = scale(pooled.interval)
    corners = [low, scale(pooled.mean), high, scale(pooled.mean)], [1.0, 1.25, 1.0, 0.75]
    diamond = chart.ax.fill(*corners, color=RED, linewidth=0)[0]
    chart.mark("mean", diamond, f"mean, {percent} interval", sign("D", RED))
    (low, high), words_new = scale(pooled.prediction), f"{percent} prediction interval"
    chart.spans("prediction", 0.0, low, high, words_new, color=RED, head="")
    target = 0.0 if effect == "intercept" else 1.0
    chart.rule("", "calibrated", x=target, ls=DASHED, lw=0.9, zorder=0)
    if ratio:
        from matplotlib.ticker import MaxNLocator

        chart.ax.set_xscale("log")
        left, right = chart.ax.get_xlim()
        at = [0.1, 0.2, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0]
        if sum(left < t < right for t in at) < 3:
            at = list(MaxNLocator(4).tick_values(left, right))
        chart.log("x", [t for t in at if left < t < right])
    chart.axes("Observed / expected events" if ratio else f"Cox's {effect}")
    return chart.finish(result.recipe, recipe)


def _centres(result: MetaAnalysis, ax: Axes | None, recipe: bool) -> Picture:
    """Draw the curve of every site, their mean with its interval, and the prediction interval.

    ``result`` is the meta-analysis; StatisticError if it has no curves. Without ``ax`` it makes a
    new figure; ``recipe`` prints the method below it. The picture has the artists "sites",
    "intervals", "mean" and "prediction".
    """
    if (curve := result.curve) is None:
        raise StatisticError("these sites have no curves: ask meta_analysis(…, curve=True)")
    chart, percent = Chart.of(ax, 3.2), f"{100 * result.level:g} %"
    (low, high), words = curve.prediction.T, f"{percent} prediction interval"
    chart.area("prediction", curve.at, low, high, words)
    (low, high), words = curve.interval.T, f"{percent} interval of the mean"
    chart.area("intervals", curve.at, low, high, words, color="#6fa8d6")
    for values in curve.curves:
        line = chart.line("sites", curve.at, values, color=GREY, lw=0.5)
    chart.entries["site"] = line
    chart.line("mean", curve.at, curve.mean, "mean", color=RED, lw=1.3, zorder=3)
    ends = [0.0, float(max(curve.at[-1], curve.interval.max()))]
    chart.diagonal(ends)
    chart.axes("Predicted probability", "Observed event rate", xlim=ends, ylim=(0.0, None))
    return chart.finish(result.recipe, recipe)


def grades(result: GradeTests, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw the rate of every grade with its interval beside its probability, on a logarithmic axis.

    Marks are filled where the probability is rejected; adjusted p-values are at the right. A rate
    of 0 has no mark, and its interval begins at the frame. If ``result`` has more than 40 grades,
    the 20 with the smallest p-values are drawn; all rows together stand last. The picture has the
    artists "rates", "intervals", "probabilities", "labels" and "key". Without ``ax`` it makes a new
    figure; ``recipe`` prints the method below it.
    """
    rows = [*result.printed, result.portfolio]
    chart = Chart.of(ax, 1.3 + 0.2 * len(rows))
    y = np.arange(len(rows))[::-1].astype(float)
    y[:-1] += 0.5  # the portfolio stands apart
    chart.rows([f"{row.name} ({row.events} of {row.n})" for row in rows], y)
    rate, p, low, high = np.array([(r.rate, r.probability, *r.interval) for r in rows]).T
    positive = np.concatenate([rate[rate > 0], p[p > 0], high[rate == 0], low[low > 0]])
    least = 0.7 * float(positive.min())
    most = min(1.0, 1.4 * float(max(high.max(), p.max())))
    chart.spans("intervals", y, np.maximum(low, least), high, color=INK, lw=1.0)
    filled = [row.verdict is not GradeVerdict.NO_EVIDENCE for row in rows]
    # a rate of 1 lies on the frame
    chart.dots("rates", np.where(rate > 0, rate, np.nan), y, s=18, filled=filled, linewidths=0.9,
               clip_on=False)  # fmt: skip
    chart.dots("probabilities", np.where(p > 0, p, np.nan), y, "predicted", s=60, marker="|",
               color=RED, zorder=4, linewidths=1.6)  # fmt: skip
    observed = f"observed, {100 * (1 - result.alpha):g} % interval"
    chart.entries[observed] = sign(filled=False, line="-")
    if any(filled):
        chart.entries[f"adjusted p ≤ {result.alpha:g}"] = sign()
    powers = range(int(np.ceil(np.log10(least))), int(np.floor(np.log10(most))) + 1)
    digits = (1, 2, 5) if len(powers) < 3 else (1,)
    ticks = [float(f"{c}e{d}") for d in range(-15, 1) for c in digits]
    ticks = [tick for tick in ticks if least <= tick <= most]
    chart.log("x", ticks[:: 1 + len(ticks) // 4])
    chart.axes("Observed event rate", xlim=(least, most))
    chart.pvalues(y, [row.adjusted for row in rows])
    return chart.finish(result.recipe, recipe)


def differences(
    results: Sequence[ComparisonResult] | ComparisonResult | ComparisonTable,
    ax: Axes | None = None, *, pvalues: Sequence[float] | None = None, recipe: bool = True,
) -> Picture:  # fmt: skip
    """Draw the differences of the calibration error of pairs of models, a line each.

    ``results`` is a comparison of two models, several of them, or a table of all pairs. A dot is a
    difference, first model − second, with its interval and, at the right, ``pvalues``, by default
    the p-values of the results, adjusted for a table. Within the grey span differences are smaller
    than the margin: an interval inside it is a tie. The picture has the artists "differences",
    "intervals" and "labels", and "tie" with a margin. Without ``ax`` it makes a new figure;
    ``recipe`` prints the method below it. StatisticError for no comparison.
    """
    if isinstance(results, ComparisonTable):
        pvalues, results = results.adjusted, results.pairs
    elif isinstance(results, ComparisonResult):
        results = [results]
    if not results:
        raise StatisticError("there are no comparisons to draw")
    first = results[0]
    chart = Chart.of(ax, 1.1 + 0.2 * len(results))
    y = chart.rows([" − ".join(r.names) for r in results])
    chart.rule("", x=0.0, lw=0.7)
    chart.dots("differences", [r.difference for r in results], y, "difference")
    low, high = np.array([(r.low, r.high) for r in results], dtype=np.float64).T  # None is NaN
    words = f"{100 * first.level:g} % interval" if first.low is not None else ""
    chart.spans("intervals", y, low, high, words)
    if words and first.margin > 0.0:  # errors are squares, and so is the margin
        reach = first.margin**2
        tie = chart.ax.axvspan(-reach, reach, color="#e4e4e4", linewidth=0, zorder=0.5)
        chart.mark("tie", tie, "a tie")
    chart.axes(f"Difference of {short(first.tested)}", ticks=4)
    chart.pvalues(y, [r.pvalue for r in results] if pvalues is None else pvalues)
    return chart.finish(first.recipe, recipe)


def pvalues(
    values: Sequence[float], names: Sequence[str], ax: Axes | None = None, *, alpha: float = 0.05,
    findings: Sequence[Finding] = (), xlabel: str = "p-value", text: str = "", recipe: bool = True,
) -> Picture:  # fmt: skip
    """Draw the p-values of several questions on a logarithmic axis, and where rejection begins.

    ``values`` are the p-values, adjusted where they are read together, ``names`` the questions, and
    ``alpha`` is the level. Rejected questions have bold names and filled squares, or filled crosses
    where an impossible outcome decides; others are open circles, open diamonds where only single
    items are wrong, or thin crosses where there is too little data. ``findings`` are by default
    rejections up to ``alpha``; ``xlabel`` names the values and ``text`` is the recipe, printed
    below if ``recipe``. The picture has the artists "values", a list, "alpha", "labels" and "key".
    Without ``ax`` it makes a new figure. StatisticError for no values.
    """
    if not len(values):
        raise StatisticError("there are no tests to draw")
    chart = Chart.of(ax, 1.4 + 0.2 * len(values))
    y, x = chart.rows(names), np.maximum(values, SMALLEST_SHOWN)
    chart.rule("alpha", f"level {alpha:g}", x=alpha, ls=DASHED, color=INK)
    kinds = findings or [Finding.MISCALIBRATED if p <= alpha else Finding.NO_EVIDENCE for p in x]
    points = chart.artists["values"] = []
    for label, kind, *at in zip(chart.ax.get_yticklabels(), kinds, x, y, strict=True):
        words, style = FINDINGS[kind]
        point = sign(**style)
        point.set(data=[[v] for v in at], zorder=3)
        points.append(chart.mark("", chart.ax.add_line(point), words, sign(**style)))
        label.set_fontweight("bold" if kind.rejects else "normal")
    least = float(min(x.min(), alpha))
    chart.log("x", decades(least))
    chart.axes(xlabel, xlim=(least / 4.0, 2.0))
    chart.pvalues(y, values)
    return chart.finish(text, recipe)


def individual(
    result: IndividualErrorResult, ax: Axes | None = None, *, recipe: bool = True
) -> Picture:
    """Draw the error item by item with its calibration part and grouping loss, and intervals.

    ``result`` has these parts. The picture has the artists "estimates", "intervals" and "key".
    Without ``ax`` it makes a new figure; ``recipe`` prints the method below it.
    """
    chart = Chart.of(ax, 1.9)
    y = chart.rows([*result.parts])
    middle, low, high = np.array([*result.parts.values()]).T
    words = f"{100 * result.level:g} % interval"
    chart.spans("intervals", y, low, high, words, color=INK, lw=1.0)
    chart.dots("estimates", middle, y, s=20, filled=[low > 0.0 for low in low], linewidths=0.9)
    chart.rule("", "right item by item", x=0.0, ls=DASHED, lw=0.9, zorder=0)
    chart.axes("Mean squared error of probabilities", ticks=4)
    return chart.finish(result.recipe, recipe)


def promise(result: PromiseResult, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw the utility promised, with the range of gains if calibrated, and the utility gained.

    ``result`` has both, the p-value and the interval for new data. The picture has the artists
    "expected", "interval", "values" and "key". Without ``ax`` it makes a new figure; ``recipe``
    prints the method below it.
    """
    from scipy.special import ndtri

    chart = Chart.of(ax, 1.5)
    y = chart.rows(["promised", "gained"])
    spread = abs(result.difference / result.z) if result.z else 0.0
    reach = float(ndtri(0.5 + 0.5 * result.level)) * spread
    percent = f"{100 * result.level:g} %"
    ends = [result.promised - reach], [result.promised + reach]
    chart.spans(
        "expected", y[:1], *ends, f"{percent} of gains under calibration", color=PALE, lw=5.0
    )
    words = f"{percent} interval for new data"
    chart.spans("interval", y[1:], [result.low], [result.high], words, color=INK, lw=1.0)
    broken = result.pvalue <= 1.0 - result.level
    values = np.array([result.promised, result.realised])
    chart.dots("values", values, y, s=20, filled=[False, broken], linewidths=0.9)
    chart.rule("", "promised", x=result.promised, ls=DASHED, lw=0.9, zorder=0)
    chart.axes("Utility per observation", ticks=4)
    return chart.finish(result.recipe, recipe)


#: Classes in a picture, those of the largest scores.
MOST_CLASSES_DRAWN = 20


def classes(result: WorstClassResult, ax: Axes | None = None, *, recipe: bool = True) -> Picture:
    """Draw the level and the slope of every class in standard deviations, worst class first.

    They are observed − predicted, by class in ``result``. Marks beyond the band are filled: these
    classes are miscalibrated. If there are more than 20 classes, the worst are drawn. The picture
    has the artists "band", "levels", "slopes" and "key". Without ``ax`` it makes a new figure;
    ``recipe`` prints the method below it.
    """
    scores = {(part.name, part.parameter): part.z for part in result.components}
    every = list(dict.fromkeys(part.name for part in result.components))
    names = every[:MOST_CLASSES_DRAWN]
    chart = Chart.of(ax, 1.5 + 0.2 * len(names))
    y = chart.rows([f"class {name}" for name in names])
    ends = [-result.critical, result.critical]
    words = f"{100 * (1 - result.alpha):g} % for all classes"
    band = chart.ax.axvspan(*ends, color=PALE, lw=0, zorder=0)
    chart.mark("band", band, words)
    chart.rule("", x=0.0, ls=DASHED, lw=0.9, zorder=1)
    for parameter, marker, color in (("level", "o", INK), ("slope", "D", RED)):
        at = np.array([scores.get((name, parameter), np.nan) for name in names])
        outside = np.abs(at) >= result.critical
        name = f"{parameter}s"
        chart.dots(name, at, y, s=18, filled=outside, marker=marker, color=color, linewidths=0.9)
        said = {"level": "level: left too high, right too low",
                "slope": "slope: left too extreme, right too timid"}[parameter]  # fmt: skip
        chart.entries[said] = sign(marker, color)
    chart.axes("Observed − predicted, in sd under calibration")
    left = len(every) - len(names)
    more = f" · {left} other classes not drawn" if left else ""
    return chart.finish(result.recipe + more, recipe)


def adjusted(
    result: AuditReport | JointTestResult, ax: Axes | None = None, **options: Any
) -> Picture:
    """Draw the adjusted p-values of an audit's rows, or of joint tests, on a logarithmic axis.

    ``result`` has the questions and p-values. Without ``ax`` it makes a new figure. ``options`` go
    to :func:`pvalues`: ``alpha``, ``findings``, ``xlabel``, ``text`` and ``recipe``.
    """
    words = Style(xlabel="Adjusted p-value", text=result.recipe)
    if isinstance(result, JointTestResult):
        names = [f"{short(test.statistic)} · {test.lens}" for test in result.tests]
        return pvalues(result.adjusted, names, ax, **words | options)
    words |= {"alpha": result.alpha, "findings": [row.verdict for row in result.rows]}
    values, names = [row.adjusted for row in result.rows], [row.lens for row in result.rows]
    return pvalues(values, names, ax, **words | options)
