"""Input of the verbs: rows with their design, a tally, or several models; and one analysis.

``TAKES`` lists what each verb takes, ``take_…`` functions validate it, :class:`Analysis` looks
through the lens and fills in results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from caltest._base.arrays import RNG, AnyArray, IntArray, largest, opened, quarters
from caltest._base.written import DependenceDoubt, Doubt, Fields, name_of, unknown
from caltest.data import Facts, Predictions, RowFacts
from caltest.data.facts import by_appearance
from caltest.data.lenses import Aligned, Canonical, Lens, LensLike, OneVsRest, TopK, as_lens
from caltest.data.numbers import n_copies
from caltest.data.predictions import as_sampled, match_rows, refuse_unlike
from caltest.errors import (
    InvalidPredictionsError,
    Reading,
    StatisticError,
    UnsupportedFactError,
    spelt,
)
from caltest.inference.dependence import in_time_order, refuse_few_blocks, summary_of
from caltest.nulls.agreement import association
from caltest.read.arguments import (
    MatchedRows,
    has_labels,
    matched_by_index,
    questioned_arrays,
    read_arguments,
    with_ids,
)
from caltest.results.base import ASSOCIATED, FollowupSummary, Result
from caltest.statistics import Problem, RowProblem
from caltest.statistics.prepared import (
    Prepared,
    Statistic,
    StatisticLike,
    SumStatistic,
    prepare,
    refuse_merged,
)
from caltest.statistics.rows import row_problem
from caltest.tallies import AnyTally, RowsOrTally, Tally, problem_of_tally

T = TypeVar("T")
SomeSource = TypeVar("SomeSource", bound=RowsOrTally)


class RowFact(Enum):
    """Kinds of design information of rows, in the order in which a public function refuses them.

    Each member has three strings. ``option`` is the argument of public functions, such as "by",
    ``words`` the name in messages, and ``advice`` a clause that ends the message of a function that
    does not take it, "" for none. ``ids`` are no member: they only bring rows into one order.
    """

    WEIGHTS = "weights", "weights", ""
    CLUSTERS = "clusters", "clusters", ""
    SUBGROUPS = (
        "by",
        "subgroups",
        ": calibration_test (caltest test), audit, compare and interval look at subgroups",
    )
    FOLDS = (
        "folds",
        "folds",
        ": leave folds= (--folds) out to take all rows as predicted by one model. That ignores "
        "that models of other folds know these labels, and differ in level",
    )
    FOLLOWUP = (
        "followup",
        "follow-up",
        ": calibration_test, joint_test, confidence_interval, audit, report, reliability_curve and "
        "a gate of one model do, and cox_recalibration gives intervals of O:E, intercept and slope",
    )
    FEATURES = "features", "features", ""
    HORIZON = (
        "horizon",
        "overlapping outcomes",
        ": outcomes that overlap are no independent draws",
    )
    LABEL_SETS = (
        "several labels a row",
        "several labels a row",
        ": each is asked by itself, by calibration_test or audit",
    )
    CROSSED = "two columns of clusters", "two columns of clusters", ""

    def __init__(self, option: str, words: str, advice: str) -> None:
        self.option, self.words, self.advice = option, words, advice

    def of(self, data: Predictions) -> object:
        """Return this kind of design information of the rows ``data``; None if they have none.

        It is the field of :class:`Predictions` called ``option``, such as the weights (n,).
        Clusters are returned as their number, several labels a row as True, and a second column of
        clusters as its numbers (n,).
        """
        if self is RowFact.LABEL_SETS:
            return data.multilabel or None
        if self is RowFact.CROSSED:
            return data.crossed
        # Clusters of one row each are none
        return data.n_clusters if self is RowFact.CLUSTERS else vars(data)[self.option]


class Tallied(Enum):
    """Which tallies (sums over fine bins) a public function takes in place of rows.

    Members: none, plain tallies, or also tallies of clusters. The values are the words of the table
    in docs/row_facts.md.
    """

    NONE = "–"
    PLAIN = "yes"
    CLUSTERED = "yes, also of clusters"


class Takes(NamedTuple):
    """Frozen description of the input that one public function takes besides plain rows.

    ``facts`` are the kinds of design information of rows that it takes. ``tally`` says whether it
    takes no tallies (sums over fine bins), plain ones, or tallies of clusters as well.
    """

    facts: frozenset[RowFact]
    tally: Tallied = Tallied.NONE


def _table() -> dict[str, Takes]:
    """Return the input that each public function takes, :class:`Takes` by name of the function.

    A :class:`Takes` lists the kinds of design information, such as weights, and of tallies (sums
    over fine bins). The table in docs/row_facts.md is printed from it.
    """
    (weights, clusters, by, folds, followup, features, horizon, label_sets, crossed) = RowFact
    rows = frozenset({weights, clusters, folds, horizon, crossed})
    plain = Tallied.PLAIN
    return {
        "calibration_test": Takes(rows | {by, followup, label_sets}, Tallied.CLUSTERED),
        "joint_test": Takes(rows | {by, followup}, plain),
        "confidence_interval": Takes(rows | {by, followup}, plain),
        "equivalence_test": Takes(rows, plain),
        "compare": Takes(rows | {by}, plain),
        "compare_models": Takes(rows),
        "audit": Takes(rows | {by, followup, features, label_sets}, plain),
        "gate": Takes(rows | {followup}, plain),
        "report": Takes(rows | {by, followup, features}, plain),
        "reliability_curve": Takes(rows | {by, followup, label_sets}, Tallied.CLUSTERED),
        "reliability_fit": Takes(rows, plain),
        "reliability_fit(fit='band')": Takes(frozenset({folds}), plain),
        "reliability_difference": Takes(frozenset()),
        "reliability_simplex": Takes(rows),
        "bin_sensitivity": Takes(rows, plain),
        "cox_recalibration": Takes(rows | {followup}, plain),
        "corp_decomposition": Takes(rows, plain),
        "brier_decomposition": Takes(rows, plain),
        "meta_analysis": Takes(frozenset({weights, clusters, by})),
        "worst_class": Takes(rows - {folds}),
        "individual_error": Takes(frozenset({weights, clusters})),
        "promise": Takes(frozenset({weights, clusters})),
        "decision_curve": Takes(frozenset({weights, clusters})),
        "segment_search": Takes(frozenset({weights, clusters, features})),
        "plan": Takes(frozenset({clusters}), plain),
        # Slope and intercept on the command line: caltest interval --statistic slope
        "interval": Takes(frozenset({weights, clusters, folds, followup}), plain),
        "Monitor": Takes(frozenset({weights}), plain),
        "ComparisonMonitor": Takes(frozenset()),
    }


#: What each test takes, by its name.
TAKES: Mapping[str, Takes] = _table()


#: Tests whose rows go with those of another model, or come one by one: none is left out.
VERBS_OF_ALL_ROWS = ("compare", "compare_models", "Monitor", "ComparisonMonitor", "plan")


_COPIES: WeakKeyDictionary[Predictions, int] = WeakKeyDictionary()


#: What lenses show of the same predictions.
_SHOWN: WeakKeyDictionary[Predictions, dict[Lens, Predictions]] = WeakKeyDictionary()


# ------------------------------------------------------------------------------
# Rows.


def take_rows(
    verb: str, probs: object, labels: object, facts: RowFacts, *, in_order: bool = False,
    stakes: bool = False,
) -> Predictions:  # fmt: skip
    """Validate the arguments of a public function; return its rows as :class:`Predictions`.

    ``verb`` is the name of the function, such as "compare", and ``facts`` holds its keyword
    arguments on the design. ``probs``, ``labels`` and these are the arguments of
    :meth:`Predictions.of`. ``in_order`` is for tests of rows in time order, which allow for
    dependence on earlier rows. With ``stakes`` weights count as amounts, otherwise only by their
    ratios.

    Raises
    ------
    InvalidPredictionsError
        For values that are no forecasts with their outcomes.
    DoubtfulInputError
        For arrays whose values suggest another meaning, without ``as_is=True``.
    UnsupportedFactError, StatisticError
        For design information that the function does not take (``TAKES``), a tally (sums over fine
        bins), rows to which the predictions were fitted, and rows of a single cluster.
    TypeError
        For an unknown keyword.
    """
    if isinstance(probs, AnyTally):
        raise StatisticError(f"{verb} needs the rows, and a tally has none: pass their predictions")
    if facts:
        refuse_unknown_facts(verb, facts)
    if verb in VERBS_OF_ALL_ROWS:
        facts = {"rounded": False, **facts}
    data = read_arguments(probs, labels, **facts)
    # Tables were asked about where they were read; a stream of batches is bet on as it comes
    if not in_order:
        data = questioned_arrays(data, probs, labels, facts)
    return admitted(verb, data, in_order, stakes)


def refuse_unknown_facts(verb: str, facts: RowFacts) -> None:
    """Raise TypeError for an unknown keyword among ``facts``, with the most similar known one.

    ``facts`` are the keyword arguments on the design, by name, with which a function was called,
    and ``verb`` is the name of that function.
    """
    for name in sorted(facts.keys() - Facts.__annotations__.keys()):
        raise unknown(verb, name, ["labels", *Facts.__annotations__])


def admitted(
    verb: str, data: Predictions, in_order: bool = False, stakes: bool = False
) -> Predictions:
    """Return rows in the form that a test uses, with notes on anything that puts p-values in doubt.

    ``verb`` is the name of the public function that asks, such as "compare". ``in_order`` is for
    tests that allow for dependence on earlier rows. Weights are scaled, as only their ratios count,
    unless ``stakes`` keeps them as amounts. Rows of a time series (``horizon``) are sorted by time.
    Without anything to note the object ``data`` may be returned itself.

    UnsupportedFactError for a design that the function does not take. StatisticError for rows to
    which the predictions were fitted, for rows of one cluster only, and for a series that is too
    short.
    """
    # Tests look at ratios of weights; whole numbers among them have exact laws
    if data.weights is not None and not stakes:
        data = as_sampled(data.in_ratios())
    if data.provenance:  # a map that was fitted to these labels makes them look calibrated
        from caltest.recalibration import refuse_fitted_rows

        refuse_fitted_rows(data)
    takes = TAKES[verb].facts
    for fact in RowFact:
        if fact not in takes and fact.of(data) is not None:
            items = fact is RowFact.CLUSTERS and data.items is not None
            what = "items, several outcomes of one prediction," if items else fact.option
            message = f"{verb} does not take {what} yet{fact.advice}"
            readings = [Reading({fact.option: None})] * (fact.option in Facts.__annotations__)
            raise UnsupportedFactError(message, readings, fact.words)
    if data.clusters is not None and data.n_clusters == 1:
        raise StatisticError(
            "all rows are of one cluster, and could all depend on each other: name a column with "
            "several values, or leave clusters= (--clusters) out",
            [Reading({"clusters": None})],
        )
    data = data if data.horizon is None else in_time_order(data)
    notes: list[str] = list(_doubts(data, in_order))
    if data.by is not None and data.clusters is not None and data.crossed is None:
        notes = [*_nested(data.by, data.clusters), *notes]
    excused = data.induced or data.clusters is not None or data.followup is not None
    copies = data.copies
    if not (copies or excused):
        # Looked for once for the same object: every test of an audit comes here
        if data not in _COPIES:
            _COPIES[data] = n_copies(data.probs, data.labels)
        if copies := _COPIES[data]:
            remedy = spelt(", or say by clusters= (--clusters) which rows belong together")
            words = f"{copies} of {data.n} rows repeat another, probabilities and label, and hardly"
            words += " by chance: errors look more certain than they are. Keep one row of each"
            notes.append(DependenceDoubt(words + remedy * (RowFact.CLUSTERS in takes)))
    if not notes:
        return data  # the same object: what is known of it is looked up by it
    return replace(data, copies=copies, notes=tuple(dict.fromkeys((*data.notes, *notes))))


#: Subgroups from which on a column that holds whole clusters may be a level of dependence.
DEPENDENT_SUBGROUPS = 10


def _nested(by: AnyArray, clusters: AnyArray) -> list[str]:
    """Return a list with a note if clusters lie within subgroups, as patients within hospitals.

    ``by`` (n,) or (n, C) names the subgroup of every row by one or C columns, ``clusters`` (n,)
    its cluster. Clusters alone do not allow for effects that all rows of one subgroup share. The
    note is a sentence that recommends the column of subgroups as clusters. The list is empty if
    clusters do not nest in a column with at least 10 subgroups.
    """
    clusters = by_appearance(clusters)
    count = int(clusters.max()) + 1
    for column in by.reshape(len(by), -1).T:
        levels = by_appearance(column)
        size = int(levels.max()) + 1
        if (
            DEPENDENT_SUBGROUPS <= size < count
            and np.unique(clusters * size + levels).size == count
        ):
            return [
                f"the {count} clusters lie within {size} subgroups: if rows of one subgroup depend "
                "on each other beyond their clusters, as patients of a hospital do, take its "
                "column for the clusters (clusters=, --clusters)"
            ]
    return []


def _doubts(data: Predictions, in_order: bool) -> Iterator[Doubt]:
    """Yield notes (:class:`Doubt`, a text) with reasons to doubt a test of these rows.

    One says that residuals are associated with the weights, the other that residuals of
    neighbouring rows agree more than by chance. The second is left out with ``in_order``, for tests
    that allow for dependence on earlier rows, for rows with clusters, folds or follow-up, or behind
    a lens, and beside a doubt of ``data`` that names the clusters.
    """
    if data.weights is not None:
        event = 1 if data.n_classes == 2 else data.probs.argmax(axis=1)
        residuals = (data.labels == event) - data.probs[np.arange(data.n), event]
        units = None if data.clusters is None else by_appearance(data.clusters)
        if abs(z := association(data.weights, residuals, units)) > ASSOCIATED:
            yield Doubt(
                f"residuals change with the weight (z = {z:+.1f}): no test is valid if weights "
                "depend on outcomes"
            )
    designed = (data.clusters, data.followup, data.folds)
    alone = not (data.induced or in_order) and all(known is None for known in designed)
    alone = alone and not any(isinstance(n, DependenceDoubt) and n.clusters for n in data.notes)
    if alone and (z := neighbours(data)) > AGREEING:
        yield DependenceDoubt(
            spelt(
                f"neighbouring rows agree more than chance (z = {z:.1f}), but p-values assume "
                "independence: if rows belong together, such as those of a patient, pass clusters= "
                "(--clusters COLUMN); if they are forecasts several steps ahead in the order of "
                "time, such as days, pass how many, horizon=NUMBER (--horizon NUMBER)"
            )
        )


#: Surprises to be expected, and z of neighbours that agree more than chance.
SURPRISES, AGREEING = 20.0, 3.29


#: Rows of a subgroup with about the same prediction, on average, whose own mean is taken off.
IN_A_PART = 50


_NEIGHBOURS: WeakKeyDictionary[Predictions, float] = WeakKeyDictionary()


def neighbours(data: Predictions) -> float:
    """Return z of the products of neighbouring residuals, Σ a / √Σ a², a_i = x_i x_{i+1}.

    A large z is a sign that neighbouring rows depend on each other. x is the residual (outcome less
    probability) of whether the most likely class occurred, less its mean among rows with about the
    same prediction, and in the same subgroup if subgroups hold 50 rows on average. For two classes
    z is computed for the residual of class 0 as well, and the larger one returned. z is 0 if fewer
    than 20 rows are expected to have another class than the most likely one. O(n log n); the value
    is kept for each object ``data``.
    """
    if data not in _NEIGHBOURS:
        z, top = [], largest(data.probs)
        if (1.0 - top).sum() >= SURPRISES:
            outcomes = [(top, data.labels == data.probs.argmax(axis=1))]
            if data.n_classes == 2:
                outcomes.append((data.probs[:, 0], data.labels == 0))
            for p, outcome in outcomes:
                x, part = outcome - p, quarters(p)
                if data.by is not None:
                    part = _within_subgroups(data.by, part)
                # Less the mean of like predictions: miscalibration alone makes neighbours agree
                x -= (np.bincount(part, x) / np.maximum(np.bincount(part), 1))[part]
                products = x[1:] * x[:-1]
                z.append(products.sum() / max(np.sqrt((products**2).sum()), 1e-300))
        _NEIGHBOURS[data] = float(max(z, default=0.0))
    return _NEIGHBOURS[data]


def _within_subgroups(by: AnyArray, part: IntArray) -> IntArray:
    """Return a finer numbering of parts of the rows, (n,), each part within one subgroup.

    ``part`` (n,) is the number of each row's part, such as a quarter of the predictions, and ``by``
    (n,) or (n, C) its subgroup by one or C columns. A column is left out if parts would then
    have fewer than 50 rows on average. With residuals centred in these parts, differences between
    subgroups do not look like dependence of neighbouring rows.
    """
    for column in by.reshape(len(by), -1).T:
        finer = np.unique(column, return_inverse=True)[1].ravel()
        finer = np.unique(part * (int(finer.max()) + 1) + finer, return_inverse=True)[1].ravel()
        part = finer if IN_A_PART * (int(finer.max()) + 1) <= len(by) else part
    return part


# ------------------------------------------------------------------------------
# Rows, or a tally in their place.


def take_rows_or_tally(
    verb: str, probs: object, labels: object, facts: RowFacts, lens: LensLike | None = None,
    statistics: Collection[StatisticLike | None] = (None,),
) -> RowsOrTally:  # fmt: skip
    """Validate rows as :func:`take_rows` does, or a tally; return the rows or the tally.

    A tally has sums over fine bins in place of rows, and ``probs`` may be one, or several for
    several lenses. ``verb`` is the name of the public function that asks, and ``facts`` are its
    keyword arguments on the design. The member for ``lens`` is returned; if its sums cannot answer
    one of the ``statistics`` (None for no statistic), the sampled rows that it keeps are returned.
    StatisticError for a tally with ``labels`` or design arguments; other errors as in
    :func:`take_rows`.
    """
    if isinstance(probs, AnyTally):
        probs = rows_where_needed(probs, [(statistic, lens) for statistic in statistics])
    if isinstance(probs, AnyTally):
        return take_tally(verb, probs, labels, facts, lens)
    return take_rows(verb, probs, labels, facts)


def take_tally(
    verb: str, tally: AnyTally, labels: object, facts: RowFacts, lens: LensLike | None = None, *,
    whole: bool = False,
) -> AnyTally:  # fmt: skip
    """Validate a tally; return its member for ``lens``, or all members with ``whole``.

    A tally has sums over fine bins in place of rows; ``lens`` None is its usual lens. ``verb`` is
    the name of the function that asks. StatisticError for ``labels`` other than None and for design
    arguments (``facts``, by name), as a tally holds both already, and for a tally of clusters where
    the function takes none.
    """
    for name in ["labels"] * (labels is not None) + sorted(facts):
        raise StatisticError(f"{verb}: a tally has its own labels and facts: leave out {name}")
    if tally.n_clusters is not None and TAKES[verb].tally is not Tallied.CLUSTERED:
        others = [name for name, takes in TAKES.items() if takes.tally is Tallied.CLUSTERED]
        raise StatisticError(
            f"{verb} takes no tally of clusters: {' and '.join(others)} do, and it has mean_gap()"
        )
    return tally if whole else tally.through(lens)


def rows_where_needed(
    tally: T, pairs: Collection[tuple[StatisticLike | None, LensLike | None]]
) -> T | Predictions:
    """Return the sampled rows of tallies if their sums cannot answer one of the ``pairs``.

    Tallies have sums over fine bins, and may keep a sample of the rows. A pair is (statistic,
    lens), where None stands for no statistic and the usual lens. Otherwise ``tally`` is returned
    unchanged, as is any other input and a tally that keeps no rows.
    """
    if not isinstance(tally, AnyTally) or tally.rows is None:
        return tally
    try:
        for statistic, lens in pairs:
            seen = tally.through(lens)
            if statistic is not None:
                prepare(statistic, problem_of_tally(seen))
    except StatisticError:
        return tally.rows
    return tally


# ------------------------------------------------------------------------------
# Several models of the same rows.


def take_models(
    verb: str, models: Mapping[str, object], labels: object, facts: Facts, remedy: str = "",
    own_labels: bool = False,
) -> dict[str, Predictions]:  # fmt: skip
    """Validate several models of the same observations; return their rows by name of the model.

    Rows are brought into the order of the first model, by ids or by pandas indexes. ``models`` are
    predictions by name, and ``labels`` their common outcomes. A model that is :class:`Predictions`,
    or a table with labels, gives the labels for all. ``facts`` are the keyword arguments on the
    design, and ``verb`` is the name of the public function that asks. ``remedy`` is advice that
    messages add for models of different rows ("" if there is none). With ``own_labels`` all models
    have to be :class:`Predictions`, and may have other outcomes of the same rows.

    InvalidPredictionsError for a model that cannot be read, which it names, and for models of
    different rows; other errors as in :func:`take_rows`.
    """
    tables, notes = models, dict[str, str]()
    if own_labels and not all(isinstance(model, Predictions) for model in models.values()):
        raise InvalidPredictionsError(
            "own_labels=True is for models that are Predictions, each with its labels"
        )
    if not all(isinstance(model, (np.ndarray, Predictions)) for model in models.values()):
        tables = {name: opened(model, f"model {name}") for name, model in models.items()}
        facts = with_ids(list(tables.values()), labels, facts)
        matched = paired_rows(tables, labels, {**facts})
        tables, labels, notes = matched.models, matched.labels, {**matched.notes}
    known = [model.labels for model in tables.values() if isinstance(model, Predictions)]
    shared = known[0] if labels is None and known else labels
    data = {}
    for name, model in tables.items():
        own: object = labels
        if isinstance(model, np.ndarray) and not isinstance(labels, str):
            own = shared
        elif not (isinstance(labels, str) or isinstance(model, Predictions)):
            own = None if has_labels(model) else shared
        data[str(name)] = take_model(verb, name, model, own, facts)
        if name in notes:
            data[str(name)] = noted(data[str(name)], notes[name])
    data = match_rows(data, own_labels)
    (first, a), *others = data.items()
    for name, b in others:
        refuse_unlike((first, name), a, b, remedy, own_labels)
    return data


def paired_rows(models: Mapping[str, object], labels: object, facts: Fields) -> MatchedRows:
    """Return models and labels with rows in the same order, matched by their pandas indexes.

    ``models`` are predictions by name. The result has the fields ``models``, again by name,
    ``labels``, and ``notes``: a sentence on how rows were matched, by name of the model. If
    ``facts`` (keyword arguments on the design) name a column of ids, rows are left as they are,
    because ids are matched later. InvalidPredictionsError if indexes differ in more than their
    order.
    """
    if isinstance(facts.get("ids"), str):
        return MatchedRows({**models}, labels, {})
    return matched_by_index(models, labels)


def noted(data: SomeSource, note: str | None) -> SomeSource:
    """Return rows with ``note``, a sentence, added to their field ``notes``.

    The data are returned unchanged without a note (None), and if they are a tally (sums over bins).
    """
    if note is None or not isinstance(data, Predictions):
        return data
    return replace(data, notes=(*data.notes, note))


def take_model(verb: str, name: str, probs: object, labels: object, facts: Facts) -> Predictions:
    """Validate the rows of one model of a comparison; return them as :class:`Predictions`.

    ``name`` is the model's name in messages; other parameters and errors as in :func:`take_rows`.
    StatisticError for a time series that is too short for a variance.
    """
    try:
        data = take_rows(verb, probs, labels, facts)
    except InvalidPredictionsError as error:
        raise error.of_file(f"model {name}") from None
    if data.horizon is not None:
        refuse_few_blocks(verb, data)
    return data


# ------------------------------------------------------------------------------
# One question about data, and the fields on data that every result has.


SomeResult = TypeVar("SomeResult", bound=Result)


#: Nanoseconds of a replicate, measured: for each row, and for the micro-cells of a tally.
ROW_COST, SUMS_COST = 0.3, 40_000.0


#: Rows above which questions are answered from sums over micro-cells, where these say the same:
#: from here on sums are cheaper, with many replicates as with none.
ROWS_FOR_SUMS = int(SUMS_COST / ROW_COST)


@dataclass(frozen=True, eq=False)
class Analysis:
    """Validated data seen through a lens, from which results take their fields on data and design.

    ``data`` is the validated input, rows or a tally (sums over fine bins). ``problem`` holds the
    predictions and outcomes that ``lens`` leaves of it, by row or by cell of a tally. ``rng`` is
    the random generator or seed; results name it if it is a seed.
    """

    data: RowsOrTally
    lens: Lens
    problem: Problem = field(repr=False)
    rng: RNG = None

    @classmethod
    def of(
        cls, verb: str, probs: object, labels: object, facts: Facts, *,
        lens: LensLike | None = None, rng: RNG = None, summable: Collection[StatisticLike] = (),
    ) -> Self:  # fmt: skip
        """Validate rows, or a tally where the function takes one, and look through the lens.

        A tally has sums over fine bins in place of rows. ``verb`` is the name of the public
        function that asks, ``facts`` are its keyword arguments on the design, such as clusters.
        ``lens`` None is the usual lens, and ``rng`` is named in results if it is a seed.
        ``summable`` are statistics for which sums over fine bins may replace very many rows, where
        that gives the same value. Errors as in :func:`take_rows`.
        """
        if TAKES[verb].tally is Tallied.NONE:
            return cls.through(lens, take_rows(verb, probs, labels, facts), rng)
        data = take_rows_or_tally(verb, probs, labels, facts, lens, [*summable, None])
        return cls.through(lens, data, rng, summable)

    @classmethod
    def through(
        cls, lens: LensLike | None, data: RowsOrTally, rng: RNG = None,
        summable: Collection[StatisticLike] = (),
    ) -> Self:  # fmt: skip
        """Look at validated data through a lens; a tally takes the sums that it has for the lens.

        A tally has sums over fine bins in place of rows. More than 130 000 unweighted rows of two
        classes are replaced by such sums, if these give the estimates of all ``summable``
        statistics up to rounding. ``lens`` None is the usual lens; ``rng`` is named in results if
        it is a seed. StatisticError for a tally without sums for the lens.
        """
        if not isinstance(data, Predictions):
            tally = data.through(lens)
            return cls(tally, tally.lens, problem_of_tally(tally), rng)
        lens = as_lens(lens, data)
        induced = _shown(data, lens)
        # Sums take one pass; below that many rows they save nothing
        within = isinstance(lens, Aligned) and lens.summary.memorised  # tested within folds
        if summable and induced.n > ROWS_FOR_SUMS and induced.n_classes == 2 and not within:
            facts = (induced.weights, induced.n_clusters, induced.by, induced.followup)
            ours = all(isinstance(s, Statistic) for s in summable)
            if ours and all(fact is None for fact in facts):
                sums = problem_of_tally(Tally.of(induced, lens=Canonical()))
                with suppress(StatisticError):  # the rows say why, or have an answer
                    parts = [prepare(s, sums) for s in summable]
                    same = all(part.remarks == sums.remarks for part in parts)
                    if same and not (any(map(_of_scores, parts)) and _in_few_cells(induced, sums)):
                        return cls(data, lens, sums, rng)
        return cls(data, lens, row_problem(induced), rng)

    @property
    def rows(self) -> Predictions:
        """The validated data as rows, before the lens.

        AssertionError for a tally (sums over fine bins).
        """
        assert isinstance(self.data, Predictions)
        return self.data

    @property
    def induced(self) -> Predictions:
        """Predictions that the lens leaves, such as confidence and correctness.

        Only for an analysis of rows: AssertionError where sums over bins replace them.
        """
        assert isinstance(self.problem, RowProblem)
        return self.problem.data

    @property
    def from_sums(self) -> bool:
        """True if this analysis uses sums over fine bins (a tally) in place of rows."""
        return not self.problem.exact

    @cached_property
    def followup(self) -> FollowupSummary | None:
        """Summary of censoring for rows with follow-up times in place of labels.

        None for all others.
        """
        if self.from_sums or self.induced.followup is None:
            return None
        return self.induced.followup.summary(self.induced.risks)

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the classes that the lens leaves.

        They are in the order of the classes; for two classes it is the name of the event alone.
        """
        return self.lens.components(self.data)

    def needs_two_classes(self, what: str) -> None:
        """Raise StatisticError if the lens leaves more than two classes.

        ``what`` is the subject of the message, such as "a curve".
        """
        if self.problem.n_classes != 2:
            raise StatisticError(
                f"{what} needs a two-class lens; {name_of(self.lens)} leaves "
                f"{self.problem.n_classes} classes"
            )

    @property
    def event_name(self) -> str:
        """The user's name of the class that a one-versus-rest lens assesses; "" for other lenses.

        It is "" as well if the class has no name.
        """
        lens = self.lens.lens if isinstance(self.lens, Aligned) else self.lens
        if not isinstance(lens, OneVsRest):
            return ""
        c, data = self.data.class_index(lens.c), self.data
        if c == 1 and data.n_classes == 2:
            return data.event_name
        return data.classes[c] if data.classes else ""

    @property
    def facts(self) -> Fields:
        """Fields on data and design that every result has, a dict by name of the field.

        They are the lens, numbers of rows, of classes and of clusters, the effective number of
        weighted rows, summaries of folds, time series and follow-up (None without), the seed, and
        the notes.
        """
        # A lens may drop rows, and weights and clusters with them: what it shows counts
        rows = self.problem.data if isinstance(self.problem, RowProblem) else None
        source = self.data if rows is None else rows
        folds = self.lens.summary if isinstance(self.lens, Aligned) else None
        series = summary_of(self.rows) if rows is not None and rows.horizon is not None else None
        return {
            "lens": name_of(self.lens),
            "n": self.problem.n,
            "n_classes": self.data.n_classes,
            "event_name": self.event_name,
            "effective_n": None if source.weights is None else source.effective_n,
            "n_clusters": None if series is not None else source.n_clusters,
            "series": series,
            "folds": folds,
            "seed": seed_of(self.rng),
            "copies": self.data.copies,
            "followup": self.followup if rows is not None and rows.followup is not None else None,
            "notes": (*self.data.notes, *(n for d in (folds, series) if d for n in d.notes)),
        }

    def result(
        self, kind: type[SomeResult], statistic: StatisticLike | None = None, *,
        prepared: Prepared | None = None, notes: Collection[str] = (), **numbers: Any,
    ) -> SomeResult:  # fmt: skip
        """Return a result with the fields of this analysis on data and design, and ``numbers``.

        ``kind`` is the class of the result, and ``numbers`` are its other fields by name, which
        override common ones. ``statistic`` is named in the result if given. ``prepared``, the
        statistic with fixed predictions, adds its remarks to the notes, and ``notes`` are further
        sentences. Equal notes are listed once.
        """
        named = {} if statistic is None else {"statistic": name_of(statistic)}
        remarks, facts = () if prepared is None else prepared.remarks, self.facts
        # A note of the data may be one of the statistic as well: each is said once
        named["notes"] = tuple(dict.fromkeys((*facts["notes"], *notes, *remarks)))  # type: ignore[assignment]
        return kind(**facts | named | numbers)


