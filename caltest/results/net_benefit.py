"""Results in the user's units: promised against realised utility, and decision curves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.results.base import Result
from caltest.results.rendering import Card, Columns, attributes, format_p, format_value
from caltest.results.sketches import line


@dataclass(frozen=True, eq=False)
class PromiseResult(Result):
    """Result of :func:`caltest.promise`.

    Attributes
    ----------
    utility, lens : str
        The utility and the lens, as they would be written in Python.
    promised, realised : float
        Mean utility per observation that the probabilities promise, and that was gained.
    difference : float
        ``realised`` − ``promised``.
    z : float
        The difference in standard deviations under calibration.
    pvalue : float
        Two-sided p-value of calibration.
    exact : bool
        Whether the p-value is computed from the exact law; else it is simulated.
    low, high, level : float
        Confidence interval of the expected realised utility, and its level.
    actions, shares : tuple of str, tuple of float
        Names of the actions and the shares of observations in which each is taken; empty for a
        utility without actions.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    utility: str
    lens: str
    promised: float
    realised: float
    difference: float
    z: float
    pvalue: float
    exact: bool
    low: float
    high: float
    level: float
    actions: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    title: ClassVar[str] = "Promised and realised utility"
    number: ClassVar[str] = "difference"
    plotter: ClassVar[str] = "forests.promise"

    def _procedure(self) -> list[str]:
        return [f"promise({self.utility})", "exact null" if self.exact else "redrawn labels"]

    def _tables(self) -> list[Columns]:
        names = ("promised", "realised", "difference", "z", "pvalue")
        tables: list[Columns] = [attributes([self], dict(zip(names, names, strict=True)))]
        if self.actions:
            shares = [f"{100 * share:.1f} %" for share in self.shares]
            tables.append({"action": list(self.actions), "taken": shares})
        return tables

    def _card(self) -> Card:
        z = f"{self.z:+.1f} sd" if self.z else ""
        numbers = (
            ("promised", f"{self.promised:.4g}", "per observation"),
            ("realised", f"{self.realised:.4g}", f"{self.low:.4g} to {self.high:.4g}"),
            ("p", format_p(self.pvalue), z),
        )
        return replace(super()._card(), numbers=numbers)

    def _in_words(self) -> list[str]:
        spread = abs(self.difference / self.z) if self.z else abs(self.difference)
        promised, realised = (format_value(v, spread) for v in (self.promised, self.realised))
        low, high = (format_value(v, self.high - self.low) for v in (self.low, self.high))
        return [
            f"The mean utility expected from the probabilities is {promised} per observation. "
            f"Realised: {realised} (p = {format_p(self.pvalue)}).",
            f"In new data, the mean utility is {low} to {high} ({self._percent} interval).",
        ]


@dataclass(frozen=True, eq=False)
class DecisionCurve(Result):
    """Result of :func:`caltest.decision_curve`: net benefit at each threshold.

    Attributes
    ----------
    lens : str
        The lens, as it would be written in Python.
    thresholds : ndarray of shape (T,)
        Probabilities from which on one acts, ascending.
    net_benefit, low, high : ndarray of shape (T,)
        Net benefit of acting on the model, per observation in true positives, and pointwise
        confidence limits.
    low_all, high_all : ndarray of shape (T,)
        Simultaneous limits: they contain the whole curve with probability ``level``.
    promised : ndarray of shape (T,)
        Net benefit that the probabilities promise.
    treat_all : ndarray of shape (T,)
        Net benefit of acting always; never acting has net benefit 0.
    pvalues : ndarray of shape (T,)
        Exact two-sided p-values of promised against realised net benefit, not adjusted.
    critical : float
        Standard errors to which the simultaneous limits reach.
    useful : ndarray
        Thresholds at which acting on the model is shown to gain more than acting never and more
        than acting always, by lower limits that hold together for both and all thresholds.
    against : str
        Name of the other model, "" without one.
    other : ndarray of shape (T,)
        Net benefit of the other model; empty without one.
    difference, difference_low, difference_high : ndarray of shape (T,)
        Net benefit of the model less the other's, with simultaneous limits; empty without.
    level : float
        Level of all limits.
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    lens: str
    thresholds: FloatArray
    net_benefit: FloatArray
    low: FloatArray
    high: FloatArray
    low_all: FloatArray
    high_all: FloatArray
    promised: FloatArray
    treat_all: FloatArray
    pvalues: FloatArray
    critical: float
    useful: FloatArray
    level: float
    against: str
    other: FloatArray
    difference: FloatArray
    difference_low: FloatArray
    difference_high: FloatArray
    title: ClassVar[str] = "Decision curve"
    plotter: ClassVar[str] = "lines.decision_curve"

    def _procedure(self) -> list[str]:
        many = f"{len(self.thresholds)} thresholds"
        return ["decision_curve", many, f"{self._percent} limits, {self.critical:.2f} se together"]

    def _tables(self) -> list[Columns]:
        step = max(1, len(self.thresholds) // 10)
        shown = slice(None, None, step)
        table: dict[str, list[str]] = {
            "threshold": [f"{t:.3g}" for t in self.thresholds[shown]],
            "net benefit": [f"{v:.4f}" for v in self.net_benefit[shown]],
            "pointwise": _spans(self.low[shown], self.high[shown]),
            "simultaneous": _spans(self.low_all[shown], self.high_all[shown]),
            "promised": [f"{v:.4f}" for v in self.promised[shown]],
            "act always": [f"{v:.4f}" for v in self.treat_all[shown]],
        }
        if self.against:
            table["difference"] = [f"{v:+.4f}" for v in self.difference[shown]]
            table["of it"] = _spans(self.difference_low[shown], self.difference_high[shown])
        return [table]

    def _card(self) -> Card:
        shown = "none shown"
        if self.useful.size:
            shown = f"{self.useful.min():.3g} to {self.useful.max():.3g}"
        best = int(np.argmax(self.net_benefit - np.maximum(self.treat_all, 0.0)))
        numbers = (
            ("useful thresholds", shown, f"{self._percent} confidence for all together"),
            ("best threshold", f"{self.thresholds[best]:.3g}", "largest gain over acting always"),
            ("net benefit there", f"{self.net_benefit[best]:.4f}", "true positives per row"),
        )
        axes = ("Threshold", "Net benefit")
        curve = line(self.thresholds, self.net_benefit, axes, band=(self.low_all, self.high_all))
        drawing = curve if len(self.thresholds) > 1 else ""
        return replace(super()._card(), numbers=numbers, drawing=drawing)

    def _in_words(self) -> list[str]:
        if self.useful.size:
            ends = f"{self.useful.min():.3g} to {self.useful.max():.3g}"
            said = [
                "Acting on the model gains more than acting always or never at thresholds from "
                f"{ends}, with {self._percent} confidence for all thresholds together."
            ]
        else:
            said = [
                "At no threshold is it shown that acting on the model gains more than acting "
                "always or never."
            ]
        if self.against:
            better = self.thresholds[self.difference_low > 0.0]
            worse = self.thresholds[self.difference_high < 0.0]
            for words, at in (("more", better), ("less", worse)):
                if at.size:
                    ends = f"{at.min():.3g} to {at.max():.3g}"
                    said += [f"It gains {words} than {self.against} at thresholds from {ends}."]
            if not better.size and not worse.size:
                said += [f"A difference from {self.against} is shown at no threshold."]
        return said


def _spans(low: FloatArray, high: FloatArray) -> list[str]:
    return [f"{a:.4f} to {b:.4f}" for a, b in zip(low, high, strict=True)]
