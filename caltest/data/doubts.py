"""Guards: questions that the data raise about how they were read.

A guard is a function of arrays and of the columns that nobody named. It returns a
:class:`Question` or None, and never changes a number. A question that *asks* is a refusal unless
the user says that the input is meant as it is; one that does not is a doubt, printed first.

Guards that ask compare two readings of the same rows by their likelihood. If predictions p are
calibrated as they were read, the likelihood ratio of another reading that is a function of p has
expectation E[L'(y) / L(y)] ≤ 1, so that it exceeds 1000 in at most 1 of 1000 data sets (Markov's
inequality), for every n and every distribution of p. Rates of false alarms and power are measured
in ``docs/guards.md`` (``python -m validation.guards``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, takewhile
from string import ascii_letters, ascii_lowercase, digits

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray, codes
from caltest._base.written import DependenceDoubt
from caltest.data.followup import Censoring, Followup
from caltest.data.questions import PLAIN_NAME, Column, Question, Rows
from caltest.errors import DoubtfulInputError, Reading

#: Logarithm of how many times likelier another reading must be before a guard asks.
LIKELIER = float(np.log(1000.0))
#: Standard errors below 0.5 of the area under the ROC curve before a guard asks.
BELOW_HALF = 3.0
#: Probabilities are taken within [ROUNDED_OFF, 1 − ROUNDED_OFF] where a 0 or 1 may be rounded.
ROUNDED_OFF = 0.005
#: Rows from which on guards look at an evenly spread part of the arrays, and rows that are looked
#: at before all others.
MOST_SEEN, MOST_FIRST = 50_000, 1000

#: Names of the parts of a data set that a model was fitted to, and of all parts.
FITTED = frozenset(("train", "training", "fit"))
SPLIT_NAMES = FITTED | {
    *("test", "valid", "validation", "val", "dev", "holdout", "hold_out", "oof", "cv"),
}
#: Columns of 0 and 1 that mark a part of a data set.
SPLIT_FLAG = re.compile(r"(?:is_|in_)?(train|training|test|holdout|validation)(?:_set)?")
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


# ------------------------------------------------------------------------------
# What callers ask.


def questions(rows: Rows) -> tuple[Question, ...]:
    """Return the questions of all guards on rows with labels, those that ask first."""
    asked = [guard(rows) for guard in GUARDS]
    return tuple(sorted(filter(None, asked), key=lambda question: not question.asks))


def doubts_of_arrays(
    probs: FloatArray, labels: IntArray | Followup,
    weights: FloatArray | None = None, clusters: AnyArray | None = None,
    said: Mapping[str, str] | None = None,
) -> tuple[Question, ...]:  # fmt: skip
    """Return the questions that arrays raise, which have no other columns to look at.

    The guards are ``predicted_class`` and ``against_outcomes``; with follow-up
    ``swapped_censoring`` and ``against_outcomes``. Above 50 000 rows an evenly spread subset is
    examined. One pass over plain rows tells whether any guard can ask. Cumulative rows are no
    probabilities: :func:`cumulative` is for the check of them.

    Parameters
    ----------
    probs : ndarray of shape (n,) or (n, K)
        Checked probabilities.
    labels : ndarray of shape (n,), or Followup
        Numbers of classes; 1 is the event of two.
    weights, clusters : ndarray of shape (n,), optional
        Weights and clusters of the rows.
    said : mapping of str to str, optional
        Options that were given besides, and what the arguments are called in readings, by default
        ``probs`` and ``labels``.

    Notes
    -----
    O(n K) for rows that raise no question; O(n log n) otherwise and with follow-up.
    """
    words = {"probs": "probs", "label": "labels", "event": "event"} | dict(said or {})
    if isinstance(labels, Followup):
        return _of_followup(probs, labels, clusters, words, arrays=True)
    if len(labels) > MOST_SEEN:
        seen = np.linspace(0, len(labels) - 1, MOST_SEEN).astype(np.int64)
        probs, labels = probs[seen], labels[seen]
        weights, clusters = (None if a is None else a[seen] for a in (weights, clusters))
    if probs.ndim == 1 or probs.shape[1] == 2:
        p, event = probs if probs.ndim == 1 else probs[:, 1], labels == 1
        k, inner = np.count_nonzero(event), np.clip(p, ROUNDED_OFF, 1.0 - ROUNDED_OFF)
        apart = 0 < k < p.size and p[event].min() > p[~event].max()
        # log L(1 − p) − log L(p), by no product of BLAS, whose threads spin beyond it
        gain = (np.log(1.0 / inner - 1.0) * (2.0 * event - 1.0)).sum()
        if not apart and weights is None and gain < LIKELIER - 1e-6:
            return ()
    elif (probs[:MOST_FIRST].argmax(axis=1) != labels[:MOST_FIRST]).any():
        return ()
    rows = Rows(probs, labels, weights, clusters, said=words, arrays=True)
    return tuple(filter(None, (predicted_class(rows), against_outcomes(rows))))


def doubts_of_sums(
    p: FloatArray, n: FloatArray, events: IntArray, said: Mapping[str, str]
) -> tuple[Question, ...]:
    """Return the questions that sums over cells raise: of all rows, however many.

    The guards are ``against_outcomes`` and ``predicted_class`` of two classes, as of rows with the
    mean prediction of their cell; one cell may hold the threshold of predicted classes. O(C).

    Parameters
    ----------
    p : ndarray of shape (C,)
        Mean predictions of cells, increasing.
    n, events : ndarray of shape (C,)
        Numbers of rows and of events.
    said : mapping of str to str
        What the options are called.
    """
    rows = Rows(p, events, said=said)
    k, total = float(events.sum()), float(n.sum())
    if not 0.0 < k < total:
        return ()
    q = np.clip(p, ROUNDED_OFF, 1.0 - ROUNDED_OFF)
    gain = float((2.0 * events - n) @ np.log(1.0 / q - 1.0))  # log L(1 − p) − log L(p)
    area = float(events @ (np.cumsum(n - events) - (n - events) / 2.0)) / (k * (total - k))
    ties = (total + 1.0) - float(np.sum(n**3 - n)) / (total * (total - 1.0))
    variance = ties / (12.0 * k * (total - k))
    z = (area - 0.5) / float(np.sqrt(variance)) if variance > 0.0 else 0.0
    if gain >= LIKELIER and z <= -BELOW_HALF:
        return (_against(rows, area, z),)
    pure, first = (events == 0) | (events == n), int(np.argmax(events > 0))
    apart = np.count_nonzero(~pure) <= 1 and bool((events[first + 1 :] == n[first + 1 :]).all())
    chance = float(n @ np.log(np.where(events > 0, q, 1.0 - q) ** pure))
    if apart and -chance >= LIKELIER + float(np.log(total + 1.0)):
        return (_follows_from_predictions(rows),)
    return ()


def doubts_of_followup(
    probs: FloatArray, followup: Followup, clusters: AnyArray | None = None,
    said: Mapping[str, str] | None = None,
) -> tuple[Question, ...]:  # fmt: skip
    """Return the questions that columns of follow-up raise: (n,) risks, and how rows ended.

    ``probs`` (n,) are risks by the horizon, ``clusters`` (n,) the clusters of the rows, and
    ``said`` maps options to the user's expressions.
    """
    return _of_followup(probs, followup, clusters, dict(said or {}), arrays=False)


def _of_followup(
    probs: FloatArray, followup: Followup, clusters: AnyArray | None, said: dict[str, str],
    arrays: bool,
) -> tuple[Question, ...]:  # fmt: skip
    p = probs if probs.ndim == 1 else probs[:, -1]
    if followup.elapsed.max(initial=0.0) < followup.limit:
        return ()  # refused for that
    # One curve for all rows: strata of few rows would add noise to what is compared
    weights = Censoring(followup, np.zeros(p.size, dtype=np.int64)).weights
    rows = Rows(p, followup.labels, weights, clusters, said=said, followed=True, arrays=arrays)
    return tuple(filter(None, (swapped_censoring(rows, followup), against_outcomes(rows))))


def answered(
    asked: Iterable[Question], as_is: bool = False, *, arrays: bool = False
) -> tuple[str, ...]:
    """Return notes of the doubts and, with ``as_is``, of the questions that were overruled.

    DoubtfulInputError, with the readings, for the first question that asks, without ``as_is``. With
    ``arrays`` its message suggests arguments in Python; otherwise it does not name the option that
    goes on: the caller, who speaks to the user, does.
    """
    notes = []
    for question in asked:
        if question.asks and not as_is:
            advice = f". {_in_python(question)}" if arrays else ""
            raise DoubtfulInputError(question.text + advice, question.readings)
        text = f"read as it is, although {question.text}" if question.asks else question.text
        notes.append(DependenceDoubt(text) if question.guard == "dependent rows" else text)
    return tuple(notes)


def _in_python(question: Question) -> str:
    """Return a sentence that suggests arguments for each reading, and ``as_is``."""
    ways = [
        (f"pos_label={value!r}" if option == "pos_label" else f"{value}")
        + (f" if {reading.when}" if reading.when else "")
        for reading in question.readings if reading.complete
        for option, value in reading.options.items()
    ]  # fmt: skip
    instead = " or ".join(ways) or "the outcomes that were observed"
    return f"Pass {instead}; as_is=True goes on with the values as they are"


# ------------------------------------------------------------------------------
# Likelihoods and order.


def rankdata(values: AnyArray) -> FloatArray:
    """Return ranks from 1 (n,), equal values sharing their mean, without importing SciPy."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = np.cumsum(counts) - 0.5 * (counts - 1.0)
    return ranks[place.ravel()]


