"""The answers of audits, and of searches through segments."""

from __future__ import annotations

from math import nan
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from caltest._base.arrays import BoolArray
from caltest._base.features import Condition, as_features, holds
from caltest._base.written import several
from caltest.errors import StatisticError
from caltest.results.base import ClusterSummary, Record, Result, Subgroups, described, entry
from caltest.results.hypotheses import CalibrationTestResult
from caltest.results.rendering import (
    Columns,
    aligned,
    attributes,
    format_p,
    format_value,
    in_sd,
    percent,
)
from caltest.results.verdicts import AuditVerdict, Finding

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


#: The headline of a verdict, and its colour.
HEADLINES = {
    AuditVerdict.MISCALIBRATED: ("MISCALIBRATED", "bold red"),
    AuditVerdict.CALIBRATED: ("CALIBRATED, AS FAR AS THESE DATA CAN TELL", "bold green"),
    AuditVerdict.TOO_LITTLE_DATA: ("TOO LITTLE DATA TO TELL", "bold yellow"),
    AuditVerdict.MATTERS: ("MISCALIBRATED, AND IT MATTERS", "bold red"),
    AuditVerdict.TOO_LITTLE_TO_MATTER: ("MISCALIBRATED, TOO LITTLE TO MATTER", "bold green"),
    AuditVerdict.WITHIN_TOLERANCE: ("CALIBRATED TO WITHIN THE TOLERANCE", "bold green"),
    AuditVerdict.CANNOT_TELL: ("CANNOT TELL WHETHER IT MATTERS", "bold yellow"),
}


#: The columns; all of them can be left out but the finding.
COLUMNS = ("lens", "question", "worst", "error or score", "if calibrated", "p", "adjusted")


#: So many subgroups have a line each.
FEW_GROUPS = 12


#: Columns that were not searched are named up to so many.
NAMED = 12


#: The letters of a line where the width of a terminal is not known.
WIDTH = 118


TOGETHER = (
    "± is one standard deviation (sd); scores count them from chance. Of several tests the worst "
    "is shown, with p of all."
)


#: What a finding says at length, how short, and what that means.
STARRED = (
    " (impossible outcome)",
    "*",
    "* whatever p is: an outcome occurred whose probability was 0.",
)


#: Scores in sd that readers take for evidence, and what is said where they are none.
LARGE_SCORE = 2.0


SKEWED = (
    "A score above 2 sd is no evidence where chance is skewed, or several were looked at: the "
    "p-value decides."
)


#: Columns that go one after the other where there is no room; an error goes with what it is of.
LESS_IMPORTANT = (
    *(("p",), ("if calibrated",), ("question",)),
    *(("worst", "error or score"), ("adjusted",)),
)


@described()
class AuditRow(Record):
    """One line of an audit: a lens, the question it asks, and the answer."""

    lens: str = entry("What is looked at, as a recipe and in words.")
    question: str
    subject: str = entry('For programs: "event", "top", "ranks", "classes" or "vector".')
    aspect: str = entry(
        "A binned error; those of every class, or cumulative probability; statistics without bins "
        "and how sure the vector is, in sd from chance; errors of subgroups; those of segments.",
        '{"error", "classes", "ordered", "shape", "score", "groups", "segments"}',
    )
    test: CalibrationTestResult = entry("The test that decides.")
    pvalue: float = entry("Of the row; and adjusted for the number of rows.")
    adjusted: float
    critical: float = entry("The 1 − alpha point of the null: smaller errors pass as noise.")
    verdict: Finding = entry("What was found.")
    worst: str = entry("Of several tests, the one that is shown, beside the p-value of all.")
    detail: str = entry("What else should be known, in a sentence; or nothing.")
    search: SegmentSearch | None = entry("That of segments, where these are asked about.",
                                         default=None)  # fmt: skip
    groups: Subgroups | None = entry("Those of subgroups, each judged by itself.", default=None)

    @property
    def shown(self) -> tuple[str, str, str]:
        """The error, that of a calibrated model, and a score in sd from it, as they are printed."""
        test = self.test
        if self.aspect in ("shape", "score"):
            return "", "", in_sd(test.excess, test.null_std)
        return test.shown_estimate, test.shown_floor, ""


