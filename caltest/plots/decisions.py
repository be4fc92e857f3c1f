"""Errors beside their limits, and the rows that are needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.plots import canvas
from caltest.plots.canvas import BLUE, DASHED, GREY, INK, Picture
from caltest.results import EquivalenceTestResult, GateResult, Plan, short


def limits(result: GateResult | EquivalenceTestResult, ax: Any = None, *, recipe: bool = True
           ) -> Picture:  # fmt: skip
    """Draw errors with their bounds, one a line, and what they are to lie below."""
    if isinstance(result, GateResult):
        rows = [(c.question, c.corrected, c.low, c.high, c.limit) for c in result.checks]
    else:
        bound = result.smallest_tolerance
        rows = [(short(result.statistic), result.estimate, 0.0, bound, result.tolerance)]
    names, *columns = zip(*rows, strict=True)
    estimate, low, high, limit = (np.array(column) for column in columns)
    y = np.arange(len(rows))[::-1].astype(float)
    ax = canvas.paper(ax, canvas.COLUMN, 1.4 + 0.3 * len(rows))
    spans = ax.hlines(y, low, high, color=BLUE)
    marks = ax.scatter(estimate, y, s=22, color=INK, zorder=3)
    ends = ax.vlines(limit, y - 0.35, y + 0.35, color=GREY, linestyle=DASHED)
    ax.axvline(0.0, color=INK, linewidth=0.6)
    ax.set_yticks(y, names, parse_math=False)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=5)
    canvas.tidy(ax, "error")
    key = canvas.key(
        ax,
        {
            "estimate": canvas.sign(),
            "bounds": canvas.sign("_", BLUE, line="-"),
            "limit": canvas.sign("|", GREY),
        },
    )
    artists = {"estimate": marks, "bounds": spans, "limit": ends, "key": key}
    return canvas.finished(ax, artists, result.recipe, recipe)


def planned(result: Plan, ax: Any = None, *, recipe: bool = True) -> Picture:
    """Draw what was reached with how many rows, what was wanted, and the rows that are needed."""
    ax = canvas.paper(ax, canvas.COLUMN, 2.2)
    goal = result.power if result.width is None else result.width
    x, y = np.array(result.points or [(result.n, goal)], dtype=float).T
    marks = ax.scatter(x, y, s=14, color=INK, zorder=3)
    wanted = ax.axhline(float(goal or 0.0), color=GREY, linestyle=DASHED, linewidth=0.8)
    needed = ax.axvline(result.n, color=BLUE, linewidth=0.9)
    span = ax.axvspan(result.low, max(result.high, result.low + 1e-9), color=BLUE, alpha=0.15)
    ax.set_xscale("log")
    ticks = np.unique([min(x.min(), result.low), result.n, max(x.max(), result.high)])
    ax.set_xticks(ticks, [f"{t:.0f}" for t in ticks])
    ax.minorticks_off()
    ax.set_ylim(0.0, 1.05 if result.width is None else None)
    canvas.tidy(ax, "rows", "power" if result.width is None else "length")
    key = canvas.key(ax, {"simulated" if result.points else "by formula": canvas.sign(),
                          "wanted": wanted, f"{result.n} rows": needed})  # fmt: skip
    artists = {"points": marks, "goal": wanted, "n": needed, "error": span, "key": key}
    return canvas.finished(ax, artists, result.recipe, recipe)
