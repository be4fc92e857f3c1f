"""The answer of a search through segments."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import BoolArray
from caltest._base.features import Condition, as_features, holds
from caltest._base.written import several
from caltest.errors import StatisticError
from caltest.results.base import Record, Result
from caltest.results.designs import ClusterSummary
from caltest.results.fields import described, entry
from caltest.results.numbers import format_p, format_value
from caltest.results.tables import Columns, aligned, attributes
from caltest.results.verdicts import Finding

#: The columns of a table of segments.
SHOWN = {"segment": "name", "rows": "n", "predicted": "predicted", "observed": "observed"}
SHOWN |= {"difference": "difference", "interval": "interval", "at least": "at_least"}
SHOWN |= {"evidence": "evidence", "pvalue": "pvalue"}


@described()
class Segment(Record):
    """Rows that one or two conditions single out, or all rows."""

    name: str = entry('In words, such as "age > 71 and site = B".')
    conditions: tuple[Condition, ...] = entry(
        'Column, kind ("number", "date", "level", "other", "missing"), low and high of '
        "low < x ≤ high, and the level; of other levels those that are not meant.",
        "tuple of tuple",
    )
    depth: int = entry("The number of conditions.")
    n: int = entry("The number of rows, and their weight.")
    weight: float
    predicted: float = entry("Mean prediction and share of events, weighted.")
    observed: float
    difference: float = entry(
        "Observed minus predicted, with an interval that holds for all segments searched together."
    )
    low: float
    high: float
    chance: float = entry("The standard deviation of the difference if it is calibrated.")
    ratio: float = entry("Observed over expected events (O:E), with its interval.")
    ratio_low: float
    ratio_high: float
    shift: float = entry("The shift of the log-odds that fits best; ±30 stands for infinite ones.")
    gain: float = entry("What this shift gains in log-likelihood, in nats.")
    price: float = entry("The logarithm of how many segments share this price.")
    evidence: float = entry("Gain less price.")
    pvalue: float = entry("Adjusted for the search.")

    @property
    def on_average(self) -> bool:
        """Whether the interval leaves 0 out; not so where errors may cancel within the segment."""
        return not self.low <= 0.0 <= self.high

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the difference."""
        return self.low, self.high

    @property
    def at_least(self) -> float:
        """The end of the interval that is nearest to 0, without sign: the smallest difference."""
        return min(abs(self.low), abs(self.high)) if self.on_average else 0.0