def log_likelihood(p: FloatArray, y: AnyArray, weights: FloatArray | None = None) -> float:
    """Return Σ w log P(y) for events of probability p, within ``ROUNDED_OFF`` of 0 and 1."""
    p = np.clip(p, ROUNDED_OFF, 1.0 - ROUNDED_OFF)
    terms = np.log(np.where(y == 1, p, 1.0 - p))
    return float(terms.sum() if weights is None else terms @ weights)


def constant_gain(p: FloatArray, y: AnyArray, weights: FloatArray | None = None) -> float:
    """Return log (L(mean of y) / (√n L(p))): the gain of one constant prediction over p."""
    scale = 1.0 if weights is None else _mean_weight(weights)
    mean = np.full(len(p), float(np.average(y, weights=weights)))
    gain = log_likelihood(mean, y, weights) - log_likelihood(p, y, weights)
    return gain / scale - 0.5 * float(np.log(len(p)))


def _mean_weight(weights: FloatArray) -> float:
    """Return Σ w² / Σ w, by which weighted sums of logarithms are divided (Kish)."""
    return float(weights @ weights / weights.sum())


def order_of_events(
    p: FloatArray, y: AnyArray, weights: FloatArray | None = None
) -> tuple[float, float]:
    """Return the area under the ROC curve, and its distance from 0.5 in standard errors.

    The standard error is for predictions without any order: with ties corrected as in the test of
    Wilcoxon, Mann and Whitney, and from the weighted scores where there are weights.
    """
    w = np.ones(len(p)) if weights is None else weights
    p, y, w = p[w > 0], y[w > 0] == 1, w[w > 0]
    if y.all() or not y.any():
        return 0.5, 0.0
    _, place = np.unique(p, return_inverse=True)
    place = place.ravel()
    free, events = np.bincount(place, np.where(y, 0.0, w)), np.bincount(place, np.where(y, w, 0.0))
    area = float(events @ (np.cumsum(free) - free / 2.0) / (free.sum() * events.sum()))
    if weights is None:
        n, k = float(len(p)), float(y.sum())
        ties = np.bincount(place).astype(np.float64)
        spread = (n + 1.0) - np.sum(ties**3 - ties) / (n * (n - 1.0))
        variance = float(spread / (12.0 * k * (n - k)))
    else:
        total = np.bincount(place, w)
        level = ((np.cumsum(total) - total / 2.0) / w.sum())[place]
        part = np.where(y, w / events.sum(), -w / free.sum())
        variance = float(np.sum((part * (level - np.average(level, weights=w))) ** 2))
    return area, (area - 0.5) / float(np.sqrt(variance)) if variance > 0.0 else 0.0