def lens_for(
    statistic: StatisticLike | None, lens: LensLike | None, data: RowsOrTally
) -> LensLike | None:
    """Return the lens to use for a statistic: ``lens`` if given, else one that suits the statistic.

    Where ``lens`` is None it is ``Canonical()`` for a statistic of the whole probability vector and
    rows of more than two classes. In all other cases None is returned, which stands for the default
    lens of ``data``: the event for two classes, the top class for more.
    """
    whole = isinstance(statistic, Statistic) and statistic.of_whole_vector
    rows = isinstance(data, Predictions) and data.n_classes > 2
    return Canonical() if lens is None and whole and rows else lens


def _shown(data: Predictions, lens: Lens) -> Predictions:
    """Return the predictions that a lens leaves; the same object for the same data and lens.

    Caches that are keyed by the object are then hit. Only top-label and one-versus-rest lenses are
    remembered.
    """
    if type(lens) not in (OneVsRest, TopK):
        return lens(data)
    shown = _SHOWN.setdefault(data, {})
    if lens not in shown:
        induced = lens(data)
        if induced is data:
            return data
        shown[lens] = induced
    return shown[lens]


#: Micro-cells below which scores may differ within them more than from one to the next.
FEW_CELLS = 20


def _of_scores(prepared: Prepared) -> bool:
    """Return whether a statistic uses scores of single rows, such as log-odds.

    ``prepared`` is the statistic with fixed predictions.
    """
    return isinstance(prepared, SumStatistic) and prepared.scores is not None


