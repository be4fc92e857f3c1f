"""Which columns are labels, which are probabilities: by names, else by cells."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import product
from os.path import commonprefix

import numpy as np

from caltest.data.labels import EVENT_WORDS, PENDING, RIGHT_WORDS, Request, opposites
from caltest.data.numbers import sum_tolerance
from caltest.errors import InPlace, InvalidPredictionsError
from caltest.read import source as cells
from caltest.read.source import (
    AMOUNTS,
    CONFIDENCE,
    COUNTS,
    EVENTS,
    FAMILIES,
    FIRST,
    FOLLOW_UP,
    LABELS,
    NO_OUTCOMES,
    NO_PROBABILITIES,
    OUTCOMES,
    PERCENTS,
    PREDICTED,
    PROBABILITIES,
    SAYS_RIGHT,
    SHARES,
    STAYS,
    TIMES,
    VERDICTS,
    WHOLE,
    Column,
    Source,
    is_number,
    key,
    listing,
    percent_above,
    says_percent,
    words,
)


@dataclass(frozen=True)
class Choice:
    """The probability columns, and what their names say of the classes.

    ``notes`` say how one was told from others, where no name of a list did.
    """

    probs: list[str]
    suffixes: list[str] | None = None
    notes: tuple[str, ...] = ()


def shortened(names: Sequence[str]) -> str:
    """Return the names, of many the first and the last."""
    return listing(names if len(names) <= 6 else [*names[:3], "…", names[-1]])


def refuse_unknown(wanted: Iterable[str], names: Sequence[str]) -> None:
    """Refuse columns that are not there."""
    for name in wanted:
        if name not in names:
            raise no_column(name, names)


def no_column(name: str, names: Collection[str]) -> InvalidPredictionsError:
    """Return the refusal of a column that is not there, with the one that may be meant."""
    close = get_close_matches(name.lower(), {n.lower(): n for n in names}, 1)
    meant = [n for n in names if n.lower() in close]
    advice = f" (did you mean {meant[0]!r}?)" if meant else ""
    if set(name.split(",")) <= set(names):
        advice = " (it takes one column; for segments of several, features= (--features))"
        meant = name.split(",")[:3]
    message = f"there is no column {name!r} among {listing(names)}{advice}"
    return InvalidPredictionsError(message, [InPlace(name, other) for other in meant])


def choose_labels(
    source: Source,
    label: str | Sequence[str] | None,
    facts: Collection[str] = (),
    left_out: Sequence[str] = (),
) -> Choice:
    """Return the column of labels, or those of outcomes, one a class.

    Without a name that says so it is the only one that holds outcomes: 0 and 1, words such as "yes"
    and "no", or names of other columns; or labels that are to be left out.
    """
    names = source.names
    if label is not None:
        return Choice([label]) if label in names else named(names, label)
    followed = times_of_follow_up(names)
    for tier in LABELS:
        candidates = [name for name in names if key(name) in tier and not _is_place(source, name)]
        # An answer stands for the truth only where nothing else does.
        candidates = [name for name in candidates if key(name) not in PREDICTED] or candidates
        if len(candidates) == 1:
            _refuse_followed(source, candidates[0], followed)
            return _verdict(source, candidates[0]) or Choice(candidates)
        if candidates:
            if judged := _judged(source, candidates):
                return judged
            raise InvalidPredictionsError(
                f"the labels could be {' or '.join(candidates)}; choose with "
                f"{source.advice('label')}",
                [("--label", name) for name in candidates],
            )
    others = [name for name in names if name not in facts and not NO_OUTCOMES & {*words(name)}]
    columns = source.readable(others).items() if left_out else ()
    holding = [n for n, c in columns if c.ndim == 1 and np.isin(left_out, c.astype(str)).any()]
    if len(holding) == 1:
        return Choice(holding)
    likely, sure = outcomes_among(source, others)
    sure = [name for name in sure if key(name) not in PREDICTED] or sure
    called = [name for name in sure if OUTCOMES & {*words(name)}]
    called = called or [name for name in sure if key(name) == "status"]
    times = [name for name in names if TIMES & {*words(name)} and not STAYS & {*words(name)}]
    events = [n for n in names if key(n) in EVENTS or (n in sure and EVENTS & {*words(n)})]
    if events and times:
        pairs = product(events, times)  # OS_STATUS and OS_MONTHS belong together
        event, time = max(pairs, key=lambda pair: len({*words(pair[0])} & {*words(pair[1])}))
        _refuse_followed(source, event, [time])
    elif len(sure) == 1 or len(called) == 1:
        _refuse_followed(source, (sure if len(sure) == 1 else called)[0], followed)
    if len(sure) == 1:
        return Choice(sure)
    if len(sure) > 1 and (one_hot := _one_hot(source, sure)):
        return one_hot
    if len(called) == 1:
        note = f"labels are column {called[0]!r} by its name, among columns of two values "
        return Choice(called, notes=(f"{note}({shortened(sure)}){source.to_be_sure('label')}",))
    raise _no_labels(source, likely)


def _no_labels(source: Source, likely: Sequence[str]) -> InvalidPredictionsError:
    """Return a refusal that names what may be meant."""
    such = " or ".join(likely)
    counts = "; a table of counts, one row a grade, is for caltest grades FILE (grade_tests)"
    grades = any(key(name) in COUNTS or COUNTS & {*words(name)} for name in source.names)
    others = [n for n in source.names if AMOUNTS & {*words(n)}]
    columns = source.readable(others).items() if others else ()
    numbers = {n: cells.feature(c) for n, c in columns if c.ndim == 1}
    numbers = {n: c for n, c in numbers.items() if c.dtype.kind in "iuf"}
    amounts = [n for n, c in numbers.items() if (c > 1.0).any()]  # others may be probabilities
    of_amount = ""
    if amounts:
        example = f"{amounts[0]}>=0.5"
        of_amount = f"; if the event is an amount beyond a limit, say label={example!r}"
        of_amount += f" (--label {example!r})" * (not source.frame)
    what = f"no labels found among {source.listing(source.names)}; name them"
    if len(likely) > 1:
        what = f"which column is the label: {such}? Name it"
    return InvalidPredictionsError(
        f"{what} with {source.advice('label')}"
        f"{f', such as {such}' * (len(likely) == 1)}"
        f"{', a column or a file' * (not likely and not source.frame)}"
        f"{of_amount}{counts * grades}",
        [("--label", name) for name in likely] or [("grades",)] * grades,
    )


def _is_place(source: Source, name: str) -> bool:
    """Say whether a column y is beside a column x, as those of pixels are, and no outcome."""
    if name.lower() != "y" or not {"x", "X"} & {*source.names}:
        return False
    return len(set(source.read([name])[0][:FIRST].tolist())) > 2


def _one_hot(source: Source, names: Sequence[str]) -> Choice | None:
    """Return columns of one beginning, of which one is 1 in each row, as outcomes of classes."""
    head = commonprefix(list(names))  # noqa: RUF071 (names are no paths)
    head = head[: 1 + max(head.rfind(mark) for mark in "_- .")]
    columns = source.read(names)
    if not head or any(column.dtype.kind not in "biuf" for column in columns):
        return None
    whole = bool((np.sum(columns, axis=0, dtype=np.float64) == 1.0).all())
    return numbered({name: name.removeprefix(head) for name in names}) if whole else None


def _judged(source: Source, names: Sequence[str]) -> Choice | None:
    """Return the true labels of two columns, the other of which says where a prediction is so."""
    right = [name for name in names if key(name) in SAYS_RIGHT]
    truth = [name for name in names if name not in right]
    answers = [name for name in source.names if key(name) in PREDICTED and name not in names]
    if not len(right) == len(truth) == len(answers) == 1:
        return None
    judged, label, answer = map(cells.labels, source.read([*right, *truth, *answers]))
    if not np.array_equal(judged, np.equal(*cells.alike(label, answer))):
        return None
    note = f"{right[0]} says in every row whether {answers[0]} equals {truth[0]}"
    return Choice(truth, notes=(note,))


def _verdict(source: Source, label: str) -> Choice | None:
    """Return the one column that says in words where an answer was right, beside true answers."""
    answers = [name for name in source.names if key(name) in PREDICTED]
    if not answers or key(label) in LABELS[0]:
        return None
    columns = source.readable([name for name in source.names if name]).items()
    verdicts = [
        name
        for name, c in columns
        if c.dtype.kind in "UOb"
        and opposites(c[:FIRST], EVENT_WORDS if VERDICTS & {*words(name)} else RIGHT_WORDS)
    ]
    if len(verdicts) != 1:
        return None
    answer = next((name for name in answers if name != label), label)
    note = f"{verdicts[0]} says where {answer} was right"
    note += f": it is not compared with {label}" * (answer != label)
    return Choice(verdicts, notes=(note,))


def times_of_follow_up(names: Sequence[str]) -> list[str]:
    """Return the columns that by their names say how long rows were followed."""
    return [n for n in names if FOLLOW_UP & {*words(n)} or "followup" in n.lower()]


def _refuse_followed(source: Source, label: str, times: Sequence[str]) -> None:
    """Refuse outcomes beside a column that says how long rows were followed."""
    if times:
        calls = f"--event {label!r} --time {times[0]!r} --horizon T", f"--label {label!r}"
        if source.frame:
            columns = f"frame[{times[0]!r}], frame[{label!r}]"
            call = f"probs=frame['COLUMN'], labels=Followup({columns}, horizon=T)"
            calls = call, f"labels={label!r}"
        raise InvalidPredictionsError(
            f"{times[0]} seems to say how long rows were followed: say {calls[0]}, T how far "
            f"predictions look ahead in the unit of {times[0]}, or {calls[1]} if everybody was "
            "followed to T",
            [("--event", label, "--time", times[0], "--horizon", "T"), ("--label", label)],
        )


def named(names: Sequence[str], wanted: str | Sequence[str]) -> Choice:
    """Return the columns of a list of names and patterns; of one pattern, what its star is, too."""
    parts = [p.strip() for p in wanted.split(",")] if isinstance(wanted, str) else list(wanted)
    columns: list[str] = []
    for part in parts:
        members = [name for name in names if name == part or fnmatchcase(name, part)]
        if not members and re.search(r"[*?[]", part):
            raise InvalidPredictionsError(f"no column matches {part!r} among {listing(names)}")
        refuse_unknown([part] * (not members), names)
        columns += [part] if part in names else members
    if len(parts) > 1 or parts[0] in names or not re.fullmatch(r"[^*?[]*\*[^*?[]*", parts[0]):
        return Choice(columns)
    head, tail = parts[0].split("*")
    return numbered({name: name[len(head) : len(name) - len(tail)] for name in columns})


def numbered(members: dict[str, str]) -> Choice:
    """Order the columns of a family by what tells them apart, as numbers if it is numbers."""
    if all(s.isdecimal() for s in members.values()):
        members = dict(sorted(members.items(), key=lambda member: int(member[1])))
    return Choice(list(members), list(members.values()))


def paired(labels: Choice, choice: Choice) -> list[str]:
    """Return the columns of outcomes in the order of the probabilities."""
    if len(labels.probs) == 1:
        return labels.probs
    outcomes = dict(zip(labels.suffixes or (), labels.probs, strict=False))
    ends = choice.suffixes or [
        max((s for s in outcomes if name.endswith(s)), key=len, default="") for name in choice.probs
    ]
    if labels.suffixes is None and len(choice.probs) == len(labels.probs):
        return labels.probs
    if set(ends) != set(outcomes) or len(choice.probs) != len(outcomes):
        raise InvalidPredictionsError(
            f"the outcomes {listing(labels.probs)} do not belong to the probabilities "
            f"{listing(choice.probs)}: name both with the same pattern, or in the same order"
        )
    return [outcomes[end] for end in ends]


def says_right(truth: Column, label: str) -> bool:
    """Say whether labels are 1 where a prediction was right, by their name and their values."""
    called = {*words(label)}
    named_so = called & {"correct", "right"} and not called & {"answer", "label", "class", "option"}
    numbers = truth.ndim == 1 and truth.dtype.kind in "biuf"
    return bool((named_so or key(label) in SAYS_RIGHT) and numbers and np.isin(truth, (0, 1)).all())


# ------------------------------------------------------------------------------
# What columns may be by their cells, where their names do not say it.


#: Columns up to which all are looked at.
SUGGESTED = 40


def outcomes_among(source: Source, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns that may hold outcomes, and those that hold nothing else.

    These have 0 and 1 or words for them, or the names or ends of names of other columns; without
    such a column two other words. Others may be outcomes in few words, if there is none with two;
    columns of which more than half is missing, such as remarks, only where no other may. Words
    for an outcome that is not known do not count.
    """
    if not 0 < len(names) <= SUGGESTED:
        return [], []
    columns = source.readable(names)
    gaps = {n: cells.missing(c[:FIRST]).mean() for n, c in columns.items() if c.ndim == 1}
    columns = {n: c for n, c in columns.items() if gaps.get(n, 0.0) <= 0.5} or columns

    def values_of(column: Column) -> set[str]:
        different = np.array(list(set(column.tolist())), dtype=object)
        texts = map(str, different[~cells.missing(different)].tolist())
        return {text for text in texts if text.strip().lower() not in PENDING}

    few = [n for n, c in columns.items() if c.ndim == 1 and len(values_of(c[:FIRST])) <= 2]
    values = {name: values_of(columns[name]) for name in few}
    two = [name for name in few if len(values[name]) == 2]
    numbers = ({"0", "1"}, {"0.0", "1.0"})
    sure = [
        n for n in two if values[n] in numbers or opposites(np.array([*values[n]]), EVENT_WORDS)
    ]
    texts = {n: c[:FIRST] for n, c in columns.items() if c.dtype.kind in "UO"}
    sure += [n for n, c in texts.items() if n not in few and opposites(c)]
    sure = [name for name in sure if not gaps[name]] or sure
    of_columns = [n for n, c in columns.items() if n not in sure and _name_columns(c, n, names)]
    in_words = [n for n in two if not any(map(is_number, values[n]))]
    likely = list(dict.fromkeys([*two, *of_columns]))
    levels = {n: len(set(c.tolist())) for n, c in texts.items() if not cells.are_numbers(c)}
    few_words = [n for n, count in levels.items() if 1 < count <= min(20, len(columns[n]) / 4)]
    likely = likely or few_words
    tables = [c.shape for c in columns.values() if c.ndim == 2 and c.dtype.kind == "f"]
    likely = likely or [n for n, c in columns.items() if _number_classes(c, tables)]
    return likely, [*sure, *of_columns] or in_words


