"""Which columns of a table are what, together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from caltest._base.event_words import EVENT_WORDS, event_of, lowered, opposites
from caltest.errors import InvalidPredictionsError
from caltest.tables import cells
from caltest.tables.columns import (
    Choice,
    choose_labels,
    named,
    paired,
    refuse_unknown,
    says_right,
    shortened,
)
from caltest.tables.contents import are_fractions, probabilities_among
from caltest.tables.names import FAMILIES, PREDICTED, key
from caltest.tables.probabilities import choose_probs, refuse_lone
from caltest.tables.source import Column, Request, Source

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
