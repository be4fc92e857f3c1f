"""Figures: the only room that imports matplotlib; it computes nothing.

Every picture takes ``ax=`` (where to draw; by default a new figure, one column or 3.25 inches wide)
and ``recipe=`` (whether to write at the foot how it was made; by default it is), returns a
:class:`Picture`, and leaves matplotlib's settings alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caltest.plots.chart import Picture
from caltest.plots.forests import (
    classes,
    differences,
    forest,
    individual,
    promise,
    pvalues,
    segments,
    sites,
)
from caltest.plots.lines import decision_curve, evidence, fitted, null, revisions, sensitivity
from caltest.plots.panels import comparison, difference, reliability, simplex
from caltest.results import Record
from caltest.results.base import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Picture",
    "classes",
    "comparison",
    "decision_curve",
    "difference",
    "differences",
    "draw",
    "evidence",
    "fitted",
    "forest",
    "individual",
    "null",
    "promise",
    "pvalues",
    "reliability",
    "revisions",
    "segments",
    "sensitivity",
    "simplex",
    "sites",
]


def draw(result: Record, ax: Axes | None = None, **options: Any) -> Drawing:
    """Draw a result as its ``plot`` method does; return the picture.

    ``options`` go to the function of :mod:`caltest.plots` that draws such results. Without
    ``ax`` a new figure is made. StatisticError for a result that has no picture.
    """
    return result.plot(ax, **options)