def _number_classes(column: Column, tables: Sequence[tuple[int, ...]]) -> bool:
    """Say whether cells are numbers of classes, each of which has a column in a table of rows."""
    whole = column.ndim == 1 and column.dtype.kind in "iu" and column.size > 0
    n_classes = max((k for n, k in tables if n == column.size), default=0)
    return whole and column.min() >= 0 and column.max() < n_classes


def _name_columns(column: Column, name: str, names: Sequence[str]) -> bool:
    """Say whether every value is the end of one name of another column."""
    if column.dtype.kind not in "UO" or not 1 < len(set(column[:FIRST].tolist())) < len(names):
        return False
    values = set(map(str, column.tolist()))
    others = [other for other in names if other != name]
    ends = [re.compile(rf"(^|\W|_){re.escape(value)}$") for value in values]
    return len(values) > 1 and all(sum(map(bool, map(end.search, others))) == 1 for end in ends)


def probabilities_among(source: Source, names: Sequence[str]) -> tuple[list[str], bool]:
    """Return the columns that may be probabilities, and whether they are those of all classes.

    By themselves they have more than two values, and no name that says otherwise.
    """
    if not 0 < len(names) <= SUGGESTED:
        return [], False
    columns = source.readable(names)
    signed = [name for name, c in columns.items() if cells.in_percent(c)]
    columns |= {name: cells.with_gaps(columns[name], name, percent=True) for name in signed}
    likely = [name for name, column in columns.items() if are_fractions(column)]
    if rows := [name for name in likely if columns[name].ndim == 2]:
        return rows, False
    if len(likely) > 1 and are_probabilities([columns[name] for name in likely], False):
        return likely, True
    likely = [n for n in likely if len(set(columns[n].tolist())) > 2]
    likely = [n for n in likely if not NO_PROBABILITIES & {*words(n)}]
    return likely or [n for n, c in columns.items() if c.ndim == 2 and c.dtype.kind == "f"], False


