"""One question asked of data, and what every result says of it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from caltest._base.arrays import RNG
from caltest._base.written import Fields, name_of
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.inference.admission import ROWS, admitted, checked
from caltest.inference.series import summary_of
from caltest.lens_choice import Aligned, as_lens
from caltest.lenses import Canonical, Lens, LensLike
from caltest.predictions import Facts, Predictions
from caltest.problem import Problem, problem_of_tally
from caltest.results.base import Result
from caltest.results.followup import FollowupSummary
from caltest.statistics.base import Statistic, StatisticLike, prepare, problem_of
from caltest.statistics.prepared import Prepared
from caltest.tally import Source, Tally

SomeResult = TypeVar("SomeResult", bound=Result)
#: Rows above which questions are answered from sums over micro-cells, where these say the same.
MANY = 50_000


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
        return cls.of_data(verb, data, lens, rng, summable)

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


def problem_through(data: Source, lens: LensLike | None) -> Problem:
    """Return what a lens shows of checked data."""
    return Analysis.of_data("audit", data, lens).units


def seen_through(
    data: Predictions, lens: Lens, statistics: Collection[StatisticLike]
) -> Predictions | Problem:
    """Return what the lens shows: rows or, of very many, the sums that answer just as they do.

    Those are of two classes, rows that count alike, and statistics whose estimate sums know to
    rounding; without ``statistics``, rows.
    """
    induced = lens(data)
    facts = (induced.weights, induced.n_clusters, induced.by, induced.followup)
    alike = all(fact is None for fact in facts)
    # Sums take one pass; below that many rows they save nothing
    if statistics and alike and induced.n > MANY and induced.n_classes == 2:
        sums = problem_of_tally(Tally.of(induced, lens=Canonical()))
        with suppress(StatisticError):  # the rows say why, or have an answer
            ours = all(isinstance(s, Statistic) for s in statistics)
            if ours and all(prepare(s, sums).remarks == sums.remarks for s in statistics):
                return sums
    return induced


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
