"""What the parts of a report compute, and which parts each profile has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from caltest._base.facts import RIGHT
from caltest.errors import StatisticError
from caltest.inference import (
    brier_decomposition,
    calibration_test,
    compare,
    confidence_interval,
    corp_decomposition,
    joint_test,
    meta_analysis,
)
from caltest.predictions import Predictions
from caltest.reliability import reliability_curve, reliability_fit
from caltest.reliability.view import View
from caltest.reports.answers import WORDING, ClassTable, DataSummary, Measures, cox_line
from caltest.reports.document import Section
from caltest.reports.smooth import lowess
from caltest.results import AuditReport, ReliabilityCurve, Result
from caltest.segments import segment_search
from caltest.statistics import StatisticLike
from caltest.tally import Tally


@dataclass(frozen=True)
class Request:
    """What a report is of: rows seen through a lens, and with subgroups, and with features."""

    view: View
    grouped: Predictions | Tally
    featured: Predictions | None
    audit: AuditReport
    recalibrated: Predictions | None
    also: tuple[StatisticLike, ...]
    level: float
    bound_alpha: float
    run: dict[str, Any]

    @property
    def subgroups(self) -> int:
        """The number of subgroups, which a tally does not know."""
        return 0 if isinstance(self.grouped, Tally) else len(self.grouped.subgroups())

    @property
    def source(self) -> dict[str, Any]:
        """The rows and the lens, as verbs take them."""
        return {"probs": self.view.data, "lens": self.view.lens}


class Absent(Exception):
    """A part that these data do not call for; what is said of it, if anything."""


#: The bins of a report, and the rows that each must hold on average.
N_BINS, IN_A_BIN = 15, 20
#: What a part shows: answers, and how the last is drawn.
Shown = tuple[tuple[Result, ...], str]


def _curve(request: Request) -> ReliabilityCurve:
    options: dict[str, Any] = {"simultaneous": True, "level": request.level, **request.run}
    bins = int(np.clip(request.view.data.n // IN_A_BIN, 3, N_BINS))
    return reliability_curve(**request.source, bins=bins, **options)


def _size(request: Request) -> Shown:
    if request.view.data.n < IN_A_BIN * N_BINS:
        raise Absent(WORDING["unexamined"]["size"].format(request.view.data.n))
    return (
        confidence_interval(**request.source, level=1.0 - 2.0 * request.bound_alpha, **request.run),
    ), ""


def _sites(request: Request) -> Shown:
    data = request.grouped
    if isinstance(data, Tally) or data.by is None:
        raise Absent(WORDING["unexamined"]["sites"])
    if data.clusters is not None:
        parts = [np.unique(data.clusters[rows]).size for rows in data.subgroups().values()]
        if max(parts) == 1:  # sites are the clusters: within them patients are independent
            data = replace(data, clusters=None)
    return (meta_analysis(data, lens=request.view.lens, level=request.level),), "sites"


def _band(request: Request) -> Shown:
    fit = reliability_fit(**request.source, fit="band", level=request.level)
    most = request.view.units.quantiles((0.05, 0.95))
    test = fit.band_test(request.audit.tolerance or 0.0, between=(most[0], most[1]))
    return (test, fit), "band"


def _classes(request: Request) -> Shown:
    if request.view.data.n_classes == 2:
        raise Absent
    return (ClassTable.of(request.view),), ""


def _groups(request: Request) -> Shown:
    if not request.subgroups:
        raise Absent(WORDING["unexamined"]["groups"])
    test = calibration_test(request.grouped, lens=request.view.lens, **request.run)
    assert test.subgroups is not None
    return (replace(test, subgroups=test.subgroups.worst_first()),), "groups"


def _where(request: Request) -> Shown:
    if request.featured is None:
        raise Absent(WORDING["unexamined"]["where"])
    alpha = 1.0 - request.level
    search = segment_search(request.featured, lens=request.view.lens, alpha=alpha, **request.run)
    return (search,), "segments"


def _also(request: Request) -> Shown:
    if not request.also:
        raise Absent
    pairs = [(statistic, request.view.lens) for statistic in request.also]
    return (joint_test(request.view.data, pairs=pairs, **request.run),), ""


def _recalibration(request: Request) -> Shown:
    after = request.recalibrated
    if after is None:
        raise Absent(WORDING["unexamined"]["recalibration"])
    names, lens = ("as it is", "recalibrated"), request.view.lens
    pair = compare(request.view.data, after, lens=lens, names=names, **request.run)
    return (
        Measures.of(View("report", after, lens, lens(after)), request.level),
        pair,
    ), "comparison"


#: What computes each part.
PARTS: dict[str, Callable[[Request], Shown]] = {
    "data": lambda a: ((DataSummary.of(a.view, a.subgroups),), ""),
    "size": _size,
    "smooth": lambda a: ((lowess(a.view, a.level),), "smooth"),
    "sites": _sites,
    "measures": lambda a: ((Measures.of(a.view, a.level),), ""),
    "curve": lambda a: ((_curve(a),), "curve"),
    "attributes": lambda a: ((_curve(a),), "attributes"),
    "band": _band,
    "cox": lambda a: ((cox_line(a.view, a.level),), "cox"),
    "lenses": lambda a: ((a.audit,), ""),
    "classes": _classes,
    "groups": _groups,
    "decomposition": lambda a: ((corp_decomposition(**a.source),), "decomposition"),
    "murphy": lambda a: ((brier_decomposition(**a.source),), "decomposition"),
    "where": _where,
    "also": _also,
    "recalibration": _recalibration,
}


def contents(request: Request, profile: str) -> tuple[tuple[Section, ...], list[str]]:
    """Return the parts of a profile, and what could not be examined with the reason."""
    sections: list[Section] = []
    left_out: list[str] = []
    words_of_profile = WORDING["profiles"][profile]
    for key in words_of_profile["parts"]:
        words = WORDING["parts"][key]
        title = words_of_profile.get("titles", {}).get(key, words["title"])
        try:
            results, picture = PARTS[key](request)
        except Absent as absent:
            left_out += map(str, absent.args)
            continue
        except StatisticError as error:
            left_out.append(f"{title}: {error}")
            continue
        sections.append(Section(key, title, words["meaning"], results, picture))
        left_out += [o for r in results if isinstance(r, Measures) for o in r.omitted]
    return tuple(sections), [*left_out, *_never(request)]


def _never(request: Request) -> list[str]:
    """Return what no report of these rows can examine."""
    words, data = WORDING["unexamined"], request.view.data
    others = data.n_classes > 2 or data.classes == RIGHT
    unknown = [words["dependence"]] * (data.n_clusters is None) + [words["classes"]] * others
    return [*unknown, *words["always"]]
