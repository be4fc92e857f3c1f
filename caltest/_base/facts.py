"""What is known of the rows besides predictions and labels: weights, times, names and groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from caltest._base.arrays import AnyArray, FloatArray, IntArray, codes
from caltest._base.checks import is_whole
from caltest._base.containers import as_ndarray, column_of, names_of
from caltest._base.dates import calendar_days, seconds_of
from caltest._base.features import IDS, MOST_LEVELS, as_features
from caltest._base.labels import marks as as_marks
from caltest._base.naming import nth
from caltest._base.reading import as_numbers
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError

if TYPE_CHECKING:
    from caltest.predictions import Predictions

#: The classes where the one probability is the confidence that a prediction is right.
RIGHT = ("wrong", "right")
#: Clusters below which dependence cannot be told from chance.
FEWEST = 5
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


def as_weights(values: object, n: int) -> FloatArray | None:
    """Return finite weights ≥ 0, one for each row, or None where all are 1."""
    weights = as_numbers(_per_row(values, n, "weights"), "weights")
    for row in np.flatnonzero(weights < 0.0)[:1]:
        raise InvalidPredictionsError(
            f"weights: {nth(row)} is {weights[row]:g}; weights are ≥ 0: leave out rows "
            "that are not to count"
        )
    if not weights.any():
        raise InvalidPredictionsError("weights are all 0: no row would count")
    return None if bool((weights == 1.0).all()) else weights


def in_whole_numbers(weights: FloatArray) -> FloatArray:
    """Return the smallest whole numbers of the same ratios, for up to six decimals."""
    for digits in range(7):
        scaled = weights * 10.0**digits
        whole = np.rint(scaled)
        if (np.abs(scaled - whole) <= 1e-9 * scaled).all() and whole.max() < 2**53:
            return whole / float(np.gcd.reduce(whole.astype(np.int64)))
    return weights / 2.0 ** np.floor(np.log2(weights.max()))  # whose squares are finite


def as_times(values: object, n: int) -> FloatArray:
    """Return times as numbers: those of dates, also as text or 20241231, are seconds since 1970."""
    times = _per_row(values, n, "time")
    try:
        times = times.astype(np.float64) if times.dtype.kind in "USOiu" else times
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


def as_dates(seconds: ArrayLike) -> AnyArray:
    """Return the dates of which :func:`as_times` makes these seconds."""
    return np.rint(np.multiply(seconds, 1e6)).astype(np.int64).astype("datetime64[us]")


def are_dates(times: object) -> bool:
    """Say whether times are dates and no numbers."""
    times = as_ndarray(times, "time").ravel()
    try:
        return times.dtype.kind == "M" or calendar_days(times.astype(np.float64)) is not None
    except (TypeError, ValueError):
        return True


def as_names(values: object, n: int, name: str = "ids", absent: str = "") -> AnyArray:
    """Return the names, numbers or other marks of the rows; none may be missing, or is ``absent``.

    Where all are missing, that is no name.
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
    """Refuse a column of subgroups that has about as many values as there are rows."""
    count = np.unique(marks).size
    if count > max(MOST_LEVELS, 0.5 * len(marks)):
        raise InvalidPredictionsError(
            f"by= (--by): {name} has {count} values in {several(len(marks), 'row')}, so it names "
            "or measures rows: subgroups are of many rows each, such as bands of a number",
            [("!--by",)],
        )


def refuse_ids(weights: AnyArray, name: str) -> None:
    """Refuse weights that are ids by their name, or numbers from one to the next, each once."""
    n, whole = len(weights), weights.dtype.kind in "iuf" and bool((weights % 1 == 0).all())
    if not whole or n <= MOST_LEVELS or np.unique(weights).size < n:
        return
    if np.ptp(weights) == n - 1 or IDS.search(name):
        raise InvalidPredictionsError(
            f"weights= (--weights): {name} holds whole numbers, each once, so it names or counts "
            "rows, and does not say how much each is to count: name another column, or none",
            [("!--weights",)],
        )


def as_groups(values: object, n: int) -> AnyArray:
    """Return the subgroup of every row, or a column for each of a table; "" stands for none."""
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
    """Return how many rows have no value of what subgroups are by."""
    if groups.dtype.kind != "U":
        return 0
    lacking = np.char.endswith(groups, NO_VALUE).reshape(len(groups), -1)
    return int(lacking.any(axis=1).sum())


def as_clusters(values: object, n: int, name: str = "clusters") -> IntArray | None:
    """Return the number of the cluster of every row, or None where each has its own."""
    clusters = codes(as_names(values, n, name))
    return clusters if clusters.max() + 1 < n else None


class Columns(NamedTuple):
    """One column of clusters or two that cross, what they are called, and what was left out."""

    first: IntArray | None
    second: IntArray | None
    names: tuple[str, ...]
    notes: tuple[str, ...]


