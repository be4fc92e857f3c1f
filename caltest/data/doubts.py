"""Guards: questions that predictions and outcomes raise about how they were read.

A guard is a function of arrays and of the columns that nobody named. It returns a
:class:`Question` or None, and never changes a number. A question that *asks* is a refusal unless
the user says that the input is meant as it is; one that does not is a doubt, printed first. Guards
that look at further columns are in :mod:`caltest.data.spare_columns`.

:func:`without_rounded` leaves out rows whose probability of 0 or 1 may be rounded.

Guards that ask compare two readings of the same rows by their likelihood
(:mod:`caltest.data.questions`). Rates of false alarms and power are measured in
``docs/guards.md`` (``python -m validation.guards``).
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from math import lgamma
from string import ascii_lowercase, digits
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import bdtrc

from caltest._base.arrays import AnyArray, FloatArray, IntArray
from caltest._base.written import DependenceDoubt, Doubt, FollowupDoubt, several
from caltest.data.facts import by_appearance
from caltest.data.followup import Censoring, Followup
from caltest.data.questions import (
    LIKELIER,
    PLAIN_NAME,
    ROUNDED_OFF,
    Column,
    Question,
    Rows,
    complement,
    constant_gain,
    design_effect,
    groups_of,
    hazard_order,
    log_likelihood,
    mean_weight,
    negated,
    order_of_events,
    rankdata,
)
from caltest.errors import (
    DoubtfulInputError,
    DoubtfulInputWarning,
    InvalidPredictionsError,
    Reading,
    spelt,
)

if TYPE_CHECKING:
    from caltest.data.predictions import Predictions

#: Standard errors below 0.5 of the area under the ROC curve before a guard asks.
BELOW_HALF = 3.0
#: Rows from which on guards look at an evenly spread part of the arrays, and rows that are looked
#: at before all others.
MOST_SEEN, MOST_FIRST = 50_000, 1000


# ------------------------------------------------------------------------------
# What callers ask.


def doubts_of_arrays(
    probs: FloatArray, labels: IntArray | Followup,
    weights: FloatArray | None = None, clusters: AnyArray | None = None,
    said: Mapping[str, str] | None = None,
) -> tuple[Question, ...]:  # fmt: skip
    """Return the questions that arrays raise, which have no other columns to look at.

    The guards are ``predicted_class``, ``permuted_classes`` and ``against_outcomes``; with
    follow-up ``swapped_censoring`` and ``against_outcomes``. Above 50 000 rows an evenly spread
    subset is examined. One pass over plain rows tells whether any guard can ask. Cumulative rows
    are no probabilities: :func:`cumulative` is for the check of them.

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

    Returns
    -------
    tuple of Question
        The evidence against the way the arrays were read, as text, each with the readings it
        supports; () if there is none.

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
        first = labels[:MOST_FIRST]
        own = np.maximum(probs[np.arange(first.size), first], ROUNDED_OFF)
        share = np.bincount(first)[first] / first.size
        if np.log(own).sum() >= np.log(share).sum():
            return ()
    rows = Rows(probs, labels, weights, clusters, said=words, arrays=True)
    asked = (predicted_class(rows), permuted_classes(rows), against_outcomes(rows))
    return tuple(filter(None, asked))


