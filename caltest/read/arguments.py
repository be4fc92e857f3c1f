"""How arguments of a verb become predictions: arrays, and tables in memory.

:func:`read_arguments` is the entry for every verb; arrays go to :meth:`Predictions.of`, tables to
the contract. :func:`matched_by_index` pairs the rows of two pandas models by their index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from caltest._base.arrays import (
    AnyArray,
    IntArray,
    as_column,
    as_ndarray,
    can,
    is_table,
    names_of,
    one_of,
)
from caltest._base.written import Fields, several, unknown
from caltest.data.doubts import without_rounded
from caltest.data.followup import Followup
from caltest.data.labels import Facts
from caltest.data.predictions import (
    Predictions,
    index_of,
    of_plain_arrays,
    questioned,
    refuse_misaligned,
)
from caltest.errors import InvalidPredictionsError, Reading
from caltest.read.contract import UnclearColumnsError, Wanted, choose
from caltest.read.expressions import quoted, words_of
from caltest.read.files import chosen_of, read_table, shared_ids, table_in_memory
from caltest.read.formats import Table, flat
from caltest.read.tables import cells_of
from caltest.read.values import LABELS_BESIDE

if TYPE_CHECKING:
    import polars as pl

#: Facts that are values, one a row, or names of columns.
OF_ROWS = ("weights", "clusters", "by", "ids", "folds", "features", "time", "items")


#: Options that choose among the rows and columns of a table.
CHOICES = (
    *("predicted_label", "drop_missing", "where", "event", "competing", "strata", "as_is"),
    "votes",
)


def questioned_arrays(
    data: Predictions, probs: object, labels: object, facts: Mapping[str, Any]
) -> Predictions:
    """Return predictions read from arrays, with notes on values that may be meant otherwise.

    ``data`` are the predictions, and ``probs``, ``labels`` and ``facts`` the arguments from which
    :func:`read_arguments` read them: probabilities, labels, and the other arguments by name. Where
    ``labels`` is None or ``probs`` a table, whose reading has asked already, ``data`` is returned
    unchanged. DoubtfulInputError where the values say that they are meant otherwise, such as
    swapped classes, unless ``facts`` has ``as_is=True``.
    """
    if labels is None or (type(probs) is not np.ndarray and is_table(probs)):
        return data
    as_is, logits = facts.get("as_is", False), facts.get("from_logits", False)
    return questioned(data, as_is, probs, labels, logits)


def read_arguments(probs: object, labels: object = None, **facts: Unpack[Facts]) -> Predictions:
    """Return checked :class:`Predictions` of arrays, or of a table in memory.

    ``probs`` and ``labels`` are arrays, or ``probs`` is a table, whose column of labels is found by
    its name if ``labels`` is None. ``facts`` are the other arguments of :meth:`Predictions.of`,
    such as ``weights``. Beside a table, labels and facts may be names of its columns, expressions
    in SQL over them, or arrays. ``drop_missing`` leaves out rows of tables and arrays that lack a
    value. Tables raise questions (DoubtfulInputError) when they are read; arrays when a test takes
    them. InvalidPredictionsError for values that are no predictions.
    """
    rounded = facts.get("rounded", "auto")
    if not facts.keys() - {"rounded"} and (rounded == "auto" or rounded is False):
        if isinstance(probs, Predictions) and labels is None and probs.followup is None:
            return probs
        if (data := of_plain_arrays(probs, labels)) is not None:
            certain = rounded == "auto" and bool(data.probs.min() == 0.0)
            return without_rounded(data, rounded) if certain else data
    options: Fields = {**facts}
    choices = {name: options.pop(name) for name in CHOICES if name in options}
    one_of("drop_missing", choices.get("drop_missing", False), (True, False))
    if not is_table(probs):
        choices.pop("as_is", None)
        dropped = choices.pop("drop_missing", False)
        if any(value is not None for value in choices.values()):
            name = next(name for name, value in choices.items() if value is not None)
            more = ": for arrays of counts there is Predictions.of_votes(probs, counts)"
            raise InvalidPredictionsError(
                f"{name} names a column of a table with labels" + more * (name == "votes")
            )
        if dropped and labels is not None and not isinstance(labels, Followup):
            return _complete(probs, labels, options)
        return Predictions.of(probs, labels, **options, as_is=None)
    if strange := options.keys() - Facts.__annotations__.keys():
        raise unknown("Predictions.of", min(strange), Facts.__annotations__)
    return _of_table(probs, labels, options, choices)


def _complete(probs: object, labels: object, options: Fields) -> Predictions:
    """Return predictions of the array rows that lack no value, with a note on the rows left out.

    ``probs`` (n,) or (n, K) and ``labels`` (n,) are arrays. ``options`` are other arguments of
    :meth:`Predictions.of` by name; those with one value a row, such as ``weights``, are cut to the
    same rows. If no value is missing, this is ``Predictions.of(probs, labels, **options)`` without
    a note.
    """
    values, truth = as_ndarray(probs, "probs"), as_column(labels, "labels")
    missing = np.zeros(len(truth), dtype=bool)
    if len(values) == len(truth):
        missing |= _lacking(values)
    missing |= _lacking(truth)
    if not missing.any():
        return Predictions.of(probs, labels, **options)
    rows = np.flatnonzero(~missing)
    facts = {name: options.pop(name) for name in OF_ROWS if options.get(name) is not None}
    truth = truth[rows]
    if truth.dtype.kind == "f" and (truth == np.floor(truth)).all():
        truth = truth.astype(np.int64)  # NaN has made fractions of whole numbers
    elif truth.dtype == object:
        truth = np.array(truth.tolist())
    cut = {name: _rows_of(value, rows) for name, value in facts.items()}
    data = Predictions.of(values[rows], truth, **options, **cut, as_is=None)
    note = f"left out {several(int(missing.sum()), 'row')} without a value"
    return replace(data, notes=(note, *data.notes), places=rows)


def _lacking(values: AnyArray) -> AnyArray:
    """Return which rows hold NaN or None in any column, booleans of shape (n,).

    ``values`` are an array (n,) or (n, K).
    """
    if values.dtype.kind == "f":
        absent = np.isnan(values)
    elif values.dtype == object:
        absent = np.array([v is None or v != v for v in values.ravel()]).reshape(values.shape)
    else:
        return np.zeros(len(values), dtype=bool)
    return np.asarray(absent.reshape(len(values), -1).any(axis=1))


def _rows_of(value: Any, rows: IntArray) -> Any:
    """Return an argument's values at the indices ``rows``, as an array.

    ``value`` has one value, or row, for each observation; of a table the result is a dictionary of
    its columns (arrays) by name.
    """
    if is_table(value):
        columns = names_of(value) or ()
        return {name: as_ndarray(value[name], str(name))[rows] for name in columns}
    return as_ndarray(value, "facts")[rows]


# ------------------------------------------------------------------------------
# Tables in memory, read as files are, and arrays that lie beside them.


class _Beside(NamedTuple):
    """Input given as a table with further arrays: arrays become columns of the table.

    ``table`` is the open table (rows as a lazy polars frame) with the added columns. ``wanted`` are
    the options of :func:`read_predictions`, which name the columns to read. ``facts`` maps names of
    design arguments that cannot be columns, such as tables of features, to their values.
    """

    table: Table
    wanted: Wanted
    facts: Fields


def _of_table(probs: Any, labels: object, options: Fields, choices: Fields) -> Predictions:
    """Return the predictions of a table, beside which arguments may be arrays.

    ``probs`` is the table, ``labels`` are its labels, as an array or the name of a column, or None.
    ``options`` are other arguments of :meth:`Predictions.of` by name, and ``choices`` the arguments
    that only :func:`read_predictions` has, such as ``drop_missing``. It raises the errors of
    :func:`read_predictions`: InvalidPredictionsError, and DoubtfulInputError without ``as_is``.
    """
    beside = _beside(probs, labels, options, choices)
    data, rows = read_table(beside.table, beside.wanted, in_memory=True)
    if beside.facts:
        same = data.n == beside.table.frame.collect().height
        facts = {n: v if same else _rows_of(v, rows) for n, v in beside.facts.items()}
        notes = data.notes
        data = Predictions.of(data, None, rounded=False, **facts)
        data = replace(data, notes=(*notes, *(n for n in data.notes if n not in notes)))
    return data if not isinstance(labels, Followup) else Predictions.of(data, labels, as_is=None)


def _beside(probs: Any, labels: Any, options: Fields, choices: Fields) -> _Beside:
    """Return a table with each array argument added as a column called ``NAME=``.

    ``probs`` is the table, ``labels`` are its labels, as an array or the name of a column, or None.
    ``options`` are the arguments of :meth:`Predictions.of` by name; those with one value a row are
    removed from it. ``choices`` are the arguments that only a reading has, such as
    ``drop_missing``. The result has the table, the options of :func:`read_predictions` that name
    its columns, and arguments that cannot be columns. InvalidPredictionsError where lengths differ,
    or rows have no common order.
    """
    import polars as pl

    rows = {"labels": labels} | {name: options.pop(name, None) for name in OF_ROWS}
    rows = {name: value for name, value in rows.items() if value is not None}
    for name, values in rows.items():
        if can(probs, "fetchnumpy") and can(values, "fetchnumpy"):
            raise InvalidPredictionsError(
                f"probs and {name} are two relations, whose rows have no common order: pass one "
                f"relation with all columns, and {name} as the name of its column"
            )
    refuse_misaligned(probs, rows)
    frame, facts, wanted = table_in_memory(probs), dict[str, Any](), dict[str, Any]()
    columns: list[pl.Series] = []
    if options.pop("pos_label", None) is not None:
        raise InvalidPredictionsError(
            "beside a table the event is an expression, such as labels=\"y = 'yes'\", and no "
            "pos_label",
            [Reading({"label": "COLUMN = 'CODE'"})],
        )
    for name, values in rows.items():
        option = "label" if name == "labels" else name
        if isinstance(values, Followup):
            values = values.labels
        if _are_names(values) and (isinstance(values, str) or _fit(values, name, frame)):
            wanted[option] = values
            continue
        if (is_table(values) and name != "labels") or (
            name == "features" and not can(values, "__arrow_c_array__")
        ):
            facts[name] = values
            continue
        cells = as_column(values, name)
        if cells.ndim == 2 and name == "labels":
            cells = _places(cells)
        elif cells.ndim > 1:
            facts[name] = values
            continue
        if len(cells) != frame.height:
            raise InvalidPredictionsError(
                f"probs has {frame.height} rows but {name} has {len(cells)}; they must describe "
                "the same observations in the same order"
            )
        columns.append(pl.Series(f"{name}=", _plain(cells)))
        wanted[option] = quoted(f"{name}=")
    frame = frame.with_columns(columns)
    horizon = options.pop("horizon", None)
    rounded = options.pop("rounded", "auto")
    request = Wanted(**wanted, **options, **choices, horizon=horizon, rounded=rounded)
    table = flat(Table("", frame.lazy()))
    if wanted.get("label") == quoted(LABELS_BESIDE):
        request = _probabilities_beside(table, request)
    return _Beside(table, request, facts)


def _are_names(values: object) -> bool:
    """Return whether values name columns: they are a text, or a list of texts that is not empty."""
    texts = isinstance(values, (list, tuple)) and all(isinstance(v, str) for v in values)
    return isinstance(values, str) or (texts and bool(values))


def _fit(values: Any, name: str, frame: pl.DataFrame) -> bool:
    """Return whether a list of texts names columns of a table, rather than being values of rows.

    Labels are always values; other lists name columns if all of them exist in the polars ``frame``,
    or if their number is not that of its rows. ``name`` is the argument that the list was given
    for.
    """
    if name == "labels":
        return False
    return len(values) != frame.height or {*values} <= {*frame.columns}


def _plain(cells: AnyArray) -> AnyArray:
    return np.array([None if v is None else v for v in cells.tolist()], dtype=object) if (
        cells.dtype == object and not all(isinstance(v, str) for v in cells)
    ) else cells  # fmt: skip


def _places(one_hot: AnyArray) -> IntArray:
    """Return the index of the one in each row of ``one_hot`` (n, K), shape (n,).

    InvalidPredictionsError for rows that are not one-hot.
    """
    ones = one_hot == 1
    if not ((ones | (one_hot == 0)).all() and (ones.sum(axis=1) == 1).all()):
        raise InvalidPredictionsError(
            f"labels of shape {one_hot.shape} are not one-hot: each row needs one 1 and else 0"
        )
    return np.asarray(ones.argmax(axis=1))


def _probabilities_beside(table: Table, wanted: Wanted) -> Wanted:
    """Return the options for reading a table whose labels are given as an array.

    ``table`` is the open table (rows as a lazy polars frame), and ``wanted`` has the options of
    :func:`read_predictions`. If no column is known as probabilities by its name, the option
    ``probs`` is set to all remaining columns of numbers, in their order; otherwise the options are
    returned unchanged.
    """
    schema = table.schema
    try:
        choose(schema, wanted)
    except UnclearColumnsError as error:
        used = {r for v in wanted.columns.values() for r in _roots(v, schema)}
        left = [n for n, kind in schema.items() if n not in used and kind.is_numeric()]
        if error.lacking == "probs" and left and not error.fitting:
            return replace(wanted, probs=[quoted(name) for name in left])
    return wanted


def _roots(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns that the value of an option uses.

    ``value`` is a text or a list of texts: names, patterns of names or SQL expressions. ``schema``
    maps the names of the table's columns to their types.
    """
    from caltest.read.expressions import terms_of

    return [root for term in terms_of(value, schema) for root in term.roots]


