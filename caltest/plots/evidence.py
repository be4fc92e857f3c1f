"""Evidence as the rows come in."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.plots import canvas
from caltest.plots.canvas import BLUE, DASHED, GREY, INK, PALE, RED, Picture
from caltest.sequential import ComparisonMonitor, Monitor


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
    history = monitor.history
    rows, logs = history[:, 0], history[:, 1] / np.log(10.0)
    ax = canvas.paper(ax, canvas.COLUMN, 2.4 if isinstance(monitor, Monitor) else 3.5)
    upper = ax if isinstance(monitor, Monitor) else canvas.above(ax, 0.5)
    artists: dict[str, Any] = {}
    if isinstance(monitor, ComparisonMonitor):
        pairs = ("a", logs, BLUE), ("b", history[:, 2] / np.log(10.0), RED)
        for name, values, color in pairs:
            (artists[name],) = upper.plot(rows, values, color=color, linewidth=1.2)
            artists[name].set(marker="", linestyle="-" if name == "a" else (0, (5, 1.5)))
        entries = {"a is better": artists["a"], "b is better": artists["b"]}
        upper.tick_params(labelbottom=False)
        artists["band"] = ax.fill_between(rows, *history[:, 3:].T, color=PALE, linewidth=0)
        (artists["difference"],) = ax.plot(rows, history[:, 3:].mean(axis=1), color=INK)
        entries[f"{100.0 * (1.0 - monitor.alpha):g} % band"] = artists["band"]
        ax.axhline(0.0, color=GREY, linewidth=0.8)
        reach = 1.5 * np.abs(history[len(rows) // 4 :, 3:]).max()
        ax.set_ylim(-reach, reach)
        canvas.tidy(ax, "rows", f"{monitor.score} score, a − b")
        canvas.tidy(upper, "", "log10 evidence")
    else:
        logs = np.minimum(logs, np.max(logs, initial=0.0, where=np.isfinite(logs)) + 1.0)
        one = "o" if rows.size == 1 else ""  # a line of one point is not seen
        (artists["evidence"],) = ax.plot(rows, logs, one + "-", color=BLUE, linewidth=1.2)
        ax.set_ylim(bottom=max(logs.min(), -6.0) - 0.2)
        inset = ax.inset_axes((0.06, 0.66, 0.24, 0.3))
        p = np.linspace(0.001, 0.999, 400)
        inset.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=DASHED)
        (artists["leader"],) = inset.plot(p, monitor.best_curve(p), color=RED, linewidth=1.0)
        inset.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1), aspect="equal")
        canvas.tidy(ax, "rows", "log10 evidence")
        entries = {"leading expert": artists["leader"]}
    limit = monitor.alarm_at / np.log(10.0)
    dashed = {"color": INK, "linestyle": DASHED, "linewidth": 0.8}
    artists["threshold"] = upper.axhline(limit, **dashed)
    if monitor.alarm is not None:
        artists["alarm"] = upper.axvline(monitor.alarm, color=RED, linestyle=":", linewidth=1.2)
        entries["alarm"] = artists["alarm"]
    artists["key"] = canvas.key(upper, {"threshold": artists["threshold"], **entries})
    if isinstance(monitor, Monitor):
        artists["heading"] = canvas.heading(ax, monitor.leader, artists["key"])
    return canvas.finished(ax, artists, monitor.recipe, recipe)
