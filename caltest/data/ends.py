"""Columns that nobody named, and that say how follow-up ended or how long it was.

:func:`other_events` is the guard of other events than the one that was named, :func:`follow_up`
that of labels beside a time; :func:`likely_ends` finds values that may be the event.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import lgamma

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray, codes
from caltest.data.questions import (
    Column,
    Question,
    Rows,
    design_effect,
    groups_of,
    hazard_order,
    key_of,
    order_of_events,
    rankdata,
)
from caltest.errors import Reading, spelt

#: Values of a column that may say how rows ended, at most; rows of one, at least.
MOST_ENDS, FEWEST_ENDS = 12, 5
#: Logarithm of how unlikely a feature separates ends so, for each value that is looked at.
APART = float(np.log(1e5))
#: Standard errors of Cox's score test from which on a value may be the predicted event, by which it
#: must exceed other values, and of times beyond what predictions explain.
TOLD_BY_P, TOLD_MORE, NOT_BY_P = 3.5, 2.5, 3.0
#: Share of rows below which a value is no other end but a mark.
RARE_END = 0.01
#: Share of events that kinds of events make up, and standard errors of Σ w (y − p) beyond which
#: all kinds together are hardly what was predicted.
ALL_KINDS, OFF_ALL = 0.9, 3.0


#: Values of a column that says whether something is so.
FLAGS = frozenset(("0", "1", "true", "false", "True", "False"))


#: Words, without accents, that say that follow-up ended without any event.
CENSORED = frozenset(
    (
        *("censored", "censor", "cens", "censoring", "administrative", "administrative_censoring"),
        *("alive", "lost", "lost_to_follow_up", "lost_to_followup", "ltfu", "loss_to_follow_up"),
        *("event_free", "no_event", "none", "ongoing", "withdrawn", "dropout", "dropped_out"),
        *("zensiert", "lebt", "lebend", "verloren", "ausgeschieden", "kein_ereignis"),
        *("censurado", "censurada", "vivo", "viva", "perdido", "perdida", "sin_evento"),
        *("censure", "censuree", "vivant", "vivante", "perdu", "perdue", "perdu_de_vue"),
        *("censurato", "censurata", "perso", "gecensureerd", "levend", "em_vida"),
    )
)


def says_censored(word: object) -> bool:
    """Return whether a value says that follow-up ended without any event: "censored", "lost"."""
    return without_accents(str(word)) in CENSORED


@dataclass(frozen=True, eq=False)
class End:
    """Value of a column that may say how follow-up ended.

    ``column`` is the column, ``word`` the value as text, ``rows`` (n,) marks the rows that hold it,
    and ``sql`` is a condition that is true of them only.
    """

    column: Column
    word: str
    rows: BoolArray
    sql: str

    @property
    def name(self) -> str:
        """Name of this value in messages: the text, or the column with the number ("status 2").

        A value such as "1" or "true" of a column of flags has the name of the column alone.
        """
        words = {*self.column.coded[1]} if self.column.coded is not None else set()
        if self.column.words is not None and not words <= FLAGS:
            return self.word
        flag = words <= FLAGS and self.word in ("1", "true", "True")
        return self.column.name if flag else f"{self.column.name} {self.word}"


def other_events(rows: Rows, event: BoolArray, time: FloatArray) -> Question | None:
    """Ask where a column says that rows without the event ended by something else, or its kinds.

    A value that no row with the event has, of rows that were followed for a shorter time than other
    rows without it, is a competing event or a way to be censored. Asks where a feature would show
    both with a chance below 1e-5 by number of values. Values that only rows with the event have,
    and nearly all of these, are kinds of the event: asks if the weighted number of events is 3
    standard errors from the predicted one, and doubts otherwise.

    The result is a :class:`Question` (evidence as text, with alternative readings), or None.

    Parameters
    ----------
    rows : Rows
        Risks, weights of censoring, and columns that nobody named.
    event : ndarray of shape (n,)
        Whether the event was seen at any time.
    time : ndarray of shape (n,)
        How long rows were followed, in the unit of the horizon.
    """
    if "competing" in rows.said or event.all() or not event.any():
        return None
    ends = [end for end in values_of(rows.unused) if not says_censored(end.word)]
    found = [end for end in ends if _ends_without(end.rows, event, time, len(ends))]
    return _of_others(rows, found) if found else _kinds_of_event(rows, event, ends)


def values_of(columns: Iterable[Column]) -> Iterable[End]:
    """Yield an End for each value of ``columns`` that may say how follow-up ended.

    An End has the column, the value as text, the rows that hold it, and an SQL condition for it.
    Values occur in at least five rows and are absent from at least five, in columns of at most 12
    values.
    """
    for column in columns:
        if column.coded is None or not 1 <= column.n_values <= MOST_ENDS:
            continue
        places, words = column.coded
        for code, word in enumerate(words):
            here = places == code
            if FEWEST_ENDS <= np.count_nonzero(here) <= len(here) - FEWEST_ENDS:
                yield End(column, word, here, true_of(column, word))


def true_of(column: Column, word: str) -> str:
    """Return the SQL condition that a column has the value ``word``; it is false for blanks.

    ``column`` holds coded values, of which ``word`` is one as text.
    """
    plain = column.words is None and word == "1" and column.n_values == 2 and column.complete
    condition = column.sql if plain and "0" in column.coded[1] else column.equals(word)  # type: ignore[index]
    return condition if column.complete else f"coalesce({condition}, FALSE)"


def _ends_without(value: BoolArray, event: BoolArray, time: FloatArray, looked_at: int) -> bool:
    """Return whether rows with a value never have the event and have shorter follow-up.

    ``value`` (n,) marks the rows with the value, ``event`` (n,) the rows with the event, and
    ``time`` (n,) is how long rows were followed. Chance has to be unlikely after ``looked_at``
    values.
    """
    if (value & event).any():
        return False
    rest = ~event & ~value
    if np.count_nonzero(rest) < FEWEST_ENDS:  # the value is that of rows without the event
        return False
    _, z = order_of_events(time[~event], value[~event].astype(np.int64))
    if z >= 0.0:
        return False
    n, k, m = len(value), int(event.sum()), int(value.sum())
    apart = lgamma(n - m + 1) - lgamma(n - m - k + 1) - lgamma(n + 1) + lgamma(n - k + 1)
    shorter = -z * z / 2.0  # at least the logarithm of the normal tail
    return apart + shorter <= -APART - float(np.log(looked_at))


def _of_others(rows: Rows, found: Sequence[End]) -> Question:
    """Return the question whether the values ``found`` are competing events.

    ``rows`` are the predictions and outcomes. ``found`` are values of columns, each an End with its
    column, its text and an SQL condition. The Question is the evidence as text; each of its
    readings sets ``competing`` to a value's condition.
    """
    readings = [
        Reading({"competing": end.sql}, f"{end.name} is a competing event") for end in found
    ]
    if len(found) > 1 and len({*(end.column.name for end in found)}) == 1:
        both = " OR ".join(end.sql for end in found)
        readings.append(Reading({"competing": both}, "all of these are competing events"))
    first = found[0]
    column, value = first.column.name, f"{first.column.name} = {first.word}"
    what = column if first.name == column else value
    text = (
        f"no row where {what} has the event, and such rows were followed for a shorter time than "
        f"others without it: they count as censored, but {first.name} may be a competing event, "
        "such as death from another cause"
    )
    return Question("other events", text, tuple(readings))


def _kinds_of_event(rows: Rows, event: BoolArray, ends: Sequence[End]) -> Question | None:
    """Return a question or doubt if values of one column are kinds of the event, such as causes.

    ``rows`` are the predictions and outcomes, ``event`` (n,) marks the rows with the event, and
    ``ends`` are values of columns, each with the rows that hold it. The Question is the evidence as
    text; each of its readings takes one kind as the event and the others as competing events. It is
    a doubt (``asks`` False) if as many events of all kinds occurred as predicted. None if no column
    divides the events.
    """
    share = float(event.mean())
    kinds: dict[str, list[End]] = {}
    for end in ends:
        unlikely = end.rows.sum() * np.log(share) <= -APART - np.log(len(ends))
        if unlikely and not (end.rows & ~event).any():
            kinds.setdefault(end.column.name, []).append(end)
    for name, found in kinds.items():
        if len(found) < 2 or sum(int(e.rows.sum()) for e in found) < ALL_KINDS * event.sum():
            continue
        readings = []
        for end in found:
            others = " OR ".join(e.sql for e in found if e is not end)
            options = {"event": end.sql, "competing": others}
            readings.append(Reading(options, f"{end.name} alone is the event"))
        text = (
            f"{name} says what kind of event {rows.outcome} is "
            f"({', '.join(end.name for end in found)}): if one kind is predicted, the others are "
            "competing events"
        )
        p, y, w = rows.risks, rows.labels, rows.weights
        assert p is not None
        errors = (y - p) if w is None else w * (y - p)
        asks = abs(float(errors.sum())) >= OFF_ALL * float(np.sqrt(errors @ errors))
        return Question("kinds of event", text, tuple(readings), asks)
    return None


def likely_ends(
    columns: Iterable[Column], time: FloatArray, p: FloatArray
) -> list[tuple[End, list[End]]]:
    """Return pairs (value, other ends): values that may be the predicted event, most likely first.

    Each value is an End: a column, a value as text, the rows that hold it, and an SQL condition.
    Times have to follow p (n,) among the rows of such a value: Cox's score test has z at least 3.5
    from 0, and 2.5 further from it than for each other value of its column. p must not explain how
    its times differ from the others' (z at least 3 from 0, within ten groups of p). Other ends are
    the other values of the column if it has more than two, or a blank and more than one; and values
    of other columns that never occur with it, in rows followed for a shorter time. Words such as
    "censored" are neither. ``columns`` are those that may hold the ends, and ``time`` (n,) is how
    long rows were followed.
    """
    known = np.isfinite(time) & np.isfinite(p)
    if np.count_nonzero(known) < 4 * FEWEST_ENDS or np.ptp(p[known]) == 0.0:
        return []
    t, q = time[known], p[known]
    ends = [*values_of(columns)]
    scores = [abs(hazard_order(q, t, end.rows[known])) for end in ends]
    found: list[tuple[float, End, list[End]]] = []
    for end, score in zip(ends, scores, strict=True):
        value = end.rows[known]
        rivals = [
            z for e, z in zip(ends, scores, strict=True) if e.column is end.column and e is not end
        ]
        if (
            says_censored(end.word)
            or score < TOLD_BY_P
            or score < max(rivals, default=0.0) + TOLD_MORE
        ):
            continue
        groups = int(np.clip(min(value.sum(), (~value).sum()) // 10, 1, 10))
        if abs(order_within_strata(parts_by_rank(q, groups), value, t)[1]) < NOT_BY_P:
            continue
        same = [e for e in ends if e.column is end.column and e is not end]
        same = [e for e in same if e.rows.mean() >= RARE_END]
        others = same if len(same) + (not end.column.complete) > 1 else []
        others = [e for e in others if not says_censored(e.word)]
        beside = [e for e in ends if e.column is not end.column and not says_censored(e.word)]
        if not others:
            others = [e for e in beside if _ends_without(e.rows[known], value, t, len(ends))]
        found.append((score, end, others))
    found.sort(key=lambda each: -each[0])
    kept: list[tuple[End, list[End]]] = []
    for _, end, others in found:  # a column that holds another end of a likelier event is none
        if all(o.column is not end.column for _, listed in kept for o in listed):
            kept.append((end, others))
    return kept


# ------------------------------------------------------------------------------
# Columns that are how long rows were followed: by their name, or as events come early by them.


#: What the time that a row was followed for is called, in lower case with ``_`` for signs.
FOLLOWED_FOR = re.compile(
    r"(?:times?|t|tte|ttd|tt_?[a-z]{3,}|t_(?:event|end|obs|max)|(?:event|obs)_t|fut?|futime"
    r"|(?:fu|fup)_?(?:days|months|years|time)|survtime|surv_time|dtime|rfstime|durations?"
    r"|(?:\w+_)?follow(?:ed)?_?up(?:_\w+)?|time_\w+|\w+_time|days_to_\w+"
    r"|(?:os|pfs|dfs|rfs|efs)(?:_\w+)?|aval|stop|lenfol|(?:\w+_)?(?:days|months|years|weeks))"
)
#: Words of other languages for times and their units, without accents, and how compounds end.
TIME_WORDS = frozenset(
    (
        *("zeit", "dauer", "tage", "wochen", "monate", "jahre", "nachbeobachtung", "tiempo"),
        *("seguimiento", "dias", "semanas", "meses", "anos", "temps", "suivi", "duree", "delai"),
        *("jours", "semaines", "mois", "annees", "ans", "tempo", "durata", "giorni", "settimane"),
        *("mesi", "anni", "tijd", "duur", "dagen", "weken", "maanden", "jaren", "tid"),
    )
)
TIME_ENDS = ("zeit", "dauer", "tijd", "duur")
#: Words of names for other numbers: ages and risks, which have units of times, and distances.
NO_TIMES = frozenset(
    (
        *("age", "alter", "edad", "eta", "leeftijd", "idade", "risk", "risiko", "riesgo"),
        *("risque", "rischio", "risico", "prob", "probability", "dist", "distance", "px", "error"),
        *("err", "loss", "rank", "price", "margin"),
    )
)


def follow_up(rows: Rows) -> Question | None:
    """Ask whether rows were followed for a time, which a column beside a binary label holds.

    The column is named like a time, or events have lower values of it (:func:`like_time`). If the
    label was found by its name, a time known by its name only is a doubt, not a question. It may
    explain an error in either direction: censoring hides events, and a label counts those that came
    after the horizon of the predictions. ``rows`` are the predictions and outcomes, with the unused
    columns of the table. The result is a :class:`Question` (evidence as text, with alternative
    readings), or None.
    """
    if rows.followed or rows.risks is None:
        return None
    fewer = np.average(rows.labels == 1, weights=rows.weights) < np.average(
        rows.risks, weights=rows.weights
    )
    named = [column for column in rows.unused if is_time(column)]
    early = [column for column in (*rows.unused, *rows.spans) if like_time(rows, column)]
    for column in (*(c for c in named if c in early), *named, *early):
        options = {"label": None, "event": rows.outcome, "time": column.sql, "horizon": "NUMBER"}
        reading = Reading(options, f"rows were followed for {column.name}")
        seen = f"rows with the event have lower values of {column.name}" if column in early else ""
        text = (
            f"{seen or column.name + ' has the name of a time'}: if it is how long rows were "
            "followed, rows without the event may have been censored before it"
        )
        if not fewer:
            text += ", and events may have come after the horizon of the predictions"
        asks = column in early or "label" in rows.named
        if not asks:
            event, time = (f"{w!r} (--{o} {shlex.quote(w)})" for o, w in (
                ("event", rows.outcome), ("time", column.sql)))  # fmt: skip
            text += spelt(
                f". Pass event={event}, time={time} and horizon=NUMBER (--horizon NUMBER) if so, "
                "else as_is=True (--as-is)"
            )
        return Question("follow-up", text, (reading,), asks)
    return None


def is_time(column: Column) -> bool:
    """Return whether a column is named like a time and holds more than ten different numbers ≥ 0.

    At least one of the numbers of ``column`` is above 1.
    """
    if column.words is not None or column.values.dtype.kind not in "iuf":
        return False
    if not called_time(column.name):
        return False
    known = column.values[np.isfinite(column.values)]
    positive = known.size and known.min() >= 0 and known.max() > 1
    return bool(positive and np.unique(known).size > 10)


def called_time(name: str) -> bool:
    """Return whether a name denotes a time, in English or by a word of another language."""
    plain = without_accents(name)
    words = _words_of_name(name)
    if words & NO_TIMES:
        return False
    other = words & TIME_WORDS or any(word.endswith(TIME_ENDS) for word in words)
    return bool(FOLLOWED_FOR.fullmatch(plain) or other)


def without_accents(name: str) -> str:
    """Return a name in lower case with ``_`` for signs and before capitals, without accents.

    "SurvivalTime (days)" becomes "survival_time_days".
    """
    letters = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    return key_of("".join(sign for sign in letters if not unicodedata.combining(sign)))


def _words_of_name(name: str) -> set[str]:
    """Return the words of a name, in lower case without accents."""
    return {*without_accents(name).split("_")}


#: Days of a unit of time, by what names call it.
UNITS = {
    **dict.fromkeys(("y", "yr", "yrs", "year", "years", "jahr", "jahre", "ans", "anos"), 365.25),
    **dict.fromkeys(("m", "mo", "mos", "month", "months", "monate", "meses", "mois"), 30.4375),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks", "wochen", "semanas"), 7.0),
    **dict.fromkeys(("d", "day", "days", "tage", "dias", "jours"), 1.0),
}
#: A number with a unit of time in a name, such as 5y in "risk_5y".
NAMED_HORIZON = re.compile(rf"(?<!\d)(\d{{1,4}})_?({'|'.join(UNITS)})(?![a-z])")


def named_horizon(probs: str, time: str, values: AnyArray) -> tuple[float, str] | None:
    """Return (horizon, condition) if the name of a prediction says by when the event is predicted.

    ``probs`` is that name, such as "risk_5y", ``time`` the name of the follow-up and ``values``
    (n,) its numbers, in whose unit the horizon is returned. None if a name says nothing, or if no
    row was followed beyond it.
    """
    found = NAMED_HORIZON.search(without_accents(probs))
    known = values[np.isfinite(values)]
    if found is None or not known.size:
        return None
    number, unit = float(found[1]), found[2]
    counted = [UNITS[word] for word in _words_of_name(time) if len(word) > 1 and word in UNITS]
    horizon = number * UNITS[unit] / (counted[0] if len(counted) == 1 else UNITS[unit])
    if abs(horizon - round(horizon)) < 0.02 * horizon:
        horizon = float(round(horizon))
    if not known.min() < horizon < known.max():
        return None
    same = "" if counted else f" and {time} is in the same unit"
    return horizon, f"{probs} is the risk by time {horizon:g}{same}"


#: Standard errors and area under the ROC curve, given the prediction, below which numbers of events
#: are early; and events of each outcome that it takes.
EARLY_SCORE, EARLY_AREA, EARLY_ROWS = -5.0, 0.4, 20


def like_time(rows: Rows, column: Column) -> bool:
    """Return whether events have lower values of a column than other rows, given the predictions.

    A follow-up time is such a column. The column holds numbers ≥ 0. A Wilcoxon test within up to
    ten strata of p has to give z ≤ −5, and an area under the ROC curve of at most 0.4. z is divided
    by the root of the largest design effect over equal values and other columns. A feature that a
    calibrated model uses is unrelated to the outcome given p. One that the model leaves out is
    higher in events of higher p, which a time is not. Columns that separate events from all other
    rows are left out, because then every row was followed to its end. ``rows`` are the predictions
    and outcomes.
    """
    p, y, x = rows.risks, rows.labels, column.values
    if p is None or column.words is not None or x.dtype.kind not in "iuf" or not column.complete:
        return False
    if not x.size or x.min() < 0 or x.max() <= 1 or np.unique(x).size <= 10:
        return False
    if _words_of_name(column.name) & NO_TIMES:
        return False
    event = y == 1
    if min(event.sum(), (~event).sum()) < EARLY_ROWS or x[event].max() <= x[~event].min():
        return False
    strata = int(np.clip(min(event.sum(), (~event).sum()) // 10, 1, 10))
    place = parts_by_rank(p, strata)
    area, z = order_within_strata(place, event, x)
    if z > EARLY_SCORE or area > EARLY_AREA:
        return False
    cell = 10 * place + parts_by_rank(x, 10)  # what is left of the outcome given p and x is noise
    left = y - (np.bincount(cell, y) / np.maximum(np.bincount(cell), 1))[cell]
    effect = design_effect(left, (codes(x), *groups_of(rows)))
    if z / np.sqrt(effect) > EARLY_SCORE:
        return False
    if np.ptp(p[event]) == 0.0 or np.ptp(x[event]) == 0:
        return True
    rho = np.corrcoef(rankdata(p[event]), rankdata(x[event]))[0, 1]
    return bool(rho * np.sqrt(event.sum()) < 2.0)


def parts_by_rank(values: AnyArray, k: int) -> IntArray:
    """Return the part (0 to k − 1) of every row when values are cut into k parts by rank, (n,).

    Parts have about as many rows; equal values share one.
    """
    ranks = (rankdata(values) - 0.5) / len(values)
    return np.minimum(ranks * k, k - 1).astype(np.int64)


def order_within_strata(place: IntArray, event: BoolArray, x: AnyArray) -> tuple[float, float]:
    """Return (area, z): the area under the ROC curve of x within strata, and its test of 0.5.

    ``place`` (n,) is the stratum and ``event`` (n,) the outcome of each row, ``x`` (n,) the number
    that may order them. Both are larger where events have larger x; (0.5, 0) if no stratum has both
    outcomes. z is normal if x and events are unrelated (Wilcoxon's test).
    """
    excess = variance = pairs = 0.0
    for k in range(int(place.max()) + 1):
        here = place == k
        n, m = float(here.sum()), float(event[here].sum())
        if 0.0 < m < n:
            excess += float(rankdata(x[here])[event[here]].sum()) - m * (n + 1.0) / 2.0
            variance += m * (n - m) * (n + 1.0) / 12.0
            pairs += m * (n - m)
    return (0.5 + excess / pairs, excess / variance**0.5) if pairs else (0.5, 0.0)
