"""The answers of a comparison, of two models or of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

from caltest.results.base import Result, format_p, format_value
from caltest.results.calibration import CalibrationTestResult

if TYPE_CHECKING:
    from caltest.plots import Picture


@dataclass(frozen=True)
class ScoreDifference(Result):
    """The difference of two models in a proper score of their whole predictions; lower is better.

    Attributes
    ----------
    score : {"Brier", "log"}
        Σ_k (p_k − 1{y = k})², for two classes half of it, (p − y)²; or −log p_y.
    mean_a, mean_b : float or None
        Average scores; None where an outcome had probability 0 and the log score is infinite.
    difference, low, high, pvalue : float or None
        ``mean_a - mean_b`` with the interval and the p-value of a t-test, paired where rows are.
    """

    score: str
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    low: float | None
    high: float | None
    pvalue: float | None


@dataclass(frozen=True)
class ComparisonResult(Result):
    """The answer of :func:`caltest.compare` for two models.

    Attributes
    ----------
    statistic, tested : str
        The statistic that was asked for, and the one whose difference is tested. They differ when
        no valid test for the first is known.
    lens : str
        The lens, as it would be written in Python.
    method : {"z", "jackknife", "bootstrap", "swap"}
        How the p-value was found.
    hypothesis : str
        What it is a p-value of, in words.
    names : tuple of str
        The two models.
    estimate_a, estimate_b, difference : float
        The tested statistic of both, and ``estimate_a - estimate_b``: negative when the first
        model is better calibrated.
    pvalue, pvalue_error : float
        Two-sided, never 0; and its Monte Carlo standard error, 0 where nothing was simulated.
    low, high : float or None
        The interval of the difference at ``level``; None for ``method="swap"``, which has none.
    level, margin : float
        As asked for.
    verdict : str
        ``"<name> is better calibrated"``, ``"tied"``, ``"cannot tell"`` or, for
        ``method="swap"``, ``"not exchangeable"``.
    test_a, test_b : CalibrationTestResult
        Each model's own test, with its noise floor.
    interval_a, interval_b : tuple of float or None
        Intervals of each model's own error, as ``statistic`` measures it, from
        :func:`caltest.confidence_interval`; None where no method is known to cover.
    scores : tuple of ScoreDifference
        Which model is the better forecaster: another question.
    paired : bool
        Whether rows of both models are the same observations.
    n_resamples : int
        Replicates drawn for ``pvalue``; 0 for ``"z"`` and ``"jackknife"``.
    seed : int or None
        The seed, if the generator was given by one.
    ended : {"complete", "interrupted"}
        Whether Ctrl-C ended a simulation early.
    notes : tuple of str
        What else should be known.
    version : str
        The version of caltest.
    """

    statistic: str
    tested: str
    lens: str
    method: str
    hypothesis: str
    names: tuple[str, str]
    estimate_a: float
    estimate_b: float
    difference: float
    pvalue: float
    pvalue_error: float
    low: float | None
    high: float | None
    level: float
    margin: float
    verdict: str
    test_a: CalibrationTestResult
    test_b: CalibrationTestResult
    interval_a: tuple[float, float] | None
    interval_b: tuple[float, float] | None
    scores: tuple[ScoreDifference, ...]
    paired: bool
    n_resamples: int
    seed: int | None
    ended: str
    notes: tuple[str, ...]
    version: str

    @property
    def pvalue_a(self) -> float:
        """The p-value of the first model's own test."""
        return self.test_a.pvalue

    @property
    def pvalue_b(self) -> float:
        """The p-value of the second model's own test."""
        return self.test_b.pvalue

    @property
    def recipe(self) -> str:
        """One line that says how the number was made, fit for a paper."""
        drawn = [f"B={self.n_resamples}"] if self.n_resamples else []
        if self.n_resamples and self.seed is not None:
            drawn.append(f"seed={self.seed}")
        n_a, n_b = self.test_a.n, self.test_b.n
        rows = f"n={n_a} paired" if self.paired else f"n={n_a} and {n_b}"
        parts = [f"difference of {self.tested}", self.lens, self.method, *drawn, rows]
        return " · ".join([*parts, f"K={self.test_a.n_classes}", f"caltest {self.version}"])

    def plot(self, ax: Any = None, **options: Any) -> Picture:
        """Draw the difference by :func:`caltest.plots.differences`."""
        from caltest import plots

        return plots.differences([self], ax, **options)

    def __str__(self) -> str:
        a, b = self.names
        width = max(len(a), 26) + 2
        rows: list[tuple[str, ...]] = [("", a, b)]
        if self.tested != self.statistic or self.method == "swap":
            rows.append(("observed", *_both(self, lambda t: format_value(t.estimate))))
        rows.append(("if calibrated", *_both(self, _floor)))
        rows.append(("own p-value", *_both(self, lambda t: t.shown_p)))
        if self.interval_a is not None and self.interval_b is not None:
            row = (f"{self.level:.0%} interval", _span(*self.interval_a), _span(*self.interval_b))
            rows.insert(-2, row)
        if self.method != "swap":
            estimates = (self.estimate_a, self.estimate_b)
            rows.insert(1, ("squared error", *(_with_root(e) for e in estimates)))
        lines = [
            f"Comparison of calibration: {a} and {b}",
            f"  statistic      {self.statistic}",
            f"  lens           {self.lens}",
            f"  hypothesis     {self.hypothesis}",
            *_tested_instead(self),
            "",
            *(f"  {name:<15}{left:<{width}}{right}".rstrip() for name, left, right in rows),
            "",
            f"  difference     {format_value(self.difference)}{self._interval()}",
            f"  p-value        {format_p(self.pvalue)}  ({self._precision()})",
            "",
            *(f"  {sentence}" for sentence in self._in_words()),
        ]
        lines += ["", "  As forecasts, which is another question (proper scores, lower is better):"]
        lines += [f"  {line}" for line in _scores_in_words(self.names, self.scores, self.level)]
        if self.ended == "interrupted":
            lines.append("  Interrupted: simulated numbers rest on the resamples drawn until then.")
        lines += [f"  Note: {note}." for note in self.notes]
        return "\n".join([*lines, "", f"  {self.recipe}"])

    def _interval(self) -> str:
        if self.low is None or self.high is None:
            return ""
        return f"  ({self.level:.0%} interval {_span(self.low, self.high)})"

    def _precision(self) -> str:
        rows = "paired rows" if self.paired else "independent rows"
        if self.n_resamples:
            return f"{self.method}, {rows}, {self.n_resamples} resamples"
        return f"{self.method}, {rows}"

    def _in_words(self) -> list[str]:
        """Return the verdict, and a warning where the two own p-values invite a wrong one."""
        verdict = self.verdict
        if verdict in ("tied", "cannot tell", "not exchangeable"):  # a name stays as it is
            verdict = verdict.capitalize()
        sentences = [verdict + self._because()]
        alpha = 1.0 - self.level
        if (self.pvalue_a <= alpha) != (self.pvalue_b <= alpha) and self.pvalue > alpha:
            sentences.append(
                "Only one of the two own tests rejects calibration; by itself that is no evidence "
                "of a difference."
            )
        return sentences

    def _because(self) -> str:
        alpha = f"{1.0 - self.level:.3g}"
        if self.verdict == "not exchangeable":
            return ": the models differ in calibration, or in what they predict, or both."
        if self.low is None or self.high is None:
            return f": p is above {alpha}."
        widest = sqrt(max(abs(self.low), abs(self.high)))
        if self.verdict == "tied":
            but = ", although they are not equal" if self.pvalue <= 1.0 - self.level else ""
            return f": the root mean squared errors differ by less than {self.margin:g}{but}."
        if self.verdict == "cannot tell":
            return f": the root mean squared errors may be equal, or differ by up to {widest:.3f}."
        return f": equal errors are rejected at {alpha}."


