"""Guards that look at columns that nobody named: which rows there are, which columns were taken.

:func:`questions` asks all guards of rows with labels.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from string import ascii_letters, digits

import numpy as np
from scipy.special import fdtrc

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray, codes
from caltest.data.doubts import against_outcomes, confidences, permuted_classes, predicted_class
from caltest.data.ends import follow_up, without_accents
from caltest.data.questions import (
    LIKELIER,
    ROUNDED_OFF,
    Column,
    Question,
    Rows,
    design_effect,
    groups_of,
    key_of,
    mean_weight,
    order_of_events,
    rankdata,
)
from caltest.errors import Reading, spelt

#: What parts of a data set are called, in lower case without accents: those that a model was fitted
#: to, later ones, and others. Dev is of the first kind beside the second, and of either otherwise.
PARTS = {
    "fitted": frozenset(
        (
            *("train", "training", "fit", "development", "derivation", "build", "insample"),
            *("in_sample", "ins", "estimation", "learning", "entwicklung", "entwicklungs"),
            *("trainings", "schaetzung", "lern", "desarrollo", "entrenamiento", "estimacion"),
            *("apprentissage", "entrainement", "developpement", "treino", "desenvolvimento"),
            *("addestramento", "sviluppo", "ontwikkeling"),
        )
    ),
    "later": frozenset(
        (
            *("oot", "oos", "out_of_time", "out_of_sample", "outoftime", "outofsample", "out"),
            *("holdout", "hold_out", "heldout", "held_out"),
        )
    ),
    "other": frozenset(
        (
            *("test", "testing", "valid", "validation", "val", "oof", "cv", "eval", "evaluation"),
            *("validierung", "validierungs", "test_s", "tests", "pruef", "prueba", "pruebas"),
            *("validacion", "essai", "teste", "validacao", "prova", "convalida", "validatie"),
            *("external", "extern", "monitoring", "backtest"),
        )
    ),
    "dev": frozenset(("dev",)),
}
#: What is left out of such names.
OF_PARTS = re.compile(
    r"_?(?:\d+|set|sample|data|split|part|cohort|kohorte|stichprobe|daten|datensatz|menge|rows)$"
)
#: Standard errors by which two parts of unclear names differ in their errors before a guard asks.
PARTS_DIFFER = 4.0
#: What columns of parts of a data set are called, whatever words they hold; and most parts.
SPLIT_NAMES = frozenset(
    (
        *("split", "splits", "data_split", "dataset_split", "split_name", "partition", "subset"),
        *("train_test", "train_or_test", "aufteilung", "particion", "particao", "ripartizione"),
    )
)
MOST_SPLITS = 5
#: Columns of 0 and 1 that mark a part of a data set.
SPLIT_FLAG = re.compile(r"(?:is_|in_)?(train|training|test|holdout|validation)(?:_set)?")


def questions(rows: Rows) -> tuple[Question, ...]:
    """Return the questions of all guards on labelled rows; those that stop an analysis come first.

    ``rows`` are the predictions and outcomes with the unused columns of the table. A Question is
    the evidence against the way they were read, as text, with the readings it supports. () if there
    are none.
    """
    asked = [guard(rows) for guard in GUARDS]
    return tuple(sorted(filter(None, asked), key=lambda question: not question.asks))


# ------------------------------------------------------------------------------
# Guards of which rows there are.


def train_rows(rows: Rows) -> Question | None:
    """Ask where a column, such as "split", marks training rows among the others.

    Predictions are overconfident on the rows to which the model was fitted. ``rows`` are the
    predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
    """
    for column in rows.unused:
        if column.coded is None or column.counts is None:
            continue
        words = column.coded[1]
        if column.words is not None:
            parts = split_parts(w for w, k in zip(words, column.counts, strict=True) if k)
            kinds = {*parts.values()}
            if len(parts) < 2 or not kinds & {"fitted", "dev"}:
                continue
            certain = "fitted" in kinds
            if not (certain or "later" in kinds or _errors_differ(rows, column) > PARTS_DIFFER):
                continue
            meant = sorted(word for word, part in parts.items() if part != "fitted")
            readings = tuple(
                Reading({"where": rows.where(column.equals(word))}, f"the {word} rows are meant")
                for word in meant
            )
        else:
            flag = SPLIT_FLAG.fullmatch(key_of(column.name))
            if not flag or not column.complete or words != ("0", "1"):
                continue
            held = "0" if flag[1].startswith("train") else "1"
            readings = (Reading({"where": rows.where(column.equals(held))}),)
            certain = True
        text = f"{column.name} separates the rows that the model was trained on from the others"
        if not certain:
            text = (
                f"{column.name} names parts of a data set ({', '.join(parts)}), of which the model "
                "may have been fitted to one"
            )
        return Question("train and test", text, readings)
    return None


def unknown_parts(rows: Rows) -> Question | None:
    """Doubt a table with a column that is called a split, and whose words do not say of what.

    There are 2 to 5 different values, of which one at least is not known as a part of a data set.
    ``rows`` are the predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
    """
    for column in rows.unused:
        if without_accents(column.name) not in SPLIT_NAMES or column.coded is None:
            continue
        if column.counts is None or not 2 <= column.n_values <= MOST_SPLITS:
            continue
        words = [w for w, k in zip(column.coded[1], column.counts, strict=True) if k]
        if column.words is not None and split_parts(words):
            continue
        where = rows.where(column.equals(words[-1]))
        text = (
            f"{column.name} has the name of a split ({', '.join(words)}): if the model was fitted "
            "to one of its parts, read another. "
        )
        text += spelt(f"Pass where={where!r} (--where {shlex.quote(where)}) for one of them")
        return Question("train and test", text, (), asks=False)
    return None


def split_parts(words: Iterable[str]) -> dict[str, str]:
    """Return the kind of part of a data set that each word names, by word.

    Kinds are "fitted" (words such as train), "later" (out of time, holdout), "other" (test,
    validation) and "dev". The mapping is empty if some word names none.
    """
    parts = dict[str, str]()
    for word in words:
        if (part := _part_of(without_accents(word))) is None:
            return {}
        parts[word] = part
    return parts


def _part_of(name: str) -> str | None:
    """Return the kind of part of a data set that a name denotes, or None if it denotes none.

    Kinds are "fitted", "later", "other" and "dev". ``name`` is in lower case without accents, such
    as "train_set"; endings such as ``_set`` are ignored.
    """
    found = next((part for part, names in PARTS.items() if name in names), None)
    shorter = OF_PARTS.sub("", name)
    return found if found is not None or shorter == name else _part_of(shorter)


def _errors_differ(rows: Rows, column: Column) -> float:
    """Return the largest difference of mean residuals between two values of a column, as a z-score.

    It is ≥ 0, and 0 for columns of fractions. ``rows`` are the predictions and outcomes, ``column``
    holds the values that group them. Variances include the design effect of clusters or other
    columns.
    """
    if column.coded is None or rows.n != len(column.coded[0]):
        return 0.0
    errors, groups = residuals_of(rows), column.coded[0]
    effect = design_effect(errors, groups_of(rows))
    errors, groups = errors[groups >= 0], groups[groups >= 0]
    size = np.maximum(np.bincount(groups).astype(np.float64), 1.0)
    mean = np.bincount(groups, errors) / size
    spread = np.bincount(groups, (errors - mean[groups]) ** 2) / size**2
    pairs = [(a, b) for a in range(len(size)) for b in range(a) if min(size[a], size[b]) > 1.0]
    apart = [abs(mean[a] - mean[b]) / max(spread[a] + spread[b], 1e-12) ** 0.5 for a, b in pairs]
    return float(max(apart, default=0.0) / effect**0.5)


def residuals_of(rows: Rows) -> FloatArray:
    """Return y − p, (n,); for more than two classes of the most likely class.

    ``rows`` are the predictions p and the outcomes y.
    """
    if (p := rows.risks) is not None:
        return np.asarray(rows.labels - p)
    top = rows.probs.argmax(axis=1)
    return np.asarray((top == rows.labels) - rows.probs.max(axis=1))


def repeated_rows(rows: Rows) -> Question | None:
    """Ask whether rows with the same value of a column are repeated predictions of one outcome.

    It is asked if such rows always have one label (probability by chance ≤ 1e-4 / columns) and one
    or two other columns distinguish them. The column has at least five values. ``rows`` are the
    predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
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
        # In logarithms: the power of many rows would be 0 in floating point
        chance = float(np.logaddexp.reduce(np.log(share)[:, None] * sizes, axis=0).sum())
        if chance > -np.log(1e4 * len(rows.unused)):
            continue
        others = [b for b in columns if b is not a and 2 <= b.n_values <= most]
        found = _told_apart(a, others, int(sizes.max()), rows.by)
        if found:
            return _of_repeated(rows, a, found, float(sizes.mean()))
    return None