def _numbers(column: Column) -> Column | None:
    """Return numbers, NaN where a cell is none, if half of the first cells that are known are."""
    if column.dtype.kind == "f":
        return column
    if column.dtype.kind not in "UO" or column.ndim > 1:
        return None
    first = column[:FIRST]
    numeric = [*map(is_number, first[~cells.missing(first)])]
    if 2 * sum(numeric) <= len(numeric):
        return None
    numbers = (cell if is_number(cell) else np.nan for cell in column.tolist())
    return np.fromiter(numbers, dtype=np.float64, count=column.size)


def are_fractions(column: Column) -> bool:
    """Say whether cells are numbers of [0, 1], some of them neither 0 nor 1."""
    numbers = _numbers(column)
    if numbers is None or not are_probabilities([numbers], False):
        return False
    return bool((numbers[~np.isnan(numbers)] % 1 != 0).any())


def are_probabilities(columns: Sequence[Column], from_logits: bool) -> bool:
    """Say whether columns that nothing else says of are numbers of [0, 1], several with sum 1."""
    numbers = [column for column in map(_numbers, columns) if column is not None]
    if len(numbers) < len(columns):
        return False
    if from_logits:
        return True
    if any(bool(((column < 0.0) | (column > 1.0)).any()) for column in numbers):
        return False
    if numbers[0].ndim == 1 and len(numbers) == 1:
        return True
    rows = numbers[0] if numbers[0].ndim > 1 else np.column_stack(numbers)
    rows = rows[~np.isnan(rows).any(axis=1)]
    return not bool((np.abs(rows.sum(axis=1) - 1.0) > sum_tolerance(rows)[0]).any())


