"""Guards that look at columns that nobody named: which rows there are, which columns were taken.

:func:`questions` asks all guards of rows with labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from string import ascii_letters, digits

import numpy as np

from caltest._base.arrays import AnyArray, FloatArray, IntArray, codes
from caltest.data.doubts import against_outcomes, predicted_class
from caltest.data.likelihoods import rankdata
from caltest.data.predicted_classes import confidences
from caltest.data.questions import Column, Question, Rows, key_of
from caltest.data.times import follow_up
from caltest.errors import Reading

#: Names of the parts of a data set that a model was fitted to, and of all parts.
FITTED = frozenset(("train", "training", "fit"))
SPLIT_NAMES = FITTED | {
    *("test", "valid", "validation", "val", "dev", "holdout", "hold_out", "oof", "cv"),
}
#: Columns of 0 and 1 that mark a part of a data set.
SPLIT_FLAG = re.compile(r"(?:is_|in_)?(train|training|test|holdout|validation)(?:_set)?")


def questions(rows: Rows) -> tuple[Question, ...]:
    """Return the questions of all guards on rows with labels, those that ask first."""
    asked = [guard(rows) for guard in GUARDS]
    return tuple(sorted(filter(None, asked), key=lambda question: not question.asks))


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
            flag = SPLIT_FLAG.fullmatch(key_of(column.name))
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
        parts[word] = key_of(word).strip("0123456789_")
        if parts[word] not in SPLIT_NAMES:
            return {}
    return parts


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
        if key_of(model.name) not in MODEL_NAMES or not 2 <= model.n_values <= 50:
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


# ------------------------------------------------------------------------------
# Guards of which columns were taken, and of their scale.


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
        if key_of(column.name) not in WEIGHT_NAMES and not all(each):
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


#: How many times more events than predicted must be absent, and how far from p / 100 they may be.
FAR_TOO_MANY, NEAR_PERCENT = 30.0, 5.0


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


def in_percent(expected: float, events: float) -> bool:
    """Say whether ``expected`` events are so many more than ``events`` that p is in percent.

    ``expected`` is Σ p. It is at least 30 times ``events``, of which there is one at least, and Σ p
    / 100 is at most 5 times ``events``: no model of use is as wrong as that, and percents are.
    Where p are probabilities, so few events have a chance below 1e-10.
    """
    return events >= 1 and FAR_TOO_MANY * events <= expected <= 100.0 * NEAR_PERCENT * events


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
