"""What the columns of a table mean together, and which of its rows can be read."""

from __future__ import annotations

import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from itertools import permutations
from os import PathLike
from typing import Any

import numpy as np

from caltest._base.arrays import AnyArray, BoolArray, FloatArray, IntArray, largest
from caltest._base.features import as_features
from caltest._base.naming import in_a_file, nth
from caltest._base.written import several
from caltest.data.facts import RIGHT, are_dates, as_times, refuse_ids, refuse_names
from caltest.data.followup import Followup, swapped
from caltest.data.labels import (
    EVENT_WORDS,
    NO_END,
    Request,
    as_event,
    bare_ends,
    dropping,
    end_of,
    event_of,
    lowered,
    marks,
    matches,
    opposites,
    refuse_reordered,
)
from caltest.data.numbers import MISSES, as_numbers, listed_rows, on_a_scale
from caltest.errors import DoubtfulInputWarning, InPlace, InvalidPredictionsError
from caltest.read import source as cells
from caltest.read.columns import (
    Choice,
    are_fractions,
    are_logits,
    choose_labels,
    choose_probs,
    in_percent,
    named,
    paired,
    probabilities_among,
    refuse_lone,
    refuse_unknown,
    says_right,
    shortened,
    times_of_follow_up,
)
from caltest.read.source import (
    DATES,
    FACTS,
    FAMILIES,
    IDS,
    MODELS,
    OWNERS,
    PREDICTED,
    WEIGHTS,
    Column,
    Source,
    answers_alike,
    in_hindsight,
    key,
    listing,
    words,
)

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
    facts: dict[str, Any] = {fact: marks(columns[c]) for fact, c in chosen.facts.items()}
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


# ------------------------------------------------------------------------------
# Which columns of a table are what, together.


#: Commands that are spelled out where a table can be read in several ways.
MOST = 6


@dataclass(frozen=True)
class Chosen:
    """Which columns of a table are probabilities, outcomes, facts, and perhaps predicted classes.

    ``sure``: whether predicted classes are known to be what the probability is about; ``lone``:
    whether nobody has said what labels and classes are.
    """

    choice: Choice
    outcomes: list[str]
    facts: dict[str, str]
    predicted: str | None
    sure: bool = False
    lone: bool = True
    features: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def wanted(self) -> list[str]:
        """The names of all of them but features, whose cells may be missing."""
        return list(dict.fromkeys(self.needed))

    @property
    def needed(self) -> list[str]:
        """The same, a column once for each thing that it is needed for."""
        predicted = [] if self.predicted is None else [self.predicted]
        return [*self.outcomes, *self.facts.values(), *self.choice.probs, *predicted]

    def of_verdicts(self, verdicts: Column, source: Source, request: Request) -> tuple[str, ...]:
        """Return options that name a column of verdicts on answers and its event, if it is one."""
        pair = opposites(verdicts, EVENT_WORDS)
        events = {*verdicts[lowered(verdicts) == pair[1]].tolist()} if pair else set()
        if len(events) != 1 or not PREDICTED & {*map(key, source.names)}:
            return ()
        event = events.pop() if request.pos_label is None else str(request.pos_label)
        return "--probs", self.choice.probs[0], "--label", self.outcomes[0], "--pos-label", event


def chosen_of(source: Source, request: Request) -> Chosen:
    """Find out which columns are what."""
    chosen = _chosen(source, request)
    if request.features is None:
        return chosen
    every = request.features in ("*", ["*"])
    columns = chosen.wanted if every else [*chosen.outcomes, *chosen.choice.probs]
    others = [name for name in source.names if name and name not in columns]
    features = request.features
    features = features.split(",") if isinstance(features, str) else features
    for name in (name for name in columns if name in features):
        what = "holds the probabilities, by which segments are searched in any case"
        if name not in chosen.choice.probs:
            what = "is the label, and segments are of what is known before: leave it out"
        raise InvalidPredictionsError(f"features: {name} {what}")
    if not others:
        raise InvalidPredictionsError(
            f"no column is left to search for segments: {shortened(columns)} are used already; "
            "those of clusters, weights and the like may be named in features= (--features), too",
            [("--features", name) for name in chosen.facts.values()],
        )
    return replace(chosen, features=tuple(named(others, request.features).probs))


