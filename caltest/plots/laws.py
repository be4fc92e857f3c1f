"""Null distributions, estimates against their noise floor, and what the number of bins does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caltest.errors import StatisticError
from caltest.nulls import ExactNull, NullDistribution, SimulatedNull
from caltest.plots import canvas
from caltest.plots.canvas import GREY, INK, PALE, RED, Picture
from caltest.predictions import FloatArray
from caltest.results import BinSensitivity, CalibrationTestResult, format_p, short

#: Columns of a histogram, and atoms up to which a law is drawn atom by atom.
COLUMNS, ATOMS = 60, 40


def null(result: CalibrationTestResult, ax: Any = None, *, recipe: bool = True) -> Picture:
    """Draw the null distribution with the estimate: how unusual is it?

    Parameters
    ----------
    result : CalibrationTestResult
        With its null distribution, so not one that was read from JSON.
    ax, recipe
        As for every picture.

    Returns
    -------
    Picture
        With the artists "columns", "estimate" and "floor".
    """
    law = result.null_distribution
    if law is None:
        raise StatisticError(
            "this result has no null distribution, for JSON does not keep it: run the test again"
        )
    ax = canvas.paper(ax, canvas.COLUMN, 2.0)
    edges, mass = _columns(law, result.estimate)
    middle = 0.5 * (edges[1:] + edges[:-1])
    middle, estimate = middle - result.centre, result.estimate - result.centre
    loud = middle >= estimate if not result.two_sided else np.abs(middle) >= abs(estimate)
    loud |= np.abs(middle - estimate) < 1e-9 * (edges[-1] - edges[0])
    style = {"align": "edge", "edgecolor": "white", "linewidth": 0.2}
    colors = np.where(loud, RED, PALE)
    columns = ax.bar(edges[:-1], mass, np.diff(edges), color=colors, **style)
    top = 1.2 * float(mass.max())
    floor = ax.axvline(result.null_mean, color=INK, linestyle=(0, (3, 2)), linewidth=0.8)
    estimate = ax.axvline(result.estimate, color=RED, linewidth=1.4)
    low, high = min(edges[0], result.estimate), max(edges[-1], result.estimate)
    margin = 0.04 * (high - low)
    ax.set(xlim=(low - margin, high + margin), ylim=(0.0, top))
    canvas.tidy(ax, short(result.statistic), "probability")
    right = result.estimate > 0.5 * sum(ax.get_xlim())
    said = ax.annotate(
        "observed",
        (result.estimate, top),
        xytext=(-3 if right else 3, -2),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
        fontsize=canvas.HEAD,
        color=RED,
    )
    artists = {
        "columns": columns,
        "estimate": estimate,
        "floor": floor,
        "label": said,
        "headline": canvas.headline(ax, result),
    }
    return canvas.finished(ax, artists, result.recipe, recipe)


def _columns(law: NullDistribution, estimate: float) -> tuple[FloatArray, FloatArray]:
    """Return edges and probabilities of a histogram; the estimate is an edge or a centre."""
    if isinstance(law, SimulatedNull):
        values, mass = law.values, np.full(len(law), 1.0 / len(law))
        low, high, columns = values.min(), values.max(), min(COLUMNS, 10 + len(law) // 20)
    else:
        low, high, columns = law.ppf(1e-4), law.ppf(1.0 - 1e-4), COLUMNS
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
    """Return edges half-way between equidistant atoms, and beyond the outer ones."""
    if atoms.size == 1:
        return atoms[0] + np.array([-0.5, 0.5])
    middle = 0.5 * (atoms[1:] + atoms[:-1])
    return np.concatenate([[2 * atoms[0] - middle[0]], middle, [2 * atoms[-1] - middle[-1]]])


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
    ax = canvas.paper(ax, canvas.COLUMN, 2.7)
    top = canvas.above(ax, 0.33)
    order = np.argsort(table.size, kind="stable")
    x = table.size[order]
    band = ax.fill_between(x, table.low[order], table.high[order], color="#d9d9d9", linewidth=0)
    (floor,) = ax.plot(x, table.null_mean[order], linestyle=(0, (3, 2)), color=INK, linewidth=0.9)
    (estimate,) = ax.plot(x, table.estimate[order], "o-", color=RED, markersize=3, linewidth=1.1)
    ax.set_xscale("log")
    ax.set_ylim(0.0, None)
    canvas.tidy(ax, "number of bins", "ECE")
    _plain_log(ax.xaxis, x)
    words = ["observed", "if calibrated: mean", f"central {100 * table.level:g} %"]
    canvas.legend(ax, [estimate, floor, band], words, loc="best")
    p = np.maximum(table.pvalue[order], 1e-12)
    (pvalue,) = top.plot(x, p, "o-", color=INK, markersize=2.5, linewidth=0.8)
    top.axhline(0.05, color=GREY, linewidth=0.7, linestyle=":")
    top.set_yscale("log")
    least = 10.0 ** np.floor(np.log10(min(p.min(), 0.01)) - 0.2)
    top.set_ylim(least, 1.6)
    exponent = -np.log10(least)
    ticks = 10.0 ** -np.arange(0, exponent + 1, max(1, int(np.ceil(exponent / 3))))
    top.set_yticks(ticks, [f"{t:g}" for t in ticks])
    top.minorticks_off()
    canvas.tidy(top, "", "p")
    top.tick_params(labelbottom=False, which="both", bottom=False)
    artists = {"estimate": estimate, "floor": floor, "band": band}
    return canvas.finished(ax, artists, table.recipe, recipe, (Picture(top, {"pvalue": pvalue}),))


def _plain_log(axis: Any, values: Any) -> None:
    """Label a logarithmic axis by some of the values themselves."""
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    low, high = float(min(values)), float(max(values))
    round_ones = [m * 10**k for k in range(7) for m in (1, 2, 5)]
    ticks = [t for t in round_ones if low <= t <= high] or [low]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(lambda t, _: f"{t:g}")
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def estimates(
    tests: Sequence[CalibrationTestResult],
    ax: Any = None,
    *,
    names: Sequence[str] | None = None,
    pvalues: Sequence[float] | None = None,
    recipe: bool = True,
) -> Picture:
    """Draw several estimates on one scale: standard deviations from what chance shows.

    Parameters
    ----------
    tests : sequence of CalibrationTestResult
        One line each: a dot at (estimate − null mean) / null standard deviation, and the estimate.
    ax, recipe
        As for every picture.
    names : sequence of str, optional
        What the lines are called, by default their statistics and lenses.
    pvalues : sequence of float, optional
        What is printed at the right, by default the p-values of the tests.

    Returns
    -------
    Picture
        With the artists "estimates", "chance" (the band of ± 2) and "labels".
    """
    if not tests:
        raise StatisticError("there are no tests to draw")
    if names is None:
        names = [f"{short(t.statistic)} · {t.lens}" for t in tests]
    shown = [t.shown_p for t in tests] if pvalues is None else [format_p(p) for p in pvalues]
    ax = canvas.paper(ax, canvas.COLUMN, 0.75 + 0.2 * len(tests))
    y = np.arange(len(tests))[::-1]
    x = np.array([t.excess / t.null_std if t.null_std > 0.0 else 0.0 for t in tests])
    chance = ax.axvspan(-2.0, 2.0, color="#dcdcdc", linewidth=0)
    ax.axvline(0.0, color=INK, linestyle=(0, (3, 2)), linewidth=0.8)
    dots = ax.scatter(x, y, s=16, color=RED, zorder=3)
    ax.set_yticks(y, names)
    ax.set_ylim(-0.6, len(tests) - 0.4)
    canvas.tidy(ax, "standard deviations from chance (grey: ± 2)", size=canvas.HEAD + 0.5)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=5)
    labels = canvas.beside(ax, y, shown)
    first = tests[0]
    text = f"n={first.n} · K={first.n_classes} · caltest {first.version}"
    artists = {"estimates": dots, "chance": chance, "labels": labels}
    return canvas.finished(ax, artists, text, recipe)