# ------------------------------------------------------------------------------
# Which columns are probabilities, by their names or their cells.


#: Names of logits, and of log-probabilities, which the softmax takes as well; what tells classes.
LOGIT = re.compile(r"(?i)(logits?|log_?probs?|logprobabilit(?:y|ies))(?:_(.+)|(\d+))?")


def choose_probs(source: Source, names: Sequence[str], labels: Choice, from_logits: bool) -> Choice:
    """Return the columns of probabilities, found by their names, else by their cells."""
    if labels.suffixes and len(labels.probs) > 1:
        heads = _beside(names, labels, labels.suffixes)
        if len(heads) == 1:
            members = {heads[0] + suffix: suffix for suffix in labels.suffixes}
            return numbered({name: members[name] for name in names if name in members})
    candidates = _called_so(source, names, from_logits)
    if len(candidates) > 1:
        raise _unclear(source, [choice.probs for choice in candidates], labels)
    if candidates:
        return candidates[0]
    if len(labels.probs) == 1:
        column = source.read(labels.probs)[0]
        values = set(map(str, column.tolist())) if column.dtype.kind in "UO" else set()
        if len(values) > 1 and values <= set(names):
            classes = [name for name in names if name in values]
            return Choice(classes, classes)
    likely, whole = probabilities_among(source, names)
    if not from_logits and (whole or len(likely) == 1):
        only = f"probabilities are column {likely[0]!r}, the only one with fractions between 0 and "
        only += f"1{source.to_be_sure('probs')}"
        return Choice(likely, notes=(only,) * (not whole and not LOGIT.fullmatch(likely[0])))
    percents = [name for name in names if says_percent(name)] * (not likely)
    if len(percents) > 1 and _sum_to_100(dict(zip(percents, source.read(percents), strict=True))):
        return Choice(percents)
    if len(percents := _may_be(source, percents)) == 1 and not from_logits:
        only = f"probabilities are column {percents[0]!r}, the only one in percent"
        return Choice(percents, notes=(only + source.to_be_sure("probs"),))
    alone = len(names) == 1 or (source.frame and len(names) > 1)
    if alone and are_probabilities(source.read(names), from_logits):
        return Choice(list(names), list(names) if len(names) > 1 else None)
    raise _none(source, names, likely, labels)


