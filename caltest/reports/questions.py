"""What an audit asks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np

from caltest._base.facts import RIGHT
from caltest.binning import UniformBins, VarianceTree
from caltest.errors import StatisticError
from caltest.inference.admission import rows_where_needed
from caltest.inference.analysis import MANY, problem_through
from caltest.lenses import Canonical, Cumulative, Lens, OneVsRest, Subject, TopK
from caltest.predictions import Predictions
from caltest.statistics import ECE, CoxScore, Kuiper, MultiScale, ScoreGap, StatisticLike, prepare
from caltest.statistics.scores import ScoreSum
from caltest.tally import Source, Tally

Pair = tuple[StatisticLike, Lens]
#: Sums of rows as a lens shows them, which questions and the slope have in common.
_SUMS: WeakKeyDictionary[Predictions, dict[Lens, Tally]] = WeakKeyDictionary()
#: Classes that are tested one by one, those of the largest total probability.
MOST_CLASSES = 1000
#: A binned error; the binned errors of all classes; those of cumulative probabilities; statistics
#: without bins, of one lens; how sure the whole vector is; the binned errors of all subgroups;
#: segments of features.
Kind = Literal["error", "classes", "ordered", "shape", "score", "groups", "segments"]


@dataclass(frozen=True)
class Question:
    """One row of an audit: what is asked, and the tests that answer it together."""

    lens: str
    words: str
    kind: Kind
    pairs: tuple[Pair, ...]

    @property
    def subject(self) -> Subject:
        """What is looked at."""
        return "classes" if self.kind in ("classes", "ordered") else self.pairs[0][1].subject


#: What Σ of fourth moments over variance² may be for a score to count as normal: two-sided p-values
#: above 0.0005 are then wrong by less than 3 %, by Edgeworth's series.
NORMAL = 1.0 / 400.0


def null_of(data: Source, question: Question) -> Literal["auto", "asymptotic"]:
    """Return the limit law for scores of very many rows, where it is as good as drawn."""
    if question.kind != "score" or not data.has_rows or data.n <= MANY:
        return "auto"
    ((statistic, lens),) = question.pairs
    prepared = prepare(statistic, problem_through(data, lens)) if data.n_clusters is None else None
    normal = isinstance(prepared, ScoreSum) and prepared.tails <= NORMAL
    return "asymptotic" if normal else "auto"


def whole_rows(data: Source) -> Source:
    """Return rows without subgroups and features; those without any stay the same object."""
    if data.by is None and data.features is None:
        return data
    return replace(data, by=None, features=None)


def summed(data: Source, question: Question) -> Source:
    """Return the sums of very many rows, whose labels would take minutes to redraw."""
    return sums_of(data, question.pairs[0][1]) if question.kind == "shape" else data


def sums_of(data: Source, lens: Lens) -> Source:
    """Return the sums of very many rows that depend on nothing, all else as it is."""
    rows = data.rows
    if rows is None or not data.has_rows or data.n <= MANY or data.weights is not None:
        return data
    if data.n_clusters or data.folds is not None:
        return data
    sums = _SUMS.setdefault(rows, {})
    if lens not in sums:
        sums[lens] = Tally.of(replace(rows, by=None), lens=lens)
    return sums[lens]


def questions(data: Source) -> list[Question]:
    """Return what is asked about these predictions, the headline first."""
    return _defined([question for question in _agenda(data) if _answerable(data, question)], data)


def left_out(data: Source) -> str:
    """Return what would be asked about the rows, and tallies do not hold."""
    return ", ".join(question.lens for question in _agenda(data) if not _answerable(data, question))


def _answerable(data: Source, question: Question) -> bool:
    if isinstance(data, Predictions) or data.n_classes == 2:
        return True
    if TopK(1) not in data.lenses:
        raise StatisticError(
            f"audit asks about the top class or the event of two, not {data.lenses[0]!r}: tally "
            "with TopK(1), or ask calibration_test"
        )
    if data.rows is not None:
        return True  # if not by sums, then by the sampled rows
    return {data.named(lens) for _, lens in question.pairs} <= set(map(data.named, data.lenses))


def _agenda(data: Source) -> list[Question]:
    n_rows = data.n if data.rows is None else data.rows.n  # that whole vectors are asked of
    binary, vector = ECE(UniformBins(15)), ECE(VarianceTree(max(20, n_rows // 50)))

    def error(lens: Lens, words: str, statistic: ECE) -> Question:
        return Question(repr(lens), words, "error", ((statistic, lens),))

    def shape(lens: Lens) -> Question:
        # A slope, a shift, and waves or bumps of any width: what bins of one width may miss.
        pairs: tuple[Pair, ...] = tuple((s, lens) for s in (CoxScore(), Kuiper(), MultiScale()))
        return Question(f"{lens!r} no bins", "and without bins?", "shape", pairs)

    def groups(lens: Lens) -> list[Question]:
        pairs: tuple[Pair, ...] = ((binary, lens),)
        groups = Question(f"{lens!r} by group", "and in every subgroup?", "groups", pairs)
        inside = Question(f"{lens!r} segments", "and in every segment?", "segments", pairs)
        return [groups] * (data.by is not None) + [inside] * (data.features is not None)

    top = error(TopK(1), "is its confidence right?", binary)
    if data.drawn_together and data.lenses == (TopK(1),):
        return [top, shape(TopK(1))]  # also of two classes
    if data.multilabel:
        event = OneVsRest(1)
        return [
            Question("ECE by label", "is every label right?", "groups", ((binary, event),)),
            Question("CoxScore by label", "and without bins?", "groups", ((CoxScore(), event),)),
        ]
    if data.n_classes == 2:
        event = OneVsRest(1)
        asserted = data.classes == RIGHT  # the confidence itself, which may be below ½
        words = "is its confidence right?" if asserted else f"is P({data.class_name(1)}) right?"
        tops = [] if asserted or data.followup is not None else [top]
        return [error(event, words, binary), shape(event), *tops, *groups(event)]
    name, words, chosen = f"OneVsRest(0…{data.n_classes - 1})", "are all classes right?", None
    if data.n_classes > MOST_CLASSES and isinstance(data, Predictions):
        # Looking at predictions only keeps every test valid.
        chosen = np.sort(np.argsort(-data.probs.sum(axis=0), kind="stable")[:MOST_CLASSES])
        words = f"are the {MOST_CLASSES} likeliest classes right?"
    numbers = range(data.n_classes) if chosen is None else chosen.tolist()
    called = [(c, data.class_name(c)) for c in numbers]
    events = [OneVsRest(c if name == str(c) else name) for c, name in called]
    every = Question(name, words, "classes", tuple((binary, event) for event in events))
    whole = error(Canonical(), "is the whole vector right?", vector)
    # The log score sees most, but is infinite for a label of probability 0.
    score, cuts = ScoreGap("brier" if data.impossible.size else "log"), []
    if data.ordered:
        last = data.n_classes - 2
        below: tuple[Pair, ...] = tuple((binary, Cumulative(c)) for c in range(last + 1))
        words = "are cumulative probabilities right?"
        score, cuts = ScoreGap("rps"), [Question(f"Cumulative(0…{last})", words, "ordered", below)]
    whole_score: tuple[Pair, ...] = ((score, Canonical()),)
    sure = Question("Canonical() score", "over- or underconfident?", "score", whole_score)
    k = min(3, data.n_classes - 2)
    ranks = [error(TopK(k), f"are the {k} largest right?", vector)] if k > 1 else []
    return [top, shape(TopK(1)), *ranks, every, *cuts, whole, sure, *groups(TopK(1))]


def _defined(agenda: list[Question], data: Source) -> list[Question]:
    """Leave out statistics that these predictions leave without meaning, as when all are 0 or 1."""
    answerable = []
    for question in agenda:
        if question.kind not in ("shape", "score"):  # an error always has a meaning
            answerable.append(question)
            continue
        sums, pairs = summed(data, question), list[Pair]()
        for statistic, lens in question.pairs:
            with suppress(StatisticError):
                source = rows_where_needed(sums, [(statistic, lens)])
                prepare(statistic, problem_through(source, lens))
                pairs.append((statistic, lens))
        answerable += [replace(question, pairs=tuple(pairs))] if pairs else []
    return answerable