def raw_values(probs: object, labels: object = None, **facts: Unpack[Facts]) -> object:
    """Return probabilities or logits as given, of the rows that would be read, (n,) or (n, K).

    Arguments and rows are as in :func:`read_arguments`: ``probs`` and ``labels`` are arrays, or
    ``probs`` is a table; ``facts`` are further arguments by name. With ``drop_missing`` the rows
    without a missing value are returned, else all of them.
    """
    options: Fields = {**facts}
    choices = {name: options.pop(name) for name in CHOICES if name in options}
    if is_table(probs):
        beside = _beside(probs, labels, options, choices)
        chosen = chosen_of(beside.table, beside.wanted)
        whole = cells_of(beside.table, chosen, beside.wanted, frame_rows=True)
        return whole.complete().cells.probabilities()
    if choices.get("drop_missing") and labels is not None and not isinstance(labels, Followup):
        values, truth = as_ndarray(probs, "probs"), as_column(labels, "labels")
        return values[~(_lacking(values) | _lacking(truth))]
    return probs


# ------------------------------------------------------------------------------
# Several models: the ids that they share, and labels that one of them has.


def with_ids(models: Sequence[object], labels: object, facts: Facts) -> Facts:
    """Return ``facts`` with the option ``ids`` set to a column that all tables share.

    ``models`` are the tables, ``labels`` the labels for all of them, and ``facts`` the arguments of
    :meth:`Predictions.of` by name. The column holds unique values, the same in all tables.
    ``facts`` are returned unchanged if they have ids, if a model is no table, if ``labels`` are
    values rather than a column's name or None, or if there is no such column.
    """
    if "ids" in facts or not (labels is None or isinstance(labels, str)):
        return facts
    if any(not is_table(model) for model in models):
        return facts
    name = shared_ids(models)
    return facts if name is None else {**facts, "ids": quoted(name)}


