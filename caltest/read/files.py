"""Predictions from files and tables: one reading for all of them.

:func:`read_predictions` is public; :func:`read_wanted` and :func:`read_table` do the same for
requests of the command line and open tables, :func:`pooled` for several files of one model.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import combinations
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray, one_of
from caltest._base.saving import TELLING_BYTES, content_mark
from caltest._base.written import as_doubt, several
from caltest.data import Predictions
from caltest.data.doubts import of_bets, without_rounded
from caltest.data.facts import as_times
from caltest.data.followup import Recorded
from caltest.errors import (
    DoubtfulInputError,
    InvalidPredictionsError,
    Reading,
    StatisticError,
)
from caltest.read.contract import Chosen, UnclearColumnsError, Wanted, choose
from caltest.read.expressions import Term, described, key, listing, quoted, terms_of, words_of
from caltest.read.formats import FORMATS, Table, flat, open_table, retyped, unreadable
from caltest.read.logs import of_repeated_samples, read_log
from caltest.read.questioning import majority_note, questioned
from caltest.read.suggestions import (
    answer_readings,
    followup_readings,
    label_readings,
    option_readings,
    suggested,
)
from caltest.read.tables import FILE_COLUMN, cells_of, condition
from caltest.read.values import Complete, EvaluatedCells

if TYPE_CHECKING:
    import polars as pl

#: One column or expression, or several, in SQL over the columns of the table.
Expressions = str | Sequence[str]


def read_predictions(
    source: object,
    probs: Expressions | None = None,
    label: Expressions | None = None,
    *,
    where: str | None = None,
    predicted_label: str | None = None,
    event: str | None = None,
    competing: str | None = None,
    time: str | None = None,
    horizon: float | str | None = None,
    strata: str | None = None,
    by: Expressions | None = None,
    clusters: Expressions | None = None,
    weights: str | None = None,
    folds: str | None = None,
    ids: str | None = None,
    items: str | None = None,
    votes: Expressions | None = None,
    features: Expressions | None = None,
    classes: Sequence[object] | None = None,
    from_logits: bool = False,
    renormalise: bool = False,
    drop_missing: bool | float = False,
    rounded: bool | Literal["auto"] = "auto",
    multilabel: bool = False,
    ordered: bool = False,
    per_character: bool = False,
    format: str | None = None,
    sheet: str | None = None,
    as_is: bool = False,
    unit: float | None = None,
    recorded: Recorded = "exact",
    decimal: Literal[".", ","] | None = None,
) -> Predictions:
    """Read probabilities and labels from files or a table; the first note says how.

    A column is used if an option names it, or if its name is on the list of
    :func:`caltest.read.contract.contract_text` (labels ``y``, ``label``, …; probabilities ``p``,
    ``prob``, …; families ``p_A``, ``p_B``, …). Options take names of columns or expressions in SQL
    over them, such as ``"1 - surv"``, ``"status = 2"`` or ``"age >= 65"``; names with blanks, or
    that are words of SQL, stand in double quotes.

    Parameters
    ----------
    source : path, pattern, sequence of these, or table
        Files of the formats that ``docs/files.md`` lists, known by ending or first bytes, also in
        ``.gz``, ``.zst`` or ``.zip``; logs of lm-evaluation-harness, Inspect and HELM; ``-`` is the
        standard input. Several files are read as one. Tables of pandas, polars, Arrow, duckdb and
        all others that offer ``__arrow_c_stream__``, and mappings of names to columns.
    probs : str or sequence of str, optional
        One expression, the probability of the event; or one for each class, in order; or a pattern
        of names such as ``"p_*"``.
    label : str or sequence of str, optional
        The outcome: 0/1, booleans, or for several columns of probabilities the class. A second
        file, whose rows are matched by a column of both, or are in the same order.
    where : str, optional
        Keep the rows where this is true; rows where it is unknown (NULL) are left out and counted.
    predicted_label : str, optional
        The predicted class, where ``probs`` is the probability that it is right.
    event, competing, time, horizon, strata : str or float, optional
        Follow-up in the place of labels, see :class:`Followup`: ``event`` is true where the event
        was seen, ``competing`` where another end was, all other rows are censored at ``time``;
        ``horizon`` is a number or a column. Without ``event``, ``horizon`` is how many steps ahead
        forecasts are, as in :meth:`Predictions.of`.
    unit, recorded : float and {"exact", "floor", "ceil"}, default 1.0 and "exact"
        Unit of ``time`` and how it was recorded: in completed units (``"floor"``) or in units
        begun (``"ceil"``); see :class:`Followup`.
    by, clusters : str or sequence of str, optional
        Subgroups, of which several columns are crossed, and one or two columns of clusters.
    weights, folds, ids, items, features : str or sequence of str, optional
        Other facts of the rows, see :meth:`Predictions.of`; ``features="*"`` are all columns that
        are not used otherwise. ``items`` names the item of which a row is one vote.
    votes : str or sequence of str, optional
        In the place of a label, how many votes a row, then an item, has for each class: one column
        a class, matched by the ends of names (``votes_A`` to ``p_A``) or in the order of the
        classes; of two classes label 0 and label 1. See :meth:`Predictions.of_votes`.
    classes : sequence or str, optional
        Labels in the order of the columns of ``probs``, unless the columns are named by them; or
        one text such as ``"no,yes"`` or ``"0,…,9"``.
    from_logits, renormalise, ordered : bool, default False
        As in :meth:`Predictions.of`.
    drop_missing : bool or float, default False
        Leave out rows without a prediction or outcome; a number is the largest share of such rows.
    rounded : bool or "auto", default "auto"
        As in :meth:`Predictions.of`.
    multilabel : bool, default False
        Whether rows have several labels: pairs of columns ``p_a``, ``y_a``, see
        :meth:`Predictions.of_labels`.
    per_character : bool, default False
        Divide the log-likelihoods of lm-evaluation-harness by the characters of the options.
    format, sheet : str, optional
        Format of the file if its name does not say it, and the sheet of an Excel file.
    decimal : {".", ","}, optional
        Decimal mark of a text file; the other one marks thousands. By default the numbers in its
        first rows tell, and columns such as 950 and 1.200, which can be read in two ways, are asked
        about.
    as_is : bool, default False
        Read the input as it was asked for, also where its data say that it is meant otherwise; a
        note says so.

    Returns
    -------
    Predictions
        ``notes[0]`` says which columns were read as what, of how many rows.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidPredictionsError
        When the file cannot be read, no column or several fit, a cell is missing, or values are not
        predictions; ``readings`` are the readings that are likely.
    DoubtfulInputError
        When the data say that the input is meant otherwise (docs/guards.md), without ``as_is``.
    ImportError
        Without what ``caltest[excel]`` adds.

    Notes
    -----
    One pass over the file, of the columns that are used, besides one for the widths of lines.
    """
    arguments = {name: value for name, value in locals().items() if name != "source"}
    return read_wanted(source, Wanted(**arguments))


def read_wanted(source: object, wanted: Wanted) -> Predictions:
    """Read the predictions of files or of a table for options collected in ``wanted``.

    ``source`` is a path, a pattern, several of them, or a table in memory. ``wanted`` has one field
    for each option of :func:`read_predictions`, whose results and errors these are; the command
    line calls this.
    """
    with table_of(source, wanted) as (table, wanted), naming(table.name):
        return read_table(table, wanted, in_memory=is_in_memory(source))[0]


def read_table(
    table: Table, wanted: Wanted, *, in_memory: bool = False
) -> tuple[Predictions, IntArray]:
    """Return (predictions, places): the predictions of an open table, and their rows in it, (n,).

    ``table`` holds the rows as a lazy polars frame, and ``wanted`` has the options of
    :func:`read_predictions`, whose errors these are. Places count from 0; in messages rows are
    counted from 0 if the table is ``in_memory``, else from 1.
    """
    table, wanted = of_log(table, wanted)
    chosen = chosen_of(table, wanted)
    whole = cells_of(table, chosen, wanted, frame_rows=in_memory)
    whole = replace(whole, parts=table.parts)
    complete = _complete_or_refused(whole, table)
    cells = complete.cells
    try:
        data = cells.predictions()
    except InvalidPredictionsError as error:
        raise _in_the_way([error], cells, table) from None
    asked = () if table.log else questioned(table, chosen, wanted, whole, complete, data)
    rows = cells.rows if data.places is None else cells.rows[data.places]
    if not table.log and not table.parts and (note := majority_note(table, chosen, data, rows)):
        asked = (*asked, as_doubt(note))
    head = read_note(table, chosen, wanted, whole, complete)
    notes = (head, *table.notes, *complete.notes, *asked, *data.notes)
    data = replace(data, notes=notes, unused=searchable(table, chosen), places=rows)
    if table.parts and not wanted.as_is and "where" not in chosen.terms:
        refuse_same_labels(data, table.parts)
    kept = without_rounded(data, wanted.rounded)
    return kept, rows if kept.places is None else kept.places


def _complete_or_refused(whole: EvaluatedCells, table: Table) -> Complete:
    """Return the rows without missing values, and how many were left out, of rows that were read.

    ``whole`` are the evaluated cells (in a frame with columns such as ``label:0``) of all rows of
    ``table``, the open table (rows as a lazy polars frame). InvalidPredictionsError if missing
    values are refused; it also names other problems that would prevent the reading.
    """
    try:
        return whole.complete()
    except InvalidPredictionsError as gaps:
        drop = replace(whole, wanted=replace(whole.wanted, drop_missing=True))
        try:
            rest = drop.complete().cells
        except InvalidPredictionsError:
            raise gaps from None
        raise _in_the_way([gaps], rest, table) from None


def _in_the_way(
    errors: list[InvalidPredictionsError], cells: EvaluatedCells, table: Table
) -> InvalidPredictionsError:
    """Return one error with all problems that prevent a reading, and readings that avoid them.

    ``errors`` are the problems found so far, and ``cells`` the evaluated cells (in a frame with
    columns such as ``label:0``) of the rows without missing values, which are searched for more
    problems; ``table`` is the open table (rows as a lazy polars frame), where other columns are
    looked for. The error's ``readings`` have options to change, which the command line prints as
    commands. A first error that is a DoubtfulInputError is returned alone.
    """
    if cells.wanted.multilabel or isinstance(errors[0], DoubtfulInputError):
        return errors[0]
    known = {str(error) for error in errors}
    errors = [*errors, *(e for e in cells.obstacles() if str(e) not in known)]
    if len(errors) == 1 and (options := option_readings(cells, table)):
        return type(errors[0])(f"{errors[0]}; the options of each row say it", options)
    more = (*label_readings(cells, table), *followup_readings(cells, table))
    more = (*more, *answer_readings(cells, table))
    errors[-1].readings = (*more, *errors[-1].readings)
    return together(errors)


def together(errors: Sequence[InvalidPredictionsError]) -> InvalidPredictionsError:
    """Return one InvalidPredictionsError for several problems, to be raised.

    It joins the texts of ``errors``. Its ``readings`` combine one alternative reading of each
    error, in all ways, with the options and conditions of all. The first error alone is returned if
    readings set the same option, or there are more than eight combinations.
    """
    if len(errors) == 1:
        return errors[0]
    readings: list[Reading] = [Reading()]
    for error in errors:
        pairs = [(a, b) for a in readings for b in error.readings]
        if any({*a.options} & {*b.options} for a, b in pairs) or len(pairs) > MOST_READINGS:
            return errors[0]
        readings = [
            Reading(
                {**a.options, **b.options},
                " and ".join(filter(None, (a.when, b.when))),
                verb=a.verb or b.verb,
            )
            for a, b in pairs
        ]
    return InvalidPredictionsError("; ".join(map(str, errors)), readings)


#: Rows at the beginning of a table that suggestions look at.
ROWS_OF_HEAD = 10_000


#: Readings of one refusal, at most.
MOST_READINGS = 8


def of_log(table: Table, wanted: Wanted) -> tuple[Table, Wanted]:
    """Return the log of an evaluation harness with what its reading needs, as (table, wanted).

    ``table`` is the open table (rows as a lazy polars frame) of the log, and ``wanted`` has the
    options of :func:`read_predictions`. The option ``ids`` is set to the log's column of ids. If
    samples are repeated, rows of one sample become votes on it (option ``items``), or a cluster
    (``clusters``), unless ``wanted`` has one of both; the table gets a note on it. Tables that are
    no log are returned unchanged. InvalidPredictionsError for a log with the option
    ``from_logits``.
    """
    if not table.log:
        return table, wanted
    if wanted.from_logits:
        raise InvalidPredictionsError(
            "the log has probabilities, not logits", [Reading({"from_logits": None})]
        )
    ids = "id" if wanted.ids is None and "id" in table.schema else wanted.ids
    wanted = replace(wanted, ids=ids)
    if wanted.clusters or wanted.items:
        return table, wanted
    option, note = of_repeated_samples(table, wanted)
    if option is None:
        return table, wanted
    asked: dict[str, Any] = {option: "sample"}
    return replace(table, notes=(*table.notes, note)), replace(wanted, **asked)


def chosen_of(table: Table, wanted: Wanted) -> Chosen:
    """Return the columns and expressions chosen for an open table, by role such as "label".

    They come from the options of :func:`read_predictions` in ``wanted``, or from the columns'
    names. InvalidPredictionsError where none or several fit a role; it lists the columns with their
    values, and has readings (options to set) that are likely.
    """
    schema = {name: kind for name, kind in table.schema.items() if name != FILE_COLUMN}
    try:
        chosen = choose(schema, wanted)
    except UnclearColumnsError as error:
        import polars as pl

        head = table.frame.head(ROWS_OF_HEAD).collect()
        cells = described(head.select(pl.exclude(FILE_COLUMN)))
        readings = suggested(head, wanted, error.lacking)
        text = "; ".join(filter(None, (f"{error}; the columns are {cells}", table.left_out)))
        raise InvalidPredictionsError(text, readings) from None
    except InvalidPredictionsError as error:
        if not table.left_out:
            raise
        raise InvalidPredictionsError(f"{error}; {table.left_out}", error.readings) from None
    taken = {
        r for o in ("probs", "label", "event") for t in chosen.terms.get(o, ()) for r in t.roots
    }
    if known := [t.name for t in chosen.terms.get("features", ()) if {*t.roots} & taken]:
        raise InvalidPredictionsError(
            f"{known[0]} is the label or a prediction, which cannot be a feature of segments"
        )
    if wanted.features in ("*", ["*"]):
        free = [n for n in schema if n not in chosen.used]
        if not free:
            raise InvalidPredictionsError("no column is left that could be a feature")
        chosen = replace(chosen, terms={**chosen.terms, "features": terms_of(free, schema)})
    if table.unclear and not wanted.as_is:
        refuse_unclear_numbers(table, chosen.terms)
    return chosen


#: Options whose columns are numbers; options in which only the order or the ratios of numbers
#: count; those that are whole numbers; and those of at most 1, or percents.
NUMERIC = frozenset({"probs", "weights", "time", "horizon", "votes", "features", "n", "events"})
NUMERIC |= {"probability"}
OF_RATIOS, COUNTED = frozenset({"weights", "features"}), frozenset({"n", "events"})
FRACTIONS = frozenset({"probs", "probability"})


def refuse_unclear_numbers(table: Table, terms: Mapping[str, Sequence[Term]]) -> None:
    """Raise DoubtfulInputError for a column whose numbers can be read with or without thousands.

    ``terms`` has the expressions by option. A column is asked about where it stands for numbers,
    and the two readings, such as 1.2 and 1200, lead to other results.
    """
    for option, listed in terms.items():
        for name, mark in table.unclear.items():
            terms_with = [term for term in listed if name in term.roots]
            plain = all(term.column is not None for term in terms_with)
            if not terms_with or (plain and option not in NUMERIC):
                continue
            of_ratios = plain and option in OF_RATIOS
            if mark.everywhere and mark.decimal and (of_ratios or option in FRACTIONS):
                continue
            cell = mark.cell
            grouped, fraction = cell.replace(mark.mark, ""), cell.replace(",", ".")
            other = "," if mark.mark == "." else "."
            whole = option in COUNTED and float(fraction) % 1 != 0.0
            readings = [Reading({"decimal": other}, f"{cell} in {name} is {grouped}" * (not whole))]
            if mark.decimal and not whole:
                small = f"{float(fraction):g}"
                readings.append(Reading({"decimal": mark.mark}, f"{cell} in {name} is {small}"))
            raise DoubtfulInputError(
                f"{name} has {cell}, where {mark.mark!r} may mark decimals or thousands: name the "
                "decimal mark, "
                f"decimal={other!r} (--decimal {other}) or decimal={mark.mark!r} "
                f"(--decimal {mark.mark})",
                readings,
            )


def read_note(
    table: Table, chosen: Chosen, wanted: Wanted, whole: EvaluatedCells, complete: Any
) -> str:
    """Return the note that says which columns were read in which role, and how many rows.

    ``table`` is the open table (rows as a lazy polars frame), ``chosen`` has the expressions by
    role, such as "label", and ``wanted`` the options of :func:`read_predictions`. ``whole`` are the
    evaluated cells (in a frame with columns such as ``label:0``) of all rows; ``complete`` has the
    cells of the rows without missing values. The note is a sentence without a full stop, such as
    "read 2 rows, p as the probability of the event, label y".
    """
    n = complete.cells.frame.height
    parts = [f"read {several(n, 'row')}"]
    if wanted.where is not None:
        import polars as pl

        kept = condition(chosen)
        total, unknown = (
            table.frame.select(pl.len(), kept.is_null().sum().alias("u")).collect().row(0)
        )
        parts = [f"read {n} of {several(total, 'row')}, those where {chosen.sql('where')}"]
        parts[0] += f" ({several(unknown, 'row')} where it is unknown)" * (unknown > 0)
    if table.parts:
        parts[0] += f" of {len(table.parts)} files"
    columns = chosen.terms["probs"]
    shown = shortened([term.name for term in columns])
    if "event" in chosen.terms:
        parts.append(f"risk {shown}, event {chosen.name('event')}")
        if "competing" in chosen.terms:
            parts.append(f"competing event {chosen.name('competing')}")
        horizon = chosen.name("horizon") if "horizon" in chosen.terms else str(wanted.horizon)
        parts.append(f"times from {chosen.name('time')}, horizon {horizon}")
    else:
        option = "votes" if "votes" in chosen.terms else "label"
        label = shortened([term.name for term in chosen.terms[option]])
        if option == "votes":
            several_classes = f"{len(columns)} classes from " * (len(columns) > 1)
            parts.append(f"{several_classes}{shown}, votes {label}")
        elif "predicted_label" in chosen.terms:
            answer = chosen.name("predicted_label")
            parts.append(
                f"{shown} as the probability that {answer} equals {label} (without regard to case)"
            )
        elif len(columns) > 1:
            parts.append(f"{len(columns)} classes from {shown}, label {label}")
        else:
            right = "that the answer is right" if chosen.about_answers else "of the event"
            parts.append(f"{shown} as the probability {right}, label {label}")
    parts += [
        f"{'subgroups' if option == 'by' else option} from "
        f"{shortened([term.name for term in chosen.terms[option]])}"
        for option in ("by", "clusters", "weights", "folds", "ids", "items", "strata", "features")
        if option in chosen.terms
    ]
    if "time" in chosen.terms and "event" not in chosen.terms:
        parts.append(f"time from {chosen.name('time')}")
    unused = [name for name in table.schema if name not in chosen.used and name != FILE_COLUMN]
    parts += [f"not used: {shortened(unused, 12)}"] * bool(unused)
    return ", ".join(parts)


def searchable(table: Table, chosen: Chosen) -> tuple[str, ...]:
    """Return the names of unused columns that could be features, without identifiers of rows.

    ``table`` is the open table (rows as a lazy polars frame), and ``chosen`` has the expressions
    that are used, by role. () for logs, for several files, and where the first 1000 rows cannot be
    read.
    """
    if table.log or table.parts:
        return ()
    names = [n for n, kind in table.schema.items() if n not in chosen.used and not kind.is_nested()]
    if not names:
        return ()
    with suppress(*unreadable()):
        head = table.frame.select(names).head(1000).collect()
        several = {name: head[name].n_unique() for name in names}
        alike = (n for n in names if head[n].dtype.is_float() or several[n] < max(head.height, 50))
        return tuple(name for name in alike if several[name] > 1)
    return ()


def shortened(names: Sequence[str], most: int = 6) -> str:
    """Return column names joined by commas.

    If more than ``most``, the first ``most`` − 2 are followed by "…" and the last.
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 2])}, …, {names[-1]}"


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Context manager that puts the name of a file in front of InvalidPredictionsErrors.

    With the name "" errors pass unchanged. It yields nothing.
    """
    try:
        yield
    except InvalidPredictionsError as error:
        raise (error.of_file(name) if name else error) from None


# ------------------------------------------------------------------------------
# Opening: files, several files, tables in memory, and labels in a file of their own.


def is_in_memory(source: object) -> bool:
    """Return whether a source is a table in memory, as opposed to a path or a sequence of paths."""
    paths = isinstance(source, (str, PathLike))
    several_paths = isinstance(source, Sequence) and all(
        isinstance(part, (str, PathLike)) for part in source
    )
    return not (paths or several_paths)


@contextmanager
def table_of(source: object, wanted: Wanted) -> Iterator[tuple[Table, Wanted]]:
    """Context manager that opens files, or a table in memory, as one table.

    ``source`` is a path, a pattern, several of them, or a table. It yields (table, wanted): the
    open table, a lazy polars frame with its origin, and the options of :func:`read_predictions`
    adapted to it. If ``wanted.label`` is a second file, its column of labels is added to the table.
    FileNotFoundError and InvalidPredictionsError for files that cannot be read; StatisticError for
    files that are named twice or are copies, and for an unknown format.
    """
    one_of("format", wanted.format, (None, *FORMATS))
    one_of("decimal", wanted.decimal, (None, ".", ","))
    with ExitStack() as stack:
        if is_in_memory(source):
            table = Table("", table_in_memory(source).lazy())
            table = flat(table)
        else:
            parts = parts_of(source)
            opened = [stack.enter_context(opened_part(part, wanted)) for part in parts]
            if len(parts) > 1:
                refuse_copies(parts)
            table = opened[0] if len(opened) == 1 else pooled(opened)
        label = wanted.label
        one = isinstance(label, (str, PathLike)) and str(label) not in table.schema
        if one and Path(str(label)).is_file():
            other = stack.enter_context(opened_part(Path(str(label)), Wanted()))
            with naming(table.name):
                said = label.label if isinstance(label, LabelFile) else None
                table = with_labels(table, other, said)
            wanted = replace(wanted, label=quoted(LABEL_OF_FILE))
        yield table, wanted


@contextmanager
def opened_part(part: Path, wanted: Wanted) -> Iterator[Table]:
    """Context manager that opens one file as a table, also the log of an evaluation harness.

    It yields the open table, a lazy polars frame with its origin. ``wanted`` has the options of
    :func:`read_predictions`, of which ``format``, ``sheet`` and those for logs count.
    FileNotFoundError and InvalidPredictionsError for a file that cannot be read.
    """
    with open_table(part, wanted.format, wanted.sheet, wanted.decimal) as table:
        if table.log:
            with naming(table.name):
                table = read_log(table, wanted)
        if wanted.per_character and table.log != "lm-eval":
            raise InvalidPredictionsError(
                f"{table.name}: characters of options are in samples of lm-evaluation-harness",
                [Reading({"per_character": None})],
            )
        yield table


def table_in_memory(source: Any) -> pl.DataFrame:
    """Return a table of pandas, polars, Arrow, duckdb and others as a polars frame.

    An index of pandas becomes columns if it has names. TypeError for a ``source`` that is no table;
    InvalidPredictionsError for two columns of one name.
    """
    import polars as pl

    from caltest._base.arrays import can, opened

    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pl.DataFrame):
        return source
    source = opened(source, "the table")
    if isinstance(source, dict) or (hasattr(source, "keys") and not hasattr(source, "columns")):
        from caltest.read.formats import of_arrays

        columns = {str(name): source[name] for name in source}
        return of_arrays({name: _cells(column, name) for name, column in columns.items()})
    names = [str(name) for name in getattr(source, "columns", [])]
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidPredictionsError(f"two columns are called {twice!r}: rename one")
    if hasattr(source, "__arrow_c_stream__"):
        columns_of_source: Any = source
        if can(source, "rename") and any(not isinstance(n, str) for n in columns_of_source.columns):
            source = columns_of_source.rename(columns=str)
        with suppress(Exception):  # types that Arrow does not have are read as NumPy has them
            frame = pl.DataFrame(source)
            return frame.select([c for c in frame.columns if not c.startswith("__index_level_")])
        return pl.DataFrame({str(n): _cells(source[n], str(n)) for n in source.columns})
    raise TypeError(
        f"the source is a {type(source).__name__}, neither files nor a table: arrays are for "
        "Predictions.of(probs, labels)"
    )


def _cells(column: object, name: str) -> AnyArray:
    from caltest._base.arrays import as_column

    return as_column(column, name)


def parts_of(paths: object) -> list[Path]:
    """Return the files that paths and patterns such as "*.csv" name.

    ``paths`` is one path or pattern, or a sequence of them. Files of a pattern are in order of
    name. FileNotFoundError if one names no file, InvalidPredictionsError for an empty sequence,
    StatisticError for a file that is named twice, and TypeError for anything but paths.
    """
    if isinstance(paths, (str, PathLike)):
        paths = [paths]
    elif not (isinstance(paths, Sequence) and all(isinstance(p, (str, PathLike)) for p in paths)):
        raise TypeError(
            f"path is a {type(paths).__name__}, not the names of files: values in memory are for "
            "Predictions.of(probs, labels), tallies for Tallies.of or Tallies.from_dask"
        )
    if not paths:
        raise InvalidPredictionsError("paths is empty: name a file")
    parts: list[Path] = []
    for path in map(fspath, paths):
        pattern = bool(set("*?[") & set(path)) and not Path(path).exists()
        matches = sorted(glob.glob(path)) if pattern else [path]
        if not matches:
            raise FileNotFoundError(f"no file is like {path}")
        if path != "-" and not Path(matches[0]).exists():
            raise FileNotFoundError(f"there is no file {path}")
        parts += map(Path, matches)
    for i, part in enumerate(parts):
        if part in parts[:i]:
            raise StatisticError(f"{part} is named twice: each part counts once")
    return parts


def refuse_copies(parts: Sequence[Path]) -> None:
    """Raise StatisticError for a file that has the same content as another one.

    ``parts`` are the paths of the files, whose rows would count twice. Very small files are not
    compared, as they may be equal by chance.
    """
    by_size: dict[int, list[Path]] = {}
    for part in parts:
        by_size.setdefault(part.stat().st_size, []).append(part)
    for size, alike in by_size.items():
        if size < TELLING_BYTES or len(alike) < 2:
            continue
        by_content: dict[str, Path] = {}
        for part in alike:
            other = by_content.setdefault(content_mark(part), part)
            if other is not part:
                raise StatisticError(f"{part} is a copy of {other}: each part counts once")


def pooled(tables: Sequence[Table]) -> Table:
    """Return the rows of several tables as one table, with the columns that all of them have.

    ``tables`` are open tables, lazy polars frames with their origins. Rows follow each other in
    order; the result knows the name and number of rows of each table. A note lists the columns that
    are left out; InvalidPredictionsError if no column is common.
    """
    import polars as pl

    schemas = [table.schema for table in tables]
    names = [name for name in schemas[0] if all(name in schema for schema in schemas)]
    if not names:
        raise InvalidPredictionsError(
            f"{tables[0].name} and {tables[1].name} have no column in common: "
            f"{listing(schemas[0])}; {listing(schemas[1])}"
        )
    mixed = [n for n in names if len({_family_of(schema[n]) for schema in schemas}) > 1]
    if mixed:
        texts = [t for t, schema in zip(tables, schemas, strict=True) if t.text is not None]
        tables = [retyped(t, mixed) if t in texts else t for t in tables]
        schemas = [table.schema for table in tables]
    frames = []
    for place, (table, schema) in enumerate(zip(tables, schemas, strict=True)):
        text = [n for n in mixed if any(_family_of(s[n]) == "text" for s in schemas)]
        columns = [
            pl.col(n).cast(pl.String) if n in text and schema[n] != pl.String else pl.col(n)
            for n in names
        ]
        frames.append(table.frame.select([*columns, pl.lit(place).alias(FILE_COLUMN)]))
    heights = [frame.select(pl.len()).collect().item() for frame in frames]
    sizes = tuple((table.name, n) for table, n in zip(tables, heights, strict=True))
    lacking = {n for schema in schemas for n in schema} - {*names}
    notes = [note for table in tables for note in table.notes]
    if lacking:
        notes.append(f"columns that not all files have are left out: {shortened(sorted(lacking))}")
    frame = pl.concat(frames, how="vertical_relaxed")
    unclear = {n: mark for table in tables for n, mark in table.unclear.items() if n in names}
    log = tables[0].log if len({table.log for table in tables}) == 1 else ""
    notes = [*dict.fromkeys(notes)]
    return Table("", frame, tuple(notes), log=log, parts=sizes, unclear=unclear)


def _family_of(kind: Any) -> str:
    """Return "number", "text", or the name of another polars type.

    Columns of several files can be joined if it is the same for all of them.
    """
    return "number" if kind.is_numeric() else "text" if str(kind) == "String" else str(kind)


#: Logarithm of the chance below which equal labels in one order are no chance.
ORDER_SURPRISE = float(np.log(1e-6))


def refuse_same_labels(data: Predictions, sizes: Sequence[tuple[str, int]]) -> None:
    """Raise DoubtfulInputError for files that have the same labels and other probabilities.

    They seem to be several models on the same rows. ``data`` are the predictions of all files, one
    after the other, and ``sizes`` are (name, number of rows) of the files. Nothing is raised if
    rows were left out, or if labels could agree by chance (probability above 1e-6).
    """
    if data.places is None or data.n != sum(size for _, size in sizes):
        return
    ends = np.cumsum([size for _, size in sizes])
    rows = [np.arange(end - size, end) for end, (_, size) in zip(ends, sizes, strict=True)]
    for (a, first), (b, second) in combinations(zip(sizes, rows, strict=True), 2):
        if a[1] != b[1] or not np.array_equal(data.labels[first], data.labels[second]):
            continue
        shares = np.bincount(data.labels[first]) / a[1]
        unlikely = a[1] * np.log((shares**2).sum()) < ORDER_SURPRISE
        if unlikely and (data.probs[first] != data.probs[second]).any():
            raise DoubtfulInputError(
                f"{a[0]} and {b[0]} have the same labels in one order and other probabilities, as "
                "two models of the same rows have",
                [Reading({}, "they are two models", "compare")],
            )


#: Name of the column of labels from a second file.
LABEL_OF_FILE = "label="


@dataclass(frozen=True)
class LabelFile(PathLike[str]):
    """Second file, ``path``, with the labels of another one; ``label`` is the expression for them.

    Without an expression the contract finds the column.
    """

    path: Path
    label: str | None = None

    def __fspath__(self) -> str:
        return fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)


def with_labels(table: Table, other: Table, label: str | None = None) -> Table:
    """Return a table with the labels of a second file, the table ``other``, as one more column.

    Both are open tables, lazy polars frames with their origins; the new column is called
    ``LABEL_OF_FILE``, and ``label`` is the expression for it, None for the column that is found by
    its name. Rows are matched by the first column of words or whole numbers that both have and that
    names each row of the second file once; without such a column rows are in the same order.
    InvalidPredictionsError for a row without a label, and for files of different lengths.
    """
    import polars as pl

    name = next(iter(other.schema))
    frame = other.frame
    if len(other.schema) > 1 or label is not None:
        fit = choose({**other.schema, "p": pl.Float64()}, Wanted(probs="p", label=label))
        term = fit.terms["label"][0]
        name = term.column or LABEL_OF_FILE
        frame = frame if term.column else frame.with_columns(term.expr.alias(name))
    labels, rows = frame.collect(), table.frame.collect()
    for common in (n for n in labels.columns if n != name and n in rows.columns):
        ids, words = words_of(labels[common]), words_of(rows[common])
        if ids is None or words is None or ids.n_unique() < ids.len():
            continue
        right = pl.DataFrame({"id": ids, LABEL_OF_FILE: labels[name]})
        joined = (
            words.alias("id").to_frame().join(right, on="id", how="left", maintain_order="left")
        )
        lacking = ~words.is_in(ids.implode())
        if lacking.any():
            row = int(lacking.arg_max() or 0)
            raise InvalidPredictionsError(
                f"{other.name} has no label for {common} {words[row]} ({int(lacking.sum())} rows)"
            )
        notes = (*table.notes, f"labels of {other.name} matched by {common}")
        rows = rows.with_columns(joined[LABEL_OF_FILE])
        return replace(table, frame=rows.lazy(), notes=notes, text=None)
    if labels.height != rows.height:
        raise InvalidPredictionsError(
            f"there are {several(rows.height, 'row')}, but {other.name} has {labels.height}, and "
            "no column in both identifies the rows"
        )
    rows = rows.with_columns(labels[name].alias(LABEL_OF_FILE))
    notes = (*table.notes, f"labels of {other.name}, row by row")
    return replace(table, frame=rows.lazy(), notes=notes, text=None)


# ------------------------------------------------------------------------------
# Files that are still being written, and columns that files share.


class Growing(NamedTuple):
    """Rows of a file that is still being written: those with a label and those that wait for one.

    ``data`` are the predictions of all n rows; ``rows`` (n,) their places in the file, from 0.
    ``waits`` (n,) marks rows that have no label yet: the label that they carry has no meaning.
    ``unfinished`` (n,) marks a last line without its end, which waits as well. ``columns`` are the
    names of the columns of predictions and labels.
    """

    data: Predictions
    rows: IntArray
    waits: BoolArray
    unfinished: BoolArray
    columns: tuple[str, ...]


def read_growing(
    path: str | PathLike[str],
    probs: Expressions | None = None,
    label: Expressions | None = None,
    *,
    begun: bool = False,
    **options: Any,
) -> Growing:
    """Read a file that is still being written, of which rows may lack a label yet.

    The result, a :class:`Growing`, has the predictions of all rows, the places of the rows in the
    file, and marks of the rows that have no label. ``path`` is the file; ``probs``, ``label`` and
    ``options`` are as for :func:`read_predictions`, and so are the errors. With ``drop_missing``
    rows without a prediction are left out; those without a label wait. ``ids`` are the times of the
    rows; without them these must be in the order of their dates, else InvalidPredictionsError. Rows
    with a label are checked for misreadings, unless counting has ``begun``: a drift is no
    misreading.
    """
    wanted = Wanted(probs=probs, label=label, **options)
    with table_of(path, wanted) as (table, wanted), naming(table.name):
        chosen = chosen_of(table, wanted)
        whole = cells_of(table, chosen, wanted)
        lacking = whole.frame["label:0"].is_null().to_numpy()
        waits = lacking.copy()
        unfinished = np.zeros_like(waits)
        if table.text is not None or str(path).endswith((".jsonl", ".ndjson")):
            unfinished[-1] = Path(path).read_bytes()[-1:] != b"\n"
        waits |= unfinished
        filled = replace(whole, frame=_filled(whole, lacking))
        complete = _complete_or_refused(filled, table)
        try:
            data = complete.cells.predictions()
        except InvalidPredictionsError as error:
            raise _in_the_way([error], complete.cells, table) from None
        rows = complete.cells.rows
        kept = np.isin(whole.rows, rows)
        head = read_note(table, chosen, wanted, whole, complete)
        notes = (head, *table.notes, *complete.notes)
        if not begun and not table.log:
            notes = (*notes, *_doubts_of_known(table, chosen, whole, waits))
        if wanted.ids is None and not table.log:
            notes = (*notes, *_order_note(table, chosen))
        data = replace(data, notes=(*notes, *data.notes), places=rows)
        columns = (*(t.name for t in chosen.terms["probs"]), chosen.name("label"))
        return Growing(data, rows, waits[kept], unfinished[kept], columns)


def _doubts_of_known(
    table: Table, chosen: Chosen, whole: EvaluatedCells, waits: BoolArray
) -> tuple[str, ...]:  # fmt: skip
    """Return notes on doubts about the rows that have a label; ``waits`` (n,) marks the others.

    ``table`` is the open table (rows as a lazy polars frame) of the file, ``chosen`` has the
    expressions by role, such as "label", and ``whole`` are the evaluated cells (in a frame with
    columns such as ``label:0``) of all n rows. () if no row has a label. DoubtfulInputError where a
    doubt needs an answer.
    """
    import polars as pl

    wanted = replace(whole.wanted, drop_missing=True)
    known = replace(whole, wanted=wanted, frame=whole.frame.filter(pl.Series(~waits)))
    known = replace(known, rows=whole.rows[~waits])
    if not known.frame.height:
        return ()
    cells = known.complete().cells
    if not cells.frame.height:
        return ()
    seen = Complete(cells, {}, whole.frame.height - cells.frame.height)
    chosen = replace(chosen, named=chosen.named - {"label"})
    notes = questioned(table, chosen, whole.wanted, whole, seen, cells.predictions())
    return tuple(map(of_bets, notes))


def _filled(cells: EvaluatedCells, lacking: BoolArray) -> pl.DataFrame:
    """Return the frame of evaluated cells with an arbitrary label in rows that lack one.

    ``cells`` are the evaluated cells (in a frame with columns such as ``label:0``), and ``lacking``
    (n,) marks these rows. The frame has columns such as ``label:0``. The filled labels are never
    used; they let the rows pass the reader.
    """
    import polars as pl

    frame = cells.frame
    label = frame["label:0"]
    if not lacking.any():
        return frame
    if lacking.all():
        classes = cells.wanted.classes or cells.chosen.classes
        value = str(classes[0]) if classes else 0
        return frame.with_columns(pl.lit(value).alias("label:0"))
    return frame.with_columns(label.fill_null(label.drop_nulls()[0]))


#: Names of the times of rows.
DATES = frozenset({"date", "datetime", "timestamp", "time", "day"})


def _order_note(table: Table, chosen: Chosen) -> list[str]:
    """Return a note that rows are taken in their order, which a column of dates confirms.

    ``table`` is the open table (rows as a lazy polars frame), and ``chosen`` has the expressions
    that are used, by role. The column is called "date", "time" or the like, and none of them uses
    it; without one the list is empty. InvalidPredictionsError if its dates are not in order.
    """
    dates = [n for n in table.schema if key(n) in DATES and n not in chosen.used]
    for name in dates:
        cells = table.frame.select(name).collect()[name]
        try:
            times: FloatArray = as_times(cells.to_numpy(), cells.len())
        except InvalidPredictionsError:
            continue
        steps = np.diff(times) < np.zeros(1, dtype=np.diff(times).dtype)
        if steps.any():
            row = int(np.argmax(steps)) + 2
            raise InvalidPredictionsError(
                f"rows are monitored in their order, but row {row}, counted from 1, is earlier "
                f"than row {row - 1} by column {name}: name it as the time",
                [Reading({"time": quoted(name)})],
            )
        note = f"rows are taken in their order: to date an alarm, name {name} as the time"
        return [note]
    return []


def shared_ids(sources: Iterable[object]) -> str | None:
    """Return the name of the first column that names the rows of all ``sources``, or None.

    Sources are paths of files, or tables in memory. The column holds words or whole numbers, each
    once in every table, and the same in all of them.
    """
    with ExitStack() as stack:
        tables = [stack.enter_context(table_of(s, Wanted()))[0] for s in sources]
        frames = [table.frame for table in tables]
        schemas = [table.schema for table in tables]
        for name in (n for n in schemas[0] if all(n in schema for schema in schemas)):
            columns = [words_of(frame.select(name).collect()[name]) for frame in frames]
            words = [column for column in columns if column is not None]
            if len(words) < len(columns) or any(w.n_unique() < w.len() for w in words):
                continue
            if all({*w.to_list()} == {*words[0].to_list()} for w in words[1:]):
                return name
    return None


def renamed_ids(sources: Sequence[object]) -> list[str]:
    """Return the names of the columns that name the rows of each source with the same words, or [].

    Sources are files or tables. The columns hold text, each word once, and are called otherwise; []
    unless there is exactly one such column of each.
    """
    with ExitStack() as stack:
        frames = [stack.enter_context(table_of(s, Wanted()))[0].frame for s in sources]
        listed: list[dict[str, frozenset[str]]] = []
        for frame in frames:
            text = [n for n, kind in frame.collect_schema().items() if str(kind) == "String"]
            cells = frame.select(text).collect()
            whole = [n for n in text if cells[n].n_unique() == cells.height and cells.height]
            listed.append({n: frozenset(map(str, cells[n].to_list())) for n in whole})
    found = []
    for name, words in listed[0].items():
        alike = [[n for n, other in columns.items() if other == words] for columns in listed[1:]]
        if all(len(names) == 1 for names in alike):
            found.append([name, *(names[0] for names in alike)])
    return found[0] if len(found) == 1 else []


def lent_labels(
    paths: Iterable[Path], labels: Mapping[Path, str | None]
) -> dict[Path, dict[str, LabelFile]]:
    """Return, for each file without labels, the option that takes them from another file.

    The result maps such a file to ``{"label": other}``, a keyword argument of
    :func:`read_predictions`. ``other`` is a file of ``paths`` that has labels, the last if several
    have some. ``labels`` maps paths to the user's expression for their label, None where the column
    is found by its name. Files that have labels are not in the dictionary, nor is any if no other
    file has labels.
    """
    import polars as pl

    columns: dict[Path, list[str]] = {}
    schemas: dict[Path, dict[str, Any]] = {}
    for path in paths:
        with table_of(path, Wanted()) as (table, _):
            schemas[path] = table.schema
            with suppress(InvalidPredictionsError):
                wanted = Wanted(probs='"p="', label=labels[path])
                fit = choose({**table.schema, "p=": pl.Float64()}, wanted)
                columns[path] = fit.terms["label"][0].roots
    return {
        path: {"label": LabelFile(other, labels[other])}
        for path in schemas.keys() - columns.keys()
        for other, used in columns.items()
        if not {*used} <= {*schemas[path]}
    }
