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
from caltest.reporting.answers import ClassTable, DataSummary, Measures, recalibrated_line
from caltest.reporting.document import Section
from caltest.results import AuditReport, Result
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


#: What a part shows: answers, how the last is drawn, and what was found in words.
Shown = tuple[tuple[Result, ...], str]


def _data(asked: Asked) -> Shown:
    return (DataSummary.of(asked.grouped, asked.lens, asked.induced),), ""


def _size(asked: Asked) -> Shown:
    return (confidence_interval(asked.data, lens=asked.lens, level=asked.level, **asked.run),), ""


def _lenses(asked: Asked) -> Shown:
    return (asked.audit,), ""


def _measures(asked: Asked) -> Shown:
    return (Measures.of(asked.data, asked.lens, asked.induced, asked.level),), ""


def _cox(asked: Asked) -> Shown:
    return (recalibrated_line(asked.data, asked.lens, asked.induced, asked.level),), "cox"


def _curve(asked: Asked) -> Shown:
    curve = reliability_curve(
        asked.data, lens=asked.lens, simultaneous=True, level=asked.level, **asked.run
    )
    return (curve,), "curve"


def _attributes(asked: Asked) -> Shown:
    return _curve(asked)[0], "attributes"


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
        raise Absent("subgroups: none were given (by=), so whether it holds for all is not known")
    return (calibration_test(asked.grouped, lens=asked.lens, **asked.run),), ""


def _decomposition(asked: Asked) -> Shown:
    return (corp_decomposition(asked.data, lens=asked.lens),), "decomposition"


def _murphy(asked: Asked) -> Shown:
    return (brier_decomposition(asked.data, lens=asked.lens),), "decomposition"


def _also(asked: Asked) -> Shown:
    if not asked.also:
        raise Absent
    return (joint_test(asked.data, None, [(s, asked.lens) for s in asked.also], **asked.run),), ""


def _recalibration(asked: Asked) -> Shown:
    if asked.recalibrated is None:
        raise Absent("recalibration: whether it would help was not tried (recalibrated=)")
    names = ["as it is", "recalibrated"]
    pair = compare(asked.data, asked.recalibrated, lens=asked.lens, names=names, **asked.run)
    after = Measures.of(asked.recalibrated, asked.lens, asked.lens(asked.recalibrated), asked.level)
    return (after, pair), "comparison"


#: The parts by key: title, how to read it, and what computes it.
PARTS: dict[str, tuple[str, str, Callable[[Asked], Shown]]] = {
    "data": (
        "Data",
        "The rows that everything below rests on.",
        _data,
    ),
    "size": (
        "Size of the error",
        "The average distance of prediction and outcome over 15 bins, in new rows like these. A "
        "calibrated model shows some error, too: the noise floor.",
        _size,
    ),
    "measures": (
        "Measures",
        "Each number with its interval, where one is known, and how to read it.",
        _measures,
    ),
    "curve": (
        "Reliability diagram",
        "Outcome minus prediction, by prediction. Marks within their bars are what chance alone "
        "would show of a calibrated model, all bars together; filled marks outside are not.",
        _curve,
    ),
    "attributes": (
        "Reliability and attributes diagram",
        "How often the event followed each forecast: on the diagonal forecasts are right. The "
        "dotted lines are the mean of the event, and halfway to it: marks nearer to the diagonal "
        "than that do better than always forecasting the mean. The columns above show how sharp "
        "the forecasts are.",
        _attributes,
    ),
    "band": (
        "Where the true curve lies",
        "If more predicted means more frequent, the true curve lies in this band, everywhere at "
        "once, whatever its form. The first table says how far from the diagonal it must be "
        "somewhere, and may be at most, for the predictions of the middle 90 % of the rows.",
        _band,
    ),
    "cox": (
        "Calibration intercept and slope",
        "A straight line on the scale of log-odds: intercept 0 and slope 1 are calibrated.",
        _cox,
    ),
    "lenses": (
        "Questions",
        "One row a question, with p-values that allow for their number. The error is the average "
        "distance of prediction and outcome; beside it what chance alone would show. OneVsRest(c) "
        "looks at the probability of class c, TopK(1) at that of the predicted class, Canonical() "
        "at those of all classes together.",
        _lenses,
    ),
    "classes": (
        "Classes",
        "Is every class predicted as often as it occurs? The worst first.",
        _classes,
    ),
    "groups": (
        "Subgroups",
        "The same question of every subgroup by itself, with p-values that allow for their number.",
        _groups,
    ),
    "decomposition": (
        "The score taken apart",
        "Miscalibration is what recalibration would gain, discrimination what the order of the "
        "predictions is worth, uncertainty the score of always predicting the mean.",
        _decomposition,
    ),
    "murphy": (
        "Murphy decomposition",
        "Reliability is the loss by wrong probabilities (0 is best), resolution the gain by "
        "telling cases apart, uncertainty that of the climate itself.",
        _murphy,
    ),
    "also": (
        "Further tests",
        "Tests that were asked for by name.",
        _also,
    ),
    "recalibration": (
        "Effect of recalibration",
        "The same rows after recalibration on others: its measures, and which is closer to "
        "calibrated.",
        _recalibration,
    ),
}  # fmt: skip

