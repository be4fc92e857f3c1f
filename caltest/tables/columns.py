"""Columns by their names, and which of them are labels; more than one reading is refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import product
from os.path import commonprefix

import numpy as np

from caltest._base.event_words import EVENT_WORDS, RIGHT_WORDS, opposites
from caltest.errors import InPlace, InvalidPredictionsError
from caltest.tables import cells
from caltest.tables.contents import outcomes_among
from caltest.tables.names import (
    AMOUNTS,
    COUNTS,
    EVENTS,
    FOLLOW_UP,
    LABELS,
    NO_OUTCOMES,
    OUTCOMES,
    PREDICTED,
    SAYS_RIGHT,
    STAYS,
    TIMES,
    VERDICTS,
    key,
    words,
)
from caltest.tables.source import FIRST, Column, Source, listing


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