def _none(
    source: Source, names: Sequence[str], likely: Sequence[str], labels: Choice
) -> InvalidPredictionsError:
    """Return a refusal that names what may be meant."""
    family = _family(likely, names)
    if len(likely) > 1 and not family:
        return _unclear(source, [[name] for name in likely], labels)
    hint = f"name them with {source.advice('probs')}{f', such as {family!r}' * bool(family)}"
    remedies: list[tuple[str, ...]] = [("--probs", family)] * bool(family)
    if not likely and len(names) <= SUGGESTED:
        of_100 = _may_be(source, [n for n in names if says_percent(n) or PERCENTS & {*words(n)}])
        hint += f", such as {' or '.join(of_100)} with --percent" if of_100 else ""
        remedies = [("--probs", name, "--percent") for name in of_100]
        if source.frame:
            of_100 = [f"frame[{name!r}] / 100" for name in of_100]
            hint = f"pass arrays: probs={' or '.join(of_100) or 'frame[…]'}, labels=frame[…]"
    if logarithms := [name for name in names if "logprob" in name.lower().replace("_", "")]:
        hint = f"{logarithms[0]} seems to hold logarithms: add a column p with exp of them"
    if any(name.lower() in ("logit", "logits") for name in names):
        hint = "it holds logits: pass from_logits=True (--from-logits)"
        remedies = [("--from-logits",)]
    if len(labels.probs) == 1 and are_fractions(source.read(labels.probs)[0]):
        hint = f"the labels, {labels.probs[0]}, hold fractions: if these are the probabilities, "
        hint += f"name the labels, a column or a file, with {source.advice('label')}"
        remedies = [("--probs", labels.probs[0], "--label", "FILE")] * (not source.frame)
    message = f"no probabilities found among {source.listing(names)}; {hint}"
    return InvalidPredictionsError(message, remedies)


