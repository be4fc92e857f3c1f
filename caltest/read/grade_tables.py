"""Tables of counts, one row a grade or bin, and which of their columns is which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from caltest._base.arrays import AnyArray, FloatArray, IntArray
from caltest._base.containers import names_of, opened
from caltest._base.naming import in_a_file, nth
from caltest._base.written import several
from caltest.data.labels import marks
from caltest.data.numbers import as_numbers, at, first, meant
from caltest.errors import InvalidPredictionsError
from caltest.read import source as cells
from caltest.read.files import table_in_memory
from caltest.read.formats import open_table
from caltest.read.source import Source, is_number, listing, says_percent, words

if TYPE_CHECKING:
    import polars as pl

#: Of more rows than these, one that is the sum of all others in every count is no grade.
LEAST_SUMMED = 4


#: A table of more rows, one of whose columns holds outcomes, is none of grades.
GRADES = 200


#: Larger counts are a slip, or no longer whole numbers.
MOST = 2**53


class Grades(NamedTuple):
    """Rows, events among them, the one probability of all, what each grade is called, notes."""

    n: IntArray
    events: IntArray
    probability: FloatArray
    names: tuple[str, ...]
    notes: tuple[str, ...]


@contextmanager
def table_of(table: object, sheet: str | None = None) -> Iterator[Source]:
    """Open a table at hand, or a file that has one, whose rows are counted from 1."""
    if isinstance(table, (str, PathLike)):
        with open_table(table, sheet=sheet) as opened_file, in_a_file(range(1, MOST), []):
            yield _source(opened_file.frame.collect(), frame=False)
        return
    if sheet is not None:
        raise InvalidPredictionsError("sheet= is for Excel files, and this is a table in memory")
    frame = opened(table, "the table")
    names = names_of(frame)
    if names is None:
        raise InvalidPredictionsError(
            f"a {type(table).__name__} is no table with named columns: pass a data frame, a "
            "dictionary of columns or the path of a file"
        )
    yield _source(table_in_memory(frame), frame=True)


def _source(table: pl.DataFrame, frame: bool) -> Source:
    """Return a table whose columns are read by name, text stripped, None where a cell is empty."""

    def read(names: Sequence[str]) -> list[AnyArray]:
        import polars as pl

        columns = [table[name] for name in names]
        text = [c.str.strip_chars() if c.dtype == pl.String else c for c in columns]
        return [np.asarray(c.to_numpy()) for c in text]

    return Source(table.columns, read, frame=frame)


def read_columns(source: Source, heads: dict[str, str]) -> dict[str, AnyArray]:
    """Return columns by what they are; they have one length."""
    absent = {what: name for what, name in heads.items() if name not in source.names}
    if absent:
        present = {what: name for what, name in heads.items() if what not in absent}
        names = ", ".join(f"{what}={f' (--{what})' * (not source.frame)}" for what in absent)
        advice, remedy = f"name it with {names}", likely_options(source, present, list(absent))
        of_rows = remedy[:2] == ("--n", PLACE) or len(source.read(source.names[:1])[0]) > GRADES
        outcomes = _outcomes(source) if of_rows else []
        if outcomes and "events" in absent:
            remedy = ("audit",)
            advice = f"a row is no grade, but one outcome, in {' or '.join(outcomes)}: such rows "
            advice += "are for audit (caltest audit)"
        raise InvalidPredictionsError(
            f"there is no column {' and none '.join(map(repr, absent.values()))} among "
            f"{listing(source.names)}: {advice}",
            [remedy],
        )
    columns = dict(zip(heads, source.read(list(heads.values())), strict=True))
    sizes = {heads[what]: np.shape(column) for what, column in columns.items()}
    if len(set(sizes.values())) > 1 or any(len(size) != 1 for size in sizes.values()):
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise InvalidPredictionsError(
            f"columns must be of one length, but have the shapes: {listed}"
        )
    if 0 in next(iter(sizes.values())):
        raise InvalidPredictionsError("the table has no rows")
    return columns


def _outcomes(source: Source) -> list[str]:
    """Return columns that hold 0 and 1 alone."""
    columns = {name: source.read([name])[0] for name in source.names}
    return [n for n, c in columns.items() if c.dtype.kind in "biuf" and np.isin(c, (0, 1)).all()]


def read_grades(
    source: Source, request: dict[str, str | None], percent: bool | None = None
) -> Grades:
    """Read and check a table of grades; columns without ``heads`` are found by ``TERMS``."""
    heads: dict[str, str] = {}
    for what in TERMS:
        name = request.get(what) or column_called(source.names, what)
        heads |= {} if name is None and what == "names" else {what: name or what}
    if "names" not in heads and (head := source.names[0]) not in heads.values():
        heads |= {"names": head} if are_words(source.read([head])[0]) else {}
    if len(set(heads.values())) < len(heads):
        twice = ", ".join(f"{what} {name}" for what, name in heads.items())
        raise InvalidPredictionsError(f"a column is one thing only, and these are {twice}")
    columns = read_columns(source, heads)
    called = columns["names"] if "names" in heads else np.arange(1, len(columns["n"]) + 1)
    names = [str(name).strip() for name in marks(called).tolist()]
    sums_up = np.array([is_sum(name) for name in names]) & (len(names) > 2)
    for what, column in columns.items():
        gaps = cells.missing(column) & ~(sums_up & (what == "probability"))
        if gaps.any():
            raise InvalidPredictionsError(
                f"column {heads[what]}: {nth(*first(gaps))} has no value; complete the row, or "
                "leave it out"
            )
    n, events = (
        whole_numbers(ungrouped(columns[what]), heads[what], 0) for what in ("n", "events")
    )
    counts = {"n": n, "events": events}
    if not sums_up.any() and len(names) > LEAST_SUMMED and events.any():
        sums_up = np.all([2 * column == column.sum() for column in counts.values()], axis=0)
    notes = [_sum_of_others(row, names[row], counts) for row in np.flatnonzero(sums_up).tolist()]
    for row, name in enumerate(names):
        if name in names[:row]:
            raise InvalidPredictionsError(
                f"{heads['names']}: {name} is in {nth(names.index(name))} and in {nth(row)}; "
                "every grade has one row: add up its counts, or keep those of one year"
            )
    percents = _in_percent(columns["probability"], heads["probability"], percent)
    p = _checked(counts, columns["probability"], heads, percents)[~sums_up]
    parts = [f"{what} from {heads[what]}" for what in heads]
    parts[list(heads).index("probability")] += " in percent" * percents
    if list(heads) != list(heads.values()) or percents or notes:
        notes.insert(0, f"read {several(p.size, 'grade')}: {', '.join(parts)}")
    notes += source.notes
    listed = tuple(name for name, other in zip(names, sums_up, strict=True) if not other)
    return Grades(n[~sums_up], events[~sums_up], p, listed, tuple(notes))


def _in_percent(column: AnyArray, name: str, percent: bool | None) -> bool:
    """Say whether probabilities are percents: as asked, or by a sign in cells or heading."""
    if percent is not None:
        return percent
    if cells.in_percent(column):
        return True
    if not says_percent(name):
        return False
    if not (cells.with_gaps(column, name) > 1.0).any():
        raise InvalidPredictionsError(
            f"{name} could be percents, as its name says, or fractions, since none is above 1: "
            "say percent=True or percent=False",
            [("--percent",), ("--no-percent",)],
        )
    return True


def _sum_of_others(row: int, name: str, counts: dict[str, IntArray]) -> str:
    """Say that a row sums up the others, as its name does, or refuse it."""
    for what, column in counts.items():
        others = int(column.sum() - column[row])
        if column[row] != others:
            raise InvalidPredictionsError(
                f"{nth(row)}, {name}, has {what} {column[row]}, and the others have {others} "
                "together: leave the row out if it sums up others, or give it another name"
            )
    return f"{nth(row)}, {name}, is the sum of the others and no grade"


def whole_numbers(column: AnyArray, name: str, least: int = -(2**63)) -> IntArray:
    """Return whole numbers, and refuse what is none."""
    if column.dtype.kind == "O" and all(type(value) is int for value in column):
        column = np.array(column.tolist())
    if column.dtype.kind in "iu":
        exact, wrong = column.astype(np.int64), (column < least) | (column >= 2**63)
    else:
        numbers = as_numbers(cells.numbers(column, name), name)
        wrong = (numbers % 1 != 0) | (np.abs(numbers) > MOST) | (numbers < least)
        exact = np.where(wrong, 0, numbers).astype(np.int64)
    if wrong.any():
        row = first(wrong)
        kind = "whole numbers" + (f" ≥ {least}" if least >= 0 else "")
        raise InvalidPredictionsError(f"{at(name, row)} is {column[row]}; these are {kind}")
    return exact


def _checked(
    counts: dict[str, IntArray], column: AnyArray, names: dict[str, str], percents: bool
) -> FloatArray:
    """Return the probabilities, and refuse what cannot be; they are missing of sums of others."""
    n, events = counts.values()
    for what, numbers, most in (("n", n, np.full_like(n, MOST)), ("events", events, n)):
        if (numbers > most).any():
            row = first(numbers > most)
            of = ", the rows of its grade" * (what == "events")
            raise InvalidPredictionsError(
                f"{at(names[what], row)} is {numbers[row]}, more than {most[row]}{of}"
            )
    if not n.any():
        raise InvalidPredictionsError(f"{names['n']} is 0 in every row: there is nothing to test")
    p = cells.with_gaps(column, names["probability"], percents).astype(np.float64)
    outside = (p < 0.0) | (p > 1.0)
    if outside.any():
        row, advice, remedies = first(outside), "", list[tuple[str]]()
        if 1.0 < np.nanmax(p) <= 100.0 and not percents:
            advice, remedies = "; if these are percents, say percent=True", [("--percent",)]
        raise InvalidPredictionsError(
            f"{at(names['probability'], row)} is {p[row]:.9g}, outside [0, 1] "
            f"({several(int(outside.sum()), 'such value')} in all){advice}",
            remedies,
        )
    return meant(np.nan_to_num(p), str(column.dtype))[0]


# ------------------------------------------------------------------------------
# Which column of a table of grades is which, by its name in five languages or by its cells.


#: What columns of grades are called in English, German, French, Italian and Spanish, in lower case
#: and without ``BESIDE``; the second row of names if there is none of the first.
TERMS = {
    what: tuple(tuple(name.replace("_", " ") for name in tier.split()) for tier in tiers)
    for what, tiers in {
        "n": (
            "n obligors borrowers accounts customers clients loans patients exposures impressions "
            "schuldner kreditnehmer kunden kredite emprunteurs débiteurs prêts expositions "
            "debitori clienti mutuatari prestiti esposizioni "
            "deudores clientes prestatarios préstamos exposiciones",
            "rows total size count anzahl observations osservazioni observaciones effectif",
        ),
        "events": (
            "events defaults defaulted defaulters ausfälle ausfaelle ausgefallen ausgefallene "
            "défauts défaillances insolvenze inadempienze impagos incumplimientos",
            "clicks observed bad bads default deaths d",
        ),
        "probability": (
            "probability pd ctr p probability_default default_probability "
            "ausfallwahrscheinlichkeit probabilité probabilité_défaut probabilità "
            "probabilità_default probabilità_insolvenza probabilidad probabilidad_impago "
            "probabilidad_incumplimiento",
            "predicted forecast risk",
        ),
        "names": (
            "grade rating bin name rating_grade risk_grade rating_class ratingklasse ratingstufe "
            "bonitätsklasse bonitaetsklasse risikoklasse notation classe_notation classe_rating "
            "classe_risque classe_rischio calificación clase_riesgo",
            "pool segment band bucket class score_band risk_band risk_class classe clase note "
            "grado nota",
        ),
    }.items()
}


#: Columns that a table of grades must have.
REQUIRED = TERMS.keys() - {"names"}


#: Words that stand beside these; of counts also those of ``OBSERVED``.
BESIDE = {
    *("number", "no", "num", "nr", "nb", "n", "count", "of", "in", "percent", "pct", "ø"),
    *("predicted", "estimated", "assigned", "model", "mean", "average", "avg", "master", "scale"),
    *("anzahl", "davon", "mittlere", "prognostizierte", "beobachtete", "skala"),
    *("nombre", "de", "d", "des", "du", "moyenne", "moyen", "estimée", "numero", "di", "dei"),
    *("delle", "media", "stimata", "número", "del", "los", "estimada"),
}


OBSERVED = {"observed", "actual", "beobachtete", "observés", "osservati", "observados"}


#: Words of which the name of a row consists that sums up the others.
TOTALS = {
    *("total", "totals", "grand", "sum", "all", "overall", "portfolio", "gesamt", "summe"),
    *("gesamtsumme", "insgesamt", "gesamtportfolio", "portefeuille", "ensemble", "totaux"),
    *("totale", "complessivo", "portafoglio", "suma", "general", "cartera"),
}


#: What stands for a column that nothing tells.
PLACE = "COLUMN"


#: A whole number in groups of three digits.
GROUPED = re.compile(r"[1-9]\d{0,2}(?:[\s,'’]\d{3})+")


def column_called(names: list[str], what: str) -> str | None:
    """Return the column that is called so, or the only PD; more than one is refused."""
    counts = what in ("n", "events")
    beside = BESIDE | OBSERVED if counts else BESIDE
    for tier in TERMS[what]:
        likely = [n for n in names if _bare(n, beside) in tier and not (counts and says_percent(n))]
        if len(likely) > 1:
            raise InvalidPredictionsError(
                f"{what} could be column {' or '.join(likely)}; say {what}={likely[0]!r} "
                f"(--{what} {likely[0]!r}) or another of them",
                [(f"--{what}", name) for name in likely],
            )
        if likely:
            return likely[0]
    likely = [name for name in names if re.match(r"PD\b", name)] * (what == "probability")
    return likely[0] if len(likely) == 1 else None


def _bare(name: str, beside: set[str]) -> str:
    """Return the words of a name in lower case, but those beside others, as those in brackets."""
    name = re.sub(r"\(.*?\)", "", name) or name
    parts = words(name)
    return " ".join([word for word in parts if word not in beside] or parts)


def is_sum(name: str) -> bool:
    """Say whether a row is called as one that sums up the others."""
    return bool(words(name)) and {*words(name)} <= TOTALS


def are_words(column: AnyArray) -> bool:
    """Say whether most cells are no numbers."""
    return column.dtype.kind in "UO" and 2 * sum(map(is_number, column.tolist())) < column.size


def likely_options(source: Source, heads: dict[str, str], absent: list[str]) -> tuple[str, ...]:
    """Return options with columns that may be meant.

    Whole numbers, the smaller ones events, fractions that are no frequency of these, and words.
    """
    columns = {name: c for name, c in source.readable(source.names).items() if c.ndim == 1}
    numbers: dict[str, FloatArray] = {}
    for name, column in columns.items():
        with suppress(InvalidPredictionsError):
            signed = "%" in str(column[0])
            numbers[name] = cells.with_gaps(ungrouped(column), name, True if signed else None)
    free = [name for name in numbers if name not in heads.values()]
    whole = [name for name in free if (numbers[name] % 1 == 0).all()]
    counters = [name for name in whole if _counts_on(numbers[name])]
    bounds = {name: ((column < 0) | (column > 100)).any() for name, column in numbers.items()}
    fractions = [name for name in free if name not in whole and not bounds[name]]
    fractions.sort(key=lambda name: (numbers[name] > 1.0).any())  # money may be below 100
    whole = [name for name in whole if name not in counters]
    counts = [[heads[w]] if heads.get(w) in numbers else whole for w in ("n", "events")]
    pairs = [
        (n, events)
        for n, events in product(*counts)
        if n != events and (numbers[events] <= numbers[n]).all() and (numbers[n] > 0).all()
    ]
    likely: dict[str, str] = {}
    if pairs:
        likely = dict(zip(("n", "events"), pairs[0], strict=True))
        rate = numbers[likely["events"]] / numbers[likely["n"]]
        gaps = [
            min(np.nanmax(np.abs(numbers[f] / unit - rate)) for unit in (1, 100)) for f in fractions
        ]
        fractions = [fractions[place] for place in np.argsort(gaps)[::-1]]
    likely |= {"probability": fractions[0]} if fractions else {}
    texts = [name for name in columns if name not in numbers] + counters
    likely |= {"names": texts[0]} if texts else {}
    wanted = [*absent, *["names"] * ("names" in likely and heads.keys() | {*absent} == REQUIRED)]
    options = [word for what in wanted for word in (f"--{what}", likely.get(what, PLACE))]
    percents = "probability" in absent and fractions and (numbers[fractions[0]] > 1.0).any()
    return (*options, *["--percent"] * bool(percents))


def _counts_on(numbers: FloatArray) -> bool:
    """Say whether numbers are those of rows, or years."""
    return bool((np.diff(numbers) == 1).all() or ((numbers >= 1900) & (numbers <= 2100)).all())


def ungrouped(column: AnyArray) -> AnyArray:
    """Return counts without what parts their thousands, where every larger one has groups."""
    texts = [str(cell).strip() for cell in column.tolist()] if column.dtype.kind in "UO" else [""]
    parted = [text for text in texts if not re.fullmatch(r"\d{1,3}", text)]
    if not parted or not all(map(GROUPED.fullmatch, parted)):
        return column
    return np.array([int(re.sub(r"\D", "", text)) for text in texts])
