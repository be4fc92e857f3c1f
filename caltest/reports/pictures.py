"""Pictures of a report, as SVG within the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.plots import Picture
from caltest.plots.canvas import GREY
from caltest.results import CalibrationTestResult, ReliabilityCurve

if TYPE_CHECKING:
    from caltest.reports.document import Section


def _attributes(curve: ReliabilityCurve) -> Picture:
    """Draw the diagram of the weather services: the climate, and where forecasts begin to help."""
    picture = curve.plot(style="classical", recipe=False)
    mean = float(np.average(curve.observed, weights=curve.count))
    thin = {"color": GREY, "linewidth": 0.8, "linestyle": (0, (1, 1.5)), "zorder": 1}
    ax: Any = picture.ax
    ax.axhline(mean, **thin)
    ax.axvline(mean, **thin)
    ax.plot([0.0, 1.0], [0.5 * mean, 0.5 * (1.0 + mean)], marker="", **thin)
    return picture


def _groups(test: CalibrationTestResult) -> Picture:
    """Draw the subgroups of the largest errors."""
    assert test.subgroups is not None
    return test.subgroups.first(MOST_GROUPS).plot(recipe=False)


#: Subgroups that fit into a picture.
MOST_GROUPS = 25
#: How the parts are drawn that are drawn in a way of their own.
DRAWN: dict[str, Callable[[Any], Picture]] = {"attributes": _attributes, "groups": _groups}


def picture_of(section: Section) -> Picture:
    """Draw the last answer of a section."""
    draw, result = DRAWN.get(section.picture), section.results[-1]
    picture: Picture = result.plot(recipe=False) if draw is None else draw(result)
    return picture


def svg_of(section: Section) -> str:
    """Return the picture of a section as an element of a page, whose names are its own."""
    svg = picture_of(section).to_svg()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    for mark in (' id="', '"#', "url(#"):
        svg = svg.replace(mark, f"{mark}{section.key}-")
    return svg
