"""The answer of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from caltest.results.base import Result, format_p, format_value
from caltest.results.calibration import CalibrationTestResult

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from caltest.plots import Picture


@dataclass(frozen=True)
class AuditRow(Result):
    """One line of an audit: a lens, the question it asks, and the answer.

    ``aspect`` is ``"error"`` for a binned error, ``"classes"`` for those of every class,
    ``"shape"``
    for statistics without bins, of which ``test`` is the loudest, and ``"score"`` for how sure the
    whole vector is; the last two are reported in standard deviations from what chance shows.
    ``critical`` is the 1 − alpha point of the null distribution: smaller errors pass as noise.
    ``verdict`` is ``"miscalibrated"`` (with ``"(impossible outcome)"`` where one decides),
    ``"no evidence"`` or ``"too little data"``.
    """

    lens: str
    question: str
    aspect: str
    test: CalibrationTestResult
    pvalue: float
    adjusted: float
    critical: float
    verdict: str
    detail: str

    @property
    def shown(self) -> tuple[str, str]:
        """What was observed, and what a calibrated model shows, as they are printed."""
        test = self.test
        if self.aspect in ("shape", "score"):
            return f"{test.excess / test.null_std:+.1f} sd" if test.null_std else "–", "0 ± 1 sd"
        return format_value(test.estimate), f"{test.null_mean:.4f} ± {test.null_std:.4f}"


@dataclass(frozen=True)
class AuditReport(Result):
    """The answer of :func:`caltest.audit`; ``print`` shows it as a report.

    Attributes
    ----------
    verdict : str
        ``"miscalibrated"``, ``"calibrated"`` (as far as these data can tell) or
        ``"too little data"``.
    summary : tuple of str
        The verdict in sentences.
    direction : str
        ``"overconfident"``, ``"underconfident"``, ``"mixed"`` or ``""``.
    rows : tuple of AuditRow
        One row a lens, with Holm-adjusted p-values.
    n, n_classes, accuracy, confidence, alpha, tolerance, impossible, notes, version
        The data and the settings; ``accuracy`` and ``confidence`` are those of the top class.
    """

    verdict: str
    summary: tuple[str, ...]
    direction: str
    rows: tuple[AuditRow, ...]
    n: int
    n_classes: int
    accuracy: float
    confidence: float
    alpha: float
    tolerance: float
    impossible: int
    notes: tuple[str, ...]
    version: str

    def plot(self, ax: Any = None, **options: Any) -> Picture:
        """Draw the rows by :func:`caltest.plots.estimates`, with adjusted p-values."""
        from caltest import plots

        tests, names = [row.test for row in self.rows], [row.lens for row in self.rows]
        adjusted = [row.adjusted for row in self.rows]
        return plots.estimates(tests, ax, names=names, pvalues=adjusted, **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield from self._body(options.max_width)
        yield Text("\n".join(self._foot()), style="dim")

    def _foot(self) -> list[str]:
        return [*(f"Note: {note}." for note in self.notes), "", *(r.test.recipe for r in self.rows)]

    def _body(self, width: int) -> list[RenderableType]:
        from rich.table import Table
        from rich.text import Text

        colour = {"miscalibrated": "red", "calibrated": "green", "too little data": "yellow"}
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        roomy = width >= 110
        for name in ("lens", "question")[: 1 + roomy]:
            table.add_column(name, no_wrap=name == "lens")
        for name in ("error", "if calibrated", "p", "adjusted"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("finding", min_width=max(len(row.verdict) for row in self.rows))
        for row in self.rows:
            table.add_row(
                *(row.lens, row.question)[: 1 + roomy],
                *row.shown,
                format_p(row.pvalue),
                format_p(row.adjusted),
                Text(row.verdict, style="red" if row.verdict == "miscalibrated" else ""),
            )
        head = Text.assemble(
            ("Calibration audit", "bold"),
            f"  {self.n} predictions, {self.n_classes} classes, accuracy {self.accuracy:.3f}, "
            f"mean confidence {self.confidence:.3f}\n",
        )
        words = {
            "miscalibrated": "MISCALIBRATED",
            "calibrated": "CALIBRATED, AS FAR AS THESE DATA CAN TELL",
            "too little data": "TOO LITTLE DATA TO TELL",
        }
        verdict = Text.assemble(
            "\n", ("Verdict: " + words[self.verdict], f"bold {colour[self.verdict]}"), "\n"
        )
        details = [row.detail for row in self.rows if row.detail]
        return [head, table, verdict, Text("\n".join([*self.summary, *details]) + "\n")]

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        console = Console(file=StringIO(), width=118, color_system=None, legacy_windows=False)
        console.print(*self._body(118), sep="\n")
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        lines = [line.rstrip() for line in text.splitlines()]
        return "\n".join([*lines, *self._foot()])