def design_effect(part: FloatArray, groups: Iterable[IntArray]) -> float:
    """Return Σ (sums of ``part`` over a group)² / Σ part², the largest over ``groups``, or 1."""
    apart, largest = float(part @ part), 1.0
    for rows in groups if apart > 0.0 else ():
        sums = np.bincount(rows + 1, part)
        largest = max(largest, float(sums @ sums) / apart)
    return largest


# ------------------------------------------------------------------------------
# Guards of predictions and outcomes.


def against_outcomes(rows: Rows) -> Question | None:
    """Ask where events are rarer the higher p is, and 1 − p is 1000 times as likely.

    log L(1 − p) − log L(p) ≥ log 1000, and the area under the ROC curve at least three standard
    errors below 0.5, both divided by the largest design effect over clusters or, without these,
    over unused columns of text and whole numbers.
    """
    p, y, w = rows.risks, rows.labels, rows.weights
    if p is None or rows.n < 5 or (rows.followed and w is None) or (w is not None and not w.any()):
        return None
    scale = 1.0 if w is None else _mean_weight(w)
    gain = (log_likelihood(1.0 - p, y, w) - log_likelihood(p, y, w)) / scale
    if gain < LIKELIER:
        return None
    area, z = order_of_events(p, y, w)
    if z > -BELOW_HALF:
        return None
    part = (rankdata(p) / len(p) - 0.5) * (y - y.mean()) * (1.0 if w is None else w)
    effect = design_effect(part - part.mean(), _groups(rows))
    z /= np.sqrt(effect)
    if gain / effect < LIKELIER or z > -BELOW_HALF:
        return None
    return _against(rows, area, z)


def _against(rows: Rows, area: float, z: float) -> Question:
    """Return the question of events that are rarer where predictions are higher."""
    probs, outcome = rows.words("probs"), rows.outcome
    rarer = f"events are rarer where {probs} are" if rows.arrays else (
        f"{outcome} is rarer where {probs} is"
    )  # fmt: skip
    text = (
        f"{rarer} higher (area under the ROC curve {area:.2f}, {abs(z):.1f} standard errors below "
        "0.5)"
    )
    readings = [_other_event(rows, probs)]
    if not rows.followed and (options := _other_outcome(rows)):
        marks = "mark" if rows.arrays else "marks"
        readings.append(Reading(options, f"{outcome} {marks} the other outcome"))
    return Question("against the outcomes", text, tuple(readings))


def _groups(rows: Rows) -> Iterable[IntArray]:
    """Yield the codes (n,) of clusters or, without these, of columns whose values repeat."""
    if rows.clusters is not None:
        yield codes(rows.clusters)
        return
    for column in rows.unused:
        if column.coded is not None and 5 <= column.n_values < rows.n:
            yield column.coded[0]


def _other_event(rows: Rows, probs: str) -> Reading:
    """Return the reading in which the probabilities are for the other class."""
    when = "the probability that the event does not occur"
    when = f"{probs} hold {when}" if rows.arrays else f"{probs} is {when}"
    if rows.probs.ndim == 1:
        logits = "from_logits" in rows.said
        return Reading({"probs": f"0 - ({probs})" if logits else complement(probs)}, when)
    if rows.arrays:
        return Reading({"probs": f"{probs}[:, ::-1]"}, f"the columns of {probs} are swapped")
    first, comma, second = probs.partition(", ")
    swapped = f"{second}, {first}" if comma else "COLUMN, COLUMN"
    return Reading({"probs": swapped}, "the columns are in the other order")


def _other_outcome(rows: Rows) -> dict[str, object]:
    """Return the options by which the other outcome is the event; none where classes are named."""
    if "pos_label" in rows.said:
        return {"pos_label": rows.said["pos_label"]}
    return {} if "classes" in rows.said else {"label": _negated(rows.outcome, rows.arrays)}


def complement(text: str) -> str:
    """Return "1 − expression" as text, valid in SQL and Python."""
    if text.startswith("1 - ") and PLAIN_NAME.fullmatch(text[4:]):
        return text[4:]
    return f"1 - {text}" if PLAIN_NAME.fullmatch(text) else f"1 - ({text})"


def _negated(text: str, arrays: bool) -> str:
    """Return the negation of an expression as text: 1 − x in Python, NOT in SQL."""
    if arrays:
        return complement(text)
    if text.startswith("NOT ") and PLAIN_NAME.fullmatch(text[4:]):
        return text[4:]
    return f"NOT {text}" if PLAIN_NAME.fullmatch(text) else f"NOT ({text})"


def predicted_class(rows: Rows) -> Question | None:
    """Ask where the label follows from the predictions in every row.

    Two classes: all events have higher predictions than all others; more: the label is the largest
    probability. Calibrated predictions have labels of probability L; a question takes log (1 / L) ≥
    log 1000 + log(n + 1) (n + 1 thresholds), L as predicted, so that certain labels do not count.
    """
    p, y = rows.probs, rows.labels
    if rows.followed or rows.n < 5:
        return None
    if (risks := rows.risks) is not None:
        event = y == 1
        if event.all() or not event.any() or risks[~event].max() >= risks[event].min():
            return None
        chance = np.where(event, risks, 1.0 - risks)
    else:
        if (p.argmax(axis=1) != y).any() or y.min() == y.max():
            return None
        chance = p[np.arange(rows.n), y]
    if -float(np.log(chance).sum()) < LIKELIER + float(np.log(rows.n + 1.0)):
        return None
    return _follows_from_predictions(rows)


def _follows_from_predictions(rows: Rows) -> Question:
    """Return the question of labels that follow from the predictions in every row."""
    seem = "labels seem" if rows.arrays else f"{rows.outcome} seems"
    text = (
        f"{rows.words('probs')} decides the label in every row: {seem} to be the predicted class, "
        "not the observed outcome"
    )
    return Question("predicted class", text, (Reading({"label": "COLUMN"}),))