class MatchedRows(NamedTuple):
    """Models and labels with rows in the order of the first model, and notes on the matching.

    ``models`` maps names of models to their predictions as they were given, arrays or tables, with
    reordered rows. ``labels`` are the labels for all, in the same order. ``notes`` maps names of
    models to a sentence about the matching, where rows were reordered.
    """

    models: dict[str, Any]
    labels: Any
    notes: Mapping[str, str]


def matched_by_index(models: Mapping[str, Any], labels: Any) -> MatchedRows:
    """Return models and labels of pandas with their rows in the order of the first model's index.

    ``models`` maps names to predictions, arrays or objects of pandas; ``labels`` are the labels for
    all of them. The result has both, and notes on models whose rows were reordered. Arrays have no
    index, and labels without one are in the order of the first model.

    InvalidPredictionsError when indexes differ in more than the order, repeat a label, or differ
    beside an array, so that nothing says which rows go together.
    """
    by_name = {name: index for name, m in models.items() if (index := index_of(m)) is not None}
    if not by_name:
        return MatchedRows({**models}, labels, {})
    first = next(iter(by_name))
    index, complete = by_name[first], len(by_name) == len(models)
    found, notes = {**models}, dict[str, str]()
    for name, other in by_name.items():
        places = _places_in(index, other, complete, (first, name))
        if places is not None:
            found[name] = models[name].iloc[places]
            notes[name] = f"rows of {name} are in another order than in {first}: matched"
            notes[name] += " by their index"
    own = index_of(labels)
    places = _places_in(index, own, complete, (first, "labels")) if complete else None
    if places is not None:
        labels = labels.iloc[places]
        notes[first] = f"labels are in another order than rows of {first}: matched by their index"
    return MatchedRows(found, labels, notes)


