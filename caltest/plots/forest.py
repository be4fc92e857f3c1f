"""Forests: a line for every subgroup with its noise floor, or site or grade with its interval."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from caltest._base.checks import one_of
from caltest.plots import canvas
from caltest.plots.canvas import DASHED, GREY, INK, RED, Picture
from caltest.plots.laws import pvalues
from caltest.results import (
    CalibrationTestResult,
    GradeTests,
    GradeVerdict,
    MetaAnalysis,
    Subgroups,
    format_p,
    short,
)


def forest(
    found: Subgroups, ax: Any = None, *, alpha: float = 0.05, recipe: bool = True
) -> Picture:
    """Draw the statistic of every subgroup, and what a calibrated model would show there.

    Parameters
    ----------
    found : Subgroups
        The ``subgroups`` of a test; of a joint test the adjusted p-values are drawn.
    ax, recipe
        As for every picture.
    alpha : float, default 0.05
        Marks are filled where the adjusted p-value, at the right, is at most this.

    Returns
    -------
    Picture
        With the artists "estimates", "floors", "labels" and "key".
    """
    test = found.tested[0]
    text = found.recipe
    if not isinstance(test, CalibrationTestResult):
        shown = {n: p for n, p in zip(found.names, found.adjusted, strict=True) if p is not None}
        style: Any = {"alpha": alpha, "xlabel": "adjusted p-value", "text": text, "recipe": recipe}
        return pvalues(list(shown.values()), list(shown), ax, **style)
    ax = canvas.paper(ax, canvas.COLUMN, 1.3 + 0.2 * len(found.names))
    y = np.arange(len(found.names))[::-1]
    rows = [(t.estimate, t.null_mean, t.null_std) if t else (np.nan,) * 3 for t in found.tests]
    estimate, mean, sd = np.array(rows).T
    floors = ax.hlines(y, mean - sd, mean + sd, color=RED, linewidth=1.3)
    ax.scatter(mean, y, s=28, marker="|", color=RED, linewidths=1.3)
    filled = [p is not None and p <= alpha for p in found.adjusted]
    face = np.where(filled, INK, "white")
    marks = ax.scatter(estimate, y, s=18, facecolors=face, edgecolors=INK, linewidths=0.9, zorder=3)
    words = [f"{name} ({n})" for name, n in zip(found.names, found.counts, strict=True)]
    ax.set_yticks(y, words, parse_math=False)
    ax.set_ylim(-0.6, len(y) - 0.4)
    if not test.two_sided and np.nanmin([estimate, mean - sd]) >= 0.0:
        ax.set_xlim(0.0, None)
    canvas.tidy(ax, short(test.statistic))
    ax.tick_params(axis="y", length=0)
    said = [
        "not tested" if p is None else f"p {canvas.related(format_p(p))}" for p in found.adjusted
    ]
    labels = canvas.beside(ax, y, said)
    entries: dict[str, Any] = {"if calibrated: mean ± sd": canvas.sign("|", RED, line="-")}
    if any(filled):
        entries[f"adjusted p ≤ {alpha:g}"] = canvas.sign()
    if any(p is not None and p > alpha for p in found.adjusted):
        entries["larger p" if any(filled) else "observed"] = canvas.sign(filled=False)
    artists = {"estimates": marks, "floors": floors, "labels": labels}
    artists["key"] = canvas.key(ax, entries)
    return canvas.finished(ax, artists, text, recipe)


def sites(
    result: MetaAnalysis,
    ax: Any = None,
    *,
    effect: Literal["O:E", "intercept", "slope"] = "O:E",
    recipe: bool = True,
) -> Picture:
    """Draw one measure of calibration at every site, its mean and its prediction interval.

    Parameters
    ----------
    result : MetaAnalysis
        What :func:`caltest.meta_analysis` returned.
    ax, recipe
        As for every picture.
    effect : {"O:E", "intercept", "slope"}, default "O:E"
        Which measure; the ratio has a logarithmic axis.

    Returns
    -------
    Picture
        With the artists "sites", "intervals", "mean", "prediction" and "key".
    """
    from scipy.special import ndtri

    one_of("effect", effect, ("O:E", "intercept", "slope"))
    ratio = effect == "O:E"
    drawn = {"O:E": result.log_oe, "intercept": result.intercept, "slope": result.slope}[effect]

    def scale(values: Any) -> Any:
        return np.exp(values) if ratio else np.asarray(values)

    ax = canvas.paper(ax, canvas.COLUMN, 1.5 + 0.2 * len(result.sites))
    values, errors = np.array(drawn.values), np.array(drawn.errors)
    half = float(ndtri(0.5 + 0.5 * result.level)) * errors
    y = np.arange(len(values))[::-1] + 2.0
    weight = 1.0 / (errors**2 + drawn.tau**2)
    lines = ax.hlines(y, scale(values - half), scale(values + half), color=INK, linewidth=1.0)
    size = 6.0 + 26.0 * weight / weight.max()
    squares = ax.scatter(scale(values), y, s=size, marker="s", color=INK, zorder=3)
    low, high = scale(drawn.interval)
    middle = scale(drawn.mean)
    (mean,) = ax.fill([low, middle, high, middle], [1.0, 1.25, 1.0, 0.75], color=RED, linewidth=0)
    span = ax.hlines(0.0, *scale(drawn.prediction), color=RED, linewidth=1.3)
    target = ax.axvline(0.0 if effect == "intercept" else 1.0, color=GREY, linestyle=DASHED)
    target.set(linewidth=0.9, zorder=0)
    words = [f"{name} ({n})" for name, n in zip(result.sites, result.counts, strict=True)]
    ax.set_yticks([*y, 1.0, 0.0], [*words, "mean", "a new site"], parse_math=False)
    ax.set_ylim(-0.6, len(values) + 1.6)
    if ratio:
        from matplotlib.ticker import MaxNLocator

        ax.set_xscale("log")
        left, right = ax.get_xlim()
        at: Any = (0.1, 0.2, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
        if sum(left < t < right for t in at) < 3:
            at = MaxNLocator(4).tick_values(left, right)
        ticks = [t for t in at if left < t < right]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
    canvas.tidy(ax, {"O:E": "observed : expected events"}.get(effect, f"Cox's {effect}"))
    ax.tick_params(axis="y", length=0)
    percent = f"{100 * result.level:g} %"
    entries = {
        f"site, {percent} interval": canvas.sign("s", INK, line="-"),
        f"mean, {percent} interval": canvas.sign("D", RED),
        f"{percent} prediction interval": canvas.sign("", RED, line="-"),
        "calibrated": target,
    }
    artists = {"sites": squares, "intervals": lines, "mean": mean, "prediction": span}
    artists["key"] = canvas.key(ax, entries)
    return canvas.finished(ax, artists, result.recipe, recipe)


def grades(result: GradeTests, ax: Any = None, *, recipe: bool = True) -> Picture:
    """Draw the rate of every grade with its interval beside its probability, on a logarithmic axis.

    Parameters
    ----------
    result : GradeTests
        What :func:`caltest.grade_tests` returned.
    ax, recipe
        As for every picture. Marks are filled where the probability is rejected; adjusted p-values
        are at the right. A rate of 0 has no mark, and its interval begins at the frame.

    Returns
    -------
    Picture
        With the artists "rates", "intervals", "probabilities", "labels" and "key".
    """
    rows = [*result.grades, result.portfolio]
    ax = canvas.paper(ax, canvas.COLUMN, 1.3 + 0.2 * len(rows))
    y = np.arange(len(rows))[::-1].astype(float)
    y[:-1] += 0.5  # the portfolio stands apart
    rate, p = np.array([(row.rate, row.probability) for row in rows]).T
    low, high = np.array([row.interval for row in rows]).T
    seen = np.concatenate([rate[rate > 0], p[p > 0], high[rate == 0], low[low > 0]])
    least = 0.7 * float(seen.min())
    lines = ax.hlines(y, np.maximum(low, least), high, color=INK, linewidth=1.0)
    filled = [row.verdict is not GradeVerdict.NO_EVIDENCE for row in rows]
    style: Any = {"edgecolors": INK, "linewidths": 0.9, "zorder": 3, "s": 18}
    style["clip_on"] = False  # a rate of 1
    shown = np.where(rate > 0, rate, np.nan)
    marks = ax.scatter(shown, y, facecolors=np.where(filled, INK, "white"), **style)
    at = np.where(p > 0, p, np.nan)
    predicted = ax.scatter(at, y, s=60, marker="|", color=RED, linewidths=1.6, zorder=4)
    most = min(1.0, 1.4 * float(max(high.max(), p.max())))
    decades = [d for d in range(-15, 1) if least <= 10.0**d <= most]
    digits = (1, 2, 5) if len(decades) < 3 else (1,)
    ticks = [float(f"{c}e{d}") for d in range(-15, 1) for c in digits]
    ticks = [tick for tick in ticks if least <= tick <= most]
    ax.set_xscale("log")
    ax.set_xlim(least, most)
    ax.set_xticks(ticks[:: 1 + len(ticks) // 4], [f"{t:g}" for t in ticks[:: 1 + len(ticks) // 4]])
    ax.minorticks_off()
    words = [f"{row.name} ({row.events} of {row.n})" for row in rows]
    ax.set_yticks(y, words, parse_math=False)
    ax.set_ylim(-0.6, y[0] + 0.6)
    canvas.tidy(ax, "frequency")
    ax.tick_params(axis="y", length=0)
    labels = canvas.beside(ax, y, [f"p {canvas.related(format_p(row.adjusted))}" for row in rows])
    entries: dict[str, Any] = {
        "predicted": canvas.sign("|", RED),
        f"observed, {100 * (1 - result.alpha):g} % interval": canvas.sign(filled=False, line="-"),
    }
    if any(filled):
        entries[f"adjusted p ≤ {result.alpha:g}"] = canvas.sign()
    artists = {"rates": marks, "intervals": lines, "probabilities": predicted, "labels": labels}
    artists["key"] = canvas.key(ax, entries)
    return canvas.finished(ax, artists, result.recipe, recipe)