def confidences(rows: Rows) -> Question | None:
    """Ask where predictions are as likely the confidence of the class in an unused column.

    All p are at least one half, and a column C of two values agrees with the label 1000 times as
    likely, by p, as the label is 1; divided by two mappings of values and the number of columns.
    Where C agrees with the label more often than p says, by two standard errors, it may be the
    label once more: then one number for all rows must be 1000 √n times as likely as p as well.
    """
    p, y = rows.probs, rows.labels
    if p.ndim > 1 or rows.followed or "predicted_label" in rows.said or not rows.n:
        return None
    if p.min() < 0.5 - ROUNDED_OFF:
        return None
    pairs = [c for c in rows.unused if c.n_values == 2 and c.complete]
    least = LIKELIER + float(np.log(2.0 * max(len(pairs), 1)))
    base = log_likelihood(p, y)
    for column in pairs:
        assert column.coded is not None
        assert column.counts is not None
        first, second = np.flatnonzero(column.counts).tolist()
        for zero, one in ((first, second), (second, first)):
            right = (column.coded[0] == one) == (y == 1)
            if log_likelihood(p, right) - base < least:
                continue
            excess = float(right.sum() - p.sum())
            again = excess > 2.0 * float(np.sqrt(p @ (1.0 - p))) and constant_gain(p, y) < LIKELIER
            if not again:
                words = column.coded[1]
                return _of_confidences(rows, column, words[zero], words[one])
    return None


def _of_confidences(rows: Rows, column: Column, zero: str, one: str) -> Question:
    """Return the question whether predictions are the confidence that a column is right.

    ``column`` holds labels; ``zero`` and ``one`` are its words for the outcomes 0 and 1.
    """
    label = rows.outcome
    plain = PLAIN_NAME.fullmatch(label) is not None
    bare = bare_words([zero, one], ["0", "1"])
    options: dict[str, object] = {"predicted_label": column.sql}
    if not plain or bare[zero] != "0" or bare[one] != "1":
        truth = f"{label} = 1" if plain else f"CAST({label} AS INTEGER) = 1"
        options = {"label": f"({column.equals(one)}) = ({truth})"}
    text = (
        f"all values of {rows.words('probs')} are at least 0.5, and {label} agrees with "
        f"{column.name} about as often as they say: they look like the confidence that "
        f"{column.name} is right"
    )
    when = f"{rows.words('probs')} is the confidence that {column.name} is right"
    return Question("confidences", text, (Reading(options, when),))


def decides(p: FloatArray, groups: IntArray) -> tuple[int, int] | None:
    """Return (low, high), the codes of two groups that a threshold of p sets apart, or None.

    ``groups`` (n,) are codes of two values. The predictions of one group are below 0.5 in some row,
    as no confidence in the likelier of two classes is.
    """
    found = np.unique(groups)
    if len(found) != 2 or p.min() >= 0.5 - ROUNDED_OFF:
        return None
    first, second = (p[groups == code] for code in found)
    low, high = (int(code) for code in found)
    if first.max() <= second.min():
        return low, high
    return (high, low) if second.max() <= first.min() else None


def decided_class(
    p: FloatArray, answers: Column, truth: Column, said: Mapping[str, str]
) -> Question | None:
    """Ask where a predicted class of two is a threshold of p, which is no confidence then."""
    assert answers.coded is not None
    assert truth.coded is not None
    if len(p) < 20 or (ends := decides(p, answers.coded[0])) is None:
        return None
    low, high = (answers.coded[1][code] for code in ends)
    probs, guess = said["probs"], said["predicted_label"]
    text = (
        f"{guess} is {high} where {probs} is high and {low} where it is low, so {probs} seems to "
        f"be the probability of {high}, and not how sure the model is of {guess}"
    )
    codes_of = {word.lower(): word for word in truth.coded[1]}
    label = truth.equals(codes_of[high.lower()]) if high.lower() in codes_of else None
    options = {"predicted_label": None, "label": label or f"{truth.sql} = 'CODE'"}
    return Question(
        "decided class", text, (Reading(options, f"{probs} is the probability of {high}"),)
    )


def bare_words(values: Sequence[str], others: Sequence[str]) -> dict[str, str]:
    """Map words to what is left of them in lower case without what all of them share.

    ``LABEL_0`` and ``LABEL_1`` are ``0`` and ``1``. Words that are among the ``others`` but for
    case keep all of theirs.
    """
    low = [value.lower() for value in values]
    if set(low) <= {other.lower() for other in others}:
        return dict(zip(values, low, strict=True))
    several = low if len(low) > 1 else [*low, ""]
    head = _common_start(several).rstrip(ascii_lowercase + digits)
    tail = _common_start([w[::-1] for w in several])[::-1].lstrip(ascii_lowercase + digits)
    return {v: w[len(head) : len(w) - len(tail)] for v, w in zip(values, low, strict=True)}


def _common_start(words: list[str]) -> str:
    """Return the longest beginning that all words share."""
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*words, strict=False))
    return "".join(letters[0] for letters in alike)


def predicted_class_readings(
    truth: Iterable[str], unused: Iterable[Column], probs: str
) -> tuple[Reading, ...]:
    """Return a reading for each column with the words of a label of text: a predicted class."""
    wanted = [word.lower() for word in truth]
    found = []
    for column in unused:
        if column.words is not None and 2 <= column.n_values <= 10_000:
            shared = {*bare_words(column.words, wanted).values()} & {*wanted}
            if len(shared) >= 2:
                when = f"{probs} is the confidence that {column.name} is right"
                found.append(Reading({"predicted_label": column.sql}, when))
    return tuple(found)


# ------------------------------------------------------------------------------
# Guards of which rows there are.


