"""Results of audits, and of searches through segments.

:class:`AuditReport` has one :class:`AuditRow` per question and the verdict;
:class:`SegmentSearch` lists the segments found.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from caltest._base.arrays import BoolArray
from caltest._base.features import Condition, as_features, holds
from caltest._base.written import several
from caltest.errors import StatisticError
from caltest.results import rendering, sketches
from caltest.results.aspects import IndividualErrorResult, WorstClassResult
from caltest.results.base import (
    CONFIDENCE,
    HALF_THE_SUM,
    MEAN_ERROR,
    ClusterSummary,
    Record,
    Result,
    Subgroups,
    is_mean_error,
    short,
)
from caltest.results.decisions import PromiseResult
from caltest.results.hypotheses import CalibrationTestResult
from caltest.results.rendering import (
    LINE_WIDTH,
    Card,
    Columns,
    Tone,
    aligned,
    attributes,
    folded,
    format_p,
    format_value,
    in_sd,
    p_is,
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
    AuditVerdict.IN_DOUBT: ("IN DOUBT, FOR THE REASON GIVEN BELOW", "bold yellow"),
}


#: How a notebook shows the colours of verdicts.
TONES: dict[str, Tone] = {"red": "bad", "green": "good", "yellow": "ask"}


#: The columns; all of them can be left out but the finding.
AUDIT_COLUMNS = ("lens", "question", "shown", "error or z", "noise floor", "p", "adjusted p")


#: So many subgroups have a line each.
FEW_GROUPS = 12


#: Columns that were not searched are named up to so many.
UNSEARCHED_NAMED = 12


#: The letters of a line where the width of a terminal is not known.
PLAIN_WIDTH = 118


#: What a table of an audit abbreviates: sd and z; and which part of a row with several is shown.
AUDIT_UNITS = (
    "Noise floor: mean ± standard deviation (sd) under calibration. z: distance from it, in sd."
)


PART_IS_SHOWN = "Shown: {}. Adjusted p: for all tests of a row together, and for {}."


#: Which test of a row is shown, and which of its classes and subgroups.
SHOWN_TEST, SHOWN_PART = (
    "the test of smallest p",
    "the {} of largest error, by its lower bound",
)


#: The lenses of an audit, by the beginning of their name, in words.
LENSES = {
    "OneVsRest": "{}",
    "TopK(1)": CONFIDENCE,
    "TopK": "the {} largest probabilities, each for its class",
    "Cumulative": "cumulative probabilities",
    "Canonical": "all classes together",
}


#: What a finding says at length, how short, and what that means.
STARRED = (
    " (impossible outcome)",
    "*",
    "* whatever p is: an outcome occurred whose probability was 0.",
)


#: z-scores that readers take for evidence, and what is said where they are none.
LARGE_SCORE = 2.0


SKEWED = (
    "A z above 2 sd may still be noise if the null distribution is skewed or a row has several "
    "tests: the p-value decides."
)


#: Columns that go one after the other where there is no room.
LESS_IMPORTANT = (
    *(("p",), ("question",), ("shown",), ("noise floor",)),
    *(("error or z",), ("adjusted p",)),
)


@dataclass(frozen=True, eq=False)
class AuditRow(Record):
    """One row of an audit: a lens, its question, and the answer.

    Attributes
    ----------
    lens : str
        The lens, written as in Python.
    question : str
        The question in words.
    subject : {"event", "top", "ranks", "classes", "vector"}
        Which probabilities the lens assesses.
    aspect : str
        "error": a binned error; "classes": errors of every class; "ordered": cumulative
        probabilities; "shape": statistics without bins; "score": confidence of the whole vector;
        "levels": calibration-in-the-large and slopes of classes; "items": items with several
        outcomes, one by one; "costs": utility gained against utility promised; "groups": errors of
        subgroups; "segments": a search through segments. The unit of "shape", "score", "levels",
        "items" and "costs" is the standard deviation under calibration.
    test : CalibrationTestResult
        The test that decides.
    pvalue : float
        p-value of the row.
    adjusted : float
        p-value adjusted for the number of rows.
    critical : float
        (1 − alpha) quantile of the null distribution; smaller errors may be noise.
    verdict : Finding
        The finding.
    worst : str
        The test that is shown, if the row has several; the p-value combines all of them.
    detail : str
        A remark in a sentence, or "".
    search : SegmentSearch or None
        Result of the search through segments.
    groups : Subgroups or None
        Results of subgroups, each judged by itself.
    classes : WorstClassResult or None
        Wrong classes with their directions, if the test rejects.
    individual : IndividualErrorResult or None
        Error item by item with its parts, if items have several outcomes. The verdict is about
        averages and does not depend on it.
    promise : PromiseResult or None
        Utility promised and gained, if costs were given and rows are independent.
    n_tests, n_wrong : int
        For "classes" and "ordered" the number of classes that were tested, and of those that are
        miscalibrated by their adjusted p-value; else 0.
    """

    lens: str
    question: str
    subject: str
    aspect: str
    test: CalibrationTestResult
    pvalue: float
    adjusted: float
    critical: float
    verdict: Finding
    worst: str
    detail: str
    search: SegmentSearch | None = None
    groups: Subgroups | None = None
    classes: WorstClassResult | None = None
    individual: IndividualErrorResult | None = None
    promise: PromiseResult | None = None
    n_tests: int = 0
    n_wrong: int = 0

    @property
    def shown(self) -> tuple[str, str, str]:
        """Error, noise floor and z-score as printed; "" where the statistic has none."""
        test = self.test
        if self.aspect in ("shape", "score", "levels", "items", "costs"):
            return "", "", in_sd(test.excess, test.null_std)
        return test.shown_estimate, test.shown_floor, ""


@dataclass(frozen=True, eq=False)
class AuditReport(Result):
    """Result of :func:`caltest.audit`; ``print`` shows it as a report.

    Attributes
    ----------
    verdict : AuditVerdict
        Whether the model is miscalibrated; with a tolerance whether that matters. Other values are
        "too little data", "cannot tell" and "in doubt".
    summary : tuple of str
        The verdict in sentences.
    direction : str
        For the event of two classes "too high" or "too low"; for the top class "overconfident",
        "underconfident" or "mixed"; "" where none is known.
    rows : tuple of AuditRow
        One row a question, with its lens and adjusted p-value.
    accuracy, confidence : float
        How often the top class (or the event) occurred, and its mean probability, in [0, 1].
    low, high : float
        Confidence bounds of the error in the first row, each at level ``alpha``; or NaN.
    alpha : float
        Level of the tests, in (0, 1).
    tolerance : float or None
        Error that does not matter.
    impossible : int
        Observed labels whose predicted probability was exactly 0.
    observed, predicted : float
        Event rate and mean prediction of the event of two classes, in [0, 1]; or NaN.
    slope, slope_low, slope_high : float
        Calibration slope of the event with its interval of level 1 − ``alpha``. NaN unless a row of
        the event is rejected and the interval leaves out 1.
    unsearched : tuple of str
        Columns that could be features and were not searched; none where each subgroup is asked by
        itself.
    doubted : bool
        Whether the summary begins with a doubt about the rows, which a search would share.
    search_call : str
        A command or call that searches them.
    n, n_classes, n_resamples, seed, ended, notes, clusters_call, version
        As for every :class:`Result`.
    """

    verdict: AuditVerdict
    summary: tuple[str, ...]
    direction: str
    rows: tuple[AuditRow, ...]
    accuracy: float
    confidence: float
    low: float
    high: float
    alpha: float
    tolerance: float | None
    impossible: int

    observed: float = nan
    predicted: float = nan
    slope: float = nan
    slope_low: float = nan
    slope_high: float = nan
    unsearched: tuple[str, ...] = ()
    doubted: bool = False
    search_call: str = ""
    plotter: ClassVar[str] = "forests.adjusted"

    @property
    def rejects(self) -> bool:
        """True if any row rejects calibration on average, however little it matters."""
        return any(row.verdict.rejects for row in self.rows)

    @property
    def details(self) -> list[str]:
        """Remarks on the rows of this audit, and sentences with commands that go on, as a list."""
        return [*(row.detail for row in self.rows if row.detail), *self._commands]

    @property
    def _commands(self) -> list[str]:
        """Remarks of this audit that end in a command, strings that are not broken into lines.

        They are to repeat it with clusters, and to search columns that were not searched.
        """
        return [*super()._calls(), *[self._remark] * bool(self.unsearched)]

    def _calls(self) -> list[str]:
        return []  # they stand beside its summary

    @property
    def _remark(self) -> str:
        """The note on columns that were not searched, which ends in the command to search them."""
        how = "If the doubt above is settled, run" if self.doubted else "Run"
        plain = "segment_search(..., features='*')"
        if self.folds is not None:
            how, plain = (
                "Subgroups are asked by",
                f"audit(..., by={''.join(self.unsearched[:1])!r})",
            )
        more = ["…"] * (len(self.unsearched) > UNSEARCHED_NAMED)
        names = ", ".join([*self.unsearched[:UNSEARCHED_NAMED], *more])
        return f"Not searched for segments: {names}. {how}: {self.search_call or plain}"

    @property
    def _size(self) -> str:
        """Text with the number of predictions, of classes, and the observed and predicted means."""
        rows = f"{several(self.n, 'prediction')}, {self.n_classes} classes"
        y, p, names = self.observed, self.predicted, (self.event_name or "events", "predicted")
        if y != y:
            y, p, names = self.accuracy, self.confidence, ("right in", "mean confidence")
        weighted = " (weighted)" * (self.followup is not None)
        return f"{rows}, {names[0]} {percent(y, p)}{weighted}, {names[1]} {percent(p, y)}"

    def _procedure(self) -> list[str]:
        lenses = ", ".join(row.lens for row in self.rows)
        tolerance = [] if self.tolerance is None else [f"tolerance={self.tolerance:g}"]
        return [f"audit of {lenses}", f"alpha={self.alpha:g}", *tolerance]

    def _tables(self) -> list[Columns]:
        return [self._columns(10_000), *self._listed]

    def _card(self) -> Card:
        words, style = HEADLINES[self.verdict]
        y, p, names = self.observed, self.predicted, (self.event_name or "events", "predicted")
        if y != y:
            y, p, names = self.accuracy, self.confidence, ("right", "mean confidence")
        first = min(self.rows, key=lambda row: row.adjusted)
        error, floor, score = first.shown
        size = (error, f"noise floor {floor}") if error else (score, "from its noise floor")
        alpha = f"adjusted for {several(len(self.rows), 'row')}, alpha {self.alpha:g}"
        numbers = (
            (names[0], percent(y, p), f"{names[1]} {percent(p, y)}"),
            (f"{short(first.test.statistic)}, {first.lens}", *size),
            ("p-value", format_p(first.adjusted, self.alpha), alpha),
        )
        headline, *more = self.summary
        errors = [row for row in self.rows if row.shown[0]]
        drawn = [
            r.test.row_of_forest(r.question.rstrip("?"), marked=r.verdict.rejects) for r in errors
        ]
        return Card(
            words,
            tone=TONES[style.split()[-1]],
            headline=headline,
            numbers=numbers,
            remarks=tuple(more),
            drawing=sketches.forest(drawn, "Error, grey: noise floor"),
        )

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        of_tests = rendering.columns_of_records(
            (row.test for row in self.rows), CalibrationTestResult
        )
        names = ("statistic", "null", "estimate", "null_mean", "null_std")
        rows = rendering.columns_of_records(self.rows, AuditRow)
        return {**rows, **{name: of_tests[name] for name in names}}

    @property
    def _listed(self) -> list[Columns]:
        """Tables of subgroups, columns by heading; none of a lens with more than 12 subgroups."""
        groups = [row.groups for row in self.rows if row.groups is not None]
        return [parts.judged for parts in groups if len(parts.names) <= FEW_GROUPS]

    @property
    def _below(self) -> list[str]:
        """Notes below the table: units, rows of several tests, large z-scores without rejection."""
        found = (Finding.MISCALIBRATED, Finding.IMPOSSIBLE_OUTCOME, Finding.SINGLE_ITEMS)
        scores = [r.test for r in self.rows if r.shown[2] and r.verdict not in found]
        high = any(test.excess > LARGE_SCORE * test.null_std > 0.0 for test in scores)
        parts = {"groups": "subgroup", "classes": "class", "ordered": "class"}
        with_parts = [row for row in self.rows if row.worst]
        shown = [SHOWN_TEST] * any(row.aspect == "shape" for row in with_parts)
        named = dict.fromkeys(parts[row.aspect] for row in with_parts if row.aspect in parts)
        shown += [SHOWN_PART.format(" or ".join(named))] * bool(named)
        shown += ["the class of largest z"] * any(row.aspect == "levels" for row in with_parts)
        shown += ["the segment of most evidence"] * any(row.search for row in with_parts)
        words = PART_IS_SHOWN.format("; ".join(shown), several(len(self.rows), "row"))
        words += " ≤: the limit of a simulation." * any(row.test.at_floor for row in self.rows)
        return [AUDIT_UNITS, *self._error_in_words, *[words] * bool(shown), *[SKEWED] * high]

    @property
    def _error_in_words(self) -> list[str]:
        """Sentence on what the errors of the table measure, or [] for errors of other kinds."""
        tests = [row.test.statistic for row in self.rows if row.shown[0]]
        if not tests or not all(is_mean_error(name) for name in tests):
            return []
        return [MEAN_ERROR + (HALF_THE_SUM if self.n_classes > 2 else ".")]

    @property
    def _lenses_in_words(self) -> str:
        """Sentence that says which probabilities each lens of the table assesses."""
        event = f"P({self.event_name or 'event'})"
        words = dict[str, str]()
        for name in (row.test.lens if row.aspect != "classes" else row.lens for row in self.rows):
            key = next((key for key in LENSES if name.startswith(key)), "")
            blanks = {
                "OneVsRest": "each class" if "…" in name else event,
                "TopK(1)": "er" if self.n_classes == 2 else "est",
                "TopK": name[len("TopK(") : -1],
            }
            if key:
                words.setdefault(name, LENSES[key].format(blanks.get(key, "")))
        return f"Lens: {'; '.join(f'{name} = {said}' for name, said in words.items())}."

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
        """Return the table, the verdict with its reasons, and the closing lines, as three texts.

        The table is at most ``width`` letters wide. The closing lines say how numbers were
        computed.
        """
        columns = self._columns(width)
        token = LINE_WIDTH.set(None)  # its columns fit already
        lines = [line[2:] for line in aligned(columns)]
        below = " " * lines[0].index("finding")  # a long finding goes on below itself
        lines = [part for line in lines for part in folded(line, width, below)]
        remarks = self._below if "error or z" in columns else []
        remarks += [self._lenses_in_words] * ("question" not in columns)
        starred = any(row.verdict is Finding.IMPOSSIBLE_OUTCOME for row in self.rows)
        remarks = [*remarks, *STARRED[2:] * starred]
        LINE_WIDTH.set(width + 2)
        groups = ["", *(line[2:] for table in self._listed for line in aligned(table))]
        LINE_WIDTH.reset(token)
        table = [f"Calibration audit  {self._size}", "", *lines, *remarks, *groups]
        table += [""] * (len(groups) > 1)
        headline = f"Verdict: {HEADLINES[self.verdict][0]}"
        verdict = [headline, "", *self.summary, *self.details, ""]
        foot = [*self._remarks(), "", *(row.test.recipe for row in self.rows)]
        return "\n".join(table), "\n".join(verdict), "\n".join(foot)

    def _columns(self, width: int) -> dict[str, list[str]]:
        """Return the columns of the table that fit into ``width`` letters, texts by heading.

        Less important columns are left out; findings are always shown.
        """
        alpha = self.alpha
        cells = [
            (r.lens, r.question, r.worst, error or score, floor,
             format_p(r.pvalue, floor=r.test.at_floor),
             format_p(r.adjusted, alpha, floor=r.test.at_floor))
            for r in self.rows
            for error, floor, score in [r.shown]
        ]  # fmt: skip
        columns = dict(zip(AUDIT_COLUMNS, map(list, zip(*cells, strict=True)), strict=True))
        if not any(columns["shown"]):
            del columns["shown"]
        columns["finding"] = [str(row.verdict).replace(*STARRED[:2]) for row in self.rows]
        for less in LESS_IMPORTANT:
            needed = {name: max(map(len, [name, *cells])) + 2 for name, cells in columns.items()}
            if less[0] != "p":  # a long finding may go on below itself, but no word is broken
                words = [word for cell in columns["finding"] for word in cell.split()]
                least = max(len(Finding.TOO_LITTLE_DATA), *(len(word) + 2 for word in words))
                needed["finding"] = min(needed["finding"], least)
            if sum(needed.values()) - 2 <= width:
                break
            columns = {name: cells for name, cells in columns.items() if name not in less}
        return columns

    def __str__(self) -> str:
        table, verdict, foot = self._blocks(PLAIN_WIDTH)
        whole = {*self._commands, ""}
        lines = [
            [line] if line in whole or line.startswith(" ") else folded(line, PLAIN_WIDTH)
            for line in [*table.split("\n"), *verdict.split("\n")]
        ]
        return "\n".join([*(part for line in lines for part in line), foot])


# ------------------------------------------------------------------------------
# The result of a search through segments.


#: The columns of a table of segments.
SEGMENT_COLUMNS = {"segment": "name", "rows": "n", "predicted": "predicted", "observed": "observed"}


SEGMENT_COLUMNS |= {"difference": "difference", "interval": "interval"}


SEGMENT_COLUMNS |= {"evidence": "evidence", "pvalue": "pvalue"}


@dataclass(frozen=True, eq=False)
class Segment(Record):
    """Rows that satisfy one or two conditions, or all rows.

    Attributes
    ----------
    name : str
        The conditions in words, such as "age > 71 and site = B".
    conditions : tuple of tuple
        For each condition the column, its kind ("number", "date", "level", "other", "missing"), low
        and high of low < x ≤ high, and the level; for "other" the levels that are excluded.
    depth : int
        Number of conditions, 0 to 2.
    n : int
        Number of rows.
    weight : float
        Total weight of the rows.
    predicted, observed : float
        Weighted mean prediction and event rate, in [0, 1].
    difference : float
        Observed − predicted.
    low, high : float
        Confidence interval of the difference, simultaneous for all segments that were searched.
    chance : float
        Standard deviation of the difference under calibration.
    ratio, ratio_low, ratio_high : float
        Observed / expected events (O:E) with its interval.
    shift : float
        Maximum-likelihood shift of the log-odds; ±30 stands for infinite shifts.
    gain : float
        Gain in log-likelihood by this shift, in nats.
    price : float
        Penalty for the search: log of the number of segments that share it, in nats.
    evidence : float
        ``gain`` − ``price``, in nats.
    pvalue : float
        p-value adjusted for the search.
    """

    name: str
    conditions: tuple[Condition, ...]
    depth: int
    n: int
    weight: float
    predicted: float
    observed: float
    difference: float
    low: float
    high: float
    chance: float
    ratio: float
    ratio_low: float
    ratio_high: float
    shift: float
    gain: float
    price: float
    evidence: float
    pvalue: float

    @property
    def on_average(self) -> bool:
        """True if the interval of observed − predicted excludes 0 in this segment.

        False where errors may cancel within the segment.
        """
        return not self.low <= 0.0 <= self.high

    @property
    def interval(self) -> tuple[float, float]:
        """Confidence interval (low, high) of observed − predicted in this segment."""
        return self.low, self.high

    @property
    def at_least(self) -> float:
        """Smallest |observed − predicted| within the interval; 0 if the interval contains 0."""
        return min(abs(self.low), abs(self.high)) if self.on_average else 0.0


#: Evidence, in nats, by which a listed segment exceeds the critical value, to be called barely so.
BARELY = 0.5


@dataclass(frozen=True, eq=False)
class SegmentSearch(Result):
    """Result of :func:`caltest.segment_search`.

    Attributes
    ----------
    columns, dropped : tuple of str
        Columns that were searched, and columns that were not.
    lens, null : str
        Lens and null distribution, written as in Python.
    pvalue : float
        p-value of calibration in every segment.
    pvalue_error : float
        Monte Carlo standard error of ``pvalue``; 0 by enumeration.
    finding : Finding
        "miscalibrated", "miscalibrated (impossible outcome)" or "no evidence".
    alpha : float
        Upper bound of the probability that any segment of a calibrated model is listed.
    bar : float
        Evidence above which segments are listed, in nats.
    n_segments : int
        Number of segments that were searched.
    min_rows : int
        Smallest number of rows of a segment.
    whole : Segment
        All rows.
    segments : tuple of Segment
        Listed segments, without near duplicates of earlier ones.
    strongest : tuple of Segment
        The five segments of most evidence, if none is listed.
    error : float
        √D, the strong calibration error given the features, estimated on held-out rows.
    error_low : float
        Lower confidence bound of it at level ``alpha``.
    error_by_prediction : float
        The part of it that the prediction alone explains.
    reach : tuple of tuple
        Shares of the rows, each with the difference that is found there with power 0.8, or None.
    impossible : int
        Observed labels whose predicted probability was exactly 0.
    learner : str or None
        The learner that added a column, fitted on half of the rows.
    clusters : ClusterSummary or None
        Clusters and their dependence.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    columns: tuple[str, ...]
    lens: str
    null: str
    pvalue: float
    pvalue_error: float
    finding: Finding
    alpha: float
    bar: float
    n_segments: int
    min_rows: int
    dropped: tuple[str, ...]
    whole: Segment
    segments: tuple[Segment, ...]
    strongest: tuple[Segment, ...]
    error: float
    error_low: float
    error_by_prediction: float
    reach: tuple[tuple[float, float | None], ...]
    impossible: int
    learner: str | None = None
    clusters: ClusterSummary | None = None
    title: ClassVar[str] = "Segments"
    plotter: ClassVar[str] = "forests.segments"

    @property
    def table(self) -> Columns:
        """Table with a row for each listed segment.

        If none is listed, the rows are the whole data and the segments with most evidence.
        """
        rows = self.segments or (self.whole, *self.strongest)
        return attributes(rows, SEGMENT_COLUMNS) | {
            "evidence": [f"{row.evidence:.1f}" for row in rows],
            "pvalue": [format_p(row.pvalue, floor=self._at_floor(row.pvalue)) for row in rows],
        }

    def _at_floor(self, p: float) -> bool:
        """Return whether no redraw reached the evidence that has the p-value ``p``.

        A simulated p-value is then at its smallest, 1 / (1 + redraws).
        """
        return self.n_resamples > 0 and p * (1 + self.n_resamples) < 1.0 + 1e-9

    @property
    def worst(self) -> Segment:
        """First listed segment; without any, the segment with most evidence."""
        others = self.segments[:1] or (self.whole, *self.strongest)
        return max(others, key=lambda segment: segment.evidence)

    @property
    def passing(self) -> float:
        """Largest |observed − predicted| in the worst segment that noise could explain.

        It is √(2 (bar + penalty)) standard deviations of the difference, with bar the evidence
        above which segments are listed.
        """
        return self.worst.chance * float(np.sqrt(2.0 * (self.bar + self.worst.price)))

    def members(self, number: int, features: object) -> BoolArray:
        """Return which rows of other features are in a listed segment, booleans of shape (n,).

        Parameters
        ----------
        number : int
            Its place in ``segments``.
        features : data frame, mapping or array_like of shape (n, d)
            As in :func:`segment_search`, with all columns that its conditions name: also
            "prediction", the probability of the event, where one is about that.

        Returns
        -------
        ndarray of shape (n,), bool
            True for rows that satisfy all conditions of the segment.

        Raises
        ------
        StatisticError
            When there is no such segment, or no such column.
        """
        if not 0 <= number < len(self.segments):
            listed = several(len(self.segments), "segment")
            raise StatisticError(f"{listed} listed, counted from 0: there is no number {number}")
        columns, conditions = as_features(features, None).by_name, self.segments[number].conditions
        for absent in [name for name, *_ in conditions if name not in columns][:1]:
            available = ", ".join(columns)
            raise StatisticError(f"features: there is no column {absent!r} among {available}")
        every = np.ones(next(iter(columns.values())).values.size, dtype=bool)
        return np.logical_and.reduce([every, *(holds(c, columns[c[0]]) for c in conditions)])

    @property
    def shown_p(self) -> str:
        """p-value as printed, with "≤" where no redraw reached the observed evidence."""
        return format_p(self.pvalue, floor=self._at_floor(self.pvalue))

    def _procedure(self) -> list[str]:
        return [f"segments of {self.min_rows} rows", self.lens, f"{self.null} null"]

    def _tables(self) -> list[Columns]:
        return [self.table]

    def _card(self) -> Card:
        worst, sentences = self.worst, self._in_words()
        finding = next(words for words in sentences if words.startswith("Finding:"))
        numbers = (
            (worst.name, f"{worst.difference:+.3f}", f"observed − predicted, {worst.n} rows"),
            ("p-value", format_p(self.pvalue), f"{several(self.n_segments, 'segment')} searched"),
            ("listed", str(len(self.segments)), f"evidence above {self.bar:.1f}"),
        )
        rows = [
            sketches.IntervalRow(s.name, s.difference, s.low, s.high, marked=s.on_average)
            for s in self.segments or (self.whole, *self.strongest)
        ]
        return Card(
            str(self.finding),
            tone="bad" if self.finding.rejects else "plain",
            headline=finding.removeprefix("Finding: "),
            numbers=numbers,
            remarks=tuple(words for words in sentences if words is not finding),
            drawing=sketches.forest(rows, "Observed − predicted"),
        )

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        rows = self.segments or (self.whole, *self.strongest)
        listed = rendering.columns_of_arrays({"listed": [bool(self.segments)] * len(rows)})
        return rendering.columns_of_records(rows, Segment) | listed

    def _facts(self) -> list[str]:
        rows, features = several(self.n, "prediction"), several(len(self.columns) - 1, "column")
        searched = f"{several(self.n_segments, 'segment')} of at least {self.min_rows} rows"
        of = f" (event {self.event_name})" * bool(self.event_name)
        size = f"  {rows}, {self.lens}{of}; searched: {searched}, by {features} and the prediction"
        return [size, "", *aligned(self.table), ""]

    def _in_words(self) -> list[str]:
        cancelled = ", ".join(segment.name for segment in self.segments if not segment.on_average)
        p = p_is(self.shown_p)
        barely = (s for s in self.segments if s.evidence < self.bar + BARELY)
        reaching = ", ".join(s.name for s in barely if s.low <= 0.0 <= s.high)
        impossible = several(self.impossible, "observed outcome")
        sentences = {
            "None is listed: the segments of most evidence are shown.": not self.segments,
            "Difference: observed − predicted. Evidence: the gain in log-likelihood (nats) from "
            "recalibrating the segment, minus a penalty for the search. If the model is "
            f"calibrated, the largest evidence exceeds {self.bar:.1f} in {100 * self.alpha:g} % of "
            "data sets.": True,
            f"Finding: MISCALIBRATED {self._found_in} ({p}){self._beyond}. The "
            f"{100 * (1 - self.alpha):g} % intervals hold for all segments at once.": self.segments,
            f"The evidence is barely above {self.bar:.1f} where the interval reaches 0: the error "
            f"may be very small in {reaching}.": reaching,
            f"Finding: no error found ({p}). {self.reach_in_words}": not self.segments,
            f"Miscalibrated, with errors that may cancel on average: {cancelled}.": cancelled,
            self.gain_in_words: True,
            f"{impossible} had predicted probability exactly 0: that alone refutes calibration, "
            "unless the predictions were rounded to 0: then give them unrounded.": self.impossible,
        }
        return [sentence for sentence, is_so in sentences.items() if is_so]

    @property
    def _found_in(self) -> str:
        """Phrase that says whether all rows, smaller segments or both are listed."""
        if not self.segments or self.segments[0].depth > 0:
            return f"in {several(len(self.segments), 'segment')}"
        if len(self.segments) == 1:
            return "in all rows together"
        return f"in all rows together and in {several(len(self.segments) - 1, 'segment')}"

    @property
    def _beyond(self) -> str:
        """Clause that says, if only all rows are listed, why no smaller segment is; else ""."""
        if [segment.depth for segment in self.segments] != [0]:
            return ""
        return "; after recalibrating them, no smaller segment differs by more than chance"

    @property
    def reach_in_words(self) -> str:
        """Sentence on the differences observed − predicted that this search detects with power 0.8.

        It names one for each share of the rows in ``reach``, such as 20 %.
        """
        could = [f"{d:.3f} in {100 * f:g} % of the rows" for f, d in self.reach if d is not None]
        if not could:
            return "No difference in 20 % of the rows would be found in 80 % of such data sets."
        return f"Differences of {' or '.join(could)} are found in 80 % of such data sets."

    @property
    def gain_in_words(self) -> str:
        """Sentence on the reduction of the Brier score from recalibrating the segments."""
        if self.error == 0.0:
            return (
                "Recalibrating segments on some rows does not lower the Brier score of the others."
            )
        return (
            "Recalibrating the miscalibrated segments would lower the Brier score of new rows by "
            f"{format_value(self.error**2)}. The root mean squared calibration error is "
            f"{self.error:.3f} ({100 * (1 - self.alpha):g} % lower bound {self.error_low:.3f}) "
            "among rows alike in features and prediction, and "
            f"{self.error_by_prediction:.3f} among rows alike in the prediction alone."
        )
