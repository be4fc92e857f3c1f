"""The answers for subgroups of the rows, and which of several errors is the worst."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from caltest.results.base import Record
from caltest.results.fields import described, entry
from caltest.results.numbers import format_p, percent
from caltest.results.tables import Columns, aligned, attributes
from caltest.results.verdicts import Finding

#: Chance that any of the lower limits by which the worst is found is too high.
WORST_ALPHA = 0.05
#: So many subgroups are printed, of more only the worst, and so many sentences on single ones.
MOST_PRINTED, WORST_PRINTED, MOST_NOTES = 30, 20, 5
#: What there is of each of them, if it was asked.
PER_SUBGROUP = (
    *("names", "counts", "tests", "adjusted", "alike", "predicted", "observed", "findings"),
)


class Certain(Protocol):
    """A result that knows which error is certain, and its estimate."""

    def certain_error(self, alpha: float) -> tuple[float, float]: ...


def worst_of(tests: Sequence[Certain | None]) -> int:
    """Return the number of the test whose error is certainly the largest; None are passed over.

    It has the highest lower limit, at a level for all together (Bonferroni), of equal limits the
    larger estimate. P-values do not say: of many rows they differ by no more than rounding.
    """
    tested = {j: test for j, test in enumerate(tests) if test is not None}
    share = WORST_ALPHA / len(tested)
    return max(tested, key=lambda j: tested[j].certain_error(share))


@described(plotter="tables.forest")
class Subgroups(Record):
    """The same question, asked of every subgroup by itself, and whether they differ."""

    names: tuple[str, ...] = entry("The subgroups, in the order of their names.")
    counts: tuple[int, ...] = entry("Their numbers of rows.")
    tests: tuple[Any, ...] = entry(
        "What was asked of each; None where it cannot be tested, which ``notes`` explain.",
        "tuple of Result or None",
    )
    adjusted: tuple[float | None, ...] = entry("Their p-values, adjusted for their number.")
    pvalue: float = entry("The smallest of these.")
    adjust: str = entry("By Holm, of subgroups that share rows by max-T.", '{"Holm", "max-T"}')
    n: int = entry("Rows of all together, each counted once.")
    alike: tuple[float | None, ...] = entry(
        'The adjusted p-value of "calibrated, or not, as other rows are"; None if not tested.',
        default=(),
    )
    notes: tuple[str, ...] = entry("What could not be tested, and why.", default=())
    predicted: tuple[float, ...] = entry(
        "Mean prediction of each, how often the event was, and what an audit says of it.",
        "tuple of float, tuple of float, tuple of Finding or None",
        default=(),
    )
    observed: tuple[float, ...] = ()
    findings: tuple[Finding | None, ...] = ()

    @property
    def tested(self) -> list[Any]:
        """The tests that there are."""
        return [test for test in self.tests if test is not None]

    @property
    def worst(self) -> int:
        """The number of the subgroup whose error is certainly the largest."""
        return worst_of(self.tests)

    def worst_first(self) -> Subgroups:
        """Return them in the order of how large their errors certainly are."""
        share = WORST_ALPHA / len(self.tested)
        errors = [(0.0, -1.0) if t is None else t.certain_error(share) for t in self.tests]
        order = sorted(range(len(errors)), key=lambda j: errors[j], reverse=True)
        return self._each(lambda values: tuple(values[j] for j in order))

    def first(self, most: int) -> Subgroups:
        """Return the first of them only."""
        return self._each(lambda values: values[:most])

    def _each(self, pick: Callable[[tuple[object, ...]], tuple[object, ...]]) -> Subgroups:
        lists = {name: vars(self)[name] for name in PER_SUBGROUP}
        picked: dict[str, Any] = {name: pick(values) for name, values in lists.items() if values}
        return replace(self, **picked)

    @property
    def alike_pvalue(self) -> float | None:
        """The smallest of ``alike``: "are all calibrated alike?"; None where not tested."""
        return min((p for p in self.alike if p is not None), default=None)

    @property
    def recipe(self) -> str:
        """One line that says how the numbers were made."""
        kind = f"{len(self.names)} subgroups, {self.adjust}"
        return f"{kind} · {replace(self.tested[0], n=self.n).recipe}"

    @property
    def table(self) -> Columns:
        """A row for every subgroup."""
        columns = attributes(self.tests, {name: name for name in self.tested[0].of_subgroups})
        last = {"alike": self.alike} if self.alike else {}
        named = {"subgroup": self.names, "n": self.counts}
        return {**named, **columns, "adjusted": self.adjusted, **last}

    @property
    def judged(self) -> Columns:
        """A row for every subgroup, with what an audit says of it."""
        means = list(zip(self.predicted, self.observed, strict=True))
        return {
            **{"subgroup": self.names, "n": self.counts},
            "predicted": [percent(p, y) for p, y in means],
            "observed": [percent(y, p) for p, y in means],
            **attributes(self.tests, {"error": "shown_estimate", "if calibrated": "shown_floor"}),
            **{"adjusted": self.adjusted, "finding": self.findings},
        }

    def in_words(self) -> list[str]:
        """Return the finding in sentences."""
        sentences = [f"{self.tested[0].of_all}: p {format_p(self.pvalue)} ({self.adjust})"]
        if (p := self.alike_pvalue) is not None:
            sentences.append(f"calibrated alike: p {format_p(p)} (residuals permuted)")
        return sentences + [f"Note: {note}." for note in self.remarks]

    @property
    def remarks(self) -> list[str]:
        """The notes that are printed, and how many others there are."""
        more = len(self.notes) - MOST_NOTES
        further = f"there are {more} more such notes, which its JSON holds"
        return [*self.notes[:MOST_NOTES], *[further] * (more > 0)]

    def __str__(self) -> str:
        shown, many = self, len(self.names) > MOST_PRINTED
        if many:
            shown = self.worst_first().first(WORST_PRINTED)
        others = f"  and {len(self.names) - WORST_PRINTED} others, whose errors are less certain; "
        others += "JSON and the page of a report hold all"
        words = (f"  {line}" for line in self.in_words())
        return "\n".join([*aligned(shown.table), *[others] * many, *words])