def train_rows(rows: Rows) -> Question | None:
    """Ask where the words of a column tell training rows from others."""
    for column in rows.unused:
        if column.coded is None or column.counts is None:
            continue
        words = column.coded[1]
        if column.words is not None:
            parts = split_parts(w for w, k in zip(words, column.counts, strict=True) if k)
            if len(parts) < 2 or not set(parts.values()) & FITTED:
                continue
            tests = sorted(word for word, part in parts.items() if part not in FITTED)
            readings = tuple(
                Reading({"where": rows.where(column.equals(word))}, f"the {word} rows are meant")
                for word in tests
            )
        else:
            flag = SPLIT_FLAG.fullmatch(_key(column.name))
            if not flag or not column.complete or words != ("0", "1"):
                continue
            held = "0" if flag[1].startswith("train") else "1"
            readings = (Reading({"where": rows.where(column.equals(held))}),)
        text = f"{column.name} separates the rows that the model was trained on from the others"
        return Question("train and test", text, readings)
    return None


def split_parts(words: Iterable[str]) -> dict[str, str]:
    """Return the plain name of each word if all are parts of a data set ("train", …); else {}."""
    parts = dict[str, str]()
    for word in words:
        parts[word] = _key(word).strip("0123456789_")
        if parts[word] not in SPLIT_NAMES:
            return {}
    return parts


def _key(name: str) -> str:
    """Return a name in lower case with ``_`` for punctuation: "Is Train?" becomes "is_train"."""
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")


def repeated_rows(rows: Rows) -> Question | None:
    """Ask whether rows with the same value of a column are repeats of one unit (clusters).

    Asks if such rows always have one label (probability by chance ≤ 1e-4 / columns) and
    one or two other columns tell them apart. The column has at least five values.
    """
    n = rows.n
    if "clusters" in rows.said or rows.clusters is not None or n < 20:
        return None
    columns = [c for c in rows.unused if c.coded is not None]
    share = np.unique(rows.labels, return_counts=True)[1] / n
    most = min(1000.0, n / 5.0)
    for a in columns:
        sizes = _one_label_each(rows, a)
        if sizes is None or not 2 <= sizes.max() <= most:
            continue
        chance = float(np.log(np.sum(share[:, None] ** sizes[None, :], axis=0)).sum())
        if chance > -np.log(1e4 * len(rows.unused)):
            continue
        others = [b for b in columns if b is not a and 2 <= b.n_values <= most]
        found = _told_apart(a, others, int(sizes.max()), rows.by)
        if found:
            return _of_repeated(rows, a, found, float(sizes.mean()))
    return None


#: How many times more events than predicted must be absent, and how far from p / 100 they may be.
FAR_TOO_MANY, NEAR_PERCENT = 30.0, 5.0


def in_percent(expected: float, events: float) -> bool:
    """Say whether ``expected`` events are so many more than ``events`` that p is in percent.

    ``expected`` is Σ p. It is at least 30 times ``events``, of which there is one at least, and Σ p
    / 100 is at most 5 times ``events``: no model of use is as wrong as that, and percents are.
    Where p are probabilities, so few events have a chance below 1e-10.
    """
    return events >= 1 and FAR_TOO_MANY * events <= expected <= 100.0 * NEAR_PERCENT * events


def percent_below_one(rows: Rows) -> Question | None:
    """Ask where numbers in percent, all of them below 1, would be taken for probabilities."""
    p = rows.risks
    if p is None or rows.followed or rows.weights is not None or rows.arrays:
        return None
    events = float(np.count_nonzero(rows.labels))
    if not in_percent(float(p.sum()), events):
        return None
    probs = rows.words("probs")
    if {"*", "/"} & {*probs}:  # an expression that scales has answered
        return None
    text = (
        f"{probs} predicts {p.sum():.4g} events and {events:.0f} were observed: numbers in percent "
        "may be below 1 in every row"
    )
    reading = Reading({"probs": f"{probs} / 100"}, f"{probs} is in percent")
    return Question("percent below one", text, (reading,))


#: What the column is called that says whose prediction a row is.
MODEL_NAMES = frozenset(("model", "model_name", "model_id", "system", "forecaster"))


def several_models(rows: Rows) -> Question | None:
    """Ask where every value of a column, such as a question, has a row for each of several models.

    The column of models has one of five names and 2 to 50 values; with the other column, which has
    20 values or more, it tells all rows apart, and two values in three occur more than once.
    """
    if rows.by is not None or "where" in rows.said:
        return None
    columns = [c for c in rows.unused if c.coded is not None and c.complete]
    for model in columns:
        if _key(model.name) not in MODEL_NAMES or not 2 <= model.n_values <= 50:
            continue
        for item in columns:
            if item is model or not 20 <= item.n_values <= rows.n / 1.5:
                continue
            assert item.coded is not None
            sizes = np.bincount(item.coded[0])
            if np.mean(sizes > 1) > 2 / 3 and _told_apart(item, [model], 2, None):
                return _of_models(rows, model, item)
    return None


def _of_models(rows: Rows, model: Column, item: Column) -> Question:
    """Return the question whether one model is meant or each by itself."""
    assert model.coded is not None
    first = model.equals(model.coded[1][int(model.coded[0][0])])
    text = (
        f"every {item.name} has a row for each {model.name}: together these are the predictions "
        f"of {model.n_values} models, whose errors may cancel"
    )
    readings = (
        Reading({"where": rows.where(first)}, f"one {model.name} is meant, such as {first}"),
        Reading({"by": model.sql}, f"every {model.name} is meant by itself"),
    )
    return Question("several models", text, readings)


def one_event_each(rows: Rows) -> Question | None:
    """Ask where the rows of one value share one event, and their probabilities sum to 1.

    Candidates of one race, or options of one question, are no independent rows: half of the rows of
    races of two say nothing new. It takes at least ten values of two rows or more each.
    """
    p, y = rows.risks, rows.labels
    if p is None or rows.followed or rows.clusters is not None or "clusters" in rows.said:
        return None
    for column in rows.unused:
        if column.coded is None or not column.complete or not 10 <= column.n_values <= rows.n / 2:
            continue
        groups = column.coded[0]
        sizes, events = np.bincount(groups), np.bincount(groups, y)
        here = sizes > 0
        if sizes[here].min() < 2 or (events[here] != 1).any():
            continue
        if np.quantile(np.abs(np.bincount(groups, p)[here] - 1.0), 0.9) <= 0.02:
            text = (
                f"the rows of each {column.name} have exactly one event, and probabilities that "
                "sum to 1, like the candidates of one race: they are not independent"
            )
            return Question("one event each", text, (Reading({"clusters": column.sql}),))
    return None