def _tested_instead(result: ComparisonResult) -> list[str]:
    if result.tested == result.statistic:
        return []
    asked = result.statistic.partition("(")[0]
    return [
        f"  tested         {result.tested}: no valid test of equal {asked} is known, because its",
        "                 noise floor differs between models",
    ]


def _both(
    result: ComparisonResult, show: Callable[[CalibrationTestResult], str]
) -> tuple[str, str]:
    return show(result.test_a), show(result.test_b)


def _floor(test: CalibrationTestResult) -> str:
    return f"{format_value(test.null_mean)} ± {format_value(test.null_std)}"


def _with_root(square: float) -> str:
    root = f"root {sqrt(square):.3f}" if square >= 0.0 else "below noise"
    return f"{format_value(square)}  ({root})"


def _span(low: float, high: float) -> str:
    return f"{format_value(low)} to {format_value(high)}"


def _scores_in_words(
    names: tuple[str, str], scores: Sequence[ScoreDifference], level: float
) -> list[str]:
    lines = []
    for s in scores:
        if s.difference is None or s.low is None or s.high is None or s.pvalue is None:
            lines.append(f"{s.score:<15}infinite: an outcome had predicted probability 0.")
            continue
        better = names[0] if s.difference < 0.0 else names[1]
        found = f"{better} is better" if s.pvalue <= 1.0 - level else "cannot tell"
        lines.append(
            f"{s.score:<15}{s.mean_a:.4f} and {s.mean_b:.4f}, difference "
            f"{s.difference:.4f} ({s.low:.4f} to {s.high:.4f}), p {format_p(s.pvalue)}: "
            f"{found}"
        )
    return lines


