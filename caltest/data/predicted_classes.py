"""Predicted classes beside predictions, which may be the confidence that these are right.

:func:`confidences` and :func:`decided_class` are guards; :func:`predicted_class_readings` suggests
columns. Words of two columns are matched without case and what all of them share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from string import ascii_lowercase, digits

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest.data.likelihoods import LIKELIER, ROUNDED_OFF, constant_gain, log_likelihood
from caltest.data.questions import PLAIN_NAME, Column, Question, Rows
from caltest.errors import Reading

#: Rows from which on numbers of 0.5 or more may be confidences in a class that is in no column.
FEWEST_ALONE = 20


def confidences(rows: Rows) -> Question | None:
    """Ask whether p is the confidence in a predicted class, which is in an unused column.

    It is asked if all p are at least one half, and if agreement of the column with the label is
    1000 times as likely under p as the label itself, divided by two mappings of values and the
    number of columns. If the column agrees with the label more often than p says, by two standard
    errors, it may be a copy of the label. Then one number for all rows must also be 1000 √n times
    as likely as p.
    Without such a column :func:`lone_confidences` decides.
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
    """
    p = rows.probs
    alone = rows.n >= FEWEST_ALONE and rows.answers is False and not rows.first
    if not alone or p.ndim > 1 or rows.followed or "predicted_label" in rows.said:
        return None
    if rows.weights is not None or p.min() < 0.5 - ROUNDED_OFF:
        return None
    return None if constant_gain(p, rows.labels) < LIKELIER else likely_confidences(rows)


def likely_confidences(rows: Rows) -> Question:
    """Return the question whether p is the confidence in a class that is in no column."""
    text = (
        f"all values of {rows.words('probs')} are at least 0.5, and one number for all rows is "
        "1000 times as likely: they look like the confidence that a predicted class is right"
    )
    return Question("confidences", text, (Reading({"predicted_label": "COLUMN"}),))


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
    """Return (low, high): codes of two groups that a threshold of p separates; None if none does.

    ``groups`` (n,) are codes of two values. In one group p is below 0.5 in some row, which a
    confidence in the more likely of two classes never is.
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
    """Ask where the predicted class is a threshold of p, so that p is no confidence in that class.

    ``answers`` is the column of predicted classes, ``truth`` the label, ``said`` the user's
    expressions.
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

    There is one for each unused column that shares at least two words with the label; ``truth`` are
    the words of the label.
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
    """Map words to their distinctive part, in lower case, without what all of them share.

    ``LABEL_0`` and ``LABEL_1`` become ``0`` and ``1``. Words that occur among the ``others``,
    whatever their case, are kept whole.
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