@described(plotter="forests.adjusted")
class AuditReport(Result):
    """The answer of :func:`caltest.audit`; ``print`` shows it as a report."""

    verdict: AuditVerdict = entry("One of three without a tolerance, of four with one.")
    summary: tuple[str, ...] = entry("The verdict in sentences.")
    direction: str = entry(
        'Of the event of two classes ``"too high"`` or ``"too low"``; of the top class '
        '``"overconfident"``, ``"underconfident"`` or ``"mixed"``; ``""`` where none is known.'
    )
    rows: tuple[AuditRow, ...] = entry("One row a lens, with adjusted p-values.")
    accuracy: float = entry("Of the top class, or the event: how often, and mean probability.")
    confidence: float
    low: float = entry("Bounds of the error of the first row, each at ``alpha``, or NaN.")
    high: float
    alpha: float = entry("The settings; ``tolerance`` may be None.")
    tolerance: float | None
    impossible: int = entry("Observed labels whose predicted probability was exactly 0.")

    observed: float = entry(
        "Of the event of two classes: how often it was, and its mean prediction; or NaN.",
        default=nan,
    )
    predicted: float = nan
    slope: float = entry(
        "Of the log-odds of that event, with its interval (1 − ``alpha``), where a row of it is "
        "rejected and the interval does not hold 1; or NaN.",
        default=nan,
    )
    slope_low: float = nan
    slope_high: float = nan
    unsearched: tuple[str, ...] = entry("Columns not used that could be features.", default=())
    search_call: str = entry("What searches them: a command, or else a call.", default="")

    @property
    def rejects(self) -> bool:
        """Whether calibration is rejected, by any row, however little it matters."""
        return any(row.verdict.rejects for row in self.rows)

    @property
    def details(self) -> list[str]:
        """What else should be known of the rows, and what was not asked."""
        details = [row.detail for row in self.rows if row.detail]
        return details + [self._remark] * bool(self.unsearched)

    @property
    def _remark(self) -> str:
        """Say what was not searched, and the command, which stays on one line."""
        how, plain = "Run", "segment_search(..., features='*')"
        if self.folds is not None:
            how, plain = (
                "Subgroups are asked by",
                f"audit(..., by={''.join(self.unsearched[:1])!r})",
            )
        more = ["…"] * (len(self.unsearched) > NAMED)
        names = ", ".join([*self.unsearched[:NAMED], *more])
        return f"Not searched for segments: {names}. {how}: {self.search_call or plain}"

    @property
    def _size(self) -> str:
        """Return how many rows there are, and their means."""
        rows = f"{several(self.n, 'prediction')}, {self.n_classes} classes"
        y, p, words = self.observed, self.predicted, "events {}, predicted {}"
        if y != y:
            y, p, words = self.accuracy, self.confidence, "right in {}, mean confidence {}"
        return f"{rows}, {words.format(percent(y, p), percent(p, y))}"

    def _procedure(self) -> list[str]:
        lenses = ", ".join(row.lens for row in self.rows)
        tolerance = [] if self.tolerance is None else [f"tolerance={self.tolerance:g}"]
        return [f"audit of {lenses}", f"alpha={self.alpha:g}", *tolerance]

    def _tables(self) -> list[Columns]:
        return [self._columns(10_000), *self._listed]

    @property
    def _listed(self) -> list[Columns]:
        """The table of subgroups, if they are few."""
        groups = [row.groups for row in self.rows if row.groups is not None]
        return [parts.judged for parts in groups if len(parts.names) <= FEW_GROUPS]

    @property
    def _below(self) -> list[str]:
        """Say how to read rows of several tests, and large scores without evidence."""
        scores = [r.test for r in self.rows if r.shown[2] and not r.verdict.rejects]
        high = any(test.excess > LARGE_SCORE * test.null_std > 0.0 for test in scores)
        return [TOGETHER] * any(row.worst for row in self.rows) + [SKEWED] * high

    def _in_words(self) -> list[str]:
        verdict = f"Verdict: {HEADLINES[self.verdict][0]}"
        return [*self._below, f"{self._size}.", verdict, *self.summary, *self.details]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        table, verdict, foot = map(Text, self._blocks(options.max_width))
        table.highlight_regex(r"^Calibration audit", "bold")
        table.highlight_regex(r"(?m)miscalibrated( \(.*\)|\*)?$", "red")
        verdict.highlight_regex(r"^Verdict: .*", HEADLINES[self.verdict][1])
        yield from (table, verdict, Text(foot.plain, style="dim"))

    def _blocks(self, width: int) -> tuple[str, str, str]:
        """Return its table, the verdict with the reasons, and how it was foot."""
        columns = self._columns(width)
        lines = [line[2:] for line in aligned(columns)]
        below = " " * lines[0].index("finding")  # a long finding goes on below itself
        lines = [part for line in lines for part in wrap(line, width, subsequent_indent=below)]
        remarks = self._below if "error or score" in columns else []
        starred = any(row.verdict is Finding.IMPOSSIBLE_OUTCOME for row in self.rows)
        remarks = [*remarks, *STARRED[2:] * starred]
        groups = ["", *(line[2:] for table in self._listed for line in aligned(table))]
        table = [f"Calibration audit  {self._size}", "", *lines, *remarks, *groups]
        table += [""] * (len(groups) > 1)
        headline = f"Verdict: {HEADLINES[self.verdict][0]}"
        verdict = [headline, "", *self.summary, *self.details, ""]
        *notes, _, _ = map(str.strip, self._foot())
        foot = [*notes, "", *(row.test.recipe for row in self.rows)]
        return "\n".join(table), "\n".join(verdict), "\n".join(foot)

    def _columns(self, width: int) -> dict[str, list[str]]:
        """Return the cells of the columns for which there is room; findings are always shown."""
        alpha = self.alpha
        cells = [
            (r.lens, r.question, r.worst, error or score, floor, format_p(r.pvalue),
             format_p(r.adjusted, alpha))
            for r in self.rows
            for error, floor, score in [r.shown]
        ]  # fmt: skip
        columns = dict(zip(COLUMNS, map(list, zip(*cells, strict=True)), strict=True))
        if not any(columns["worst"]):
            del columns["worst"]
        columns["finding"] = [str(row.verdict).replace(*STARRED[:2]) for row in self.rows]
        for less in LESS_IMPORTANT:
            needed = {name: max(map(len, [name, *cells])) + 2 for name, cells in columns.items()}
            if less[0] != "p":  # a long finding may go on below itself
                needed["finding"] = min(needed["finding"], len(Finding.TOO_LITTLE_DATA))
            if sum(needed.values()) - 2 <= width:
                break
            columns = {name: cells for name, cells in columns.items() if name not in less}
        return columns

    def __str__(self) -> str:
        table, verdict, foot = self._blocks(WIDTH)
        lines = [
            [line] if line == self._remark else wrap(line, WIDTH, break_on_hyphens=False) or [""]
            for line in verdict.split("\n")
        ]
        return "\n".join([table, *(part for line in lines for part in line), foot])


# ------------------------------------------------------------------------------
# The answer of a search through segments.


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
    plotter="forests.segments",
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