def _family(likely: Sequence[str], names: Sequence[str]) -> str:
    """Return the pattern of three or more numbered columns, the only ones of their beginning."""
    head = likely[0].rstrip("0123456789") if len(likely) > 2 else ""
    return f"{head}*" if head and likely == [n for n in names if n.startswith(head)] else ""


def _called_so(source: Source, names: Sequence[str], from_logits: bool) -> list[Choice]:
    """Return the columns, or families of them, whose names say that they are probabilities."""
    families: dict[tuple[str, ...], Choice] = {}
    logits = ("logit", "logits") * from_logits
    heads = (*FAMILIES, *logits)
    for shape in (*(f"{head}_(.+)" for head in heads), *(rf"{head}(\d+)" for head in heads)):
        family = {n: m[1] for n in names if (m := re.fullmatch(shape, n, re.IGNORECASE))}
        if family:
            families[tuple(family)] = numbered(family)
    numbers = {name: name for name in names if name.isdecimal()}
    if len(numbers) > 1:
        families[tuple(numbers)] = numbered(numbers)
    families |= {(n,): Choice([n]) for n in names if key(n) in (*WHOLE[0], *logits)}
    families = families or _logits(names)
    if families:
        return [*families.values()]
    called = [name for name in names if key(name) in WHOLE[1]]
    others = [name for name in names if (PROBABILITIES | SHARES) & {*words(name)}]
    scales = [name for name in called if key(name) not in CONFIDENCE]
    if scales and len(names) > 1 and not from_logits:  # a score of 300 to 850 is none
        called = [name for name in called if name not in scales or _may_be(source, [name])]
        called = called or scales * (not probabilities_among(source, names)[0])
    if called and source.arrays:  # beside rows of probabilities it is one of these
        arrays = source.readable(names).items()
        called = [name for name, a in arrays if a.ndim == 2 and are_fractions(a)] or called
    if not called:
        called = _may_be(source, others)
        called = called * (len(called) == 1)
    return [Choice([name]) for name in called]


def _logits(names: Sequence[str]) -> dict[tuple[str, ...], Choice]:
    """Return families of columns whose names say that they are logits."""
    families: dict[str, dict[str, str]] = {}
    for name, match in ((name, LOGIT.fullmatch(name)) for name in names):
        if match and (end := match[2] or match[3]):
            families.setdefault(match[1].lower(), {})[name] = end
    several = [family for family in families.values() if len(family) > 1]
    return {tuple(family): numbered(family) for family in several}


def are_logits(names: Sequence[str], values: Column) -> bool:
    """Say whether columns are called logits, and no probabilities; of one class log-odds only."""
    called = [LOGIT.fullmatch(name) for name in names]
    odds = values.ndim > 1 or all(match and "logit" in match[1].lower() for match in called)
    if not all(called) or not odds or values.dtype.kind not in "iuf":
        return False
    return bool(np.nanmin(values) < 0.0 or np.nanmax(values) > 1.0)


def _may_be(source: Source, names: Sequence[str]) -> list[str]:
    """Return the columns of fractions, and of percents as names say."""
    columns = zip(names, source.read(names), strict=True) if names else ()
    above = {name: min(10.0, percent_above(name)) for name in names}
    return [n for n, c in columns if are_fractions(c) or cells.in_percent(c, above[n])]