@described(
    title="Segments",
    procedure="segments of {0.min_rows} rows · {0.lens} · {0.null} null",
    plotter="tables.segments",
)
class SegmentSearch(Result):
    """The answer of :func:`caltest.segment_search`."""

    lens: str = entry("Through which lens the event was seen, and how labels were drawn.")
    null: str
    pvalue: float = entry(
        'Of "calibrated in every segment"; and its Monte Carlo standard error, 0 of enumeration.'
    )
    pvalue_error: float
    finding: Finding = entry(
        '``"miscalibrated"``, also ``"(impossible outcome)"``, or ``"no evidence"``.'
    )
    alpha: float = entry("The chance that any segment of a calibrated model is listed.")
    bar: float = entry("Evidence above it is listed: more than calibrated models show, in nats.")
    n_segments: int = entry("The number of segments that were searched.")
    min_rows: int = entry("The rows that a segment has at least.")
    columns: tuple[str, ...] = entry(  # type: ignore[misc]
        "The columns that were searched, and those that were not."
    )
    dropped: tuple[str, ...]
    whole: Segment = entry("All rows.")
    segments: tuple[Segment, ...] = entry("The short list, without echoes of those before.")
    strongest: tuple[Segment, ...] = entry("Where none is listed, the five of most evidence.")
    error: float = entry(
        "√D, the strong calibration error found on rows that were not learnt from; its lower "
        "bound, wrong with a chance of ``alpha``; and that found by the prediction alone."
    )
    error_low: float
    error_by_prediction: float
    reach: tuple[tuple[float, float | None], ...] = entry(
        "Shares of the rows, and the difference there that is found with a chance of 0.8.",
        "tuple of tuple",
    )
    impossible: int = entry("Observed labels whose predicted probability was exactly 0.")
    learner: str | None = entry("What taught one more column on half of the rows.", default=None)
    clusters: ClusterSummary | None = entry("Where rows come in clusters.", default=None)

    @property
    def table(self) -> Columns:
        """A row for every listed segment; where there is none, for those of most evidence."""
        rows = self.segments or (self.whole, *self.strongest)
        return attributes(rows, SHOWN) | {"evidence": [f"{row.evidence:.1f}" for row in rows]}

    @property
    def worst(self) -> Segment:
        """The first that is listed, or else the one of most evidence."""
        others = self.segments[:1] or (self.whole, *self.strongest)
        return max(others, key=lambda segment: segment.evidence)

    @property
    def passing(self) -> float:
        """The difference that would pass as noise in the worst segment: √(2 (bar + price)) sd."""
        return self.worst.chance * float(np.sqrt(2.0 * (self.bar + self.worst.price)))

    def members(self, number: int, features: object) -> BoolArray:
        """Return which rows of other features are in a listed segment.

        Parameters
        ----------
        number : int
            Its place in ``segments``.
        features : data frame, mapping or array_like of shape (n, d)
            As in :func:`segment_search`, with all columns that its conditions name: also
            "prediction", the probability of the event, where one is about that.

        Raises
        ------
        StatisticError
            When there is no such segment, or no such column.
        """
        if not 0 <= number < len(self.segments):
            listed = several(len(self.segments), "segment")
            raise StatisticError(f"{listed} listed, counted from 0: there is no number {number}")
        columns, conditions = as_features(features, None).named, self.segments[number].conditions
        for absent in [name for name, *_ in conditions if name not in columns][:1]:
            available = ", ".join(columns)
            raise StatisticError(f"features: there is no column {absent!r} among {available}")
        every = np.ones(next(iter(columns.values())).values.size, dtype=bool)
        return np.logical_and.reduce([every, *(holds(c, columns[c[0]]) for c in conditions)])

    def _tables(self) -> list[Columns]:
        return [self.table]

    def _facts(self) -> list[str]:
        rows, features = several(self.n, "prediction"), several(len(self.columns) - 1, "column")
        searched = f"{several(self.n_segments, 'segment')} of {self.min_rows} rows and more"
        size = f"  {rows}, {self.lens}, {features} and the prediction: {searched}"
        return [size, "", *aligned(self.table), ""]

    def _in_words(self) -> list[str]:
        cancelled = ", ".join(segment.name for segment in self.segments if not segment.on_average)
        impossible = several(self.impossible, "observed outcome")
        sentences = {
            "None is listed: the segments of most evidence are shown.": not self.segments,
            "Evidence is by how much recalibrating the segment makes its outcomes likelier (the "
            "logarithm), less a price for the search; the most evidence in a calibrated model is "
            f"above {self.bar:.1f} in {100 * self.alpha:g} % of data sets.": True,
            f"Finding: MISCALIBRATED somewhere (p {format_p(self.pvalue)}). Intervals hold for all "
            f"segments that were searched together ({100 * (1 - self.alpha):g} %).": self.segments,
            f"Finding: no error found (p {format_p(self.pvalue)}). "
            f"{self.reach_in_words}": not self.segments,
            f"Wrong, but not shown to be so on average: {cancelled}.": cancelled,
            self.gain_in_words: True,
            f"{impossible} had predicted probability exactly 0: that alone refutes calibration, "
            "unless the predictions were rounded to 0: then give them unrounded.": self.impossible,
        }
        return [sentence for sentence, is_so in sentences.items() if is_so]

    @property
    def reach_in_words(self) -> str:
        """What could have been found, in a sentence."""
        could = [f"{d:.3f} in {100 * f:g} % of the rows" for f, d in self.reach if d is not None]
        if not could:
            return "No difference in 20 % of the rows would be found in 80 % of such data sets."
        return f"Differences of {' or '.join(could)} are found in 80 % of such data sets."

    @property
    def gain_in_words(self) -> str:
        """What correcting the segments would gain, in a sentence."""
        if self.error == 0.0:
            return "Corrected on some rows, the Brier score of the others does not fall."
        return (
            "Corrected where it shows, the Brier score of new rows would fall by "
            f"{format_value(self.error**2)}; error given the features {self.error:.3f}, at least "
            f"{self.error_low:.3f}; by the prediction alone {self.error_by_prediction:.3f}."
        )
