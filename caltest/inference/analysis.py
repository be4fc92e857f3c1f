"""One question asked of data: what a verb may look at, and what every result says of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from caltest._base.copies import n_copies
from caltest._base.facts import by_appearance
from caltest._base.foreign import unknown
from caltest._base.written import name_of
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.inference.series import AGREEING, in_time_order, neighbours, summary_of
from caltest.lens_choice import Aligned, as_lens
from caltest.lenses import Canonical, Lens, LensLike
from caltest.predictions import Facts, Predictions, RowFacts
from caltest.problem import ClusteredProblem, Problem, TallyProblem
from caltest.results.base import Result
from caltest.results.calibration import ASSOCIATED
from caltest.results.followup import FollowupSummary
from caltest.simulate.agreement import association
from caltest.statistics.base import Statistic, StatisticLike, prepare, problem_of
from caltest.statistics.prepared import Prepared
from caltest.tally import AnyTally, ClusteredTally, Tallies, Tally

#: Facts of rows that verbs honour who look at them by an :class:`Analysis`.
ROWS = frozenset({"clusters", "weights", "folds", "horizon"})
#: Why a verb takes no such rows.
WHY = {
    "folds": ": models of other folds know these labels",
    "horizon": ": outcomes that overlap are no independent draws",
    "several labels a row": ": each is asked by itself, by calibration_test or audit",
}
#: Verbs that take a tally which keeps clusters apart.
OF_CLUSTERS = ("calibration_test", "reliability_curve")
SomeResult = TypeVar("SomeResult", bound=Result)
#: Rows above which questions are answered from sums over micro-cells, where these say the same.
MANY = 100_000

_COPIES: WeakKeyDictionary[Predictions, int] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Analysis:
    """Data that a verb may look at, as its lens shows them; every result is filled in here.

    Attributes
    ----------
    verb : str
        The verb, as messages name it.
    data : Predictions or Tally
        What the caller passed, checked.
    lens : Lens
        Which aspect is asked about.
    problem : Predictions or TallyProblem
        What the lens shows: rows, or sums over micro-cells.
    rng : None, int, Generator or SeedSequence
        As the caller gave it: a seed is named in the result.
    """

    verb: str
    data: Any
    lens: Lens
    problem: Any = field(repr=False)
    rng: Any = None

    @classmethod
    def of(
        cls,
        verb: str,
        probs: Any,
        labels: Any,
        facts: Facts,
        *,
        lens: LensLike | None = None,
        rng: Any = None,
        takes: Collection[str] = ROWS,
        summable: Collection[StatisticLike] = (),
        statistic: StatisticLike | None = None,
    ) -> Self:
        """Check the data and look through the lens.

        A verb that ``takes`` a "tally" is asked of one as of rows. Of very many rows sums are
        looked at, where these have the values of all ``summable`` statistics.

        Raises
        ------
        InvalidPredictionsError
            When probs and labels are not a forecast and its outcomes.
        StatisticError
            When the data carry a fact that the verb does not take.
        """
        if "tally" in takes:
            asked = [statistic] if statistic is not None else [*summable, None]
            data = checked(verb, probs, labels, facts, takes, lens, asked)
        else:
            data = admitted(verb, probs, labels, facts, takes)
        return cls.of_data(verb, data, lens, rng, summable)

    @classmethod
    def of_data(
        cls,
        verb: str,
        data: Predictions | AnyTally,
        lens: LensLike | None,
        rng: Any = None,
        summable: Collection[StatisticLike] = (),
    ) -> Self:
        """Look at checked data: rows through a lens, a tally by the sums that it has for one."""
        if isinstance(data, AnyTally):
            tally = data.through(lens)
            return cls(verb, tally, tally.lens, tally_problem(tally), rng)
        through = as_lens(lens, data)
        return cls(verb, data, through, seen_through(data, through, summable), rng)

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
        if self.from_sums or self.problem.followup is None:
            return None
        return self.problem.followup.summary(self.problem.risks)

    def evaluate(self, statistic: StatisticLike) -> tuple[Prepared, float]:
        """Return a statistic with the predictions fixed, and its value, a finite number."""
        return evaluated(statistic, self.problem)

    def needs_two_classes(self, what: str) -> None:
        """Refuse a lens that leaves more than two classes."""
        if self.problem.n_classes != 2:
            raise StatisticError(
                f"{what} needs a two-class lens; {name_of(self.lens)} leaves "
                f"{self.problem.n_classes} classes"
            )

    @property
    def facts(self) -> dict[str, Any]:
        """What every result says of its data and their design."""
        source = self.data if self.from_sums else self.problem
        folds = self.lens.summary if isinstance(self.lens, Aligned) else None
        series = None if self.from_sums else summary_of(self.data)
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
            "notes": (*self.data.notes, *(() if folds is None else folds.notes)),
        }

    def result(
        self,
        kind: type[SomeResult],
        statistic: StatisticLike | None = None,
        *,
        prepared: Prepared | None = None,
        notes: Collection[str] = (),
        **numbers: Any,
    ) -> SomeResult:
        """Make a result: what there is to say of the data and of the statistic, and the numbers."""
        named = {} if statistic is None else {"statistic": name_of(statistic)}
        remarks, facts = () if prepared is None else prepared.remarks, self.facts
        named["notes"] = tuple(dict.fromkeys((*facts["notes"], *notes, *remarks)))  # type: ignore[assignment]
        return kind(**facts | named | numbers)


def refuse_strange(verb: str, facts: RowFacts) -> None:
    """Refuse a keyword that is no fact, with the fact that is called nearly so."""
    for name in sorted(set(facts) - set(Facts.__annotations__)):
        raise unknown(verb, name, Facts.__annotations__)


def admitted(
    verb: str,
    probs: Any,
    labels: Any,
    facts: RowFacts,
    takes: Collection[str] = (),
    *,
    stakes: bool = False,
) -> Predictions:
    """Return predictions that a verb may test, of the arguments of :meth:`Predictions.of`.

    Data that carry weights, clusters or subgroups are refused unless the verb ``takes`` them, and
    rows that were used to make the predictions. ``stakes``: weights are meant as they are, not only
    their ratios.
    """
    if isinstance(probs, AnyTally):
        raise StatisticError(f"{verb} needs the rows, and a tally has none: pass their predictions")
    refuse_strange(verb, facts)
    data = Predictions.of(probs, labels, **facts)
    data = data if stakes else data.in_ratios()
    # A map that was fitted to these labels makes them look calibrated
    if data.provenance:
        from caltest.recalibration import refuse_fitted_rows

        refuse_fitted_rows(data)
    carried: dict[str, object] = {"weights": data.weights, "clusters": data.n_clusters}
    carried |= {"by": data.by, "folds": data.folds, "followup": data.followup}
    carried |= {"features": data.features, "horizon": data.horizon}
    carried["several labels a row"] = data.multilabel or None
    for name, values in carried.items():
        if values is not None and name not in takes:
            raise StatisticError(f"{verb} does not take {name} yet{WHY.get(name, '')}")
    data = data if data.horizon is None else in_time_order(data)
    if data.weights is not None:
        event = 1 if data.n_classes == 2 else data.probs.argmax(axis=1)
        residuals = (data.labels == event) - data.probs[np.arange(data.n), event]
        units = None if data.clusters is None else by_appearance(data.clusters)
        if abs(z := association(data.weights, residuals, units)) > ASSOCIATED:
            note = (
                f"residuals change with the weight (z = {z:+.1f}): no test is valid if weights "
                "depend on outcomes"
            )
            data = replace(data, notes=tuple(dict.fromkeys((*data.notes, note))))
    excused = data.clusters is not None or data.followup is not None
    alone = not (data.induced or excused or data.folds is not None)
    if alone and (z := neighbours(data)) > AGREEING:
        note = (
            f"neighbouring rows agree more than chance (z = {z:.1f}): if this is a series forecast "
            "several steps ahead pass horizon=, if rows belong together clusters="
        )
        data = replace(data, notes=tuple(dict.fromkeys((*data.notes, note))))
    if data.copies or data.induced or excused:
        return data
    if data not in _COPIES:
        _COPIES[data] = n_copies(data.probs, data.labels)
    if not (copies := _COPIES[data]):
        return data
    note = (
        f"{copies} of {data.n} rows repeat another, probabilities and label, and hardly by chance: "
        "errors look more certain than they are. Keep one row of each"
        + (", or say by clusters= which rows belong together" if "clusters" in takes else "")
    )
    return replace(data, copies=copies, notes=(*data.notes, note))


def rows_where_needed(
    probs: Any, pairs: Iterable[tuple[StatisticLike | None, LensLike | None]]
) -> Any:
    """Return the sampled rows of tallies whose sums leave a pair open, all else as it is."""
    if not isinstance(probs, Tallies) or probs.rows is None:
        return probs
    try:
        for statistic, lens in pairs:
            tally = probs.through(lens)
            if statistic is not None:
                prepare(statistic, TallyProblem.of(tally))
    except StatisticError:
        return probs.rows
    return probs


def admitted_tally(
    verb: str,
    tally: AnyTally,
    labels: Any,
    facts: RowFacts,
    lens: LensLike | None = None,
    *,
    whole: bool = False,
) -> Any:
    """Return a tally as the lens sees it, or all there is of it; labels and facts are refused."""
    for name in ["labels"] * (labels is not None) + sorted(facts):
        raise StatisticError(f"{verb}: a tally has its own labels and facts: leave out {name}")
    if isinstance(tally, ClusteredTally) and verb not in OF_CLUSTERS:
        raise StatisticError(
            f"{verb} takes no tally of clusters: {' and '.join(OF_CLUSTERS)} do, and it has "
            "mean_gap()"
        )
    if whole:
        return tally
    return tally.through(lens)


def checked(
    verb: str,
    probs: Any,
    labels: Any,
    facts: Facts,
    takes: Collection[str],
    lens: LensLike | None,
    statistics: Collection[StatisticLike | None] = (None,),
) -> Any:
    """Return the data of a verb that takes tallies, too: rows, or a tally as the lens sees it.

    Of :class:`Tallies` the sampled rows where sums leave a statistic open.
    """
    probs = rows_where_needed(probs, [(statistic, lens) for statistic in statistics])
    if isinstance(probs, AnyTally):
        return admitted_tally(verb, probs, labels, facts, lens)
    return admitted(verb, probs, labels, facts, takes)


def problem_through(data: Predictions | AnyTally, lens: LensLike | None) -> Problem:
    """Return what a lens shows of checked data."""
    return Analysis.of_data("audit", data, lens).units


def tally_problem(tally: AnyTally) -> Problem:
    """Return the problem of a tally, or of one that keeps clusters apart."""
    if isinstance(tally, ClusteredTally):
        return ClusteredProblem.of(tally)
    return TallyProblem.of(tally)


def seen_through(data: Predictions, lens: Lens, statistics: Collection[StatisticLike]) -> Any:
    """Return what the lens shows: rows or, of very many, the sums that answer just as they do.

    Sums over micro-cells do so for two classes, rows that count alike, statistics whose estimate
    they know to rounding; without ``statistics``, rows.
    """
    induced = lens(data)
    facts = (induced.weights, induced.n_clusters, induced.by, induced.followup)
    alike = all(fact is None for fact in facts)
    # Sums take one pass; below that many rows they save nothing
    if statistics and alike and induced.n > MANY and induced.n_classes == 2:
        sums = TallyProblem.of(Tally.of(induced, lens=Canonical()))
        if all(_summed_exactly(statistic, sums) for statistic in statistics):
            return sums
    return induced


def _summed_exactly(statistic: StatisticLike, problem: TallyProblem) -> bool:
    """Whether sums over micro-cells have the value of the rows, to rounding."""
    if not isinstance(statistic, Statistic):
        return False
    try:
        return statistic.prepare(problem).remarks == problem.remarks
    except StatisticError:  # the rows say why, or have an answer
        return False


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
    if not np.isfinite(value):
        raise StatisticError(
            f"the statistic {name_of(statistic)} is {value} on the observed data; it must be a "
            "finite number"
        )
    return prepared, value


def seed_of(rng: Any) -> int | None:
    """Return the seed, if the generator was given by one."""
    return int(rng) if isinstance(rng, (int, np.integer)) else None
