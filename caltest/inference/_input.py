"""What a verb may look at, and one question asked of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from caltest._base.arrays import RNG
from caltest._base.written import DependenceDoubt, Doubt, Fields, name_of, unknown
from caltest.data import Facts, Predictions, RowFacts
from caltest.data.facts import by_appearance
from caltest.data.lenses import Aligned, Canonical, Lens, LensLike, OneVsRest, TopK, as_lens
from caltest.data.numbers import n_copies
from caltest.data.predictions import as_sampled
from caltest.errors import InvalidPredictionsError, Reading, StatisticError, UnsupportedFactError
from caltest.inference.dependence import AGREEING, in_time_order, neighbours, summary_of
from caltest.nulls.agreement import association
from caltest.read.arguments import read_arguments
from caltest.results.base import ASSOCIATED, FollowupSummary, Result
from caltest.statistics import Problem
from caltest.statistics.prepared import Prepared, SumStatistic
from caltest.statistics.statistic import (
    Statistic,
    StatisticLike,
    prepare,
    problem_of,
    refuse_merged,
)
from caltest.tallies import AnyTally, Source, Tally, problem_of_tally

T = TypeVar("T")


#: Facts of rows that verbs honour who look at them by an :class:`Analysis`.
ROWS = frozenset({"clusters", "weights", "folds", "horizon", "two columns of clusters"})


#: Why a verb takes no such rows.
WHY = {
    "by": ": calibration_test (caltest test), audit, compare and interval look at subgroups",
    "folds": ": leave folds= (--folds) out to take all rows for those of one model. That models of "
    "other folds know these labels, and differ in level, is then not allowed for",
    "followup": ": calibration_test, joint_test, audit, report and reliability_curve do, and "
    "cox_recalibration gives intervals of O:E, intercept and slope",
    "horizon": ": outcomes that overlap are no independent draws",
    "several labels a row": ": each is asked by itself, by calibration_test or audit",
}


#: What facts are called where their names are not words.
NAMES = {"by": "subgroups", "followup": "follow-up", "horizon": "overlapping outcomes"}


#: Verbs that take a tally which keeps clusters apart.
OF_CLUSTERS = ("calibration_test", "reliability_curve")


#: Verbs whose rows go with those of another model, or come one by one: none is left out.
ALL_ROWS = ("compare", "Monitor", "ComparisonMonitor", "plan")


_COPIES: WeakKeyDictionary[Predictions, int] = WeakKeyDictionary()


#: What lenses show of the same predictions.
_SHOWN: WeakKeyDictionary[Predictions, dict[Lens, Predictions]] = WeakKeyDictionary()


def refuse_strange(verb: str, facts: RowFacts) -> None:
    """Refuse a keyword that is no fact, with the fact that is called nearly so."""
    for name in sorted(set(facts) - set(Facts.__annotations__)):
        raise unknown(verb, name, ["labels", *Facts.__annotations__])


def admitted(
    verb: str, probs: object, labels: object, facts: RowFacts, takes: Collection[str] = (), *,
    stakes: bool = False,
) -> Predictions:  # fmt: skip
    """Return predictions that a verb may test, of the arguments of :meth:`Predictions.of`.

    Facts that it does not ``take`` are refused, and rows that were used to make the predictions.
    Who takes ``"order"`` bets on one row after the other, which may depend on those before.
    ``stakes``: weights are meant as they are, not only their ratios.
    """
    if tallies_of(probs):
        raise StatisticError(f"{verb} needs the rows, and a tally has none: pass their predictions")
    refuse_strange(verb, facts)
    if verb in ALL_ROWS:
        facts.setdefault("rounded", False)
    data = read_arguments(probs, labels, **facts)
    # Tests look at ratios of weights; whole numbers among them have exact laws
    data = data if stakes else as_sampled(data.in_ratios())
    # A map that was fitted to these labels makes them look calibrated
    if data.provenance:
        from caltest.recalibration import refuse_fitted_rows

        refuse_fitted_rows(data)
    carried: dict[str, object] = {"weights": data.weights, "clusters": data.n_clusters}
    carried |= {"by": data.by, "folds": data.folds, "followup": data.followup}
    carried |= {"features": data.features, "horizon": data.horizon}
    carried["several labels a row"] = data.multilabel or None
    carried["two columns of clusters"] = data.crossed
    for name, values in carried.items():
        if values is not None and name not in takes:
            message = f"{verb} does not take {name} yet{WHY.get(name, '')}"
            remedies = [Reading({name: None})] * (name in Facts.__annotations__)
            raise UnsupportedFactError(message, remedies, NAMES.get(name, name))
    if data.clusters is not None and data.n_clusters == 1:
        raise StatisticError(
            "all rows are of one cluster, and could all depend on each other: name a column with "
            "several values, or leave clusters= (--clusters) out",
            [Reading({"clusters": None})],
        )
    data = data if data.horizon is None else in_time_order(data)
    notes: list[str] = _nested(data)
    if data.weights is not None:
        event = 1 if data.n_classes == 2 else data.probs.argmax(axis=1)
        residuals = (data.labels == event) - data.probs[np.arange(data.n), event]
        units = None if data.clusters is None else by_appearance(data.clusters)
        if abs(z := association(data.weights, residuals, units)) > ASSOCIATED:
            words = f"residuals change with the weight (z = {z:+.1f}): no test is valid if weights "
            notes.append(Doubt(words + "depend on outcomes"))
    excused = data.clusters is not None or data.followup is not None
    alone = not (data.induced or excused or data.folds is not None or "order" in takes)
    if alone and (z := neighbours(data)) > AGREEING:
        words = (
            f"neighbouring rows agree more than chance (z = {z:.1f}), and p-values take rows for "
            "independent: of a series forecast 3 steps ahead say horizon=3 (--horizon 3), of rows "
            "that belong together, as those of a patient, clusters= (--clusters COLUMN)"
        )
        notes.append(DependenceDoubt(words))
    copies = data.copies
    if not (copies or data.induced or excused):
        # Looked for once for the same object: every verb of an audit comes here
        if data not in _COPIES:
            _COPIES[data] = n_copies(data.probs, data.labels)
        if copies := _COPIES[data]:
            remedy = ", or say by clusters= which rows belong together" * ("clusters" in takes)
            words = (
                f"{copies} of {data.n} rows repeat another, probabilities and label, and hardly by "
                f"chance: errors look more certain than they are. Keep one row of each{remedy}"
            )
            notes.append(DependenceDoubt(words))
    if not notes:
        return data  # the same object: what is known of it is looked up by it
    return replace(data, copies=copies, notes=tuple(dict.fromkeys((*data.notes, *notes))))


#: Subgroups from which on a column that holds whole clusters may be a level of dependence.
LEVELS = 10


def _nested(data: Predictions) -> list[str]:
    """Return a note where clusters lie within the subgroups of a column, as patients in hospitals.

    Clusters alone do not allow for what rows of one subgroup share beyond them.
    """
    if data.by is None or data.clusters is None or data.crossed is not None:
        return []
    clusters = by_appearance(data.clusters)
    count = int(clusters.max()) + 1
    for column in data.by.reshape(data.n, -1).T:
        levels = by_appearance(column)
        size = int(levels.max()) + 1
        if LEVELS <= size < count and np.unique(clusters * size + levels).size == count:
            return [
                f"the {count} clusters lie within {size} subgroups: if rows of one subgroup depend "
                "on each other beyond their clusters, as patients of a hospital do, take its "
                "column for the clusters (clusters=, --clusters)"
            ]
    return []


def tallies_of(*models: object) -> list[AnyTally]:
    """Return those of the models that are tallies."""
    return [model for model in models if isinstance(model, AnyTally)]


def rows_where_needed(
    probs: T, pairs: Iterable[tuple[StatisticLike | None, LensLike | None]]
) -> T | Predictions:
    """Return the sampled rows of tallies whose sums leave a pair open, all else as it is."""
    tallies = tallies_of(probs)
    if not tallies or tallies[0].rows is None:
        return probs
    try:
        for statistic, lens in pairs:
            tally = tallies[0].through(lens)
            if statistic is not None:
                prepare(statistic, problem_of_tally(tally))
    except StatisticError:
        return tallies[0].rows
    return probs


def admitted_tally(
    verb: str, tally: AnyTally, labels: object, facts: RowFacts, lens: LensLike | None = None, *,
    whole: bool = False,
) -> AnyTally:  # fmt: skip
    """Return a tally as the lens sees it, or all there is of it; labels and facts are refused."""
    for name in ["labels"] * (labels is not None) + sorted(facts):
        raise StatisticError(f"{verb}: a tally has its own labels and facts: leave out {name}")
    if tally.n_clusters is not None and verb not in OF_CLUSTERS:
        raise StatisticError(
            f"{verb} takes no tally of clusters: {' and '.join(OF_CLUSTERS)} do, and it has "
            "mean_gap()"
        )
    return tally if whole else tally.through(lens)


def checked(
    verb: str, probs: object, labels: object, facts: Facts, takes: Collection[str],
    lens: LensLike | None, statistics: Collection[StatisticLike | None] = (None,),
) -> Source:  # fmt: skip
    """Return rows, or a tally as the lens sees it; its sampled rows where sums leave a gap."""
    probs = rows_where_needed(probs, [(statistic, lens) for statistic in statistics])
    for tally in tallies_of(probs):
        return admitted_tally(verb, tally, labels, facts, lens)
    return admitted(verb, probs, labels, facts, takes)


# ------------------------------------------------------------------------------
# One question asked of data, and what every result says of it.


SomeResult = TypeVar("SomeResult", bound=Result)


#: Nanoseconds of a replicate, measured: for each row, and for the micro-cells of a tally.
ROW_COST, SUMS_COST = 0.3, 40_000.0


#: Rows above which questions are answered from sums over micro-cells, where these say the same:
#: from here on sums are cheaper, with many replicates as with none.
MANY = int(SUMS_COST / ROW_COST)


@dataclass(frozen=True, eq=False)
class Analysis:
    """What a verb may look at, as its lens shows it; every result is filled in here.

    ``verb`` is its name in messages, ``data`` what the caller passed, checked, ``problem`` what the
    ``lens`` shows of it: rows, or sums over micro-cells. A seed in ``rng`` is named in the result.
    """

    verb: str
    data: Source
    lens: Lens
    problem: Predictions | Problem = field(repr=False)
    rng: RNG = None

    @classmethod
    def of(
        cls, verb: str, probs: object, labels: object, facts: Facts, *,
        lens: LensLike | None = None, rng: RNG = None, takes: Collection[str] = ROWS,
        summable: Collection[StatisticLike] = (), statistic: StatisticLike | None = None,
    ) -> Self:  # fmt: skip
        """Check the data and look through the lens.

        A verb that ``takes`` a "tally" is asked of one as of rows. Of very many rows sums are
        looked at, where these have the values of all ``summable`` statistics.
        InvalidPredictionsError for what is no forecast with its outcomes, StatisticError for data
        with a fact that the verb does not take.
        """
        if "tally" in takes:
            statistics = [statistic] if statistic is not None else [*summable, None]
            data = checked(verb, probs, labels, facts, takes, lens, statistics)
        else:
            data = admitted(verb, probs, labels, facts, takes)
        return cls.of_data(verb, data, lens_for(statistic, lens, data), rng, summable)

    @classmethod
    def of_data(
        cls, verb: str, data: Source, lens: LensLike | None, rng: RNG = None,
        summable: Collection[StatisticLike] = (),
    ) -> Self:  # fmt: skip
        """Look at checked data: rows through a lens, a tally by the sums that it has for one."""
        if not isinstance(data, Predictions):
            tally = data.through(lens)
            return cls(verb, tally, tally.lens, problem_of_tally(tally), rng)
        through = as_lens(lens, data)
        return cls(verb, data, through, seen_through(data, through, summable), rng)

    @property
    def rows(self) -> Predictions:
        """The data, for what is asked of rows only."""
        assert isinstance(self.data, Predictions)
        return self.data

    @property
    def induced(self) -> Predictions:
        """What the lens shows of rows."""
        assert isinstance(self.problem, Predictions)
        return self.problem

    @property
    def units(self) -> Problem:
        """What the lens shows, as statistics see it."""
        return problem_of(self.problem)

    @property
    def from_sums(self) -> bool:
        """Whether what is looked at are sums over micro-cells, which have no rows."""
        return not self.units.exact

    @cached_property
    def followup(self) -> FollowupSummary | None:
        """How far rows were followed, where follow-up stands for labels."""
        if self.from_sums or self.induced.followup is None:
            return None
        return self.induced.followup.summary(self.induced.risks)

    @property
    def components(self) -> tuple[str, ...]:
        """What the induced classes are called; of two, what the event is called."""
        return self.lens.components(self.data)

    def evaluate(self, statistic: StatisticLike) -> tuple[Prepared, float]:
        """Return a statistic with the predictions fixed, and its value, a finite number."""
        # Sums over micro-cells do not know what the lens has merged
        refuse_merged(statistic, self.data.n_classes, self.problem.n_classes)
        return evaluated(statistic, self.problem)

    def needs_two_classes(self, what: str) -> None:
        """Refuse a lens that leaves more than two classes."""
        if self.problem.n_classes != 2:
            raise StatisticError(
                f"{what} needs a two-class lens; {name_of(self.lens)} leaves "
                f"{self.problem.n_classes} classes"
            )

    @property
    def facts(self) -> Fields:
        """What every result says of its data and their design."""
        # A lens may drop rows, and weights and clusters with them: what it shows counts
        source = self.data if self.from_sums else self.induced
        folds = self.lens.summary if isinstance(self.lens, Aligned) else None
        series = None if self.from_sums else summary_of(self.rows)
        return {
            "lens": name_of(self.lens),
            "n": self.problem.n,
            "n_classes": self.data.n_classes,
            "effective_n": None if source.weights is None else source.effective_n,
            "n_clusters": None if series is not None else source.n_clusters,
            "series": series,
            "folds": folds,
            "seed": seed_of(self.rng),
            "copies": self.data.copies,
            "followup": self.followup,
            "notes": (*self.data.notes, *(n for d in (folds, series) if d for n in d.notes)),
        }

    def result(
        self, kind: type[SomeResult], statistic: StatisticLike | None = None, *,
        prepared: Prepared | None = None, notes: Collection[str] = (), **numbers: Any,
    ) -> SomeResult:  # fmt: skip
        """Make a result: what there is to say of the data and of the statistic, and the numbers."""
        named = {} if statistic is None else {"statistic": name_of(statistic)}
        remarks, facts = () if prepared is None else prepared.remarks, self.facts
        # A note of the data may be one of the statistic as well: each is said once
        named["notes"] = tuple(dict.fromkeys((*facts["notes"], *notes, *remarks)))  # type: ignore[assignment]
        return kind(**facts | named | numbers)


def lens_for(
    statistic: StatisticLike | None, lens: LensLike | None, data: Source
) -> LensLike | None:
    """Return the lens, by default ``Canonical()`` for a statistic of the whole vector."""
    whole = isinstance(statistic, Statistic) and statistic.of_whole_vector
    rows = isinstance(data, Predictions) and data.n_classes > 2
    return Canonical() if lens is None and whole and rows else lens


def problem_through(data: Source, lens: LensLike | None) -> Problem:
    """Return what a lens shows of checked data."""
    return Analysis.of_data("audit", data, lens).units


def _shown(data: Predictions, lens: Lens) -> Predictions:
    """Return the induced predictions, one object for the same data and lens."""
    if type(lens) not in (OneVsRest, TopK):
        return lens(data)
    shown = _SHOWN.setdefault(data, {})
    if lens not in shown:
        induced = lens(data)
        if induced is data:
            return data
        shown[lens] = induced
    return shown[lens]


def seen_through(
    data: Predictions, lens: Lens, statistics: Collection[StatisticLike]
) -> Predictions | Problem:
    """Return what the lens shows: rows or, of very many, the sums that answer just as they do.

    Those are of two classes, rows that count alike, and statistics whose estimate sums know to
    rounding; without ``statistics``, rows.
    """
    induced = _shown(data, lens)
    facts = (induced.weights, induced.n_clusters, induced.by, induced.followup)
    alike = all(fact is None for fact in facts)
    if isinstance(lens, Aligned) and lens.summary.memorised:
        return induced  # which is tested within folds
    # Sums take one pass; below that many rows they save nothing
    if statistics and alike and induced.n > MANY and induced.n_classes == 2:
        sums = problem_of_tally(Tally.of(induced, lens=Canonical()))
        with suppress(StatisticError):  # the rows say why, or have an answer
            ours = all(isinstance(s, Statistic) for s in statistics)
            parts = [prepare(s, sums) for s in statistics] if ours else []
            alike = ours and all(part.remarks == sums.remarks for part in parts)
            if alike and not (any(map(_of_scores, parts)) and _within_few_cells(induced, sums)):
                return sums
    return induced


#: Micro-cells below which scores may differ within them more than from one to the next.
FEW_CELLS = 20


def _of_scores(prepared: Prepared) -> bool:
    """Return whether a statistic sees scores of rows, such as log-odds."""
    return isinstance(prepared, SumStatistic) and prepared.scores is not None


def _within_few_cells(induced: Predictions, sums: Problem) -> bool:
    """Return whether predictions differ within so few micro-cells that the draws do not see it.

    Drawn labels know the cell of a row only: what scores of the observed labels add within cells
    would be taken for a constant, and the noise floor of a slope would depend on the labels.
    """
    cells = len(sums.probs)
    return cells < FEW_CELLS and np.unique(induced.probs[:, 0]).size > cells


def evaluated(statistic: StatisticLike, induced: Predictions | Problem) -> tuple[Prepared, float]:
    """Return the statistic with its predictions fixed, and its value on the observed labels."""
    if not isinstance(statistic, Statistic):
        from caltest.presets import Preset

        if isinstance(statistic, Preset):
            raise StatisticError("a preset is a statistic with its lens: unpack it, **preset")
    try:
        prepared = prepare(statistic, induced)
        value = prepared.observed
    except (StatisticError, InvalidPredictionsError):
        raise
    except (TypeError, ValueError) as error:
        raise StatisticError(
            f"the statistic {name_of(statistic)} failed on probs of shape {induced.probs.shape} "
            f"and labels of shape {induced.labels.shape}: {error}"
        ) from error
    # A p-value of NaN or infinity would pass every comparison silently
    if not np.isfinite(value):
        raise StatisticError(
            f"the statistic {name_of(statistic)} is {value} on the observed data; it must be a "
            "finite number"
        )
    return prepared, value


def seed_of(rng: RNG) -> int | None:
    """Return the seed, if the generator was given by one."""
    return int(rng) if isinstance(rng, (int, np.integer)) else None
