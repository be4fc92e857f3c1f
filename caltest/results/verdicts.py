"""Verdicts as codes that programs compare, and the provenance of predictions.

A verdict equals its words and compares as a plain string; ``failed`` and ``exit_code`` are for
programs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from caltest._base.arrays import BoolArray


class Verdict(StrEnum):
    """Code whose ``str`` is its words; it equals them, and prints like a plain string."""

    def __repr__(self) -> str:
        return repr(self.value)


class AuditVerdict(Verdict):
    """Verdict of an audit on the model.

    Without a tolerance it is "miscalibrated", "calibrated" or "too little data". With one it is
    "miscalibrated, and it matters", "miscalibrated, but too little to matter", "calibrated to
    within the tolerance" or "cannot tell". "in doubt" is a rejection, or a bound of the error,
    where rows seem to depend on each other, or may have been censored before the event.
    """

    MISCALIBRATED = "miscalibrated"
    CALIBRATED = "calibrated"
    TOO_LITTLE_DATA = "too little data"
    MATTERS = "miscalibrated, and it matters"
    TOO_LITTLE_TO_MATTER = "miscalibrated, but too little to matter"
    WITHIN_TOLERANCE = "calibrated to within the tolerance"
    CANNOT_TELL = "cannot tell"
    IN_DOUBT = "in doubt"

    @property
    def failed(self) -> bool:
        """True if the model is miscalibrated, by more than the tolerance if there is one."""
        return self in (AuditVerdict.MISCALIBRATED, AuditVerdict.MATTERS)

    @property
    def exit_code(self) -> int:
        """Exit code with ``--fail-on-miscalibration``: 1 for a failed model, 3 in doubt, else 0."""
        return 1 if self.failed else 3 if self is AuditVerdict.IN_DOUBT else 0


class Finding(Verdict):
    """Finding of an audit through one lens.

    One of "miscalibrated", "miscalibrated (impossible outcome)" (an observed outcome had
    probability 0), "wrong for single items", "no evidence" and "too little data". Probabilities
    that are wrong for single items may be right on average: that is no rejection.
    """

    MISCALIBRATED = "miscalibrated"
    IMPOSSIBLE_OUTCOME = "miscalibrated (impossible outcome)"
    SINGLE_ITEMS = "wrong for single items"
    NO_EVIDENCE = "no evidence"
    TOO_LITTLE_DATA = "too little data"

    @property
    def rejects(self) -> bool:
        """True if calibration on average is rejected."""
        return self in (Finding.MISCALIBRATED, Finding.IMPOSSIBLE_OUTCOME)


class ComparisonVerdict(Verdict):
    """Verdict of a comparison of two models.

    One of "first is better calibrated", "second is better calibrated", "tied", "cannot tell", and
    for the swap test "not exchangeable".
    """

    FIRST_BETTER = "first is better calibrated"
    SECOND_BETTER = "second is better calibrated"
    TIED = "tied"
    CANNOT_TELL = "cannot tell"
    NOT_EXCHANGEABLE = "not exchangeable"

    @property
    def better(self) -> int | None:
        """Index of the better model, 0 or 1; None where neither was found to be better."""
        places = {ComparisonVerdict.FIRST_BETTER: 0, ComparisonVerdict.SECOND_BETTER: 1}
        return places.get(self)

    def about(self, names: tuple[str, str]) -> str:
        """Return the verdict in words, with the name of the better model.

        ``names`` are the first and the second model. Without a better one it is the verdict itself,
        such as "tied".
        """
        return self.value if self.better is None else f"{names[self.better]} is better calibrated"


class GradeVerdict(Verdict):
    """Verdict on the predicted probability of a grade, such as a PD.

    One of "risk underestimated", "risk overestimated" and "no evidence".
    """

    UNDERESTIMATED = "risk underestimated"
    OVERESTIMATED = "risk overestimated"
    NO_EVIDENCE = "no evidence"


class GateVerdict(Verdict):
    """Verdict of a gate on a model: "passed", "failed", "in doubt" or "cannot tell".

    In doubt is a failure by bounds whose assumptions the data contradict: rows seem to depend on
    each other, or outcomes may have been censored. A doubt never turns a pass into anything else.
    """

    PASSED = "passed"
    FAILED = "failed"
    IN_DOUBT = "in doubt"
    CANNOT_TELL = "cannot tell"

    @property
    def exit_code(self) -> int:
        """Exit code: 0 for passed, 1 for failed, 3 in doubt or where the rows cannot tell."""
        return {GateVerdict.PASSED: 0, GateVerdict.FAILED: 1}.get(self, 3)


# ------------------------------------------------------------------------------
# Where predictions come from, as far as it matters for a test of them.


@dataclass(frozen=True, eq=False)
class Provenance:
    """Recalibration that predictions have gone through.

    ``method`` is its recipe, fitted on ``n_fitted`` rows; ``overlap`` (n,) marks the present rows
    that were among them.
    """

    method: str
    n_fitted: int
    overlap: BoolArray = field(repr=False)

    @property
    def n_overlap(self) -> int:
        """Number of the present rows that were rows of the fit."""
        return int(self.overlap.sum())
