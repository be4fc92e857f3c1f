"""One question asked of data: what a verb may look at, and what every result says of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from caltest._base.written import name_of
from caltest.errors import StatisticError
from caltest.inference.entry import (
    admitted,
    admitted_tally,
    at_hand,
    evaluated,
    rows_where_needed,
    seed_of,
    seen_through,
    told,
)
from caltest.lens_choice import as_lens
from caltest.lenses import Lens, LensLike
from caltest.predictions import Facts, Predictions
from caltest.results.base import Result
from caltest.simulate import Workers, check_run
from caltest.statistics.base import Prepared, StatisticLike
from caltest.tally import AnyTally, MicroCells

SomeResult = TypeVar("SomeResult", bound=Result)


@dataclass(frozen=True)
class Simulation:
    """How replicates are drawn: how many, from which generator, by which workers."""

    n_resamples: int
    rng: Any = None
    workers: Workers = 1

    def __post_init__(self) -> None:
        check_run(self.n_resamples, self.rng, self.workers)

    @property
    def options(self) -> dict[str, Any]:
        """The keywords by which verbs pass a simulation on."""
        return {"n_resamples": self.n_resamples, "rng": self.rng, "workers": self.workers}


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
    problem : Predictions or MicroCells
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
        takes: Collection[str] = ("clusters", "weights"),
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
            probs, labels, facts = at_hand(verb, probs, labels, facts, lens, summable)
            statistics = [statistic] if statistic is not None else [*summable, None]
            probs = rows_where_needed(probs, [(s, lens) for s in statistics])
            if isinstance(probs, AnyTally):
                tally = admitted_tally(verb, probs, labels, facts, lens)
                return cls.of_tally(verb, tally, rng)
        data = admitted(verb, probs, labels, facts, takes)
        return cls.of_rows(verb, data, lens, rng, summable)

    @classmethod
    def of_rows(
        cls,
        verb: str,
        data: Predictions,
        lens: LensLike | None,
        rng: Any = None,
        summable: Collection[StatisticLike] = (),
    ) -> Self:
        """Look at checked rows through a lens."""
        through = as_lens(lens, data)
        problem = seen_through(data, through, summable, plain=bool(summable))
        return cls(verb, data, through, problem, rng)

    @classmethod
    def of_tally(cls, verb: str, tally: AnyTally, rng: Any = None) -> Self:
        """Look at the sums of a tally; its lens is the one it was made with."""
        return cls(verb, tally, tally.lens, tally.problem(), rng)

    @property
    def from_sums(self) -> bool:
        """Whether what is looked at are sums over micro-cells, which have no rows."""
        return isinstance(self.problem, MicroCells)

    @property
    def designed(self) -> bool:
        """Whether rows have clusters or weights of their own."""
        problem = self.problem
        return not self.from_sums and not (problem.weights is problem.n_clusters is None)

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
        return {
            "lens": name_of(self.lens),
            "n": self.problem.n,
            "n_classes": self.data.n_classes,
            "effective_n": None if source.weights is None else source.effective_n,
            "n_clusters": source.n_clusters,
            "seed": seed_of(self.rng),
            "copies": self.data.copies,
            "notes": self.data.notes,
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
        remarks = () if prepared is None else told(prepared)
        named["notes"] = tuple(dict.fromkeys((*self.data.notes, *notes, *remarks)))  # type: ignore[assignment]
        return kind(**self.facts | named | numbers)
