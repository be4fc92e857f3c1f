"""Answers: frozen, printable, and ready for JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from caltest.nulls import NullDistribution

#: p-values below this are printed as a bound.
SMALLEST_SHOWN = 1e-12


def format_p(p: float) -> str:
    """Return a p-value as it is printed: never 0, three digits at most."""
    if p < SMALLEST_SHOWN:
        return f"< {SMALLEST_SHOWN:.0e}"
    return f"{p:.3f}" if p >= 0.01 else f"{p:.4f}" if p >= 0.001 else f"{p:.1e}"


def format_value(value: float) -> str:
    """Return the value of a statistic with four decimals, or three digits when it is tiny."""
    return f"{value:.4f}" if value == 0.0 or abs(value) >= 0.001 else f"{value:.2e}"


@dataclass(frozen=True)
class Result:
    """What all answers share: a dictionary form and its inverse.

    The null distribution is not part of the dictionary; ``np.asarray(result.null_distribution)``
    gives simulated replicates to whoever wants to keep them.
    """

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers, strings, lists and dictionaries."""
        content = {
            f.name: _plain(getattr(self, f.name))
            for f in fields(self)
            if "transient" not in f.metadata
        }
        return {"kind": type(self).__name__, **content}

    def to_json(self, indent: int | None = 2) -> str:
        """Return the result as JSON."""
        return json.dumps(self.as_dict(), indent=indent, ensure_ascii=False)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Rebuild a result from :meth:`as_dict`, without its null distribution."""
        values = dict(content)
        kind = values.pop("kind", cls.__name__)
        if kind != cls.__name__:
            raise ValueError(f"this is the dictionary of a {kind}, not of a {cls.__name__}")
        return cls(**{name: _frozen(value) for name, value in values.items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a result from :meth:`to_json`."""
        return cls.from_dict(json.loads(text))


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.as_dict()
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, dict):
        return {c.__name__: c for c in (CalibrationTestResult, AuditRow)}[value["kind"]].from_dict(
            value
        )
    return value


@dataclass(frozen=True)
class CalibrationTestResult(Result):
    """The answer of :func:`caltest.calibration_test`.

    Attributes
    ----------
    statistic, lens, null : str
        The recipe, as it would be written in Python; ``null`` is ``"exact"`` when nothing was
        simulated.
    estimate : float
        The statistic of the observed data.
    pvalue : float
        Probability that a calibrated model shows at least ``estimate`` on these predictions: the
        upper end of ``pvalue_bracket`` when exact, (1 + b) / (1 + B) when simulated. Never 0.
    pvalue_bracket : tuple of float
        Where the exact p-value lies: bounds for the exact null, with 99 % confidence
        (Clopper–Pearson) for a simulated one.
    pvalue_error : float
        Monte Carlo standard error of ``pvalue``; 0 for the exact null.
    null_mean, null_std : float
        The noise floor: mean and standard deviation of the statistic when the model is calibrated.
    n, n_classes : int
        Number of observations, and of classes before the lens.
    n_resamples : int
        Replicates drawn; 0 for the exact null.
    seed : int or None
        The seed, if the generator was given by one.
    impossible : int
        Observed labels whose predicted probability was exactly 0. One refutes calibration.
    ended : {"complete", "early", "interrupted"}
        Whether the simulation drew all its replicates, or was ended by sequential stopping or
        Ctrl-C.
    notes : tuple of str
        What was done to the input on the way in.
    version : str
        The version of caltest.
    null_distribution : ExactNull or SimulatedNull
        With ``mean``, ``std``, ``sf``, ``ppf`` and ``rvs``; not part of the dictionary form.
    """

    statistic: str
    lens: str
    null: str
    estimate: float
    pvalue: float
    pvalue_bracket: tuple[float, float]
    pvalue_error: float
    null_mean: float
    null_std: float
    n: int
    n_classes: int
    n_resamples: int
    seed: int | None
    impossible: int
    ended: str
    notes: tuple[str, ...]
    version: str
    null_distribution: NullDistribution | None = field(
        default=None, repr=False, compare=False, metadata={"transient": True}
    )

    @property
    def excess(self) -> float:
        """The estimate minus the noise floor; not an estimate of the true error."""
        return self.estimate - self.null_mean

    @property
    def shown_p(self) -> str:
        """The p-value as it is printed: a bound where the exact null resolves no further."""
        if self.n_resamples == 0 and self.pvalue_bracket[0] == 0.0:
            return f"< {max(self.pvalue, SMALLEST_SHOWN):.0e}"
        return format_p(self.pvalue)

    @property
    def recipe(self) -> str:
        """One line that says how the number was made, fit for a paper."""
        simulation = [f"B={self.n_resamples}"] if self.n_resamples else []
        if self.n_resamples and self.seed is not None:
            simulation.append(f"seed={self.seed}")
        parts = [self.statistic, self.lens, f"{self.null} null", *simulation]
        return " · ".join([*parts, f"n={self.n}", f"K={self.n_classes}", f"caltest {self.version}"])

    def __str__(self) -> str:
        deviations = f", {self.excess / self.null_std:+.1f} sd" if self.null_std > 0 else ""
        if self.n_resamples:
            precision = f"{self.n_resamples} resamples, Monte Carlo error {self.pvalue_error:.1g}"
        else:
            precision = f"exact, in [{self.pvalue_bracket[0]:.4g}, {self.pvalue_bracket[1]:.4g}]"
        lines = [
            "Test of calibration",
            f"  statistic      {self.statistic}",
            f"  lens           {self.lens}",
            f"  observed       {format_value(self.estimate)}",
            f"  if calibrated  {format_value(self.null_mean)} ± {format_value(self.null_std)}"
            "  (noise floor: mean ± sd)",
            f"  excess         {format_value(self.excess)}{deviations}",
            f"  p-value        {self.shown_p}  ({precision})",
            f"  data           n = {self.n}, K = {self.n_classes}",
            "",
            f"  {self._in_words()}",
        ]
        if self.impossible:
            lines.append(
                f"  {self.impossible} observed outcomes had predicted probability exactly 0: "
                "that alone refutes calibration, unless the file was rounded."
            )
        if self.ended == "early":
            lines.append("  Stopped early (Besag & Clifford 1991): the p-value is valid as it is.")
        elif self.ended == "interrupted":
            lines.append("  Interrupted: the p-value rests on the resamples drawn until then.")
        lines += [f"  Note: {note}." for note in self.notes]
        return "\n".join([*lines, "", f"  {self.recipe}"])

    def _in_words(self) -> str:
        if self.null_std == 0.0:
            return "The null distribution is a single value: these predictions cannot be tested."
        if self.pvalue < 0.0005:
            chance = "fewer than 1 in 1000"
        else:
            chance = f"about {max(1, round(1000 * self.pvalue))} in 1000"
        return f"A calibrated model would show an error this large in {chance} such data sets."


