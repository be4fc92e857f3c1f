"""The answer of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caltest._base.written import several
from caltest.results.base import Record, Result, format_p, format_value
from caltest.results.calibration import CalibrationTestResult
from caltest.results.fields import described, entry
from caltest.results.tables import Columns
from caltest.results.verdicts import AuditVerdict, Finding

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

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


#: The columns of numbers, and all that can be left out.
NUMBERS = ("error", "if calibrated", "p", "adjusted")
COLUMNS = ("lens", "question", "worst", *NUMBERS)
TOGETHER = "Error and noise floor are those of the worst; p is that of all together."
#: Columns that go one after the other where there is no room; an error goes with what it is of.
LESS_IMPORTANT = (("question",), ("if calibrated",), ("p",), ("worst", "error"), ("adjusted",))


@described()
class AuditRow(Record):
    """One line of an audit: a lens, the question it asks, and the answer."""

    lens: str = entry("What is looked at, as a recipe and in words.")
    question: str
    subject: str = entry(
        "What is looked at, for programs: an event, the top class, the largest probabilities, all "
        "classes one by one, or the whole vector.",
        '{"event", "top", "ranks", "classes", "vector"}',
    )
    aspect: str = entry(
        "A binned error; those of every class; statistics without bins, of which ``test`` is the "
        "loudest; how sure the whole vector is, which like the shape is reported in standard "
        "deviations from what chance shows; the binned errors of every subgroup.",
        '{"error", "classes", "shape", "score", "groups"}',
    )
    test: CalibrationTestResult = entry("The test that decides.")
    pvalue: float = entry("Of the row; and adjusted for the number of rows.")
    adjusted: float
    critical: float = entry(
        "The 1 − alpha point of the null distribution: smaller errors pass as noise."
    )
    verdict: Finding = entry(
        '``"miscalibrated"`` (with ``"(impossible outcome)"`` where one decides), ``"no '
        'evidence"`` or ``"too little data"``.'
    )
    worst: str = entry(
        "Of several tests, the one whose error and noise floor are shown, beside the p-value of "
        "all."
    )
    detail: str = entry("What else should be known, in a sentence; or nothing.")

    @property
    def shown(self) -> tuple[str, str]:
        """What was observed, and what a calibrated model shows, as they are printed."""
        test = self.test
        if self.aspect in ("shape", "score"):
            return f"{test.excess / test.null_std:+.1f} sd" if test.null_std else "–", "0 ± 1 sd"
        return format_value(test.estimate), f"{test.null_mean:.4f} ± {test.null_std:.4f}"


@described(plotter="results.audit")
class AuditReport(Result):
    """The answer of :func:`caltest.audit`; ``print`` shows it as a report."""

    verdict: AuditVerdict = entry(
        '``"miscalibrated"``, ``"calibrated"`` (as far as these data can tell) or ``"too '
        'little data"``; with a tolerance ``"miscalibrated, and it matters"``, '
        '``"miscalibrated, too little to matter"``, ``"calibrated to within the tolerance"`` '
        'or ``"cannot tell"``.'
    )
    summary: tuple[str, ...] = entry("The verdict in sentences.")
    direction: str = entry('``"overconfident"``, ``"underconfident"``, ``"mixed"`` or ``""``.')
    rows: tuple[AuditRow, ...] = entry("One row a lens, with adjusted p-values.")
    accuracy: float = entry(
        "Of the top class, or of predictions that are ``wrong`` or ``right``: how often it is "
        "right, and its mean probability."
    )
    confidence: float
    low: float = entry(
        "Bounds of the error of the first row, each wrong with a chance of at most ``alpha``."
    )
    high: float
    alpha: float = entry("The settings; ``tolerance`` may be None.")
    tolerance: float | None
    impossible: int = entry("Observed labels whose predicted probability was exactly 0.")

    @property
    def rejects(self) -> bool:
        """Whether calibration is rejected, by any row, however little it matters."""
        return any(row.verdict.rejects for row in self.rows)

    def _made(self) -> list[str]:
        lenses = ", ".join(row.lens for row in self.rows)
        tolerance = [] if self.tolerance is None else [f"tolerance={self.tolerance:g}"]
        return [f"audit of {lenses}", f"alpha={self.alpha:g}", *tolerance]

    def _tables(self) -> list[Columns]:
        return [self._columns(10_000)]

    def _in_words(self) -> list[str]:
        details = [row.detail for row in self.rows if row.detail]
        shown = [TOGETHER] if any(row.worst for row in self.rows) else []
        return [*shown, f"Verdict: {HEADLINES[self.verdict][0]}", *self.summary, *details]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield from self._body(options.max_width)
        yield Text("\n".join(self._ending()), style="dim")

    def _ending(self) -> list[str]:
        *notes, _, _ = self._foot()
        return [*(note.strip() for note in notes), "", *(row.test.recipe for row in self.rows)]

    def _body(self, width: int) -> list[RenderableType]:
        from rich.table import Table
        from rich.text import Text

        columns = self._columns(width)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for name in columns:
            side: Any = "right" if name in NUMBERS else "left"
            table.add_column(name, justify=side, no_wrap=name != "finding")
        for row, *cells in zip(self.rows, *columns.values(), strict=True):
            style = "red" if row.verdict.rejects else ""
            table.add_row(*map(Text, cells[:-1]), Text(cells[-1], style=style))
        head = Text.assemble(
            ("Calibration audit", "bold"),
            f"  {several(self.n, 'prediction')}, {self.n_classes} classes, "
            f"accuracy {self.accuracy:.3f}, mean confidence {self.confidence:.3f}\n",
        )
        words, style = HEADLINES[self.verdict]
        verdict = Text.assemble("\n", (f"Verdict: {words}", style), "\n")
        details = [row.detail for row in self.rows if row.detail]
        shown = [Text(TOGETHER)] if "worst" in columns else []
        return [head, table, *shown, verdict, Text("\n".join([*self.summary, *details]) + "\n")]

    def _columns(self, width: int) -> dict[str, list[str]]:
        """Return the cells of the columns for which there is room; findings are always shown."""
        cells = [
            (r.lens, r.question, r.worst, *r.shown, format_p(r.pvalue), format_p(r.adjusted))
            for r in self.rows
        ]
        columns = dict(zip(COLUMNS, map(list, zip(*cells, strict=True)), strict=True))
        if not any(columns["worst"]):
            del columns["worst"]
        columns["finding"] = [str(row.verdict) for row in self.rows]
        for less in LESS_IMPORTANT:
            needed = {name: max(map(len, [name, *cells])) + 2 for name, cells in columns.items()}
            needed["finding"] = min(needed["finding"], len(Finding.TOO_LITTLE_DATA))
            if sum(needed.values()) <= width:
                break
            columns = {name: cells for name, cells in columns.items() if name not in less}
        return columns

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        file = StringIO()
        console = Console(file=file, width=118, color_system=None, legacy_windows=False)
        console.print(*self._body(118), sep="\n")
        lines = [line.rstrip() for line in file.getvalue().splitlines()]
        return "\n".join([*lines, *self._ending()])
