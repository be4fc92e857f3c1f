"""What a picture shows: data seen through a lens, part by part, and the tests that go with it."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Self

from caltest._base.written import name_of
from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.inference import calibration_test
from caltest.inference.entry import (
    admitted,
    admitted_tally,
    at_hand,
    design,
    seed_of,
    seen_through,
)
from caltest.lens_choice import as_lens
from caltest.lenses import Canonical, Lens, LensLike, OneVsRest
from caltest.predictions import Facts, Predictions
from caltest.results import CalibrationTestResult, ending
from caltest.statistics import StatisticLike
from caltest.tally import AnyTally, MicroCells, Tally


@dataclass(frozen=True, eq=False)
class View:
    """Data that a verb may show, and what the lens makes of them."""

    data: Predictions
    lens: Lens
    induced: Predictions

    @classmethod
    def of(
        cls,
        verb: str,
        probs: Any,
        labels: Any,
        facts: Facts,
        lens: LensLike | None,
        what: str = "",
        takes: Collection[str] = (),
        sums_of: StatisticLike | None = None,
    ) -> Self:
        """Look through the lens; ``what`` needs a lens that leaves two classes.

        Of very many rows sums may be looked at that give the same value ``sums_of`` a statistic.
        """
        if "tally" in takes:
            probs, labels, facts = at_hand(verb, probs, labels, facts, lens)
        if isinstance(probs, AnyTally) and "tally" in takes:
            tally: Any = admitted_tally(verb, probs, labels, facts, lens)
            return cls(tally, tally.lens, MicroCells.of(tally))  # type: ignore[arg-type]
        data = admitted(verb, probs, labels, facts, takes)
        through = as_lens(lens, data)
        some = [] if sums_of is None else [sums_of]
        induced = seen_through(data, through, some, plain=bool(some))
        if what and induced.n_classes != 2:
            raise StatisticError(
                f"{what} needs a two-class lens; {name_of(through)} leaves {induced.n_classes} "
                "classes"
            )
        return cls(data, through, induced)

    @property
    def parts(self) -> list[Predictions]:
        """The two-class problems of the induced problem: its event, or each class in turn."""
        return two_class_problems(self.induced)

    @property
    def event(self) -> str:
        """What the first class of the induced problem is called."""
        data: Any = self.data
        return (data.components() if isinstance(data, Tally) else self.lens.components(data))[0]

    @property
    def groups(self) -> dict[str, Predictions]:
        """The induced problem of every subgroup, by its name; of all rows, "", without ``by``."""
        if isinstance(self.induced, MicroCells):
            return {"": self.induced}
        plain = replace(self.induced, by=None)
        return {n: plain.take(rows) for n, rows in self.induced.subgroups().items()} or {"": plain}

    def test(
        self, statistic: StatisticLike, part: Predictions, options: dict[str, Any]
    ) -> CalibrationTestResult:
        """Test what is shown; a statistic that can show one value only is no news there."""
        asked: Any = part, Canonical()
        if isinstance(part, MicroCells):
            asked = part.tally, part.tally.lens
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)
            test = calibration_test(asked[0], None, statistic, lens=asked[1], **options)
        return replace(test, lens=name_of(self.lens), n_classes=self.data.n_classes)

    def told(self, rng: Any = None, *ends: str) -> dict[str, Any]:
        """Return what every result says of its data, and how its runs ended together."""
        return {
            "lens": name_of(self.lens),
            "n": self.induced.n,
            "n_classes": self.data.n_classes,
            "seed": seed_of(rng),
            "ended": ending(*ends),
            "notes": self.data.notes,
            "copies": self.data.copies,
            **design(self.data),
        }


def two_class_problems(induced: Predictions) -> list[Predictions]:
    """Return the event of an induced problem, or each class in turn."""
    if induced.n_classes == 2:
        return [induced]
    return [OneVsRest(j)(induced) for j in range(induced.n_classes)]