def _unclear(
    source: Source, choices: Sequence[Sequence[str]], labels: Choice
) -> InvalidPredictionsError:
    """Return a refusal that spells out what to say of each choice of probabilities."""
    advice = source.advice("probs")
    if source.frame:
        advice += f", such as frame[{[*choices[0], *labels.probs]}]"
    return InvalidPredictionsError(
        f"the probabilities could be {' or '.join(map(listing, choices))}; choose with {advice}",
        [("--probs", ",".join(names)) for names in choices],
    )


def _beside(names: Sequence[str], labels: Choice, suffixes: Sequence[str]) -> list[str]:
    """Return what columns begin with that have the same ends as the outcomes, best their own."""
    heads = [n.removesuffix(suffixes[0]) for n in names if n.endswith(suffixes[0])]
    heads = [head for head in heads if all(head + suffix in names for suffix in suffixes)]
    pairs = list(zip(labels.probs, suffixes, strict=True))
    same = [head for head in heads if all(name.startswith(head + s) for name, s in pairs)]
    return same or [head for head in heads if head.strip("_").lower() in FAMILIES] or heads


def in_percent(
    source: Source, request: Request, columns: dict[str, Column], probs: Sequence[str]
) -> bool:
    """Say whether the columns of probabilities hold percents.

    Of several each cell has its sign, or all rows sum to 100 but for rounding.
    """
    if request.from_logits or source.part:
        return False
    if len(probs) == 1:
        return cells.in_percent(columns[probs[0]], percent_above(probs[0]))
    signed = all(cells.in_percent(columns[name]) for name in probs)
    return signed or _sum_to_100({name: columns[name] for name in probs})


def _sum_to_100(columns: dict[str, Column]) -> bool:
    """Say whether numbers, none negative, sum to 100 in each row but for rounding."""
    if any(c.dtype.kind not in "iuf" or c.ndim > 1 or c.min() < 0 for c in columns.values()):
        return False
    sums = np.sum([*columns.values()], axis=0)
    return bool((np.abs(sums - 100.0) <= min(0.5 * len(columns), 5.0)).all())


def refuse_lone(choice: Choice) -> None:
    """Refuse the probability of a class that is not the event."""
    suffixes = choice.suffixes or ["1"]
    if len(suffixes) == 1 and suffixes[0].isdecimal() and int(suffixes[0]) != 1:
        raise InvalidPredictionsError(
            f"the only probability column {choice.probs[0]} is the probability of class "
            f"{suffixes[0]}: add the columns of the other classes, or give the probability of "
            "label 1"
        )


# ------------------------------------------------------------------------------
# Events of amounts and of one class: a label that is a comparison, such as ``rain_mm>=0.2``.


_COMPARES = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


_COMPARISON = re.compile(rf"\s*(.*?[^\s<>=])\s*({'|'.join(_COMPARES)})\s*(\S+)\s*")


def with_event(source: Source, label: object) -> Source:
    """Return a source that has a comparison in place of its amount, 1 where it holds.

    Where the amount is missing the event is, too. What is no comparison changes nothing.
    """
    parts = _COMPARISON.fullmatch(label) if isinstance(label, str) else None
    if parts is None or label in source.names:
        return source
    amount, sign, bound = parts.groups()
    if amount not in source.names:
        raise no_column(amount, source.names)
    limit = float(bound) if is_number(bound) else None
    if limit is None and sign != "==":
        raise InvalidPredictionsError(
            f"label {label!r}: {bound!r} is not a number; an event of an amount is written as "
            f"{amount}>=0.5"
        )

    def read(names: Sequence[str]) -> list[Column]:
        columns = source.read([amount if name == label else name for name in names])
        for place in (i for i, name in enumerate(names) if name == label):
            if limit is None:
                missing = cells.missing(columns[place])
                holds = np.char.strip(columns[place].astype(str)) == bound
            else:
                numbers = cells.with_gaps(columns[place], amount)
                missing, holds = np.isnan(numbers), _COMPARES[sign](numbers, limit)
            columns[place] = np.where(missing, np.nan, holds)
        return columns

    others = [name for name in source.names if name != amount]
    return replace(source, names=[*others, str(label)], read=read)
