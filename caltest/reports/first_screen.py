"""The first screen of a report: verdict, main finding, key numbers, recommendation, provenance.

:func:`first_screen` builds it from the answers of a report, :mod:`caltest.reports.elements` has its
records and draws them. :func:`recommendation` chooses the next step from the facts of a
:class:`Situation`, by the first rule of :data:`RULES` that holds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite, nan

import numpy as np
from scipy.special import chdtrc, ndtri

from caltest._base import FloatArray
from caltest.data import Predictions
from caltest.data.facts import RIGHT
from caltest.data.lenses import OneVsRest
from caltest.errors import StatisticError
from caltest.inference import confidence_interval, meta_analysis
from caltest.inference.null import holm
from caltest.inference.reliability import View
from caltest.nulls import Run
from caltest.recalibration import TemperatureScaling
from caltest.reports.document import Section, first_of_kind
from caltest.reports.elements import MINUS, NB, FirstScreen, KeyNumber, PartLine, points, share
from caltest.reports.findings import on_their_own
from caltest.reports.measures import FollowedSites, Measures
from caltest.results import (
    AuditReport,
    AuditVerdict,
    ComparisonResult,
    ComparisonVerdict,
    ConfidenceIntervalResult,
    MetaAnalysis,
    Subgroups,
)
from caltest.results.rendering import format_value, spread_of
from caltest.statistics import LogScore, MeanDifference
from caltest.statistics.regression import fit_logistic, log_odds

#: The word of a verdict, and its tone: colour and shape.
CHIPS = {
    AuditVerdict.MISCALIBRATED: ("MISCALIBRATED", "bad"),
    AuditVerdict.CALIBRATED: ("NO MISCALIBRATION DETECTED", "ask"),
    AuditVerdict.TOO_LITTLE_DATA: ("TOO LITTLE DATA", "ask"),
    AuditVerdict.MATTERS: ("MISCALIBRATED, AND IT MATTERS", "bad"),
    AuditVerdict.TOO_LITTLE_TO_MATTER: ("MISCALIBRATED, WITHIN TOLERANCE", "ok"),
    AuditVerdict.WITHIN_TOLERANCE: ("WITHIN TOLERANCE", "ok"),
    AuditVerdict.CANNOT_TELL: ("CANNOT TELL", "ask"),
    AuditVerdict.IN_DOUBT: ("IN DOUBT", "ask"),
}


#: Lines for subgroups or classes; classes and subgroups that are bounded one by one.
MOST_SENTENCES, MOST_BOUNDED = 4, 60


@dataclass(frozen=True)
class ScreenTerms:
    """The user's words on the first screen: outcome, observations, subgroup, source and author.

    ``event`` is the outcome, a participle such as "died"; ``rows`` and ``groups`` are the words for
    observations and subgroups. ``source``, ``model_version`` and ``author`` stand in the line of
    provenance. An empty string stands for the general word, such as "observations".
    """

    event: str = ""
    rows: str = ""
    groups: str = ""
    source: str = ""
    model_version: str = ""
    author: str = ""


@dataclass(frozen=True)
class Findings:
    """Input of a first screen: data, audit, sections, interval level and settings.

    ``view`` holds the observations through the lens of the report, ``grouped`` the rows with their
    subgroups, None without; ``audit`` is the report of the audit and ``sections`` are the parts of
    the report with their results. ``level`` is the level of intervals, ``words`` are the user's
    words, and ``draws`` holds n_resamples, rng and workers.
    """

    view: View
    grouped: Predictions | None
    audit: AuditReport
    sections: tuple[Section, ...]
    level: float
    words: ScreenTerms
    draws: Run

    @property
    def top(self) -> bool:
        """True if the predictions are confidences in the predicted class."""
        return self.view.lens.subject == "top" or self.view.data.classes == RIGHT

    @property
    def event(self) -> str:
        """Participle for an outcome of 1, such as "died", to follow a rate."""
        return self.words.event or ("right" if self.top else "observed")

    @property
    def rows(self) -> str:
        return self.words.rows or "observations"

    @property
    def means(self) -> tuple[float, float]:
        """(Mean prediction, event rate) of the observations behind the lens of this report."""
        predicted, observed = self.view.problem.means()
        return float(predicted), float(observed)


def first_screen(f: Findings) -> FirstScreen:
    """Return the first screen of a report: verdict, headline, key numbers, advice, provenance.

    ``f`` holds the data, the audit and the settings.
    """
    signed = _signed(f)
    parts = _parts(f)
    word, tone = CHIPS[f.audit.verdict]
    if f.audit.verdict is AuditVerdict.CANNOT_TELL and _certain(f, parts):
        word = "CANNOT TELL OVERALL"
    in_units = [row.detail for row in f.audit.rows if row.promise is not None]
    return FirstScreen(
        word=word,
        tone=tone,
        headline=_headline(f, signed, parts),
        lede=_lede(f),
        numbers=tuple(_numbers(f, signed, parts))[:4],
        matters=" ".join([_matters(f, signed, parts), *in_units]),
        parts=parts,
        whom=_whom(f, parts),
        next=recommendation(_situation(f, signed, parts)),
        provenance=_provenance(f),
    )


def _signed(f: Findings) -> ConfidenceIntervalResult | None:
    """Return the interval of observed − predicted over all rows, or None where none is known.

    The interval is that of the mean difference. ``f`` holds data, audit and settings.
    """
    with suppress(StatisticError):
        return confidence_interval(
            f.view.data, None, MeanDifference(), lens=f.view.lens, level=f.level
        )
    return None


def _parts(f: Findings) -> tuple[PartLine, ...]:
    """Return the lines of the table of subgroups, or of classes without subgroups.

    Each PartLine has name, size, predicted and observed, and their difference with its interval.
    They are sorted by the lower bound of |observed − predicted|, the largest first. ``f`` holds
    data, audit and settings; () for two classes without subgroups.
    """
    if f.grouped is not None and (found := _bounded_groups(f)) is not None:
        tests = list(zip(found.names, found.tests, strict=True))
    elif f.view.data.n_classes > 2 and f.view.data.rows is not None:
        tests = _bounded_classes(f)
    else:
        return ()
    lines = []
    for name, test in tests:
        if test is None:
            continue
        predicted, observed = _means_of(f, name)
        lines.append(_line(f, name, test, predicted, observed))
    adjusted = holm([line.adjusted for line in lines])
    lines = [replace(line, adjusted=p) for line, p in zip(lines, adjusted, strict=True)]
    return tuple(sorted(lines, key=lambda p: (-p.at_least, -abs(p.difference))))


def _whom(f: Findings, parts: tuple[PartLine, ...]) -> str:
    """Return a sentence on the classes that are wrong by themselves, for more than two classes.

    It counts the miscalibrated ones, and names those off on average; if averages of all are right
    within noise, it names the worst one with its error. ``f`` holds data, audit and settings,
    ``parts`` are the lines of the table of classes, each with observed − predicted. It is "" with
    subgroups, and if a class is off on average although no test rejects.
    """
    row = next((row for row in f.audit.rows if row.aspect == "classes"), None)
    if row is None or f.grouped is not None:
        return ""
    off = [p.name for p in parts if p.tone == "bad"]
    if off and row.verdict.rejects:
        listed = ", ".join(off[:MOST_SENTENCES]) + ", …" * (len(off) > MOST_SENTENCES)
        wrong = on_their_own(max(row.n_wrong, len(off)), row.n_tests, "classes")  # by two tests
        return f"{wrong}; off on average: {listed}."
    if off:
        return ""
    if not row.verdict.rejects:
        return "No class is wrong by itself beyond noise."
    error, floor = _size_in_points(row.test.estimate), _size_in_points(row.test.null_mean)
    return (
        f"{on_their_own(row.n_wrong, row.n_tests, 'classes')}, although the averages of all "
        f"classes are right within noise. Furthest off: {row.worst} (calibration error {error}, "
        f"noise floor {floor})."
    )


def _bounded_groups(f: Findings) -> Subgroups | None:
    assert f.grouped is not None
    if not 1 < len(f.grouped.subgroups()) <= MOST_BOUNDED:
        return None
    with suppress(StatisticError):
        return confidence_interval(
            f.grouped, None, MeanDifference(), lens=f.view.lens, level=f.level
        ).subgroups
    return None


def _bounded_classes(f: Findings) -> list[tuple[str, ConfidenceIntervalResult | None]]:
    rows = f.view.data.rows
    assert rows is not None
    if rows.n_classes > MOST_BOUNDED:
        return []
    each, plain = 1.0 - (1.0 - f.level) / rows.n_classes, replace(rows, by=None, features=None)
    found: list[tuple[str, ConfidenceIntervalResult | None]] = []
    for c in range(rows.n_classes):
        with suppress(StatisticError):
            test = confidence_interval(plain, None, MeanDifference(), lens=OneVsRest(c), level=each)
            found.append((rows.class_name(c), test))
    return found


def _means_of(f: Findings, name: str) -> tuple[float, float]:
    """Return (mean prediction, event rate) of a subgroup or a class.

    ``f`` holds the data behind the lens and the subgroups, ``name`` is the subgroup or class.
    """
    if f.grouped is not None and name in (groups := f.grouped.subgroups()):
        part = replace(f.grouped, by=None).take(groups[name])
        predicted, observed = View.through(f.view.lens, part).problem.means()
        return float(predicted), float(observed)
    rows = f.view.data.rows
    assert rows is not None
    c = rows.class_index(name) if rows.classes else int(name)
    w = np.ones(rows.n) if rows.weights is None else rows.weights
    return float(np.average(rows.probs[:, c], weights=w)), float(
        np.average(rows.labels == c, weights=w)
    )


def _line(
    f: Findings, name: str, test: ConfidenceIntervalResult, predicted: float, observed: float
) -> PartLine:
    low, high = test.low or 0.0, test.high or 0.0
    tolerance, least = f.audit.tolerance, max(low, -high, 0.0)
    if tolerance is None:
        tone, finding = ("bad", "miscalibrated") if least > 0.0 else ("ask", "within noise")
        if f.grouped is None:  # its probabilities may be wrong although their average is right
            finding = "average off" if least > 0.0 else "average within noise"
    elif least > tolerance:
        tone, finding = "bad", "above tolerance"
    elif max(abs(low), abs(high)) <= tolerance:
        tone, finding = "ok", "within tolerance"
    else:
        tone, finding = "ask", "cannot tell"
    return PartLine(
        name,
        test.n,
        predicted,
        observed,
        test.estimate,
        low,
        high,
        1.0 if test.pvalue is None else test.pvalue,
        tone,
        finding,
    )


# ------------------------------------------------------------------------------
# The main finding, by name.


def _headline(
    f: Findings, signed: ConfidenceIntervalResult | None, parts: tuple[PartLine, ...]
) -> tuple[str, ...]:
    """Return the lines of the headline, in one or two strings.

    The first that applies is reported: the worst subgroup, the average, the slope, or the error
    that could not have been detected. ``f`` holds data, audit and settings; ``signed`` is the
    interval of observed − predicted, ``parts`` are the lines of subgroups or classes.
    """
    predicted, observed = f.means
    called = "predictions" if f.words.rows in ("", "observations") else "risks"
    if f.audit.rejects:
        groups = [p for p in parts if p.at_least > 0.0] if f.grouped is not None else []
        if groups:
            worst = groups[0]
            side = "low" if worst.difference > 0.0 else "high"
            return f"{worst.name}: {called} are too {side}", _rates(
                f, worst.predicted, worst.observed
            )
        low, high = _mean_ends(f, signed)
        if low > 0.0 or high < 0.0:
            if f.top:
                side = "Overconfident" if high < 0.0 else "Underconfident"
                return side, _rates(f, predicted, observed)
            side = "low" if low > 0.0 else "high"
            return f"{called.capitalize()} are too {side}", _rates(f, predicted, observed)
        slope = _measure(f, "slope")
        if slope[1] > 1.0 or slope[2] < 1.0:
            words = "too extreme" if slope[0] < 1.0 else "not extreme enough"
            return f"{called.capitalize()} are {words}", f"calibration slope {slope[0]:.2f}"
        if parts and parts[0].at_least > 0.0:
            worst, side = parts[0], "seldom" if parts[0].difference > 0.0 else "often"
            rates = f"{share(worst.predicted)} predicted, {share(worst.observed)} observed"
            return f"{worst.name} is predicted too {side}", rates
        row = f.audit.rows[0]
        return "Right on average, wrong in parts", (
            f"calibration error {_size_in_points(row.test.estimate)}, "
            f"noise floor {_size_in_points(row.test.null_mean)}"
        )
    passing = _points(f.audit.rows[0].critical)
    if f.audit.verdict is AuditVerdict.TOO_LITTLE_DATA:
        return "Too little data", f"an error of {passing} would not be detected"
    if f.audit.tolerance is not None and isfinite(f.audit.high):
        return "No miscalibration detected", f"the error is at most {_size_in_points(f.audit.high)}"
    return "No miscalibration detected", f"errors up to {passing} would not be detected"


def _mean_ends(f: Findings, signed: ConfidenceIntervalResult | None) -> tuple[float, float]:
    """Return (low, high), the interval of observed − predicted over all rows.

    ``signed`` is the interval, if one was computed; with follow-up it is derived from the interval
    of O:E. ``f`` holds data, audit and settings.
    """
    if signed is not None:
        return signed.low or 0.0, signed.high or 0.0
    _, low, high = _measure(f, "O:E")
    predicted = f.means[0]
    return predicted * (low - 1.0), predicted * (high - 1.0)


def _rates(f: Findings, predicted: float, observed: float) -> str:
    if f.top:
        return f"{share(predicted)} confidence, {share(observed)} right"
    return f"{share(predicted)} predicted, {share(observed)} {f.event}"


def _lede(f: Findings) -> str:
    data = f.view.data
    if f.top:
        kinds = "" if data.n_classes == 2 else f", {data.n_classes} classes"
        return f"{data.n} {f.rows}{kinds}."
    followed = f.view.followup
    if followed is None:
        return f"All {data.n} {f.rows}: {_rates(f, *f.means)}."
    when = "their horizons" if followed.shortest is not None else f"time {followed.horizon:g}"
    return (
        f"All {data.n} {f.rows}: {_rates(f, *f.means)} by {when} ({followed.events} events seen, "
        f"{followed.unknown} censored before)."
    )


def _matters(
    f: Findings, signed: ConfidenceIntervalResult | None, parts: tuple[PartLine, ...]
) -> str:
    """Return a sentence that compares the error with the tolerance.

    Without a tolerance it counts how many more or fewer outcomes there were than predicted.
    ``signed`` is the interval of observed − predicted, ``parts`` the lines of subgroups or classes.
    ``f`` holds data, audit and settings.
    """
    tolerance, audit = f.audit.tolerance, f.audit
    if tolerance is None:
        if not audit.rejects:
            low, high = _mean_ends(f, signed)
            apart = "The average is off by itself, but no test rejects after adjustment for their "
            off = f"{apart}number: weak evidence. " * (low > 0.0 or high < 0.0)
            return f"{off}No tolerance was set."
        return f"{_count(f, signed)}No tolerance was set."
    limit, ends = _size_in_points(tolerance), ""
    if isfinite(audit.low) and isfinite(audit.high):
        ends = (
            f"the error lies between {_size_in_points(audit.low)} and {_size_in_points(audit.high)}"
        )
    worst = next((p for p in parts if p.tone == "bad"), None)
    if audit.verdict is AuditVerdict.MATTERS:
        if worst is not None and f.grouped is not None:
            return (
                f"Yes. At {worst.name} observed and predicted differ by at least "
                f"{_size_in_points(worst.at_least)}; the tolerance is {limit}."
            )
        return f"Yes: {ends}; the tolerance is {limit}."
    if audit.verdict in (AuditVerdict.WITHIN_TOLERANCE, AuditVerdict.TOO_LITTLE_TO_MATTER):
        return f"No: {ends}; the tolerance is {limit}."
    if ends and audit.high <= tolerance:
        ends += f" over all {f.rows}, but that of a part may be larger"
    cannot = f"annot tell: {ends or 'the data are too few'}; the tolerance is {limit}."
    if worst is None or f.grouped is None:
        return f"C{cannot}"
    return (
        f"Yes at {worst.name}, where observed and predicted differ by at least "
        f"{_size_in_points(worst.at_least)}. Over all {f.rows} c{cannot}"
    )


def _count(f: Findings, signed: ConfidenceIntervalResult | None) -> str:
    """Return a sentence such as "12 more of 1000 patients died than predicted.", or "".

    ``f`` holds data, audit and settings; ``signed`` is the interval of observed − predicted, None
    where unknown. With follow-up the sentence is about the ratio of observed to expected events. It
    ends in a blank.
    """
    ratio, low, high = _measure(f, "O:E")
    followed = f.view.followup is not None  # events are estimated
    if (followed or signed is None) and (low > 1.0 or high < 1.0):
        return f"Events are {ratio:.2f} times as frequent as predicted. "
    if signed is None or f.view.data.weights is not None or signed.contains_zero:
        average = "On average, confidence" if f.top else "The average"
        return f"{average} is right within noise. " if signed is not None else ""
    count = round(abs(signed.estimate) * signed.n)
    if f.top:
        kind = "wrong" if signed.estimate < 0.0 else "right"
        return f"{count} more of {signed.n} {f.rows} are {kind} than the model claims. "
    side = "more" if signed.estimate > 0.0 else "fewer"
    return f"{count} {side} of {signed.n} {f.rows} {f.event} than predicted. "


# ------------------------------------------------------------------------------
# The key numbers.


def _numbers(
    f: Findings, signed: ConfidenceIntervalResult | None, parts: tuple[PartLine, ...]
) -> list[KeyNumber]:
    numbers = []
    ratio, slope = _measure(f, "O:E"), _measure(f, "slope")
    if f.top and signed is not None:
        numbers.append(
            _signed_number(f"Accuracy {MINUS} confidence", signed, "below 0: overconfident")
        )
    elif isfinite(ratio[0]):
        numbers.append(_ratio_number("Observed / expected", ratio, "above 1: more than predicted"))
    elif signed is not None:
        numbers.append(_signed_number(f"Observed {MINUS} predicted", signed, "above 0: too low"))
    if isfinite(slope[0]):
        numbers.append(_ratio_number("Calibration slope", slope, "below 1: too extreme"))
    size = first_of_kind(ConfidenceIntervalResult, f.sections)
    if size is not None and size.low is not None and size.high is not None:
        spread = 100.0 * spread_of(size.low, size.high)
        numbers.append(KeyNumber(
            "Calibration error", f"{_pp(size.estimate, spread)}{NB}pp",
            f"{_pp(size.low, spread)} to {_pp(size.high, spread)}",
            f"mean distance over {size.n_cells or 'all'} bins"
            + f"; {100.0 * size.level:g}{NB}% interval" * (size.level != f.level)
            + _at_least(signed, size.low) * (f.audit.tolerance is None),
            size.estimate, size.low, size.high, size.null_mean,
            f"noise floor {_pp(size.null_mean, spread)}", not size.contains_zero,
        ))  # fmt: skip
    if parts:
        worst, kind = parts[0], "subgroup" if f.grouped is not None else "class average"
        spread = 100.0 * spread_of(worst.low, worst.high)
        numbers.append(KeyNumber(
            f"Worst {kind}: {worst.name}", f"{_signed_pp(worst.difference, spread)}{NB}pp",
            f"{_signed_pp(worst.low, spread)} to {_signed_pp(worst.high, spread)}",
            f"{worst.n} {f.rows}, {_rates(f, worst.predicted, worst.observed)}"
            if f.grouped is not None
            else f"predicted {share(worst.predicted)}, observed {share(worst.observed)}",
            worst.difference, worst.low, worst.high, 0.0, "0 if calibrated", worst.at_least > 0.0,
        ))  # fmt: skip
    elif not f.top and signed is not None and len(numbers) < 4:
        numbers.append(_signed_number(f"Observed {MINUS} predicted", signed, "above 0: too low"))
    if f.view.data.n_classes > 2 and (score := _vector_score(f)) is not None:
        numbers = [n for n in numbers if n.label != "Calibration slope"]
        numbers.append(score)
    return numbers


def _at_least(signed: ConfidenceIntervalResult | None, low: float) -> str:
    """Return a note on the lower bound of the error by the mean difference, if it is above ``low``.

    The absolute value of mean observed − predicted is at most the error. ``signed`` is the interval
    of observed − predicted, or None. The note is "" otherwise.
    """
    if signed is None or signed.low is None or signed.high is None:
        return ""
    least = max(signed.low, -signed.high)
    if least <= low:
        return ""
    return f"; at least {_size_in_points(least)}, by the mean difference"


def _measure(f: Findings, name: str) -> tuple[float, float, float]:
    measures = first_of_kind(Measures, f.sections)
    found = None if measures is None else measures.find(name)
    return (nan, nan, nan) if found is None else found


def _pp(value: float, spread: float) -> str:
    """Return a share as text in percentage points, with two digits of its uncertainty ``spread``.

    ``value`` is the share, in [−1, 1]; ``spread`` is in percentage points.
    """
    return format_value(100.0 * value, spread).replace("-", MINUS)


def _signed_pp(value: float, spread: float) -> str:
    text = _pp(value, spread)
    return f"+{text}" if value > 0.0 and text != "0" else text


def _size_in_points(value: float) -> str:
    return points(abs(value)).removeprefix("+")


def _signed_number(label: str, signed: ConfidenceIntervalResult, note: str) -> KeyNumber:
    low, high = signed.low or 0.0, signed.high or 0.0
    spread = 100.0 * spread_of(low, high)
    return KeyNumber(
        label, f"{_signed_pp(signed.estimate, spread)}{NB}pp",
        f"{_signed_pp(low, spread)} to {_signed_pp(high, spread)}", note,
        signed.estimate, low, high, 0.0, "0 if calibrated", not signed.contains_zero,
    )  # fmt: skip


def _ratio_number(label: str, triple: tuple[float, float, float], note: str) -> KeyNumber:
    value, low, high = triple
    spread = spread_of(low, high)
    ends = f"{format_value(low, spread)} to {format_value(high, spread)}" if low == low else ""
    return KeyNumber(
        label,
        format_value(value, spread),
        ends,
        note,
        value,
        low,
        high,
        1.0,
        "1 if calibrated",
        low > 1.0 or high < 1.0,
    )


def _vector_score(f: Findings) -> KeyNumber | None:
    """Return the mean log score beside its expectation under calibration, as a key number.

    The unit is nats. None for tallies, clusters, and data with outcomes of probability 0. ``f``
    holds data, audit and settings.
    """
    rows = f.view.data.rows
    if rows is None or rows.impossible.size or rows.n_clusters is not None:
        return None
    scores = LogScore().of_rows(replace(rows, by=None, features=None))
    w = np.ones(rows.n) if rows.weights is None else rows.weights / rows.weights.mean()
    mean = float(np.average(scores, weights=w))
    error = float(np.sqrt(((w * (scores - mean)) ** 2).sum())) / rows.n
    reach = float(ndtri(0.5 + f.level / 2.0)) * error
    logs = np.where(rows.probs > 0.0, -rows.probs * np.log(np.maximum(rows.probs, 1e-300)), 0.0)
    promised = float(np.average(logs.sum(axis=1), weights=w))
    low, high = max(mean - reach, 0.0), mean + reach
    words = f"{format_value(promised, error)} if calibrated"
    return KeyNumber(
        "Log score, all classes", format_value(mean, error),
        f"{format_value(low, error)} to {format_value(high, error)}",
        "lower is better; in nats", mean, low, high, promised, words, not low <= promised <= high,
    )  # fmt: skip


# ------------------------------------------------------------------------------
# What the recommendation depends on.


def _situation(
    f: Findings, signed: ConfidenceIntervalResult | None, parts: tuple[PartLine, ...]
) -> Situation:
    audit, data = f.audit, f.view.data
    slope, shift = _measure(f, "slope"), _measure(f, "calibration-in-the-large")[0]
    doubts = ["outcomes of probability 0 occurred"] * (audit.impossible > 0)
    levels, slopes, common = _by_group(f)
    temperature, enough = _temperature(f)
    searches = [row.search for row in audit.rows if row.search is not None and row.verdict.rejects]
    comparison = first_of_kind(ComparisonResult, f.sections)
    ends = _mean_ends(f, signed)
    critical, noticed = audit.rows[0].critical, audit.tolerance or 0.1
    needed = int(np.ceil(data.n * (critical / noticed) ** 2 / 100.0)) * 100
    if audit.verdict is AuditVerdict.CANNOT_TELL and isfinite(audit.high):
        needed = int(np.ceil(data.n * ((audit.high - audit.low) / noticed) ** 2 / 100.0)) * 100
    return Situation(
        verdict=audit.verdict,
        rejects=audit.rejects,
        rows=f.rows,
        groups=f.words.groups or "subgroup",
        n=data.n,
        doubts=tuple(doubts),
        tolerance=audit.tolerance,
        needed=needed if needed > data.n else None,
        detectable=critical,
        levels_pvalue=levels,
        slopes_pvalue=slopes,
        apart=tuple(p.name for p in parts if p.at_least > 0.0) if f.grouped is not None else (),
        above=_certain(f, parts),
        common_slope=common,
        mean=ends,
        slope=slope,
        intercept=_intercept(f),
        shift=shift,
        temperature=temperature,
        enough=enough,
        repair=next((t.repair for row in audit.rows if (t := row.classes) is not None), ""),
        segment=searches[0].worst.name if searches else "",
        better=comparison is not None and comparison.verdict is ComparisonVerdict.SECOND_BETTER,
        alpha=audit.alpha,
    )


def _certain(f: Findings, parts: tuple[PartLine, ...]) -> tuple[str, ...]:
    """Return the names of subgroups that are certainly above the tolerance, or without one wrong.

    ``parts`` are the lines of subgroups or classes, ``f`` holds data, audit and settings; () for
    classes.
    """
    return tuple(p.name for p in parts if p.tone == "bad") if f.grouped is not None else ()


def _intercept(f: Findings) -> float:
    """Return the calibration intercept of Cox's line; NaN where it has none.

    ``f`` holds data, audit and settings.
    """
    from caltest.reports.measures import cox_line

    with suppress(StatisticError):
        return cox_line(f.view, f.level).intercept
    return nan


def _by_group(f: Findings) -> tuple[float, float, float]:
    """Return (p of one intercept, p of one slope, common slope) for all subgroups.

    Likelihood-ratio tests of logistic fits on the log-odds: one line; an intercept for each group
    and one slope; a line for each group. With clusters, weights or follow-up, Cochran's Q compares
    the groups.
    ``f`` holds data, audit and settings. (NaN, NaN, NaN) without 2 to 60 subgroups, and where a fit
    is infinite or rows lie in several groups.
    """
    none = (nan, nan, nan)
    if f.grouped is None or not 1 < len(groups := f.grouped.subgroups()) <= MOST_BOUNDED:
        return none
    if f.grouped.followup is not None:
        return _by_followed_site(f)
    sites = first_of_kind(MetaAnalysis, f.sections)
    plain = f.grouped.weights is None and f.grouped.n_clusters is None
    if not plain:
        if sites is None:
            with suppress(StatisticError):
                sites = meta_analysis(within_sites(f.grouped), lens=f.view.lens, level=f.level)
        if sites is None:
            return none
        return sites.intercept.q_pvalue, sites.slope.q_pvalue, sites.slope.mean
    induced = f.view.lens(replace(f.grouped, by=None))
    z, y = log_odds(induced), (induced.labels == 0).astype(np.float64)
    member = np.zeros((z.size, len(groups)))
    for j, places in enumerate(groups.values()):
        member[places, j] = 1.0
    if not 0 < y.sum() < y.size or (member.sum(axis=1) != 1.0).any():
        return none  # groups that overlap, or rows of none
    events = y @ member
    if (events == 0.0).any() or (events == member.sum(axis=0)).any():
        return none  # an infinite intercept
    zero = np.zeros(z.size)
    designs: list[FloatArray] = [
        np.column_stack([np.ones(z.size), z]),
        np.column_stack([member, z]),
        np.column_stack([member, member * z[:, None]]),
    ]
    fits = [fit_logistic(design, zero, y) for design in designs]
    df = len(groups) - 1
    levels, slopes = (2.0 * (fits[k + 1][0] - fits[k][0]) for k in range(2))
    return (
        float(chdtrc(df, max(levels, 0.0))),
        float(chdtrc(df, max(slopes, 0.0))),
        float(fits[1][1][-1]),
    )


def _by_followed_site(f: Findings) -> tuple[float, float, float]:
    """Return (p of one level, p of one slope, common slope) over the sites of rows with follow-up.

    The p-values are of Cochran's Q of calibration-in-the-large and of the slopes; the common slope
    is their weighted mean. ``f`` holds data, audit and settings. (NaN, NaN, NaN) where fewer than
    two sites have a finite fit.
    """
    sites = first_of_kind(FollowedSites, f.sections)
    if sites is None and f.grouped is not None:
        with suppress(StatisticError):
            sites = FollowedSites.of(f.grouped, f.view.lens, f.level)
    return (nan, nan, nan) if sites is None else sites.homogeneity


def within_sites(data: Predictions) -> Predictions:
    """Return grouped rows without their clusters if every group is one cluster.

    The clusters are then the sites, within which rows are independent. Otherwise ``data`` is
    returned unchanged.
    """
    if data.clusters is None:
        return data
    parts = [np.unique(data.clusters[rows]).size for rows in data.subgroups().values()]
    return replace(data, clusters=None) if max(parts) == 1 else data


def _temperature(f: Findings) -> tuple[float, bool]:
    """Return (temperature, True) for three or more classes whose log score is rejected.

    Otherwise, and where no temperature can be fitted, return (NaN, False). ``f`` holds data, audit
    and settings.
    """
    rows = f.view.data.rows
    if rows is None or rows.n_classes == 2 or rows.impossible.size:
        return nan, False
    wrong = any(r.aspect == "score" and r.verdict.rejects for r in f.audit.rows)
    if not wrong:
        return nan, False
    with suppress(StatisticError, ValueError):
        plain = replace(rows, by=None, features=None)
        fitted = TemperatureScaling().fit(plain)
        return _inverse_slope(fitted, plain), True
    return nan, False


def _inverse_slope(fitted: object, rows: Predictions) -> float:
    """Return the temperature of a fitted scaling, computed from its effect on two log-odds.

    ``fitted`` is the recalibration map from probabilities (n, K) to such, and ``rows`` are
    predictions with its number of classes.
    """
    p = np.full((1, rows.n_classes), 0.1 / (rows.n_classes - 1))
    p[0, 0] = 0.9
    q = np.asarray(fitted(p))  # type: ignore[operator]
    return float(np.log(p[0, 0] / p[0, 1]) / np.log(q[0, 0] / q[0, 1]))


def _provenance(f: Findings) -> tuple[str, ...]:
    """Return the items of the provenance line: source, level, model, author, version and seed.

    ``f`` holds data, audit and settings; the items are strings.
    """
    import platform
    from datetime import date

    w, seed = f.words, f.audit.rows[0].test.seed
    said = [w.source or f"{f.view.data.n} {f.rows}", f"{100.0 * f.level:g}{NB}% intervals"]
    said += ["subgroups: simultaneous"] * (f.grouped is not None)
    said += [f"version {w.model_version}"] * bool(w.model_version)
    said += [w.author] * bool(w.author)
    said += [f"caltest, version {f.audit.version}", f"Python {platform.python_version()}",
             f"NumPy {np.__version__}"]  # fmt: skip
    said += [f"seed {seed}"] * (seed is not None)
    today = date.today()
    return (*said, f"{today.day}{NB}{today:%B}{NB}{today.year}")


# ------------------------------------------------------------------------------
# Recommended next step: one sentence, chosen by the first rule of a table that holds.


@dataclass(frozen=True)
class Situation:
    """Frozen description of the facts on which a recommendation depends.

    Attributes
    ----------
    verdict : AuditVerdict
        The verdict of the audit.
    rejects : bool
        True if at least one question of the audit is rejected.
    rows, groups : str
        The user's words for observations and subgroups, such as "patients" and "hospital".
    n : int
        Number of observations.
    doubts : tuple of str
        Reasons to doubt the data, including outcomes that were given probability 0.
    tolerance : float or None
        Largest acceptable error.
    needed : int or None
        Number of observations that would decide an open question; None if unknown.
    detectable : float
        Largest error that cannot be distinguished from noise at this sample size; NaN if unknown.
    levels_pvalue, slopes_pvalue : float
        p-values of the hypotheses that all subgroups share one intercept, and one slope; NaN
        without subgroups.
    apart : tuple of str
        Subgroups whose simultaneous interval of observed − predicted excludes 0.
    above : tuple of str
        Subgroups whose |observed − predicted| is certainly above the tolerance; without a tolerance
        the same as ``apart``.
    common_slope : float
        Slope of a fit with an intercept for each subgroup and one slope; NaN without subgroups.
    mean : tuple of float
        (low, high), the interval of observed − predicted; NaN if unknown.
    slope : tuple of float
        (slope, low, high), the calibration slope with its interval; NaN if unknown.
    intercept, shift : float
        Calibration intercept, and calibration-in-the-large; NaN if unknown.
    temperature : float
        Temperature that minimises the log score of all classes; NaN for two classes.
    enough : bool
        True if this temperature was fitted, because the log score rejects.
    repair : str
        Free parameters of the smallest recalibration of several classes that is enough, such as
        "vector"; "" if no class is wrong, or none was tested.
    segment : str
        Name of the worst segment of a search that rejects; "" otherwise.
    better : bool
        True if recalibrated predictions were given and are better calibrated.
    alpha : float
        Level of the tests.
    """

    verdict: AuditVerdict
    rejects: bool
    rows: str = "observations"
    groups: str = "subgroup"
    n: int = 0
    doubts: tuple[str, ...] = ()
    tolerance: float | None = None
    needed: int | None = None
    detectable: float = nan
    levels_pvalue: float = nan
    slopes_pvalue: float = nan
    apart: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    common_slope: float = nan
    mean: tuple[float, float] = (nan, nan)
    slope: tuple[float, float, float] = (nan, nan, nan)
    intercept: float = nan
    shift: float = nan
    temperature: float = nan
    enough: bool = False
    repair: str = ""
    segment: str = ""
    better: bool = False
    alpha: float = 0.05

    @property
    def mean_is_off(self) -> bool:
        """True if the interval of observed − predicted over all observations excludes 0."""
        return self.mean[0] > 0.0 or self.mean[1] < 0.0

    @property
    def slope_is_off(self) -> bool:
        """True if the interval of the calibration slope excludes 1."""
        return self.slope[1] > 1.0 or self.slope[2] < 1.0

    @property
    def each(self) -> str:
        """Names of the subgroups that need an intercept of their own, joined to a phrase.

        At most three are named, followed by "…"; without any the phrase is "each hospital".
        """
        return _few(self.apart) or f"each {self.groups}"


def _few(names: tuple[str, ...]) -> str:
    """Return up to three names as a phrase, followed by "…" if there are more; "" without any."""
    few = [*names[:3], *["…"] * (len(names) > 3)]
    return " and ".join(few) if len(few) == 2 else ", ".join(few)


@dataclass(frozen=True)
class Rule:
    """Rule of the table of advice: a condition, and the sentence to print if it holds.

    ``holds`` and ``say`` take the situation, the facts on which a recommendation depends. Only the
    first rule that holds is printed. ``name`` identifies it in the table.
    """

    name: str
    holds: Callable[[Situation], bool]
    say: Callable[[Situation], str]


def _points(share: float | None) -> str:
    """Return a share in [0, 1] as percentage points with two digits, such as "1.2 pp"."""
    return f"{100.0 * (share or 0.0):.2g}\u00a0pp"


def _about(n: int) -> int:
    """Return a number of observations with two significant digits, as foretold numbers have."""
    return int(float(f"{n:.2g}"))


def _collect(s: Situation) -> str:
    """Return advice to collect more data, with the number of observations if it is known.

    ``s`` has the facts, among them that number.
    """
    x = s.tolerance or 0.1
    if s.needed is None:
        return f"Collect more {s.rows}; {s.n} cannot show an error of {_points(x)}."
    more = _about(max(s.needed - s.n, 0))
    return f"Collect about {more} more {s.rows}; {s.n} cannot show an error of {_points(x)}."


def _straddles(s: Situation) -> str:
    """Return advice for an interval that contains the tolerance.

    It names the number of observations that would decide, or says that more may not help. ``s`` has
    the facts: the number of observations, and the number needed.
    """
    if s.needed is None or s.needed <= s.n:
        return "The error is close to the tolerance; more data may not settle it."
    return f"Collect about {_about(s.needed - s.n)} more {s.rows}."


def _slope(value: float) -> str:
    return f"{value:.2f}"


def _shift(value: float) -> str:
    """Return a number with two decimals and its sign, with a minus sign in place of a hyphen."""
    return f"{value:+.2f}".replace("-", "\u2212")


#: Recalibrations of several classes, by the free parameters of the smallest that is enough.
CLASS_REPAIRS = {
    "level": "a shift of the log-probability of every class",
    "level and temperature": "one temperature and a shift of every class",
    "vector": "a slope and a shift for every class (vector scaling)",
}


#: The first rule that holds is the recommendation.
RULES = (
    Rule(
        "doubt",
        lambda s: bool(s.doubts) or s.verdict is AuditVerdict.IN_DOUBT,
        lambda s: f"Check the data first: {'; '.join(s.doubts[:1]) or 'rows seem to depend'}.",
    ),
    Rule("too little", lambda s: s.verdict is AuditVerdict.TOO_LITTLE_DATA, _collect),
    Rule(
        "improved",
        lambda s: s.better,
        lambda s: f"Use the recalibrated model. Then check new {s.rows}.",
    ),
    Rule(
        "within tolerance",
        lambda s: s.verdict in (AuditVerdict.WITHIN_TOLERANCE, AuditVerdict.TOO_LITTLE_TO_MATTER),
        lambda s: f"No action needed at a tolerance of {_points(s.tolerance)}.",
    ),
    Rule("straddles", lambda s: s.verdict is AuditVerdict.CANNOT_TELL and not s.above, _straddles),
    Rule(
        "slopes differ",
        lambda s: s.rejects and s.slopes_pvalue <= s.alpha,
        lambda s: f"Recalibrate every {s.groups} by itself. Then check new {s.rows}.",
    ),
    Rule(
        "levels differ",
        lambda s: s.rejects and s.levels_pvalue <= s.alpha,
        lambda s: (
            f"Recalibrate: an intercept of its own for {s.each}, one slope "
            f"({_slope(s.common_slope)}) for all. Then check new {s.rows}."
        ),
    ),
    Rule(
        "subgroup above tolerance",
        lambda s: s.verdict is AuditVerdict.CANNOT_TELL,
        lambda s: f"Recalibrate {_few(s.above)} separately. Then check new {s.rows}.",
    ),
    Rule(
        "temperature",
        lambda s: s.rejects and s.enough and s.temperature == s.temperature,
        lambda s: (
            f"Fit a temperature (about {_slope(s.temperature)}) on held-out data, then test again "
            f"on new {s.rows}."
        ),
    ),
    Rule(
        "classes",
        lambda s: s.rejects and s.repair in CLASS_REPAIRS,
        lambda s: (
            f"Recalibrate on held-out data with {CLASS_REPAIRS[s.repair]}. Then check new {s.rows}."
        ),
    ),
    Rule(
        "shift",
        lambda s: s.rejects and s.mean_is_off and s.slope[1] <= 1.0 <= s.slope[2],
        lambda s: f"Shift the log-odds by {_shift(s.shift)}. Then check new {s.rows}.",
    ),
    Rule(
        "slope",
        lambda s: s.rejects and s.slope_is_off,
        lambda s: (
            f"Recalibrate (slope {_slope(s.slope[0])}, intercept {_shift(s.intercept)}). "
            f"Then check new {s.rows}."
        ),
    ),
    Rule(
        "segment",
        lambda s: s.rejects and bool(s.segment),
        lambda s: f"Check {s.segment} on new {s.rows}, or add its columns to the model.",
    ),
    Rule(
        "curve",
        lambda s: s.rejects,
        lambda s: (
            f"Recalibrate with a curve (isotonic or beta) on held-out data. Then check new "
            f"{s.rows}."
        ),
    ),
    Rule(
        "nothing found",
        lambda s: True,
        lambda s: (
            f"No action needed now. Errors up to {_points(s.detectable)} would not be detected."
            if s.detectable == s.detectable
            else "No action needed: no test rejects calibration."
        ),
    ),
)


def recommendation(situation: Situation) -> str:
    """Return the recommended next step, the sentence of the first rule that applies.

    The last rule always applies. ``situation`` has the facts on which the rules depend.
    """
    return next(rule.say(situation) for rule in RULES if rule.holds(situation))