@dataclass(frozen=True)
class JointTestResult(Result):
    """The answer of :func:`caltest.calibration_test` to a list of (statistic, lens) pairs.

    Attributes
    ----------
    tests : tuple of CalibrationTestResult
        One for each pair, with its own, unadjusted p-value.
    adjusted : tuple of float
        Step-down max-T adjusted p-values, in the same order.
    pvalue : float
        The smallest of them: a test of all hypotheses together.
    n_resamples : int
        Label vectors drawn.
    ended : {"complete", "interrupted"}
        Whether Ctrl-C ended the run early.
    version : str
        The version of caltest.
    """

    tests: tuple[CalibrationTestResult, ...]
    adjusted: tuple[float, ...]
    pvalue: float
    n_resamples: int
    ended: str
    version: str

    def __str__(self) -> str:
        lines = [f"Joint test of calibration, {self.n_resamples} redrawn label vectors"]
        width = max(len(f"{t.statistic} · {t.lens}") for t in self.tests)
        for test, adjusted in zip(self.tests, self.adjusted, strict=True):
            lines.append(
                f"  {test.statistic} · {test.lens}".ljust(width + 4)
                + f"{format_value(test.estimate)}  if calibrated {format_value(test.null_mean)} ± "
                f"{format_value(test.null_std)}  p {format_p(test.pvalue)}  "
                f"adjusted {format_p(adjusted)}"
            )
        lines.append(f"  all together: p {format_p(self.pvalue)} (max-T, Westfall & Young 1993)")
        if self.ended == "interrupted":
            lines.append("  Interrupted: the p-values rest on the vectors drawn until then.")
        return "\n".join(lines)


@dataclass(frozen=True)
class AuditRow(Result):
    """One line of an audit: a lens, the question it asks, and the answer.

    ``critical`` is the 1 − alpha point of the null distribution: smaller errors pass as noise.
    ``verdict`` is ``"miscalibrated"`` (with ``"(impossible outcome)"`` where one decides),
    ``"no evidence"`` or ``"too little data"``.
    """

    lens: str
    question: str
    test: CalibrationTestResult
    pvalue: float
    adjusted: float
    critical: float
    verdict: str
    detail: str


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
            table.add_column(name, no_wrap=True)
        for name in ("error", "if calibrated", "p", "adjusted p"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("finding")
        for row in self.rows:
            test = row.test
            table.add_row(
                *(row.lens, row.question)[: 1 + roomy],
                format_value(test.estimate),
                f"{test.null_mean:.4f} ± {test.null_std:.4f}",
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