def doubts_of_sums(
    p: FloatArray, n: FloatArray, events: IntArray, said: Mapping[str, str],
    answers: bool | None = None,
) -> tuple[Question, ...]:  # fmt: skip
    """Return the questions that sums over cells raise: of all rows, however many.

    The guards are ``against_outcomes``, ``predicted_class`` and ``lone_confidences`` of two
    classes, as of rows with the mean prediction of their cell; one cell may hold the threshold of
    predicted classes. O(C) for C cells.

    Parameters
    ----------
    p : ndarray of shape (C,)
        Mean predictions of cells, increasing.
    n, events : ndarray of shape (C,)
        Numbers of rows and of events.
    said : mapping of str to str
        The user's expressions by option, such as ``{"probs": "risk"}``.
    answers : bool or None
        Whether labels say if an answer was right; None if they may.

    Returns
    -------
    tuple of Question
        At most one: the evidence as text, with the readings it supports.
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
    sure = p[0] >= 0.5 - ROUNDED_OFF and total >= FEWEST_ALONE and answers is False
    share = k / total
    constant = k * float(np.log(share)) + (total - k) * float(np.log1p(-share))
    given = float(events @ np.log(q) + (n - events) @ np.log1p(-q))
    likelier = constant - given - 0.5 * float(np.log(total)) >= LIKELIER
    if sure and likelier and "predicted_label" not in said:
        return (likely_confidences(rows),)
    return ()


def doubts_of_followup(
    probs: FloatArray, followup: Followup, clusters: AnyArray | None = None,
    said: Mapping[str, str] | None = None,
) -> tuple[Question, ...]:  # fmt: skip
    """Return the questions that follow-up data raise about how they were read.

    ``probs`` (n,) are risks by the horizon, ``followup`` the times and events, ``clusters`` (n,)
    the clusters of the rows, None without. ``said`` maps options such as "event" to the user's
    expressions for them. A Question is the evidence as text, with the readings it supports; () if
    there is none.
    """
    return _of_followup(probs, followup, clusters, dict(said or {}), arrays=False)


def _of_followup(
    probs: FloatArray, followup: Followup, clusters: AnyArray | None, said: dict[str, str],
    arrays: bool,
) -> tuple[Question, ...]:  # fmt: skip
    """Return the questions that follow-up raises: swapped codes, and risks against outcomes.

    ``probs`` (n,) or (n, K) has the risk in its last column, ``followup`` the times and events, and
    ``clusters`` (n,) the clusters or None. ``said`` maps options such as "event" to the user's
    expressions, and ``arrays`` says that readings are Python, not SQL. A Question is the evidence
    as text, with the readings it supports. () if nobody was followed to the horizon.
    """
    p = probs if probs.ndim == 1 else probs[:, -1]
    if followup.elapsed.max(initial=0.0) < followup.limit:
        return ()  # refused for that
    # One curve for all rows: strata of few rows would add noise to what is compared
    weights = Censoring(followup, np.zeros(p.size, dtype=np.int64)).weights
    rows = Rows(p, followup.labels, weights, clusters, said=said, followed=True, arrays=arrays)
    return tuple(filter(None, (swapped_censoring(rows, followup), against_outcomes(rows))))


def same_outcomes(first: IntArray, second: IntArray) -> bool:
    """Return whether two samples have the same labels in the same order, beyond chance.

    ``first`` and ``second`` are labels (n,). Chance explains it if labels drawn at the frequencies
    of the first would agree in more than 1 of 1000 samples.
    """
    if not np.array_equal(first, second):
        return False
    share = np.bincount(first) / len(first)
    return bool(len(first) * np.log((share**2).sum()) <= -LIKELIER)


def refuse_same_outcomes(first: IntArray, second: IntArray, as_is: bool) -> None:
    """Raise DoubtfulInputError if two models said to predict other observations share all outcomes.

    ``first`` and ``second`` are the labels (n,) of the rows of the two models. They are shared if
    they are equal row by row and chance does not explain it (:func:`same_outcomes`). ``as_is`` says
    that they are meant so, and nothing is raised.
    """
    if not as_is and same_outcomes(first, second):
        raise DoubtfulInputError(
            f"both models have {len(first)} rows with the same outcomes in the same order, as two "
            "models of the same observations have: leave out paired=False (--unpaired) if they "
            "are, else pass as_is=True (--as-is)",
            [Reading({"unpaired": None}, "they are the same observations in the same order")],
        )


#: Guards of outcomes that may not have been seen to their end.
UNSEEN = ("follow-up", "outcomes to come", "immature rows")


def answered(
    asked: Iterable[Question], as_is: bool = False, *, arrays: bool = False
) -> tuple[str, ...]:
    """Return notes on the questions ``asked``, one text each, or raise for one that must stop.

    A Question is evidence against the way data were read. The first one that ``asks`` raises
    DoubtfulInputError with its alternative readings, unless ``as_is`` is true; then the note says
    that it was overruled. The others are doubts, noted as they are. A note is a Doubt (a kind of
    str that puts p-values in doubt) if its question could explain a miscalibration, else a plain
    str; a DependenceDoubt if rows seem to depend or may; without ``as_is`` a FollowupDoubt if
    outcomes may not be known to their end. With ``as_is``, notes are plain on rows that are without
    an outcome or not mature, and on columns that are a feature or clusters. With ``arrays`` the
    message of the error suggests Python arguments; without, the caller adds how to go on.
    """
    notes = list[str]()
    for question in asked:
        if question.asks and not as_is:
            advice = f". {_in_python(question)}" if arrays else ""
            raise DoubtfulInputError(question.text + advice, question.readings)
        text = f"read as it is, although {question.text}" if question.asks else question.text
        kind: type[str] = Doubt if question.explains else str
        if question.guard in ("dependent rows", "feature"):
            column = [str(reading.options.get("clusters", "")) for reading in question.readings]
            if question.guard == "dependent rows":
                notes.append(DependenceDoubt(text, *column[:1]))
            else:
                notes.append(text if as_is else DependenceDoubt(text, "", *column[:1]))
            continue
        if question.guard in UNSEEN and question.explains:
            kind = FollowupDoubt
            if as_is:
                kind = Doubt if question.guard == "follow-up" else str
        notes.append(kind(text))
    return tuple(notes)


def of_bets(note: str) -> str:
    """Return a note on rows as a note of a monitor, which takes no clusters but times of rows.

    A ``note`` (text) on dependent rows that names their column, a DependenceDoubt, becomes a Doubt
    with the same column; others are returned unchanged.
    """
    if not isinstance(note, DependenceDoubt) or not (column := note.clusters or note.perhaps):
        return note
    seem = "are" if note.clusters else "may be"
    return Doubt(
        spelt(
            f"outcomes of rows with the same {column} {seem} correlated, and each row is a bet of "
            f"its own: if it is the time of the rows, name it, time={column!r} "
            f"(--time {shlex.quote(column)}), and rows of one time are one bet"
        )
    )


def _in_python(question: Question) -> str:
    """Return a sentence that suggests Python arguments for each reading, and ``as_is``.

    ``question`` is evidence against the way arrays were read, with the readings it supports; those
    with placeholders are left out.
    """
    ways = [
        (f"pos_label={value!r}" if option == "pos_label" else f"{value}")
        + (f" if {reading.when}" if reading.when else "")
        for reading in question.readings if reading.complete
        for option, value in reading.options.items()
    ]  # fmt: skip
    instead = " or ".join(ways) or "the outcomes that were observed"
    return f"Pass {instead}; as_is=True goes on with the values as they are"


# ------------------------------------------------------------------------------
# Guards of predictions and outcomes.


def against_outcomes(rows: Rows) -> Question | None:
    """Ask whether p is the probability of the other outcome: events are rarer the higher p is.

    It asks if 1 − p is 1000 times as likely as p (log L(1 − p) − log L(p) ≥ log 1000), and the area
    under the ROC curve is at least three standard errors below 0.5. Both are divided by the largest
    design effect over clusters or, without these, over unused columns of text and whole numbers.
    ``rows`` are the predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
    """
    p, y, w = rows.risks, rows.labels, rows.weights
    if p is None or rows.n < 5 or (rows.followed and w is None) or (w is not None and not w.any()):
        return None
    scale = 1.0 if w is None else mean_weight(w)
    gain = (log_likelihood(1.0 - p, y, w) - log_likelihood(p, y, w)) / scale
    if gain < LIKELIER:
        return None
    area, z = order_of_events(p, y, w)
    if z > -BELOW_HALF:
        return None
    part = (rankdata(p) / len(p) - 0.5) * (y - y.mean()) * (1.0 if w is None else w)
    effect = design_effect(part - part.mean(), groups_of(rows))
    z /= np.sqrt(effect)
    if gain / effect < LIKELIER or z > -BELOW_HALF:
        return None
    return _against(rows, area, z)


def _against(rows: Rows, area: float, z: float) -> Question:
    """Return the question of events that are rarer where predictions are higher.

    ``rows`` are the predictions and outcomes. ``area`` is the area under the ROC curve and ``z``
    its distance from 0.5 in standard errors, negative. The Question is the evidence as text, with
    the readings it supports, such as the probability of the other event.
    """
    probs, outcome = rows.words("probs"), rows.outcome
    rarer = f"events are rarer where {probs} are" if rows.arrays else (
        f"{outcome} is rarer where {probs} is"
    )  # fmt: skip
    text = (
        f"{rarer} higher (area under the ROC curve {area:.2f}, {abs(z):.1f} standard errors below "
        "0.5)"
    )
    readings = [*_confidence(rows, probs), _other_event(rows, probs)]
    if not rows.followed and (options := _other_outcome(rows)):
        marks = "mark" if rows.arrays else "marks"
        readings.append(Reading(options, f"{outcome} {marks} the other outcome"))
    return Question("against the outcomes", text, tuple(readings))


def _confidence(rows: Rows, probs: str) -> tuple[Reading, ...]:
    """Return, in a tuple, the reading of p as the confidence in a predicted class.

    ``rows`` are the predictions and outcomes, ``probs`` the user's expression for p. A Reading has
    the options that say so, and the condition under which they are right. The tuple is empty where
    some p are below 0.5, with follow-up, and where labels say whether answers were right.
    """
    p = rows.risks
    if p is None or rows.followed or rows.answers or p.min() < 0.5 - ROUNDED_OFF:
        return ()
    when = (
        f"{probs} {'are' if rows.arrays else 'is'} the confidence that a predicted class is right"
    )
    if rows.arrays:
        return (Reading({"label": f"predicted == {rows.words('label')}"}, when),)
    return (Reading({"predicted_label": "COLUMN"}, when),)


def _other_event(rows: Rows, probs: str) -> Reading:
    """Return the reading in which the probabilities belong to the other class.

    Its option is ``{"probs": …}``, such as "1 - p", or the two columns swapped. ``rows`` are the
    predictions and outcomes, ``probs`` is the user's expression for the predictions.
    """
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
    """Return the options under which the other outcome is the event, a dict of keyword arguments.

    They are ``{"label": "NOT y"}`` for :func:`read_predictions`, or ``{"pos_label": "no"}`` for
    arrays whose labels are the words yes and no. The dict is empty where classes are named, as no
    option then turns them round. ``rows`` hold the predictions, the outcomes and the name of each.
    """
    if "pos_label" in rows.said:
        return {"pos_label": rows.said["pos_label"]}
    return {} if "classes" in rows.said else {"label": negated(rows.outcome, rows.arrays)}


def predicted_class(rows: Rows) -> Question | None:
    """Ask whether the label is the predicted class, because it follows from p in every row.

    For two classes all events then have higher predictions than all others; for more the label is
    the most probable class. It asks if such labels have probability L ≤ 1 / (1000 (n + 1)) under
    the predictions, where n + 1 is the number of thresholds. Labels that are certain do not count.
    ``rows`` are the predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
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
    """Return the question that the label seems to be the predicted class, not the outcome.

    It is asked where the label follows from the predictions in every row. ``rows`` are the
    predictions and outcomes. The Question is this evidence as text, with a reading that names
    another label.
    """
    seem = "labels seem" if rows.arrays else f"{rows.outcome} seems"
    text = (
        f"{rows.words('probs')} decides the label in every row: {seem} to be the predicted class, "
        "not the observed outcome"
    )
    return Question("predicted class", text, (Reading({"label": "COLUMN"}),))


