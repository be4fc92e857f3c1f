"""What the parts of a report compute, and which parts each profile has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
)
from caltest.lenses import Lens
from caltest.predictions import Predictions
from caltest.reliability import reliability_curve, reliability_fit
from caltest.reporting.answers import WORDING, ClassTable, DataSummary, Measures, cox_line
from caltest.reporting.document import Section
from caltest.results import AuditReport, ReliabilityCurve, Result
from caltest.statistics import StatisticLike


@dataclass(frozen=True)
class Asked:
    """What a report is of: rows without subgroups, seen through a lens, and with them."""

    data: Predictions
    grouped: Predictions
    lens: Lens
    induced: Predictions
    audit: AuditReport
    recalibrated: Predictions | None
    also: tuple[StatisticLike, ...]
    level: float
    run: dict[str, Any]


class Absent(Exception):
    """A part that these data do not call for; what is said of it, if anything."""


#: What a part shows: answers, and how the last is drawn.
Shown = tuple[tuple[Result, ...], str]


def _curve(asked: Asked) -> ReliabilityCurve:
    options: dict[str, Any] = {"simultaneous": True, "level": asked.level, **asked.run}
    return reliability_curve(asked.data, lens=asked.lens, **options)


def _band(asked: Asked) -> Shown:
    fit = reliability_fit(asked.data, lens=asked.lens, fit="band", level=asked.level)
    most = np.quantile(asked.induced.probs[:, 0], (0.05, 0.95), method="nearest")
    test = fit.band_test(asked.audit.tolerance or 0.0, between=(most[0], most[1]))
    return (test, fit), "band"


def _classes(asked: Asked) -> Shown:
    if asked.data.n_classes == 2:
        raise Absent
    return (ClassTable.of(asked.data, asked.lens),), ""


def _groups(asked: Asked) -> Shown:
    if not asked.grouped.subgroups():
        raise Absent(WORDING["unexamined"]["groups"])
    return (calibration_test(asked.grouped, lens=asked.lens, **asked.run),), ""


def _also(asked: Asked) -> Shown:
    if not asked.also:
        raise Absent
    return (joint_test(asked.data, None, [(s, asked.lens) for s in asked.also], **asked.run),), ""


def _recalibration(asked: Asked) -> Shown:
    after = asked.recalibrated
    if after is None:
        raise Absent(WORDING["unexamined"]["recalibration"])
    names = ["as it is", "recalibrated"]
    pair = compare(asked.data, after, lens=asked.lens, names=names, **asked.run)
    return (Measures.of(after, asked.lens, asked.lens(after), asked.level), pair), "comparison"


#: What computes each part.
PARTS: dict[str, Callable[[Asked], Shown]] = {
    "data": lambda a: ((DataSummary.of(a.grouped, a.lens, a.induced),), ""),
    "size": lambda a: ((confidence_interval(a.data, lens=a.lens, level=a.level, **a.run),), ""),
    "measures": lambda a: ((Measures.of(a.data, a.lens, a.induced, a.level),), ""),
    "curve": lambda a: ((_curve(a),), "curve"),
    "attributes": lambda a: ((_curve(a),), "attributes"),
    "band": _band,
    "cox": lambda a: ((cox_line(a.data, a.lens, a.induced, a.level),), "cox"),
    "lenses": lambda a: ((a.audit,), ""),
    "classes": _classes,
    "groups": _groups,
    "decomposition": lambda a: ((corp_decomposition(a.data, lens=a.lens),), "decomposition"),
    "murphy": lambda a: ((brier_decomposition(a.data, lens=a.lens),), "decomposition"),
    "also": _also,
    "recalibration": _recalibration,
}


def contents(asked: Asked, profile: str) -> tuple[tuple[Section, ...], list[str]]:
    """Return the parts of a profile, and what could not be examined with the reason."""
    sections: list[Section] = []
    left_out: list[str] = []
    own = WORDING["profiles"][profile]
    for key in own["parts"]:
        words = WORDING["parts"][key]
        title = own.get("titles", {}).get(key, words["title"])
        try:
            results, picture = PARTS[key](asked)
        except Absent as absent:
            left_out += map(str, absent.args)
            continue
        except StatisticError as error:
            left_out.append(f"{title.lower()}: {error}")
            continue
        sections.append(Section(key, title, words["meaning"], results, picture))
        left_out += [o for r in results if isinstance(r, Measures) for o in r.omitted]
    return tuple(sections), [*left_out, *_never(asked)]


def _never(asked: Asked) -> list[str]:
    """Return what no report of these rows can examine."""
    words, data = WORDING["unexamined"], asked.data
    others = data.n_classes > 2 or data.classes == RIGHT
    unknown = [words["dependence"]] * (data.n_clusters is None) + [words["classes"]] * others
    return [*unknown, *words["always"]]