#: The parts of each profile in their order.
PROFILES: dict[str, tuple[str, ...]] = {
    "clinical": (
        *("data", "measures", "cox", "band", "curve", "size", "groups", "classes", "lenses"),
        *("also", "recalibration"),
    ),
    "ml": (
        *("data", "size", "curve", "band", "lenses", "classes", "groups", "measures"),
        *("decomposition", "also", "recalibration"),
    ),
    "weather": (
        *("data", "size", "attributes", "murphy", "decomposition", "measures", "band", "lenses"),
        *("classes", "groups", "also", "recalibration"),
    ),
    "llm": (
        *("data", "size", "groups", "curve", "band", "lenses", "classes", "measures"),
        *("decomposition", "also", "recalibration"),
    ),
}
#: Titles in the words of a profile.
TITLES = {
    "clinical": {
        "data": "Participants and outcome events (TRIPOD+AI 21)",
        "measures": "Performance measures (TRIPOD+AI 12e, 23a)",
        "cox": "Calibration in the large and slope (TRIPOD+AI 23a)",
        "band": "Flexible calibration curve (TRIPOD+AI 23a)",
        "groups": "Key subgroups (TRIPOD+AI 23a, 23b)",
        "lenses": "Tests",
        "recalibration": "Model updating (TRIPOD+AI 24)",
    },
    "llm": {"groups": "By task", "curve": "By stated confidence"},
}


def contents(asked: Asked, profile: str) -> tuple[tuple[Section, ...], list[str]]:
    """Return the parts of a profile, and what could not be examined with the reason."""
    sections: list[Section] = []
    left_out: list[str] = []
    for key in PROFILES[profile]:
        title, meaning, compute = PARTS[key]
        title = TITLES.get(profile, {}).get(key, title)
        try:
            results, picture = compute(asked)
        except Absent as absent:
            left_out += map(str, absent.args)
            continue
        except StatisticError as error:
            left_out.append(f"{title.lower()}: {error}")
            continue
        sections.append(Section(key, title, meaning, results, picture))
        left_out += [o for r in results if isinstance(r, Measures) for o in r.omitted]
    return tuple(sections), [*left_out, *_never(asked)]


def _never(asked: Asked) -> list[str]:
    """Return what no report of these rows can examine."""
    data, said = asked.data, []
    if data.n_clusters is None:
        said.append("dependence: rows are taken for independent, as no clusters were given")
    if data.n_classes > 2 or data.classes == RIGHT:
        said.append("probabilities of other classes than the predicted one, in curve and measures")
    return [
        *said,
        "who is in the data: other places, times and ways of sampling may differ",
        "how labels were made, and rows that are missing",
        "discrimination, usefulness for decisions, and fairness",
    ]