#: Classes up to which another order of the columns is sought, and rows that it takes.
MOST_ORDERED, FEWEST_ORDERED = 100, 20

#: Classes for each of which a placeholder is printed, at most.
MOST_PLACES = 6


def permuted_classes(rows: Rows) -> Question | None:
    """Ask where the columns of three or more classes fit the labels in another order.

    The order of the largest likelihood is 1000 K! times as likely as the given one, as there are K!
    orders; the shares of the classes are 1000 times as likely as the given order, and the other
    order 1000 times as likely as these. Logarithms are divided by the largest design effect.
    ``rows`` are the predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
    """
    p, y, w = rows.probs, rows.labels, rows.weights
    if p.ndim == 1 or not 3 <= p.shape[1] <= MOST_ORDERED or rows.n < FEWEST_ORDERED:
        return None
    k = p.shape[1]
    weights = np.ones(rows.n) if w is None else w
    logs = np.log(np.clip(p, ROUNDED_OFF, 1.0))
    score = np.zeros((k, k))  # of column i as the probability of class j
    for j in range(k):
        score[:, j] = weights[y == j] @ logs[y == j]
    counts = np.bincount(y, weights, minlength=k)
    seen = counts[counts > 0]
    least = LIKELIER * mean_weight(weights)
    shares = float(seen @ np.log(seen / seen.sum()))
    if float(np.trace(score)) > shares - least:
        return None
    from scipy.optimize import linear_sum_assignment

    column, kind = linear_sum_assignment(score, maximize=True)
    kind[column] = kind.copy()
    own, other = logs[np.arange(rows.n), y], logs[np.arange(rows.n), np.argsort(kind)[y]]
    gain = weights * (other - own)
    effect = design_effect(gain - gain.mean(), groups_of(rows))
    orders = mean_weight(weights) * lgamma(k + 1.0)
    enough = (
        gain.sum() >= (least + orders) * effect
        and shares - float(np.trace(score)) >= least * effect
        and float(score[np.arange(k), kind].sum()) - shares >= least * effect
    )
    return _of_permuted(rows, kind) if enough else None