def _one_label_each(rows: Rows, column: Column) -> IntArray | None:
    """Return the number of rows of each value of a column, (k,), if each value has one label.

    None if rows of one value differ in label, if the column has fewer than five values, or nearly
    as many as rows. ``rows`` are the predictions and outcomes; within their subgroups values are
    separate.
    """
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
    """Return one or two columns that distinguish the rows within each value of ``a``, or ().

    ``others`` are candidate columns with at least ``least`` values (pairs: together); ``by`` (n,)
    is the subgroup of each row, within which values are compared, or None.
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


#: Share of the cases that have a row for each value of a column, below which they are scattered.
OF_ALL_CASES = 0.5


def _of_repeated(rows: Rows, a: Column, found: tuple[Column, ...], times: float) -> Question:
    """Return the question which of several predictions of one outcome is meant.

    ``rows`` are the predictions and outcomes. ``a`` is the column that identifies the outcome,
    ``found`` are the columns that distinguish its rows, and ``times`` is the mean number of rows of
    an outcome. The Question is the evidence as text, with readings that set ``where``, ``by`` or
    ``clusters``; and for one column of dates, with one that tests revisions. Dates of which each
    has few of the outcomes are not read one by one.
    """
    firsts = []
    for b in found:
        assert b.coded is not None
        firsts.append(b.equals(b.coded[1][int(b.coded[0][b.coded[0] >= 0][0])]))
    where, names = " AND ".join(firsts), " and ".join(b.name for b in found)
    readings = [Reading({"where": rows.where(where)}, f"one {names} is meant, such as {where}")]
    scattered = len(found) == 1 and rows.n < OF_ALL_CASES * a.n_values * found[0].n_values
    dated = len(found) == 1 and found[0].words is not None and _are_dates(found[0])
    if scattered and dated:  # one date has few of the cases
        readings = []
    if dated and rows.risks is not None:
        revised = {"ids": a.sql, "time": found[0].sql, "label": None}
        when = f"forecasts of one {a.name} are revised from {names} to {names}"
        readings.append(Reading(revised, when, verb="revisions"))
    if len(found) == 1 and rows.by is None and not (scattered and dated):
        within = {"by": found[0].sql, "clusters": a.sql}
        readings.append(Reading(within, f"every {names} is meant by itself"))
    readings.append(Reading({"clusters": a.sql}, f"all rows are meant, clustered by {a.name}"))
    text = (
        f"every {a.name} has {times:.3g} rows with one outcome, a row for each {names}: these are "
        f"{rows.n} predictions of {a.n_values} outcomes"
    )
    return Question("several predictions of a row", text, tuple(readings))


#: Values of a column that tells forecasts of one case apart, at most; columns that are looked at;
#: and the share by which numbers of rows may differ between its values.
MOST_FORECASTS, MOST_CROSSED, UNEVEN = 12, 20, 0.1


def several_forecasts(rows: Rows) -> Question | None:
    """Ask whether a table holds several forecasts of each case.

    A case is a pair of values of two columns, such as date and place. A third column of 2 to 12
    values has a row for each of them in nine of ten cases. It is asked if all rows of a case have
    one label (probability by chance as in :func:`repeated_rows`), or if the mean errors of two
    values of the third column differ by more than 4 standard errors, and may cancel. ``rows`` are
    the predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
    """
    if rows.by is not None or rows.n < 20:
        return None
    whole = [c for c in rows.unused if c.coded is not None and c.complete and c.n_values > 1]
    whole = whole[:MOST_CROSSED]
    found: list[tuple[float, Column, tuple[Column, Column], IntArray]] = []
    for b in (c for c in whole if c.n_values <= MOST_FORECASTS and _is_even(c.counts)):
        even = [a for a in whole if a is not b and a.n_values < rows.n / 2 and _are_crossed(a, b)]
        for k, first in enumerate(even):
            for second in even[k + 1 :]:
                cases = _cases(first, second, b)
                if cases is not None:
                    found.append((_errors_differ(rows, b), b, (first, second), cases))
    found.sort(key=lambda each: -each[0])
    for apart, b, names, cases in found:
        one = _have_one_label(rows, cases, len(rows.unused))
        if (one and rows.clusters is None) or apart > PARTS_DIFFER:
            return _of_forecasts(rows, b, names, one)
    return None


def _is_even(counts: IntArray | None) -> bool:
    """Return whether the numbers of rows of a column's values differ by at most 10 %.

    ``counts`` (k,) are the rows of each value; False for None.
    """
    if counts is None:
        return False
    seen = counts[counts > 0]
    return bool(seen.max() - seen.min() <= UNEVEN * seen.max())


def _are_crossed(a: Column, b: Column) -> bool:
    """Return whether nine in ten values of ``a`` occur equally often with each value of ``b``."""
    assert a.coded is not None
    assert b.coded is not None
    size = len(b.coded[1])
    both = np.bincount(a.coded[0] * size + b.coded[0], minlength=size * len(a.coded[1]))
    both = both.reshape(-1, size)
    both = both[:, both.sum(axis=0) > 0]
    seen = both[both.sum(axis=1) > 0]
    return bool(np.mean(seen.min(axis=1) == seen.max(axis=1)) >= 1.0 - UNEVEN)


def _cases(first: Column, second: Column, b: Column) -> IntArray | None:
    """Return the case of each row, (n,), if nine in ten cases have a row for each value of ``b``.

    A case is a pair of values of the columns ``first`` and ``second``; cases are numbered from 0.
    None if fewer have.
    """
    assert first.coded is not None
    assert second.coded is not None
    assert b.coded is not None
    if first.n_values * second.n_values * b.n_values < (1.0 - UNEVEN) * len(b.coded[0]):
        return None
    cases = codes(first.coded[0] * len(second.coded[1]) + second.coded[0])
    size = np.bincount(cases)
    whole = np.mean(size == b.n_values) >= 1.0 - UNEVEN
    if not whole or size.max() > b.n_values or min(first.n_values, second.n_values) < 2:
        return None
    key = cases * len(b.coded[1]) + b.coded[0]
    return cases if np.unique(key).size == key.size else None


def _have_one_label(rows: Rows, cases: IntArray, looked_at: int) -> bool:
    """Return whether all rows of a case have the same label, in more cases than by chance.

    ``rows`` are the predictions and outcomes, ``cases`` (n,) is the case of each row; chance has to
    be unlikely after ``looked_at`` comparisons.
    """
    y, size = rows.labels, np.bincount(cases)
    first = np.zeros(len(size), dtype=y.dtype)
    first[cases] = y
    share = np.unique(y, return_counts=True)[1] / rows.n
    chance = float(np.logaddexp.reduce(np.log(share)[:, None] * size, axis=0).sum())
    return bool((first[cases] == y).all() and chance <= -np.log(1e4 * looked_at))


def _of_forecasts(rows: Rows, b: Column, names: tuple[Column, Column], one: bool) -> Question:
    """Return the question which of several forecasts of a case is meant.

    ``rows`` are the predictions and outcomes. ``b`` is the column that tells forecasts of a case
    apart, ``names`` are the two columns that identify the case, and ``one`` says that all rows of a
    case have one label. The Question is the evidence as text, with readings that set ``where``,
    ``by`` or ``clusters``.
    """
    assert b.coded is not None
    words = [b.coded[1][int(code)] for code in np.unique(b.coded[0])[:2]]
    readings = [
        Reading({"where": rows.where(b.equals(word))}, f"only {b.name} {word} is meant")
        for word in words
    ]
    finer = max(names, key=lambda column: column.n_values)
    within = {"by": b.sql} | ({"clusters": finer.sql} if one and rows.clusters is None else {})
    readings.append(Reading(within, f"every {b.name} is meant by itself"))
    if one:
        readings.append(
            Reading({"clusters": finer.sql}, f"all rows are meant, clustered by {finer.name}")
        )
    rest = ", …" if b.n_values > len(words) else ""
    text = (
        f"every {names[0].name} and {names[1].name} has a row for each {b.name} "
        f"({', '.join(words)}{rest})"
    )
    if one:
        text += f" with one outcome: these are {b.n_values} predictions of each outcome"
    else:
        errors = residuals_of(rows)
        means = (float(errors[b.coded[0] == b.coded[1].index(word)].mean()) for word in words)
        shown = ", ".join(
            f"{mean:+.3f} for {word}" for mean, word in zip(means, words, strict=True)
        )
        text += (
            f", and outcomes minus predictions differ ({shown}{rest}): errors may cancel where all "
            "are tested together"
        )
    return Question("several forecasts", text, tuple(readings))


#: What the column is called that says whose prediction a row is.
MODEL_NAMES = frozenset(("model", "model_name", "model_id", "system", "forecaster"))


def several_models(rows: Rows) -> Question | None:
    """Ask whether a table holds the predictions of several models on the same items.

    The column of models has one of five names and 2 to 50 values. Together with a column of 20
    values or more, such as a question, it identifies every row, and two in three values of that
    column occur more than once. ``rows`` are the predictions and outcomes, with the unused columns
    of the table. The result is a :class:`Question` (evidence as text, with alternative readings),
    or None.
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
    """Return the question of whether one model is meant, or each model separately.

    ``rows`` are the predictions and outcomes. ``model`` is the column that names the models.
    ``item`` is the column that names the predicted items; each item has one row for every model.
    The Question is the evidence as text; its two readings set ``where`` and ``by``.
    """
    assert model.coded is not None
    first = model.equals(model.coded[1][int(model.coded[0][0])])
    text = (
        f"every {item.name} has a row for each {model.name}: together these are the predictions "
        f"of {model.n_values} models, whose errors may cancel"
    )
    within = {"by": model.sql} | ({"clusters": item.sql} if rows.clusters is None else {})
    readings = (
        Reading({"where": rows.where(first)}, f"one {model.name} is meant, such as {first}"),
        Reading(within, f"every {model.name} is meant by itself"),
    )
    return Question("several models", text, readings)


