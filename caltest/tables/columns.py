"""Which columns are probabilities, which are labels; more than one reading is refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

import numpy as np

from caltest.errors import InvalidPredictionsError
from caltest.tables import cells
from caltest.tables.contents import (
    SUGGESTED,
    are_fractions,
    are_probabilities,
    outcomes_among,
    probabilities_among,
    words,
)
from caltest.tables.source import Column, Request, Source

#: Names under which labels are found, compared in lower case; the second row if none of the first.
LABELS = (
    ("label", "labels", "y", "y_true", "target", "targets", "outcome", "outcomes"),
    ("true_label", "ground_truth", "actual", "correct_answer", "gold", "correct", "is_correct"),
    (
        *("truth", "true_class", "true_answer", "gold_label", "gold_answer", "observed"),
        *("answer", "y_test", "ref", "reference"),
    ),
)
#: Labels of these names, where there are two, say whether a prediction was right.
SAYS_RIGHT = ("correct", "is_correct", "was_correct", "is_right", "right")
#: Names of predicted classes.
PREDICTED = (
    *("pred_label", "predicted_label", "predicted", "prediction", "pred", "y_pred", "y_hat"),
    *("pred_class", "predicted_class", "top_label", "top_class", "answer", "model_answer"),
    *("predicted_answer", "llm_answer", "response", "choice", "model_choice", "guess"),
)
#: Names of the probability that a prediction is right.
CONFIDENCE = (
    *("confidence", "confidences", "conf", "max_prob", "certainty", "stated_confidence"),
    *("verbal_confidence", "model_confidence"),
)
#: Names of one column or array that holds all probabilities.
WHOLE = (
    (
        *("p", "prob", "probs", "proba", "probability", "probabilities", "y_prob", "y_pred_proba"),
        *("y_score", "y_proba", "pred_prob", "predicted_prob", "predicted_probability"),
        *("predicted_risk", "pop"),
    ),
    (*CONFIDENCE, "score", "scores", "predictions", "risk", "forecast"),
)
#: Names of what ended a follow-up, which is no label where some were not followed to the horizon.
EVENTS = {"event", "events", "status", "died", "dead", "death"}
#: Words of which one is in names of times, beside which an event may be one of a follow-up.
TIMES = {"time", "times", "years", "months", "weeks", "days", "duration", "survival", "followup"}
#: Those of which one says that rows were followed.
FOLLOW_UP = {"follow", "followup", "survival", "tte", "censoring"}
#: Names in a table of counts, one row a grade.
COUNTS = {"defaults", "obligors", "pd"}
#: Words of which one is in names of probabilities that are none of these.
PROBABILITIES = {
    *("prob", "probs", "proba", "probability", "risk", "chance"),
    *("confidence", "conf", "certainty", "forecast", "predicted", "prediction", "pred"),
}
#: Those that may be percents without a sign, and words in names of what is no outcome.
SHARES = {*PROBABILITIES, "pop"} - {"forecast", "predicted", "prediction", "pred"}
NO_OUTCOMES = {"fold", "split", "sex", "gender", "group", "treated", "treatment", "male", "female"}
#: What families of columns, one a class, begin with: ``p_cat``, ``p1``; also bare numbers.
FAMILIES = ("p", "prob", "probs", "proba")


@dataclass(frozen=True)
class Choice:
    """The probability columns, and what their names say of the classes.

    ``by_cells`` says that they are known by what they hold and not by their names.
    """

    probs: list[str]
    suffixes: list[str] | None = None
    by_cells: bool = False


def listing(names: Iterable[str]) -> str:
    """Return all the names."""
    return ", ".join(names) or "no columns"


def shortened(names: Sequence[str]) -> str:
    """Return the names, of many the first and the last."""
    return listing(names if len(names) <= 6 else [*names[:3], "…", names[-1]])


def refuse_unknown(wanted: Iterable[str], names: Sequence[str]) -> None:
    """Refuse columns that are not there."""
    for name in wanted:
        if name not in names:
            raise InvalidPredictionsError(no_column(name, names))


def no_column(name: str, names: Collection[str]) -> str:
    """Say that there is no such column, and which one may be meant."""
    close = get_close_matches(name.lower(), {n.lower(): n for n in names}, 1)
    meant = [n for n in names if n.lower() in close]
    advice = f" (did you mean {meant[0]!r}?)" if meant else ""
    if set(name.split(",")) <= set(names):
        advice = " (it takes one column; for segments of several, features= (--features))"
    return f"there is no column {name!r} among {listing(names)}{advice}"


def choose_labels(
    source: Source, label: str | Sequence[str] | None, facts: Collection[str] = ()
) -> Choice:
    """Return the column of labels, or those of outcomes, one a class.

    Without a name that says so it is the only one that holds outcomes: 0 and 1, words such as "yes"
    and "no", or names of other columns.
    """
    names = source.names
    if label is not None:
        return Choice([label]) if label in names else named(names, label)
    for tier in LABELS:
        candidates = [name for name in names if name.lower() in tier]
        if len(candidates) == 1:
            times = [n for n in names if FOLLOW_UP & {*words(n)} or "followup" in n.lower()]
            _refuse_followed(source, candidates[0], times)
            return Choice(candidates)
        if candidates:
            raise InvalidPredictionsError(
                f"the labels could be {' or '.join(candidates)}; choose with "
                f"{source.advice('label')}"
            )
    others = [name for name in names if name not in facts and not NO_OUTCOMES & {*words(name)}]
    likely, sure = outcomes_among(source, others)
    sure = [name for name in sure if name.lower() not in PREDICTED] or sure
    times = [name for name in names if TIMES & {*words(name)}]
    events = [n for n in names if n.lower() in EVENTS or (n in sure and EVENTS & {*words(n)})]
    if events and times:
        _refuse_followed(source, events[0], times)
    elif len(sure) == 1:
        return Choice(sure, by_cells=True)
    counts = "; a table of counts, one row a grade, is for caltest grades FILE (grade_tests)"
    raise InvalidPredictionsError(
        f"no labels found among {listing(names)}; name them with {source.advice('label')}"
        f"{_such_as(likely, names) or ', a column or a file' * (not source.frame)}"
        f"{counts if COUNTS & {name.lower() for name in names} else ''}"
    )


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
            f"predictions look ahead, or {calls[1]} if everybody was followed to T"
        )


def _such_as(likely: Sequence[str], names: Sequence[str]) -> str:
    head = likely[0].rstrip("0123456789") if len(likely) > 2 else ""
    if head and likely == [n for n in names if n.startswith(head)]:
        return f", such as '{head}*'"
    return f", such as {' or '.join(dict.fromkeys(likely))}" if likely else ""


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
    return _numbered({name: name[len(head) : len(name) - len(tail)] for name in columns})


def _numbered(members: dict[str, str]) -> Choice:
    """Order the columns of a family by what tells them apart, as numbers if it is numbers."""
    if all(s.isdecimal() for s in members.values()):
        members = dict(sorted(members.items(), key=lambda member: int(member[1])))
    return Choice(list(members), list(members.values()))


def choose_probs(source: Source, names: Sequence[str], labels: Choice, from_logits: bool) -> Choice:
    """Return the columns of probabilities, found by their names."""
    if labels.suffixes and len(labels.probs) > 1:
        heads = _beside(names, labels, labels.suffixes)
        if len(heads) == 1:
            members = {heads[0] + suffix: suffix for suffix in labels.suffixes}
            return _numbered({name: members[name] for name in names if name in members})
    candidates: dict[str, Choice] = {}
    logits = ("logit", "logits") * from_logits
    families = (*FAMILIES, *logits)
    for shape in (*(f"{head}_(.+)" for head in families), *(rf"{head}(\d+)" for head in families)):
        family = {n: m[1] for n in names if (m := re.fullmatch(shape, n, re.IGNORECASE))}
        if family:
            candidates[listing(family)] = _numbered(family)
    numbers = {name: name for name in names if name.isdecimal()}
    if len(numbers) > 1:
        candidates[listing(numbers)] = _numbered(numbers)
    candidates |= {n: Choice([n]) for n in names if n.lower() in (*WHOLE[0], *logits)}
    candidates = candidates or {n: Choice([n]) for n in names if n.lower() in WHOLE[1]}
    if not candidates:
        called = [name for name in names if PROBABILITIES & {*words(name)}]
        columns = zip(called, source.read(called), strict=True) if called else ()
        shares = [n for n, c in columns if are_fractions(c) or cells.in_percent(c, says_so=True)]
        candidates = {n: Choice([n]) for n in shares} if len(shares) == 1 else {}
    if len(candidates) > 1:
        raise InvalidPredictionsError(
            f"the probabilities could be {' or '.join(candidates)}; choose with "
            f"{source.advice('probs')}"
        )
    if candidates:
        return next(iter(candidates.values()))
    if len(labels.probs) == 1:
        column = source.read(labels.probs)[0]
        values = set(map(str, column.tolist())) if column.dtype.kind in "UO" else set()
        if len(values) > 1 and values <= set(names):
            classes = [name for name in names if name in values]
            return Choice(classes, classes)
    likely, whole = probabilities_among(source, names)
    if not from_logits and (whole or (len(likely) == 1 and not labels.by_cells)):
        return Choice(likely, by_cells=True)
    alone = len(names) == 1 or (source.frame and len(names) > 1)
    if alone and are_probabilities(source.read(names), from_logits):
        return Choice(list(names), list(names) if len(names) > 1 else None)
    hint = f"name them with {source.advice('probs')}{_such_as(likely, names)}"
    if not likely and not source.frame and len(names) <= SUGGESTED:
        of_100 = [n for n in names if cells.in_percent(source.read([n])[0], says_so=True)]
        hint += f", such as {' or '.join(of_100)} with --percent" if of_100 else ""
    if logarithms := [name for name in names if "logprob" in name.lower().replace("_", "")]:
        hint = f"{logarithms[0]} seems to hold logarithms: add a column p with exp of them"
    if any(name.lower() in ("logit", "logits") for name in names):
        hint = "it holds logits: pass from_logits=True (--from-logits)"
    raise InvalidPredictionsError(f"no probabilities found among {listing(names)}; {hint}")


def _beside(names: Sequence[str], labels: Choice, suffixes: Sequence[str]) -> list[str]:
    """Return what columns begin with that have the same ends as the outcomes, best their own."""
    heads = [n.removesuffix(suffixes[0]) for n in names if n.endswith(suffixes[0])]
    heads = [head for head in heads if all(head + suffix in names for suffix in suffixes)]
    pairs = list(zip(labels.probs, suffixes, strict=True))
    same = [head for head in heads if all(name.startswith(head + s) for name, s in pairs)]
    return same or [head for head in heads if head.strip("_").lower() in FAMILIES] or heads


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
    return bool(
        (named_so or label.lower() in SAYS_RIGHT) and numbers and np.isin(truth, (0, 1)).all()
    )


def in_percent(
    source: Source, request: Request, columns: dict[str, Column], probs: Sequence[str]
) -> bool:
    """Say whether the one column of probabilities holds percents."""
    name, *others = probs
    if others or request.from_logits or source.part:
        return False
    return cells.in_percent(columns[name], bool(SHARES & {name.lower(), *words(name)}))


def refuse_lone(choice: Choice) -> None:
    """Refuse the probability of a class that is not the event."""
    suffixes = choice.suffixes or ["1"]
    if len(suffixes) == 1 and suffixes[0].isdecimal() and int(suffixes[0]) != 1:
        raise InvalidPredictionsError(
            f"the only probability column {choice.probs[0]} is the probability of class "
            f"{suffixes[0]}: add the columns of the other classes, or give the probability of "
            "label 1"
        )