def _chosen(source: Source, request: Request) -> Chosen:
    label, probs, facts = request.label, request.probs, request.facts
    if source.log:
        label, probs = label or "label", probs or "probs"
        facts = {"ids": "id"} | facts
    refuse_unknown(facts.values(), source.names)
    label = str(label) if isinstance(label, PathLike) else label
    try:
        labels = choose_labels(source, label, facts.values(), request.drop_labels)
    except InvalidPredictionsError as error:
        remedies = tuple(_remedies(source, request, error.remedies))[:MOST]
        raise InvalidPredictionsError(str(error), remedies) from None
    _refuse_shared(labels.probs, "is the label, which is known only afterwards", facts)
    others = [name for name in source.names if name not in (*labels.probs, *facts.values())]
    if probs is not None:
        parts = probs.split(",") if isinstance(probs, str) else ()
        for name in {*labels.probs} & {*parts}:
            raise InvalidPredictionsError(
                f"column {name!r} is taken for labels: probabilities are in a column of their own"
            )
        _refuse_shared(parts, "holds the probabilities", facts)
        choice = named(others, probs)
    else:
        answers = [name for name in others if key(name) in PREDICTED]
        answers = [name for name in answers if not are_fractions(source.read([name])[0])]
        likely = [name for name in others if name not in answers] or others
        try:
            choice = choose_probs(source, likely, labels, request.from_logits)
        except InvalidPredictionsError:
            among = probabilities_among(source, [*dict.fromkeys(facts.values())])[0]
            _refuse_shared(among, "holds the only probabilities", facts)
            raise
    refuse_lone(choice)
    outcomes = paired(labels, choice)
    if request.pos_label is None and request.predicted_label is None:
        _refuse_one_class(source, choice.probs, outcomes)
    if request.predicted_label is not None:
        refuse_unknown([request.predicted_label], source.names)
        return Chosen(choice, outcomes, facts, request.predicted_label, sure=True)
    notes = (*labels.notes, *choice.notes)
    named_classes = request.classes is not None or request.pos_label is not None
    if named_classes or len(choice.probs) > 1 or len(outcomes) > 1 or source.log:
        return Chosen(choice, outcomes, facts, None, lone=False, notes=notes)
    predicted = _predicted(source, others, choice.probs[0], outcomes[0])
    return Chosen(choice, outcomes, facts, predicted, notes=notes)


def _refuse_shared(columns: Sequence[str], what: str, facts: Mapping[str, str]) -> None:
    """Refuse a column of labels or probabilities that is named for another fact of the rows."""
    for fact, name in facts.items():
        if name in columns:
            option = fact.split(maxsplit=1)[0]
            raise InvalidPredictionsError(
                f"{option}= (--{option}): {name} {what}: name another column, or leave it out",
                [(f"!--{option}",)],
            )


