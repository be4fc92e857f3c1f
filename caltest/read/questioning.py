"""Guards of a table that was read: which rows and which unused columns they look at.

:func:`questioned` is the entry. It adds guards that need words and names of columns to those of
:mod:`caltest.data.spare_columns`; :func:`majority_note` says where labels are a majority of votes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from caltest._base.arrays import BoolArray, FloatArray, IntArray
from caltest._base.written import FollowupDoubt, several
from caltest.data import Predictions
from caltest.data.doubts import (
    against_outcomes,
    answered,
    decided_class,
    doubts_of_followup,
    lone_confidences,
    permuted_classes,
    predicted_class,
)
from caltest.data.ends import named_horizon, other_events, says_censored, without_accents
from caltest.data.followup import Censoring, Followup
from caltest.data.questions import LIKELIER, ROUNDED_OFF, Column, Question, Rows, log_likelihood
from caltest.data.spare_columns import (
    outcomes_to_come,
    questions,
    repeated_rows,
    split_parts,
    train_rows,
)
from caltest.errors import Reading, spelt
from caltest.read.contract import LABELS, Chosen, Wanted
from caltest.read.expressions import (
    compared,
    compared_columns,
    conjuncts,
    key,
    literal,
    quoted,
    says_percent,
    words_of,
)
from caltest.read.formats import Table, retyped
from caltest.read.tables import (
    FILE_COLUMN,
    column_of_cells,
    columns_of,
    condition,
    is_date,
    over,
    spans_of,
)
from caltest.read.values import (
    FEWEST_MARKS,
    NINES,
    UNKNOWN_WORDS,
    Complete,
    EvaluatedCells,
    mark_beside_numbers,
)

if TYPE_CHECKING:
    import polars as pl

#: Rows at the beginning of a large table whose unused columns are looked at; of twice as many all.
SEEN = 25_000


#: Codes of a column of events, at most.
MOST_CODES = 12


#: Types of text, and a text in SQL.
TEXT_TYPES, QUOTED_TEXT = ("String", "Categorical"), re.compile(r"'((?:[^']|'')*)'")


#: Words that a question offers in the place of another, at most.
MOST_WORDS_OFFERED = 6


#: Columns that nobody named of which guards look at, at most.
MOST_COLUMNS = 300


#: First rows by which columns of dates are told from others.
DATES_SEEN = 100


def questioned(
    table: Table, chosen: Chosen, wanted: Wanted, whole: EvaluatedCells, complete: Complete,
    data: Predictions,
) -> tuple[str, ...]:  # fmt: skip
    """Check a table that was read for data that contradict the reading; return notes on doubts.

    ``table`` is the open table (rows as a lazy polars frame), ``chosen`` has the expressions by
    role, such as "label", and ``wanted`` the options of :func:`read_predictions`; ``whole`` are the
    evaluated cells (in a frame with columns such as ``label:0``) of all rows, ``complete`` those
    without missing values, and ``data`` the predictions made of them. DoubtfulInputError for a
    question that the user must answer, unless the option ``as_is`` is set. The checks see all rows
    of tables of up to 50 000. In larger tables they see the first 25 000 with all columns, 50 000
    evenly spread ones without unused columns, and all rows of columns that may identify rows or
    seem to name a single part of a data set.
    """
    if wanted.multilabel:
        return ()
    n = whole.frame.height
    small = n <= 2 * SEEN
    unused = [
        name for name, kind in table.schema.items()
        if name not in chosen.used and name != FILE_COLUMN and not kind.is_nested()
    ][:MOST_COLUMNS]  # fmt: skip
    kept = np.arange(n)
    if complete.left_out:
        kept = np.flatnonzero(np.isin(whole.rows, complete.cells.rows, assume_unique=True))
    if wanted.votes is not None and data.places is not None:
        kept = kept[data.places]  # a row for each vote
    said = {option: chosen.sql(option) for option in chosen.terms}
    said |= {"from_logits": "True"} if wanted.from_logits else {}
    if wanted.classes and data.n_classes > 2 and {*wanted.classes} != {*(chosen.classes or ())}:
        said["classes"] = ",".join(map(str, wanted.classes))
    p = data.probs[:, 1] if len(chosen.terms["probs"]) == 1 else data.probs
    every = Rows(
        p, data.labels, data.weights, data.clusters, data.by, (), said, chosen.named,
        _class_literals(complete, data), labels_of_answers(chosen), data.followup is not None,
        first=table.first,
    )  # fmt: skip
    asked: list[Question | None] = [
        percents_by_name(whole, chosen, every),
        *(missing_marks(table, chosen, wanted, option) for option in ("label", "event")),
    ]
    asked += [
        constant_outcome(table, chosen, wanted, every, option) for option in ("label", "event")
    ]
    if data.followup is None:
        asked += [sure_of_a_class(complete.cells), unlike_answers(table, chosen, wanted, complete)]
        asked.append(wrong_classes(table, chosen, wanted, unused))
        asked.append(never_right(complete.cells, every))
    if data.followup is not None:
        asked.append(other_ends(table, chosen, wanted))
        asked.append(other_unit(chosen, data.followup, p))
    if small:
        others = _unused(table, chosen, wanted, unused, None)
        spans = _spans(table, chosen, wanted, unused, None)
        beside = replace(every, unused=_at(others, kept), spans=_at(spans, kept))
        asked += questions(beside)
    else:
        others = _unused(table, chosen, wanted, unused, SEEN)
        first = kept[kept < SEEN]
        beside = _some(every, np.arange(first.size))
        spans = _at(_spans(table, chosen, wanted, unused, SEEN), first)
        beside = replace(beside, unused=_at(others, first), spans=spans, first=True)
        asked += [*questions(beside), lone_confidences(every)]
        spread = _some(every, np.linspace(0, data.n - 1, 2 * SEEN).astype(np.int64))
        if data.followup is None:
            guards = predicted_class, permuted_classes, against_outcomes
            asked += [guard(spread) for guard in guards]
        if kept.size == n:
            asked += _far_apart(table, chosen, wanted, others, every)
    if data.followup is None:
        asked.append(unknown_outcomes(table, chosen, wanted, every))
    if data.followup is not None:
        asked.append(_other_events(beside, data.followup))
        asked += doubts_of_followup(p, data.followup, data.clusters, said)
    left_out, total = _without_outcome(table, chosen, wanted, n, complete)
    asked.append(outcomes_to_come(left_out, total, beside if small else spread))
    found = [_with_competing(q, table, chosen, wanted) for q in asked if q is not None]
    found.sort(key=lambda question: not question.asks)
    notes = answered(found, wanted.as_is)
    return tuple(dict.fromkeys(notes))


def labels_of_answers(chosen: Chosen) -> bool | None:
    """Return whether the labels say if an answer was right; None if the label's name does not tell.

    ``chosen`` has the expressions that were read, by role such as "label".
    """
    label = chosen.terms["label"][0].column if "label" in chosen.terms else None
    known = label is not None and key(label) in LABELS
    return chosen.about_answers or (False if known else None)


def _class_literals(complete: Complete, data: Predictions) -> tuple[str, ...]:
    """Return the labels of more than two classes as SQL literals, in the order of the classes.

    ``complete`` are the cells that were read (in a frame with columns such as ``label:0``),
    ``data`` the predictions made of them. () for two classes, and if one class has several labels
    or none.
    """
    if data.n_classes < 3 or not complete.cells.of("label"):
        return ()
    cells = complete.cells.frame["label:0"]
    words = words_of(cells)
    k, first = np.unique(data.labels, return_index=True)
    if words is None or len(k) < data.n_classes or words.n_unique() != data.n_classes:
        return ()
    return tuple(literal(words[int(row)], cells) for row in first)


def _other_events(rows: Rows, followup: Followup) -> Question | None:
    """Return a question if other columns seem to hold competing events, or None.

    The :class:`Question` has the evidence in words and readings (options to set) that answer it.
    ``rows`` are the predictions of the first rows with their unused columns, and ``followup`` their
    times and events.
    """
    if followup.elapsed.max(initial=0.0) < followup.limit or rows.risks is None:
        return None
    if followup.n < rows.n:  # rows with a horizon beyond all times are left out
        return None
    weights = Censoring(followup, np.zeros(followup.n, dtype=np.int64)).weights[: rows.n]
    ended, time = followup.event[: rows.n], followup.elapsed[: rows.n]
    return other_events(replace(rows, weights=weights), ended, time)


def sure_of_a_class(cells: EvaluatedCells) -> Question | None:
    """Return a question if the predicted class is a threshold of the column of its confidence.

    That column then is the probability of one class. The :class:`Question` has the evidence in
    words and readings (options to set) that answer it; None if there is nothing to ask, or no
    predicted class was read. ``cells`` are the evaluated cells (in a frame with columns such as
    ``label:0``) of the rows.
    """
    if not cells.of("predicted_label"):
        return None
    found = (column_of_cells(cells.frame[f"{o}:0"]) for o in ("predicted_label", "label"))
    answer, truth = found
    if answer is None or truth is None or answer.coded is None or truth.coded is None:
        return None
    said = {option: cells.name(f"{option}:0") for option in ("probs", "predicted_label")}
    p = np.asarray(cells.numbers("probs:0"), dtype=np.float64)
    return decided_class(p, answer, replace(truth, name="", sql=cells.sql("label:0")), said)


def never_right(cells: EvaluatedCells, rows: Rows) -> Question | None:
    """Return a question if no predicted class equals the label, at a chance below 1 in 1000.

    The columns then seem to be no answer and truth, such as two players. The :class:`Question` has
    the evidence in words and a reading (options to set) with the placeholder COLUMN; None if there
    is nothing to ask, or no predicted class was read. ``cells`` are the evaluated cells (in a frame
    with columns such as ``label:0``) of the rows, and ``rows`` the confidences, with whether the
    answers are right.
    """
    p = rows.risks
    if not cells.of("predicted_label") or p is None or rows.labels.any():
        return None
    if np.log1p(-np.clip(p, ROUNDED_OFF, 1.0 - ROUNDED_OFF)).sum() > -LIKELIER:
        return None
    answer, truth = cells.name("predicted_label:0"), cells.name("label:0")
    text = f"{answer} equals {truth} in none of {several(rows.n, 'row')}"
    text += f", and {cells.name('probs:0')} says that {p.sum():.4g} are right"
    reading = Reading({"predicted_label": None, "label": "COLUMN"}, "another column is the outcome")
    return Question("never right", text, (reading,))


#: A label that says only that there is a true class.
NOT_BLANK = re.compile(r'("[^"]+"|\w+) IS NOT NULL', re.IGNORECASE)


def wrong_classes(
    table: Table, chosen: Chosen, wanted: Wanted, unused: list[str]
) -> Question | None:
    """Return a question if the label says that a true class is known, beside other predicted ones.

    A detection of the wrong class would count as right. The :class:`Question` has the evidence in
    words and a reading (options to set) that answers it. The predicted class is one of the columns
    ``unused``, of text, that has all words of the true one, a column whose expression in ``chosen``
    (expressions by role, such as "label") is that it is not missing. ``table`` is the open table
    (rows as a lazy polars frame), and ``wanted`` has the options of :func:`read_predictions`. None
    if there is no such column, or the classes are equal.
    """
    label = chosen.terms.get("label", ())
    if len(label) != 1 or len(label[0].roots) != 1 or not NOT_BLANK.fullmatch(label[0].sql):
        return None
    truth = label[0].roots[0]
    text = [n for n in unused if str(table.schema[n]) == "String"]
    if str(table.schema[truth]) != "String" or not text:
        return None
    frame = _kept(table, chosen, wanted).select(truth, *text).collect()
    words = {*frame[truth].drop_nulls().to_list()}
    for answer in text:
        if len(words) < 2 or not words <= {*frame[answer].to_list()}:
            continue
        others = int((frame[truth] != frame[answer]).sum())
        if others:
            label_of = f"coalesce({quoted(truth)} = {quoted(answer)}, FALSE)"
            reading = Reading({"label": label_of}, f"another {answer} is no event")
            return Question(
                "wrong classes",
                f"{several(others, 'row')} have a {truth} that is not {answer}, and count as right",
                (reading,),
            )
    return None


#: Signs around an answer that say nothing, without those that a shell or SQL would read.
AROUND = " .,;:()*"


def unlike_answers(
    table: Table, chosen: Chosen, wanted: Wanted, complete: Complete
) -> Question | None:
    """Return a question if answers equal the truth but for case, signs around, or number formats.

    Compared as they are, such answers would count as wrong. The :class:`Question` has the evidence
    in words and a reading (options to set) that answers it. Answers and truth are the predicted
    class and the label in ``complete``, the cells that were read (in a frame with columns such as
    ``label:0``), or the two columns that the label's expression in ``chosen`` (expressions by role,
    such as "label") compares. None if there are none, or no answer is like that. ``table`` is the
    open table (rows as a lazy polars frame), ``wanted`` has the options of
    :func:`read_predictions`.
    """
    import polars as pl

    if "predicted_label" in chosen.terms:
        names = ("predicted_label:0", "label:0")
        frame, sql = complete.cells.frame, [complete.cells.sql(name) for name in names]
        words = [words_of(frame[name]) for name in names]
        right = complete.cells.answers()
    else:
        pairs = [p for term in chosen.terms.get("label", ()) for p in compared_columns(term)]
        if len(pairs) != 1 or any(str(table.schema[name]) != "String" for name in pairs[0]):
            return None
        frame = _kept(table, chosen, wanted).select(pairs[0]).collect()
        sql = [quoted(name) for name in pairs[0]]
        words = [words_of(frame[name]) for name in pairs[0]]
        right = _are_equal(frame[pairs[0][0]], frame[pairs[0][1]])
    answer, truth = words
    if answer is None or truth is None:
        return None
    tidy = [one.str.to_lowercase().str.strip_chars(AROUND) for one in (answer, truth)]
    numbers = [one.str.strip_chars().cast(pl.Float64, strict=False) for one in (answer, truth)]
    alike = _are_equal(*tidy) & (tidy[0].fill_null("") != "").to_numpy()
    equal = _are_equal(*numbers)
    odd = ~right & (alike | equal)
    if not odd.any():
        return None
    k = int(np.argmax(odd))
    same = " = ".join(f"LOWER(TRIM(BOTH '{AROUND}' FROM {each}))" for each in sql)
    if (equal & odd).any():
        number = " = ".join(f"TRY_CAST({each} AS DOUBLE)" for each in sql)
        same = f"coalesce({number}, {same})"
    if (right & ~alike & ~equal).any():  # right up to words common to all
        same = "EXPR"
    text = (
        f"{several(int(odd.sum()), 'answer')} such as {answer[k]!r} count as wrong and equal the "
        f"right one, {truth[k]!r}, but for case, signs around them, or how a number is written: "
        f"{100 * right.mean():.1f}\u00a0% of answers are right, or "
        f"{100 * (right | odd).mean():.1f}\u00a0% with these"
    )
    options = {"predicted_label": None, "label": same}
    return Question("unlike answers", text, (Reading(options, "they are right"),))


def _are_equal(first: pl.Series, second: pl.Series) -> BoolArray:
    """Return where two polars columns hold the same value, booleans (n,).

    Missing values equal nothing.
    """
    both = first.to_frame("a").with_columns(second.alias("b"))
    equal = both.select((both["a"].eq_missing(both["b"]) & both["a"].is_not_null()).alias("equal"))
    return np.asarray(equal["equal"].to_numpy())


def unknown_outcomes(
    table: Table, chosen: Chosen, wanted: Wanted, rows: Rows
) -> Question | None:  # fmt: skip
    """Return a question if a value of a compared label may mean "outcome unknown", or None.

    The :class:`Question` has the evidence in words and a reading (options to set) that answers it.
    The label's expression in ``chosen`` (expressions by role, such as "label"), such as ``status =
    'dead'``, counts rows of other values as rows without the event. A value is asked about if its
    word says so, or stands alone beside 0 and 1; or if its rows have predictions like all others
    (1000 times as likely as like those of rows without the event), and outcomes are 1000 times as
    likely if it is unknown at random. One of the other values always counts as known. ``rows`` are
    the predictions and outcomes, ``table`` is the open table (rows as a lazy polars frame), and
    ``wanted`` has the options of :func:`read_predictions`.
    """
    if rows.risks is None or "label" not in chosen.terms or "predicted_label" in chosen.terms:
        return None
    found = _compared_codes(table, chosen, wanted, "label")
    if found is None or len(found.others) + found.blank < 2 or rows.followed:
        return None
    mark = mark_beside_numbers([*map(str, found.all)])
    doubtful = [
        c for c in found.others if str(c) == mark or without_accents(str(c)) in UNKNOWN_WORDS
    ]
    if not doubtful and rows.weights is None and not found.blank:
        values = _kept(table, chosen, wanted).select(found.name).collect()[found.name]
        if len(values) == rows.n:
            least = LIKELIER + float(np.log(len(found.others)))
            masks = {c: (values == c).to_numpy() for c in found.others}
            doubtful = [c for c, here in masks.items() if _is_at_random(rows, here, least)]
            if len(doubtful) == len(masks):  # the most frequent is the other outcome itself
                doubtful.remove(max(masks, key=lambda c: int(masks[c].sum())))
    if not doubtful:
        return None
    wheres = " AND ".join(f"{quoted(found.name)} <> {found.others[c]}" for c in doubtful)
    shown = ", ".join(map(str, found.all))
    where = _kept_where(wanted, wheres, found.blank)
    readings = [Reading({"where": where}, "the outcome is not known there")]
    return Question(
        "unknown_outcomes",
        f"{found.name} has the values {shown}: rows where it is {' or '.join(map(str, doubtful))} "
        f"count as rows {_with_event(table, chosen, wanted, found.name, doubtful)} the event",
        tuple(readings),
    )


def _with_event(
    table: Table, chosen: Chosen, wanted: Wanted, name: str, values: Sequence[Any]
) -> str:
    """Return "with" if the label is true where a column has one of some values, else "without".

    ``name`` is the column, and ``values`` are some of its cells. The label's expression is in
    ``chosen`` (expressions by role, such as "label"), ``table`` is the open table (rows as a lazy
    polars frame), and ``wanted`` has the options of :func:`read_predictions`.
    """
    import polars as pl

    here = _kept(table, chosen, wanted).filter(pl.col(name).is_in([*values]))
    label = over(table, chosen).terms["label"][0].expr.cast(pl.Boolean, strict=False)
    return "with" if here.select(label.any()).collect().item() else "without"


def _is_at_random(rows: Rows, here: BoolArray, least: float) -> bool:
    """Return whether rows of a value look like rows of any outcome.

    Otherwise they look like rows without the event, or like rows with it. ``rows`` are the
    predictions and outcomes of n rows, and ``here`` (n,) marks the rows of the value; ``least`` is
    the natural logarithm of how many times likelier this must be than no event; it only has to be
    likelier than the event.
    """
    p, y = rows.risks, rows.labels
    assert p is not None
    share = float(here.mean())
    if not 0.0 < share < 0.5 or (y[here] == 1).any():
        return False
    q = np.clip(p, ROUNDED_OFF, 1.0 - ROUNDED_OFF)
    seen = (1.0 - share) * q  # probability of an event that is known
    gain = np.where(y == 1, np.log1p(-share), np.log((1.0 - seen) / (1.0 - q))).sum()

    def like_all(odds: FloatArray) -> float:  # against rows that are drawn in proportion to odds
        drawn = np.clip(odds * here.sum() / odds.sum(), 1e-9, 1.0 - 1e-9)
        return float(
            np.where(here, np.log(share / drawn), np.log((1.0 - share) / (1.0 - drawn))).sum()
        )

    return bool(gain >= least and like_all(1.0 - q) >= least and like_all(q) > 0.0)


def other_ends(table: Table, chosen: Chosen, wanted: Wanted) -> Question | None:
    """Return a question about further codes of an event column, which would silently be censored.

    The :class:`Question` has the evidence in words and readings (options to set): each code is
    offered as a competing event, or to be left out. None if the event's expression in ``chosen``
    (expressions by role, such as "label") compares no column, or no code is left. ``table`` is the
    open table (rows as a lazy polars frame), and ``wanted`` has the options of
    :func:`read_predictions`.
    """
    found = None if "competing" in chosen.terms else _compared_codes(table, chosen, wanted, "event")
    if found is None or len(found.others) + found.blank < 2:
        return None
    readings = []
    for code, word in found.others.items():
        if says_censored(code):
            continue
        if without_accents(str(code)) in UNKNOWN_WORDS:
            where = _kept_where(wanted, f"{quoted(found.name)} <> {word}", found.blank)
            readings.append(Reading({"where": where}, f"it is not known how rows of {code} ended"))
            continue
        sql = f"{quoted(found.name)} = {word}"
        competing = f"coalesce({sql}, FALSE)" if found.blank else sql
        readings.append(Reading({"competing": competing}, f"{code} is a competing event"))
    if not readings and not found.blank:
        return None
    values = ", ".join(map(str, found.all)) + " and blanks" * found.blank
    return Question(
        "other_ends",
        f"{found.name} has the values {values}: rows without the "
        "event count as censored, but one of these values may be a competing event, such as death "
        "from another cause",
        tuple(readings),
    )


#: How many times the horizon the named one is, at least.
OTHER_UNIT = 1.5


def other_unit(chosen: Chosen, followup: Followup, p: FloatArray) -> Question | None:
    """Return a question if names say that the horizon is in another unit than the times, or None.

    A prediction "risk_5y" beside times "months" is the risk by 60. It is asked where times reach to
    ten horizons or more, and fewer events occur by the horizon than the predictions ``p`` (n,)
    expect, by four standard errors. The :class:`Question` has the evidence in words and a reading
    with the horizon in the unit of the times. ``chosen`` has the expressions by role, such as
    "time", and ``followup`` the times and events with the horizon.
    """
    names = [t.name for option in ("probs", "time") for t in chosen.terms.get(option, [])]
    if followup.by_row or len(names) != 2 or p.ndim != 1:
        return None
    named, given = named_horizon(names[0], names[1], followup.time), float(np.max(followup.horizon))
    if named is None or named[0] < OTHER_UNIT * given:
        return None
    doubts = [note for note in followup.unit_notes(p) if isinstance(note, FollowupDoubt)]
    if not doubts:
        return None
    return Question("horizon", str(doubts[0]), (Reading({"horizon": f"{named[0]:g}"}, named[1]),))


def _kept_where(wanted: Wanted, condition: str, blank: bool) -> str:
    """Return ``condition``, in SQL, joined by AND with the user's own ``where``, if there is one.

    ``wanted`` has the options of :func:`read_predictions`, of which ``where`` counts. With
    ``blank`` rows are kept as well for which the condition is unknown (NULL).
    """
    condition = f"coalesce({condition}, TRUE)" if blank else condition
    return condition if wanted.where is None else f"({wanted.where}) AND {condition}"


class _Codes(NamedTuple):
    """Values of a column that an outcome expression, such as ``status = 'dead'``, compares.

    ``name`` is the column and ``all`` are its values, sorted. ``others`` maps those that the
    expression does not name to their SQL literals. ``blank`` says that a missing cell is a value as
    well.
    """

    name: str
    all: list[Any]
    others: dict[Any, str]
    #: Whether the outcome is known where the cell is blank.
    blank: bool


def _compared_codes(table: Table, chosen: Chosen, wanted: Wanted, option: str) -> _Codes | None:
    """Return the values of the column that an option's expression tests for equality.

    The result has the column's name, all its values, and those that the expression does not name.
    ``option`` is "label" or "event", whose expression is in ``chosen`` (expressions by role, such
    as "label"); ``table`` is the open table (rows as a lazy polars frame), and ``wanted`` has the
    options of :func:`read_predictions`. None unless the column has 3 to 12 distinct values. A blank
    is one of them where the outcome is known there.
    """
    import polars as pl

    for name, operation in compared(chosen.terms[option][0]):
        if operation != "Eq":
            continue
        kept = _kept(table, chosen, wanted)
        known = over(table, chosen).terms[option][0].expr.is_not_null()
        pairs = kept.select(pl.col(name), known.alias("::known")).unique().collect()
        blank = bool(pairs.filter(pl.col(name).is_null())["::known"].any())
        codes = pairs[name].drop_nulls().unique()
        if 3 <= len(codes) + blank <= MOST_CODES + blank:
            listed = sorted(codes.to_list(), key=str)
            literals = {code: literal(code, codes) for code in listed}
            said = chosen.sql(option)
            others = {c: w for c, w in literals.items() if w not in said}
            return _Codes(name, listed, others, blank)
    return None


def _with_competing(
    question: Question, table: Table, chosen: Chosen, wanted: Wanted
) -> Question:  # fmt: skip
    """Return the question about follow-up with a further code offered as a competing event.

    ``question`` has evidence in words and readings (options to set), to which ``competing`` is
    added. The code is a value of the column that the label's expression in ``chosen`` (expressions
    by role, such as "label") compares; ``table`` is the open table (rows as a lazy polars frame),
    and ``wanted`` has the options of :func:`read_predictions`. Other questions, and one with no or
    several such codes, are returned unchanged.
    """
    if question.guard != "follow-up" or "label" not in chosen.terms:
        return question
    found = _compared_codes(table, chosen, wanted, "label")
    more = (
        []
        if found is None
        else [w for c, w in found.others.items() if c != 0 and not says_censored(c)]
    )
    if found is None or len(more) != 1:
        return question
    competing = {"competing": f"{quoted(found.name)} = {more[0]}"}
    readings = (Reading({**r.options, **competing}, r.when) for r in question.readings)
    return replace(question, readings=tuple(readings))


def missing_marks(table: Table, chosen: Chosen, wanted: Wanted, option: str) -> Question | None:
    """Return a question if an extreme number such as −99.9 may stand for a missing value, or None.

    The :class:`Question` has the evidence in words and a reading (options to set) that answers it.
    The number is in a column that the outcome expression of ``option`` ("label" or "event") in
    ``chosen`` (expressions by role, such as "label") compares with a number. ``table`` is the open
    table (rows as a lazy polars frame), and ``wanted`` has the options of :func:`read_predictions`.
    """
    terms = chosen.terms.get(option, ())
    for name, _ in (pair for term in terms for pair in compared(term)):
        column = _kept(table, chosen, wanted).select(name).collect()[name].drop_nulls()
        if not column.dtype.is_numeric() or not len(column):
            continue
        values = column.to_numpy().astype(np.float64)
        for mark, side in ((values.min(), ">"), (values.max(), "<")):
            rest = values[values != mark]
            negative = side == ">" and rest.size and mark < 0.0 <= rest.min()
            apart = negative or (rest.size and np.abs(rest - mark).min() > np.ptp(rest))
            count = int((values == mark).sum())
            if count >= FEWEST_MARKS and apart and NINES.fullmatch(f"{mark:g}"):
                return Question(
                    "missing_marks",
                    f"{name} is {mark:g} in {several(count, 'row')}, far from all other values, "
                    "and may stand for a missing one",
                    (Reading({"where": f"{quoted(name)} {side} {mark:g}"}, "it is missing there"),),
                )
    return None


#: Logarithm of how unlikely an outcome is constant by chance, before a guard asks.
NEVER = float(np.log(1e4))


def constant_outcome(
    table: Table, chosen: Chosen, wanted: Wanted, rows: Rows, option: str
) -> Question | None:
    """Return a question if an outcome is the same in all rows as no row holds the compared text.

    The :class:`Question` has the evidence in words and readings (options to set) that answer it.
    ``option`` is "label" or "event": the option whose expression, such as ``status = 'dead'``,
    makes the outcome of ``rows`` (predictions and outcomes), and which the readings set. The column
    of text holds 2 to 12 other words. The question is asked if the predictions give a constant
    outcome a chance below 1e-4, or if a word differs from the compared one in case only. None if
    there is nothing to ask. ``table`` is the open table (rows as a lazy polars frame), ``chosen``
    has the expressions by role, such as "label", and ``wanted`` the options of
    :func:`read_predictions`.
    """
    terms, p, y = chosen.terms.get(option, ()), rows.risks, rows.labels
    if len(terms) != 1 or terms[0].column is not None or p is None or not y.size:
        return None
    if y.min() != y.max() or y.max() > 1:
        return None
    sql = chosen.sql(option)
    for name in dict.fromkeys(n for n, operation in compared(terms[0]) if operation == "Eq"):
        words = words_of(_kept(table, chosen, wanted).select(name).collect()[name])
        if words is None or str(table.schema[name]) not in TEXT_TYPES:
            continue
        seen = sorted({word.strip() for word in words.drop_nulls().to_list()})
        said = [text.replace("''", "'") for text in QUOTED_TEXT.findall(sql)]
        if not 2 <= len(seen) <= MOST_CODES or {*said} & {*seen}:
            continue
        meant = [word for word in seen if word.lower() in {text.strip().lower() for text in said}]
        q = np.clip(p, ROUNDED_OFF, 1.0 - ROUNDED_OFF)
        chance = float(np.log(q if y[0] else 1.0 - q).sum())
        if not meant and chance > -NEVER:
            continue
        plain = "'" + said[0].replace("'", "''") + "'" if said else ""
        options = (
            (word, sql.replace(plain, "'" + word.replace("'", "''") + "'"))
            for word in meant or seen[:MOST_WORDS_OFFERED]
        )
        return Question(
            "constant_outcome",
            f"{sql} is {'true' if y[0] else 'false'} in every row: {name} is "
            f"{', '.join(seen)}, and never {' or '.join(said)}",
            tuple(Reading({option: each}, f"{word} is meant") for word, each in options),
        )
    return None


def percents_by_name(cells: EvaluatedCells, chosen: Chosen, rows: Rows) -> Question | None:
    """Return a question if a column called a percentage holds no number above 1, or None.

    It may hold percentages below 1, or fractions. The :class:`Question` has the evidence in words
    and a reading (options to set) that answers it. Percent signs settle it, and so do labels that
    are 1000 times as likely for fractions. ``cells`` are the evaluated cells (in a frame with
    columns such as ``label:0``), with the probabilities as written, ``rows`` the predictions and
    outcomes, and ``chosen`` has the expressions by role, such as "label".
    """
    terms, p, y = chosen.terms["probs"], rows.probs, rows.labels
    if len(terms) != 1 or terms[0].column is None or not says_percent(terms[0].column):
        return None
    if not rows.followed and log_likelihood(p, y) - log_likelihood(p / 100.0, y) >= LIKELIER:
        return None
    written = cells.frame["probs:0"]
    if str(written.dtype) == "String" and written.str.contains("%", literal=True).any():
        return None
    return Question(
        "percents_by_name",
        f"{terms[0].column} is called a percentage and holds values up to {p.max():.3g}, which are "
        "read as fractions",
        (Reading({"probs": f"{quoted(terms[0].column)} / 100"}, "they are percents"),),
    )


def _some(rows: Rows, places: IntArray) -> Rows:
    """Return the rows at the indices ``places``, without the unused columns.

    ``rows`` have predictions, outcomes, weights, clusters and subgroups, all of which are cut.
    """
    facts = {name: getattr(rows, name) for name in ("weights", "clusters", "by")}
    cut: dict[str, Any] = {k: None if v is None else v[places] for k, v in facts.items()}
    return replace(rows, probs=rows.probs[places], labels=rows.labels[places], unused=(), **cut)


def _at(columns: tuple[Column, ...], places: IntArray) -> tuple[Column, ...]:
    """Return unused columns restricted to the rows at the indices ``places``.

    Each :class:`Column` has a name and values, one a row.
    """
    size = len(columns[0].values) if columns else 0
    if np.array_equal(places, np.arange(size)):
        return columns
    return tuple(replace(column, values=column.values[places]) for column in columns)


def _kept(table: Table, chosen: Chosen, wanted: Wanted) -> pl.LazyFrame:
    """Return the rows of a table that the user's ``where`` keeps.

    They are a lazy polars frame of all columns. ``table`` is the open table, ``chosen`` has the
    expression of ``where`` and others by role, and ``wanted`` says whether there is one.
    """
    return (
        table.frame if wanted.where is None else table.frame.filter(condition(over(table, chosen)))
    )


def _unused(
    table: Table, chosen: Chosen, wanted: Wanted, names: list[str], most: int | None
) -> tuple[Column, ...]:
    """Return unused columns of a table, in which checks look for signs of a misreading.

    Each :class:`Column` has a name and values (n,), codes with their words for text. ``names`` are
    the columns; the first ``most`` rows are taken that ``where`` keeps, or all if it is None.
    ``table`` is the open table (rows as a lazy polars frame), ``chosen`` has the expressions by
    role, such as "label", and ``wanted`` the options of :func:`read_predictions`. () where the rows
    cannot be read; columns of lists are left out.
    """
    import polars as pl

    if not names:
        return ()
    try:
        query = _kept(table, chosen, wanted).select(names)
        frame = (query if most is None else query.head(most)).collect()
    except pl.exceptions.PolarsError:
        if table.text is None:
            return ()
        try:
            table = replace(retyped(table, names), text=None)
        except pl.exceptions.PolarsError:
            return ()
        return _unused(table, chosen, wanted, names, most)
    return columns_of(frame, names)


def _spans(
    table: Table, chosen: Chosen, wanted: Wanted, names: list[str], most: int | None
) -> tuple[Column, ...]:
    """Return the days between unused columns of dates, of the first ``most`` rows or of all.

    Each :class:`Column` has a name, the days (n,) and their SQL. ``most`` None means all rows; only
    those count that ``where`` keeps. ``names`` are the unused columns of the open ``table``,
    ``chosen`` has the expressions by role, such as "label", and ``wanted`` the options of
    :func:`read_predictions`. () where the rows cannot be read.
    """
    import polars as pl

    try:
        head = table.frame.select(names).head(DATES_SEEN).collect()
        dates = [name for name in names if is_date(head[name])]
        if len(dates) < 2:
            return ()
        query = _kept(table, chosen, wanted).select(dates)
        return spans_of((query if most is None else query.head(most)).collect(), dates)
    except pl.exceptions.PolarsError:
        return ()


def one_part_columns(head: Table, chosen: Chosen) -> list[str]:
    """Return the names of unused columns that name a single part of a data set, such as "train".

    ``head`` is the open table (rows as a lazy polars frame) of the first rows only; later rows may
    name other parts. ``chosen`` has the expressions that are used, by role.
    """
    frame, found = head.frame.collect(), list[str]()
    for column in columns_of(frame, [n for n in frame.columns if n not in chosen.used]):
        if column.words is not None and column.n_values == 1 and split_parts(column.words):
            found.append(column.name)
    return found


def words_in(table: Table, chosen: Chosen, wanted: Wanted, name: str) -> set[str]:
    """Return the distinct values of the text column ``name`` in all rows that ``where`` keeps.

    ``table`` is the open table (rows as a lazy polars frame), ``chosen`` has the expressions by
    role (of which "where" counts), and ``wanted`` the options of :func:`read_predictions`. Values
    are whole cells; missing ones are left out.
    """
    import polars as pl

    words = _kept(table, chosen, wanted).select(pl.col(name).cast(pl.String).unique())
    return {*words.collect(engine="streaming")[name].drop_nulls().to_list()}


def _far_apart(
    table: Table, chosen: Chosen, wanted: Wanted, head: tuple[Column, ...], rows: Rows
) -> list[Question | None]:
    """Return the questions on large tables that are sorted by model or by part of the data set.

    There, the first rows are all of one model or part. Each :class:`Question` has the evidence in
    words and readings (options to set); entries are None where nothing is asked. ``head`` are the
    unused columns of these first rows, and ``rows`` all predictions and outcomes. ``table`` is the
    open table (rows as a lazy polars frame), ``chosen`` has the expressions by role, such as
    "label", and ``wanted`` the options of :func:`read_predictions`.
    """
    import polars as pl

    query, found = _kept(table, chosen, wanted), list[Question | None]()
    one = [c.name for c in head if c.words is not None and c.n_values == 1]
    for column in (c for c in head if c.name in one):
        if split_parts(column.words or ()):
            words = query.select(pl.col(column.name).unique()).collect()
            part = columns_of(words, [column.name])
            found.append(train_rows(replace(rows, unused=part)))
    size = min(SEEN, rows.n)
    ids = [c.name for c in head if c.n_values > 0.98 * size][:3]
    # Where ids are unique among the first rows, their distinguishing column is constant
    few = [c.name for c in head if c.n_values == 1]
    if not ids or not few:
        return found
    counts = query.select(pl.col(ids).approx_n_unique()).collect(engine="streaming")
    ids = [name for name in ids if counts[name][0] < 0.55 * rows.n]
    if ids:
        frame = query.select([*ids, *few]).collect()
        found.append(repeated_rows(replace(rows, unused=columns_of(frame, frame.columns))))
    return found


def _without_outcome(
    table: Table, chosen: Chosen, wanted: Wanted, n: int, complete: Complete
) -> tuple[int, int]:
    """Return (left out, total): numbers of rows without an outcome or excluded by its condition.

    A part of ``where`` that AND joins to the others is such a condition if it uses a column of the
    label or event. Rows that other parts exclude, such as those of another lead time, are in
    neither number. ``n`` rows were evaluated, and ``complete`` says how many of them lack an
    outcome; ``table`` is the open table (rows as a lazy polars frame), ``chosen`` has the
    expressions by role, such as "label", and ``wanted`` the options of :func:`read_predictions`.
    """
    out = complete.without_outcome if complete.left_out else 0
    if wanted.where is None:
        return out, n
    labels = {r for o in ("label", "event") for t in chosen.terms.get(o, ()) for r in t.roots}
    if not labels & {*chosen.terms["where"][0].roots}:
        return out, n
    import polars as pl

    kept = table.frame
    for part in conjuncts(over(table, chosen).terms["where"][0].expr):
        if not labels & {*part.meta.root_names()}:
            kept = kept.filter(part.cast(pl.Boolean))
    total = int(kept.select(pl.len()).collect().item())
    return out + total - n, total


def label_words(cells: EvaluatedCells) -> list[str]:
    """Return the distinct words of a text label; an empty list for other labels, and for none.

    ``cells`` are the evaluated cells (in a frame with columns such as ``label:0``) of the rows, of
    which the label counts.
    """
    import polars as pl

    label = cells.frame["label:0"] if cells.of("label") else pl.Series(dtype=pl.Null)
    words = words_of(label) if label.dtype == pl.String else None
    return [] if words is None else words.drop_nulls().unique().to_list()


# ------------------------------------------------------------------------------
# A note on labels that are the majority of votes, which stand beside them.


#: Rows that are looked at, and columns among which pairs of votes for two classes are sought.
LINES_SEEN, MOST = 10_000, 12


#: What such a pair is called: goals of two teams are no votes on who wins.
OF_VOTES = re.compile(r"vote|annot|rater|judge|agree|^n?_?(yes|no)$", re.IGNORECASE)


def majority_note(table: Table, chosen: Chosen, data: Predictions, rows: IntArray) -> str:
    """Return a note if unused columns hold votes whose majority the label is; "" if none do.

    For two classes these are two columns of counts; for more, a column for each class, with its
    name at the end, of counts or shares. ``data`` are the predictions and labels of the rows read,
    ``rows`` (n,) their places in ``table``, the open table (rows as a lazy polars frame);
    ``chosen`` has the expressions that are used, by role. The first 10 000 rows of the table are
    looked at.
    """
    if {"votes", "items", "event"} & chosen.terms.keys() or data.multilabel:
        return ""
    names = [
        name for name, kind in table.schema.items()
        if name not in chosen.used and kind.is_numeric()
    ]  # fmt: skip
    families = _families(names, data)
    columns = sorted({name for family in families for name in family})
    if not columns:
        return ""
    head = table.frame.select(columns).head(LINES_SEEN).collect()
    here = rows < head.height
    labels = data.labels[here]
    for family in families:
        votes = _numbers(head, family, rows[here])
        if votes is not None and _is_majority(votes, labels):
            listed = ", ".join(family)
            return spelt(
                f"{chosen.name('label')} is the majority of {listed}: another outcome than a vote, "
                "on which models that are right for every item can be rejected; votes= (--votes) "
                "takes the votes themselves"
            )
    return ""


def _families(names: list[str], data: Predictions) -> list[tuple[str, ...]]:
    """Return the families of columns that may hold votes, each in the order of the classes.

    A family is a tuple of names, one for each class. ``names`` are the columns to choose from,
    ``data`` the predictions with the names of the classes. Names end in the names of the classes;
    for two classes all ordered pairs of columns that are called votes, raters or the like are
    families as well.
    """
    classes = [str(c).lower() for c in data.classes or range(data.n_classes)]
    by_end: dict[str, dict[str, str]] = {}
    for name in names:
        for end in classes:
            if name.lower().endswith(end):
                by_end.setdefault(name[: len(name) - len(end)].lower(), {})[end] = name
    whole = (members for members in by_end.values() if len(members) == len(classes))
    found = [tuple(members[end] for end in classes) for members in whole]
    called = [name for name in names if OF_VOTES.search(name)]
    if data.n_classes == 2 and len(called) <= MOST:
        found += [pair for pair in permutations(called, 2) if pair not in found]
    return found


def _numbers(head: pl.DataFrame, family: tuple[str, ...], rows: IntArray) -> FloatArray | None:
    """Return the cells (n, K) of K columns of votes; None if they are neither counts nor shares.

    ``head`` is a polars frame of the first rows of the table, ``family`` has the names of the
    columns, one for each class, and ``rows`` (n,) are the places of the rows that are read. Shares
    sum to 1, and are possible for K > 2 only. None also if a cell is missing.
    """
    frame = head.select(family)
    if any(column.null_count() for column in frame.get_columns()):
        return None
    votes = np.asarray(frame.to_numpy(), dtype=np.float64)[rows]
    counts = bool((votes % 1.0 == 0.0).all())
    shares = len(family) > 2 and np.allclose(votes.sum(axis=1), 1.0, atol=1e-3)
    return votes if votes.size and votes.min() >= 0.0 and (counts or shares) else None


def _is_majority(votes: FloatArray, labels: IntArray) -> bool:
    """Return whether labels (n,) are the classes with most votes (n, K) in every row.

    Rows in which two classes have most votes are not compared. Votes have to be divided in at least
    5 % of the rows, and labels to differ.
    """
    ordered = np.sort(votes, axis=1)
    clear = ordered[:, -1] > ordered[:, -2]
    mixed = (ordered[:, -2] > 0.0).mean() >= 0.05
    seen = np.unique(labels[clear]).size > 1
    return bool(mixed and seen and (votes.argmax(axis=1) == labels)[clear].all())