def class_places(k: int) -> str:
    """Return a placeholder for the names of ``k`` classes, such as "CLASS1,CLASS2,CLASS3".

    For more than 6 classes it is "CLASS1,CLASS2,…".
    """
    return ",".join(f"CLASS{j + 1}" for j in range(k)) if k <= MOST_PLACES else "CLASS1,CLASS2,…"


def named_classes(
    names: Sequence[str], words: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return (classes, further): the label after which each of K columns is called, and other ones.

    ``names`` are the K classes that the columns are called after, and ``words`` the distinct
    labels. ``classes`` has a label for each column in their order, and ``further`` those of no
    column, in order. Case is ignored, and so is what all names share, as in ``birads1`` to
    ``birads5`` for the labels 1 to 5. None unless every column has its label.
    """
    said = {word.strip().lower(): word for word in words}
    whole = [name.lower() for name in names]
    counted = [match for match in (re.fullmatch(r"(\D*)(\d+)", name) for name in whole) if match]
    one_stem = len(counted) == len(whole) and len({match[1] for match in counted}) == 1
    numbers = [match[2] for match in counted] if one_stem else whole
    for ends in (whole, [*bare_words(whole, []).values()], numbers):
        if len({*ends}) == len(names) >= 2 and {*ends} <= said.keys():
            further = sorted(word for folded, word in said.items() if folded not in ends)
            return tuple(said[end] for end in ends), tuple(further)
    return None


def too_few_labels(probs: FloatArray, n_labels: int) -> bool:
    """Return whether labels of fewer values than there are classes are no labels of these classes.

    ``probs`` (n, K) are the probabilities of the classes, and ``n_labels`` counts the distinct
    labels. At least K − ``n_labels`` classes then occur in no row, which has a chance below 1e-6
    even for the rarest of them. False if there are as many labels as classes.
    """
    absent = np.log1p(-np.clip(probs, ROUNDED_OFF, 1.0 - ROUNDED_OFF)).sum(axis=0)
    lacking = probs.shape[1] - n_labels
    return bool(lacking > 0 and np.sort(absent)[::-1][lacking - 1] < -2.0 * LIKELIER)


def orders_of_classes(
    names: Sequence[str], words: Sequence[str], probs: FloatArray
) -> list[tuple[tuple[str, ...], str]]:
    """Return pairs (classes, condition) for usual orders of labels that columns do not name.

    ``classes`` is a tuple of K label values in the order of the columns, ``condition`` a clause
    that says when it is right. The values number the columns, or the classes by alphabet, from 0 or
    1; or the columns are in the alphabetical order of the labels. Only orders are returned under
    which the labels are 1000 times as likely as by their shares; [] if there is none. Labels that
    begin the names of columns, such as B for "benign", give the one order.

    Parameters
    ----------
    names : sequence of str
        Classes that the K columns are called after.
    words : sequence of str
        Labels of the n rows.
    probs : ndarray of shape (n, K)
        Probabilities.
    """
    k, seen = len(names), sorted({*words})
    found = list[tuple[tuple[str, ...], str]]()
    if begun := _abbreviated(names, seen):
        return [(begun, f"{', '.join(begun)} are short for {', '.join(names)}")]
    if all(re.fullmatch(r"\d{1,6}", word) for word in seen):
        low, high = min(map(int, seen)), max(map(int, seen))
        ranks = np.argsort(np.argsort(np.array(names))).tolist()
        for start in (s for s in (0, 1) if s <= low and high < s + k):
            span = f"{start} {'to' if k > 2 else 'and'} {start + k - 1}"
            plain = tuple(str(start + j) for j in range(k))
            found.append((plain, f"{span} number the columns in their order"))
            if ranks != [*range(k)] and not all(map(str.isdecimal, names)):
                sorted_names = tuple(str(start + j) for j in ranks)
                found.append((sorted_names, f"{span} number the classes in alphabetical order"))
    elif len(seen) == k:
        found.append((tuple(seen), "the columns are in the alphabetical order of the labels"))
    shares = Counter(words)
    base = sum(m * np.log(m / len(words)) for m in shares.values())
    logs = np.log(np.clip(probs, ROUNDED_OFF, 1.0))
    likely = []
    for classes, when in found:
        place = {word: j for j, word in enumerate(classes)}
        own = logs[np.arange(len(words)), [place[word] for word in words]]
        if own.sum() - base >= LIKELIER:
            likely.append((classes, when))
    return likely


def _abbreviated(names: Sequence[str], seen: Sequence[str]) -> tuple[str, ...]:
    """Return labels in the order of the classes that they begin, such as B, N, A; else ().

    ``seen`` are the distinct labels. Each has to be the beginning of exactly one of the ``names``
    of columns, and letters, ignoring case.
    """
    if {*names} == {*seen}:
        return ()
    starts = [[w for w in seen if w.isalpha() and n.lower().startswith(w.lower())] for n in names]
    found = tuple(each[0] for each in starts if len(each) == 1)
    return found if sorted(found) == sorted(seen) and len(found) == len(names) else ()


def _of_permuted(rows: Rows, kind: IntArray) -> Question:
    """Return the question of columns whose i-th is the probability of class ``kind[i]``.

    ``rows`` are the predictions and outcomes, ``kind`` (K,) a permutation of 0 … K − 1. The
    Question is the evidence as text, with a reading that has the columns or the classes in the
    right order.
    """
    moved = np.flatnonzero(kind != np.arange(len(kind)))
    top = rows.probs.argmax(axis=1)
    right, then = (100 * np.mean(found == rows.labels) for found in (top, kind[top]))
    text = (
        "the outcomes are far likelier if the columns of probabilities are in another order: the "
        f"label is the likeliest class in {right:.0f}\u00a0% of rows, and in {then:.0f}\u00a0% "
        "with the other order"
    )
    if rows.arrays:
        order = ", ".join(map(str, np.argsort(kind).tolist()))
        when = f"column {moved[0]} is the probability of class {kind[moved[0]]}"
        options = {"probs": f"{rows.words('probs')}[:, [{order}]]"}
        return Question("permuted classes", text, (Reading(options, when),))
    given = rows.said.get("classes", "").split(",")
    if len(given) == len(kind) or len(rows.classes) != len(kind):
        order = (
            ",".join(given[i] for i in kind) if len(given) == len(kind) else class_places(len(kind))
        )
        reading = Reading({"classes": order}, "the columns are of the classes in this order")
        return Question("permuted classes", text, (reading,))
    names, label = rows.classes, rows.words("label")
    cases = " ".join(f"WHEN {label} = {names[kind[i]]} THEN {names[i]}" for i in moved)
    rest = f" ELSE {label}" if len(moved) < len(kind) else ""
    holds = " and ".join(f"that of {names[i]} is of {names[kind[i]]}" for i in moved[:4])
    when = f"the columns are not as they are called: {holds}{', …' if len(moved) > 4 else ''}"
    return Question(
        "permuted classes", text, (Reading({"label": f"CASE {cases}{rest} END"}, when),)
    )


def cumulative(probs: FloatArray, columns: Sequence[str] | None = None) -> Question | None:
    """Return a question if columns are cumulative probabilities: they rise along every row to 1.

    ``probs`` is (n, K); ``columns`` are the names of its columns as SQL, None for arrays. The
    Question is the evidence as text, with a reading that takes the differences of the columns. None
    if they are not cumulative.
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


#: Least z of the rows without the event, also beyond that of the rows with it, and logarithm of how
#: many times likelier than p, beside √n, one number for all rows must be.
CENSORED_SCORE, CENSORED_LIKELIER = 5.0, float(np.log(20.0))


def swapped_censoring(rows: Rows, followup: Followup) -> Question | None:
    """Ask whether the codes of event and censoring were swapped.

    The sign is that the times of rows *without* the event follow the predictions. It asks if Cox's
    score test has z ≥ 5 with code 0 as the event, at least 5 more than with code 1, and if one
    prediction for all rows is 20 √n times as likely as p under weights for censoring. ``rows`` are
    the predictions, with these weights, ``followup`` the times and events. The result is a Question
    (evidence as text, with a reading that negates the event), or None.
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
    return Question("swapped censoring", text, (Reading({"event": negated(name, rows.arrays)}),))


# ------------------------------------------------------------------------------
# Predicted classes beside predictions, which may be the confidence that these are right.
#
# Words of two columns are matched without case and what all of them share.


#: Rows from which on numbers of 0.5 or more may be confidences in a class that is in no column.
FEWEST_ALONE = 20


def confidences(rows: Rows) -> Question | None:
    """Ask whether p is the confidence in a predicted class, which is in an unused column.

    It is asked if all p are at least one half, and if agreement of the column with the label is
    1000 times as likely under p as the label itself, divided by two mappings of values and the
    number of columns. If the column agrees with the label more often than p says, by two standard
    errors, it may be a copy of the label. Then one number for all rows must also be 1000 √n times
    as likely as p. Without such a column :func:`lone_confidences` decides. ``rows`` are the
    predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
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
    return lone_confidences(rows)


def lone_confidences(rows: Rows) -> Question | None:
    """Ask whether p is the confidence in a predicted class that is in no column.

    It is asked if all p are at least one half, one number for all rows is 1000 √n times as likely,
    and labels do not say whether answers were right. It is not asked of the first of more rows.
    ``rows`` are the predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
    """
    p = rows.probs
    alone = rows.n >= FEWEST_ALONE and rows.answers is False and not rows.first
    if not alone or p.ndim > 1 or rows.followed or "predicted_label" in rows.said:
        return None
    if rows.weights is not None or p.min() < 0.5 - ROUNDED_OFF:
        return None
    return None if constant_gain(p, rows.labels) < LIKELIER else likely_confidences(rows)


def likely_confidences(rows: Rows) -> Question:
    """Return the question whether p is the confidence in a class that is in no column.

    ``rows`` are the predictions and outcomes. The Question is the evidence as text, with a reading
    that asks for ``predicted_label``.
    """
    text = (
        f"all values of {rows.words('probs')} are at least 0.5, and one number for all rows is "
        "1000 times as likely: they look like the confidence that a predicted class is right"
    )
    return Question("confidences", text, (Reading({"predicted_label": "COLUMN"}),))


def _of_confidences(rows: Rows, column: Column, zero: str, one: str) -> Question:
    """Return the question whether predictions are the confidence that a column is right.

    ``rows`` are the predictions and outcomes. ``column`` is an unused column of predicted labels;
    ``zero`` and ``one`` are its words for the outcomes 0 and 1. The Question is the evidence as
    text, with a reading that sets ``predicted_label`` or ``label``.
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
    """Return (low, high): codes of two groups that a threshold of p separates; None if none does.

    ``groups`` (n,) are codes of two values, and p (n,) are higher in the group ``high``. In one
    group p is below 0.5 in some row, which a confidence in the more likely of two classes never is.
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
    """Return a question if the predicted class is a threshold of p, which then is no confidence.

    ``p`` (n,) are the predictions, ``answers`` is the column of predicted classes, ``truth`` that
    of labels, both coded. ``said`` has the user's expressions for the options "probs" and
    "predicted_label". The Question is the evidence as text, with a reading in which p is the
    probability of one class. None if no threshold separates the classes, or below 20 rows.
    """
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


def predicted_class_readings(
    truth: Iterable[str], unused: Iterable[Column], probs: str
) -> tuple[Reading, ...]:
    """Return the readings in which ``probs`` is the confidence in a predicted class.

    A Reading is an option, here ``predicted_label``, with the condition under which it is right.
    There is one for each of the ``unused`` columns that shares at least two words with the label;
    () if there is none. ``truth`` are the words of the label, ``probs`` is the user's expression
    for the predictions.
    """
    wanted = [word.lower() for word in truth]
    found = []
    for column in unused:
        if column.words is not None and 2 <= column.n_values <= 10_000:
            shared = {*bare_words(column.words, wanted).values()} & {*wanted}
            if len(shared) >= 2:
                when = f"{probs} is the confidence that {column.name} is right"
                found.append(Reading({"predicted_label": column.sql}, when))
    return tuple(found)


def bare_words(values: Sequence[str], others: Sequence[str]) -> dict[str, str]:
    """Return words by their distinctive part, in lower case, without what all of them share.

    The dictionary maps each of ``values`` to its part: ``LABEL_0`` and ``LABEL_1`` become ``0`` and
    ``1``. Words that occur among the ``others``, whatever their case, are kept whole.
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


# ------------------------------------------------------------------------------
# Probabilities of 0 and 1 that may be rounded, and the rows they make impossible.


#: Steps to which people round probabilities, and the rows from which on values show one.
ROUND_STEPS, ROWS_OF_STEPS = (0.25, 0.2, 0.1, 0.05, 0.02, 0.01), 50


#: How probable so many contradictions must be, if they are of values that were rounded.
EXPLAINED = 0.05


def without_rounded(data: Predictions, rounded: bool | Literal["auto"]) -> Predictions:
    """Return predictions without rows of two classes whose probability is exactly 0 or 1.

    A note says how many were left out. With ``rounded=False`` ``data`` are returned unchanged.
    ``"auto"`` leaves rows out only if outcomes of probability 0 occurred and rounding explains
    them, and warns (DoubtfulInputWarning). That is, all values are multiples of a step s, and an
    event of probability s/2 would occur as often: P(X ≥ k) > 0.05 for k contradictions in n rows of
    0 or 1, X binomial (n, s/2). In clusters with a contradiction one counts, and their rows share
    the probability. InvalidPredictionsError for ``True`` with more than two classes or if no row
    would stay. O(n).
    """
    auto = rounded == "auto"
    if not rounded or (auto and (data.n_classes > 2 or data.probs.min() > 0.0)):
        return data
    if auto and not data.impossible.size:
        return data
    if data.n_classes > 2:
        raise InvalidPredictionsError(
            "rounded=True (--rounded) leaves out rows of probability 0 or 1: it is for two classes",
            [Reading({"rounded": None})],
        )
    p = data.probs[:, 1]
    inner = (p > 0.0) & (p < 1.0)
    n_ends, n_against, step = int((~inner).sum()), data.impossible.size, step_of(p)
    units = np.arange(data.n) if data.clusters is None else by_appearance(data.clusters)
    # Rows of a cluster may all be otherwise together: clusters are counted, each with its chance
    n_units, rate = np.unique(units[~inner]).size, step / 2.0 * n_ends
    k = np.unique(units[data.impossible]).size
    explained = step > 0.0 and bdtrc(k - 1, n_units, min(rate / max(n_units, 1), 1.0)) > EXPLAINED
    if auto and not (explained and inner.any() and data.followup is None):
        return data
    if not inner.any():
        no_others = "rounded=True: every probability is 0 or 1"
        raise InvalidPredictionsError(no_others, [Reading({"rounded": None})])
    share = f"{n_against} of {n_ends} outcomes predicted with probability 0 or 1 were otherwise"
    if auto:
        warnings.warn(
            f"{share}, which rounding to multiples of {step:g} explains: these rows are left out; "
            + spelt("if 0 was meant to be never, say rounded=False (--not-rounded)"),
            DoubtfulInputWarning,
            stacklevel=4,
        )
    note = f"left out {several(n_ends, 'row')} of probability 0 or 1, which may be rounded"
    return replace(data, notes=(*data.notes, f"{note}: {share}")).take(inner)


def step_of(p: np.ndarray) -> float:
    """Return the largest usual step, such as 0.01, of which all probabilities (n,) are multiples.

    Steps are 0.25, 0.2, 0.1, 0.05, 0.02 and 0.01. It is 0 if there is none, and below 50 rows.
    """
    if p.size < ROWS_OF_STEPS:
        return 0.0
    values = np.unique(p)
    return next(
        (s for s in ROUND_STEPS if np.allclose(values, np.rint(values / s) * s, 0, 1e-9)), 0.0
    )
