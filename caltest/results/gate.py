"""The answer of a gate: may this model be released?"""

from __future__ import annotations

from caltest._base.written import several
from caltest.results.base import Record, Result
from caltest.results.fields import described, entry
from caltest.results.tables import Columns, of_records
from caltest.results.verdicts import GateVerdict

#: The heads of the table, and the fields below them.
HEADS = {
    **{"check": "question", "statistic": "statistic", "estimate": "estimate"},
    **{"corrected": "corrected", "low": "low", "high": "high", "limit": "limit"},
    "finding": "verdict",
}


@described()
class GateCheck(Record):
    """One check of a gate: an error, or how much larger it is than another, and its limit."""

    question: str = entry("What is checked, in words and as a recipe.")
    statistic: str
    estimate: float = entry("The statistic, or the difference of the roots of two.")
    corrected: float = entry("The estimate less its noise, and bounds of the error.")
    low: float
    high: float
    limit: float = entry("The tolerance or the margin.")
    verdict: GateVerdict = entry(
        '``"passed"`` when ``high`` ≤ ``limit``, ``"failed"`` when ``low`` > ``limit``, or '
        '``"cannot tell"``.'
    )
    rows: int | None = entry(
        "Rows that would tell in 80 % of data sets if the truth is as estimated; None where that "
        "is too close to the limit, or nothing more is needed."
    )


@described(title="Calibration gate", plotter="numbers.limits")
class GateResult(Result):
    """The answer of :func:`caltest.gate`; ``print`` shows it as a report."""

    verdict: GateVerdict = entry(
        '``"passed"`` when all checks have passed, ``"failed"`` when one has failed, or '
        '``"cannot tell"``.'
    )
    checks: tuple[GateCheck, ...] = entry("What was checked.")
    names: tuple[str, ...] = entry("The model, and the one it is compared with, if any.")
    lens: str = entry("The lens, as it would be written in Python.")
    alpha: float = entry("Chance of a wrong finding, at most, over all checks.")

    def _made(self) -> list[str]:
        limits = ", ".join(f"{c.question} ≤ {c.limit:g}" for c in self.checks)
        return [f"gate: {limits}", self.lens, f"alpha={self.alpha:g}"]

    def _tables(self) -> list[Columns]:
        return [of_records(self.checks, HEADS)]

    def _in_words(self) -> list[str]:
        said = [f"Verdict: {self.verdict.upper()}"]
        for check in self.checks:
            if check.verdict is GateVerdict.CANNOT_TELL:
                needed = "No number of rows nearby would tell: the estimate is at the limit."
                if check.rows is not None:
                    needed = f"About {several(check.rows, 'row')} would tell; there are {self.n}."
                said.append(f"{check.question}: {needed}")
        return said