def as_columns(values: object, n: int) -> Columns | None:
    """Return two columns of clusters by name, less what says nothing, or None for one column."""
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
            if count < FEWEST:
                notes.append(
                    f"{count} clusters of {name} are too few to tell how they differ in general: "
                    f"the answer holds for these {count}, and rows are taken to depend along "
                    f"{outer} alone; ask each of them with by={name!r} (--by {name})"
                )
            elif np.unique(column * (other.max() + 1) + other).size == count:
                notes.append(f"clusters of {name} lie within those of {outer}, which are taken")
            else:
                continue
            del clusters[name]
    columns = [*clusters.values(), None, None]
    return Columns(columns[0], columns[1], tuple(clusters), tuple(notes))


def as_folds(values: object, n: int) -> IntArray | None:
    """Return the number of the fold of every row, or None where one model predicted all."""
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


#: What reads each fact, from values and the number of rows.
READERS: dict[str, Callable[[object, int], object]] = {
    "weights": as_weights,
    "clusters": as_clusters,
    "by": as_groups,
    "ids": as_names,
    "folds": as_folds,
    "features": as_features,
}


def as_series(facts: Mapping[str, object], horizon: object, data: Predictions) -> dict[str, object]:
    """Return what is known of forecasts several steps ahead; one step needs nothing."""
    time = facts["time"]
    if not is_whole(horizon) or horizon < 1:
        raise InvalidPredictionsError(
            f"horizon must be a whole number ≥ 1, by how many times forecasts are ahead, not "
            f"{horizon!r}" + " (which time= needs)" * (horizon is None)
        )
    if facts["clusters"] is not None or data.clusters is not None:
        raise InvalidPredictionsError(
            "horizon takes no clusters: rows of one time may depend on each other, name it by time="
        )
    if facts["folds"] is not None or data.folds is not None:
        raise InvalidPredictionsError("horizon takes no folds: those of a series are not equal")
    places = np.arange(data.n)
    if time is not None:  # the place of every row among the distinct times
        places = codes(as_times(time, data.n))
    if horizon == 1:
        return {"clusters": None if time is None else as_clusters(places, data.n)}
    return {"times": places, "horizon": int(horizon)}


def by_appearance(clusters: IntArray | None) -> IntArray:
    """Number clusters in the order in which they appear: names then change no draw."""
    assert clusters is not None
    _, first, inverse = np.unique(clusters, return_index=True, return_inverse=True)
    number = np.empty(first.size, dtype=np.int64)
    number[np.argsort(first)] = np.arange(first.size)
    return number[inverse.ravel()]


def refuse_unlike(names: tuple[str, str], a: Predictions, b: Predictions, remedy: str = "") -> None:
    """Refuse predictions of two models of other rows; ``remedy`` is for rows that are to differ."""
    first, name = names
    both, advice = f"{first} and {name}", IN_ORDER + f"; {remedy}" * bool(remedy)
    ways = [("--ids", "COLUMN"), *[("--unpaired",)] * bool(remedy)]
    if a.probs.shape != b.probs.shape:
        raise InvalidPredictionsError(
            f"{first} has {a.n} rows of {a.n_classes} classes, {name} has {b.n} of "
            f"{b.n_classes}: {advice if a.n_classes == b.n_classes else SAME_CLASSES}",
            ways * (a.n_classes == b.n_classes),
        )
    if a.classes != b.classes and a.classes and b.classes:
        listed = f"{', '.join(a.classes)} and {', '.join(b.classes)}"
        raise InvalidPredictionsError(
            f"{both} name their classes differently: {listed}; give both the same in one order "
            "with classes=[…] (--classes), or of one column the same event with pos_label= "
            "(--pos-label)"
        )
    if a.ids is not None and b.ids is not None and not np.array_equal(a.ids, b.ids):
        i = int(np.argmax(a.ids != b.ids))
        place = f"first in {nth(i)} ({a.ids[i]} and {b.ids[i]})"
        raise InvalidPredictionsError(f"{both} have different ids, {place}: {IN_ORDER}", ways[:1])
    groups = [None if d.clusters is None else by_appearance(d.clusters) for d in (a, b)]
    others = [None if d.crossed is None else by_appearance(d.crossed) for d in (a, b)]
    facts: dict[str, Sequence[object]] = {
        **{"weights": (a.weights, b.weights), "clusters": groups, "by": (a.by, b.by)},
        **{"folds": (a.folds, b.folds), "second clusters": others},
    }
    for fact, (one, other) in facts.items():
        if not np.array_equal(np.asarray(one), np.asarray(other)):
            raise InvalidPredictionsError(f"{both} have different {fact}: {advice}", ways)
    (unlike,) = np.nonzero(a.labels != b.labels)
    for i in unlike[:1]:
        if np.array_equal(np.bincount(a.labels), np.bincount(b.labels)):
            advice = "each label is as frequent in both, as in another order of the rows: "
            advice, ways = advice + IN_ORDER, ways[:1]
        pair = " and ".join(d.class_name(int(d.labels[i])) for d in (a, b))
        raise InvalidPredictionsError(
            f"{both} have different labels in {several(unlike.size, 'row')}, first in "
            f"{nth(int(i))} ({pair}): {advice}",
            ways,
        )
