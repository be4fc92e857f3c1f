"""Design of the rows: weights, times, clusters, subgroups, folds, items.

Each ``as_…`` function checks one argument and returns it in the form that Predictions keep;
:func:`display` shows predictions and their design in a notebook.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from caltest._base.arrays import (
    AnyArray,
    FloatArray,
    IntArray,
    as_ndarray,
    codes,
    column_of,
    names_of,
)
from caltest._base.features import ID_NAMES, MOST_LEVELS, as_features
from caltest._base.written import first_of, several
from caltest.data.labels import marks as as_marks
from caltest.data.numbers import as_numbers
from caltest.errors import DoubtfulInputError, InvalidPredictionsError, Reading, nth, spelt
from caltest.results.rendering import Card, Content, element, percent
from caltest.results.sketches import axes_of, histogram_bars

if TYPE_CHECKING:
    from caltest.data.predictions import Predictions

#: The classes where the one probability is the confidence that a prediction is right.
RIGHT = ("wrong", "right")


#: Clusters below which dependence cannot be told from chance.
FEWEST_DEPENDENT = 5


#: What a comparison, and a paired one, needs.
SAME_CLASSES = "models are compared that predict the same classes"


IN_ORDER = (
    "a paired comparison needs the same observations in the same order, or a column that names "
    "them, ids= (--ids COLUMN)"
)


#: Values of a column of numbers up to which each is a subgroup; rows of a crossing, at least.
MANY_VALUES, MIN_CROSSED = 20, 50


#: The subgroup of rows without a value.
NO_VALUE = "(no value)"


#: How many times the smallest positive weight the largest may be.
MOST_SPREAD = 1e100


def as_weights(values: object, n: int) -> FloatArray | None:
    """Return finite weights ≥ 0, shape (n,), or None where all are 1.

    ``values`` holds one weight for each of ``n`` rows. InvalidPredictionsError for another shape,
    for negative weights, and if all are 0 or their ratios exceed what 64 bits can add.
    """
    weights = as_numbers(_per_row(values, n, "weights"), "weights")
    for row in np.flatnonzero(weights < 0.0)[:1]:
        raise InvalidPredictionsError(
            f"weights: {nth(row)} is {weights[row]:g}; weights are ≥ 0: leave out rows "
            "that are not to count"
        )
    if not weights.any():
        raise InvalidPredictionsError("weights are all 0: no row would count")
    least, most = weights[weights > 0.0].min(), weights.max()
    if most / MOST_SPREAD > least:
        row = int(np.argmin(np.where(weights > 0.0, weights, np.inf)))
        raise InvalidPredictionsError(
            f"weights: {nth(row)} is {least:g} and the largest is {most:g}, which is more than "
            f"{MOST_SPREAD:g} times as much: 64 bits cannot weigh both; give it the weight 0"
        )
    if not 1e-100 < least <= most < 1e100:  # whose squares or sums may be infinite
        weights = weights / 2.0 ** np.floor(np.log2(most))
    return None if bool((weights == 1.0).all()) else weights


def in_whole_numbers(weights: FloatArray) -> FloatArray:
    """Return weights in the same ratios as the smallest whole numbers possible, (n,).

    This is done for up to six decimals; other weights are scaled by a power of 2.
    """
    for digits in range(7):
        scaled = weights * 10.0**digits
        whole = np.rint(scaled)
        if (np.abs(scaled - whole) <= 1e-9 * scaled).all() and whole.max() < 2**53:
            return whole / float(np.gcd.reduce(whole.astype(np.int64)))
    return weights / 2.0 ** np.floor(np.log2(weights.max()))  # whose squares are finite


def as_times(values: object, n: int) -> FloatArray:
    """Return times as numbers (n,), float64; dates, also as text or 20241231, become seconds.

    ``values`` holds one time for each of ``n`` rows. Seconds are since 1970 in UTC.
    InvalidPredictionsError for another shape, for missing values, and for text that is no time.
    """
    times = _per_row(values, n, "time")
    try:
        times = times.astype(np.float64) if times.dtype.kind in "USOiu" else times
    except OverflowError:
        return as_numbers(times, "time")  # which names the row
    except (TypeError, ValueError):
        times = seconds_of(times)
    else:
        days = calendar_days(times) if times.dtype.kind == "f" else None
        times = times if days is None else days
    if times.dtype.kind == "M":
        missing = np.isnat(times)
        times = times.astype("datetime64[us]").astype(np.int64) / 1e6
        times[missing] = np.nan
    return as_numbers(times, "time")


#: Words in names of times that count down to an event, such as ``lead_hours``.
LEADS = frozenset("lead leadtime horizon ahead before until remaining left dte tte".split())  # noqa: SIM905


def refuse_leads(name: str, times: FloatArray, negative: str) -> None:
    """Raise DoubtfulInputError if times (n,) are lead times by their ``name``, which count down.

    Negative times count up to the event. ``negative`` is the SQL expression of −``times``.
    """
    words = re.sub(r"[^0-9a-z]+", " ", name.lower()).split()
    if LEADS.isdisjoint(words) or times.min() < 0.0 or times.min() == times.max():
        return
    raise DoubtfulInputError(
        f"times are {name}, by this name lead times, which count down to the event: the forecast "
        f"of {times.min():g} would be taken for the first and that of {times.max():g} for the "
        "last. Pass times=-times (--time with a minus), or as_is=True (--as-is) if they count up",
        [
            Reading({"time": negative}, f"{name} counts down to the event"),
            Reading({"as_is": True}, f"{name} counts up"),
        ],
    )


def as_dates(seconds: ArrayLike) -> AnyArray:
    """Return seconds since 1970 as ``datetime64[us]``, same shape.

    It is the inverse of :func:`as_times` for dates.
    """
    return np.rint(np.multiply(seconds, 1e6)).astype(np.int64).astype("datetime64[us]")


def are_dates(times: object) -> bool:
    """Return whether ``times`` are dates, also as text or integers such as 20241231, not numbers.

    ``times`` is array_like of any shape. True also for text that is no date.
    """
    times = as_ndarray(times, "time").ravel()
    try:
        return times.dtype.kind == "M" or calendar_days(times.astype(np.float64)) is not None
    except OverflowError:  # of whole numbers beyond 64 bits
        return False
    except (TypeError, ValueError):
        return True


def as_names(values: object, n: int, name: str = "ids", absent: str = "") -> AnyArray:
    """Return the names or numbers of groups of the rows, (n,), as text or numbers.

    ``values`` holds one for each of ``n`` rows. A missing value raises InvalidPredictionsError, or
    is replaced by ``absent`` if that is given. ``name`` is the argument in messages.
    """
    marks = _per_row(values, n, name)
    if marks.dtype.kind == "O":
        texts = [None if v is None or str(v) == "<NA>" or v != v else str(v) for v in marks]
        marks = np.array(texts, dtype=object)
        missing = np.array([v is None for v in marks])
    else:
        missing = np.isnan(marks) if marks.dtype.kind == "f" else np.zeros(n, dtype=bool)
    if absent and 0 < missing.sum() < n:
        words = np.full(n, absent, dtype=object)
        words[~missing] = as_marks(marks[~missing]).astype(str)
        return words.astype(str)
    for row in np.flatnonzero(missing)[:1]:
        raise InvalidPredictionsError(
            f"{name}: {nth(row)} has no value ({int(missing.sum())} such rows in all); name every "
            "row, or leave these rows out"
        )
    return marks.astype(str) if marks.dtype.kind == "O" else marks


def refuse_names(marks: AnyArray, name: str) -> None:
    """Raise InvalidPredictionsError for subgroups with about as many values as rows.

    ``marks`` (n,) are the values of the column called ``name``, which then names or measures rows.
    """
    count = np.unique(marks).size
    if count > max(MOST_LEVELS, 0.5 * len(marks)):
        raise InvalidPredictionsError(
            f"by= (--by): {name} has {count} values in {several(len(marks), 'row')}, so it names "
            "or measures rows: subgroups are of many rows each, such as bands of a number",
            [Reading({"by": None})],
        )


def refuse_ids(weights: AnyArray, name: str) -> None:
    """Raise InvalidPredictionsError for weights that are row identifiers.

    ``weights`` (n,) are the values of the column called ``name``. Identifiers are whole numbers of
    which each occurs once, and which are consecutive or in a column with the name of an identifier.
    """
    n, whole = len(weights), weights.dtype.kind in "iuf" and bool((weights % 1 == 0).all())
    if not whole or n <= MOST_LEVELS or np.unique(weights).size < n:
        return
    if np.ptp(weights) == n - 1 or ID_NAMES.search(name):
        raise InvalidPredictionsError(
            f"weights= (--weights): {name} holds whole numbers, each once, so it names or counts "
            "rows, and does not say how much each is to count: name another column, or none",
            [Reading({"weights": None})],
        )


def as_groups(values: object, n: int) -> AnyArray:
    """Return the subgroup of every row as text, (n,), or (n, J) for J ways to group the rows.

    ``values`` is an array (n,), whose values are the subgroups, or a data frame or mapping of
    columns. Then each column is a way to group the rows into subgroups called "column=value".
    Booleans mark the members of one subgroup, called as the column; numbers of more than 20 values
    are cut into quarters; and combinations of all other columns, with 50 rows or more, are a
    further way. "" stands for a row in no subgroup, "(no value)" for a missing value.
    InvalidPredictionsError for columns with about as many values as rows.
    """
    columns = names_of(values)
    if columns is None:
        marks = as_names(values, n, "by", NO_VALUE)
        refuse_names(marks, "by")
        return marks
    groups, crossed = [], []
    for column in columns:
        of_rows = _per_row(column_of(values, column), n, f"by[{column!r}]")
        marks = as_names(of_rows, n, f"by[{column!r}]", NO_VALUE)
        if marks.dtype.kind == "b":
            if not marks.any():
                raise InvalidPredictionsError(f"by[{column!r}] marks no row: leave it out")
            groups.append(np.where(marks, str(column), ""))
            continue
        known = ~np.isnan(of_rows) if of_rows.dtype.kind in "iuf" else np.zeros(n, dtype=bool)
        if np.unique(of_rows[known]).size > MANY_VALUES:
            cuts = np.unique(np.quantile(of_rows[known], [0.0, 0.25, 0.5, 0.75, 1.0]))
            part = np.searchsorted(cuts[1:-1], of_rows)
            quarters = np.array([f"{a:g}–{b:g}" for a, b in pairwise(cuts)])
            marks = np.where(known, quarters[part], NO_VALUE)
        refuse_names(marks, str(column))
        groups.append(np.array([f"{column}={mark}" for mark in marks]))
        crossed.append(groups[-1])
    if not groups:
        raise InvalidPredictionsError("by holds no column: give at least one")
    if len(crossed) > 1:
        names = np.array([", ".join(marks) for marks in zip(*crossed, strict=True)])
        _, inverse, counts = np.unique(names, return_inverse=True, return_counts=True)
        groups.append(np.where(counts[inverse.ravel()] >= MIN_CROSSED, names, ""))
    return np.stack(groups, axis=1)


def without_group(groups: AnyArray) -> int:
    """Return the number of rows without a value in a column of subgroups.

    ``groups`` has shape (n,), or (n, J) for J columns.
    """
    if groups.dtype.kind != "U":
        return 0
    lacking = np.char.endswith(groups, NO_VALUE).reshape(len(groups), -1)
    return int(lacking.any(axis=1).sum())


def as_clusters(values: object, n: int, name: str = "clusters") -> IntArray | None:
    """Return the cluster number of every row, (n,), or None where each row is its own cluster.

    Numbers are 0, 1, …. ``values`` holds a name or number for each of ``n`` rows.
    InvalidPredictionsError for another shape and for missing values; ``name`` is the argument in
    it.
    """
    clusters = codes(as_names(values, n, name))
    return clusters if clusters.max() + 1 < n else None


class KeptColumns(NamedTuple):
    """Clusters in the form that predictions keep.

    ``first`` and ``second`` (n,) are cluster numbers of one column or two crossed ones, None for
    those that were left out; ``names`` are their names, and ``notes`` say which columns were left
    out.
    """

    first: IntArray | None
    second: IntArray | None
    names: tuple[str, ...]
    notes: tuple[str, ...]


def as_columns(values: object, n: int) -> KeptColumns | None:
    """Return two named columns of clusters; None if ``values`` is one column without a name.

    ``values`` is an array (n, 2), a mapping or a data frame, and ``n`` the number of rows. The
    result has the cluster numbers (n,) of both columns, their names, and notes. Columns that are
    uninformative, such as one cluster for all rows, are left out with a note, and None stands in
    their place. InvalidPredictionsError for no column and for more than two.
    """
    names = names_of(values)
    if names is None:
        table = as_ndarray(values, "clusters")
        if table.ndim != 2 or table.shape[1] < 2:
            return None
        if len(table) != n:
            raise InvalidPredictionsError(
                f"clusters has the shape {table.shape}: of two columns pass an array of {n} rows "
                "and 2 columns, or a dictionary such as {'patient': ..., 'reader': ...}"
            )
        values = dict(zip(("first", "second", "third"), table.T, strict=False))
        names = list(values)
    if not names:
        raise InvalidPredictionsError("clusters holds no column: give one, or two")
    if len(names) > 2:
        raise InvalidPredictionsError(
            "clusters takes two columns at most: the two along which rows depend most"
        )
    read = {
        str(name): as_clusters(column_of(values, name), n, f"clusters[{name!r}]") for name in names
    }
    clusters, notes = {name: column for name, column in read.items() if column is not None}, []
    for name, column in sorted(clusters.items(), key=lambda item: int(item[1].max())):
        count = int(column.max()) + 1
        for outer, other in [item for item in clusters.items() if item[0] != name]:
            if count < FEWEST_DEPENDENT:
                notes.append(
                    f"{count} clusters of {name} are too few to tell how they differ in general: "
                    f"the answer holds for these {count}, and rows are taken to depend along "
                    f"{outer} alone; ask each of them with " + spelt(f"by={name!r} (--by {name})")
                )
            elif np.unique(column * (other.max() + 1) + other).size == count:
                notes.append(f"clusters of {name} lie within clusters of {outer}, which are used")
            else:
                continue
            del clusters[name]
    columns = [*clusters.values(), None, None]
    return KeptColumns(columns[0], columns[1], tuple(clusters), tuple(notes))


def as_folds(values: object, n: int) -> IntArray | None:
    """Return the fold number of every row, (n,), or None where one model predicted all rows.

    Numbers are 0, 1, …. ``values`` holds a name or number for each of ``n`` rows.
    InvalidPredictionsError for missing values, and for several columns, which repeated
    cross-validation has.
    """
    columns = np.shape(as_ndarray(values, "folds"))[1:]
    if len(columns) == 1 and columns[0] > 1:
        raise InvalidPredictionsError(
            f"folds has {columns[0]} columns, of repeated cross-validation: test one repeat, named "
            "beforehand, or each of them, folds[:, r] with its own predictions, and take twice the "
            "median of the p-values, min(1, 2 * np.median(pvalues)). Neither the mean of the "
            "predictions nor the smallest p-value holds its level"
        )
    folds = codes(as_names(values, n, "folds"))
    return folds if folds.max() > 0 else None


def _per_row(values: object, n: int, name: str) -> AnyArray:
    array = as_ndarray(values, name)
    if array.shape == (n, 1):
        array = array[:, 0]
    if array.shape != (n,):
        raise InvalidPredictionsError(
            f"{name} must hold one value for each of the {n} rows; its shape is {array.shape}"
        )
    return array


def as_items(values: object, n: int) -> IntArray:
    """Return the item number of every row, (n,), from 0 on.

    ``values`` (n,) are the names of the items. InvalidPredictionsError for missing values.
    """
    return codes(as_names(values, n, "items"))


#: What reads each fact, from values and the number of rows.
READERS: dict[str, Callable[[object, int], object]] = {
    "weights": as_weights,
    "clusters": as_clusters,
    "by": as_groups,
    "ids": as_names,
    "folds": as_folds,
    "features": as_features,
    "items": as_items,
}


def by_appearance(clusters: IntArray | None) -> IntArray:
    """Return clusters renumbered by first appearance, (n,).

    Random draws then do not depend on the names of the clusters.
    """
    assert clusters is not None
    codes, n = clusters, clusters.size
    whole = clusters.dtype.kind == "i" and n > 0
    low, high = (int(codes.min()), int(codes.max())) if whole else (0, 0)
    few = whole and high - low <= 4 * n  # sorting takes ten times as long
    codes = codes - low if few else np.unique(codes, return_inverse=True)[1].ravel()
    first = np.full(codes.max(initial=-1) + 1, n)
    first[codes[::-1]] = np.arange(n)[::-1]  # the last assignment to a code stands
    number = np.empty_like(first)
    number[np.argsort(first, kind="stable")] = np.arange(first.size)
    return number[codes]


# ------------------------------------------------------------------------------
# Dates as people write them, in seconds since 1970; what can be read in two ways is refused.


#: A date of three numbers and what follows, such as a clock; one of those with twelve hours.
_NUMBERS = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?!\d)(.*)")


_HALF_DAYS = re.compile(r"(.*\s)(\d{1,2})(:[\d:]+)\s*([AP])\.?M\.?", re.I)


#: A month or quarter alone.
_PART = re.compile(r"(\d{4})(?:-(\d\d)|[- ]?Q([1-4]))", re.I)


#: How dates are written that everybody reads alike.
ISO_DATES = "write dates as 2024-12-31"


def seconds_of(times: AnyArray) -> FloatArray:
    """Return seconds since 1970 (n,) for times in text; without a zone they are UTC.

    For dates such as 31/12/2024 some cell must show whether the day comes first, and none may show
    the contrary; in 31.12.2024 the day comes first. InvalidPredictionsError for text that is no
    time, and for dates whose order no cell shows.
    """
    texts = np.char.strip(times.astype(str))
    distinct, rows, places = np.unique(texts, return_index=True, return_inverse=True)
    moments = [_moment(text) for text in distinct.tolist()]
    matches = {i: _NUMBERS.fullmatch(distinct[i]) for i, when in enumerate(moments) if when is None}
    last = {i: match for i, match in matches.items() if match and len(match[4]) == 4}
    month_first = bool(last) and _is_month_first(last, rows)
    for i, match in matches.items():
        if match:
            first, second, third = match[1], match[3], match[4]
            if i in last:
                day, month = (second, first) if month_first else (first, second)
                first, second, third = third, month, day
            moments[i] = _moment(f"{first}-{second:0>2}-{third:0>2}{match[5]}")
    for row in sorted(rows[i] for i, when in enumerate(moments) if when is None)[:1]:
        raise InvalidPredictionsError(
            f"time: {nth(row)} is {str(texts[row])!r}; times are numbers, dates such as 2024-12-31,"
            " also with time and zone as 2024-12-31T23:59+01:00, or days such as 31.12.2024"
        )
    stamps = [(m if m.tzinfo else m.replace(tzinfo=UTC)).timestamp() for m in moments if m]
    return np.array(stamps)[places.ravel()]


def calendar_days(numbers: FloatArray) -> AnyArray | None:
    """Return the days, datetime64[D] of shape (n,), that integers such as 20241231 denote.

    ``numbers`` (n,) are these integers as floats. None unless all are valid days from 1900 to 2100.
    """
    if not numbers.size or not ((numbers >= 19000101) & (numbers <= 21001231)).all():
        return None
    whole = numbers.astype(np.int64)
    months = ((whole // 10000 - 1970) * 12 + whole // 100 % 100 - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (whole % 100 - 1)
    right = (numbers == whole) & (days.astype("datetime64[M]") == months)  # which 20240230 is not
    right &= (whole // 100 % 100 - 1) // 12 == 0
    return days if bool(right.all()) else None


def _is_month_first(last: dict[int, re.Match[str]], rows: AnyArray) -> bool:
    """Return whether dates such as 3/4/2024 begin with the month.

    ``last`` maps indices of distinct texts to matches of such dates, whose groups 1 and 3 are the
    two numbers, and ``rows`` (of these indices) are their first rows. InvalidPredictionsError if
    both orders occur, or if no date decides.
    """
    days = [i for i, match in last.items() if int(match[1]) > 12 >= int(match[3])]
    months = [i for i, match in last.items() if int(match[3]) > 12 >= int(match[1])]
    one = next((i for i, m in last.items() if m[2] != "." and int(m[1]) != int(m[3])), None)
    cell = {i: f"{nth(int(rows[i]))} is {match[0]!r}" for i, match in last.items()}
    if days and months:
        raise InvalidPredictionsError(
            f"time: {cell[days[0]]}, the day first, and {cell[months[0]]}, the month first: "
            f"{ISO_DATES}"
        )
    if one is not None and not days and not months:
        a, b, year = last[one][1], last[one][3], last[one][4]
        raise InvalidPredictionsError(
            f"time: {cell[one]}, which could be {year}-{b:0>2}-{a:0>2} (the day first) or "
            f"{year}-{a:0>2}-{b:0>2} (the month first), and no row tells: {ISO_DATES}"
        )
    return bool(months)


def _moment(text: str) -> datetime | None:
    """Return the time that a text denotes unambiguously, as a datetime, else None.

    It has a zone only if the text names one.
    """
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    if part := _PART.fullmatch(text):
        month = part[2] or f"{3 * int(part[3]) - 2:02}"
        text = f"{part[1]}-{month}-01"
    if half := _HALF_DAYS.fullmatch(text):
        hour = int(half[2]) % 12 + 12 * (half[4] in "pP")
        text = f"{half[1]}{hour:02}{half[3]}"
    padded = re.sub(r"\s*(UTC|GMT)$", "+00:00", text)
    padded = re.sub(r"(?<![\d.])(\d)(?![\d.])", r"0\1", padded)
    with suppress(ValueError):
        return datetime.fromisoformat(re.sub(r",?\s+", " ", padded))
    if not re.search(r"[A-Za-z]{3}", text):
        return None
    from email.utils import parsedate_tz  # of months by name

    read = parsedate_tz(f"{text.replace('. ', ' ')} 00:00:00 UTC")
    with suppress(ValueError):
        zone = timezone(timedelta(seconds=read[9] or 0)) if read else UTC
        return datetime(*read[:6], tzinfo=zone) if read else None
    return None


# ------------------------------------------------------------------------------
# Notebook display of predictions: size, outcome, histogram, design.


#: Bars of the histogram of predictions, and classes and subgroups that are named.
HISTOGRAM_BARS, FIRST_NAMES = 20, 12


def display(data: Predictions) -> str:
    """Return the notebook card of predictions as HTML.

    Counts, means, a histogram, and the design.
    """
    binary = data.n_classes == 2
    likelihood = data.risks if binary else data.probs.max(axis=1)
    numbers = [("observations", str(data.n), _extent(data))]
    if data.followup is None:
        right = data.labels == (0 if data.induced else 1) if binary else _is_right(data)
        share = float(np.average(right, weights=data.weights))
        mean = float(np.average(likelihood, weights=data.weights))
        events = data.event_name or "events"
        names = (events, "predicted") if binary else ("right", "mean confidence")
        numbers.append((names[0], percent(share, mean), f"{names[1]} {percent(mean, share)}"))
    counts, _ = np.histogram(likelihood, HISTOGRAM_BARS, (0.0, 1.0))
    axis = axes_of("event" if binary else "top", data.event_name)[0]
    card = Card(
        "Predictions",
        headline=f"{several(data.n, 'observation')}, {data.n_classes} classes",
        numbers=tuple(numbers),
        remarks=tuple(f"Note: {note}." for note in data.notes[:1]),
        drawing=histogram_bars(counts.tolist(), (0.0, 1.0), axis),
    )
    known = _known(data)
    table = {"": list(known), "value": list(known.values())}
    notes = [f"Note: {note}." for note in data.notes[1:]]
    return element(card, Content("", [table], notes, repr(data)))


def _is_right(data: Predictions) -> np.ndarray:
    """Return whether the most likely class of each row occurred, booleans of shape (n,)."""
    return np.asarray(data.probs.argmax(axis=1) == data.labels)


def _extent(data: Predictions) -> str:
    """Return the number of clusters and the effective number of rows of ``data`` in words.

    An example is "12 clusters, effective n 85.3"; "" without clusters and weights.
    """
    words = [] if data.n_clusters is None else [f"{data.n_clusters} clusters"]
    words += [] if data.weights is None else [f"effective n {data.effective_n:.1f}"]
    return ", ".join(words)


def _known(data: Predictions) -> dict[str, str]:
    """Return the known design of the rows in words, such as {"clusters": "12", "folds": "5"}.

    Keys are classes, weights, clusters, subgroups, features, folds, horizon, ids and follow-up;
    those without a value are left out.
    """
    names = data.classes or tuple(map(str, range(data.n_classes)))
    features = () if data.features is None else tuple(c.name for c in data.features.columns)
    folds = 0 if data.folds is None else np.unique(data.folds).size
    facts = {
        "classes": first_of(names, FIRST_NAMES),
        "weights": "" if data.weights is None else f"effective n {data.effective_n:.1f}",
        "clusters": "" if data.n_clusters is None else str(data.n_clusters),
        "subgroups": first_of(tuple(data.subgroups()), FIRST_NAMES) if data.by is not None else "",
        "features": first_of(features, FIRST_NAMES) if features else "",
        "folds": str(folds) if folds else "",
        "horizon": "" if data.horizon is None else str(data.horizon),
        "ids": "" if data.ids is None else "one a row",
        "follow-up": "" if data.followup is None else f"to {data.followup.horizon:g}",
    }
    return {name: words for name, words in facts.items() if words}