def _in_few_cells(induced: Predictions, sums: Problem) -> bool:
    """Return whether sums over bins would be too coarse for scores of rows, such as log-odds.

    ``induced`` has the predictions behind the lens, ``sums`` the same data summed over fine bins.
    It is True with fewer than 20 bins that hold more distinct predictions than bins. Redrawn labels
    know only the bin of a row, so that differences of scores within bins would enter the observed
    value, but not its null distribution.
    """
    cells = len(sums.probs)
    return cells < FEW_CELLS and np.unique(induced.probs[:, 0]).size > cells


def evaluated(
    statistic: StatisticLike, problem: Predictions | Problem, before: int = 0
) -> tuple[Prepared, float]:
    """Return (prepared, value): the statistic with fixed predictions, and its observed value.

    ``prepared`` maps outcomes to values of the statistic. ``problem`` has the predictions and
    outcomes behind the lens, by row or by cell of a tally. ``before`` is the number of classes
    before the lens, 0 if unknown: a statistic of all classes is refused where the lens has merged
    them. StatisticError if the statistic fails on the data, or is not a finite number there.
    """
    if before > problem.n_classes:
        refuse_merged(statistic, before, problem.n_classes)
    if not isinstance(statistic, Statistic):
        from caltest.presets import Preset

        if isinstance(statistic, Preset):
            raise StatisticError("a preset is a statistic with its lens: unpack it, **preset")
    try:
        prepared = prepare(statistic, problem)
        value = prepared.observed
    except (StatisticError, InvalidPredictionsError):
        raise
    except (TypeError, ValueError) as error:
        raise StatisticError(
            f"the statistic {name_of(statistic)} failed on probs of shape {problem.probs.shape} "
            f"and labels of shape {problem.labels.shape}: {error}"
        ) from error
    # A p-value of NaN or infinity would pass every comparison silently
    if not np.isfinite(value):
        raise StatisticError(
            f"the statistic {name_of(statistic)} is {value} on the observed data; it must be a "
            "finite number"
        )
    return prepared, value


def seed_of(rng: RNG) -> int | None:
    """Return the seed if ``rng`` is an integer; None otherwise."""
    return int(rng) if isinstance(rng, (int, np.integer)) else None