def _remedies(
    source: Source, request: Request, labels: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Yield those options of labels with which a table can be read, and what else these need."""
    for remedy in labels:
        option, name = remedy[0], remedy[-1]
        try:
            if option == "--label":
                _chosen(source, replace(request, label=name))
        except InvalidPredictionsError as error:
            yield from ((option, name, *more) for more in error.remedies)
        else:
            yield remedy


def _refuse_one_class(source: Source, probs: Sequence[str], outcomes: Sequence[str]) -> None:
    """Refuse one column that is called as one of several classes: it is about that alone."""
    if len(probs) != 1 or len(outcomes) != 1:
        return
    truth = cells.labels(source.read(outcomes)[0])
    names = [*dict.fromkeys(truth.ravel().tolist())] if truth.dtype.kind == "U" else []
    called = {probs[0], *(probs[0].removeprefix(f"{head}_") for head in FAMILIES)}
    for name in (name for name in names if name in called and len(names) > 2):
        event = f"{outcomes[0]}=={name}"
        raise InvalidPredictionsError(
            f"column {probs[0]} is called as one of {len(names)} labels in {outcomes[0]}: if it is "
            f"the probability of that, say label={event!r} (--label {event!r})",
            [("--label", event)],
        )


def _other_words(truth: Column, answer: Column) -> bool:
    """Say whether labels are words for an event or a right answer, and no answer is such a word."""
    if not opposites(truth, EVENT_WORDS) and event_of(truth[~cells.missing(truth)]) is None:
        return False
    return not np.isin(lowered(answer), lowered(truth)).any()


def _predicted(source: Source, names: Sequence[str], prob: str, label: str) -> str | None:
    """Return the column of the predicted classes that one probability may be about.

    It is known by its name; where labels are text, by its cells, which occur as labels.
    """
    names = [name for name in names if name != prob]
    answers = [name for name in names if key(name) in PREDICTED]
    if answers:
        truth, answer = map(cells.labels, source.read([label, answers[0]]))
        right, in_words = says_right(truth, label), answer.dtype.kind == "U"
        if right and not in_words and np.isin(answer, (0, 1)).all():
            raise InvalidPredictionsError(
                f"column {label} could say whether {answers[0]} was right, or what would have "
                f"been: say pos_label=1 (--pos-label 1) for the first, or predicted_label="
                f"{answers[0]!r} (--predicted-label {answers[0]}) for the second",
                [("--pos-label", "1"), ("--predicted-label", answers[0])],
            )
        if right or (in_words and truth.dtype.kind != "U") or _other_words(truth, answer):
            return None
    if not answers and names:
        truth = cells.labels(source.read([label])[0])
        if truth.dtype.kind == "U" and event_of(truth) is None:
            values, columns = np.unique(truth), source.readable([label, *names])
            labels = [(name, cells.labels(columns[name])) for name in names if name in columns]
            texts = [(n, c) for n, c in labels if c.dtype.kind == "U" and c.shape == truth.shape]
            answers = [name for name, c in texts if np.isin(c, values).mean() > 0.5]
    if len(answers) > 1:
        raise InvalidPredictionsError(
            f"the predicted classes could be {' or '.join(answers)}; choose with predicted_label= "
            "(--predicted-label)",
            [("--predicted-label", name) for name in answers],
        )
    return answers[0] if answers else None


# ------------------------------------------------------------------------------
# Which rows of a table can be read: those without gaps, whose label is not to be left out.


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


# ------------------------------------------------------------------------------
# Follow-up in columns of a table: in which unit its times are, and what ended it.


#: How many days units have, by the words for them; the short ones end a longer name.
UNITS = {
    **dict.fromkeys(("years", "year", "yrs", "yr", "jahre", "y"), 365.25),
    **dict.fromkeys(("months", "month", "mos", "mo", "monate", "m"), 365.25 / 12.0),
    **dict.fromkeys(("weeks", "week", "wks", "wk", "wochen", "w"), 7.0),
    **dict.fromkeys(("days", "day", "tage", "d"), 1.0),  # codespell:ignore tage
    **dict.fromkeys(("hours", "hour", "hrs", "hr", "h"), 1.0 / 24.0),
}


NAMES = {UNITS[name]: name for name in ("years", "months", "weeks", "days", "hours")}


#: How rows end, by the numbers of events, and how words for these are listed.
ROLES = ("censored", "the event", "competing")


_IN_ORDER = "first the censored, then the event, then what competes, '|' between words alike"


#: Names of a column that may mark events, or rows without.
CENSORED = re.compile(r"(?i)(?:^|_|is)cens")


#: A length with its unit, also within the name of a column of risks.
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)(?:[ _-](?=[a-z]{2}))?([a-z]+)")


#: Numbers that are usual of one unit, and hardly of a shorter one in which times are.
USUAL = {"years": (1, 2, 3, 4, 5, 8, 10, 15, 20), "months": (3, 6, 9, 12, 18, 24, 36, 48)}


#: A horizon below such a share of the longest time, or beyond so many of it, may have another unit.
SHORT, FAR = 0.1, 3.0


#: Days that nobody is followed for, and what months and years of whole days differ by.
LIFE, ROUNDED = 80.0 * 365.25, 0.04


Length = tuple[float, str]


def followup_of(
    truth: Column, facts: dict[str, Any], request: Request, chosen: Chosen
) -> tuple[Followup, str]:
    """Return what was seen of rows that were followed, whose facts it takes, and a remark."""
    times, strata = cells.numbers(facts.pop("time"), "time"), facts.pop("strata", None)
    event, remark = _events(truth, request)
    if event.dtype.kind in "iuf" and swapped(times, event):
        columns = request.event, chosen.facts["time"]
        raise InvalidPredictionsError(
            f"event= (--event): {columns[0]} reaches to {event.max():g}, as no kinds of events do, "
            f"and {columns[1]}, for time= (--time), has two values: name each in the other's place",
            [("--event", columns[1], "--time", str(columns[0]))],
        )
    longest = float(np.nanmax(times, initial=0.0))
    horizon = _horizon(request.horizon, chosen.facts["time"], longest, chosen.choice.probs[0])
    if isinstance(request.horizon, str):
        remark += f", the horizon {request.horizon} is {horizon:g} in {chosen.facts['time']}"
    kinds = as_numbers(event, "event")
    for row in np.flatnonzero((kinds < 0.0) | (kinds != np.floor(kinds)))[:1]:
        raise InvalidPredictionsError(
            f"event: {nth(row)} is {kinds[row]:g}; events are 0 (censored), 1 (the event), 2, "
            "3, … (competing events), or booleans: write them so"
        )
    competing = kinds >= 2 if (kinds >= 2).any() else None
    return Followup(times, kinds == 1, horizon, competing=competing, strata=strata), remark


def _events(truth: Column, request: Request) -> tuple[Column | IntArray, str]:
    """Return the numbers of events, and what was taken for what where these are words."""
    values, rows, places = np.unique(truth, return_index=True, return_inverse=True)
    occur, pos_label = [str(cells.plain(v)) for v in values.tolist()], request.pos_label
    if request.classes is not None and pos_label is not None:
        raise InvalidPredictionsError(
            "of events say classes= (--classes) or pos_label= (--pos-label), not both",
            [("!--pos-label",), ("!--classes",)],
        )
    if request.classes is not None:
        groups = [str(name).split("|") for name in request.classes]
        codes = {word.strip(): code for code, group in enumerate(groups) for word in group}
        for row in sorted(rows[i] for i, word in enumerate(occur) if word not in codes)[:1]:
            raise InvalidPredictionsError(
                f"event: {nth(int(row))} is {str(cells.plain(truth[row]))!r}, which is none of "
                f"classes={[*request.classes]} (--classes): {_IN_ORDER}"
            )
    elif pos_label is not None and len(occur) < 3:
        _, (other, name) = as_event(truth, pos_label)
        codes = {other: 0, name: 1}
    elif pos_label is None and len(occur) == 2 and CENSORED.search(request.event or ""):
        raise InvalidPredictionsError(
            f"the name of {request.event} does not say whether {occur[1]} is an event or censored: "
            "pos_label= (--pos-label) names the event",
            [("--pos-label", word) for word in occur],
        )
    elif pos_label is not None or occur == ["1", "2"]:
        raise _undecided(occur, None if pos_label is None else str(pos_label))
    elif truth.dtype.kind != "U":
        return truth, f"events from {request.event}"
    elif (end := end_of(values)) is not None:
        codes = dict(zip(occur, end[1].astype(int).tolist(), strict=True))
    else:
        raise _undecided(occur, None)
    roles = [f"{word!r} {ROLES[min(codes[word], 2)]}" for word in occur]
    numbers = np.array([codes[word] for word in occur])[places.reshape(truth.shape)]
    return numbers, f"events from {request.event} ({', '.join(roles)})"


def _undecided(occur: list[str], event: str | None) -> InvalidPredictionsError:
    """Return the refusal of words of which it has to be said what they mean."""
    free = [word for word in occur if NO_END.match(word.lower()) or word == "0"]
    ends = [word for word in occur if word not in free]
    join = "|".join
    orders: list[tuple[str, ...]] = []
    ways: list[tuple[str, ...]] = [("--pos-label", word) for word in ends or occur]
    if event is not None and event in occur:
        others = [word for word in occur if word != event]
        bases = [[w for w in others if w in free]] if {*free} & {*others} else [[w] for w in others]
        rests = [join(w for w in others if w not in base) for base in bases]
        orders = [(join(b), event, rest) for b, rest in zip(bases, rests, strict=True) if rest]
        orders.append((join(others), event))
    elif occur == ["1", "2"]:
        ways = [("--pos-label", "2"), ("--classes", "0,1,2")]
    elif len(occur) > 2:
        orders = [(join(free), end, join(w for w in ends if w != end)) for end in ends]
        orders = [*orders, (join(free), join(ends))] if free else [*permutations(occur, 3)]
    if orders:
        ways = [("!--pos-label", "--classes", ",".join(order)) for order in orders if all(order)]
    if any({",", "|"} & {*word} for word in occur) or (not free and len(occur) > 3):
        ways = []
    shown = f"events are {', '.join(map(repr, occur[:6]))}"
    if occur == ["1", "2"]:
        shown = "no event is 0, censored: in files of R 1 may be so, and 2 the event"
    return InvalidPredictionsError(
        f"{shown}: say what they are with classes=[…] (--classes), {_IN_ORDER}; of two words "
        "pos_label= (--pos-label) names the event",
        ways[:MOST],
    )


def _length(text: str) -> Length | None:
    """Return the one length with its unit that a text names, such as (5, "years")."""
    lengths = {(float(n), NAMES[UNITS[u]]) for n, u in _LENGTH.findall(text.lower()) if u in UNITS}
    return lengths.pop() if len(lengths) == 1 else None


def _unit(name: str) -> str | None:
    """Return the unit that the name of a column of times says."""
    parts = words(name)
    short = parts[-1:] if len(parts) > 1 else []
    units = [part for part in parts if part in UNITS and (len(part) > 1 or part in short)]
    units += re.findall(r"^(?:year|month|week|day)s|(?:year|month|week|day)s$", name.lower())
    return NAMES[UNITS[units[-1]]] if units else None


def _horizon(horizon: Any, time: str, longest: float, risk: str) -> float:
    """Return the horizon in the unit of the times; refused where it seems to be in another."""
    unit, named = _unit(time), _length(risk)
    if isinstance(horizon, str):
        length = _length(horizon.replace(" ", ""))
        if length is None or not re.fullmatch(r"\s*\d+(\.\d+)?\s*[A-Za-z]+\s*", horizon):
            raise InvalidPredictionsError(
                f"horizon is a number, or one with its unit such as 5years, not {horizon!r}"
            )
        if named is not None and _ratio(length, named) > 1.0 + ROUNDED:
            warnings.warn(
                f"the horizon is {_said(*length)}, but {risk} says {_said(*named)}",
                DoubtfulInputWarning,
                stacklevel=5,
            )
        if unit is not None:
            return length[0] * UNITS[length[1]] / UNITS[unit]
        raise InvalidPredictionsError(
            f"the name of {time} does not say its unit: write the horizon as a number in that, "
            f"{_listed(length, None)}",
            [("--horizon", f"{value:g}") for value in _possible(length, longest)],
        )
    if not isinstance(horizon, (int, float)) or not horizon > 0.0:
        return horizon  # follow-up refuses it
    meant = _meant(float(horizon), unit, longest, named)
    where = f"horizon={horizon:g} is in the unit of {time}, which reaches to {longest:g}"
    words = " or ".join(_listed(length, unit) for length in meant)
    if meant and unit is None and named is None:
        warnings.warn(
            f"{where} and so is hardly in years: if {words} are meant, say the horizon in its unit",
            DoubtfulInputWarning,
            stacklevel=5,
        )
    elif meant:
        ways = [f"{v:g}" for length in meant for v in _possible(length, longest, unit)]
        words = f"{risk} says {words}" if named else f"it may have been meant as {words}"
        if unit is not None:
            ways.append(_said(horizon, unit, ""))
            words += f"; if not, say horizon={ways[-1]!r} (--horizon {ways[-1]})"
        raise InvalidPredictionsError(f"{where}: {words}", [("--horizon", way) for way in ways])
    return horizon


def _meant(horizon: float, unit: str | None, longest: float, named: Length | None) -> list[Length]:
    """Return the lengths that a horizon without a unit more likely was to be, [] where it fits."""
    if named is not None and unit is not None:
        ratio = horizon * UNITS[unit] / (named[0] * UNITS[named[1]])
        return [] if abs(ratio - 1.0) <= ROUNDED else [named]
    if named is not None:
        return [named] * (horizon == named[0] and longest * UNITS[named[1]] > LIFE)
    usual = [(horizon, u) for u, numbers in USUAL.items() if horizon in numbers]
    usual = [] if unit == "hours" else usual
    if unit is None:
        return usual[:1] * bool(horizon < SHORT * longest and longest * UNITS["years"] > LIFE)
    if horizon >= FAR * longest:
        others = [(horizon, u) for u in ("months", "days") if UNITS[u] < UNITS[unit]]
        halves = [2.0 * horizon * UNITS[u] / UNITS[unit] for _, u in others]
        pairs = zip(others, halves, strict=True)
        return [o for o, h in pairs if 0.9 < h <= 2.0 * longest and abs(h - round(h)) < 0.1]
    scales = [(length, UNITS[length[1]] / UNITS[unit]) for length in usual]
    short = horizon < SHORT * longest
    return [o for o, scale in scales if short and scale > 5.0 and horizon * scale <= 1.02 * longest]


def _ratio(one: Length, other: Length) -> float:
    """Return how many times the longer of two lengths is the shorter."""
    ratio = one[0] * UNITS[one[1]] / (other[0] * UNITS[other[1]])
    return max(ratio, 1.0 / ratio) if ratio > 0.0 else 1.0


def _readings(length: Length) -> dict[str, float]:
    """Return a length in all units, as a whole number where it is about one."""
    number, unit = length
    values = {u: number * UNITS[unit] / UNITS[u] for u in NAMES.values()}
    whole = {u: abs(v - round(v)) <= 0.005 * v for u, v in values.items()}
    return {u: float(round(v) if whole[u] else f"{v:.4g}") for u, v in values.items()}


def _possible(length: Length, longest: float, unit: str | None = None) -> list[float]:
    """Return a length in the unit of the times, or in those that they may have."""
    readings = _readings(length)
    if unit is not None:
        return [readings[unit]]
    return [v for u, v in readings.items() if v <= longest and longest * UNITS[u] <= LIFE]


def _listed(length: Length, unit: str | None) -> str:
    """Return a length in words, and what it is in one other unit or in all."""
    units = [unit] if unit else ["years", "months", "weeks", "days"]
    units = [u for u in units if u != length[1]]
    others = ", ".join(_said(_readings(length)[u], u) for u in units)
    return _said(*length) + f" ({others})" * bool(others)


def _said(number: float, unit: str, blank: str = " ") -> str:
    return f"{number:g}{blank}{unit.removesuffix('s' * (number == 1.0))}"
