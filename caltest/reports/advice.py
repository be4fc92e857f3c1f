"""Recommended next step of a report: one sentence, chosen by the first rule of a table that holds.

:func:`recommendation` is the entry; :class:`Situation` holds the facts that the rules read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan

from caltest.results import AuditVerdict


@dataclass(frozen=True)
class Situation:
    """Frozen description of the facts on which a recommendation depends.

    Attributes
    ----------
    verdict : AuditVerdict
        The verdict of the audit.
    rejects : bool
        True if at least one question of the audit is rejected.
    rows, groups : str
        The user's words for observations and subgroups, such as "patients" and "hospital".
    n : int
        Number of observations.
    doubts : tuple of str
        Reasons to doubt the data, including outcomes that were given probability 0.
    tolerance : float or None
        Largest acceptable error.
    needed : int or None
        Number of observations that would decide an open question; None if unknown.
    detectable : float
        Largest error that cannot be distinguished from noise at this sample size; NaN if unknown.
    levels_pvalue, slopes_pvalue : float
        p-values of the hypotheses that all subgroups share one intercept, and one slope; NaN
        without subgroups.
    apart : tuple of str
        Subgroups whose simultaneous interval of observed − predicted excludes 0.
    common_slope : float
        Slope of a fit with an intercept for each subgroup and one slope; NaN without subgroups.
    mean : tuple of float
        (low, high), the interval of observed − predicted; NaN if unknown.
    slope : tuple of float
        (slope, low, high), the calibration slope with its interval; NaN if unknown.
    intercept, shift : float
        Calibration intercept, and calibration-in-the-large; NaN if unknown.
    temperature : float
        Temperature that minimises the log score of all classes; NaN for two classes.
    enough : bool
        True if dividing the log-odds by this temperature leaves no class miscalibrated.
    segment : str
        Name of the segment that a search found, if nothing else is rejected; "" otherwise.
    better : bool
        True if recalibrated predictions were given and are better calibrated.
    """

    verdict: AuditVerdict
    rejects: bool
    rows: str = "observations"
    groups: str = "subgroup"
    n: int = 0
    doubts: tuple[str, ...] = ()
    tolerance: float | None = None
    needed: int | None = None
    detectable: float = nan
    levels_pvalue: float = nan
    slopes_pvalue: float = nan
    apart: tuple[str, ...] = ()
    common_slope: float = nan
    mean: tuple[float, float] = (nan, nan)
    slope: tuple[float, float, float] = (nan, nan, nan)
    intercept: float = nan
    shift: float = nan
    temperature: float = nan
    enough: bool = False
    segment: str = ""
    better: bool = False
    alpha: float = 0.05

    @property
    def mean_is_off(self) -> bool:
        """True if the interval of observed − predicted excludes 0."""
        return self.mean[0] > 0.0 or self.mean[1] < 0.0

    @property
    def slope_is_off(self) -> bool:
        """True if the interval of the calibration slope excludes 1."""
        return self.slope[1] > 1.0 or self.slope[2] < 1.0

    @property
    def each(self) -> str:
        """Names of the subgroups that need an intercept of their own, joined to a phrase.

        At most three are named, followed by "…"; without any the phrase is "each hospital".
        """
        few = [*self.apart[:3], *["…"] * (len(self.apart) > 3)]
        return " and ".join(few) if len(few) == 2 else ", ".join(few) or f"each {self.groups}"


@dataclass(frozen=True)
class Rule:
    """Rule of the table of advice: a condition, and the sentence to print if it holds.

    ``holds`` and ``say`` take the situation. Only the first rule that holds is printed.
    """

    name: str
    holds: Callable[[Situation], bool]
    say: Callable[[Situation], str]


def _points(share: float | None) -> str:
    """Return a share in [0, 1] as percentage points with two digits, such as "1.2 pp"."""
    return f"{100.0 * (share or 0.0):.2g}\u00a0pp"


def _collect(s: Situation) -> str:
    """Return advice to collect more data, with the number of observations if it is known."""
    x = s.tolerance or 0.1
    if s.needed is None:
        return f"Collect more {s.rows}; {s.n} cannot show an error of {_points(x)}."
    more = max(s.needed - s.n, 0)
    return f"Collect about {more} more {s.rows}; {s.n} cannot show an error of {_points(x)}."


def _straddles(s: Situation) -> str:
    """Return advice for an interval that contains the tolerance.

    It names the number of observations that would decide, or says that more may not help.
    """
    if s.needed is None or s.needed <= s.n:
        return "The error is close to the tolerance; more data may not settle it."
    return f"Collect about {s.needed - s.n} more {s.rows}."


def _slope(value: float) -> str:
    return f"{value:.2f}"


def _shift(value: float) -> str:
    """Return a signed number with a minus sign, not a hyphen."""
    return f"{value:+.2f}".replace("-", "\u2212")


#: The first rule that holds is the recommendation.
RULES = (
    Rule(
        "doubt",
        lambda s: bool(s.doubts) or s.verdict is AuditVerdict.IN_DOUBT,
        lambda s: f"Check the data first: {'; '.join(s.doubts[:1]) or 'rows seem to depend'}.",
    ),
    Rule("too little", lambda s: s.verdict is AuditVerdict.TOO_LITTLE_DATA, _collect),
    Rule(
        "improved",
        lambda s: s.better,
        lambda s: f"Use the recalibrated model. Then check new {s.rows}.",
    ),
    Rule(
        "within tolerance",
        lambda s: s.verdict in (AuditVerdict.WITHIN_TOLERANCE, AuditVerdict.TOO_LITTLE_TO_MATTER),
        lambda s: f"No action needed at a tolerance of {_points(s.tolerance)}.",
    ),
    Rule("straddles", lambda s: s.verdict is AuditVerdict.CANNOT_TELL, _straddles),
    Rule(
        "slopes differ",
        lambda s: s.rejects and s.slopes_pvalue <= s.alpha,
        lambda s: f"Recalibrate every {s.groups} by itself. Then check new {s.rows}.",
    ),
    Rule(
        "levels differ",
        lambda s: s.rejects and s.levels_pvalue <= s.alpha,
        lambda s: (
            f"Recalibrate: an intercept of its own for {s.each}, one slope "
            f"({_slope(s.common_slope)}) for all. Then check new {s.rows}."
        ),
    ),
    Rule(
        "temperature",
        lambda s: s.rejects and s.enough and s.temperature == s.temperature,
        lambda s: (
            f"Fit a temperature (about {_slope(s.temperature)}) on held-out data, then test again "
            f"on new {s.rows}."
        ),
    ),
    Rule(
        "shift",
        lambda s: s.rejects and s.mean_is_off and s.slope[1] <= 1.0 <= s.slope[2],
        lambda s: f"Shift the log-odds by {_shift(s.shift)}. Then check new {s.rows}.",
    ),
    Rule(
        "slope",
        lambda s: s.rejects and s.slope_is_off,
        lambda s: (
            f"Recalibrate (slope {_slope(s.slope[0])}, intercept {_shift(s.intercept)}). "
            f"Then check new {s.rows}."
        ),
    ),
    Rule(
        "segment",
        lambda s: s.rejects and bool(s.segment),
        lambda s: f"Check {s.segment} on new {s.rows}, or add its columns to the model.",
    ),
    Rule(
        "curve",
        lambda s: s.rejects,
        lambda s: (
            f"Recalibrate with a curve (isotonic or beta) on held-out data. Then check new "
            f"{s.rows}."
        ),
    ),
    Rule(
        "nothing found",
        lambda s: True,
        lambda s: (
            f"No action needed now. Errors up to {_points(s.detectable)} would not be detected."
            if s.detectable == s.detectable
            else "No action needed: no test rejects calibration."
        ),
    ),
)


def recommendation(situation: Situation) -> str:
    """Return the recommended next step, the sentence of the first rule that applies.

    The last rule always applies.
    """
    return next(rule.say(situation) for rule in RULES if rule.holds(situation))
