"""Which columns are probabilities, by their names or their cells."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from caltest.errors import InvalidPredictionsError
from caltest.tables import cells
from caltest.tables.columns import Choice, numbered
from caltest.tables.contents import SUGGESTED, are_fractions, are_probabilities, probabilities_among
from caltest.tables.names import (
    CONFIDENCE,
    FAMILIES,
    PERCENTS,
    PROBABILITIES,
    SHARES,
    WHOLE,
    key,
    percent_above,
    says_percent,
    words,
)
from caltest.tables.source import Column, Request, Source, listing

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
