"""Several models of the same rows: in columns or rows of one file, or in files with common ids.

:func:`read_forecasters` reads columns, :func:`read_each` rows; :func:`common_rows` keeps the rows
that all models have. :func:`refuse_shared` asks about rows that are said to be others in each file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce

import numpy as np

from caltest._base.written import first_of, several
from caltest.data import Predictions
from caltest.data.doubts import same_outcomes
from caltest.data.facts import RIGHT
from caltest.data.questions import LIKELIER
from caltest.errors import DoubtfulInputError, InvalidPredictionsError, Reading
from caltest.read.contract import Wanted
from caltest.read.expressions import key, literal, quoted, split, terms_of, words_of
from caltest.read.files import Expressions, naming, read_table, table_of
from caltest.read.formats import Table
from caltest.read.guesses import NEVER_OUTCOMES

#: Models in the rows of one file, at most.
MOST_MODELS = 50

#: Ids that files share, at least, before their rows are taken to be the same.
FEWEST_SHARED = 5


def read_forecasters(
    source: object, probs: str, label: str | None = None, **options: object
) -> dict[str, Predictions]:
    """Read several forecasters from one table, each a column or an expression.

    ``source`` and ``options`` are as for :func:`read_predictions`; ``probs`` has the forecasters,
    separated by commas, and ``label`` one expression for all of them, or one each. The result maps
    the expression of each forecaster to its predictions. Only rows that every forecaster has are
    kept; with ``drop_missing`` they may be fewer than the table has. It raises the errors of
    :func:`read_predictions`, and InvalidPredictionsError without a common row.
    """
    wanted = Wanted(probs=probs, label=label, **options)  # type: ignore[arg-type]
    with table_of(source, wanted) as (table, wanted), naming(table.name):
        parts = {part: part for part in split(probs)}
        if len(parts) == 1:  # a pattern of names, of one forecaster each
            parts = {term.name: term.sql for term in terms_of(probs, table.schema)}
        labels = split(label) if isinstance(label, str) and wanted.label == label else []
        if len(labels) < 2 and len(parts) > 1:
            _refuse_outcome_of_another(table, wanted, [*parts.values()])
        each = labels if len(labels) == len(parts) > 1 else [wanted.label] * len(parts)
        read, refused = {}, dict[str, InvalidPredictionsError]()
        for k, (name, part) in enumerate(parts.items()):
            try:
                read[name] = read_table(table, replace(wanted, probs=part, label=each[k]))
            except InvalidPredictionsError as error:
                refused[part] = error
        if refused:
            raise _of_all_forecasters(refused, [*parts.values()])
    common = reduce(np.intersect1d, [rows for _, rows in read.values()])
    if common.size == 0:
        raise InvalidPredictionsError("there is no row for which all forecasters have a forecast")
    note = f"compared on the {several(len(common), 'row')} with all predictions"
    return {
        name: replace(data, notes=(*data.notes, note)).take(np.isin(rows, common))
        for name, (data, rows) in read.items()
    }


def _of_all_forecasters(
    refused: Mapping[str, InvalidPredictionsError], parts: Sequence[str]
) -> InvalidPredictionsError:
    """Return the first error of several forecasters, with readings that name all of them.

    It is to be raised. ``refused`` maps expressions of forecasters that could not be read to their
    errors, and ``parts`` are the expressions of all. A reading that sets ``probs``, such as to
    ``a / 100``, gets the expression of the same reading for every other forecaster that was
    refused, and leaves the others as they are.
    """
    (first, error), *_ = refused.items()
    readings = []
    for place, reading in enumerate(error.readings):
        if "probs" not in reading.options:
            readings.append(reading)
            continue
        each = []
        for part in parts:
            ways = refused[part].readings if part in refused else ()
            same = ways[place].options if place < len(ways) else {}
            each.append(str(reading.options["probs"] if part == first else same.get("probs", part)))
        readings.append(replace(reading, options={**reading.options, "probs": ", ".join(each)}))
    error.readings = tuple(readings)
    return error


def column_of_models(source: object) -> str:
    """Return the column, quoted, that is called after models and has 2 to 50 values, or "".

    ``source`` is a path or a table, of which the first 10 000 rows are looked at. "" also for
    several such columns, and if every row has a value of its own.
    """
    try:
        with table_of(source, Wanted()) as (table, _):
            head = table.frame.head(10_000).collect()
    except InvalidPredictionsError:
        return ""
    named = [name for name in head.columns if key(name) in NEVER_OUTCOMES]
    sizes = {name: head[name].drop_nulls().n_unique() for name in named}
    found = [n for n, k in sizes.items() if 2 <= k <= MOST_MODELS and 2 * k <= head.height]
    return quoted(found[0]) if len(found) == 1 else ""


def _refuse_outcome_of_another(table: Table, wanted: Wanted, parts: Sequence[str]) -> None:
    """Raise an error for one outcome of several models if each seems to have an outcome of its own.

    It has one where a column of two values shares a word of its name with this model's predictions
    only. ``parts`` are the expressions of the models' predictions in ``table``, the open table
    (rows as a lazy polars frame); ``wanted`` has the options of :func:`read_predictions`. The error
    is InvalidPredictionsError without the option ``label``, else DoubtfulInputError, which
    ``as_is`` silences.
    """
    names = [" ".join(root for term in terms_of(part, table.schema) for root in term.roots)
             for part in parts]  # fmt: skip
    own = own_outcomes(table, names)
    if own is None:
        return
    said = wanted.label
    roots = [] if said is None else [r for t in terms_of(said, table.schema) for r in t.roots]
    if roots and not {*roots} & {*own}:
        return
    text = "each model has an outcome of its own: " + ", ".join(
        f"{outcome} beside {part}" for part, outcome in zip(parts, own, strict=True)
    )
    labels = ", ".join(map(quoted, own))
    reading = Reading({"probs": ", ".join(parts), "label": labels})
    if said is None:
        raise InvalidPredictionsError(text, [reading])
    if not wanted.as_is:
        raise DoubtfulInputError(f"{text}; {said} is that of one", [reading])


def own_outcomes(table: Table, models: Sequence[str]) -> list[str] | None:
    """Return the name of the outcome column of each of the ``models``, or None if one has none.

    ``models`` are the columns of predictions of ``table``, the open table (rows as a lazy polars
    frame), one for each model. A column of outcomes has two values, such as whether an answer is
    right, and shares a word of its name with this model's column only.
    """
    words = [{*key(name).split("_")} for name in models]
    alone = [w.difference(*words[:k], *words[k + 1 :]) for k, w in enumerate(words)]
    head = table.frame.head(10_000).collect()
    taken = " ".join(models).split()
    two = [n for n in head.columns if n not in taken and head[n].drop_nulls().n_unique() == 2]
    found = [[n for n in two if {*key(n).split("_")} & mine] for mine in alone]
    if any(len(one) != 1 for one in found) or len({one[0] for one in found}) < len(models):
        return None
    return [one[0] for one in found]


def read_each(
    source: object,
    models: str,
    probs: Expressions | None = None,
    label: Expressions | None = None,
    *,
    ids: str | None = None,
    where: str | None = None,
    drop_missing: bool | float = False,
    **options: object,
) -> dict[str, Predictions]:
    """Read several models from one table, in which a column says whose prediction a row is.

    ``source`` is a path or a table, and ``models`` is that column; all other arguments are as for
    :func:`read_predictions`. The result maps the name of each model, a value of that column, to its
    predictions. Rows of the models are matched by ``ids``, or by a column that names the rows of
    each model and has the same values for all. It raises the errors of :func:`read_predictions`,
    and InvalidPredictionsError unless there are 2 to 50 models.
    """
    wanted = Wanted(probs=probs, label=label, ids=ids, where=where, **options)  # type: ignore[arg-type]
    wanted = replace(wanted, drop_missing=drop_missing)
    with table_of(source, wanted) as (table, wanted), naming(table.name):
        column = terms_of(models, table.schema)[0].column
        if column is None:
            raise InvalidPredictionsError(f"{models} is no column: name one, as in --models model")
        values = table.frame.select(column).collect()[column]
        listed = values.drop_nulls().unique(maintain_order=True)
        if not 2 <= len(listed) <= MOST_MODELS:
            raise InvalidPredictionsError(
                f"{column} has {several(len(listed), 'value')}: a column of models has 2 to "
                f"{MOST_MODELS}"
            )
        each = {str(v): f"{quoted(column)} = {literal(v, listed)}" for v in listed.to_list()}
        wanted = replace(wanted, ids=ids or _ids_within(table, column, each))
        data = {}
        for name, condition in each.items():
            kept = condition if where is None else f"({where}) AND {condition}"
            data[name] = read_table(table, replace(wanted, where=kept))[0]
    return data


def own_outcomes_in_rows(data: Mapping[str, Predictions], as_is: bool = False) -> bool:
    """Return whether models in rows have outcomes of their own: labels of one id differ.

    ``data`` are the predictions by name of the model. If labels differ, the result is True if they
    say whether an answer is right, or the user says so by ``as_is``. Otherwise DoubtfulInputError,
    as a label may be wrong. Without ids it is False.
    """
    rows = [*data.values()]
    if any(d.ids is None for d in rows) or agree(rows) is not False:
        return False
    if as_is or all(d.classes == RIGHT for d in rows):
        return True
    raise DoubtfulInputError(
        f"labels of one id differ between {first_of([*data])}: each model has outcomes of its own, "
        "such as whether its answer is right, or a label is wrong",
        [Reading({"as_is": True}, "each model has outcomes of its own")],
    )


def _ids_within(table: Table, column: str, each: Mapping[str, str]) -> str | None:
    """Return the column, quoted, that names the rows of every model with the same values, or None.

    ``table`` is the open table (rows as a lazy polars frame), ``column`` the column that names its
    models, and ``each`` maps models to conditions that select their rows.
    """
    import polars as pl

    frame = table.frame.collect()
    for name in (n for n in frame.columns if n != column and not n.startswith("::")):
        words = words_of(frame[name])
        if words is None or words.null_count():
            continue
        pair = pl.DataFrame({"model": frame[column], "id": words})
        sizes = pair.group_by("id").agg(pl.len(), pl.col("model").n_unique().alias("k"))
        if sizes["len"].min() == sizes["len"].max() == sizes["k"].min() == len(each):
            return quoted(name)
    return None


# ------------------------------------------------------------------------------
# Files of several models: the rows that they share.


def common_rows(data: dict[str, Predictions]) -> dict[str, Predictions]:
    """Return the rows of models whose ids all of them have, with a note on how many.

    ``data`` are the predictions by name of the model; they are returned unchanged if one has no
    ids. InvalidPredictionsError if no id is common.
    """
    ids = {n: np.asarray(d.ids).astype(str) for n, d in data.items() if d.ids is not None}
    if len(ids) < len(data):
        return data
    common = reduce(np.intersect1d, ids.values())
    if all(len(common) == len(listed) for listed in ids.values()):
        return data
    if not common.size:
        raise InvalidPredictionsError(f"{first_of([*data])} have no ids in common")
    note = f"compared on the {several(len(common), 'row')} whose ids all files have"
    kept = {}
    for name, d in data.items():
        left = f"{note}, of {d.n} rows"
        kept[name] = replace(d.take(np.isin(ids[name], common)), notes=(*d.notes, left))
    return kept


def common_ids(sources: Sequence[object]) -> dict[str, int]:
    """Return columns that name rows in all tables, with the number of values that all have.

    ``sources`` are paths of files, or tables. The result maps names of columns to these numbers.
    The columns hold words or whole numbers, each once in a table, of which at least five are in
    all.
    """
    found = {}
    with ExitStack() as stack:
        tables = [stack.enter_context(table_of(s, Wanted()))[0] for s in sources]
        schemas = [table.schema for table in tables]
        for name in (n for n in schemas[0] if all(n in schema for schema in schemas)):
            words = [words_of(t.frame.select(name).collect()[name]) for t in tables]
            sets = [{*w.drop_nulls().to_list()} for w in words if w is not None]
            unique = [len(s) == len(w) for s, w in zip(sets, words, strict=False) if w is not None]
            if len(sets) == len(tables) and all(unique):
                shared = len(set.intersection(*sets))
                if shared >= FEWEST_SHARED:
                    found[name] = shared
    return found


def _doubled_id(names: Sequence[str], sources: Sequence[object]) -> str:
    """Return a clause about the first id that stands twice in one table and once in another.

    ``sources`` are paths of files, or tables, and ``names`` their names in the clause. "" if no
    shared column names the rows of one table and repeats in another.
    """
    with ExitStack() as stack:
        tables = [stack.enter_context(table_of(s, Wanted()))[0] for s in sources]
        schemas = [table.schema for table in tables]
        for name in (n for n in schemas[0] if all(n in schema for schema in schemas)):
            found = [words_of(t.frame.select(name).collect()[name]) for t in tables]
            words = [w.drop_nulls() for w in found if w is not None]
            sets = [{*w.to_list()} for w in words]
            single = [len(s) == len(w) for s, w in zip(sets, words, strict=True)]
            if len(sets) < len(tables) or all(single) or not any(single):
                continue
            if 2 * len(set.intersection(*sets)) < max(map(len, sets)):
                continue
            k = single.index(False)
            cells = words[k].filter(words[k].is_duplicated())
            return (
                f"{name} is {cells[0]!r} in {int((words[k] == cells[0]).sum())} rows of {names[k]} "
                f"({cells.n_unique()} such ids): keep one row of each, and match by {name}"
            )
    return ""


def agree(rows: Sequence[Predictions], n_columns: int = 1) -> bool | None:
    """Return whether rows of the same ids have the same labels, beyond chance.

    ``rows`` are the predictions of each model, with ids. True if all labels of common ids are
    equal. False if labels of one id differ. None if they could agree by chance: labels drawn at the
    frequencies of the first model would agree with a probability above 1 / (1000 columns), with
    ``n_columns`` columns that could be ids.
    """
    labels = [dict(zip(np.asarray(d.ids).astype(str), d.labels, strict=True)) for d in rows]
    common = set.intersection(*({*one} for one in labels))
    if any(labels[0][i] != one[i] for one in labels[1:] for i in common):
        return False
    share = np.bincount(rows[0].labels) / rows[0].n
    chance = len(common) * float(np.log((share**2).sum()))
    return True if chance <= -LIKELIER - np.log(n_columns) else None


def refuse_shared(
    sources: Sequence[object], read: Callable[[object, str | None], Predictions]
) -> None:
    """Raise DoubtfulInputError for two files, said to hold other observations, that share rows.

    They seem to if rows of one id agree in their labels, or all labels are the same in the same
    order. ``sources`` are the two files or tables, and ``read(source, ids)`` returns the
    predictions of one, with the column ``ids`` as ids, None for none.
    """
    columns = common_ids(sources)
    for column, shared in columns.items():
        rows = [read(source, quoted(column)) for source in sources]
        if agree(rows, len(columns)):
            part = any(shared < d.n for d in rows)
            options: dict[str, object] = {"unpaired": None, "ids": quoted(column)}
            options |= {"drop_missing": True} if part else {}
            raise DoubtfulInputError(
                f"{several(shared, 'value')} of {column} are in both files, each with the same "
                "outcome in both: these rows are no independent observations",
                [Reading(options, f"rows of one {column} are the same observation")],
            )
    rows = [read(source, None) for source in sources]
    if same_outcomes(rows[0].labels, rows[1].labels):
        raise DoubtfulInputError(
            f"both files have {rows[0].n} rows with the same outcomes in the same order, as two "
            "models of the same observations have",
            [Reading({"unpaired": None}, "they are the same observations in the same order")],
        )


def refuse_other_rows(
    names: Sequence[str], sources: Sequence[object], data: Sequence[Predictions],
    read: Callable[[object, str | None], Predictions],
) -> None:  # fmt: skip
    """Raise InvalidPredictionsError for models of different rows; it has readings that match by id.

    ``names``, ``sources`` and ``data`` are names, files or tables, and predictions of the models;
    ``read(source, ids)`` returns the predictions of a source with the column ``ids`` as ids. The
    readings are options of the command ``compare``. Models with equal labels in the same order
    pass.
    """
    if len({d.n for d in data}) == 1 and all(
        np.array_equal(data[0].labels, d.labels) for d in data[1:]
    ):
        return
    sizes = " and ".join(f"{several(d.n, 'row')} in {n}" for n, d in zip(names, data, strict=True))
    others = Reading({"unpaired": True}, "the files hold different observations")
    unpaired = [others] * (len(sources) == 2)
    columns = common_ids(sources)
    for column, shared in columns.items():
        rows = [read(source, quoted(column)) for source in sources]
        same = agree(rows, len(columns))
        if same is not False:
            options = {"ids": quoted(column), "drop_missing": True}
            when = "" if same else f"rows of one {column} are the same observation"
            raise InvalidPredictionsError(
                f"there are {sizes}, and {several(shared, 'value')} of {column} in all: a paired "
                "comparison needs the same observations",
                [Reading(options, when), *([] if same else unpaired)],
            )
    counts = {tuple(np.bincount(d.labels).tolist()) for d in data}
    if len(counts) > 1:  # else they may be one set in two orders, as the comparison says
        reason = "no column names rows that all of them have"
        if doubled := _doubled_id(names, sources):
            reason = doubled
        if columns:
            reason = f"rows of one {' or '.join(columns)} have different outcomes"
        raise InvalidPredictionsError(
            f"there are {sizes}, and {reason}: a paired comparison needs the same observations in "
            "the same order, or a column that names them",
            unpaired or [Reading({"ids": "COLUMN"})],
        )