def _places_in(index: Any, other: Any, complete: bool, names: tuple[str, str]) -> IntArray | None:
    """Return where the labels of one pandas index stand in another, integers (n,).

    ``index`` and ``other`` are the indexes, ``names`` the names of their arguments in messages.
    None if both are equal, if ``other`` is missing, and if it has another length. ``complete`` says
    that all arguments have an index, so that rows may be reordered. InvalidPredictionsError for
    indexes that differ without it, and for indexes that do not hold the same labels, each once.
    """
    if other is None or len(other) != len(index) or index.equals(other):
        return None
    if complete and index.is_unique and other.is_unique:
        places = np.asarray(other.get_indexer(index))
        if places.min() >= 0:
            return places
    pairs = enumerate(zip(index, other, strict=True))
    row, (ours, theirs) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
    why = "hold not the same labels, each once"
    if not complete:
        why = "lie beside an array, which has no index"
    raise InvalidPredictionsError(
        f"{names[0]} and {names[1]} have different indexes, first in row {row} ({ours!r} and "
        f"{theirs!r}), which {why}: align their rows first, or pass both by .to_numpy() if rows "
        "are in the same order as they are"
    )


def has_labels(model: object) -> bool:
    """Return whether a model is a table in memory with a column of labels, found by its name.

    It is a name that :func:`read_predictions` reads without an option, such as "y" or "label".
    False for arrays, and for no or several such columns.
    """
    if not is_table(model):
        return False
    import polars as pl

    with suppress(InvalidPredictionsError):
        schema = {str(name): pl.Float64() for name in names_of(model) or ()}
        choose({**schema, "p=": pl.Float64()}, Wanted(probs='"p="'))
        return True
    return False


def lent_labels(data: Predictions, model: object, ids: object) -> AnyArray:
    """Return labels (n,) for the rows of the model ``model``, taken from ``data``.

    ``data`` are predictions with labels. ``ids`` is the name of a column of the table ``model``, by
    which its rows are matched with the ids of ``data``; without it, or for an array, they are in
    the order of ``data``. An unknown or repeated id gets an arbitrary label; matching the rows
    refuses it later.
    """
    if data.ids is None or not isinstance(ids, str) or not is_table(model):
        return data.labels
    frame = table_in_memory(model)
    name = ids if ids in frame.columns else ids.strip('"')
    if name not in frame.columns:
        return data.labels
    words = words_of(frame[name])
    if words is None:
        return data.labels
    place = {str(name): row for row, name in enumerate(data.ids)}
    rows = [place.get(str(word), -1) for word in words.to_list()]
    return data.labels[rows]