#: Names of weights, and standard errors of Σ (y − p) without and with them before a guard asks.
WEIGHT_NAMES = frozenset(
    ("w", "wt", "weight", "weights", "sample_weight", "sample_weights", "ipw", "iptw", "importance")
)
OFF_WITHOUT, RIGHT_WITH = 5.0, 2.5


def unused_weights(rows: Rows) -> Question | None:
    """Ask where events are as many as predicted only with an unused column as weights.

    The column is called a weight, or has one value for each outcome, as rows that were sampled by
    their outcome have. Σ (y − p) is 5 standard errors off without it, at most 2.5 with it.
    """
    p, y = rows.risks, rows.labels
    if p is None or rows.weights is not None or rows.followed:
        return None
    error, spread = y - p, p * (1.0 - p)
    total = float(np.sqrt(spread.sum()))
    if total <= 0.0 or abs(float(error.sum())) < OFF_WITHOUT * total:
        return None
    for column in rows.unused:
        w = column.values
        if column.words is not None or w.dtype.kind not in "iuf" or not column.complete:
            continue
        if not w.size or w.min() <= 0 or w.min() == w.max():
            continue
        each = [np.unique(w[y == k]).size == 1 for k in (0, 1)]
        if _key(column.name) not in WEIGHT_NAMES and not all(each):
            continue
        if abs(float(w @ error)) <= RIGHT_WITH * float(np.sqrt((w * w) @ spread)):
            text = (
                f"{rows.outcome} is as frequent as predicted if {column.name} weights the rows "
                f"({float(w @ y / w.sum()):.4g}, predicted {float(w @ p / w.sum()):.4g}), and not "
                f"otherwise ({float(y.mean()):.4g}, predicted {float(p.mean()):.4g})"
            )
            reading = Reading({"weights": column.sql}, f"{column.name} is how much a row counts")
            return Question("unused weights", text, (reading,))
    return None


def _one_label_each(rows: Rows, column: Column) -> IntArray | None:
    """Return the rows of each value of a column, (k,), if labels agree within each; else None."""
    assert column.coded is not None
    if not 5 <= column.n_values <= rows.n / 1.5 or not column.complete:
        return None
    groups, y = column.coded[0], rows.labels
    if rows.by is not None:  # rows of one value in two subgroups are told apart already
        groups = codes(groups * (1 + int(codes(rows.by).max())) + codes(rows.by))
    first = np.zeros(int(groups.max()) + 1, dtype=y.dtype)
    first[groups] = y
    if (first[groups] != y).any():
        return None
    sizes = np.bincount(groups)
    return sizes[sizes > 0]


def _told_apart(
    a: Column, others: list[Column], least: int, by: AnyArray | None
) -> tuple[Column, ...]:
    """Return one or two columns that distinguish the rows of each value of ``a``; () if none do.

    ``others`` are candidate columns with at least ``least`` values (pairs: together); ``by`` (n,)
    is the subgroup of each row, within which values are compared.
    """
    groups = a if by is None else Column(a.name, codes(by))
    single: list[tuple[Column, ...]] = [(b,) for b in others if b.n_values >= least]
    some = others[:20]
    pairs: list[tuple[Column, ...]] = [
        (b, c)
        for i, b in enumerate(some)
        for c in some[i + 1 :]
        if b.n_values * c.n_values >= least
    ]
    for chosen in single + pairs:
        key = np.zeros(len(a.values), dtype=np.int64)
        for column in (a, *([groups] if groups is not a else []), *chosen):
            assert column.coded is not None
            key = key * (len(column.coded[1]) + 1) + column.coded[0] + 1
        if np.unique(key).size == key.size:
            return chosen
    return ()


def _of_repeated(rows: Rows, a: Column, found: tuple[Column, ...], times: float) -> Question:
    """Return the question which of several predictions of one outcome is meant.

    ``a`` identifies the outcome, ``found`` are the columns that distinguish its rows, and ``times``
    is the mean number of rows of an outcome.
    """
    firsts = []
    for b in found:
        assert b.coded is not None
        firsts.append(b.equals(b.coded[1][int(b.coded[0][b.coded[0] >= 0][0])]))
    where, names = " AND ".join(firsts), " and ".join(b.name for b in found)
    readings = [Reading({"where": rows.where(where)}, f"one {names} is meant, such as {where}")]
    if len(found) == 1 and rows.by is None:
        readings.append(Reading({"by": found[0].sql}, f"every {names} is meant by itself"))
    readings.append(Reading({"clusters": a.sql}, f"all rows are meant, clustered by {a.name}"))
    text = (
        f"every {a.name} has {times:.3g} rows with one outcome, a row for each {names}: these are "
        f"{rows.n} predictions of {a.n_values} outcomes"
    )
    return Question("several predictions of a row", text, tuple(readings))


# ------------------------------------------------------------------------------
# Guards of which columns were taken.


def second_set(rows: Rows) -> Question | None:
    """Ask where another column or family would do as well as the one found by its name.

    A column in [0, 1] with rank correlation of at least 0.9; or as many columns as there are
    classes, whose names share a beginning or end and whose rows sum to 1.
    """
    if "probs" in rows.named:
        return None
    fractions = [c for c in rows.unused if _are_fractions(c)]
    if rows.probs.ndim == 1:
        mine = rankdata(rows.probs)
        if np.ptp(mine) == 0.0:
            return None
        alike = (c for c in fractions if np.corrcoef(mine, rankdata(c.values))[0, 1] >= 0.9)
        others = [c.sql for c in alike]
    else:
        families = families_of(fractions)
        others = [", ".join(c.sql for c in f) for f in families if len(f) == rows.probs.shape[1]]
    if not others:
        return None
    wanted = [rows.words("probs"), *others]
    readings = tuple(Reading({"probs": words}, f"{words} is meant") for words in wanted)
    return Question("second set", f"predictions could be {' or '.join(wanted)}", readings)


