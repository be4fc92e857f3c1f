"""What the columns of a table mean, and a note of what was understood."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from caltest._base.arrays import AnyArray, FloatArray, IntArray, largest
from caltest._base.copies import MISSES
from caltest._base.facts import RIGHT, are_dates, as_times, refuse_ids, refuse_names
from caltest._base.features import as_features
from caltest._base.labels import bare_ends, matches, refuse_reordered
from caltest._base.naming import in_a_file
from caltest._base.reading import on_a_scale
from caltest._base.written import several
from caltest.errors import DoubtfulInputWarning, InvalidPredictionsError
from caltest.followup import Followup
from caltest.tables import cells
from caltest.tables.answers import answers_alike
from caltest.tables.chosen import Chosen
from caltest.tables.columns import Choice, says_right, shortened, times_of_follow_up
from caltest.tables.complete import complete_rows
from caltest.tables.contents import probabilities_among
from caltest.tables.followup import followup_of
from caltest.tables.names import (
    DATES,
    FACTS,
    IDS,
    MODELS,
    OWNERS,
    PREDICTED,
    WEIGHTS,
    in_hindsight,
    key,
    words,
)
from caltest.tables.probabilities import are_logits, in_percent
from caltest.tables.source import Column, Request, Source, listing

#: So many rows of all columns fit into the cache.
_BLOCK = 8192
#: Labels that are all alike are doubted where so many others were to be expected.
ALIKE = 20.0
#: Rows of one person, on average, from which on these are more than a few double entries.
MORE = 1.05


@dataclass(frozen=True)
class Understood:
    """Arguments for predictions, which rows of the table they are, and notes on how they arose."""

    probs: AnyArray
    labels: AnyArray | Followup
    classes: Sequence[object] | None
    facts: dict[str, Any]
    rows: IntArray
    naming: AbstractContextManager[None]
    notes: tuple[str, ...]
    chosen: Chosen
    unused: tuple[str, ...]
    from_logits: bool


def understood(source: Source, request: Request, chosen: Chosen, before: int = 0) -> Understood:
    """Return what the chosen columns hold, as arguments for predictions.

    Rows are counted from ``before``, those that were read before.
    """
    wanted, choice, outcomes = chosen.wanted, chosen.choice, chosen.outcomes
    wanted += chosen.features
    columns = dict(zip(wanted, map(np.atleast_1d, source.read(wanted)), strict=True))
    if request.multilabel:  # whose outcomes may be missing
        columns |= {name: cells.with_gaps(columns[name], name) for name in outcomes}
    _refuse_models(source, request, wanted)
    _refuse_unordered(source, request, wanted)
    first = 0 if source.frame else before + 1
    needed = {name: columns[name] for name in chosen.wanted}
    with in_a_file(range(first, sys.maxsize), [], source.parts):
        rows, dropped = complete_rows(needed, request, chosen, source)
    if dropped:
        columns = {name: column[rows] for name, column in columns.items()}
    label = outcomes[0] if len(outcomes) == 1 and not outcomes[0].endswith("=") else ""
    naming = partial(in_a_file, rows + first, choice.probs, source.parts, label)
    with naming():
        percent = request.percent or in_percent(source, request, columns, choice.probs)
        values = _stacked(columns, choice.probs, percent)
        if request.percent and 0.0 < values.max(initial=0.0) <= 0.01:
            warnings.warn(
                f"{choice.probs[0]} was read in percent, but no value is above 1: it may hold "
                "probabilities already",
                DoubtfulInputWarning,
                stacklevel=4,
            )
        by_name = not (request.from_logits or source.part) and are_logits(choice.probs, values)
        if by_name:
            request = replace(request, from_logits=True)
        if values.ndim == 1 and values.dtype.kind in "iuf" and not request.from_logits:
            _refuse_scale(source, choice.probs[0], values, wanted)
        _refuse_pixels(choice.probs[0], values, columns[outcomes[0]])
        outcome: Column | Followup
        outcome, classes, remark = _labels(columns, values, request, chosen, source)
        facts, remarks = _facts(columns, rows.size, request, chosen, source)
        if request.event is not None:
            (outcome, remark), classes = followup_of(outcome, facts, request, chosen), None
    unused = [name for name in source.names if name and name not in wanted]
    likely = [name for name in unused if FACTS & {*words(name)}]  # which an answer may need
    others = [name for name in unused if name not in likely]
    remarks += [f"not used: {listing([*likely, shortened(others) * bool(others)])}"] * bool(unused)
    of = f"column{'s' * (len(choice.probs) > 1)} {shortened(choice.probs)}"
    of += " in percent" * percent + " (logits, by their names)" * by_name
    n_classes = max(2, len(choice.probs), values.shape[-1] if values.ndim == 2 else 2)
    files = f" of {len(source.parts)} files" * bool(source.parts)
    read = f"read {several(rows.size, 'row')}{files}, {n_classes} classes from {of}"
    note = ", ".join([read, remark, *remarks])
    notes = (note, *chosen.notes, *source.notes, *dropped)
    if (lengths := times_of_follow_up(unused)) and n_classes == 2 and request.event is None:
        options = shlex.join(["--event", outcomes[0], "--time", lengths[0], "--horizon", "T"])
        notes += (
            f"{lengths[0]} seems to say how long rows were followed, and rows without the event "
            "are taken as followed to the end: if some were not, audit with event=, time= and "
            f"horizon= in place of labels ({options})",
        )
    if request.folds is None and (models := [n for n in unused if {"fold", "folds"} & {*words(n)}]):
        notes += (
            f"if {models[0]} says which model of a cross-validation predicted a row, audit with "
            f"folds={models[0]!r} (--folds {models[0]})",
        )
    if weights := [n for n in unused if key(n) in WEIGHTS and not (request.weights or source.part)]:
        warnings.warn(
            f"column {weights[0]} is not used, and all rows count alike: to weight them say "
            f"weights={weights[0]!r} (--weights {weights[0]})",
            DoubtfulInputWarning,
            stacklevel=4,
        )
    if request.clusters is None and request.event is None and not source.part:
        _doubt_independence(source, unused, rows)
    return Understood(values, outcome, classes, facts, rows, naming(), notes, chosen,
                      _searchable(source, unused), request.from_logits)  # fmt: skip


def _doubt_independence(source: Source, names: list[str], rows: IntArray) -> None:
    """Warn of a column of persons or the like, of whom some have several rows."""
    owners = [name for name in names if OWNERS & {*words(name)}]
    for name, column in (source.readable(owners) if owners else {}).items():
        if column.ndim > 1:
            continue
        n_owners = len({*column[rows].tolist()})
        if 10 <= n_owners < rows.size / MORE:
            warnings.warn(
                f"column {name} has {n_owners} values in {several(rows.size, 'row')}: those of one "
                f"{name} may depend on each other, and nothing here allows for that unless "
                f"you say clusters={name!r} (--clusters {name})",
                DoubtfulInputWarning,
                stacklevel=5,
            )


def _searchable(source: Source, unused: list[str]) -> tuple[str, ...]:
    """Return columns that could be features, by their names: cells would cost another pass."""
    if source.log or source.part or source.parts:  # of many files only what is asked for is read
        return ()
    others = [name for name in unused if not (IDS | DATES) & {*words(name)}]
    return tuple(n for n in others if not in_hindsight(n) and key(n) not in PREDICTED)


def _labels(
    columns: dict[str, Column], values: Column, request: Request, chosen: Chosen, source: Source
) -> tuple[Column, Sequence[object] | None, str]:
    """Return the labels, the classes that these are of, and a remark."""
    outcomes, probs = chosen.outcomes, chosen.choice.probs
    one, classes = len(outcomes) == 1, request.classes
    truth = cells.labels(columns[outcomes[0]]) if one else _stacked(columns, outcomes)
    remark = f"labels from {shortened(outcomes)}"
    if chosen.predicted is not None:
        answers, names = columns[chosen.predicted], (probs[0], chosen.predicted, outcomes[0])
        label, answer, how = answers_alike(truth, cells.labels(answers), names[1:])
        right = cells.right(label, answer, values, names, chosen.sure)
        if right is not None:
            truth, classes = right, RIGHT
            remark = f"as the probability that {chosen.predicted} equals {outcomes[0]}{how}"
    elif says_right(truth, outcomes[0]) and values.ndim == 1 and chosen.lone:
        classes = RIGHT
    if request.classes is not None:
        refuse_reordered(chosen.choice.suffixes or probs, request.classes)
    if classes is None and not source.log:
        classes = _class_values(chosen.choice, values, truth)
        cells.refuse_indicator(values, truth, outcomes[0])
    return truth, classes, remark


def _facts(
    columns: dict[str, Column], n: int, request: Request, chosen: Chosen, source: Source
) -> tuple[dict[str, Any], list[str]]:
    """Return what else is known of the rows, by the names of arguments, and remarks."""
    remarks = [f"{fact} from {name}" for fact, name in chosen.facts.items()]
    facts: dict[str, Any] = {fact: cells.marks(columns[c]) for fact, c in chosen.facts.items()}
    if chosen.features:
        described = {name: columns[name] for name in chosen.features}
        if not source.frame:
            described = {name: cells.feature(column) for name, column in described.items()}
        every = request.features in ("*", ["*"])
        before = {n: column for n, column in described.items() if not (every and in_hindsight(n))}
        facts["features"] = as_features(before, n, leave_ids=every)
        searched = facts["features"].named
        remarks.append(f"features from {shortened([*searched])}")
        if left := [name for name in described if name not in searched]:
            remarks.append(
                f"left out {listing(left)}, which name, number or time the rows or are known with "
                "the outcome: to search them, name them in features= (--features)"
            )
    if "by" in facts:
        facts["by"] = cells.with_none(facts["by"])
        refuse_names(facts["by"].astype(str), chosen.facts["by"])
    if "weights" in facts:
        refuse_ids(facts["weights"], chosen.facts["weights"])
    if columns_of := [fact for fact in facts if fact.startswith("clusters ")]:
        facts["clusters"] = {chosen.facts[fact]: facts.pop(fact) for fact in columns_of}
    return facts, remarks


def doubt_labels(chosen: Chosen, labels: IntArray, probs: FloatArray) -> None:
    """Warn of a column of labels with one value, and of one that holds predicted classes."""
    name, n = chosen.outcomes[0], labels.size
    others = n - float(probs[:, labels[0]].sum())
    doubt = ""
    if others >= ALIKE and bool((labels == labels[0]).all()):
        doubt = (
            f"the labels in {name} are all alike, where {others:.0f} of {n} were expected to be "
            "others: is this the column of what was observed?"
        )
    elif (
        key(name) in PREDICTED
        and (1.0 - largest(probs)).sum() < MISSES  # of many, Predictions.of warns
        and np.array_equal(labels, probs.argmax(axis=1))
    ):
        doubt = (
            f"{name} is the class of the largest probability in every row: these may be "
            "predicted classes, not what was observed"
        )
    if doubt:
        warnings.warn(doubt, DoubtfulInputWarning, stacklevel=4)


def _refuse_scale(source: Source, name: str, values: Column, wanted: Sequence[str]) -> None:
    """Refuse a score of a few steps, and name the columns that may be probabilities."""
    if source.part or not on_a_scale(values[~np.isnan(values)]):
        return
    others = [other for other in source.names if other and other not in wanted]
    likely = probabilities_among(source, others)[0]
    percent = "divide by 100" if source.frame else "say percent=True (--percent)"
    raise InvalidPredictionsError(
        f"{name} holds whole numbers up to {values.max():g}: a score or grade, no probability"
        + f"; one may be in {' or '.join(likely)}" * bool(likely)
        + f"; if they are percents all the same, {percent}",
        [("--probs", name) for name in likely],
    )


def _refuse_pixels(name: str, values: Column, truth: Column) -> None:
    """Refuse images of probabilities; labels of their shape with a single 1 a row are one-hot."""
    alike = values.ndim == 2 and values.shape == truth.shape
    if values.ndim > 2 or (alike and (truth.sum(axis=1) != 1).any()):
        raise InvalidPredictionsError(
            f"{name} has the shape {values.shape}: of pixels give one row each, probs.ravel() and "
            "labels.ravel(), with the image of each for clusters= (--clusters)"
        )


def _refuse_models(source: Source, request: Request, wanted: list[str]) -> None:
    """Refuse rows of several models, where a column says that they are."""
    if request.one_model or source.log:
        return
    for name in (n for n in source.names if key(n) in MODELS and n not in wanted):
        models = sorted(set(map(str, source.read([name])[0].tolist())))
        if len(models) > 1:
            go_on = "leave the column out" if source.frame else "say one_model=True (--one-model)"
            raise InvalidPredictionsError(
                f"column {name} names {len(models)} models ({shortened(models)}), which are not "
                f"pooled unasked: look at each with by={name!r}"
                f"{f' (--by {name})' * (not source.frame)}, keep the rows of one, or, if they are "
                f"one model, {go_on}",
                [("--by", name), ("--one-model",)],
            )


def _refuse_unordered(source: Source, request: Request, wanted: list[str]) -> None:
    """Refuse forecasts several steps ahead whose rows are not in the order of a column of dates."""
    if request.ahead in (None, 1) or request.time is not None or source.log:
        return
    for name, times in times_among(source, [n for n in source.names if n and n not in wanted]):
        if (np.diff(times) <= 0.0).any():
            raise InvalidPredictionsError(
                f"horizon={request.ahead} counts steps from row to row, and the rows are not one "
                f"after the other by column {name}: say time={name!r} (--time {name})",
                [("--time", name)],
            )


def times_among(source: Source, names: Sequence[str]) -> Iterator[tuple[str, FloatArray]]:
    """Yield those of some columns that hold dates, and their times."""
    for name in names:
        column = source.read([name])[0]
        text = column.dtype.kind in "UO" and are_dates(column)
        if text or column.dtype.kind == "M" or DATES & {name.lower(), *words(name)}:
            with suppress(InvalidPredictionsError):  # no dates
                yield name, as_times(column, len(column))


def _class_values(choice: Choice, values: Column, truth: Column) -> Sequence[object] | None:
    """Return the label values that the column names carry, if the labels are such values."""
    if values.ndim == 1:
        return None
    words = sorted(np.unique(truth).tolist(), key=len)[::-1] if truth.dtype.kind == "U" else []
    if choice.suffixes is None:  # P(home), P(draw), …: one label each
        named = [next((w for w in words if w in name), "") for name in choice.probs]
        if words and sorted(named) == sorted(words):
            return named
        ways = (choice.probs, bare_ends(choice.probs)) if words else ()
        return next((way for way in ways if matches(way, words)), None)
    if words:
        return choice.suffixes
    if all(s.isdecimal() for s in choice.suffixes):
        numbers = [int(s) for s in choice.suffixes]
        absent = {*range(min(numbers), max(numbers))} - {*numbers}
        for number in sorted(absent & {*truth.ravel().tolist()} if truth.ndim == 1 else ()):
            of = shortened(choice.probs)
            raise InvalidPredictionsError(f"label {number:g} occurs, but has no column beside {of}")
        return numbers
    return choice.suffixes if truth.ndim == 2 else None


def _stacked(columns: dict[str, Column], names: list[str], percent: bool = False) -> Column:
    """Return probabilities as one array, a column as it is."""
    parts = [cells.numbers(columns[name], name, percent) for name in names]
    if len(parts) == 1:
        return parts[0]
    table = np.empty((len(parts[0]), len(parts)))
    for i in range(0, len(table), _BLOCK):
        for j, column in enumerate(parts):
            table[i : i + _BLOCK, j] = column[i : i + _BLOCK]
    return table
