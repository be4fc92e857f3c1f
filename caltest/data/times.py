"""Columns that are how long rows were followed: by their name, or as events come early by them.

:func:`follow_up` is the guard of labels beside such a column.
"""

from __future__ import annotations

import re
import shlex
import unicodedata

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, IntArray, codes
from caltest.data.likelihoods import design_effect, groups_of, rankdata
from caltest.data.questions import Column, Question, Rows, key_of
from caltest.errors import Reading, spelt

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
    label was found by its name, a time known by its name only is a doubt, not a question.
    """
    if rows.followed or rows.risks is None:
        return None
    named = [column for column in rows.unused if is_time(column)]
    early = [column for column in rows.unused if like_time(rows, column)]
    for column in (*(c for c in named if c in early), *named, *early):
        options = {"label": None, "event": rows.outcome, "time": column.sql, "horizon": "NUMBER"}
        reading = Reading(options, f"rows were followed for {column.name}")
        seen = f"rows with the event have lower values of {column.name}" if column in early else ""
        text = (
            f"{seen or column.name + ' has the name of a time'}: if it is how long rows were "
            "followed, rows without the event may have been censored before it"
        )
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
    """Return whether a column is named like a time and holds more than ten numbers ≥ 0."""
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
    """Return a name in lower case with ``_`` for signs and before capitals, without accents."""
    letters = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    return key_of("".join(sign for sign in letters if not unicodedata.combining(sign)))


def _words_of_name(name: str) -> set[str]:
    """Return the words of a name, in lower case without accents."""
    return {*without_accents(name).split("_")}


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
    rows are left out, because then every row was followed to its end.
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

    ``place`` (n,) is the stratum and ``event`` (n,) the outcome of each row.
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