def one_event_each(rows: Rows) -> Question | None:
    """Ask whether rows are options of one race or question: one event each, probabilities sum to 1.

    Such rows depend on each other; half of the rows of races of two add no information. It takes at
    least ten values of a column with two rows or more each. ``rows`` are the predictions and
    outcomes, with the unused columns of the table. The result is a :class:`Question` (evidence as
    text, with alternative readings), or None.
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
    """Doubt independence where rows share a value of a column and their residuals agree.

    At least half of the rows share their value with 1 to 200 others, and the column has at least
    max(10, n / 200) values. The sum of products of residuals over pairs with one value has to
    exceed 4 standard errors of independent rows, of equal variance and of variances p (1 − p), and
    2 standard errors over values. Columns that are functions of the predictions, such as the
    predicted class, are left out. If each value has one prediction, as items that were asked
    several times have, errors along the predictions are removed first: they would make residuals of
    one value agree as well.

    Numbers along which residuals rise or fall (:func:`_trend`) may be a feature that the model
    lacks, such as an age, or clusters, such as days whose outcomes depend on those of the days
    before; numbers from which the outcome follows (:func:`_tells_outcome`) may have become known
    with it, or count cases first. These leave a p-value in doubt as well, if no column surely holds
    clusters. ``rows`` are the predictions and outcomes, with the unused columns of the table. The
    result is a :class:`Question` (evidence as text, with alternative readings), or None.
    """
    n, either = rows.n, list[tuple[Column, str]]()
    if n < 20 or "clusters" in rows.said or rows.clusters is not None or rows.followed:
        return None
    residuals = residuals_of(rows)
    for column in rows.unused:
        if column.coded is None or column.counts is None or not column.complete:
            continue
        if not max(10.0, n / 200.0) <= column.n_values <= 0.75 * n:
            continue
        shared = column.counts[(column.counts >= 2) & (column.counts <= 201)].sum()
        if shared < n / 2.0:
            continue
        left: FloatArray | None = residuals
        if _follows(rows.probs, column):
            left = _without_trend(rows.risks, residuals, column)
        if left is not None and _are_alike(left, column.coded[0], _variances(rows)):
            if column.words is None and _tells_outcome(rows, column):
                known = f"outcomes follow from {column.name}, which may have become known with them"
                either.append((column, known))
                continue
            trend = _trend(left, column) if column.words is None else None
            if trend is not None and not _are_alike(
                left - trend, column.coded[0], _variances(rows), LEFT_SCORE
            ):
                along = (
                    f"observed and predicted outcomes differ along {column.name}, which may be a "
                    "feature that the model lacks: a search of segments (segment_search, caltest "
                    "segments) shows where"
                )
                either.append((column, along))
                continue
            text = spelt(
                f"outcomes of rows with the same {column.name} are correlated, but the p-values "
                f"assume independent rows: pass clusters={column.name!r} "
                f"(--clusters {shlex.quote(column.sql)})"
            )
            reading = Reading({"clusters": column.sql}, f"rows of one {column.name} depend")
            return Question("dependent rows", text, (reading,), asks=False)
    for column, text in either:
        text += spelt(
            f". If rows of one {column.name} depend on each other, pass clusters={column.name!r} "
            f"(--clusters {shlex.quote(column.sql)}); if they do not, as_is=True (--as-is)"
        )
        reading = Reading({"clusters": column.sql}, f"rows of one {column.name} depend")
        return Question("feature", text, (reading,), asks=False)
    return None


#: Values of a column on which lines are fitted, at least, and lines, at most; the probability by
#: chance below which they are a trend, and the standard errors by which residuals of one value may
#: still be alike beside it.
LINE_VALUES, MOST_TREND_LINES, TREND_CHANCE, LEFT_SCORE = 6, 10, 0.001, 1.5


def _trend(residuals: FloatArray, column: Column) -> FloatArray | None:
    """Return the trend (n,) of residuals along the numbers of a column; None if there is none.

    The trend is a line within each of up to ten blocks of neighbouring values, six values or more
    each, fitted to the mean ``residuals`` (n,) of the values, weighted by their numbers of rows. It
    has to explain more of their variance than of values in any other order: an F test has
    p < 0.001. Values that only name something, such as patients, have no trend. ``column`` has
    numbers in all rows, coded in their order.
    """
    assert column.coded is not None
    groups = codes(column.coded[0])
    size = np.bincount(groups).astype(np.float64)
    k = len(size)
    lines = min(k // LINE_VALUES, MOST_TREND_LINES)
    if lines < 1:
        return None
    mean = np.bincount(groups, residuals) / size
    block = np.minimum(np.arange(k) * lines // k, lines - 1)
    rows = np.bincount(block, size)
    x = np.arange(k) - (np.bincount(block, size * np.arange(k)) / rows)[block]
    level = np.bincount(block, size * mean) / rows
    slope = np.bincount(block, size * x * mean) / np.maximum(np.bincount(block, size * x * x), 1e-9)
    fitted = level[block] + slope[block] * x
    explained = float(size @ (fitted - float(size @ mean) / float(size.sum())) ** 2)
    left, free = float(size @ (mean - fitted) ** 2), k - 2 * lines
    if (
        left <= 0.0
        or float(fdtrc(2 * lines - 1, free, explained / left * free / (2 * lines - 1)))
        >= TREND_CHANCE
    ):
        return None
    return np.asarray(fitted[groups])


#: Share of the rarer outcomes that may contradict numbers from which the outcome follows, the
#: fewest of them, and the logarithm of the chance of so few contradictions by the predictions.
AGAINST, FEWEST_RARE, TOLD_CHANCE = 0.02, 10, float(np.log(1e6))


def _tells_outcome(rows: Rows, column: Column) -> bool:
    """Return whether the outcome follows from a threshold of a column of numbers.

    The days that a loan was overdue are such numbers, if default means 90 of them: they become
    known with the outcome. At most 2 % of the rarer outcomes may contradict the threshold, a
    quarter at most of what the predictions expect. False for rows that stand beside others of the
    same value more often than by chance (twice), as the rows of a patient in a file may, whose
    outcomes the file is sorted by. ``rows`` are predictions of two classes with outcomes; for more
    classes it is False. ``column`` has numbers in all rows, coded in their order.
    """
    p = rows.risks
    if p is None:
        return False
    assert column.coded is not None
    groups = codes(column.coded[0])
    size, events = np.bincount(groups), np.bincount(groups, rows.labels == 1)
    beside, share = np.mean(groups[1:] == groups[:-1]), size / rows.n
    rare = min(float(events.sum()), rows.n - float(events.sum()))
    if rare < FEWEST_RARE or beside > 2.0 * float(share @ share) + 0.02:
        return False
    low = np.cumsum(2.0 * events - size)  # events below a threshold in excess of others
    against = min(events.sum() - low.max(), size.sum() - events.sum() + low.min())
    misses = float(np.minimum(p, 1.0 - p).sum())
    return bool(against <= AGAINST * rare and misses >= max(4.0 * against, TOLD_CHANCE))


def _variances(rows: Rows) -> FloatArray:
    """Return the variances (n,) of :func:`residuals_of` if the predictions are calibrated.

    They are p (1 − p), of the most likely class for more than two. ``rows`` are the predictions and
    outcomes.
    """
    p = rows.risks
    q = rows.probs.max(axis=1) if p is None else p
    return np.asarray(q * (1.0 - q))


def _are_alike(
    residuals: FloatArray, groups: IntArray, variances: FloatArray, bar: float = DEPENDENT_SCORE
) -> bool:
    """Return whether residuals of one group agree more than independent ones would.

    Products over pairs within groups are summed. Rare events have few groups in which they are
    likely, whose products vary more than those of rows of equal variance.

    Parameters
    ----------
    residuals, groups, variances : ndarray of shape (n,)
        Residuals, the number of the group of each, and its variance but for a factor.
    bar : float
        Standard errors of independent rows that the products have to exceed.
    """
    r = residuals - residuals.mean()
    size, sums = np.bincount(groups).astype(np.float64), np.bincount(groups, r)
    cross = sums**2 - np.bincount(groups, r * r)
    of_chance = float(np.sqrt(2.0 * np.sum(size * (size - 1.0)))) * float(np.var(r))
    v = variances * min(1.0, float(r @ r) / max(float(variances.sum()), 1e-300))
    pairs = np.bincount(groups, v) ** 2 - np.bincount(groups, v * v)
    of_chance = max(of_chance, float(np.sqrt(2.0 * np.sum(pairs))))
    of_groups = float(np.sqrt(cross @ cross))
    if of_chance <= 0.0 or of_groups <= 0.0:
        return False
    return bool(cross.sum() > bar * of_chance and cross.sum() > 2.0 * of_groups)


#: Values of a column, ordered by their predictions, within which errors of the model are taken to
#: be linear in the prediction; and blocks of so many values, at least.
TREND_VALUES, TREND_BLOCKS = 10, 5


def _without_trend(
    p: FloatArray | None, residuals: FloatArray, column: Column
) -> FloatArray | None:
    """Return residuals (n,) less a line in p within blocks of ten values of the column.

    ``column`` groups the rows by its values, which are ordered by their prediction; each block of
    ten has its own line. None if the predictions p (n,) of a value differ, if there are fewer than
    50 values, and for ``p`` None, of more than two classes.
    """
    assert column.coded is not None
    groups = codes(column.coded[0])
    size = np.bincount(groups)
    if p is None or len(size) < TREND_VALUES * TREND_BLOCKS:
        return None
    mean = np.bincount(groups, p) / size
    if np.abs(p - mean[groups]).max() > 1e-9:
        return None
    place = np.empty(len(size), dtype=np.int64)
    place[np.argsort(mean, kind="stable")] = np.arange(len(size))
    block = np.minimum(place // TREND_VALUES, len(size) // TREND_VALUES - 1)[groups]
    rows = np.bincount(block)
    x = p - (np.bincount(block, p) / rows)[block]
    r = residuals - (np.bincount(block, residuals) / rows)[block]
    slope = np.bincount(block, x * r) / np.maximum(np.bincount(block, x * x), 1e-300)
    return np.asarray(r - slope[block] * x)


def _follows(probs: FloatArray, column: Column) -> bool:
    """Return whether a column is a function of the predictions: the top class, or steps of p.

    ``probs`` is (n, K), or (n,) for the probability p of the event; ``column`` is coded.
    """
    assert column.coded is not None
    groups = column.coded[0]
    if probs.ndim == 2 and probs.shape[1] > 2:
        top = probs.argmax(axis=1)
        return bool(np.unique(top * (groups.max() + 1) + groups).size == np.unique(top).size)
    p = probs if probs.ndim == 1 else probs[:, 1]
    along = groups[np.argsort(p, kind="stable")]
    return bool(np.count_nonzero(np.diff(along)) <= column.n_values - 1)


def outcomes_to_come(left_out: int, n: int, rows: Rows | None = None) -> Question | None:
    """Return a doubt if more than 1 % of the rows have no outcome and were left out.

    ``left_out`` of ``n`` rows were. If one outcome becomes known earlier than the other, the
    remaining rows are a biased sample. The Question says so as text, and does not stop an analysis;
    it explains a miscalibration unless the ``rows`` that are left, predictions with outcomes, say
    that it cannot (:func:`_explained_by_absence`). Without them, None, it is taken to. None for
    fewer rows.
    """
    if left_out <= 0.01 * n or left_out >= n:
        return None
    text = (
        f"{left_out} of {n} rows have no outcome and are left out: if one outcome becomes known "
        "earlier than the other, the remaining rows are a biased sample"
    )
    explains = rows is None or _explained_by_absence(rows, left_out / (n - left_out) * rows.n)
    if explains:
        text += spelt(
            ". Keep only the rows that are old enough for either outcome to be known, or pass "
            "as_is=True (--as-is) if no outcome has decided which are missing"
        )
    else:
        text += ", which would not explain the errors of the others"
    readings = (Reading({"where": "EXPR"}),)
    return Question("outcomes to come", text, readings, asks=False, explains=explains)


#: What columns are called that say whether an outcome is known to its end.
MATURE = re.compile(
    r"(?:is_|has_)?(?:mature|matured|seasoned|closed|complete|completed|final|finali[sz]ed"
    r"|settled|resolved|vested|ausgereift|abgeschlossen|maduro|cerrado)"
)
#: How dates begin, by year and month; standard errors by which events are too rare in one part,
#: and within which they are as frequent as predicted in the other.
DATED, TOO_RARE, AS_PREDICTED = re.compile(r"\d{4}[-/.]?\d{2}"), -4.0, 2.5


def immature_rows(rows: Rows) -> Question | None:
    """Doubt rows whose outcomes may not be known to their end, as those of young loans are.

    A column of two values marks them: it is called so ("matured", "closed"), or one value has all
    rows from some date on, in a column of dates. Events are rarer there than predicted by 4
    standard errors, multiplied by the root of the largest design effect over unused columns from
    which outcomes do not follow, and as frequent elsewhere, within 2.5. ``rows`` are the
    predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
    """
    p, y = rows.risks, rows.labels
    if p is None or rows.followed or rows.weights is not None:
        return None
    dates = [c for c in rows.unused if c.words is not None and c.complete and _are_dates(c)]
    for column in rows.unused:
        if column.coded is None or column.n_values != 2 or not column.complete:
            continue
        first, second = np.unique(column.coded[0]).tolist()
        named = MATURE.fullmatch(without_accents(column.name)) is not None
        for young, old in ((first, second), (second, first)):
            here = column.coded[0] == young
            if not named and not any(_are_latest(here, date) for date in dates):
                continue
            z = [
                float((y[part] - p[part]).sum())
                / max(float(p[part] @ (1.0 - p[part])), 1e-9) ** 0.5
                for part in (here, ~here)
            ]
            if z[0] > TOO_RARE or abs(z[1]) > AS_PREDICTED:
                continue
            errors = y - p - np.where(here, (y - p)[here].mean(), (y - p)[~here].mean())
            if z[0] > TOO_RARE * design_effect(errors, _untold_groups(rows)) ** 0.5:
                continue
            young_sql, old_sql = (column.equals(column.coded[1][k]) for k in (young, old))
            where = rows.where(old_sql)
            text = (
                f"events are rarer than predicted where {young_sql} ({y[here].mean():.3g}, "
                f"predicted {p[here].mean():.3g}), and as frequent as predicted elsewhere: their "
                "outcomes may not be known to their end. "
            )
            text += spelt(f"Pass where={where!r} (--where {shlex.quote(where)}) if so")
            return Question("immature rows", text, (Reading({"where": where}),), asks=False)
    return None


def _untold_groups(rows: Rows) -> Iterable[IntArray]:
    """Yield codes (n,) as :func:`groups_of` does, without columns from which outcomes follow.

    ``rows`` are predictions and outcomes, with clusters or the unused columns of the table.
    """
    if rows.clusters is None:
        told = [c for c in rows.unused if c.words is None and c.coded is not None and c.complete]
        rows = replace(
            rows,
            unused=tuple(c for c in rows.unused if c not in told or not _tells_outcome(rows, c)),
        )
    yield from groups_of(rows)


def _are_dates(column: Column) -> bool:
    """Return whether the words of a column begin with a year and a month, as dates do."""
    return bool(column.words) and all(DATED.match(word) for word in column.words or ())


def _are_latest(here: BoolArray, dates: Column) -> bool:
    """Return whether marked rows are all those from some date on.

    ``here`` (n,) marks the rows; ``dates`` is a complete column of text that sorts as dates do.
    """
    assert dates.words is not None
    order = np.empty(len(dates.words), dtype=np.int64)
    order[np.argsort(np.array(dates.words, dtype=object), kind="stable")] = np.arange(len(order))
    when = order[dates.values]
    return bool(here.any() and not here.all() and when[here].min() > when[~here].max())


#: χ² of level and slope, with two degrees of freedom, up to which absent outcomes may explain
#: errors: p = 0.001; and shifts of the log-odds that are tried.
EXPLAINED_CHI2, SHIFTS_TRIED = 13.8, 41


def _explained_by_absence(rows: Rows, left_out: float) -> bool:
    """Return whether rows may look miscalibrated because others have no outcome yet.

    If the outcome alone decides which ``left_out`` rows are missing, log-odds of the others are
    shifted by a constant: at least by −log(1 + m / k), if all m missing rows had the event that k
    ``rows`` have, and at most by log(1 + m / l), if none had, for l rows without the event. It is
    true if, for one of these shifts, a score test of the level and the slope of the predictions has
    χ² ≤ 13.8, divided by the largest design effect over clusters or unused columns. It is true as
    well for more than two classes, follow-up, and rows of one outcome.
    """
    p, event = rows.risks, rows.labels == 1
    if p is None or rows.followed or event.all() or not event.any():
        return True
    w = np.ones(rows.n) if rows.weights is None else rows.weights / rows.weights.mean()
    inner = np.clip(p, ROUNDED_OFF, 1.0 - ROUNDED_OFF)
    odds = np.log(inner / (1.0 - inner))
    effect = design_effect(w * (event - inner), groups_of(rows))
    k, without = float(w @ event), float(w @ ~event)
    for shift in np.linspace(
        -np.log1p(left_out / k), np.log1p(left_out / without), SHIFTS_TRIED
    ).tolist():
        q = 1.0 / (1.0 + np.exp(-(odds + shift)))
        r, v = w * (event - q), w * w * q * (1.0 - q)
        x = odds - float(v @ odds) / float(v.sum())
        spread = float(v @ (x * x))
        slope = float(r @ x) ** 2 / spread if spread > 1e-9 else 0.0
        if (float(r.sum()) ** 2 / float(v.sum()) + slope) / effect <= EXPLAINED_CHI2:
            return True
    return False


# ------------------------------------------------------------------------------
# Guards of which columns were taken, and of their scale.


def second_set(rows: Rows) -> Question | None:
    """Ask whether another column of predictions is meant than the one found by its name.

    Another one is a column in [0, 1] with rank correlation of at least 0.9; or as many columns as
    there are classes, whose names share a beginning or end and whose rows sum to 1. ``rows`` are
    the predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
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
    """Return whether a column could hold probabilities: many values in [0, 1], none missing.

    ``column`` is an unused column of a table, with its values (n,).
    """
    q = column.values
    if column.words is not None or q.dtype.kind != "f" or not q.size or not column.complete:
        return False
    inside = q.min() >= 0.0 and q.max() <= 1.0 and np.ptp(q) > 0.0
    return bool(inside and np.unique(q[:200]).size > min(5, q.size // 4))


def families_of(columns: Sequence[Column]) -> list[tuple[Column, ...]]:
    """Return the families of columns that could hold class probabilities, as tuples of columns.

    Names of a family share a beginning or an end, and its rows sum to 1 within 0.01. ``columns``
    hold numbers. [] if there is no family.
    """
    stems: dict[tuple[str, str], list[Column]] = {}
    for c in columns:
        ends = {("head", c.name.rstrip(ascii_letters + digits)), ("head", c.name.rstrip(digits))}
        for stem in ends | {("tail", c.name.lstrip(ascii_letters + digits))}:
            stems.setdefault(stem, []).append(c)
    members = {tuple(f) for f in stems.values() if len(f) > 1}
    return [f for f in members if np.allclose(sum(c.values for c in f), 1.0, atol=0.01)]


#: Factor by which events are more or fewer than predicted, before columns of another event are
#: looked for; z of the ranks of predictions by outcomes from which on they are related; and events
#: from which on residuals are taken around their mean.
TIMES_OFF, RELATED, SHOWN = 5.0, 3.5, 10


def crossed_events(rows: Rows) -> Question | None:
    """Ask whether predictions are of this outcome: another column is far closer to as many events.

    It takes five times as many events as predicted or more, or a fifth and fewer, at a chance below
    1 in 1000 (Chernoff's bound for independent outcomes, its exponent divided by the largest design
    effect). Another column of predictions has to bring the numbers closer by the same factor, or
    another one of 0 and 1 as the outcome; and predictions and outcomes have to be related. Where
    Σ (y − p) is 5 standard errors from 0, numbers are also compared with the weights of a column
    that is called so. ``rows`` are the predictions and outcomes, with the unused columns of the
    table. The result is a :class:`Question` (evidence as text, with alternative readings), or None.
    """
    p, y = rows.risks, rows.labels
    if p is None or rows.followed or rows.n < 5:
        return None
    if rows.weights is not None:
        return _crossed(rows, rows.weights, None)
    if (question := _crossed(rows, np.ones(rows.n), None)) is not None:
        return question
    if abs(float((y - p).sum())) < OFF_WITHOUT * float(np.sqrt((p * (1.0 - p)).sum())):
        return None
    for column in rows.unused:
        w = column.values
        numbers = column.words is None and w.dtype.kind in "iuf" and column.complete
        if numbers and key_of(column.name) in WEIGHT_NAMES and w.min() > 0:
            return _crossed(rows, w.astype(np.float64), column)
    return None


def _crossed(rows: Rows, w: FloatArray, weights: Column | None) -> Question | None:
    """Return the question of :func:`crossed_events` for rows with weights, or None.

    ``rows`` are the predictions of two classes and their outcomes, with the unused columns of the
    table. ``w`` (n,) are the weights, and ``weights`` the unused column that holds them, None if
    the user named them or every row counts as one.
    """
    p, y = rows.risks, rows.labels
    assert p is not None
    expected, events = float(w @ p), float(w @ (y == 1))
    off = _times(events, expected)
    if off < TIMES_OFF or expected <= 0.0:
        return None
    grown = events * np.log(events / expected) if events > 0.0 else 0.0
    exponent = (grown - events + expected) / mean_weight(w)
    least = LIKELIER + float(np.log(2.0))
    # Around as many events as there are, unless these are too few to show whether they cluster
    part = w * (y - p * (events / expected if (y == 1).sum() >= SHOWN else 1.0))
    if exponent < least or exponent / design_effect(part, groups_of(rows)) < least:
        return None
    more = {} if weights is None else {"weights": weights.sql}
    counts = "" if weights is None else f", and {weights.name} how much a row counts"
    readings = []
    for column in rows.unused:
        if _are_fractions(column):
            nearer = _times(events, float(w @ column.values))
            if off >= TIMES_OFF * nearer and order_of_events(column.values, y)[1] >= RELATED:
                when = f"{column.name} is the prediction{counts}"
                readings.append(Reading({"probs": column.sql, **more}, when))
        elif column.complete and column.coded is not None and {*column.coded[1]} == {"0", "1"}:
            other = np.array([*map(int, column.coded[1])])[column.coded[0]]
            nearer = _times(float(w @ other), expected)
            if off >= TIMES_OFF * nearer and order_of_events(p, other)[1] >= RELATED:
                when = f"{column.name} is the outcome{counts}"
                readings.append(Reading({"label": column.sql, **more}, when))
    if not readings:
        return None
    text = (
        f"{rows.words('probs')} predicts {expected:.4g} events and {rows.outcome} has {events:.4g}"
        + (f" if {weights.name} weights the rows" if weights is not None else "")
        + ": they may not belong together"
    )
    return Question("crossed events", text, tuple(readings))


def _times(first: float, second: float) -> float:
    """Return how many times the larger of two numbers ≥ 0 is the smaller; infinite for one 0."""
    low, high = sorted((first, second))
    return high / low if low > 0.0 else float("inf")


#: Names of weights, and standard errors of Σ (y − p) without and with them before a guard asks.
WEIGHT_NAMES = frozenset(
    ("w", "wt", "weight", "weights", "sample_weight", "sample_weights", "ipw", "iptw", "importance")
)
OFF_WITHOUT, RIGHT_WITH = 5.0, 2.5


def unused_weights(rows: Rows) -> Question | None:
    """Ask whether an unused column holds weights, because only with it events are as predicted.

    The column is called a weight, or has one value for each outcome, as for rows that were sampled
    by their outcome. Σ (y − p) is 5 standard errors from 0 without it, at most 2.5 with it.
    ``rows`` are the predictions and outcomes, with the unused columns of the table. The result is a
    :class:`Question` (evidence as text, with alternative readings), or None.
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
    """Ask where values seem to be percentages below 1 %, which would pass as probabilities.

    See :func:`in_percent` for the evidence. ``rows`` are the predictions and outcomes, with the
    unused columns of the table. The result is a :class:`Question` (evidence as text, with
    alternative readings), or None.
    """
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
    """Return whether predictions are percentages, because far too few events occur.

    ``expected`` is Σ p and ``events`` the number of events, at least one. Σ p has to be at least 30
    times the events, and Σ p / 100 at most 5 times. No useful model is as wrong as that; for true
    probabilities so few events have a chance below 1e-10.
    """
    return events >= 1 and FAR_TOO_MANY * events <= expected <= 100.0 * NEAR_PERCENT * events


#: Guards of rows and unused columns, in the order in which they are asked.
GUARDS: tuple[Callable[[Rows], Question | None], ...] = (
    train_rows,
    unknown_parts,
    repeated_rows,
    several_forecasts,
    several_models,
    percent_below_one,
    one_event_each,
    unused_weights,
    second_set,
    crossed_events,
    predicted_class,
    permuted_classes,
    confidences,
    against_outcomes,
    follow_up,
    immature_rows,
    dependent_rows,
)