@dataclass(frozen=True)
class ComparisonTable(Result):
    """The answer of :func:`caltest.compare` for several models: all pairs.

    Attributes
    ----------
    names : tuple of str
        The models, the smallest squared error first.
    pairs : tuple of ComparisonResult
        One for each pair, in this order, with its own, unadjusted p-value and verdict.
    adjusted : tuple of float
        Holm's p-values of the pairs.
    verdicts : tuple of str
        The verdicts of the pairs by their adjusted p-values.
    groups : tuple of tuple of str
        The largest sets of models of which no two can be told apart at 1 − ``level``.
    level : float
        The level of the intervals; 1 − ``level`` is the chance of any false difference.
    version : str
        The version of caltest.
    """

    names: tuple[str, ...]
    pairs: tuple[ComparisonResult, ...]
    adjusted: tuple[float, ...]
    verdicts: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    level: float
    version: str

    def pair(self, a: str, b: str) -> ComparisonResult:
        """Return the comparison of two models, in whichever order it was made.

        Raises
        ------
        KeyError
            When there is no such pair.
        """
        for result in self.pairs:
            if {a, b} == set(result.names):
                return result
        raise KeyError(f"there is no pair of {a!r} and {b!r} among {', '.join(self.names)}")

    def plot(self, ax: Any = None, **options: Any) -> Picture:
        """Draw all pairs by :func:`caltest.plots.differences`, with Holm's p-values."""
        from caltest import plots

        return plots.differences(self.pairs, ax, pvalues=self.adjusted, **options)

    def __str__(self) -> str:
        first = self.pairs[0]
        alpha = f"{1.0 - self.level:.3g}"
        squared = first.method != "swap"
        head = [
            f"Comparison of calibration: {len(self.names)} models, {len(self.pairs)} pairs",
            f"  statistic      {first.statistic}",
            f"  lens           {first.lens}",
            f"  hypothesis     {first.hypothesis}, for each pair",
            *_tested_instead(first),
        ]
        asked = [] if squared and first.tested == first.statistic else [first.statistic]
        heads = [*(["squared error"] if squared else []), *(a.partition("(")[0] for a in asked)]
        models = [("model", *heads, "own p", "group")]
        for name in self.names:
            estimate, test = self._of(name)
            letters = "".join(_letter(j) for j, g in enumerate(self.groups) if name in g)
            shown = [_with_root(estimate)] if squared else []
            shown += [format_value(test.estimate) for _ in asked]
            models.append((name, *shown, test.shown_p, letters))
        pairs = [("pair", "difference", "p", "adjusted p", "verdict")]
        for result, p, verdict in zip(self.pairs, self.adjusted, self.verdicts, strict=True):
            a, b = result.names
            difference = format_value(result.difference)
            pairs.append((f"{a} − {b}", difference, format_p(result.pvalue), format_p(p), verdict))
        foot = [
            f"  Models that share a letter cannot be told apart at {alpha} (Holm, all pairs).",
            *(f"  Note: {note}." for note in dict.fromkeys(n for r in self.pairs for n in r.notes)),
            "",
            f"  {first.recipe} · Holm",
        ]
        return "\n".join([*head, "", *_columns(models), "", *_columns(pairs), "", *foot])

    def _of(self, name: str) -> tuple[float, CalibrationTestResult]:
        for pair in self.pairs:
            if pair.names[0] == name:
                return pair.estimate_a, pair.test_a
            if pair.names[1] == name:
                return pair.estimate_b, pair.test_b
        raise KeyError(name)


def _letter(j: int) -> str:
    return chr(ord("a") + j) if j < 26 else f"({j + 1})"


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    return [
        ("  " + "".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]
