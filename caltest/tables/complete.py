"""Which rows of a table can be read: those without gaps, whose label is not to be left out."""

from __future__ import annotations

import shlex
from difflib import get_close_matches

import numpy as np

from caltest._base.arrays import BoolArray, IntArray
from caltest._base.labels import dropping
from caltest._base.reading import listed_rows
from caltest._base.written import several
from caltest.errors import InPlace, InvalidPredictionsError
from caltest.tables import cells
from caltest.tables.chosen import Chosen
from caltest.tables.source import Column, Request, Source, listing


def complete_rows(
    columns: dict[str, Column], request: Request, chosen: Chosen, source: Source
) -> tuple[IntArray, list[str]]:
    """Return the rows that can be read, and a note on the others."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        remark = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InvalidPredictionsError(f"the columns have different numbers of rows: {remark}")
    n, most = next(iter(lengths.values())), request.drop_missing
    drop = most is True
    may_lack = [*chosen.outcomes] if request.multilabel else []
    by = chosen.facts.get("by", "")
    if not drop and chosen.needed.count(by) == 1 and not cells.missing(columns[by]).all():
        may_lack.append(by)  # rows without a value are a subgroup of their own
    left, notes = _left_out(columns, request, chosen, source)
    if 0.0 < most < 1.0 and not (request.multilabel or source.part or request.event):
        last = _not_yet_known([columns[name] for name in chosen.outcomes])
        none_yet = f"left out the last {last} of {several(n, 'row')}, which have no outcome yet"
        notes += [none_yet] * (last > 0)
        left[n - last :] = True
    gaps = {name: cells.missing(c) & ~left for name, c in columns.items() if name not in may_lack}
    gaps = {name: rows for name, rows in gaps.items() if rows.any()}
    numeric = [*chosen.choice.probs, *chosen.outcomes[: len(chosen.outcomes) > 1]] * bool(drop)
    garbled = {name: cells.garbled(columns[name], request.percent) & ~left for name in numeric}
    garbled = {name: rows & ~gaps.get(name, ~rows) for name, rows in garbled.items()}
    garbled = {name: rows for name, rows in garbled.items() if rows.any()}
    if not gaps and not garbled:
        return np.flatnonzero(~left), notes
    complete = np.flatnonzero(~np.any([left, *gaps.values(), *garbled.values()], axis=0))
    lacking = n - complete.size - int(left.sum())
    unseen = {*chosen.choice.probs, *chosen.outcomes, chosen.predicted}
    unseen |= {chosen.facts.get("time")} if request.event is not None else set()
    # Rows without a prediction or an outcome; what else is missing, such as a cluster, may matter.
    few = lacking <= most * n or (bool(most) and _not_attempted(columns, gaps, chosen.outcomes))
    drop = drop or (unseen >= gaps.keys() and few)
    counted = "counted from 1, without the header" * (not source.frame)
    places = {name: listed_rows(rows) for name, rows in gaps.items()}
    if drop and complete.size:
        counts = [f"{name} {rows.sum()}" for name, rows in gaps.items()]
        if most is not True:
            counts = [f"{name} in {rows}" for name, rows in places.items()]
        remark = f"dropped {lacking} of {several(n, 'row')} with missing cells"
        remark += f" ({', '.join(counts)}{f'; {counted}' * (most is not True)})" if counts else ""
        for name, rows in garbled.items():
            shown = str(columns[name].ravel()[int(np.argmax(rows))])
            remark += f"; {name} held no number in {rows.sum()}, such as {shown!r}"
        return complete, [*notes, remark.replace(" with missing cells;", ":")]
    name, gap = next(iter((gaps or garbled).items()))
    few = bool(5 * complete.size >= 4 * (n - left.sum()))
    remark = f"column {name} has {several(int(gap.sum()), 'missing cell')}"
    if drop:
        raise InvalidPredictionsError(f"no row is complete; {remark}")
    option = f"drop_missing=True{' (--drop-missing)' * (not source.frame)}"
    way = f", or leave them out with {option}"
    if not few:
        lost = f"{lacking} of {several(n, 'row')}"
        way = f": {option} would leave out {lost}; is {name} the column that was meant?"
    raise InvalidPredictionsError(
        f"{remark}, in {places[name]}{f' ({counted})' * bool(counted)}; complete these rows{way}",
        [("--drop-missing",)] * few,
    )


def _not_attempted(
    columns: dict[str, Column], gaps: dict[str, BoolArray], outcomes: list[str]
) -> bool:
    """Say whether rows that lack a prediction share one word as label, which no other row has."""
    label = columns[outcomes[0]]
    if len(outcomes) > 1 or label.dtype.kind not in "UO" or not gaps or outcomes[0] in gaps:
        return False
    gap = np.any([*gaps.values()], axis=0)
    words = {*map(str, label[gap].tolist())}
    return len(words) == 1 and not words & {*map(str, label[~gap].tolist())}


def _not_yet_known(outcomes: list[Column]) -> int:
    """Return how many of the last rows have no outcome, where all before have one.

    0 of rows that are sorted by the outcome, whose last ones come from anywhere.
    """
    waits = np.any([cells.missing(column) for column in outcomes], axis=0)
    first = int(np.argmax(waits))
    if not first or not waits[first:].all():
        return 0
    texts = np.array([list(map(str, column[:first].tolist())) for column in outcomes])
    changes = (texts[:, 1:] != texts[:, :-1]).any(axis=0).sum()
    return waits.size - first if changes >= len(np.unique(texts, axis=1).T) else 0


def _left_out(
    columns: dict[str, Column], request: Request, chosen: Chosen, source: Source
) -> tuple[BoolArray, list[str]]:
    """Return the rows whose label is one to be left out, and notes on them.

    Refused is such a label that does not occur, and an outcome that is not known beside two others.
    """
    name, *others = chosen.outcomes
    column, drop = columns[name], list(map(str, request.drop_labels))
    if drop and (others or column.ndim > 1):
        raise InvalidPredictionsError("drop_labels (--drop-label) is for one column of labels")
    if not drop:
        waits = cells.pending(column)
        if waits.any() and request.classes is None and not others:
            unknown = sorted(set(map(str, column[waits].tolist())))
            flags = dropping(unknown)
            raise InvalidPredictionsError(
                f"column {name} holds {listing(map(repr, unknown))} in {listed_rows(waits)}, no "
                f"outcome yet: leave them out with drop_labels={unknown} ({shlex.join(flags)})",
                [(*chosen.of_verdicts(column, source, request), *flags)],
            )
        return np.zeros(len(column), dtype=bool), []
    texts = np.array([str(cells.plain(v)).strip() for v in column.tolist()])
    for label in () if source.part else drop:
        if label not in texts:
            occur = np.unique(texts).tolist()
            close = get_close_matches(label, occur, 1, 0.5)
            raise InvalidPredictionsError(
                f"drop_labels: no label in column {name} is {label!r}, but {listing(occur[:5])}",
                [InPlace(label, other) for other in close],
            )
    left = np.isin(texts, drop)
    if left.all():
        raise InvalidPredictionsError(f"drop_labels: no row is left of {several(left.size, 'row')}")
    counts = [f"{label} {int((texts == label).sum())}" for label in drop]
    remark = f"left out {left.sum()} of {several(left.size, 'row')} by their label"
    return left, [f"{remark} ({', '.join(counts)})"]