def _are_fractions(column: Column) -> bool:
    """Return whether a column holds many values of [0, 1], none missing."""
    q = column.values
    if column.words is not None or q.dtype.kind != "f" or not q.size or not column.complete:
        return False
    inside = q.min() >= 0.0 and q.max() <= 1.0 and np.ptp(q) > 0.0
    return bool(inside and np.unique(q[:200]).size > min(5, q.size // 4))


def families_of(columns: Sequence[Column]) -> list[tuple[Column, ...]]:
    """Return groups of columns whose names share a beginning or an end, and whose rows sum to 1."""
    stems: dict[tuple[str, str], list[Column]] = {}
    for c in columns:
        ends = {("head", c.name.rstrip(ascii_letters + digits)), ("head", c.name.rstrip(digits))}
        for stem in ends | {("tail", c.name.lstrip(ascii_letters + digits))}:
            stems.setdefault(stem, []).append(c)
    members = {tuple(f) for f in stems.values() if len(f) > 1}
    return [f for f in members if np.allclose(sum(c.values for c in f), 1.0, atol=0.01)]


def cumulative(probs: FloatArray, columns: Sequence[str] | None = None) -> Question | None:
    """Ask about columns that rise along every row and end at 1: cumulative probabilities.

    ``columns`` are their names as expressions have them; None for arrays.
    """
    if probs.ndim < 2 or probs.shape[1] < 2 or len(probs) < 2:
        return None
    if not np.allclose(probs[:, -1], 1.0, atol=1e-3) or (np.diff(probs, axis=1) < -1e-9).any():
        return None
    if not (probs[:, :-1].sum(axis=1) > 0.01).any():
        return None
    steps = "np.diff(probs, axis=1, prepend=0)"
    if columns is not None:
        steps = ", ".join([columns[0], *(f"{b} - {a}" for a, b in pairwise(columns))])
    text = "the columns of probabilities rise along every row and end at 1: they are cumulative"
    return Question("cumulative", text, (Reading({"probs": steps}),))


# ------------------------------------------------------------------------------
# Guards of follow-up, of outcomes to come, and of dependence.


def hazard_order(p: FloatArray, time: FloatArray, event: BoolArray) -> float:
    """Return z of Cox's score test of the rank of p at no effect: positive if events come early.

    Rows of one time are at risk together. Cox, Journal of the Royal Statistical Society B 34, 1972.
    """
    last_first = np.argsort(-time, kind="stable")
    t, e, x = time[last_first], event[last_first], rankdata(p)[last_first] / len(p)
    end = np.searchsorted(-t, -t, side="right") - 1
    at_risk = np.arange(1, len(t) + 1)
    mean, square = (np.cumsum(x) / at_risk)[end], (np.cumsum(x * x) / at_risk)[end]
    variance = float(np.sum((square - mean**2)[e]))
    return float(np.sum((x - mean)[e])) / float(np.sqrt(variance)) if variance > 1e-9 else 0.0


#: Least z of the rows without the event, also beyond that of the rows with it, and logarithm of how
#: many times likelier than p, beside √n, one number for all rows must be.
CENSORED_SCORE, CENSORED_LIKELIER = 5.0, float(np.log(20.0))


def swapped_censoring(rows: Rows, followup: Followup) -> Question | None:
    """Ask where it is the rows without the event whose times follow the predictions.

    Weights of censoring make the events of swapped codes unrelated to p, not opposed to it. So the
    question takes z ≥ 5 of Cox's score test with 0 as the event, at least 5 more than with 1, and
    one number for all rows 20 √n times as likely as p under weights of censoring.
    """
    p, w = rows.probs, rows.weights
    assert w is not None
    if not w.any() or np.ptp(p) == 0.0:
        return None
    ends = followup.event, ~followup.ended
    with_event, without = (hazard_order(p, followup.elapsed, seen) for seen in ends)
    if without < CENSORED_SCORE or without - with_event < CENSORED_SCORE:
        return None
    if constant_gain(p, rows.labels, w) < CENSORED_LIKELIER:
        return None
    name = rows.words("event")
    text = (
        f"times are shorter where {rows.words('probs')} is higher among rows without {name} "
        f"(z = {without:.1f}), not among rows with it (z = {with_event:.1f}): {name} seems to mark "
        "the censored rows"
    )
    return Question("swapped censoring", text, (Reading({"event": _negated(name, rows.arrays)}),))


def is_time(column: Column) -> bool:
    """Return whether a column has the name of a time, and more than ten numbers ≥ 0."""
    if column.words is not None or column.values.dtype.kind not in "iuf":
        return False
    if not called_time(column.name):
        return False
    known = column.values[np.isfinite(column.values)]
    positive = known.size and known.min() >= 0 and known.max() > 1
    return bool(positive and np.unique(known).size > 10)


def called_time(name: str) -> bool:
    """Return whether a name denotes a time, in English or by a word of another language."""
    plain = _without_accents(name)
    words = _words_of_name(name)
    if words & NO_TIMES:
        return False
    other = words & TIME_WORDS or any(word.endswith(TIME_ENDS) for word in words)
    return bool(FOLLOWED_FOR.fullmatch(plain) or other)


def _without_accents(name: str) -> str:
    """Return a name in lower case with ``_`` for signs and before capitals, without accents."""
    letters = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    return _key("".join(sign for sign in letters if not unicodedata.combining(sign)))


def _words_of_name(name: str) -> set[str]:
    """Return the words of a name, in lower case without accents."""
    return {*_without_accents(name).split("_")}


#: Standard errors and area under the ROC curve, given the prediction, below which numbers of events
#: are early; and events of each outcome that it takes.
EARLY_SCORE, EARLY_AREA, EARLY_ROWS = -5.0, 0.4, 20


def like_time(rows: Rows, column: Column) -> bool:
    """Say whether numbers ≥ 0 of events are lower than those of other rows, given the predictions.

    The test is that of Wilcoxon within up to ten strata of p: z ≤ −5, and an area under the ROC
    curve of at most 0.4. z is divided by the root of the largest design effect, over equal numbers
    and other columns, of what p and x leave of the outcome. A feature that a calibrated model uses
    is unrelated to the outcome given p. One that the model leaves out is higher in events of higher
    p, which a time is not. Numbers that set events apart from all other rows are left out: then
    every row was followed to its end.
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
    place = _parts_by_rank(p, strata)
    area, z = _order_within_strata(place, event, x)
    if z > EARLY_SCORE or area > EARLY_AREA:
        return False
    cell = 10 * place + _parts_by_rank(x, 10)  # what is left of the outcome given p and x is noise
    left = y - (np.bincount(cell, y) / np.maximum(np.bincount(cell), 1))[cell]
    effect = design_effect(left, (codes(x), *_groups(rows)))
    if z / np.sqrt(effect) > EARLY_SCORE:
        return False
    if np.ptp(p[event]) == 0.0 or np.ptp(x[event]) == 0:
        return True
    rho = np.corrcoef(rankdata(p[event]), rankdata(x[event]))[0, 1]
    return bool(rho * np.sqrt(event.sum()) < 2.0)


def _parts_by_rank(values: AnyArray, k: int) -> IntArray:
    """Return the numbers (n,) of k parts of about as many rows, equal values in one part."""
    ranks = (rankdata(values) - 0.5) / len(values)
    return np.minimum(ranks * k, k - 1).astype(np.int64)


def _order_within_strata(place: IntArray, event: BoolArray, x: AnyArray) -> tuple[float, float]:
    """Return the area under the ROC curve of x within strata, and its z at no order."""
    excess = variance = pairs = 0.0
    for k in range(int(place.max()) + 1):
        here = place == k
        n, m = float(here.sum()), float(event[here].sum())
        if 0.0 < m < n:
            excess += float(rankdata(x[here])[event[here]].sum()) - m * (n + 1.0) / 2.0
            variance += m * (n - m) * (n + 1.0) / 12.0
            pairs += m * (n - m)
    return (0.5 + excess / pairs, excess / variance**0.5) if pairs else (0.5, 0.0)


def follow_up(rows: Rows) -> Question | None:
    """Ask where a column that is like a time of follow-up stands beside a label of two classes.

    It is called a time, or events come early by it (:func:`like_time`). Beside a label that was
    found by its name, a time that is only called so is a doubt.
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
        return Question("follow-up", text, (reading,), asks)
    return None


#: Standard errors of independent rows from which on residuals of one value are alike. At 3.5 the
#: doubt was false in up to 1.5 of 1000 calibrated data sets of a kind, at 4 in up to 0.5.
DEPENDENT_SCORE = 4.0


def dependent_rows(rows: Rows) -> Question | None:
    """Doubt independence where rows share a value, and their residuals are alike beyond chance.

    At least half of the rows share a value of a column of at least max(10, n / 200) values with 1
    to 200 others; the sum of products of residuals over pairs of rows of one value is above 4
    standard errors of independent rows and above 2 standard errors over values. Columns that follow
    from the predictions, as a predicted class does, are left out.
    """
    n = rows.n
    if n < 20 or "clusters" in rows.said or rows.clusters is not None or rows.followed:
        return None
    if (p := rows.risks) is not None:
        residuals = rows.labels - p
    else:
        top = rows.probs.argmax(axis=1)
        residuals = (top == rows.labels) - rows.probs.max(axis=1)
    for column in rows.unused:
        if column.coded is None or column.counts is None or not column.complete:
            continue
        if not max(10.0, n / 200.0) <= column.n_values <= 0.75 * n:
            continue
        shared = column.counts[(column.counts >= 2) & (column.counts <= 201)].sum()
        alike = shared >= n / 2.0 and _are_alike(residuals, column.coded[0])
        if alike and not _follows(rows.probs, column):
            text = (
                f"outcomes of rows with the same {column.name} are correlated, but the p-values "
                "assume independent rows"
            )
            reading = Reading({"clusters": column.sql}, f"rows of one {column.name} depend")
            return Question("dependent rows", text, (reading,), asks=False)
    return None


def _are_alike(residuals: FloatArray, groups: IntArray) -> bool:
    """Return whether pairs of rows of one group have more similar residuals than by chance."""
    r = residuals - residuals.mean()
    size, sums = np.bincount(groups).astype(np.float64), np.bincount(groups, r)
    cross = sums**2 - np.bincount(groups, r * r)
    of_chance = float(np.sqrt(2.0 * np.sum(size * (size - 1.0)))) * float(np.var(r))
    of_groups = float(np.sqrt(cross @ cross))
    if of_chance <= 0.0 or of_groups <= 0.0:
        return False
    return bool(cross.sum() > DEPENDENT_SCORE * of_chance and cross.sum() > 2.0 * of_groups)


def _follows(probs: FloatArray, column: Column) -> bool:
    """Return whether a column is a function of the predictions: top class, or steps of p."""
    assert column.coded is not None
    groups = column.coded[0]
    if probs.ndim == 2 and probs.shape[1] > 2:
        top = probs.argmax(axis=1)
        return bool(np.unique(top * (groups.max() + 1) + groups).size == np.unique(top).size)
    p = probs if probs.ndim == 1 else probs[:, 1]
    along = groups[np.argsort(p, kind="stable")]
    return bool(np.count_nonzero(np.diff(along)) <= column.n_values - 1)


def outcomes_to_come(left_out: int, n: int) -> Question | None:
    """Doubt the remaining rows where more than 1 % of n rows have no outcome or were left out."""
    if left_out <= 0.01 * n:
        return None
    text = (
        f"{left_out} of {n} rows have no outcome and are left out: if one outcome becomes known "
        "earlier than the other, the remaining rows are a biased sample. Keep only the rows that "
        "are old enough for either outcome to be known"
    )
    return Question("outcomes to come", text, (Reading({"where": "EXPR"}),), asks=False)


#: Guards of rows and unused columns, in the order in which they are asked.
GUARDS: tuple[Callable[[Rows], Question | None], ...] = (
    train_rows,
    repeated_rows,
    several_models,
    percent_below_one,
    one_event_each,
    unused_weights,
    second_set,
    predicted_class,
    confidences,
    against_outcomes,
    follow_up,
    dependent_rows,
)
